//! Labels: what `break` and `continue` name.

use super::{Resolver, stmt};
use crate::ast::{self, StmtKind as S};
use crate::diagnostic::Diagnostic;
use crate::program::*;
use crate::span::Span;

type Ast<'s> = ast::Node<S<'s>>;

/// The labels of a function that are seen at the position of the walk.
#[derive(Default)]
pub(super) struct Labels {
    entries: Vec<Entry>,
    /// Names that wait for the loop or `switch` behind them.
    pending: Vec<TextId>,
    /// How many statements of the function have a label.
    count: u32,
}

/// A statement that `break` or `continue` can name.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Absent where only a bare `break` or `continue` means it.
    name: Option<TextId>,
    label: Label,
    kind: LabelKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelKind {
    Loop,
    Switch,
    Other,
}

impl Labels {
    /// Returns a new label for a loop or `switch`, with the names that wait for it; and how many labels were seen before.
    pub(super) fn begin(&mut self, kind: LabelKind) -> (Label, usize) {
        let mark = self.entries.len();
        let label = self.new_label();
        self.entries.push(Entry { name: None, label, kind });
        self.take_pending(label, kind);
        (label, mark)
    }

    /// Goes back to the labels that were seen before [`begin`](Self::begin).
    pub(super) fn end(&mut self, mark: usize) {
        self.entries.truncate(mark);
    }

    fn new_label(&mut self) -> Label {
        self.count += 1;
        Label(self.count - 1)
    }

    fn take_pending(&mut self, label: Label, kind: LabelKind) {
        let names = self.pending.drain(..);
        self.entries.extend(names.map(|name| Entry { name: Some(name), label, kind }));
    }

    fn has(&self, name: TextId) -> bool {
        self.entries.iter().any(|entry| entry.name == Some(name)) || self.pending.contains(&name)
    }
}

impl<'p> Resolver<'_, 'p> {
    pub(super) fn labeled(&mut self, name: &ast::Name<'_>, body: &Ast<'_>, span: Span, out: &mut Vec<Stmt<'p>>) {
        let id = self.texts.intern(name.text.as_bytes());
        if self.current.labels.has(id) {
            let message = format!("Label '{}' has already been declared", name.text);
            self.error(Diagnostic::syntax(message, name.span));
        }
        self.current.labels.pending.push(id);
        match &body.kind {
            S::Labeled(..)
            | S::DoWhile(..)
            | S::For(..)
            | S::ForIn(..)
            | S::ForOf(..)
            | S::Switch(..)
            | S::While(..) => self.statement(body, out),
            _ => {
                let mark = self.current.labels.entries.len();
                let label = self.current.labels.new_label();
                self.current.labels.take_pending(label, LabelKind::Other);
                let body = self.nested(body);
                self.current.labels.end(mark);
                out.push(stmt(StmtKind::Labeled(label, body), span));
            }
        }
    }

    pub(super) fn jump(
        &mut self,
        label: Option<&ast::Name<'_>>,
        is_continue: bool,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        let found = match label {
            Some(name) => self.named_target(name, is_continue),
            None => self.nearest_target(is_continue, span),
        };
        let Some(label) = found else { return };
        out.push(stmt(if is_continue { StmtKind::Continue(label) } else { StmtKind::Break(label) }, span));
    }

    fn named_target(&mut self, name: &ast::Name<'_>, is_continue: bool) -> Option<Label> {
        let id = self.texts.intern(name.text.as_bytes());
        let entry = self.current.labels.entries.iter().rev().find(|entry| entry.name == Some(id)).copied();
        let message = match entry {
            None => format!("Undefined label '{}'", name.text),
            Some(entry) if is_continue && entry.kind != LabelKind::Loop => {
                let name = name.text;
                format!("Illegal continue statement: '{name}' does not denote an iteration statement")
            }
            Some(entry) => return Some(entry.label),
        };
        self.error(Diagnostic::syntax(message, name.span));
        None
    }

    fn nearest_target(&mut self, is_continue: bool, span: Span) -> Option<Label> {
        let fits = |entry: &&Entry| match entry.kind {
            LabelKind::Loop => entry.name.is_none(),
            LabelKind::Switch => entry.name.is_none() && !is_continue,
            LabelKind::Other => false,
        };
        let entry = self.current.labels.entries.iter().rev().find(fits).copied();
        if entry.is_none() {
            let message = if is_continue {
                "Illegal continue statement: no surrounding iteration statement"
            } else {
                "Illegal break statement"
            };
            self.error(Diagnostic::syntax(message, span));
        }
        entry.map(|entry| entry.label)
    }
}

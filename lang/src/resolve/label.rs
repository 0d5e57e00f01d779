//! Labels: what `break` and `continue` name.

use super::function::Running;
use super::{Resolver, stmt};
use crate::ast::{self, StmtKind as S};
use crate::program::*;
use crate::{Diagnostic, Span};

type Ast<'s> = ast::Node<S<'s>>;

/// A statement that `break` or `continue` can name.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelEntry {
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

impl Resolver<'_> {
    /// A new label for a loop or `switch`, with the names that wait for it.
    pub(super) fn begin_label(&mut self, kind: LabelKind) -> (Label, usize) {
        let label = self.new_label();
        let mark = self.current.labels.len();
        self.current.labels.push(LabelEntry { name: None, label, kind });
        for name in std::mem::take(&mut self.pending_labels) {
            self.current.labels.push(LabelEntry { name: Some(name), label, kind });
        }
        (label, mark)
    }

    pub(super) fn end_label(&mut self, mark: usize) {
        self.current.labels.truncate(mark);
    }

    fn new_label(&mut self) -> Label {
        let Running { next_label, .. } = &mut self.current;
        *next_label += 1;
        Label(*next_label - 1)
    }

    pub(super) fn labeled(&mut self, name: &ast::Name<'_>, body: &Ast<'_>, span: Span, out: &mut Vec<Stmt>) {
        let id = self.texts.intern(name.text.as_bytes());
        let is_known =
            self.current.labels.iter().any(|entry| entry.name == Some(id)) || self.pending_labels.contains(&id);
        if is_known {
            let message = format!("Label '{}' has already been declared", name.text);
            self.error(Diagnostic::syntax(message, name.span));
        }
        match &body.kind {
            S::Labeled(..)
            | S::DoWhile(..)
            | S::For(..)
            | S::ForIn(..)
            | S::ForOf(..)
            | S::Switch(..)
            | S::While(..) => {
                self.pending_labels.push(id);
                self.statement(body, out);
            }
            _ => {
                self.pending_labels.push(id);
                let label = self.new_label();
                let mark = self.current.labels.len();
                for name in std::mem::take(&mut self.pending_labels) {
                    self.current.labels.push(LabelEntry { name: Some(name), label, kind: LabelKind::Other });
                }
                let body = self.nested(body);
                self.end_label(mark);
                out.push(stmt(StmtKind::Labeled(label, body), span));
            }
        }
    }

    pub(super) fn jump(&mut self, label: Option<&ast::Name<'_>>, is_continue: bool, span: Span, out: &mut Vec<Stmt>) {
        let found = match label {
            Some(name) => self.named_target(name, is_continue),
            None => self.nearest_target(is_continue, span),
        };
        let Some(label) = found else { return };
        out.push(stmt(if is_continue { StmtKind::Continue(label) } else { StmtKind::Break(label) }, span));
    }

    fn named_target(&mut self, name: &ast::Name<'_>, is_continue: bool) -> Option<Label> {
        let id = self.texts.intern(name.text.as_bytes());
        let entry = self.current.labels.iter().rev().find(|entry| entry.name == Some(id)).copied();
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
        let fits = |entry: &&LabelEntry| match entry.kind {
            LabelKind::Loop => entry.name.is_none(),
            LabelKind::Switch => entry.name.is_none() && !is_continue,
            LabelKind::Other => false,
        };
        let entry = self.current.labels.iter().rev().find(fits).copied();
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

//! From the syntax tree to the resolved program.
//!
//! One walk over the tree writes the program and gathers facts about bindings: which ones are
//! captured, assigned to, or used in the temporal dead zone (TDZ). A binding is seen only inside its scope, so when the
//! walk leaves a scope everything about its bindings is known. Until then a variable has its binding
//! ([`draft`]); [`finish`] puts the places in and computes what splits, because that needs to know all
//! property names that the script writes.
//!
//! The resolver evaluates nothing and folds no constants but the sign of a number.

// A module imports only from modules declared above it; a test holds it.
mod draft;
mod text;
mod scope;
mod reference;
mod refuse;
mod label;
mod pattern;
mod target;
mod expression;
mod statement;
mod function;
mod finish;

#[cfg(test)]
mod dump;
#[cfg(test)]
mod tests;

use crate::ast::{self, Arena};
use crate::diagnostic::{Diagnostic, Failure};
use crate::options::Options;
use crate::program::Program;
use crate::regexp;
use crate::span::Span;
use draft::{BindingId, Expr, ExprKind, Function, Slot, Stmt, StmtKind, TemplateSite, TextId};
use function::Running;
use hashbrown::HashMap;
use scope::{Bindings, Scope};
use text::Texts;

/// Most refusals that are reported.
const MAX_DIAGNOSTICS: usize = 50;
/// Most refusals that are kept, so that a long script of them costs no memory.
const MAX_REFUSALS: usize = 4096;
/// Most statements that a list has room for which is used again.
const MAX_SPARE_LIST: usize = 1024;
/// Most captures of all functions together: each function between a variable and its use has one.
const MAX_CAPTURES: usize = 1 << 18;

/// A resolved script, of which a draft is written: the syntax tree is not needed any more.
pub(crate) struct Resolved<'a, 'd>(Resolver<'a, 'd>);

/// Resolves a script: checks what the grammar cannot, and writes a draft of the program into an arena.
pub(crate) fn resolve<'a, 'd>(
    script: &ast::Script<'_>,
    options: &'a Options<'a>,
    draft: &'d Arena,
) -> Result<Resolved<'a, 'd>, Failure> {
    let bytes = script.body.last().map_or(0, |last| last.span.end as usize);
    let mut resolver = Resolver::new(options, draft, bytes);
    resolver.main(script);
    if let Some(error) = resolver.syntax {
        return Err(Failure { diagnostics: vec![error] });
    }
    if !resolver.refusals.is_empty() {
        let mut diagnostics = resolver.refusals;
        diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
        // A compound assignment resolves its name twice.
        diagnostics.dedup();
        diagnostics.truncate(MAX_DIAGNOSTICS);
        return Err(Failure { diagnostics });
    }
    Ok(Resolved(resolver))
}

impl Resolved<'_, '_> {
    /// Writes the program into an arena.
    pub(crate) fn program(self, arena: &Arena) -> Program<'_> {
        finish::finish(self.0, arena)
    }
}

/// The state of the walk.
struct Resolver<'a, 'p> {
    options: &'a Options<'a>,
    /// Holds the draft of the program.
    arena: &'p Arena,
    /// Lists of statements that are used again.
    spare_lists: Vec<Vec<Stmt<'p>>>,
    texts: Texts,
    /// All bindings of the script.
    bindings: Bindings,
    /// The scopes around the position of the walk.
    scopes: Vec<Scope>,
    /// Functions seen so far; those around the position of the walk are still empty.
    functions: Vec<Function<'p>>,
    /// For each function, the enclosing one and the bindings it captures.
    captured: Vec<Captured>,
    /// The index of a binding among the captures of a function.
    captures: HashMap<(u32, BindingId), u32>,
    /// The function around the position of the walk.
    current: Running,
    globals: Vec<TextId>,
    free: Vec<(TextId, Span)>,
    patterns: Vec<regexp::Flags>,
    /// The patterns by text and flags: each is checked once.
    known_patterns: HashMap<(TextId, regexp::Flags), u32>,
    templates: Vec<TemplateSite>,
    iterated: Vec<Span>,
    object_sites: u32,
    /// Whether values of the script may be iterable.
    iterables: bool,
    /// Whether the walk is inside a generator, also in a function inside it.
    in_generator: bool,
    /// What holds the object literals around the position of the walk.
    holders: refuse::Holders,
    /// The property that is read of `this`.
    member_of_this: Option<String>,
    /// Whether the main function contains a `return`.
    has_return: bool,
    /// Where the value of the statement that comes next goes, if it is the result of the script.
    tail: Option<statement::Tail>,
    /// Bindings of `switch` scopes that the present cases have initialized.
    initialized_in_case: Vec<BindingId>,
    /// The first syntax error.
    syntax: Option<Diagnostic>,
    refusals: Vec<Diagnostic>,
}

/// The captures of a function.
struct Captured {
    /// The enclosing function.
    parent: u32,
    /// Bindings of enclosing functions, in the order of their slots.
    bindings: Vec<BindingId>,
}

impl<'a, 'p> Resolver<'a, 'p> {
    /// For a source of so many bytes, with the capacity that most scripts of this length need.
    fn new(options: &'a Options<'a>, arena: &'p Arena, bytes: usize) -> Self {
        let usual = |each: usize, most: usize| (bytes / each).min(most);
        Self {
            options,
            arena,
            spare_lists: Vec::new(),
            texts: Texts::with_capacity(usual(14, 64)),
            bindings: Bindings::with_capacity(usual(24, 32)),
            scopes: Vec::with_capacity(usual(20, 16)),
            functions: Vec::with_capacity(usual(48, 8)),
            captured: Vec::with_capacity(usual(48, 8)),
            captures: HashMap::new(),
            current: Running::default(),
            globals: Vec::new(),
            free: Vec::new(),
            patterns: Vec::new(),
            known_patterns: HashMap::new(),
            templates: Vec::new(),
            iterated: Vec::new(),
            object_sites: 0,
            iterables: false,
            in_generator: false,
            holders: refuse::Holders::default(),
            member_of_this: None,
            has_return: false,
            tail: None,
            initialized_in_case: Vec::new(),
            syntax: None,
            refusals: Vec::new(),
        }
    }

    /// Notes a syntax error; the first one in the source counts.
    fn error(&mut self, error: Diagnostic) {
        if self.syntax.as_ref().is_none_or(|first| error.span.start < first.span.start) {
            self.syntax = Some(error);
        }
    }

    /// Notes a refusal.
    fn refuse(&mut self, refusal: Diagnostic) {
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(refusal);
        }
    }

    /// An empty list of statements.
    fn list(&mut self) -> Vec<Stmt<'p>> {
        self.spare_lists.pop().unwrap_or_default()
    }

    /// The statements of a list, which ends.
    fn end_list(&mut self, mut list: Vec<Stmt<'p>>) -> &'p [Stmt<'p>] {
        let statements = self.arena.copy(&list);
        if list.capacity() <= MAX_SPARE_LIST {
            list.clear();
            self.spare_lists.push(list);
        }
        statements
    }

    /// A new temporary.
    fn temp(&mut self) -> Slot {
        let slot = Slot(self.current.slots);
        self.current.slots += 1;
        slot
    }
}

/// An expression whose facts are still unknown.
fn expr(kind: ExprKind<'_>, span: Span) -> Expr<'_> {
    Expr { kind, span, splits: false }
}

/// A statement whose facts are still unknown.
fn stmt(kind: StmtKind<'_>, span: Span) -> Stmt<'_> {
    Stmt { kind, span, splits: false }
}

/// A number of things as the program counts them; sources are far shorter than 4 GiB.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

//! From the syntax tree to the resolved program.
//!
//! One walk over the tree writes the program and gathers facts about bindings. A binding may be captured, assigned to,
//! or used in the temporal dead zone (TDZ). A binding is seen only inside its scope, so when the
//! walk leaves a scope everything about its bindings is known. The program refers to bindings, and has a table of their
//! places.
//!
//! Splits depend on the property names that the script writes, also further down, and on whether it has iterables of
//! its own. The walk assumes that it writes no name of a built-in method, and has none. If that turns out
//! to be wrong, which is rare, a second walk knows.
//!
//! The resolver evaluates nothing and folds no constants but the sign of a number.

// A module imports only from modules declared above it; a test holds it.
mod text;
mod scope;
mod splits;
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
use crate::program::{BindingId, Function, FunctionId, Program, ResultSource, Slot, Stmt, TemplateSite, TextId};
use crate::regexp;
use crate::span::Span;
use function::Running;
use hashbrown::HashMap;
use scope::{Bindings, Scope};
use splits::{expr, stmt};
use text::Texts;

/// Most refusals that are reported.
const MAX_DIAGNOSTICS: usize = 50;
/// Most refusals that are kept, so that a long script of them costs no memory.
const MAX_REFUSALS: usize = 4096;
/// Most statements that a list has room for which is used again.
const MAX_SPARE_LIST: usize = 1024;
/// Most captures of all functions together: each function between a variable and its use has one.
const MAX_CAPTURES: usize = 1 << 18;

/// Resolves a script: checks what the grammar cannot, and writes the program into an arena.
pub(crate) fn resolve<'p>(
    script: &ast::Script<'_>,
    options: &Options<'_>,
    arena: &'p Arena,
) -> Result<Program<'p>, Failure> {
    let resolver = walk(script, options, arena, Assumed::default())?;
    let resolver = match resolver.known() {
        None => resolver,
        Some(known) => walk(script, options, arena, known)?,
    };
    Ok(resolver.program())
}

fn walk<'a, 'p>(
    script: &ast::Script<'_>,
    options: &'a Options<'a>,
    arena: &'p Arena,
    assumed: Assumed,
) -> Result<Resolver<'a, 'p>, Failure> {
    let bytes = script.body.last().map_or(0, |last| last.span.end as usize);
    let mut resolver = Resolver::new(options, arena, bytes, assumed);
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
    Ok(resolver)
}

/// The assumptions of a walk on the whole script.
#[derive(Default)]
struct Assumed {
    /// For each text, whether the script writes a property of that name that may hold a function; the texts of two
    /// walks are the same.
    written: Vec<bool>,
    /// Whether values of the script may be iterable.
    iterables: bool,
}

/// The state of the walk.
struct Resolver<'a, 'p> {
    options: &'a Options<'a>,
    /// The assumptions of the walk.
    assumed: Assumed,
    /// Holds the program.
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
    /// Declarations of functions: which binding holds which function once they have run.
    declared: Vec<(BindingId, FunctionId)>,
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
    /// The holders of the object literals around the position of the walk.
    holders: refuse::Holders,
    /// The property that is read of `this`.
    member_of_this: Option<String>,
    /// The source of the result of the script.
    result: ResultSource,
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
    /// Creates a resolver for a source of so many bytes, with the capacity that most scripts of this length need.
    fn new(options: &'a Options<'a>, arena: &'p Arena, bytes: usize, assumed: Assumed) -> Self {
        let usual = |each: usize, most: usize| (bytes / each).min(most);
        Self {
            options,
            assumed,
            arena,
            spare_lists: Vec::new(),
            texts: Texts::with_capacity(usual(14, 256)),
            bindings: Bindings::with_capacity(usual(24, 32)),
            scopes: Vec::with_capacity(usual(20, 16)),
            functions: Vec::with_capacity(usual(48, 8)),
            captured: Vec::with_capacity(usual(48, 8)),
            captures: HashMap::new(),
            current: Running::default(),
            globals: Vec::new(),
            declared: Vec::new(),
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
            result: ResultSource::Nothing,
            has_return: false,
            tail: None,
            initialized_in_case: Vec::new(),
            syntax: None,
            refusals: Vec::new(),
        }
    }

    /// Notes a syntax error; the first one in the source counts.
    #[cold]
    fn error(&mut self, error: Diagnostic) {
        if self.syntax.as_ref().is_none_or(|first| error.span.start < first.span.start) {
            self.syntax = Some(error);
        }
    }

    /// Notes a refusal.
    #[cold]
    fn refuse(&mut self, refusal: Diagnostic) {
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(refusal);
        }
    }

    /// Returns an empty list of statements.
    fn list(&mut self) -> Vec<Stmt<'p>> {
        self.spare_lists.pop().unwrap_or_default()
    }

    /// Returns the statements of a list, which ends.
    fn end_list(&mut self, mut list: Vec<Stmt<'p>>) -> &'p [Stmt<'p>] {
        let statements = self.arena.copy(&list);
        if list.capacity() <= MAX_SPARE_LIST {
            list.clear();
            self.spare_lists.push(list);
        }
        statements
    }

    /// Returns a new temporary.
    fn temp(&mut self) -> Slot {
        let slot = Slot(self.current.slots);
        self.current.slots += 1;
        slot
    }
}

/// Returns a number of things as the program counts them; sources are far shorter than 4 GiB.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

//! The syntax tree: what the grammar builds and the resolver reads.
//!
//! Names and text are slices of the source; all else is in an [`Arena`]. The height of each node is
//! known when it is made and bounded by [`MAX_DEPTH`], so that every walk over the tree may recurse.

mod arena;
mod depth;
mod operator;

use crate::span::Span;
pub use arena::Arena;
pub(crate) use arena::List;
pub use depth::Depth;
pub use operator::{Binary, Logical, Unary};

/// A text of the source in WTF-8.
pub type Text<'s> = &'s [u8];

/// A script.
#[derive(Clone, Copy, Debug)]
pub struct Script<'s> {
    /// Its statements.
    pub body: &'s [Stmt<'s>],
    /// The index of the default export: a function, which is called, or the result.
    pub entry: Option<usize>,
}

/// A part of the tree with its span.
#[derive(Clone, Copy, Debug)]
pub struct Node<T> {
    /// The kind.
    pub kind: T,
    /// Where it stands in the source.
    pub span: Span,
    /// Height of the tree below.
    depth: u16,
}

/// Deepest tree the parser builds.
pub const MAX_DEPTH: u16 = 256;

impl<T: Depth> Node<T> {
    /// Creates a node; returns also whether the tree below is as high as the parser builds at most.
    // Inline with all it calls: where the kind is known, its depth is that of one or two parts.
    pub(crate) fn new(kind: T, span: Span) -> (Self, bool) {
        let depth = kind.depth() + 1;
        (Self { kind, span, depth: depth.min(MAX_DEPTH + 1) }, depth <= MAX_DEPTH)
    }
}

/// An expression.
pub type Expr<'s> = &'s Node<ExprKind<'s>>;
/// A statement.
pub type Stmt<'s> = &'s Node<StmtKind<'s>>;
/// A binding or assignment pattern.
pub type Pattern<'s> = &'s Node<PatternKind<'s>>;
/// A name with its span.
#[derive(Clone, Copy, Debug)]
pub struct Name<'s> {
    /// The name, escapes decoded.
    pub text: &'s str,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of statements.
#[derive(Clone, Copy, Debug)]
pub enum StmtKind<'s> {
    /// `{ … }`
    Block(&'s [Stmt<'s>]),
    /// `break label;`
    Break(Option<Name<'s>>),
    /// `continue label;`
    Continue(Option<Name<'s>>),
    /// `const a = 1, b = 2;`
    Declare(Declares, &'s [Declarator<'s>]),
    /// `do body while (test);`
    DoWhile(Stmt<'s>, Expr<'s>),
    /// `;`
    Empty,
    /// `expression;`
    Expr(Expr<'s>),
    /// `for (init; test; update) body`
    For(Option<Stmt<'s>>, Option<Expr<'s>>, Option<Expr<'s>>, Stmt<'s>),
    /// `for (item in object) body`
    ForIn(ForHead<'s>, Expr<'s>, Stmt<'s>),
    /// `for (item of items) body`; `true`: `for await`
    ForOf(bool, ForHead<'s>, Expr<'s>, Stmt<'s>),
    /// `function name(…) { … }`
    Function(&'s Function<'s>),
    /// `if (test) yes else no`
    If(Expr<'s>, Stmt<'s>, Option<Stmt<'s>>),
    /// `label: statement`
    Labeled(Name<'s>, Stmt<'s>),
    /// `return value;`
    Return(Option<Expr<'s>>),
    /// `switch (subject) { … }`
    Switch(Expr<'s>, &'s [Case<'s>]),
    /// `throw value;`
    Throw(Expr<'s>),
    /// `try { … } catch (error) { … } finally { … }`
    Try(&'s [Stmt<'s>], Option<Catch<'s>>, Option<&'s [Stmt<'s>]>),
    /// `while (test) body`
    While(Expr<'s>, Stmt<'s>),
}

/// The keyword of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declares {
    /// `const`
    Const,
    /// `let`
    Let,
    /// `var`
    Var,
}

/// The target of a loop over items.
#[derive(Clone, Copy, Debug)]
pub enum ForHead<'s> {
    /// `const pattern`
    Declare(Declares, Pattern<'s>),
    /// `target`
    Assign(Pattern<'s>),
}

/// `pattern = init`
#[derive(Clone, Copy, Debug)]
pub struct Declarator<'s> {
    /// The name or pattern that is bound.
    pub target: Pattern<'s>,
    /// Its value.
    pub init: Option<Expr<'s>>,
}

/// `case test:` or `default:` with its statements
#[derive(Clone, Copy, Debug)]
pub struct Case<'s> {
    /// Absent for `default`.
    pub test: Option<Expr<'s>>,
    /// Statements up to the next case.
    pub body: &'s [Stmt<'s>],
}

/// `catch (binding) { … }`
#[derive(Clone, Copy, Debug)]
pub struct Catch<'s> {
    /// Absent: `catch { … }`
    pub binding: Option<Pattern<'s>>,
    /// The handler.
    pub body: &'s [Stmt<'s>],
}

/// A function of any form.
#[derive(Clone, Copy, Debug)]
pub struct Function<'s> {
    /// The name it declares or has as an expression.
    pub name: Option<Name<'s>>,
    /// Whether it is `(…) => …`.
    pub is_arrow: bool,
    /// Whether it is `async`.
    pub is_async: bool,
    /// Whether it is a generator: `function*`, `*name() {}`.
    pub is_generator: bool,
    /// Its parameters; the last one may be [`PatternKind::Rest`].
    pub params: &'s [Pattern<'s>],
    /// Its body.
    pub body: Body<'s>,
    /// From the first token to the last.
    pub span: Span,
}

/// The body of a function.
#[derive(Clone, Copy, Debug)]
pub enum Body<'s> {
    /// `{ … }`
    Block(&'s [Stmt<'s>]),
    /// `=> expression`
    Expr(Expr<'s>),
}

/// Kinds of patterns.
#[derive(Clone, Copy, Debug)]
pub enum PatternKind<'s> {
    /// `[a, , b]`
    Array(&'s [Option<Pattern<'s>>]),
    /// `target = default`
    Default(Pattern<'s>, Expr<'s>),
    /// A member expression; only in assignments.
    Member(Expr<'s>),
    /// `name`
    Name(&'s str),
    /// `{key: pattern, ...rest}`
    Object(&'s [(Key<'s>, Pattern<'s>)], Option<Pattern<'s>>),
    /// `...pattern`
    Rest(Pattern<'s>),
}

/// A property key in a literal or a pattern.
#[derive(Clone, Copy, Debug)]
pub enum Key<'s> {
    /// `[expression]`
    Computed(Expr<'s>),
    /// `name`, `'text'`; numbers stand here as they print, which makes `1` and `'1'` the same key
    Text(Text<'s>, Span),
}

/// Kinds of expressions.
#[derive(Clone, Copy, Debug)]
pub enum ExprKind<'s> {
    /// `[a, , ...b]`
    Array(&'s [Option<Expr<'s>>]),
    /// `target = value`
    Assign(AssignOp, Pattern<'s>, Expr<'s>),
    /// `await value`
    Await(Expr<'s>),
    /// `12n`: the digits in base ten
    BigInt(&'s str),
    /// `left operator right`
    Binary(Binary, Expr<'s>, Expr<'s>),
    /// Three operands or more of the same level of precedence, from left to right
    Chain(Expr<'s>, &'s [(Binary, Expr<'s>)]),
    /// `true`
    Bool(bool),
    /// `callee(arguments)`; `true`: `callee?.(arguments)`
    Call(Expr<'s>, &'s [Expr<'s>], bool),
    /// `test ? yes : no`
    Conditional(Expr<'s>, Expr<'s>, Expr<'s>),
    /// A function expression, arrow function, or async one
    Function(&'s Function<'s>),
    /// `object[index]`; `true`: `object?.[index]`
    Index(Expr<'s>, Expr<'s>, bool),
    /// `left && right`, two operands or more of one operator
    Logical(Logical, &'s [Expr<'s>]),
    /// `object.name`; `true`: `object?.name`
    Member(Expr<'s>, Name<'s>, bool),
    /// `name`
    Name(&'s str),
    /// `new callee(arguments)`
    New(Expr<'s>, &'s [Expr<'s>]),
    /// `null`
    Null,
    /// `1.5`
    Number(f64),
    /// `{ … }`
    Object(&'s [Property<'s>]),
    /// `(expression)`: ends an optional chain and is no pattern
    Paren(Expr<'s>),
    /// `/pattern/flags`
    Regex(&'s str, &'s str),
    /// `first, second, …`
    Sequence(&'s [Expr<'s>]),
    /// `...value`, among arguments and elements
    Spread(Expr<'s>),
    /// `'text'`
    String(Text<'s>),
    /// `` tag`text${hole}text` ``
    Tagged(Expr<'s>, &'s [Quasi<'s>], &'s [Expr<'s>]),
    /// `` `text${hole}text` ``
    Template(&'s [Text<'s>], &'s [Expr<'s>]),
    /// `!operand`
    Unary(Unary, Expr<'s>),
    /// `target++`
    Update {
        /// 1 or -1.
        delta: i8,
        /// `++target`
        prefix: bool,
        /// The name or property that changes.
        target: Pattern<'s>,
    },
    /// `yield value`
    Yield(Option<Expr<'s>>),
    /// `yield* iterable`
    YieldStar(Expr<'s>),
}

/// A constant part of a tagged template.
#[derive(Clone, Copy, Debug)]
pub struct Quasi<'s> {
    /// With escapes decoded; `None` where an escape is invalid.
    pub cooked: Option<Text<'s>>,
    /// As written, line ends as `\n`.
    pub raw: Text<'s>,
}

/// A part of an object literal.
#[derive(Clone, Copy, Debug)]
pub enum Property<'s> {
    /// `key(…) { … }`
    Method(Key<'s>, &'s Function<'s>),
    /// `name`, and `name = default` where it turns out to be a pattern
    Shorthand(Name<'s>, Option<Expr<'s>>),
    /// `...value`
    Spread(Expr<'s>),
    /// `key: value`
    Value(Key<'s>, Expr<'s>),
}

/// `=`, `+=`, `&&=`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Plain,
    /// `+=` and the like
    Binary(Binary),
    /// `&&=`, `||=`, `??=`
    Logical(Logical),
}

/// Whether some link of the optional chain that ends with this expression is `?.`.
pub(crate) fn in_optional_chain(expr: Expr<'_>) -> bool {
    let mut link = expr;
    loop {
        link = match link.kind {
            ExprKind::Member(_, _, true) | ExprKind::Index(_, _, true) | ExprKind::Call(_, _, true) => return true,
            ExprKind::Member(object, ..) | ExprKind::Index(object, ..) | ExprKind::Call(object, ..) => object,
            ExprKind::Tagged(tag, ..) => tag,
            _ => return false,
        }
    }
}

const _: () = assert!(size_of::<Node<ExprKind<'_>>>() <= 64 && size_of::<Property<'_>>() <= 40);

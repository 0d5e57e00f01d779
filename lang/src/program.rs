//! The resolved program: what the evaluator sees.
//!
//! There are no names: a variable is a [`Place`], a property name a [`TextId`]. Destructuring, optional
//! chains, compound assignment to properties, defaults of parameters and hoisting are desugared by the resolver. They
//! become the expressions below, with temporaries in slots of the frame. All early errors and
//! refusals are reported before a program exists.
//!
//! A use of a variable refers to its binding, because its place is known only when the whole script has been walked;
//! [`Program::place`] tells it.
//!
//! The tree is as deep as the syntax tree at most, times a small constant, so that recursion over it
//! is safe. Like the syntax tree it is in an [`Arena`](crate::ast::Arena): its parts are copied freely, and
//! all of it is freed at once.

mod parts;
mod places;
mod texts;

pub use crate::ast::{Binary, Logical};
use crate::regexp;
use crate::span::Span;
pub use places::{BindingId, BindingPlace, Place, Places, Reference};
pub use texts::Texts;

/// A text of the program, interned: property names and string constants share one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// The text of the key `Symbol.iterator`. It is not WTF-8, so that no string is equal to it.
pub const SYMBOL_ITERATOR: &[u8] = b"\xFFSymbol.iterator";

/// The text of the key `Symbol.asyncIterator`, in the same way.
pub const SYMBOL_ASYNC_ITERATOR: &[u8] = b"\xFFSymbol.asyncIterator";

/// A slot in the frame of the running function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// A function of the program; the main function is number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u32);

/// A statement that `break` or `continue` can name; unique in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

/// A whole script.
#[derive(Debug)]
pub struct Program<'p> {
    /// Texts in WTF-8: UTF-8 that may hold lone surrogates.
    pub texts: Texts,
    /// Functions; the main function, which is async and has no parameters, comes first.
    pub functions: &'p [Function<'p>],
    /// Where the bindings live.
    pub places: Places,
    /// Names of the global slots: bindings of the main function that inner functions use.
    pub globals: Vec<TextId>,
    /// For each global slot, the function that it holds whenever it is read without a check.
    pub fixed: Vec<Option<FunctionId>>,
    /// The free names of the script with the span of their first use, in the order of the source.
    pub free: Vec<(TextId, Span)>,
    /// Flags of regular expressions, by the number of their pattern; literals that are the same have the same number.
    pub patterns: Vec<regexp::Flags>,
    /// Constant parts of tagged templates.
    pub templates: Vec<TemplateSite>,
    /// Spans of the callees whose results are iterated over at once: V8 has messages of its own for these.
    pub iterated: Vec<Span>,
    /// How many object literals there are; each has a number below this.
    pub object_sites: u32,
    /// The source of its result.
    pub result: ResultSource,
    /// Whether values of the script may be iterable: it has generators, or writes `Symbol.iterator` or
    /// `Symbol.asyncIterator`. Where it has none, iterating runs no function of the script.
    pub iterables: bool,
    /// For each text, whether the script writes a property of that name that may hold a function:
    /// such a method call may run a function of the script.
    pub written: Vec<bool>,
}

/// The source of the result of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSource {
    /// Nothing: it has no `return`, and ends with no expression.
    Nothing,
    /// Its only `return`.
    Return(Span),
    /// One of several.
    Returns,
    /// Its last statement.
    Last(Span),
    /// The function that is called at its end.
    Entry(Span),
}

/// The constant parts of one tagged template.
#[derive(Debug)]
pub struct TemplateSite {
    /// With escapes decoded; `None` where an escape is invalid.
    pub cooked: Vec<Option<TextId>>,
    /// As written.
    pub raw: Vec<TextId>,
}

/// One function.
///
/// A frame begins with the parameters, then come variables and temporaries, then the captured variables. At entry the
/// caller has put the arguments into the parameter slots, `undefined` where one is missing.
/// Defaults and patterns of parameters are statements at the head of the body.
#[derive(Clone, Copy, Debug)]
pub struct Function<'p> {
    /// The name the function has, or would be given by the specification.
    pub name: Option<TextId>,
    /// Whether it is `async`.
    pub is_async: bool,
    /// Whether it is a generator.
    pub is_generator: bool,
    /// Whether it is an arrow function.
    pub is_arrow: bool,
    /// How many slots arguments are put into: slots `0..parameters`.
    pub parameters: u32,
    /// Where the array of the remaining arguments goes.
    pub rest: Option<Slot>,
    /// The `length` of the function object.
    pub length: u32,
    /// Slots of the enclosing function that are copied into the last slots of this one: values that never change, or cells.
    pub captures: &'p [Slot],
    /// The slot that the first of them is copied into.
    pub first_capture: u32,
    /// Where the function object itself goes at entry: the name of a function expression.
    pub itself: Option<Slot>,
    /// Parameters that live in cells: at entry the argument is moved into a new cell.
    pub boxed: &'p [Slot],
    /// How many slots a frame has, with those of captures; the evaluator puts its own temporaries behind them.
    pub slots: u32,
    /// The body. The value of the main function is what it returns.
    pub body: &'p [Stmt<'p>],
    /// Where the whole function stands.
    pub span: Span,
}

/// A variable that is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its binding.
    pub reference: Reference,
    /// Its name, for messages.
    pub name: TextId,
    /// Whether an access may have to check that it is initialized, because it may be in the temporal dead zone (TDZ):
    /// [`Program::is_checked`] tells whether it has to.
    pub checked: bool,
}

/// A statement.
#[derive(Clone, Copy, Debug)]
pub struct Stmt<'p> {
    /// The kind.
    pub kind: StmtKind<'p>,
    /// Where it stands.
    pub span: Span,
    /// Whether it contains an expression with [`Expr::splits`].
    pub splits: bool,
}

/// The value of a binding when its scope is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// `let`, `const`: an access is an error until the declaration has run.
    Uninitialized,
    /// `var`.
    Undefined,
}

/// Kinds of statements.
#[derive(Clone, Copy, Debug)]
pub enum StmtKind<'p> {
    /// Beginning of the scope of a binding. A [`Place::Cell`] gets a new cell. Left out where nobody
    /// could tell the difference.
    Enter(Reference, Initial),
    /// The declaration of a binding has run: `let x = value`. Never checks.
    Init(Reference, Expr<'p>),
    /// `expression;`
    Expr(Expr<'p>),
    /// `{ … }`
    Block(&'p [Stmt<'p>]),
    /// `if (test) yes else no`
    If(Expr<'p>, &'p Stmt<'p>, Option<&'p Stmt<'p>>),
    /// `for (; test; update) body` and `while (test) body`
    For(&'p ForLoop<'p>),
    /// `do body while (test)`
    DoWhile {
        /// Its number.
        label: Label,
        /// The body.
        body: &'p Stmt<'p>,
        /// The test.
        test: Expr<'p>,
    },
    /// `for (item of iterable) body`, `for await`, `for (item in object)`
    ForEach(&'p EachLoop<'p>),
    /// `switch`
    Switch(&'p Switch<'p>),
    /// `try`
    Try(&'p Try<'p>),
    /// `label: statement` where the statement is no loop and no `switch`.
    Labeled(Label, &'p Stmt<'p>),
    /// `break`
    Break(Label),
    /// `continue`
    Continue(Label),
    /// `return`
    Return(Option<Expr<'p>>),
    /// `throw`
    Throw(Expr<'p>),
}

/// `for (; test; update) body` and `while (test) body`; what stands before the first `;` is a
/// statement before this one.
#[derive(Clone, Copy, Debug)]
pub struct ForLoop<'p> {
    /// Its number.
    pub label: Label,
    /// Absent: always true.
    pub test: Option<Expr<'p>>,
    /// Evaluated after each turn.
    pub update: Option<Expr<'p>>,
    /// The body.
    pub body: &'p Stmt<'p>,
    /// Slots of cells that get a copy for each turn, before `update`.
    pub fresh: &'p [Slot],
}

/// A loop over items. The body begins with the statements that bind the item.
#[derive(Clone, Copy, Debug)]
pub struct EachLoop<'p> {
    /// Its number.
    pub label: Label,
    /// The form of the loop.
    pub kind: ForEach,
    /// The value that is iterated over.
    pub iterable: Expr<'p>,
    /// Holds the iterator while the loop runs.
    pub iterator: Slot,
    /// Holds the item at the beginning of the body.
    pub item: Slot,
    /// The body.
    pub body: &'p Stmt<'p>,
}

/// `switch`
#[derive(Clone, Copy, Debug)]
pub struct Switch<'p> {
    /// Its number.
    pub label: Label,
    /// The value that is compared.
    pub subject: Expr<'p>,
    /// Holds the subject.
    pub slot: Slot,
    /// The cases in order; `default` has no test. Bindings of the block are entered by
    /// statements before this one.
    pub cases: &'p [Case<'p>],
}

/// `try`
#[derive(Clone, Copy, Debug)]
pub struct Try<'p> {
    /// The guarded block.
    pub body: &'p [Stmt<'p>],
    /// Slot of the caught value, and the handler.
    pub catch: Option<(Slot, &'p [Stmt<'p>])>,
    /// The finalizer.
    pub finally: Option<&'p [Stmt<'p>]>,
    /// Where the evaluator keeps how the guarded part ended while the finalizer runs: a number
    /// and a value.
    pub completion: (Slot, Slot),
}

/// The three loops over items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForEach {
    /// `for (… of …)`
    Of,
    /// `for (… in …)`
    In,
    /// `for await (… of …)`
    AwaitOf,
}

/// A `case` or `default`.
#[derive(Clone, Copy, Debug)]
pub struct Case<'p> {
    /// Absent for `default`.
    pub test: Option<Expr<'p>>,
    /// Statements up to the next case.
    pub body: &'p [Stmt<'p>],
}

/// An expression.
#[derive(Clone, Copy, Debug)]
pub struct Expr<'p> {
    /// The kind.
    pub kind: ExprKind<'p>,
    /// Where it stands.
    pub span: Span,
    /// Whether its evaluation can be left in the middle: it contains an `await`, a `yield` or a call that may
    /// run a function of the script, and these are not inside a nested function.
    pub splits: bool,
}

/// Kinds of expressions.
#[derive(Clone, Copy, Debug)]
pub enum ExprKind<'p> {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `1.5`
    Number(f64),
    /// `'text'`
    String(TextId),
    /// `12n`: the digits in base ten
    BigInt(TextId),
    /// `/pattern/flags`: the text of the pattern, which has been checked, and its number in [`Program::patterns`]
    Regex(TextId, u32),
    /// `` `text${hole}text` ``: the first text, and each hole with the text behind it
    Template(TextId, &'p [(Expr<'p>, TextId)]),
    /// The frozen array of strings that a tagged template passes first: index in
    /// [`Program::templates`]. The same array each time the template is evaluated.
    TemplateObject(u32),
    /// `[…]`
    Array(&'p [Element<'p>]),
    /// `{…}` with the number of the literal
    Object(u32, &'p [Property<'p>]),
    /// A function expression, an arrow function, a method, or a hoisted declaration
    Function(FunctionId),

    /// A variable
    Read(Variable),
    /// `variable = value`
    Write(Variable, &'p Expr<'p>),
    /// `constant = value`: the value is evaluated, then a `TypeError` is thrown. Where `checked`, a
    /// `ReferenceError` comes first if the binding is not initialized.
    WriteConst(Variable, &'p Expr<'p>),
    /// `++x`, `x--`, …
    Update {
        /// The variable.
        variable: Variable,
        /// 1 or -1.
        delta: i8,
        /// Whether the new value is the result.
        prefix: bool,
    },
    /// A temporary of the resolver.
    Temp(Slot),
    /// `temporary = value`; its value is the value.
    SetTemp(Slot, &'p Expr<'p>),
    /// A name that the script does not declare: a global of the host, or nothing.
    Global(TextId),
    /// `typeof name` of such a name: no error where there is nothing.
    TypeofGlobal(TextId),
    /// `name = value` of such a name: a `ReferenceError` after the value.
    WriteGlobal(TextId, &'p Expr<'p>),
    /// A read of a parameter by the default of an earlier one, or of the names of a `for` head by
    /// what it iterates over: always a `ReferenceError`.
    Uninitialized(TextId),

    /// `object.name`
    Member(&'p Expr<'p>, TextId),
    /// `object[key]`
    Index(&'p Expr<'p>, &'p Expr<'p>),
    /// `object.name = value`
    SetMember(&'p Expr<'p>, TextId, &'p Expr<'p>),
    /// `object[key] = value`; the key is converted after the value is evaluated
    SetIndex(&'p Expr<'p>, &'p Expr<'p>, &'p Expr<'p>),
    /// `delete object.name`
    DeleteMember(&'p Expr<'p>, TextId),
    /// `delete object[key]`
    DeleteIndex(&'p Expr<'p>, &'p Expr<'p>),

    /// A prefix operator
    Unary(Unary, &'p Expr<'p>),
    /// `left operator right`
    Binary(Binary, &'p Expr<'p>, &'p Expr<'p>),
    /// `first operator operand operator operand …`, from left to right, three operands or more
    Chain(&'p Chain<'p>),
    /// `left && right`, `left || right`, `left ?? right`
    Logical(Logical, &'p Expr<'p>, &'p Expr<'p>),
    /// `test ? yes : no`
    Conditional(&'p Expr<'p>, &'p Expr<'p>, &'p Expr<'p>),
    /// `first, second, …`
    Sequence(&'p [Expr<'p>]),

    /// A call.
    Call(&'p Call<'p>),
    /// `new Constructor(…)` of a built-in: the dotted name
    New(&'p New<'p>),
    /// `await value`
    Await(&'p Expr<'p>),

    /// The value, if it can be destructured by an object pattern, else a `TypeError`.
    RequireObject {
        /// The value that is destructured.
        value: &'p Expr<'p>,
        /// The first property of the pattern, for the message.
        first: Option<TextId>,
        /// How the message names the value.
        origin: Origin,
    },
    /// A new object with the own enumerable properties of the object in a slot, without those whose
    /// keys are named: `{a, ...rest} = object`. Keys are property keys already.
    ObjectRest(Slot, &'p [Expr<'p>]),
    /// `yield value`; its value is what `next` is given
    Yield(&'p Expr<'p>),
    /// `yield* iterable`
    YieldStar(&'p Expr<'p>),
    /// The arguments of a generator are bound: its frame waits for the first `next`.
    GeneratorStart,
    /// An iterator over the value for an array pattern, else a `TypeError`. It is the value of an
    /// [`ExprKind::SetTemp`]; what follows up to [`ExprKind::IteratorClose`] closes it wherever control leaves.
    Iterator(&'p Expr<'p>, Origin),
    /// The next item of the iterator in a slot, `undefined` when there is none.
    IteratorNext(Slot),
    /// An array of the items that are left.
    IteratorRest(Slot),
    /// The end of an array pattern: the iterator is closed unless it is at its end. Left out where closing runs no
    /// function of the script.
    IteratorClose(Slot),
}

/// Where a value comes from that a pattern destructures: messages name it accordingly, as V8 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is written there: its text is its name.
    Source(Span),
    /// An argument, a caught value: it has no name.
    Value,
    /// An item of a loop.
    Item,
    /// A part of what a bigger pattern takes apart: the message speaks of the property that is read.
    Part,
}

/// `first operator operand operator operand …`
#[derive(Clone, Copy, Debug)]
pub struct Chain<'p> {
    /// The first operand.
    pub first: Expr<'p>,
    /// The others, each with the operator before it.
    pub rest: &'p [(Binary, Expr<'p>)],
}

/// `new`
#[derive(Clone, Copy, Debug)]
pub struct New<'p> {
    /// The parts of the name.
    pub names: &'p [TextId],
    /// With what.
    pub arguments: &'p [Argument<'p>],
    /// Whether it may run a function of the script.
    pub splits: bool,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'p> {
    /// The callee.
    pub callee: Callee<'p>,
    /// With what.
    pub arguments: &'p [Argument<'p>],
    /// Where the text of the callee stands, for messages.
    pub callee_span: Span,
    /// Whether it may run a function of the script.
    pub splits: bool,
}

/// The callee of a call.
#[derive(Clone, Copy, Debug)]
pub enum Callee<'p> {
    /// `f(…)`
    Value(Expr<'p>),
    /// `object.name(…)`
    Member(Expr<'p>, TextId),
    /// `object[key](…)`
    Index(Expr<'p>, Expr<'p>),
    /// `object.name?.(…)`: the function with its receiver
    With {
        /// The function.
        function: Expr<'p>,
        /// The receiver.
        this: Expr<'p>,
    },
}

/// An argument or `...argument`.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'p> {
    /// The value.
    pub value: Expr<'p>,
    /// Whether its items are the arguments.
    pub spread: bool,
}

/// A part of an array literal.
#[derive(Clone, Copy, Debug)]
pub enum Element<'p> {
    /// Nothing between two commas
    Hole,
    /// `value`
    Item(Expr<'p>),
    /// `...value`
    Spread(Expr<'p>),
}

/// A part of an object literal.
#[derive(Clone, Copy, Debug)]
pub enum Property<'p> {
    /// `name: value`, `name`, `name() {}`. `__proto__` is refused before.
    Named(TextId, Expr<'p>),
    /// `[key]: value`
    Computed(Expr<'p>, Expr<'p>),
    /// `...value`
    Spread(Expr<'p>),
}

/// Prefix operators, and conversions the resolver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `!`
    Not,
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `typeof`
    Typeof,
    /// `void`
    Void,
    /// To a Number or a BigInt: the old value of `object.count++`
    ToNumeric,
    /// To a property key: computed keys that are used twice
    ToPropertyKey,
    /// One more than a numeric value: `object.count++`
    Increment,
    /// One less
    Decrement,
}

// These are moved all the time while a program is written.
const _: () = assert!(size_of::<Expr<'_>>() <= 48 && size_of::<Stmt<'_>>() <= 88);

impl<'p> Program<'p> {
    /// Returns the bytes of a text.
    #[must_use]
    pub fn text(&self, id: TextId) -> &[u8] {
        self.texts.get(id)
    }

    /// Returns the place in which a function finds a variable.
    #[must_use]
    pub fn place(&self, function: FunctionId, reference: Reference) -> Place {
        self.places.of(self.functions, function, reference)
    }

    /// Whether an access checks that the variable is initialized.
    #[must_use]
    pub fn is_checked(&self, variable: &Variable) -> bool {
        variable.checked && !(variable.reference.is_hoisted && self.places.runs_late(variable.reference.binding))
    }

    /// Whether a variable may change after its declaration.
    #[must_use]
    pub fn is_assigned(&self, variable: &Variable) -> bool {
        self.places.is_assigned(variable.reference.binding)
    }

    /// Returns the main function.
    #[must_use]
    pub fn main(&self) -> &Function<'p> {
        &self.functions[0]
    }
}

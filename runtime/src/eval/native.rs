//! Built-in functions as the evaluator knows them: rows of tables, with what a call does.

use crate::eval::generator::Resumption;
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;

/// A built-in function: receiver and arguments in, value out.
pub type NativeFn = fn(&mut Vm, Value, &[Value]) -> Result;

/// The function of a native closure: its receiver is the closure.
pub struct ClosureFn {
    /// The `length` of the function object.
    pub length: u32,
    /// The function of Rust.
    pub call: NativeFn,
}

/// The fast path of a function of the prelude, for calls that need no function of the script: `None` where one is
/// needed.
pub type DirectFn = fn(&mut Vm, Value, &[Value]) -> Result<Option<Value>>;

/// How a built-in function is run.
#[derive(Clone, Copy)]
pub enum Body {
    /// A function of Rust, which runs functions of the script only in implicit conversions.
    Native(NativeFn),
    /// A function of `prelude/`, whose first parameter is the receiver.
    Prelude(&'static str),
    /// A property that every object of the family computes, such as `size` of a `Map`.
    Accessor {
        /// Called with the object as its receiver.
        get: NativeFn,
        /// The same with the new value; `None` where the property is only read.
        set: Option<NativeFn>,
    },
    /// A function of Rust that iterates over its first argument. Where that may be an iterable of the script, the
    /// function of `prelude/` is called in its place.
    Iterating(NativeFn, &'static str),
    /// `next`, `return` or `throw` of a generator; `true`: of an async one.
    Resume(Resumption, bool),
    /// Not callable: a namespace such as `Math`.
    Namespace,
}

impl Body {
    /// The function of Rust that implements it alone, in a script that may have iterables of its own or not.
    #[inline(always)]
    pub fn as_native(self, iterables: bool) -> Option<NativeFn> {
        match self {
            Self::Native(function) => Some(function),
            Self::Iterating(function, _) if !iterables => Some(function),
            Self::Iterating(..) | Self::Prelude(_) | Self::Accessor { .. } | Self::Resume(..) | Self::Namespace => None,
        }
    }
}

/// A row of a table of functions.
#[derive(Clone, Copy)]
pub struct Row {
    /// The property name.
    pub name: &'static str,
    /// The `length` of the function object.
    pub length: u8,
    /// How it is run.
    pub body: Body,
    /// The fast path that is tried first.
    pub direct: Option<DirectFn>,
}

/// A row of a function of Rust.
pub const fn native(name: &'static str, length: u8, function: NativeFn) -> Row {
    Row { name, length, body: Body::Native(function), direct: None }
}

/// A row of a property that is only read.
pub const fn getter(name: &'static str, get: NativeFn) -> Row {
    Row { name, length: 0, body: Body::Accessor { get, set: None }, direct: None }
}

/// A row of a function of `prelude/`.
pub const fn prelude(name: &'static str, length: u8, function: &'static str) -> Row {
    Row { name, length, body: Body::Prelude(function), direct: None }
}

/// A row of a function that iterates over its first argument, in Rust and in `prelude/`.
pub const fn iterating(name: &'static str, length: u8, native: NativeFn, function: &'static str) -> Row {
    Row { name, length, body: Body::Iterating(native, function), direct: None }
}

/// The same with a fast path in Rust.
pub const fn either(name: &'static str, length: u8, direct: DirectFn, function: &'static str) -> Row {
    Row { name, length, body: Body::Prelude(function), direct: Some(direct) }
}

/// A global: a constructor with its static properties, a function, or a namespace.
#[derive(Clone, Copy)]
pub struct Global {
    /// Its name.
    pub name: &'static str,
    /// The `length` of the function object.
    pub length: u8,
    /// The effect of a call.
    pub call: Body,
    /// The effect of `new`; absent if it is refused.
    pub construct: Option<Body>,
    /// Static functions.
    pub functions: &'static [Row],
    /// Static numbers.
    pub numbers: &'static [(&'static str, f64)],
}

impl Global {
    /// A plain function.
    pub const fn function(row: Row) -> Self {
        Self { name: row.name, length: row.length, call: row.body, construct: None, functions: &[], numbers: &[] }
    }
}

/// An argument, `undefined` where there is none.
#[inline(always)]
pub fn arg(arguments: &[Value], index: usize) -> Value {
    arguments.get(index).copied().unwrap_or(Value::UNDEFINED)
}

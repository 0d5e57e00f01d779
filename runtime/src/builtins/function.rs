//! Methods of functions, and how messages name a value.

use super::registry::registry;
use super::{Global, Row, arg, native, prelude};
use crate::error::Result;
use crate::heap::object::NULL_PROTOTYPE;
use crate::heap::{Action, Bound};
use crate::symbol::known;
use crate::value::{Kind, Value};
use crate::vm::Vm;

/// There is no `Function`.
pub const GLOBALS: &[Global] = &[];

/// Methods of functions.
pub const METHODS: &[Row] = &[
    prelude("apply", 2, "Function_apply"),
    native("bind", 1, bind),
    prelude("call", 1, "Function_call"),
    native("toString", 0, to_string),
];

/// `function.bind(receiver, ...first)`
fn bind(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if crate::convert::type_of(this) != "function" {
        return Err(vm.type_error("Bind must be called on a function"));
    }
    let name = vm.callable_name(this);
    vm.work(name.len() / 16)?;
    let name = vm.string(&format!("bound {name}"));
    let first = arguments.get(1..).unwrap_or(&[]);
    // What is bound again calls the same function, not a chain of bound ones.
    let (target, receiver, own) = match this.is(Kind::Bound).then(|| vm.heap.bound[this.index()]) {
        Some(Bound { action: Action::Apply, data: [target, receiver, own] }) => {
            let own = [&[name], &vm.heap.items(own)[1..], first].concat();
            (target, receiver, own)
        }
        _ => (this, arg(arguments, 0), [&[name], first].concat()),
    };
    vm.work(own.len())?;
    let own = vm.heap.new_array(own);
    Ok(vm.heap.new_bound(Action::Apply, [target, receiver, own]))
}

/// `$bind(function, receiver)`
pub fn bind_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    bind(vm, arg(arguments, 0), &[arg(arguments, 1)])
}

fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if crate::convert::type_of(this) != "function" {
        return Err(vm.type_error("Function.prototype.toString requires that 'this' be a Function"));
    }
    let text = vm.function_text(this);
    vm.work(text.len() / 16)?;
    vm.reserve(text.len())?;
    Ok(vm.string(&text))
}

impl Vm {
    /// The source of a function of the script; other functions do not show theirs.
    fn function_text(&self, function: Value) -> String {
        if function.is(Kind::Function) {
            let code = self.heap.closures[function.index()].code;
            if !code.is_prelude() {
                let span = self.function(code).span;
                let range = span.start as usize..span.end as usize;
                return self.script.source().get(range).unwrap_or_default().to_owned();
            }
            return "function () { [native code] }".to_owned();
        }
        let name = if function.is(Kind::Bound) { String::new() } else { self.callable_name(function) };
        format!("function {name}() {{ [native code] }}")
    }

    /// A value as V8 prints it in messages, without running anything.
    pub fn describe(&mut self, value: Value) -> String {
        match value.kind() {
            Kind::Function | Kind::Bound | Kind::Tool => shortened(self.function_text(value)),
            Kind::Native if registry().natives[value.index()].is_function() => self.function_text(value),
            Kind::Object if self.heap.class(value).is_error() => {
                self.error_text(value).unwrap_or_else(|_| "Error".to_owned())
            }
            Kind::Object if self.heap.flags(value) & NULL_PROTOTYPE != 0 => "[object Object]".to_owned(),
            Kind::Object if self.heap.own(value, known::TO_STRING).is_some() => "[object Object]".to_owned(),
            _ => self.to_text_lossy(value),
        }
    }

    /// A value with its type, as V8 prints it where it has no source text for it.
    pub fn describe_typed(&mut self, value: Value) -> String {
        let what = crate::convert::type_of(value);
        match value.kind() {
            Kind::String => format!("{what} \"{}\"", self.heap.text(value)),
            Kind::Number | Kind::Boolean | Kind::Null => format!("{what} {}", self.to_text_lossy(value)),
            _ => what.to_owned(),
        }
    }

    /// A `TypeError` unless the value can be called.
    pub fn check_callable(&mut self, value: Value) -> Result<()> {
        if crate::convert::type_of(value) == "function" {
            return Ok(());
        }
        let what = self.describe(value);
        Err(self.type_error(&format!("{what} is not a function")))
    }
}

/// The source of a function in a message: of a long one the beginning and the end.
fn shortened(text: String) -> String {
    let units = |text: &str| text.encode_utf16().count();
    if units(&text) <= 128 {
        return text;
    }
    let mut start = String::new();
    let mut left = 111;
    for letter in text.chars() {
        if letter.len_utf16() > left {
            break;
        }
        left -= letter.len_utf16();
        start.push(letter);
    }
    let end: Vec<char> = text.chars().rev().take(2).collect();
    format!("{start}...<omitted>...{}", end.into_iter().rev().collect::<String>())
}

/// An error unless the argument can be called.
pub fn callable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.check_callable(arg(arguments, 0))?;
    Ok(Value::UNDEFINED)
}

/// The arguments that `apply` was given as a list.
pub fn list_of_arguments(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let list = arg(arguments, 0);
    if list.is_nullish() {
        return Ok(vm.heap.new_array(Vec::new()));
    }
    if !list.is_object() {
        return Err(vm.type_error("CreateListFromArrayLike called on non-object"));
    }
    let items = super::array::array_like(vm, list)?;
    Ok(vm.array_of(items))
}

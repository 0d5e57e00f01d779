//! Methods of functions, and how messages name a value.

use super::registry::registry;
use super::{Global, Row, arg, native, prelude};
use crate::atom::known;
use crate::charge::Buffer;
use crate::heap::object::NULL_PROTOTYPE;
use crate::heap::{Action, NativeClosure};
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use std::borrow::Cow;

/// There is no constructor `Function`.
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
    let name = vm.callable_name_string(this);
    let bound = vm.string("bound ");
    let name = vm.concat(bound, name)?;
    let first = arguments.get(1..).unwrap_or(&[]);
    // Binding a bound function refers to its target, not to a chain.
    let (target, receiver, before) = match this.is(Kind::NativeClosure).then(|| vm.heap.native_closures[this.index()]) {
        Some(NativeClosure { action: Action::Apply, data: [target, receiver, own] }) => (target, receiver, Some(own)),
        _ => (this, arg(arguments, 0), None),
    };
    let count = before.map_or(1, |own| vm.heap.length(own)) + first.len();
    vm.work(count)?;
    let mut own = Buffer::with_capacity(vm, count)?;
    own.push(vm, name)?;
    if let Some(before) = before {
        own.extend_from_slice(vm, &vm.heap.items(before)[1..])?; // charged: above
    }
    own.extend_from_slice(vm, first)?;
    let own = vm.array_of(own);
    Ok(vm.heap.new_native_closure(Action::Apply, [target, receiver, own]))
}

/// `$bind(function, receiver)`
pub fn bind_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    bind(vm, arg(arguments, 0), &[arg(arguments, 1)])
}

fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if crate::convert::type_of(this) != "function" {
        return Err(vm.type_error("Function.prototype.toString requires that 'this' be a Function"));
    }
    if let Some(source) = vm.function_source(this) {
        let length = source.len();
        vm.work(length / 16)?;
        vm.reserve(length)?;
    }
    let text = vm.function_text(this).into_owned(); // charged: above
    Ok(vm.string(&text))
}

impl Vm {
    /// The source of a function of the script.
    fn function_source(&self, function: Value) -> Option<&str> {
        let code = function.is(Kind::Function).then(|| self.heap.closures[function.index()].code)?;
        let span = (!code.is_prelude()).then(|| self.function(code).span)?;
        Some(self.realm.script.source().get(span.start as usize..span.end as usize).unwrap_or_default())
    }

    /// The text of a function: the source of one of the script, which is no longer than the script; `[native code]`
    /// for others.
    pub(super) fn function_text(&mut self, function: Value) -> Cow<'_, str> {
        // The borrow checker extends a conditionally returned borrow, hence the second call.
        if self.function_source(function).is_some() {
            return self.function_source(function).unwrap_or_default().into();
        }
        if let Kind::Function | Kind::NativeClosure = function.kind() {
            return "function () { [native code] }".into();
        }
        format!("function {}() {{ [native code] }}", self.callable_name(function)).into() // bounded: the name is cut
    }

    /// A value as V8 prints it in messages, without running functions of the script; a long text is cut.
    pub fn describe(&mut self, value: Value) -> String {
        match value.kind() {
            Kind::Function | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => {
                shortened(&self.function_text(value))
            }
            Kind::Native if registry().natives[value.index()].is_function() => self.function_text(value).into(),
            Kind::Object if self.heap.class(value).is_error() => {
                self.short_error(value).unwrap_or_else(|_| "Error".into())
            }
            Kind::Object if self.heap.flags(value) & NULL_PROTOTYPE != 0 => "[object Object]".into(),
            Kind::Object if self.heap.own(value, known::TO_STRING).is_some() => "[object Object]".into(),
            _ => self.to_text_lossy(value),
        }
    }

    /// A value with its type, as V8 prints it where it has no source text for it: a long text is cut.
    pub fn describe_typed(&mut self, value: Value) -> String {
        let what = crate::convert::type_of(value);
        match value.kind() {
            Kind::String => format!("{what} \"{}\"", self.to_text_lossy(value)), // bounded: it is cut
            Kind::Number | Kind::Boolean | Kind::Null => format!("{what} {}", self.to_text_lossy(value)), // bounded: it is cut
            _ => what.into(),
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
fn shortened(text: &str) -> String {
    if text.encode_utf16().take(129).count() <= 128 {
        return text.into();
    }
    let mut start = String::new(); // bounded: by what is left
    let mut left = 111;
    for letter in text.chars() {
        if letter.len_utf16() > left {
            break;
        }
        left -= letter.len_utf16();
        start.push(letter);
    }
    let mut back = text.char_indices().rev();
    let end = back.nth(1).map_or(text, |(at, _)| &text[at..]);
    format!("{start}...<omitted>...{end}") // bounded: two letters
}

/// An error unless the argument can be called.
pub fn callable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.check_callable(arg(arguments, 0))?;
    Ok(Value::UNDEFINED)
}

/// `$arguments(receiver, list)`: the arguments that `apply` passes on. With a list, V8 names a receiver that is no
/// function itself; without one, the call does.
pub fn list_of_arguments(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (receiver, list) = (arg(arguments, 0), arg(arguments, 1));
    if list.is_nullish() {
        return Ok(vm.array_of(Buffer::new()));
    }
    let kind = match crate::convert::type_of(receiver) {
        "function" => None,
        "object" if receiver.is_nullish() => Some("null".to_owned()), // bounded: a constant
        "object" => Some("an object".to_owned()),                     // bounded: a constant
        kind => Some(format!("a {kind}")),                            // bounded: the name of a type
    };
    if let Some(kind) = kind {
        let receiver = vm.receiver_text(receiver);
        let problem = "Function.prototype.apply was called on";
        return Err(vm.type_error(&format!("{problem} {receiver}, which is {kind} and not a function"))); // bounded: it is cut
    }
    if !list.is_object() {
        return Err(vm.type_error("CreateListFromArrayLike called on non-object"));
    }
    let items = super::array::array_like(vm, list)?;
    Ok(vm.array_of(items))
}

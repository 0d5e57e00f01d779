//! `Error` and the other error classes.

use super::{Body, Global, Row, arg, native, prelude};
use crate::eval::property::PropertyKey;
use crate::eval::property::refuse;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_ERRORS, HIDDEN_MESSAGE, NON_EXTENSIBLE};
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use agentscript_lang::Refusal;
use agentscript_lang::refused::Refused;

/// The constructors of errors.
pub const GLOBALS: &[Global] = &[
    Global {
        functions: &[prelude("captureStackTrace", 2, "Error_captureStackTrace"), native("isError", 1, is_error)],
        ..constructor("Error", Body::Native(error::<{ Class::Error as u8 }>))
    },
    constructor("EvalError", Body::Native(error::<{ Class::EvalError as u8 }>)),
    constructor("RangeError", Body::Native(error::<{ Class::RangeError as u8 }>)),
    constructor("ReferenceError", Body::Native(error::<{ Class::ReferenceError as u8 }>)),
    constructor("SyntaxError", Body::Native(error::<{ Class::SyntaxError as u8 }>)),
    constructor("TypeError", Body::Native(error::<{ Class::TypeError as u8 }>)),
    constructor("URIError", Body::Native(error::<{ Class::UriError as u8 }>)),
    Global { length: 2, ..constructor("AggregateError", Body::Prelude("AggregateError_new")) },
];

/// Methods of errors.
pub const METHODS: &[Row] = &[native("toString", 0, to_string)];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] =
    &[native("$aggregate_error", 3, aggregate_error), native("$capture", 2, capture_stack_trace)];

/// A constructor, which does the same with and without `new`.
const fn constructor(name: &'static str, body: Body) -> Global {
    Global { name, length: 1, call: body, construct: Some(body), functions: &[], numbers: &[] }
}

/// `Error(message, {cause})`
fn error<const CLASS: u8>(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let class = Class::ERRORS.iter().copied().find(|&class| class as u8 == CLASS).unwrap_or(Class::Error);
    construct_error(vm, class, arg(arguments, 0), arg(arguments, 1))
}

/// `Error.isError(value)`
fn is_error(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 0);
    Ok(Value::bool(value.is(Kind::Object) && vm.heap.class(value).is_error()))
}

/// `$capture(error, function)`, for `Error.captureStackTrace`: the stack is that of the call, without the function and what it has called.
/// Of what is no error the property would be enumerable.
fn capture_stack_trace(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (error, above) = (arg(arguments, 0), arg(arguments, 1));
    if !error.is_object() {
        return Err(vm.type_error("invalid_argument"));
    }
    if !error.is(Kind::Object) || !vm.heap.class(error).is_error() {
        return Err(refuse::refused(
            vm,
            &Refused {
                name: "Error.captureStackTrace",
                refusal: Refusal::DisallowedProperty,
                hint: "only errors have a stack: `const error = new Error(message)`, `Object.assign(new Error(message), {code})`",
            },
        ));
    }
    if vm.heap.flags(error) & NON_EXTENSIBLE != 0 {
        return Err(vm.type_error("Cannot define property stack, object is not extensible"));
    }
    vm.recapture(error, above);
    let stack = vm.stack_string(error)?;
    vm.heap.set_own(error, known::STACK, stack);
    Ok(Value::UNDEFINED)
}

/// `error.toString()`
pub fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !this.is_object() {
        let what = vm.describe(this);
        let message = brief!("Method Error.prototype.toString called on incompatible receiver {what}");
        return Err(vm.type_error(&message));
    }
    vm.error_string(this)
}

/// `$aggregate_error(errors, message, options)` with an array of errors.
fn aggregate_error(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let error = construct_error(vm, Class::AggregateError, arg(arguments, 1), arg(arguments, 2))?;
    set_errors(vm, error, arg(arguments, 0));
    Ok(error)
}

/// The common part of the constructors of errors (ECMAScript 20.5.1.1).
fn construct_error(vm: &mut Vm, class: Class, message: Value, options: Value) -> Result {
    let message = if message.is_undefined() { None } else { Some(vm.to_string(message)?) };
    let error = vm.heap.new_of_class(class);
    if let Some(message) = message {
        vm.heap.set_own(error, known::MESSAGE, message);
        vm.heap.add_flags(error, HIDDEN_MESSAGE);
    }
    if options.is_object()
        && !options.is(Kind::App)
        && let Some(cause) = vm.own_property(options, PropertyKey::Name(known::CAUSE))?
    {
        vm.heap.set_own(error, known::CAUSE, cause);
        vm.heap.add_flags(error, HIDDEN_CAUSE);
    }
    Ok(error)
}

/// Make an array the `errors` of an `AggregateError`.
pub(super) fn set_errors(vm: &mut Vm, error: Value, errors: Value) {
    vm.heap.set_own(error, known::ERRORS, errors);
    vm.heap.add_flags(error, HIDDEN_ERRORS);
}

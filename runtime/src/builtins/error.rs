//! `Error` and the other error classes.

use super::{Body, Global, Row, arg, native};
use crate::atom::known;
use crate::heap::Class;
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_ERRORS, HIDDEN_MESSAGE};
use crate::property::PropertyKey;
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;

/// The constructors of errors.
pub const GLOBALS: &[Global] = &[
    constructor("Error", Body::Native(error::<{ Class::Error as u8 }>)),
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
pub const INTRINSICS: &[Row] = &[native("$aggregate_error", 3, aggregate_error)];

/// A constructor, which does the same with and without `new`.
const fn constructor(name: &'static str, body: Body) -> Global {
    Global { name, length: 1, call: body, construct: Some(body), functions: &[], numbers: &[] }
}

/// `Error(message, {cause})`
fn error<const CLASS: u8>(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let class = Class::ERRORS.iter().copied().find(|&class| class as u8 == CLASS).unwrap_or(Class::Error);
    vm.construct_error(class, arg(arguments, 0), arg(arguments, 1))
}

/// `error.toString()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    vm.error_string(this)
}

/// `$aggregate_error(errors, message, options)` with an array of errors.
fn aggregate_error(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let error = vm.construct_error(Class::AggregateError, arg(arguments, 1), arg(arguments, 2))?;
    vm.set_errors(error, arg(arguments, 0));
    Ok(error)
}

impl Vm {
    /// The common part of the constructors of errors (ECMAScript 20.5.1.1).
    fn construct_error(&mut self, class: Class, message: Value, options: Value) -> Result {
        let message = if message.is_undefined() { None } else { Some(self.to_string(message)?) };
        let error = self.heap.new_of_class(class);
        if let Some(message) = message {
            self.heap.set_own(error, known::MESSAGE, message);
            self.heap.add_flags(error, HIDDEN_MESSAGE);
        }
        if options.is_object()
            && !options.is(Kind::App)
            && let Some(cause) = self.own_property(options, PropertyKey::Name(known::CAUSE))?
        {
            self.heap.set_own(error, known::CAUSE, cause);
            self.heap.add_flags(error, HIDDEN_CAUSE);
        }
        Ok(error)
    }

    /// Make an array the `errors` of an `AggregateError`.
    pub(super) fn set_errors(&mut self, error: Value, errors: Value) {
        self.heap.set_own(error, known::ERRORS, errors);
        self.heap.add_flags(error, HIDDEN_ERRORS);
    }
}

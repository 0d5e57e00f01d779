//! `DOMException`: the errors of what Node has from the web, such as `atob` and signals.

use super::{Body, Global, Row, arg, error, getter, native};
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_MESSAGE};
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "DOMException",
    length: 0,
    call: Body::Native(call),
    construct: Some(Body::Native(construct)),
    functions: &[],
    numbers: CODES,
}];

/// Methods and properties of exceptions; `name` and `message` are kept in the object.
pub const METHODS: &[Row] = &[getter("code", code), native("toString", 0, error::to_string)];

/// The static numbers.
const CODES: &[(&str, f64)] = &[
    ("INDEX_SIZE_ERR", 1.0),
    ("DOMSTRING_SIZE_ERR", 2.0),
    ("HIERARCHY_REQUEST_ERR", 3.0),
    ("WRONG_DOCUMENT_ERR", 4.0),
    ("INVALID_CHARACTER_ERR", 5.0),
    ("NO_DATA_ALLOWED_ERR", 6.0),
    ("NO_MODIFICATION_ALLOWED_ERR", 7.0),
    ("NOT_FOUND_ERR", 8.0),
    ("NOT_SUPPORTED_ERR", 9.0),
    ("INUSE_ATTRIBUTE_ERR", 10.0),
    ("INVALID_STATE_ERR", 11.0),
    ("SYNTAX_ERR", 12.0),
    ("INVALID_MODIFICATION_ERR", 13.0),
    ("NAMESPACE_ERR", 14.0),
    ("INVALID_ACCESS_ERR", 15.0),
    ("VALIDATION_ERR", 16.0),
    ("TYPE_MISMATCH_ERR", 17.0),
    ("SECURITY_ERR", 18.0),
    ("NETWORK_ERR", 19.0),
    ("ABORT_ERR", 20.0),
    ("URL_MISMATCH_ERR", 21.0),
    ("QUOTA_EXCEEDED_ERR", 22.0),
    ("TIMEOUT_ERR", 23.0),
    ("INVALID_NODE_TYPE_ERR", 24.0),
    ("DATA_CLONE_ERR", 25.0),
];

/// The names of exceptions that have a code.
const NAMES: &[(&[u8], f64)] = &[
    (b"IndexSizeError", 1.0),
    (b"HierarchyRequestError", 3.0),
    (b"WrongDocumentError", 4.0),
    (b"InvalidCharacterError", 5.0),
    (b"NoModificationAllowedError", 7.0),
    (b"NotFoundError", 8.0),
    (b"NotSupportedError", 9.0),
    (b"InUseAttributeError", 10.0),
    (b"InvalidStateError", 11.0),
    (b"SyntaxError", 12.0),
    (b"InvalidModificationError", 13.0),
    (b"NamespaceError", 14.0),
    (b"InvalidAccessError", 15.0),
    (b"TypeMismatchError", 17.0),
    (b"SecurityError", 18.0),
    (b"NetworkError", 19.0),
    (b"AbortError", 20.0),
    (b"URLMismatchError", 21.0),
    (b"QuotaExceededError", 22.0),
    (b"TimeoutError", 23.0),
    (b"InvalidNodeTypeError", 24.0),
    (b"DataCloneError", 25.0),
];

fn call(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor DOMException cannot be invoked without 'new'"))
}

/// `new DOMException(message, name)`, `new DOMException(message, {name, cause})`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (message, options) = (arg(arguments, 0), arg(arguments, 1));
    let is_options = options.is_object() && vm.type_of(options) == "object";
    let name = match options {
        Value::UNDEFINED => vm.heap.string("Error"),
        _ if is_options => vm.get(options, known::NAME)?,
        name => name,
    };
    let message = if message.is_undefined() { vm.heap.string("") } else { vm.to_string(message)? };
    let name = vm.to_string(name)?;
    let exception = new(vm, name, message);
    if is_options && vm.has_property(options, PropertyKey::Name(known::CAUSE))? {
        let cause = vm.get(options, known::CAUSE)?;
        vm.heap.set_own(exception, known::CAUSE, cause);
        vm.heap.add_flags(exception, HIDDEN_CAUSE);
    }
    Ok(exception)
}

/// `exception.code`
fn code(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !this.is(Kind::Object) || vm.heap.class(this) != Class::DomException {
        return Err(vm.type_error("Value of \"this\" must be of DOMException"));
    }
    let name = vm.get(this, known::NAME)?;
    let name = vm.heap.charged_bytes(name)?;
    let code = NAMES.iter().find(|(known, _)| *known == name).map_or(0.0, |&(_, code)| code);
    Ok(Value::number(code))
}

fn new(vm: &mut Vm, name: Value, message: Value) -> Value {
    let exception = vm.heap.new_of_class(Class::DomException);
    vm.heap.set_own(exception, known::NAME, name);
    vm.heap.set_own(exception, known::MESSAGE, message);
    vm.heap.add_flags(exception, HIDDEN_MESSAGE);
    exception
}

/// A new `DOMException`.
pub fn new_exception(vm: &mut Vm, name: &str, message: &str) -> Value {
    let (name, message) = (vm.heap.string(name), vm.heap.string(message));
    new(vm, name, message)
}

/// Throw one.
#[cold]
pub fn exception(vm: &mut Vm, name: &str, message: &str) -> Thrown {
    Thrown::value(new_exception(vm, name, message))
}

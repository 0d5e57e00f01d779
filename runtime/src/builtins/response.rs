//! The response of `fetch` (<https://fetch.spec.whatwg.org/#response-class>), with the messages of Node. Its body is here as
//! a whole.

use super::url::coded;
use super::{Row, arg, getter, headers, native, prelude};
use crate::builtins::tool;
use crate::eval::vm::Vm;
use crate::heap::InternalSlots;
use crate::interface::error_code::ErrorCode;
use crate::value::family::Family;
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};

/// Properties and methods, in the order in which `for…in` gives them.
pub const METHODS: &[Row] = &[
    getter("type", kind),
    getter("url", url),
    getter("redirected", redirected),
    getter("status", status),
    getter("ok", ok),
    getter("statusText", status_text),
    getter("headers", response_headers),
    getter("body", body),
    getter("bodyUsed", body_used),
    native("clone", 0, clone),
    prelude("arrayBuffer", 0, "Response_arrayBuffer"),
    prelude("text", 0, "Response_text"),
    prelude("json", 0, "Response_json"),
    prelude("bytes", 0, "Response_bytes"),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[native("$takeBody", 1, take_body)];

/// The internal slots of a response.
#[derive(Clone, Debug)]
pub struct ResponseState {
    /// The status code.
    status: u16,
    /// Its reason phrase, a string.
    status_text: Value,
    /// The address that has answered, a string.
    url: Value,
    /// Whether that is another one than was asked.
    redirected: bool,
    /// Its `Headers`.
    headers: Value,
    /// Its body: a string where it is UTF-8, else a `Uint8Array`; `null` where there is none.
    body: Value,
    /// Whether it was read.
    is_used: bool,
}

impl InternalSlots for ResponseState {
    fn family(&self) -> Family {
        Family::Response
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        [self.status_text, self.url, self.headers, self.body].into_iter().for_each(reach);
    }
}

impl ResponseState {
    fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The response of an answer of the host; `None` if it is none.
pub fn of_answer(vm: &mut Vm, answer: Value) -> Result<Option<Value>> {
    let status = tool::option(vm, answer, "status")?;
    if !status.is_number() || !(100.0..1000.0).contains(&status.as_number()) {
        return Ok(None);
    }
    let mut text = |name| {
        let text = tool::option(vm, answer, name)?;
        Ok(if text.is_string() { text } else { vm.heap.string("") })
    };
    let (status_text, url) = (text("statusText")?, text("url")?);
    let redirected = tool::option(vm, answer, "redirected")? == Value::TRUE;
    let body = tool::option(vm, answer, "body")?;
    let encoded = tool::option(vm, answer, "bodyBase64")?;
    let body = if body.is_string() {
        body
    } else if encoded.is_string() {
        match super::bytes::text::from_base64(vm, Value::UNDEFINED, &[encoded]) {
            Ok(bytes) => bytes,
            Err(thrown) => match *thrown.0 {
                Cause::Value(_) => return Ok(None),
                Cause::Stop(failure) => return Err(Thrown::stop(*failure)),
            },
        }
    } else {
        Value::NULL
    };
    let pairs = tool::option(vm, answer, "headers")?;
    let headers = headers::of_pairs(vm, pairs)?;
    let status = status.as_number() as u16;
    let state = ResponseState { status, status_text, url, redirected, headers, body, is_used: false };
    Ok(Some(make(vm, state)))
}

/// An object as `util.inspect` shows a response, with `null` for its body, and whether the body was read if there is one.
pub fn inspected(vm: &mut Vm, response: Value) -> Result<(Value, Option<bool>)> {
    let state = receiver(vm, response)?.clone();
    let object = vm.heap.new_object();
    let basic = vm.heap.string("basic");
    for (name, value) in [
        ("status", Value::number(f64::from(state.status))),
        ("statusText", state.status_text),
        ("headers", state.headers),
        ("body", Value::NULL),
        ("bodyUsed", Value::bool(state.is_used)),
        ("ok", Value::bool(state.is_ok())),
        ("redirected", Value::bool(state.redirected)),
        ("type", basic),
        ("url", state.url),
    ] {
        let name = vm.heap.intern_text(name);
        vm.heap.set_own(object, name, value);
    }
    Ok((object, (state.body != Value::NULL).then_some(state.is_used)))
}

fn make(vm: &mut Vm, state: ResponseState) -> Value {
    vm.heap.new_with_slots(state)
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value) -> Result<&mut ResponseState> {
    if !vm.heap.has_slots::<ResponseState>(this) {
        return Err(coded(vm, "ERR_INVALID_THIS", "Illegal invocation"));
    }
    match vm.heap.slots_mut::<ResponseState>(this) {
        Some(state) => Ok(state),
        _ => Err(Thrown::limit(ErrorCode::ExecutionError, "Internal error: the state of a Response is missing")),
    }
}

/// `response.type`: requests of scripts have no origin that others could be foreign to.
fn kind(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this)?;
    Ok(vm.heap.string("basic"))
}

/// `response.url`
fn url(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| state.url)
}

/// `response.redirected`
fn redirected(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| Value::bool(state.redirected))
}

/// `response.status`
fn status(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| Value::number(f64::from(state.status)))
}

/// `response.ok`
fn ok(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| Value::bool(state.is_ok()))
}

/// `response.statusText`
fn status_text(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| state.status_text)
}

/// `response.headers`
fn response_headers(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| state.headers)
}

/// `response.body`: there are no streams, so only `null` can be given.
fn body(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if receiver(vm, this)?.body == Value::NULL {
        return Ok(Value::NULL);
    }
    let message = "There are no streams in AgentScript; read the body with text(), json(), bytes() or arrayBuffer()";
    Err(vm.type_error(message))
}

/// `response.bodyUsed`
fn body_used(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this).map(|state| Value::bool(state.is_used))
}

/// `response.clone()`
fn clone(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let mut state = receiver(vm, this)?.clone();
    if state.is_used {
        return Err(vm.type_error("Response.clone: Body has already been consumed."));
    }
    if state.body.is(Kind::Uint8Array) {
        // The reader of a body gets it to change it.
        let length = vm.heap.view_length(state.body);
        let copy = vm.heap.charged_view_copy(state.body, 0..length)?;
        state.body = vm.heap.bytes_of(copy);
    }
    let pairs = headers::to_pairs(vm, state.headers)?;
    state.headers = headers::of_pairs(vm, pairs)?;
    Ok(make(vm, state))
}

/// `$takeBody(self)`: the body, which is read once: a string or a `Uint8Array`.
fn take_body(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let state = receiver(vm, arg(arguments, 0))?;
    if state.is_used {
        return Err(vm.type_error("Body is unusable: Body has already been read"));
    }
    if state.body == Value::NULL {
        return Ok(vm.heap.string(""));
    }
    state.is_used = true;
    Ok(state.body)
}

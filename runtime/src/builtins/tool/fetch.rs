//! `fetch`, where the policy of the run gives it: a call that the host answers, with a `Response` as its result.
//!
//! Nothing here sends a request, and which hosts may be reached is for the host to decide.

use crate::builtins::abort::{self, Listener};
use crate::builtins::bytes;
use crate::builtins::tool::{self, settle};
use crate::builtins::url::params::ParamsState;
use crate::builtins::url::parse::parse;
use crate::builtins::url::record::Url;
use crate::builtins::{Global, Row, arg, headers, native, prelude, url};
use crate::eval::calls::Style;
use crate::eval::json;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::frame::FunctionRef;
use crate::heap::trace::Failed;
use crate::interface::error_code::ErrorCode;
use crate::interface::host::{FETCH, ToolError};
use crate::interface::outcome::{MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_TOOL_INPUT_BYTES, cut_json, cut_text};
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// The function, which scripts have where their policy says so.
pub const GLOBALS: &[Global] = &[Global::function(prelude(FETCH, 1, "Fetch_fetch"))];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[native("$fetchHeaders", 1, init_headers), native("$fetch", 3, fetch)];

/// The longest address in bytes.
const MAX_URL_BYTES: usize = 32 << 10;
/// How much of an address or a method is printed in messages.
const SHOWN: usize = 200;

/// `$fetchHeaders(init)`: the option `headers`, once `init` is checked.
fn init_headers(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let init = arg(arguments, 0);
    if !init.is_nullish() && !init.is_object() {
        let shown = vm.short_text(init, SHOWN)?;
        let message = brief!("Request constructor: Expected {shown} to be one of: Null, Undefined, Object.");
        return Err(vm.type_error(&message));
    }
    tool::option(vm, init, "headers")
}

/// `$fetch(input, init, headers)`: notes the call, and gives the promise of the response.
fn fetch(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (input, init, headers) = (arg(arguments, 0), arg(arguments, 1), arg(arguments, 2));
    let signal = tool::option(vm, init, "signal")?;
    if !signal.is_nullish() && abort::signal_state(vm, signal).is_none() {
        return Err(vm.type_error("Failed to construct 'Request': member signal is not of type AbortSignal."));
    }
    let url = address(vm, input)?;
    let method = method(vm, init)?;
    let redirect = redirect(vm, init)?;
    refuse_options(vm, init)?;
    let body = body(vm, init, headers)?;
    if body.is_some() && matches!(&*method, "GET" | "HEAD") {
        return Err(vm.type_error("Request with GET/HEAD method cannot have body."));
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unknown_scheme(vm, url.scheme()));
    }
    let (method, redirect, pairs) =
        (vm.heap.string(&method), vm.heap.string(redirect), headers::to_pairs(vm, headers)?);
    let url = vm.heap.string(&url.href());
    let request = vm.heap.new_object();
    let parts =
        [Some(("url", url)), Some(("method", method)), Some(("headers", pairs)), body, Some(("redirect", redirect))];
    for (name, value) in parts.into_iter().flatten() {
        let name = vm.heap.intern_text(name);
        vm.heap.set_own(request, name, value);
    }
    let name = vm.heap.string(FETCH);
    if let Some(state) = abort::signal_state(vm, signal)
        && state.aborted
    {
        return Err(Thrown::value(state.reason));
    }
    let input = json::to_json(vm, request)?.unwrap_or_default();
    vm.work(input.len() / 16)?;
    // The input is kept for the host and for messages.
    vm.reserve(input.len().saturating_mul(2))?;
    let timeout_ms = vm.heap.meter.limits.tool_timeout_ms;
    let promise = tool::add_call(vm, (name, FETCH.into()), input, timeout_ms, Style::Fetch)?;
    if let Some(id) = vm.host.calls.last() {
        abort::listen(vm, signal, Listener::Call(id));
    }
    Ok(promise)
}

/// The address of a request: of a text, or a `URL`.
fn address(vm: &mut Vm, input: Value) -> Result<Url> {
    let text = vm.to_string(input)?;
    let bytes = vm.heap.str(text).bytes as usize;
    if bytes > MAX_URL_BYTES {
        let message = brief!("The address of fetch has {bytes} bytes, and may have {MAX_URL_BYTES}");
        return Err(vm.type_error(&message));
    }
    vm.work(bytes / 4)?;
    let parsed = parse(&vm.heap.charged_text(text)?, None);
    match parsed {
        Some(url) if url.username().is_empty() && url.password().is_empty() => Ok(url),
        Some(_) => {
            let shown = vm.short_text(text, SHOWN)?;
            let message = brief!("Request cannot be constructed from a URL that includes credentials: {shown}");
            Err(vm.type_error(&message))
        }
        None => {
            let shown = vm.short_text(text, SHOWN)?;
            let message = brief!("Failed to parse URL from {shown}");
            let error = vm.new_error(Class::TypeError, &message);
            let cause = url::invalid_url(vm, text)?;
            vm.heap.set_own(error, known::CAUSE, cause);
            Err(Thrown::value(error))
        }
    }
}

/// The method, in capitals where it is one of those that the standard writes so.
fn method(vm: &mut Vm, init: Value) -> Result<String> {
    let method = tool::option(vm, init, "method")?;
    if method.is_undefined() {
        return Ok("GET".into());
    }
    let text = vm.to_string(method)?;
    let bytes = vm.heap.str(text).bytes as usize;
    let shown = vm.short_text(text, SHOWN)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if bytes == 0 || bytes > SHOWN || !shown.bytes().all(is_token) {
        return Err(vm.type_error(&brief!("'{shown}' is not a valid HTTP method.")));
    }
    let capitals = shown.to_ascii_uppercase();
    match &*capitals {
        "CONNECT" | "TRACE" | "TRACK" => Err(vm.type_error(&brief!("'{shown}' HTTP method is unsupported."))),
        "DELETE" | "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" => Ok(capitals),
        _ => Ok(shown),
    }
}

fn redirect(vm: &mut Vm, init: Value) -> Result<&'static str> {
    let mode = tool::option(vm, init, "redirect")?;
    if mode.is_undefined() {
        return Ok("follow");
    }
    let mode = vm.to_string(mode)?;
    let shown = vm.short_text(mode, SHOWN)?;
    match ["follow", "manual", "error"].into_iter().find(|known| *known == shown) {
        Some(mode) => Ok(mode),
        None => {
            let message =
                brief!("Request constructor: {shown} is not an accepted type. Expected one of follow, manual, error.");
            Err(vm.type_error(&message))
        }
    }
}

/// Refuses options whose effect is not there. Those that only concern browsers have none in Node either.
fn refuse_options(vm: &mut Vm, init: Value) -> Result<()> {
    for name in ["integrity", "dispatcher", "window"] {
        let value = tool::option(vm, init, name)?;
        if vm.truthy(value) {
            let message = brief!("The option {name} of fetch is not available in AgentScript");
            return Err(vm.type_error(&message));
        }
    }
    Ok(())
}

/// The body, under the name of its form, with the header of its type unless there is one.
fn body(vm: &mut Vm, init: Value, headers: Value) -> Result<Option<(&'static str, Value)>> {
    let body = tool::option(vm, init, "body")?;
    if body.is_nullish() {
        return Ok(None);
    }
    let is_stream = body.is_object() && {
        let method = vm.get(body, known::SYMBOL_ASYNC_ITERATOR)?;
        !method.is_nullish()
    };
    if is_stream {
        return Err(vm.type_error("There are no streams in AgentScript; give fetch the body as a whole"));
    }
    if bytes::is_bytes(body) {
        let bytes = vm.heap.charged_view(body)?;
        if std::str::from_utf8(bytes).is_ok() {
            let length = bytes.len();
            let copy = vm.heap.charged_view_copy(body, 0..length)?;
            return Ok(Some(("body", vm.heap.string_of(copy))));
        }
        let length = bytes.len();
        let copy = vm.heap.charged_view_copy(body, 0..length)?;
        let view = vm.heap.bytes_of(copy);
        let encoded = bytes::text::to_base64(vm, view, &[])?;
        return Ok(Some(("bodyBase64", encoded)));
    }
    let is_params = vm.heap.has_slots::<ParamsState>(body);
    let media_type = match is_params {
        true => "application/x-www-form-urlencoded;charset=UTF-8",
        false => "text/plain;charset=UTF-8",
    };
    let text = if body.is(Kind::String) { body } else { vm.to_string(body)? };
    if !headers::contains(vm, headers, "content-type") {
        headers::append_own(vm, headers, "content-type", media_type)?;
    }
    // Lone surrogates are replaced, as in every text that leaves a run.
    let copy = vm.heap.charged_string(text)?;
    Ok(Some(("body", vm.heap.take_string(copy.into_bytes()))))
}

/// The exception of an address whose scheme is not one of HTTP.
fn unknown_scheme(vm: &mut Vm, scheme: &str) -> Thrown {
    let shown = cut_text(scheme, SHOWN);
    let message = brief!("unknown scheme: fetch reaches addresses of http and https only, not of {shown}");
    Thrown::value(fetch_error(vm, &ToolError::new(ErrorCode::FetchNotAllowed, message)))
}

/// `TypeError: fetch failed`, whose cause is the failure.
fn fetch_error(vm: &mut Vm, failure: &ToolError) -> Value {
    let error = vm.new_error(Class::TypeError, "fetch failed");
    let cause = vm.new_error(Class::Error, &failure.message);
    settle::describe_failure(vm, cause, failure, None);
    vm.heap.set_own(error, known::CAUSE, cause);
    error
}

/// The code of the cause of an uncaught error, and the message with that of the cause.
pub(crate) fn with_cause(vm: &mut Vm, error: Value, message: String) -> (String, String) {
    let Ok(cause) = vm.get(error, known::CAUSE) else { return (String::default(), message) };
    let mut text = |name, most| {
        let text = vm.get(cause, name).ok()?;
        if text.is_string() { vm.short_text(text, most).ok() } else { None }
    };
    let is_error = cause.is(Kind::Object);
    let code = if is_error { text(known::CODE, MAX_NAME_BYTES).unwrap_or_default() } else { String::default() };
    match if is_error { text(known::MESSAGE, MAX_MESSAGE_BYTES / 2) } else { None } {
        Some(why) => (code, brief!("{message}: {why}")),
        None => (code, message),
    }
}

/// Reject the promise of a request that has failed.
pub(super) fn reject_fetch(
    vm: &mut Vm,
    failure: &ToolError,
    input: &str,
    promise: Value,
    place: Option<(FunctionRef, u32)>,
) {
    let error = fetch_error(vm, failure);
    let failed = Failed { tool: FETCH.into(), input: cut_json(input, MAX_TOOL_INPUT_BYTES).into() };
    let trace = vm.heap.traces.entry(error.payload()).or_default();
    trace.call = Some(Box::new(failed));
    trace.frames.extend(place);
    vm.reject_promise(promise, error);
}

//! `URL` (the URL standard of WHATWG), by the `url` crate. Its query as pairs is in [`params`].

pub mod params;

use super::{Body, Global, NativeFn, Row, arg, getter, native};
use crate::atom::known;
use crate::charge::Hold;
use crate::error_code::ErrorCode;
use crate::heap::object::CODED;
use crate::heap::{Class, InternalSlots};
use crate::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use crate::vm::Vm;
use crate::wtf8::lossy;
use url::{Url, quirks};

/// The constructor and functions.
pub const GLOBALS: &[Global] = &[Global {
    name: "URL",
    length: 1,
    call: Body::Native(call_url),
    construct: Some(Body::Native(new_url)),
    functions: &[native("canParse", 1, can_parse), native("parse", 1, parse)],
    numbers: &[],
}];

/// Properties and methods of URLs, in the order in which `for…in` gives them.
pub const METHODS: &[Row] = &[
    native("toString", 0, to_string),
    both("href", get_href, set_href),
    getter("origin", get_origin),
    both("protocol", get_protocol, set_protocol),
    both("username", get_username, set_username),
    both("password", get_password, set_password),
    both("host", get_host, set_host),
    both("hostname", get_hostname, set_hostname),
    both("port", get_port, set_port),
    both("pathname", get_pathname, set_pathname),
    both("search", get_search, set_search),
    getter("searchParams", get_search_params),
    both("hash", get_hash, set_hash),
    native("toJSON", 0, to_string),
];

const fn both(name: &'static str, get: NativeFn, set: NativeFn) -> Row {
    Row { name, length: 0, body: Body::Accessor { get, set: Some(set) }, direct: None }
}

/// The internal slots of a `URL`.
#[derive(Clone, Debug)]
pub struct UrlState {
    /// What it is.
    pub url: Url,
    /// Its `searchParams`, `undefined` until it is read.
    pub params: Value,
}

fn call_url(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor URL cannot be invoked without 'new'"))
}

/// `new URL(url, base)`
fn new_url(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (input, base, url) = parsed(vm, arguments)?;
    match url {
        Some(url) => Ok(make(vm, url)),
        None => {
            let error = vm.new_error(Class::TypeError, "Invalid URL");
            describe_invalid(vm, error, &input);
            if let Some(base) = base {
                let (key, base) = (vm.intern_text("base"), vm.string(&base));
                vm.heap.set_own(error, key, base);
            }
            Err(Thrown::value(error))
        }
    }
}

/// `URL.canParse(url, base)`
fn can_parse(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (.., url) = parsed(vm, arguments)?;
    Ok(Value::bool(url.is_some()))
}

/// `URL.parse(url, base)`
fn parse(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (.., url) = parsed(vm, arguments)?;
    Ok(url.map_or(Value::NULL, |url| make(vm, url)))
}

/// Most bytes of a text that is parsed, as in Chrome; longer URLs are invalid, as the parser charges nothing.
const MAX_URL_BYTES: usize = 2 << 20;

/// An argument as text, counted until it is dropped; only the beginning of one that is too long to be a URL, and
/// whether it is.
fn text(vm: &mut Vm, value: Value) -> Result<(String, Hold, bool)> {
    let string = vm.to_string(value)?;
    let bytes = vm.heap.str(string).bytes as usize;
    let length = bytes.min(MAX_URL_BYTES);
    vm.work(4 + length / 8)?;
    // Every byte may become three in a URL, in a string that grows to twice of that.
    let hold = vm.hold(length.saturating_mul(7))?;
    let text = lossy(&vm.heap.bytes(string)[..length]).into_owned(); // charged: above
    Ok((text, hold, bytes > MAX_URL_BYTES))
}

/// Both arguments as text, and the URL they make.
fn parsed(vm: &mut Vm, arguments: &[Value]) -> Result<(String, Option<String>, Option<Url>)> {
    if arguments.is_empty() {
        return Err(coded(vm, "ERR_MISSING_ARGS", "The \"url\" argument must be specified"));
    }
    let (input, _input, too_long) = text(vm, arguments[0])?;
    let (base, _base, base_too_long) = match arg(arguments, 1) {
        Value::UNDEFINED => (None, Hold::NONE, false),
        base => {
            let (base, hold, too_long) = text(vm, base)?;
            (Some(base), hold, too_long)
        }
    };
    let url = match &base {
        _ if too_long || base_too_long => None,
        None => Url::parse(&input).ok(),
        Some(base) => Url::parse(base).and_then(|base| base.join(&input)).ok(), // charged: above
    };
    Ok((input, base, url))
}

fn make(vm: &mut Vm, url: Url) -> Value {
    vm.heap.new_with_slots(InternalSlots::Url(Box::new(UrlState { url, params: Value::UNDEFINED })))
}

/// The error about a string that is no URL.
pub fn invalid_url(vm: &mut Vm, text: Value) -> Result {
    let error = vm.new_error(Class::TypeError, "Invalid URL");
    let text = vm.short_text(text, MAX_URL_BYTES)?;
    describe_invalid(vm, error, &text);
    vm.heap.add_flags(error, CODED);
    Ok(error)
}

/// The properties of an error about a text that is no URL.
fn describe_invalid(vm: &mut Vm, error: Value, input: &str) {
    let code = vm.string("ERR_INVALID_URL");
    vm.heap.set_own(error, known::CODE, code);
    let (key, input) = (vm.intern_text("input"), vm.string(input));
    vm.heap.set_own(error, key, input);
}

/// A `TypeError` with one of Node's codes.
#[cold]
pub fn coded(vm: &mut Vm, code: &str, message: &str) -> Thrown {
    let error = vm.new_error(Class::TypeError, message);
    let code = vm.string(code);
    vm.heap.set_own(error, known::CODE, code);
    vm.heap.add_flags(error, CODED);
    Thrown::value(error)
}

/// The internal slots of a receiver.
fn state(vm: &mut Vm, this: Value) -> Result<&mut UrlState> {
    if !matches!(vm.heap.internal_slots_of(this), Some(InternalSlots::Url(_))) {
        return Err(vm.type_error("Receiver must be an instance of class URL"));
    }
    match vm.heap.internal_slots_of_mut(this) {
        Some(InternalSlots::Url(state)) => Ok(state),
        _ => Err(Thrown::limit(ErrorCode::ExecutionError, "Internal error: the state of a URL is missing")),
    }
}

/// A part of a URL as a string.
fn part(vm: &mut Vm, this: Value, get: impl FnOnce(&Url) -> String) -> Result {
    let length = state(vm, this)?.url.as_str().len();
    vm.work(1 + length / 16)?;
    let _hold = vm.hold(length)?;
    let text = get(&state(vm, this)?.url);
    vm.reserve(text.len())?;
    Ok(vm.string(&text))
}

/// Change a part of a URL; invalid values are ignored.
fn change(vm: &mut Vm, this: Value, arguments: &[Value], set: impl FnOnce(&mut Url, &str)) -> Result {
    let (text, _hold, too_long) = text(vm, arg(arguments, 0))?;
    let before = state(vm, this)?.url.as_str().len();
    vm.work(4 + before / 8)?;
    let _copy = vm.hold(before.saturating_mul(2))?;
    // A value that makes the URL too long is ignored.
    if !too_long && before + text.len() <= MAX_URL_BYTES {
        set(&mut state(vm, this)?.url, &text);
    }
    params::refresh(vm, this)?;
    let after = state(vm, this)?.url.as_str().len();
    vm.heap.meter.add_bytes(after.saturating_sub(before));
    Ok(Value::UNDEFINED)
}

/// `url.toString()`, `url.toJSON()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::href(url).into())
}

fn get_href(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::href(url).into())
}

fn set_href(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (text, _hold, _) = text(vm, arg(arguments, 0))?;
    let mut valid = false;
    change(vm, this, arguments, |url, text| valid = quirks::set_href(url, text).is_ok())?;
    if valid {
        return Ok(Value::UNDEFINED);
    }
    let error = vm.new_error(Class::TypeError, "Invalid URL");
    describe_invalid(vm, error, &text);
    vm.heap.add_flags(error, CODED);
    Err(Thrown::value(error))
}

fn get_origin(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, quirks::origin)
}

fn get_protocol(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::protocol(url).into())
}

fn set_protocol(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, assign_protocol)
}

fn get_username(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::username(url).into())
}

fn set_username(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, |url, text| quirks::set_username(url, text).unwrap_or_default())
}

fn get_password(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::password(url).into())
}

fn set_password(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, |url, text| quirks::set_password(url, text).unwrap_or_default())
}

fn get_host(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::host(url).into())
}

fn set_host(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, |url, text| assign_host(url, text, true))
}

fn get_hostname(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::hostname(url).into())
}

fn set_hostname(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, |url, text| assign_host(url, text, false))
}

fn get_port(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::port(url).into())
}

fn set_port(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, |url, text| quirks::set_port(url, text).unwrap_or_default())
}

fn get_pathname(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::pathname(url).into())
}

fn set_pathname(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, quirks::set_pathname)
}

fn get_search(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::search(url).into())
}

fn set_search(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, quirks::set_search)
}

/// `url.searchParams`: always the same object.
fn get_search_params(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    params::for_url(vm, this)
}

fn get_hash(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| quirks::hash(url).into())
}

fn set_hash(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change(vm, this, arguments, quirks::set_hash)
}

/// The special schemes of the standard.
const SPECIAL: &[&str] = &["ftp", "http", "https", "ws", "wss"];

/// Set the scheme. The crate never changes to or from `file`, the standard does where nothing is lost.
fn assign_protocol(url: &mut Url, text: &str) {
    let scheme = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_bare = url.port().is_none() && url.username().is_empty() && url.password().is_none();
    let to_file = scheme == "file" && SPECIAL.contains(&url.scheme()) && is_bare;
    let from_file = url.scheme() == "file" && SPECIAL.contains(&scheme.as_str()) && url.has_host();
    if (to_file || from_file)
        // bounded: by the length of a URL
        && let Ok(changed) = Url::parse(&format!("{scheme}{}", &url.as_str()[url.scheme().len()..]))
    {
        *url = changed;
    } else if !to_file && !from_file {
        quirks::set_protocol(url, text).unwrap_or_default();
    }
}

/// Set the host, with the port or without, as Node does where it is empty.
fn assign_host(url: &mut Url, text: &str, with_port: bool) {
    let is_special = url.scheme() == "file" || SPECIAL.contains(&url.scheme());
    let is_end = |c: char| matches!(c, '/' | '?' | '#') || is_special && c == '\\';
    let authority = text.split(is_end).next().unwrap_or_default();
    if authority.is_empty() && url.scheme() == "file" {
        url.set_host(None).unwrap_or_default();
    } else if authority.is_empty() && !url.has_host() {
        // There is none, and none is added.
    } else if with_port {
        quirks::set_host(url, text).unwrap_or_default();
    } else {
        quirks::set_hostname(url, text).unwrap_or_default();
    }
}

impl Vm {
    /// The names of the properties that `for…in` gives of an object beside its own.
    pub fn inherited_names(&self, object: Value) -> &'static [Row] {
        match self.heap.internal_slots_of(object) {
            Some(InternalSlots::Url(_)) => METHODS,
            Some(InternalSlots::Params(_)) => params::METHODS,
            Some(InternalSlots::TextEncoder) => super::encoding::ENCODER_METHODS,
            Some(InternalSlots::TextDecoder(_)) => super::encoding::DECODER_METHODS,
            _ => &[],
        }
    }

    /// Whether `console.log('%s', value)` shows the text of a value: of a URL, a query, or bytes.
    pub fn has_shown_text(&self, value: Value) -> bool {
        value.is(Kind::Uint8Array)
            || matches!(self.heap.internal_slots_of(value), Some(InternalSlots::Url(_) | InternalSlots::Params(_)))
    }

    /// The parts of a URL as `util.inspect` shows them; `None` for other values.
    pub fn url_parts(&self, value: Value) -> Option<Vec<(&'static str, String)>> {
        let Some(InternalSlots::Url(state)) =
            value.is(Kind::InternalSlots).then(|| self.heap.internal_slots_of(value)).flatten()
        else {
            return None;
        };
        let url = &state.url;
        // bounded: twelve parts
        Some(vec![
            ("href", quirks::href(url).into()),
            ("origin", quirks::origin(url)),
            ("protocol", quirks::protocol(url).into()),
            ("username", quirks::username(url).into()),
            ("password", quirks::password(url).into()),
            ("host", quirks::host(url).into()),
            ("hostname", quirks::hostname(url).into()),
            ("port", quirks::port(url).into()),
            ("pathname", quirks::pathname(url).into()),
            ("search", quirks::search(url).into()),
            ("searchParams", String::default()),
            ("hash", quirks::hash(url).into()),
        ])
    }
}

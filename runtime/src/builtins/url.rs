//! `URL` (the URL standard of WHATWG): the class. Parsing is in [`parse`], the setters are in `set`, the query as pairs is in [`params`].

mod domain;
mod escape;
mod host;
pub mod params;
pub mod parse;
mod path;
pub mod record;
mod set;

use super::{Body, Global, NativeFn, Row, arg, getter, native};
use crate::builtins::url::params::ParamsState;
use crate::eval::vm::Vm;
use crate::heap::object::CODED;
use crate::heap::{Class, InternalSlots, block};
use crate::interface::error_code::ErrorCode;
use crate::meter::buffer::Hold;
use crate::text::wtf8::lossy;
use crate::value::atom::known;
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use record::Url;

/// The constructor and functions.
pub const GLOBALS: &[Global] = &[Global {
    name: "URL",
    length: 1,
    call: Body::Native(call_url),
    construct: Some(Body::Native(new_url)),
    functions: &[native("canParse", 1, can_parse), native("parse", 1, parse_url)],
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
    /// Whether `searchParams` has pairs that are in the query here, but that Node writes to it later: without a query,
    /// Node waits until one is read, or until the URL changes.
    pub has_new_pairs: bool,
}

impl InternalSlots for UrlState {
    fn family(&self) -> Family {
        Family::Url
    }

    fn cost(&self) -> usize {
        let Url { scheme, username, password, host, path, query, fragment, .. } = &self.url;
        let parts = [scheme, username, password, path].into_iter().chain([host, query, fragment].into_iter().flatten());
        parts.map(|part| block(part.capacity())).sum()
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.params);
    }
}

impl UrlState {
    /// The URL as Node has it, without what it writes later.
    fn read(&self) -> Url {
        let mut url = self.url.clone();
        if self.has_new_pairs {
            url.query = None;
        }
        url
    }
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
            let input = vm.heap.string(&input);
            describe_invalid(vm, error, input);
            if let Some(base) = base {
                let (key, base) = (vm.heap.intern_text("base"), vm.heap.string(&base));
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
fn parse_url(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
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
    let charge = vm.work(4 + length / 8)?;
    // Beside the text, and the text without tabs: every byte may become three in a URL, in a string that grows to twice of that.
    let hold = vm.heap.hold(length.saturating_mul(8))?;
    let text = String::from(lossy(&vm.heap.read_bytes(string, charge)[..length]));
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
        None => parse::parse(&input, None),
        Some(base) => parse::parse(base, None).and_then(|base| parse::parse(&input, Some(&base))),
    };
    Ok((input, base, url))
}

fn make(vm: &mut Vm, url: Url) -> Value {
    vm.heap.new_with_slots(UrlState { url, params: Value::UNDEFINED, has_new_pairs: false })
}

/// The error about a string that is no URL.
pub fn invalid_url(vm: &mut Vm, text: Value) -> Result {
    let error = vm.new_error(Class::TypeError, "Invalid URL");
    let text = vm.short_text(text, MAX_URL_BYTES)?;
    let text = vm.heap.string(&text);
    describe_invalid(vm, error, text);
    vm.heap.add_flags(error, CODED);
    Ok(error)
}

/// The properties of an error about a text that is no URL.
fn describe_invalid(vm: &mut Vm, error: Value, input: Value) {
    let code = vm.heap.string("ERR_INVALID_URL");
    vm.heap.set_own(error, known::CODE, code);
    let key = vm.heap.intern_text("input");
    vm.heap.set_own(error, key, input);
}

/// A `TypeError` with one of Node's codes.
#[cold]
pub fn coded(vm: &mut Vm, code: &str, message: &str) -> Thrown {
    let error = error_with_code(vm, code, message);
    vm.heap.add_flags(error, CODED);
    Thrown::value(error)
}

/// A `TypeError` with a code of Node's native functions, which is not part of its text.
#[cold]
pub fn natively_coded(vm: &mut Vm, code: &str, message: &str) -> Thrown {
    Thrown::value(error_with_code(vm, code, message))
}

fn error_with_code(vm: &mut Vm, code: &str, message: &str) -> Value {
    let error = vm.new_error(Class::TypeError, message);
    let code = vm.heap.string(code);
    vm.heap.set_own(error, known::CODE, code);
    error
}

/// The internal slots of a receiver.
fn state(vm: &mut Vm, this: Value) -> Result<&mut UrlState> {
    if !vm.heap.has_slots::<UrlState>(this) {
        return Err(vm.type_error("Receiver must be an instance of class URL"));
    }
    match vm.heap.slots_mut::<UrlState>(this) {
        Some(state) => Ok(state),
        _ => Err(Thrown::limit(ErrorCode::ExecutionError, "Internal error: the state of a URL is missing")),
    }
}

/// A part of a URL as a string.
fn part(vm: &mut Vm, this: Value, get: impl FnOnce(&Url) -> String) -> Result {
    let length = state(vm, this)?.url.length();
    vm.work(1 + length / 16)?;
    let _hold = vm.heap.hold(length)?;
    let text = get(&state(vm, this)?.url);
    vm.reserve(text.len())?;
    Ok(vm.heap.string(&text))
}

/// Change a part of a URL; the URL as it was before, where Node takes the value.
fn change(vm: &mut Vm, this: Value, value: Value, set: impl FnOnce(&mut Url, &str) -> bool) -> Result<Option<Url>> {
    let before = state(vm, this)?.url.length();
    vm.work(4 + before / 8)?;
    // The URL as it was, as text, and parsed again.
    let _copy = vm.heap.hold(before.saturating_mul(5))?;
    // Node reads the URL before it converts the value: changes by the conversion are lost where Node takes the value.
    let read = if value.is_object() { Some(state(vm, this)?.read()) } else { None };
    let (text, _hold, too_long) = text(vm, value)?;
    let current = &mut state(vm, this)?.url;
    let before = current.length();
    // A value that makes the URL too long is ignored.
    if too_long || before + text.len() > MAX_URL_BYTES {
        return Ok(None);
    }
    let mut url = read.as_ref().unwrap_or(current).parsed_again();
    if !set(&mut url, &text) {
        return Ok(None);
    }
    let after = url.length();
    let old = std::mem::replace(current, url);
    vm.heap.meter.add_bytes(after.saturating_sub(before));
    Ok(Some(old))
}

/// Change a part beside the query.
fn change_part(vm: &mut Vm, this: Value, arguments: &[Value], set: impl FnOnce(&mut Url, &str) -> bool) -> Result {
    let value = arg(arguments, 0);
    if change(vm, this, value, set)?.is_some() {
        write_pairs(vm, this, value)?;
    }
    Ok(Value::UNDEFINED)
}

/// Change the query, or all of the URL; whether Node takes the value. Another query becomes that of `searchParams`, too.
fn change_query(vm: &mut Vm, this: Value, value: Value, set: impl FnOnce(&mut Url, &str) -> bool) -> Result<bool> {
    let Some(old) = change(vm, this, value, set)? else { return Ok(false) };
    let state = state(vm, this)?;
    if state.url.query().unwrap_or_default() == old.query().unwrap_or_default() {
        write_pairs(vm, this, value)?;
    } else {
        state.has_new_pairs = false;
        params::refresh(vm, this)?;
    }
    Ok(true)
}

/// Write new pairs of `searchParams` to the query, as Node does after each change of the URL.
fn write_pairs(vm: &mut Vm, this: Value, value: Value) -> Result<()> {
    let state = state(vm, this)?;
    let has_new_pairs = std::mem::take(&mut state.has_new_pairs);
    let params = state.params;
    // Without a conversion, the query has them already.
    if has_new_pairs && value.is_object() {
        params::write_query(vm, params)?;
    }
    Ok(())
}

/// Note that Node writes new pairs of `searchParams` to the query when the query is read.
fn read_query(vm: &mut Vm, this: Value) -> Result<()> {
    state(vm, this)?.has_new_pairs = false;
    Ok(())
}

/// `url.toString()`, `url.toJSON()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    read_query(vm, this)?;
    part(vm, this, Url::href)
}

fn get_href(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    read_query(vm, this)?;
    part(vm, this, Url::href)
}

fn set_href(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let text = vm.to_string(arg(arguments, 0))?;
    if change_query(vm, this, text, Url::set_href)? {
        return Ok(Value::UNDEFINED);
    }
    let error = vm.new_error(Class::TypeError, "Invalid URL");
    describe_invalid(vm, error, text);
    vm.heap.add_flags(error, CODED);
    Err(Thrown::value(error))
}

fn get_origin(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, Url::origin)
}

fn get_protocol(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, Url::protocol)
}

fn set_protocol(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_protocol)
}

fn get_username(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| url.username().into())
}

fn set_username(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_username)
}

fn get_password(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| url.password().into())
}

fn set_password(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_password)
}

fn get_host(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, Url::host)
}

fn set_host(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_host)
}

fn get_hostname(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| url.hostname().into())
}

fn set_hostname(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_hostname)
}

fn get_port(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, Url::port)
}

fn set_port(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_port)
}

fn get_pathname(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, |url| url.pathname().into())
}

fn set_pathname(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_pathname)
}

fn get_search(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    read_query(vm, this)?;
    part(vm, this, Url::search)
}

fn set_search(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_query(vm, this, arg(arguments, 0), Url::set_search)?;
    Ok(Value::UNDEFINED)
}

/// `url.searchParams`: always the same object.
fn get_search_params(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    params::for_url(vm, this)
}

fn get_hash(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    part(vm, this, Url::hash)
}

fn set_hash(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    change_part(vm, this, arguments, Url::set_hash)
}

/// The names of the properties that `for…in` gives of an object beside its own.
pub fn inherited_names(vm: &Vm, object: Value) -> &'static [Row] {
    match vm.heap.internal_slots_of(object).map(|slots| slots.family()) {
        Some(Family::Url) => METHODS,
        Some(Family::Params) => params::METHODS,
        Some(Family::TextEncoder) => super::encoding::ENCODER_METHODS,
        Some(Family::TextDecoder) => super::encoding::DECODER_METHODS,
        _ => &[],
    }
}

/// Whether `console.log('%s', value)` shows the text of a value: of a URL, a query, or bytes.
pub fn has_shown_text(vm: &Vm, value: Value) -> bool {
    value.is(Kind::Uint8Array) || vm.heap.has_slots::<UrlState>(value) || vm.heap.has_slots::<ParamsState>(value)
}

/// The parts of a URL as `util.inspect` shows them; `None` for other values.
pub fn url_parts(vm: &Vm, value: Value) -> Option<Vec<(&'static str, String)>> {
    let url = &vm.heap.slots::<UrlState>(value)?.url;
    Some(vec![
        ("href", url.href()),
        ("origin", url.origin()),
        ("protocol", url.protocol()),
        ("username", url.username().into()),
        ("password", url.password().into()),
        ("host", url.host()),
        ("hostname", url.hostname().into()),
        ("port", url.port()),
        ("pathname", url.pathname().into()),
        ("search", url.search()),
        ("searchParams", String::default()),
        ("hash", url.hash()),
    ])
}

//! `Headers` (<https://fetch.spec.whatwg.org/#headers-class>), with the messages of Node.

use super::url::coded;
use super::url::params::text_of;
use super::{Body, Global, Row, arg, native, object, prelude};
use crate::builtins::inspect;
use crate::builtins::url::params;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::{InternalSlots, Yields, block};
use crate::interface::error_code::ErrorCode;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "Headers",
    length: 0,
    call: Body::Native(call_headers),
    construct: Some(Body::Iterating(new_headers, "Headers_new")),
    functions: &[],
    numbers: &[],
}];

/// Methods, in the order in which `for…in` gives them.
pub const METHODS: &[Row] = &[
    native("append", 2, append),
    native("delete", 1, delete),
    native("get", 1, get),
    native("has", 1, has),
    native("set", 2, set),
    native("getSetCookie", 0, get_set_cookie),
    native("keys", 0, keys),
    native("values", 0, values),
    native("entries", 0, entries),
    prelude("forEach", 1, "Headers_forEach"),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[native("$headersEach", 2, check_for_each)];

/// The header whose values stay apart.
const SET_COOKIE: &str = "set-cookie";
/// The cost of a header in a list, which doubles.
const ENTRY: usize = 2 * size_of::<Header>();
/// Work of finding and inserting a header, beside its text.
const WORK: usize = 4;

/// A header.
#[derive(Clone, Debug)]
struct Header {
    /// Its name in lower case.
    lower: String,
    /// Its name as it was first written.
    name: String,
    /// Its value, or its values with commas between them.
    value: String,
    /// Counts up with each new name.
    order: u32,
}

impl Header {
    /// Bytes of its texts.
    fn cost(&self) -> usize {
        block(self.lower.capacity()) + block(self.name.capacity()) + block(self.value.capacity())
    }
}

/// The internal slots of a `Headers`.
#[derive(Clone, Debug, Default)]
pub struct HeadersState {
    /// Sorted by name; those of one name are in the order in which they were added.
    list: Vec<Header>,
    /// The order of the next new name.
    next: u32,
    /// Whether they are those of a response.
    is_immutable: bool,
}

impl InternalSlots for HeadersState {
    fn family(&self) -> Family {
        Family::Headers
    }

    fn cost(&self) -> usize {
        let texts: usize = self.list.iter().map(Header::cost).sum();
        block(self.list.capacity() * size_of::<Header>()) + texts
    }

    fn iterator_family(&self) -> Family {
        Family::HeadersIterator
    }
}

impl HeadersState {
    /// The name and value at a position, as iteration gives them.
    pub fn pair(&self, position: usize) -> Option<(String, String)> {
        self.list.get(position).map(|header| (header.lower.clone(), header.value.clone()))
    }

    /// How long these are.
    pub fn pair_bytes(&self, position: usize) -> usize {
        self.list.get(position).map_or(0, |header| header.lower.len() + header.value.len())
    }

    /// Where the headers of a name are.
    fn range(&self, lower: &str) -> std::ops::Range<usize> {
        let start = self.list.partition_point(|header| header.lower.as_str() < lower);
        let count = self.list[start..].iter().take_while(|header| header.lower == lower).count();
        start..start + count
    }

    /// Add a value: to the one that there is, but for cookies.
    fn append(&mut self, name: String, value: String) {
        let lower = name.to_ascii_lowercase();
        let range = self.range(&lower);
        let (is_new, end) = (range.is_empty(), range.end);
        if !is_new && lower != SET_COOKIE {
            let header = &mut self.list[range.start];
            header.value.push_str(", ");
            header.value.push_str(&value);
            return;
        }
        // Cookies of one name are shown under the name of the first.
        let order = if is_new { self.next } else { self.list[range.start].order };
        self.next += u32::from(is_new);
        self.list.insert(end, Header { lower, name, value, order });
    }
}

/// Whether a value is a `Headers`.
pub fn is_headers(vm: &Vm, value: Value) -> bool {
    vm.heap.has_slots::<HeadersState>(value)
}

/// The headers of a response, from an array of pairs of texts; wrong ones are left out.
pub fn of_pairs(vm: &mut Vm, pairs: Value) -> Result {
    let mut state = HeadersState::default();
    let mut hold = Hold::NONE;
    if pairs.is(Kind::Array) {
        for pair in vm.heap.charged_items_copy(pairs)? {
            if !pair.is(Kind::Array) {
                continue;
            }
            let [name, value] = *vm.heap.charged_items(pair)? else { continue };
            let ((name, name_hold), (value, value_hold)) = (text_of(vm, name)?, text_of(vm, value)?);
            drop((name_hold, value_hold));
            if is_name(&name) {
                let name = name.to_ascii_lowercase();
                add(vm, &mut state, &mut hold, name, value)?;
            }
        }
    }
    state.is_immutable = true;
    Ok(make(vm, state))
}

/// The pairs of a `Headers` as an array of arrays.
pub fn to_pairs(vm: &mut Vm, headers: Value) -> Result {
    let mut pairs = Buffer::new();
    for position in 0.. {
        let bytes = params::pair_bytes(vm, headers, position);
        vm.work(1 + bytes / 16)?;
        vm.reserve(4 * bytes)?;
        let Some((name, value)) = params::pair_at(vm, headers, position) else { break };
        let pair = vm.heap.new_array(vec![name, value]);
        pairs.push(vm, pair)?;
    }
    Ok(vm.heap.array_of(pairs))
}

/// Whether there is a header of that name, which is in lower case.
pub fn contains(vm: &Vm, headers: Value, lower: &str) -> bool {
    match vm.heap.slots::<HeadersState>(headers) {
        Some(state) => !state.range(lower).is_empty(),
        _ => false,
    }
}

/// Add a header of ours.
pub fn append_own(vm: &mut Vm, headers: Value, name: &str, value: &str) -> Result<()> {
    let (name, value) = (String::from(name), String::from(value));
    vm.heap.meter.add_bytes(ENTRY + 3 * block(name.len() + value.len()));
    receiver(vm, headers)?.append(name, value);
    Ok(())
}

/// An object as `util.inspect` shows the headers: the names as they were first written, in the order of their first
/// values.
pub fn inspected(vm: &mut Vm, headers: Value) -> Result {
    let state = receiver(vm, headers)?;
    let (count, bytes) = (state.list.len(), state.cost());
    vm.work(WORK * count + bytes / 16)?;
    vm.reserve(2 * bytes)?;
    let _hold = vm.heap.hold(bytes)?;
    let mut list = receiver(vm, headers)?.list.clone();
    list.sort_by_key(|header| header.order);
    let object = vm.heap.new_object();
    let mut at = 0;
    while let Some(first) = list.get(at) {
        let same = list[at..].iter().take_while(|header| header.order == first.order);
        let mut value = Buffer::new();
        for (index, header) in same.enumerate() {
            if index > 0 {
                value.extend_from_slice(vm, b", ")?;
            }
            value.extend_from_slice(vm, header.value.as_bytes())?;
            at += 1;
        }
        let value = vm.heap.string_of(value);
        let name = vm.heap.intern_text(&first.name);
        vm.heap.set_own(object, name, value);
    }
    Ok(object)
}

fn make(vm: &mut Vm, state: HeadersState) -> Value {
    vm.heap.new_with_slots(state)
}

/// Add a header to a state under construction, counted until it is an object.
fn add(vm: &mut Vm, state: &mut HeadersState, hold: &mut Hold, name: String, value: String) -> Result<()> {
    vm.work(WORK + state.list.len() / 16)?;
    hold.grow(vm, ENTRY + 2 * block(name.len()) + block(value.len() + 2))?;
    state.append(name, value);
    Ok(())
}

fn call_headers(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor _Headers cannot be invoked without 'new'"))
}

/// `new Headers(init)`: from another one, pairs, or an object.
fn new_headers(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let init = arg(arguments, 0);
    let (mut state, mut hold) = (HeadersState::default(), Hold::NONE);
    match init.kind() {
        Kind::Undefined => {}
        _ if !init.is_object() => {
            return Err(vm.type_error(
                "Headers constructor: Argument 1 could not be converted to one of: sequence<sequence<ByteString>>, record<ByteString, ByteString>.",
            ));
        }
        _ if vm.is_iterable(init) => {
            for (index, pair) in vm.iterate_to_list(init)?.into_iter().enumerate() {
                if !pair.is_object() || !vm.is_iterable(pair) {
                    let shown = inspect::inspect(vm, pair, inspect::Options::default())?;
                    let shown = if pair.is_string() { brief!("\"{}\"", vm.short_text(pair, 100)?) } else { shown };
                    let shown = crate::interface::outcome::cut_text(&shown, 200);
                    let message = brief!("Headers contructor: init[{index}] ({shown}) is not iterable.");
                    return Err(vm.type_error(&message));
                }
                let parts = vm.iterate_to_list(pair)?;
                let [name, value] = *parts else {
                    let message =
                        brief!("Headers constructor: expected name/value pair to be length 2, found {}.", parts.len());
                    return Err(vm.type_error(&message));
                };
                let (name, value) = (byte_string(vm, name)?, byte_string(vm, value)?);
                let (name, value) = checked(vm, "append", name, value)?;
                add(vm, &mut state, &mut hold, name, value)?;
            }
        }
        _ => {
            for (key, value) in object::pairs(vm, init)? {
                let name = match key {
                    PropertyKey::Index(index) => vm.heap.string(&index.to_string()),
                    PropertyKey::Name(name) => vm.heap.atom_string(name),
                };
                let (name, value) = (byte_string(vm, name)?, byte_string(vm, value)?);
                let (name, value) = checked(vm, "append", name, value)?;
                add(vm, &mut state, &mut hold, name, value)?;
            }
        }
    }
    Ok(make(vm, state))
}

/// How many bytes of a text are looked at at once.
const PIECE: usize = 64 << 10;

/// A value as a `ByteString`: text of characters up to U+00FF.
fn byte_string(vm: &mut Vm, value: Value) -> Result<String> {
    let (text, _hold) = text_of(vm, value)?;
    let (mut rest, mut index) = (text.as_str(), 0);
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(PIECE);
        let (piece, after) = rest.split_at(end);
        vm.work(piece.len() / 16)?;
        if piece.is_ascii() {
            index += piece.len();
        } else {
            // The letters before are of one unit each.
            for letter in piece.chars() {
                if u32::from(letter) > 255 {
                    let unit = letter.encode_utf16(&mut [0; 2])[0];
                    let message = brief!(
                        "Cannot convert argument to a ByteString because the character at index {index} has a value of {unit} which is greater than 255."
                    );
                    return Err(vm.type_error(&message));
                }
                index += 1;
            }
        }
        rest = after;
    }
    Ok(text)
}

/// A name and a value without white space around it, if they are those of a header.
fn checked(vm: &mut Vm, method: &str, name: String, value: String) -> Result<(String, String)> {
    let name = checked_name(vm, method, name)?;
    let trimmed = value.trim_matches(['\t', '\n', '\r', ' ']);
    if memchr::memchr3(b'\0', b'\r', b'\n', trimmed.as_bytes()).is_some() {
        let shown = crate::interface::outcome::cut_text(trimmed, 200);
        let message = brief!("Headers.{method}: \"{shown}\" is an invalid header value.");
        return Err(vm.type_error(&message));
    }
    let value = if trimmed.len() == value.len() { value } else { String::from(trimmed) };
    Ok((name, value))
}

fn checked_name(vm: &mut Vm, method: &str, name: String) -> Result<String> {
    let mut is_name = !name.is_empty();
    for piece in name.as_bytes().chunks(PIECE) {
        vm.work(piece.len() / 16)?;
        is_name &= are_tokens(piece);
    }
    if is_name {
        return Ok(name);
    }
    let shown = crate::interface::outcome::cut_text(&name, 200);
    let message = brief!("Headers.{method}: \"{shown}\" is an invalid header name.");
    Err(vm.type_error(&message))
}

/// Whether a text is the name of a header: a token of HTTP (RFC 9110 5.6.2).
fn is_name(name: &str) -> bool {
    !name.is_empty() && are_tokens(name.as_bytes())
}

fn are_tokens(bytes: &[u8]) -> bool {
    /// By byte, because names may be very long.
    const TOKENS: [bool; 256] = {
        let (mut tokens, mut byte) = ([false; 256], 0);
        while byte < 128 {
            tokens[byte] = matches!(byte as u8,
                b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'^'..=b'z' | b'|' | b'~');
            byte += 1;
        }
        tokens
    };
    bytes.iter().all(|&byte| TOKENS[usize::from(byte)])
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value) -> Result<&mut HeadersState> {
    if !is_headers(vm, this) {
        return Err(coded(vm, "ERR_INVALID_THIS", "Illegal invocation"));
    }
    match vm.heap.slots_mut::<HeadersState>(this) {
        Some(state) => Ok(state),
        _ => Err(Thrown::limit(ErrorCode::ExecutionError, "Internal error: the state of a Headers is missing")),
    }
}

/// The arguments of a method as text, of which all are needed.
fn texts<const COUNT: usize>(vm: &mut Vm, this: Value, method: &str, arguments: &[Value]) -> Result<[String; COUNT]> {
    let count = receiver(vm, this)?.list.len();
    if arguments.len() < COUNT {
        let only = if arguments.is_empty() { "" } else { "only " };
        let (plural, found) = (if COUNT == 1 { "" } else { "s" }, arguments.len());
        let message = brief!("Headers.{method}: {COUNT} argument{plural} required, but {only}{found} found.");
        return Err(vm.type_error(&message));
    }
    vm.work(WORK + count / 16)?;
    let mut texts = std::array::from_fn(|_| String::default());
    for (text, &argument) in texts.iter_mut().zip(arguments) {
        *text = byte_string(vm, argument)?;
    }
    Ok(texts)
}

fn mutable(vm: &mut Vm, this: Value) -> Result<&mut HeadersState> {
    if receiver(vm, this)?.is_immutable {
        return Err(vm.type_error("immutable"));
    }
    receiver(vm, this)
}

/// `headers.append(name, value)`
fn append(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name, value] = texts(vm, this, "append", arguments)?;
    let (name, value) = checked(vm, "append", name, value)?;
    let bytes = ENTRY + 2 * block(name.len()) + block(value.len() + 2);
    mutable(vm, this)?;
    vm.reserve(bytes)?;
    vm.heap.meter.add_bytes(bytes);
    mutable(vm, this)?.append(name, value);
    Ok(Value::UNDEFINED)
}

/// `headers.delete(name)`
fn delete(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, "delete", arguments)?;
    let name = checked_name(vm, "delete", name)?.to_ascii_lowercase();
    let state = mutable(vm, this)?;
    let range = state.range(&name);
    drop(state.list.drain(range));
    Ok(Value::UNDEFINED)
}

/// `headers.get(name)`
fn get(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, "get", arguments)?;
    let name = checked_name(vm, "get", name)?.to_ascii_lowercase();
    let mut text = Buffer::new();
    let range = receiver(vm, this)?.range(&name);
    if range.is_empty() {
        return Ok(Value::NULL);
    }
    let first = range.start;
    for position in range {
        if position > first {
            text.extend_from_slice(vm, b", ")?;
        }
        let bytes = params::pair_bytes(vm, this, position);
        vm.work(1 + bytes / 16)?;
        let _hold = vm.heap.hold(bytes)?;
        let value = receiver(vm, this)?.list[position].value.clone();
        text.extend_from_slice(vm, value.as_bytes())?;
    }
    Ok(vm.heap.string_of(text))
}

/// `headers.has(name)`
fn has(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, "has", arguments)?;
    let name = checked_name(vm, "has", name)?.to_ascii_lowercase();
    Ok(Value::bool(!receiver(vm, this)?.range(&name).is_empty()))
}

/// `headers.set(name, value)`
fn set(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name, value] = texts(vm, this, "set", arguments)?;
    let (name, value) = checked(vm, "set", name, value)?;
    let bytes = ENTRY + 2 * block(name.len()) + block(value.len());
    mutable(vm, this)?;
    vm.reserve(bytes)?;
    vm.heap.meter.add_bytes(bytes);
    let state = mutable(vm, this)?;
    let range = state.range(&name.to_ascii_lowercase());
    match range.is_empty() {
        true => state.append(name, value),
        false => {
            state.list[range.start].value = value;
            drop(state.list.drain(range.start + 1..range.end));
        }
    }
    Ok(Value::UNDEFINED)
}

/// `headers.getSetCookie()`
fn get_set_cookie(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let mut items = Buffer::new();
    for position in receiver(vm, this)?.range(SET_COOKIE) {
        let bytes = params::pair_bytes(vm, this, position);
        vm.work(1 + bytes / 16)?;
        vm.reserve(2 * bytes)?;
        let value = receiver(vm, this)?.list[position].value.clone();
        let value = vm.heap.string(&value);
        items.push(vm, value)?;
    }
    Ok(vm.heap.array_of(items))
}

fn keys(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Keys)
}

fn values(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Values)
}

fn entries(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Entries)
}

fn iterator(vm: &mut Vm, this: Value, yields: Yields) -> Result {
    receiver(vm, this)?;
    Ok(vm.heap.new_iterator(this, yields))
}

/// `$headersEach(self, arguments)`: the function, once receiver and arguments of `forEach` are checked.
fn check_for_each(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    receiver(vm, arg(arguments, 0))?;
    let function = match vm.heap.charged_items(arg(arguments, 1))? {
        [] => return Err(vm.type_error("Headers.forEach: 1 argument required, but 0 found.")),
        [function, ..] => *function,
    };
    if vm.type_of(function) == "function" {
        return Ok(function);
    }
    let message = "Failed to execute 'forEach' on 'Headers': parameter 1 is not of type 'Function'.";
    Err(vm.type_error(message))
}

//! `URLSearchParams`: the query of a URL as pairs of names and values.
//!
//! The `searchParams` of a URL and the URL change each other. A change here writes the query of the URL, a change of
//! the URL reads the pairs again.

mod decode;

use self::decode::decoded;
use super::{coded, state};
use crate::builtins::headers::HeadersState;
use crate::builtins::inspect;
use crate::builtins::{Body, Global, Row, arg, getter, native, object, prelude};
use crate::eval::callable;
use crate::eval::json;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::{InternalSlots, Yields, block};
use crate::interface::error_code::ErrorCode;
use crate::meter::buffer::{Buffer, Hold};
use crate::text::wtf8::to_utf16;
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// The application/x-www-form-urlencoded percent-encode set, without the space.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

/// Bytes of a name or a value that are decoded or encoded between two charges.
const PIECE: usize = 64 << 10;

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "URLSearchParams",
    length: 0,
    call: Body::Native(call_params),
    construct: Some(Body::Iterating(new_params, "Params_new")),
    functions: &[],
    numbers: &[],
}];

/// Properties and methods, in the order in which `for…in` gives them.
pub const METHODS: &[Row] = &[
    getter("size", size),
    native("append", 2, append),
    native("delete", 1, delete),
    native("get", 1, get),
    native("getAll", 1, get_all),
    native("has", 1, has),
    native("set", 2, set),
    native("sort", 0, sort),
    native("entries", 0, entries),
    prelude("forEach", 1, "URLSearchParams_forEach"),
    native("keys", 0, keys),
    native("values", 0, values),
    native("toString", 0, to_string),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[native("$searchParams", 2, check_for_each), native("$queryPair", 1, query_pair)];

/// A name and a value.
type Pair = (String, String);

/// The internal slots of a `URLSearchParams`.
#[derive(Clone, Debug, Default)]
pub struct ParamsState {
    /// Its pairs, in order.
    pub pairs: Vec<Pair>,
    /// The URL whose `searchParams` it is.
    pub url: Option<Value>,
}

impl InternalSlots for ParamsState {
    fn family(&self) -> Family {
        Family::Params
    }

    fn cost(&self) -> usize {
        list_cost(&self.pairs) + self.pairs.iter().map(cost).sum::<usize>()
    }

    fn iterator_family(&self) -> Family {
        Family::ParamsIterator
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        self.url.into_iter().for_each(reach);
    }
}

/// The cost of the texts of a pair.
fn cost((name, value): &Pair) -> usize {
    block(name.capacity()) + block(value.capacity())
}

/// The cost of a list of pairs without their texts.
fn list_cost(pairs: &Vec<Pair>) -> usize {
    block(pairs.capacity() * size_of::<Pair>())
}

/// Pairs under construction, counted while they grow.
#[derive(Default)]
struct Pairs {
    pairs: Buffer<Pair>,
    texts: Hold,
}

impl Pairs {
    fn push(&mut self, vm: &mut Vm, pair: Pair) -> Result<()> {
        self.texts.grow(vm, cost(&pair))?;
        self.pairs.push(vm, pair)
    }

    /// The pairs; the caller counts them from here on.
    fn into_vec(self) -> Vec<Pair> {
        self.pairs.into_vec()
    }
}

/// A value as text of its own, charged for and counted until it is dropped.
pub(in crate::builtins) fn text_of(vm: &mut Vm, value: Value) -> Result<(String, Hold)> {
    let string = vm.to_string(value)?;
    let bytes = vm.heap.str(string).bytes as usize;
    let charge = vm.work(1 + bytes / 16)?;
    let hold = vm.heap.hold(bytes)?;
    Ok((vm.heap.read_text(string, charge).into(), hold))
}

fn call_params(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor URLSearchParams cannot be invoked without 'new'"))
}

/// `new URLSearchParams(init)`: from text, another one, pairs, or an object.
fn new_params(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let init = arg(arguments, 0);
    let pairs = match init.kind() {
        Kind::Undefined | Kind::Null => Pairs::default(),
        _ if !init.is_object() => {
            let (text, _hold) = text_of(vm, init)?;
            parse(vm, text.strip_prefix('?').unwrap_or(&text))?
        }
        _ if vm.heap.has_slots::<ParamsState>(init) => copied(vm, init)?,
        _ if vm.is_iterable(init) => pairs_of_list(vm, init)?,
        _ => pairs_of_record(vm, init)?,
    };
    Ok(vm.heap.new_with_slots(ParamsState { pairs: pairs.into_vec(), url: None }))
}

/// The pairs of another one.
fn copied(vm: &mut Vm, other: Value) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let mut index = 0;
    while let Some(pair) = receiver(vm, other)?.pairs.get(index) {
        let length = pair.0.len() + pair.1.len();
        vm.work(1 + length / 16)?;
        vm.reserve(length)?;
        let Some(pair) = receiver(vm, other)?.pairs.get(index).cloned() else { break };
        pairs.push(vm, pair)?;
        index += 1;
    }
    Ok(pairs)
}

/// The pairs of a query: one after the other, each charged for and counted before it is made.
/// <https://url.spec.whatwg.org/#concept-urlencoded-parser>
fn parse(vm: &mut Vm, query: &str) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    vm.work(1)?;
    for part in query.split('&') {
        vm.work(1)?;
        if part.is_empty() {
            continue;
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let pair = (decoded(vm, name)?, decoded(vm, value)?);
        pairs.push(vm, pair)?;
    }
    Ok(pairs)
}

/// The pairs of a list. Node converts each of them before it reads the next one.
fn pairs_of_list(vm: &mut Vm, list: Value) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let list = vm.iterate(list)?;
    while let Some(item) = vm.iterator_next(list)? {
        vm.work(1)?;
        let pair = pair_of(vm, item)?;
        pairs.push(vm, pair)?;
    }
    Ok(pairs)
}

/// A pair: of an array with two items, or of another iterable, all items of which are converted before they are counted.
fn pair_of(vm: &mut Vm, item: Value) -> Result<Pair> {
    let mut texts = <[(String, Hold); 2]>::default();
    let mut count = 0;
    if item.is(Kind::Array) {
        count = vm.heap.length(item);
        if count == 2 {
            for (index, text) in texts.iter_mut().enumerate() {
                let part = vm.get_index(item, Value::number(index as f64))?;
                *text = text_of(vm, part)?;
            }
        }
    } else if item.is_object() && vm.is_iterable(item) {
        let parts = vm.iterate(item)?;
        while let Some(part) = vm.iterator_next(parts)? {
            vm.work(1)?;
            let text = text_of(vm, part)?;
            if let Some(index) = texts.get_mut(count) {
                *index = text;
            }
            count += 1;
        }
    }
    if count != 2 {
        return Err(coded(vm, "ERR_INVALID_TUPLE", "Each query pair must be an iterable [name, value] tuple"));
    }
    Ok(texts.map(|(text, _)| text).into())
}

/// `$queryPair(pair)`: an array of both texts.
fn query_pair(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (name, value) = pair_of(vm, arg(arguments, 0))?;
    vm.reserve(2 * (name.len() + value.len()))?;
    let pair = vec![vm.heap.string(&name), vm.heap.string(&value)];
    Ok(vm.heap.new_array(pair))
}

/// The own properties of an object; names that are the same without lone surrogates are one.
fn pairs_of_record(vm: &mut Vm, record: Value) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let mut indices = hashbrown::HashMap::new();
    let mut names = Hold::NONE;
    for (key, value) in object::pairs(vm, record)? {
        let bytes = match key {
            PropertyKey::Index(_) => 10,
            PropertyKey::Name(name) => vm.heap.atoms.text(name).len(),
        };
        let charge = vm.work(1 + bytes / 16)?;
        // The name twice, and the index.
        names.grow(vm, 2 * bytes + 64)?;
        let name = match key {
            PropertyKey::Index(index) => index.to_string(),
            PropertyKey::Name(name) => {
                charge.text(format_args!("{}", crate::text::wtf8::lossy(vm.heap.atoms.text(name))))
            }
        };
        let (value, hold) = text_of(vm, value)?;
        drop(hold);
        let index = *indices.entry(name.clone()).or_insert(pairs.pairs.len());
        match pairs.pairs.get_mut(index) {
            Some(pair) => {
                pairs.texts.grow(vm, block(value.len()))?;
                pair.1 = value;
            }
            None => pairs.push(vm, (name, value))?,
        }
    }
    Ok(pairs)
}

/// The `searchParams` of a URL.
pub fn for_url(vm: &mut Vm, url: Value) -> Result {
    let state = state(vm, url)?;
    if !state.params.is_undefined() {
        return Ok(state.params);
    }
    let query = String::from(state.url.query().unwrap_or_default());
    let pairs = parse(vm, &query)?.into_vec();
    let params = vm.heap.new_with_slots(ParamsState { pairs, url: Some(url) });
    super::state(vm, url)?.params = params;
    Ok(params)
}

/// Read the pairs of a URL that has changed again.
pub fn refresh(vm: &mut Vm, url: Value) -> Result<()> {
    let state = state(vm, url)?;
    let params = state.params;
    if params.is_undefined() {
        return Ok(());
    }
    let query = String::from(state.url.query().unwrap_or_default());
    let pairs = parse(vm, &query)?.into_vec();
    vm.heap.meter.add_bytes(list_cost(&pairs) + pairs.iter().map(cost).sum::<usize>());
    receiver(vm, params)?.pairs = pairs;
    Ok(())
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value) -> Result<&mut ParamsState> {
    if !vm.heap.has_slots::<ParamsState>(this) {
        let message = "Value of \"this\" must be of type URLSearchParams";
        return Err(coded(vm, "ERR_INVALID_THIS", message));
    }
    match vm.heap.slots_mut::<ParamsState>(this) {
        Some(state) => Ok(state),
        _ => Err(Thrown::limit(ErrorCode::ExecutionError, "Internal error: the state of a URLSearchParams is missing")),
    }
}

/// Charge for reading every pair, and give name and value as text.
fn texts<const COUNT: usize>(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<[String; COUNT]> {
    let count = receiver(vm, this)?.pairs.len();
    if arguments.len() < COUNT {
        let what = if COUNT == 1 { "\"name\" argument" } else { "\"name\" and \"value\" arguments" };
        return Err(coded(vm, "ERR_MISSING_ARGS", &brief!("The {what} must be specified")));
    }
    let mut texts = std::array::from_fn(|_| String::default());
    let mut holds = Hold::NONE;
    for (text, &argument) in texts.iter_mut().zip(arguments) {
        let (made, hold) = text_of(vm, argument)?;
        drop(hold);
        holds.grow(vm, made.len())?;
        *text = made;
    }
    vm.work(1 + count)?;
    Ok(texts)
}

/// The optional value argument of `delete` and `has`.
fn optional(vm: &mut Vm, arguments: &[Value]) -> Result<Option<String>> {
    match arg(arguments, 1) {
        Value::UNDEFINED => Ok(None),
        value => text_of(vm, value).map(|(text, _)| Some(text)),
    }
}

/// Note that pairs have changed, and write them to the URL that they belong to.
fn changed(vm: &mut Vm, this: Value) -> Result {
    if let Some(url) = receiver(vm, this)?.url {
        let state = state(vm, url)?;
        state.has_new_pairs |= state.url.query().is_none();
    }
    write_query(vm, this)
}

/// Write the pairs to the URL that they belong to.
pub fn write_query(vm: &mut Vm, this: Value) -> Result {
    let Some(url) = receiver(vm, this)?.url else { return Ok(Value::UNDEFINED) };
    let (query, _hold) = serialized(vm, this)?;
    let before = state(vm, url)?.url.length();
    if query.len() > super::MAX_URL_BYTES {
        return Err(vm.range_error("The query is too long for a URL"));
    }
    vm.work(before / 8)?;
    // The URL as text, and parsed again.
    let _copy = vm.heap.hold(before.saturating_mul(4))?;
    let url = &mut state(vm, url)?.url;
    *url = url.parsed_again();
    if url.query().is_some() {
        // Node removes the query first, and with it spaces at the end of an opaque path.
        url.set_search("");
    }
    url.set_search(&query);
    let after = url.length();
    vm.heap.meter.add_bytes(after.saturating_sub(before));
    Ok(Value::UNDEFINED)
}

/// The pairs as a query, counted until it is dropped.
fn serialized(vm: &mut Vm, this: Value) -> Result<(String, Hold)> {
    let escaped = |text: &str| -> usize {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'*' | b'-' | b'.' | b'_');
        text.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum()
    };
    let mut length = 0;
    let mut index = 0;
    while let Some((name, value)) = receiver(vm, this)?.pairs.get(index) {
        length += escaped(name) + escaped(value) + 2;
        let bytes = name.len() + value.len();
        vm.work(1 + bytes / 16)?;
        index += 1;
    }
    let hold = vm.heap.hold(length)?;
    let mut out = String::with_capacity(length); // charged: above
    for index in 0..2 * index {
        if index > 0 {
            out.push(if index % 2 == 0 { '&' } else { '=' });
        }
        let mut at = 0;
        while let Some((name, value)) = receiver(vm, this)?.pairs.get(index / 2) {
            let rest = if index % 2 == 0 { &name.as_bytes()[at..] } else { &value.as_bytes()[at..] };
            let piece = &rest[..rest.len().min(PIECE)];
            for (index, word) in piece.split(|byte| *byte == b' ').enumerate() {
                if index > 0 {
                    out.push('+');
                }
                out.extend(percent_encode(word, FORM));
            }
            let (length, is_last) = (piece.len(), piece.len() == rest.len());
            vm.work(1 + length / 16)?;
            if is_last {
                break;
            }
            at += length;
        }
    }
    Ok((out, hold))
}

/// `params.size`
fn size(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::number(receiver(vm, this)?.pairs.len() as f64))
}

/// `params.append(name, value)`
fn append(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name, value] = texts(vm, this, arguments)?;
    push(vm, this, (name, value))?;
    changed(vm, this)
}

/// Append a pair, and count it.
fn push(vm: &mut Vm, this: Value, pair: Pair) -> Result<()> {
    let texts = cost(&pair);
    let pairs = &mut receiver(vm, this)?.pairs;
    let before = list_cost(pairs);
    pairs.push(pair);
    let grown = list_cost(pairs) - before;
    vm.heap.meter.add_bytes(texts + grown);
    Ok(())
}

/// `params.delete(name, value)`
fn delete(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, arguments)?;
    let value = optional(vm, arguments)?;
    receiver(vm, this)?.pairs.retain(|pair| !fits(pair, &name, value.as_deref()));
    changed(vm, this)
}

fn fits(pair: &Pair, name: &str, value: Option<&str>) -> bool {
    pair.0 == name && value.is_none_or(|value| pair.1 == value)
}

/// `params.get(name)`
fn get(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, arguments)?;
    let found = receiver(vm, this)?.pairs.iter().position(|pair| pair.0 == name);
    let bytes = found.map_or(0, |at| pair_bytes(vm, this, at));
    vm.work(bytes / 16)?;
    vm.reserve(2 * bytes)?;
    let found = found.and_then(|at| receiver(vm, this).ok()?.pairs.get(at).map(|pair| pair.1.clone()));
    Ok(found.map_or(Value::NULL, |value| vm.heap.string(&value)))
}

/// `params.getAll(name)`
fn get_all(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, arguments)?;
    let mut items = Buffer::new();
    let mut index = 0;
    while let Some(pair) = receiver(vm, this)?.pairs.get(index) {
        index += 1;
        if pair.0 != name {
            continue;
        }
        let bytes = pair.1.len();
        vm.work(1 + bytes / 16)?;
        vm.reserve(2 * bytes)?;
        let value = receiver(vm, this)?.pairs.get(index - 1).map(|pair| pair.1.clone()).unwrap_or_default();
        let value = vm.heap.string(&value);
        items.push(vm, value)?;
    }
    Ok(vm.heap.array_of(items))
}

/// `params.has(name, value)`
fn has(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, arguments)?;
    let value = optional(vm, arguments)?;
    Ok(Value::bool(receiver(vm, this)?.pairs.iter().any(|pair| fits(pair, &name, value.as_deref()))))
}

/// `params.set(name, value)`: the first of that name is changed, the others go.
fn set(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name, value] = texts(vm, this, arguments)?;
    let pairs = &mut receiver(vm, this)?.pairs;
    match pairs.iter().position(|pair| pair.0 == name) {
        None => push(vm, this, (name, value))?,
        Some(first) => {
            vm.heap.meter.add_bytes(block(value.capacity()));
            let pairs = &mut receiver(vm, this)?.pairs;
            pairs[first].1 = value;
            let mut index = 0;
            pairs.retain(|pair| {
                index += 1;
                index - 1 <= first || pair.0 != name
            });
        }
    }
    changed(vm, this)
}

/// `params.sort()`: by names, in the order of their code units; stable.
fn sort(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let state = receiver(vm, this)?;
    let (count, bytes) = (state.pairs.len(), state.cost());
    vm.work(count * (1 + count.checked_ilog2().unwrap_or(0) as usize) + bytes / 16)?;
    let _hold = vm.heap.hold(bytes.saturating_mul(2) + count * 32)?;
    receiver(vm, this)?.pairs.sort_by_cached_key(|pair| to_utf16(pair.0.as_bytes()));
    changed(vm, this)
}

fn entries(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Entries)
}

fn keys(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Keys)
}

fn values(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Values)
}

fn iterator(vm: &mut Vm, this: Value, yields: Yields) -> Result {
    receiver(vm, this)?;
    Ok(vm.heap.new_iterator(this, yields))
}

/// `params.toString()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let (text, hold) = serialized(vm, this)?;
    drop(hold);
    Ok(vm.heap.take_string(text.into_bytes()))
}

/// `$searchParams(self, fn)`: check receiver and argument of `forEach`.
fn check_for_each(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, function) = (arg(arguments, 0), arg(arguments, 1));
    receiver(vm, this)?;
    if vm.type_of(function) == "function" {
        return Ok(Value::UNDEFINED);
    }
    let received = received(vm, function)?;
    let message = brief!("The \"callback\" argument must be of type function. Received {received}");
    Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message))
}

/// An argument of the wrong type as Node's messages describe it.
pub fn received(vm: &mut Vm, value: Value) -> Result<String> {
    if value.is_nullish() {
        return Ok(vm.to_text_lossy(value));
    }
    if value.is_callable() {
        return Ok(brief!("function {}", callable::name(vm, value)));
    }
    if value.is_object() {
        return Ok(brief!("an instance of {}", json::class_name(vm, value)));
    }
    if value.is_string() {
        return Ok(received_text(vm, value));
    }
    let mut text = inspect::inspect(vm, value, inspect::Options::default())?;
    if text.chars().count() > 28 {
        let end = text.char_indices().nth(25).map_or(text.len(), |(end, _)| end);
        text = brief!("{}...", &text[..end]);
    }
    Ok(brief!("type {} ({text})", vm.type_of(value)))
}

/// The same of a string.
fn received_text(vm: &mut Vm, text: Value) -> String {
    let is_long = vm.heap.str(text).units > 28;
    let text = vm.to_text_lossy(text);
    let mut units = 0;
    let fits = |letter: &char| {
        units += letter.len_utf16();
        !is_long || units <= 25
    };
    let end = text.chars().take_while(fits).map(char::len_utf8).sum();
    let shown = brief!("{}{}", &text[..end], if is_long { "..." } else { "" });
    if !shown.contains('\'') {
        return brief!("type string ('{shown}')");
    }
    let mut quoted = String::default();
    crate::text::quote::quote(&shown, &mut quoted);
    brief!("type string ({quoted})")
}

/// The pair at a position of a `URLSearchParams` or `Headers`; the caller has reserved [`pair_bytes`].
pub fn pair_at(vm: &mut Vm, params: Value, position: usize) -> Option<(Value, Value)> {
    let (name, value) = match vm.heap.slots::<ParamsState>(params) {
        Some(state) => state.pairs.get(position)?.clone(),
        None => vm.heap.slots::<HeadersState>(params)?.pair(position)?,
    };
    Some((vm.heap.string(&name), vm.heap.string(&value)))
}

/// How long the texts of a pair are.
pub fn pair_bytes(vm: &Vm, params: Value, position: usize) -> usize {
    match vm.heap.slots::<ParamsState>(params) {
        Some(state) => state.pairs.get(position).map_or(0, |(name, value)| name.len() + value.len()),
        None => vm.heap.slots::<HeadersState>(params).map_or(0, |state| state.pair_bytes(position)),
    }
}

//! `URLSearchParams`: the query of a URL as pairs of names and values.
//!
//! The `searchParams` of a URL and the URL change each other: a change here writes the query of the
//! URL, a change of the URL reads the pairs again.

use super::{coded, state};
use crate::builtins::{Body, Global, Row, arg, getter, native, object, prelude};
use crate::charge::Buffer;
use crate::convert::type_of;
use crate::error::{Result, Thrown};
use crate::heap::{Exotic, Yields, to_utf16};
use crate::value::{Kind, Value};
use crate::vm::Vm;
use url::form_urlencoded;

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "URLSearchParams",
    length: 0,
    call: Body::Native(call_params),
    construct: Some(Body::Native(new_params)),
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
pub const INTRINSICS: &[Row] = &[native("$searchParams", 2, check_for_each)];

/// A name and a value.
type Pair = (String, String);

/// The state of a `URLSearchParams`.
#[derive(Clone, Debug, Default)]
pub struct ParamsState {
    /// What it holds, in order.
    pub pairs: Vec<Pair>,
    /// The URL whose `searchParams` it is.
    pub url: Option<Value>,
}

impl ParamsState {
    /// Bytes that it takes.
    pub fn cost(&self) -> usize {
        self.pairs.iter().map(cost).sum()
    }
}

fn cost((name, value): &Pair) -> usize {
    size_of::<Pair>() + name.len() + value.len()
}

fn call_params(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor URLSearchParams cannot be invoked without 'new'"))
}

/// `new URLSearchParams(init)`: from text, another one, pairs, or an object.
fn new_params(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let init = arg(arguments, 0);
    let pairs = match init.kind() {
        Kind::Undefined | Kind::Null => Vec::new(),
        _ if !init.is_object() => {
            let text = vm.to_text(init)?;
            parse(vm, text.strip_prefix('?').unwrap_or(&text))?
        }
        _ if let Some(Exotic::Params(other)) = vm.heap.exotic(init) => {
            let pairs = other.pairs.clone();
            vm.work(pairs.len())?;
            pairs
        }
        _ if vm.is_iterable(init) => pairs_of_list(vm, init)?,
        _ => pairs_of_record(vm, init)?,
    };
    Ok(vm.heap.new_exotic(Exotic::Params(Box::new(ParamsState { pairs, url: None }))))
}

/// The pairs of a query.
fn parse(vm: &mut Vm, query: &str) -> Result<Vec<Pair>> {
    vm.work(1 + query.len() / 16)?;
    vm.reserve(query.len().saturating_mul(size_of::<Pair>() / 2))?;
    Ok(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

fn pairs_of_list(vm: &mut Vm, list: Value) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for item in vm.iterate_to_list(list)? {
        let parts = if item.is_object() && vm.is_iterable(item) { vm.iterate_to_list(item)? } else { Buffer::new() };
        let mut texts = Vec::new();
        for &part in &*parts {
            texts.push(vm.to_text(part)?);
        }
        vm.work(1 + texts.iter().map(String::len).sum::<usize>() / 32)?;
        let Ok([name, value]) = <[String; 2]>::try_from(texts) else {
            return Err(coded(vm, "ERR_INVALID_TUPLE", "Each query pair must be an iterable [name, value] tuple"));
        };
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// The own properties of an object; names that are the same without lone surrogates are one.
fn pairs_of_record(vm: &mut Vm, record: Value) -> Result<Vec<Pair>> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut places = hashbrown::HashMap::new();
    for (key, value) in object::pairs(vm, record)? {
        let name = vm.key_text(key);
        let value = vm.to_text(value)?;
        vm.work(1 + (name.len() + value.len()) / 32)?;
        let place = *places.entry(name.clone()).or_insert(pairs.len());
        match pairs.get_mut(place) {
            Some(pair) => pair.1 = value,
            None => pairs.push((name, value)),
        }
    }
    Ok(pairs)
}

/// The `searchParams` of a URL.
pub fn of_url(vm: &mut Vm, url: Value) -> Result {
    let state = state(vm, url)?;
    if !state.params.is_undefined() {
        return Ok(state.params);
    }
    let query = state.url.query().unwrap_or_default().to_owned();
    let pairs = parse(vm, &query)?;
    let params = vm.heap.new_exotic(Exotic::Params(Box::new(ParamsState { pairs, url: Some(url) })));
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
    let query = state.url.query().unwrap_or_default().to_owned();
    let pairs = parse(vm, &query)?;
    vm.heap.meter.add_bytes(pairs.iter().map(cost).sum());
    receiver(vm, params)?.pairs = pairs;
    Ok(())
}

/// The state of a receiver.
fn receiver(vm: &mut Vm, this: Value) -> Result<&mut ParamsState> {
    if !matches!(vm.heap.exotic(this), Some(Exotic::Params(_))) {
        let message = "Value of \"this\" must be of type URLSearchParams";
        return Err(coded(vm, "ERR_INVALID_THIS", message));
    }
    match vm.heap.exotic_mut(this) {
        Some(Exotic::Params(state)) => Ok(state),
        _ => Err(Thrown::limit("INTERNAL", "a URLSearchParams is none")),
    }
}

/// Charge for a look at every pair, and give name and value as text.
fn texts<const COUNT: usize>(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<[String; COUNT]> {
    let count = receiver(vm, this)?.pairs.len();
    if arguments.len() < COUNT {
        let what = if COUNT == 1 { "\"name\" argument" } else { "\"name\" and \"value\" arguments" };
        return Err(coded(vm, "ERR_MISSING_ARGS", &format!("The {what} must be specified")));
    }
    let mut texts = [const { String::new() }; COUNT];
    for (text, &argument) in texts.iter_mut().zip(arguments) {
        *text = vm.to_text(argument)?;
    }
    vm.work(1 + count + texts[0].len() / 16)?;
    Ok(texts)
}

/// The value that `delete` and `has` are given beside the name.
fn optional(vm: &mut Vm, arguments: &[Value]) -> Result<Option<String>> {
    match arg(arguments, 1) {
        Value::UNDEFINED => Ok(None),
        value => vm.to_text(value).map(Some),
    }
}

/// Write the pairs to the URL that they belong to.
fn changed(vm: &mut Vm, this: Value) -> Result {
    let state = receiver(vm, this)?;
    if let Some(url) = state.url {
        let bytes = state.cost();
        vm.work(bytes / 16)?;
        vm.reserve(bytes.saturating_mul(4))?;
        let query = serialized(&receiver(vm, this)?.pairs);
        let url = &mut super::state(vm, url)?.url;
        let before = url.as_str().len();
        url.set_query((!query.is_empty()).then_some(&query));
        let after = url.as_str().len();
        vm.heap.meter.add_bytes(after.saturating_sub(before));
    }
    Ok(Value::UNDEFINED)
}

fn serialized(pairs: &[Pair]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// `params.size`
fn size(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::number(receiver(vm, this)?.pairs.len() as f64))
}

/// `params.append(name, value)`
fn append(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name, value] = texts(vm, this, arguments)?;
    let pair = (name, value);
    vm.heap.meter.add_bytes(cost(&pair));
    receiver(vm, this)?.pairs.push(pair);
    changed(vm, this)
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
    let found = receiver(vm, this)?.pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.clone());
    Ok(found.map_or(Value::NULL, |value| vm.string(&value)))
}

/// `params.getAll(name)`
fn get_all(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let [name] = texts(vm, this, arguments)?;
    let found = receiver(vm, this)?.pairs.iter().filter(|pair| pair.0 == name);
    let found: Vec<String> = found.map(|pair| pair.1.clone()).collect();
    let items = found.iter().map(|value| vm.string(value)).collect();
    Ok(vm.heap.new_array(items))
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
    vm.heap.meter.add_bytes(size_of::<Pair>() + name.len() + value.len());
    let pairs = &mut receiver(vm, this)?.pairs;
    match pairs.iter().position(|pair| pair.0 == name) {
        None => pairs.push((name, value)),
        Some(first) => {
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
    let bytes = receiver(vm, this)?.cost();
    vm.work(1 + bytes / 16)?;
    vm.reserve(bytes.saturating_mul(3))?;
    let text = serialized(&receiver(vm, this)?.pairs);
    Ok(vm.string(&text))
}

/// `$searchParams(self, fn)`: check receiver and argument of `forEach`.
fn check_for_each(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, function) = (arg(arguments, 0), arg(arguments, 1));
    receiver(vm, this)?;
    if type_of(function) == "function" {
        return Ok(Value::UNDEFINED);
    }
    let received = vm.received(function)?;
    let message = format!("The \"callback\" argument must be of type function. Received {received}");
    Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message))
}

impl Vm {
    /// An argument of the wrong type as Node's messages describe it.
    fn received(&mut self, value: Value) -> Result<String> {
        if value.is_nullish() {
            return self.to_text(value);
        }
        if value.is_object() {
            return Ok(format!("an instance of {}", self.class_name(value)));
        }
        let mut text = self.inspect(value, crate::builtins::inspect::Options::default())?;
        if text.chars().count() > 28 {
            text = text.chars().take(25).chain("...".chars()).collect();
        }
        Ok(format!("type {} ({text})", type_of(value)))
    }

    /// The pair at a position of a `URLSearchParams`.
    pub fn pair_at(&mut self, params: Value, position: usize) -> Option<(Value, Value)> {
        let Some(Exotic::Params(state)) = self.heap.exotic(params) else { return None };
        let (name, value) = state.pairs.get(position)?.clone();
        Some((self.string(&name), self.string(&value)))
    }
}

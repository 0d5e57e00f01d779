//! `Array` and the methods of arrays.
//!
//! Methods that change an array have a fast path here, for ordinary extensible arrays, and the path of the
//! specification in [`generic`]. Methods that only read copy array-likes into an array first.

mod flat;
mod generic;
mod join;
mod sort;
mod sparse;
mod walk;

pub use join::to_string;

use super::{Body, Global, Row, arg, native, prelude};
use crate::builtins::function;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::Yields;
use crate::meter::Charge;
use crate::meter::buffer::Buffer;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// `Array`
pub const GLOBALS: &[Global] = &[Global {
    name: "Array",
    length: 1,
    call: Body::Native(construct),
    construct: Some(Body::Native(construct)),
    functions: &[
        prelude("from", 1, "Array_from"),
        prelude("fromAsync", 1, "Array_fromAsync"),
        native("isArray", 1, is_array),
        native("of", 0, of),
    ],
    numbers: &[],
}];

/// Methods of arrays.
pub const METHODS: &[Row] = &[
    native("at", 1, at),
    native("concat", 1, concat),
    native("copyWithin", 2, copy_within),
    native("entries", 0, entries),
    prelude("every", 1, "Array_every"),
    native("fill", 1, fill),
    prelude("filter", 1, "Array_filter"),
    prelude("find", 1, "Array_find"),
    prelude("findIndex", 1, "Array_findIndex"),
    prelude("findLast", 1, "Array_findLast"),
    prelude("findLastIndex", 1, "Array_findLastIndex"),
    native("flat", 0, flat::flat),
    prelude("flatMap", 1, "Array_flatMap"),
    prelude("forEach", 1, "Array_forEach"),
    native("includes", 1, includes),
    native("indexOf", 1, index_of),
    native("join", 1, join::join),
    native("keys", 0, keys),
    native("lastIndexOf", 1, last_index_of),
    prelude("map", 1, "Array_map"),
    native("pop", 0, pop),
    native("push", 1, push),
    prelude("reduce", 1, "Array_reduce"),
    prelude("reduceRight", 1, "Array_reduceRight"),
    native("reverse", 0, reverse),
    native("shift", 0, shift),
    native("slice", 2, slice),
    prelude("some", 1, "Array_some"),
    prelude("sort", 1, "Array_sort"),
    native("splice", 2, splice),
    native("toReversed", 0, to_reversed),
    prelude("toSorted", 1, "Array_toSorted"),
    native("toSpliced", 2, to_spliced),
    native("toString", 0, to_string),
    native("unshift", 1, unshift),
    native("values", 0, values),
    native("with", 2, with),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$begin", 3, begin),
    native("$joining", 1, join::begin),
    native("$joined", 0, join::end),
    native("$length", 1, length),
    native("$leaf", 2, walk::is_leaf),
    native("$forEach", 4, walk::for_each),
    native("$map", 5, walk::map),
    native("$filter", 5, walk::filter),
    native("$until", 5, walk::until),
    native("$find", 5, walk::find),
    native("$reduce", 5, walk::reduce),
    native("$search", 5, walk::search),
    native("$mergeLow", 5, walk::merge_low),
    native("$mergeHigh", 5, walk::merge_high),
    native("$holes", 1, holes),
    native("$append", 2, flat::append),
    native("$list", 1, list),
    native("$iterable", 1, super::iterator::iterable),
    native("$fromIterable", 2, super::iterator::from_iterable),
    native("$comparator", 1, sort::comparator),
    native("$sortable", 4, sort::sortable),
    native("$order", 3, sort::order),
    native("$sorted", 3, sort::sorted),
    native("$reverse", 3, sort::reverse_part),
    native("$insert", 3, sort::insert),
    native("$copy", 5, sort::copy),
];

/// Most items of an array.
const MAX_LENGTH: f64 = u32::MAX as f64;

/// `Array(length)`, `Array(...items)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    match arguments {
        [length] if length.is_number() => new_holes(vm, length.as_number()),
        items => of(vm, Value::UNDEFINED, items),
    }
}

fn is_array(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(arg(arguments, 0).is(Kind::Array)))
}

fn of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.work(arguments.len() / 8)?;
    let mut items = Buffer::with_capacity(vm, arguments.len())?;
    items.extend_from_slice(vm, arguments)?;
    Ok(vm.heap.array_of(items))
}

fn at(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)?;
    let index = vm.to_integer(arg(arguments, 0))?;
    let index = if index < 0.0 { length + index } else { index };
    if index < 0.0 || index >= length {
        return Ok(Value::UNDEFINED);
    }
    vm.get_index(this, Value::number(index))
}

fn concat(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if this.is_nullish() {
        return Err(vm.type_error("Array.prototype.concat called on null or undefined"));
    }
    let parts = || std::iter::once(this).chain(arguments.iter().copied());
    let size = |vm: &Vm, part: Value| if part.is(Kind::Array) { vm.heap.length(part) } else { 1 };
    vm.work(arguments.len())?;
    let total: usize = parts().map(|part| size(vm, part)).sum();
    if parts().any(|part| part.is(Kind::Array) && vm.heap.is_sparse(part)) {
        return sparse::concat(vm, parts(), total);
    }
    let mut items = Buffer::with_capacity(vm, total)?;
    for part in parts() {
        match part.kind() {
            Kind::Array => vm.heap.charged_append_items(part, &mut items)?,
            _ => items.push(vm, part)?,
        }
    }
    Ok(vm.heap.array_of(items))
}

fn copy_within(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::copy_within(vm, this, arguments);
    }
    let length = vm.heap.length(this);
    let to = vm.to_position(arg(arguments, 0), length, 0)?;
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    let end = vm.to_position(arg(arguments, 2), length, length)?;
    // The conversions may have run a function that changed the array.
    let items = &vm.heap.arrays[this.index()].items;
    if items.len() != length || !is_free(vm, this) {
        let count = end.saturating_sub(from).min(length.saturating_sub(to));
        return generic::move_items(vm, this, [from, to, count].map(|number| number as f64));
    }
    let count = end.saturating_sub(from).min(length.saturating_sub(to));
    if count > 0 {
        vm.work(count / 16)?;
        vm.heap.arrays[this.index()].items.copy_within(from..from + count, to);
    }
    Ok(this)
}

fn entries(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Entries)
}

fn fill(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::fill(vm, this, arguments);
    }
    let length = vm.heap.length(this);
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    let to = vm.to_position(arg(arguments, 2), length, length)?;
    // The conversions may have run a function that changed the array.
    if !is_free(vm, this) {
        return generic::fill_range(vm, this, arg(arguments, 0), [length, from, to].map(|number| number as f64));
    }
    vm.work(to.saturating_sub(from) / 8)?;
    // As in V8, an array that is shorter by now does not grow.
    let to = to.min(vm.heap.length(this));
    if let Some(items) = vm.heap.arrays[this.index()].items.get_mut(from..to) {
        items.fill(arg(arguments, 0));
    }
    Ok(this)
}

fn includes(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (target, length) = (arg(arguments, 0), vm.length_of(this)? as usize);
    if length == 0 {
        return Ok(Value::FALSE);
    }
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    let array = as_array(vm, this, length)?;
    if vm.heap.is_sparse(array) {
        return sparse::includes(vm, array, target, from..length).map(Value::bool);
    }
    let Some(charge) = charge_search(vm, array, target)? else {
        return Ok(Value::bool(search(vm, array, target, from..length)?.is_some()));
    };
    let items = vm.heap.read_items(array, charge).get(from..).unwrap_or_default();
    Ok(Value::bool(match target {
        Value::UNDEFINED => items.iter().any(|&item| item == target || item == Value::HOLE),
        _ => items.iter().any(|&item| vm.is_same(item, target, true)),
    }))
}

fn index_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if this.is_nullish() {
        return Err(vm.type_error("Array.prototype.indexOf called on null or undefined"));
    }
    let (target, length) = (arg(arguments, 0), vm.length_of(this)? as usize);
    if length == 0 {
        return Ok(Value::number(-1.0));
    }
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    let array = as_array(vm, this, length)?;
    let found = if vm.heap.is_sparse(array) {
        sparse::find(vm, array, target, from..length, false)?
    } else if let Some(charge) = charge_search(vm, array, target)? {
        let items = vm.heap.read_items(array, charge).get(from..).unwrap_or_default();
        items.iter().position(|&item| vm.is_same(item, target, false)).map(|index| from + index)
    } else {
        search(vm, array, target, from..length)?
    };
    Ok(Value::number(found.map_or(-1.0, |index| index as f64)))
}

fn keys(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Keys)
}

fn last_index_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (target, length) = (arg(arguments, 0), vm.length_of(this)? as usize);
    if length == 0 {
        return Ok(Value::number(-1.0));
    }
    let end = match arguments.get(1) {
        None => length,
        Some(&from) => {
            let from = vm.to_integer(from)?;
            let last = if from < 0.0 { length as f64 + from } else { from.min(length as f64 - 1.0) };
            (last + 1.0).max(0.0) as usize
        }
    };
    let array = as_array(vm, this, length)?;
    let found = if vm.heap.is_sparse(array) {
        sparse::find(vm, array, target, 0..end, true)?
    } else if let Some(charge) = charge_search(vm, array, target)? {
        let items = vm.heap.read_items(array, charge);
        items[..end.min(items.len())].iter().rposition(|&item| vm.is_same(item, target, false))
    } else {
        search(vm, array, target, (0..end.min(length)).rev())?
    };
    Ok(Value::number(found.map_or(-1.0, |index| index as f64)))
}

fn pop(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::pop(vm, this);
    }
    let item = vm.heap.arrays[this.index()].items.pop();
    Ok(filled(item.unwrap_or(Value::UNDEFINED)))
}

/// `Array.prototype.push`
pub fn push(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::push(vm, this, arguments);
    }
    if arguments.len() > 8 {
        room(vm, arguments.len())?;
    }
    for &item in arguments {
        vm.heap.push(this, item);
    }
    Ok(Value::number(vm.heap.length(this) as f64))
}

fn reverse(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::reverse(vm, this);
    }
    vm.work(vm.heap.length(this) / 16)?;
    vm.heap.arrays[this.index()].items.reverse();
    Ok(this)
}

fn shift(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::shift(vm, this);
    }
    let length = vm.heap.length(this);
    if length == 0 {
        return Ok(Value::UNDEFINED);
    }
    vm.work((length - 1) / 64)?;
    Ok(filled(vm.heap.arrays[this.index()].items.remove(0)))
}

fn slice(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)? as usize;
    let from = vm.to_position(arg(arguments, 0), length, 0)?;
    let to = vm.to_position(arg(arguments, 1), length, length)?;
    let array = as_array(vm, this, length)?;
    if vm.heap.is_sparse(array) {
        return sparse::slice(vm, array, from..to.max(from));
    }
    let (mut items, charge) = counted(vm, to.saturating_sub(from))?;
    items.extend_from_slice(vm, vm.heap.read_items(array, charge).get(from..to).unwrap_or_default())?;
    Ok(vm.heap.array_of(items))
}

fn splice(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::splice(vm, this, arguments);
    }
    let length = vm.heap.length(this);
    let (from, removed) = splice_range(vm, arguments, length)?;
    let added = arguments.get(2..).unwrap_or_default();
    if !is_free(vm, this) || vm.heap.length(this) != length {
        return generic::splice_range(vm, this, added, [length, from, removed].map(|number| number as f64));
    }
    room(vm, removed + added.len())?;
    let charge = vm.work((length - from) / 64)?;
    let removed =
        vm.heap.with_items(this, |items| charge.list(items.splice(from..from + removed, added.iter().copied())));
    Ok(vm.heap.new_array(removed))
}

fn to_reversed(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let length = vm.length_of(this)? as usize;
    let array = as_dense(vm, this, length)?;
    let (mut items, charge) = counted(vm, length)?;
    items.extend(vm, vm.heap.read_items(array, charge).iter().rev().map(|&item| filled(item)))?;
    Ok(vm.heap.array_of(items))
}

fn to_spliced(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)? as usize;
    let (from, removed) = splice_range(vm, arguments, length)?;
    let array = as_dense(vm, this, length)?;
    let added = arguments.get(2..).unwrap_or_default();
    let (mut spliced, charge) = counted(vm, length - removed + added.len())?;
    let items = vm.heap.read_items(array, charge);
    spliced.extend(vm, items[..from].iter().map(|&item| filled(item)))?;
    spliced.extend_from_slice(vm, added)?;
    spliced.extend(vm, items[from + removed..].iter().map(|&item| filled(item)))?;
    Ok(vm.heap.array_of(spliced))
}

fn unshift(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !is_free(vm, this) {
        return generic::unshift(vm, this, arguments);
    }
    room(vm, arguments.len())?;
    vm.work((vm.heap.length(this) + arguments.len()) / 64)?;
    let length = vm.heap.with_items(this, |items| {
        items.splice(0..0, arguments.iter().copied());
        items.len()
    });
    Ok(Value::number(length as f64))
}

fn values(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Values)
}

fn with(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)?;
    let index = vm.to_integer(arg(arguments, 0))?;
    let position = if index < 0.0 { length + index } else { index };
    if position < 0.0 || position >= length {
        let index = vm.describe(arg(arguments, 0));
        return Err(vm.range_error(&brief!("Invalid index : {index}")));
    }
    let array = as_dense(vm, this, length as usize)?;
    let (mut items, charge) = counted(vm, length as usize)?;
    items.extend(vm, vm.heap.read_items(array, charge).iter().map(|&item| filled(item)))?;
    if let Some(item) = items.get_mut(position as usize) {
        *item = arg(arguments, 1);
    }
    Ok(vm.heap.array_of(items))
}

/// `$begin(self, fn, name)`: the length of a receiver, once it and the callback have been checked.
fn begin(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, function) = (arg(arguments, 0), arg(arguments, 1));
    if this.is_nullish() {
        let name = vm.to_text_lossy(arg(arguments, 2));
        return Err(vm.type_error(&brief!("{name} called on null or undefined")));
    }
    let length = vm.length_of(this)?;
    function::check_callable(vm, function)?;
    Ok(Value::number(length))
}

/// `$length(self)`
fn length(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.length_of(arg(arguments, 0)).map(Value::number)
}

/// `$holes(length)`
fn holes(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    new_holes(vm, arg(arguments, 0).as_number())
}

/// `$list(items)`: an array of the items of an iterable or of something with a length.
fn list(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = arg(arguments, 0);
    if source.is_nullish() {
        return Err(vm.not_iterable(source));
    }
    super::iterator::check_iterator(vm, source, "%Array%.from")?;
    let items = if vm.is_iterable(source) { vm.iterate_to_list(source)? } else { array_like(vm, source)? };
    Ok(vm.heap.array_of(items))
}

/// Whether it is an array that is not frozen, sealed or non-extensible.
#[inline]
fn is_free(vm: &Vm, this: Value) -> bool {
    this.is(Kind::Array) && vm.heap.arrays[this.index()].flags == 0
}

/// An item as a script reads it: holes are `undefined`.
#[inline]
fn filled(item: Value) -> Value {
    if item == Value::HOLE { Value::UNDEFINED } else { item }
}

/// Reserve memory for items, and charge for filling it.
fn room(vm: &mut Vm, items: usize) -> Result<()> {
    vm.reserve(items.saturating_mul(8))?;
    vm.work(items / 8)?;
    Ok(())
}

/// An empty list with room for so many items, charged for.
fn counted(vm: &mut Vm, items: usize) -> Result<(Buffer<Value>, Charge)> {
    let charge = vm.work(items / 8)?;
    Ok((Buffer::with_capacity(vm, items)?, charge))
}

fn new_holes(vm: &mut Vm, length: f64) -> Result {
    if !(0.0..=MAX_LENGTH).contains(&length) || length.fract() != 0.0 {
        return Err(vm.range_error("Invalid array length"));
    }
    vm.new_holes(length as u32)
}

fn iterator(vm: &mut Vm, this: Value, yields: Yields) -> Result {
    if this.is_nullish() {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    // Iterators over other sources do not read indices.
    let has_indices = matches!(this.kind(), Kind::Array | Kind::Object | Kind::Uint8Array | Kind::Function);
    let source = if has_indices {
        this
    } else {
        let length = vm.length_of(this)? as usize;
        as_array(vm, this, length)?
    };
    Ok(vm.heap.new_iterator(source, yields))
}

/// A receiver that is only read, as an array of the length that it had before its arguments were converted. Array-likes
/// are copied with their holes, and so is an array that has another length by now.
fn as_array(vm: &mut Vm, this: Value, length: usize) -> Result {
    if this.is(Kind::Array) && vm.heap.length(this) == length {
        return Ok(this);
    }
    if this.is(Kind::Array) {
        return generic::copy_of_length(vm, this, length);
    }
    let items = copy_items(vm, this, length, Value::HOLE)?;
    Ok(vm.heap.array_of(items))
}

/// The same, dense.
fn as_dense(vm: &mut Vm, this: Value, length: usize) -> Result {
    let array = as_array(vm, this, length)?;
    vm.heap.densify(array)?;
    Ok(array)
}

/// The items of something with a length; missing ones are `undefined`.
pub fn array_like(vm: &mut Vm, source: Value) -> Result<Buffer<Value>> {
    let length = vm.length_of(source)?;
    items_of_length(vm, source, length)
}

/// The same where the length is known.
pub fn items_of_length(vm: &mut Vm, source: Value, length: f64) -> Result<Buffer<Value>> {
    if length > MAX_LENGTH {
        return Err(vm.range_error("Invalid array length"));
    }
    copy_items(vm, source, length as usize, Value::UNDEFINED)
}

fn copy_items(vm: &mut Vm, source: Value, length: usize, missing: Value) -> Result<Buffer<Value>> {
    vm.work(length)?;
    let mut items = Buffer::with_capacity(vm, length)?;
    for index in 0..length as u32 {
        let item = vm.own_property(source, PropertyKey::Index(index))?.unwrap_or(missing);
        items.push(vm, item)?;
    }
    Ok(items)
}

/// Charge for comparing a value with all items of an array, if each comparison is cheap. Gives whether it is: long
/// strings and BigInts are compared by [`search`].
fn charge_search(vm: &mut Vm, array: Value, target: Value) -> Result<Option<Charge>> {
    let charge = vm.work(vm.heap.length(array) / 4)?;
    let is_short = match target.kind() {
        Kind::String => vm.heap.str(target).bytes <= 64,
        Kind::BigInt => vm.heap.bigint_bits(target) <= 512,
        _ => true,
    };
    Ok(is_short.then_some(charge))
}

/// The first position of those at which an item is the same as a long text or BigInt; each comparison is charged for.
#[cold]
fn search(vm: &mut Vm, array: Value, target: Value, positions: impl Iterator<Item = usize>) -> Result<Option<usize>> {
    for position in positions {
        if let Some(item) = vm.heap.at(array, position)
            && vm.strict_equals(item, target)?
        {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// The range that `splice` and `toSpliced` remove: start and count.
fn splice_range(vm: &mut Vm, arguments: &[Value], length: usize) -> Result<(usize, usize)> {
    let from = vm.to_position(arg(arguments, 0), length, 0)?;
    let most = length - from;
    let removed = match arguments {
        [] => 0,
        [_] => most,
        [_, count, ..] => vm.to_integer(*count)?.clamp(0.0, most as f64) as usize,
    };
    Ok((from, removed))
}

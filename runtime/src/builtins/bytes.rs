//! `ArrayBuffer` and `Uint8Array`: bytes. Here is `Uint8Array`, the other is in [`array_buffer`].

pub mod array_buffer;
pub(crate) mod text;

use super::{Body, Global, Row, arg, getter, native, prelude};
use crate::builtins::function;
use crate::eval::operator::MAX_STRING;
use crate::eval::vm::Vm;
use crate::heap::Yields;
use crate::meter::buffer::Buffer;
use crate::value::numeric::{NumberText, to_int32};
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use std::ops::Range;

/// `ArrayBuffer` and `Uint8Array`.
pub const GLOBALS: &[Global] = &[
    Global {
        name: "ArrayBuffer",
        length: 1,
        call: Body::Native(array_buffer::call_buffer),
        construct: Some(Body::Native(array_buffer::new_buffer)),
        functions: &[native("isView", 1, array_buffer::is_view)],
        numbers: &[],
    },
    Global {
        name: "Uint8Array",
        length: 3,
        call: Body::Native(call_view),
        construct: Some(Body::Iterating(new_view, "Uint8Array_new")),
        functions: &[
            prelude("from", 1, "Uint8Array_from"),
            native("fromBase64", 1, text::from_base64),
            native("fromHex", 1, text::from_hex),
            native("of", 0, of),
        ],
        numbers: &[("BYTES_PER_ELEMENT", 1.0)],
    },
];

/// Methods of views. Those of arrays with the same names are functions of the same kind, native or of the prelude.
pub const VIEW_METHODS: &[Row] = &[
    getter("BYTES_PER_ELEMENT", bytes_per_element),
    native("at", 1, at),
    getter("buffer", buffer),
    getter("byteLength", length),
    getter("byteOffset", byte_offset),
    native("copyWithin", 2, copy_within),
    native("entries", 0, entries),
    prelude("every", 1, "Uint8Array_every"),
    native("fill", 1, fill),
    prelude("filter", 1, "Uint8Array_filter"),
    prelude("find", 1, "Uint8Array_find"),
    prelude("findIndex", 1, "Uint8Array_findIndex"),
    prelude("findLast", 1, "Uint8Array_findLast"),
    prelude("findLastIndex", 1, "Uint8Array_findLastIndex"),
    prelude("forEach", 1, "Uint8Array_forEach"),
    native("includes", 1, includes),
    native("indexOf", 1, index_of),
    native("join", 1, join),
    native("keys", 0, keys),
    native("lastIndexOf", 1, last_index_of),
    getter("length", length),
    prelude("map", 1, "Uint8Array_map"),
    prelude("reduce", 1, "Uint8Array_reduce"),
    prelude("reduceRight", 1, "Uint8Array_reduceRight"),
    native("reverse", 0, reverse),
    native("set", 1, set),
    native("setFromBase64", 1, text::set_from_base64),
    native("setFromHex", 1, text::set_from_hex),
    native("slice", 2, slice),
    prelude("some", 1, "Uint8Array_some"),
    prelude("sort", 1, "Uint8Array_sort"),
    native("subarray", 2, subarray),
    native("toBase64", 0, text::to_base64),
    native("toHex", 0, text::to_hex),
    native("toReversed", 0, to_reversed),
    prelude("toSorted", 1, "Uint8Array_toSorted"),
    native("toString", 0, super::array::to_string),
    native("values", 0, values),
    native("with", 2, with),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$view", 3, begin),
    native("$viewLength", 2, checked_length),
    native("$bytes", 1, bytes),
    native("$sortBytes", 1, sort),
];

/// Most bytes of a buffer, as in V8.
const MAX_BYTES: f64 = (1_u64 << 32) as f64;
/// The largest index: 2⁵³ − 1.
const MAX_INDEX: f64 = 9_007_199_254_740_991.0;

fn call_view(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Constructor Uint8Array requires 'new'"))
}

/// `new Uint8Array(length)`, `new Uint8Array(items)`, `new Uint8Array(buffer, offset, length)`
fn new_view(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = arg(arguments, 0);
    match source.kind() {
        Kind::ArrayBuffer => view_of(vm, source, arg(arguments, 1), arg(arguments, 2)),
        Kind::Uint8Array => {
            let Some(range) = vm.heap.view_range(source) else { return Err(detached(vm, "Construct")) };
            let copy = vm.heap.charged_view_copy(source, 0..range.len())?;
            Ok(vm.heap.bytes_of(copy))
        }
        _ if source.is_object() => bytes_from(vm, source),
        _ => match to_index(vm, source)?.filter(|length| *length <= MAX_BYTES) {
            Some(length) => {
                let zeros = vm.heap.zeros(length as usize)?;
                Ok(vm.heap.bytes_of(zeros))
            }
            None => Err(invalid_length(vm, source)),
        },
    }
}

/// A view of a buffer.
fn view_of(vm: &mut Vm, buffer: Value, offset: Value, length: Value) -> Result {
    let start = to_index(vm, offset)?;
    let outside = |vm: &mut Vm| {
        let offset = vm.describe(offset);
        vm.range_error(&brief!("Start offset {offset} is outside the bounds of the buffer"))
    };
    let Some(start) = start else { return Err(outside(vm)) };
    let wanted = match length {
        Value::UNDEFINED => None,
        length => match to_index(vm, length)? {
            Some(wanted) => Some(wanted),
            None => return Err(invalid_length(vm, length)),
        },
    };
    let data = &vm.heap.byte_buffers[buffer.index()];
    let (present, is_resizable) = (data.bytes.len() as f64, data.max.is_some());
    if data.detached {
        return Err(detached(vm, "Construct"));
    }
    if let Some(wanted) = wanted {
        if start + wanted > present {
            return Err(invalid_length(vm, length));
        }
        return Ok(vm.heap.new_byte_view(buffer, start as usize, Some(wanted as usize)));
    }
    if start > present {
        return Err(outside(vm));
    }
    let length = (!is_resizable).then_some((present - start) as usize);
    Ok(vm.heap.new_byte_view(buffer, start as usize, length))
}

/// `Uint8Array.of(...items)`
fn of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.work(arguments.len() / 8)?;
    let mut bytes = Buffer::with_capacity(vm, arguments.len())?;
    for &item in arguments {
        let byte = byte_of(vm, item)?;
        bytes.push(vm, byte)?;
    }
    Ok(vm.heap.bytes_of(bytes))
}

fn bytes_per_element(_: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(Value::number(1.0))
}

fn at(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "at")? as f64;
    let index = vm.to_integer(arg(arguments, 0))?;
    let index = if index < 0.0 { length + index } else { index };
    if index < 0.0 || index >= length {
        return Ok(Value::UNDEFINED);
    }
    vm.get_index(this, Value::number(index))
}

fn buffer(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(vm.heap.buffer_of(this))
}

/// `length` and `byteLength` of a view
fn length(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.heap.view_length(this) as f64))
}

fn byte_offset(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.heap.view_range(this).map_or(0, |range| range.start) as f64))
}

fn copy_within(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "copyWithin")?;
    let to = vm.to_position(arg(arguments, 0), length, 0)?;
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    let end = vm.to_position(arg(arguments, 2), length, length)?;
    if end.saturating_sub(from).min(length.saturating_sub(to)) == 0 {
        return Ok(this);
    }
    // The conversions may have run a function that resized the buffer.
    let length = validate(vm, this, "copyWithin")?;
    let count = end.min(length).saturating_sub(from).min(length.saturating_sub(to));
    if count > 0 {
        let charge = vm.heap.charge_bytes(count)?;
        vm.heap.write_view(this, charge).copy_within(from..from + count, to);
    }
    Ok(this)
}

fn entries(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Entries)
}

fn fill(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    validate(vm, this, "fill")?;
    let byte = byte_of(vm, arg(arguments, 0))?;
    // As in V8, the length is the one after the conversion of the value.
    let length = vm.heap.view_length(this);
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    let to = vm.to_position(arg(arguments, 2), length, length)?;
    let length = validate(vm, this, "fill")?;
    let charge = vm.heap.charge_bytes(to.saturating_sub(from))?;
    if let Some(bytes) = vm.heap.write_view(this, charge).get_mut(from..to.min(length)) {
        bytes.fill(byte);
    }
    Ok(this)
}

fn includes(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "includes")?;
    if length == 0 {
        return Ok(Value::FALSE);
    }
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    // A byte that is not there any more is `undefined`.
    if arg(arguments, 0).is_undefined() {
        return Ok(Value::bool(from < length && vm.heap.view_length(this) < length));
    }
    search(vm, this, from..length, arg(arguments, 0)).map(|found| Value::bool(found.is_some()))
}

fn index_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "indexOf")?;
    if length == 0 {
        return Ok(position_or_none(None));
    }
    let from = vm.to_position(arg(arguments, 1), length, 0)?;
    search(vm, this, from..length, arg(arguments, 0)).map(position_or_none)
}

fn join(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "join")?;
    let separator = match arg(arguments, 0) {
        Value::UNDEFINED => None,
        separator => {
            let separator = vm.to_string(separator)?;
            Some(vm.heap.charged_copy(separator)?)
        }
    };
    let separator = separator.as_deref().unwrap_or(b",");
    let mut out = Buffer::new();
    let mut number = NumberText::default();
    // Few enough that a long separator is written once between two charges.
    let piece = (PIECE * 16 / (separator.len() + 16)).max(1);
    for index in 0..length {
        if index.is_multiple_of(piece) {
            vm.work(piece.min(length) * (separator.len() + 16) / 64)?;
            // Three bytes are at least one unit.
            if out.len() as u64 / 3 > MAX_STRING {
                return Err(vm.range_error("Invalid string length"));
            }
        }
        if index > 0 {
            out.extend_from_slice(vm, separator)?;
        }
        if let Some(byte) = vm.heap.view_byte(this, index) {
            out.extend_from_slice(vm, number.format(f64::from(byte)).as_bytes())?;
        }
    }
    Ok(vm.heap.string_of(out))
}

fn keys(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Keys)
}

fn last_index_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "lastIndexOf")?;
    let end = match arguments.get(1) {
        _ if length == 0 => return Ok(position_or_none(None)),
        None => length,
        Some(&from) => {
            let from = vm.to_integer(from)?;
            let last = if from < 0.0 { length as f64 + from } else { from.min(length as f64 - 1.0) };
            (last + 1.0).max(0.0) as usize
        }
    };
    let Some(byte) = sought(arg(arguments, 0)) else { return Ok(position_or_none(None)) };
    let bytes = vm.heap.charged_view(this)?;
    Ok(position_or_none(memchr::memrchr(byte, &bytes[..end.min(bytes.len())])))
}

fn reverse(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let length = validate(vm, this, "reverse")?;
    let charge = vm.heap.charge_bytes(length)?;
    vm.heap.write_view(this, charge).reverse();
    Ok(this)
}

/// `view.set(items, offset)`
fn set(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !this.is(Kind::Uint8Array) {
        return Err(vm.type_error("this is not a typed array."));
    }
    let (source, offset) = (arg(arguments, 0), vm.to_integer(arg(arguments, 1))?);
    if offset < 0.0 {
        return Err(vm.range_error("offset is out of bounds"));
    }
    let length = validate(vm, this, "set")? as f64;
    if source.is(Kind::Uint8Array) {
        let Some(range) = vm.heap.view_range(source) else {
            return Err(detached(vm, "%TypedArray%.prototype.set"));
        };
        if range.len() as f64 + offset > length {
            return Err(vm.range_error("offset is out of bounds"));
        }
        write_bytes(vm, this, offset as usize, source, range.len())?;
        return Ok(Value::UNDEFINED);
    }
    let count = vm.length_of(source)?;
    if count + offset > length {
        return Err(vm.range_error("offset is out of bounds"));
    }
    for index in 0..count as usize {
        vm.work(1)?;
        let item = vm.get_index(source, Value::number(index as f64))?;
        vm.set_view_item(this, (offset as usize + index) as u32, item)?;
    }
    Ok(Value::UNDEFINED)
}

/// Copy so many bytes of a view into another one, which may be of the same buffer.
fn write_bytes(vm: &mut Vm, target: Value, offset: usize, source: Value, count: usize) -> Result<()> {
    vm.heap.charge_bytes(count)?;
    let (from, to) = (vm.heap.view_range(source), vm.heap.view_range(target));
    let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
    let (from, to) = (from.start..from.start + count, to.start + offset..to.start + offset + count);
    let [read, written] = [source, target].map(|view| vm.heap.buffer_of(view).index());
    if read == written {
        vm.heap.byte_buffers[read].bytes.copy_within(from, to.start);
        return Ok(());
    }
    let bytes = std::mem::take(&mut vm.heap.byte_buffers[read].bytes);
    if let (Some(bytes), Some(room)) = (bytes.get(from), vm.heap.byte_buffers[written].bytes.get_mut(to)) {
        room.copy_from_slice(bytes);
    }
    vm.heap.byte_buffers[read].bytes = bytes;
    Ok(())
}

fn slice(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "slice")?;
    let from = vm.to_position(arg(arguments, 0), length, 0)?;
    let to = vm.to_position(arg(arguments, 1), length, length)?;
    if to > from {
        validate(vm, this, "slice")?;
    }
    let mut copy = part(vm, this, from, to)?;
    let missing = to.saturating_sub(from) - copy.len();
    copy.extend(vm, std::iter::repeat_n(0, missing))?;
    Ok(vm.heap.bytes_of(copy))
}

/// `view.subarray(from, to)`: a view of the same buffer.
fn subarray(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !this.is(Kind::Uint8Array) {
        return Err(incompatible(vm, Value::UNDEFINED, "%TypedArray%.prototype.subarray"));
    }
    let length = vm.heap.view_length(this);
    let from = vm.to_position(arg(arguments, 0), length, 0)?;
    let to = vm.to_position(arg(arguments, 1), length, length)?;
    let view = vm.heap.byte_views[this.index()];
    let follows = view.length.is_none() && arg(arguments, 1).is_undefined();
    let count = if follows { Value::UNDEFINED } else { Value::number(to.saturating_sub(from) as f64) };
    view_of(vm, view.buffer, Value::number((view.offset + from) as f64), count)
}

fn to_reversed(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let length = validate(vm, this, "toReversed")?;
    let mut copy = vm.heap.charged_view_copy(this, 0..length)?;
    copy.reverse();
    Ok(vm.heap.bytes_of(copy))
}

fn values(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    iterator(vm, this, Yields::Values)
}

fn with(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = validate(vm, this, "with")?;
    // As in V8, the value is converted first.
    let byte = byte_of(vm, arg(arguments, 1))?;
    let index = vm.to_integer(arg(arguments, 0))?;
    let index = if index < 0.0 { length as f64 + index } else { index };
    if index < 0.0 || index >= vm.heap.view_length(this) as f64 {
        return Err(vm.range_error("Invalid typed array index"));
    }
    let mut copy = part(vm, this, 0, length)?;
    let missing = length - copy.len();
    copy.extend(vm, std::iter::repeat_n(0, missing))?;
    if let Some(item) = copy.get_mut(index as usize) {
        *item = byte;
    }
    Ok(vm.heap.bytes_of(copy))
}

/// `$view(self, fn, name)`: the length of a receiver, once it and the callback have been checked.
fn begin(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let length = checked_length(vm, Value::UNDEFINED, &[arg(arguments, 0), arg(arguments, 2)])?;
    function::check_callable(vm, arg(arguments, 1))?;
    Ok(length)
}

/// `$viewLength(self, name)`
fn checked_length(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let name = vm.to_text_lossy(arg(arguments, 1));
    validate(vm, arg(arguments, 0), &name).map(|length| Value::number(length as f64))
}

/// `$bytes(items)`: the items of an iterable or of something with a length.
fn bytes(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = arg(arguments, 0);
    if source.is_nullish() {
        return Err(vm.not_iterable(source));
    }
    bytes_from(vm, source)
}

/// `$sortBytes(view)`: sort in ascending order.
fn sort(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let view = arg(arguments, 0);
    let charge = vm.heap.charge_bytes(4 * vm.heap.view_length(view))?;
    let mut counts = [0_usize; 256];
    let bytes = vm.heap.write_view(view, charge);
    bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let mut rest = bytes;
    for (byte, count) in (0..=u8::MAX).zip(counts) {
        let (same, greater) = rest.split_at_mut(count);
        same.fill(byte);
        rest = greater;
    }
    Ok(view)
}

/// The error for a buffer whose bytes are somewhere else, or for a view that extends beyond its buffer: V8 has one
/// text for both.
#[cold]
pub fn detached(vm: &mut Vm, what: &str) -> Thrown {
    vm.type_error(&brief!("Cannot perform {what} on a detached ArrayBuffer"))
}

/// An iterator over a view.
pub fn iterator(vm: &mut Vm, this: Value, yields: Yields) -> Result {
    let name = match yields {
        Yields::Keys => "keys",
        Yields::Entries => "entries",
        Yields::Values | Yields::Matches | Yields::ForIn | Yields::Script | Yields::Generator => "values",
    };
    validate(vm, this, name)?;
    Ok(vm.heap.new_iterator(this, yields))
}

/// Bytes whose work is charged at once.
const PIECE: usize = 1 << 12;

/// The length of a receiver, which must be a view whose buffer is there.
fn validate(vm: &mut Vm, this: Value, method: &str) -> Result<usize> {
    if !this.is(Kind::Uint8Array) {
        // V8 names the receiver of some of them only.
        let is_named =
            matches!(method, "at" | "join" | "slice" | "sort" | "toLocaleString" | "toReversed" | "toSorted");
        return Err(match is_named {
            true => incompatible(vm, this, &brief!("%TypedArray%.prototype.{method}")),
            false => vm.type_error("this is not a typed array."),
        });
    }
    match vm.heap.view_range(this) {
        Some(range) => Ok(range.len()),
        None => Err(detached(vm, &brief!("%TypedArray%.prototype.{method}"))),
    }
}

#[cold]
fn incompatible(vm: &mut Vm, this: Value, method: &str) -> Thrown {
    let what = if this.is_object() { vm.object_tag(this) } else { vm.describe(this) };
    vm.type_error(&brief!("Method {method} called on incompatible receiver {what}"))
}

#[cold]
fn invalid_length(vm: &mut Vm, length: Value) -> Thrown {
    let length = vm.describe(length);
    vm.range_error(&brief!("Invalid typed array length: {length}"))
}

/// An integer from 0 to 2⁵³ − 1 (ECMAScript 7.1.22); `None` where the value is another one.
fn to_index(vm: &mut Vm, value: Value) -> Result<Option<f64>> {
    let number = vm.to_integer(value)?;
    Ok((0.0..=MAX_INDEX).contains(&number).then_some(number))
}

/// ToUint8 (ECMAScript 7.1.11).
fn byte_of(vm: &mut Vm, value: Value) -> Result<u8> {
    Ok(to_int32(vm.to_number(value)?) as u8)
}

/// A new view of the items of an iterable or of something with a length.
fn bytes_from(vm: &mut Vm, source: Value) -> Result {
    if source.is(Kind::Uint8Array) && vm.heap.view_range(source).is_none() {
        return Err(detached(vm, "%TypedArray%.prototype.values"));
    }
    super::iterator::check_iterator(vm, source, "TypedArray's constructor")?;
    let items = if vm.is_iterable(source) {
        vm.iterate_to_list(source)?
    } else {
        let length = vm.length_of(source)?;
        if length > MAX_BYTES {
            return Err(invalid_length(vm, Value::number(length)));
        }
        super::array::items_of_length(vm, source, length)?
    };
    vm.work(items.len() / 8)?;
    let mut bytes = Buffer::with_capacity(vm, items.len())?;
    for item in items {
        let byte = byte_of(vm, item)?;
        bytes.push(vm, byte)?;
    }
    Ok(vm.heap.bytes_of(bytes))
}

/// A copy of what there is between two positions of a view or buffer.
fn part(vm: &mut Vm, source: Value, from: usize, to: usize) -> Result<Buffer<u8>> {
    vm.heap.charge_bytes(to.saturating_sub(from))?;
    let present = vm.heap.byte_length(source);
    vm.heap.charged_view_copy(source, from.min(present)..to.min(present).max(from.min(present)))
}

/// The byte that a search looks for; `None`: no byte is equal to the value.
fn sought(value: Value) -> Option<u8> {
    let number = value.is_number().then(|| value.as_number())?;
    let byte = number as u8;
    (f64::from(byte) == number).then_some(byte)
}

/// The first position of a byte in a range.
fn search(vm: &mut Vm, view: Value, range: Range<usize>, byte: Value) -> Result<Option<usize>> {
    let Some(byte) = sought(byte) else { return Ok(None) };
    let bytes = vm.heap.charged_view(view)?;
    let bytes = bytes.get(range.start..range.end.min(bytes.len())).unwrap_or_default();
    Ok(memchr::memchr(byte, bytes).map(|index| range.start + index))
}

fn position_or_none(position: Option<usize>) -> Value {
    Value::number(position.map_or(-1.0, |position| position as f64))
}

/// The bytes that an API of the web takes: a `Uint8Array` or an `ArrayBuffer`.
pub fn is_bytes(value: Value) -> bool {
    matches!(value.kind(), Kind::Uint8Array | Kind::ArrayBuffer)
}

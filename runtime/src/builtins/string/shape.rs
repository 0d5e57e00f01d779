//! The same text in another shape: case, normal forms, padding, trimming.

use super::{Result, Value, Vm, arg, by_text, joined, receiver, room, scan};
use crate::builtins::intl::canonical_locales;
use crate::convert::is_space;
use crate::heap::{code_points, first_code_point};
use crate::symbol::known;
use icu_normalizer::{ComposingNormalizerBorrowed as Composing, DecomposingNormalizerBorrowed as Decomposing};

/// `string.isWellFormed()`
pub fn is_well_formed(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "isWellFormed")?;
    scan(vm, string)?;
    Ok(Value::bool(std::str::from_utf8(vm.heap.bytes(string)).is_ok()))
}

/// `string.normalize(form)`
pub fn normalize(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "normalize")?;
    let form = match arg(arguments, 0) {
        Value::UNDEFINED => "NFC".to_owned(),
        form => vm.to_text(form)?,
    };
    let change: fn(&str, &mut Vec<u8>) = match form.as_str() {
        "NFC" => |text, out| out.extend_from_slice(Composing::new_nfc().normalize(text).as_bytes()),
        "NFD" => |text, out| out.extend_from_slice(Decomposing::new_nfd().normalize(text).as_bytes()),
        "NFKC" => |text, out| out.extend_from_slice(Composing::new_nfkc().normalize(text).as_bytes()),
        "NFKD" => |text, out| out.extend_from_slice(Decomposing::new_nfkd().normalize(text).as_bytes()),
        _ => return Err(vm.range_error("The normalization form should be one of NFC, NFD, NFKC, NFKD.")),
    };
    changed(vm, string, 3, change)
}

/// `string.padEnd(length, fill)`
pub fn pad_end(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "padEnd")?;
    let fill = padding(vm, string, arguments)?;
    vm.concat(string, fill)
}

/// `string.padStart(length, fill)`
pub fn pad_start(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "padStart")?;
    let fill = padding(vm, string, arguments)?;
    vm.concat(fill, string)
}

/// Padding that is made in one go.
const SHORT: u64 = 64;

/// What is missing to a length.
fn padding(vm: &mut Vm, string: Value, arguments: &[Value]) -> Result {
    let length = vm.to_integer(arg(arguments, 0))?;
    let has = f64::from(vm.heap.str(string).units);
    if length <= has {
        return Ok(vm.symbol_string(known::EMPTY));
    }
    let filler = match arg(arguments, 1) {
        Value::UNDEFINED => vm.string(" "),
        filler => vm.to_string(filler)?,
    };
    let step = u64::from(vm.heap.str(filler).units);
    if step == 0 {
        return Ok(filler);
    }
    // As many as fit, and a part of one more. The cast saturates, and `room` refuses.
    room(vm, length as u64, 0)?;
    let missing = (length - has) as u64;
    if missing <= SHORT && vm.heap.str(filler).is_ascii() {
        let mut out = vm.heap.scratch();
        out.extend(vm.heap.bytes(filler).iter().cycle().take(missing as usize));
        return Ok(vm.heap.written(out));
    }
    let whole = repeated(vm, filler, missing / step)?;
    let rest = super::part(vm, filler, 0, (missing % step) as usize)?;
    vm.concat(whole, rest)
}

/// `string.repeat(count)`
pub fn repeat(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "repeat")?;
    let argument = arg(arguments, 0);
    let count = vm.to_integer(argument)?;
    if !(0.0..f64::INFINITY).contains(&count) {
        let text = vm.to_text(argument)?;
        return Err(vm.range_error(&format!("Invalid count value: {text}")));
    }
    repeated(vm, string, count as u64)
}

fn repeated(vm: &mut Vm, string: Value, count: u64) -> Result {
    let header = vm.heap.str(string);
    if count == 0 || header.bytes == 0 {
        return Ok(vm.symbol_string(known::EMPTY));
    }
    room(vm, count.saturating_mul(header.units.into()), count.saturating_mul(header.bytes.into()))?;
    let bytes = vm.heap.bytes(string).repeat(count as usize);
    Ok(vm.heap.take_string(joined(bytes)))
}

/// `string.toLocaleLowerCase()`, in the one locale there is
pub fn to_locale_lower_case(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "toLocaleLowerCase")?;
    canonical_locales(vm, arg(arguments, 0))?;
    lower(vm, string)
}

/// `string.toLocaleUpperCase()`, in the one locale there is
pub fn to_locale_upper_case(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "toLocaleUpperCase")?;
    canonical_locales(vm, arg(arguments, 0))?;
    upper(vm, string)
}

/// `string.toLowerCase()`
pub fn to_lower_case(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "toLowerCase")?;
    lower(vm, string)
}

/// `string.toUpperCase()`
pub fn to_upper_case(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "toUpperCase")?;
    upper(vm, string)
}

fn lower(vm: &mut Vm, string: Value) -> Result {
    if vm.heap.str(string).is_ascii() {
        return ascii(vm, string, u8::is_ascii_uppercase, <[u8]>::make_ascii_lowercase);
    }
    changed(vm, string, 3, |text, out| out.extend_from_slice(text.to_lowercase().as_bytes()))
}

fn upper(vm: &mut Vm, string: Value) -> Result {
    if vm.heap.str(string).is_ascii() {
        return ascii(vm, string, u8::is_ascii_lowercase, <[u8]>::make_ascii_uppercase);
    }
    changed(vm, string, 3, |text, out| out.extend_from_slice(text.to_uppercase().as_bytes()))
}

/// Change the case of ASCII, where it needs changing.
fn ascii(vm: &mut Vm, string: Value, other: fn(&u8) -> bool, change: fn(&mut [u8])) -> Result {
    scan(vm, string)?;
    if !vm.heap.bytes(string).iter().any(other) {
        return Ok(string);
    }
    vm.reserve(vm.heap.str(string).bytes as usize)?;
    Ok(vm.heap.changed_ascii(string, change))
}

/// `string.toWellFormed()`
pub fn to_well_formed(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "toWellFormed")?;
    scan(vm, string)?;
    if std::str::from_utf8(vm.heap.bytes(string)).is_ok() {
        return Ok(string);
    }
    vm.reserve(vm.heap.str(string).bytes as usize)?;
    let bytes = vm.heap.text(string).into_owned().into_bytes();
    Ok(vm.heap.take_string(bytes))
}

/// `string.trim()`
pub fn trim(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "trim")?;
    trimmed(vm, string, true, true)
}

/// `string.trimEnd()`
pub fn trim_end(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "trimRight")?;
    trimmed(vm, string, false, true)
}

/// `string.trimStart()`
pub fn trim_start(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "trimLeft")?;
    trimmed(vm, string, true, false)
}

fn trimmed(vm: &mut Vm, string: Value, at_start: bool, at_end: bool) -> Result {
    let bytes = vm.heap.bytes(string);
    let (mut start, mut end) = (0, bytes.len());
    while at_start
        && let Some((point, length)) = first_code_point(&bytes[start..])
        && char::from_u32(point).is_some_and(is_space)
    {
        start += length;
    }
    while at_end && start < end {
        let mut last = end - 1;
        while last > start && bytes[last] & 0xC0 == 0x80 {
            last -= 1;
        }
        if !code_points(&bytes[last..end]).all(|point| char::from_u32(point).is_some_and(is_space)) {
            break;
        }
        end = last;
    }
    vm.work((bytes.len() - (end - start)) / 8)?;
    Ok(vm.heap.slice_bytes(string, start, end))
}

/// A string whose text is changed; it may become `growth` times as long.
fn changed(vm: &mut Vm, string: Value, growth: usize, change: impl FnMut(&str, &mut Vec<u8>)) -> Result {
    let length = vm.heap.str(string).bytes as usize;
    vm.work(length / 8)?;
    vm.reserve(length * growth)?;
    let bytes = by_text(vm.heap.bytes(string), change);
    Ok(vm.heap.take_string(bytes))
}

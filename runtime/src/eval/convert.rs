//! Conversions between types (ECMAScript 7.1) and the comparisons of values (7.2).

use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::text::wtf8::code_points;
use crate::value::atom::known;
use crate::value::numeric::{NumberText, small_integer, text_number};
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use num_bigint::BigInt;
use num_traits::ToPrimitive as _;
use std::cmp::Ordering;

/// The hint of ToPrimitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// `default`
    Default,
    /// A number.
    Number,
    /// A string.
    String,
}

impl Vm {
    /// `typeof value`
    pub fn type_of(&self, value: Value) -> &'static str {
        match value.kind() {
            Kind::Number => "number",
            Kind::Undefined | Kind::Empty | Kind::Unread | Kind::Cell => "undefined",
            Kind::Boolean => "boolean",
            Kind::String => "string",
            Kind::BigInt => "bigint",
            Kind::Function | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => "function",
            Kind::Native if self.realm.registry.natives[value.index()].is_function() => "function",
            Kind::Null
            | Kind::Object
            | Kind::Array
            | Kind::Native
            | Kind::Map
            | Kind::Set
            | Kind::Promise
            | Kind::Iterator
            | Kind::InternalSlots
            | Kind::ArrayBuffer
            | Kind::Uint8Array
            | Kind::App => "object",
        }
    }

    /// ToBoolean.
    #[inline(always)]
    pub fn truthy(&self, value: Value) -> bool {
        if value.is_bool() { value == Value::TRUE } else { truthy_slow(self, value) }
    }

    /// To a string value.
    #[inline]
    pub fn to_string(&mut self, value: Value) -> Result {
        if value.is_string() { Ok(value) } else { to_string_slow(self, value) }
    }

    /// To a number; a BigInt is a `TypeError`.
    #[inline]
    pub fn to_number(&mut self, value: Value) -> Result<f64> {
        if value.is_number() { Ok(value.as_number()) } else { to_number_slow(self, value) }
    }

    /// To a Number or BigInt value.
    pub fn to_numeric(&mut self, value: Value) -> Result {
        if value.is_number() {
            return Ok(value);
        }
        let primitive = self.to_primitive(value, Hint::Number)?;
        if primitive.is(Kind::BigInt) {
            return Ok(primitive);
        }
        Ok(Value::number(self.to_number(primitive)?))
    }

    /// To an integer, infinities kept, NaN as 0 (ECMAScript 7.1.5).
    pub fn to_integer(&mut self, value: Value) -> Result<f64> {
        let number = self.to_number(value)?;
        Ok(if number.is_nan() { 0.0 } else { number.trunc() + 0.0 })
    }

    /// A position relative to an end, as `slice` reads it: clamped to `0..=length`.
    pub fn to_position(&mut self, value: Value, length: usize, default: usize) -> Result<usize> {
        if value.is_undefined() {
            return Ok(default);
        }
        let number = self.to_integer(value)?;
        let length_f = length as f64;
        Ok(if number < 0.0 { (length_f + number).max(0.0) as usize } else { number.min(length_f) as usize })
    }

    /// To a primitive (ECMAScript 7.1.1). Functions of the script run nested.
    pub fn to_primitive(&mut self, value: Value, hint: Hint) -> Result {
        if !value.is_object() {
            return Ok(value);
        }
        if let Some(primitive) = self.heap.internal_slots_of(value).and_then(|slots| slots.primitive()) {
            return Ok(primitive);
        }
        if value.is(Kind::Promise) {
            unawaited::note_use(self, value, PromiseUse::Primitive, None);
        }
        let order = match hint {
            // 21.4.4.45: the default hint of a date is string.
            Hint::Default if self.heap.internal_slots_of(value).is_some_and(|slots| slots.prefers_string()) => {
                [known::TO_STRING, known::VALUE_OF]
            }
            Hint::String => [known::TO_STRING, known::VALUE_OF],
            Hint::Default | Hint::Number => [known::VALUE_OF, known::TO_STRING],
        };
        for name in order {
            let method = self.get(value, name)?;
            if method.is_callable() {
                let primitive = self.call_nested(method, value, &[])?;
                if !primitive.is_object() {
                    return Ok(primitive);
                }
            }
        }
        Err(self.type_error("Cannot convert object to primitive value"))
    }

    /// `left === right`. Comparing long values is charged as far as they are compared.
    #[inline]
    pub fn strict_equals(&mut self, left: Value, right: Value) -> Result<bool> {
        if left.is_number() && right.is_number() {
            return Ok(left.as_number() == right.as_number());
        }
        Ok(left == right || same_content(self, left, right)?)
    }

    /// `left === right`, or SameValueZero; the caller has charged.
    pub fn is_same(&self, left: Value, right: Value, nan_is_nan: bool) -> bool {
        if left.is_number() && right.is_number() {
            let (left, right) = (left.as_number(), right.as_number());
            return left == right || nan_is_nan && left.is_nan() && right.is_nan();
        }
        if left.is_string() && right.is_string() {
            return left == right || self.heap.bytes(left) == self.heap.bytes(right);
        }
        let integers = left.is(Kind::BigInt) && right.is(Kind::BigInt);
        left == right || integers && self.heap.bigints[left.index()] == self.heap.bigints[right.index()]
    }

    /// `Object.is(left, right)`
    pub fn same_value(&mut self, left: Value, right: Value) -> Result<bool> {
        if left.is_number() && right.is_number() {
            let (left, right) = (left.as_number(), right.as_number());
            return Ok(left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan());
        }
        self.strict_equals(left, right)
    }

    /// `left == right` (ECMAScript 7.2.13)
    pub fn loose_equals(&mut self, left: Value, right: Value) -> Result<bool> {
        if left.is_nullish() || right.is_nullish() {
            return Ok(left.is_nullish() && right.is_nullish());
        }
        let (a, b) = (left.kind(), right.kind());
        if a == b || left.is_object() && right.is_object() {
            return self.strict_equals(left, right);
        }
        if left.is_object() {
            let left = self.to_primitive(left, Hint::Default)?;
            return self.loose_equals(left, right);
        }
        if right.is_object() {
            let right = self.to_primitive(right, Hint::Default)?;
            return self.loose_equals(left, right);
        }
        match (a, b) {
            (Kind::BigInt, _) => bigint_equals(self, left, right),
            (_, Kind::BigInt) => bigint_equals(self, right, left),
            _ => Ok(self.to_number(left)? == self.to_number(right)?),
        }
    }

    /// The order of two strings by UTF-16 code units.
    pub fn compare_strings(&self, left: Value, right: Value) -> Ordering {
        let (a, b) = (self.heap.bytes(left), self.heap.bytes(right));
        if self.heap.str(left).is_ascii() || self.heap.str(right).is_ascii() {
            return a.cmp(b);
        }
        compare_units(a, b)
    }

    /// The same, charged for as far as they are compared.
    pub fn charged_comparison(&mut self, left: Value, right: Value) -> Result<Ordering> {
        let length = self.heap.bytes(left).len().min(self.heap.bytes(right).len());
        if length > SHORT && left != right {
            let mut at = 0;
            while at < length {
                let end = length.min(at + PIECE);
                if self.heap.bytes(left)[at..end] != self.heap.bytes(right)[at..end] {
                    break;
                }
                self.heap.charge_bytes(end - at)?;
                at = end;
            }
            // Comparing goes on at the start of a character.
            let bytes = self.heap.bytes(left);
            let other = self.heap.bytes(right);
            while at > 0 && (is_inside(bytes, at) || is_inside(other, at)) {
                at -= 1;
            }
            return Ok(compare_units(&bytes[at..], &other[at..]));
        }
        Ok(self.compare_strings(left, right))
    }
}

fn truthy_slow(vm: &Vm, value: Value) -> bool {
    match value.kind() {
        Kind::Number => {
            let number = value.as_number();
            number != 0.0 && !number.is_nan()
        }
        Kind::String => vm.heap.str(value).bytes != 0,
        Kind::BigInt => vm.heap.bigints[value.index()] != BigInt::ZERO,
        Kind::Undefined | Kind::Null | Kind::Empty => false,
        Kind::Promise => {
            unawaited::note_use(vm, value, PromiseUse::Test, None);
            true
        }
        _ => true,
    }
}

fn to_string_slow(vm: &mut Vm, value: Value) -> Result {
    Ok(match value.kind() {
        Kind::Number => {
            let number = value.as_number();
            let index = number as u32;
            // Small integers are mostly property names, whose strings are cached.
            if f64::from(index) == number && index < 256 && (index != 0 || number.is_sign_positive()) {
                return Ok(vm.key_string(crate::eval::property::PropertyKey::Index(index)));
            }
            vm.heap.new_ascii(NumberText::default().format(number).as_bytes())
        }
        Kind::Undefined | Kind::Empty | Kind::Unread | Kind::Cell => vm.heap.atom_string(known::UNDEFINED),
        Kind::Null => vm.heap.atom_string(known::NULL),
        Kind::Boolean => vm.heap.atom_string(if value == Value::TRUE { known::TRUE } else { known::FALSE }),
        Kind::BigInt => {
            let text = crate::eval::bigint::text(vm, value, 10)?;
            vm.heap.take_string(text.into_bytes())
        }
        Kind::String => value,
        _ => {
            let primitive = vm.to_primitive(value, Hint::String)?;
            vm.to_string(primitive)?
        }
    })
}

fn to_number_slow(vm: &mut Vm, value: Value) -> Result<f64> {
    Ok(match value.kind() {
        Kind::Number => value.as_number(),
        Kind::Undefined | Kind::Empty | Kind::Unread | Kind::Cell => f64::NAN,
        Kind::Null => 0.0,
        Kind::Boolean => f64::from(u8::from(value == Value::TRUE)),
        Kind::String => match small_integer(vm.heap.bytes(value)) {
            Some(number) => number,
            // Nothing with a lone surrogate is a number.
            None => std::str::from_utf8(vm.heap.charged_bytes(value)?).map_or(f64::NAN, text_number),
        },
        Kind::BigInt => return Err(vm.type_error("Cannot convert a BigInt value to a number")),
        _ => {
            let primitive = vm.to_primitive(value, Hint::Number)?;
            vm.to_number(primitive)?
        }
    })
}

/// Whether two strings or two BigInts have the same content.
fn same_content(vm: &mut Vm, left: Value, right: Value) -> Result<bool> {
    if left.is_string() && right.is_string() {
        let (a, b) = (vm.heap.bytes(left), vm.heap.bytes(right));
        if a.len() <= SHORT || a.len() != b.len() {
            return Ok(a == b);
        }
        return same_long_content(vm, left, right);
    }
    if !left.is(Kind::BigInt) || !right.is(Kind::BigInt) {
        if left.is(Kind::Promise) || right.is(Kind::Promise) {
            unawaited::note_compared(vm, left, right, None);
        }
        return Ok(false);
    }
    let (a, b) = (&vm.heap.bigints[left.index()], &vm.heap.bigints[right.index()]);
    if a.bits() != b.bits() {
        return Ok(false);
    }
    vm.heap.charged_bigint(left)?;
    Ok(vm.heap.bigints[left.index()] == vm.heap.bigints[right.index()])
}

/// Whether two long strings of one length are the same.
#[inline(never)]
fn same_long_content(vm: &mut Vm, left: Value, right: Value) -> Result<bool> {
    let position = vm.heap.buffer_position(left);
    if position.is_some() && position == vm.heap.buffer_position(right) {
        return Ok(true);
    }
    let length = vm.heap.bytes(left).len();
    let mut at = 0;
    while at < length {
        let end = length.min(at + PIECE);
        if vm.heap.bytes(left)[at..end] != vm.heap.bytes(right)[at..end] {
            return Ok(false);
        }
        vm.heap.charge_bytes(end - at)?;
        at = end;
    }
    Ok(true)
}

fn bigint_equals(vm: &mut Vm, bigint: Value, other: Value) -> Result<bool> {
    if other.is_string() {
        let parsed = crate::eval::bigint::parse(vm, other)?;
        return Ok(parsed.is_some_and(|parsed| parsed == vm.heap.bigints[bigint.index()]));
    }
    let number = vm.to_number(other)?;
    vm.heap.charged_bigint(bigint)?;
    let exact = vm.heap.bigints[bigint.index()].to_f64().unwrap_or(f64::NAN);
    Ok(number.fract() == 0.0
        && number == exact
        && num_traits::FromPrimitive::from_f64(number).is_some_and(|n: BigInt| n == vm.heap.bigints[bigint.index()]))
}

/// Strings that are not longer are compared at once.
const SHORT: usize = 256;
/// Bytes that are compared between two charges.
const PIECE: usize = 64 << 10;

/// The order of WTF-8 by UTF-16 code units: pairs of surrogates come before U+E000, while bytes order by code point.
fn compare_units(a: &[u8], b: &[u8]) -> Ordering {
    const BLOCK: usize = 64;
    let same = a.chunks(BLOCK).zip(b.chunks(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let mut at = same.min(a.len()).min(b.len());
    at += a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count();
    // Both are the same before, so both have a character that begins at the same position.
    while at > 0 && (is_inside(a, at) || is_inside(b, at)) {
        at -= 1;
    }
    units_from(&a[at..]).cmp(units_from(&b[at..]))
}

/// Whether a position is within a character.
fn is_inside(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80)
}

/// The UTF-16 code units of WTF-8, one after the other.
fn units_from(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    code_points(bytes).flat_map(|point| {
        let (first, second) = match u16::try_from(point) {
            Ok(unit) => (unit, None),
            Err(_) => {
                let offset = point - 0x10000;
                (0xD800 | (offset >> 10) as u16, Some(0xDC00 | (offset & 0x3FF) as u16))
            }
        };
        std::iter::once(first).chain(second)
    })
}

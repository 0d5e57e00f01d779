//! Operators on values of any type (ECMAScript 13.5 to 13.12). Nodes try numbers first.

use crate::eval::convert::Hint;
use crate::eval::generator;
use crate::eval::vm::Vm;
use crate::heap::object::NULL_PROTOTYPE;
use crate::heap::{Class, Str};
use crate::interface::outcome::MAX_MESSAGE_BYTES;
use crate::value::numeric::{NumberText, as_int32, near_int32, to_int32};
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use agentscript_lang::program::{Binary, Unary};
use num_bigint::BigInt;
use num_traits::ToPrimitive as _;
use std::cmp::Ordering;

/// An operator with two numbers.
#[inline(always)]
pub fn arithmetic(operator: Binary, left: f64, right: f64) -> Value {
    match operator {
        Binary::Add => Value::number(left + right),
        Binary::Subtract => Value::number(left - right),
        Binary::Multiply => Value::number(left * right),
        Binary::Divide => Value::number(left / right),
        Binary::Remainder => Value::number(remainder(left, right)),
        Binary::Power => Value::number(power(left, right)),
        Binary::BitAnd => Value::number(f64::from(to_int32(left) & to_int32(right))),
        Binary::BitOr => Value::number(f64::from(to_int32(left) | to_int32(right))),
        Binary::BitXor => Value::number(f64::from(to_int32(left) ^ to_int32(right))),
        Binary::ShiftLeft => Value::number(f64::from(to_int32(left).wrapping_shl(to_int32(right) as u32))),
        Binary::ShiftRight => Value::number(f64::from(to_int32(left).wrapping_shr(to_int32(right) as u32))),
        Binary::ShiftRightUnsigned => {
            Value::number(f64::from((to_int32(left) as u32).wrapping_shr(to_int32(right) as u32)))
        }
        // Numbers are no objects; the slow path throws the error.
        comparison => Value::bool(compare(comparison, left, right) == Some(true)),
    }
}

/// The usual case of arithmetic, without a look at the types: the result of two numbers, if that is not NaN and takes no long
/// computation. A value of another type is a NaN as a double, and so is all that arithmetic makes of it.
#[inline(always)]
pub fn quick_arithmetic(operator: Binary, left: f64, right: f64) -> Option<f64> {
    Some(match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Remainder => near_remainder(left, right)?,
        Binary::BitAnd => f64::from(near_int32(left)? & near_int32(right)?),
        Binary::BitOr => f64::from(near_int32(left)? | near_int32(right)?),
        Binary::BitXor => f64::from(near_int32(left)? ^ near_int32(right)?),
        Binary::ShiftLeft => f64::from(near_int32(left)?.wrapping_shl(near_int32(right)? as u32)),
        Binary::ShiftRight => f64::from(near_int32(left)?.wrapping_shr(near_int32(right)? as u32)),
        Binary::ShiftRightUnsigned => f64::from((near_int32(left)? as u32).wrapping_shr(near_int32(right)? as u32)),
        _ => return None,
    })
    .filter(|number| !number.is_nan())
}

/// A comparison of two numbers; `None` for other operators.
#[inline(always)]
pub fn compare(operator: Binary, left: f64, right: f64) -> Option<bool> {
    match operator {
        Binary::Equal | Binary::StrictEqual => Some(left == right),
        Binary::NotEqual | Binary::StrictNotEqual => Some(left != right),
        Binary::Less => Some(left < right),
        Binary::LessEqual => Some(left <= right),
        Binary::Greater => Some(left > right),
        Binary::GreaterEqual => Some(left >= right),
        _ => None,
    }
}

/// `left % right`
#[inline(always)]
pub fn remainder(left: f64, right: f64) -> f64 {
    near_remainder(left, right).unwrap_or_else(|| far_remainder(left, right))
}

/// `left % right` of integers of 32 bits.
#[inline(always)]
fn near_remainder(left: f64, right: f64) -> Option<f64> {
    let (a, b) = (as_int32(left)?, as_int32(right).filter(|&b| b != 0)?);
    // The result has the sign of the dividend, zero included.
    Some(f64::from(a.unsigned_abs() % b.unsigned_abs()).copysign(left))
}

#[inline(never)]
fn far_remainder(left: f64, right: f64) -> f64 {
    const EXACT: f64 = (1_u64 << 53) as f64;
    if left.abs() < EXACT && right.abs() < EXACT && right.abs() >= 1.0 {
        let (a, b) = (left as i64, right as i64);
        if a as f64 == left && b as f64 == right {
            return ((a % b) as f64).abs().copysign(left);
        }
    }
    left % right
}

/// `base ** exponent`: unlike IEEE, 1 to a NaN or infinite power is NaN (ECMAScript 6.1.6.1.3).
pub fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || exponent.is_infinite() && base.abs() == 1.0 {
        return f64::NAN;
    }
    crate::value::fdlibm::pow(base, exponent)
}

impl Vm {
    /// `left operator right` for any values.
    pub fn binary(&mut self, operator: Binary, left: Value, right: Value) -> Result {
        let numbers = left.is_number() && right.is_number();
        match operator {
            Binary::In => self.contains(left, right).map(Value::bool),
            Binary::Instanceof => instance_of(self, left, right).map(Value::bool),
            _ if numbers => Ok(arithmetic(operator, left.as_number(), right.as_number())),
            Binary::Add => self.add(left, right),
            Binary::StrictEqual => self.strict_equals(left, right).map(Value::bool),
            Binary::StrictNotEqual => self.strict_equals(left, right).map(|equal| Value::bool(!equal)),
            Binary::Equal => self.loose_equals(left, right).map(Value::bool),
            Binary::NotEqual => self.loose_equals(left, right).map(|equal| Value::bool(!equal)),
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                self.compare(operator, left, right).map(Value::bool)
            }
            _ => numeric(self, operator, left, right),
        }
    }

    /// `left + right`
    pub fn add(&mut self, left: Value, right: Value) -> Result {
        let (left, right) = if left.is_object() || right.is_object() {
            let left = self.to_primitive(left, Hint::Default)?;
            (left, self.to_primitive(right, Hint::Default)?)
        } else {
            (left, right)
        };
        if left.is_string() && right.is_number() {
            let mut text = NumberText::default();
            let text = text.format(right.as_number()).as_bytes();
            check_concat(self, left, text.len() as u32, text.len() as u32)?;
            return Ok(self.heap.concat_ascii(left, text));
        }
        if left.is_string() || right.is_string() {
            let left = self.to_string(left)?;
            let right = self.to_string(right)?;
            return self.concat(left, right);
        }
        numeric(self, Binary::Add, left, right)
    }

    /// `left + right` for strings.
    pub fn concat(&mut self, left: Value, right: Value) -> Result {
        let Str { bytes, units, .. } = self.heap.str(right);
        check_concat(self, left, bytes, units)?;
        Ok(self.heap.concat(left, right))
    }

    /// `<`, `<=`, `>`, `>=` (ECMAScript 7.2.12)
    fn compare(&mut self, operator: Binary, left: Value, right: Value) -> Result<bool> {
        let left = self.to_primitive(left, Hint::Number)?;
        let right = self.to_primitive(right, Hint::Number)?;
        let order = if left.is_string() && right.is_string() {
            Some(self.charged_comparison(left, right)?)
        } else if left.is(Kind::BigInt) || right.is(Kind::BigInt) {
            compare_bigint(self, left, right)?
        } else {
            let left = self.to_number(left)?;
            left.partial_cmp(&self.to_number(right)?)
        };
        Ok(match operator {
            Binary::Less => order == Some(Ordering::Less),
            Binary::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Binary::Greater => order == Some(Ordering::Greater),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        })
    }

    /// `key in object`
    fn contains(&mut self, key: Value, object: Value) -> Result<bool> {
        if !object.is_object() {
            let (key, text) = (self.describe(key), self.describe(object));
            return Err(self.type_error(&format!("Cannot use 'in' operator to search for '{key}' in {text}")));
        }
        let key = self.to_property_key(key)?;
        self.has_property(object, key)
    }

    /// The text of a value for messages, without running functions of the script; a long one is cut.
    pub fn to_text_lossy(&mut self, value: Value) -> String {
        match value.is_object() {
            true => self.object_tag(value),
            false => self.short_text(value, MAX_MESSAGE_BYTES).unwrap_or_default(),
        }
    }

    /// A prefix operator on any value.
    pub fn unary(&mut self, operator: Unary, value: Value) -> Result {
        Ok(match operator {
            Unary::Not => Value::bool(!self.truthy(value)),
            Unary::Void => Value::UNDEFINED,
            Unary::Typeof => {
                let name = self.heap.intern_text(self.type_of(value));
                self.heap.atom_string(name)
            }
            Unary::Plus => Value::number(self.to_number(value)?),
            Unary::ToNumeric => self.to_numeric(value)?,
            Unary::ToPropertyKey => {
                if value.is_number() {
                    return Ok(value);
                }
                self.to_string(value)?
            }
            Unary::Minus | Unary::BitNot | Unary::Increment | Unary::Decrement => {
                let value = self.to_numeric(value)?;
                if value.is(Kind::BigInt) {
                    return crate::eval::bigint::unary(self, operator, value);
                }
                let number = value.as_number();
                Value::number(match operator {
                    Unary::Minus => -number,
                    Unary::BitNot => f64::from(!to_int32(number)),
                    Unary::Increment => number + 1.0,
                    _ => number - 1.0,
                })
            }
        })
    }
}

/// Check the maximum length and the memory limit for a string that gets longer.
#[inline]
fn check_concat(vm: &mut Vm, left: Value, bytes: u32, units: u32) -> Result<()> {
    let left = vm.heap.str(left);
    if u64::from(left.units) + u64::from(units) > MAX_STRING {
        return Err(vm.range_error("Invalid string length"));
    }
    let all = (left.bytes + bytes) as usize;
    if all > 1024 {
        if vm.reserve(all).is_err() {
            reserve_to_append(vm, left, bytes as usize)?;
        }
        vm.work(bytes as usize / 64)?;
    }
    Ok(())
}

/// Check the memory limit for appending so many bytes to a string.
#[cold]
fn reserve_to_append(vm: &mut Vm, left: Str, more: usize) -> Result<()> {
    vm.reserve(vm.heap.bytes_to_append(left, more))
}

fn numeric(vm: &mut Vm, operator: Binary, left: Value, right: Value) -> Result {
    let left = vm.to_numeric(left)?;
    let right = vm.to_numeric(right)?;
    match (left.is(Kind::BigInt), right.is(Kind::BigInt)) {
        (false, false) => Ok(arithmetic(operator, left.as_number(), right.as_number())),
        (true, true) => crate::eval::bigint::binary(vm, operator, left, right),
        _ => Err(vm.type_error("Cannot mix BigInt and other types, use explicit conversions")),
    }
}

fn compare_bigint(vm: &mut Vm, left: Value, right: Value) -> Result<Option<Ordering>> {
    let left = mathematical(vm, left)?;
    let right = mathematical(vm, right)?;
    let bigint = |value: Value| value.is(Kind::BigInt).then(|| &vm.heap.bigints[value.index()]);
    Ok(match (bigint(left), bigint(right)) {
        (Some(left), Some(right)) => left.cmp(right),
        (Some(left), None) => return Ok(compare_exact(left, right.as_number())),
        (None, Some(right)) => return Ok(compare_exact(right, left.as_number()).map(Ordering::reverse)),
        (None, None) => return Ok(left.as_number().partial_cmp(&right.as_number())),
    }
    .into())
}

/// A value as a BigInt or number, to be compared with a BigInt.
fn mathematical(vm: &mut Vm, value: Value) -> Result {
    Ok(match value.kind() {
        Kind::BigInt => {
            vm.heap.charged_bigint(value)?;
            value
        }
        Kind::String => match crate::eval::bigint::parse(vm, value)? {
            Some(integer) => vm.heap.new_bigint(integer),
            None => Value::NAN,
        },
        _ => Value::number(vm.to_number(value)?),
    })
}

/// `value instanceof constructor`
fn instance_of(vm: &mut Vm, value: Value, constructor: Value) -> Result<bool> {
    if vm.type_of(constructor) != "function" {
        return Err(vm.type_error(if constructor.is_object() {
            "Right-hand side of 'instanceof' is not callable"
        } else {
            "Right-hand side of 'instanceof' is not an object"
        }));
    }
    if !value.is_object() {
        return Ok(false);
    }
    if constructor.is(Kind::NativeClosure)
        && let Some((target, _)) = vm.heap.applied(constructor)
    {
        return instance_of(vm, value, target);
    }
    if !has_prototype(vm, constructor) {
        return Err(vm.type_error("Function has non-object prototype 'undefined' in instanceof check"));
    }
    if !constructor.is(Kind::Native) {
        return Ok(generator::is_made_by(vm, value, constructor));
    }
    let name = vm.realm.registry.natives[constructor.index()].name;
    Ok(match name {
        "Object" => !(value.is(Kind::Object) && vm.heap.flags(value) & NULL_PROTOTYPE != 0),
        "Function" => value.is_callable(),
        "Array" => value.is(Kind::Array),
        "Map" => value.is(Kind::Map),
        "Set" => value.is(Kind::Set),
        "Promise" => value.is(Kind::Promise),
        "ArrayBuffer" => value.is(Kind::ArrayBuffer),
        "Uint8Array" => value.is(Kind::Uint8Array),
        _ if value.is(Kind::InternalSlots) => {
            vm.heap.internal_slots_of(value).is_some_and(|slots| slots.class() == name)
        }
        _ if value.is(Kind::Object) => {
            let class = vm.heap.class(value);
            class.is_error() && (name == "Error" || class.name() == name) && class != Class::Plain
        }
        _ => false,
    })
}

/// Whether a function would have a `prototype`: whether it could be a constructor in JavaScript.
fn has_prototype(vm: &Vm, function: Value) -> bool {
    match function.kind() {
        Kind::Function => {
            let function = vm.realm.function(vm.heap.closures[function.index()].code);
            function.is_generator || !function.is_async && !function.is_arrow
        }
        // Constructors have capitalized names.
        Kind::Native => {
            vm.realm.registry.natives[function.index()].name.starts_with(|first: char| first.is_ascii_uppercase())
        }
        _ => false,
    }
}

/// Longest string in UTF-16 code units, as in V8.
pub const MAX_STRING: u64 = (1 << 29) - 24;

/// The order of an integer and a double, without rounding the integer.
fn compare_exact(integer: &BigInt, number: f64) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    if number.is_infinite() {
        return Some(if number > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let floor: BigInt = num_traits::FromPrimitive::from_f64(number.floor())?;
    Some(integer.cmp(&floor).then_with(|| if number.fract() == 0.0 { Ordering::Equal } else { Ordering::Less }))
}

/// The number nearest to an integer.
pub fn bigint_number(integer: &BigInt) -> f64 {
    integer.to_f64().unwrap_or(f64::NAN)
}

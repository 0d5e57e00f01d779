//! The methods of other types that follow a locale.

use super::collator::locale_compare;
use super::date_time_format::{Wanted, locale_text};
use super::{case, number_format};
use crate::builtins::{Row, arg, bigint, date, native, number, prelude, string};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;

/// The methods by type.
pub const METHODS: &[(Family, &[Row])] = &[
    (Family::Array, &[prelude("toLocaleString", 0, "Array_toLocaleString")]),
    (Family::BigInt, &[native("toLocaleString", 0, bigint_to_locale_string)]),
    (
        Family::Date,
        &[
            native("toLocaleDateString", 0, date_to_locale_date_string),
            native("toLocaleString", 0, date_to_locale_string),
            native("toLocaleTimeString", 0, date_to_locale_time_string),
        ],
    ),
    (Family::Number, &[native("toLocaleString", 0, number_to_locale_string)]),
    (Family::Object, &[prelude("toLocaleString", 0, "Object_toLocaleString")]),
    (
        Family::String,
        &[
            native("localeCompare", 1, string_locale_compare),
            native("toLocaleLowerCase", 0, case::to_locale_lower_case),
            native("toLocaleUpperCase", 0, case::to_locale_upper_case),
        ],
    ),
    (Family::Uint8Array, &[prelude("toLocaleString", 0, "Uint8Array_toLocaleString")]),
];

/// `bigint.toLocaleString(locales, options)`
fn bigint_to_locale_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let this = bigint::receiver(vm, this, "toLocaleString")?;
    number_format::to_locale_string(vm, this, arguments, "BigInt.prototype.toLocaleString")
}

/// `date.toLocaleDateString(locales, options)`
fn date_to_locale_date_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    date_text(vm, this, arguments, Wanted::Date, "toLocaleDateString")
}

/// `date.toLocaleString(locales, options)`
fn date_to_locale_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    date_text(vm, this, arguments, Wanted::Any, "toLocaleString")
}

/// `date.toLocaleTimeString(locales, options)`
fn date_to_locale_time_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    date_text(vm, this, arguments, Wanted::Time, "toLocaleTimeString")
}

fn date_text(vm: &mut Vm, this: Value, arguments: &[Value], wanted: Wanted, method: &str) -> Result {
    date::check_date(vm, this, method)?;
    let time = date::this_time(vm, this)?;
    if time.is_nan() {
        return Ok(vm.heap.string(date::INVALID));
    }
    let text = locale_text(vm, time, arg(arguments, 0), arg(arguments, 1), wanted)?;
    Ok(vm.heap.string(&text))
}

/// `number.toLocaleString(locales, options)`
fn number_to_locale_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    number::receiver(vm, this, "toLocaleString")?;
    number_format::to_locale_string(vm, this, arguments, "Number.prototype.toLocaleString")
}

/// `string.localeCompare(other, locales, options)`
fn string_locale_compare(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let left = string::receiver(vm, this, "localeCompare")?;
    let right = vm.to_string(arg(arguments, 0))?;
    locale_compare(vm, left, right, arguments)
}

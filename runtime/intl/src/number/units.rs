//! The units that ECMA-402 allows (6.6.2).

/// Whether ECMA-402 allows a unit: a simple one, or two of them as in `kilometer-per-hour`.
pub fn is_unit(unit: &str) -> bool {
    is_simple(unit) || unit.split_once("-per-").is_some_and(|(a, b)| is_simple(a) && is_simple(b))
}

fn is_simple(unit: &str) -> bool {
    UNITS.binary_search(&unit).is_ok()
}

const UNITS: &[&str] = &[
    "acre",
    "bit",
    "byte",
    "celsius",
    "centimeter",
    "day",
    "degree",
    "fahrenheit",
    "fluid-ounce",
    "foot",
    "gallon",
    "gigabit",
    "gigabyte",
    "gram",
    "hectare",
    "hour",
    "inch",
    "kilobit",
    "kilobyte",
    "kilogram",
    "kilometer",
    "liter",
    "megabit",
    "megabyte",
    "meter",
    "microsecond",
    "mile",
    "mile-scandinavian",
    "milliliter",
    "millimeter",
    "millisecond",
    "minute",
    "month",
    "nanosecond",
    "ounce",
    "percent",
    "petabyte",
    "pound",
    "second",
    "stone",
    "terabit",
    "terabyte",
    "week",
    "yard",
    "year",
];

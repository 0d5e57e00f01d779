//! Relative times (ECMA-402 18).
//!
//! charged: by the callers, by the digits of the number

use crate::number::{NumberFormat, Part, Quantity};
use crate::pack::{self, FIELD, PHRASES};

/// The values of the option `style`.
pub const STYLES: &[&str] = &["long", "short", "narrow"];
/// The values of the option `numeric`.
pub const NUMERIC: &[&str] = &["always", "auto"];
const UNITS: &[&str] = &["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

/// The unit of a name, in the singular or the plural.
pub fn unit(name: &str) -> Option<&'static str> {
    let singular = name.strip_suffix('s').unwrap_or(name);
    UNITS.iter().copied().find(|unit| *unit == name || *unit == singular)
}

/// The letter of a style in keys.
const LETTERS: [&str; 3] = ["l", "s", "n"];

/// The parts of a number of units; `style` is an index of [`STYLES`], `quantity` the absolute value.
pub fn parts(format: &NumberFormat, style: usize, unit: &str, quantity: &Quantity, is_past: bool) -> Vec<Part> {
    let direction = if is_past { '-' } else { '+' };
    let key = format!("{direction}/{unit}/{}", LETTERS[style]);
    let forms = PHRASES.get(format.data_locale(), &key).unwrap_or_default();
    let pattern = pack::form(forms, format.plural_of(quantity, false)).unwrap_or("{0}");
    let Some((before, behind)) = pattern.split_once("{0}") else { return vec![("literal", pattern.into())] };
    let around = |text: &'static str| (!text.is_empty()).then(|| ("literal", text.into()));
    around(before).into_iter().chain(format.parts(quantity)).chain(around(behind)).collect()
}

/// The word for a number of units, such as "yesterday". As in ICU, numbers nearly as large have it too.
pub fn named(format: &NumberFormat, style: usize, unit: &str, number: f64) -> Option<&'static str> {
    if number.abs() >= 2.1 {
        return None;
    }
    let hundredths = (number * 100.0 + if number < 0.0 { -0.5 } else { 0.5 }).trunc();
    if hundredths % 100.0 != 0.0 {
        return None;
    }
    let wanted = (hundredths / 100.0) as i32;
    let words = PHRASES.get(format.data_locale(), &format!("=/{unit}/{}", LETTERS[style]))?;
    words.split(FIELD).find_map(|word| {
        let (value, text) = word.split_once(' ')?;
        (value.parse() == Ok(wanted)).then_some(text)
    })
}

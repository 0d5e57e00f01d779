//! `formatRange`: two numbers with a dash, what stands around both written once where ICU does so.

use super::decimal::Quantity;
use super::pattern::{Formatted, Part, unit_parts};
use super::{NumberFormat, Style, quantity, receiver};
use crate::builtins::arg;
use crate::builtins::intl::parts_value;
use crate::error::Result;
use crate::value::Value;
use crate::vm::Vm;

/// A part, and of which of the numbers it is.
type Sourced = (Part, &'static str);

/// `format.formatRange(start, end)`
pub fn format_range(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let parts = parts(vm, this, arguments, "formatRange")?;
    let text: String = parts.iter().map(|((_, text), _)| &**text).collect();
    Ok(vm.string(&text))
}

/// `format.formatRangeToParts(start, end)`
pub fn format_range_to_parts(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let parts = parts(vm, this, arguments, "formatRangeToParts")?;
    let parts: Vec<(&str, &str, Option<&str>)> =
        parts.iter().map(|((kind, text), source)| (*kind, &**text, Some(*source))).collect();
    Ok(parts_value(vm, &parts))
}

fn parts(vm: &mut Vm, this: Value, arguments: &[Value], method: &str) -> Result<Vec<Sourced>> {
    let format = receiver(vm, this, method)?;
    for (index, name) in ["start", "end"].into_iter().enumerate() {
        if arg(arguments, index).is_undefined() {
            return Err(vm.type_error(&format!("Invalid {name} : undefined")));
        }
    }
    let [mut start, mut end] = [Quantity::NaN, Quantity::NaN];
    for (place, (index, name)) in [&mut start, &mut end].into_iter().zip([(0, "start"), (1, "end")]) {
        *place = quantity(vm, arg(arguments, index))?;
        if matches!(place, Quantity::NaN) {
            let what = vm.to_text(arg(arguments, index))?;
            return Err(vm.range_error(&format!("Invalid {name} : {what}")));
        }
    }
    vm.work(16)?;
    Ok(range(&format, &start, &end))
}

fn range(format: &NumberFormat, start: &Quantity, end: &Quantity) -> Vec<Sourced> {
    let (first, second) = (format.format(start), format.format(end));
    let text = |formatted: &Formatted| formatted.clone().into_parts();
    if start.is_negative() == end.is_negative() && text(&first) == text(&second) {
        let mut parts = first.into_parts();
        // ICU has no place for it in a pattern with brackets.
        if !matches!(parts.first(), Some(("literal", _))) {
            parts.insert(0, ("approximatelySign", "~".into()));
        }
        return parts.into_iter().map(|part| (part, "shared")).collect();
    }
    // Sign, currency and power of ten are written once where they are the same and more than one character.
    let (around, other) = (around(&first), around(&second));
    let length: usize = around.iter().map(|(_, text)| text.chars().count()).sum();
    let once = around == other && length > 1;
    let dash = if !once && length > 0 || is_scientific(&first) { " – " } else { "–" };
    let mut out = Vec::new();
    let mut push = |parts: Vec<Part>, source| out.extend(parts.into_iter().map(|part| (part, source)));
    push(first.before, if once { "shared" } else { "startRange" });
    push(first.number, "startRange");
    if !once {
        push([first.compact, first.behind].concat(), "startRange");
    }
    push(vec![("literal", dash.into())], "shared");
    if !once {
        push(second.before, "endRange");
    }
    push(second.number, "endRange");
    push([second.compact, second.behind].concat(), if once { "shared" } else { "endRange" });
    let unit = match (second.unit.len(), format.style) {
        (1.., Style::Unit) => {
            let mut unit = Vec::new();
            unit_parts(&format.unit, format.unit_display, 1, true, &mut unit);
            unit
        }
        (1.., Style::Currency) => {
            vec![("literal", " ".into()), ("currency", format.currency_name(1).into())]
        }
        _ => second.unit,
    };
    push(unit, "shared");
    out
}

/// What stands around a number, without the space that keeps letters and digits apart.
fn around(formatted: &Formatted) -> Vec<Part> {
    let parts = [&formatted.before[..], &formatted.compact, &formatted.behind].concat();
    parts.into_iter().filter(|(_, text)| text != "\u{a0}").collect()
}

fn is_scientific(formatted: &Formatted) -> bool {
    formatted.number.iter().any(|(kind, _)| *kind == "exponentInteger")
}

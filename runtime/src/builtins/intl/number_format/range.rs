//! `formatRange`: two numbers with a dash, common affixes written once where ICU does so.

use super::{joined, quantity, receiver, room};
use crate::builtins::arg;
use crate::builtins::intl::parts_value;
use crate::eval::vm::Vm;
use crate::meter::buffer::Hold;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_intl::number::{Quantity, Sourced};

/// `format.formatRange(start, end)`
pub fn format_range(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (parts, _hold) = parts(vm, this, arguments, "formatRange")?;
    joined(vm, parts.iter().map(|((_, text), _)| &**text))
}

/// `format.formatRangeToParts(start, end)`
pub fn format_range_to_parts(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (parts, _hold) = parts(vm, this, arguments, "formatRangeToParts")?;
    parts_value(vm, parts.iter().map(|((kind, text), source)| (*kind, &**text, Some(*source))))
}

/// The parts, and what counts them.
fn parts(vm: &mut Vm, this: Value, arguments: &[Value], method: &str) -> Result<(Vec<Sourced>, Hold)> {
    let format = receiver(vm, this, method)?;
    for (index, name) in ["start", "end"].into_iter().enumerate() {
        if arg(arguments, index).is_undefined() {
            return Err(vm.type_error(&brief!("Invalid {name} : undefined")));
        }
    }
    let [mut start, mut end] = [Quantity::NaN, Quantity::NaN];
    for (index, part) in [&mut start, &mut end].into_iter().enumerate() {
        *part = quantity(vm, arg(arguments, index))?;
    }
    for (part, (index, name)) in [&start, &end].into_iter().zip([(0, "start"), (1, "end")]) {
        if matches!(part, Quantity::NaN) {
            let what = vm.describe(arg(arguments, index));
            return Err(vm.range_error(&brief!("Invalid {name} : {what}")));
        }
    }
    vm.work(16)?;
    // Each twice, to compare them.
    let mut hold = room(vm, &start)?;
    for quantity in [&start, &end, &end] {
        hold.grow(vm, quantity.cost())?;
    }
    Ok((format.range(&start, &end), hold))
}

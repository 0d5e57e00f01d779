//! `Intl.PluralRules` (ECMA-402 17).

use super::number_format::{self, plural_of};
use super::{SUPPORTED_LOCALES_OF, incompatible, needs_new};
use crate::builtins::{Body, Global, Row, arg, native};
use crate::eval::vm::Vm;
use crate::heap::InternalSlots;
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use agentscript_intl::number::NumberFormat;
use agentscript_intl::plurals::{self, CATEGORIES};

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "PluralRules",
    length: 0,
    call: Body::Native(|vm, _, _| Err(needs_new(vm, "PluralRules"))),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[
    native("resolvedOptions", 0, resolved_options),
    native("select", 1, select),
    native("selectRange", 2, select_range),
];

/// The internal slots of an `Intl.PluralRules`.
#[derive(Clone, Debug)]
pub struct PluralRules {
    /// Locale and digits.
    format: NumberFormat,
    is_ordinal: bool,
}

impl InternalSlots for PluralRules {
    fn family(&self) -> Family {
        Family::PluralRules
    }

    fn tag(&self) -> &'static str {
        "Intl.PluralRules"
    }

    fn cost(&self) -> usize {
        NumberFormat::BESIDE
    }
}

/// `new Intl.PluralRules(locales, options)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (format, is_ordinal) = number_format::for_plurals(vm, arg(arguments, 0), arg(arguments, 1))?;
    Ok(vm.heap.new_with_slots(PluralRules { format, is_ordinal }))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<PluralRules> {
    match vm.heap.slots::<PluralRules>(this) {
        Some(rules) => Ok(rules.clone()),
        _ => Err(incompatible(vm, this, "PluralRules", method)),
    }
}

/// `rules.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let rules = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &rules.format.options.locale);
    super::put_text(vm, object, "type", if rules.is_ordinal { "ordinal" } else { "cardinal" });
    for (name, digits) in rules.format.options.digit_options() {
        super::put(vm, object, name, Value::number(digits as f64));
    }
    let mut items = Buffer::new();
    for (letter, name) in CATEGORIES {
        if plurals::categories(rules.format.data_locale(), rules.is_ordinal).any(|one| one == letter) {
            let name = vm.heap.string(name);
            items.push(vm, name)?;
        }
    }
    let categories = vm.heap.array_of(items);
    super::put(vm, object, "pluralCategories", categories);
    Ok(object)
}

/// `rules.select(number)`
fn select(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let rules = receiver(vm, this, "select")?;
    let letter = rules.category(vm, arg(arguments, 0))?;
    Ok(vm.heap.string(name_of(letter)))
}

/// `rules.selectRange(start, end)`
fn select_range(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let rules = receiver(vm, this, "selectRange")?;
    for (index, name) in ["startRange", "endRange"].into_iter().enumerate() {
        if arg(arguments, index).is_undefined() {
            return Err(vm.type_error(&brief!("Invalid {name} : undefined")));
        }
    }
    let mut numbers = [Value::UNDEFINED; 2];
    for (number, index) in numbers.iter_mut().zip(0..) {
        *number = Value::number(vm.to_number(arg(arguments, index))?);
    }
    for (number, name) in numbers.into_iter().zip(["startRange", "endRange"]) {
        if number.as_number().is_nan() {
            return Err(vm.range_error(&brief!("Invalid {name} : NaN")));
        }
    }
    let (start, end) = (rules.category(vm, numbers[0])?, rules.category(vm, numbers[1])?);
    Ok(vm.heap.string(name_of(plurals::of_range(rules.format.data_locale(), start, end))))
}

impl PluralRules {
    fn category(&self, vm: &mut Vm, value: Value) -> Result<char> {
        let number = vm.to_number(value)?;
        vm.work(8)?;
        plural_of(vm, &self.format, number, self.is_ordinal)
    }
}

fn name_of(letter: char) -> &'static str {
    CATEGORIES.iter().find(|(one, _)| *one == letter).map_or("other", |&(_, name)| name)
}

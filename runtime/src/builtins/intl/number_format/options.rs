//! The options of `Intl.NumberFormat` and `Intl.PluralRules`: read, and shown as resolved.

use super::super::{MATCHERS, canonical_locales, choice, number, option, resolved_of, type_option, word};
use super::unwrapped;
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_intl::locale::{self, Resolved};
use agentscript_intl::number::{
    COMPACT_DISPLAYS, CURRENCY_DISPLAYS, CURRENCY_SIGNS, CurrencyDisplay, Grouping, INCREMENTS, MODES, Mode, NOTATIONS,
    Notation, NumberFormat, Options, PRIORITIES, Rounding, SIGN_DISPLAYS, STYLES, SignDisplay, Style, UNIT_DISPLAYS,
    ZERO_DISPLAYS, fraction_digits, is_unit,
};
use agentscript_intl::plurals;
use std::borrow::Cow;

/// Most fraction digits that can be requested.
const MAX_FRACTION: f64 = 20.0;
/// Most significant digits that can be requested.
const MAX_SIGNIFICANT: f64 = 21.0;

/// Read the options (ECMA-402 16.1.2).
pub(super) fn read(vm: &mut Vm, locales: Value, options: Value, service: &str) -> Result<NumberFormat> {
    vm.work(8)?;
    let requested = resolved_of(vm, locales, locale::available_numbers)?;
    if options == Value::NULL {
        return Err(vm.type_error(&brief!("{service} called on null or undefined")));
    }
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let (locale, numbering) = numbering(vm, &requested, options)?;
    let mut pick = Picker { vm, options, service };
    let style = pick.one_of("style", STYLES)?.unwrap_or(Style::Decimal);
    let currency = pick.currency(style)?;
    let currency_display = pick.one_of("currencyDisplay", CURRENCY_DISPLAYS)?.unwrap_or(CurrencyDisplay::Symbol);
    let accounting = pick.one_of("currencySign", CURRENCY_SIGNS)?.unwrap_or(false);
    let unit = pick.unit(style)?;
    let unit_display = pick.one_of("unitDisplay", UNIT_DISPLAYS)?.unwrap_or(0);
    // As in V8, this one is read before the others about digits, and the mode behind all options.
    let increment = pick.increment()?;
    let notation = pick.one_of("notation", NOTATIONS)?.unwrap_or(Notation::Standard);
    let (min, max) = match style {
        Style::Currency => {
            let digits = fraction_digits(&currency);
            (digits, digits)
        }
        Style::Percent => (0, 0),
        Style::Decimal | Style::Unit => (0, 3),
    };
    let digits = pick.digits(min, max, notation, increment)?;
    let strip_zeros = pick.one_of("trailingZeroDisplay", ZERO_DISPLAYS)?.unwrap_or(false);
    let compact_long = pick.one_of("compactDisplay", COMPACT_DISPLAYS)?.unwrap_or(false);
    let grouping = pick.grouping(notation)?;
    let sign_display = pick.one_of("signDisplay", SIGN_DISPLAYS)?.unwrap_or(SignDisplay::Auto);
    let mode = pick.one_of("roundingMode", MODES)?.unwrap_or(Mode::HalfExpand);
    let options = Options {
        locale,
        numbering,
        style,
        currency,
        currency_display,
        accounting,
        unit,
        unit_display,
        notation,
        compact_long,
        grouping,
        sign_display,
        min_integer: digits.min_integer,
        rounding: digits.rounding,
        mode,
        increment,
        strip_zeros,
    };
    Ok(NumberFormat::new(options, requested.locale.data))
}

/// The locale and digits of `new Intl.PluralRules(locales, options)`, and whether it is for ordinals.
pub fn for_plurals(vm: &mut Vm, locales: Value, options: Value) -> Result<(NumberFormat, bool)> {
    let service = "Intl.PluralRules";
    vm.work(8)?;
    // The locales are those that have rules; only the default locale may be another one.
    let tags = canonical_locales(vm, locales)?;
    vm.work(4 * tags.len())?;
    let found = tags.iter().find_map(|full| Some((plurals::available(locale::without_extensions(full))?, full)));
    let tag = String::from(found.map_or(locale::DEFAULT, |(tag, _)| tag));
    let is_posix =
        found.is_some_and(|(_, full)| Resolved::new(std::slice::from_ref(full)).keyword("va") == Some("posix"));
    let requested = Resolved::new(std::slice::from_ref(&tag));
    let data = plurals::without_data(&tag).unwrap_or(requested.locale.data);
    if options == Value::NULL {
        return Err(vm.type_error("Intl.PluralRules called on null or undefined"));
    }
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let is_ordinal = choice(vm, options, service, "type", &["cardinal", "ordinal"])? == Some(1);
    let digits = Picker { vm, options, service }.digits(0, 3, Notation::Standard, 1)?;
    let shown = if is_posix { tag + "-u-va-posix" } else { tag };
    // As in V8, the other options about rounding are not read.
    let plain = Options::plain(shown, requested.locale.numbering.into());
    let options = Options { min_integer: digits.min_integer, rounding: digits.rounding, ..plain };
    Ok((NumberFormat::new(options, data), is_ordinal))
}

/// The resolved tag and numbering system: that of the option, of the requested tag, or of the locale.
pub fn numbering(vm: &mut Vm, requested: &Resolved, options: Value) -> Result<(String, String)> {
    let asked = type_option(vm, options, "numberingSystem", "Invalid numberingSystem")?;
    Ok(agentscript_intl::number::numbering(requested, asked.as_deref()))
}

/// The options about digits.
struct Digits {
    min_integer: usize,
    rounding: Rounding,
}

/// Reads options.
struct Picker<'a> {
    vm: &'a mut Vm,
    options: Value,
    service: &'a str,
}

impl Picker<'_> {
    fn one_of<T: Copy>(&mut self, name: &str, table: &[(&str, T)]) -> Result<Option<T>> {
        self.one_of_in(self.service, name, table)
    }

    fn one_of_in<T: Copy>(&mut self, service: &str, name: &str, table: &[(&str, T)]) -> Result<Option<T>> {
        let words: Vec<&str> = table.iter().map(|&(word, _)| word).collect(); // bounded: a table of ours
        let index = choice(self.vm, self.options, service, name, &words)?;
        Ok(index.map(|index| table[index].1))
    }

    fn currency(&mut self, style: Style) -> Result<String> {
        let value = option(self.vm, self.options, "currency")?;
        if value.is_undefined() {
            if style == Style::Currency {
                return Err(self.vm.type_error("Currency code is required with currency style."));
            }
            return Ok(String::default());
        }
        let text = word(self.vm, value)?;
        if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Ok(text.to_ascii_uppercase());
        }
        Err(self.vm.range_error(&brief!("Invalid currency code : {text}")))
    }

    fn unit(&mut self, style: Style) -> Result<String> {
        let value = option(self.vm, self.options, "unit")?;
        if value.is_undefined() {
            if style == Style::Unit {
                return Err(self.vm.type_error(&brief!("Invalid unit argument for {}() ''", self.service)));
            }
            return Ok(String::default());
        }
        let text = word(self.vm, value)?;
        if is_unit(&text) {
            return Ok(text);
        }
        Err(self.vm.range_error(&brief!("Invalid unit argument for {}() '{text}'", self.service)))
    }

    fn increment(&mut self) -> Result<u32> {
        let increment = number(self.vm, self.options, "roundingIncrement", (1.0, 5000.0))?.unwrap_or(1.0) as u32;
        if !INCREMENTS.contains(&increment) {
            return Err(self.vm.range_error("roundingIncrement value is out of range."));
        }
        Ok(increment)
    }

    /// `SetNumberFormatDigitOptions` (ECMA-402 16.1.3)
    fn digits(&mut self, min_default: usize, max_default: usize, notation: Notation, increment: u32) -> Result<Digits> {
        let min_integer = number(self.vm, self.options, "minimumIntegerDigits", (1.0, 21.0))?.unwrap_or(1.0) as usize;
        let names =
            ["minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits"];
        let mut raw = [Value::UNDEFINED; 4];
        for (value, name) in raw.iter_mut().zip(names) {
            *value = option(self.vm, self.options, name)?;
        }
        let service = "SetNumberFormatDigitOptions";
        let priority = self.one_of_in(service, "roundingPriority", PRIORITIES)?.flatten();
        let max_default = if increment == 1 { max_default } else { min_default };
        let [has_fraction, has_significant] = [0, 2].map(|at| raw[at..at + 2].iter().any(|one| !one.is_undefined()));
        let needs_significant = priority.is_some() || has_significant;
        let needs_fraction =
            priority.is_some() || !(needs_significant || !has_fraction && notation == Notation::Compact);
        let mut significant = (1, 21);
        if needs_significant && has_significant {
            let min = self.in_range(raw[2], names[2], 1.0, MAX_SIGNIFICANT)?.unwrap_or(1);
            let max = self.in_range(raw[3], names[3], min as f64, MAX_SIGNIFICANT)?.unwrap_or(21);
            significant = (min, max);
        }
        let mut fraction = (min_default, max_default);
        if needs_fraction && has_fraction {
            let min = self.in_range(raw[0], names[0], 0.0, MAX_FRACTION)?;
            let max = self.in_range(raw[1], names[1], 0.0, MAX_FRACTION)?;
            fraction = match (min, max) {
                (None, None) => fraction,
                (None, Some(max)) => (min_default.min(max), max),
                (Some(min), None) => (min, max_default.max(min)),
                (Some(min), Some(max)) if min <= max => (min, max),
                (Some(_), Some(_)) => return Err(self.vm.range_error("maximumFractionDigits value is out of range.")),
            };
        }
        let rounding = match priority {
            None if !needs_fraction && !needs_significant => {
                Rounding::Both { fraction: (0, 0), significant: (1, 2), more: true }
            }
            None if has_significant => Rounding::Significant { min: significant.0, max: significant.1 },
            None => Rounding::Fraction { min: fraction.0, max: fraction.1 },
            Some(more) => Rounding::Both { fraction, significant, more },
        };
        if increment != 1 {
            let Rounding::Fraction { min, max } = rounding else {
                return Err(self.vm.type_error("RoundingType is not fractionDigits"));
            };
            if min != max {
                return Err(self.vm.range_error("maximumFractionDigits not equal to minimumFractionDigits"));
            }
        }
        Ok(Digits { min_integer, rounding })
    }

    fn in_range(&mut self, value: Value, name: &str, least: f64, most: f64) -> Result<Option<usize>> {
        if value.is_undefined() {
            return Ok(None);
        }
        let number = self.vm.to_number(value)?;
        if !(least..=most).contains(&number) {
            return Err(self.vm.range_error(&brief!("{name} value is out of range.")));
        }
        Ok(Some(number as usize))
    }

    fn grouping(&mut self, notation: Notation) -> Result<Grouping> {
        let default = if notation == Notation::Compact { Grouping::Min2 } else { Grouping::Auto };
        let value = option(self.vm, self.options, "useGrouping")?;
        if value.is_undefined() {
            return Ok(default);
        }
        if value == Value::TRUE {
            return Ok(Grouping::Always);
        }
        if !self.vm.truthy(value) {
            return Ok(Grouping::Never);
        }
        let text = word(self.vm, value)?;
        Ok(match text.as_str() {
            "true" | "false" => default,
            "min2" => Grouping::Min2,
            "auto" => Grouping::Auto,
            "always" => Grouping::Always,
            _ => {
                let service = self.service;
                let text = if value.is_object() { self.vm.object_tag(value) } else { text };
                let message = brief!("Value {text} out of range for {service} options property useGrouping");
                return Err(self.vm.range_error(&message));
            }
        })
    }
}

/// `format.resolvedOptions()`
pub(super) fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let format = unwrapped(vm, this, "resolvedOptions")?.options;
    let object = vm.heap.new_object();
    let mut put = |name: &str, value: Cow<'_, str>| {
        let name = vm.heap.intern_text(name);
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let value = match value.parse() {
            Ok(number) if digits => Value::number(number),
            Ok(_) | Err(_) => vm.heap.string(&value),
        };
        vm.heap.set_own(object, name, value);
    };
    put("locale", format.locale.as_str().into());
    put("numberingSystem", format.numbering.as_str().into());
    put("style", name_of(STYLES, format.style).into());
    if format.style == Style::Currency {
        put("currency", format.currency.as_str().into());
        put("currencyDisplay", name_of(CURRENCY_DISPLAYS, format.currency_display).into());
        put(
            "currencySign",
            name_of(CURRENCY_SIGNS, format.accounting && format.sign_display != SignDisplay::Never).into(),
        );
    }
    if format.style == Style::Unit {
        put("unit", format.unit.as_str().into());
        put("unitDisplay", name_of(UNIT_DISPLAYS, format.unit_display).into());
    }
    put("minimumIntegerDigits", format.min_integer.to_string().into());
    let (fraction, significant, priority) = match format.rounding {
        Rounding::Fraction { min, max } => (Some((min, max)), None, "auto"),
        Rounding::Significant { min, max } => (None, Some((min, max)), "auto"),
        Rounding::Both { fraction, significant, more } => {
            (Some(fraction), Some(significant), if more { "morePrecision" } else { "lessPrecision" })
        }
    };
    if let Some((min, max)) = significant {
        put("minimumSignificantDigits", min.to_string().into());
        put("maximumSignificantDigits", max.to_string().into());
    }
    if let Some((min, max)) = fraction {
        put("minimumFractionDigits", min.to_string().into());
        put("maximumFractionDigits", max.to_string().into());
    }
    match format.grouping {
        Grouping::Never => put("useGrouping", "false".into()),
        Grouping::Min2 => put("useGrouping", "min2".into()),
        Grouping::Auto => put("useGrouping", "auto".into()),
        Grouping::Always => put("useGrouping", "always".into()),
    }
    put("notation", name_of(NOTATIONS, format.notation).into());
    if format.notation == Notation::Compact {
        put("compactDisplay", name_of(COMPACT_DISPLAYS, format.compact_long).into());
    }
    put("signDisplay", name_of(SIGN_DISPLAYS, format.sign_display).into());
    put("roundingMode", name_of(MODES, format.mode).into());
    put("roundingIncrement", format.increment.to_string().into());
    // V8 reads this, too, back from a text, in which it takes a week for something else.
    let strips_zeros = format.strip_zeros && !format.unit.starts_with('w');
    put("trailingZeroDisplay", name_of(ZERO_DISPLAYS, strips_zeros).into());
    // As with the sign of currencies, V8 reads this back from a text of ICU that does not tell it.
    put("roundingPriority", if format.strip_zeros { "auto" } else { priority }.into());
    if format.grouping == Grouping::Never {
        let name = vm.heap.intern_text("useGrouping");
        vm.heap.set_own(object, name, Value::FALSE);
    }
    Ok(object)
}

fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, one)| *one == value).map_or("", |&(name, _)| name)
}

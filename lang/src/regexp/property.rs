//! `\p{…}`: properties of characters by the names that ECMAScript allows (22.2.2.9).

use super::CharSet;
use super::set::LAST;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup, Script};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData, PropertyParser};
use std::ops::RangeInclusive;

/// Whether a property has values: with the flags `i` and `v`, V8 folds those before it takes what does
/// not have the property.
pub(super) fn has_values(name: &str) -> bool {
    name.contains('=') || category(name).is_some()
}

/// The characters of `\p{name}` or `\p{name=value}`; nothing where there is no such property.
pub(super) fn property(name: &str, value: Option<&str>) -> Option<CharSet> {
    match (name, value) {
        ("General_Category" | "gc", Some(value)) => category(value),
        ("Script" | "sc", Some(value)) => {
            let script = PropertyParser::<Script>::new().get_strict(value)?;
            Some(set(CodePointMapData::<Script>::new().iter_ranges_for_value(script)))
        }
        ("Script_Extensions" | "scx", Some(value)) => {
            let script = PropertyParser::<Script>::new().get_strict(value)?;
            Some(set(ScriptWithExtensions::new().get_script_extensions_ranges(script)))
        }
        (_, Some(_)) => None,
        ("Any", None) => Some(CharSet::all()),
        ("ASCII", None) => Some(CharSet::new(vec![(0, 0x7F)])),
        ("Assigned", None) => category("Cn").map(|unassigned| unassigned.complement()),
        (name, None) => category(name)
            .or_else(|| CodePointSetData::new_for_ecma262(name.as_bytes()).map(|found| set(found.iter_ranges()))),
    }
}

fn category(name: &str) -> Option<CharSet> {
    let group = PropertyParser::<GeneralCategoryGroup>::new().get_strict(name)?;
    Some(set(CodePointMapData::<GeneralCategory>::new().iter_ranges_for_group(group)))
}

fn set(ranges: impl Iterator<Item = RangeInclusive<u32>>) -> CharSet {
    CharSet::new(ranges.map(|range| (*range.start(), (*range.end()).min(LAST))).collect())
}

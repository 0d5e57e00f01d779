//! `\p{…}`: properties of characters by the names that ECMAScript allows (22.2.2.9).

use super::CharSet;
use super::set::LAST;
use hashbrown::HashMap;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup, Script};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData, PropertyParser};
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// Whether a property has values: with the flags `i` and `v`, V8 folds those before it takes what does
/// not have the property.
pub(super) fn has_values(name: &str) -> bool {
    name.contains('=') || PropertyParser::<GeneralCategoryGroup>::new().get_strict(name).is_some()
}

/// The properties that were asked for: walking over all characters takes its time. There are no more
/// of them than names of properties.
static KNOWN: LazyLock<RwLock<HashMap<String, Arc<CharSet>>>> = LazyLock::new(RwLock::default);

/// Returns the characters of `\p{name}` or `\p{name=value}`; nothing where there is no such property.
pub(super) fn property(text: &str) -> Option<Arc<CharSet>> {
    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Some(Arc::clone(known));
    }
    let found = Arc::new(match text.split_once('=') {
        Some((name, value)) => with_value(name, value)?,
        None => named(text)?,
    });
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(text.into(), Arc::clone(&found));
    Some(found)
}

fn with_value(name: &str, value: &str) -> Option<CharSet> {
    // V8 does not have the script of both Japanese syllabaries.
    let is_known = !matches!(value, "Hrkt" | "Katakana_Or_Hiragana");
    let script = || PropertyParser::<Script>::new().get_strict(value).filter(|_| is_known);
    match name {
        "General_Category" | "gc" => category(value),
        "Script" | "sc" => Some(set(CodePointMapData::<Script>::new().iter_ranges_for_value(script()?))),
        "Script_Extensions" | "scx" => Some(set(ScriptWithExtensions::new().get_script_extensions_ranges(script()?))),
        _ => None,
    }
}

fn named(name: &str) -> Option<CharSet> {
    match name {
        "Any" => Some(CharSet::all()),
        "ASCII" => Some(CharSet::new(vec![(0, 0x7F)])),
        "Assigned" => category("Cn").map(|unassigned| unassigned.complement()),
        name => category(name)
            .or_else(|| CodePointSetData::new_for_ecma262(long(name).as_bytes()).map(|all| set(all.iter_ranges()))),
    }
}

/// Returns the full name for an alias that the crate does not know.
fn long(name: &str) -> &str {
    if name == "space" { "White_Space" } else { name }
}

fn category(name: &str) -> Option<CharSet> {
    let group = PropertyParser::<GeneralCategoryGroup>::new().get_strict(name)?;
    Some(set(CodePointMapData::<GeneralCategory>::new().iter_ranges_for_group(group)))
}

fn set(ranges: impl Iterator<Item = RangeInclusive<u32>>) -> CharSet {
    CharSet::new(ranges.map(|range| (*range.start(), (*range.end()).min(LAST))).collect())
}

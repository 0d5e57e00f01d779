//! `toLocaleLowerCase` and `toLocaleUpperCase`: the cases of languages whose letters have cases of their own.

use super::canonical;
use crate::builtins::arg;
use crate::builtins::string::transform::{lower, upper};
use crate::builtins::string::{by_text, receiver};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_intl::case::{OwnCase, last_ascii_pair};

/// `string.toLocaleLowerCase(locales)`
pub fn to_locale_lower_case(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "toLocaleLowerCase")?;
    match own_language(vm, arg(arguments, 0))? {
        Some(language) if has_own_case(vm, string, language) => {
            by_text(vm, string, last_ascii_pair, |vm, text, out| {
                out.extend_from_slice(vm, language.lower(text).as_bytes())
            })
        }
        _ => lower(vm, string),
    }
}

/// `string.toLocaleUpperCase(locales)`
pub fn to_locale_upper_case(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "toLocaleUpperCase")?;
    match own_language(vm, arg(arguments, 0))? {
        Some(language) if has_own_case(vm, string, language) => {
            by_text(vm, string, last_ascii_pair, |vm, text, out| {
                out.extend_from_slice(vm, language.upper(text).as_bytes())
            })
        }
        _ => upper(vm, string),
    }
}

/// The first of the requested locales, if it is one of these languages; as in V8, others are not looked at.
fn own_language(vm: &mut Vm, locales: Value) -> Result<Option<OwnCase>> {
    let tags = canonical(vm, locales, 1)?;
    Ok(tags.first().and_then(|tag| OwnCase::of(tag)))
}

/// Whether the language matters to a string: in ASCII only to Turkic ones.
fn has_own_case(vm: &Vm, string: Value, language: OwnCase) -> bool {
    language == OwnCase::Turkic || !vm.heap.str(string).is_ascii()
}

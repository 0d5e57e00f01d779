//! `toLocaleLowerCase` and `toLocaleUpperCase`: the cases of languages whose letters have cases of their own.

use super::canonical;
use crate::builtins::arg;
use crate::builtins::string::transform::{lower, upper};
use crate::builtins::string::{by_text, receiver};
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;
use icu_casemap::CaseMapper;
use icu_locale::{LanguageIdentifier, langid};

/// `string.toLocaleLowerCase(locales)`
pub fn to_locale_lower_case(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "toLocaleLowerCase")?;
    match own_language(vm, arg(arguments, 0))? {
        Some(language) if has_own_case(vm, string, language) => {
            by_text(vm, string, last_ascii_pair, |vm, text, out| {
                let text = CaseMapper::new().lowercase_to_string(text, &language.id());
                out.extend_from_slice(vm, text.as_bytes())
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
                let text = CaseMapper::new().uppercase_to_string(text, &language.id());
                out.extend_from_slice(vm, text.as_bytes())
            })
        }
        _ => upper(vm, string),
    }
}

/// A language whose letters have cases of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnCase {
    Turkic,
    Greek,
    Lithuanian,
}

impl OwnCase {
    fn id(self) -> LanguageIdentifier {
        match self {
            Self::Turkic => langid!("tr"),
            Self::Greek => langid!("el"),
            Self::Lithuanian => langid!("lt"),
        }
    }
}

/// The first of the requested locales, if it is one of these languages; as in V8, others are not looked at.
fn own_language(vm: &mut Vm, locales: Value) -> Result<Option<OwnCase>> {
    let tags = canonical(vm, locales, 1)?;
    Ok(match tags.first().and_then(|tag| tag.split('-').next()) {
        Some("az" | "tr") => Some(OwnCase::Turkic),
        Some("el") => Some(OwnCase::Greek),
        Some("lt") => Some(OwnCase::Lithuanian),
        _ => None,
    })
}

/// Whether the language matters to a string: in ASCII only to Turkic ones.
fn has_own_case(vm: &Vm, string: Value, language: OwnCase) -> bool {
    language == OwnCase::Turkic || !vm.heap.str(string).is_ascii()
}

/// Where a text can be split for changing its case in any language: between two characters of ASCII to which nothing
/// around them matters.
fn last_ascii_pair(text: &str) -> Option<usize> {
    let is_plain = |byte: u8| {
        matches!(byte, b' ' | b'\n' | b'0'..=b'9') || byte.is_ascii_alphabetic() && !matches!(byte | 32, b'i' | b'j')
    };
    let pairs = text.as_bytes().windows(2).enumerate();
    pairs.rev().find(|(_, pair)| pair.iter().all(|&byte| is_plain(byte))).map(|(at, _)| at + 1)
}

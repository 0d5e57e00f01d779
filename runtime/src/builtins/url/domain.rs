//! Domain to ASCII (<https://url.spec.whatwg.org/#idna>): the mapping of UTS 46, the validity of its labels, and Punycode.
//!
//! As in Node 20, labels of ASCII are not checked, and characters are those of Unicode 15.0 ([`later`]). The rules for
//! right-to-left scripts apply to each label on its own.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

mod later;

use icu_normalizer::uts46::Uts46MapperBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{BidiClass, GeneralCategory, GeneralCategoryGroup, JoiningType};
use idna::punycode;
use later::is_later;

/// Most bytes of a domain with labels in Punycode, whose time grows with the square of the length of a label.
const MAX_DOMAIN_BYTES: usize = 16 << 10;

const MAPPER: Uts46MapperBorrowed<'static> = Uts46MapperBorrowed::new();

/// The domain, or `None` where a label is invalid.
pub fn domain_to_ascii(domain: &str) -> Option<String> {
    let lower = domain.to_ascii_lowercase();
    let is_plain = |label: &str| label.is_ascii() && !label.starts_with("xn--");
    if lower.split('.').all(is_plain) {
        return Some(lower);
    }
    if domain.len() > MAX_DOMAIN_BYTES || domain.chars().any(is_later) {
        return None;
    }
    // Since Unicode 15.1 a capital sharp S is mapped to the small one.
    let lower = lower.replace('ẞ', "ss");
    let mapped: String = MAPPER.map_normalize(lower.chars()).collect();
    if mapped.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let mut out = String::with_capacity(2 * mapped.len());
    for (index, label) in mapped.split('.').enumerate() {
        if index > 0 {
            out.push('.');
        }
        if is_plain(label) {
            out.push_str(label);
        } else if let Some(encoded) = label.strip_prefix("xn--") {
            is_valid_encoded(encoded).then_some(())?;
            out.push_str(label);
        } else {
            is_valid(label).then_some(())?;
            out.push_str("xn--");
            out.push_str(&punycode::encode_str(label)?);
        }
    }
    Some(out)
}

/// Whether Punycode is that of a valid label.
fn is_valid_encoded(encoded: &str) -> bool {
    // Nothing before the last hyphen is no letters of ASCII; the crate wants no hyphen there.
    let encoded = encoded.strip_prefix('-').filter(|rest| !rest.contains('-')).unwrap_or(encoded);
    let Some(label) = encoded.is_ascii().then(|| punycode::decode_to_string(encoded)).flatten() else { return false };
    !label.is_empty()
        && !label.chars().any(|letter| matches!(letter, 'ẞ' | char::REPLACEMENT_CHARACTER) || is_later(letter))
        && MAPPER.normalize_validate(label.chars()).eq(label.chars())
        && is_valid(&label)
}

/// The validity criteria of UTS 46 for a label in NFC whose characters are valid.
fn is_valid(label: &str) -> bool {
    let mark = GeneralCategoryGroup::Mark;
    let category = CodePointMapData::<GeneralCategory>::new();
    if label.chars().next().is_some_and(|first| mark.contains(category.get(first))) {
        return false;
    }
    joiners(label).unwrap_or_else(|| is_valid_bidi(label))
}

/// Whether the first joiner of a label may stand where it does; `None` where there is none. Node looks no further.
fn joiners(label: &str) -> Option<bool> {
    const NON_JOINER: char = '\u{200C}';
    const JOINER: char = '\u{200D}';
    let at = label.find([NON_JOINER, JOINER])?;
    let (before, after) = label.split_at(at);
    if before.chars().next_back().is_some_and(|letter| MAPPER.is_virama(letter)) {
        return Some(true);
    }
    let types = CodePointMapData::<JoiningType>::new();
    let joins =
        |text: &str, kind| text.chars().any(|letter| [kind, JoiningType::DualJoining].contains(&types.get(letter)));
    let is_between = joins(before, JoiningType::LeftJoining) && joins(after, JoiningType::RightJoining);
    Some(after.starts_with(NON_JOINER) && is_between)
}

/// The Bidi rule of RFC 5893, section 2. Of a label that begins left to right Node does not check the end.
fn is_valid_bidi(label: &str) -> bool {
    use BidiClass as Class;
    let class = |letter: char| CodePointMapData::<BidiClass>::new().get(letter);
    let trimmed = label.trim_end_matches(|letter| class(letter) == Class::NonspacingMark);
    let Some(last) = trimmed.chars().next_back().map(class) else { return false };
    let is_right_to_left = |class| matches!(class, Class::RightToLeft | Class::ArabicLetter | Class::ArabicNumber);
    if !label.chars().any(|letter| is_right_to_left(class(letter))) {
        return true;
    }
    let is_neutral = |class| {
        let separator = matches!(class, Class::EuropeanSeparator | Class::CommonSeparator | Class::EuropeanTerminator);
        separator
            || matches!(
                class,
                Class::EuropeanNumber | Class::OtherNeutral | Class::BoundaryNeutral | Class::NonspacingMark
            )
    };
    if label.chars().next().map(class) == Some(Class::LeftToRight) {
        let mut letters = trimmed.chars().map(class);
        letters.next_back();
        return letters.all(|class| class == Class::LeftToRight || is_neutral(class));
    }
    let has = |wanted| trimmed.chars().any(|letter| class(letter) == wanted);
    trimmed.chars().map(class).all(|class| is_right_to_left(class) || is_neutral(class))
        && !(has(Class::EuropeanNumber) && has(Class::ArabicNumber))
        && (is_right_to_left(last) || last == Class::EuropeanNumber)
}

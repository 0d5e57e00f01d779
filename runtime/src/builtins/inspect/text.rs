//! Strings and names as `util.inspect` quotes them, and how wide text is on a screen.

use crate::text::wtf8::code_points;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{EastAsianWidth, GeneralCategory};

/// WTF-8 in quotes, single ones where that needs no escapes.
pub fn quoted(bytes: &[u8]) -> String {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let quote = match () {
        () if !has(b"'") => '\'',
        () if !has(b"\"") => '"',
        () if !has(b"`") && !has(b"${") => '`',
        () => '\'',
    };
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(quote);
    for point in code_points(bytes) {
        match char::from_u32(point) {
            Some('\\') => out.push_str("\\\\"),
            Some('\'') if quote == '\'' => out.push_str("\\'"),
            Some('\n') => out.push_str("\\n"),
            Some('\t') => out.push_str("\\t"),
            Some('\r') => out.push_str("\\r"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\0'..='\u{1f}' | '\u{7f}'..='\u{9f}') => out.push_str(&brief!("\\x{point:02X}")),
            Some(character) => out.push(character),
            None => out.push_str(&brief!("\\u{point:x}")),
        }
    }
    out.push(quote);
    out
}

/// Columns that a text takes on a screen, as Node counts them: those of its composed form.
pub fn width(text: &str) -> usize {
    let rest = text.trim_start_matches(|character: char| character.is_ascii());
    let ascii = text[..text.len() - rest.len()].chars().map(columns);
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(rest);
    ascii.chain(composed.chars().map(columns)).sum()
}

/// Columns of a character: two for wide ones, none for control characters and marks.
fn columns(character: char) -> usize {
    use GeneralCategory::{Control, EnclosingMark, Format, NonspacingMark};
    if character.is_ascii() {
        return usize::from(!character.is_ascii_control());
    }
    match CodePointMapData::<EastAsianWidth>::new().get(character) {
        EastAsianWidth::Fullwidth | EastAsianWidth::Wide => return 2,
        // The letters of flags, which are not wide in the data here.
        _ if matches!(character, '\u{1F1E6}'..='\u{1F1FF}') => return 2,
        _ if character == '\u{AD}' => return 1,
        _ => {}
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    usize::from(!matches!(category, Control | EnclosingMark | Format | NonspacingMark))
}

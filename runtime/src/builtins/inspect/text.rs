//! Strings and names as `util.inspect` quotes them, and how wide text is on a screen.

use crate::wtf8::code_points;

/// WTF-8 in quotes, single ones where that needs no escapes.
pub fn quoted(bytes: &[u8]) -> String {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let quote = match () {
        () if !has(b"'") => '\'',
        () if !has(b"\"") => '"',
        () if !has(b"`") && !has(b"${") => '`',
        () => '\'',
    };
    let mut out = String::with_capacity(bytes.len() + 2); // charged: by who prints it
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
            Some('\0'..='\u{1f}' | '\u{7f}'..='\u{9f}') => out.push_str(&format!("\\x{point:02X}")), // bounded: a number
            Some(character) => out.push(character),
            None => out.push_str(&format!("\\u{point:x}")), // bounded: a number
        }
    }
    out.push(quote);
    out
}

/// Whether a property name is printed without quotes.
pub fn is_identifier(name: &[u8]) -> bool {
    name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.first().is_some_and(|first| !first.is_ascii_digit())
}

/// Columns that a text takes on a screen.
pub fn width(text: &str) -> usize {
    text.chars().map(|character| columns(character as u32)).sum()
}

fn columns(point: u32) -> usize {
    match point {
        0x20..=0x7E => 1,
        0..=0x1F
        | 0x7F..=0x9F
        | 0x300..=0x36F
        | 0x200B..=0x200F
        | 0x20D0..=0x20FF
        | 0xFE00..=0xFE0F
        | 0xFE20..=0xFE2F
        | 0xE0100..=0xE01EF => 0,
        0xA0..=0x10FF => 1,
        _ if WIDE.iter().any(|&(first, last)| (first..=last).contains(&point)) => 2,
        _ => 1,
    }
}

/// Ranges of code points that take two columns (East Asian Width, emoji).
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115F),
    (0x231A, 0x231B),
    (0x2329, 0x232A),
    (0x23E9, 0x23EC),
    (0x23F0, 0x23F0),
    (0x23F3, 0x23F3),
    (0x25FD, 0x25FE),
    (0x2614, 0x2615),
    (0x2648, 0x2653),
    (0x267F, 0x267F),
    (0x2693, 0x2693),
    (0x26A1, 0x26A1),
    (0x26AA, 0x26AB),
    (0x26BD, 0x26BE),
    (0x26C4, 0x26C5),
    (0x26CE, 0x26CE),
    (0x26D4, 0x26D4),
    (0x26EA, 0x26EA),
    (0x26F2, 0x26F3),
    (0x26F5, 0x26F5),
    (0x26FA, 0x26FA),
    (0x26FD, 0x26FD),
    (0x2705, 0x2705),
    (0x270A, 0x270B),
    (0x2728, 0x2728),
    (0x274C, 0x274C),
    (0x274E, 0x274E),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2795, 0x2797),
    (0x27B0, 0x27B0),
    (0x27BF, 0x27BF),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50),
    (0x2B55, 0x2B55),
    (0x2E80, 0x303E),
    (0x3041, 0x3247),
    (0x3250, 0x4DBF),
    (0x4E00, 0xA4C6),
    (0xA960, 0xA97C),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFE10, 0xFE19),
    (0xFE30, 0xFE6B),
    (0xFF01, 0xFF60),
    (0xFFE0, 0xFFE6),
    (0x1B000, 0x1B2FB),
    (0x1F004, 0x1F004),
    (0x1F0CF, 0x1F0CF),
    (0x1F18E, 0x1F18E),
    (0x1F191, 0x1F19A),
    (0x1F200, 0x1F251),
    (0x1F260, 0x1F265),
    (0x1F300, 0x1F320),
    (0x1F32D, 0x1F335),
    (0x1F337, 0x1F37C),
    (0x1F37E, 0x1F393),
    (0x1F3A0, 0x1F3CA),
    (0x1F3CF, 0x1F3D3),
    (0x1F3E0, 0x1F3F0),
    (0x1F3F4, 0x1F3F4),
    (0x1F3F8, 0x1F43E),
    (0x1F440, 0x1F440),
    (0x1F442, 0x1F4FC),
    (0x1F4FF, 0x1F53D),
    (0x1F54B, 0x1F54E),
    (0x1F550, 0x1F567),
    (0x1F57A, 0x1F57A),
    (0x1F595, 0x1F596),
    (0x1F5A4, 0x1F5A4),
    (0x1F5FB, 0x1F64F),
    (0x1F680, 0x1F6C5),
    (0x1F6CC, 0x1F6CC),
    (0x1F6D0, 0x1F6D2),
    (0x1F6D5, 0x1F6D7),
    (0x1F6DC, 0x1F6DF),
    (0x1F6EB, 0x1F6EC),
    (0x1F6F4, 0x1F6FC),
    (0x1F7E0, 0x1F7EB),
    (0x1F7F0, 0x1F7F0),
    (0x1F90C, 0x1F93A),
    (0x1F93C, 0x1F945),
    (0x1F947, 0x1F9FF),
    (0x1FA70, 0x1FAFF),
    (0x20000, 0x3FFFD),
];

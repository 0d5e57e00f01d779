//! Decodes texts of services: by their byte order mark, else by the charset of their media type, else by their bytes.
//!
//! `encoding_rs` has the encodings of the web. UTF-32 is not among them. Neither is the byte order of UTF-16 without a
//! mark, which the zero bytes of the first characters tell (RFC 4627, section 3).

use codecall_base::json::is_readable;
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use std::borrow::Cow;

/// How characters are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    /// One of the encodings of the web.
    Web(&'static Encoding),
    Utf32 {
        is_big: bool,
    },
}

/// Decodes a text; `media_type` is its `Content-Type`. What is malformed becomes U+FFFD. `None`: the charset is unknown,
/// and the text is not UTF-8.
#[must_use]
pub fn decode<'a>(bytes: &'a [u8], media_type: &str) -> Option<Cow<'a, str>> {
    let named = parameter(media_type).map(|name| named(name, bytes));
    match marked(bytes).or(named.flatten()) {
        Some(charset) => Some(charset.decode(bytes)),
        None => match std::str::from_utf8(bytes) {
            Ok(text) => Some(text.into()),
            Err(_) if named.is_some() => None,
            Err(_) => Some(guess(bytes)),
        },
    }
}

/// Decodes JSON; `media_type` is its `Content-Type`. `None`: it is none that can be read. JSON is UTF-8 whatever its media
/// type says (RFC 8259, section 8.1), so the charset counts only where the bytes are not, or could be both.
#[must_use]
pub fn json<'a>(bytes: &'a [u8], media_type: &str) -> Option<Cow<'a, str>> {
    let parse = |charset: Charset| Some(charset.decode(bytes)).filter(|text| is_readable(text));
    if let Some(charset) = marked(bytes).or_else(|| by_zeros(bytes)) {
        return parse(charset);
    }
    let charset = parameter(media_type).and_then(|name| named(name, bytes));
    let is_ambiguous =
        matches!(charset, Some(Charset::Web(encoding)) if !encoding.is_single_byte() && encoding != UTF_8);
    if let Some(charset) = charset.filter(|_| is_ambiguous)
        && let Some(text) = parse(charset)
    {
        return Some(text);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => decode(bytes, media_type)?,
    };
    Some(text).filter(|text| is_readable(text))
}

/// Decodes a document, which is JSON or YAML. Both begin with a character of ASCII, so that the zero bytes tell UTF-16 and
/// UTF-32 (YAML 1.2.2, section 5.2).
#[must_use]
pub fn document<'a>(bytes: &'a [u8], media_type: &str) -> Option<Cow<'a, str>> {
    match marked(bytes).or_else(|| by_zeros(bytes)) {
        Some(charset) => Some(charset.decode(bytes)),
        None => std::str::from_utf8(bytes).map(Cow::from).ok().or_else(|| decode(bytes, media_type)),
    }
}

impl Charset {
    fn decode<'a>(self, bytes: &'a [u8]) -> Cow<'a, str> {
        match self {
            // It leaves out a byte order mark.
            Self::Web(encoding) => encoding.decode(bytes).0,
            Self::Utf32 { is_big } => {
                let number = if is_big { u32::from_be_bytes } else { u32::from_le_bytes };
                let (characters, rest) = bytes.as_chunks::<4>();
                let characters = characters.iter().map(|bytes| char::from_u32(number(*bytes)));
                let characters = characters.chain((!rest.is_empty()).then_some(None));
                let text: String = characters.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
                text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text).into()
            }
        }
    }
}

/// Returns the charset of a byte order mark.
fn marked(bytes: &[u8]) -> Option<Charset> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => Some(Charset::Utf32 { is_big: false }),
        [0, 0, 0xfe, 0xff, ..] => Some(Charset::Utf32 { is_big: true }),
        bytes => Encoding::for_bom(bytes).map(|(encoding, _)| Charset::Web(encoding)),
    }
}

/// Returns the charset of a text that begins with a character of ASCII, by its zero bytes.
fn by_zeros(bytes: &[u8]) -> Option<Charset> {
    match bytes {
        [0, 0, 0, 1..=127, ..] => Some(Charset::Utf32 { is_big: true }),
        [1..=127, 0, 0, 0, ..] => Some(Charset::Utf32 { is_big: false }),
        [0, 1..=127, ..] => Some(Charset::Web(UTF_16BE)),
        [1..=127, 0, ..] => Some(Charset::Web(UTF_16LE)),
        _ => None,
    }
}

/// Returns the value of `charset`.
fn parameter(media_type: &str) -> Option<&str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).trim();
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    })
}

/// Returns the charset of a name; `bytes` tell the byte order if the name does not.
fn named(name: &str, bytes: &[u8]) -> Option<Charset> {
    // Other spellings: `UTF8`, `latin-1`, `utf_16`.
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match letters.as_str() {
        "utf16" | "ucs2" => Some(by_zeros(bytes).unwrap_or(Charset::Web(UTF_16LE))),
        "utf16le" => Some(Charset::Web(UTF_16LE)),
        "utf16be" => Some(Charset::Web(UTF_16BE)),
        "utf32" | "ucs4" => Some(by_zeros(bytes).unwrap_or(Charset::Utf32 { is_big: true })),
        "utf32le" => Some(Charset::Utf32 { is_big: false }),
        "utf32be" => Some(Charset::Utf32 { is_big: true }),
        letters => Encoding::for_label(name.as_bytes())
            .or_else(|| Encoding::for_label(letters.as_bytes()))
            .filter(|encoding| *encoding != REPLACEMENT && *encoding != X_USER_DEFINED)
            .map(Charset::Web),
    }
}

/// Decodes a text without a charset that is not UTF-8: with damaged characters if it has others that are intact, else as
/// the encoding that browsers assume.
fn guess(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    let has_intact = text.chars().any(|c| !c.is_ascii() && c != char::REPLACEMENT_CHARACTER);
    if has_intact { text } else { WINDOWS_1252.decode_without_bom_handling(bytes).0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The value of the text that [`json`] decodes.
    fn value_of(bytes: &[u8], media_type: &str) -> Option<Value> {
        json(bytes, media_type).map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    use serde_json::json;

    /// A text in UTF-16 or UTF-32.
    fn wide(text: &str, width: usize, is_big: bool) -> Vec<u8> {
        let units: Vec<u32> = match width {
            2 => text.encode_utf16().map(u32::from).collect(),
            _ => text.chars().map(u32::from).collect(),
        };
        let bytes = |unit: u32| {
            let mut bytes = unit.to_be_bytes()[4 - width..].to_vec();
            if !is_big {
                bytes.reverse();
            }
            bytes
        };
        units.into_iter().flat_map(bytes).collect()
    }

    const WIDE: [(&str, usize, bool); 4] =
        [("utf-16le", 2, false), ("utf-16be", 2, true), ("utf-32le", 4, false), ("utf-32be", 4, true)];

    /// Each encoding of the web, with texts that it has.
    #[test]
    fn a_charset_is_the_one_that_the_media_type_names() {
        let texts = [
            ("iso-8859-1", "é ü ñ"),
            ("latin-1", "é ü ñ"),
            ("us-ascii", "plain"),
            ("windows-1252", "€ “é”"),
            ("iso-8859-2", "ł ő ž"),
            ("ISO_8859-5", "Привет"),
            ("iso-8859-7", "γειά"),
            ("iso-8859-8", "שלום"),
            ("iso-8859-15", "€ é"),
            ("windows-1251", "Привет"),
            ("windows-1250", "ł ő ž"),
            ("koi8-r", "Привет"),
            ("koi8-u", "Ґ ї"),
            ("macintosh", "é ü"),
            ("shift_jis", "日本語"),
            ("euc-jp", "日本語"),
            ("iso-2022-jp", "日本語"),
            ("euc-kr", "한국어"),
            ("gbk", "中文联通"),
            ("gb18030", "中文 😀"),
            ("gb2312", "中文"),
            ("big5", "中文"),
            ("UTF8", "é 日本 😀"),
            ("utf_8", "é 日本 😀"),
        ];
        for (name, text) in texts {
            let Some(Charset::Web(encoding)) = named(name, b"") else { panic!("{name}") };
            let value = json!({ "text": text });
            for media in [format!("text/plain;charset={name}"), format!("text/plain; a=b; Charset=\"{name}\" ; c=d")] {
                let (bytes, _, is_lossy) = encoding.encode(text);
                assert!(!is_lossy, "{name}");
                assert_eq!(decode(&bytes, &media).as_deref(), Some(text), "{media}");
                let written = value.to_string();
                assert_eq!(value_of(&encoding.encode(&written).0, &media), Some(value.clone()), "{media}");
                // A service that says what is not so.
                assert!(value_of(written.as_bytes(), &media).is_some(), "{media}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_decides() {
        let (text, value) = ("{\"a\": \"é 日本 😀\"}", json!({"a": "é 日本 😀"}));
        for media in
            ["application/json", "text/plain; charset=iso-8859-1", "text/plain; charset=utf-16be", "x; charset=no"]
        {
            let mut all = vec![("utf-8", [b"\xef\xbb\xbf", text.as_bytes()].concat())];
            all.extend(WIDE.map(|(name, width, is_big)| (name, wide(&format!("\u{feff}{text}"), width, is_big))));
            for (name, bytes) in all {
                assert_eq!(decode(&bytes, media).as_deref(), Some(text), "{name} {media}");
                assert_eq!(value_of(&bytes, media), Some(value.clone()), "{name} {media}");
                assert_eq!(document(&bytes, media).as_deref(), Some(text), "{name} {media}");
            }
        }
    }

    #[test]
    fn wide_texts_need_no_mark() {
        let (text, value) = ("{\"a\": \"é 日本 😀\"}", json!({"a": "é 日本 😀"}));
        for (name, width, is_big) in WIDE {
            let bytes = wide(text, width, is_big);
            for media in [format!("a/b; charset={name}"), format!("a/b; charset={}", &name[..6])] {
                assert_eq!(decode(&bytes, &media).as_deref(), Some(text), "{media}");
                assert_eq!(value_of(&bytes, &media), Some(value.clone()), "{media}");
            }
            assert_eq!(value_of(&bytes, "application/json"), Some(value.clone()), "{name}");
            assert_eq!(document(&bytes, "").as_deref(), Some(text), "{name}");
            let japanese = wide("日本", width, is_big);
            assert_eq!(decode(&japanese, &format!("text/plain; charset={name}")).as_deref(), Some("日本"), "{name}");
            assert_eq!(value_of(&wide("1", width, is_big), ""), Some(json!(1)), "{name}");
            assert!(
                decode(&bytes[..bytes.len() - 1], &format!("a/b; charset={name}"))
                    .is_some_and(|text| text.ends_with('\u{fffd}'))
            );
        }
    }

    #[test]
    fn texts_without_a_charset() {
        assert_eq!(decode("é".as_bytes(), "text/plain").as_deref(), Some("é"));
        assert_eq!(decode(b"caf\xe9 \x93x\x94", "text/plain").as_deref(), Some("café “x”"));
        assert_eq!(decode(b"caf\xc3\xa9 \xe9", "text/plain").as_deref(), Some("café \u{fffd}"), "damaged UTF-8");
        assert_eq!(value_of(b"{\"a\":\"\xe9\"}", "application/json"), Some(json!({"a": "é"})));
        assert_eq!(decode(b"plain", "text/plain; charset=cp437").as_deref(), Some("plain"), "an unknown one");
        for name in ["cp437", "utf-7", "x-user-defined", "iso-2022-kr", "no"] {
            assert_eq!(decode(b"\xe9", &format!("text/plain; charset={name}")), None, "{name}");
        }
        for (bytes, media) in
            [(&b""[..], ""), (b"\0", "a/b; charset=utf-16"), (b"{", "application/json"), (b"\0\0\0\0", "")]
        {
            assert_eq!(value_of(bytes, media), None);
        }
    }
}

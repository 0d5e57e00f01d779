use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

const SECRET: &str = "pä/ss w\"ord+?&1\\x";

fn redactor() -> Redactor {
    Redactor::new([SECRET, "sk-1234567890", "short"])
}

/// A way of encoding a text.
type Encoding = (&'static str, fn(&str) -> String);

fn each_byte(text: &str, written: impl Fn(u8) -> String) -> String {
    text.bytes().map(written).collect()
}

fn each_unit(text: &str, written: impl Fn(u16) -> String) -> String {
    text.encode_utf16().map(written).collect()
}

fn wrapped(text: &str, width: usize, with: &str) -> String {
    let lines: Vec<String> = text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into()).collect();
    lines.join(with)
}

/// All encodings that are decoded.
const ENCODINGS: &[Encoding] =
    &[
        ("plain", str::to_owned),
        ("JSON", |text| Value::from(text).to_string()),
        ("JSON with slashes escaped", |text| Value::from(text).to_string().replace('/', "\\/")),
        ("JSON, each letter", |text| each_unit(text, |unit| format!("\\u{unit:04x}"))),
        ("JSON, each letter, capitals", |text| each_unit(text, |unit| format!("\\u{unit:04X}"))),
        ("JSON in ASCII", |text| {
            let json = Value::from(text).to_string();
            json.chars()
                .map(|c| {
                    if c.is_ascii() {
                        c.to_string()
                    } else {
                        each_unit(&c.to_string(), |unit| format!("\\u{unit:04x}"))
                    }
                })
                .collect()
        }),
        ("JavaScript, each byte", |text| each_byte(text, |byte| format!("\\x{byte:02x}"))),
        ("JavaScript, braces", |text| text.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c))).collect()),
        ("HTML, each letter", |text| text.chars().map(|c| format!("&#{};", u32::from(c))).collect()),
        ("HTML, each letter in hex", |text| text.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect()),
        ("HTML", |text| text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")),
        ("address", |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()),
        ("address in small letters", |text| {
            utf8_percent_encode(text, NON_ALPHANUMERIC).to_string().replace("%C3%A4", "%c3%a4").replace("%2F", "%2f")
        }),
        ("form", |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string().replace("%20", "+")),
        ("address, each byte", |text| each_byte(text, |byte| format!("%{byte:02X}"))),
        ("address, each byte in small letters", |text| each_byte(text, |byte| format!("%{byte:02x}"))),
        ("hex", |text| each_byte(text, |byte| format!("{byte:02x}"))),
        ("hex in capitals", |text| each_byte(text, |byte| format!("{byte:02X}"))),
        ("hex with colons", |text| each_byte(text, |byte| format!("{byte:02x}:"))),
        ("hex with spaces", |text| each_byte(text, |byte| format!("{byte:02X} "))),
        ("hex of C", |text| each_byte(text, |byte| format!("0x{byte:02x}, "))),
        ("base64", |text| STANDARD.encode(text)),
        ("base64 without padding", |text| STANDARD_NO_PAD.encode(text)),
        ("base64 for addresses", |text| URL_SAFE.encode(text)),
        ("base64 for addresses without padding", |text| URL_SAFE_NO_PAD.encode(text)),
        ("base64 in something longer", |text| STANDARD.encode(format!("user:{text}@host"))),
        ("base64 in something longer, one letter on", |text| STANDARD.encode(format!("user1:{text}@host"))),
        ("base64 in something longer, two letters on", |text| STANDARD.encode(format!("user12:{text}@host"))),
        ("base64 behind letters", |text| format!("x/{}", STANDARD.encode(text))),
        ("base64 in lines", |text| wrapped(&STANDARD.encode(format!("-----{text}-----")), 7, "\n")),
        ("base64 in lines with indentation", |text| wrapped(&URL_SAFE.encode(text), 4, "\r\n  ")),
    ];

#[test]
fn a_secret_is_found_in_every_encoding_and_pair_of_encodings() {
    for secret in [SECRET, "sk-1234567890", "abcdef", "a secret with words"] {
        let redactor = Redactor::new([secret]);
        for (outer_name, outer) in ENCODINGS {
            for (inner_name, inner) in ENCODINGS {
                let written = outer(&inner(secret));
                let text = format!("before {written} after");
                let clean = redactor.redact_text(&text);
                let case = format!("{outer_name} of {inner_name} of {secret:?}: {text:?} is {clean:?}");
                assert!(clean.starts_with("before ") && clean.ends_with(" after") && clean.contains(MASK), "{case}");
                assert!(!clean.contains(&written), "{case}");
                // Only bits at the ends of the secret may remain.
                let around = 40 * (1 + outer("12345678").len() / 8);
                assert!(clean.len() < "before  after".len() + MASK.len() + around, "{case}");
            }
        }
    }
}

/// An escape of another kind may be part of the secret.
#[test]
fn each_kind_of_escapes_is_decoded_alone() {
    for (secret, text) in [
        (r#"0?:?\ß<"a}b"#, r#"~{$Z%30%3f%3a%3F\%C3%9F%3C%22%61%7D%62"={9$""#),
        ("abc%41&amp;xyz", r#"in JSON: "abc\u002541&amp;xyz""#),
        ("key&#65;\\u0041", r"key%26#65;\u0041"),
    ] {
        let clean = Redactor::new([secret]).redact_text(text).into_owned();
        assert!(clean.contains(MASK), "{secret}: {text}: {clean}");
    }
}

/// Lenient JSON parsers keep a backslash that starts no escape; JavaScript removes it, or it starts another escape.
#[test]
fn a_needless_backslash_is_kept_and_removed() {
    for (secret, text) in [
        (r":bcdef\", r"\u003abcdef\!"),
        (r":bcdef\", r"\u003abcdef\x41"),
        (r":bcdef\", r"\u003abcdef\'"),
        (r":bcdef\", r"\\u003a\u0062cdef\u005c!"),
        (r"ab\!cdef", r"\u0061b\!cdef"),
        ("ab!cdef", r"\u0061b\!cdef"),
    ] {
        let clean = Redactor::new([secret]).redact_text(text).into_owned();
        assert!(clean.contains(MASK), "{secret}: {text}: {clean}");
    }
}

#[test]
fn texts_without_secrets_are_unchanged() {
    let redactor = redactor();
    for text in ["a short text stays", "sk-123456789", "%41%zz\\u12 &amp &#; %", "\\", "&", "%4", "c2hvcnQ=", "73 68"] {
        assert!(matches!(redactor.redact_text(text), Cow::Borrowed(_)), "{text}");
    }
    assert_eq!(redactor.redact_text("Bearer sk-1234567890."), "Bearer [secret].");
    assert_eq!(redactor.redact_text("sk-1234567890sk-1234567890"), "[secret][secret]");
}

#[test]
fn secrets_are_found_across_window_boundaries() {
    for secret in ["sk-1234567890", "aaaaaa"] {
        let redactor = Redactor::new([secret]);
        let forms =
            [secret.to_owned(), STANDARD.encode(secret), format!("\\u00{:x}{}", secret.as_bytes()[0], &secret[1..])];
        for form in forms {
            for before in (128 * 1024 - 40..128 * 1024 + 2).step_by(6) {
                let text = format!("{} {form} .", "é".repeat(before / 2) + &" ".repeat(before % 2));
                let clean = redactor.redact_text(&text);
                assert!(
                    clean.ends_with(&format!(" {MASK} ."))
                        || clean.ends_with(&format!(" {MASK}= ."))
                        || clean.ends_with(&format!(" {MASK}== .")),
                    "{before}: {}",
                    &clean[clean.len() - 60..]
                );
                assert_eq!(clean.matches(MASK).count(), 1);
            }
        }
    }
    let repeated = "aaaaaaa".repeat(100_000);
    assert!(!Redactor::new(["aaaaaa"]).redact_text(&repeated).contains("aa"));
}

/// The work is linear in the length of the text, whatever it contains.
#[test]
fn hostile_texts_take_linear_time() {
    let redactor = redactor();
    for part in [
        "a",
        "0",
        " ",
        "\\",
        "%",
        "&",
        "\\u",
        "\\u005c",
        "%25",
        "&#38;",
        "VVVV",
        "4",
        "0x",
        "\n",
        "a\n",
        "aaaaaaaaaaaaaaaaaaaa\n ",
        "s",
        "sk-123456789",
        "sk-1234567890",
        "c2stMTIzNDU2Nzg5MA",
        "ä",
        "\u{10ffff}",
    ] {
        // Windows overlap, so the text is several of them.
        let work = |length: usize| {
            let text = part.repeat(length / part.len());
            finder::counted();
            let clean = redactor.redact_text(&text);
            assert!(clean.len() < text.len() + 1000);
            finder::counted()
        };
        let (short, long) = (work(200_000), work(1_600_000));
        assert!(short >= 200_000, "{part:?}: {short}");
        assert!(long < short * 9, "{part:?}: {short}, {long}");
    }
}

#[test]
fn keys_that_only_differ_in_secrets_stay_distinct() {
    let mut value =
        json!({"sk-1234567890": 1, "a": 2, "sk%2D1234567890": 3, "[secret] (2)": 4, "c2stMTIzNDU2Nzg5MA": 5});
    redactor().redact_value(&mut value);
    let expected = json!({"[secret]": 1, "a": 2, "[secret] (2)": 3, "[secret] (2) (2)": 4, "[secret] (3)": 5});
    assert_eq!(value.to_string(), expected.to_string());
}

#[test]
fn keys_numbers_and_error_details_are_redacted() {
    let redactor = Redactor::new(["sk-1234567890", "8612345678"]);
    let mut value = json!({"sk-1234567890": [8_612_345_678_u64, {"a": "x sk-1234567890"}], "n": 1});
    redactor.redact_value(&mut value);
    assert_eq!(value, json!({"[secret]": ["[secret]", {"a": "x [secret]"}], "n": 1}));
    let mut error = ToolError::new("sk-1234567890", "sk-1234567890");
    error.details = Some(r#"{"a":"sk-\u0031234567890"}"#.into());
    redactor.redact_error(&mut error);
    assert_eq!((error.code.as_str(), error.message.as_str()), (MASK, MASK));
    assert_eq!(error.details.as_deref(), Some(r#"{"a":"[secret]"}"#));
}

#[test]
fn json_without_secrets_is_copied_unchanged() {
    let redactor = Redactor::new(["sk-1234567890", "8612345678", "n12345"]);
    for (json, clean) in [
        (r#"{"a" : 1e400, "b":[ -0, "x" ]}"#, r#"{"a" : 1e400, "b":[ -0, "x" ]}"#),
        (
            r#"{"a" : 8612345678, "b\n12345":"sk\u002d1234567890 \ud800"}"#,
            r#"{"a" : "[secret]", "b\n12345":"[secret] \\ud800"}"#,
        ),
        (r#"["sk-1234567890\"", true]"#, r#"["[secret]\"", true]"#),
        ("\"sk-1234567890", "\"[secret]\""),
    ] {
        assert_eq!(redactor.redact_json(json), clean, "{json}");
    }
}

#[test]
fn debug_output_does_not_contain_secrets() {
    assert!(!format!("{:?}", redactor()).contains("sk-"));
    assert!(Redactor::new(["", "abc"]).is_empty());
    let hidden = Redactor { finder: Some(Arc::new(hide_everything())), spellings: None };
    assert!(!hidden.redact_text("abc").contains('a'));
}

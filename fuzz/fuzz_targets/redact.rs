//! A secret in any spelling, anywhere in a text: nothing that leaves decodes to it, and the time is
//! linear in the text.
//!
//! Spellings: as it is; per-cent encoding of any of its bytes; JSON with any of its letters escaped, once or twice.
//! Also hexadecimal, and base64 of it within something longer, wrapped or not.

#![no_main]

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use codecall::redact::{MASK, MIN_SECRET_CHARS, Redactor};
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

const LETTERS: [char; 32] = [
    'a', 'b', 'Z', '0', '9', '-', '_', '.', '~', '+', '/', '=', '%', '&', '?', '#', '"', '\\', ' ', '\'', '$', '{',
    '}', '<', ':', '@', '!', '*', 'ä', 'ß', '€', '😀',
];
/// For a megabyte.
const MAX_TIME: Duration = Duration::from_secs(2);

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data.iter());
    let length = MIN_SECRET_CHARS + choices.below(20);
    let secret: String = (0..length).map(|_| LETTERS[choices.below(LETTERS.len())]).collect();
    let secret = secret.trim();
    if secret.chars().count() < MIN_SECRET_CHARS || MASK.contains(secret) {
        return;
    }
    let before: String = (0..choices.below(8)).map(|_| LETTERS[choices.below(LETTERS.len())]).collect();
    let spelled = spell(secret, &mut choices);
    let after: String = (0..choices.below(8)).map(|_| LETTERS[choices.below(LETTERS.len())]).collect();
    let text = format!("{before}{spelled}{after}");

    let redactor = Redactor::new([secret]);
    let clean = redactor.redact_text(&text);
    for decoded in decodings(&clean) {
        let found = decoded.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "the secret {secret:?} leaves {text:?} as {clean:?}");
    }
    let times = 1 + choices.below(64) * 16;
    let long = text.repeat(times);
    let began = ThreadTime::now();
    let clean = redactor.redact_text(&long);
    assert!(clean.len() <= long.len() + times * MASK.len() * 2);
    assert!(began.elapsed() < MAX_TIME, "{:?} for {} bytes", began.elapsed(), long.len());
});

struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % most
    }

    fn is_so(&mut self) -> bool {
        self.below(2) == 1
    }
}

fn spell(secret: &str, choices: &mut Choices<'_>) -> String {
    match choices.below(7) {
        0 => secret.to_owned(),
        1 => per_cent(secret, choices),
        2 => json(secret, choices),
        3 => {
            let once = json(secret, choices);
            json(&once, choices)
        }
        4 => {
            let upper = choices.is_so();
            let digits = |byte: &u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
            secret.as_bytes().iter().map(digits).collect()
        }
        5 => in_base64(secret, choices, 0),
        _ => {
            let width = 4 + choices.below(100);
            in_base64(secret, choices, width)
        }
    }
}

fn per_cent(secret: &str, choices: &mut Choices<'_>) -> String {
    let mut out = Vec::new();
    for byte in secret.bytes() {
        // A letter beyond ASCII is not valid text in parts.
        match choices.below(3) {
            0 if byte.is_ascii() && byte != b'%' => out.push(byte),
            1 => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    String::from_utf8(out).expect("ASCII")
}

fn json(text: &str, choices: &mut Choices<'_>) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match (letter, choices.below(4)) {
            ('"' | '\\' | '/', 0) => out.extend(['\\', letter]),
            (letter, 0 | 1) if !matches!(letter, '"' | '\\') => out.push(letter),
            (letter, kind) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&if kind == 2 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") });
                }
            }
        }
    }
    out
}

fn in_base64(secret: &str, choices: &mut Choices<'_>, width: usize) -> String {
    let mut bytes: Vec<u8> = (0..choices.below(5)).map(|_| choices.below(256) as u8).collect();
    bytes.extend_from_slice(secret.as_bytes());
    bytes.extend((0..choices.below(5)).map(|_| choices.below(256) as u8));
    let alphabet = if choices.is_so() { &URL_SAFE } else { &STANDARD };
    let padding = GeneralPurposeConfig::new().with_encode_padding(choices.is_so());
    let encoded = GeneralPurpose::new(alphabet, padding).encode(bytes);
    if width == 0 {
        return encoded;
    }
    let end = if choices.is_so() { "\r\n" } else { "\n" };
    let letters: Vec<char> = encoded.chars().collect();
    letters.chunks(width).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join(end)
}

/// What whoever gets a text could read in it.
fn decodings(text: &str) -> Vec<Vec<u8>> {
    let mut found = vec![text.as_bytes().to_vec(), from_per_cent(text.as_bytes())];
    let once = from_json(text);
    found.push(from_json(&once).into_bytes());
    found.push(once.into_bytes());
    found.extend(
        runs(text, |letter| letter.is_ascii_hexdigit()).flat_map(|run| [0, 1].map(|skip| from_hex(&run, skip))),
    );
    let unwrapped: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    for alphabet in [&STANDARD, &URL_SAFE] {
        let engine = GeneralPurpose::new(alphabet, lenient);
        for run in runs(&unwrapped, |letter| alphabet.as_str().contains(letter)) {
            for skip in 0..4.min(run.len()) {
                let run = &run[skip..];
                let whole = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
                found.extend(engine.decode(whole));
            }
        }
    }
    found
}

fn runs(text: &str, is_part: impl Fn(char) -> bool) -> impl Iterator<Item = String> {
    let runs: Vec<String> =
        text.split(|letter| !is_part(letter)).filter(|run| !run.is_empty()).map(str::to_owned).collect();
    runs.into_iter()
}

fn from_hex(run: &str, skip: usize) -> Vec<u8> {
    let digits: Vec<u8> =
        run.chars().skip(skip).filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

fn from_per_cent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| text[at] == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

/// The text with everything unescaped that JSON could have escaped.
fn from_json(text: &str) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < units.len() {
        let unit = units[at];
        let escaped = units.get(at + 1).copied().filter(|_| unit == u16::from(b'\\'));
        match escaped.and_then(|unit| u8::try_from(unit).ok()) {
            Some(letter @ (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                let unescaped = match letter {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                };
                out.push(u16::from(unescaped));
                at += 2;
            }
            Some(b'u') => {
                let digits = units.get(at + 2..at + 6).and_then(|digits| String::from_utf16(digits).ok());
                match digits.and_then(|digits| u16::from_str_radix(&digits, 16).ok()) {
                    Some(unit) => {
                        out.push(unit);
                        at += 6;
                    }
                    None => {
                        out.push(unit);
                        at += 1;
                    }
                }
            }
            Some(_) | None => {
                out.push(unit);
                at += 1;
            }
        }
    }
    String::from_utf16_lossy(&out)
}

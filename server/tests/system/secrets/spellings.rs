//! Random secrets, how they may be spelled, and the search for them. Nothing here uses the redactor, or an encoder of a
//! library that the redactor knows: a mistake in one of them would be in both.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// How many bytes of a spelling are searched: of a longer one, each part of so many.
const PART: usize = 12;
/// The longest secret, in bytes.
const MAX_BYTES: usize = 200;
/// The shortest one, in characters.
const MIN_CHARS: usize = 6;

const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// The characters of a secret beside letters and digits.
const OTHERS: [&str; 7] = [
    "",
    " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "\"\\'%&<>/+= ",
    "\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1b}\u{1f}\u{7f}\u{85}\u{9b} ",
    "äöüßéñøłЖщλ中文字日本語한글עברית\u{301}\u{202e}\u{200b}\u{2028}\u{feff}",
    "😀🎉🔑🧪👩‍🔬🏳️‍🌈𝒜𝔅",
    "\"\\'%&<>\u{0}\t\nä中\u{200d}🔑+/ ",
];
/// The text beside a spelling: not a backslash, which makes another text of the escape behind it.
const BESIDE: [&str; 15] = [" ", "\n", ", ", "\"", "'", ": ", "(", "=", "&", "/", "\t", ";", "é", "%", "<"];

/// A sequence of numbers that a seed determines (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns a secret of up to [`MAX_BYTES`] bytes.
    ///
    /// Every second character is a letter or a digit, and the others are of many, so even one of six characters has three
    /// that are one of 62: it does not occur by accident in texts of the server, nor in what is random or compressed in
    /// its database. Secrets of one letter or of spaces would, which says nothing about the server.
    pub fn secret(&mut self) -> String {
        let others: Vec<char> = self.pick(&OTHERS).chars().collect();
        let letters: Vec<char> = ALPHANUMERIC.chars().collect();
        // Long ones are rare: a text with all their spellings takes a server of tests many seconds.
        let length = match self.below(20) {
            0..=11 => MIN_CHARS + self.below(6),
            12..=18 => 12 + self.below(20),
            _ => 32 + self.below(MAX_BYTES - 32),
        };
        let mut secret = String::new();
        for at in 0..length {
            let c = if at % 2 == 0 || others.is_empty() { self.pick(&letters) } else { self.pick(&others) };
            if secret.len() + c.len_utf8() > MAX_BYTES {
                break;
            }
            secret.push(c);
        }
        // Space around a secret is no part of it.
        while secret.ends_with(char::is_whitespace) {
            secret.pop();
        }
        while secret.chars().count() < MIN_CHARS {
            secret.push(self.pick(&letters));
        }
        secret
    }
}

/// Appends a text in an encoding.
type Encode<'a> = &'a dyn Fn(&mut String, &str);

/// A secret as it may be written.
#[derive(Clone, Debug)]
pub struct Spelling {
    pub name: String,
    /// The whole of what is written: with what the encoding has around the secret.
    pub text: String,
    /// The part of it that only the secret determines.
    pub part: String,
}

fn written_as(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a text");
}

fn unit_escapes(out: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        written_as(out, format_args!("\\u{unit:04x}"));
    }
}

fn json(out: &mut String, c: char) {
    match c {
        '"' | '\\' => out.extend(['\\', c]),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\0'..'\u{20}' => unit_escapes(out, c),
        _ => out.push(c),
    }
}

/// As `encodeURIComponent` of ECMAScript does.
fn percent(out: &mut String, byte: u8) {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => {
            out.push(char::from(byte));
        }
        _ => written_as(out, format_args!("%{byte:02X}")),
    }
}

fn html(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ => out.push(c),
    }
}

/// Encodes a text in base64. Returns the letters, and those that only the bytes from `from` to `to` determine.
fn base64(text: &str, more: [char; 2], from: usize, to: usize) -> (String, String) {
    let (bytes, letters): (_, Vec<char>) = (text.as_bytes(), ALPHANUMERIC.chars().chain(more).collect());
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let count = (bytes.len() * 8).div_ceil(6);
    let encoded: Vec<char> =
        (0..count).map(|at| letters[(0..6).fold(0, |value, of| value << 1 | bit(at * 6 + of))]).collect();
    let inside = (from * 8).div_ceil(6)..to * 8 / 6;
    (encoded.iter().collect(), encoded[inside].iter().collect())
}

/// Returns the spellings of a secret that a single encoding makes.
pub fn spellings(secret: &str) -> Vec<Spelling> {
    spellings_within("", secret, "")
}

/// Returns the spellings of a text with something around it.
fn spellings_within(before: &str, text: &str, after: &str) -> Vec<Spelling> {
    let as_it_is = |out: &mut String, byte: &str| out.push_str(byte);
    let of_chars =
        |write: fn(&mut String, char)| move |out: &mut String, text: &str| text.chars().for_each(|c| write(out, c));
    let of_bytes =
        |write: fn(&mut String, u8)| move |out: &mut String, text: &str| text.bytes().for_each(|byte| write(out, byte));
    let encodings: [(&str, Encode<'_>); 10] = [
        ("plain", &as_it_is),
        ("JSON", &of_chars(json)),
        ("JSON, each letter", &of_chars(unit_escapes)),
        ("percent", &of_bytes(percent)),
        ("percent, each byte", &of_bytes(|out, byte| written_as(out, format_args!("%{byte:02x}")))),
        ("form", &of_bytes(|out, byte| if byte == b' ' { out.push('+') } else { percent(out, byte) })),
        ("HTML", &of_chars(html)),
        ("HTML, each letter", &of_chars(|out, c| written_as(out, format_args!("&#{};", u32::from(c))))),
        ("hex", &of_bytes(|out, byte| written_as(out, format_args!("{byte:02x}")))),
        ("hex in capitals", &of_bytes(|out, byte| written_as(out, format_args!("{byte:02X}")))),
    ];
    let encoded = |encode: Encode<'_>, text: &str| {
        let mut out = String::new();
        encode(&mut out, text);
        out
    };
    let mut all: Vec<Spelling> = encodings
        .iter()
        .map(|(name, encode)| {
            let (part, whole) =
                (encoded(encode, text), [before, text, after].map(|text| encoded(encode, text)).concat());
            Spelling { name: (*name).to_owned(), text: whole, part }
        })
        .collect();
    for (alphabet, more, end) in [("base64", ['+', '/'], "="), ("base64url", ['-', '_'], "")] {
        for offset in ["", "u", "u:"] {
            let from = offset.len() + before.len();
            let (letters, part) = base64(&[offset, before, text, after, "@h"].concat(), more, from, from + text.len());
            let name = format!("{alphabet} at offset {}", offset.len());
            let padding = end.repeat((4 - letters.len() % 4) % 4);
            all.push(Spelling { name, text: letters + &padding, part });
        }
    }
    all
}

/// Returns a spelling within another one.
pub fn pair(secret: &str, random: &mut Random) -> Spelling {
    let mut one_of = |mut all: Vec<Spelling>| all.swap_remove(random.below(all.len()));
    let inner = one_of(spellings(secret));
    let (before, after) = inner.text.split_once(&inner.part).expect("its part");
    let outer = one_of(spellings_within(before, &inner.part, after));
    Spelling { name: format!("{} of {}", outer.name, inner.name), ..outer }
}

/// Writes spellings one after another, in any order, with something between them.
pub fn written(mut all: Vec<Spelling>, random: &mut Random) -> String {
    let mut text = String::new();
    while !all.is_empty() {
        let next = all.swap_remove(random.below(all.len()));
        text.push_str(random.pick(&BESIDE));
        text.push_str(&next.text);
    }
    text.push_str(random.pick(&BESIDE));
    text
}

/// Finds spellings, and parts of them, in what has left.
#[derive(Default)]
pub struct Needles {
    /// Spellings that are shorter than a part.
    short: Vec<(String, String)>,
    parts: HashMap<[u8; PART], String>,
    /// The first two bytes of the parts: most places of a text begin none.
    begins: HashSet<[u8; 2]>,
    is_begin: Vec<bool>,
}

impl Needles {
    pub fn add(&mut self, secret: &str, spelling: &Spelling) {
        let found = || format!("{:?} as {}: {:?}", secret, spelling.name, spelling.part);
        if spelling.part.len() < PART {
            self.short.push((spelling.part.clone(), found()));
            return;
        }
        for part in spelling.part.as_bytes().windows(PART) {
            let part: [u8; PART] = part.try_into().expect("of this length");
            self.begins.insert([part[0], part[1]]);
            self.parts.entry(part).or_insert_with(found);
        }
        self.is_begin.resize(1 << 16, false);
        for [first, second] in &self.begins {
            self.is_begin[usize::from(u16::from_be_bytes([*first, *second]))] = true;
        }
    }

    /// Returns what a text contains, as it is or with its escapes decoded.
    pub fn find(&self, text: &str) -> Option<&str> {
        readings(text).iter().find_map(|text| self.find_plain(text))
    }

    /// Returns what a text contains as it is.
    pub fn find_plain(&self, text: &str) -> Option<&str> {
        let short = self.short.iter().find(|(part, _)| text.contains(part)).map(|(_, found)| found.as_str());
        short.or_else(|| {
            let mut windows = text.as_bytes().windows(PART).filter(|window| {
                self.is_begin.get(usize::from(u16::from_be_bytes([window[0], window[1]]))).is_some_and(|begins| *begins)
            });
            windows.find_map(|window| self.parts.get(window)).map(String::as_str)
        })
    }
}

/// Returns a text as it is, and with the escapes of JSON decoded once, twice and three times: JSON is sent in texts that are
/// strings of JSON.
fn readings(text: &str) -> Vec<String> {
    let mut all = vec![text.to_owned()];
    for _ in 0..3 {
        let last = all.last().expect("the text");
        if !last.contains('\\') {
            break;
        }
        all.push(unescaped(last));
    }
    all
}

fn unescaped(text: &str) -> String {
    let (mut units, mut rest) = (Vec::with_capacity(text.len()), text.chars());
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        let meant = match escaped {
            None => c,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let digits = rest.as_str().get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
                if let Some(unit) = digits {
                    units.push(unit);
                    rest.nth(3);
                    continue;
                }
                'u'
            }
            Some(other) => other,
        };
        units.extend_from_slice(meant.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

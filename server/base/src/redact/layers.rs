//! Where secrets stand in a text, as they are and behind one or two layers of writing: escapes, base64
//! and hex.
//!
//! A text is looked at in windows, so that what is needed beside it does not grow with it. Each layer is
//! decoded into bytes that know where they stand in the window. What a layer is not (a secret split,
//! reversed, encrypted, written letter by letter in a way of its own) is not looked for.

use aho_corasick::AhoCorasick;
use std::borrow::Cow;
use std::ops::Range;

/// How many layers are taken off.
const MOST_LAYERS: usize = 2;
/// How much of a text is looked at at once, in bytes.
const WINDOW: usize = 128 * 1024;
/// How many bytes one byte comes to at most behind two layers: `\u005cu0041` and the like.
const GROWTH: usize = 40;
/// Behind layers, longer secrets may be missed where two windows meet.
const FAREST: usize = 256 * 1024;
/// Between two runs of encoded text. No secret holds it: it is no part of UTF-8.
const GAP: u8 = 0xff;
/// Longest row of separators within hex, in bytes: `, 0x` and a line break with indentation.
const SEPARATORS: usize = 16;

/// Finds secrets behind layers.
pub(super) struct Finder {
    secrets: AhoCorasick,
    /// Length of the shortest secret, in bytes.
    shortest: usize,
    /// How far a secret may reach, in bytes of a text.
    reach: usize,
}

/// Where a byte of a layer stands in its window: from, to.
type Place = (u32, u32);

/// Bytes, and where each of them stands in the window.
struct Layer<'a> {
    bytes: Cow<'a, [u8]>,
    /// Empty: each byte stands where it is.
    places: Vec<Place>,
}

impl Finder {
    /// Finds what `secrets` finds, which must report overlapping matches. The shortest of them has
    /// `shortest` bytes, the longest `longest`.
    pub(super) fn new(secrets: AhoCorasick, shortest: usize, longest: usize) -> Self {
        let reach = longest.saturating_mul(GROWTH).min(FAREST).max(longest + 1);
        Self { secrets, shortest: shortest.max(1), reach }
    }

    /// The text with `mask` in the place of each secret; none: there are no secrets in it.
    pub(super) fn masked(&self, text: &str, mask: &str) -> Option<String> {
        if text.len() < self.shortest {
            return None;
        }
        let mut out: Option<String> = None;
        // Up to where the text has been taken over.
        let mut done = 0;
        let window = WINDOW.max(self.reach);
        let mut at = 0;
        while at < text.len() {
            let end = (at + window).min(text.len());
            let first = at.saturating_sub(self.reach);
            let last = end.saturating_add(self.reach).min(text.len());
            for found in self.places(&text.as_bytes()[first..last]) {
                let start = text.floor_char_boundary(first + found.start);
                let stop = text.ceil_char_boundary(first + found.end);
                // What begins later is found again in the next window.
                if stop <= done || start >= end {
                    continue;
                }
                let out = out.get_or_insert_with(String::new);
                if start >= done {
                    out.push_str(&text[done..start]);
                    out.push_str(mask);
                }
                done = stop;
            }
            at = end;
        }
        out.map(|mut out| {
            out.push_str(&text[done..]);
            out
        })
    }

    /// The places of all secrets in a window, in order; those that overlap are one.
    fn places(&self, window: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.search(&Layer { bytes: Cow::Borrowed(window), places: Vec::new() }, 0, &mut found);
        found.sort_unstable_by_key(|place| (place.start, place.end));
        found.dedup_by(|next, before| {
            let joined = next.start < before.end;
            if joined {
                before.end = before.end.max(next.end);
            }
            joined
        });
        found
    }

    fn search(&self, layer: &Layer<'_>, layers: usize, found: &mut Vec<Range<usize>>) {
        let begin = found.len();
        for secret in self.secrets.find_overlapping_iter(&*layer.bytes) {
            let (start, end) = (layer.place(secret.start()).0 as usize, layer.place(secret.end() - 1).1 as usize);
            match found[begin..].last_mut() {
                // A text of nothing but secrets has no more places than it needs.
                Some(before) if before.start <= start && start < before.end => before.end = before.end.max(end),
                Some(_) | None => found.push(start..end),
            }
        }
        if layers == MOST_LAYERS {
            return;
        }
        for escapes in escapes(layer) {
            self.search(&unescaped(layer, escapes, b'+'), layers + 1, found);
        }
        let decoded = [form(layer), base64(layer, self.shortest), hex(layer, self.shortest)];
        for inner in decoded.into_iter().flatten() {
            self.search(&inner, layers + 1, found);
        }
    }
}

impl Layer<'_> {
    fn place(&self, at: usize) -> Place {
        match self.places.get(at) {
            Some(place) => *place,
            // A window is much shorter than that.
            None => (u32::try_from(at).unwrap_or(u32::MAX), u32::try_from(at + 1).unwrap_or(u32::MAX)),
        }
    }

    fn push(&mut self, byte: u8, (from, to): Place) {
        self.bytes.to_mut().push(byte);
        self.places.push((from, to));
    }

    fn empty() -> Layer<'static> {
        Layer { bytes: Cow::Owned(Vec::new()), places: Vec::new() }
    }
}

/// Which escapes are taken off.
#[derive(Clone, Copy)]
struct Escapes {
    /// What they begin with: a backslash (JSON, JavaScript), a per-cent sign (addresses), an ampersand (HTML).
    leads: &'static [u8],
    /// Whether a backslash stays that begins no escape of JSON, as lenient readers of JSON let it. In JavaScript it
    /// goes, or begins another escape.
    keeps_backslash: bool,
}

impl Escapes {
    const fn of(leads: &'static [u8]) -> Self {
        Self { leads, keeps_backslash: false }
    }
}

/// Which escapes are to be taken off: all that there are, and where there are several kinds each for itself, as what
/// looks like one of another kind may be part of the secret.
fn escapes(from: &Layer<'_>) -> Vec<Escapes> {
    let leads: [&'static [u8]; 3] = [b"\\", b"%", b"&"];
    let mut kinds: Vec<Escapes> =
        leads.into_iter().filter(|lead| from.bytes.contains(&lead[0])).map(Escapes::of).collect();
    if kinds.len() > 1 {
        kinds.push(Escapes::of(b"\\%&"));
    }
    if from.bytes.windows(2).any(|pair| pair[0] == b'\\' && is_needless(pair[1])) {
        let keeping: Vec<Escapes> = kinds.iter().filter(|kind| kind.leads.contains(&b'\\')).copied().collect();
        kinds.extend(keeping.into_iter().map(|kind| Escapes { keeps_backslash: true, ..kind }));
    }
    kinds
}

/// Whether a backslash before this letter begins an escape in JavaScript and none in JSON.
fn is_needless(letter: u8) -> bool {
    let is_escaped = letter.is_ascii_punctuation() || matches!(letter, b'x' | b'v');
    is_escaped && !matches!(letter, b'"' | b'/' | b'\\')
}

/// The same of a form of HTML, where a space is a plus; none where there are no escapes or no pluses.
fn form(from: &Layer<'_>) -> Option<Layer<'static>> {
    (from.bytes.contains(&b'%') && from.bytes.contains(&b'+')).then(|| unescaped(from, Escapes::of(b"%"), b' '))
}

/// Without these escapes. A plus stands for `plus`.
fn unescaped(from: &Layer<'_>, escapes: Escapes, plus: u8) -> Layer<'static> {
    let bytes = &*from.bytes;
    let mut out = Layer::empty();
    let mut at = 0;
    while at < bytes.len() {
        let is_kept =
            escapes.keeps_backslash && bytes[at] == b'\\' && bytes.get(at + 1).copied().is_some_and(is_needless);
        let escape = if escapes.leads.contains(&bytes[at]) && !is_kept { escape(&bytes[at..]) } else { None };
        let Some((escaped, length)) = escape else {
            out.push(if bytes[at] == b'+' { plus } else { bytes[at] }, from.place(at));
            at += 1;
            continue;
        };
        let place = (from.place(at).0, from.place(at + length - 1).1);
        match escaped {
            Escaped::Byte(byte) => out.push(byte, place),
            Escaped::Char(char) => char.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push(byte, place)),
        }
        at += length;
    }
    out
}

/// What an escape stands for.
enum Escaped {
    Byte(u8),
    Char(char),
}

/// The escape that these bytes begin with, and its length.
fn escape(bytes: &[u8]) -> Option<(Escaped, usize)> {
    match bytes.first()? {
        b'%' => Some((Escaped::Byte(u8::try_from(number(bytes.get(1..3)?, 16)?).ok()?), 3)),
        b'\\' => backslash(bytes),
        b'&' => reference(bytes),
        _ => None,
    }
}

fn backslash(bytes: &[u8]) -> Option<(Escaped, usize)> {
    let byte = |byte| Some((Escaped::Byte(byte), 2));
    match *bytes.get(1)? {
        b'u' if bytes.get(2) == Some(&b'{') => {
            let digits = bytes[3..].iter().take(8).position(|byte| *byte == b'}')?;
            let char = char::from_u32(number(&bytes[3..3 + digits], 16)?)?;
            Some((Escaped::Char(char), digits + 4))
        }
        b'u' => {
            let unit = number(bytes.get(2..6)?, 16)?;
            if let Some(char) = char::from_u32(unit) {
                return Some((Escaped::Char(char), 6));
            }
            let low = bytes.get(6..12)?.strip_prefix(b"\\u")?;
            let low = number(low, 16).filter(|low| (0xdc00..0xe000).contains(low))?;
            let char = char::from_u32(0x10000 + (unit.checked_sub(0xd800)? << 10) + (low - 0xdc00))?;
            Some((Escaped::Char(char), 12))
        }
        b'x' => Some((Escaped::Byte(u8::try_from(number(bytes.get(2..4)?, 16)?).ok()?), 4)),
        b'n' => byte(b'\n'),
        b'r' => byte(b'\r'),
        b't' => byte(b'\t'),
        b'b' => byte(8),
        b'f' => byte(12),
        b'v' => byte(11),
        other if other.is_ascii_punctuation() => byte(other),
        _ => None,
    }
}

/// A reference of HTML: `&amp;`, `&#38;`, `&#x26;`.
fn reference(bytes: &[u8]) -> Option<(Escaped, usize)> {
    let end = bytes.iter().take(10).position(|byte| *byte == b';')?;
    let char = match &bytes[1..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        _ => return None,
    };
    Some((Escaped::Char(char), end + 1))
}

/// A number of at most eight digits.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u32, |number, digit| number.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?))
}

/// Runs of base64 in either alphabet, decoded from each of their first four letters on: where a run
/// begins is not where the encoding began. None where no run can hold a secret.
fn base64(from: &Layer<'_>, shortest: usize) -> Option<Layer<'static>> {
    let least = (shortest * 8).div_ceil(6);
    let mut out = Layer::empty();
    runs(&from.bytes, least, &BASE64, within_base64, |run: &[(u8, u32)]| {
        for begin in 0..4 {
            for letters in run.get(begin..).unwrap_or_default().chunks(4) {
                let place = |first: usize| {
                    (from.place(letters[first].1 as usize).0, from.place(letters[first + 1].1 as usize).1)
                };
                for first in 0..letters.len() - 1 {
                    // A byte has the last six, four or two bits of a letter and the first ones of the next.
                    let shift = 2 * (first + 1);
                    let byte = u16::from(letters[first].0) << shift | u16::from(letters[first + 1].0) >> (6 - shift);
                    out.push(byte.to_le_bytes()[0], place(first));
                }
            }
            out.push(GAP, (0, 0));
        }
    });
    (!out.places.is_empty()).then_some(out)
}

/// How many bytes may be passed over within base64: a line break, with spaces around it.
fn within_base64(bytes: &[u8]) -> usize {
    let space = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    if bytes[..space].iter().any(|byte| matches!(byte, b'\r' | b'\n')) { space } else { 0 }
}

/// Runs of hex digits, with separators or without, decoded from their first two digits on. None where no
/// run can hold a secret.
fn hex(from: &Layer<'_>, shortest: usize) -> Option<Layer<'static>> {
    let mut out = Layer::empty();
    runs(&from.bytes, shortest * 2, &HEX, within_hex, |run: &[(u8, u32)]| {
        for begin in 0..2 {
            for digits in run[begin..].chunks_exact(2) {
                let place = (from.place(digits[0].1 as usize).0, from.place(digits[1].1 as usize).1);
                out.push(digits[0].0 << 4 | digits[1].0, place);
            }
            out.push(GAP, (0, 0));
        }
    });
    (!out.places.is_empty()).then_some(out)
}

/// How many bytes may be passed over within hex: separators, and `0x` or `\x` before a byte.
fn within_hex(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < SEPARATORS {
        at += match &bytes[at..] {
            [b'0' | b'\\', b'x' | b'X', ..] => 2,
            [b' ' | b'+' | b':' | b'-' | b',' | b'.' | b';' | b'_' | b'\t' | b'\r' | b'\n', ..] => 1,
            _ => return at,
        };
    }
    0
}

/// Not a digit.
const OTHER: u8 = 255;
/// Not a digit, but perhaps passed over.
const PERHAPS: u8 = 254;

/// What each byte is in base64: the value of a letter, or none.
const BASE64: [u8; 256] =
    table(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", b"-_", 62, b" \t\r\n");
/// The same for hex.
const HEX: [u8; 256] = table(b"0123456789abcdef", b"ABCDEF", 10, b" +:-,.;_\t\r\n\\");

const fn table(digits: &[u8], more: &[u8], first: u8, passed: &[u8]) -> [u8; 256] {
    let mut table = [OTHER; 256];
    let mut at = 0;
    while at < passed.len() {
        table[passed[at] as usize] = PERHAPS;
        at += 1;
    }
    at = 0;
    while at < digits.len() {
        table[digits[at] as usize] = at as u8;
        at += 1;
    }
    at = 0;
    while at < more.len() {
        table[more[at] as usize] = first + at as u8;
        at += 1;
    }
    table
}

/// Runs of digits, at least `least` of them: their values and where they stand. `within` says how many bytes
/// are passed over at a place.
fn runs(
    bytes: &[u8],
    least: usize,
    digits: &[u8; 256],
    within: impl Fn(&[u8]) -> usize,
    mut run_found: impl FnMut(&[(u8, u32)]),
) {
    let mut run: Vec<(u8, u32)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digit = digits[usize::from(bytes[at])];
        // The zero of `0x` is no digit.
        let is_prefix = bytes[at] == b'0' && digit == 0 && matches!(bytes.get(at + 1), Some(b'x' | b'X'));
        if digit < PERHAPS && !is_prefix {
            run.push((digit, u32::try_from(at).unwrap_or(u32::MAX)));
            at += 1;
            continue;
        }
        let passed = if digit == OTHER || run.is_empty() { 0 } else { within(&bytes[at..]) };
        if passed > 0 {
            at += passed;
            continue;
        }
        if run.len() >= least {
            run_found(&run);
        }
        run.clear();
        at += 1;
    }
    if run.len() >= least {
        run_found(&run);
    }
}

//! Finds secrets in a text, in plain and behind one or two layers of encoding: escapes, base64 and hex.
//!
//! A text is searched in windows, so that the memory for decoded layers is bounded. Each layer is decoded into bytes
//! with their positions in the window. Other transformations (a secret that is split, reversed, encrypted or otherwise
//! encoded) are not searched.

use aho_corasick::AhoCorasick;
use std::borrow::Cow;
use std::ops::Range;

/// How many layers of encoding are decoded.
const MAX_LAYERS: usize = 2;
/// How much of a text is searched at once, in bytes.
const WINDOW: usize = 128 * 1024;
/// How many bytes two layers of encoding need at most for one byte: for example `\u005cu0041`.
const MAX_GROWTH: usize = 40;
/// Maximum overlap of two windows, in bytes. An encoded secret that is longer may be missed at a window boundary.
const MAX_REACH: usize = 256 * 1024;
/// Separates two runs of decoded bytes. No secret contains it, because it is not valid in UTF-8.
const GAP: u8 = 0xff;
/// How many letters of base64 belong together, also where one layer is in another.
const MAX_GROUP: usize = 8;
/// How much of the end of a text is not decoded alone, in bytes.
const MAX_TAIL: usize = 24;
/// How long an escape is whose characters are escapes themselves, in bytes: `\ud83d\udd11` as `&#92;&#117;` and so on.
const MAX_ESCAPE: usize = 80;
/// Maximum length of a sequence of separators within hex, in bytes: `, 0x` and a line break with indentation.
const MAX_SEPARATOR_BYTES: usize = 16;

/// Finds secrets in plain and encoded text.
pub(super) struct SecretFinder {
    secrets: AhoCorasick,
    /// The spellings as text, to find their beginnings.
    texts: Vec<String>,
    /// Length of the shortest secret, in bytes.
    shortest: usize,
    /// How many bytes of text an encoded secret may take; the overlap of windows.
    reach: usize,
}

/// The start and end of a decoded byte in the window.
type Span = (u32, u32);

/// A window, or the bytes decoded from it, with their spans.
struct Layer<'a> {
    bytes: Cow<'a, [u8]>,
    /// The span of each byte; empty for the window itself.
    spans: Vec<Span>,
}

/// Counts bytes that were looked at or decoded. Only tests do so: the time is proportional to it.
#[cfg(not(test))]
const fn count(_: usize) {}

#[cfg(test)]
thread_local! {
    static COUNTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count(bytes: usize) {
    COUNTED.set(COUNTED.get() + bytes);
}

/// Returns how many bytes this thread has looked at or decoded since the last call.
#[cfg(test)]
pub(super) fn counted() -> usize {
    COUNTED.take()
}

impl SecretFinder {
    /// Creates a finder from an automaton, which must support overlapping matches, and the lengths of the shortest and
    /// the longest secret, in bytes.
    pub(super) fn new(secrets: AhoCorasick, texts: Vec<String>, shortest: usize, longest: usize) -> Self {
        let reach = longest.saturating_mul(MAX_GROWTH).min(MAX_REACH).max(longest + 1);
        Self { secrets, texts, shortest: shortest.max(1), reach }
    }

    /// Replaces each secret by `mask`. Returns `None` if the text contains no secret.
    pub(super) fn mask(&self, text: &str, mask: &str) -> Option<String> {
        if text.len() < self.shortest {
            return None;
        }
        let mut out: Option<String> = None;
        // The part of the text that was copied to `out`.
        let mut done = 0;
        let window = WINDOW.max(self.reach);
        let mut at = 0;
        while at < text.len() {
            let end = (at + window).min(text.len());
            let first = at.saturating_sub(self.reach);
            let last = end.saturating_add(self.reach).min(text.len());
            for found in self.find(&text.as_bytes()[first..last]) {
                let start = text.floor_char_boundary(first + found.start);
                let stop = text.ceil_char_boundary(first + found.end);
                // A secret that starts in the overlap is found again in the next window.
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

    /// Returns from where on a text may be the beginning of a secret whose rest is still to come.
    pub(super) fn open_from(&self, text: &str) -> usize {
        let first = text.ceil_char_boundary(text.len().saturating_sub(self.reach));
        let window = &text.as_bytes()[first..];
        // What is decoded only together with what follows it: a group of base64, an escape, a separator.
        let mut open = window.len().saturating_sub(MAX_TAIL);
        // The first escape that is near.
        let escape = |at: usize| {
            let near = at.saturating_sub(MAX_ESCAPE);
            let lead = window[near..at].iter().position(|byte| matches!(byte, b'\\' | b'%' | b'&'));
            lead.map_or(at, |lead| near + lead)
        };
        open = open.min(escape(window.len()));
        let plain = Layer { bytes: Cow::Borrowed(window), spans: Vec::new() };
        self.open(&plain, window.len(), MAX_TAIL, 0, &mut open);
        // A group of base64 is not decoded if its first letters have left.
        let is_letter = |byte: &&u8| BASE64[usize::from(**byte)] < SKIPPABLE || matches!(**byte, b'\r' | b'\n');
        let with_group = |at: usize| {
            let letters = window[..at].iter().rev().take(MAX_GROUP).take_while(is_letter).count();
            // Its letters may be escapes.
            escape(at).min(at - letters)
        };
        open = with_group(open);
        // Nor does a secret leave in two parts.
        for found in self.find(window).into_iter().rev() {
            let start = with_group(found.start);
            if start < open && open < found.end {
                open = start;
            }
        }
        text.floor_char_boundary(first + open)
    }

    /// `tail` is how much of the end may not be decoded.
    fn open(&self, layer: &Layer<'_>, end: usize, tail: usize, layers: usize, open: &mut usize) {
        let mut start = 0;
        for run in layer.bytes.split(|byte| *byte == GAP) {
            // After what is decoded there may be the beginning of an escape, which is not.
            let ends = (1..=run.len()).rev().take(if layers == 0 { 1 } else { MAX_TAIL });
            for end_of in ends.take_while(|of| layer.span(start + of - 1).1 as usize + tail >= end) {
                let begins = |text: &String| {
                    let mut lengths = (1..text.len().min(end_of + 1)).rev();
                    lengths.find(|&length| run[..end_of].ends_with(&text.as_bytes()[..length]))
                };
                if let Some(length) = self.texts.iter().filter_map(begins).max() {
                    *open = (*open).min(layer.span(start + end_of - length).0 as usize);
                }
            }
            start += run.len() + 1;
        }
        if layers == MAX_LAYERS {
            return;
        }
        for escapes in escapes(layer) {
            self.open(&unescape(layer, escapes, b'+'), end, MAX_ESCAPE, layers + 1, open);
        }
        // Nothing is too short to be the beginning of a secret.
        for inner in [decode_form(layer), decode_base64(layer, 1), decode_hex(layer, 1)].into_iter().flatten() {
            self.open(&inner, end, tail, layers + 1, open);
        }
    }

    /// Returns the ranges of all secrets in a window, in order. Overlapping ranges are merged.
    fn find(&self, window: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.search(&Layer { bytes: Cow::Borrowed(window), spans: Vec::new() }, 0, &mut found);
        found.sort_unstable_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, before| {
            let overlaps = next.start < before.end;
            if overlaps {
                before.end = before.end.max(next.end);
            }
            overlaps
        });
        found
    }

    fn search(&self, layer: &Layer<'_>, layers: usize, found: &mut Vec<Range<usize>>) {
        let begin = found.len();
        count(layer.bytes.len());
        for secret in self.secrets.find_overlapping_iter(&*layer.bytes) {
            count(1);
            let (start, end) = (layer.span(secret.start()).0 as usize, layer.span(secret.end() - 1).1 as usize);
            match found[begin..].last_mut() {
                // Merging here bounds the memory for a text that consists of secrets only.
                Some(before) if before.start <= start && start < before.end => before.end = before.end.max(end),
                Some(_) | None => found.push(start..end),
            }
        }
        if layers == MAX_LAYERS {
            return;
        }
        for escapes in escapes(layer) {
            self.search(&unescape(layer, escapes, b'+'), layers + 1, found);
        }
        let decoded = [decode_form(layer), decode_base64(layer, self.shortest), decode_hex(layer, self.shortest)];
        for inner in decoded.into_iter().flatten() {
            self.search(&inner, layers + 1, found);
        }
    }
}

impl Layer<'_> {
    fn span(&self, at: usize) -> Span {
        match self.spans.get(at) {
            Some(span) => *span,
            // A window is much shorter than `u32::MAX`.
            None => (u32::try_from(at).unwrap_or(u32::MAX), u32::try_from(at + 1).unwrap_or(u32::MAX)),
        }
    }

    fn push(&mut self, byte: u8, (from, to): Span) {
        count(1);
        self.bytes.to_mut().push(byte);
        self.spans.push((from, to));
    }

    fn empty() -> Layer<'static> {
        Layer { bytes: Cow::Owned(Vec::new()), spans: Vec::new() }
    }
}

/// The escapes that are decoded.
#[derive(Clone, Copy)]
struct Escapes {
    /// The first character of an escape: a backslash (JSON, JavaScript), a percent sign (URLs), an ampersand (HTML).
    leads: &'static [u8],
    /// Whether a backslash that starts no escape of JSON is kept, as lenient JSON parsers do. JavaScript removes it, or
    /// it starts another escape there.
    keeps_backslash: bool,
}

impl Escapes {
    const fn new(leads: &'static [u8]) -> Self {
        Self { leads, keeps_backslash: false }
    }
}

/// Returns the sets of escapes to decode: each kind that occurs alone, because what looks like an escape of another kind
/// may be part of the secret, and all kinds together.
fn escapes(from: &Layer<'_>) -> Vec<Escapes> {
    let leads: [&'static [u8]; 3] = [b"\\", b"%", b"&"];
    let mut kinds: Vec<Escapes> =
        leads.into_iter().filter(|lead| from.bytes.contains(&lead[0])).map(Escapes::new).collect();
    if kinds.len() > 1 {
        kinds.push(Escapes::new(b"\\%&"));
    }
    if from.bytes.windows(2).any(|pair| pair[0] == b'\\' && is_javascript_escape(pair[1])) {
        let keeping: Vec<Escapes> = kinds.iter().filter(|kind| kind.leads.contains(&b'\\')).copied().collect();
        kinds.extend(keeping.into_iter().map(|kind| Escapes { keeps_backslash: true, ..kind }));
    }
    kinds
}

/// Whether a backslash before this letter starts an escape in JavaScript, but not in JSON.
fn is_javascript_escape(letter: u8) -> bool {
    let is_escaped = letter.is_ascii_punctuation() || matches!(letter, b'x' | b'v');
    is_escaped && !matches!(letter, b'"' | b'/' | b'\\')
}

/// Decodes form encoding, where a plus sign stands for a space. Returns `None` if there are no escapes or no plus
/// signs.
fn decode_form(from: &Layer<'_>) -> Option<Layer<'static>> {
    (from.bytes.contains(&b'%') && from.bytes.contains(&b'+')).then(|| unescape(from, Escapes::new(b"%"), b' '))
}

/// Decodes escapes. A plus sign becomes `plus`.
fn unescape(from: &Layer<'_>, escapes: Escapes, plus: u8) -> Layer<'static> {
    let bytes = &*from.bytes;
    let mut out = Layer::empty();
    let mut at = 0;
    while at < bytes.len() {
        count(1);
        let is_kept = escapes.keeps_backslash
            && bytes[at] == b'\\'
            && bytes.get(at + 1).copied().is_some_and(is_javascript_escape);
        let escape = if escapes.leads.contains(&bytes[at]) && !is_kept { decode_escape(&bytes[at..]) } else { None };
        let Some((escaped, length)) = escape else {
            out.push(if bytes[at] == b'+' { plus } else { bytes[at] }, from.span(at));
            at += 1;
            continue;
        };
        let span = (from.span(at).0, from.span(at + length - 1).1);
        match escaped {
            Escaped::Byte(byte) => out.push(byte, span),
            Escaped::Char(char) => char.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push(byte, span)),
        }
        at += length;
    }
    out
}

/// The value of an escape.
enum Escaped {
    Byte(u8),
    Char(char),
}

/// Decodes the escape at the start of these bytes. Returns its value and its length.
fn decode_escape(bytes: &[u8]) -> Option<(Escaped, usize)> {
    match bytes.first()? {
        b'%' => Some((Escaped::Byte(u8::try_from(parse_number(bytes.get(1..3)?, 16)?).ok()?), 3)),
        b'\\' => decode_backslash(bytes),
        b'&' => decode_reference(bytes),
        _ => None,
    }
}

fn decode_backslash(bytes: &[u8]) -> Option<(Escaped, usize)> {
    let byte = |byte| Some((Escaped::Byte(byte), 2));
    match *bytes.get(1)? {
        b'u' if bytes.get(2) == Some(&b'{') => {
            let digits = bytes[3..].iter().take(8).position(|byte| *byte == b'}')?;
            let char = char::from_u32(parse_number(&bytes[3..3 + digits], 16)?)?;
            Some((Escaped::Char(char), digits + 4))
        }
        b'u' => {
            let unit = parse_number(bytes.get(2..6)?, 16)?;
            if let Some(char) = char::from_u32(unit) {
                return Some((Escaped::Char(char), 6));
            }
            let low = bytes.get(6..12)?.strip_prefix(b"\\u")?;
            let low = parse_number(low, 16).filter(|low| (0xdc00..0xe000).contains(low))?;
            let char = char::from_u32(0x10000 + (unit.checked_sub(0xd800)? << 10) + (low - 0xdc00))?;
            Some((Escaped::Char(char), 12))
        }
        b'x' => Some((Escaped::Byte(u8::try_from(parse_number(bytes.get(2..4)?, 16)?).ok()?), 4)),
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

/// Decodes a character reference of HTML: `&amp;`, `&#38;`, `&#x26;`.
fn decode_reference(bytes: &[u8]) -> Option<(Escaped, usize)> {
    let end = bytes.iter().take(10).position(|byte| *byte == b';')?;
    let char = match &bytes[1..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(parse_number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(parse_number(digits, 10)?)?,
        _ => return None,
    };
    Some((Escaped::Char(char), end + 1))
}

/// Parses a number of at most eight digits.
fn parse_number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u32, |number, digit| number.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?))
}

/// Decodes runs of base64 in either alphabet. Each run is decoded from its first four letters on, because the encoding
/// may start before the run. Returns `None` if no run is long enough for a secret.
fn decode_base64(from: &Layer<'_>, shortest: usize) -> Option<Layer<'static>> {
    let min_letters = (shortest * 8).div_ceil(6);
    let mut out = Layer::empty();
    for_each_run(&from.bytes, min_letters, &BASE64, skip_in_base64, |run: &[(u8, u32)]| {
        for begin in 0..4 {
            for letters in run.get(begin..).unwrap_or_default().chunks(4) {
                let span_of =
                    |first: usize| (from.span(letters[first].1 as usize).0, from.span(letters[first + 1].1 as usize).1);
                for first in 0..letters.len() - 1 {
                    // A byte consists of the last six, four or two bits of a letter and the first bits of the next.
                    let shift = 2 * (first + 1);
                    let byte = u16::from(letters[first].0) << shift | u16::from(letters[first + 1].0) >> (6 - shift);
                    out.push(byte.to_le_bytes()[0], span_of(first));
                }
            }
            out.push(GAP, (0, 0));
        }
    });
    (!out.spans.is_empty()).then_some(out)
}

/// Returns how many bytes to skip within base64: a line break with spaces around it.
fn skip_in_base64(bytes: &[u8]) -> usize {
    let space = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    count(space);
    if bytes[..space].iter().any(|byte| matches!(byte, b'\r' | b'\n')) { space } else { 0 }
}

/// Decodes runs of hex digits, with or without separators. Each run is decoded from its first two digits on. Returns
/// `None` if no run is long enough for a secret.
fn decode_hex(from: &Layer<'_>, shortest: usize) -> Option<Layer<'static>> {
    let mut out = Layer::empty();
    for_each_run(&from.bytes, shortest * 2, &HEX, skip_in_hex, |run: &[(u8, u32)]| {
        for begin in 0..2 {
            for digits in run[begin..].chunks_exact(2) {
                let span = (from.span(digits[0].1 as usize).0, from.span(digits[1].1 as usize).1);
                out.push(digits[0].0 << 4 | digits[1].0, span);
            }
            out.push(GAP, (0, 0));
        }
    });
    (!out.spans.is_empty()).then_some(out)
}

/// Returns how many bytes to skip within hex: separators, and `0x` or `\x` before a byte.
fn skip_in_hex(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < MAX_SEPARATOR_BYTES {
        count(1);
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
/// Not a digit, but it may be skipped.
const SKIPPABLE: u8 = 254;

/// The value of each byte in base64.
const BASE64: [u8; 256] =
    table(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", b"-_", 62, b" \t\r\n");
/// The value of each byte in hex.
const HEX: [u8; 256] = table(b"0123456789abcdef", b"ABCDEF", 10, b" +:-,.;_\t\r\n\\");

const fn table(digits: &[u8], more: &[u8], first: u8, skippable: &[u8]) -> [u8; 256] {
    let mut table = [OTHER; 256];
    let mut at = 0;
    while at < skippable.len() {
        table[skippable[at] as usize] = SKIPPABLE;
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

/// Calls `run_found` with the values and positions of each run of at least `min_digits` digits. `skip` returns how many
/// bytes to skip within a run.
fn for_each_run(
    bytes: &[u8],
    min_digits: usize,
    digits: &[u8; 256],
    skip: impl Fn(&[u8]) -> usize,
    mut run_found: impl FnMut(&[(u8, u32)]),
) {
    let mut run: Vec<(u8, u32)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        count(1);
        let digit = digits[usize::from(bytes[at])];
        // The zero of `0x` is not a digit.
        let is_prefix = bytes[at] == b'0' && digit == 0 && matches!(bytes.get(at + 1), Some(b'x' | b'X'));
        if digit < SKIPPABLE && !is_prefix {
            run.push((digit, u32::try_from(at).unwrap_or(u32::MAX)));
            at += 1;
            continue;
        }
        let skipped = if digit == OTHER || run.is_empty() { 0 } else { skip(&bytes[at..]) };
        if skipped > 0 {
            at += skipped;
            continue;
        }
        if run.len() >= min_digits {
            run_found(&run);
        }
        run.clear();
        at += 1;
    }
    if run.len() >= min_digits {
        run_found(&run);
    }
}

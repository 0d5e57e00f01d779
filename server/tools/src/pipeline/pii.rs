//! Masks personal data in inputs and results of tools, in notifications and in audit records: a hook.
//!
//! `[email]` stands for an address, `[card]` for a card, and so on; `[masked]` for the value of a
//! field that is masked by its name.

use super::check;
use super::hook::{Before, Hook, HookCall};
use codecall_base::json::{self, Unread};
use codecall_base::tool::{ToolError, ToolResult, glob_matches};
use codecall_config::{PiiConfig, PiiKind};
use codecall_upstream::BoxFuture;
use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The hook.
pub struct Pii {
    config: PiiConfig,
    /// Names of fields in lower case.
    fields: Vec<String>,
}

impl Pii {
    /// Creates the hook.
    #[must_use]
    pub fn new(config: PiiConfig) -> Self {
        let fields = config.fields.iter().map(|name| name.to_lowercase()).collect();
        Self { config, fields }
    }

    /// Masks a value in place, also its keys. It may recurse, because JSON parsers limit the depth of values.
    pub fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask_text(text),
            Value::Number(number) => {
                let text = number.to_string();
                // A number is neither an e-mail address nor a telephone number.
                if let Cow::Owned(masked) = self.masked(&text, &[PiiKind::Card]) {
                    *value = Value::String(masked);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(members) => self.mask_members(members),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn mask_members(&self, members: &mut Map<String, Value>) {
        if members.keys().any(|key| matches!(self.masked(key, &PiiKind::ALL), Cow::Owned(_))) {
            let mut masked = Map::new();
            // The number of equal names: searching a free one from the start each time would be quadratic.
            let mut given: HashMap<String, u64> = HashMap::new();
            for (key, member) in std::mem::take(members) {
                let name = self.masked(&key, &PiiKind::ALL).into_owned();
                let times = given.entry(name.clone()).or_default();
                // Two addresses have one mask, and both members are to stay.
                let free = std::iter::from_fn(|| {
                    *times += 1;
                    Some(if *times == 1 { name.clone() } else { format!("{name} {times}") })
                });
                let free = free.into_iter().find(|name| !masked.contains_key(name));
                masked.insert(free.unwrap_or_default(), member);
            }
            *members = masked;
        }
        let is_media = matches!(members.get("type").and_then(Value::as_str), Some("image" | "audio"));
        for (key, member) in members.iter_mut() {
            let small = key.to_lowercase();
            if self.fields.iter().any(|pattern| glob_matches(pattern, &small)) {
                if !member.is_null() {
                    *member = Value::String("[masked]".into());
                }
            } else if !(key == "blob" || is_media && key == "data") {
                // Base64 of pictures holds digits of every kind, and nothing to be read.
                self.mask(member);
            }
        }
    }

    fn mask_text(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.masked(text, &PiiKind::ALL) {
            *text = masked;
        }
    }

    /// A text with what is configured of `kinds`, and what fits the patterns, masked.
    fn masked<'a>(&self, text: &'a str, kinds: &[PiiKind]) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for pattern in &self.config.patterns {
            let mask = format!("[{}]", pattern.name);
            if let Cow::Owned(masked) = pattern.pattern.replace_all(&text, regex::NoExpand(&mask)) {
                text = Cow::Owned(masked);
            }
        }
        for kind in PiiKind::ALL.iter().filter(|kind| kinds.contains(kind) && self.config.detect.contains(kind)) {
            if let Some(masked) = Detector::for_kind(*kind).and_then(|detector| detector.mask_all(&text)) {
                text = Cow::Owned(masked);
            }
        }
        text
    }

    /// A result with all personal data masked. A text of its content that is JSON is masked as the data that it is.
    ///
    /// # Errors
    /// It has too many values.
    fn mask_result(&self, result: &mut ToolResult) -> Result<(), Unread> {
        result.read()?;
        if let ToolResult::Mcp(result) = result
            && let Some(Value::Array(blocks)) = result.get_mut("content")
        {
            for text in blocks.iter_mut().filter_map(|block| block.get_mut("text")) {
                let mut data = match text.as_str().map(|text| json::read(text.trim())) {
                    Some(Ok(data)) => data,
                    Some(Err(too_large @ Unread::TooLarge { .. })) => return Err(too_large),
                    Some(Err(Unread::Malformed(_))) | None => continue,
                };
                let given = data.clone();
                self.mask(&mut data);
                // Text without personal data stays as it is written.
                if data != given {
                    *text = Value::String(data.to_string());
                }
            }
        }
        self.mask(result.read()?);
        result.write_long();
        Ok(())
    }

    /// Masks an error in place.
    pub fn mask_error(&self, error: &mut ToolError) {
        self.mask_text(&mut error.message);
        if let Some(details) = &mut error.details {
            match serde_json::from_str(details) {
                Ok(mut value) => {
                    self.mask(&mut value);
                    *details = value.to_string();
                }
                Err(_) => self.mask_text(details),
            }
        }
    }
}

impl Hook for Pii {
    fn name(&self) -> &'static str {
        "pii"
    }

    fn mask(&self, mut value: Arc<Value>) -> Arc<Value> {
        Self::mask(self, Arc::make_mut(&mut value));
        value
    }

    fn mask_error(&self, error: &mut ToolError) {
        Self::mask_error(self, error);
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall,
        mut input: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Before, ToolError>> {
        if self.config.input && self.config.tools.selects(&call.tool) {
            self.mask_members(&mut input);
        }
        Box::pin(std::future::ready(Ok(Before::Go(input))))
    }

    fn after<'a>(
        &'a self,
        call: &'a HookCall,
        mut result: Result<ToolResult, ToolError>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        if self.config.output && self.config.tools.selects(&call.tool) {
            match &mut result {
                Ok(passed) => {
                    if self.mask_result(passed).is_err() {
                        result = Err(check::too_large(&call.name));
                    }
                }
                Err(error) => self.mask_error(error),
            }
        }
        Box::pin(std::future::ready(result))
    }
}

/// Detects one kind of personal data.
struct Detector {
    pattern: Regex,
    mask: &'static str,
    /// Returns how much of a match is personal data; `None`: nothing.
    length: fn(&str) -> Option<usize>,
}

impl Detector {
    fn new(pattern: &str, mask: &'static str, length: fn(&str) -> Option<usize>) -> Option<Self> {
        Some(Self { pattern: Regex::new(pattern).ok()?, mask, length })
    }
}

impl Detector {
    /// Returns the detector of a kind; `None` if its pattern is invalid, which a test excludes.
    fn for_kind(kind: PiiKind) -> Option<&'static Self> {
        static EMAIL: LazyLock<Option<Detector>> = LazyLock::new(|| {
            Detector::new(r"[\p{L}\p{N}._%+'-]+(?:@|%40)(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}", "[email]", |text| {
                Some(text.len())
            })
        });
        static IBAN: LazyLock<Option<Detector>> =
            LazyLock::new(|| Detector::new(r"\b[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}", "[iban]", iban));
        static CARD: LazyLock<Option<Detector>> =
            LazyLock::new(|| Detector::new(r"\b\d(?:[ -]?\d){12,22}", "[card]", card));
        static SSN: LazyLock<Option<Detector>> =
            LazyLock::new(|| Detector::new(r"\b(?:\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4})\b", "[ssn]", ssn));
        static PHONE: LazyLock<Option<Detector>> = LazyLock::new(|| {
            let international = r"\+\d(?:[ .()/-]{0,3}\d){6,14}\b|\b00[1-9](?:[ ./-]?\d){7,13}\b";
            let american = r"\(\d{3}\) ?\d{3}[ .-]?\d{4}\b|\b(?:1[ .-])?\d{3}(?:\.\d{3}\.|-\d{3}-| \d{3} )\d{4}\b";
            let national = r"\b0[1-9]\d{1,3}[ /-]\d{4,8}(?:[ -]\d{2,8}){0,2}\b|\b0[1-9]\d{1,3} \d{3} \d{4}\b|\b0[1-9](?:[ .]\d\d){4}\b";
            Detector::new(&format!("{international}|{american}|{national}"), "[phone]", phone)
        });
        match kind {
            PiiKind::Email => EMAIL.as_ref(),
            PiiKind::Iban => IBAN.as_ref(),
            PiiKind::Card => CARD.as_ref(),
            PiiKind::Ssn => SSN.as_ref(),
            PiiKind::Phone => PHONE.as_ref(),
        }
    }

    /// Masks all matches; `None` if there are none.
    fn mask_all(&self, text: &str) -> Option<String> {
        let mut found = false;
        let replaced = self.pattern.replace_all(text, |captures: &Captures<'_>| {
            let all = &captures[0];
            match (self.length)(all) {
                Some(length) => {
                    found = true;
                    format!("{}{}", self.mask, &all[length..])
                }
                None => all.to_owned(),
            }
        });
        found.then(|| replaced.into_owned())
    }
}

/// Returns the length of the longest prefix that ends with a word and, without separators, satisfies `is`.
fn beginning(text: &str, least: usize, is: impl Fn(&str) -> bool) -> Option<usize> {
    let mut plain = String::new();
    let mut ends = Vec::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter.is_ascii_alphanumeric() {
            plain.push(letter);
            if letters.peek().is_none_or(|(_, next)| !next.is_ascii_alphanumeric()) {
                ends.push((plain.len(), at + 1));
            }
        }
    }
    ends.into_iter().rev().find(|(length, _)| *length >= least && is(&plain[..*length])).map(|(_, end)| end)
}

fn iban(text: &str) -> Option<usize> {
    beginning(text, 15, |plain| plain.to_ascii_uppercase().parse::<iban::Iban>().is_ok())
}

fn card(text: &str) -> Option<usize> {
    beginning(text, 13, |digits| is_issued(digits) && has_luhn(digits))
}

/// Whether a number has a prefix and the length of a card issuer.
fn is_issued(digits: &str) -> bool {
    let first = |n: usize| digits.get(..n).and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    match digits.len() {
        13 => first(1) == 4,
        14 => matches!(first(3), 300..=305 | 309 | 360..=369 | 380..=399),
        15 => matches!(first(2), 34 | 37),
        16 => first(1) == 4 || matches!(first(2), 35 | 50..=69 | 81) || matches!(first(4), 2200..=2204 | 2221..=2720),
        17..=19 => first(1) == 4 && digits.len() == 19 || matches!(first(2), 35 | 50 | 56..=69),
        _ => false,
    }
}

/// The checksum of card numbers.
fn has_luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let digit = u32::from(digit - b'0');
            if place % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Numbers that are never issued do not match.
fn ssn(text: &str) -> Option<usize> {
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse::<u32>().ok());
    let (area, group, serial) = (part(0..3)?, part(4..6)?, part(7..11)?);
    (!matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0).then_some(text.len())
}

fn phone(text: &str) -> Option<usize> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let range = if text.starts_with('+') {
        7..=15
    } else if text.starts_with("00") {
        9..=15
    } else {
        // Shorter ones are dates (01-12-2026), longer ones parts of other numbers.
        9..=12
    };
    range.contains(&digits).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pii(config: Value) -> Pii {
        Pii::new(serde_json::from_value(config).expect("a configuration"))
    }

    fn masked(text: &str) -> String {
        let mut value = Value::from(text);
        pii(json!({})).mask(&mut value);
        value.as_str().expect("a text").to_owned()
    }

    #[test]
    fn what_is_personal() {
        for (text, expected) in [
            ("write to Ann.O'Neil+x@mail.example.co.uk, please", "write to [email], please"),
            ("mailto:a%40b.example", "mailto:[email]"),
            ("jürgen@müller.example", "[email]"),
            ("DE44 5001 0517 5407 3249 31 is mine", "[iban] is mine"),
            ("iban:GB33BUKB20201555555555!", "iban:[iban]!"),
            ("fr1420041010050500013M02606", "[iban]"),
            ("4111 1111 1111 1111 12/27", "[card] 12/27"),
            ("card 5555-5555-5555-4444.", "card [card]."),
            ("378282246310005", "[card]"),
            ("6011111111111117,3530111333300000", "[card],[card]"),
            ("ssn 123-45-6789", "ssn [ssn]"),
            ("+49 (0)30 901820", "[phone]"),
            ("call (555) 123-4567 or 555-123-4567", "call [phone] or [phone]"),
            ("0049 30 901820", "[phone]"),
            ("030 12345678, 0171/1234567", "[phone], [phone]"),
            ("020 7946 0958 or 01 23 45 67 89", "[phone] or [phone]"),
            ("+14155552671", "[phone]"),
        ] {
            assert_eq!(masked(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not() {
        for text in [
            "user@host",
            "@decorator x@1.2",
            "DE44 5001 0517 5407 3249 32",
            "GB00BUKB20201555555555",
            "4111 1111 1111 1112",
            "1234567890123456",
            "000-12-3456 and 666-12-3456 and 912-34-5678 and 123-00-4567",
            "2026-11-21T22:00:00+00:00",
            "01-12-2026 04/12/2026 192.168.100.200 10.0.0.1",
            "12:30:45 1,234,567.89 v1.2.3",
            "550e8400-e29b-41d4-a716-446655440000",
            "1763762400000",
            "order 100200300 of 20261121",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn values_by_their_look_and_by_their_name() {
        let pii = pii(json!({
            "detect": ["email", "card"],
            "fields": ["password", "*_TOKEN"],
            "patterns": [{"name": "employee", "pattern": "E\\d{4}"}],
        }));
        let mut value = json!({
            "Password": {"a": 1}, "api_token": 7, "none_token": null, "n": 4_111_111_111_111_111_u64, "year": 2026,
            "by": {"a@x.example": 1, "b@x.example": 2}, "list": ["E1234 and E12", "123-45-6789"],
            "content": [{"type": "image", "data": "4111111111111111"}, {"type": "text", "text": "4111111111111111"}],
        });
        pii.mask(&mut value);
        assert_eq!(
            value,
            json!({
                "Password": "[masked]", "api_token": "[masked]", "none_token": null, "n": "[card]", "year": 2026,
                "by": {"[email]": 1, "[email] 2": 2}, "list": ["[employee] and E12", "123-45-6789"],
                "content": [{"type": "image", "data": "4111111111111111"}, {"type": "text", "text": "[card]"}],
            })
        );
    }
}

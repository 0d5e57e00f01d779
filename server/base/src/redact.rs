//! Redacts secrets in everything that leaves the server: results, errors, descriptions, notifications, audit records and
//! logs. The secrets are those of the configuration, and later ones that are added while the server runs ([`SecretRegistry`]).
//!
//! A secret is found in plain text, and behind one or two layers of encoding. Encodings are escapes (of JSON,
//! JavaScript, URLs and HTML), base64 (either alphabet, with line breaks, also inside longer encoded data) and hex. A
//! script could encode a
//! secret in another way, so results are redacted before a script sees them.

mod finder;
mod partial;
mod registry;
mod stream;

use crate::tool::{ToolDefinition, ToolError};
use agentscript::Message;
use aho_corasick::AhoCorasick;
use finder::SecretFinder;
use partial::Spellings;
pub use registry::{MAX_SECRET_BYTES, MAX_SECRETS, RefusedSecret, SecretRegistry, redact_log_line};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
pub use stream::StreamRedactor;

/// The text that replaces a secret.
pub const MASK: &str = "[secret]";

/// Minimum length of a secret, in characters. Shorter values would be found by accident.
pub const MIN_SECRET_CHARS: usize = 6;

/// Replaces secrets by [`MASK`]. It is immutable; its clones share the automaton.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: Option<Arc<SecretFinder>>,
    /// Absent if there are no secrets.
    spellings: Option<Arc<Spellings>>,
}

impl std::fmt::Debug for Redactor {
    /// Writes it without the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("is_empty", &self.is_empty()).finish()
    }
}

impl Redactor {
    /// Creates a redactor for these secrets. Those that are shorter than [`MIN_SECRET_CHARS`] are ignored.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: BTreeSet<String> = BTreeSet::new();
        for secret in secrets.into_iter().map(str::trim).filter(|secret| is_long_enough(secret)) {
            known.insert(secret.to_owned());
            // Form encoding writes a space as a plus sign.
            known.insert(secret.replace(' ', "+"));
        }
        let (Some(shortest), Some(longest)) =
            (known.iter().map(String::len).min(), known.iter().map(String::len).max())
        else {
            return Self::default();
        };
        let spellings = Some(Arc::new(Spellings::new(known.iter().map(String::as_str))));
        let finder = AhoCorasick::new(&known);
        // The automaton would be too large: hiding all text is safer than leaking a secret.
        let finder = finder
            .map(|finder| SecretFinder::new(finder, known.into_iter().collect(), shortest, longest))
            .unwrap_or_else(|error| {
                tracing::error!(%error, "there are too many secrets; all text is hidden");
                hide_everything()
            });
        Self { finder: Some(Arc::new(finder)), spellings }
    }

    /// Whether there are no secrets to redact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// Whether both redactors have the same automaton, so that what one has redacted need not be redacted by the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.finder, &other.finder) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Redacts a text. The result is `Borrowed` if it contains no secret.
    #[must_use]
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let clean = self.finder.as_ref().and_then(|finder| finder.mask(text, MASK));
        let cut = self.spellings.as_ref().and_then(|known| known.mask(clean.as_deref().unwrap_or(text), MASK));
        cut.or(clean).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Returns from where on a text may be the beginning of a secret whose rest is still to come.
    fn open_from(&self, text: &str) -> usize {
        self.finder.as_ref().map_or(text.len(), |finder| finder.open_from(text))
    }

    /// Redacts a string in place.
    pub fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact_text(text) {
            *text = clean;
        }
    }

    /// Redacts a value in place, also its keys. It may recurse, because JSON parsers limit the depth of values.
    pub fn redact_value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.redact_string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => self.redact_members(members),
            Value::Number(number) => {
                if let Cow::Owned(clean) = self.redact_text(&number.to_string()) {
                    *value = Value::String(clean);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Redacts the members of an object in place, also their names.
    pub fn redact_members(&self, members: &mut Map<String, Value>) {
        if members.keys().any(|key| matches!(self.redact_text(key), Cow::Owned(_))) {
            let mut counts: HashMap<String, usize> = HashMap::new();
            for (key, member) in std::mem::take(members) {
                let key = self.redact_text(&key).into_owned();
                // Keys that only differ in a secret stay distinct.
                let mut name = key.clone();
                while members.contains_key(&name) {
                    let count = counts.entry(key.clone()).or_insert(1);
                    *count += 1;
                    name = format!("{key} ({count})");
                }
                members.insert(name, member);
            }
        }
        members.values_mut().for_each(|member| self.redact_value(member));
    }

    /// Redacts an error in place.
    pub fn redact_error(&self, error: &mut ToolError) {
        self.redact_string(&mut error.code);
        self.redact_string(&mut error.message);
        error.details.iter_mut().for_each(|details| self.redact_json_string(details));
    }

    /// Redacts a log message or a notification of a script in place.
    pub fn redact_message(&self, message: &mut Message) {
        match message {
            Message::Log { message, metadata, .. } => {
                self.redact_string(message);
                metadata.iter_mut().for_each(|metadata| self.redact_json_string(metadata));
            }
            Message::Notify { event, payload } => {
                self.redact_string(event);
                self.redact_json_string(payload);
            }
        }
    }

    /// Redacts the strings, keys and numbers of JSON text. Everything else is copied unchanged, also the whitespace.
    #[must_use]
    pub fn redact_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut out: Option<String> = None;
        // The part of the text that was copied to `out`.
        let mut done = 0;
        let mut at = 0;
        while at < json.len() {
            let length = token_length(&json.as_bytes()[at..]);
            let token = &json[at..at + length];
            if let Some(clean) = self.redact_token(token) {
                let out = out.get_or_insert_with(String::new);
                out.push_str(&json[done..at]);
                out.push_str(&clean);
                done = at + length;
            }
            at += length;
        }
        match out {
            None => Cow::Borrowed(json),
            Some(out) => Cow::Owned(out + &json[done..]),
        }
    }

    /// Redacts a string or a number of JSON. Returns JSON, or `None` if it contains no secret.
    fn redact_token(&self, token: &str) -> Option<String> {
        let text: Cow<'_, str> = match token.strip_prefix('"') {
            // An invalid string (such as one with a lone surrogate) is searched as it is written.
            Some(inside) => match serde_json::from_str::<String>(token) {
                Ok(text) => text.into(),
                Err(_) => inside.strip_suffix('"').unwrap_or(inside).into(),
            },
            None => token.into(),
        };
        match self.redact_text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(Value::from(clean).to_string()),
        }
    }

    /// Redacts a string in place, as JSON if it is valid JSON.
    fn redact_json_string(&self, text: &mut String) {
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => {
                if let Cow::Owned(clean) = self.redact_json(text) {
                    *text = clean;
                }
            }
            Err(_) => self.redact_string(text),
        }
    }

    /// Redacts a tool definition in place, except for its names: clients call the tool by them.
    pub fn redact_definition(&self, tool: &mut ToolDefinition) {
        if self.is_empty() {
            return;
        }
        self.redact_string(&mut tool.description);
        tool.title.iter_mut().for_each(|title| self.redact_string(title));
        self.redact_value(&mut tool.input_schema);
        tool.output_schema.iter_mut().for_each(|schema| self.redact_value(schema));
        self.redact_members(&mut tool.annotations);
        tool.icons.iter_mut().for_each(|icon| self.redact_value(icon));
        self.redact_members(&mut tool.meta);
        for example in &mut tool.examples {
            self.redact_string(&mut example.description);
            self.redact_string(&mut example.code);
        }
    }
}

/// Whether a value is long enough for a secret.
fn is_long_enough(secret: &str) -> bool {
    secret.chars().count() >= MIN_SECRET_CHARS
}

/// Returns the length of the first token of JSON text: a string, a number or word, or one other byte.
fn token_length(json: &[u8]) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') || !byte.is_ascii();
    match json.first() {
        Some(b'"') => {
            let mut at = 1;
            while let Some(byte) = json.get(at) {
                match byte {
                    b'"' => return at + 1,
                    // The next character is escaped. In valid JSON it is ASCII.
                    b'\\' if json.get(at + 1).is_some_and(u8::is_ascii) => at += 2,
                    _ => at += 1,
                }
            }
            json.len()
        }
        Some(byte) if is_word(byte) => json.iter().take_while(|byte| is_word(byte)).count(),
        Some(_) | None => 1,
    }
}

/// Returns a finder that finds every character.
fn hide_everything() -> SecretFinder {
    let letters = (0_u8..=127).map(|letter| [letter]);
    // An automaton for 128 patterns of one byte is small.
    let finder = AhoCorasick::new(letters).unwrap_or_else(|_| unreachable!("a small automaton can be built"));
    SecretFinder::new(finder, Vec::new(), 1, 1)
}

#[cfg(test)]
mod tests;

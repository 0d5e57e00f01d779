//! Secrets of the configuration, taken out of everything that leaves: results, errors, descriptions,
//! notifications, audit records and logs. The one place that knows them.
//!
//! A secret is found as it is, and behind one or two layers of escapes (of JSON, JavaScript, addresses and
//! HTML), base64 (either alphabet, with line breaks, anywhere in something longer) and hex. What a script has
//! made of one in a way of its own is not found; therefore results are cleaned before a script sees them.

mod layers;

use crate::tool::{ToolDefinition, ToolError};
use agentscript::Message;
use aho_corasick::AhoCorasick;
use layers::Finder;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// What stands in the place of a secret.
pub const MASK: &str = "[secret]";

/// Shorter values are no secrets: they would be found everywhere.
pub const SHORTEST: usize = 6;

/// The redactor of this process's logs; set once, by whoever reads the configuration first.
static OF_LOGS: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Finds secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: Option<Arc<Finder>>,
}

impl std::fmt::Debug for Redactor {
    /// Without the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("is_empty", &self.is_empty()).finish()
    }
}

impl Redactor {
    /// Finds these; those that are shorter than [`SHORTEST`] are left out.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: BTreeSet<String> = BTreeSet::new();
        for secret in secrets.into_iter().map(str::trim).filter(|secret| secret.chars().count() >= SHORTEST) {
            known.insert(secret.to_owned());
            // As forms write it.
            known.insert(secret.replace(' ', "+"));
        }
        let (Some(shortest), Some(longest)) =
            (known.iter().map(String::len).min(), known.iter().map(String::len).max())
        else {
            return Self::default();
        };
        let finder = AhoCorasick::new(known);
        // Too many secrets to be found at once: better none can be used than that one gets out.
        let finder = finder.map(|finder| Finder::new(finder, shortest, longest)).unwrap_or_else(|error| {
            tracing::error!(%error, "the secrets of the configuration cannot be told apart; all texts are hidden");
            hide_everything()
        });
        Self { finder: Some(Arc::new(finder)) }
    }

    /// Whether there are no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// A text without secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.finder.as_ref().and_then(|finder| finder.masked(text, MASK)) {
            Some(clean) => Cow::Owned(clean),
            None => Cow::Borrowed(text),
        }
    }

    /// A text without secrets, in its place.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// A value without secrets, in its keys neither. Values of JSON nest as deeply as its readers
    /// follow, so this may recurse.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => self.members(members),
            Value::Number(number) => {
                if let Cow::Owned(clean) = self.text(&number.to_string()) {
                    *value = Value::String(clean);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn members(&self, members: &mut Map<String, Value>) {
        if members.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            let mut alike: HashMap<String, usize> = HashMap::new();
            for (key, member) in std::mem::take(members) {
                let key = self.text(&key).into_owned();
                // Keys that differ in a secret alone stay as many as they are.
                let mut name = key.clone();
                while members.contains_key(&name) {
                    let count = alike.entry(key.clone()).or_insert(1);
                    *count += 1;
                    name = format!("{key} ({count})");
                }
                members.insert(name, member);
            }
        }
        members.values_mut().for_each(|member| self.value(member));
    }

    /// An error without secrets.
    pub fn error(&self, error: &mut ToolError) {
        self.clean(&mut error.code);
        self.clean(&mut error.message);
        error.details.iter_mut().for_each(|details| self.json(details));
    }

    /// What a script says to the client, without secrets.
    pub fn message(&self, message: &mut Message) {
        match message {
            Message::Log { message, metadata, .. } => {
                self.clean(message);
                metadata.iter_mut().for_each(|metadata| self.json(metadata));
            }
            Message::Notify { event, payload } => {
                self.clean(event);
                self.json(payload);
            }
        }
    }

    /// JSON text without secrets, in texts, keys and numbers. All else stays as it is written.
    #[must_use]
    pub fn json_text<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut out: Option<String> = None;
        // Up to where the text has been taken over.
        let mut done = 0;
        let mut at = 0;
        while at < json.len() {
            let length = token(&json.as_bytes()[at..]);
            let token = &json[at..at + length];
            if let Some(clean) = self.clean_token(token) {
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

    /// A text or a number of JSON, as JSON without secrets; none: there are none in it.
    fn clean_token(&self, token: &str) -> Option<String> {
        let text: Cow<'_, str> = match token.strip_prefix('"') {
            // What is no text of JSON (half of a surrogate pair) is looked at as it is written.
            Some(inside) => match serde_json::from_str::<String>(token) {
                Ok(text) => text.into(),
                Err(_) => inside.strip_suffix('"').unwrap_or(inside).into(),
            },
            None => token.into(),
        };
        match self.text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(Value::from(clean).to_string()),
        }
    }

    /// JSON text without secrets, in its place.
    fn json(&self, text: &mut String) {
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => {
                if let Cow::Owned(clean) = self.json_text(text) {
                    *text = clean;
                }
            }
            Err(_) => self.clean(text),
        }
    }

    /// What clients see of a tool, without secrets. Its name stays: it is how it is called.
    pub fn definition(&self, tool: &mut ToolDefinition) {
        if self.is_empty() {
            return;
        }
        self.clean(&mut tool.description);
        tool.title.iter_mut().for_each(|title| self.clean(title));
        self.value(&mut tool.input_schema);
        tool.output_schema.iter_mut().for_each(|schema| self.value(schema));
        self.members(&mut tool.annotations);
        for example in &mut tool.examples {
            self.clean(&mut example.description);
            self.clean(&mut example.code);
        }
    }

    /// Clean the logs of this process too. The first one stays: a process serves one configuration.
    pub fn guard_logs(self: &Arc<Self>) {
        let _ = OF_LOGS.set(Arc::clone(self));
    }
}

/// A line for the log without secrets.
#[must_use]
pub fn logged(line: &str) -> Cow<'_, str> {
    OF_LOGS.get().map_or(Cow::Borrowed(line), |redactor| redactor.text(line))
}

/// The length of the token of JSON that a text begins with: a text, a number or word, or one other letter.
fn token(json: &[u8]) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') || !byte.is_ascii();
    match json.first() {
        Some(b'"') => {
            let mut at = 1;
            while let Some(byte) = json.get(at) {
                match byte {
                    b'"' => return at + 1,
                    // What comes next is escaped; it is ASCII, or this is no JSON.
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

/// Finds every letter.
fn hide_everything() -> Finder {
    let letters = (0_u8..=127).map(|letter| [letter]);
    // A hundred patterns of one letter each cannot be too many.
    let finder = AhoCorasick::new(letters).unwrap_or_else(|_| unreachable!("a small automaton can be built"));
    Finder::new(finder, 1, 1)
}

#[cfg(test)]
mod tests;

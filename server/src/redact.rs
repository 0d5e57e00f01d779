//! Secrets of the configuration, taken out of everything that leaves: results, errors, descriptions,
//! notifications, audit records and logs. The one place that knows them.
//!
//! A secret is found as it is, as it stands in JSON, in an address and in base64, alone or as a part
//! of something longer. What a script has made of one letter by letter is not found; therefore
//! results are cleaned before a script sees them.

use crate::upstream::{ToolDefinition, ToolError};
use agentscript::Message;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// What stands in the place of a secret.
pub const MASK: &str = "[secret]";

/// Shorter values are no secrets: they would be found everywhere.
pub const SHORTEST: usize = 6;

/// Shorter pieces of base64 are found in what has nothing to do with a secret.
const SHORTEST_BASE64: usize = 8;

/// The redactor of this process's logs; set once, by whoever reads the configuration first.
static OF_LOGS: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Finds secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    finder: Option<AhoCorasick>,
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
        let spellings: BTreeSet<String> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.chars().count() >= SHORTEST)
            .flat_map(spellings)
            .collect();
        if spellings.is_empty() {
            return Self::default();
        }
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(spellings);
        // Too many secrets to be found at once: better none can be used than that one gets out.
        let finder = finder.unwrap_or_else(|error| {
            tracing::error!(%error, "the secrets of the configuration cannot be told apart; all texts are hidden");
            hide_everything()
        });
        Self { finder: Some(finder) }
    }

    /// Whether there are no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// A text without secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = self.finder.as_ref().filter(|finder| finder.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut out = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut out, |_, _, out| {
            out.push_str(MASK);
            true
        });
        Cow::Owned(out)
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
            let cleaned = std::mem::take(members).into_iter();
            *members = cleaned.map(|(key, member)| (self.text(&key).into_owned(), member)).collect();
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

    /// JSON text without secrets.
    fn json(&self, text: &mut String) {
        match serde_json::from_str(text) {
            Ok(mut value) => {
                self.value(&mut value);
                *text = value.to_string();
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

/// Finds every letter.
fn hide_everything() -> AhoCorasick {
    let letters = (0_u8..=127).map(|letter| [letter]);
    // A hundred patterns of one letter each cannot be too many.
    AhoCorasick::new(letters).unwrap_or_else(|_| unreachable!("a small automaton can be built"))
}

/// Everything that is left as it is in an address.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is left in an address that is encoded as a whole.
const WHOLE_ADDRESS: &AsciiSet =
    &UNRESERVED.remove(b'/').remove(b':').remove(b'=').remove(b'+').remove(b'@').remove(b'&').remove(b'?').remove(b'#');

/// A secret as it may be written.
fn spellings(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    let address = utf8_percent_encode(secret, UNRESERVED).to_string();
    let mut found = vec![
        secret.to_owned(),
        // As it is in JSON that is a text in JSON.
        json.replace('\\', "\\\\").replace("\\\\\"", "\\\\\\\""),
        json.replace('/', "\\/"),
        ascii(&json),
        json,
        address.replace("%20", "+"),
        lower_hex(&address),
        utf8_percent_encode(secret, WHOLE_ADDRESS).to_string(),
        address,
    ];
    found.extend(in_base64(secret.as_bytes()));
    found
}

/// JSON as some write it: nothing but ASCII.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
            Ok(_) | Err(_) => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

fn lower_hex(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    let mut digits = 0;
    for letter in address.chars() {
        out.push(if digits > 0 { letter.to_ascii_lowercase() } else { letter });
        digits = if letter == '%' { 2 } else { i32::max(digits - 1, 0) };
    }
    out
}

/// The letters of base64 that a secret alone decides, wherever it stands in what is encoded.
fn in_base64(secret: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3_usize {
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(secret);
            let encoded = engine.encode(&bytes);
            // A letter has six bits: those that begin before the secret or end after it are not its own.
            let own = &encoded[(before * 8).div_ceil(6)..bytes.len() * 8 / 6];
            if own.len() >= SHORTEST_BASE64 {
                found.push(own.to_owned());
            }
        }
        found.push(engine.encode(secret));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use serde_json::json;

    const SECRET: &str = "pä/ss w\"ord+?&1\\x";

    fn redactor() -> Redactor {
        Redactor::new([SECRET, "sk-1234567890", "short"])
    }

    #[test]
    fn a_secret_is_found_in_every_spelling() {
        let json = Value::from(SECRET).to_string();
        let twice = Value::from(json.clone()).to_string();
        let spellings = [
            SECRET.to_owned(),
            json.clone(),
            twice,
            ascii(&json),
            utf8_percent_encode(SECRET, NON_ALPHANUMERIC).to_string(),
            utf8_percent_encode(SECRET, UNRESERVED).to_string(),
            lower_hex(&utf8_percent_encode(SECRET, UNRESERVED).to_string()),
            utf8_percent_encode(SECRET, UNRESERVED).to_string().replace("%20", "+"),
            STANDARD.encode(SECRET),
            URL_SAFE.encode(SECRET),
            STANDARD.encode(format!("u:{SECRET}")),
            STANDARD.encode(format!("us:{SECRET}@x")),
            STANDARD.encode(format!("user:{SECRET}@host")),
        ];
        for spelling in spellings {
            let clean = redactor().text(&format!("before {spelling} after")).into_owned();
            assert!(
                clean.starts_with("before ") && clean.ends_with(" after") && clean.contains(MASK),
                "{spelling}: {clean}"
            );
            assert!(clean.len() < "before  after".len() + MASK.len() + 20, "{spelling}: {clean}");
        }
        assert_eq!(redactor().text("a short text stays"), "a short text stays");
        assert_eq!(redactor().text("Bearer sk-1234567890."), "Bearer [secret].");
    }

    #[test]
    fn keys_numbers_and_details_too() {
        let redactor = Redactor::new(["sk-1234567890", "8612345678"]);
        let mut value = json!({"sk-1234567890": [8_612_345_678_u64, {"a": "x sk-1234567890"}], "n": 1});
        redactor.value(&mut value);
        assert_eq!(value, json!({"[secret]": ["[secret]", {"a": "x [secret]"}], "n": 1}));
        let mut error = ToolError::new("sk-1234567890", "sk-1234567890");
        error.details = Some(r#"{"a":"sk-\u0031234567890"}"#.into());
        redactor.error(&mut error);
        assert_eq!((error.code.as_str(), error.message.as_str()), (MASK, MASK));
        assert_eq!(error.details.as_deref(), Some(r#"{"a":"[secret]"}"#));
    }

    #[test]
    fn nothing_shows_the_secrets() {
        assert!(!format!("{:?}", redactor()).contains("sk-"));
        assert!(Redactor::new(["", "abc"]).is_empty());
        assert_eq!(hide_everything().replace_all("abc", &vec!["*"; 128]), "***");
    }
}

//! Finds the secrets in the values of the configuration.
//!
//! A key is marked beside its field: its type is [`Secret`], or `x-secret` says which texts of its value are secrets.
//! Values of headers are secrets, and those of the environment and of `${NAME}`, unless they are plainly something else: a
//! path, an address, a word. Secrets are masked in results, so a folder that tools work in must not be one.

use base64::Engine as _;
use codecall_base::redact::MIN_SECRET_CHARS;
use percent_encoding::percent_decode_str;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::ffi::OsStr;

/// A text that may be a secret. `Debug` does not show it. It is redacted in everything that leaves the server, unless
/// `x-secret` of the field says which part of it is a secret.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl std::ops::Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<OsStr> for Secret {
    fn as_ref(&self) -> &OsStr {
        self.0.as_ref()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-secret": "value" })
    }
}

/// Parts of names of variables, headers and flags whose values are always secrets.
const SECRET_NAMES: &[&str] = &[
    "AUTH",
    "BEARER",
    "COOKIE",
    "CREDENTIAL",
    "DSN",
    "KEY",
    "PASS",
    "PRIVATE",
    "PWD",
    "SALT",
    "SECRET",
    "SESSION",
    "SIGNATURE",
    "TOKEN",
    "WEBHOOK",
];

/// Headers whose values are not secrets.
const HARMLESS_HEADERS: &[&str] = &["accept", "accept-language", "content-type", "user-agent"];

/// The secrets that were found in a configuration.
#[derive(Default)]
pub struct FoundSecrets(Vec<String>);

impl FoundSecrets {
    /// Returns all secrets.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds the secrets in the value of a key; `kind` is its `x-secret`.
    pub fn collect(&mut self, kind: &str, value: &Value) {
        let texts = texts(value);
        let entries =
            || value.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_str()?)));
        match kind {
            "address" => texts.iter().for_each(|text| self.add_address(text)),
            "arguments" => self.add_arguments(&texts),
            "credentials" => texts.iter().for_each(|text| self.add_credential(text)),
            "headers" => entries().for_each(|(name, value)| self.add_header(name, value)),
            "inherited" => texts
                .iter()
                .filter_map(|name| Some((name, std::env::var(name).ok()?)))
                .for_each(|(name, value)| self.add_variable(name, &value)),
            "variables" => entries().for_each(|(name, value)| self.add_variable(name, value)),
            _ => texts.iter().for_each(|text| self.add_variable("SECRET", text)),
        }
    }

    /// Adds the secrets in a variable, of the environment of a child or of `${NAME}`.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        if is_secret_name(name) || !is_plain(value) {
            self.add(value);
        }
        self.add_parts_of_address(value);
    }

    /// Adds the secrets in a header of requests.
    pub fn add_header(&mut self, name: &str, value: &str) {
        if HARMLESS_HEADERS.iter().any(|harmless| harmless.eq_ignore_ascii_case(name)) {
            return;
        }
        self.add(value);
        let Some((scheme, credentials)) = value.trim().split_once(' ') else { return };
        self.add(credentials);
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(credentials.trim())
            && let Ok(text) = String::from_utf8(bytes)
        {
            self.add(&text);
            self.add(text.split_once(':').map_or("", |(_, password)| password));
        }
    }

    /// Adds a key, a token, or `user:password`.
    fn add_credential(&mut self, value: &str) {
        self.add(value);
        self.add(value.split_once(':').map_or("", |(_, password)| password));
    }

    /// Adds the secrets in arguments of a program: the values of flags with the name of a secret, and passwords in addresses.
    pub fn add_arguments(&mut self, arguments: &[&str]) {
        let mut before = None;
        for argument in arguments {
            match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with('-') || is_name(flag) => {
                    if is_secret_name(flag) {
                        self.add(value);
                    }
                    self.add_parts_of_address(value);
                }
                Some(_) | None if before.is_some_and(is_secret_name) && !argument.starts_with('-') => {
                    self.add(argument)
                }
                Some(_) | None => self.add_parts_of_address(argument),
            }
            before = argument.starts_with('-').then_some(argument);
        }
    }

    /// Adds the secrets in the address of a server: its password and the values of its query. That of a database has the options
    /// of the connection.
    pub fn add_address(&mut self, address: &str) {
        self.add_parts_of_address(address);
        if is_of_database(address) {
            return;
        }
        let query = address.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default());
        for (_, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            self.add_decoded(value);
        }
    }

    /// Adds the password in an address, and the values of its query that have the name of a secret.
    fn add_parts_of_address(&mut self, text: &str) {
        let Some((_, rest)) = text.split_once("://") else { return };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some((user, _)) = host.rsplit_once('@') {
            match user.split_once(':') {
                Some((_, password)) => self.add_decoded(password),
                // The name of a user of a database, and else a token.
                None if is_of_database(text) => {}
                None => self.add_decoded(user),
            }
        }
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        for (name, value) in query.split(['&', '#']).filter_map(|pair| pair.split_once('=')) {
            if is_secret_name(name) {
                self.add_decoded(value);
            }
        }
    }

    fn add_decoded(&mut self, value: &str) {
        self.add(value);
        self.add(&percent_decode_str(value).decode_utf8_lossy());
    }

    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.chars().count() >= MIN_SECRET_CHARS && !self.0.iter().any(|known| known == value) {
            self.0.push(value.to_owned());
        }
    }
}

/// Whether an address is one of Postgres.
fn is_of_database(address: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme))
}

/// Returns all texts of a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(entries) => entries.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn is_secret_name(name: &str) -> bool {
    // The author of a commit is public.
    let name = name.to_ascii_uppercase().replace("AUTHORIZ", "AUTH").replace("AUTHOR", "");
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Whether `NAME=value` may begin with it.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a value is obviously not a secret: a path, an address, a number, a name of a few plain letters.
fn is_plain(value: &str) -> bool {
    let value = value.trim();
    let path =
        value.starts_with(['/', '~', '.']) || value.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/");
    let address = value.contains("://");
    let number = value.bytes().all(|b| b.is_ascii_digit() || b".,:-".contains(&b)) && value.len() < 12;
    // A long word without digits that mixes no cases: production, en_US.UTF-8, us-east, info,debug
    let word = value.len() < 24
        && value.bytes().all(|b| b.is_ascii_alphabetic() || b"-_.,:/ ".contains(&b))
        && value.split(|c: char| !c.is_ascii_alphabetic()).all(is_one_case);
    path || address || number || word
}

/// `word`, `Word` or `WORD`.
fn is_one_case(word: &str) -> bool {
    let rest = word.get(1..).unwrap_or_default();
    rest.bytes().all(|b| b.is_ascii_lowercase()) || word.bytes().all(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(look: impl FnOnce(&mut FoundSecrets)) -> Vec<String> {
        let mut found = FoundSecrets::default();
        look(&mut found);
        found.0
    }

    #[test]
    fn variables() {
        for (name, value, expected) in [
            ("GITHUB_TOKEN", "hunterhunter", &["hunterhunter"][..]),
            ("API_KEY", "abc", &[]),
            ("NODE_ENV", "production", &[]),
            ("HOME", "/home/someone", &[]),
            ("LANG", "en_US.UTF", &[]),
            ("GIT_AUTHOR_NAME", "somebody", &[]),
            ("PORT", "8080", &[]),
            ("BASE", "https://example.com/api/v1", &[]),
            ("X", "a8f5f167f44f4964e6c998dee827110c", &["a8f5f167f44f4964e6c998dee827110c"]),
            ("DATABASE_URL", "postgres://me:s3cret%21word@db/x", &["s3cret%21word", "s3cret!word"]),
            ("ENDPOINT", "https://x/y?api_key=k1234567&a=b", &["k1234567"]),
        ] {
            assert_eq!(found(|found| found.add_variable(name, value)), expected, "{name}");
        }
    }

    #[test]
    fn headers_addresses_and_arguments() {
        assert_eq!(found(|f| f.add_header("Authorization", "Bearer abc123xyz")), ["Bearer abc123xyz", "abc123xyz"]);
        assert_eq!(
            found(|f| f.add_header("authorization", "Basic bWU6cGFzc3dvcmQ=")),
            ["Basic bWU6cGFzc3dvcmQ=", "bWU6cGFzc3dvcmQ=", "me:password", "password"]
        );
        assert_eq!(found(|f| f.add_header("Accept", "application/json")), [""; 0]);
        assert_eq!(found(|f| f.add_address("https://h/mcp?k=abcdefgh&x=1#y")), ["abcdefgh"]);
        let database = "postgres://somebody@database.example.com/name?sslmode=verify-full&password=p1234567";
        assert_eq!(found(|f| f.add_address(database)), ["p1234567"], "users and options are no secrets");
        assert_eq!(found(|f| f.add_address("https://t1234567@example.com/x.git")), ["t1234567"]);
        let arguments =
            ["-y", "server", "--api-key", "k1234567", "--token=t1234567", "--dir", "/home/me", "PASSWORD=p1234567"];
        assert_eq!(found(|f| f.add_arguments(&arguments)), ["k1234567", "t1234567", "p1234567"]);
    }
}

//! Ids of stateless runs.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

const PREFIX: &str = "code_";
/// Number of digits of the time in milliseconds, in base 36: enough for three thousand years.
const TIME_DIGITS: usize = 9;
const RANDOM_DIGITS: usize = 7;

/// The id of a run. An id made by this server contains the time at which the run began, so that every step can set the
/// same clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeId(String);

impl CodeId {
    /// Length of an id made by this server, in bytes.
    pub const LENGTH: usize = PREFIX.len() + TIME_DIGITS + RANDOM_DIGITS;

    /// Returns a new id with the current time.
    #[must_use]
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let mut random = RandomState::new().hash_one(now);
        let mut text = format!("{PREFIX}{}", base36(u64::try_from(now).unwrap_or_default(), TIME_DIGITS));
        random %= 36_u64.pow(RANDOM_DIGITS as u32);
        text.push_str(&base36(random, RANDOM_DIGITS));
        Self(text)
    }

    /// Wraps the id of a client.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns when the run began, in milliseconds since 1970-01-01 UTC; `None` if this server did not make the id.
    #[must_use]
    pub fn unix_ms(&self) -> Option<i64> {
        let digits = self.0.strip_prefix(PREFIX)?;
        let is_own = digits.len() == TIME_DIGITS + RANDOM_DIGITS
            && digits.bytes().all(|digit| digit.is_ascii_digit() || digit.is_ascii_lowercase());
        if !is_own {
            return None;
        }
        i64::from_str_radix(&digits[..TIME_DIGITS], 36).ok()
    }

    /// Returns the id of a call.
    #[must_use]
    pub fn call(&self, number: u32) -> String {
        format!("{}_{number}", self.0)
    }

    /// Returns the number of the call with this id; `None` if it is a call of another run.
    #[must_use]
    pub fn number(&self, call: &str) -> Option<u32> {
        let digits = call.strip_prefix(self.0.as_str())?.strip_prefix('_')?;
        let number: u32 = digits.parse().ok()?;
        (number.to_string() == digits).then_some(number)
    }
}

impl Default for CodeId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for CodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn base36(mut value: u64, digits: usize) -> String {
    let mut text = vec![b'0'; digits];
    for digit in text.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
    String::from_utf8(text).unwrap_or_default()
}

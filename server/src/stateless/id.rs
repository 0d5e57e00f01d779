//! Names of runs that nobody remembers.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

const PREFIX: &str = "code_";
/// Digits of the time, in milliseconds and base 36: enough for three thousand years.
const TIME_DIGITS: usize = 9;
const RANDOM_DIGITS: usize = 7;

/// The name of a run. One that was made here holds the time at which the run began, so that its clock
/// can be set again from the name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeId(String);

impl CodeId {
    /// How long a name is that was made here, in bytes.
    pub const LENGTH: usize = PREFIX.len() + TIME_DIGITS + RANDOM_DIGITS;

    /// A new name, with the time of now.
    #[must_use]
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let mut random = RandomState::new().hash_one(now);
        let mut text = format!("{PREFIX}{}", base36(u64::try_from(now).unwrap_or_default(), TIME_DIGITS));
        random %= 36_u64.pow(RANDOM_DIGITS as u32);
        text.push_str(&base36(random, RANDOM_DIGITS));
        Self(text)
    }

    /// A name that a client has given.
    #[must_use]
    pub fn given(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the run began, in milliseconds since 1970-01-01 UTC; absent where the name does not say.
    #[must_use]
    pub fn unix_ms(&self) -> Option<i64> {
        let digits = self.0.strip_prefix(PREFIX)?;
        let own = digits.len() == TIME_DIGITS + RANDOM_DIGITS
            && digits.bytes().all(|digit| digit.is_ascii_digit() || digit.is_ascii_lowercase());
        if !own {
            return None;
        }
        i64::from_str_radix(&digits[..TIME_DIGITS], 36).ok()
    }

    /// The name of a call.
    #[must_use]
    pub fn call(&self, number: u32) -> String {
        format!("{}_{number}", self.0)
    }

    /// The number of a call by its name.
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

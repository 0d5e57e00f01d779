//! The journal of a stateless run, as hosts keep it: a JSON text or a token.

use crate::error::InputError;
use agentscript::ToolError;
use agentscript::stateless;

/// Longest journal that a token may hold, in bytes.
const MAX_TOKEN_BYTES: usize = 64 << 20;

/// What has happened in a run so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal(pub(crate) stateless::Journal);

impl Journal {
    /// Reads the JSON text of a journal.
    ///
    /// # Errors
    /// The text has another form.
    pub fn from_json(text: &str) -> Result<Self, InputError> {
        let journal = serde_json::from_str(text);
        journal.map(Self).map_err(|error| InputError(format!("this is not a journal: {error}")))
    }

    /// The journal as JSON text.
    ///
    /// # Errors
    /// Never in practice: a journal consists of texts and numbers.
    pub fn to_json(&self) -> Result<String, InputError> {
        serde_json::to_string(&self.0).map_err(|error| InputError(error.to_string()))
    }

    /// Reads a token: with a key, only one that was made with it.
    ///
    /// # Errors
    /// The text is no token, is damaged or too long, or was made with another key.
    pub fn from_token(token: &str, key: Option<&[u8]>) -> Result<Self, InputError> {
        let journal = stateless::Journal::from_token(token, key, MAX_TOKEN_BYTES);
        journal.map(Self).map_err(|error| InputError(error.to_string()))
    }

    /// The journal as a short text, with a key protected against changes.
    #[must_use]
    pub fn to_token(&self, key: Option<&[u8]>) -> String {
        self.0.token(key)
    }

    /// The journal with the answer to a call.
    ///
    /// # Errors
    /// There is no such call, or it has an answer.
    pub fn answered(&self, call: u32, result: Result<String, ToolError>) -> Result<Self, InputError> {
        let mut journal = self.0.clone();
        journal.answer(call, result).map_err(|error| InputError(error.to_string()))?;
        Ok(Self(journal))
    }
}

//! Reads the result of a call, which its transport has passed as text.

use crate::incoming;
use crate::mend;
use codecall_base::json;
use codecall_base::offload::{self, Busy};
use codecall_base::tool::LongResult;
use rmcp::ErrorData;
use rmcp::model::{CustomResult, ServerResult};

/// Maximum memory of the values of a result beside its text, in bytes, where it has more than text and data.
const MAX_PARSED_BYTES: usize = 64 << 20;

/// The answer to a request.
#[expect(clippy::large_enum_variant, reason = "an answer is taken apart at once")]
pub enum Answer {
    /// Any result.
    Result(ServerResult),
    /// The long result of a call, which nobody has read.
    Long(LongResult),
}

/// Reads the text of a result. The inner error: it cannot be read.
///
/// # Errors
/// There is no time to read it.
pub async fn read(text: String) -> Result<Result<Answer, ErrorData>, Busy> {
    offload::run(text.len(), || of_text(text)).await
}

fn of_text(text: String) -> Result<Answer, ErrorData> {
    let text = match LongResult::of_mcp(text) {
        Ok(long) => return Ok(Answer::Long(long)),
        Err(text) => text,
    };
    let checked = json::check_size(text.as_bytes(), text.len() + MAX_PARSED_BYTES);
    checked.map_err(|too_large| incoming::unread(&too_large.to_string()))?;
    let result = serde_json::from_str(&text);
    let result = result.map_err(|_| incoming::unread(&json::malformed(text.as_bytes()).to_string()))?;
    Ok(Answer::Result(match result {
        ServerResult::CustomResult(CustomResult(value)) => {
            mend::result(&value).unwrap_or(ServerResult::CustomResult(CustomResult(value)))
        }
        result => result,
    }))
}

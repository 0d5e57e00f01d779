//! Ids of tool calls, which carry the code of a block through the client's history.
//!
//! Clients return the ids of calls, whatever else of a message they drop. The id of the first call of a block is
//! `{run}_0_{code}`, with the code compressed and in URL-safe base64. The ids of the others are `{run}_{number}`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codecall_hub::stateless::CodeId;
use miniz_oxide::inflate::TINFLStatus;

/// Level of compression, from 0 to 10.
const COMPRESSION_LEVEL: u8 = 9;
/// Length of the ids that the model server sees. The strictest servers accept nine characters.
const SHORT_ID_LENGTH: usize = 9;

/// Returns the id of a block's first call with the code.
pub fn with_code(call: &str, code: &str) -> String {
    let packed = miniz_oxide::deflate::compress_to_vec(code.as_bytes(), COMPRESSION_LEVEL);
    format!("{call}_{}", URL_SAFE_NO_PAD.encode(packed))
}

/// Returns the run and the code in the id of a block's first call; `None` if it is another id.
///
/// # Errors
/// The code is longer than `max_bytes`.
pub fn decode_code(call: &str, max_bytes: usize) -> Result<Option<(String, String)>, TooLong> {
    let packed = run(call).and_then(|run| Some((run, call.strip_prefix(run)?.strip_prefix("_0_")?)));
    let Some((run, packed)) = packed else { return Ok(None) };
    let Ok(packed) = URL_SAFE_NO_PAD.decode(packed) else { return Ok(None) };
    match miniz_oxide::inflate::decompress_to_vec_with_limit(&packed, max_bytes) {
        Ok(code) => Ok(String::from_utf8(code).ok().map(|code| (run.to_owned(), code))),
        Err(error) if error.status == TINFLStatus::HasMoreOutput => Err(TooLong),
        Err(_) => Ok(None),
    }
}

/// The code is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Returns the run of a call; `None` if this server did not make the id.
pub fn run(call: &str) -> Option<&str> {
    let run = call.get(..CodeId::LENGTH)?;
    let is_own = CodeId::from_text(run).unix_ms().is_some() && call[run.len()..].starts_with('_');
    is_own.then_some(run)
}

/// Shortens the id of a run for the model server: nine letters and digits. An id of a client stays as it is.
pub fn shorten(run: &str) -> String {
    match CodeId::from_text(run).unix_ms() {
        Some(_) => run[run.len() - SHORT_ID_LENGTH..].to_owned(),
        None => run.to_owned(),
    }
}

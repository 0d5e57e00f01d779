//! Names of calls that hold what a client must bring back.
//!
//! Clients keep the names of calls, whatever else they drop of a message. The first call of a block is
//! named `{run}_0_{code}`, with the code compressed in base64 for addresses; the others `{run}_{number}`.

use crate::stateless::CodeId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::inflate::TINFLStatus;

/// How well code is compressed: 0 to 10.
const LEVEL: u8 = 9;
/// Names of calls that the model sees are as short as the strictest servers want them.
const SHORT: usize = 9;

/// The name of a block's first call, which holds the code.
pub fn with_code(call: &str, code: &str) -> String {
    let packed = miniz_oxide::deflate::compress_to_vec(code.as_bytes(), LEVEL);
    format!("{call}_{}", URL_SAFE_NO_PAD.encode(packed))
}

/// The run and the code in the name of a block's first call; absent: it is another name.
///
/// # Errors
/// The code is longer than `longest` bytes.
pub fn code(call: &str, longest: usize) -> Result<Option<(String, String)>, TooLong> {
    let packed = run(call).and_then(|run| Some((run, call.strip_prefix(run)?.strip_prefix("_0_")?)));
    let Some((run, packed)) = packed else { return Ok(None) };
    let Ok(packed) = URL_SAFE_NO_PAD.decode(packed) else { return Ok(None) };
    match miniz_oxide::inflate::decompress_to_vec_with_limit(&packed, longest) {
        Ok(code) => Ok(String::from_utf8(code).ok().map(|code| (run.to_owned(), code))),
        Err(error) if error.status == TINFLStatus::HasMoreOutput => Err(TooLong),
        Err(_) => Ok(None),
    }
}

/// Code is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The run that a call is of; absent: its name was not made here.
pub fn run(call: &str) -> Option<&str> {
    let run = call.get(..CodeId::LENGTH)?;
    let is_own = CodeId::given(run).unix_ms().is_some() && call[run.len()..].starts_with('_');
    is_own.then_some(run)
}

/// The name of a block for the model: letters and digits, nine at most where the name was made here.
pub fn short(run: &str) -> String {
    match CodeId::given(run).unix_ms() {
        Some(_) => run[run.len() - SHORT..].to_owned(),
        None => run.to_owned(),
    }
}

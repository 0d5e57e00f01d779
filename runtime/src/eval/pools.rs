//! Memory that a run uses again and again, for speed. Nothing in it has a meaning; a run that waits drops it.

use crate::eval::json::Records;
use crate::regexp::Matcher;
use crate::value::Value;
use std::cell::Cell;

/// Memory to be used again.
#[derive(Default)]
pub struct Pools {
    /// Slots of a frame that was suspended.
    pub slots: Option<Box<[Cell<Value>]>>,
    /// Bytes of texts that are being put together.
    pub text: Vec<u8>,
    /// Names of objects that were read from JSON or written.
    pub records: Option<Box<Records>>,
    /// The matcher of regular expressions.
    pub matcher: Matcher,
}

//! JSON text to values and back.
//!
//! Nothing here recurses: data may nest as deep as memory allows.

mod escapes;
mod parse;
mod promises;
mod read;
mod record;
mod stringify;
mod unread;
mod warnings;

pub use record::Records;
pub use stringify::Layout;
pub use unread::LEVELS;

use crate::value::numeric::NumberText;

/// Append a number as JSON.
fn push_number(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        out.extend_from_slice(NumberText::default().format(number).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

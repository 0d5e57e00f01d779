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

pub use parse::{parse, parse_string};
pub use promises::pending_promise_in;
pub use record::Records;
pub use stringify::cycle::{class_name, cycle_text};
pub use stringify::{
    Layout, allowed_keys, apply_to_json, enumerable_entries, result_text, settled, stringify, to_json, to_json_within,
};
pub use unread::{LEVELS, charged_properties, counted_properties, own, read_held};

use crate::value::numeric::NumberText;

/// Append a number as JSON.
fn push_number(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        out.extend_from_slice(NumberText::default().format(number).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

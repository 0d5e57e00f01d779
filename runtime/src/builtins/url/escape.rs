//! The percent-encode sets of the standard: <https://url.spec.whatwg.org/#percent-encoded-bytes>.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// The C0 control percent-encode set.
pub const C0_CONTROL: &AsciiSet = CONTROLS;
/// The fragment percent-encode set.
pub const FRAGMENT: &AsciiSet = &C0_CONTROL.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`');
/// The query percent-encode set.
pub const QUERY: &AsciiSet = &C0_CONTROL.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
/// The special-query percent-encode set.
pub const SPECIAL_QUERY: &AsciiSet = &QUERY.add(b'\'');
/// The path percent-encode set; without `^`, which the standard has added since Node 20.
pub const PATH: &AsciiSet = &QUERY.add(b'?').add(b'`').add(b'{').add(b'}');
/// The userinfo percent-encode set.
#[rustfmt::skip]
pub const USERINFO: &AsciiSet = &PATH.add(b'/').add(b':').add(b';').add(b'=').add(b'@').add(b'[').add(b'\\').add(b']').add(b'^').add(b'|');

/// UTF-8 percent-encode.
pub fn escaped(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).collect()
}

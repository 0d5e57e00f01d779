//! Short texts: formatting that stops at a bound.

use std::fmt::{self, Write};

/// The most bytes of a short text: twice those of a message.
pub const MAX_BRIEF: usize = 16 << 10;

/// `format!` of short parts: names of ours, numbers, and values that are cut. The text stops at [`MAX_BRIEF`] bytes,
/// so it needs no charge. A text that may be longer is formatted with a [`Charge`](crate::meter::Charge).
macro_rules! brief {
    ($($part:tt)*) => {
        $crate::text::brief::text(format_args!($($part)*))
    };
}

/// The text of `parts`, cut after [`MAX_BRIEF`] bytes.
pub fn text(parts: fmt::Arguments<'_>) -> String {
    let mut text = Text(String::new());
    // Writing fails where the text is cut.
    let _ = text.write_fmt(parts);
    text.0
}

struct Text(String);

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MAX_BRIEF - self.0.len();
        if part.len() <= room {
            self.0.push_str(part);
            return Ok(());
        }
        self.0.push_str(&part[..part.floor_char_boundary(room)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_BRIEF;

    #[test]
    fn a_short_text_is_that_of_format() {
        assert_eq!(brief!("{:>4}|{:?}", 7, "é"), format!("{:>4}|{:?}", 7, "é"));
        let full = "x".repeat(MAX_BRIEF);
        assert_eq!(brief!("{full}"), full);
    }

    #[test]
    fn a_long_text_stops_at_a_character() {
        let long = "€".repeat(MAX_BRIEF);
        let text = brief!("{long}{long}");
        assert!(text.len() <= MAX_BRIEF && text.len() > MAX_BRIEF - 3 && long.starts_with(&text));
        assert_eq!(brief!("{}é{long}", "x".repeat(MAX_BRIEF - 1)), "x".repeat(MAX_BRIEF - 1));
    }
}

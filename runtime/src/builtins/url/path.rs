//! Paths: the path state of the standard's parser.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

use super::escape::{PATH, escaped};
use super::record::Url;

impl Url {
    /// Append the segments of a text that follows a slash.
    pub(super) fn add_path(&mut self, text: &str) {
        if self.keeps_dots(text) {
            self.path = ["/", text].concat();
            return;
        }
        let is_special = self.is_special();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let end = text.find(|letter| letter == '/' || letter == '\\' && is_special);
            let segment = &text[..end.unwrap_or(text.len())];
            rest = end.map(|end| &text[end + 1..]);
            self.add_segment(segment, rest.is_none());
        }
    }

    /// Whether Node 20 keeps all dots: it looks no further than the first segment that begins with one, if nothing else is special.
    fn keeps_dots(&self, text: &str) -> bool {
        let is_plain = |text: &str| !text.contains(['%', '\\']) && escaped(text, PATH).len() == text.len();
        let stands_alone = self.path.is_empty() && self.query.is_none() && self.fragment.is_none();
        let Some((_, rest)) = text.split_once("/.").filter(|_| stands_alone && !text.starts_with('.')) else {
            return false;
        };
        let is_drive = self.is_file() && starts_with_drive(text);
        !is_drive && !rest.is_empty() && !rest.starts_with(['.', '/']) && is_plain(text)
    }

    fn add_segment(&mut self, segment: &str, is_last: bool) {
        if is_double_dot(segment) {
            // Where nothing is left to remove, Node gives only special schemes a last slash.
            if (self.shorten_path() || self.is_special()) && is_last {
                self.path.push('/');
            }
        } else if is_single_dot(segment) {
            if is_last {
                self.path.push('/');
            }
        } else {
            let is_drive = self.is_file() && self.path.is_empty() && segment.len() == 2 && starts_with_drive(segment);
            self.path.push('/');
            if is_drive {
                self.path.push_str(&segment[..1]);
                self.path.push(':');
            } else {
                self.path.push_str(&escaped(segment, PATH));
            }
        }
    }

    /// Remove the last segment, if there is one that is no drive; whether there was.
    pub(super) fn shorten_path(&mut self) -> bool {
        if self.is_file() && self.drive().is_some_and(|drive| drive.len() + 1 == self.path.len()) {
            return false;
        }
        let end = self.path.rfind('/');
        self.path.truncate(end.unwrap_or(self.path.len()));
        end.is_some()
    }

    /// The first segment, if it is a normalized Windows drive letter; for Node more may follow the colon.
    pub(super) fn drive(&self) -> Option<&str> {
        let first = self.path.strip_prefix('/')?.split('/').next()?;
        matches!(first.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()).then_some(first)
    }
}

/// Whether a text starts with a Windows drive letter.
pub(super) fn starts_with_drive(text: &str) -> bool {
    match text.as_bytes() {
        [letter, b':' | b'|'] | [letter, b':' | b'|', b'/' | b'\\' | b'?' | b'#', ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

fn is_single_dot(segment: &str) -> bool {
    segment == "." || segment.eq_ignore_ascii_case("%2e")
}

fn is_double_dot(segment: &str) -> bool {
    segment == ".." || [".%2e", "%2e.", "%2e%2e"].iter().any(|dots| segment.eq_ignore_ascii_case(dots))
}

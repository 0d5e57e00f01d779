//! Ranges of two times.

use super::DateTimeFormat;
use super::write::Part;

impl DateTimeFormat {
    /// A range by parts, each with the time that it is from.
    pub fn range(&self, from: f64, to: f64) -> Vec<(Part, &'static str)> {
        let (first, last) = (self.parts(from), self.parts(to));
        if first == last {
            return first.into_iter().map(|part| (part, "shared")).collect();
        }
        let dash = Part { kind: "literal", text: " \u{2013} ".into() };
        let mut parts: Vec<_> = first.into_iter().map(|part| (part, "startRange")).collect();
        parts.push((dash, "shared"));
        parts.extend(last.into_iter().map(|part| (part, "endRange")));
        parts
    }
}

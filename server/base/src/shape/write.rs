//! Writes a shape as a type of TypeScript.

use super::{MAX_DEPTH, ObjectShape, Shape};
use crate::shape::TextShape;

impl Shape {
    /// Returns the shape as a type on one line, with less depth if it would have more than `max_bytes`.
    #[must_use]
    pub fn to_type(&self, max_bytes: usize) -> String {
        let mut text = String::new();
        for depth in (0..=MAX_DEPTH).rev() {
            text = self.write(depth);
            if text.len() <= max_bytes {
                return text;
            }
        }
        if text.len() <= max_bytes { text } else { "unknown".into() }
    }

    fn write(&self, depth: usize) -> String {
        self.choices(depth).join(" | ")
    }

    /// Returns the types of a union.
    fn choices(&self, depth: usize) -> Vec<String> {
        let mut choices = Vec::new();
        choices.extend(self.object.as_ref().map(|object| object.write(depth)));
        choices.extend(self.list.as_ref().map(|items| items.write_list(depth)));
        choices.extend(self.text.as_ref().map(|text| text.write(depth)));
        choices.extend(self.number.then(|| "number".to_owned()));
        choices.extend(self.boolean.then(|| "boolean".to_owned()));
        if self.more || choices.is_empty() && !self.null {
            return vec!["unknown".to_owned()];
        }
        choices.extend(self.null.then(|| "null".to_owned()));
        choices
    }

    /// Returns the type of lists of such items.
    fn write_list(&self, depth: usize) -> String {
        let choices = self.choices(depth.saturating_sub(1));
        match choices.as_slice() {
            [one] if !one.ends_with("*/") => format!("{one}[]"),
            many => format!("Array<{}>", many.join(" | ")),
        }
    }
}

impl ObjectShape {
    fn write(&self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "object".into() };
        let others = self.others.as_ref().map(|others| others.write(depth));
        match others {
            Some(others) if self.properties.is_empty() => format!("Record<string, {others}>"),
            _ if self.properties.is_empty() => "{}".into(),
            others => {
                let rows = self.properties.iter().map(|(name, property)| {
                    let mark = if property.optional { "?" } else { "" };
                    format!("{}{mark}: {}", quoted(name), property.shape.write(depth))
                });
                let rows: Vec<String> = rows.chain(others.map(|others| format!("[key: string]: {others}"))).collect();
                format!("{{ {} }}", rows.join("; "))
            }
        }
    }
}

impl TextShape {
    fn write(&self, depth: usize) -> String {
        let mut contents = Vec::new();
        contents.extend(self.json.as_ref().map(|shape| format!("JSON of {}", shape.write(depth))));
        contents.extend(self.lines.as_ref().map(|shape| format!("JSON lines of {}", shape.write(depth))));
        contents.extend(self.python.as_ref().map(|shape| format!("Python repr of {}", shape.write(depth))));
        contents.extend(self.tables.iter().map(|table| match table.columns.as_slice() {
            [] => table.format.as_str().to_owned(),
            columns => format!("{} with the columns {}", table.format.as_str(), columns.join(", ")),
        }));
        if contents.is_empty() {
            return "string".into();
        }
        if self.plain {
            contents.push("other text".into());
        }
        let reader = if self.needs_parser() { "; parseText(text).data reads it" } else { "" };
        format!("string /* {}{reader} */", contents.join(", or "))
    }
}

/// Returns a property name in TypeScript.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

//! The shape of values that were seen: which types, which properties, and what texts contain.
//!
//! A shape has no values. Keys that look like values, such as ids and addresses, are not kept. It is limited in size and
//! depth, whatever the values are.

mod text;
mod write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
pub use text::{Table, TableFormat, TextShape};

/// Maximum depth of a shape. What is deeper is unknown.
const MAX_DEPTH: usize = 6;
/// Maximum number of properties of an object. One with more is a table by key.
const MAX_PROPERTIES: usize = 40;
/// Maximum number of shapes within a shape.
const MAX_PARTS: usize = 400;
/// Maximum number of values that are looked at.
const MAX_VALUES: usize = 3_000;
/// Items of a list that are looked at: at its beginning, and at its end.
const ITEMS: (usize, usize) = (50, 10);
/// Maximum length of a property name, in bytes. A longer key is a value.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of digits of a property name. A key with more is a value, such as an id or a date.
const MAX_NAME_DIGITS: usize = 4;

/// The shape of values: the types that were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    #[serde(skip_serializing_if = "is_false")]
    null: bool,
    #[serde(skip_serializing_if = "is_false")]
    boolean: bool,
    #[serde(skip_serializing_if = "is_false")]
    number: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextShape>,
    /// The items of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Box<Shape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectShape>,
    /// Whether there are values beyond the limits.
    #[serde(skip_serializing_if = "is_false")]
    more: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct ObjectShape {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<String, Property>,
    /// The values of keys that are no names of properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<Box<Shape>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Property {
    /// Whether objects without it were seen.
    #[serde(skip_serializing_if = "is_false")]
    optional: bool,
    shape: Shape,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The work that is left.
struct Budget {
    values: usize,
    /// Whether texts are looked into. A text within a text is not.
    texts: bool,
}

impl Shape {
    /// Returns the shape of a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let mut shape = Self::visit(value, 0, &mut Budget { values: MAX_VALUES, texts: true });
        shape.limit();
        shape
    }

    /// Returns the shape of the value of a text.
    fn of_text(value: &Value) -> Self {
        Self::visit(value, 2, &mut Budget { values: MAX_VALUES, texts: false })
    }

    fn visit(value: &Value, depth: usize, budget: &mut Budget) -> Self {
        let mut shape = Self::default();
        if budget.values == 0 || depth > MAX_DEPTH {
            shape.more = true;
            return shape;
        }
        budget.values -= 1;
        match value {
            Value::Null => shape.null = true,
            Value::Bool(_) => shape.boolean = true,
            Value::Number(_) => shape.number = true,
            Value::String(text) => shape.text = Some(TextShape::of(text, budget.texts)),
            Value::Array(items) => {
                let mut list = Self::default();
                let end = items.len().saturating_sub(ITEMS.1).max(ITEMS.0);
                for item in items.iter().take(ITEMS.0).chain(items.iter().skip(end)) {
                    list.merge(Self::visit(item, depth + 1, budget));
                }
                shape.list = Some(Box::new(list));
            }
            Value::Object(members) => shape.object = Some(Self::visit_object(members, depth, budget)),
        }
        shape
    }

    fn visit_object(members: &Map<String, Value>, depth: usize, budget: &mut Budget) -> ObjectShape {
        let mut object = ObjectShape::default();
        let is_record = members.len() > MAX_PROPERTIES;
        for (key, member) in members.iter().take(MAX_PROPERTIES * 2) {
            let shape = Self::visit(member, depth + 1, budget);
            if is_record || !is_name(key) {
                object.others.get_or_insert_default().merge(shape);
            } else {
                object.properties.insert(key.clone(), Property { optional: false, shape });
            }
        }
        object
    }

    /// Adds the shape of other values: types become unions, properties that not all have become optional.
    pub fn merge(&mut self, other: Self) {
        let Self { null, boolean, number, text, list, object, more } = other;
        self.null |= null;
        self.boolean |= boolean;
        self.number |= number;
        self.more |= more;
        match (&mut self.text, text) {
            (Some(own), Some(text)) => own.merge(text),
            (own @ None, text) => *own = text,
            (Some(_), None) => {}
        }
        match (&mut self.list, list) {
            (Some(own), Some(list)) => own.merge(*list),
            (own @ None, list) => *own = list,
            (Some(_), None) => {}
        }
        match (&mut self.object, object) {
            (Some(own), Some(object)) => own.merge(object),
            (own @ None, object) => *own = object,
            (Some(_), None) => {}
        }
    }

    /// Removes what is beyond the limits, the deepest parts first.
    pub fn limit(&mut self) {
        for depth in (1..=MAX_DEPTH).rev() {
            self.cut(depth);
            if self.parts() <= MAX_PARTS {
                return;
            }
        }
    }

    /// Removes what is deeper than `depth`.
    fn cut(&mut self, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            *self = Self { more: true, ..Self::default() };
            return;
        };
        self.text.iter_mut().for_each(|text| text.cut(depth));
        self.list.iter_mut().for_each(|items| items.cut(depth));
        if let Some(object) = &mut self.object {
            if object.properties.len() > MAX_PROPERTIES {
                object.fold();
            }
            object.properties.values_mut().for_each(|property| property.shape.cut(depth));
            object.others.iter_mut().for_each(|others| others.cut(depth));
        }
    }

    fn parts(&self) -> usize {
        let text = self.text.as_ref().map_or(0, TextShape::parts);
        let list = self.list.as_ref().map_or(0, |items| items.parts());
        let object = self.object.as_ref().map_or(0, |object| {
            let properties: usize = object.properties.values().map(|property| property.shape.parts()).sum();
            properties + object.others.as_ref().map_or(0, |others| others.parts())
        });
        1 + text + list + object
    }
}

impl ObjectShape {
    fn merge(&mut self, other: Self) {
        // A table by key stays one, whatever its further keys look like.
        let is_table = self.others.is_some() && self.properties.is_empty();
        for (name, own) in &mut self.properties {
            own.optional |= !other.properties.contains_key(name);
        }
        for (name, mut property) in other.properties {
            match self.properties.get_mut(&name) {
                Some(own) => {
                    own.optional |= property.optional;
                    own.shape.merge(property.shape);
                }
                None => {
                    property.optional = true;
                    self.properties.insert(name, property);
                }
            }
        }
        if let Some(others) = other.others {
            self.others.get_or_insert_default().merge(*others);
        }
        if is_table || self.properties.len() > MAX_PROPERTIES {
            self.fold();
        }
    }

    /// Makes a table by key of an object.
    fn fold(&mut self) {
        for property in std::mem::take(&mut self.properties).into_values() {
            self.others.get_or_insert_default().merge(property.shape);
        }
    }
}

/// Whether a key is the name of a property, and no value.
fn is_name(key: &str) -> bool {
    let is_sign = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | ':');
    let begins = key.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '@'));
    let rest = key.strip_prefix('@').unwrap_or(key);
    let digits = key.chars().filter(char::is_ascii_digit).count();
    begins && key.len() <= MAX_NAME_BYTES && digits <= MAX_NAME_DIGITS && rest.chars().all(is_sign)
}

#[cfg(test)]
mod tests;

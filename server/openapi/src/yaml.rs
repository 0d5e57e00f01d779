//! YAML to JSON, by the core schema of YAML 1.2, and by what the author of a description means.
//!
//! A scalar without quotes gets its type from its place: in an `enum` of strings `0123`, `1e3` and `no` are texts as they
//! are written. Where the place says nothing, the core schema decides. One value that JSON does not have, such as `.inf`, is
//! left out and named; the rest of the document is used.

mod compose;
mod place;
mod scalar;
#[cfg(test)]
mod tests;

use crate::limits::{MAX_BYTES, MAX_DEPTH, MAX_REFERENCES, MAX_WARNINGS, MAX_YAML_VALUES};
use codecall_base::text::truncate;
use compose::{Id, Kind, Node, Nodes, Text};
use percent_encoding::percent_decode_str;
use place::{Place, place};
use scalar::Scalar;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum number of members that are looked at to find the schemas of values.
const MAX_LOOKS: usize = 10_000_000;

/// Where a text is not YAML, or too large: line and column, from 1.
#[derive(Debug)]
pub struct Failure {
    pub line: usize,
    pub column: usize,
}

/// Converts a text. Returns its value, and what of it was left out or mended.
///
/// # Errors
/// It is not YAML, or larger than the limits.
pub fn convert(text: &str) -> Result<(Value, Vec<String>), Failure> {
    let mut nodes = compose::compose(text)?;
    let problems = std::mem::take(&mut nodes.problems);
    let Some(root) = nodes.root else { return Ok((Value::Null, problems)) };
    let mut converter = Converter {
        nodes: &nodes,
        root,
        problems,
        values: MAX_YAML_VALUES,
        bytes: MAX_BYTES,
        looks: MAX_LOOKS,
        pointers: HashMap::new(),
        line: 1,
    };
    match converter.value(root, Role::of(Place::Object), 0) {
        Ok(value) => Ok((value.unwrap_or_default(), converter.problems)),
        Err(TooLarge) => Err(Failure { line: converter.line, column: 1 }),
    }
}

/// The type of the value at a place, as far as it is known.
#[derive(Clone, Copy)]
struct Role {
    place: Place,
    /// The schema that the value fits.
    schema: Option<Id>,
}

impl Role {
    fn of(place: Place) -> Self {
        Self { place, schema: None }
    }
}

/// The document expands to too much.
struct TooLarge;

/// The types that a schema allows; none: it does not say.
#[derive(Clone, Copy, Default)]
struct Types {
    string: bool,
    number: bool,
    boolean: bool,
    null: bool,
}

struct Converter<'n, 'a> {
    nodes: &'n Nodes<'a>,
    root: Id,
    problems: Vec<String>,
    /// How many values, bytes and looks are left.
    values: usize,
    bytes: usize,
    looks: usize,
    /// The targets of references within the document.
    pointers: HashMap<&'n str, Option<Id>>,
    /// The line of the last scalar.
    line: usize,
}

impl<'n, 'a> Converter<'n, 'a> {
    /// Converts a node; `None`: it is left out.
    fn value(&mut self, id: Id, role: Role, depth: usize) -> Result<Option<Value>, TooLarge> {
        self.values = self.values.checked_sub(1).ok_or(TooLarge)?;
        if depth > MAX_DEPTH {
            return Err(TooLarge);
        }
        let nodes = self.nodes;
        match &nodes.nodes[id] {
            Node::Scalar(text) => self.scalar(text, role),
            Node::Missing => Ok(None),
            Node::List(items) => {
                let role = self.of_items(role);
                let mut list = Vec::new();
                for &item in items {
                    list.extend(self.value(item, role, depth + 1)?);
                }
                Ok(Some(list.into()))
            }
            Node::Map(_) => self.object(id, role, depth).map(Some),
        }
    }

    fn object(&mut self, id: Id, role: Role, depth: usize) -> Result<Value, TooLarge> {
        let nodes = self.nodes;
        if let Node::Map(members) = &nodes.nodes[id] {
            let has_key = |(key, _): &&(Id, Id)| matches!(nodes.nodes[*key], Node::Scalar(_));
            let lost = members.len() - members.iter().filter(has_key).count();
            if lost > 0 {
                self.problem(self.line, &format!("{lost} members whose keys are no texts are left out"));
            }
        }
        let mut object = Map::new();
        for (key, value) in nodes.members(id) {
            self.charge(&key.text)?;
            self.line = key.line;
            let role = self.of_member(id, role, &key.text);
            let Some(value) = self.value(value, role, depth + 1)? else { continue };
            if object.insert(key.text.to_string(), value).is_some() {
                self.problem(key.line, &format!("the key '{}' is there again; the last one counts", shown(&key.text)));
            }
        }
        Ok(object.into())
    }

    /// Returns the role of the items of a list.
    fn of_items(&mut self, role: Role) -> Role {
        match role.place {
            // A list of texts, of values that are allowed, or of objects.
            Place::Object | Place::Text | Place::Choices | Place::Data => role,
            Place::Samples => Role { place: Place::Sample, ..role },
            Place::Sample => {
                let items = role.schema.and_then(|schema| self.nodes_member(schema, "items"));
                Role { place: Place::Sample, schema: items }
            }
            // `parameters` of an operation is a list, that of the components an object.
            Place::Named => Role::of(Place::Object),
            Place::Truth => Role::of(Place::Text),
            Place::Variables | Place::Variable | Place::Number => Role::of(Place::Data),
        }
    }

    /// Returns the role of a member of an object.
    fn of_member(&mut self, object: Id, role: Role, key: &str) -> Role {
        match role.place {
            // The last two may also have a schema.
            Place::Object | Place::Truth | Place::Number => {
                let place = place(Place::Object, key);
                let schema = match place {
                    // Parameters and media types have their schema in a member.
                    Place::Sample | Place::Samples => Some(self.nodes_member(object, "schema").unwrap_or(object)),
                    Place::Choices => Some(object),
                    _ => None,
                };
                Role { place, schema }
            }
            Place::Sample => {
                let property = role.schema.and_then(|schema| self.property(schema, key));
                Role { place: Place::Sample, schema: property }
            }
            // Examples by name, each with a `value`.
            Place::Samples => Role::of(Place::Data),
            Place::Text => role,
            place_of @ (Place::Named | Place::Variables | Place::Variable) => Role::of(place(place_of, key)),
            Place::Choices | Place::Data => Role::of(Place::Data),
        }
    }

    fn scalar(&mut self, text: &Text<'_>, role: Role) -> Result<Option<Value>, TooLarge> {
        self.charge(&text.text)?;
        self.line = text.line;
        let written = &*text.text;
        let resolved = match text.kind {
            Kind::Empty | Kind::Null => return Ok(Some(Value::Null)),
            Kind::Quoted if role.place == Place::Truth => return Ok(Some(truth_or_text(written))),
            Kind::Quoted => return Ok(Some(written.into())),
            Kind::Truth => return Ok(Some(truth_or_text(written))),
            Kind::Number => scalar::core(written),
            Kind::Plain => match self.by_place(written, role) {
                Some(value) => return Ok(Some(value)),
                None => scalar::core(written),
            },
        };
        Ok(match resolved {
            Scalar::Value(value) => Some(value),
            Scalar::Text => Some(written.into()),
            Scalar::NotFinite => {
                self.problem(text.line, &format!("JSON has no number '{}'; it is left out", shown(written)));
                None
            }
        })
    }

    /// Converts a plain scalar as its place has it. `None`: as the core schema has it.
    fn by_place(&mut self, written: &str, role: Role) -> Option<Value> {
        match role.place {
            // `description:` without a text has none.
            Place::Text => (written != "~").then(|| written.into()),
            Place::Truth => scalar::truth(written).map(Value::from),
            Place::Number => scalar::grouped(written),
            Place::Choices | Place::Sample | Place::Samples => {
                let types = role.schema.map_or_else(Types::default, |schema| self.types(schema));
                by_types(written, types, role.place == Place::Choices)
            }
            Place::Object | Place::Named | Place::Variables | Place::Variable | Place::Data => None,
        }
    }

    /// Returns the types of a schema, also those of the schemas that it consists of.
    fn types(&mut self, schema: Id) -> Types {
        let mut types = Types::default();
        let mut pending = vec![schema];
        let mut seen = Vec::new();
        while let Some(schema) = pending.pop() {
            if seen.len() >= MAX_REFERENCES || seen.contains(&schema) {
                continue;
            }
            seen.push(schema);
            for (key, value) in self.look(schema) {
                match (&*key.text, &self.nodes.nodes[value]) {
                    ("$ref", Node::Scalar(reference)) => pending.extend(self.pointer(&reference.text)),
                    ("allOf" | "anyOf" | "oneOf", Node::List(schemas)) => pending.extend(schemas),
                    ("nullable", Node::Scalar(text)) => types.null |= scalar::truth(&text.text) == Some(true),
                    ("type", Node::Scalar(name)) => types.add(&name.text),
                    ("type", Node::List(names)) => {
                        for name in names {
                            if let Node::Scalar(name) = &self.nodes.nodes[*name] {
                                types.add(&name.text);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        types
    }

    /// Returns the schema of a property.
    fn property(&mut self, schema: Id, name: &str) -> Option<Id> {
        let mut pending = vec![schema];
        for _ in 0..MAX_REFERENCES {
            for (key, value) in self.look(pending.pop()?) {
                match (&*key.text, &self.nodes.nodes[value]) {
                    ("$ref", Node::Scalar(reference)) => pending.extend(self.pointer(&reference.text)),
                    ("allOf", Node::List(schemas)) => pending.extend(schemas),
                    ("properties", Node::Map(_)) => {
                        if let Some(found) = self.nodes_member(value, name) {
                            return Some(found);
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Returns what a reference within the document leads to.
    fn pointer(&mut self, reference: &'n str) -> Option<Id> {
        if let Some(known) = self.pointers.get(reference) {
            return *known;
        }
        let found = reference.strip_prefix('#').and_then(|path| {
            let path = percent_decode_str(path).decode_utf8().ok()?;
            let names = path.split('/').skip(1);
            names
                .take(MAX_DEPTH)
                .try_fold(self.root, |at, name| self.nodes_member(at, &name.replace("~1", "/").replace("~0", "~")))
        });
        self.pointers.insert(reference, found);
        found
    }

    fn nodes_member(&mut self, object: Id, name: &str) -> Option<Id> {
        self.look(object).into_iter().rev().find_map(|(key, value)| (key.text == name).then_some(value))
    }

    /// Returns the members of an object to find a schema; none if there were too many such looks.
    fn look(&mut self, object: Id) -> Vec<(&'n Text<'a>, Id)> {
        let Node::Map(members) = &self.nodes.nodes[object] else { return Vec::new() };
        match self.looks.checked_sub(1 + members.len()) {
            Some(left) => self.looks = left,
            None => return Vec::new(),
        }
        self.nodes.members(object)
    }

    fn charge(&mut self, text: &str) -> Result<(), TooLarge> {
        self.bytes = self.bytes.checked_sub(text.len()).ok_or(TooLarge)?;
        Ok(())
    }

    fn problem(&mut self, line: usize, problem: &str) {
        if self.problems.len() < MAX_WARNINGS {
            self.problems.push(format!("line {line}: {problem}"));
        }
    }
}

impl Types {
    fn add(&mut self, name: &str) {
        match crate::schema::known_type(name) {
            Some("string") => self.string = true,
            Some("number" | "integer") => self.number = true,
            Some("boolean") => self.boolean = true,
            Some("null") => self.null = true,
            Some(_) | None => {}
        }
    }
}

/// Converts a plain scalar to a value of these types. `None`: as the core schema has it.
fn by_types(written: &str, types: Types, is_choice: bool) -> Option<Value> {
    let fits = match scalar::core(written) {
        // `default: null` says that there is none.
        Scalar::Value(Value::Null) => types.null || !is_choice && written != "~",
        Scalar::Value(Value::Bool(_)) => types.boolean,
        Scalar::Value(Value::Number(_)) => types.number,
        Scalar::Value(_) | Scalar::Text => types.string,
        Scalar::NotFinite => false,
    };
    match types {
        _ if fits => None,
        Types { string: true, .. } => Some(written.into()),
        Types { boolean: true, .. } if scalar::truth(written).is_some() => scalar::truth(written).map(Value::from),
        Types { number: true, .. } => scalar::grouped(written),
        _ => None,
    }
}

fn truth_or_text(written: &str) -> Value {
    scalar::truth(written).map_or_else(|| written.into(), Value::from)
}

fn shown(text: &str) -> String {
    truncate(text, 60).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

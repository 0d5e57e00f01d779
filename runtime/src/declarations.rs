//! Converts JSON schemas to TypeScript: what a model needs to write a call, in a fraction of the tokens.
//!
//! The result is for reading. Rules that TypeScript cannot express (ranges, formats, defaults) are in comments, or
//! omitted: the tool validates its input.

mod comment;
mod line;

use comment::comment;
pub use line::{LineDetail, first_sentence, parameters, result_type};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum length of a signature, in bytes. A longer one is written again with less detail.
const MAX_SIGNATURE_BYTES: usize = 8_000;
/// Maximum length of the declarations of all functions of a list, in bytes, as far as less detail can achieve it.
const MAX_TOTAL_BYTES: usize = 60_000;
/// The length of a declaration that is allowed however many functions there are, in bytes.
const MIN_SIGNATURE_BYTES: usize = 400;
/// Maximum length of the description of a function, in characters.
const MAX_DESCRIPTION_CHARS: usize = 600;
/// How much is written, from much detail to little.
const DETAILS: [Detail; 5] = [
    Detail { depth: 8, layout: Layout::Commented },
    Detail { depth: 4, layout: Layout::Commented },
    Detail { depth: 4, layout: Layout::Spaced },
    Detail { depth: 2, layout: Layout::Spaced },
    Detail { depth: 1, layout: Layout::Spaced },
];
/// Maximum depth to which schemas are read.
const MAX_DEPTH: usize = 32;
/// Maximum number of schemas that are written where each is written as often as it is referred to.
const MAX_PARTS: usize = 5_000;
/// Maximum number of properties of an object that are written.
const MAX_PROPERTIES: usize = 100;
/// Maximum length of a list of constants that is written in place, in bytes.
const MAX_INLINE_BYTES: usize = 60;

/// How much is written: to which depth of nested objects, and how they are laid out.
#[derive(Clone, Copy)]
struct Detail {
    depth: usize,
    layout: Layout,
}

/// How a type is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A property a line, with comments.
    Commented,
    /// On one line.
    Spaced,
    /// On one line, with the fewest tokens: `{a: string, b?: "x"|"y"}`.
    Dense,
}

impl Layout {
    /// Returns the sign between the members of a union or intersection.
    fn sign(self, binding: Binding) -> &'static str {
        match (binding, self) {
            (Binding::Union, Self::Dense) => "|",
            (Binding::Union, Self::Commented | Self::Spaced) => " | ",
            (Binding::Intersection | Binding::Atom, Self::Dense) => "&",
            (Binding::Intersection | Binding::Atom, Self::Commented | Self::Spaced) => " & ",
        }
    }
}

/// The type of a tool's results, if the tool does not promise one.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The type, in TypeScript.
    pub kind: &'a str,
    /// How reliable it is, on one line.
    pub note: &'a str,
}

/// Returns `callTool('users:list', input: {…}): Promise<…>`, and the types that it names. `observed` is used where there is
/// no `output`.
#[must_use]
pub fn signature(tool: &str, input: &Value, output: Option<&Value>, observed: Option<Observed<'_>>) -> String {
    let name = quoted(tool);
    let head = |input: &str, promised: &str| match observed.filter(|_| output.is_none()) {
        Some(Observed { kind, note }) => format!("callTool({name}, input: {input}): Promise<{kind}>; // {note}"),
        None => format!("callTool({name}, input: {input}): Promise<{promised}>"),
    };
    detailed(input, output, MAX_SIGNATURE_BYTES, &mut Names::default(), &head)
}

/// A tool that a script calls as a function of its own.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// The function's name; absent: it is called with `callTool`.
    pub name: Option<String>,
    /// The tool's name.
    pub tool: &'a str,
    /// What it does.
    pub description: &'a str,
    /// JSON schema of its input.
    pub input: &'a Value,
    /// JSON schema of its result.
    pub output: Option<&'a Value>,
}

/// Returns declarations of functions, one after the other: `declare function webSearch(input: {…}): Promise<…>;`, each with
/// the description of its tool above it.
#[must_use]
pub fn declarations<'a>(functions: impl ExactSizeIterator<Item = Function<'a>>) -> String {
    let max_bytes = (MAX_TOTAL_BYTES / functions.len().max(1)).clamp(MIN_SIGNATURE_BYTES, MAX_SIGNATURE_BYTES);
    let mut names = Names::default();
    let mut text = String::new();
    for function in functions {
        let description = comment::sentence(function.description, MAX_DESCRIPTION_CHARS);
        if !description.is_empty() {
            text.push_str(&format!("/** {} */\n", description.replace("*/", "* /")));
        }
        let head = |input: &str, output: &str| match &function.name {
            Some(name) => format!("declare function {name}(input: {input}): Promise<{output}>;"),
            None => {
                let tool = quoted(function.tool);
                format!("declare function callTool(name: {tool}, input: {input}): Promise<{output}>;")
            }
        };
        text.push_str(&detailed(function.input, function.output, max_bytes, &mut names, &head));
        text.push('\n');
    }
    text
}

/// Returns what `head` makes of the types of input and output, and the types that these name, with as much detail as
/// `max_bytes` allows. `names` are those that are taken.
fn detailed(
    input_schema: &Value,
    output_schema: Option<&Value>,
    max_bytes: usize,
    names: &mut Names,
    head: &dyn Fn(&str, &str) -> String,
) -> String {
    let taken = names.order.len();
    let mut text = String::new();
    for detail in DETAILS {
        names.release_after(taken);
        let mut input = Writer::new(input_schema, detail, names, "Input");
        let input_type = input.root();
        let mut declarations = input.declarations();
        let output_type = output_schema.map(|schema| {
            let mut output = Writer::new(schema, detail, names, "Output");
            let written = output.root();
            declarations.extend(output.declarations());
            written
        });
        text = head(&input_type, output_type.as_deref().unwrap_or("unknown"));
        for declaration in declarations {
            text.push('\n');
            text.push_str(&declaration);
        }
        if text.len() <= max_bytes {
            break;
        }
    }
    text
}

/// Returns a schema as a type on one line, without comments.
#[must_use]
pub fn type_of(schema: &Value, root: &Value) -> String {
    let mut names = Names::default();
    let detail = Detail { depth: 2, layout: Layout::Spaced };
    let mut writer = Writer { shared: HashMap::new(), left: MAX_PARTS, ..Writer::new(root, detail, &mut names, "") };
    writer.write(schema, 0, 0).text
}

/// Names of types that are taken.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    /// The next number for each base of a name.
    numbers: HashMap<String, u32>,
    /// In order: names, their bases, and the number of the base before.
    order: Vec<(String, String, u32)>,
}

impl Names {
    /// Takes a free name that is made from any text.
    fn take(&mut self, wanted: &str) -> String {
        let words = wanted.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let mut base: String = words
            .map(|word| {
                let mut letters = word.chars();
                letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
            })
            .collect();
        if base.is_empty() || base.starts_with(|c: char| c.is_numeric()) {
            base.insert(0, 'T');
        }
        let before = self.numbers.get(&base).copied().unwrap_or(1);
        let mut number = before;
        let mut name = if number == 1 { base.clone() } else { format!("{base}{number}") };
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{base}{number}");
        }
        self.numbers.insert(base.clone(), number + 1);
        self.order.push((name.clone(), base, before));
        name
    }

    /// Releases all names but the first `count`.
    fn release_after(&mut self, count: usize) {
        for (name, base, before) in self.order.drain(count..).rev() {
            self.taken.remove(&name);
            self.numbers.insert(base, before);
        }
    }
}

/// The precedence of a type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Union,
    Intersection,
    Atom,
}

/// A type as text.
struct Type {
    text: String,
    binding: Binding,
}

impl Type {
    fn atom(text: impl Into<String>) -> Self {
        Self { text: text.into(), binding: Binding::Atom }
    }

    fn unknown() -> Self {
        Self::atom("unknown")
    }

    fn is_unknown(&self) -> bool {
        self.text == "unknown"
    }

    /// Returns the text for a position that requires at least this precedence, in parentheses if necessary.
    fn within(self, binding: Binding) -> String {
        if self.binding >= binding { self.text } else { format!("({})", self.text) }
    }

    fn array(self) -> Self {
        match self.binding {
            Binding::Atom => Self::atom(format!("{}[]", self.text)),
            Binding::Union | Binding::Intersection => Self::atom(format!("Array<{}>", self.text)),
        }
    }

    /// Joins types, each once, in order.
    fn joined(types: Vec<Self>, binding: Binding, layout: Layout) -> Option<Self> {
        let mut known = HashSet::new();
        let mut parts = types;
        parts.retain(|part| known.insert(part.text.clone()));
        if parts.len() < 2 {
            return parts.pop();
        }
        let parts: Vec<String> = parts.into_iter().map(|part| part.within(binding)).collect();
        Some(Self { text: parts.join(layout.sign(binding)), binding })
    }
}

/// Writes one schema.
struct Writer<'a> {
    root: &'a Value,
    detail: Detail,
    names: &'a mut Names,
    /// The name of the schema itself, if it refers to itself.
    own: &'static str,
    /// Parts that are referred to more than once, by pointer, with their names once they have one.
    shared: HashMap<&'a str, Option<String>>,
    /// Parts that have a name and are not written yet.
    pending: VecDeque<(String, &'a Value)>,
    /// How many more schemas are written.
    left: usize,
}

impl<'a> Writer<'a> {
    fn new(root: &'a Value, detail: Detail, names: &'a mut Names, own: &'static str) -> Self {
        let shared = shared(root);
        Self { root, detail, names, own, shared, pending: VecDeque::new(), left: usize::MAX }
    }

    /// Returns the type of the whole schema.
    fn root(&mut self) -> String {
        self.write(self.root, 0, 0).text
    }

    /// Returns the declarations of the types that were named.
    fn declarations(&mut self) -> Vec<String> {
        let mut declarations = Vec::new();
        while let Some((name, schema)) = self.pending.pop_front() {
            let written = self.write(schema, 0, 0).text;
            declarations.push(format!("type {name} = {written};"));
        }
        declarations
    }

    /// `depth` counts objects, `level` everything.
    fn write(&mut self, schema: &'a Value, depth: usize, level: usize) -> Type {
        let Some(members) = schema.as_object() else {
            return if schema == &Value::Bool(false) { Type::atom("never") } else { Type::unknown() };
        };
        if level > MAX_DEPTH || self.left == 0 {
            return Type::unknown();
        }
        self.left -= 1;
        let mut parts = Vec::new();
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(reference, depth, level));
        }
        parts.extend(self.own_type(members, depth, level));
        for part in list(members, "allOf") {
            parts.push(self.write(part, depth, level + 1));
        }
        for key in ["anyOf", "oneOf"] {
            let mut choices: Vec<Type> =
                list(members, key).iter().map(|choice| self.write(choice, depth, level + 1)).collect();
            // Beside an object with properties, any object says nothing more.
            if self.detail.layout == Layout::Dense && choices.iter().any(|choice| choice.text.starts_with('{')) {
                choices.retain(|choice| choice.text != "Record<string, unknown>");
            }
            // A choice that only has `required` has no type.
            if !choices.iter().any(Type::is_unknown) {
                parts.extend(Type::joined(choices, Binding::Union, self.detail.layout));
            }
        }
        parts.retain(|part| !part.is_unknown());
        let whole = Type::joined(parts, Binding::Intersection, self.detail.layout).unwrap_or_else(Type::unknown);
        match members.get("nullable") {
            Some(Value::Bool(true)) if !whole.is_unknown() => {
                Type::joined(vec![whole, Type::atom("null")], Binding::Union, self.detail.layout)
                    .unwrap_or_else(Type::unknown)
            }
            Some(_) | None => whole,
        }
    }

    fn reference(&mut self, reference: &'a str, depth: usize, level: usize) -> Type {
        let Some(target) = target(self.root, reference) else { return Type::unknown() };
        match self.shared.get(reference) {
            Some(Some(name)) => return Type::atom(name.clone()),
            Some(None) if !is_plain(target) => {}
            Some(None) | None => return self.write(target, depth, level + 1),
        }
        let wanted = reference.rsplit(['/', '#']).find(|part| !part.is_empty()).unwrap_or(self.own);
        let name = self.names.take(wanted);
        self.shared.insert(reference, Some(name.clone()));
        self.pending.push_back((name.clone(), target));
        Type::atom(name)
    }

    /// Returns the type of the schema itself, without `$ref` and combinations.
    fn own_type(&mut self, members: &'a Map<String, Value>, depth: usize, level: usize) -> Option<Type> {
        if let Some(value) = members.get("const") {
            return Some(Type::atom(value.to_string()));
        }
        if let Some(values) = members.get("enum").and_then(Value::as_array) {
            let constants = values.iter().map(|value| Type::atom(value.to_string())).collect();
            return Type::joined(constants, Binding::Union, self.detail.layout);
        }
        let kinds: Vec<&str> = match members.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            Some(_) | None if has(members, &["properties", "additionalProperties", "patternProperties"]) => {
                vec!["object"]
            }
            Some(_) | None if has(members, &["items", "prefixItems"]) => vec!["array"],
            Some(_) | None => return None,
        };
        let types = kinds.into_iter().map(|kind| self.of_kind(kind, members, depth, level)).collect();
        Type::joined(types, Binding::Union, self.detail.layout)
    }

    fn of_kind(&mut self, kind: &str, members: &'a Map<String, Value>, depth: usize, level: usize) -> Type {
        match kind {
            "integer" | "number" => Type::atom("number"),
            "string" | "boolean" | "null" => Type::atom(kind),
            "array" => self.array(members, depth, level),
            "object" => self.object(members, depth, level),
            _ => Type::unknown(),
        }
    }

    fn array(&mut self, members: &'a Map<String, Value>, depth: usize, level: usize) -> Type {
        let items = members.get("items");
        // Before 2020 a tuple was a list under `items`, with the rest beside it.
        let (first, rest) = match (members.get("prefixItems"), items) {
            (Some(first), rest) => (first.as_array(), rest),
            (None, Some(Value::Array(first))) => (Some(first), members.get("additionalItems")),
            (None, rest) => (None, rest),
        };
        let rest = rest.filter(|rest| rest != &&Value::Bool(false));
        let Some(first) = first else {
            return rest.map_or_else(Type::unknown, |item| self.write(item, depth, level + 1)).array();
        };
        let mut parts: Vec<String> = first.iter().map(|item| self.write(item, depth, level + 1).text).collect();
        if let Some(rest) = rest {
            parts.push(format!("...{}", self.write(rest, depth, level + 1).array().text));
        }
        Type::atom(format!("[{}]", parts.join(", ")))
    }

    fn object(&mut self, members: &'a Map<String, Value>, depth: usize, level: usize) -> Type {
        let properties = members.get("properties").and_then(Value::as_object).filter(|rows| !rows.is_empty());
        let others = self.others(members, properties.is_some(), depth, level);
        let Some(properties) = properties else {
            return match others {
                Some(values) => Type::atom(format!("Record<string, {}>", values.text)),
                None if members.get("additionalProperties") == Some(&Value::Bool(false)) => Type::atom("{}"),
                // Another part of the combination has the properties.
                None if has(members, &["allOf", "anyOf", "oneOf", "$ref"]) => Type::unknown(),
                None => Type::atom("Record<string, unknown>"),
            };
        };
        if depth >= self.detail.depth {
            return Type::atom("object");
        }
        let required: Vec<&str> = list(members, "required").iter().filter_map(Value::as_str).collect();
        let mut rows = Vec::new();
        for (key, schema) in properties.iter().take(MAX_PROPERTIES) {
            let mark = if required.contains(&key.as_str()) { "" } else { "?" };
            let row = format!("{}{mark}: {}", name(key), self.write(schema, depth + 1, level + 1).text);
            rows.push((
                row,
                if self.detail.layout == Layout::Commented { comment(self.described(schema)) } else { String::new() },
            ));
        }
        rows.extend(others.map(|values| (format!("[key: string]: {}", values.text), String::new())));
        let more = properties.len().saturating_sub(MAX_PROPERTIES);
        Type::atom(laid_out(rows, more, depth, self.detail.layout))
    }

    /// Returns the type of properties that are not listed.
    fn others(&mut self, members: &'a Map<String, Value>, beside: bool, depth: usize, level: usize) -> Option<Type> {
        let mut types = Vec::new();
        for (_, schema) in members.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            types.push(self.write(schema, depth, level + 1));
        }
        match members.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => types.push(self.write(schema, depth, level + 1)),
            // Further properties are allowed by default; that is not worth a row.
            Some(Value::Bool(true)) if !beside => types.push(Type::unknown()),
            Some(_) | None => {}
        }
        Type::joined(types, Binding::Union, self.detail.layout)
    }

    /// Returns the schema that has the description: the schema itself, or its target.
    fn described(&self, schema: &'a Value) -> &'a Value {
        let referred = schema.get("$ref").and_then(Value::as_str).and_then(|reference| target(self.root, reference));
        match (schema.get("description"), referred) {
            (None, Some(target)) => target,
            (Some(_), _) | (None, None) => schema,
        }
    }
}

/// Lays out the rows of an object: one line each, with comments, or all on one line.
fn laid_out(rows: Vec<(String, String)>, more: usize, depth: usize, layout: Layout) -> String {
    if layout != Layout::Commented {
        let mut rows: Vec<String> = rows.into_iter().map(|(row, _)| row).collect();
        rows.extend((more > 0).then(|| format!("/* {more} more */")));
        return match layout {
            Layout::Dense => format!("{{{}}}", rows.join(", ")),
            Layout::Commented | Layout::Spaced => format!("{{ {} }}", rows.join("; ")),
        };
    }
    let indent = "  ".repeat(depth + 1);
    let mut out = String::from("{\n");
    for (row, comment) in rows {
        match (comment.is_empty(), row.contains('\n')) {
            (true, _) => out.push_str(&format!("{indent}{row};\n")),
            (false, false) => out.push_str(&format!("{indent}{row}; // {comment}\n")),
            // After a long type it would be unclear what the comment is about.
            (false, true) => out.push_str(&format!("{indent}// {comment}\n{indent}{row};\n")),
        }
    }
    if more > 0 {
        out.push_str(&format!("{indent}// {more} more\n"));
    }
    out.push_str(&"  ".repeat(depth));
    out.push('}');
    out
}

/// Returns the references that occur more than once, or that refer to the schema itself.
fn shared(root: &Value) -> HashMap<&str, Option<String>> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut work = vec![root];
    while let Some(value) = work.pop() {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(reference)) => *seen.entry(reference).or_default() += 1,
                        // Data, not schemas.
                        ("const" | "enum" | "default" | "examples" | "example", _) => {}
                        _ => work.push(value),
                    }
                }
            }
            Value::Array(values) => work.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let is_shared = |reference: &str, count: usize| count > 1 || reference == "#";
    seen.into_iter().filter(|(reference, count)| is_shared(reference, *count)).map(|(key, _)| (key, None)).collect()
}

/// Returns the target of a reference within the document.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&percent_decoded(reference.strip_prefix('#')?))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'%').then(|| std::str::from_utf8(tail.get(..2)?).ok()).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a type is too short for a name of its own.
fn is_plain(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return true };
    let parts = ["properties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "additionalProperties", "$ref"];
    !has(members, &parts) && members.get("enum").is_none_or(|values| values.to_string().len() <= MAX_INLINE_BYTES)
}

fn has(members: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().any(|key| members.contains_key(*key))
}

fn list<'a>(members: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    members.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns a property name in TypeScript.
#[must_use]
pub fn name(key: &str) -> String {
    let plain = key
        .chars()
        .enumerate()
        .all(|(at, c)| c == '_' || c == '$' || c.is_ascii_alphabetic() || at > 0 && c.is_ascii_digit());
    if plain && !key.is_empty() { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests;

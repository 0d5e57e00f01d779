//! From the type of a parameter in TypeScript to a JSON schema.
//!
//! Types are no part of the language: its parser skips them. This reads those that describe data: primitives, literals,
//! objects, arrays, unions, interfaces and type aliases. Anything else is a problem that says so.

mod tokens;

use crate::Problem;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tokens::{Kind, Token, tokens};

/// How deep types may be nested, names of other types included.
const MAX_DEPTH: usize = 64;
/// Maximum number of values of a schema: each use of a name writes its type again.
const MAX_SCHEMAS: usize = 2_000;

/// Returns the schema of the type that stands at an offset of a source: behind the pattern of a parameter. `None`: there is
/// none.
///
/// # Errors
/// The type does not describe data, or is written in a way that is not supported.
pub fn schema_of_parameter(source: &str, offset: usize) -> Result<Option<Map<String, Value>>, Problem> {
    let tokens = tokens(source);
    let Some(first) = tokens.iter().position(|token| token.start >= offset) else { return Ok(None) };
    if !tokens[first].is(":") {
        return Ok(None);
    }
    let names = declarations(&tokens);
    let mut reader = Reader { source, tokens: &tokens, names: &names, at: first + 1, depth: 0, left: MAX_SCHEMAS };
    let start = reader.here();
    match reader.read_type()? {
        Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => Ok(Some(schema)),
        Value::Object(schema) if schema.is_empty() => Ok(None),
        _ => Err(reader.problem_at(start, "the type of 'params' must be an object")),
    }
}

/// A declared type: the index of its first token behind `interface Name` or `type Name =`.
#[derive(Clone, Copy)]
struct Declaration {
    at: usize,
    is_interface: bool,
}

/// Returns the interfaces and type aliases at the top level, by name.
fn declarations<'s>(tokens: &[Token<'s>]) -> BTreeMap<&'s str, Declaration> {
    let mut found = BTreeMap::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | "(" | "[" if token.kind == Kind::Sign => depth += 1,
            "}" | ")" | "]" if token.kind == Kind::Sign => depth = depth.saturating_sub(1),
            "interface" | "type" if depth == 0 && token.kind == Kind::Name => {
                let (name, next) = (tokens.get(at + 1), tokens.get(at + 2));
                let Some(name) = name.filter(|name| name.kind == Kind::Name) else { continue };
                let is_interface = token.text == "interface";
                let is_alias = next.is_some_and(|next| next.is("="));
                if is_interface || is_alias || next.is_some_and(|next| next.is("<")) {
                    let at = at + 2 + usize::from(is_alias && !is_interface);
                    found.entry(name.text).or_insert(Declaration { at, is_interface });
                }
            }
            _ => {}
        }
    }
    found
}

struct Reader<'r, 's> {
    source: &'s str,
    tokens: &'r [Token<'s>],
    names: &'r BTreeMap<&'s str, Declaration>,
    at: usize,
    depth: usize,
    /// How many more schemas may be made.
    left: usize,
}

/// The type of a property.
struct Property {
    name: String,
    schema: Value,
    is_required: bool,
}

impl<'s> Reader<'_, 's> {
    fn peek(&self) -> Option<Token<'s>> {
        self.tokens.get(self.at).copied()
    }

    fn here(&self) -> usize {
        self.peek().map_or(self.source.len(), |token| token.start)
    }

    fn is(&self, sign: &str) -> bool {
        self.peek().is_some_and(|token| token.is(sign))
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Problem> {
        if self.eat(sign) {
            return Ok(());
        }
        let found = self.peek().map_or("the end of the file".to_owned(), |token| format!("'{}'", token.text));
        Err(self.problem(&format!("expected '{sign}' in a type, found {found}")))
    }

    fn problem(&self, message: &str) -> Problem {
        self.problem_at(self.here(), message)
    }

    fn problem_at(&self, offset: usize, message: &str) -> Problem {
        let hint = "write types of data, or the schema in the manifest, as 'parameters'";
        Problem::new(message).with_hint(hint).at(self.source, offset)
    }

    fn read_type(&mut self) -> Result<Value, Problem> {
        self.left = self.left.checked_sub(1).ok_or_else(|| self.problem("this type is too large"))?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.problem("this type is nested too deeply, or refers to itself"));
        }
        self.eat("|");
        let mut members = vec![self.read_intersection()?];
        while self.eat("|") {
            members.push(self.read_intersection()?);
        }
        self.depth -= 1;
        Ok(union(members))
    }

    fn read_intersection(&mut self) -> Result<Value, Problem> {
        self.eat("&");
        let start = self.here();
        let mut schema = self.read_array()?;
        while self.eat("&") {
            let other = self.read_array()?;
            schema = merged(schema, other)
                .ok_or_else(|| self.problem_at(start, "only types of objects can be joined with '&'"))?;
        }
        Ok(schema)
    }

    fn read_array(&mut self) -> Result<Value, Problem> {
        while self.peek().is_some_and(|token| token.kind == Kind::Name && token.text == "readonly") {
            self.at += 1;
        }
        let mut schema = self.read_primary()?;
        while self.is("[") {
            let is_array = self.tokens.get(self.at + 1).is_some_and(|token| token.is("]"));
            if !is_array {
                return Err(self.problem("indexed access types are not supported"));
            }
            self.at += 2;
            schema = json!({"type": "array", "items": schema});
        }
        Ok(schema)
    }

    fn read_primary(&mut self) -> Result<Value, Problem> {
        let Some(token) = self.peek() else { return Err(self.problem("expected a type")) };
        match token.kind {
            Kind::Sign if token.text == "{" => {
                self.at += 1;
                self.read_object()
            }
            Kind::Sign if token.text == "(" => {
                self.at += 1;
                let schema = self.read_type()?;
                self.expect(")")?;
                if self.is("=>") {
                    return Err(self.problem("functions are no data"));
                }
                Ok(schema)
            }
            Kind::Sign if token.text == "[" => Err(self.problem("tuples are not supported; write an array")),
            Kind::Sign if token.text == "-" => {
                self.at += 1;
                match self.read_primary()? {
                    Value::Object(schema) => match schema.get("const").and_then(Value::as_f64) {
                        Some(number) => Ok(json!({"const": whole(-number)})),
                        None => Err(self.problem("expected a number")),
                    },
                    _ => Err(self.problem("expected a number")),
                }
            }
            Kind::Text => {
                self.at += 1;
                Ok(json!({"const": text_of(token.text)}))
            }
            Kind::Number => {
                self.at += 1;
                let number: f64 =
                    token.text.replace('_', "").parse().map_err(|_| self.problem("expected a decimal number"))?;
                Ok(json!({"const": whole(number)}))
            }
            Kind::Name => {
                self.at += 1;
                self.read_name(token)
            }
            Kind::Sign | Kind::Other => Err(self.problem(&format!("'{}' is not supported in a type", token.text))),
        }
    }

    /// Reads what follows a name.
    fn read_name(&mut self, token: Token<'s>) -> Result<Value, Problem> {
        match token.text {
            "string" => return Ok(json!({"type": "string"})),
            "number" => return Ok(json!({"type": "number"})),
            "boolean" => return Ok(json!({"type": "boolean"})),
            "null" => return Ok(json!({"type": "null"})),
            // Who unites types takes it out.
            "undefined" => return Ok(json!({"not": {}})),
            "true" => return Ok(json!({"const": true})),
            "false" => return Ok(json!({"const": false})),
            "any" | "unknown" => return Ok(json!({})),
            "object" => return Ok(json!({"type": "object"})),
            _ => {}
        }
        if self.is("<") {
            return self.read_generic(token);
        }
        if let Some(declaration) = self.names.get(token.text).copied() {
            return self.read_declaration(declaration);
        }
        let message = match token.text {
            "Date" => "a Date is no data of JSON; write string".to_owned(),
            "bigint" | "symbol" | "never" | "void" | "keyof" | "typeof" | "infer" | "unique" => {
                format!("'{}' is not supported in the type of a parameter", token.text)
            }
            name => format!("the type '{name}' is not declared in this file"),
        };
        Err(self.problem_at(token.start, &message))
    }

    fn read_generic(&mut self, token: Token<'s>) -> Result<Value, Problem> {
        self.at += 1;
        let first = self.read_type()?;
        let schema = match token.text {
            "Array" | "ReadonlyArray" => json!({"type": "array", "items": first}),
            "Readonly" => first,
            "Partial" => match first {
                Value::Object(mut schema) if schema.contains_key("properties") => {
                    schema.shift_remove("required");
                    Value::Object(schema)
                }
                _ => return Err(self.problem_at(token.start, "Partial needs a type of an object")),
            },
            "Record" => {
                self.expect(",")?;
                if first != json!({"type": "string"}) {
                    return Err(self.problem_at(token.start, "Record needs keys of type string"));
                }
                json!({"type": "object", "additionalProperties": self.read_type()?})
            }
            name => return Err(self.problem_at(token.start, &format!("the generic type '{name}' is not supported"))),
        };
        self.expect(">")?;
        Ok(schema)
    }

    fn read_declaration(&mut self, declaration: Declaration) -> Result<Value, Problem> {
        let back = std::mem::replace(&mut self.at, declaration.at);
        if self.is("<") {
            return Err(self.problem("generic types are not supported"));
        }
        let schema = if declaration.is_interface { self.read_interface()? } else { self.read_type()? };
        self.at = back;
        Ok(schema)
    }

    fn read_interface(&mut self) -> Result<Value, Problem> {
        let mut bases = Vec::new();
        if self.peek().is_some_and(|token| token.kind == Kind::Name && token.text == "extends") {
            self.at += 1;
            loop {
                let start = self.here();
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.problem("this type is nested too deeply, or refers to itself"));
                }
                bases.push((start, self.read_primary()?));
                self.depth -= 1;
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect("{")?;
        let mut schema = self.read_object()?;
        for (start, base) in bases.into_iter().rev() {
            schema =
                merged(base, schema).ok_or_else(|| self.problem_at(start, "an interface extends types of objects"))?;
        }
        Ok(schema)
    }

    /// Reads the members of an object behind its `{`.
    fn read_object(&mut self) -> Result<Value, Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.problem("this type is nested too deeply, or refers to itself"));
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut additional = Value::Bool(false);
        while !self.eat("}") {
            if self.is("[") {
                additional = self.read_index()?;
            } else {
                let Property { name, schema, is_required } = self.read_property()?;
                if is_required {
                    required.push(Value::String(name.clone()));
                }
                properties.insert(name, schema);
            }
            // A line break ends a member too.
            let _ = self.eat(";") || self.eat(",");
        }
        self.depth -= 1;
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema.insert("additionalProperties".into(), additional);
        Ok(schema.into())
    }

    /// Reads `[key: string]: Type`.
    fn read_index(&mut self) -> Result<Value, Problem> {
        let start = self.here();
        self.at += 2;
        self.expect(":")?;
        if self.read_type()? != json!({"type": "string"}) {
            return Err(self.problem_at(start, "keys of an object are of type string"));
        }
        self.expect("]")?;
        self.expect(":")?;
        self.read_type()
    }

    fn read_property(&mut self) -> Result<Property, Problem> {
        let mut token = self.peek().ok_or_else(|| self.problem("expected '}' in a type"))?;
        let doc = token.doc;
        let next = self.tokens.get(self.at + 1);
        if token.text == "readonly" && next.is_some_and(|next| matches!(next.kind, Kind::Name | Kind::Text)) {
            self.at += 1;
            token = self.peek().unwrap_or(token);
        }
        let name = match token.kind {
            Kind::Name | Kind::Number => token.text.to_owned(),
            Kind::Text => text_of(token.text),
            Kind::Sign | Kind::Other => {
                return Err(self.problem(&format!("expected the name of a property, found '{}'", token.text)));
            }
        };
        self.at += 1;
        let is_optional = self.eat("?");
        if self.is("(") || self.is("<") {
            return Err(self.problem("methods are no data"));
        }
        self.expect(":")?;
        let schema = self.read_type()?;
        let may_be_absent = is_undefined(&schema);
        let mut schema = if may_be_absent { without_undefined(schema) } else { schema };
        let has_default = match (doc, &mut schema) {
            (Some(doc), Value::Object(members)) => {
                describe(doc, members).map_err(|message| Problem::new(message).at(self.source, token.start))?
            }
            _ => false,
        };
        Ok(Property { name, schema, is_required: !is_optional && !may_be_absent && !has_default })
    }
}

/// Adds what a comment says of a property. Returns whether it has a default.
fn describe(doc: &str, schema: &mut Map<String, Value>) -> Result<bool, String> {
    let mut description: Vec<&str> = Vec::new();
    let mut is_tag = false;
    for line in doc.lines() {
        let line = line.trim().trim_start_matches('*').trim();
        let Some((tag, text)) =
            line.strip_prefix('@').map(|tag| tag.split_once(char::is_whitespace).unwrap_or((tag, "")))
        else {
            if !is_tag && !line.is_empty() {
                description.push(line);
            }
            continue;
        };
        is_tag = true;
        let text = text.trim();
        match tag {
            "default" => {
                let value = serde_json::from_str(text).or_else(|error| match text.strip_prefix('\'') {
                    Some(quoted) => Ok(Value::String(quoted.trim_end_matches('\'').to_owned())),
                    None => Err(error),
                });
                let value = value.map_err(|_| format!("@default needs a value of JSON, not: {text}"))?;
                schema.insert("default".into(), value);
            }
            "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" => {
                let number: Value =
                    serde_json::from_str(text).ok().filter(Value::is_number).ok_or(format!("@{tag} needs a number"))?;
                schema.insert(tag.to_owned(), number);
            }
            "pattern" | "format" if !text.is_empty() => drop(schema.insert(tag.to_owned(), text.into())),
            // `number` is all that TypeScript has.
            "integer" if schema.get("type").is_some_and(|kind| kind == "number") => {
                schema.insert("type".into(), "integer".into());
            }
            _ => {}
        }
    }
    if !description.is_empty() {
        schema.insert("description".into(), description.join(" ").into());
    }
    Ok(schema.contains_key("default"))
}

/// Returns the schema of values that fit one of several.
fn union(members: Vec<Value>) -> Value {
    let members: Vec<Value> = {
        let count = members.len();
        let mut unique: Vec<Value> = Vec::new();
        for member in members {
            let inner = match (member.get("anyOf"), count) {
                (Some(Value::Array(inner)), 2..) => inner.clone(),
                _ => vec![member],
            };
            inner.into_iter().for_each(|one| {
                if !unique.contains(&one) {
                    unique.push(one)
                }
            });
        }
        unique
    };
    if members.len() == 1 {
        return members.into_iter().next().unwrap_or_default();
    }
    let constants: Option<Vec<Value>> = members
        .iter()
        .map(|member| match member.get("const") {
            Some(constant) => Some(constant.clone()),
            None if *member == json!({"type": "null"}) => Some(Value::Null),
            None => None,
        })
        .collect();
    if let Some(constants) = constants {
        return match constants.iter().all(Value::is_string) {
            true => json!({"type": "string", "enum": constants}),
            false => json!({"enum": constants}),
        };
    }
    json!({"anyOf": members})
}

/// Whether a type is, or contains, `undefined`.
fn is_undefined(schema: &Value) -> bool {
    let undefined = json!({"not": {}});
    *schema == undefined || schema["anyOf"].as_array().is_some_and(|members| members.contains(&undefined))
}

fn without_undefined(schema: Value) -> Value {
    let undefined = json!({"not": {}});
    match schema {
        Value::Object(mut members) => match members.shift_remove("anyOf") {
            Some(Value::Array(mut inner)) => {
                inner.retain(|one| *one != undefined);
                union(inner)
            }
            _ => Value::Object(members),
        },
        other => other,
    }
}

/// Joins the types of two objects. `None`: one is none.
fn merged(first: Value, second: Value) -> Option<Value> {
    let (Value::Object(mut first), Value::Object(second)) = (first, second) else { return None };
    if ![&first, &second].into_iter().all(|schema| schema.contains_key("properties")) {
        return None;
    }
    let (own, more) = (first.get_mut("properties")?.as_object_mut()?, second.get("properties")?.as_object()?);
    own.extend(more.clone());
    let names =
        |schema: &Map<String, Value>| schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut required = names(&first);
    names(&second).into_iter().for_each(|name| {
        if !required.contains(&name) {
            required.push(name)
        }
    });
    if !required.is_empty() {
        first.insert("required".into(), required.into());
    }
    if second["additionalProperties"] != false {
        first.insert("additionalProperties".into(), second["additionalProperties"].clone());
    }
    Some(first.into())
}

/// Returns the text of a literal in quotes.
fn text_of(literal: &str) -> String {
    let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().map(|escaped| match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            })),
            c => text.push(c),
        }
    }
    text
}

/// Returns a number, without a fraction if it is whole.
fn whole(number: f64) -> Value {
    const MAX_EXACT: f64 = 9_007_199_254_740_991.0;
    if number.fract() == 0.0 && number.abs() <= MAX_EXACT { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema of the type behind the first `params` of a source, or the problem.
    fn schema(source: &str) -> Result<Value, String> {
        let at = source.find("params").expect("a parameter") + "params".len();
        schema_of_parameter(source, at)
            .map(|schema| schema.map_or(Value::Null, Value::Object))
            .map_err(|p| p.to_string())
    }

    #[test]
    fn types_of_data_become_schemas() {
        let one = |kind: &str| {
            let schema = schema(&format!("f(params: {{ a: {kind} }}) {{}}"))
                .unwrap_or_else(|problem| panic!("{kind}: {problem}"));
            (schema["properties"]["a"].clone(), schema["required"] == json!(["a"]))
        };
        for (kind, expected) in [
            ("string", json!({"type": "string"})),
            ("number[]", json!({"type": "array", "items": {"type": "number"}})),
            ("Array<boolean>", json!({"type": "array", "items": {"type": "boolean"}})),
            ("readonly string[][]", json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})),
            ("'a' | \"b\"", json!({"type": "string", "enum": ["a", "b"]})),
            ("| 'a'\n | null", json!({"enum": ["a", null]})),
            ("1 | -2.5", json!({"enum": [1, -2.5]})),
            ("string | null", json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            (
                "(string | number)[]",
                json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
            ),
            ("any", json!({})),
            ("Record<string, number>", json!({"type": "object", "additionalProperties": {"type": "number"}})),
            (
                "{ [key: string]: number }",
                json!({"type": "object", "properties": {}, "additionalProperties": {"type": "number"}}),
            ),
            (
                "{ b?: string, 'c-d': true }",
                json!({
                    "type": "object", "properties": {"b": {"type": "string"}, "c-d": {"const": true}}, "required": ["c-d"],
                    "additionalProperties": false
                }),
            ),
        ] {
            assert_eq!(one(kind), (expected, true), "{kind}");
        }
        assert_eq!(one("string | undefined"), (json!({"type": "string"}), false));
    }

    #[test]
    fn names_are_those_of_the_file() {
        let source = "
            // interface City { wrong: number }
            const text = `interface City { wrong: ${ '}' } }`, pattern = /[/{]/;
            interface Base { /** The id.
                              * @minimum 1
                              * @integer */ id: number }
            interface City extends Base {
                name: string
                /** How it is written. @see nothing
                 * @default \"celsius\" */
                units: Units;
            }
            type Units = 'celsius' | 'fahrenheit'
            async function execute(params: City & { more?: Partial<Base> }, config) {}";
        assert_eq!(
            schema(source),
            Ok(json!({
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "minimum": 1, "description": "The id."},
                    "name": {"type": "string"},
                    "units": {
                        "type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius",
                        "description": "How it is written. @see nothing"
                    },
                    "more": {
                        "type": "object",
                        "properties": {"id": {"type": "integer", "minimum": 1, "description": "The id."}},
                        "additionalProperties": false
                    }
                },
                "required": ["id", "name"],
                "additionalProperties": false
            }))
        );
        assert_eq!(schema("f(params) {}"), Ok(Value::Null));
        assert_eq!(schema("f(params: any) {}"), Ok(Value::Null));
    }

    #[test]
    fn other_types_are_problems() {
        for (source, expected) in [
            ("f(params: string)", ":1:11: the type of 'params' must be an object"),
            ("f(params: { a: Date })", ":1:16: a Date is no data of JSON; write string"),
            ("f(params: { a: Other })", ":1:16: the type 'Other' is not declared in this file"),
            ("f(params: { a: () => void })", ":1:17: ')' is not supported in a type"),
            ("f(params: { a(): void })", ":1:14: methods are no data"),
            ("f(params: { a: [string] })", ":1:16: tuples are not supported; write an array"),
            ("f(params: { a: Map<string, number> })", ":1:16: the generic type 'Map' is not supported"),
            ("f(params: { /** @default x */ a: string })", ":1:31: @default needs a value of JSON, not: x"),
            ("interface T { t: T }\nf(params: T)", ":1:18: this type is nested too deeply, or refers to itself"),
            ("f(params: { a: string", ":1:22: expected '}' in a type"),
        ] {
            let problem = schema(source).expect_err(source);
            assert!(problem.starts_with(expected), "{source}: {problem}");
        }
        let mut wide = "type A0 = { a: string }\n".to_owned();
        for n in 1..14 {
            wide.push_str(&format!("type A{n} = {{ a: A{}, b: A{} }}\n", n - 1, n - 1));
        }
        let problem = schema(&format!("{wide}f(params: A13)")).expect_err("2^13 objects");
        assert!(problem.contains("too large"), "{problem}");
    }
}

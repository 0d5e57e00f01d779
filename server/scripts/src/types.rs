//! From the type of a parameter in TypeScript to a JSON schema.
//!
//! Types are no part of the language: its parser skips them. This reads types of data: primitives, literals,
//! objects, arrays, unions, interfaces and type aliases. Anything else is a problem that says so.

use crate::Problem;
use agentscript_lang::{TypeToken, TypeTokenKind as Kind, TypeTokens, type_declarations};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

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
    let mut tokens = TypeTokens::new(source, offset);
    if !tokens.next().is_some_and(|token| token.is(":")) {
        return Ok(None);
    }
    let names = declarations(source)?;
    let mut reader = Reader { source, next: None, tokens, names: &names, depth: 0, left: MAX_SCHEMAS };
    reader.advance();
    let start = reader.here();
    match reader.read_type()? {
        Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => Ok(Some(schema)),
        Value::Object(schema) if schema.is_empty() => Ok(None),
        _ => Err(reader.problem_at(start, "the type of 'params' must be an object")),
    }
}

/// A declared type: its tokens behind `interface Name` or `type Name`.
#[derive(Clone)]
struct Declaration<'s> {
    tokens: TypeTokens<'s>,
    is_interface: bool,
}

/// Returns the interfaces and type aliases at the top level, by name.
fn declarations(source: &str) -> Result<BTreeMap<&str, Declaration<'_>>, Problem> {
    let spans = type_declarations(source).map_err(|diagnostic| Problem::of_script(&diagnostic, source))?;
    let mut found = BTreeMap::new();
    for span in spans {
        let mut tokens = TypeTokens::new(source, span.start as usize);
        let keyword = tokens.find(|token| !matches!(token.text, "export" | "default" | "declare"));
        let name = tokens.next().filter(|name| name.kind == Kind::Name);
        if let (Some(keyword @ ("interface" | "type")), Some(name)) = (keyword.map(|keyword| keyword.text), name) {
            found.entry(name.text).or_insert(Declaration { tokens, is_interface: keyword == "interface" });
        }
    }
    Ok(found)
}

struct Reader<'r, 's> {
    source: &'s str,
    next: Option<TypeToken<'s>>,
    /// The tokens behind the next one.
    tokens: TypeTokens<'s>,
    names: &'r BTreeMap<&'s str, Declaration<'s>>,
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
    fn advance(&mut self) {
        self.next = self.tokens.next();
    }

    /// Returns the token behind the next one.
    fn second(&self) -> Option<TypeToken<'s>> {
        self.tokens.clone().next()
    }

    fn here(&self) -> usize {
        self.next.map_or(self.source.len(), |token| token.start)
    }

    fn is(&self, sign: &str) -> bool {
        self.next.is_some_and(|token| token.is(sign))
    }

    fn is_word(&self, word: &str) -> bool {
        self.next.is_some_and(|token| token.kind == Kind::Name && token.text == word)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Problem> {
        if self.eat(sign) {
            return Ok(());
        }
        let found = self.next.map_or("the end of the file".to_owned(), |token| format!("'{}'", token.text));
        Err(self.problem(&format!("expected '{sign}' in a type, found {found}")))
    }

    fn problem(&self, message: &str) -> Problem {
        self.problem_at(self.here(), message)
    }

    fn problem_at(&self, offset: usize, message: &str) -> Problem {
        let hint = "write types of data, or the schema in the manifest, as 'parameters'";
        Problem::new(message).with_hint(hint).at(self.source, offset)
    }

    /// Returns the value of a text in quotes.
    fn text_of(&self, token: TypeToken<'s>) -> Result<String, Problem> {
        token.string().ok_or_else(|| self.problem_at(token.start, "this text has an invalid escape"))
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
        while self.is_word("readonly") {
            self.advance();
        }
        let mut schema = self.read_primary()?;
        while self.is("[") {
            if !self.second().is_some_and(|token| token.is("]")) {
                return Err(self.problem("indexed access types are not supported"));
            }
            self.advance();
            self.advance();
            schema = json!({"type": "array", "items": schema});
        }
        Ok(schema)
    }

    fn read_primary(&mut self) -> Result<Value, Problem> {
        let Some(token) = self.next else { return Err(self.problem("expected a type")) };
        match token.kind {
            Kind::Sign if token.text == "{" => {
                self.advance();
                self.read_object()
            }
            Kind::Sign if token.text == "(" => {
                self.advance();
                if self.is(")") || self.is("...") {
                    return Err(self.problem_at(token.start, "functions are no data"));
                }
                let schema = self.read_type()?;
                self.expect(")")?;
                if self.is("=>") {
                    return Err(self.problem("functions are no data"));
                }
                Ok(schema)
            }
            Kind::Sign if token.text == "[" => Err(self.problem("tuples are not supported; write an array")),
            Kind::Sign if token.text == "-" => {
                self.advance();
                match self.read_primary()? {
                    Value::Object(schema) => match schema.get("const").and_then(Value::as_f64) {
                        Some(number) => Ok(json!({"const": whole(-number)})),
                        None => Err(self.problem("expected a number")),
                    },
                    _ => Err(self.problem("expected a number")),
                }
            }
            Kind::Text => {
                let text = self.text_of(token)?;
                self.advance();
                Ok(json!({"const": text}))
            }
            Kind::Number => {
                self.advance();
                Ok(json!({"const": whole(token.number().unwrap_or_default())}))
            }
            Kind::Name => {
                self.advance();
                self.read_name(token)
            }
            Kind::Sign | Kind::Other => Err(self.problem(&format!("'{}' is not supported in a type", token.text))),
        }
    }

    /// Reads what follows a name.
    fn read_name(&mut self, token: TypeToken<'s>) -> Result<Value, Problem> {
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
        if let Some(declaration) = self.names.get(token.text).cloned() {
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

    fn read_generic(&mut self, token: TypeToken<'s>) -> Result<Value, Problem> {
        self.advance();
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

    fn read_declaration(&mut self, declaration: Declaration<'s>) -> Result<Value, Problem> {
        let back = (self.next, std::mem::replace(&mut self.tokens, declaration.tokens));
        self.advance();
        if self.is("<") {
            return Err(self.problem("generic types are not supported"));
        }
        let schema = match declaration.is_interface {
            true => self.read_interface()?,
            false => {
                self.expect("=")?;
                self.read_type()?
            }
        };
        (self.next, self.tokens) = back;
        Ok(schema)
    }

    fn read_interface(&mut self) -> Result<Value, Problem> {
        let mut bases = Vec::new();
        if self.is_word("extends") {
            self.advance();
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
        self.advance();
        self.advance();
        self.expect(":")?;
        if self.read_type()? != json!({"type": "string"}) {
            return Err(self.problem_at(start, "keys of an object are of type string"));
        }
        self.expect("]")?;
        self.expect(":")?;
        self.read_type()
    }

    fn read_property(&mut self) -> Result<Property, Problem> {
        let mut token = self.next.ok_or_else(|| self.problem("expected '}' in a type"))?;
        let doc = token.doc;
        if token.text == "readonly" && self.second().is_some_and(|next| matches!(next.kind, Kind::Name | Kind::Text)) {
            self.advance();
            token = self.next.unwrap_or(token);
        }
        let name = match token.kind {
            Kind::Name | Kind::Number => token.text.to_owned(),
            Kind::Text => self.text_of(token)?,
            Kind::Sign | Kind::Other => {
                return Err(self.problem(&format!("expected the name of a property, found '{}'", token.text)));
            }
        };
        self.advance();
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
            let schema = schema(&format!("function f(params: {{ a: {kind} }}) {{}}"))
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
            ("0x10 | 1_000", json!({"enum": [16, 1000]})),
            (r"'\x41\u{42}'", json!({"const": "AB"})),
            ("Array<Array<null>>", json!({"type": "array", "items": {"type": "array", "items": {"type": "null"}}})),
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
        assert_eq!(schema("function f(params) {}"), Ok(Value::Null));
        assert_eq!(schema("function f(params: any) {}"), Ok(Value::Null));
    }

    #[test]
    fn code_between_declarations_is_no_part_of_them() {
        let source = "
            declare interface More { b: number }
            if (text) /[{'`]/.test(text);
            const half = {} / 2, third = { type: 1 } / 3;
            function inner() { interface City { wrong: string } }
            export interface City extends More { /* { */ a: string // /** none */
            }
            type = City;
            function execute(params: City) {}";
        assert_eq!(
            schema(source),
            Ok(json!({
                "type": "object",
                "properties": {"b": {"type": "number"}, "a": {"type": "string"}},
                "required": ["b", "a"],
                "additionalProperties": false
            }))
        );
    }

    #[test]
    fn other_types_are_problems() {
        for (source, expected) in [
            ("function f(params: string) {}", ":1:20: the type of 'params' must be an object"),
            ("function f(params: { a: Date }) {}", ":1:25: a Date is no data of JSON; write string"),
            ("function f(params: { a: Other }) {}", ":1:25: the type 'Other' is not declared in this file"),
            ("function f(params: { a: () => void }) {}", ":1:25: functions are no data"),
            ("function f(params: { a: `a${string}` }) {}", ":1:25: '`a${string}`' is not supported in a type"),
            ("function f(params: { a: '\\1' }) {}", ":1:25: this text has an invalid escape"),
            ("function f(params: { a(): void }) {}", ":1:23: methods are no data"),
            ("function f(params: { a: [string] }) {}", ":1:25: tuples are not supported; write an array"),
            ("function f(params: { a: Map<string, number> }) {}", ":1:25: the generic type 'Map' is not supported"),
            ("function f(params: { /** @default x */ a: string }) {}", ":1:40: @default needs a value of JSON, not: x"),
            (
                "interface T { t: T }\nfunction f(params: T) {}",
                ":1:18: this type is nested too deeply, or refers to itself",
            ),
            ("function f(params: { a: string", ":1:31: expected a name in a type, found the end of the script"),
        ] {
            let problem = schema(source).expect_err(source);
            assert!(problem.starts_with(expected), "{source}: {problem}");
        }
        let mut wide = "type A0 = { a: string }\n".to_owned();
        for n in 1..14 {
            wide.push_str(&format!("type A{n} = {{ a: A{}, b: A{} }}\n", n - 1, n - 1));
        }
        let problem = schema(&format!("{wide}function f(params: A13) {{}}")).expect_err("2^13 objects");
        assert!(problem.contains("too large"), "{problem}");
    }
}

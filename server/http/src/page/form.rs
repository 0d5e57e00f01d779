//! Forms made from JSON schemas, and the JSON made from what they send.

use super::query::Pairs;
use codecall_base::json;
use maud::{Markup, html};
use serde_json::{Map, Value};

/// The prefix of the names of fields.
const PREFIX: &str = "p:";
/// Maximum number of options in a list; more of them are typed.
const MAX_OPTIONS: usize = 200;

/// How a property is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Integer,
    Bool,
    /// Anything else.
    Json,
}

/// Returns the schema that a schema refers to in its own document.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut found = schema;
    // A schema may refer to itself.
    for _ in 0..8 {
        let Some(pointer) = found["$ref"].as_str().and_then(|text| text.strip_prefix('#')) else { break };
        let Some(target) = root.pointer(pointer) else { break };
        found = target;
    }
    found
}

fn kind(schema: &Value) -> Kind {
    let one = match &schema["type"] {
        Value::String(kind) => Some(kind.as_str()),
        Value::Array(kinds) => {
            let mut others = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            others.next().filter(|_| others.next().is_none())
        }
        _ => None,
    };
    match one {
        Some("string") => Kind::Text,
        Some("number") => Kind::Number,
        Some("integer") => Kind::Integer,
        Some("boolean") => Kind::Bool,
        _ => Kind::Json,
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value, bool)> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let members = schema["properties"].as_object().into_iter().flatten();
    members.map(|(name, property)| (name, property, required.iter().any(|known| known == name)))
}

/// Creates the fields of a schema. `sent` is what was typed before.
pub fn fields(root: &Value, sent: &Pairs) -> Markup {
    let schema = resolved(root, root);
    html! {
        @for (at, (name, property, is_required)) in properties(schema).enumerate() {
            @let property = resolved(property, root);
            @let field = format!("{PREFIX}{name}");
            @let id = format!("field-{at}");
            @let default = property.get("default").map(text).unwrap_or_default();
            @let typed = sent.get(&field).unwrap_or_default();
            div.field {
                label for=(id) { code { (name) } @if is_required { " (required)" } }
                @if let Some(description) = property["description"].as_str() { span.dim #{ (id) "-help" } { (description) } }
                @let help = property["description"].is_string().then(|| format!("{id}-help"));
                @if let Some(options) = property["enum"].as_array().filter(|options| options.len() <= MAX_OPTIONS) {
                    select #(id) name=(field) aria-describedby=[help] {
                        @if !is_required { option value="" {} }
                        @for option in options { @let option = text(option); option selected[option == typed] { (option) } }
                    }
                } @else {
                    @match kind(property) {
                        Kind::Bool => {
                            select #(id) name=(field) aria-describedby=[help] {
                                option value="" {}
                                option selected[typed == "true"] { "true" }
                                option selected[typed == "false"] { "false" }
                            }
                        }
                        Kind::Number | Kind::Integer => {
                            input #(id) name=(field) type="number" value=(typed) placeholder=(default) required[is_required] aria-describedby=[help]
                                step=(if kind(property) == Kind::Integer { "1" } else { "any" });
                        }
                        Kind::Text => { input #(id) name=(field) value=(typed) placeholder=(default) required[is_required] aria-describedby=[help]; }
                        Kind::Json => {
                            textarea #(id) name=(field) rows="3" spellcheck="false" placeholder={ "JSON " (default) } required[is_required] aria-describedby=[help] { "\n" (typed) }
                        }
                    }
                }
            }
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the input of a tool that a form has sent: `json` if it is filled, else the fields.
///
/// # Errors
/// The problem, by the name of the field.
pub fn input(root: &Value, form: &Pairs) -> Result<Value, String> {
    if let Some(text) = form.filled("json") {
        return match json::parse(text) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err("The input of a tool must be a JSON object.".into()),
            Err(error) => Err(format!("The input is not JSON: {error}")),
        };
    }
    let mut input = Map::new();
    for (name, property, is_required) in properties(resolved(root, root)) {
        let property = resolved(property, root);
        let Some(typed) = form.get(&format!("{PREFIX}{name}")) else { continue };
        // A field that is left empty is left out.
        if typed.trim().is_empty() && !(is_required && kind(property) == Kind::Text) {
            continue;
        }
        input.insert(name.clone(), read(property, typed).map_err(|wrong| format!("“{name}” {wrong}"))?);
    }
    Ok(Value::Object(input))
}

fn read(property: &Value, typed: &str) -> Result<Value, String> {
    if let Some(option) = property["enum"].as_array().into_iter().flatten().find(|option| text(option) == typed) {
        return Ok(option.clone());
    }
    match kind(property) {
        Kind::Text => Ok(typed.into()),
        Kind::Bool => match typed.trim() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err("must be true or false".into()),
        },
        Kind::Number | Kind::Integer => match json::parse(typed.trim()) {
            Ok(number @ Value::Number(_)) => Ok(number),
            Ok(_) | Err(_) => Err("must be a number".into()),
        },
        Kind::Json => json::parse(typed).map_err(|error| format!("is not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["name", "size"],
            "properties": {
                "name": {"type": "string"},
                "note": {"type": ["string", "null"]},
                "size": {"$ref": "#/$defs/size"},
                "level": {"enum": ["low", 2]},
                "is": {"type": "boolean"},
                "more": {"type": "array"},
            },
            "$defs": {"size": {"type": "integer", "default": 3}},
        })
    }

    #[test]
    fn fields_become_json() {
        let sent = "p:name=&p:note=&p:size=12345678901234567890&p:level=2&p:is=false&p:more=[1,{\"a\":2}]&other=1";
        let read = input(&schema(), &Pairs::parse(sent));
        assert_eq!(
            read.map(|value| value.to_string()),
            Ok(r#"{"name":"","size":12345678901234567890,"level":2,"is":false,"more":[1,{"a":2}]}"#.into())
        );
        for (sent, expected) in [
            ("p:size=x", "“size” must be a number"),
            ("p:is=maybe", "“is” must be true or false"),
            ("p:more=[", "“more” is not JSON"),
            ("json=[]", "must be a JSON object"),
            ("json={", "not JSON"),
        ] {
            let wrong = input(&schema(), &Pairs::parse(sent)).expect_err("it is wrong");
            assert!(wrong.contains(expected), "{wrong}");
        }
        assert_eq!(input(&schema(), &Pairs::parse("json={\"a\":1}&p:is=x")), Ok(json!({"a": 1})));
    }

    #[test]
    fn hostile_schemas_are_text() {
        let schema = json!({"properties": {"<b>": {"description": "<img onerror=x>", "enum": ["</select><script>"]},
                                           "loop": {"$ref": "#/properties/loop"}}});
        let form = fields(&schema, &Pairs::default()).into_string();
        assert!(!form.contains("<b>") && !form.contains("<img") && !form.contains("<script"), "{form}");
    }
}

//! Bodies of requests.

use crate::document::{Context, Resolver};
use crate::request::boundary;
use crate::schema::Converter;
use crate::style::{self, Style, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The body of a request.
#[derive(Clone, Debug)]
pub struct Body {
    pub media_type: String,
    pub kind: Kind,
}

/// How a body is written.
#[derive(Clone, Debug)]
pub enum Kind {
    Json,
    /// `application/x-www-form-urlencoded`, with the encodings that are not the default ones.
    Form(HashMap<String, (Style, bool, bool)>),
    /// `multipart/form-data`, with what the description says of its parts.
    Multipart(HashMap<String, Part>),
    /// A text, or bytes in base64.
    Raw,
}

/// A part of a body.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Its media type, if it is not the default.
    media_type: Option<String>,
    is_file: bool,
}

/// Whether a media type is JSON.
pub fn is_json(media_type: &str) -> bool {
    let essence = essence(media_type);
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json") || essence.is_empty()
}

/// Returns a media type without its parameters, in lower case.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// How well a media type can be written: the smallest is the best.
fn rank(media_type: &str) -> u8 {
    match essence(media_type).as_str() {
        "application/json" => 0,
        kind if is_json(kind) => 1,
        "*/*" | "application/*" => 2,
        "multipart/form-data" => 3,
        "application/x-www-form-urlencoded" => 4,
        kind if kind.starts_with("text/") => 5,
        _ => 6,
    }
}

/// The schema of a file: a text, or bytes.
fn file_schema(description: &str) -> Value {
    let mut schema = json!({
        "anyOf": [
            {"type": "string", "description": "The content as text"},
            {
                "type": "object",
                "properties": {
                    "base64": {"type": "string", "description": "The content as bytes"},
                    "text": {"type": "string"},
                    "filename": {"type": "string"},
                    "contentType": {"type": "string"},
                },
                "additionalProperties": false,
            },
        ],
    });
    if !description.is_empty() {
        schema["description"] = description.into();
    }
    schema
}

impl Body {
    /// Reads the body of an operation: what is sent, the schema of its input, and whether it is required.
    ///
    /// # Errors
    /// It cannot be sent; the reason, and whether it is required.
    pub fn read<'a>(
        resolver: &Resolver<'a>,
        converter: &mut Converter<'_, 'a>,
        context: Context<'a>,
        value: &'a Value,
    ) -> Result<Option<(Self, Value, bool)>, String> {
        let (context, value) = resolver.follow(context, value)?;
        let Some(content) = value["content"].as_object() else { return Ok(None) };
        let types = content.iter().take(50);
        let Some((media_type, content)) = types.min_by_key(|(media_type, _)| rank(media_type)) else {
            return Ok(None);
        };
        let required = value["required"] == true;
        let (context, content) = resolver.follow(context, content)?;
        let schema = content.get("schema");
        let description = value["description"].as_str().unwrap_or_default().trim();
        let description = codecall_base::text::truncate(description, crate::limits::MAX_NOTE_BYTES);
        let mut kind = match rank(media_type) {
            0..=2 => Kind::Json,
            3 => Kind::Multipart(described_parts(&content["encoding"])),
            4 => Kind::Form(encodings(&content["encoding"])),
            _ => Kind::Raw,
        };
        let mut input = match (&mut kind, schema) {
            (Kind::Raw, _) => file_schema(description),
            (Kind::Multipart(parts), Some(schema)) => multipart_schema(resolver, converter, context, schema, parts),
            (Kind::Form(_), Some(schema)) if !is_object(resolver, context, schema) => json!({"type": "object"}),
            (Kind::Json, Some(schema)) => converter.schema(context, schema),
            (Kind::Form(_), Some(schema)) => object(converter.schema(context, schema)),
            (Kind::Json, None) => json!({}),
            (Kind::Form(_), None) => json!({"type": "object"}),
            (Kind::Multipart(_), None) => parts_schema(),
        };
        if !description.is_empty()
            && let Value::Object(members) = &mut input
            && !members.contains_key("description")
        {
            members.insert("description".into(), description.into());
        }
        let media_type = match rank(media_type) {
            2 => "application/json".to_owned(),
            _ => media_type.trim().to_owned(),
        };
        if media_type.len() > 200 || media_type.bytes().any(|b| !(b.is_ascii_graphic() || b == b' ')) {
            return Err("the media type of its body is not valid".into());
        }
        Ok(Some((Self { media_type, kind }, input, required)))
    }

    /// Writes a body. Returns its media type and its bytes.
    ///
    /// # Errors
    /// The value cannot be written like that.
    pub fn write(&self, value: &Value) -> Result<(String, Vec<u8>), String> {
        let bytes = match &self.kind {
            Kind::Json => value.to_string().into_bytes(),
            Kind::Raw => {
                let file = File::read(value)?;
                let media_type = file.media_type.unwrap_or(&self.media_type);
                let media_type = if media_type.contains('*') { file.default_type() } else { media_type };
                return Ok((media_type.to_owned(), file.bytes));
            }
            Kind::Form(encodings) => form(value, encodings)?.into_bytes(),
            Kind::Multipart(parts) => {
                let boundary = boundary()?;
                let bytes = multipart(value, parts, &boundary)?;
                return Ok((format!("multipart/form-data; boundary={boundary}"), bytes));
            }
        };
        Ok((self.media_type.clone(), bytes))
    }
}

fn encodings(encoding: &Value) -> HashMap<String, (Style, bool, bool)> {
    let entries = encoding.as_object().into_iter().flatten().take(1_000);
    let encodings =
        entries.filter(|(_, entry)| ["style", "explode", "allowReserved"].iter().any(|key| entry.get(key).is_some()));
    let encodings = encodings.map(|(name, entry)| {
        let style = entry["style"].as_str().and_then(Style::named).unwrap_or(Style::Form);
        let explode = entry["explode"].as_bool().unwrap_or(style == Style::Form);
        (name.clone(), (style, explode, entry["allowReserved"] == true))
    });
    encodings.collect()
}

fn described_parts(encoding: &Value) -> HashMap<String, Part> {
    let entries = encoding.as_object().into_iter().flatten().take(1_000);
    let parts = entries.filter_map(|(name, entry)| {
        let media_type = entry["contentType"].as_str()?.split(',').next()?.trim();
        let is_plain = !media_type.contains('*') && media_type.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        let media_type = (is_plain && !media_type.is_empty()).then(|| media_type.to_owned());
        Some((name.clone(), Part { media_type, is_file: false }))
    });
    parts.collect()
}

/// Whether a form can have a schema: some descriptions give that of one part.
fn is_object<'a>(resolver: &Resolver<'a>, context: Context<'a>, schema: &'a Value) -> bool {
    let followed = resolver.follow(context, schema);
    followed.is_ok_and(|(_, schema)| match &schema["type"] {
        Value::String(kind) => kind == "object",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    })
}

/// Returns the schema of a form, which is an object also if its description does not say so.
fn object(schema: Value) -> Value {
    match schema {
        Value::Object(mut members) => {
            if !members.contains_key("type") {
                members.insert("type".into(), "object".into());
            }
            Value::Object(members)
        }
        _ => json!({"type": "object"}),
    }
}

/// The schema of a form in parts of which nothing is known.
fn parts_schema() -> Value {
    json!({
        "type": "object",
        "description": "Parts by name: texts, or files as {base64 or text, filename, contentType}",
    })
}

/// The schema of a form in parts: properties with bytes become files.
fn multipart_schema<'a>(
    resolver: &Resolver<'a>,
    converter: &mut Converter<'_, 'a>,
    context: Context<'a>,
    schema: &'a Value,
    parts: &mut HashMap<String, Part>,
) -> Value {
    let (context, schema) = match resolver.follow(context, schema) {
        Ok(found) if is_object(resolver, context, schema) => found,
        Ok(_) => return parts_schema(),
        Err(_) => return object(converter.schema(context, schema)),
    };
    let mut out = object(converter.schema(context, schema));
    let Some(properties) = schema["properties"].as_object() else { return out };
    for (name, property) in properties.iter().take(1_000) {
        let Ok((inner, property)) = resolver.follow(context, property) else { continue };
        let description = property["description"].as_str().unwrap_or_default();
        let description = codecall_base::text::truncate(description.trim(), crate::limits::MAX_NOTE_BYTES);
        let media_type = parts.get(name).and_then(|part| part.media_type.as_deref());
        let is_binary_type = media_type.is_some_and(|kind| !is_json(kind) && !kind.starts_with("text/"));
        let is_file = |schema: &Value| {
            let is_text = schema["type"].is_null() || schema["type"] == "string";
            is_text
                && (schema["format"] == "binary"
                    || schema["format"] == "base64"
                    || schema["contentMediaType"].is_string()
                    || is_binary_type && schema.get("enum").is_none())
                && schema["contentEncoding"].is_null()
        };
        let items = property.get("items").and_then(|items| resolver.follow(inner, items).ok());
        let file = if is_file(property) && property["$ref"].is_null() && property["properties"].is_null() {
            file_schema(description)
        } else if property["type"] == "array" && items.is_some_and(|(_, items)| is_file(items)) {
            json!({"type": "array", "items": file_schema(description)})
        } else {
            continue;
        };
        parts.entry(name.clone()).or_default().is_file = true;
        if let Some(slot) = out.get_mut("properties").and_then(|properties| properties.get_mut(name)) {
            *slot = file;
        }
    }
    out
}

fn members(value: &Value) -> Result<&serde_json::Map<String, Value>, String> {
    value.as_object().ok_or_else(|| "the body must be an object".to_owned())
}

fn form(value: &Value, encodings: &HashMap<String, (Style, bool, bool)>) -> Result<String, String> {
    let mut out = Vec::new();
    for (name, value) in members(value)? {
        let pairs = match (encodings.get(name), value) {
            (Some((style, explode, true)), value) => {
                style::pairs(name, value, *style, *explode, &style::encode_reserved)
            }
            (Some((style, explode, false)), value) => style::pairs(name, value, *style, *explode, &encode),
            // The standard says JSON.
            (None, Value::Object(_)) => vec![(encode(name), encode(&value.to_string()))],
            (None, value) => style::pairs(name, value, Style::Form, true, &encode),
        };
        out.extend(pairs.into_iter().map(|(key, value)| format!("{key}={value}")));
    }
    Ok(out.join("&"))
}

/// A file of an input.
struct File<'a> {
    bytes: Vec<u8>,
    name: Option<&'a str>,
    media_type: Option<&'a str>,
    is_text: bool,
}

impl<'a> File<'a> {
    fn read(value: &'a Value) -> Result<Self, String> {
        let members = match value {
            Value::Object(members) => members,
            value => {
                let text = style::scalar(value).unwrap_or_default();
                return Ok(Self { bytes: text.into_bytes(), name: None, media_type: None, is_text: true });
            }
        };
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let (bytes, is_text) = match (text("base64"), text("text")) {
            (Some(encoded), None) => {
                let compact: String = encoded.split_ascii_whitespace().collect();
                (STANDARD.decode(compact).map_err(|_| "'base64' of a file is not valid base64".to_owned())?, false)
            }
            (None, Some(text)) => (text.as_bytes().to_vec(), true),
            (Some(_), Some(_)) => return Err("a file has either 'base64' or 'text', not both".into()),
            (None, None) => return Err("a file needs 'base64' or 'text'".into()),
        };
        let media_type = text("contentType");
        if media_type.is_some_and(|kind| kind.is_empty() || kind.bytes().any(|b| !(b.is_ascii_graphic() || b == b' ')))
        {
            return Err("'contentType' of a file is not valid".into());
        }
        Ok(Self { bytes, name: text("filename"), media_type, is_text })
    }

    fn default_type(&self) -> &'static str {
        if self.is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" }
    }
}

/// Whether a value of which nothing is known has the shape of a file, or of a list of them.
fn is_file(value: &Value) -> bool {
    const KEYS: [&str; 4] = ["base64", "text", "filename", "contentType"];
    match value {
        Value::Object(members) => {
            let is_known = members.keys().all(|key| KEYS.contains(&key.as_str()));
            is_known && (members.contains_key("base64") || members.contains_key("text"))
        }
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| item.is_object() && is_file(item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn multipart(value: &Value, parts: &HashMap<String, Part>, boundary: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let (value_part, file_part) = (Part::default(), Part { is_file: true, ..Part::default() });
    for (name, value) in members(value)? {
        let other = if is_file(value) { &file_part } else { &value_part };
        let part = parts.get(name).unwrap_or(other);
        let items = match value {
            Value::Array(items) if !part.media_type.as_deref().is_some_and(is_json) => items.as_slice(),
            Value::Null => &[],
            value => std::slice::from_ref(value),
        };
        for item in items {
            write_part(name, item, part, boundary, &mut out)?;
        }
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(out)
}

fn write_part(name: &str, value: &Value, part: &Part, boundary: &str, out: &mut Vec<u8>) -> Result<(), String> {
    // As browsers do.
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(name));
    let given = part.media_type.as_deref();
    let (media_type, bytes) = if part.is_file {
        let file = File::read(value)?;
        head += &format!("; filename=\"{}\"", quoted(file.name.unwrap_or("file")));
        let media_type = file.media_type.or(given).unwrap_or_else(|| file.default_type());
        (Some(media_type.to_owned()), file.bytes)
    } else {
        let is_structured = value.is_object() || value.is_array();
        let media_type = given.or(is_structured.then_some("application/json"));
        let text = match media_type {
            Some(media_type) if is_json(media_type) => Some(value.to_string()),
            Some(_) | None => style::scalar(value),
        };
        (media_type.map(str::to_owned), text.unwrap_or_default().into_bytes())
    };
    if let Some(media_type) = media_type {
        head += &format!("\r\nContent-Type: {media_type}");
    }
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&bytes);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

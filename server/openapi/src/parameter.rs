//! Parameters of operations: in the path, the query, a header or a cookie.

use crate::document::{Context, Resolver};
use crate::limits::MAX_MEMBER_BYTES;
use crate::style::Style;
use codecall_base::text::truncate;
use serde_json::Value;

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "path" => Self::Path,
            "query" => Self::Query,
            "header" => Self::Header,
            "cookie" => Self::Cookie,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// A parameter as a request needs it.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The property of the input.
    pub key: String,
    pub name: String,
    pub place: Place,
    pub style: Style,
    pub explode: bool,
    pub allow_reserved: bool,
    /// Whether its value is sent as JSON.
    pub is_json: bool,
}

/// A parameter as the description has it.
pub struct Described<'a> {
    pub name: &'a str,
    pub place: Place,
    pub required: bool,
    pub deprecated: bool,
    pub description: &'a str,
    pub schema: Option<(Context<'a>, &'a Value)>,
    style: Style,
    explode: bool,
    allow_reserved: bool,
    is_json: bool,
}

/// Headers that belong to the connection, or that a request has anyway.
const RESERVED_HEADERS: [&str; 18] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Why a parameter is not used.
pub enum Unused {
    /// The request has it anyway, or it is not a parameter of a request.
    Ignored,
    /// It cannot be sent. If it is required, neither can the request.
    Unusable { reason: String, required: bool },
}

impl<'a> Described<'a> {
    /// Reads a parameter.
    pub fn read(resolver: &Resolver<'a>, context: Context<'a>, value: &'a Value) -> Result<Self, Unused> {
        let unusable = |reason: String, required: bool| Unused::Unusable { reason, required };
        let (context, value) = resolver.follow(context, value).map_err(|reason| unusable(reason, true))?;
        let required = value["required"] == true;
        let Some(name) = value["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err(unusable("a parameter has no name".into(), required));
        };
        let shown = truncate(name, 100);
        if name.len() > MAX_MEMBER_BYTES {
            return Err(unusable(format!("the name of the parameter '{shown}…' is too long"), required));
        }
        let kind = value["in"].as_str().unwrap_or_default();
        let Some(place) = Place::named(kind) else {
            let reason = format!("the parameter '{shown}' is in '{}', which cannot be sent", truncate(kind, 40));
            return Err(unusable(reason, required));
        };
        if place == Place::Header {
            if RESERVED_HEADERS.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
                return Err(Unused::Ignored);
            }
            let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if !name.bytes().all(is_token) {
                return Err(unusable(format!("the header '{shown}' is not a valid name"), required));
            }
        }
        if place == Place::Cookie && !name.bytes().all(|b| b.is_ascii_graphic() && !b"\",;=\\".contains(&b)) {
            return Err(unusable(format!("the cookie '{shown}' is not a valid name"), required));
        }
        let content = value["content"].as_object().and_then(|content| content.iter().next());
        let (schema, is_json) = match content {
            Some((media_type, content)) => (content.get("schema"), crate::body::is_json(media_type)),
            // As in Swagger 2.0, the parameter itself is the schema.
            None if value.get("schema").is_none()
                && ["type", "enum", "items"].iter().any(|key| value.get(key).is_some()) =>
            {
                (Some(value), false)
            }
            None => (value.get("schema"), false),
        };
        let default = match place {
            Place::Path | Place::Header => Style::Simple,
            Place::Query | Place::Cookie => Style::Form,
        };
        let allowed: &[Style] = match place {
            Place::Path => &[Style::Simple, Style::Label, Style::Matrix],
            Place::Query => &[Style::Form, Style::SpaceDelimited, Style::PipeDelimited, Style::DeepObject],
            Place::Header => &[Style::Simple],
            Place::Cookie => &[Style::Form],
        };
        let (other, explode) = collection(value);
        let style = value["style"].as_str().and_then(Style::named).or(other).filter(|style| allowed.contains(style));
        let style = style.unwrap_or(default);
        Ok(Self {
            name,
            place,
            required: required || place == Place::Path,
            deprecated: value["deprecated"] == true,
            description: value["description"].as_str().unwrap_or_default().trim(),
            schema: schema.map(|schema| (context, schema)),
            style,
            explode: value["explode"].as_bool().or(explode).unwrap_or(style == Style::Form),
            allow_reserved: value["allowReserved"] == true,
            is_json,
        })
    }

    /// Returns a parameter of the path that the description has forgotten.
    pub fn forgotten(name: &'a str) -> Self {
        Self {
            name,
            place: Place::Path,
            required: true,
            deprecated: false,
            description: "",
            schema: None,
            style: Style::Simple,
            explode: false,
            allow_reserved: false,
            is_json: false,
        }
    }

    /// Returns what a request needs.
    pub fn parameter(&self, key: String) -> Parameter {
        let &Self { place, style, explode, allow_reserved, is_json, .. } = self;
        Parameter { key, name: self.name.to_owned(), place, style, explode, allow_reserved, is_json }
    }
}

/// Returns how a list is written that has a `collectionFormat`, as in Swagger 2.0.
fn collection(value: &Value) -> (Option<Style>, Option<bool>) {
    match value["collectionFormat"].as_str() {
        Some("csv") => (None, Some(false)),
        Some("ssv") => (Some(Style::SpaceDelimited), Some(false)),
        Some("pipes") => (Some(Style::PipeDelimited), Some(false)),
        Some("multi") => (None, Some(true)),
        Some(_) | None => (None, None),
    }
}

//! Security schemes: where credentials are sent.

use crate::document::{Context, Resolver};
use crate::limits::MAX_MEMBER_BYTES;
use crate::parameter::Place;
use codecall_base::text::truncate;
use serde_json::Value;
use std::collections::BTreeMap;

/// How a credential is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// As a parameter.
    Key { place: Place, name: String },
    /// `Authorization: Bearer …`, for tokens of OAuth 2 and OpenID Connect too.
    Bearer,
    /// `Authorization: Basic …`; the credential is `user:password`.
    Basic,
}

/// The schemes of a description by name, or the reason why one cannot be used.
pub type Schemes = BTreeMap<String, Result<Scheme, String>>;

/// Reads the schemes of a description.
pub fn schemes<'a>(resolver: &Resolver<'a>, context: Context<'a>, root: &'a Value) -> Schemes {
    // The second is that of Swagger 2.0.
    let places = [&root["components"]["securitySchemes"], &root["securityDefinitions"]];
    let schemes = places.into_iter().find_map(Value::as_object);
    let scheme = |(name, value): (&String, &'a Value)| {
        let scheme = resolver.follow(context, value).and_then(|(_, value)| scheme(value));
        (name.clone(), scheme)
    };
    let schemes = schemes.into_iter().flatten().take(1_000);
    schemes.filter(|(name, _)| name.len() <= MAX_MEMBER_BYTES).map(scheme).collect()
}

fn scheme(value: &Value) -> Result<Scheme, String> {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    match text("type").to_ascii_lowercase().as_str() {
        "apikey" => match (Place::named(text("in")), text("name")) {
            (Some(place @ (Place::Query | Place::Header | Place::Cookie)), name)
                if (1..=MAX_MEMBER_BYTES).contains(&name.len()) =>
            {
                Ok(Scheme::Key { place, name: name.to_owned() })
            }
            _ => Err("its key is sent nowhere".into()),
        },
        "basic" => Ok(Scheme::Basic),
        "oauth2" | "openidconnect" => Ok(Scheme::Bearer),
        "http" => match text("scheme").to_ascii_lowercase().as_str() {
            "bearer" => Ok(Scheme::Bearer),
            "basic" => Ok(Scheme::Basic),
            other => Err(format!("'{}' of HTTP is not supported", truncate(other, 40))),
        },
        other => Err(format!("the type '{}' is not supported", truncate(other, 40))),
    }
}

/// An alternative of the requirements of an operation: names of schemes that go together.
pub type Alternative = Vec<String>;

/// Reads the requirements of an operation: one alternative is enough, and an empty one needs no credential.
pub fn alternatives(operation: &Value, root: &Value) -> Vec<Alternative> {
    let requirements = operation.get("security").or_else(|| root.get("security")).and_then(Value::as_array);
    let alternatives = requirements.into_iter().flatten().filter_map(Value::as_object).take(50);
    alternatives.map(|names| names.keys().take(10).cloned().collect()).collect()
}

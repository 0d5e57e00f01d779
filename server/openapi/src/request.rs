//! Converts the input of a tool to an HTTP request.

use crate::limits::MAX_URL_BYTES;
use crate::operation::Operation;
use crate::parameter::Place;
use crate::security::Scheme;
use crate::style::{self, Style, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use url::Url;

/// An HTTP request.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in capitals.
    pub method: &'static str,
    /// The address, without credentials.
    pub url: Url,
    /// Headers, without credentials.
    pub headers: Vec<(String, String)>,
    /// The media type and the bytes of the body.
    pub body: Option<(String, Vec<u8>)>,
    /// Proofs of who makes the request. Another server must not get them.
    pub credentials: Vec<Credential>,
}

/// A part of a request that is a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A header.
    Header(String, String),
    /// A pair of the query; both are encoded.
    Query(String, String),
    /// A pair of the header `Cookie`; both are encoded.
    Cookie(String, String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Header(name, _) | Self::Query(name, _) | Self::Cookie(name, _)) = self;
        f.debug_tuple("Credential").field(name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, url, headers, credentials, .. } = self;
        let mut request = f.debug_struct("Request");
        request.field("method", method).field("url", &url.as_str()).field("headers", headers);
        request.field("credentials", credentials).finish_non_exhaustive()
    }
}

impl Operation {
    /// Converts an input to a request. `secret` returns the secret of a security scheme.
    ///
    /// # Errors
    /// The input cannot be sent; the reason, without secrets.
    pub fn request<'s>(
        &self,
        input: &Map<String, Value>,
        secret: &dyn Fn(&str) -> Option<&'s str>,
    ) -> Result<Request, String> {
        let mut path = self.path.clone();
        let mut query: Vec<(String, String)> = Vec::new();
        let mut headers = vec![("accept".to_owned(), self.accept.clone())];
        let mut cookies: Vec<(String, String)> = Vec::new();
        for parameter in &self.parameters {
            let Some(value) = input.get(&parameter.key).filter(|value| !value.is_null()) else { continue };
            let as_json;
            let value = match parameter.is_json {
                true => {
                    as_json = Value::String(value.to_string());
                    &as_json
                }
                false => value,
            };
            let (name, style, explode) = (parameter.name.as_str(), parameter.style, parameter.explode);
            let encode_value: &dyn Fn(&str) -> String =
                if parameter.allow_reserved { &style::encode_reserved } else { &encode };
            match parameter.place {
                Place::Path => {
                    let text = style::path(name, value, style, explode, &encode);
                    if text.is_empty() || style == Style::Label && text == "." {
                        return Err(format!("'{}' is a part of the path, so it must not be empty", parameter.key));
                    }
                    path = path.replace(&format!("{{{name}}}"), &text);
                }
                Place::Query => query.extend(style::pairs(name, value, style, explode, encode_value)),
                Place::Header => {
                    let text = style::header(value, explode);
                    if text.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f) {
                        return Err(format!("'{}' is a header, so it must be one line of text", parameter.key));
                    }
                    headers.push((name.to_ascii_lowercase(), text));
                }
                Place::Cookie => cookies.extend(style::pairs(name, value, style, explode, &encode)),
            }
        }
        let credentials = self.credentials(secret);
        let body = match (&self.body, input.get("body")) {
            (Some(body), Some(value)) => Some(body.write(value)?),
            (Some(_) | None, _) => None,
        };
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), pairs(&cookies, "; ")));
        }
        Ok(Request { method: self.method, url: self.url(&path, &query)?, headers, body, credentials })
    }

    fn url(&self, path: &str, query: &[(String, String)]) -> Result<Url, String> {
        let missing = path.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        if let Some((name, _)) = missing {
            return Err(format!("'{name}' is a part of the path and is missing"));
        }
        // Such segments would lead to another operation.
        let is_dots = |segment: &str| matches!(&*percent_decode_str(segment).decode_utf8_lossy(), "." | "..");
        if path.split(['/', '\\']).any(is_dots) {
            return Err("a segment of the path must not be '.' or '..'".into());
        }
        let base = self.server.as_str().trim_end_matches('/');
        let mut text = format!("{base}{path}");
        let pairs = pairs(query, "&");
        let all = [self.query.as_str(), pairs.as_str()].into_iter().filter(|part| !part.is_empty());
        let all = all.collect::<Vec<_>>().join("&");
        if !all.is_empty() {
            text.push('?');
            text += &all;
        }
        if text.len() > MAX_URL_BYTES {
            return Err(format!("the address of the request has more than {MAX_URL_BYTES} bytes"));
        }
        let url = Url::parse(&text).map_err(|_| "the address of the request is not valid".to_owned())?;
        if url.origin() != self.server.origin() {
            return Err("the address of the request is not one of the server".into());
        }
        Ok(url)
    }

    /// Returns the names of the schemes whose secrets a request gets: the first alternative all of whose schemes have one.
    #[must_use]
    pub fn schemes(&self, has: &dyn Fn(&str) -> bool) -> Vec<&str> {
        let complete = self.security.iter().find(|alternative| alternative.iter().all(|(name, _)| has(name)));
        complete.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the credentials of the first alternative all of whose schemes have a secret.
    fn credentials<'s>(&self, secret: &dyn Fn(&str) -> Option<&'s str>) -> Vec<Credential> {
        let complete = self.security.iter().find_map(|alternative| {
            alternative.iter().map(|(name, scheme)| Some((scheme, secret(name)?))).collect::<Option<Vec<_>>>()
        });
        let credential = |(scheme, secret): (&Scheme, &str)| match scheme {
            Scheme::Bearer => Credential::Header("authorization".into(), format!("Bearer {secret}")),
            Scheme::Basic => Credential::Header("authorization".into(), format!("Basic {}", STANDARD.encode(secret))),
            Scheme::Key { place: Place::Query, name } => Credential::Query(encode(name), encode(secret)),
            Scheme::Key { place: Place::Cookie, name } => Credential::Cookie(name.clone(), encode(secret)),
            Scheme::Key { place: Place::Header | Place::Path, name } => {
                Credential::Header(name.to_ascii_lowercase(), secret.to_owned())
            }
        };
        complete.into_iter().flatten().map(credential).collect()
    }
}

fn pairs(pairs: &[(String, String)], separator: &str) -> String {
    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(separator)
}

/// Returns a boundary that no input can know.
pub fn boundary() -> Result<String, String> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|_| "the system has no source of random numbers".to_owned())?;
    Ok(random.iter().fold("codecall-".to_owned(), |mut text, byte| {
        // A string can always be written.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

//! A URL record of the standard (<https://url.spec.whatwg.org/#url-representation>), its serialization, and its parts as `URL` has them.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

use super::parse::parse;

/// A URL whose parts are serialized: with escapes, a host in ASCII, a path with slashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    pub(super) scheme: String,
    pub(super) username: String,
    pub(super) password: String,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    /// Each segment behind a slash; an opaque path as it is.
    pub(super) path: String,
    pub(super) has_opaque_path: bool,
    pub(super) query: Option<String>,
    pub(super) fragment: Option<String>,
}

/// The default port of a special scheme; 0 for `file`, which has none.
pub(super) fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        "file" => Some(0),
        _ => None,
    }
}

impl Url {
    /// The length of [`Self::href`].
    pub fn length(&self) -> usize {
        let part = |part: &Option<String>| part.as_ref().map_or(0, |part| 1 + part.len());
        let authority = 2 + self.username.len() + 1 + self.password.len() + part(&self.host) + 6;
        self.scheme.len() + 3 + authority + self.path.len() + part(&self.query) + part(&self.fragment)
    }

    /// The URL serializer.
    pub fn href(&self) -> String {
        let mut href = String::with_capacity(self.length());
        href.push_str(&self.scheme);
        href.push(':');
        if let Some(host) = &self.host {
            href.push_str("//");
            if self.has_credentials() {
                href.push_str(&self.username);
                if !self.password.is_empty() {
                    href.push(':');
                    href.push_str(&self.password);
                }
                href.push('@');
            }
            href.push_str(host);
            if let Some(port) = self.port {
                href.push(':');
                href.push_str(&port.to_string());
            }
        } else if self.hides_slashes() {
            href.push_str("/.");
        }
        href.push_str(&self.path);
        for (mark, part) in [('?', &self.query), ('#', &self.fragment)] {
            if let Some(part) = part {
                href.push(mark);
                href.push_str(part);
            }
        }
        href
    }

    /// The origin, serialized.
    pub fn origin(&self) -> String {
        match &*self.scheme {
            "file" => "null".into(),
            "blob" => match parse(&self.path, None) {
                Some(inner) if matches!(&*inner.scheme, "http" | "https") => inner.tuple_origin(),
                _ => "null".into(),
            },
            _ if self.is_special() => self.tuple_origin(),
            _ => "null".into(),
        }
    }

    fn tuple_origin(&self) -> String {
        [&*self.scheme, "://", &self.host()].concat()
    }

    /// The scheme.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The scheme and a colon.
    pub fn protocol(&self) -> String {
        [&*self.scheme, ":"].concat()
    }

    /// The user name.
    pub fn username(&self) -> &str {
        &self.username
    }

    /// The password.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The host, with a port that is not the scheme's; Node shows no port without a host.
    pub fn host(&self) -> String {
        match (self.hostname(), self.port) {
            ("", _) => String::new(),
            (host, None) => host.into(),
            (host, Some(port)) => [host, ":", &port.to_string()].concat(),
        }
    }

    /// The host.
    pub fn hostname(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// A port that is not the scheme's.
    pub fn port(&self) -> String {
        self.port.map(|port| port.to_string()).unwrap_or_default()
    }

    /// The path.
    pub fn pathname(&self) -> &str {
        &self.path
    }

    /// The query behind its mark; empty where it is empty.
    pub fn search(&self) -> String {
        marked('?', &self.query)
    }

    /// The query, if there is one.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The fragment behind its mark; empty where it is empty.
    pub fn hash(&self) -> String {
        marked('#', &self.fragment)
    }

    pub(super) fn is_special(&self) -> bool {
        default_port(&self.scheme).is_some()
    }

    pub(super) fn is_file(&self) -> bool {
        self.scheme == "file"
    }

    pub(super) fn has_credentials(&self) -> bool {
        !self.username.is_empty() || !self.password.is_empty()
    }

    /// Whether the path would be read as a host, so that `/.` stands before it.
    pub(super) fn hides_slashes(&self) -> bool {
        self.host.is_none() && !self.has_opaque_path && self.path.starts_with("//")
    }
}

fn marked(mark: char, part: &Option<String>) -> String {
    match part.as_deref() {
        None | Some("") => String::new(),
        Some(part) => {
            let mut text = String::with_capacity(1 + part.len());
            text.push(mark);
            text.push_str(part);
            text
        }
    }
}

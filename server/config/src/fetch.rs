//! `fetch`: the bounds of the requests that script tools make, and the rules of hosts in their manifests.

use super::duration::Milliseconds;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use url::{Host, Url};

/// The bounds of the requests that script tools make with `fetch`. Its manifest names the hosts that a tool may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct FetchConfig {
    /// `false`: no tool may use `fetch`, whatever its manifest says.
    pub enabled: bool,
    /// Whether a manifest may name private hosts: addresses of the local network and of this machine. If not, all
    /// requests go to public addresses.
    pub allow_private: bool,
    /// How many requests one run may make, redirects included.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_requests: u32,
    /// How many redirects are followed for one request.
    #[schemars(range(min = 0, max = 20))]
    pub max_redirects: u32,
    /// How long one request may take, redirects and the body included. `vm.toolTimeoutMs` applies too.
    #[serde(rename = "timeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout: Duration,
    /// Longest body of a request in bytes.
    #[schemars(range(min = 0, max = 1 << 30))]
    pub max_request_bytes: usize,
    /// Longest body of a response in bytes, decompressed. A longer one fails the request: nothing is cut silently.
    #[schemars(range(min = 1024, max = 1 << 30))]
    pub max_response_bytes: usize,
    /// Maximum number of headers of a request and of a response.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_headers: usize,
    /// Maximum size of all headers of a request or of a response in bytes.
    #[schemars(range(min = 1024, max = 1 << 20))]
    pub max_header_bytes: usize,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_private: true,
            max_requests: 50,
            max_redirects: 5,
            timeout: Duration::from_secs(20),
            max_request_bytes: 1 << 20,
            max_response_bytes: 4 << 20,
            max_headers: 100,
            max_header_bytes: 32 << 10,
        }
    }
}

/// The methods of a rule that names none. They change nothing.
const SAFE_METHODS: [&str; 2] = ["GET", "HEAD"];
/// Methods that `fetch` never sends.
const FORBIDDEN_METHODS: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

/// A target that a script tool may reach with `fetch`: an entry of `hosts` in its manifest. A text is the short form:
/// `"api.example.com"`, `"*.example.com"` or the beginning of an address, `"https://api.example.com:8443/v1"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRule {
    /// The scheme.
    scheme: Scheme,
    /// The host in lower case: a name, `*.` and a name, or an address (of IPv6 in brackets).
    host: String,
    /// The port.
    port: u16,
    /// The methods, in capitals.
    methods: Vec<String>,
    /// The beginning of allowed paths, in whole segments; empty: all paths.
    paths: Vec<String>,
    /// Whether the host may have a private address.
    private: bool,
}

/// A scheme of [`HostRule`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scheme {
    /// Encrypted.
    #[default]
    Https,
    /// Not encrypted.
    Http,
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// A host that a script tool may reach with `fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    /// The host: a name, `*.example.com` for all names below it, an address, or the beginning of an address of HTTP.
    host: String,
    /// The scheme. Default: `https`.
    scheme: Option<Scheme>,
    /// The port. Default: that of the scheme.
    port: Option<u16>,
    /// The methods. Default: `GET` and `HEAD`.
    methods: Option<Vec<String>>,
    /// The beginning of allowed paths, such as `/v1`. Default: all paths.
    paths: Option<Vec<String>>,
    /// Whether the name may resolve to a private or loopback address. Default: no.
    #[serde(default)]
    private: bool,
}

impl HostRule {
    /// Parses the short form.
    ///
    /// # Errors
    /// The mistake, for the author of the manifest.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::from_written(Written {
            host: text.to_owned(),
            scheme: None,
            port: None,
            methods: None,
            paths: None,
            private: false,
        })
    }

    fn from_written(written: Written) -> Result<Self, String> {
        let text = written.host.trim();
        let fail = |problem: &str| Err(format!("hosts: '{text}' {problem}"));
        let (in_text, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(_) => return fail("must begin with https:// or http://, or be a host"),
            None => (None, text),
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if rest.contains(['?', '#', '@', '\\']) {
            return fail("must have neither user, query nor fragment; give the beginning of the path");
        }
        let after_address = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port_in_text) = match authority[after_address..].split_once(':') {
            Some((_, port)) => {
                let Ok(number) = port.parse::<u16>() else { return fail("has a port that is none") };
                (&authority[..authority.len() - port.len() - 1], Some(number))
            }
            None => (authority, None),
        };
        let both = |key: &str| Err(format!("hosts: '{text}': '{key}' is given twice"));
        if in_text.is_some() && written.scheme.is_some() {
            return both("scheme");
        }
        if port_in_text.is_some() && written.port.is_some() {
            return both("port");
        }
        if path.len() > 1 && written.paths.is_some() {
            return both("paths");
        }
        let scheme = in_text.or(written.scheme).unwrap_or_default();
        let port = port_in_text.or(written.port).unwrap_or(scheme.port());
        if port == 0 {
            return fail("has a port that is none");
        }
        let host = canonical_host(host).map_err(|problem| format!("hosts: '{text}' {problem}"))?;
        let mut paths = written.paths.unwrap_or_default();
        if path.len() > 1 {
            paths.push(path.to_owned());
        }
        for path in &paths {
            if !path.starts_with('/') || path.contains(['?', '#', '%', '\\']) || path.split('/').any(is_dots) {
                return Err(format!(
                    "hosts: the path '{path}' must begin with '/', without '%', '?', '#', '.' and '..'"
                ));
            }
        }
        let methods = match written.methods {
            None => SAFE_METHODS.map(str::to_owned).to_vec(),
            Some(methods) => methods.iter().map(|method| method.trim().to_ascii_uppercase()).collect(),
        };
        let is_token = |method: &String| !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if let Some(wrong) = methods.iter().find(|method| !is_token(method) || is_forbidden_method(method)) {
            return Err(format!("hosts: '{wrong}' is no method that can be allowed"));
        }
        Ok(Self { scheme, host, port, methods, paths, private: written.private })
    }

    /// Whether a request is allowed, as far as its address says: not what the name resolves to.
    #[must_use]
    pub fn allows(&self, url: &Url, method: &str) -> bool {
        self.matches_origin(url) && self.methods.iter().any(|allowed| allowed == method) && self.matches_path(url)
    }

    /// Whether scheme, host and port of an address are those of the rule.
    #[must_use]
    pub fn matches_origin(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        url.scheme() == self.scheme.as_str()
            && url.port_or_known_default() == Some(self.port)
            && self.matches_host(host.strip_suffix('.').unwrap_or(host))
    }

    fn matches_host(&self, host: &str) -> bool {
        match self.host.strip_prefix('*') {
            // Any number of labels: `.example.com` is at the end, and not all.
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => host == self.host,
        }
    }

    fn matches_path(&self, url: &Url) -> bool {
        if self.paths.is_empty() {
            return true;
        }
        // A server may decode an address once more than we do, and then leave the prefix.
        let mut path = url.path().to_owned();
        for _ in 0..3 {
            let decoded = percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned();
            if decoded.split(['/', '\\']).any(is_dots) {
                return false;
            }
            path = decoded;
        }
        self.paths.iter().any(|prefix| {
            let rest = url.path().strip_prefix(prefix.as_str());
            rest.is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
        })
    }

    /// Returns the address that the rule names, if it names one rather than a name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.host.trim_matches(['[', ']']).parse().ok()
    }

    /// Whether the host may have a private address.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Returns the methods that it allows, in capitals.
    #[must_use]
    pub fn methods(&self) -> &[String] {
        &self.methods
    }
}

/// The rule as the beginning of an address: `https://api.example.com/v1`.
impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port != self.scheme.port() {
            write!(f, ":{}", self.port)?;
        }
        match self.paths.as_slice() {
            [] => Ok(()),
            [path] => f.write_str(path),
            [path, ..] => write!(f, "{path}, …"),
        }
    }
}

/// Whether `fetch` never sends a method, whatever a rule says.
#[must_use]
pub fn is_forbidden_method(method: &str) -> bool {
    FORBIDDEN_METHODS.iter().any(|forbidden| forbidden.eq_ignore_ascii_case(method))
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// The host of a rule as addresses have it: in lower case, names in ASCII.
fn canonical_host(host: &str) -> Result<String, String> {
    let (wildcard, name) = match host.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", host),
    };
    if name.is_empty() || name.contains('*') {
        return Err("must name a host; '*.example.com' stands for all names below example.com".into());
    }
    match Host::parse(name.strip_suffix('.').unwrap_or(name)) {
        Ok(Host::Domain(domain)) if wildcard.is_empty() => Ok(domain),
        Ok(Host::Domain(domain)) if domain.contains('.') => Ok(format!("*.{domain}")),
        Ok(Host::Domain(_)) => Err("stands for too many hosts; name a domain, as in '*.example.com'".into()),
        Ok(Host::Ipv4(address)) if wildcard.is_empty() && address.to_string() == name => Ok(name.to_owned()),
        Ok(Host::Ipv4(address)) if wildcard.is_empty() => Err(format!("is an address; write it as '{address}'")),
        Ok(Host::Ipv6(address)) if wildcard.is_empty() => Ok(format!("[{address}]")),
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => Err("is an address, which has no names below it".into()),
        Err(_) => Err("is no host".into()),
    }
}

impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a host as a text, or a table with 'host', 'methods', 'paths'")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Written, E> {
                let host = text.to_owned();
                Ok(Written { host, scheme: None, port: None, methods: None, paths: None, private: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
                Written::deserialize(MapAccessDeserializer::new(map))
            }
        }
        Self::from_written(deserializer.deserialize_any(Either)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for HostRule {
    fn schema_name() -> Cow<'static, str> {
        "HostRule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = Written::json_schema(generator);
        json_schema!({
            "description": "A host that a script tool may reach with `fetch`, or the beginning of an address.",
            "anyOf": [{ "type": "string" }, table],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn rule(written: Value) -> HostRule {
        serde_json::from_value(written).expect("a rule")
    }

    fn allows(rule: &HostRule, method: &str, url: &str) -> bool {
        rule.allows(&Url::parse(url).expect("an address"), method)
    }

    #[test]
    fn a_rule_names_scheme_host_port_methods_and_paths() {
        let short = rule(json!("api.example.com"));
        for (expected, method, url) in [
            (true, "GET", "https://api.example.com"),
            (true, "HEAD", "https://API.example.com:443/a?b#c"),
            (true, "GET", "https://api.example.com./a"),
            (false, "POST", "https://api.example.com"),
            (false, "GET", "http://api.example.com"),
            (false, "GET", "https://api.example.com:8443"),
            (false, "GET", "https://example.com"),
            (false, "GET", "https://x.api.example.com"),
            (false, "GET", "https://api.example.com.evil.org"),
        ] {
            assert_eq!(allows(&short, method, url), expected, "{method} {url}");
        }
        let paths = rule(json!({"host": "http://127.0.0.1:8080", "methods": ["get", "POST"], "paths": ["/v1", "/w/"]}));
        assert_eq!(paths.address(), Some(IpAddr::from([127, 0, 0, 1])));
        for (expected, url) in [
            (true, "http://127.0.0.1:8080/v1"),
            (true, "http://127.0.0.1:8080/v1/a%20b"),
            (true, "http://0x7f.1:8080/w/x"),
            (false, "http://127.0.0.1:8080/v10"),
            (false, "http://127.0.0.1:8080/w"),
            (false, "http://127.0.0.1:8080/v1/../admin"),
            (false, "http://127.0.0.1:8080/v1/%2e%2e/admin"),
            (false, "http://127.0.0.1:8080/v1/..%2fadmin"),
            (false, "http://127.0.0.1:8080/v1/..%5cadmin"),
            (false, "http://127.0.0.1:8080/v1/%252e%252e%252fadmin"),
            (false, "http://127.0.0.1:8081/v1"),
        ] {
            assert_eq!(allows(&paths, "POST", url), expected, "{url}");
        }
        let below = rule(json!("*.example.com"));
        assert!(allows(&below, "GET", "https://a.b.example.com"));
        assert!(!allows(&below, "GET", "https://example.com"));
        assert!(!allows(&below, "GET", "https://badexample.com"));
        assert_eq!(rule(json!("https://API.example.com:8443/v1/")).to_string(), "https://api.example.com:8443/v1/");
        assert_eq!(rule(json!("bücher.example")).to_string(), "https://xn--bcher-kva.example");
        assert_eq!(rule(json!("http://[::1]:90")).address(), Some("::1".parse().expect("an address")));
    }

    #[test]
    fn wrong_rules_say_what_is_wrong() {
        for (written, expected) in [
            (json!("ftp://a.example"), "must begin with https:// or http://"),
            (json!("https://user@a.example"), "neither user"),
            (json!("*"), "must name a host"),
            (json!("*.com"), "too many hosts"),
            (json!("a.*.com"), "must name a host"),
            (json!("0x7f.1"), "write it as '127.0.0.1'"),
            (json!("*.10.0.0.1"), "no names below it"),
            (json!("a.example:99999"), "has a port"),
            (json!(""), "must name a host"),
            (json!("a b"), "is no host"),
            (json!(7), "a host as a text"),
            (json!({"host": "a.example", "path": "/v1"}), "unknown field `path`"),
            (json!({"host": "http://a.example", "scheme": "https"}), "'scheme' is given twice"),
            (json!({"host": "a.example", "methods": ["TRACE"]}), "'TRACE' is no method"),
            (json!({"host": "a.example", "paths": ["v1"]}), "must begin with '/'"),
            (json!({"host": "a.example", "paths": ["/v1/../x"]}), "must begin with '/'"),
        ] {
            let error = serde_json::from_value::<HostRule>(written.clone()).expect_err("wrong").to_string();
            assert!(error.contains(expected), "{written}: {error}");
        }
    }
}

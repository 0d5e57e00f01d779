//! The basic URL parser of the standard (<https://url.spec.whatwg.org/#concept-basic-url-parser>), one function a state.
//!
//! It differs from the standard where Node 20 does, as the comments say.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

use super::escape::{C0_CONTROL, FRAGMENT, QUERY, SPECIAL_QUERY, USERINFO, escaped};
use super::path::starts_with_drive;
use super::record::{Url, default_port};
use std::borrow::Cow;

/// Parse a URL, relative to a base if there is one; `None` where that fails.
pub fn parse(input: &str, base: Option<&Url>) -> Option<Url> {
    let input = without_tabs(input.trim_matches(|letter| letter <= ' '));
    let (input, fragment) = match input.split_once('#') {
        Some((input, fragment)) => (input, Some(fragment)),
        None => (&*input, None),
    };
    let mut url = match split_scheme(input) {
        Some((scheme, rest)) => with_scheme(scheme, rest, base)?,
        None => without_scheme(input, fragment.is_some(), base?)?,
    };
    url.fragment = fragment.map(|fragment| escaped(fragment, FRAGMENT));
    Some(url)
}

/// A text without tabs and line ends.
pub(super) fn without_tabs(text: &str) -> Cow<'_, str> {
    let is_removed = |letter| matches!(letter, '\t' | '\n' | '\r');
    if text.contains(is_removed) { text.replace(is_removed, "").into() } else { text.into() }
}

/// A scheme, and what is behind its colon.
pub(super) fn split_scheme(input: &str) -> Option<(&str, &str)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = input.bytes().position(|byte| !is_part(byte))?;
    let begins = input.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let rest = input[end..].strip_prefix(':')?;
    begins.then_some((&input[..end], rest))
}

/// The port at the start of a text, if there are digits, and what follows them; `None` where the port is too large.
pub(super) fn port_of(text: &str) -> Option<(Option<u16>, &str)> {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    let port = if digits.is_empty() { None } else { Some(digits.parse().ok()?) };
    Some((port, rest))
}

const SLASHES: [char; 2] = ['/', '\\'];

/// The states after the scheme state.
fn with_scheme(scheme: &str, rest: &str, base: Option<&Url>) -> Option<Url> {
    let mut url = Url { scheme: scheme.to_ascii_lowercase(), ..Url::default() };
    if url.is_file() {
        return file(url, rest, base);
    }
    if url.is_special() {
        return match base {
            Some(base) if base.scheme == url.scheme && !rest.starts_with("//") => relative(url, rest, base),
            _ => authority(url, rest.trim_start_matches(SLASHES)),
        };
    }
    if let Some(rest) = rest.strip_prefix("//") {
        return authority(url, rest);
    }
    if let Some(rest) = rest.strip_prefix('/') {
        return Some(path(url, rest));
    }
    let (opaque, query) = split_query(rest);
    url.has_opaque_path = true;
    url.path = escaped(opaque, C0_CONTROL);
    Some(with_query(url, query))
}

/// The no scheme state.
fn without_scheme(input: &str, has_fragment: bool, base: &Url) -> Option<Url> {
    let url = Url { scheme: base.scheme.clone(), ..Url::default() };
    if base.has_opaque_path {
        if !has_fragment {
            return None;
        }
        if input.is_empty() {
            return Some(base.without_fragment());
        }
        // The standard fails. Node 20 only looks whether there is a fragment.
    }
    if base.is_file() { file(url, input, Some(base)) } else { relative(url, input, base) }
}

/// The relative state and the relative slash state.
fn relative(mut url: Url, rest: &str, base: &Url) -> Option<Url> {
    let is_slash = |letter: char| letter == '/' || letter == '\\' && base.is_special();
    if let Some(rest) = rest.strip_prefix(is_slash) {
        if base.is_special() && rest.starts_with(SLASHES) {
            return authority(url, rest.trim_start_matches(SLASHES));
        }
        if let Some(rest) = rest.strip_prefix('/') {
            return authority(url, rest);
        }
        let Url { username, password, host, port, .. } = base.clone();
        (url.username, url.password, url.host, url.port) = (username, password, host, port);
        return Some(path(url, rest));
    }
    Some(reference(base.without_fragment(), rest, true))
}

/// The end of the relative state and of the file state: a reference without a slash, on a copy of the base.
fn reference(mut url: Url, rest: &str, shortens: bool) -> Url {
    if let Some(query) = rest.strip_prefix('?') {
        return with_query(url, Some(query));
    }
    if rest.is_empty() {
        return url;
    }
    url.query = None;
    if shortens {
        url.shorten_path();
    } else {
        url.path.clear();
    }
    path(url, rest)
}

/// The file state and the file slash state.
fn file(mut url: Url, rest: &str, base: Option<&Url>) -> Option<Url> {
    url.host = Some(String::new());
    let base = base.filter(|base| base.is_file());
    let Some(rest) = rest.strip_prefix(SLASHES) else {
        return Some(match base {
            Some(base) => reference(base.without_fragment(), rest, !starts_with_drive(rest)),
            None => path(url, rest),
        });
    };
    if let Some(rest) = rest.strip_prefix(SLASHES) {
        return file_host(url, rest);
    }
    if let Some(base) = base {
        url.host.clone_from(&base.host);
        if let Some(drive) = base.drive()
            && !starts_with_drive(rest)
        {
            url.path = ["/", drive].concat();
        }
    }
    Some(path(url, rest))
}

/// The file host state.
fn file_host(mut url: Url, rest: &str) -> Option<Url> {
    let (host, tail) = rest.split_at(rest.find(['/', '\\', '?']).unwrap_or(rest.len()));
    if host.len() == 2 && starts_with_drive(host) {
        return Some(path(url, rest));
    }
    url.set_file_host(host)?;
    Some(path_start(url, tail))
}

/// The authority state, the host state and the port state.
fn authority(mut url: Url, rest: &str) -> Option<Url> {
    let is_special = url.is_special();
    let is_end = |letter| matches!(letter, '/' | '?') || letter == '\\' && is_special;
    let (authority, tail) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
    let (credentials, address) = match authority.rsplit_once('@') {
        Some((_, "")) => return None,
        Some((credentials, address)) => (credentials, address),
        None => ("", authority),
    };
    let (username, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    url.username = escaped(username, USERINFO);
    url.password = escaped(password, USERINFO);
    let (host, port) = split_port(address);
    if host.is_empty() && port.is_none() && !is_special {
        url.host = Some(String::new());
    } else {
        url.set_host_to(host)?;
    }
    if let Some(text) = port {
        let (port, rest) = port_of(text)?;
        if !rest.is_empty() {
            return None;
        }
        url.set_port_to(port);
    }
    Some(path_start(url, tail))
}

/// A host, and what is behind its colon.
pub(super) fn split_port(address: &str) -> (&str, Option<&str>) {
    let mut inside = false;
    let colon = address.bytes().position(|byte| {
        inside = byte == b'[' || inside && byte != b']';
        byte == b':' && !inside
    });
    match colon {
        Some(colon) => (&address[..colon], Some(&address[colon + 1..])),
        None => (address, None),
    }
}

/// The path start state.
fn path_start(url: Url, rest: &str) -> Url {
    let is_special = url.is_special();
    match rest.strip_prefix(|letter| letter == '/' || letter == '\\' && is_special) {
        Some(rest) => path(url, rest),
        None if is_special => path(url, rest),
        None => with_query(url, rest.strip_prefix('?')),
    }
}

/// The path state.
fn path(mut url: Url, rest: &str) -> Url {
    let (rest, query) = split_query(rest);
    url.add_path(rest);
    with_query(url, query)
}

fn split_query(rest: &str) -> (&str, Option<&str>) {
    match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    }
}

/// The query state, if there is a query.
fn with_query(mut url: Url, query: Option<&str>) -> Url {
    if let Some(query) = query {
        url.query = Some(url.escaped_query(query));
    }
    url
}

impl Url {
    /// A copy of a base without its fragment; Node does not copy an empty query.
    fn without_fragment(&self) -> Self {
        let query = self.query.clone().filter(|query| !query.is_empty());
        Self { fragment: None, query, ..self.clone() }
    }

    pub(super) fn escaped_query(&self, query: &str) -> String {
        escaped(query, if self.is_special() { SPECIAL_QUERY } else { QUERY })
    }

    /// Set the port, unless it is the scheme's.
    pub(super) fn set_port_to(&mut self, port: Option<u16>) {
        self.port = port.filter(|&port| default_port(&self.scheme) != Some(port));
    }
}

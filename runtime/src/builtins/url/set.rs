//! The setters of `URL` (<https://url.spec.whatwg.org/#api>), as Node 20 has them.
//!
//! bounded: by the length of a URL, which the caller limits and charges.

use super::escape::{FRAGMENT, USERINFO, escaped};
use super::parse::{parse, port_of, split_port, split_scheme, without_tabs};
use super::record::{Url, default_port};

impl Url {
    /// Set all of it; whether the text is a URL.
    pub fn set_href(&mut self, text: &str) -> bool {
        let url = parse(text, None);
        url.map(|url| *self = url).is_some()
    }

    /// Parse it again, as Node does before each change; where it made a URL that it cannot read, it stays.
    pub fn parse_again(&mut self) {
        let url = parse(&self.href(), None);
        *self = url.unwrap_or_else(|| std::mem::take(self));
    }

    /// Set the scheme, where nothing is lost by that.
    pub fn set_protocol(&mut self, text: &str) {
        let text = without_tabs(text) + ":";
        let Some((scheme, _)) = split_scheme(&text) else { return };
        let scheme = scheme.to_ascii_lowercase();
        let is_file = scheme == "file" && (self.has_credentials() || self.port.is_some());
        let is_special = default_port(&scheme).is_some();
        if self.is_special() != is_special || is_file || self.is_file() && self.hostname().is_empty() {
            return;
        }
        // For Node, the default port of other schemes is 0.
        if self.port == Some(default_port(&scheme).unwrap_or(0)) {
            self.port = None;
        }
        self.scheme = scheme;
    }

    /// Set the user name.
    pub fn set_username(&mut self, text: &str) {
        if self.can_have_port() {
            self.username = escaped(text, USERINFO);
        }
    }

    /// Set the password.
    pub fn set_password(&mut self, text: &str) {
        if self.can_have_port() {
            self.password = escaped(text, USERINFO);
        }
    }

    /// Set the host and, where the text has one, the port.
    pub fn set_host(&mut self, text: &str) {
        self.assign_host(text, true);
    }

    /// Set the host; a text with a port changes nothing.
    pub fn set_hostname(&mut self, text: &str) {
        self.assign_host(text, false);
    }

    fn assign_host(&mut self, text: &str, with_port: bool) {
        if self.has_opaque_path {
            return;
        }
        let text = without_tabs(text.split('#').next().unwrap_or_default());
        let is_special = self.is_special();
        let is_end = |letter| matches!(letter, '/' | '?') || letter == '\\' && is_special;
        let address = text.split(is_end).next().unwrap_or_default();
        if self.is_file() {
            self.set_file_host(address);
            return;
        }
        let before = (self.host.clone(), self.port);
        let (host, port) = split_port(address);
        // A port ends before the first other character.
        match port.map(|_| &text[host.len() + 1..]) {
            Some(_) if !with_port => return,
            Some("") => {}
            Some(port) => self.set_port(port),
            None if host.is_empty() && (is_special || self.has_credentials() || self.port.is_some()) => return,
            None => {}
        }
        if host.is_empty() && !is_special {
            // No host is added, unless the path shows that there could be one.
            if self.host.is_some() || self.hides_slashes() {
                self.host = Some(String::new());
            }
        } else if self.set_host_to(host).is_none() {
            (self.host, self.port) = before;
        }
    }

    /// Set the port to the digits at the start of a text; without any it is removed.
    pub fn set_port(&mut self, text: &str) {
        if !self.can_have_port() {
            return;
        }
        let trimmed = without_tabs(text);
        if trimmed.is_empty() {
            self.port = None;
        } else if !trimmed.starts_with(|letter| letter <= ' ' || letter == '-')
            && trimmed.contains(|letter: char| letter.is_ascii_digit())
            && let Some((port, _)) = port_of(&trimmed)
        {
            self.set_port_to(port);
        }
    }

    /// Set a path that is not opaque.
    pub fn set_pathname(&mut self, text: &str) {
        if self.has_opaque_path {
            return;
        }
        self.path.clear();
        let text = without_tabs(text);
        let is_special = self.is_special();
        let rest = text.strip_prefix(|letter| letter == '/' || letter == '\\' && is_special);
        if !text.is_empty() || is_special {
            self.add_path(rest.unwrap_or(&text));
        } else if self.host.is_none() {
            self.path.push('/');
        }
    }

    /// Set the query.
    pub fn set_search(&mut self, text: &str) {
        let query = text.strip_prefix('?').unwrap_or(text);
        self.query = (!text.is_empty()).then(|| self.escaped_query(&without_tabs(query)));
        self.strip_spaces();
    }

    /// Set the fragment.
    pub fn set_hash(&mut self, text: &str) {
        let fragment = text.strip_prefix('#').unwrap_or(text);
        self.fragment = (!text.is_empty()).then(|| escaped(&without_tabs(fragment), FRAGMENT));
        self.strip_spaces();
    }

    /// Whether there can be a port and credentials.
    fn can_have_port(&self) -> bool {
        !self.is_file() && !self.hostname().is_empty()
    }

    /// Remove spaces at the end of an opaque path, which parsing would remove; the standard escapes the last one since Node 20.
    fn strip_spaces(&mut self) {
        if self.has_opaque_path && self.query.is_none() && self.fragment.is_none() {
            self.path.truncate(self.path.trim_end_matches(' ').len());
        }
    }
}

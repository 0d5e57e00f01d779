//! The setters of `URL` (<https://url.spec.whatwg.org/#api>), as Node 20 has them; each tells whether Node takes the value.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

use super::escape::{FRAGMENT, USERINFO, escaped};
use super::parse::{parse, port_of, split_port, split_scheme, without_tabs};
use super::record::{Url, default_port};

impl Url {
    /// Set all of it; whether the text is a URL.
    pub fn set_href(&mut self, text: &str) -> bool {
        let url = parse(text, None);
        url.map(|url| *self = url).is_some()
    }

    /// The URL parsed again, as Node does before each change; where it made a URL that it cannot read, it stays.
    pub fn parsed_again(&self) -> Self {
        parse(&self.href(), None).unwrap_or_else(|| self.clone())
    }

    /// Set the scheme, where nothing is lost by that.
    pub fn set_protocol(&mut self, text: &str) -> bool {
        let text = without_tabs(text) + ":";
        let Some((given, _)) = split_scheme(&text) else { return text == ":" };
        let scheme = given.to_ascii_lowercase();
        let is_file = scheme == "file" && (self.has_credentials() || self.port.is_some());
        let is_special = default_port(&scheme).is_some();
        if self.is_special() != is_special || is_file || self.is_file() && self.hostname().is_empty() {
            // Node takes what is no special scheme in lower case, but does nothing with it.
            return default_port(given).is_none();
        }
        // For Node, the default port of other schemes is 0.
        if self.port == Some(default_port(&scheme).unwrap_or(0)) {
            self.port = None;
        }
        self.scheme = scheme;
        true
    }

    /// Set the user name.
    pub fn set_username(&mut self, text: &str) -> bool {
        let takes = self.can_have_port();
        if takes {
            self.username = escaped(text, USERINFO);
        }
        takes
    }

    /// Set the password.
    pub fn set_password(&mut self, text: &str) -> bool {
        let takes = self.can_have_port();
        if takes {
            self.password = escaped(text, USERINFO);
        }
        takes
    }

    /// Set the host and, where the text has one, the port.
    pub fn set_host(&mut self, text: &str) -> bool {
        self.assign_host(text, true)
    }

    /// Set the host; a text with a port changes nothing.
    pub fn set_hostname(&mut self, text: &str) -> bool {
        self.assign_host(text, false)
    }

    fn assign_host(&mut self, text: &str, with_port: bool) -> bool {
        if self.has_opaque_path {
            return false;
        }
        let text = without_tabs(text.split('#').next().unwrap_or_default());
        let is_special = self.is_special();
        let is_end = |letter| matches!(letter, '/' | '?') || letter == '\\' && is_special;
        let address = text.split(is_end).next().unwrap_or_default();
        if self.is_file() {
            return self.set_file_host(address).is_some();
        }
        let before = (self.host.clone(), self.port);
        let (host, port) = split_port(address);
        // A port ends before the first other character.
        match port.map(|_| &text[host.len() + 1..]) {
            Some(_) if !with_port => return false,
            Some("") => {}
            Some(port) => {
                self.set_port(port);
            }
            None if host.is_empty() && (is_special || self.has_credentials() || self.port.is_some()) => return false,
            None => {}
        }
        if host.is_empty() && !is_special {
            // No host is added, unless the path shows that there could be one.
            if self.host.is_some() || self.hides_slashes() {
                self.host = Some(String::new());
            }
        } else if self.set_host_to(host).is_none() {
            (self.host, self.port) = before;
            return false;
        }
        true
    }

    /// Set the port to the digits at the start of a text; without any it is removed.
    pub fn set_port(&mut self, text: &str) -> bool {
        if !self.can_have_port() {
            return false;
        }
        let trimmed = without_tabs(text);
        if trimmed.is_empty() {
            self.port = None;
            true
        } else if !trimmed.starts_with(|letter| letter <= ' ' || letter == '-')
            && trimmed.contains(|letter: char| letter.is_ascii_digit())
            && let Some((port, _)) = port_of(&trimmed)
        {
            self.set_port_to(port);
            true
        } else {
            false
        }
    }

    /// Set a path that is not opaque.
    pub fn set_pathname(&mut self, text: &str) -> bool {
        if self.has_opaque_path {
            return false;
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
        true
    }

    /// Set the query.
    pub fn set_search(&mut self, text: &str) -> bool {
        let query = text.strip_prefix('?').unwrap_or(text);
        self.query = (!text.is_empty()).then(|| self.escaped_query(&without_tabs(query)));
        self.strip_spaces();
        true
    }

    /// Set the fragment.
    pub fn set_hash(&mut self, text: &str) -> bool {
        let fragment = text.strip_prefix('#').unwrap_or(text);
        self.fragment = (!text.is_empty()).then(|| escaped(&without_tabs(fragment), FRAGMENT));
        self.strip_spaces();
        true
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

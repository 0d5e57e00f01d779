//! Challenges: what a server says in `WWW-Authenticate` when it refuses a request.

use codecall_base::text::truncate;

/// Maximum length of a text of a server in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// Why a server refuses a request, and what it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The address of its protected-resource metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scope: Option<String>,
    /// The code of the error.
    pub error: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Whether the token is accepted, but has not all scopes.
    pub is_insufficient: bool,
}

impl Challenge {
    /// Returns the scopes that the request needs.
    pub fn scopes(&self) -> impl Iterator<Item = String> + '_ {
        self.scope.iter().flat_map(|scope| scope.split_whitespace()).map(str::to_owned)
    }

    /// Parses the value of a header. Of several challenges, the parameters of the first of the scheme `Bearer` count.
    #[must_use]
    pub fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut rest = header.trim_start();
        let mut is_bearer = false;
        let mut had_bearer = false;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let value = after.trim_start().strip_prefix('=');
            match value {
                Some(value) if !word.is_empty() => {
                    let (value, after) = parameter(value.trim_start());
                    if is_bearer {
                        challenge.set(&word.to_ascii_lowercase(), value);
                    }
                    rest = after;
                }
                Some(_) | None if !word.is_empty() => {
                    is_bearer = word.eq_ignore_ascii_case("bearer") && !had_bearer;
                    had_bearer |= is_bearer;
                    rest = after;
                }
                // No character of a challenge.
                Some(_) | None => rest = rest.get(rest.chars().next().map_or(1, char::len_utf8)..).unwrap_or_default(),
            }
            rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        }
        challenge
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "resource_metadata" => self.resource_metadata = Some(value),
            "scope" => self.scope = Some(value).filter(|scope| !scope.trim().is_empty()),
            "error" => {
                self.is_insufficient = value == "insufficient_scope";
                self.error = Some(value);
            }
            "error_description" => self.description = Some(value),
            _ => {}
        }
    }

    /// Returns the reason as the end of a message.
    #[must_use]
    pub fn explained(&self) -> String {
        match self.description.as_ref().or(self.error.as_ref()) {
            Some(reason) => format!(": {}", truncate(reason, MAX_SHOWN_BYTES)),
            None => String::new(),
        }
    }
}

/// Whether a character is one of a token of HTTP, or of what stands after a scheme.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(c)
}

/// Parses the value of a parameter, a token or a quoted text. Returns it and what follows.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let metadata = Some("https://h/.well-known/oauth-protected-resource".to_owned());
        let simple = Challenge { resource_metadata: metadata.clone(), ..Challenge::default() };
        for header in [
            "Bearer resource_metadata=\"https://h/.well-known/oauth-protected-resource\"",
            "bearer realm=\"a, b=c\", resource_metadata = \"https://h/.well-known/oauth-protected-resource\"",
            "Basic realm=\"x\", Bearer resource_metadata=https://h/.well-known/oauth-protected-resource",
            "Bearer resource_metadata=\"https:\\/\\/h/.well-known/oauth-protected-resource\", Basic realm=\"y\", scope=\"z\"",
        ] {
            assert_eq!(Challenge::parse(header), simple, "{header}");
        }
        let insufficient = Challenge::parse("Bearer error=\"insufficient_scope\", scope=\"files:read files:write\"");
        assert!(insufficient.is_insufficient);
        assert_eq!(insufficient.scope.as_deref(), Some("files:read files:write"));
        for odd in ["", "Bearer", "Basic abc==", "Bearer =,,=\"", "\"", "Bearer a=\"\\", "äö=ü"] {
            assert_eq!(Challenge::parse(odd), Challenge::default(), "{odd}");
        }
    }
}

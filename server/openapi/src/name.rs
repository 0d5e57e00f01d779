//! Names of tools: from the id of the operation, else from its method and path. They are names that a script can
//! write after a dot.

use crate::limits::MAX_NAME_BYTES;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The names that are taken. Names do not depend on which operations are selected, so all operations must be named.
#[derive(Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// Returns the name of an operation.
    pub fn add(&mut self, id: Option<&str>, method: &str, path: &str) -> String {
        let by_path = || bounded(plain(&format!("{method} {path}")));
        let mut name = id.map(plain).filter(|name| !name.is_empty()).map_or_else(by_path, bounded);
        if !self.is_free(&name) {
            name = by_path();
        }
        let base = name.clone();
        let mut number = 2;
        while !self.is_free(&name) {
            // Paths that only differ in their case or punctuation.
            name =
                if number < 100 { format!("{base}_{number}") } else { with_digest(&base, &format!("{method} {path}")) };
            number += 1;
            if number > 101 {
                break;
            }
        }
        self.0.insert(name.to_ascii_lowercase());
        name
    }

    fn is_free(&self, name: &str) -> bool {
        !self.0.contains(&name.to_ascii_lowercase())
    }
}

/// Letters, digits and single underscores.
fn plain(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    name.truncate(name.trim_end_matches('_').len());
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn bounded(name: String) -> String {
    if name.len() <= MAX_NAME_BYTES { name } else { with_digest(&name[..MAX_NAME_BYTES - 9], &name) }
}

fn with_digest(name: &str, of: &str) -> String {
    let digest = Sha256::digest(of.as_bytes());
    digest.iter().take(4).fold(format!("{name}_"), |mut name, byte| {
        // A string can always be written.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_unique() {
        let mut names = Names::default();
        let mut name = |id: Option<&str>, path: &str| names.add(id, "get", path);
        assert_eq!(name(Some("repos/list-for-user"), "/a"), "repos_list_for_user");
        assert_eq!(name(Some("Repos.List for__user!"), "/b/{c}"), "get_b_c", "taken, apart from case");
        assert_eq!(name(None, "/users/{id}/files/{file-name}.json"), "get_users_id_files_file_name_json");
        assert_eq!(name(None, "/users/{id}/files/{file-name}/json"), "get_users_id_files_file_name_json_2");
        assert_eq!(name(None, "/"), "get");
        assert_eq!(name(Some("日本"), "/japan"), "get_japan");
        assert_eq!(name(Some("2fa"), "/2fa"), "_2fa");
        let long = name(Some(&"x".repeat(500)), "/x");
        assert!(long.len() == MAX_NAME_BYTES && long != name(Some(&"x".repeat(501)), "/y"), "{long}");
        for n in 0..300 {
            let n = "-".repeat(n % 3);
            name(None, &format!("/same{n}"));
        }
    }
}

//! Truncates text, finds the names nearest to a misspelled one, and says where a part of a value is.

use serde_json::Value;

/// Returns the start of `text`, at most `max_bytes` bytes, up to a character boundary.
#[must_use]
pub fn truncate(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the names that are similar to `name` by edit distance, the most similar first, at most `max`.
///
/// To bound the time, a name of more than 64 bytes is similar to none, and the edit distance is computed for the 500
/// names that have the most letters in common.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let letters = LetterCounts::from_text(without_app(&wanted));
    // `app_tool` is a spelling of `app:tool`.
    let has_app = !wanted.contains([':', '.']) && wanted.contains('_');
    let mut candidates: Vec<(f64, String, &str)> = known
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len() <= 2 * MAX_NAME_BYTES)
        .map(|candidate| (candidate.to_lowercase(), candidate))
        .map(|(lower, candidate)| {
            let own = letters.similarity(&LetterCounts::from_text(without_app(&lower)));
            let whole = if has_app { letters.similarity(&LetterCounts::from_text(&lower)) } else { 0.0 };
            (own.max(whole), lower, candidate)
        })
        .filter(|(similarity, ..)| *similarity >= 0.35)
        .collect();
    if candidates.len() > MAX_COMPARED {
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(b.2)));
        candidates.truncate(MAX_COMPARED);
    }
    let mut found: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|(_, lower, candidate)| {
            let own = similarity(&wanted, &lower);
            let whole = if has_app { strsim::normalized_damerau_levenshtein(&wanted, &joined(&lower)) } else { 0.0 };
            (own.max(whole), candidate)
        })
        .filter(|(similarity, _)| *similarity >= 0.55)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(max).map(|(_, candidate)| candidate).collect()
}

/// Returns the path of a part of a value, as messages write it: `items[5].name` for the JSON pointer `/items/5/name`.
#[must_use]
pub fn path_in(value: &Value, pointer: &str) -> String {
    let (mut path, mut value) = (String::new(), Some(value));
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        // A number can also be the name of a member.
        if let Some(Value::Array(items)) = value {
            path.push_str(&format!("[{token}]"));
            value = token.parse::<usize>().ok().and_then(|at| items.get(at));
        } else {
            let dot = if path.is_empty() { "" } else { "." };
            path.push_str(&format!("{dot}{token}"));
            value = value.and_then(|value| value.get(&token));
        }
    }
    path
}

/// Maximum length of a compared name, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of names whose letters are counted.
const MAX_CANDIDATES: usize = 20_000;
/// Maximum number of names whose edit distance is computed.
const MAX_COMPARED: usize = 500;

/// Returns a name without its app.
fn without_app(name: &str) -> &str {
    name.split_once([':', '.']).map_or(name, |(_, own)| own)
}

/// Returns a name with its app in the spelling `app_tool`.
fn joined(name: &str) -> String {
    name.replacen([':', '.'], "_", 1)
}

/// How often each letter occurs in a text. Some rare letters share a counter.
struct LetterCounts([u16; 64]);

impl LetterCounts {
    fn from_text(text: &str) -> Self {
        let mut counts = [0; 64];
        for c in text.chars() {
            counts[c as usize % 64] += 1;
        }
        Self(counts)
    }

    /// Returns an upper bound for the similarity of two texts: the similarity of their letters in any order. A name
    /// needs a similarity of 0.55, to which an equal app adds 0.3, so names without their apps need at least 0.35.
    fn similarity(&self, other: &Self) -> f64 {
        let (mut missing, mut more, mut own, mut others) = (0, 0, 0, 0);
        for (a, b) in self.0.iter().zip(&other.0) {
            (missing, more) = (missing + a.saturating_sub(*b), more + b.saturating_sub(*a));
            (own, others) = (own + a, others + b);
        }
        1.0 - f64::from(missing.max(more)) / f64::from(own.max(others).max(1))
    }
}

/// Returns the similarity of two names. The part after the app counts more than the app, which many names share.
fn similarity(wanted: &str, candidate: &str) -> f64 {
    let split = |name: &str| name.split_once([':', '.']).map(|(app, own)| (app.to_owned(), own.to_owned()));
    let (Some((wanted_app, wanted_own)), Some((app, own))) = (split(wanted), split(candidate)) else {
        let own = candidate.split_once(':').map_or(candidate, |(_, own)| own);
        return strsim::normalized_damerau_levenshtein(wanted, own);
    };
    0.3 * strsim::normalized_damerau_levenshtein(&wanted_app, &app)
        + 0.7 * strsim::normalized_damerau_levenshtein(&wanted_own, &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_near_names() {
        let names = ["filesystem:read_text_file", "filesystem:write_file", "git:git_log"];
        let near = |name: &str| nearest(name, names.into_iter(), 1);
        for wanted in
            ["filesystem:raed_text_file", "filesystem.raed_text_file", "filesystem_raed_text_file", "raed_text_file"]
        {
            assert_eq!(near(wanted), ["filesystem:read_text_file"], "{wanted}");
        }
        for wanted in ["git:git_lgo", "git.git_lgo", "git_git_lgo", "git_lgo", "gti_git_log", "gti:git_log"] {
            assert_eq!(near(wanted), ["git:git_log"], "{wanted}");
        }
        assert_eq!(near("send_mail"), [""; 0]);
    }

    #[test]
    fn near_names_are_found_among_many() {
        let names: Vec<String> =
            (0..5_000).map(|at| format!("app{at}:tool{at}")).chain(["users:list".into()]).collect();
        let near = |name: &str| nearest(name, names.iter().map(String::as_str), 1);
        assert_eq!(near("user:lsit"), ["users:list"]);
        assert_eq!(near(&"x".repeat(1_000_000)), [""; 0]);
        let long = "l".repeat(1_000_000);
        assert_eq!(nearest("lll", [long.as_str()].into_iter(), 1), [""; 0]);
    }

    #[test]
    fn paths_name_the_elements_of_lists() {
        let value = serde_json::json!({"items": [{"5": [1, 2]}, {"a/b": {"c~": 1}}]});
        for (pointer, path) in [
            ("", ""),
            ("/items", "items"),
            ("/items/0", "items[0]"),
            ("/items/0/5/1", "items[0].5[1]"),
            ("/items/1/a~1b/c~0", "items[1].a/b.c~"),
            ("/items/9/x", "items[9].x"),
        ] {
            assert_eq!(path_in(&value, pointer), path);
        }
        assert_eq!(path_in(&serde_json::json!([[1]]), "/0/0"), "[0][0]");
    }
}

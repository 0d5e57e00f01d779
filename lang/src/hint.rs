//! Hints recommend nothing that is switched off.

/// Returns a hint without the parts that recommend a name for which `is_off`; nothing if no part is left. Parts are separated by
/// semicolons, and what they recommend stands between backticks.
#[must_use]
pub fn allowed_hint(hint: &str, is_off: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut is_code = false;
    let mut parts = vec![String::new()];
    for piece in hint.split_inclusive('`') {
        let mut rest = piece;
        while let Some((before, after)) = (!is_code).then(|| rest.split_once("; ")).flatten() {
            parts.last_mut()?.push_str(before);
            parts.push(String::new());
            rest = after;
        }
        parts.last_mut()?.push_str(rest);
        is_code ^= piece.ends_with('`');
    }
    parts.retain(|part| !part.split('`').skip(1).step_by(2).any(|code| mentions(code, is_off)));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Whether code has such a name, other than as a property or in a text.
fn mentions(code: &str, is_off: &dyn Fn(&str) -> bool) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let mut before = ' ';
    code.split_inclusive(|c| !is_part(c)).any(|piece| {
        let name = piece.trim_end_matches(|c| !is_part(c));
        let found = !matches!(before, '.' | '\'' | '"') && !name.is_empty() && is_off(name);
        before = piece.chars().next_back().unwrap_or(' ');
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_not_recommended() {
        let hint = |hint, off: &str| allowed_hint(hint, &|name| name == off);
        let json = "write `structuredClone(value)`; or `JSON.parse(JSON.stringify(value))`";
        assert_eq!(hint(json, "Map").as_deref(), Some(json));
        assert_eq!(hint(json, "JSON").as_deref(), Some("write `structuredClone(value)`"));
        assert_eq!(hint("did you mean `sleep`?", "sleep"), None);
        assert_eq!(hint("use `a.sleep(x); y('sleep')`", "sleep").as_deref(), Some("use `a.sleep(x); y('sleep')`"));
        assert_eq!(hint("use `x; sleep(1)`; or wait", "sleep").as_deref(), Some("or wait"));
        assert_eq!(hint("sleep; well", "sleep").as_deref(), Some("sleep; well"));
    }
}

//! `${NAME}` and `${NAME:-default}` in values, for variables of the environment, and `${secret:NAME}` or
//! `${secret:WORKSPACE/NAME}` for stored secrets. `$${` is a plain `${`.

use serde_json::Value;

/// The beginning of names of stored secrets.
pub const SECRET_PREFIX: &str = "secret:";

/// Values of environment variables, and those of secrets by their names with [`SECRET_PREFIX`].
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands all strings of `value`, which is at `path`.
pub fn expand(value: &mut Value, path: &str, environment: Environment<'_>) -> Result<(), String> {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                *text = expanded(text, path, environment)?;
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                expand(item, &format!("{path}[{index}]"), environment)?;
            }
        }
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                expand(member, &path, environment)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// Does the same, with an empty text in the place of each string that cannot be expanded.
pub fn expand_known(value: &mut Value, environment: Environment<'_>) {
    match value {
        Value::String(text) => *text = expanded(text, "", environment).unwrap_or_default(),
        Value::Array(items) => items.iter_mut().for_each(|item| expand_known(item, environment)),
        Value::Object(members) => members.values_mut().for_each(|member| expand_known(member, environment)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expanded(text: &str, path: &str, environment: Environment<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            out.push_str(&rest[..start]);
            out.push('{');
            rest = &rest[start + 2..];
            continue;
        }
        out.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let Some(end) = after.find('}') else {
            return Err(format!("{path}: '${{' has no closing '}}' (write '$${{' for a plain '${{')"));
        };
        let (name, default) = match after[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&after[..end], None),
        };
        let (name, default) = match after[..end].strip_prefix(SECRET_PREFIX) {
            // A secret has no default.
            Some(secret) if is_secret_name(secret) => (&after[..end], None),
            Some(_) => {
                return Err(format!(
                    "{path}: '${{secret:…}}' must hold the name of a stored secret, or WORKSPACE/NAME: letters, digits, '_', '-', '.'"
                ));
            }
            None => (name, default),
        };
        let is_secret = name.starts_with(SECRET_PREFIX);
        if !is_secret && (name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            return Err(format!("{path}: '${{…}}' must hold the name of an environment variable"));
        }
        match (environment(name).filter(|value| !(value.is_empty() && default.is_some())), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) if is_secret => {
                let secret = name.strip_prefix(SECRET_PREFIX).unwrap_or_default();
                return Err(format!("{path}: there is no stored secret {secret} (`codecall secret set {secret}`)"));
            }
            (None, None) => return Err(format!("{path}: the environment variable {name} is not set")),
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a text is `NAME` or `WORKSPACE/NAME`.
fn is_secret_name(text: &str) -> bool {
    let (workspace, name) = text.split_once('/').unwrap_or(("default", text));
    [workspace, name].into_iter().all(is_name)
}

/// Whether a text can be the name of a secret or of a workspace: 1 to 128 letters, digits, `_`, `-` and `.`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

//! `${NAME}` and `${NAME:-default}` in values. `$${` is a plain `${`.

use serde_json::Value;

/// Values of environment variables.
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
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("{path}: '${{…}}' must hold the name of an environment variable"));
        }
        match (environment(name).filter(|value| !(value.is_empty() && default.is_some())), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => return Err(format!("{path}: the environment variable {name} is not set")),
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

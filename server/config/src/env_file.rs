//! Files of environment variables, as `envFile` names them: a line `NAME=value` each.

use codecall_base::files;
use std::path::Path;

/// Reads a file.
///
/// # Errors
/// It cannot be read, or a line is not one of a variable. The message does not quote it.
pub fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let text = files::read_text(path, files::MAX_CONFIG_BYTES).map_err(|error| format!("cannot be read: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let problem = || format!("line {} is not NAME=value", index + 1);
        let (name, value) = line.split_once('=').ok_or_else(problem)?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(problem());
        }
        variables.push((name.to_owned(), unquoted(value.trim())));
    }
    Ok(variables)
}

/// A value without its quotes, or without a comment behind it. Escapes are those of line breaks, in double quotes.
fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        let Some(inner) = value.strip_prefix(quote) else { continue };
        if let Some(end) = inner.find(quote) {
            let inner = &inner[..end];
            return if quote == '"' { inner.replace("\\n", "\n").replace("\\r", "\r") } else { inner.to_owned() };
        }
    }
    value.split(" #").next().unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_variables() {
        let text = "\u{feff}# a comment\n\nA=1\nexport B = \"two words # no comment\" # a comment\nC='x\"y\\n'\nD=a=b # c\nE=\nF=\"1\\n2\"\n";
        let expected =
            [("A", "1"), ("B", "two words # no comment"), ("C", "x\"y\\n"), ("D", "a=b"), ("E", ""), ("F", "1\n2")];
        assert_eq!(parse(text).expect("valid"), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(parse("A=1\nsecret").expect_err("no variable"), "line 2 is not NAME=value");
    }
}

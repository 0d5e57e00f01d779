//! The place of an error in a file that may contain secrets: its line, with a caret below the column.
//!
//! The key at the beginning of the line is shown. Letters and digits of everything else are asterisks.

/// Maximum number of characters of an excerpt.
const MAX_CHARS: usize = 100;
/// Maximum length of a key that is shown, in characters.
const MAX_KEY_CHARS: usize = 48;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of the line, from 1.
    pub line: usize,
    /// The number of the character in the line, from 1.
    pub column: usize,
    /// Where the line begins, in bytes.
    start: usize,
}

impl Position {
    /// Returns the place of a byte.
    #[must_use]
    pub fn of(text: &str, byte: usize) -> Self {
        let before = super::truncate(text, byte);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[start..].chars().filter(|c| *c != '\r').count() + 1;
        Self { line: before.matches('\n').count() + 1, column, start }
    }
}

/// Returns the line of a place without its values, and a line with the caret below it.
#[must_use]
pub fn excerpt(text: &str, position: Position) -> String {
    let line = text[position.start..].lines().next().unwrap_or_default();
    let shown: Vec<char> = masked(line).collect();
    let column = position.column.saturating_sub(1).min(shown.len());
    let first = column.saturating_sub(MAX_CHARS / 2).min(shown.len().saturating_sub(MAX_CHARS));
    let last = shown.len().min(first + MAX_CHARS);
    let (before, after) = (if first > 0 { "…" } else { "" }, if last < shown.len() { "…" } else { "" });
    let part: String = shown[first..last].iter().collect();
    let number = position.line.to_string();
    let blank = " ".repeat(number.len());
    let indent = " ".repeat(before.chars().count() + column - first);
    format!("  {number} | {before}{part}{after}\n  {blank} | {indent}^")
}

/// Returns the characters of a line: those of its key, and of the rest only marks.
fn masked(line: &str) -> impl Iterator<Item = char> {
    let shown = key_chars(line);
    line.chars().enumerate().map(move |(at, c)| match c {
        c if c.is_whitespace() || c.is_control() => ' ',
        c if at < shown || c.is_ascii_punctuation() => c,
        _ => '*',
    })
}

/// Returns the number of characters at the beginning of a line that are its key, or the head of a table.
fn key_chars(line: &str) -> usize {
    let indent = line.chars().take_while(|c| c.is_whitespace()).count();
    let rest = line.trim_start();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let opening = rest.chars().take_while(|c| *c == '[').count();
    let quote = if opening == 0 { rest.chars().take_while(|c| *c == '"').count().min(1) } else { 0 };
    let begin = &rest[opening.max(quote)..];
    let name = begin.chars().take_while(|c| is_of_name(*c)).count();
    if name == 0
        || name > MAX_KEY_CHARS
        || !begin.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
    {
        return 0;
    }
    let end = &begin[name..];
    if opening > 0 {
        return if opening <= 2 && end.trim_end() == "]".repeat(opening) { line.chars().count() } else { 0 };
    }
    let Some(end) = end.strip_prefix(&"\""[..quote]) else { return 0 };
    let end = end.trim_start();
    // Text in base64 ends with these.
    let is_key = end.strip_prefix(['=', ':']).is_some_and(|value| !value.starts_with('=') && !value.is_empty());
    if is_key || (quote == 1 && end.starts_with(':')) { indent + quote + name } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, marked: &str) -> String {
        let position = Position::of(text, text.find(marked).expect("a part"));
        excerpt(text, position)
    }

    #[test]
    fn a_line_is_shown_without_values() {
        let text = "topK = 1\r\n[mcpServers.a]\r\nenv = { API_KEY = \"s3cret-w\u{f6}rd\" ]\r\n";
        assert_eq!(at(text, "1"), "  1 | topK = *\n    |        ^");
        assert_eq!(at(text, " ]"), "  3 | env = { ***_*** = \"******-****\" ]\n    |                                ^");
        assert_eq!(at(text, "mcpServers"), "  2 | [mcpServers.a]\n    |  ^");
        assert_eq!(at("{\n\t\"a\": tru,\n}", "tru"), "  2 |  \"a\": ***,\n    |       ^");
        assert_eq!(at("x", "x"), "  1 | *\n    | ^");
        assert_eq!(excerpt("", Position::of("", 0)), "  1 | \n    | ^");
        // A line of a key in several lines, and items of a list.
        for line in ["TWlJRXBBSUJBQUtDQVFFQQ==", "TWlJRXBBSUJB=", "\"TWl\", 5", "[\"TWl\"]", "TWl"] {
            let shown = at(line, line);
            assert!(!shown.contains("TWl"), "{shown}");
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let text = format!("{{\"a\": [{}]]}}", "1, ".repeat(1_000_000));
        let shown = at(&text, "]]");
        let (line, caret) = shown.split_once('\n').expect("two lines");
        assert!(line.chars().count() < 120 && line.starts_with("  1 | …"), "{shown}");
        let column = caret.chars().position(|c| c == '^').expect("a caret");
        assert_eq!(line.chars().nth(column), Some(']'), "{shown}");
    }
}

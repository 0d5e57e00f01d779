//! Signatures on one line, for lists of many tools.
//!
//! A line that leaves something out has `…` where it does, so a reader knows when to ask for the whole signature.

use super::comment::{comment, sentence};
use super::{Detail, Layout, MAX_PARTS, Map, Names, Value, Writer, list, name, target};
use std::collections::HashMap;

/// How much a line says of the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineDetail {
    /// Names and types in about 160 characters: the required parameters, and as many optional ones as there is room for.
    Capped,
    /// Names and types.
    Plain,
    /// Names, types, and a few words on each parameter.
    Hints,
}

/// Maximum length of the parameters of a [capped](LineDetail::Capped) line, in characters.
const MAX_CAPPED_CHARS: usize = 160;
/// Maximum length of the parameters of other lines, in characters. Longer ones are capped.
const MAX_CHARS: usize = 1_200;
/// Maximum length of all required parameters in a capped line, in characters. Where they are longer, their types are abbreviated.
const MAX_WHOLE_CHARS: usize = 400;
/// Maximum length of an abbreviated type of a required parameter, in characters.
const MAX_REQUIRED_CHARS: usize = 120;
/// Maximum length of the type of an optional parameter in a capped line, in characters.
const MAX_OPTIONAL_CHARS: usize = 40;
/// Maximum number of required parameters.
const MAX_REQUIRED: usize = 30;
/// Maximum length of the name of a parameter, in characters. One with a longer name is left out.
const MAX_NAME_CHARS: usize = 100;
/// Maximum length of the words on a parameter, in characters.
const MAX_HINT_CHARS: usize = 100;
/// Maximum depth of nested objects.
const DEPTH: usize = 4;
/// Maximum depth to which the schema of a result is read: references count, too.
const MAX_LEVEL: usize = 16;

/// Returns the parameters of a tool on one line: `{status?: "active"|"inactive", limit?: number}`; empty if there are none.
#[must_use]
pub fn parameters(input: &Value, detail: LineDetail) -> String {
    let Some(properties) = input.get("properties").and_then(Value::as_object).filter(|rows| !rows.is_empty()) else {
        let whole = one_line_type(input, input, DEPTH);
        return match whole.as_str() {
            "{}" | "unknown" | "object" | "Record<string, unknown>" => String::new(),
            _ => shortened(whole, MAX_CAPPED_CHARS),
        };
    };
    let required = required(input);
    // Of what does not fit, the words go first.
    let details = [LineDetail::Hints, LineDetail::Plain].into_iter().filter(|written| *written <= detail);
    let mut written = details.map(|detail| {
        let rows =
            properties.iter().map(|(key, schema)| row(input, key, schema, required.contains(&key.as_str()), detail));
        format!("{{{}}}", rows.collect::<Vec<_>>().join(", "))
    });
    let fitting = written.find(|text| text.chars().count() <= MAX_CHARS);
    fitting.unwrap_or_else(|| capped(input, properties, &required))
}

/// Returns the type of a result on one line, in at most `max_chars` characters. Where the whole type is longer, it is an outline: the
/// names of the members, such as `{users: {id, name}[], total}`.
#[must_use]
pub fn result_type(schema: &Value, max_chars: usize) -> String {
    let whole = one_line_type(schema, schema, DEPTH);
    if whole.chars().count() <= max_chars {
        return whole;
    }
    let outlines = (1..=DEPTH).rev().filter_map(|depth| outline(schema, schema, depth, max_chars, 0));
    let fitting = outlines.map(|text| one_line(&text)).filter(|text| text.chars().count() <= max_chars);
    // The longest one says most: a deep outline may have no room for the names at its top.
    fitting.max_by_key(|text| text.chars().count()).unwrap_or_else(|| shortened(whole, max_chars))
}

/// Returns the names of the members of an object, or of the objects in a list, down to a depth; `None` for other values. An object has
/// as many names as `max_chars` allow.
fn outline(root: &Value, schema: &Value, depth: usize, max_chars: usize, level: usize) -> Option<String> {
    let members = schema.as_object().filter(|_| level < MAX_LEVEL)?;
    let within = |schema: &Value| outline(root, schema, depth, max_chars, level + 1);
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        return within(target(root, reference)?);
    }
    if let Some(items) = members.get("items") {
        return Some(format!("{}[]", within(items)?));
    }
    let Some(properties) = members.get("properties").and_then(Value::as_object).filter(|rows| !rows.is_empty()) else {
        // Of an object or null, the object.
        return ["anyOf", "oneOf", "allOf"].iter().find_map(|key| list(members, key).iter().find_map(within));
    };
    if depth == 0 {
        return Some("{…}".into());
    }
    let mut left = max_chars.saturating_sub(7);
    let mut rows = Vec::new();
    for (key, schema) in properties {
        let inner = outline(root, schema, depth - 1, max_chars, level + 1);
        let row = inner.map_or_else(|| name(key), |inner| format!("{}: {inner}", name(key)));
        match left.checked_sub(row.chars().count() + 2) {
            Some(rest) => left = rest,
            None => {
                rows.push("…".to_owned());
                break;
            }
        }
        rows.push(row);
    }
    Some(format!("{{{}}}", rows.join(", ")))
}

/// Returns the first sentence of a description on one line, in at most `max_chars` characters.
#[must_use]
pub fn first_sentence(description: &str, max_chars: usize) -> String {
    // Further lines are never part of the first sentence, whatever ends the first one.
    let paragraph = description.trim().split(['\n', '\r', '\u{2028}', '\u{2029}']).next().unwrap_or_default();
    let end = paragraph.match_indices(['.', '!', '?']).map(|(at, sign)| at + sign.len());
    let end = end
        .filter(|at| paragraph[*at..].starts_with(char::is_whitespace))
        .find(|at| !is_abbreviation(&paragraph[..*at]));
    one_line(&sentence(&paragraph[..end.unwrap_or(paragraph.len())], max_chars))
}

fn is_abbreviation(text: &str) -> bool {
    ["e.g.", "i.e.", "etc.", "vs.", "cf."].iter().any(|short| text.ends_with(short))
}

fn required(input: &Value) -> Vec<&str> {
    input.as_object().map_or(&[][..], |members| list(members, "required")).iter().filter_map(Value::as_str).collect()
}

/// Names and types of the parameters, as many as fit: all required ones, as no call is right without them, then the first optional
/// ones.
fn capped(input: &Value, properties: &Map<String, Value>, required: &[&str]) -> String {
    let rows = properties.iter().map(|(key, schema)| {
        let is_required = required.contains(&key.as_str());
        (key, is_required, row(input, key, schema, is_required, LineDetail::Plain))
    });
    let rows: Vec<(&String, bool, String)> = rows.collect();
    let length = |rows: &[String]| rows.iter().map(|row| row.chars().count() + 2).sum::<usize>() + 2;
    let whole: Vec<String> = rows.iter().map(|(_, _, row)| row.clone()).collect();
    if length(&whole) <= MAX_CAPPED_CHARS {
        return format!("{{{}}}", whole.join(", "));
    }
    let shown = |wanted: bool, max: usize| {
        let rows = rows
            .iter()
            .filter(move |(key, is_required, _)| *is_required == wanted && key.chars().count() <= MAX_NAME_CHARS);
        rows.map(move |(key, is_required, row)| {
            let mark = if *is_required { "" } else { "?" };
            let head = one_line(&format!("{}{mark}: ", name(key)));
            let kind = row.strip_prefix(&head).unwrap_or_default();
            format!("{head}{}", shortened(kind.to_owned(), max))
        })
    };
    // Few tools have required parameters that take more than a line.
    let maxima = [MAX_WHOLE_CHARS, MAX_REQUIRED_CHARS, MAX_OPTIONAL_CHARS];
    let mut required = maxima.map(|max| shown(true, max).take(MAX_REQUIRED).collect::<Vec<_>>()).into_iter();
    let fitting = required.find(|rows| length(rows) <= MAX_WHOLE_CHARS);
    let mut kept = fitting.unwrap_or_else(|| shown(true, MAX_OPTIONAL_CHARS).take(MAX_REQUIRED).collect());
    for row in shown(false, MAX_OPTIONAL_CHARS) {
        if length(&kept) + row.chars().count() + 2 > MAX_CAPPED_CHARS {
            break;
        }
        kept.push(row);
    }
    if kept.len() < rows.len() {
        kept.push("…".into());
    }
    format!("{{{}}}", kept.join(", "))
}

fn row(input: &Value, key: &str, schema: &Value, is_required: bool, detail: LineDetail) -> String {
    let mark = if is_required { "" } else { "?" };
    let kind = one_line_type(input, schema, DEPTH);
    let hint = match detail {
        LineDetail::Hints => first_sentence(&comment(schema), MAX_HINT_CHARS).replace("*/", "* /"),
        LineDetail::Plain | LineDetail::Capped => String::new(),
    };
    let name = one_line(&name(key));
    match hint.is_empty() {
        true => format!("{name}{mark}: {kind}"),
        false => format!("{name}{mark}: {kind} /* {hint} */"),
    }
}

fn one_line_type(root: &Value, schema: &Value, depth: usize) -> String {
    let mut names = Names::default();
    let detail = Detail { depth, layout: Layout::Dense };
    let mut writer = Writer { shared: HashMap::new(), left: MAX_PARTS, ..Writer::new(root, detail, &mut names, "") };
    let depth = usize::from(!std::ptr::eq(root, schema));
    one_line(&writer.write(schema, depth, depth).text)
}

/// Abbreviates a type that is longer than `max_chars`.
fn shortened(kind: String, max_chars: usize) -> String {
    if kind.chars().count() <= max_chars {
        return kind;
    }
    match (kind.starts_with('{'), kind.ends_with("[]")) {
        (true, true) => "{…}[]".into(),
        (true, false) if kind.ends_with('}') => "{…}".into(),
        _ => {
            let head: String = kind.chars().take(max_chars - 1).collect();
            // A union is cut between its members.
            let head = head.rsplit_once('|').map_or(head.as_str(), |(head, _)| head);
            format!("{}…", head.trim_end())
        }
    }
}

/// A text without ends of lines and other control characters, which names and constants of a schema may have.
fn one_line(text: &str) -> String {
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.replace(is_break, " ")
}

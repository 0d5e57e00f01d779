//! Comments on properties: their descriptions, and what their types cannot express.

use serde_json::{Map, Value};

/// Maximum length of a description, in characters. A longer one is truncated after a word.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// Maximum number of sentences that are kept of the rest of a description, and their maximum length in characters.
const MAX_FACTS: usize = 2;
const MAX_FACT_CHARS: usize = 120;
/// Words of sentences that say which values are allowed.
const FACTS: &[&str] = &[
    "allowed values",
    "at least",
    "at most",
    "comma-separated",
    "e.g.",
    "for example",
    " format",
    "in bytes",
    "in days",
    "in hours",
    "in minutes",
    "in seconds",
    "iso 8601",
    "maximum",
    "milliseconds",
    "minimum",
    "must be",
    "one of",
    "percent",
    "rfc 3339",
    " utc",
    "valid values",
    "yyyy",
];
/// Maximum length of a pattern or default that is worth its tokens, in bytes.
const MAX_VALUE_BYTES: usize = 40;

/// Returns the comment on a schema, on one line; empty if there is none.
pub fn comment(schema: &Value) -> String {
    let Some(members) = schema.as_object() else { return String::new() };
    let text = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = with_facts(text);
    let facts = facts(members, &text);
    match (text.is_empty(), facts.is_empty()) {
        (_, true) => text,
        (true, false) => facts.join(", "),
        (false, false) => format!("{text} ({})", facts.join(", ")),
    }
}

/// Returns a description on one line. Of a long one this is the beginning, and what it says of units, formats and allowed values.
fn with_facts(text: &str) -> String {
    let mut short = sentence(text, MAX_DESCRIPTION_CHARS);
    let Some(kept) = short.strip_suffix('…').map(str::len) else { return short };
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let rest = whole.get(kept..).unwrap_or_default();
    // The first sentence of the rest may have begun before.
    let sentences = rest.split_inclusive(". ").map(str::trim);
    for fact in sentences.filter(|sentence| states_fact(sentence)).take(MAX_FACTS) {
        short.push(' ');
        short.push_str(&sentence(fact.trim_start_matches([',', '.', ';', ':', ' ']), MAX_FACT_CHARS));
    }
    short
}

/// Whether a sentence says what values are allowed, in which unit or format.
fn states_fact(sentence: &str) -> bool {
    let words = format!(" {}", sentence.to_lowercase());
    FACTS.iter().any(|fact| words.contains(fact))
}

/// Returns a text on one line, truncated to `max_chars` characters.
pub fn sentence(text: &str, max_chars: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= max_chars {
        return text;
    }
    let head: String = text.chars().take(max_chars).collect();
    let words = head.rsplit_once(' ').map_or(head.as_str(), |(words, _)| words);
    format!("{}…", words.trim_end_matches([',', '.', ';', ':']))
}

/// Returns the facts that the text does not contain.
fn facts(members: &Map<String, Value>, text: &str) -> Vec<String> {
    let mut facts = Vec::new();
    let number = |key: &str| members.get(key).filter(|value| value.is_number()).map(Value::to_string);
    let least = number("minimum").or_else(|| number("exclusiveMinimum").map(|least| format!("> {least}")));
    let most = number("maximum").or_else(|| number("exclusiveMaximum").map(|most| format!("< {most}")));
    facts.extend(range(least, most));
    for (least, most, unit) in [("minLength", "maxLength", "characters"), ("minItems", "maxItems", "items")] {
        // Readers assume that a value is not empty.
        let least = number(least).filter(|least| least != "0" && least != "1");
        facts.extend(range(least, number(most)).map(|range| format!("{range} {unit}")));
    }
    if let Some(format) = members.get("format").and_then(Value::as_str)
        && !matches!(format, "int32" | "int64" | "float" | "double")
    {
        facts.push(format.to_owned());
    }
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
        && pattern.len() <= MAX_VALUE_BYTES
    {
        facts.push(format!("/{pattern}/"));
    }
    if let Some(default) = members.get("default").filter(|default| !default.is_null()).map(Value::to_string)
        && default.len() <= MAX_VALUE_BYTES
        && !text.to_lowercase().contains("default")
    {
        facts.push(format!("default {default}"));
    }
    facts
}

/// Bounds of JavaScript's own numbers are none.
fn range(least: Option<String>, most: Option<String>) -> Option<String> {
    let is_one = |bound: &String| !bound.contains("9007199254740991") && !bound.contains("e+");
    match (least.filter(is_one), most.filter(is_one)) {
        (Some(least), Some(most)) if !least.starts_with('>') && !most.starts_with('<') => {
            Some(format!("{least}–{most}"))
        }
        (Some(least), Some(most)) => Some(format!("{least}, {most}")),
        (Some(least), None) if least.starts_with('>') => Some(least),
        (Some(least), None) => Some(format!("≥ {least}")),
        (None, Some(most)) if most.starts_with('<') => Some(most),
        (None, Some(most)) => Some(format!("≤ {most}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_of_a_long_description_stay() {
        let filler =
            "Limits the entries that the service looks at while it makes the list, which other settings may lower. ";
        let text =
            format!("{filler}{filler}Given in milliseconds. Set by hand. Must be one of 100, 200 or 500. {filler}");
        let written = comment(&json!({"description": text}));
        assert!(written.ends_with("… Given in milliseconds. Must be one of 100, 200 or 500."), "{written}");
        assert_eq!(comment(&json!({"description": "In seconds."})), "In seconds.");
        let plain = comment(&json!({"description": filler.repeat(3)}));
        assert!(plain.ends_with('…') && plain.chars().count() <= MAX_DESCRIPTION_CHARS + 1, "{plain}");
    }
}

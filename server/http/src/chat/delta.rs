//! Secrets in a stream of chunks of a model: a secret may be split over several of them.

use codecall_base::redact::{Redactor, StreamRedactor};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Redacts the texts of a stream. The end of a text leaves with the chunk that ends its choice.
#[derive(Default)]
pub struct DeltaRedactor {
    /// By choice and place.
    texts: BTreeMap<(u64, Place), StreamRedactor>,
    /// The members of the last chunk besides its choices.
    envelope: Map<String, Value>,
}

/// A text of a choice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A member of its delta, such as `content`.
    Member(String),
    /// The arguments of a call, by its number.
    Arguments(u64),
}

/// Members of a delta that come whole.
const WHOLE: [&str; 1] = ["role"];

impl DeltaRedactor {
    /// Redacts a chunk in place.
    pub fn redact(&mut self, redactor: &Redactor, chunk: &mut Value) {
        // What comes whole: errors, names, models.
        redactor.redact_value(chunk);
        if let Value::Object(members) = &*chunk {
            let others = members.iter().filter(|(name, _)| !matches!(name.as_str(), "choices" | "usage"));
            self.envelope = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        for choice in chunk["choices"].as_array_mut().into_iter().flatten() {
            let index = choice["index"].as_u64().unwrap_or_default();
            let has_ended = !choice["finish_reason"].is_null();
            if !choice["delta"].is_object() {
                if !has_ended {
                    continue;
                }
                choice["delta"] = json!({});
            }
            let Some(delta) = choice["delta"].as_object_mut() else { continue };
            for (name, value) in delta.iter_mut().filter(|(name, _)| !WHOLE.contains(&name.as_str())) {
                if let Value::String(text) = value {
                    let stream = self.texts.entry((index, Place::Member(name.clone()))).or_default();
                    *text = stream.push(redactor, text);
                }
            }
            for call in delta.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                let place = Place::Arguments(call["index"].as_u64().unwrap_or_default());
                if let Some(Value::String(text)) = call.pointer_mut("/function/arguments") {
                    *text = self.texts.entry((index, place)).or_default().push(redactor, text);
                }
            }
            if has_ended {
                self.end(redactor, index, delta);
            }
        }
    }

    /// Returns a chunk with what was held back of choices that have not ended; `None`: nothing was.
    pub fn rest(&mut self, redactor: &Redactor) -> Option<Value> {
        let mut indexes: Vec<u64> = self.texts.keys().map(|(index, _)| *index).collect();
        indexes.dedup();
        let choice = |index: u64| {
            let mut delta = Map::new();
            self.end(redactor, index, &mut delta);
            (!delta.is_empty()).then(|| json!({"index": index, "delta": delta, "finish_reason": null}))
        };
        let choices: Vec<Value> = indexes.into_iter().filter_map(choice).collect();
        if choices.is_empty() {
            return None;
        }
        let mut chunk = std::mem::take(&mut self.envelope);
        chunk.insert("choices".into(), choices.into());
        Some(Value::Object(chunk))
    }

    /// Adds the rest of the texts of a choice to a delta.
    fn end(&mut self, redactor: &Redactor, index: u64, delta: &mut Map<String, Value>) {
        let ended: Vec<(u64, Place)> = self.texts.keys().filter(|(of, _)| *of == index).cloned().collect();
        for key in ended {
            let rest = self.texts.remove(&key).map(|mut text| text.finish(redactor)).unwrap_or_default();
            if rest.is_empty() {
                continue;
            }
            match key.1 {
                Place::Member(name) => match delta.entry(name).or_insert_with(|| "".into()) {
                    Value::String(text) => text.push_str(&rest),
                    other => *other = rest.into(),
                },
                Place::Arguments(call) => add_arguments(delta, call, &rest),
            }
        }
    }
}

/// Adds text to the arguments of a call of a delta.
fn add_arguments(delta: &mut Map<String, Value>, index: u64, rest: &str) {
    let calls = delta.entry("tool_calls").or_insert_with(|| json!([]));
    let Some(calls) = calls.as_array_mut() else { return };
    let own = calls.iter_mut().find(|call| call["index"].as_u64().unwrap_or_default() == index);
    match own.and_then(|call| call.pointer_mut("/function/arguments")) {
        Some(Value::String(text)) => text.push_str(rest),
        Some(other) => *other = rest.into(),
        None => calls.push(json!({"index": index, "function": {"arguments": rest}})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_split_does_not_leave() {
        let redactor = Redactor::new(["late-Zq3/7+x&9Kd_5w"]);
        let mut stream = DeltaRedactor::default();
        let (mut content, mut arguments) = (String::new(), String::new());
        let mut add = |chunk: &Value| {
            content.push_str(chunk.pointer("/choices/0/delta/content").and_then(Value::as_str).unwrap_or_default());
            let text = "/choices/0/delta/tool_calls/0/function/arguments";
            arguments.push_str(chunk.pointer(text).and_then(Value::as_str).unwrap_or_default());
        };
        let pieces = ["The key is la", "te-Zq3/7", "+x&9K", "d_5w, take ca", "re"];
        for piece in pieces {
            let call = json!({"index": 0, "function": {"arguments": piece}});
            let delta = json!({"content": piece, "tool_calls": [call]});
            let mut chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
            stream.redact(&redactor, &mut chunk);
            add(&chunk);
        }
        let mut unended = DeltaRedactor::default();
        unended.redact(&redactor, &mut json!({"choices": [{"delta": {"content": "rest"}}]}));
        assert_eq!(
            unended.rest(&redactor).expect("text is held back")["choices"][0]["delta"],
            json!({"content": "rest"})
        );
        let mut last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        stream.redact(&redactor, &mut last);
        add(&last);
        assert_eq!(stream.rest(&redactor), None);
        let expected = "The key is [secret], take care";
        assert_eq!((content.as_str(), arguments.as_str()), (expected, expected));
    }
}

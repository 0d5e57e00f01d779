//! Computes the embedding of a tool: its stems, with their weights before rarity.
//!
//! This is BM25F. The weight of a stem depends on the field in which it occurs, and further occurrences count less and
//! less, over all fields together. The crate `bm25` has only one field. So its embedders count and normalize by length
//! for each
//! field, and the saturation of the sum is computed here.

use super::words::Stems;
use bm25::{Embedder, EmbedderBuilder, Embedding, TokenEmbedding};
use codecall_base::text::truncate;
use codecall_base::tool::ToolDefinition;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// The saturation of further occurrences of a stem, over all fields.
const K1: f32 = 2.5;
/// The saturation within a field: so large that there is none.
const UNLIMITED: f32 = 1e6;
/// Maximum lengths of texts that are indexed, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4_000;
const MAX_SUMMARY_BYTES: usize = 240;
const MAX_NAME_BYTES: usize = 200;
const MAX_PARAMETER_BYTES: usize = 200;

/// A part of a tool with a text.
struct Field {
    /// The weight of its words.
    weight: f32,
    embedder: Embedder<u32, Stems>,
}

impl Field {
    /// Creates a field. `usual` is its average number of words, `slope` how much weight a longer one loses (0 to 1).
    fn new(weight: f32, usual: f32, slope: f32) -> Self {
        Self { weight, embedder: EmbedderBuilder::with_avgdl(usual).b(slope).k1(UNLIMITED).build() }
    }
}

struct Fields {
    name: Field,
    /// And tags.
    title: Field,
    /// The id of the app and the title of its server: the same for all its tools.
    app: Field,
    /// The first sentence of a description. The rest is often long, and about all sorts of things.
    summary: Field,
    rest: Field,
    /// Names and descriptions of parameters.
    parameters: Field,
}

static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields {
    name: Field::new(4.0, 3.0, 0.3),
    title: Field::new(1.5, 3.0, 0.3),
    app: Field::new(1.5, 3.0, 0.0),
    summary: Field::new(2.0, 10.0, 0.5),
    rest: Field::new(0.2, 30.0, 0.7),
    parameters: Field::new(0.5, 20.0, 0.7),
});

/// Returns the embedding of a tool. `app_title` is the title of its app.
pub fn embedding(tool: &ToolDefinition, app_title: Option<&str>) -> Embedding {
    let mut sums: BTreeMap<u32, f32> = BTreeMap::new();
    let mut add = |field: &Field, texts: &[&str]| {
        // A stem is returned once per occurrence, each time with the value of all of them.
        let tokens = field.embedder.embed(&texts.join("\n")).0;
        let values: HashMap<u32, f32> = tokens.into_iter().map(|token| (token.index, token.value)).collect();
        for (index, value) in values {
            *sums.entry(index).or_default() += field.weight * value;
        }
    };
    let description = truncate(tool.description.trim(), MAX_DESCRIPTION_BYTES);
    let (summary, rest) = description.split_at(summary(description));
    let titles = tool.title.iter().chain(&tool.tags).map(|text| truncate(text, MAX_NAME_BYTES));
    add(&FIELDS.name, &[truncate(&tool.name, MAX_NAME_BYTES)]);
    add(&FIELDS.title, &titles.collect::<Vec<_>>());
    add(&FIELDS.app, &[&tool.app, truncate(app_title.unwrap_or_default(), MAX_NAME_BYTES)]);
    add(&FIELDS.summary, &[summary]);
    add(&FIELDS.rest, &[rest]);
    add(&FIELDS.parameters, &parameters(tool));
    Embedding(sums.into_iter().map(|(index, sum)| TokenEmbedding { index, value: sum / (sum + K1) }).collect())
}

/// Returns the names and descriptions of the parameters.
fn parameters(tool: &ToolDefinition) -> Vec<&str> {
    let mut texts = Vec::new();
    if let Some(Value::Object(properties)) = tool.input_schema.get("properties") {
        for (name, schema) in properties {
            texts.push(truncate(name, MAX_NAME_BYTES));
            if let Some(text) = schema.get("description").and_then(Value::as_str) {
                texts.push(truncate(text, MAX_PARAMETER_BYTES));
            }
        }
    }
    texts
}

/// Returns where the first sentence ends, in bytes.
pub fn summary(text: &str) -> usize {
    let max = truncate(text, MAX_SUMMARY_BYTES).len();
    let sentence = text.find(". ").map_or(text.len(), |at| at + 1);
    let line = text.find('\n').unwrap_or(text.len());
    max.min(sentence).min(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_the_summary() {
        for (text, expected) in [
            ("Sends mail. Needs a key.", "Sends mail."),
            ("Sends mail\nNeeds a key", "Sends mail"),
            ("v1.2 of it", "v1.2 of it"),
            ("", ""),
        ] {
            assert_eq!(&text[..summary(text)], expected);
        }
        assert_eq!(summary(&"é".repeat(500)), MAX_SUMMARY_BYTES, "cut between characters");
    }
}

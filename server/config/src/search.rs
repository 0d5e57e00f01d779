//! `search`: how tools are found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How tools are found.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SearchConfig {
    /// How tools are ranked.
    pub strategy: Strategy,
    /// The folder of a sentence transformer: `config.json`, `tokenizer.json`, `model.safetensors`.
    pub model_dir: Option<PathBuf>,
    /// Least similarity (cosine) of a tool and a query for a match by meaning.
    #[schemars(range(min = 0, max = 1))]
    pub similarity_threshold: f64,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { strategy: Strategy::default(), model_dir: None, similarity_threshold: 0.2 }
    }
}

impl std::fmt::Debug for SearchConfig {
    /// Without the paths, as `${NAME}` in them may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchConfig")
            .field("strategy", &self.strategy)
            .field("similarity_threshold", &self.similarity_threshold)
            .finish_non_exhaustive()
    }
}

impl SearchConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.strategy != Strategy::Bm25 && self.model_dir.is_none() {
            return Err("search.modelDir: this strategy needs a folder with config.json, tokenizer.json and \
                        model.safetensors of a sentence transformer"
                .into());
        }
        Ok(())
    }
}

/// How tools are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// By words.
    #[default]
    #[schemars(extend("x-aliases" = ["tfidf"]))]
    Bm25,
    /// By meaning, with the vectors of a model. Needs a build with the feature `embeddings`.
    Embedding,
    /// By words and meaning. Needs a build with the feature `embeddings`.
    Hybrid,
}

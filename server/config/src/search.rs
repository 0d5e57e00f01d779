//! `search`: how tools are found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How tools are found.
#[derive(Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SearchConfig {
    /// How tools are ranked.
    pub strategy: Strategy,
    /// The folder of a sentence transformer: `config.json`, `tokenizer.json`, `model.safetensors`. Without it, the model of
    /// the package `codecall-model` (PyPI) or `@codecall/model` (npm), if one is installed.
    pub model_dir: Option<PathBuf>,
    /// Least score of a tool for a query. By words: the score of the answer. By meaning: the similarity (cosine), and in a
    /// search by both that of a tool without a word of the query. By default 0.2 by meaning, and no threshold by words.
    #[schemars(range(min = 0, max = 1))]
    pub similarity_threshold: Option<f64>,
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
    /// The least cosine of a tool that is found by meaning alone, unless the configuration sets it.
    pub const DEFAULT_COSINE: f64 = 0.2;

    pub(super) fn check(&self) -> Result<(), String> {
        let needs_model = matches!(self.strategy, Strategy::Embedding | Strategy::Hybrid);
        if needs_model && self.model().is_none() {
            return Err("search.modelDir: this strategy needs a folder with config.json, tokenizer.json and \
                        model.safetensors of a sentence transformer; the package codecall-model of PyPI and \
                        @codecall/model of npm have one. A program that is built from source needs the feature embeddings, too"
                .into());
        }
        Ok(())
    }

    /// Returns the folder of the model: that of the configuration, else the one that is installed.
    #[must_use]
    pub fn model(&self) -> Option<PathBuf> {
        self.model_dir.clone().or_else(installed_model)
    }
}

/// The variable in which the launcher of the npm package names the folder of an installed model.
pub const INSTALLED_MODEL_VARIABLE: &str = "CODECALL_INSTALLED_MODEL";

/// Returns the folder of the model that is installed with the program. The variable names it; packages of Python
/// install it as `share/codecall/model` beside the folder of the program.
fn installed_model() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(INSTALLED_MODEL_VARIABLE).filter(|folder| !folder.is_empty()) {
        return Some(folder.into());
    }
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?.parent()?.join("share/codecall/model");
    folder.join("config.json").is_file().then_some(folder)
}

/// How tools are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// By words and meaning if there is a model and the program has the feature `embeddings`, as packages have; else by words.
    #[default]
    Auto,
    /// By words.
    #[schemars(extend("x-aliases" = ["tfidf"]))]
    Bm25,
    /// By meaning, with the vectors of a model. Needs a build with the feature `embeddings`.
    Embedding,
    /// By words and meaning. Needs a build with the feature `embeddings`.
    Hybrid,
}

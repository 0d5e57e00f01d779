//! `model`: the model server behind `/v1/chat/completions`.

use super::duration::Milliseconds;
use super::mcp_servers::check_url;
use super::secrets::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The model server that `/v1/chat/completions` passes requests to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ModelConfig {
    /// Its address without `/chat/completions`: `https://api.openai.com/v1`, `http://127.0.0.1:11434/v1`.
    #[schemars(extend("x-secret" = "address"))]
    pub url: Option<Secret>,
    /// Its key, sent as `Authorization: Bearer …`.
    pub key: Option<Secret>,
    /// Additional headers of every request.
    #[schemars(extend("x-secret" = "headers"))]
    pub headers: BTreeMap<String, Secret>,
    /// How long it may send nothing (status 504).
    #[serde(rename = "timeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 1_000, max = 3_600_000))]
    pub timeout: Duration,
    /// How often it may be asked for one request: code that failed, or that needed no tool of the client,
    /// is sent back to it. In the last turn it may not write code.
    #[schemars(range(min = 1, max = 100))]
    pub max_turns: usize,
    /// Longest result of a code block in bytes. Instead of a longer one the model gets an error.
    pub max_result_bytes: u64,
    /// Longest answer of the model in bytes.
    #[schemars(range(min = 1024, max = 1 << 30))]
    pub max_answer_bytes: usize,
    /// Whether answers contain the messages `code` and `code_result`. A request can override it with
    /// `"codecall": {"code_messages": true}`.
    pub code_messages: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            url: None,
            key: None,
            headers: BTreeMap::new(),
            timeout: Duration::from_secs(300),
            max_turns: 10,
            max_result_bytes: 64 * 1024,
            max_answer_bytes: 16 * 1024 * 1024,
            code_messages: false,
        }
    }
}

impl ModelConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        self.url.as_ref().map_or(Ok(()), |url| check_url("model.url", url))
    }
}

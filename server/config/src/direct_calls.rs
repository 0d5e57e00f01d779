//! `directCalls`: tool calls without a script.

use codecall_base::tool::ToolFilter;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tools that `codecall_invoke` may call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct DirectCalls {
    /// Whether the tool `codecall_invoke` exists.
    pub enabled: bool,
    /// Names and patterns of the tools that it may call; `*` stands for any text.
    #[schemars(extend("x-default" = "all"))]
    pub allowed_tools: Option<Vec<String>>,
    /// Narrows `allowedTools` further.
    pub filter: ToolFilter,
}

impl Default for DirectCalls {
    fn default() -> Self {
        Self { enabled: true, allowed_tools: None, filter: ToolFilter::default() }
    }
}

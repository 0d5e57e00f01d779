//! Tools that exist and cannot be used, such as script tools that do not parse: what clients learn of them.

use super::{Catalogue, Policy};
use codecall_base::tool::{ToolDefinition, ToolError};
use codecall_upstream::BrokenTool;
use serde_json::json;
use std::sync::Arc;

/// A tool that cannot be used, and its app.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The id of its app.
    pub app: String,
    /// The tool.
    pub tool: BrokenTool,
}

impl Broken {
    /// Returns its full name.
    #[must_use]
    pub fn full_name(&self) -> String {
        ToolDefinition { app: self.app.clone(), name: self.tool.name.clone(), ..ToolDefinition::default() }.full_name()
    }

    /// Returns why it cannot be used, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("Tool '{}' cannot be used: {}", self.full_name(), self.tool.reason)
    }

    /// Returns the error of its calls.
    #[must_use]
    pub fn to_error(&self) -> ToolError {
        let details = json!({"file": self.tool.file, "diagnostics": self.tool.diagnostics});
        ToolError { details: Some(details.to_string()), ..ToolError::new(self.tool.code.as_str(), self.reason()) }
    }
}

impl Catalogue {
    /// Returns the tools that cannot be used and have no good version, of those that would exist for who uses this
    /// catalogue.
    #[must_use]
    pub fn broken_tools(&self) -> Vec<Broken> {
        let redactor = self.secrets.redactor();
        let policy = Policy::new(&self.policy, &redactor);
        let mut found = Vec::new();
        for source in &self.sources {
            for tool in source.upstream.broken_tools().into_iter().filter(|tool| !tool.has_good_version) {
                let definition = Arc::new(ToolDefinition {
                    app: source.upstream.app().to_owned(),
                    name: tool.name.clone(),
                    source: source.upstream.source(),
                    ..ToolDefinition::default()
                });
                if let Some(placed) = policy.place(&source.filter, &definition) {
                    found.push(Broken { app: placed.definition.app.clone(), tool });
                }
            }
        }
        found
    }

    /// Returns such a tool by any spelling of its name.
    #[must_use]
    pub fn broken_tool(&self, name: &str) -> Option<Broken> {
        let spelled = |name: &str| name.replace([':', '.'], "_");
        let wanted = spelled(name);
        self.broken_tools().into_iter().find(|tool| spelled(&tool.full_name()) == wanted || tool.tool.name == name)
    }
}

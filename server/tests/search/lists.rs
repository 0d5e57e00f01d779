//! The lists of tools of real servers, as upstreams that are only lists.

use codecall::catalogue::Catalogue;
use codecall::config::ToolPolicy;
use codecall::tool::{ToolDefinition, ToolError, ToolFilter, ToolResult};
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

struct Listed {
    app: String,
    title: Option<String>,
    tools: Vec<Arc<ToolDefinition>>,
}

impl Upstream for Listed {
    fn app(&self) -> &str {
        &self.app
    }

    fn source(&self) -> &'static str {
        "mcp"
    }

    fn title(&self) -> Option<String> {
        self.title.clone()
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.clone()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async { Err(ToolError::new("TOOL_EXECUTION_ERROR", "only a list")) })
    }
}

/// Returns all lists of the folder `tools`, sorted by app.
pub fn files(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    let read = |path| serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
    paths.into_iter().map(read).collect()
}

/// Returns a catalogue of these lists, repeated under other names until there are `most` tools.
pub fn catalogue(files: &[Value], most: usize) -> Catalogue {
    let mut left = most;
    let mut upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)> = Vec::new();
    for round in 0.. {
        for file in files {
            if left == 0 {
                return Catalogue::new(upstreams, ToolPolicy::default(), Arc::default());
            }
            let name = file["app"].as_str().expect("a name");
            let app = if round == 0 { name.to_owned() } else { format!("{name}{round}") };
            let rows = file["tools"].as_array().expect("a list").iter().take(left);
            let tools: Vec<Arc<ToolDefinition>> = rows.map(|row| Arc::new(tool(&app, row))).collect();
            left -= tools.len();
            let server = &file["server"];
            let title = server["title"].as_str().or(server["name"].as_str()).map(str::to_owned);
            upstreams.push((Arc::new(Listed { app, title, tools }), ToolFilter::default()));
        }
    }
    unreachable!("the loop ends with the tools")
}

fn tool(app: &str, row: &Value) -> ToolDefinition {
    ToolDefinition {
        app: app.to_owned(),
        name: row["name"].as_str().expect("a name").to_owned(),
        title: row["title"].as_str().map(str::to_owned),
        description: row["description"].as_str().unwrap_or_default().to_owned(),
        input_schema: row["inputSchema"].clone(),
        source: "mcp",
        ..ToolDefinition::default()
    }
}

//! Tools that are functions of the embedding program.

use crate::{BoxFuture, Upstream, UpstreamCall};
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use indexmap::IndexMap;
use serde_json::Value;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

type Function = dyn Fn(UpstreamCall) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// An app whose tools are functions.
///
/// ```
/// use codecall_upstream::inline::Inline;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
/// let users = Inline::new("users").tool("get", "Get a user", schema, |call| async move {
///     Ok(json!({"id": call.input["id"], "name": "Ada"}))
/// });
/// # let _ = users;
/// ```
#[derive(Clone, Default)]
pub struct Inline {
    app: String,
    /// By full name, in the order of insertion.
    tools: IndexMap<String, (Arc<ToolDefinition>, Arc<Function>)>,
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.keys().collect::<Vec<_>>();
        f.debug_struct("Inline").field("app", &self.app).field("tools", &tools).finish()
    }
}

impl Inline {
    /// Creates an app without tools.
    #[must_use]
    pub fn new(app: impl Into<String>) -> Self {
        Self { app: app.into(), tools: IndexMap::new() }
    }

    /// Adds a tool. Dropping the future cancels the call.
    #[must_use]
    pub fn tool<F, R, T>(self, name: &str, description: &str, input_schema: Value, function: F) -> Self
    where
        F: Fn(UpstreamCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolError>> + Send + 'static,
        T: Into<ToolResult>,
    {
        let definition = ToolDefinition {
            app: self.app.clone(),
            name: name.into(),
            description: description.into(),
            input_schema,
            ..ToolDefinition::default()
        };
        self.define(definition, function)
    }

    /// Adds a tool with a full definition. It replaces a tool of the same name, and may belong to another app.
    #[must_use]
    pub fn define<F, R, T>(mut self, definition: ToolDefinition, function: F) -> Self
    where
        F: Fn(UpstreamCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolError>> + Send + 'static,
        T: Into<ToolResult>,
    {
        let definition = ToolDefinition { source: "inline", ..definition };
        let function: Arc<Function> = Arc::new(move |call| {
            let result = function(call);
            Box::pin(async move { result.await.map(Into::into) })
        });
        self.tools.insert(definition.full_name(), (Arc::new(definition), function));
        self
    }

    /// Creates tools for tests from `(app, name, description, input schema)`. Each returns its input, except for three
    /// names: `fail` fails with a path of the host in its message, `slow` never returns, and `long` returns a text of
    /// `n` bytes.
    #[must_use]
    pub fn echo(tools: &[(&str, &str, &str, Value)]) -> Self {
        tools.iter().fold(Self::default(), |echo, (app, name, description, input_schema)| {
            let definition = ToolDefinition {
                app: (*app).into(),
                name: (*name).into(),
                description: (*description).into(),
                input_schema: input_schema.clone(),
                ..ToolDefinition::default()
            };
            echo.define(definition, |call| async move {
                match call.tool.name.as_str() {
                    "fail" => Err(ToolError::new(ErrorCode::ToolExecutionError, "at /home/me/secret/file.js: broken")),
                    "slow" => std::future::pending().await,
                    "long" => Ok("x".repeat(call.input["n"].as_u64().map_or(0, |n| n as usize)).into()),
                    _ => Ok(Value::Object(call.input)),
                }
            })
        })
    }
}

impl Upstream for Inline {
    fn app(&self) -> &str {
        &self.app
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.values().map(|(definition, _)| Arc::clone(definition)).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let name = call.tool.full_name();
        match self.tools.get(&name) {
            Some((_, function)) => function(call),
            None => {
                let message = format!("Tool '{name}' not found");
                Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::ToolNotFound, message))))
            }
        }
    }
}

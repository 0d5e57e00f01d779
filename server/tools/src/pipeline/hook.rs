//! Hooks around every tool call.

use codecall_base::call::CallContext;
use codecall_base::tool::{ToolDefinition, ToolError, ToolResult};
use codecall_upstream::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// A call, as hooks see it: its tool exists and is allowed, and its input is valid.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Sequence number of the call in this process.
    pub id: u64,
    /// Full name of the tool.
    pub name: String,
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// The context: the caller, and the run.
    pub context: CallContext,
}

/// How a call proceeds after `before` of a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// It proceeds with this input.
    Go(Map<String, Value>),
    /// This is its result; neither further hooks nor the tool are called.
    Answer(ToolResult),
}

/// The record of a call that has ended.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Sequence number of the call in this process.
    pub id: u64,
    /// The full name of the tool; for an unknown tool, the name that the caller used.
    pub name: &'a str,
    /// The context: the caller, and the run.
    pub context: &'a CallContext,
    /// The name of the client, if there are several.
    pub client: Option<&'a str>,
    /// The input of the caller, with personal data masked and secrets redacted.
    pub input: &'a Value,
    /// The duration.
    pub duration: Duration,
    /// The error of a call that failed.
    pub error: Option<&'a ToolError>,
    /// The result of one that did not, as its caller gets it.
    pub result: Option<&'a ToolResult>,
    /// The name of the hook that has answered it instead of the tool.
    pub answered_by: Option<&'a str>,
}

/// A layer around every tool call, whoever makes it.
///
/// `before` is called in the order of the hooks, `after` in the reverse order, and only of those whose `before` has let
/// the call proceed.
pub trait Hook: Send + Sync {
    /// Returns its name for logs and records.
    fn name(&self) -> &'static str;

    /// Is called before the tool. May change the input, answer the call, or refuse it.
    ///
    /// # Errors
    /// The call is refused; the caller sees the error.
    fn before<'a>(
        &'a self,
        _call: &'a HookCall,
        input: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Before, ToolError>> {
        Box::pin(std::future::ready(Ok(Before::Go(input))))
    }

    /// Is called after the tool. May change its result or error. The result of a tool that speaks MCP may say that it has
    /// failed ([`ToolResult::is_error`]).
    ///
    /// # Errors
    /// The error that the caller sees.
    fn after<'a>(
        &'a self,
        _call: &'a HookCall,
        result: Result<ToolResult, ToolError>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(result))
    }

    /// Is called before a meta-tool. May refuse the call.
    ///
    /// # Errors
    /// The call is refused; the caller sees the error.
    fn before_meta<'a>(&'a self, _tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether it refuses calls because there are too many, for a time that its error says.
    fn limits_rates(&self) -> bool {
        false
    }

    /// Masks data of a call for notifications, logs and audit records.
    fn mask(&self, value: Arc<Value>) -> Arc<Value> {
        value
    }

    /// Masks an error for them.
    fn mask_error(&self, _error: &mut ToolError) {}

    /// Is called at the end of every call, also of one that was refused or cancelled. Must return at once.
    fn recorded(&self, _record: &Record<'_>) {}
}

//! What can be put around every tool call.

use codecall_base::call::CallContext;
use codecall_base::tool::{ToolDefinition, ToolError, ToolResult};
use codecall_upstream::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// A call, as hooks see it: it has been found and allowed, and its input fits.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Number of the call in this process.
    pub id: u64,
    /// Full name of the tool.
    pub name: String,
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// Who makes it, and in what run.
    pub context: CallContext,
}

/// What happens with a call before its tool is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// It goes on, with this input.
    Go(Map<String, Value>),
    /// This is the result; neither further hooks nor the tool are asked.
    Answer(ToolResult),
}

/// How a call has ended.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Number of the call in this process.
    pub id: u64,
    /// The tool: its full name, or what the caller called it where there is none.
    pub name: &'a str,
    /// Who made it, and in what run.
    pub context: &'a CallContext,
    /// What the tool was given by the caller, with personal data masked and without secrets.
    pub input: &'a Value,
    /// How long it took.
    pub duration: Duration,
    /// Why it failed; absent: it did not.
    pub error: Option<&'a ToolError>,
    /// Whether a hook has answered it instead of the tool.
    pub answered_by: Option<&'a str>,
}

/// Something that happens at every tool call, whoever makes it.
///
/// Hooks stand around the tool like layers: `before` is called in their order, `after` in the
/// opposite one, and only of those whose `before` has let the call through.
pub trait Hook: Send + Sync {
    /// A name for logs and records.
    fn name(&self) -> &'static str;

    /// The call is about to be made. May change the input, answer, or refuse.
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

    /// The tool has answered or failed. May change either. A tool that speaks MCP says that it has failed in its result
    /// ([`ToolResult::is_error`]).
    ///
    /// # Errors
    /// What the caller sees.
    fn after<'a>(
        &'a self,
        _call: &'a HookCall,
        result: Result<ToolResult, ToolError>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(result))
    }

    /// A meta-tool is about to be called. May refuse.
    ///
    /// # Errors
    /// The call is refused; the caller sees the error.
    fn before_meta<'a>(&'a self, _tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Masks what notifications, logs and audit records show of a call.
    fn mask(&self, value: Arc<Value>) -> Arc<Value> {
        value
    }

    /// Masks an error that they show.
    fn mask_error(&self, _error: &mut ToolError) {}

    /// The call is over, whatever came of it: also when it was refused, and when nobody waited for it
    /// any more. Must return at once.
    fn recorded(&self, _record: &Record<'_>) {}
}

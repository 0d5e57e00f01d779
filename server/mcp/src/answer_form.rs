//! In which form a client gets an answer: as text, as `structuredContent`, or as both.
//!
//! Some clients give their model both forms, others only one of them. So each answer is sent once, unless the configuration
//! says otherwise.

use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_config::Structured;
use codecall_hub::meta::{Answer, AnswerContent};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

/// The experimental capability by which a client says that it reads `structuredContent`.
const CAPABILITY: &str = "codecall/structuredContent";

/// Names of clients that read `structuredContent`, and ignore the text beside it.
const READERS: [&str; 2] = ["claude-code", "codex-mcp-client"];

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Text.
    Text,
    /// `structuredContent`.
    Structured,
    /// Both.
    Both,
}

impl AnswerForm {
    /// Returns the form for the client of a request.
    pub fn of_request(structured: Structured, context: &RequestContext<RoleServer>) -> Self {
        match structured {
            Structured::Both => Self::Both,
            Structured::Text => Self::Text,
            Structured::Auto => {
                let name = context.client_info().map(|client| client.name);
                let declares = context.client_capabilities().and_then(|capabilities| capabilities.experimental);
                let declares = declares.is_some_and(|experimental| experimental.contains_key(CAPABILITY));
                if declares || name.is_some_and(|name| READERS.contains(&name.as_str())) {
                    Self::Structured
                } else {
                    Self::Text
                }
            }
        }
    }
}

/// Converts the answer of a meta-tool.
pub fn meta_tool_result(Answer { content, is_error, meta }: Answer, form: AnswerForm) -> CallToolResult {
    let text = |value: &Value| vec![ContentBlock::text(value.to_string())];
    let mut result = match (content, form) {
        (AnswerContent::Refusal(text), _) => CallToolResult::error(vec![ContentBlock::text(text)]),
        (AnswerContent::Structured(value), AnswerForm::Text) if is_error => CallToolResult::error(text(&value)),
        (AnswerContent::Structured(value), AnswerForm::Text) => CallToolResult::success(text(&value)),
        (AnswerContent::Structured(value), AnswerForm::Structured | AnswerForm::Both) if is_error => {
            CallToolResult::structured_error(value)
        }
        (AnswerContent::Structured(value), AnswerForm::Structured | AnswerForm::Both) => {
            CallToolResult::structured(value)
        }
    };
    if form == AnswerForm::Structured && result.structured_content.is_some() {
        result.content.clear();
    }
    match meta {
        Some(meta) => result.with_meta(Some(MetaObject(meta))),
        None => result,
    }
}

/// Converts the result of an upstream's tool, without structured content if the configuration says so.
pub fn tool_result(result: ToolResult, structured: Structured) -> CallToolResult {
    match serde_json::from_value::<CallToolResult>(result.into_mcp()) {
        Ok(result) if structured != Structured::Text => result,
        Ok(mut result) => {
            result.structured_content = None;
            result
        }
        Err(_) => {
            error_result(ToolError::new(ErrorCode::ToolExecutionError, "The tool's answer is not one that MCP knows"))
        }
    }
}

/// Returns the result of a call that was refused or has failed: the message as text, code and details in `_meta`.
pub fn error_result(error: ToolError) -> CallToolResult {
    let mut data = json!({"code": error.code});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        data["details"] = details;
    }
    let mut meta = Map::new();
    meta.insert("codecall/error".into(), data);
    CallToolResult::error(vec![ContentBlock::text(error.message)]).with_meta(Some(MetaObject(meta)))
}

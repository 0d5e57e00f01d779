//! In which form a client gets an answer: as text, as `structuredContent`, or as both.
//!
//! Some clients give their model both forms, others only one of them. So each answer is sent once, unless the configuration
//! says otherwise.

use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_config::Structured;
use codecall_hub::meta::{Answer, AnswerContent};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResultType};
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
    /// `structuredContent`, which a model reads. Where there is a shorter text for models, only that.
    StructuredForModels,
    /// `structuredContent`, which a program reads.
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
                match declares {
                    true => Self::Structured,
                    false if name.is_some_and(|name| READERS.contains(&name.as_str())) => Self::StructuredForModels,
                    false => Self::Text,
                }
            }
        }
    }
}

/// Converts the answer of a meta-tool.
pub fn meta_tool_result(Answer { content, text, is_error, meta }: Answer, form: AnswerForm) -> CallToolResult {
    let mut result = CallToolResult::success(Vec::new());
    match content {
        AnswerContent::Refusal(reason) => result.content.push(ContentBlock::text(reason)),
        AnswerContent::Structured(value) => {
            let (has_text, has_value) = match form {
                AnswerForm::Text => (true, false),
                AnswerForm::StructuredForModels => (text.is_some(), text.is_none()),
                AnswerForm::Structured => (false, true),
                AnswerForm::Both => (true, true),
            };
            if has_text {
                result.content.push(ContentBlock::text(text.unwrap_or_else(|| value.to_string())));
            }
            result.structured_content = has_value.then_some(value);
        }
    }
    result.is_error = Some(is_error);
    match meta {
        Some(meta) => result.with_meta(Some(MetaObject(meta))),
        None => result,
    }
}

/// Converts the result of an upstream's tool, without structured content if the configuration says so. A client that is bridged gets
/// an object that a tool gives as text as structured content too.
pub fn tool_result(result: ToolResult, structured: Structured, is_bridged: bool) -> CallToolResult {
    let data = is_bridged.then(|| result.data().map(|data| data.into_owned())).flatten().filter(Value::is_object);
    match serde_json::from_value::<CallToolResult>(result.into_mcp()) {
        Ok(mut result) if structured != Structured::Text => {
            result.result_type = Some(ResultType::COMPLETE);
            if result.structured_content.is_none() && result.is_error != Some(true) {
                result.structured_content = data;
            }
            result
        }
        Ok(mut result) => {
            result.result_type = Some(ResultType::COMPLETE);
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

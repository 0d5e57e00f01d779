//! `code_execution`: runs a script in the synchronous dialect, with arguments and results of another format. Off by
//! default.

use super::*;
use crate::stateless::LanguageName;
use agentscript::{Dialect, Failure, Loops, Policy, Status};
use codecall_base::json;
use codecall_base::offload;
use codecall_base::tool::ErrorCode;
use codecall_config::{CodeExecution as Settings, Config};
use codecall_runs::{ExecuteRequest, Finished};
use std::ops::RangeInclusive;

/// The code of a failure that has no other code of this tool.
const RUNTIME_ERROR: &str = "RUNTIME_ERROR";

pub struct CodeExecution;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The code; see the description of this tool
    code: String,
    /// Types are erased
    #[schemars(extend("default" = "javascript"))]
    language: Option<LanguageName>,
    /// Data for the code, seen as the global input
    #[schemars(extend("default" = {}))]
    input: Option<Members>,
    #[serde(default)]
    options: Options,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Options {
    /// How long it may take, waits for tools included
    #[schemars(range(min = *Settings::TIMEOUTS.start(), max = *Settings::TIMEOUTS.end()))]
    timeout_ms: Option<f64>,
    /// How many tools it may call; 0: no limit
    #[schemars(range(min = 0))]
    max_tool_calls: Option<f64>,
    /// The only servers whose tools it may call; empty: all
    allowed_servers: Option<Vec<String>>,
}

impl MetaTool for CodeExecution {
    fn id(&self) -> &'static str {
        "code_execution"
    }

    fn is_enabled(&self, config: &Config) -> bool {
        config.code_execution.enabled
    }

    fn title(&self) -> &'static str {
        "Execute code"
    }

    fn description(&self) -> &'static str {
        include_str!("code_execution.md").trim_end()
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "ok": {"type": "boolean"},
                "value": {},
                "warnings": {"type": "array", "items": {"type": "string"}},
                "logs": {"type": "array", "items": {"type": "string"}},
                "truncated": execute::truncated_schema(),
                "toolCalls": {"type": "integer"},
                "calls": {"type": "array", "items": {"type": "object"}},
                "omittedCalls": {"type": "integer"},
                "error": {
                    "type": "object",
                    "properties": {
                        "code": {"enum": [
                            ErrorCode::SyntaxError.as_str(), RUNTIME_ERROR, ErrorCode::Timeout.as_str(),
                            ErrorCode::MaxToolCallsExceeded.as_str(), ErrorCode::ServerNotAllowed.as_str(),
                            ErrorCode::SerializationError.as_str(),
                        ]},
                        "message": {"type": "string"},
                        "stack": {"type": "string"},
                    },
                    "required": ["code", "message", "stack"],
                },
            },
            "required": ["ok"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let mut script = match self.request(request.hub.config(), request.arguments) {
                Ok(script) => script,
                Err(invalid) => return invalid.into(),
            };
            // The code may return more than the client gets: the rest is stored.
            let limits = &mut script.policy.limits;
            let max_bytes = usize::try_from(limits.max_result_bytes).unwrap_or(usize::MAX);
            limits.max_result_bytes = request.hub.results().max_bytes(limits.max_result_bytes);
            script.client = request.client;
            let mut finished = request.hub.execute(script, request.sink, request.cancel).await;
            let truncated = execute::truncate_result(request.hub, &mut finished, max_bytes, Delivery::InPieces).await;
            let bytes = finished.bytes();
            let answer = || {
                let meta = finished.meta();
                for line in &finished.outcome.logs {
                    tracing::info!(target: "codecall::console", "{line}");
                }
                to_answer(finished, truncated).with_meta(meta)
            };
            let answered = offload::run(bytes, answer).await;
            answered.unwrap_or_else(|busy| Answer::refused(busy.to_string()))
        })
    }
}

impl CodeExecution {
    fn request(&self, config: &Config, arguments: Value) -> Result<ExecuteRequest, InvalidArguments> {
        let Arguments { code, language, input, options } = parse(self, arguments)?;
        let invalid = |problem: &str| InvalidArguments::new(self, problem);
        if code.trim().is_empty() {
            return Err(invalid("'code' is empty"));
        }
        let input = Members::into_optional_map(input).map_err(|problem| invalid(&format!("'input' {problem}")))?;
        let mut settings = config.code_execution;
        if let Some(timeout) = options.timeout_ms {
            settings.timeout_ms =
                parse_integer("timeout_ms", timeout, &Settings::TIMEOUTS).map_err(|problem| invalid(&problem))?;
        }
        if let Some(calls) = options.max_tool_calls {
            settings.max_tool_calls = parse_integer("max_tool_calls", calls, &(0..=u64::from(u32::MAX)))
                .map_err(|problem| invalid(&problem))?;
        }
        let servers = match options.allowed_servers {
            // As `--allowed-servers=` of the command.
            Some(servers) if servers.iter().all(|server| server.trim().is_empty()) => Vec::new(),
            servers => servers.unwrap_or_default(),
        };
        if let Some(at) = servers.iter().position(|server| server.trim().is_empty()) {
            let advice = "give the names of servers, or an empty list for all";
            return Err(invalid(&format!("'options.allowed_servers[{at}]' is empty; {advice}")));
        }
        Ok(ExecuteRequest {
            language: language.map(Into::into),
            dialect: Dialect::Sync,
            context: Some(Value::Object(input).to_string()),
            allowed_apps: Some(servers).filter(|servers| !servers.is_empty()),
            ..ExecuteRequest::new(code, policy(&config.policy, settings))
        })
    }
}

/// Rounds an option up to an integer, and checks its range.
fn parse_integer(name: &str, value: f64, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let whole = value.ceil() as u64;
    match range.contains(&whole) && value >= *range.start() as f64 {
        true => Ok(whole),
        false => Err(format!("'options.{name}' must be from {} to {}", range.start(), range.end())),
    }
}

/// Returns the policy of a run: as configured, but loops and steps are limited only by time.
pub fn policy(configured: &Policy, settings: Settings) -> Policy {
    let mut policy = Policy { loops: Loops::All, ..configured.clone() };
    let limits = &mut policy.limits;
    (limits.timeout_ms, limits.max_duration_ms) = (settings.timeout_ms, settings.timeout_ms);
    limits.max_tool_calls = settings.max_tool_calls;
    (limits.max_iterations, limits.max_steps) = (u64::MAX, u64::MAX);
    policy
}

/// Converts an outcome to the answer of this tool.
fn to_answer(finished: Finished, truncated: Option<Value>) -> Answer {
    let ((calls, omitted), tool_calls) = (finished.error_calls(), finished.tool_calls());
    let outcome = finished.outcome;
    let logs = outcome.logs;
    let with_logs = |mut answer: Value| {
        if !logs.is_empty() {
            answer["logs"] = json!(logs);
        }
        answer
    };
    let failure = match outcome.result {
        Ok(text) => match json::parse(&text) {
            Ok(value) => {
                let mut answer = json!({"ok": true});
                if !outcome.is_undefined {
                    answer["value"] = value;
                }
                if !outcome.warnings.is_empty() {
                    answer["warnings"] = json!(outcome.warnings);
                }
                if let Some(truncated) = truncated {
                    answer["truncated"] = truncated;
                }
                return Answer::ok(with_logs(answer));
            }
            Err(_) => {
                let message = "The result is nested too deeply; return less of it, or a flat form";
                Failure::from_code(ErrorCode::SerializationError, message)
            }
        },
        Err(failure) => *failure,
    };
    let error = json!({
        "code": code_of(&failure),
        "message": message_of(&failure),
        "stack": failure.stack.unwrap_or_default(),
    });
    let mut answer = json!({"ok": false, "error": error});
    if !outcome.warnings.is_empty() {
        answer["warnings"] = json!(outcome.warnings);
    }
    if !calls.is_empty() {
        (answer["toolCalls"], answer["calls"]) = (tool_calls.into(), calls.into());
    }
    if omitted > 0 {
        answer["omittedCalls"] = omitted.into();
    }
    Answer::structured(with_logs(answer), true)
}

/// Returns one of the six codes of this tool.
fn code_of(failure: &Failure) -> &'static str {
    use ErrorCode::{MaxToolCallsExceeded, SelfReferenceBlocked, SerializationError, ServerNotAllowed};
    match (failure.status, ErrorCode::parse(&failure.code)) {
        (Status::Timeout, _) => ErrorCode::Timeout.as_str(),
        // The name of the tool is wrong, not the language.
        (_, Some(SelfReferenceBlocked)) => RUNTIME_ERROR,
        // The script was refused before it ran, so it is not valid in this language.
        (Status::SyntaxError, _) => ErrorCode::SyntaxError.as_str(),
        (Status::IllegalAccess, _) if !failure.issues.is_empty() => ErrorCode::SyntaxError.as_str(),
        (_, Some(code @ (MaxToolCallsExceeded | ServerNotAllowed | SerializationError))) => code.as_str(),
        _ => RUNTIME_ERROR,
    }
}

fn message_of(failure: &Failure) -> String {
    let name = match failure.status {
        Status::SyntaxError => Some("SyntaxError"),
        // Only errors of the script have a stack.
        _ => failure.name.as_deref().filter(|_| failure.stack.is_some()),
    };
    let mut message = name.map(|name| format!("{name}: ")).unwrap_or_default();
    message.push_str(&failure.message);
    if let Some(location) = failure.location {
        message.push_str(&format!(" (line {}, column {})", location.line, location.column));
    }
    if let Some(hint) = &failure.hint {
        message.push_str(&format!("; {hint}"));
    }
    message
}

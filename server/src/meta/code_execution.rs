//! `code_execution`: runs a script in the synchronous dialect, with arguments and results of another format. Off by
//! default.

use super::*;
use crate::stateless::LanguageName;
use agentscript::{Dialect, Failure, Loops, Outcome, Policy, Status};
use codecall_base::json;
use codecall_base::offload;
use codecall_config::{CodeExecution as Settings, Config};
use codecall_runs::ExecuteRequest;
use std::ops::RangeInclusive;

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
    input: Option<ObjectOrText>,
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
                "error": {
                    "type": "object",
                    "properties": {
                        "code": {"enum": [
                            "SYNTAX_ERROR", "RUNTIME_ERROR", "TIMEOUT", "MAX_TOOL_CALLS_EXCEEDED", "SERVER_NOT_ALLOWED",
                            "SERIALIZATION_ERROR",
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

    fn annotations(&self) -> Value {
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true})
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let script = match self.request(request.hub.config(), request.arguments) {
                Ok(script) => script,
                Err(refused) => return *refused,
            };
            let finished = request.hub.execute(script, request.watcher, request.cancel).await;
            let bytes = finished.bytes();
            let answer = || {
                let meta = Some(finished.meta().into());
                for line in &finished.outcome.logs {
                    tracing::info!(target: "codecall::console", "{line}");
                }
                let (value, is_error) = to_json(finished.outcome);
                Answer { value, is_error, meta }
            };
            let answered = offload::run(bytes, answer).await;
            answered.unwrap_or_else(|busy| Answer::refused(busy.to_string()))
        })
    }
}

impl CodeExecution {
    fn request(&self, config: &Config, arguments: Value) -> Result<ExecuteRequest, Box<Answer>> {
        let Arguments { code, language, input, options } = parse(self, arguments)?;
        let refused = |problem: &str| Box::new(invalid_arguments(self, problem));
        if code.trim().is_empty() {
            return Err(refused("'code' is empty"));
        }
        let input = ObjectOrText::into_optional_map(input).map_err(|problem| refused(&format!("'input' {problem}")))?;
        let mut settings = config.code_execution;
        if let Some(timeout) = options.timeout_ms {
            settings.timeout_ms =
                parse_integer("timeout_ms", timeout, &Settings::TIMEOUTS).map_err(|problem| refused(&problem))?;
        }
        if let Some(calls) = options.max_tool_calls {
            settings.max_tool_calls = parse_integer("max_tool_calls", calls, &(0..=u64::from(u32::MAX)))
                .map_err(|problem| refused(&problem))?;
        }
        Ok(ExecuteRequest {
            language: language.map(Into::into),
            dialect: Dialect::Sync,
            context: Some(Value::Object(input).to_string()),
            allowed_apps: options.allowed_servers.filter(|servers| !servers.is_empty()),
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
fn policy(configured: &Policy, settings: Settings) -> Policy {
    let mut policy = Policy { loops: Loops::All, ..configured.clone() };
    let limits = &mut policy.limits;
    (limits.timeout_ms, limits.max_duration_ms) = (settings.timeout_ms, settings.timeout_ms);
    limits.max_tool_calls = settings.max_tool_calls;
    (limits.max_iterations, limits.max_steps) = (u64::MAX, u64::MAX);
    policy
}

/// Converts an outcome to the format of this tool, and returns whether it is a failure.
fn to_json(outcome: Outcome) -> (Value, bool) {
    let failure = match outcome.result {
        Ok(text) => match json::parse(&text) {
            Ok(value) => return (json!({"ok": true, "value": value}), false),
            Err(_) => {
                let message = "The result is nested too deeply; return less of it, or a flat form";
                Failure::new(Status::RuntimeError, "SERIALIZATION_ERROR", message)
            }
        },
        Err(failure) => *failure,
    };
    let error = json!({
        "code": code_of(&failure),
        "message": message_of(&failure),
        "stack": failure.stack.unwrap_or_default(),
    });
    (json!({"ok": false, "error": error}), true)
}

/// Returns one of the six codes of this tool.
fn code_of(failure: &Failure) -> &'static str {
    match (failure.status, failure.code.as_str()) {
        (Status::Timeout, _) => "TIMEOUT",
        // The script was refused before it ran, so it is not valid in this language.
        (Status::SyntaxError, _) => "SYNTAX_ERROR",
        (Status::IllegalAccess, _) if !failure.issues.is_empty() => "SYNTAX_ERROR",
        (_, "MAX_TOOL_CALLS_EXCEEDED") => "MAX_TOOL_CALLS_EXCEEDED",
        (_, "SERVER_NOT_ALLOWED") => "SERVER_NOT_ALLOWED",
        (_, "SERIALIZATION_ERROR") => "SERIALIZATION_ERROR",
        _ => "RUNTIME_ERROR",
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

//! `codecall_execute`: run a script.

use super::*;
use crate::runs::{self, ExecuteRequest};
use agentscript::{Failure, LIMITS, Loops, Outcome, Policy, Status};

pub struct Execute;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    script: String,
    context: Option<Value>,
    allowed_tools: Option<Texts>,
    language: Option<Written>,
    limits: Option<Map<String, Value>>,
}

impl MetaTool for Execute {
    fn id(&self) -> &'static str {
        "execute"
    }

    fn title(&self) -> &'static str {
        "Run a script"
    }

    fn description(&self) -> &'static str {
        include_str!("execute.md").trim_end()
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "script": {"type": "string", "description": "The script; its return value is the result"},
                "context": {"type": "object", "description": "Data for the script, seen as codecallContext"},
                "allowedTools": strings("The only tools the script may call; 'users:*' allows an app"),
                "language": {"enum": ["javascript", "typescript"], "description": "Found out by itself"},
                "limits": {"type": "object", "description": "Lower limits for this run: timeoutMs, maxToolCalls, maxIterations, …"},
            },
            "required": ["script"],
            "additionalProperties": false,
        })
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["ok", "syntax_error", "illegal_access", "runtime_error", "tool_error", "timeout"]},
                "result": {},
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
                "logs": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> Value {
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true})
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let script = match self.request(request.hub, request.arguments) {
                Ok(script) => script,
                Err(refused) => return *refused,
            };
            let outcome = request.hub.execute(script, request.watcher, request.cancel).await;
            let stats = runs::json(&outcome.stats.to_json()).unwrap_or_default();
            let (outcome, value) = match runs::json(&outcome.to_json()) {
                Ok(value) => (outcome, value),
                Err(_) => {
                    let outcome = without_depth(outcome);
                    let value = runs::json(&outcome.to_json()).unwrap_or_default();
                    (outcome, value)
                }
            };
            Answer { value, is_error: outcome.status() != Status::Ok, meta: Some(json!({"codecall/stats": stats})) }
        })
    }
}

/// The same without what nests deeper than JSON readers follow: theirs as well as ours.
fn without_depth(mut outcome: Outcome) -> Outcome {
    match &mut outcome.result {
        Ok(_) => {
            let message = "The result is nested too deeply; return less of it, or a flat form";
            let mut failure = Failure::new(Status::RuntimeError, "SERIALIZATION_ERROR", message);
            failure.name = Some("Error".into());
            failure.tool_calls = outcome.stats.tool_calls;
            outcome.result = Err(Box::new(failure));
        }
        Err(failure) => (failure.tool_input, failure.details) = (None, None),
    }
    outcome
}

impl Execute {
    fn request(&self, hub: &Hub, arguments: Value) -> Result<ExecuteRequest, Box<Answer>> {
        let arguments: Arguments = read(self, arguments)?;
        let refused = |problem: &str| Box::new(refusal(self, problem));
        if arguments.script.trim().is_empty() {
            return Err(refused("'script' is empty"));
        }
        let context = match arguments.context {
            None | Some(Value::Null) => None,
            Some(context) => Some(object(context).map_err(|problem| refused(&format!("'context' {problem}")))?),
        };
        let policy =
            lowered(&hub.config().policy, arguments.limits.unwrap_or_default()).map_err(|problem| refused(&problem))?;
        Ok(ExecuteRequest {
            language: arguments.language.map(Into::into),
            context: context.map(|context| Value::Object(context).to_string()),
            allowed_tools: arguments.allowed_tools.map(Texts::into_vec),
            ..ExecuteRequest::new(arguments.script, policy)
        })
    }
}

/// The policy with the limits of a request, which can only lower it: a higher one changes nothing.
fn lowered(policy: &Policy, limits: Map<String, Value>) -> Result<Policy, String> {
    let mut policy = policy.clone();
    for (name, value) in limits {
        match (name.as_str(), &value) {
            ("allowLoops", Value::Bool(allow)) => {
                if !allow {
                    policy.loops = Loops::None;
                }
            }
            ("allowConsole", Value::Bool(allow)) => policy.allow_console &= allow,
            ("disabledBuiltins" | "disabledGlobals", Value::Array(names)) => {
                policy.disabled.extend(names.iter().filter_map(|name| name.as_str().map(str::to_owned)));
            }
            (name, value) => {
                let Some(limit) = agentscript::Limit::named(name) else {
                    let known = LIMITS.iter().map(|limit| limit.name).chain(["allowLoops", "allowConsole"]);
                    let near = crate::error::nearest(name, known.clone(), 1);
                    let near = near
                        .first()
                        .map_or_else(|| known.collect::<Vec<_>>().join(", "), |near| format!("did you mean '{near}'?"));
                    return Err(format!("'limits': there is no limit '{name}'; {near}"));
                };
                let wanted =
                    value.as_u64().ok_or_else(|| format!("'limits.{name}' must be a whole number, 0 or more"))?;
                let current = limit.get(&policy.limits);
                // No limit is the highest one.
                let height = |calls: u64| if limit.name == "maxToolCalls" && calls == 0 { u64::MAX } else { calls };
                if height(wanted) < height(current) {
                    limit.set(&mut policy.limits, wanted);
                }
            }
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_only_go_down() {
        let base = Policy::default();
        let lower = |text: &str| lowered(&base, serde_json::from_str(text).expect("an object"));
        let policy = lower(r#"{"timeoutMs": 100, "maxSteps": 99999999999, "maxToolCalls": 0, "allowLoops": false}"#)
            .expect("fits");
        assert_eq!(policy.limits.timeout_ms, 100);
        assert_eq!(policy.limits.max_steps, base.limits.max_steps);
        assert_eq!(policy.limits.max_tool_calls, base.limits.max_tool_calls);
        assert_eq!(policy.loops, Loops::None);
        assert_eq!(
            lower(r#"{"timeout": 1}"#).expect_err("unknown"),
            "'limits': there is no limit 'timeout'; did you mean 'timeoutMs'?"
        );
        assert!(lower(r#"{"timeoutMs": -1}"#).is_err());
    }
}

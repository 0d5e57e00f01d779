//! One hub for all inputs of a target, in front of tools that give back what they get.

use codecall::config::Format;
use codecall::tool::ToolError;
use codecall::upstream::inline::Inline;
use codecall::{Config, Hub};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// The configuration of a hub: everything is on, and small.
pub fn configuration(more: Value) -> Config {
    let mut config = json!({
        "vm": {"timeoutMs": 200, "maxDurationMs": 400, "maxSteps": 20_000, "maxMemoryBytes": 4 << 20, "toolTimeoutMs": 300},
        "pool": {"threads": 2},
        "enable_code_execution": true,
    });
    if let (Value::Object(config), Value::Object(more)) = (&mut config, more) {
        config.extend(more);
    }
    Config::parse(&config.to_string(), Format::Json, &|_| None).expect("a configuration")
}

/// A hub in front of one upstream, made once.
pub fn hub(config: impl FnOnce() -> Config) -> Arc<Hub> {
    static HUB: OnceLock<Arc<Hub>> = OnceLock::new();
    Arc::clone(HUB.get_or_init(|| Hub::start(config(), vec![Arc::new(echo())]).expect("a hub")))
}

/// Tools that answer with their input, or fail with it.
fn echo() -> Inline {
    let any = || json!({"type": "object"});
    let strict = json!({"type": "object", "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}}}, "required": ["id"], "additionalProperties": false});
    let text = |name: &str| format!("Gives back what it gets, by {name}. All of it.");
    Inline::new("echo")
        .tool("any", &text("any"), any(), |call| async move { Ok(Value::Object(call.input)) })
        .tool("fail", &text("fail"), any(), |call| async move {
            let input = Value::Object(call.input).to_string();
            Err::<Value, _>(ToolError { details: Some(input.clone()), ..ToolError::new("FAILED", input) })
        })
        .tool("strict", &text("strict"), strict, |call| async move { Ok(Value::Object(call.input)) })
}

//! One hub for all inputs of a target, in front of tools that give back what they get.

use codecall::config::Format;
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::tool::{ToolDefinition, ToolError};
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
    Arc::clone(HUB.get_or_init(|| Hub::start(config(), vec![Arc::new(Echo::new())]).expect("a hub")))
}

/// Tools that answer with their input, or fail with it.
struct Echo {
    tools: Vec<Arc<ToolDefinition>>,
}

impl Echo {
    fn new() -> Self {
        let tool = |name: &str, schema: Value| {
            Arc::new(ToolDefinition {
                app: "echo".into(),
                name: name.into(),
                description: format!("Gives back what it gets, by {name}. All of it."),
                input_schema: schema,
                source: "inline",
                ..ToolDefinition::default()
            })
        };
        let strict = json!({"type": "object", "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}}}, "required": ["id"], "additionalProperties": false});
        Self {
            tools: vec![
                tool("any", json!({"type": "object"})),
                tool("fail", json!({"type": "object"})),
                tool("strict", strict),
            ],
        }
    }
}

impl Upstream for Echo {
    fn app(&self) -> &str {
        "echo"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.clone()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(async move {
            let input = Value::Object(call.input);
            if call.tool.name == "fail" {
                return Err(ToolError {
                    details: Some(input.to_string()),
                    ..ToolError::new("FAILED", input.to_string())
                });
            }
            Ok(input)
        })
    }
}

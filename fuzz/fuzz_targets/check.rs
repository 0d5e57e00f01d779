//! Any schema and any value. The check ends soon, the schema can be declared to a model, and the message about a value
//! that does not fit is short.
//!
//! The schema is the first line, the value the rest.

#![no_main]

use agentscript::stateless::ClientTools as _;
use codecall::stateless::ClientToolset;
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::time::Duration;

/// For a few kilobytes.
const MAX_TIME: Duration = Duration::from_secs(2);

fuzz_target!(|text: &str| {
    let (schema, value) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let began = ThreadTime::now();
    let tools = match ClientToolset::read(&[json!({"name": "tool", "inputSchema": schema, "outputSchema": schema})]) {
        Ok(tools) => tools,
        Err(error) => {
            assert!(error.to_string().len() < 1_000);
            return;
        }
    };
    let declared = tools.declarations();
    assert!(declared.len() <= 100 * text.len() + 10_000, "{} bytes of declarations", declared.len());
    if serde_json::from_str::<Value>(value).is_ok_and(|value| value.is_object())
        && let Err(error) = tools.check("tool", value)
    {
        assert!(error.message.len() < 10_000, "{} bytes of message", error.message.len());
        assert!(error.details.is_none_or(|details| details.len() < 20_000));
    }
    assert!(began.elapsed() < MAX_TIME, "{:?}", began.elapsed());
});

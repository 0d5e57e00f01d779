//! The tools of the server: names, descriptions, schemas.

use rmcp::model::Tool;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Tools without arguments.
const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "Returns a text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns a sound"),
    ("test_embedded_resource", "Returns a resource"),
    ("test_multiple_content_types", "Returns a text, an image and a resource"),
    ("test_tool_with_logging", "Sends log messages while it runs"),
    ("test_logging_tool", "Sends a log message if the request asks for it"),
    ("test_error_handling", "Always fails"),
    ("test_tool_with_progress", "Reports progress"),
    ("test_elicitation_sep1034_defaults", "Asks the person for values that have defaults"),
    ("test_elicitation_sep1330_enums", "Asks the person to choose"),
    ("test_reconnection", "Takes some time"),
    ("test_trigger_tool_change", "Announces that the list of tools has changed"),
    ("test_trigger_prompt_change", "Announces that the list of prompts has changed"),
    ("test_missing_capability", "Needs a client that supports sampling"),
    ("test_streaming_elicitation", "Needs the input of a person"),
    ("test_input_required_result_elicitation", "Needs the input of a person"),
    ("test_input_required_result_sampling", "Needs the answer of a model"),
    ("test_input_required_result_list_roots", "Needs the roots of the client"),
    ("test_input_required_result_request_state", "Needs a confirmation, and its state back"),
    ("test_input_required_result_multiple_inputs", "Needs three inputs at once"),
    ("test_input_required_result_multi_round", "Needs one input after another"),
    ("test_input_required_result_tampered_state", "Refuses a state that was changed"),
    ("test_input_required_result_capabilities", "Needs what the client supports"),
];

/// Tools that can be tasks.
const TASKS: &[(&str, &str)] = &[
    ("greet", "Greets, at once"),
    ("slow_compute", "Takes some seconds"),
    ("failing_job", "Fails after a second"),
    ("protocol_error_job", "Fails with an error of the protocol"),
    ("confirm_delete", "Needs a confirmation while it runs"),
    ("multi_input", "Needs two inputs while it runs"),
    ("test_tool_with_task", "Needs an input, then becomes a task"),
];

/// Whether the tool is one of `task`.
pub fn is_task(name: &str) -> bool {
    TASKS.iter().any(|(task, _)| *task == name)
}

/// Returns all tools.
pub fn tools() -> Vec<Tool> {
    let object =
        |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let plain = PLAIN.iter().map(|(name, about)| tool(name, about, json!({"type": "object", "properties": {}})));
    let with_arguments = [
        tool(
            "test_sampling",
            "Asks the model of the client",
            object(json!({"prompt": {"type": "string", "description": "What the model is asked"}}), json!(["prompt"])),
        ),
        tool(
            "test_elicitation",
            "Asks the person",
            object(
                json!({"message": {"type": "string", "description": "What the person is asked"}}),
                json!(["message"]),
            ),
        ),
        tool(
            "test_custom_header",
            "Has an argument that is sent as a header, too",
            object(json!({"value": {"type": "string", "x-mcp-header": "Value"}}), json!(["value"])),
        ),
        tool("json_schema_2020_12_tool", "Has a schema with keywords of 2020-12", schema_2020_12()),
    ];
    let tasks = TASKS.iter().map(|(name, about)| {
        let properties = match *name {
            "greet" => json!({"name": {"type": "string"}}),
            "slow_compute" => json!({"seconds": {"type": "number"}, "label": {"type": "string"}}),
            "confirm_delete" => json!({"filename": {"type": "string"}}),
            _ => json!({}),
        };
        let required = if *name == "greet" { json!(["name"]) } else { json!([]) };
        tool(name, about, object(properties, required))
    });
    plain.chain(with_arguments).chain(tasks).collect()
}

/// Returns the tool that is there now and then.
pub fn more() -> Tool {
    tool("test_simple_text_too", "Returns a text", json!({"type": "object", "properties": {}}))
}

fn tool(name: &'static str, about: &'static str, schema: Value) -> Tool {
    Tool::new(name, about, Arc::new(as_object(schema)))
}

/// The object in a value that is one.
pub fn as_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "address",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
        "if": {"required": ["address"]},
        "then": {"properties": {"address": {"required": ["street"]}}},
        "else": {"required": ["name"]},
        "additionalProperties": false
    })
}

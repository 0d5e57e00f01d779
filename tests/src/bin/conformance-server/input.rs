//! Tools that return what they need from the client, and continue when they are called again with it.

use crate::State;
use crate::tools::text;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

/// A form that a person fills in.
pub fn form(message: &str, properties: Value, required: Value) -> ElicitRequestParams {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: serde_json::from_value(schema).unwrap_or_else(|error| panic!("a schema of a form: {error}")),
    }
}

/// Asks a person for one text.
pub fn ask(message: &str, field: &str) -> InputRequest {
    let properties = json!({field: {"type": "string"}});
    InputRequest::Elicitation(ElicitRequest::new(form(message, properties, json!([field]))))
}

fn sample(prompt: &str) -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

fn named<'a>(inputs: impl IntoIterator<Item = (&'a str, InputRequest)>) -> InputRequests {
    inputs.into_iter().map(|(name, input)| (name.to_owned(), input)).collect()
}

/// A result that requests inputs.
pub fn required<'a>(inputs: impl IntoIterator<Item = (&'a str, InputRequest)>) -> InputRequiredResult {
    InputRequiredResult::from_input_requests(named(inputs))
}

/// Returns a response. What is not an object is as good as nothing.
pub fn response<'a>(responses: Option<&'a InputResponses>, name: &str) -> Option<&'a Map<String, Value>> {
    responses?.get(name)?.as_object()
}

/// Returns a text field of a response to `ask`.
pub fn field<'a>(response: &'a Map<String, Value>, name: &str) -> &'a str {
    response.get("content").and_then(|content| content.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Calls the tool.
pub fn call(
    state: &State,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let responses = request.input_responses.as_ref();
    let step = request.request_state.as_deref().map(|sealed| state.open(sealed)).transpose()?;
    let has = |name| response(responses, name).is_some();
    let done = match request.name.trim_start_matches("test_input_required_result_") {
        "elicitation" => match response(responses, "user_name") {
            Some(user) => format!("Hello, {}!", field(user, "name")),
            None => return Ok(required([("user_name", ask("What is your name?", "name"))]).into()),
        },
        "sampling" => match response(responses, "capital_question") {
            Some(answer) => format!("Sampling response: {}", Value::Object(answer.clone())),
            None => return Ok(required([("capital_question", sample("What is the capital of France?"))]).into()),
        },
        "list_roots" => match response(responses, "client_roots") {
            Some(answer) => format!("Client roots: {}", Value::Object(answer.clone())),
            None => return Ok(required([("client_roots", roots())]).into()),
        },
        "request_state" | "tampered_state" => match step {
            Some(_) => "Confirmed: state-ok".to_owned(),
            None => return Ok(next(state, 1, [("confirm", ask("Please confirm", "ok"))])),
        },
        "multiple_inputs" if step.is_some() && has("user_name") && has("greeting") && has("client_roots") => {
            "All inputs received".to_owned()
        }
        "multiple_inputs" => return Ok(next(state, 1, all_inputs(&everything()))),
        "multi_round" => match step {
            None => return Ok(next(state, 1, [("step1", ask("Step 1: What is your name?", "name"))])),
            Some(1) => return Ok(next(state, 2, [("step2", ask("Step 2: What is your favorite color?", "color"))])),
            Some(_) => "Both rounds are complete".to_owned(),
        },
        "capabilities" if responses.is_some() => "Complete".to_owned(),
        "capabilities" => {
            let client = context.meta.client_capabilities().unwrap_or_default();
            let inputs = all_inputs(&client);
            if !inputs.is_empty() {
                return Ok(required(inputs).into());
            }
            "The client supports nothing of it".to_owned()
        }
        name => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
    };
    Ok(CallToolResult::success(text(&done)).into())
}

fn everything() -> ClientCapabilities {
    ClientCapabilities::builder().enable_elicitation().enable_sampling().enable_roots().build()
}

/// Returns the inputs that a client can give.
fn all_inputs(client: &ClientCapabilities) -> Vec<(&'static str, InputRequest)> {
    let mut inputs = Vec::new();
    if client.elicitation.is_some() {
        inputs.push(("user_name", ask("What is your name?", "name")));
    }
    if client.sampling.is_some() {
        inputs.push(("greeting", sample("Write a greeting")));
    }
    if client.roots.is_some() {
        inputs.push(("client_roots", roots()));
    }
    inputs
}

fn next<'a>(state: &State, step: u64, inputs: impl IntoIterator<Item = (&'a str, InputRequest)>) -> CallToolResponse {
    InputRequiredResult::new(Some(named(inputs)), Some(state.seal(step))).into()
}

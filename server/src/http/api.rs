//! Stateless steps over HTTP, JSON in and JSON out.

use super::problem::{Problem, Told};
use crate::hub::Hub;
use crate::stateless::{ClientToolset, Evaluate, Refusal};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use codecall_base::tool::ErrorCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// `POST /v1/evaluate`: one step of a run. A step that was taken is status 200, however the run has ended.
pub async fn evaluate(State(hub): State<Arc<Hub>>, body: Bytes) -> Result<Json<Value>, Problem> {
    let request: Evaluate = read(&body).map_err(|problem| Refusal::Invalid(problem.message))?;
    let (cancel, _guard) = super::while_wanted();
    let evaluation = hub.stateless().evaluate(request, cancel).await?;
    Ok(Json(evaluation.value))
}

/// A list of tools.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    tools: Vec<Value>,
}

/// `POST /v1/tools/typescript`: what a model reads of a list of tools, and which functions they are.
pub async fn typescript(body: Bytes) -> Result<Json<Value>, Problem> {
    let Listed { tools } = read(&body)?;
    let tools = ClientToolset::read(&tools).map_err(|error| Problem::request(error.to_string()).about("tools"))?;
    let functions =
        tools.tools().iter().map(|tool| json!({"tool": tool.name, "function": tools.names().function(&tool.name)}));
    let functions: Vec<Value> = functions.collect();
    Ok(Json(json!({"typescript": tools.declarations(), "functions": functions})))
}

/// A body as JSON of a known shape.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.inner();
        if inner.is_data() {
            // Where it is: the place is told with a path, not with a line.
            let text = inner.to_string();
            let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
            let problem = codecall_base::error::sanitize_serde_error(text, &[]);
            return Problem::request(codecall_base::error::with_path(&path, &problem)).about(path);
        }
        let (line, column) = (inner.line(), inner.column());
        Problem::request(format!("The body is not valid JSON at line {line}, column {column}"))
    })?;
    deserializer.end().map_err(|error| {
        Problem::request(format!("The body goes on after its JSON at line {}, column {}", error.line(), error.column()))
    })?;
    Ok(value)
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Invalid(_) => StatusCode::BAD_REQUEST,
            Refusal::Unavailable(refused) => match refused.code {
                ErrorCode::WorkerCrashed | ErrorCode::WorkerStartupFailed => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            },
        };
        let told = Told { body: Some(refusal.to_json()), ..Told::default() };
        Self::new(status, refusal.to_string()).with_code(refusal.code()).told(told)
    }
}

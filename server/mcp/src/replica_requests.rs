//! Requests that belong to another replica of the server: repeated ones whose work waits there, and those about tasks.

use super::interact::{Subject, WorkResumer};
use super::suspended::Answer;
use codecall_hub::hub::{Hub, Incoming, NotAnswered, Replicas, Served};
use rmcp::ErrorData;
use rmcp::model::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Between the id of a replica and the state of a request there.
const SEPARATOR: char = '~';

/// The other replicas, for the requests of a client.
pub struct ReplicaRequests {
    replicas: Arc<Replicas>,
    address: String,
    _served: Served,
}

/// A question to a replica.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// Goes on with the work of a repeated request.
    #[serde(rename_all = "camelCase")]
    Proceed { state: String, subject: Subject, responses: InputResponses, task_after: Option<Duration> },
    /// Describes a task.
    GetTask { id: String },
    /// Passes answers to a task.
    UpdateTask { id: String, answers: InputResponses },
    /// Cancels a task.
    CancelTask { id: String },
}

/// An answer to a request, with its kind: results of different kinds look alike.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ReplicaAnswer {
    Tool(Value),
    Input(Value),
    Task(Value),
    Prompt(Value),
    Resource(Value),
    Error(ErrorData),
}

impl ReplicaRequests {
    /// Serves the requests of a client that arrive at other replicas; `None`: there are none.
    pub fn serve(hub: &Hub, work_resumer: WorkResumer) -> Option<Self> {
        let replicas = Arc::clone(hub.replicas()?);
        let address = format!("requests {}", hub.scope());
        let served = replicas.serve(address.clone(), move |incoming| {
            tokio::spawn(answer(work_resumer.clone(), incoming));
        });
        Some(Self { replicas, address, _served: served })
    }

    /// Returns the id of this replica.
    pub fn own(&self) -> &str {
        self.replicas.id()
    }

    /// Asks a replica.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn ask(&self, replica: &str, question: &Question) -> Result<Value, NotAnswered> {
        self.replicas.ask(replica, &self.address, json!(question)).await
    }

    /// Returns the replica that has a state, and its name there. `None`: it is that of this one, or of none.
    pub fn other<'a>(&self, state: &'a str) -> Option<(&'a str, &'a str)> {
        state.split_once(SEPARATOR).filter(|(replica, _)| *replica != self.own())
    }

    /// Goes on with the work of a repeated request at another replica.
    pub async fn proceed(
        &self,
        replica: &str,
        state: &str,
        subject: Subject,
        responses: InputResponses,
        task_after: Option<Duration>,
    ) -> Answer {
        let question = Question::Proceed { state: state.to_owned(), subject, responses, task_after };
        let lost = "The server that had this request has ended. Calls of tools may have been made, or not: check that before \
            you send it again, without requestState";
        match self.ask(replica, &question).await {
            Ok(answer) => carried(answer),
            Err(NotAnswered::Ended | NotAnswered::Unknown) => {
                let data = json!({"code": "SERVER_ENDED", "mayHaveRun": true});
                Err(ErrorData::invalid_params(lost, Some(data)))
            }
            Err(NotAnswered::Unsent(problem)) => {
                let message =
                    format!("The server that has this request cannot be reached; send the same again: {problem}");
                Err(ErrorData::internal_error(message, None))
            }
        }
    }
}

/// Returns the name of a state of a replica at all of them.
pub fn named(replica: &str, state: &str) -> String {
    format!("{replica}{SEPARATOR}{state}")
}

/// Returns the name of a state at its replica.
pub fn unnamed(state: &str) -> &str {
    state.split_once(SEPARATOR).map_or(state, |(_, own)| own)
}

async fn answer(work_resumer: WorkResumer, incoming: Incoming) {
    let Ok(question) = serde_json::from_value(incoming.body.clone()) else { return };
    let tasks = &work_resumer.tasks;
    let answer = match question {
        Question::Proceed { state, subject, responses, task_after } => {
            let proceeded = match work_resumer.suspended.take(&state, &subject) {
                Ok(work) => work_resumer.proceed(work, responses, &incoming.cancel, task_after).await,
                Err(error) => Err(error),
            };
            Some(carry(proceeded))
        }
        Question::GetTask { id } => tasks.get_here(&id).ok().map(|task| json!(task)),
        Question::UpdateTask { id, answers } => tasks.update_here(&id, answers).ok().map(|()| Value::Null),
        Question::CancelTask { id } => tasks.cancel_here(&id).ok().map(|()| Value::Null),
    };
    // Without one, the other replica is told that there is none.
    if let Some(answer) = answer {
        incoming.answer(answer);
    }
}

fn carry(answer: Answer) -> Value {
    json!(match answer {
        Ok(ServerResult::CallToolResult(result)) => ReplicaAnswer::Tool(json!(result)),
        Ok(ServerResult::InputRequiredResult(result)) => ReplicaAnswer::Input(json!(result)),
        Ok(ServerResult::CreateTaskResult(result)) => ReplicaAnswer::Task(json!(result)),
        Ok(ServerResult::GetPromptResult(result)) => ReplicaAnswer::Prompt(json!(result)),
        Ok(ServerResult::ReadResourceResult(result)) => ReplicaAnswer::Resource(json!(result)),
        Ok(_) => ReplicaAnswer::Error(super::interact::wrong_result()),
        Err(error) => ReplicaAnswer::Error(error),
    })
}

fn carried(answer: Value) -> Answer {
    fn parsed<T: serde::de::DeserializeOwned>(value: Value, into: impl FnOnce(T) -> ServerResult) -> Answer {
        serde_json::from_value(value).map(into).map_err(|_| super::interact::wrong_result())
    }
    match serde_json::from_value(answer).map_err(|_| super::interact::wrong_result())? {
        ReplicaAnswer::Tool(value) => parsed(value, ServerResult::CallToolResult),
        ReplicaAnswer::Input(value) => parsed(value, ServerResult::InputRequiredResult),
        ReplicaAnswer::Task(value) => parsed(value, ServerResult::CreateTaskResult),
        ReplicaAnswer::Prompt(value) => parsed(value, ServerResult::GetPromptResult),
        ReplicaAnswer::Resource(value) => parsed(value, ServerResult::ReadResourceResult),
        ReplicaAnswer::Error(error) => Err(error),
    }
}

//! Requests that have become tasks.
//!
//! A task is kept by the server that has begun it. If others may be asked for it, its id names that server, and it is
//! stored. They ask the server as long as it is there, and answer from the store after that. The run of a task that is
//! durable goes on at another server, and so does the task.

use super::answer_form::{AnswerForm, meta_tool_result};
use super::replica_requests::{Question, ReplicaRequests};
use super::suspended::{self, Work};
use codecall_base::event::RunId;
use codecall_hub::hub::{Durable, Hub, LiveHub, NotAnswered, RunState};
use codecall_hub::meta;
use codecall_store::{SqlTasks, StoredTask};
use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Between the id of a server and that of a task there.
const SEPARATOR: char = '~';

/// The tasks of a client of this server.
#[derive(Clone)]
pub struct Tasks {
    manager: TaskManager,
    stored: Option<Arc<TaskStore>>,
}

/// Where others find tasks.
struct TaskStore {
    /// The id of this server.
    server: String,
    scope: String,
    tasks: SqlTasks,
    durable: Arc<Durable>,
}

impl Tasks {
    /// Creates the tasks of a client. They are stored if runs are durable, or if the server has replicas.
    pub fn new(live: &LiveHub) -> Self {
        let hub = live.get();
        let server = match hub.replicas() {
            Some(replicas) => Some(replicas.id().to_owned()),
            None if hub.config().durable.enabled => Some(RunId::random().as_str()[..12].to_owned()),
            None => None,
        };
        let stored = server.and_then(|server| {
            let (tasks, durable) = (SqlTasks(hub.database()?.clone()), Arc::clone(hub.durable()?));
            Some(Arc::new(TaskStore { server, scope: hub.scope(), tasks, durable }))
        });
        Self { manager: TaskManager::new(), stored }
    }

    /// Ends all tasks, whose clients are gone.
    pub fn shutdown(&self) {
        self.manager.shutdown();
    }

    /// Goes on with work as a task. `longest` is the time to live of what no server limits.
    ///
    /// # Errors
    /// The task cannot be stored.
    pub async fn begin(&self, live: &LiveHub, work: Work, longest: Duration) -> Result<Task, ErrorData> {
        let (options, form) = (work.task_options(longest), work.form());
        let ttl_ms = options.ttl_ms;
        let Some(stored) = self.stored.clone() else {
            return Ok(self.manager.spawn(options, |context| Box::pin(suspended::run_as_task(work, context, ttl_ms))));
        };
        let ttl = ttl_ms.map_or(longest, Duration::from_millis);
        let run = work.run().cloned();
        let (sender, is_stored) = oneshot::channel();
        let ending = PersistedTask {
            stored: Arc::clone(&stored),
            live: live.clone(),
            run: run.clone(),
            form,
            ttl_ms,
            is_stored,
        };
        let mut task = self.manager.spawn(options, |context| Box::pin(ending.run(work, context)));
        task.task_id = stored.named(&task.task_id);
        let description = serde_json::to_string(&task).unwrap_or_default();
        let run = run.as_ref().map(RunId::as_str);
        // The client gets a task that all servers know, or none.
        if let Err(error) = stored.tasks.put(&stored.scope, &task.task_id, run, &description, ttl * 2).await {
            let id = stored.own(&task.task_id).unwrap_or_default();
            let _ = self.manager.cancel_task(id);
            return Err(ErrorData::internal_error(
                format!("The task cannot be stored, so it is cancelled: {error}"),
                None,
            ));
        }
        let _ = sender.send(());
        Ok(task)
    }

    /// Returns a task.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn get(
        &self,
        hub: &Hub,
        replica_requests: Option<&ReplicaRequests>,
        id: &str,
        form: AnswerForm,
    ) -> Result<DetailedTask, ErrorData> {
        let Some(stored) = &self.stored else { return self.manager.get_task(id) };
        match self.get_here(id) {
            Ok(task) => return Ok(task),
            Err(_) if stored.own(id).is_some() => {}
            Err(_) => {
                let answer = ask(replica_requests, id, &Question::GetTask { id: id.to_owned() }).await;
                if let Ok(Some(task)) = answer.map(|task| serde_json::from_value(task).ok()) {
                    return Ok(task);
                }
            }
        }
        stored.get(hub, id, form).await
    }

    /// Returns a task that this server has.
    ///
    /// # Errors
    /// It has none of this id.
    pub fn get_here(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        let mut task = self.manager.get_task(self.own(id)?)?;
        id.clone_into(&mut task.task.task_id);
        Ok(task)
    }

    /// Passes answers of the client to a task. Those that it does not wait for are ignored.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn update(
        &self,
        hub: &Hub,
        replica_requests: Option<&ReplicaRequests>,
        id: &str,
        answers: InputResponses,
    ) -> Result<(), ErrorData> {
        let Some(stored) = &self.stored else { return self.manager.update_task(id, answers) };
        if let Some(own) = stored.own(id)
            && self.manager.update_task(own, answers.clone()).is_ok()
        {
            return Ok(());
        }
        match ask(replica_requests, id, &Question::UpdateTask { id: id.to_owned(), answers }).await {
            Ok(_) => Ok(()),
            // It waits for no answer any more.
            Err(_) => stored.get(hub, id, AnswerForm::Text).await.map(drop),
        }
    }

    /// Passes answers of the client to a task that this server has.
    ///
    /// # Errors
    /// It has none of this id.
    pub fn update_here(&self, id: &str, answers: InputResponses) -> Result<(), ErrorData> {
        self.manager.update_task(self.own(id)?, answers)
    }

    /// Cancels a task.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn cancel(
        &self,
        hub: &Hub,
        replica_requests: Option<&ReplicaRequests>,
        id: &str,
    ) -> Result<(), ErrorData> {
        let Some(stored) = &self.stored else { return self.manager.cancel_task(id) };
        if self.cancel_here(id).is_ok()
            || ask(replica_requests, id, &Question::CancelTask { id: id.to_owned() }).await.is_ok()
        {
            return Ok(());
        }
        let StoredTask { run, .. } = stored.row(hub, id).await?;
        if let Some(run) = run.as_deref().and_then(RunId::parse) {
            stored.durable.cancel(hub, &run).await.map_err(|error| unavailable(&error))?;
        }
        Ok(())
    }

    /// Cancels a task that this server has.
    ///
    /// # Errors
    /// It has none of this id.
    pub fn cancel_here(&self, id: &str) -> Result<(), ErrorData> {
        self.manager.cancel_task(self.own(id)?)
    }

    /// Returns the id of a task of this server in the manager.
    fn own<'a>(&self, id: &'a str) -> Result<&'a str, ErrorData> {
        match &self.stored {
            Some(stored) => stored.own(id).ok_or_else(|| unknown(id)),
            None => Ok(id),
        }
    }
}

/// Asks the server that has begun a task.
async fn ask(replica_requests: Option<&ReplicaRequests>, id: &str, question: &Question) -> Result<Value, NotAnswered> {
    let server = id.split_once(SEPARATOR).map(|(server, _)| server);
    match (replica_requests, server) {
        (Some(replica_requests), Some(server)) if server != replica_requests.own() => {
            replica_requests.ask(server, question).await
        }
        (_, _) => Err(NotAnswered::Unknown),
    }
}

impl TaskStore {
    fn named(&self, id: &str) -> String {
        format!("{}{SEPARATOR}{id}", self.server)
    }

    fn own<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(self.server.as_str())?.strip_prefix(SEPARATOR)
    }

    async fn row(&self, hub: &Hub, id: &str) -> Result<StoredTask, ErrorData> {
        let keys = self.durable.keys(hub.config()).await.map_err(|error| unavailable(&error))?;
        let task = self.tasks.get(&keys, &self.scope, id).await.map_err(|error| unavailable(&error))?;
        task.ok_or_else(|| unknown(id))
    }

    /// Returns a task whose server has ended.
    async fn get(&self, hub: &Hub, id: &str, form: AnswerForm) -> Result<DetailedTask, ErrorData> {
        let StoredTask { run, description, end } = self.row(hub, id).await?;
        let damaged = || ErrorData::internal_error("The stored task is damaged", None);
        if let Some(end) = end {
            return serde_json::from_str(&end).map_err(|_| damaged());
        }
        let task: Task = serde_json::from_str(&description).map_err(|_| damaged())?;
        let standing = match run.as_deref().and_then(RunId::parse) {
            Some(run) => self.durable.run_state(hub, &run).await.map_err(|error| unavailable(&error))?,
            None => None,
        };
        let payload = match (standing, run) {
            (Some(RunState::Open(_)), _) => TaskPayload::Working,
            (Some(RunState::Ended(outcome)), _) => {
                TaskPayload::Completed { result: object(&meta_tool_result(meta::kept_answer(&outcome), form)) }
            }
            // A durable run is stored before its first call.
            (None, Some(_)) if hub.config().durable.enabled => {
                TaskPayload::Failed { error: lost("It had not called any tool: send the request again", false) }
            }
            (None, _) => TaskPayload::Failed {
                error: lost("Calls of tools may have been made, or not: check that before you send it again", true),
            },
        };
        Ok(DetailedTask::new(task, payload))
    }
}

fn lost(what_to_do: &str, may_have_run: bool) -> JsonObject {
    let message = format!("The server that had this task has ended before it. {what_to_do}");
    object(&json!({
        "code": ErrorCode::INTERNAL_ERROR.0,
        "message": message,
        "data": {"code": "SERVER_ENDED", "mayHaveRun": may_have_run},
    }))
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => Map::new(),
    }
}

fn unknown(id: &str) -> ErrorData {
    let id = codecall_base::text::truncate(id, codecall_base::tool::MAX_NAME_BYTES);
    ErrorData::invalid_params(format!("There is no task '{id}' (any more)"), None)
}

fn unavailable(error: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("The task cannot be read now; try again later: {error}"), None)
}

/// A task that is stored when it ends.
struct PersistedTask {
    stored: Arc<TaskStore>,
    live: LiveHub,
    run: Option<RunId>,
    form: AnswerForm,
    ttl_ms: Option<u64>,
    /// Resolves when the task is stored itself.
    is_stored: oneshot::Receiver<()>,
}

impl PersistedTask {
    async fn run(self, work: Work, context: TaskContext) -> Result<CallToolResult, TaskExit> {
        let Self { stored, live, run, form, ttl_ms, is_stored } = self;
        let id = stored.named(context.task_id());
        let mut ended = suspended::run_as_task(work, context.clone(), ttl_ms).await;
        // The request is answered when its run pauses, or goes on at another server. The task is not.
        if let Some(run) = &run {
            let hub = live.get();
            match stored.durable.run_state(&hub, run).await {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => {
                    ended = outcome(&hub, &stored, run, form, &context).await;
                    // Its end is that of its run.
                    return ended;
                }
            }
        }
        let payload = match &ended {
            Ok(result) => TaskPayload::Completed { result: object(result) },
            Err(TaskExit::Cancelled) => TaskPayload::Cancelled,
            Err(TaskExit::Error(error)) => TaskPayload::Failed { error: object(error) },
        };
        if is_stored.await.is_ok()
            && let Ok(StoredTask { description, .. }) = stored.row(&live.get(), &id).await
            && let Ok(task) = serde_json::from_str(&description)
        {
            let end = serde_json::to_string(&DetailedTask::new(task, payload)).unwrap_or_default();
            let stored = match stored.durable.keys(live.get().config()).await {
                Ok(keys) => stored.tasks.end(&keys, &stored.scope, &id, &end).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = stored {
                tracing::warn!("other servers do not know how a task has ended: {error}");
            }
        }
        ended
    }
}

/// Waits for the outcome of a run that outlives the request.
async fn outcome(
    hub: &Hub,
    stored: &TaskStore,
    run: &RunId,
    form: AnswerForm,
    context: &TaskContext,
) -> Result<CallToolResult, TaskExit> {
    tokio::select! {
        answer = meta::until_ended(hub, run) => match answer {
            Some(answer) => Ok(meta_tool_result(answer, form)),
            None => Err(ErrorData::internal_error("the run of the task is not kept any more", None).into()),
        },
        () = context.cancelled() => {
            let _ = stored.durable.cancel(hub, run).await;
            Err(TaskExit::Cancelled)
        }
    }
}

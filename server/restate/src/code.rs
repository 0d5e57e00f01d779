//! A run of a script, as a workflow whose key is the id of the run.

use crate::engine::{self, RestateEngine};
use crate::worker::{Worker, version};
use codecall_base::call::with_client;
use codecall_base::tool::ErrorCode;
use codecall_hub::hub::{Start, Started, interpreter};
use codecall_hub::meta::{kept, kept_failure};
use codecall_runs::EngineStart;
use codecall_store::now_ms;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The state of a run that has begun.
const BEGUN: &str = "begun";

/// The record of the begin of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartRecord {
    /// Its invocation, to which signals are sent.
    pub invocation: String,
    /// The digest of its request.
    pub request: String,
    /// The version of the worker that has begun it.
    pub worker: String,
    /// When it began, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The workflow of runs.
pub struct Code(pub Arc<Worker>);

#[restate_sdk::workflow(name = "Code")]
impl Code {
    /// Runs a script. Returns the outcome as its client gets it.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, start: Json<Start>) -> Result<Json<String>, HandlerError> {
        let Json(start) = start;
        let begun = StartRecord {
            invocation: ctx.invocation_id().to_owned(),
            request: start.request().to_owned(),
            worker: version(),
            at_ms: now_ms(),
        };
        let Json(begun) = ctx.run(|| async { Ok(Json(begun)) }).name("begin").await?;
        if begun.worker != version() {
            let why = format!(
                "REPLAY_MISMATCH: the run was begun by {}, and this worker is {}: start a worker of that version at this \
                 address, or cancel the run",
                begun.worker,
                version()
            );
            return Err(Worker::refuse(ctx.key(), why));
        }
        if start.interpreter() != interpreter() {
            let message = format!(
                "The run cannot go on: it was submitted by {}, and the worker is {}; use servers and workers of one version",
                start.interpreter(),
                interpreter()
            );
            return Ok(Json(kept_failure(ErrorCode::ReplayMismatch, &message)));
        }
        let began_ms = begun.at_ms;
        ctx.set(BEGUN, Json(begun));
        let directory = self.0.directory(start.tools()).await;
        let directory = directory.map_err(|why| Worker::refuse(ctx.key(), why))?;
        let hub = self.0.hub_of(start.owner()).map_err(|why| Worker::refuse(ctx.key(), why))?;
        let (owner, limit_ms, seed) = (start.owner().cloned(), start.max_duration_ms(), start.seed());
        let started = match start.begin(ctx.key(), hub) {
            Ok(started) => started,
            Err(problem) => {
                let message = format!("The run cannot go on: {problem}");
                return Ok(Json(kept_failure(ErrorCode::ReplayMismatch, &message)));
            }
        };
        let Started { hub, request, client, max_result_bytes } = started;
        let facts = engine::RunFacts {
            run: ctx.key().to_owned(),
            allowed_tools: request.allowed_tools.clone(),
            allowed_apps: request.allowed_apps.clone(),
            client: client.as_deref().map(str::to_owned),
            owner,
            directory: Arc::clone(&directory),
            began_ms,
            limit_ms: limit_ms.unwrap_or(u64::MAX),
        };
        let mut engine = RestateEngine::new(&ctx, facts);
        let begin = EngineStart { seed, began_ms, directory };
        let running = async {
            let finished = hub.runs().execute_on(request, begin, &mut engine).await?;
            if let Some(durable) = hub.durable().filter(|_| hub.needs_approval()) {
                durable.withdraw(&finished.id).await;
            }
            Ok::<String, codecall_runs::EngineError>(kept(&hub, finished, max_result_bytes).await)
        };
        let running = async {
            match client {
                Some(client) => with_client(client, running).await,
                None => running.await,
            }
        };
        let outcome = tokio::select! {
            outcome = running => outcome.map_err(|error| Worker::refuse(ctx.key(), error.0))?,
            () = self.0.ending() => return Err("the worker ends; another one goes on with the run".into()),
        };
        Ok(Json(outcome))
    }

    /// Returns what the run has said when it began.
    #[handler]
    async fn begun(&self, ctx: SharedWorkflowContext<'_>) -> Result<Json<Option<StartRecord>>, HandlerError> {
        Ok(Json(ctx.get::<Json<StartRecord>>(BEGUN).await?.map(|Json(begun)| begun)))
    }

    /// Cancels the run, and with it the calls that it waits for. One that has not begun is cancelled when it begins.
    #[handler]
    async fn stop(&self, ctx: SharedWorkflowContext<'_>) -> Result<(), HandlerError> {
        let Some(Json(begun)) = ctx.get::<Json<StartRecord>>(BEGUN).await? else {
            return Err("the run has not begun".into());
        };
        ctx.invocation_handle(begun.invocation).cancel();
        Ok(())
    }
}

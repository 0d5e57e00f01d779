//! Requests whose tools ask the client that has made them.

use super::answer_form::AnswerForm;
use super::suspended::{self, SuspendedRequests, Work, WorkStatus};
use super::tasks::Tasks;
use super::{Handler, client, replica_requests, trace};
use codecall_base::client::Client;
use codecall_base::event::EventSink;
use codecall_base::telemetry;
use codecall_base::tool::{ErrorCode, ToolError};
use codecall_hub::hub::LiveHub;
use codecall_tools::pipeline::canonical;
use codecall_upstream::mcp::URL_REQUIRED;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a suspended request stays after the last time at which its tools wait for the client.
const SUSPENDED_AFTER_WAIT: Duration = Duration::from_secs(60);

/// The work of a request.
pub type Start = Box<dyn FnOnce(Client, EventSink, CancellationToken) -> suspended::Answering + Send>;

impl Handler {
    /// Answers a request whose tools can ask its client: `start` is its work. A client with a session is asked meanwhile. One
    /// without gets the questions as the result, and repeats the request with `repeated`. If it `can_be_task`, and takes
    /// long or becomes a task of a server, a client that knows tasks gets one.
    pub(super) fn interact(
        &self,
        context: &RequestContext<RoleServer>,
        subject: Subject,
        repeated: (Option<InputResponses>, Option<String>),
        sink: EventSink,
        can_be_task: bool,
        start: Start,
    ) -> suspended::Answering {
        let form = AnswerForm::of_request(self.hub().config().structured, context);
        let mut span = trace::begin(context, &subject);
        let trace = span.context();
        let start: Start =
            Box::new(move |client, sink, cancel| Box::pin(telemetry::within(trace, start(client, sink, cancel))));
        let config = self.hub().config().interaction;
        let is_modern = super::is_modern(context);
        let (responses, state) = repeated;
        let knows_tasks = context.client_capabilities().is_some_and(|own| own.supports_tasks());
        let can_be_task = can_be_task && is_modern && knows_tasks;
        let (client, session, messages) = client::of_request(context, self.number, config, can_be_task);
        let task_after = can_be_task.then_some(config.task_after);
        let answering = match state {
            Some(state) => self.continued(state, subject, responses, sink, context, task_after),
            None if is_modern && (client.can_be_asked() || task_after.is_some()) => {
                let work = Work::begin(subject, form, messages, sink, |sink, cancel| start(client, sink, cancel));
                self.proceed(work, responses, context, task_after)
            }
            None => {
                let answer = start(client, sink, context.ct.clone());
                client::while_asked(answer, session, messages)
            }
        };
        if !span.is_recorded() {
            return answering;
        }
        Box::pin(async move {
            let answer = answering.await;
            trace::describe_answer(&mut span, &answer);
            answer
        })
    }

    /// Goes on with the work of a repeated request, at whichever replica it is.
    fn continued(
        &self,
        state: String,
        subject: Subject,
        responses: Option<InputResponses>,
        sink: EventSink,
        context: &RequestContext<RoleServer>,
        task_after: Option<Duration>,
    ) -> suspended::Answering {
        if let Some(replica_requests) = &self.replica_requests
            && let Some((replica, state)) = replica_requests.other(&state)
        {
            let (replica_requests, cancel) = (Arc::clone(replica_requests), context.ct.clone());
            let (replica, state) = (replica.to_owned(), state.to_owned());
            return Box::pin(async move {
                let responses = responses.unwrap_or_default();
                let work_resumer = replica_requests.proceed(&replica, &state, subject, responses, task_after);
                let cancelled = || Err(ErrorData::internal_error("the request was cancelled", None));
                cancel.run_until_cancelled(work_resumer).await.unwrap_or_else(cancelled)
            });
        }
        match self.suspended.take(replica_requests::unnamed(&state), &subject) {
            Ok(work) => {
                work.send_events_to(sink);
                self.proceed(work, responses, context, task_after)
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn proceed(
        &self,
        work: Work,
        responses: Option<InputResponses>,
        context: &RequestContext<RoleServer>,
        task_after: Option<Duration>,
    ) -> suspended::Answering {
        let (work_resumer, cancel) = (self.work_resumer(), context.ct.clone());
        let responses = responses.unwrap_or_default();
        Box::pin(async move { work_resumer.proceed(work, responses, &cancel, task_after).await })
    }

    /// Returns what goes on with the work of requests.
    pub(super) fn work_resumer(&self) -> WorkResumer {
        let (suspended, tasks) = (Arc::clone(&self.suspended), self.tasks.clone());
        WorkResumer { live: self.live.clone(), suspended, tasks }
    }

    /// Lets servers ask for the roots of the client, if it is the only one.
    pub(super) fn announce_roots(&self, peer: &Peer<RoleServer>) {
        let client = client::of_session(peer, self.number, self.hub().config().interaction);
        if let Some(client) = client.filter(|_| self.is_only) {
            self.hub().set_only_client(&client);
        }
    }
}

/// Goes on with the work of requests.
#[derive(Clone)]
pub struct WorkResumer {
    live: LiveHub,
    pub suspended: Arc<SuspendedRequests>,
    pub tasks: Tasks,
}

impl WorkResumer {
    /// Goes on with work until it is done, its client has to answer, or `task_after` is over.
    pub async fn proceed(
        &self,
        work: Work,
        responses: InputResponses,
        cancel: &CancellationToken,
        task_after: Option<Duration>,
    ) -> suspended::Answer {
        let hub = self.live.get();
        let expiry = hub.config().interaction.max_wait + SUSPENDED_AFTER_WAIT;
        let proceeded = match self.suspended.proceed(work, responses, cancel, expiry, task_after).await {
            WorkStatus::Answered(answer) => *answer,
            WorkStatus::Long(work) => {
                let longest = Duration::from_millis(hub.config().policy.limits.max_duration_ms) + expiry;
                let task = self.tasks.begin(&self.live, work, longest).await?;
                Ok(ServerResult::CreateTaskResult(CreateTaskResult::new(task)))
            }
        };
        // Any replica gets the repeated request.
        match (proceeded, hub.replicas()) {
            (Ok(ServerResult::InputRequiredResult(mut required)), Some(replicas)) => {
                required.request_state =
                    required.request_state.map(|state| replica_requests::named(replicas.id(), &state));
                Ok(ServerResult::InputRequiredResult(required))
            }
            (proceeded, _) => proceeded,
        }
    }
}

/// The subject of a request; it identifies a request among the suspended ones.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    pub method: &'static str,
    /// The tool, prompt or resource.
    pub name: String,
    arguments: [u8; 32],
}

impl Subject {
    pub fn new(method: &'static str, name: &str, arguments: &Map<String, Value>) -> Self {
        let arguments = Sha256::digest(canonical(arguments).as_bytes()).into();
        Self { method, name: name.to_owned(), arguments }
    }
}

/// A subject as another replica sends it.
#[derive(Deserialize)]
struct SentSubject {
    method: String,
    name: String,
    arguments: [u8; 32],
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SentSubject { method, name, arguments } = SentSubject::deserialize(deserializer)?;
        let known = ["tools/call", "prompts/get", "resources/read"].into_iter().find(|known| *known == method);
        let method = known.ok_or_else(|| D::Error::custom("it is not the method of a request that can wait"))?;
        Ok(Self { method, name, arguments })
    }
}

pub fn wrong_result() -> ErrorData {
    ErrorData::internal_error("the result is that of another request", None)
}

/// Returns the error of the protocol for a tool that needs something of the client before it begins: a capability, or that a
/// person opens a page.
pub fn client_error(error: &ToolError) -> Option<ErrorData> {
    if error.code != ErrorCode::InputRequired {
        return None;
    }
    let details = serde_json::from_str::<Value>(error.details.as_deref()?).ok()?;
    let code = match details.get("requiredCapabilities") {
        Some(_) => rmcp::model::ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        None => details.get("elicitations").map(|_| URL_REQUIRED)?,
    };
    Some(ErrorData::new(code, error.message.clone(), Some(details)))
}

//! Requests of clients without a session whose tools ask the client.
//!
//! Such a client gets its questions as the result of its request (`input_required`), and repeats the request with the
//! answers. Meanwhile the work of the request goes on, or waits. The state that the client sends back is a random name of
//! that work, which is used once: it says nothing, and cannot be guessed.

use super::answer_form::AnswerForm;
use super::client::{Message, Messages, PendingQuestion};
use super::interact::Subject;
use codecall_base::client::{TaskUpdate, Unanswered};
use codecall_base::event::{EventSink, RunEvent, RunId};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Questions within this time go to the client together.
const SETTLE: Duration = Duration::from_millis(25);
/// Maximum number of suspended requests. One more drops the oldest.
const MAX_SUSPENDED: usize = 1_000;

/// How long the task of a server is kept that does not say it, and the longest time that one can say.
const SERVER_TASK_TTL: Duration = Duration::from_secs(3_600);
const MAX_TASK_TTL: Duration = Duration::from_secs(24 * 3_600);

/// How often a question of a task is asked whose answer is none.
const MAX_ATTEMPTS: usize = 3;

/// The result of a request.
pub type Answer = Result<ServerResult, ErrorData>;

/// The future of a result.
pub type Answering = BoxFuture<'static, Answer>;

/// How far the work of a request has come.
pub enum WorkStatus {
    /// The request is answered.
    Answered(Box<Answer>),
    /// It becomes a task, because it takes long or its server has made a task of it.
    Long(Work),
}

/// The suspended requests of a server, by the state that their clients have.
#[derive(Default)]
pub struct SuspendedRequests(Mutex<HashMap<String, (Instant, Work)>>);

/// The work of a request. Dropping it cancels the work.
pub struct Work {
    /// The subject of the request. The repeated request must have the same.
    subject: Subject,
    task: JoinHandle<Answer>,
    messages: Messages,
    /// How far the task is that the server has made of it.
    server_task: Option<TaskUpdate>,
    /// Questions without an answer, by their keys.
    open: BTreeMap<String, PendingQuestion>,
    /// The sink of the request that is being answered.
    sink: Arc<Mutex<EventSink>>,
    /// The run that it has begun.
    run: Arc<OnceLock<RunId>>,
    /// The form in which its client gets the answer.
    form: AnswerForm,
    _cancel: DropGuard,
}

impl SuspendedRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, Work)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the work of a repeated request.
    ///
    /// # Errors
    /// There is none, or it is that of another request.
    pub fn take(&self, state: &str, subject: &Subject) -> Result<Work, ErrorData> {
        let mut all = self.lock();
        let is_same = all.get(state).is_some_and(|(_, work)| work.subject == *subject);
        let work = if is_same { all.remove(state) } else { None };
        let unknown = "This requestState is unknown, has expired, was used before, or is that of another request; \
            send the request again without it";
        work.map(|(_, work)| work).ok_or_else(|| ErrorData::invalid_params(unknown, None))
    }

    /// Stores work whose client is asked, for `expiry`, and returns its questions.
    fn put(&self, work: Work, expiry: Duration) -> InputRequiredResult {
        let requests = work.open.iter().filter_map(|(key, asked)| Some((key.clone(), input_request(asked)?)));
        let (requests, state) = (requests.collect(), RunId::random().to_string());
        let mut all = self.lock();
        all.retain(|_, (since, _)| since.elapsed() < expiry);
        if all.len() >= MAX_SUSPENDED {
            let oldest = all.iter().min_by_key(|(_, (since, _))| *since).map(|(state, _)| state.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(state.clone(), (Instant::now(), work));
        InputRequiredResult::new(Some(requests), Some(state))
    }

    /// Cancels all work.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Continues work until it is done, its client has to answer, or `task_after` is over. `provided` are the answers that
    /// the request brings.
    pub async fn proceed(
        &self,
        mut work: Work,
        mut provided: InputResponses,
        cancel: &CancellationToken,
        expiry: Duration,
        task_after: Option<Duration>,
    ) -> WorkStatus {
        let became_long = async {
            match task_after {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
        };
        let mut became_long = std::pin::pin!(became_long);
        for (key, answer) in std::mem::take(&mut provided) {
            match work.open.remove(&key) {
                Some(asked) => {
                    // What is no answer is asked again.
                    if let Err(asked) = asked.answered(answer) {
                        work.open.insert(key, asked);
                    }
                }
                // It may be the answer to a question that comes.
                None => drop(provided.insert(key, answer)),
            }
        }
        loop {
            work.open.retain(|_, asked| !asked.answer.is_closed());
            if task_after.is_some() && work.server_task.is_some() && work.open.is_empty() {
                work.send_events_to(None);
                return WorkStatus::Long(work);
            }
            tokio::select! {
                biased;
                result = &mut work.task => {
                    return WorkStatus::Answered(Box::new(answer(result)));
                }
                () = cancel.cancelled() => {
                    let cancelled = ErrorData::internal_error("the request was cancelled", None);
                    return WorkStatus::Answered(Box::new(Err(cancelled)));
                }
                Some(message) = work.messages.next() => match message {
                    Message::Question(asked) => work.asked(asked, &mut provided),
                    Message::Task(update) => work.server_task = Some(update),
                },
                () = tokio::time::sleep(SETTLE), if !work.open.is_empty() => {
                    work.send_events_to(None);
                    let required = self.put(work, expiry);
                    return WorkStatus::Answered(Box::new(Ok(ServerResult::InputRequiredResult(required))));
                }
                () = &mut became_long, if work.open.is_empty() => {
                    work.send_events_to(None);
                    return WorkStatus::Long(work);
                }
            }
        }
    }
}

impl Work {
    /// Begins the work of a request, whose events go to `sink`. `start` gets what sends them, and its cancellation.
    pub fn begin(
        subject: Subject,
        form: AnswerForm,
        messages: Messages,
        sink: EventSink,
        start: impl FnOnce(EventSink, CancellationToken) -> Answering,
    ) -> Self {
        let (cancel, sink) = (CancellationToken::new(), Arc::new(Mutex::new(sink)));
        let (current, run) = (Arc::clone(&sink), Arc::<OnceLock<RunId>>::default());
        let begun = Arc::clone(&run);
        let forward: EventSink = Some(Arc::new(move |event| {
            if let RunEvent::Started { run } = &event {
                // The first one is that of the request.
                let _ = begun.set(run.clone());
            }
            let sink = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(sink) = sink {
                sink(event);
            }
        }));
        let task = tokio::spawn(start(forward, cancel.clone()));
        let (server_task, open, _cancel) = (None, BTreeMap::new(), cancel.drop_guard());
        Self { subject, task, messages, server_task, open, sink, run, form, _cancel }
    }

    /// Returns the run that it has begun; `None`: none yet.
    pub fn run(&self) -> Option<&RunId> {
        self.run.get()
    }

    /// Returns the form in which its client gets the answer.
    pub fn form(&self) -> AnswerForm {
        self.form
    }

    /// Returns how the task is kept and looked at, if it becomes one. `longest` is the time to live of what no server limits.
    pub fn task_options(&self, longest: Duration) -> TaskOptions {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let Some(TaskUpdate::Working { message, poll_interval, ttl }) = &self.server_task else {
            return TaskOptions::new().with_ttl_ms(milliseconds(longest));
        };
        let ttl = ttl.unwrap_or(SERVER_TASK_TTL).clamp(longest, MAX_TASK_TTL);
        let mut options = TaskOptions::new().with_ttl_ms(milliseconds(ttl));
        options.status_message.clone_from(message);
        match poll_interval {
            Some(interval) => options.with_poll_interval_ms(milliseconds(*interval)),
            None => options,
        }
    }

    /// Sends events to the request that is being answered. There are none while none is. The work goes on meanwhile, so
    /// this comes before anything else that a request does.
    pub fn send_events_to(&self, sink: EventSink) {
        *self.sink.lock().unwrap_or_else(PoisonError::into_inner) = sink;
    }

    /// Adds a question, unless the request has brought the answer.
    fn asked(&mut self, asked: PendingQuestion, provided: &mut InputResponses) {
        let own = key_of(&asked);
        let asked = match provided.remove(&own) {
            Some(answer) => match asked.answered(answer) {
                Ok(()) => return,
                Err(asked) => asked,
            },
            None => asked,
        };
        if input_request(&asked).is_none() {
            return refuse(asked);
        }
        let mut key = own.clone();
        let mut number = 1;
        while self.open.contains_key(&key) {
            number += 1;
            key = format!("{own}-{number}");
        }
        self.open.insert(key, asked);
    }
}

/// Continues work as a task until it is done, for at most `ttl_ms`. Its questions are those of the task.
///
/// # Errors
/// The request fails or takes too long, or its client has cancelled the task.
pub async fn run_as_task(
    mut work: Work,
    context: TaskContext,
    ttl_ms: Option<u64>,
) -> Result<CallToolResult, TaskExit> {
    // The library ends what is overdue only when it is asked for a task.
    let mut expiry = std::pin::pin!(tokio::time::sleep(ttl_ms.map_or(MAX_TASK_TTL, Duration::from_millis)));
    let mut asking = FuturesUnordered::new();
    let mut keys = BTreeSet::new();
    let mut server_task = work.server_task.take();
    loop {
        tokio::select! {
            biased;
            Some(message) = work.messages.next() => match message {
                Message::Question(asked) => {
                    // A key is used once in a task.
                    let own = key_of(&asked);
                    let mut key = own.clone();
                    while !keys.insert(key.clone()) {
                        key = format!("{own}-{}", keys.len());
                    }
                    asking.push(ask(&context, key, asked));
                }
                Message::Task(update) => {
                    if let TaskUpdate::Working { message: Some(message), .. } = &update {
                        context.set_status_message(message);
                    }
                    server_task = Some(update);
                }
            },
            result = &mut work.task => return ended(answer(result)?, server_task),
            () = context.cancelled() => return Err(TaskExit::Cancelled),
            () = &mut expiry => return Err(ErrorData::internal_error("the task has taken too long", None).into()),
            Some(()) = asking.next() => {}
        }
    }
}

/// Returns how a task ends: as that of the server has ended, if there is one.
fn ended(result: ServerResult, server_task: Option<TaskUpdate>) -> Result<CallToolResult, TaskExit> {
    let ServerResult::CallToolResult(result) = result else {
        return Err(ErrorData::internal_error("the result is not one of a tool", None).into());
    };
    let has_failed = result.is_error == Some(true);
    match server_task {
        Some(TaskUpdate::Failed { code }) if has_failed => {
            let text = result.content.iter().find_map(|block| Some(block.as_text()?.text.clone()));
            Err(ErrorData::new(ErrorCode(code), text.unwrap_or_default(), None).into())
        }
        Some(TaskUpdate::Cancelled) if has_failed => Err(TaskExit::Cancelled),
        Some(TaskUpdate::Failed { .. } | TaskUpdate::Cancelled | TaskUpdate::Working { .. }) | None => Ok(result),
    }
}

/// Asks a question of a task, again if the answer is none.
async fn ask(context: &TaskContext, key: String, mut asked: PendingQuestion) {
    for attempt in 1..=MAX_ATTEMPTS {
        let Some(request) = input_request(&asked) else { break };
        let key = if attempt == 1 { key.clone() } else { format!("{key}-{attempt}") };
        let Ok(answer) = context.request_input(key, request).await else { return };
        match asked.answered(answer) {
            Ok(()) => return,
            Err(again) => asked = again,
        }
    }
    refuse(asked);
}

fn refuse(asked: PendingQuestion) {
    let reason = "question or answer are not of MCP".to_owned();
    let _ = asked.answer.send(Err(Unanswered::Refused(reason)));
}

fn answer(result: Result<Answer, JoinError>) -> Answer {
    result.unwrap_or_else(|_| Err(ErrorData::internal_error("the request has crashed", None)))
}

/// Returns the name of a question: that of its upstream, if there is one.
fn key_of(asked: &PendingQuestion) -> String {
    asked.question.key.clone().unwrap_or_else(|| asked.question.method.as_str().replace('/', "-"))
}

fn input_request(asked: &PendingQuestion) -> Option<InputRequest> {
    let request: Value = json!({"method": asked.question.method.as_str(), "params": asked.question.params});
    serde_json::from_value(request).ok()
}

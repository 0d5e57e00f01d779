//! The events of a run, forwarded to the client: progress if it has given a token, wanted log messages, and
//! notifications of the script.
#![expect(deprecated, reason = "logging is deprecated by the newest version; clients of today use it")]

use super::is_modern;
use agentscript::Message;
use codecall_base::event::{CallUpdate, EventSink, LogMessage, RunEvent, RunId};
use codecall_upstream::BoxFuture;
use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_util::StreamExt as _;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Events in the queue to a client that does not read. More events are dropped.
const QUEUE_CAPACITY: usize = 1_000;

/// How long the client may take to read the queued events before it gets the answer.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the answer after the events before it have been forwarded.
///
/// When the answer is there, the queue of events is closed, which ends `forwarding` after those in it: a stuck thread
/// may hold a sink, and a client may not read, but neither delays the answer for long.
pub async fn after_events<T>(mut answer: BoxFuture<'static, T>, Forwarding { queue, mut forwarding }: Forwarding) -> T {
    tokio::select! {
        answer = &mut answer => {
            queue.close_channel();
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, forwarding).await;
            return answer;
        }
        () = &mut forwarding => {}
    }
    answer.await
}

/// The severity of a log message: 0 is `debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

/// The level of a session that has set none.
const DEFAULT_LEVEL: Level = Level(LoggingLevel::Info as u8);

impl From<LoggingLevel> for Level {
    fn from(level: LoggingLevel) -> Self {
        Self(level as u8)
    }
}

/// Whether a session with this level gets messages of the named level.
pub fn is_logged(level: &str, session: Option<Level>) -> bool {
    Level::from(parse_level(level)) >= session.unwrap_or(DEFAULT_LEVEL)
}

/// Returns the level of a name, which may also be a method of `console`. An unknown name is `info`.
pub fn parse_level(name: &str) -> LoggingLevel {
    match name.to_ascii_lowercase().as_str() {
        "debug" | "trace" => LoggingLevel::Debug,
        "notice" => LoggingLevel::Notice,
        "warn" | "warning" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        "critical" | "fatal" => LoggingLevel::Critical,
        "alert" => LoggingLevel::Alert,
        "emergency" => LoggingLevel::Emergency,
        _ => LoggingLevel::Info,
    }
}

/// Forwards the events of a request to its client.
pub struct Forwarding {
    /// Keeps the queue open, until it is closed.
    queue: UnboundedSender<RunEvent>,
    /// Ends when the queue is closed, with the events in it. It must be polled in the task of the request, so that messages go
    /// to the stream of the request.
    forwarding: BoxFuture<'static, ()>,
}

/// Creates the event sink for the run of a request, and what forwards its events to the client.
///
/// If the request calls a `single` tool, progress of the tool is progress of the request; otherwise each event of a call is
/// one step.
pub fn event_sink(
    context: &RequestContext<RoleServer>,
    session: Option<Level>,
    single: bool,
) -> (EventSink, Forwarding) {
    // As in `client`: most runs have few events.
    let (sender, mut receiver) = unbounded::<RunEvent>();
    let token = context.meta.get_progress_token();
    let modern = is_modern(context);
    // Without a session, a request gets log messages only if it names a level.
    let min_level = match (context.meta.log_level(), modern) {
        (Some(level), _) => Some(Level::from(level)),
        (None, true) => None,
        (None, false) => Some(session.unwrap_or(DEFAULT_LEVEL)),
    };
    // The progress of a single tool may begin at 0, and each step must be greater than the one before.
    let progress = if single { -1.0 } else { 0.0 };
    let peer = context.peer.clone();
    let queue = sender.clone();
    let (has_progress, has_log) = (token.is_some(), min_level.is_some());
    let sink: EventSink = Some(Arc::new(move |event| {
        let is_wanted = match &event {
            RunEvent::Started { .. } | RunEvent::Message(Message::Notify { .. }) => true,
            RunEvent::CallReached { .. } | RunEvent::CallRetried { .. } => false,
            RunEvent::Message(Message::Log { .. }) => has_log,
            RunEvent::Durable { .. }
            | RunEvent::CallStarted { .. }
            | RunEvent::CallEnded { .. }
            | RunEvent::CallUpdated { .. } => has_log || has_progress,
        };
        if is_wanted && sender.len() < QUEUE_CAPACITY {
            // The client may wait no longer.
            let _ = sender.unbounded_send(event);
        }
    }));
    let mut forwarder = Forwarder { token, min_level, single, progress, has_upstream_progress: false, run: None };
    let forwarding = Box::pin(async move {
        while let Some(event) = receiver.next().await {
            forwarder.forward(event, &peer).await;
        }
    });
    (sink, Forwarding { queue, forwarding })
}

/// Makes the notifications of a request.
struct Forwarder {
    token: Option<ProgressToken>,
    /// The lowest level of log messages; `None` if the client wants none.
    min_level: Option<Level>,
    single: bool,
    /// The last progress that was sent.
    progress: f64,
    /// Whether the upstream of the single tool has sent progress itself.
    has_upstream_progress: bool,
    /// The run of the events; `None` if no script runs.
    run: Option<RunId>,
}

impl Forwarder {
    /// Sends the notifications of an event.
    async fn forward(&mut self, event: RunEvent, peer: &Peer<RoleServer>) {
        for notification in self.notifications(event) {
            // The client may be gone.
            let _ = peer.send_notification(notification).await;
        }
    }

    /// Returns the notifications of an event: a step of progress, and a log message.
    fn notifications(&mut self, event: RunEvent) -> Vec<ServerNotification> {
        let mut step = None;
        let log = match event {
            RunEvent::Started { run } => {
                self.run = Some(run);
                None
            }
            RunEvent::CallReached { .. } | RunEvent::CallRetried { .. } => None,
            RunEvent::Durable { run } => {
                let text = format!("the outcome of this run is kept; its handle is {run}");
                step = self.step(text).map(|progress| with_run(progress, &run));
                let handle = run.as_str().to_owned();
                self.run = Some(run);
                self.log("codecall.runs", LoggingLevel::Info, || {
                    self.with_run_id(json!({"event": "durable_run", "handle": handle}))
                })
            }
            RunEvent::CallStarted { tool, call, input } => {
                step = self.step(format!("{tool} …"));
                self.log("codecall.tools", LoggingLevel::Info, || {
                    let call = call.to_string();
                    self.with_run_id(
                        json!({"event": "tool_call_start", "toolName": tool, "input": input, "callId": call}),
                    )
                })
            }
            RunEvent::CallEnded { tool, call, input, duration, error } => {
                let ms = duration.as_millis();
                let outcome = error.as_ref().map_or("ok", |error| &error.code);
                // The upstream's own progress has ended with the call.
                if !self.has_upstream_progress {
                    step = self.step(format!("{tool}: {outcome}, {ms} ms"));
                }
                self.log("codecall.tools", LoggingLevel::Info, || {
                    let status = if error.is_some() { "error" } else { "ok" };
                    let mut data = json!({
                        "event": "tool_call_end", "toolName": tool, "input": input, "callId": call.to_string(),
                        "status": status, "durationMs": u64::try_from(ms).unwrap_or(u64::MAX),
                    });
                    if let Some(error) = error {
                        data["error"] = json!({"code": error.code, "message": error.message});
                    }
                    self.with_run_id(data)
                })
            }
            RunEvent::CallUpdated { tool, update: CallUpdate::Progress { progress, total, message } } => {
                step = self.upstream_progress(&tool, progress, total, message);
                None
            }
            RunEvent::CallUpdated { tool, update: CallUpdate::Log(LogMessage { level, logger, data }) } => {
                let app = tool.split([':', '.']).next().unwrap_or_default().to_owned();
                let logger = logger.map_or_else(|| app.clone(), |logger| format!("{app}.{logger}"));
                self.log(&logger, parse_level(&level), || data)
            }
            RunEvent::Message(Message::Log { level, message, metadata }) => {
                self.log("codecall.script", parse_level(&level), || {
                    let mut data = json!({"message": message});
                    if let Some(metadata) = metadata {
                        data["metadata"] = parse_json(&metadata);
                    }
                    self.with_run_id(data)
                })
            }
            RunEvent::Message(Message::Notify { event, payload }) => {
                let params = self.with_run_id(json!({"event": event, "payload": parse_json(&payload)}));
                let notification = CustomNotification::new("notifications/codecall/event", Some(params));
                Some(ServerNotification::CustomNotification(notification))
            }
        };
        step.into_iter().chain(log).collect()
    }

    /// Adds the id of the run, if a script runs.
    fn with_run_id(&self, mut data: Value) -> Value {
        if let Some(run) = &self.run {
            data["runId"] = run.as_str().into();
        }
        data
    }

    /// Returns the progress that an upstream has sent. MCP requires that progress only grows, but messages of a call may
    /// arrive in another order.
    fn upstream_progress(
        &mut self,
        tool: &str,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Option<ServerNotification> {
        if !self.single {
            let so_far = total.map_or_else(|| progress.to_string(), |total| format!("{progress} of {total}"));
            let text = message.map_or_else(|| so_far.clone(), |message| format!("{message} ({so_far})"));
            return self.step(format!("{tool}: {text}"));
        }
        let token = self.token.as_ref().filter(|_| progress > self.progress)?;
        let mut params = ProgressNotificationParam::new(token.clone(), progress);
        (params.total, params.message) = (total, message);
        (self.progress, self.has_upstream_progress) = (progress, true);
        Some(ServerNotification::ProgressNotification(ProgressNotification::new(params)))
    }

    /// Returns the next step of progress.
    fn step(&mut self, text: String) -> Option<ServerNotification> {
        let token = self.token.as_ref()?;
        self.progress += 1.0;
        let params = ProgressNotificationParam::new(token.clone(), self.progress).with_message(text);
        Some(ServerNotification::ProgressNotification(ProgressNotification::new(params)))
    }

    fn log(&self, logger: &str, level: LoggingLevel, data: impl FnOnce() -> Value) -> Option<ServerNotification> {
        self.min_level.filter(|min_level| Level::from(level) >= *min_level)?;
        let mut params = LoggingMessageNotificationParam::new(level, data());
        params.logger = Some(logger.into());
        Some(ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(params)))
    }
}

/// Adds the run to the `_meta` of progress.
fn with_run(mut notification: ServerNotification, run: &RunId) -> ServerNotification {
    if let ServerNotification::ProgressNotification(progress) = &mut notification {
        let mut meta = NotificationMetaObject::new();
        meta.insert("codecall/run".to_owned(), run.as_str().into());
        progress.extensions.insert(meta);
    }
    notification
}

fn parse_json(text: &str) -> Value {
    codecall_base::json::parse(text).unwrap_or_default()
}

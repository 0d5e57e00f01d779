//! What happens in a run, told to the client: progress where it has given a token, log messages
//! where it wants them, notifications of the script.
#![expect(deprecated, reason = "logging is deprecated by the newest version; clients of today use it")]

use agentscript::Message;
use codecall_base::event::{CallUpdate, LogMessage, RunEvent, RunId, Watcher};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages on their way to a client that does not read; further ones are dropped.
const MOST: usize = 1_000;

/// How long a client may take to read what was told before its answer.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// An answer, after all that was told before it. `answered` fires when it is known, and ends `forwarding`:
/// nobody waits for a watcher that a thread holds which is stuck, nor long for a client that does not read.
pub async fn told<T>(answer: impl Future<Output = T>, forwarding: impl Future, answered: &CancellationToken) -> T {
    let answer = async {
        let answer = answer.await;
        answered.cancel();
        answer
    };
    let (mut answer, mut forwarding) = (std::pin::pin!(answer), std::pin::pin!(forwarding));
    tokio::select! {
        answer = &mut answer => {
            let _ = tokio::time::timeout(AFTERWARDS, forwarding).await;
            answer
        }
        _ = &mut forwarding => answer.await,
    }
}

/// How much a log message matters: 0 is `debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

impl Level {
    /// As MCP names it.
    pub fn of(level: LoggingLevel) -> Self {
        Self(level as u8)
    }
}

/// Whether a session wants to hear a message of that level where it has asked for `session`.
pub fn wants(session: Option<Level>, level: &str) -> Option<LoggingLevel> {
    let (level, least) = (named(level), session.unwrap_or(Level::of(LoggingLevel::Info)));
    (Level::of(level) >= least).then_some(level)
}

/// The level of that name; scripts use the names of `console` too.
pub fn named(name: &str) -> LoggingLevel {
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

/// Who watches the run of a request, and the work of forwarding the client, which ends with the last
/// watcher, or with what was told when the request is `answered`. It is polled in the task of the request, so that messages go to the right stream. The request
/// is a call of a `single` tool, whose progress is that of the request, or of as many as there are.
pub fn watcher(
    context: &RequestContext<RoleServer>,
    session: Option<Level>,
    single: bool,
    answered: CancellationToken,
) -> (Watcher, impl Future<Output = ()> + use<>) {
    let (sender, mut receiver) = mpsc::channel(MOST);
    let watcher: Watcher = Some(Arc::new(move |event| drop(sender.try_send(event))));
    let token = context.meta.get_progress_token();
    let modern = context.protocol_version().is_some_and(|version| version.as_str() >= "2026-07-28");
    // Without a session, only a request that names a level wants log messages.
    let least = match (context.meta.log_level(), modern) {
        (Some(level), _) => Some(Level::of(level)),
        (None, true) => None,
        (None, false) => Some(session.unwrap_or(Level::of(LoggingLevel::Info))),
    };
    // A single tool counts from one itself.
    let step = if single { -1.0 } else { 0.0 };
    let mut client = Client { peer: context.peer.clone(), token, least, single, step, passed: false, run: None };
    let forwarding = async move {
        loop {
            let next = tokio::select! {
                biased;
                next = receiver.recv() => next,
                () = answered.cancelled() => {
                    receiver.close();
                    receiver.recv().await
                }
            };
            let Some(event) = next else { break };
            client.tell(event).await;
        }
    };
    (watcher, forwarding)
}

struct Client {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    least: Option<Level>,
    single: bool,
    /// How many steps of progress there have been, or how far the single tool has come.
    step: f64,
    /// Whether that was told by its upstream.
    passed: bool,
    /// The run that is told of; absent: no script runs.
    run: Option<RunId>,
}

impl Client {
    async fn tell(&mut self, event: RunEvent) {
        match event {
            RunEvent::Started { run } => self.run = Some(run),
            RunEvent::CallStarted { tool, call, input } => {
                self.progress(format!("{tool} …")).await;
                self.log("codecall.tools", LoggingLevel::Info, || {
                    let call = call.to_string();
                    self.of_run(json!({"event": "tool_call_start", "toolName": tool, "input": input, "callId": call}))
                })
                .await;
            }
            RunEvent::CallEnded { tool, call, input, duration, error } => {
                let ms = duration.as_millis();
                let how = error.as_ref().map_or("ok", |error| &error.code);
                // The end of what an upstream has counted is its own business.
                if !self.passed {
                    self.progress(format!("{tool}: {how}, {ms} ms")).await;
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
                    self.of_run(data)
                })
                .await;
            }
            RunEvent::CallUpdated { tool, update: CallUpdate::Progress { progress, total, message } } => {
                self.reported(&tool, progress, total, message).await;
            }
            RunEvent::CallUpdated { tool, update: CallUpdate::Log(LogMessage { level, logger, data }) } => {
                let app = tool.split([':', '.']).next().unwrap_or_default().to_owned();
                let logger = logger.map_or_else(|| app.clone(), |logger| format!("{app}.{logger}"));
                self.log(&logger, named(&level), || data).await;
            }
            RunEvent::Message(Message::Log { level, message, metadata }) => {
                self.log("codecall.script", named(&level), || {
                    let mut data = json!({"message": message});
                    if let Some(metadata) = metadata {
                        data["metadata"] = parsed(&metadata);
                    }
                    self.of_run(data)
                })
                .await;
            }
            RunEvent::Message(Message::Notify { event, payload }) => {
                let params = self.of_run(json!({"event": event, "payload": parsed(&payload)}));
                let told = CustomNotification::new("notifications/codecall/event", Some(params));
                let _ = self.peer.send_notification(ServerNotification::CustomNotification(told)).await;
            }
        }
    }

    /// Data with the id of the run, where a script runs.
    fn of_run(&self, mut data: Value) -> Value {
        if let Some(run) = &self.run {
            data["runId"] = run.as_str().into();
        }
        data
    }

    /// An upstream has told how far a call has come. Progress must only grow, and messages of one
    /// call may pass each other.
    async fn reported(&mut self, tool: &str, progress: f64, total: Option<f64>, message: Option<String>) {
        if !self.single {
            let so_far = total.map_or_else(|| progress.to_string(), |total| format!("{progress} of {total}"));
            let text = message.map_or_else(|| so_far.clone(), |message| format!("{message} ({so_far})"));
            return self.progress(format!("{tool}: {text}")).await;
        }
        if let Some(token) = &self.token
            && progress > self.step
        {
            (self.step, self.passed) = (progress, true);
            let mut told = ProgressNotificationParam::new(token.clone(), progress);
            (told.total, told.message) = (total, message);
            let _ = self.peer.notify_progress(told).await;
        }
    }

    async fn progress(&mut self, text: String) {
        if let Some(token) = &self.token {
            self.step += 1.0;
            let told = ProgressNotificationParam::new(token.clone(), self.step).with_message(text);
            let _ = self.peer.notify_progress(told).await;
        }
    }

    async fn log(&self, logger: &str, level: LoggingLevel, data: impl FnOnce() -> Value) {
        if self.least.is_some_and(|least| Level::of(level) >= least) {
            let mut told = LoggingMessageNotificationParam::new(level, data());
            told.logger = Some(logger.into());
            let _ = self.peer.notify_logging_message(told).await;
        }
    }
}

fn parsed(text: &str) -> Value {
    codecall_base::json::parse(text).unwrap_or_default()
}

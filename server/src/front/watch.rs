//! What happens in a run, told to the client: progress where it has given a token, log messages
//! where it wants them, notifications of the script.
#![expect(deprecated, reason = "logging is deprecated by the newest version; clients of today use it")]

use crate::runs::{Happening, Watcher};
use agentscript::Message;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::RoleServer;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Messages on their way to a client that does not read; further ones are dropped.
const MOST: usize = 1_000;

/// How much a log message matters: 0 is `debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

impl Level {
    /// As MCP names it.
    pub fn of(level: LoggingLevel) -> Self {
        Self(level as u8)
    }
}

/// The level of that name; scripts use the names of `console` too.
fn named(name: &str) -> LoggingLevel {
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

/// Who watches the run of a request, and the work of telling the client, which ends with the last
/// watcher. It is polled in the task of the request, so that messages go to the right stream.
pub fn watcher(context: &RequestContext<RoleServer>, session: Option<Level>) -> (Watcher, impl Future<Output = ()> + use<>) {
    let (sender, mut receiver) = mpsc::channel(MOST);
    let watcher: Watcher = Some(Arc::new(move |happening| drop(sender.try_send(happening))));
    let peer = context.peer.clone();
    let token = context.meta.get_progress_token();
    let modern = context.protocol_version().is_some_and(|version| version.as_str() >= "2026-07-28");
    // Without a session, only a request that names a level wants log messages.
    let least = match (context.meta.log_level(), modern) {
        (Some(level), _) => Some(Level::of(level)),
        (None, true) => None,
        (None, false) => Some(session.unwrap_or(Level::of(LoggingLevel::Info))),
    };
    let telling = async move {
        let mut step = 0.0;
        while let Some(happening) = receiver.recv().await {
            match happening {
                Happening::CallStarted { tool, .. } => {
                    if let Some(token) = &token {
                        step += 1.0;
                        let told = ProgressNotificationParam::new(token.clone(), step).with_message(format!("{tool} …"));
                        let _ = peer.notify_progress(told).await;
                    }
                }
                Happening::CallEnded { tool, duration, error, .. } => {
                    if let Some(token) = &token {
                        step += 1.0;
                        let how = error.unwrap_or_else(|| "ok".into());
                        let text = format!("{tool}: {how}, {} ms", duration.as_millis());
                        let told = ProgressNotificationParam::new(token.clone(), step).with_message(text);
                        let _ = peer.notify_progress(told).await;
                    }
                }
                Happening::Message(Message::Log { level, message, metadata }) => {
                    let level = named(&level);
                    if least.is_some_and(|least| Level::of(level) >= least) {
                        let mut data = json!({"message": message});
                        if let Some(metadata) = metadata.and_then(|text| serde_json::from_str::<Value>(&text).ok()) {
                            data["metadata"] = metadata;
                        }
                        let mut told = LoggingMessageNotificationParam::new(level, data);
                        told.logger = Some("codecall".into());
                        let _ = peer.notify_logging_message(told).await;
                    }
                }
                Happening::Message(Message::Notify { event, payload }) => {
                    let payload: Value = serde_json::from_str(&payload).unwrap_or_default();
                    let params = json!({"event": event, "payload": payload});
                    let told = CustomNotification::new("notifications/codecall/event", Some(params));
                    let _ = peer.send_notification(ServerNotification::CustomNotification(told)).await;
                }
            }
        }
    };
    (watcher, telling)
}

//! Output of the server contains no secret. Each way out is tested with a secret that is added while the server runs,
//! and with random ones in every spelling.

mod leaky;
mod random;
mod spellings;
mod world;

use crate::support::*;
use agentscript::Policy;
use codecall::config::Format;
use codecall::event::RunEvent;
use codecall::redact::{RefusedSecret, SecretRegistry, redact_log_line};
use codecall::runs::ExecuteRequest;
use codecall::tool::ToolError;
use codecall::upstream::inline::Inline;
use codecall::{Config, Hub, meta};
use leaky::Told;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;
use world::World;

/// A secret that no configuration contains.
const SECRET: &str = "late-Zq3/7+x&9Kd_5w";
/// A secret of other hubs: the logs of a process are redacted with the secrets of all its hubs.
const OTHER_SECRET: &str = "other-9Kd_5w-Zq3";

fn config(value: &Value) -> Config {
    isolated(Config::parse(&value.to_string(), Format::Json, &|_| None).expect("valid"))
}

#[tokio::test]
async fn a_secret_that_was_added_later_does_not_leave() {
    let tell = Inline::new("leak").tool("tell", "", json!({"type": "object"}), |_| async { Ok(json!(OTHER_SECRET)) });
    let hub = Hub::start(config(&json!({})), vec![Arc::new(tell)]).expect("starts");
    let result = async || {
        let request = ExecuteRequest::new("return await callTool('leak:tell', {})", Policy::default());
        hub.execute(request, None, CancellationToken::new()).await.outcome.result.expect("ok")
    };
    assert_eq!(result().await, json!(OTHER_SECRET).to_string());
    hub.secrets().add(OTHER_SECRET).expect("long enough");
    assert_eq!(result().await, json!("[secret]").to_string());
    hub.secrets().remove(OTHER_SECRET);
    assert_eq!(result().await, json!(OTHER_SECRET).to_string());
    assert_eq!(hub.secrets().add("short"), Err(RefusedSecret::TooShort));
}

/// Every way out, before the secret is added and afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn no_way_out_lets_a_secret_pass_that_was_added_later() {
    let mut world = World::start(Told::only(SECRET), 2, &[]).await;
    let mut ways = world.ways_out().await;
    ways.extend(world.script_tools().await);
    let useless: Vec<_> = ways.iter().filter(|(_, left)| !left.to_string().contains(SECRET)).collect();
    assert!(ways.len() > 40 && useless.is_empty(), "they do not show what is to be redacted: {useless:#?}");
    let (handle, ..) = world.store_long_result().await;
    world.hub.secrets().add(SECRET).expect("long enough");
    let mut ways = world.ways_out().await;
    ways.extend(world.script_tools().await);
    let is_clean = |left: &str| left.contains("[secret]") && !left.contains(SECRET);
    let leaks: Vec<_> = ways.iter().filter(|(_, left)| !is_clean(&left.to_string())).collect();
    assert!(ways.len() > 40 && leaks.is_empty(), "{leaks:#?}");
    let figures = world.figures().await;
    let leaks: Vec<_> = figures.iter().filter(|(_, left)| left.to_string().contains(SECRET)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    // It begins and ends in a secret.
    let piece = world.piece(&handle, world.repeated().len() as u64 / 2).await.to_string();
    assert!(!piece.contains("late") && !piece.contains("9Kd_5w") && piece.contains("[secret] and more"), "{piece}");
    // Clients are told that the descriptions have changed.
    until("the notification", || world.recorded.changes.load(Ordering::Relaxed) > 0).await;
    world.hub.close().await;
}

/// A tool that learns a secret while it is called, and the input of whose call contains it.
#[tokio::test]
async fn a_call_that_adds_a_secret_ends_without_it() {
    let folder = Folder::new();
    let audit = folder.path("audit.jsonl");
    let config = config(&json!({"audit": {"file": audit}}));
    let secrets = Arc::clone(&config.secrets);
    let sign_in = Inline::new("leak").tool("signIn", "", json!({"type": "object"}), move |call| {
        let added = secrets.add(call.input["key"].as_str().expect("a text"));
        async move { added.map(|()| json!(call.input)).map_err(|refused| ToolError::new("NO", refused.to_string())) }
    });
    let hub = Hub::start(config, vec![Arc::new(sign_in)]).expect("starts");
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let sink = Some(Arc::new(move |event| seen.lock().expect("not poisoned").push(event)) as _);
    let script = format!("return await callTool('leak:signIn', {{ key: '{OTHER_SECRET}' }})");
    let answer = meta::call(&hub, "codecall_execute", json!({"script": script}), sink, CancellationToken::new()).await;
    let answer = answer.expect("a meta-tool");
    assert_eq!(answer.content.into_value(), json!({"status": "ok", "result": {"key": "[secret]"}}));
    let meta = Value::Object(answer.meta.expect("calls")).to_string();
    assert!(meta.contains("[secret]") && !meta.contains(OTHER_SECRET), "{meta}");
    let inputs: Vec<Value> = events
        .lock()
        .expect("not poisoned")
        .iter()
        .filter_map(|event| match event {
            RunEvent::CallStarted { input, .. } | RunEvent::CallEnded { input, .. } => Some(Value::clone(input)),
            RunEvent::Started { .. }
            | RunEvent::Durable { .. }
            | RunEvent::Message(_)
            | RunEvent::CallReached { .. }
            | RunEvent::CallRetried { .. }
            | RunEvent::CallUpdated { .. } => None,
        })
        .collect();
    assert_eq!(inputs, [json!({"key": OTHER_SECRET}), json!({"key": "[secret]"})], "it was not known before");
    let record = std::fs::read_to_string(audit).expect("a record");
    assert!(record.contains(r#""input":{"key":"[secret]"}"#), "{record}");
}

/// Two hubs in one process: the logs show the secrets of neither.
#[tokio::test]
async fn logs_are_redacted_for_every_hub() {
    let start = |key: &str| {
        let server = json!({"command": "true", "env": {"API_KEY": key}, "enabled": true});
        Hub::start(config(&json!({"mcpServers": {"x": server}})), Vec::new()).expect("starts")
    };
    let (one, two) = (start("key-of-hub-one"), start("key-of-hub-two"));
    two.secrets().add("late-key-of-hub-two").expect("long enough");
    let line = "key-of-hub-one key-of-hub-two late-key-of-hub-two";
    assert_eq!(redact_log_line(line), "[secret] [secret] [secret]");
    one.close().await;
    two.close().await;
}

/// The error of a hub that could not start, which is printed when the hub is gone.
#[tokio::test]
async fn errors_of_the_program_are_redacted() {
    let folder = Folder::new();
    let server = json!({"command": "true", "env": {"API_KEY": "No such file"}});
    let more = json!({"mcpServers": {"x": server}, "audit": {"file": folder.path("nowhere/audit.jsonl")}});
    let ended = codecall(&["tools", "--config", &folder.file("config.json", more.to_string())]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("audit.file: cannot be opened: [secret]"), "{}", ended.stderr);
}

/// A secret that an embedder adds before the start is in the same registry.
#[tokio::test]
async fn the_configuration_and_the_hub_share_their_secrets() {
    let config = config(&json!({}));
    let secrets: Arc<SecretRegistry> = Arc::clone(&config.secrets);
    let hub = Hub::start(config, Vec::new()).expect("starts");
    secrets.add(OTHER_SECRET).expect("long enough");
    assert_eq!(hub.secrets().redactor().redact_text(OTHER_SECRET), "[secret]");
}

//! A machine: a server on a runtime of its own, whose clock stands still until it is advanced.

use crate::world::{Link, STEPS, World, mixed};
use codecall_base::tool::{Approval, ToolDefinition};
use codecall_config::{Config, Format};
use codecall_hub::LiveHub;
use codecall_hub::meta::{self, submit};
use codecall_hub::{Extensions, Hub};
use codecall_upstream::UpstreamCall;
use codecall_upstream::inline::Inline;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// Returns the answer of the tool of a step.
pub fn answer(run: usize, step: usize) -> u64 {
    mixed([run as u64, step as u64, 7]) % 1_000_000
}

/// Reads, waits for a person before it pays, adds twice at once; every fourth run waits for a time, and charges. Half of these
/// wait for so long that they leave the memory.
pub const SCRIPT: &str = "
    const { run } = codecallContext, random = Math.random();
    const caught = (call) => call.then((done) => done.value, (error) => error.code);
    const first = (await bank.read({ run, step: 0 })).value;
    const paid = await caught(bank.pay({ run, step: 1, first, random }));
    const sums = await Promise.all([2, 3].map((step) => bank.add({ run, step, first, random })));
    let charged = null;
    if (run % 4 === 0) { await sleep(run % 8 ? 5000 : 90000); charged = await caught(bank.charge({ run, step: 4, random })) }
    return { run, first, paid, sums: sums.map((sum) => sum.value), charged }";

/// Where the request of a client stands.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Request {
    Sent,
    Stored,
    Failed,
}

pub struct Machine {
    pub zone: usize,
    pub link: Arc<Link>,
    /// It does nothing until this time: it is suspended.
    pub suspended_until: i64,
    /// When it was driven last.
    driven_ms: i64,
    /// Requests to submit runs that were not answered.
    requests: Vec<(usize, Arc<AtomicU8>)>,
    live: LiveHub,
    runtime: Runtime,
}

fn config(folder: &Path, max_runs: usize) -> Config {
    let text = json!({
        "stateDir": folder,
        "pool": {"threads": 1, "maxRuns": max_runs, "maxMemoryBytes": 16_u64 << 30},
        "vm": {"maxDurationMs": 86_400_000, "toolTimeoutMs": 600_000, "timeoutMs": 60_000},
        "history": {"record": "off"},
        "durable": {"enabled": true, "leaseMs": 15_000, "maxOpen": 10_000_000},
        "approval": {"maxWaiting": 10_000_000},
    });
    Config::parse(&text.to_string(), Format::Json, &|_| None).expect("a configuration")
}

/// The tools of a machine, which say what they do to the world.
fn tools(link: &Arc<Link>) -> Inline {
    let tool = |app: Inline, name: &str, annotations: Value, approval| {
        let schema = json!({
            "type": "object",
            "properties": {"run": {"type": "integer"}, "step": {"type": "integer"}},
            "required": ["run", "step"],
        });
        let definition = ToolDefinition {
            app: "bank".into(),
            name: name.into(),
            description: "Does a step of a run".into(),
            input_schema: schema,
            annotations: annotations.as_object().expect("an object").clone(),
            approval,
            ..ToolDefinition::default()
        };
        let link = Arc::clone(link);
        app.define(definition, move |call: UpstreamCall| {
            let link = Arc::clone(&link);
            async move {
                let at = |name: &str| call.input[name].as_u64().expect("a number") as usize;
                let (run, step) = (at("run"), at("step"));
                if link.is_dead() {
                    return std::future::pending().await;
                }
                link.world.begin(run, step);
                let ms = match call.tool.name.as_str() {
                    "wait" => 3_600_000,
                    "read" => 1 + mixed([run as u64, 3, 3]) % 3_000,
                    _ => 1 + mixed([run as u64, step as u64, 3]) % 800,
                };
                tokio::time::sleep(Duration::from_millis(ms)).await;
                if link.is_dead() {
                    return std::future::pending().await;
                }
                link.world.end(run, step);
                Ok(json!({"value": answer(run, step)}))
            }
        })
    };
    let repeatable = json!({"readOnlyHint": false, "idempotentHint": true});
    let once = json!({"readOnlyHint": false, "idempotentHint": false});
    let app = tool(Inline::new("bank"), "read", json!({"readOnlyHint": true}), None);
    let app = tool(app, "wait", json!({"readOnlyHint": true}), None);
    let app = tool(app, "add", repeatable, None);
    let app = tool(app, "pay", once.clone(), Some(Approval::Always));
    tool(app, "charge", once, None)
}

impl Machine {
    pub fn start(world: &Arc<World>, folder: &Path, max_runs: usize, zone: usize, skew_ms: i64) -> Self {
        let link = Link::new(world, skew_ms);
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).event_interval(4_096).build();
        let runtime = runtime.expect("a runtime");
        let live = runtime.block_on(async {
            let extensions = Extensions {
                upstreams: vec![Arc::new(tools(&link))],
                database: Some(world.database.intercepted(Arc::clone(&link) as _)),
                ..Extensions::default()
            };
            let live = LiveHub::from(Hub::start_with(config(folder, max_runs), extensions).expect("a hub"));
            meta::resume_runs(&live, &CancellationToken::new());
            live
        });
        let driven_ms = world.now_ms();
        Self { zone, link, suspended_until: 0, driven_ms, requests: Vec::new(), live, runtime }
    }

    /// Advances its clock to that of the world, and does what is to do then.
    pub fn drive(&mut self) {
        let now = self.link.world.now_ms();
        if self.suspended_until > now {
            return;
        }
        let passed = Duration::from_millis((now - std::mem::replace(&mut self.driven_ms, now)) as u64);
        let (link, hub) = (Arc::clone(&self.link), self.live.get());
        self.runtime.block_on(async move {
            tokio::time::advance(passed).await;
            let mut idle = 0;
            let began = std::time::Instant::now();
            let before = link.world.transactions.load(Ordering::Relaxed);
            while idle < 3 && !link.is_dead() {
                tokio::task::yield_now().await;
                assert!(
                    began.elapsed() < Duration::from_secs(300),
                    "a server does not come to rest: {} transactions, {} in progress, {} scripts",
                    link.world.transactions.load(Ordering::Relaxed) - before,
                    link.in_flight(),
                    hub.runs().evaluating()
                );
                if link.in_flight() == 0 && hub.runs().evaluating() == 0 {
                    idle += 1;
                } else {
                    idle = 0;
                    // The thread of the store and those of scripts need the processor.
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
        });
    }

    /// How many requests were not answered.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Submits a run, as a client does whose requests have a key.
    pub fn submit(&mut self, run: usize, script: &'static str) {
        let state = Arc::new(AtomicU8::new(Request::Sent as u8));
        self.requests.push((run, Arc::clone(&state)));
        let hub = self.live.get();
        self.runtime.spawn(async move {
            let arguments = json!({"script": script, "context": {"run": run}});
            let answer = submit::submit(&hub, arguments, Some(&format!("run {run}"))).await;
            let answered = if answer.is_ok() { Request::Stored } else { Request::Failed };
            state.store(answered as u8, Ordering::Relaxed);
        });
    }

    /// Takes the requests that were answered: the runs, and whether they are stored.
    pub fn answered(&mut self) -> Vec<(usize, bool)> {
        let is_answered = |state: &AtomicU8| state.load(Ordering::Relaxed) != Request::Sent as u8;
        let (answered, open) =
            std::mem::take(&mut self.requests).into_iter().partition(|(_, state)| is_answered(state));
        self.requests = open;
        let answered: Vec<(usize, Arc<AtomicU8>)> = answered;
        let is_stored = |state: &AtomicU8| state.load(Ordering::Relaxed) == Request::Stored as u8;
        answered.into_iter().map(|(run, state)| (run, is_stored(&state))).collect()
    }

    /// Ends it without any clean-up. Returns the runs whose requests were not answered.
    pub fn kill(self) -> Vec<usize> {
        self.link.die();
        self.runtime.shutdown_background();
        self.requests.into_iter().map(|(run, _)| run).collect()
    }
}

/// Whether a step of this number exists in a run.
pub fn has_step(run: usize, step: usize) -> bool {
    step < STEPS && (step < 4 || run.is_multiple_of(4))
}

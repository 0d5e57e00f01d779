//! Clients that submit durable runs, people who decide about their calls, and a client over standard input and output.

use super::random::Random;
use super::world::{Event, World, client, send};
use crate::support::*;
use rmcp::model::CallToolRequestParams;
use rmcp::service::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a client tries to submit a run.
const SUBMITTED: Duration = Duration::from_secs(60);
/// More than a client gets at once, in bytes: it reads the rest by a handle.
const LONG: usize = 60_000;
/// How many clients submit at once.
const CLIENTS: u64 = 3;

/// A careful script: it looks whether a payment was made before it pays again. Each call says which step it is.
const SCRIPT: &str = "
    const { run, steps, long } = codecallContext, errors = [], random = Math.random();
    const call = (tool, step, order, attempt, ms) => callTool(`bank:${tool}`, { run, step, order, attempt, ms, random });
    async function harmless(tool, step, order, ms) {
        for (let attempt = 0; attempt < 5; attempt++) {
            try { return await call(tool, step, order, attempt, ms) }
            catch (error) { errors.push({ tool, step, attempt, code: error.code }) }
        }
        return { paid: 'unknown' };
    }
    async function once(tool, step, order, ms) {
        for (let attempt = 0; attempt < 5; attempt++) {
            try { await call(tool, step, order, attempt, ms); return 'paid' }
            catch (error) {
                errors.push({ tool, step, attempt, code: error.code });
                if (error.code === 'APPROVAL_DENIED') return 'denied';
                const { paid } = await harmless('find', step, order, 1);
                if (paid) return paid === true ? 'paid' : paid;
            }
        }
        return 'given up';
    }
    const results = [];
    for (const [order, { kind, ms }] of steps.entries()) {
        const step = `${order}`;
        if (kind === 'sleep') { await sleep(ms); results.push('slept') }
        else if (kind === 'read' || kind === 'add') results.push((await harmless(kind, step, order, ms)).step)
        else if (kind === 'pays') results.push(await Promise.all([0, 1, 2].map((n) => once('pay', `${order}.${n}`, order, ms))))
        else results.push(await once(kind, step, order, ms));
    }
    const end = await harmless('read', 'end', steps.length, 1);
    return { run, results, errors, same: end.random === random, long: 'x'.repeat(long) };";

/// The steps that runs have beside others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kinds {
    /// Each has a call that waits for a person.
    pub asks: bool,
    /// Some wait for a minute.
    pub sleeps: bool,
}

/// A run as its client knows it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The key of the request, which is also the name of the run at the bank.
    pub key: String,
    pub steps: Vec<(&'static str, u64)>,
    /// How many bytes more its result has.
    long: usize,
    /// When the request was sent that was answered first.
    pub sent: Instant,
    /// When it was answered.
    pub accepted: Instant,
    /// `None`: it was never accepted.
    pub id: Option<String>,
    pub outcome: Option<Value>,
    /// The problems that its client has seen.
    pub problems: Vec<String>,
}

impl Run {
    /// A run with steps by chance.
    fn new(key: String, random: &mut Random, which: Kinds) -> Self {
        let kinds = ["read", "add", "pay", "pay", "pays", "sleep", "transfer"];
        let mut steps: Vec<(&str, u64)> = (0..random.between(1, 3))
            .map(|_| (kinds[random.below(kinds.len() as u64) as usize], random.between(5, 200)))
            .collect();
        steps.insert(random.below(steps.len() as u64) as usize, ("pays", random.between(50, 400)));
        if which.asks {
            steps.push(("transfer", 20));
        }
        if which.sleeps && random.is_one_in(6) {
            steps.insert(0, ("sleep", 61_000));
        }
        let long = if random.is_one_in(4) { LONG } else { 0 };
        Self {
            key,
            steps,
            long,
            sent: Instant::now(),
            accepted: Instant::now(),
            id: None,
            outcome: None,
            problems: Vec::new(),
        }
    }

    fn arguments(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().map(|(kind, ms)| json!({"kind": kind, "ms": ms})).collect();
        json!({"script": SCRIPT, "context": {"run": self.key, "steps": steps, "long": self.long}})
    }

    /// Sends the request once. Returns status and body.
    pub async fn post(&self, url: &str) -> Option<(u16, Value)> {
        let request = client().post(format!("{url}/v1/runs")).header("content-type", "application/json");
        send(request.header("idempotency-key", &self.key).body(self.arguments().to_string())).await
    }

    /// Submits it as a client does that must know: again with the same key until it is accepted.
    pub async fn submit(&mut self, url: &str, twice: bool) {
        let began = Instant::now();
        while began.elapsed() < SUBMITTED {
            self.sent = Instant::now();
            let (first, second) =
                tokio::join!(self.post(url), async { if twice { self.post(url).await } else { None } });
            for (status, body) in [first, second].into_iter().flatten() {
                match (status, body["id"].as_str(), &self.id) {
                    (202, Some(id), None) => self.id = Some(id.to_owned()),
                    (202, Some(id), Some(known)) if id == known => {}
                    (503 | 500, ..) => {}
                    _ => self.problems.push(format!("its request is answered with {status}: {body}")),
                }
            }
            if self.id.is_some() {
                self.accepted = Instant::now();
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.problems.push("it is not accepted".into());
    }
}

/// Submits runs from several clients at once.
pub async fn submit(world: &World, random: &Random, count: u64, kinds: &Kinds) -> Vec<Run> {
    let url = format!("http://{}", world.balancer.address);
    let clients = (0..CLIENTS).map(|number| {
        let (mut random, url) = (random.part(number), url.clone());
        async move {
            let mut runs = Vec::new();
            for run in 0..count {
                random.sleep(0, 400).await;
                let mut run = Run::new(format!("r{number}.{run}"), &mut random, *kinds);
                run.submit(&url, random.is_one_in(4)).await;
                runs.push(run);
            }
            runs
        }
    });
    futures_util::future::join_all(clients).await.concat()
}

/// A person who decides about what waits, soon after it was asked. `both`: two persons, at the same moment, at two servers.
/// Returns what must not be, when it is stopped.
pub async fn decide(world: &World, mut random: Random, both: bool, problems: Arc<Mutex<Vec<String>>>) {
    let url = format!("http://{}", world.balancer.address);
    let client = client();
    let decide = |url: String, id: String, decision: &'static str| {
        let request = client.post(format!("{url}/v1/approvals/{id}")).header("content-type", "application/json");
        send(request.body(json!({"decision": decision}).to_string()))
    };
    let mut decided = HashSet::new();
    loop {
        random.sleep(50, 250).await;
        let Some((200, waiting)) = send(client.get(format!("{url}/v1/approvals"))).await else { continue };
        for id in waiting["approvals"].as_array().into_iter().flatten().filter_map(|request| request["id"].as_str()) {
            let urls = world.urls().await;
            let (id, first) = (id.to_owned(), random.below(urls.len().max(1) as u64) as usize);
            if both && urls.len() > 1 {
                let other = urls[(first + 1) % urls.len()].clone();
                let (yes, no) =
                    tokio::join!(decide(urls[first].clone(), id.clone(), "approve"), decide(other, id.clone(), "deny"));
                let held = [yes, no].into_iter().flatten().filter(|(_, answer)| answer["decided"] == true).count();
                if held > 1 || (held == 1 && !decided.insert(id.clone())) {
                    let problem = format!("two decisions about the call {id} are said to hold");
                    problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                }
            } else {
                let decision = if random.is_one_in(5) { "deny" } else { "approve" };
                decide(url.clone(), id, decision).await;
            }
        }
    }
}

/// A client of a server over standard input and output: it starts one run, and waits for its outcome. Its server may be killed
/// after a time. Returns the run with the outcome, if there is one.
pub async fn over_stdio(world: &World, mut random: Random, life: Option<Duration>) -> Run {
    let mut run = Run { long: 0, ..Run::new("io".into(), &mut random, Kinds::default()) };
    let mut child = world.stdio("io");
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return run };
    let talk = async {
        let client = RecordingClient::default().serve(AsyncRwTransport::new_client(stdout, stdin)).await.ok()?;
        let Value::Object(arguments) = run.arguments() else { return None };
        let mut request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
        request.meta.get_or_insert_default().insert("codecall/idempotencyKey".into(), run.key.clone().into());
        let result = client.peer().call_tool(request).await.ok()?;
        let text = result.content.first().and_then(|content| content.as_text()).map(|content| content.text.clone());
        // An error is a text.
        let read = text.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)));
        let answer = result.structured_content.or(read).unwrap_or_default();
        let _ = client.cancel().await;
        Some(answer)
    };
    let life = life.unwrap_or(TIMEOUT);
    let answer = {
        // It is dropped after the kill: an unanswered request that is dropped is cancelled.
        let mut talk = std::pin::pin!(talk);
        let answer = tokio::time::timeout(life, &mut talk).await.ok().flatten();
        // One that has answered ends with its input, and writes what it has recorded.
        if answer.is_none() || tokio::time::timeout(TIMEOUT, child.wait()).await.is_err() {
            let _ = child.kill().await;
            world.note(Event::Killed { server: run.key.clone(), at: Instant::now() });
        }
        answer
    };
    // A text says that the run was not begun.
    run.outcome = answer.filter(|answer| answer["status"].is_string() && answer["status"] != "waiting");
    run
}

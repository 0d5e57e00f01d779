//! Violations after an attempt: runs that are lost, payments that were made twice, runs that do not end, false outcomes
//! and rows of the history.

use super::bank::{Call, describe};
use super::workload::Run;
use super::world::{Event, World, client, send};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// How long a run may take after its faults have ended, on a busy machine.
const END: Duration = Duration::from_secs(120);
/// How long a server that goes on may be busy with a call that it was just sending.
pub const WINDOW: Duration = Duration::from_millis(350);
/// How soon a row of the history is written.
const RECORDED: Duration = Duration::from_millis(500);
/// The last rows of the history of a server that is killed are lost (docs/guide/history.md).
const UNRECORDED: Duration = Duration::from_millis(1_500);
/// The shortest time in which an answer may have not arrived at the store.
const MARGIN: Duration = Duration::from_millis(300);

/// The counts of an attempt.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub attempts: u64,
    pub runs: u64,
    /// Runs that were accepted and are unknown.
    pub lost: u64,
    /// Payments that were made twice.
    pub double: u64,
    /// Calls that were made again although a later step had begun.
    pub again: u64,
    /// Runs that were not accepted, or do not end.
    pub stuck: u64,
    /// Outcomes that differ from what has happened.
    pub outcome: u64,
    /// Rows of the history that differ from the outcome, are missing or doubled.
    pub history: u64,
    /// Payments that were made twice because a server was suspended between check and send. They are no violation.
    pub window: u64,
    /// Rows that a killed server had not written. They are no violation.
    pub unrecorded: u64,
    /// Calls that scripts were told to be interrupted.
    pub interrupted: u64,
    pub took: Duration,
    pub problems: Vec<String>,
}

impl Tally {
    pub fn violations(&self) -> u64 {
        self.lost + self.double + self.again + self.stuck + self.outcome + self.history
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.attempts += other.attempts;
        self.runs += other.runs;
        self.lost += other.lost;
        self.double += other.double;
        self.again += other.again;
        self.stuck += other.stuck;
        self.outcome += other.outcome;
        self.history += other.history;
        self.window += other.window;
        self.unrecorded += other.unrecorded;
        self.interrupted += other.interrupted;
        self.took += other.took;
        self.problems.extend(other.problems);
    }
}

/// The counter of a violation, and its description.
type Violation = (fn(&mut Tally) -> &mut u64, String);

/// An attempt that is checked.
pub struct Check<'a> {
    world: &'a World,
    events: Vec<Event>,
    tally: Tally,
}

impl<'a> Check<'a> {
    pub fn new(world: &'a World) -> Self {
        Self { world, events: world.events(), tally: Tally { attempts: 1, ..Tally::default() } }
    }

    /// Adds a violation.
    fn report(&mut self, count: fn(&mut Tally) -> &mut u64, problem: String) {
        *count(&mut self.tally) += 1;
        // Long results say nothing.
        self.tally.problems.push(problem.replace(&"x".repeat(50), ""));
    }

    /// Checks runs after the end of the faults. Ends the servers.
    pub async fn all(mut self, mut runs: Vec<Run>, over_stdio: Option<Run>, seen: Vec<String>) -> Tally {
        for problem in seen {
            self.report(|tally| &mut tally.outcome, problem);
        }
        for problem in self.world.failures() {
            self.report(|tally| &mut tally.stuck, problem);
        }
        // What was in a store that is gone is nobody's fault.
        let excused = self.events.clone();
        runs.retain(|run| !excused.iter().any(|event| event.excuses(run)));
        if let Some(mut run) = over_stdio {
            // Its client sends it again, with the same key, to a server that listens.
            run.submit(&format!("http://{}", self.world.balancer.address), false).await;
            runs.push(run);
        }
        self.tally.runs = runs.len() as u64;
        let began = Instant::now();
        futures_util::future::join_all(runs.iter_mut().map(|run| outcome(self.world, run, began))).await;
        let urls = self.world.urls().await;
        let known = futures_util::future::join_all(runs.iter().map(|run| is_known(&urls, run))).await;
        for (count, problem) in known.into_iter().flatten() {
            self.report(count, problem);
        }
        for run in &mut runs {
            if let (Some(outcome), Some(url)) = (&mut run.outcome, urls.first())
                && let Err(problem) = whole(url, outcome).await
            {
                let problem = format!("run {} ({:?}): the rest of its result: {problem}", run.key, run.id);
                run.outcome = None;
                self.report(|tally| &mut tally.lost, problem);
            }
        }
        let approvals = self.approvals().await;
        tokio::time::sleep(RECORDED).await;
        let servers = 0..self.world.replicas.len();
        let ended = servers.map(|server| self.world.end(server, rustix::process::Signal::TERM));
        for (server, has_ended) in futures_util::future::join_all(ended).await.into_iter().enumerate() {
            if !has_ended {
                self.report(|tally| &mut tally.stuck, format!("server {server} does not end when it is told to"));
            }
        }
        let history = self.history().await;
        let calls = self.world.bank.calls();
        for run in &runs {
            let calls: Vec<&Call> = calls.iter().filter(|call| call.run == run.key).collect();
            self.payments(run, &calls);
            self.order(run, &calls);
            if let Some(outcome) = &run.outcome {
                self.result(run, outcome, &calls, &approvals);
                if let Some(history) = &history {
                    self.rows(run, outcome, &calls, history);
                }
            }
        }
        self.tally
    }

    /// The states of requests for approval, by run, step and attempt.
    async fn approvals(&self) -> HashMap<(String, String, u64), String> {
        let mut states = HashMap::new();
        for url in self.world.urls().await.into_iter().take(1) {
            let request = client().get(format!("{url}/v1/approvals?state=all"));
            let Some((200, all)) = send(request).await else { continue };
            for request in all["approvals"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                // It is shown as a text where it is long.
                let input = match request["input"].as_str().map(serde_json::from_str) {
                    Some(Ok(input)) => input,
                    Some(Err(_)) | None => request["input"].clone(),
                };
                let attempt = input["attempt"].as_u64().unwrap_or_default();
                states.insert((text(&input["run"]), text(&input["step"]), attempt), text(&request["state"]));
            }
        }
        states
    }

    /// No payment is made twice.
    fn payments(&mut self, run: &Run, calls: &[&Call]) {
        let mut payments: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
        for call in calls.iter().filter(|call| call.pays()) {
            payments.entry(&call.step).or_default().push(call);
        }
        for (step, payments) in payments {
            let extra: Vec<&&Call> = payments.iter().skip(1).collect();
            if extra.is_empty() || self.is_after_restore(payments[0]) {
                continue;
            }
            let all: Vec<&Call> = calls.iter().copied().filter(|call| call.step == step).collect();
            let all = describe(&all, self.world.began);
            let problem = format!("run {} ({:?}) has paid step {step} {} times:{all}", run.key, run.id, payments.len());
            if payments.iter().filter(|call| self.is_in_window(call)).count() >= extra.len() {
                self.tally.window += 1;
            } else {
                self.report(|tally| &mut tally.double, problem);
            }
        }
    }

    /// A step begins when the answers of the one before it are in the journal, so no call of that is made again.
    fn order(&mut self, run: &Run, calls: &[&Call]) {
        let Some(pair) = calls.windows(2).find(|pair| pair[1].order < pair[0].order) else { return };
        if pair.iter().any(|call| self.is_in_window(call)) || self.is_after_restore(pair[0]) {
            return;
        }
        let problem = format!("run {} goes back:{}", run.key, describe(calls, self.world.began));
        self.report(|tally| &mut tally.again, problem);
    }

    /// Whether a server has sent a call just after it was suspended.
    fn is_in_window(&self, call: &Call) -> bool {
        self.events.iter().any(|event| match event {
            Event::Continued { server, at } => *server == call.server && call.at >= *at && call.at < *at + WINDOW,
            Event::Killed { .. } | Event::Gone { .. } | Event::Restored { .. } => false,
        })
    }

    /// Whether the store went back to a time when the answer of a call was not in it.
    fn is_after_restore(&self, call: &Call) -> bool {
        self.events.iter().any(|event| match event {
            Event::Restored { to } => call.answered.is_none_or(|answered| answered + MARGIN > *to),
            Event::Killed { .. } | Event::Continued { .. } | Event::Gone { .. } => false,
        })
    }

    /// A result says what has happened at the bank.
    fn result(
        &mut self,
        run: &Run,
        outcome: &Value,
        calls: &[&Call],
        approvals: &HashMap<(String, String, u64), String>,
    ) {
        let result = &outcome["result"];
        let mut wrong = Vec::new();
        if outcome["status"] != "ok" || result["run"] != run.key.as_str() || result["same"] != true {
            wrong.push("it has failed".to_owned());
        }
        let has_arrived = |step: &str, attempt: &Value| {
            calls.iter().any(|call| call.step == step && attempt.as_u64() == Some(call.attempt))
        };
        for error in result["errors"].as_array().into_iter().flatten() {
            let (step, code) = (error["step"].as_str().unwrap_or_default(), error["code"].as_str().unwrap_or_default());
            let pays = ["pay", "transfer"].iter().any(|tool| error["tool"] == *tool);
            self.tally.interrupted += u64::from(code == "CALL_INTERRUPTED");
            let is_true = match code {
                "CALL_INTERRUPTED" => pays,
                "APPROVAL_DENIED" => true,
                // A call whose answer is lost was sent.
                _ => has_arrived(step, &error["attempt"]) && code != "APPROVAL_REQUIRED",
            };
            if !is_true {
                wrong.push(format!("its call was told {error}, and was never sent"));
            }
        }
        for (order, (kind, _)) in run.steps.iter().enumerate() {
            let told = &result["results"][order];
            let parts: Vec<(String, &Value)> = match told {
                Value::Array(told) => told.iter().enumerate().map(|(n, told)| (format!("{order}.{n}"), told)).collect(),
                told => vec![(order.to_string(), told)],
            };
            for (step, told) in parts.iter().filter(|_| ["pay", "pays", "transfer"].contains(kind)) {
                let is_paid = calls.iter().any(|call| call.pays() && call.step == *step);
                let expected = if told.as_str() == Some("denied") { Some(false) } else { Some(true) };
                if outcome["status"] == "ok" && expected != Some(is_paid) {
                    wrong.push(format!("step {step} was told {told}, paid: {is_paid}"));
                }
                let states = (0..5).filter_map(|attempt| approvals.get(&(run.key.clone(), step.clone(), attempt)));
                let is_denied = states.clone().any(|state| state == "denied");
                let is_approved = states.clone().any(|state| state == "approved");
                if (told.as_str() == Some("denied") && !is_denied && !approvals.is_empty())
                    || (*kind == "transfer" && is_paid && !is_approved && !approvals.is_empty())
                {
                    let states: Vec<&String> = states.collect();
                    wrong.push(format!("step {step} was told {told}, paid: {is_paid}, decided: {states:?}"));
                }
            }
        }
        if !wrong.is_empty() {
            let problem = format!("run {} ({:?}): {}: {outcome}", run.key, run.id, wrong.join("; "));
            self.report(|tally| &mut tally.outcome, problem);
        }
    }

    /// All rows of the history, by the id of the run.
    async fn history(&mut self) -> Option<HashMap<String, Vec<Value>>> {
        match self.world.run(&["history", "--json", "--limit", "10000"]).await {
            Ok(text) => {
                let mut rows: HashMap<String, Vec<Value>> = HashMap::new();
                for row in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                    rows.entry(row["id"].as_str().unwrap_or_default().to_owned()).or_default().push(row);
                }
                Some(rows)
            }
            Err(problem) => {
                self.report(|tally| &mut tally.history, problem);
                None
            }
        }
    }

    /// A run has one row, with its outcome.
    fn rows(&mut self, run: &Run, outcome: &Value, calls: &[&Call], history: &HashMap<String, Vec<Value>>) {
        let Some(id) = &run.id else { return };
        let rows = history.get(id).map(Vec::as_slice).unwrap_or_default();
        let is_right = |row: &Value| {
            row["status"] == outcome["status"] && row["code"].as_str() == outcome["error"]["code"].as_str()
        };
        match rows {
            [row] if is_right(row) => {}
            [] if calls.last().is_some_and(|last| self.is_unrecorded(last)) => self.tally.unrecorded += 1,
            [] => self.report(|tally| &mut tally.history, format!("run {} ({id}) has no row", run.key)),
            [row] => {
                let (status, row) = (&outcome["status"], &row.to_string());
                let problem = format!("run {} ({id}) has ended as {status}, its row: {row:.300}", run.key);
                self.report(|tally| &mut tally.history, problem);
            }
            rows => self.report(|tally| &mut tally.history, format!("run {} ({id}) has {} rows", run.key, rows.len())),
        }
    }

    /// Whether the server of the last call of a run was killed soon after it, or the store was set back.
    fn is_unrecorded(&self, last: &Call) -> bool {
        self.events.iter().any(|event| match event {
            Event::Killed { server, at } => *server == last.server && *at > last.at && last.at + UNRECORDED > *at,
            Event::Restored { to } => last.at + UNRECORDED > *to,
            Event::Continued { .. } | Event::Gone { .. } => false,
        })
    }
}

impl Event {
    /// Whether a run that is unknown is nobody's fault.
    fn excuses(&self, run: &Run) -> bool {
        match self {
            Self::Gone { at } => run.sent < *at,
            Self::Restored { to } => run.accepted > *to,
            Self::Killed { .. } | Self::Continued { .. } => false,
        }
    }
}

/// All servers give the outcome, and the same request gives the same run.
async fn is_known(urls: &[String], run: &Run) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    for problem in &run.problems {
        found.push((|tally| &mut tally.stuck, format!("run {}: {problem}", run.key)));
    }
    let Some(id) = &run.id else { return found };
    let name = format!("run {} ({id})", run.key);
    for url in urls {
        let Some((status, body)) = get(url, id).await else { continue };
        match &run.outcome {
            _ if status == 404 => {
                found.push((|tally| &mut tally.lost, format!("{name} was accepted and is unknown")));
                return found;
            }
            None => {
                found.push((|tally| &mut tally.stuck, format!("{name} does not end: {body}")));
                return found;
            }
            Some(outcome) if outcome["result"] != body["result"] || outcome["error"] != body["error"] => {
                found.push((|tally| &mut tally.outcome, format!("{name} has two outcomes: {outcome}, then {body}")));
                return found;
            }
            Some(_) => {}
        }
        if let Some((status, body)) = run.post(url).await
            && (status, body["id"].as_str()) != (202, Some(id))
        {
            let problem = format!("{name}: the same request is answered with {status}: {body}");
            found.push((|tally| &mut tally.outcome, problem));
        }
    }
    found
}

/// Asks a server where a run stands.
async fn get(url: &str, id: &str) -> Option<(u16, Value)> {
    send(client().get(format!("{url}/v1/runs/{id}?wait=1"))).await
}

/// Reads the rest of a result that is longer than its client gets at once.
async fn whole(url: &str, outcome: &mut Value) -> Result<(), String> {
    let mut text = String::new();
    let mut piece = outcome.clone();
    while let Some(next) = piece["truncated"]["next"].as_u64().and_then(|next| usize::try_from(next).ok()) {
        // After it is a note that says how to read on.
        let read = piece["result"].as_str().and_then(|piece| piece.get(..next - text.len()));
        text.push_str(read.ok_or_else(|| piece.to_string())?);
        let handle = json!({"handle": outcome["truncated"]["handle"], "offset": next});
        piece = execute(url, handle).await.ok_or("there is no answer")?;
        if piece["status"] != "ok" {
            return Err(format!("{piece:.500}"));
        }
    }
    if !text.is_empty() {
        text.push_str(piece["result"].as_str().unwrap_or_default());
        outcome["result"] = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Calls `codecall_execute`.
async fn execute(url: &str, arguments: Value) -> Option<Value> {
    let version = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "faults", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "codecall_execute", "arguments": arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = client().post(format!("{url}/mcp")).body(message.to_string());
    let request = request.header("content-type", "application/json").header("mcp-protocol-version", version);
    let request = request.header("accept", "application/json, text/event-stream").header("mcp-method", "tools/call");
    let text = request.header("mcp-name", "codecall_execute").send().await.ok()?.text().await.ok()?;
    let messages = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    let answer = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(|m| m["id"] == 1)?;
    let text = answer["result"]["content"][0]["text"].as_str()?;
    // An error is a text.
    Some(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

/// Waits for the outcome of a run, as its client does.
async fn outcome(world: &World, run: &mut Run, began: Instant) {
    let (Some(id), None) = (&run.id, &run.outcome) else { return };
    let url = format!("http://{}", world.balancer.address);
    let mut unknown = 0;
    while began.elapsed() < END && unknown < 20 {
        match get(&url, id).await {
            Some((200, body)) if body["status"] == "running" || body["status"] == "waiting" => {}
            Some((200, body)) => {
                run.outcome = Some(body);
                return;
            }
            Some((404, _)) => unknown += 1,
            Some(_) | None => {}
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

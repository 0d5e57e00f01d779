//! Records runs in the store: those of scripts, calls of tools without a script, and steps.
//!
//! Recording never blocks or fails a run. The end of a run puts it into a queue; a task masks what is in it, converts it,
//! and writes it in batches. If the process is killed, the last batch is lost. Rows that cannot be written are counted,
//! and logged.

mod recorder;
mod time;

use agentscript::{Dialect, Outcome, Stats};
use codecall_base::call::{Caller, client};
use codecall_base::event::RunId;
use codecall_base::json;
use codecall_base::offload::INLINE_LIMIT;
use codecall_base::redact::Redactor;
use codecall_base::text::truncate;
use codecall_config::{HistoryConfig, RecordedRuns};
use codecall_runs::{LoggedCall, Recorder, RunEnd, RunHook, RunStart};
use codecall_store::database::Problem;
use codecall_store::{RecordedRun, RunStore, RunSummary, now_ms};
use codecall_tools::pipeline::{Hook, Pipeline, Record};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

use recorder::HistoryRecorder;
pub use time::{format_time, parse_time};

/// Maximum number of runs that wait to be written.
const MAX_QUEUED: usize = 2_000;
/// Maximum size of what waits to be written, in bytes.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Maximum number of runs in a batch.
const MAX_BATCH: usize = 200;
/// How long a run waits for others to be written with it.
const BATCH_TIME: Duration = Duration::from_millis(100);
/// How long the end of the process waits for the last batch.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses before a batch is tried again that could not be written for a reason that may pass.
const PAUSES: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];
/// How often old runs are deleted: after so many runs, or so much time.
const RETAIN_RUNS: usize = 500;
const RETAIN_TIME: Duration = Duration::from_secs(600);
/// One in so many processes that end before that deletes old runs.
const RETAIN_CHANCE: i64 = 50;
/// Maximum length of a title, in bytes.
const MAX_TITLE_BYTES: usize = 120;
/// Maximum length of the name of a client, in bytes.
const MAX_CLIENT_BYTES: usize = 100;

/// Records runs.
pub struct History {
    store: Arc<dyn RunStore>,
    config: HistoryConfig,
    queue: mpsc::Sender<Message>,
    /// Bytes in the queue.
    queued: Arc<AtomicUsize>,
    /// The journals of active runs.
    recorders: Mutex<HashMap<RunId, Arc<HistoryRecorder>>>,
    /// Runs that were not recorded.
    lost: Arc<AtomicU64>,
    is_full: AtomicBool,
    /// The pipeline, which masks personal data and secrets in steps.
    pipeline: Mutex<Weak<Pipeline>>,
}

enum Message {
    Run(Box<Ended>),
    Flush(oneshot::Sender<()>),
}

/// A run that has ended, before it is masked.
struct Ended {
    summary: RunSummary,
    tools: Vec<String>,
    /// The script, which makes the title.
    script: Option<Arc<str>>,
    /// Members of the detail that have to be masked, and then cut: a part of a secret would not be found.
    raw: Vec<(&'static str, Raw)>,
    /// The members that are masked.
    masked: Map<String, Value>,
    /// The journal of a run that can be replayed.
    journal: Option<(Arc<HistoryRecorder>, Outcome)>,
    pipeline: Option<Arc<Pipeline>>,
    ended_us: i64,
    /// How often its run was taken over.
    fence: i64,
    max_value_bytes: usize,
    bytes: usize,
}

/// A value that has to be masked.
enum Raw {
    /// JSON text.
    Json(String),
    /// A value.
    Value(Value),
    /// Texts, of which the first ones are kept.
    Texts(Vec<String>),
    /// Calls, which the pipeline has masked before their values were cut. Secrets may have been added since.
    Calls(Value),
}

impl Raw {
    fn bytes(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            Self::Value(value) | Self::Calls(value) => json::size(value),
            Self::Texts(texts) => texts.iter().map(String::len).sum(),
        }
    }
}

impl History {
    /// Creates the recorder of a store, and starts its task. This needs a tokio runtime. `None`: nothing is to be recorded.
    #[must_use]
    pub fn start(store: Arc<dyn RunStore>, config: &HistoryConfig) -> Option<Arc<Self>> {
        if config.record == RecordedRuns::Off {
            return None;
        }
        let (queue, receiver) = mpsc::channel(MAX_QUEUED);
        let history = Self {
            store: Arc::clone(&store),
            config: config.clone(),
            queue,
            queued: Arc::default(),
            recorders: Mutex::default(),
            lost: Arc::default(),
            is_full: AtomicBool::new(false),
            pipeline: Mutex::default(),
        };
        let writer = Writer {
            store,
            config: config.clone(),
            queued: Arc::clone(&history.queued),
            lost: Arc::clone(&history.lost),
            has_failed: false,
            since_retained: 0,
            retained: Instant::now(),
        };
        tokio::spawn(writer.write(receiver));
        Some(Arc::new(history))
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn RunStore> {
        &self.store
    }

    /// Logs a warning if the store cannot be used, before there is something to record.
    pub async fn probe(&self) {
        if let Err(error) = self.store.totals().await {
            tracing::warn!("{error}. Runs are not recorded.");
        }
    }

    /// Returns the number of runs that could not be recorded.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Uses the pipeline of another hub for what it masks.
    pub fn set_pipeline(&self, pipeline: &Arc<Pipeline>) {
        *self.pipeline.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(pipeline);
    }

    /// Waits until all runs that have ended are written.
    pub async fn flush(&self) {
        let (written, all_written) = oneshot::channel();
        let flushing = async {
            if self.queue.send(Message::Flush(written)).await.is_ok() {
                let _ = all_written.await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, flushing).await;
    }

    /// Records a step of a run whose client owns the tools.
    pub fn step(&self, script: &str, context: Option<&Value>, answer: &Value, is_error: bool, took: Duration) {
        if !self.is_recorded(!is_error) {
            return;
        }
        let outcome = &answer["outcome"];
        let error = if outcome["error"].is_null() { &answer["error"] } else { &outcome["error"] };
        let status = outcome["status"].as_str().or(answer["status"].as_str()).unwrap_or_default();
        let calls = answer["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tools = calls.iter().filter_map(|call| Some(call["name"].as_str()?.to_owned())).collect();
        let summary = RunSummary {
            id: RunId::random().as_str().to_owned(),
            kind: "step".into(),
            status: if is_error { status } else { "ok" }.to_owned(),
            code: error["code"].as_str().map(str::to_owned),
            tool_calls: calls.len() as i64,
            ..new_summary(SystemTime::now() - took, took, &Stats::default())
        };
        let mut masked = Map::new();
        masked.insert("run".into(), answer["id"].clone());
        masked.insert("step".into(), answer["status"].clone());
        let values = [
            ("parameters", context),
            ("result", Some(&outcome["result"])),
            ("error", Some(error)),
            ("warnings", Some(&outcome["warnings"])),
            ("calls", Some(&answer["calls"])),
        ];
        let values =
            values.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_null())?)));
        let raw = values.map(|(name, value)| (name, Raw::Value(value.clone()))).collect();
        self.put(Ended { script: Some(script.into()), raw, masked, ..self.new_ended(summary, tools) });
    }

    fn new_ended(&self, summary: RunSummary, tools: Vec<String>) -> Ended {
        let pipeline = self.pipeline.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let (ended_us, max_value_bytes) = (self.store.now_us(), self.config.max_value_bytes);
        Ended {
            summary,
            tools,
            script: None,
            raw: Vec::new(),
            masked: Map::new(),
            journal: None,
            pipeline,
            ended_us,
            fence: 0,
            max_value_bytes,
            bytes: 0,
        }
    }

    fn is_recorded(&self, is_ok: bool) -> bool {
        match self.config.record {
            RecordedRuns::All => true,
            RecordedRuns::Failures => !is_ok,
            RecordedRuns::Off => false,
        }
    }

    /// Puts a run into the queue, or counts it as lost if there is no space.
    fn put(&self, mut ended: Ended) {
        let raw = ended.raw.iter().map(|(_, raw)| raw.bytes());
        let recorded = ended.journal.as_ref().map(|(recorder, _)| recorder.bytes()).unwrap_or_default();
        let script = ended.script.as_ref().map_or(0, |script| script.len());
        ended.bytes = raw.chain(ended.masked.values().map(json::size)).sum::<usize>() + recorded + script;
        let bytes = ended.bytes;
        let has_space = self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_QUEUED_BYTES;
        if has_space && self.queue.try_send(Message::Run(Box::new(ended))).is_ok() {
            self.is_full.store(false, Ordering::Relaxed);
            return;
        }
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
        self.lost.fetch_add(1, Ordering::Relaxed);
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!("history: runs end faster than they can be written, so some are not recorded");
        }
    }

    /// Returns a value, or the beginning of its text if that is too long.
    fn cut(&self, value: &Value) -> Value {
        cut_value(value, self.config.max_value_bytes)
    }

    fn recorders(&self) -> MutexGuard<'_, HashMap<RunId, Arc<HistoryRecorder>>> {
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, end: &RunEnd<'_>, recorder: Option<Arc<HistoryRecorder>>) -> Ended {
        let RunEnd { start, outcome, duration, fence, .. } = end;
        let kind = kind(start.tool.as_deref(), start.dialect);
        let (logged, omitted) = end.logged_calls();
        let called = logged.iter().map(|call| call.tool.clone());
        let mut tools: Vec<String> = start.tool.iter().map(|tool| (**tool).to_owned()).chain(called).collect();
        tools.sort();
        tools.dedup();
        let summary = RunSummary {
            id: start.id.as_str().to_owned(),
            kind: kind.into(),
            parent: start.parent.as_ref().map(|parent| parent.as_str().to_owned()),
            status: outcome.status().as_str().to_owned(),
            code: outcome.result.as_ref().err().map(|failure| failure.code.clone()),
            client: start.client.as_deref().map(str::to_owned),
            title: start.tool.as_deref().map(str::to_owned).unwrap_or_default(),
            saved_bytes: recorder
                .as_ref()
                .filter(|_| !start.is_dry_run)
                .map_or(0, |recorder| saved_bytes(recorder, outcome)),
            ..new_summary(start.at, *duration, &outcome.stats)
        };
        let mut raw = Vec::new();
        if let Some(context) = &start.context {
            raw.push(("parameters", Raw::Json(context.to_string())));
        }
        raw.push(match &outcome.result {
            Ok(result) => ("result", Raw::Json(result.clone())),
            Err(failure) => ("error", Raw::Json(failure.to_json())),
        });
        for (name, texts) in [("warnings", &outcome.warnings), ("logs", &outcome.logs)] {
            if !texts.is_empty() {
                raw.push((name, Raw::Texts(texts.clone())));
            }
        }
        let mut masked = Map::new();
        insert(&mut masked, "language", start.language.map(|language| format!("{language:?}").to_lowercase().into()));
        insert(&mut masked, "dryRun", start.is_dry_run.then(|| true.into()));
        insert(&mut masked, "omittedCalls", (omitted > 0).then(|| omitted.into()));
        if !logged.is_empty() {
            raw.push(("calls", Raw::Calls(logged.iter().map(|call| self.call(call, recorder.as_deref())).collect())));
        }
        let journal = recorder.filter(|recorder| recorder.is_complete()).map(|recorder| (recorder, (*outcome).clone()));
        let (script, pipeline) = (Some(Arc::clone(&start.script)), Some(Arc::clone(end.pipeline())));
        Ended { script, raw, masked, journal, pipeline, fence: *fence, ..self.new_ended(summary, tools) }
    }

    /// Returns a call of a script, with its answer if that is known.
    fn call(&self, call: &LoggedCall, recorder: Option<&HistoryRecorder>) -> Value {
        let ms = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
        let mut row = json!({
            "callId": call.number.to_string(),
            "tool": call.tool,
            "input": call.input,
            "status": call.status,
            "startMs": ms(call.start),
            "durationMs": ms(call.duration),
        });
        if call.retries > 0 {
            row["retries"] = call.retries.into();
        }
        if let Some(error) = &call.error {
            row["error"] = json!({"code": error.code, "message": error.message});
        } else if let Some(output) = recorder.and_then(|recorder| recorder.output(call.id)) {
            row["output"] = json::parse(&output).unwrap_or_else(|_| output.into());
        }
        row
    }
}

impl RunHook for History {
    fn journal(&self, start: &RunStart) -> Option<Arc<dyn Recorder>> {
        if !self.config.answers {
            return None;
        }
        let recorder = Arc::new(HistoryRecorder::new(start, &self.config));
        self.recorders().insert(start.id.clone(), Arc::clone(&recorder));
        Some(recorder)
    }

    /// It is recorded when it has ended.
    fn paused(&self, start: &RunStart) {
        self.recorders().remove(&start.id);
    }

    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        let recorder = self.recorders().remove(&end.start.id);
        if self.is_recorded(end.outcome.result.is_ok()) {
            self.put(self.ended(end, recorder));
        }
        Box::pin(std::future::ready(()))
    }
}

impl Hook for History {
    fn name(&self) -> &'static str {
        "history"
    }

    /// Records a call that no script has made.
    fn recorded(&self, record: &Record<'_>) {
        let kind = match record.context.caller {
            Caller::Script => return,
            Caller::Invoke => "invoke",
            Caller::Direct => "direct",
        };
        if !self.is_recorded(record.error.is_none()) {
            return;
        }
        let summary = RunSummary {
            id: RunId::random().as_str().to_owned(),
            kind: kind.into(),
            status: if record.error.is_none() { "ok" } else { "tool_error" }.into(),
            code: record.error.map(|error| error.code.clone()),
            client: client().as_deref().map(str::to_owned),
            title: truncate(record.name, MAX_TITLE_BYTES).to_owned(),
            tool_calls: 1,
            ..new_summary(SystemTime::now() - record.duration, record.duration, &Stats::default())
        };
        // The pipeline has masked all of it.
        let mut masked = Map::new();
        masked.insert("tool".into(), record.name.into());
        masked.insert("parameters".into(), self.cut(record.input));
        if let Some(error) = record.error {
            masked.insert("error".into(), json!({"code": error.code, "message": error.message}));
        }
        insert(&mut masked, "result", record.result.map(|result| self.cut(&result.shown())));
        self.put(Ended { masked, ..self.new_ended(summary, vec![record.name.to_owned()]) });
    }
}

/// How many bytes after what is kept of a long text are masked too: personal data may extend over its end.
const MASKED_BYTES: usize = 4 << 10;

impl Ended {
    /// Masks personal data and secrets, and converts it.
    fn into_run(self) -> RecordedRun {
        let Self {
            mut summary,
            tools,
            script,
            raw,
            mut masked,
            journal,
            pipeline,
            ended_us,
            fence,
            max_value_bytes,
            ..
        } = self;
        let redactor = pipeline.as_ref().map_or_else(Redactor::default, |pipeline| pipeline.secrets().redactor());
        let shown = |value: Value| match &pipeline {
            Some(pipeline) => Arc::unwrap_or_clone(pipeline.masked(&Arc::new(value))),
            None => value,
        };
        let shown_text = |text: &str| match shown(text.into()) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        if let Some(script) = script {
            let script = shown_text(&script);
            // A run of a tool has its name.
            if summary.title.is_empty() {
                summary.title = title(&script);
            }
            masked.insert("script".into(), script.into());
        }
        summary.client = summary.client.map(|client| truncate(&shown_text(&client), MAX_CLIENT_BYTES).to_owned());
        for (name, raw) in raw {
            let value = match raw {
                // Values take many times the memory of a long text, of which only the beginning is kept.
                Raw::Json(text) if text.len() > INLINE_LIMIT.max(max_value_bytes) => {
                    let clean = redactor.redact_json(&text);
                    let beginning = shown_text(truncate(&clean, max_value_bytes + MASKED_BYTES));
                    masked.insert(name.into(), format!("{}…", truncate(&beginning, max_value_bytes)).into());
                    continue;
                }
                Raw::Json(text) => shown(json::parse(&text).unwrap_or_else(|_| text.into())),
                Raw::Value(value) => shown(value),
                Raw::Calls(calls) => {
                    masked.insert(name.into(), shown(calls));
                    continue;
                }
                Raw::Texts(texts) => {
                    let texts: Vec<String> = texts.iter().map(|text| shown_text(text)).collect();
                    masked.insert(name.into(), cut_logs(&texts, max_value_bytes).into());
                    continue;
                }
            };
            masked.insert(name.into(), cut_value(&value, max_value_bytes));
        }
        if let Some((recorder, outcome)) = journal {
            let text = recorder.memory.to_file(&outcome, &redactor);
            if let Ok(journal) = json::parse(&text) {
                // The text of numbers stays as it is, unless personal data is masked in it.
                let clean = shown(journal.clone());
                let journal = if clean == journal { Value::String(text) } else { clean.to_string().into() };
                masked.insert("recording".into(), journal);
            }
        }
        RecordedRun { summary, tools, ended_us, fence, detail: Value::Object(masked).to_string() }
    }
}

/// The task that writes runs.
struct Writer {
    store: Arc<dyn RunStore>,
    config: HistoryConfig,
    queued: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    /// Whether the last batch could not be written.
    has_failed: bool,
    /// Runs written since old ones were deleted.
    since_retained: usize,
    retained: Instant,
}

impl Writer {
    async fn write(mut self, mut queue: mpsc::Receiver<Message>) {
        while let Some(first) = queue.recv().await {
            let mut batch = Vec::new();
            let mut flushed = Vec::new();
            let mut add = |message| match message {
                Message::Run(run) => {
                    batch.push(*run);
                    batch.len() < MAX_BATCH
                }
                Message::Flush(written) => {
                    flushed.push(written);
                    false
                }
            };
            if add(first) {
                let more = async { while queue.recv().await.is_some_and(&mut add) {} };
                let _ = tokio::time::timeout(BATCH_TIME, more).await;
            }
            if !batch.is_empty() {
                self.write_batch(batch).await;
            }
            let is_last = !flushed.is_empty() && self.retained.elapsed() < RETAIN_TIME;
            let is_due = self.since_retained >= RETAIN_RUNS
                || self.since_retained > 0 && self.retained.elapsed() >= RETAIN_TIME
                || self.since_retained > 0 && is_last && now_ms() % RETAIN_CHANCE == 0;
            if is_due {
                (self.since_retained, self.retained) = (0, Instant::now());
                if let Err(error) = self.store.retain(&self.config).await {
                    tracing::warn!("history: old runs cannot be deleted: {error}");
                }
            }
            for written in flushed {
                let _ = written.send(());
            }
        }
    }

    async fn write_batch(&mut self, batch: Vec<Ended>) {
        let (count, bytes) = (batch.len(), batch.iter().map(|run| run.bytes).sum::<usize>());
        let convert = move || batch.into_iter().map(Ended::into_run).collect::<Vec<_>>();
        let written = match tokio::task::spawn_blocking(convert).await {
            Ok(runs) => self.record(&runs).await,
            Err(error) => Err((count, Problem::Failed(error.to_string()))),
        };
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
        match written {
            Ok(()) => {
                self.since_retained += count;
                if std::mem::take(&mut self.has_failed) {
                    let lost = self.lost.load(Ordering::Relaxed);
                    tracing::warn!("history: runs are recorded again; {lost} were not");
                }
            }
            Err((lost, problem)) => {
                self.since_retained += count - lost;
                self.lost.fetch_add(lost as u64, Ordering::Relaxed);
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!("history: runs are not recorded, as the store cannot be used: {problem}");
                }
            }
        }
    }

    /// Records runs. One that cannot be recorded does not take others with it.
    ///
    /// # Errors
    /// How many were not recorded, and why.
    async fn record(&self, runs: &[RecordedRun]) -> Result<(), (usize, Problem)> {
        let problem = match self.try_record(runs).await {
            Ok(()) => return Ok(()),
            Err(problem) if problem.is_passing() || runs.len() < 2 => return Err((runs.len(), problem)),
            Err(problem) => problem,
        };
        tracing::debug!("history: runs are recorded one by one: {problem}");
        let mut lost = None;
        for run in runs {
            if let Err(problem) = self.store.record(std::slice::from_ref(run)).await {
                let (count, _) = lost.get_or_insert((0, problem));
                *count += 1;
            }
        }
        lost.map_or(Ok(()), Err)
    }

    async fn try_record(&self, runs: &[RecordedRun]) -> Result<(), Problem> {
        // Once nothing could be written, new batches do not wait.
        let pauses: &[Duration] = if self.has_failed { &[] } else { &PAUSES };
        for pause in pauses {
            match self.store.record(runs).await {
                Err(problem) if problem.is_passing() => tokio::time::sleep(*pause).await,
                done => return done,
            }
        }
        self.store.record(runs).await
    }
}

/// Returns how many bytes of answers have not left the script.
fn saved_bytes(recorder: &HistoryRecorder, outcome: &Outcome) -> i64 {
    let result = match &outcome.result {
        Ok(result) => result.len(),
        Err(failure) => failure.message.len(),
    };
    let left = result + outcome.logs.iter().map(String::len).sum::<usize>();
    let saved = recorder.answer_bytes.load(Ordering::Relaxed).saturating_sub(left);
    i64::try_from(saved).unwrap_or(i64::MAX)
}

/// Returns a summary with its times and what the run has used.
fn new_summary(at: SystemTime, took: Duration, stats: &Stats) -> RunSummary {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    RunSummary {
        client: client().as_deref().map(str::to_owned),
        started_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        duration_us: i64::try_from(took.as_micros()).unwrap_or(i64::MAX),
        script_us: (stats.script_ms * 1e3) as i64,
        steps: number(stats.steps),
        tool_calls: number(stats.tool_calls),
        peak_memory_bytes: number(stats.peak_memory_bytes),
        ..RunSummary::default()
    }
}

/// Returns the kind of the run of a script, which may be the code of a tool.
pub(super) fn kind(tool: Option<&str>, dialect: Dialect) -> &'static str {
    match (tool, dialect) {
        (Some(_), _) => "tool",
        (None, Dialect::Sync) => "code_execution",
        (None, Dialect::Async) => "execute",
    }
}

/// Returns the first line of a script that is not empty.
pub(super) fn title(script: &str) -> String {
    let line = script.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.len() <= MAX_TITLE_BYTES { line.to_owned() } else { format!("{}…", truncate(line, MAX_TITLE_BYTES)) }
}

fn insert(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value);
    }
}

/// Returns a value, or the beginning of its text if that is longer than `max` bytes. Only so much is written of it.
fn cut_value(value: &Value, max: usize) -> Value {
    let mut text = Limited { text: Vec::new(), max };
    if serde_json::to_writer(&mut text, value).is_ok() {
        return value.clone();
    }
    let text = String::from_utf8_lossy(&text.text);
    format!("{}…", truncate(&text, max)).into()
}

/// Fails to write more than `max` bytes.
struct Limited {
    text: Vec<u8>,
    max: usize,
}

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.max.saturating_sub(self.text.len());
        self.text.extend_from_slice(&bytes[..bytes.len().min(left)]);
        if bytes.len() > left { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the first log messages of a run.
fn cut_logs(logs: &[String], max: usize) -> Vec<String> {
    let mut left = max;
    let mut kept = Vec::new();
    for (at, log) in logs.iter().enumerate() {
        if log.len() > left {
            let more = logs.len() - at - 1;
            kept.push(format!("{}… [cut: {more} more messages]", truncate(log, left)));
            break;
        }
        left -= log.len();
        kept.push(log.clone());
    }
    kept
}

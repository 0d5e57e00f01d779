//! Figures of a server for Prometheus: runs, calls, permits, upstreams, memory.
//!
//! The number of series is bounded: labels are statuses, codes of the table of errors, and apps of the configuration.

use super::Hub;
use agentscript::ErrorCode;
use codecall_runs::{RunEnd, RunHook, RunStart};
use codecall_tools::pipeline::{Hook, Record};
use codecall_upstream::BoxFuture;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Upper bounds of durations, in seconds.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
/// The app of tools that do not exist, and of those without an app.
const NO_APP: &str = "none";

/// The counters of a server. They go on when its configuration changes.
pub struct Metrics {
    registry: Registry,
    runs: IntCounterVec,
    run_seconds: Histogram,
    active_runs: IntGauge,
    refused_runs: IntCounterVec,
    requests: IntCounterVec,
    calls: IntCounterVec,
    call_seconds: HistogramVec,
    permits: IntGaugeVec,
    waiting: IntGaugeVec,
    queued: IntGaugeVec,
    script_bytes: IntGauge,
    upstream_up: IntGaugeVec,
    upstream_tools: IntGaugeVec,
    resident_bytes: IntGauge,
    /// The apps that can be labels.
    apps: RwLock<BTreeSet<String>>,
}

impl Metrics {
    /// Counts a request of a client. The names of clients are those of the configuration.
    pub fn request(&self, client: &str, status: u16) {
        self.requests.with_label_values(&[client, &status.to_string()]).inc();
    }

    /// Creates counters that are 0.
    ///
    /// # Errors
    /// A name is given twice, which tests exclude.
    pub fn new() -> prometheus::Result<Arc<Self>> {
        let counters = |name, help, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let gauges = |name, help, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels);
        let seconds = |name: &str, help: &str| HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
        let metrics = Self {
            registry: Registry::new(),
            runs: counters("codecall_runs_total", "Runs of scripts that have ended, by status.", &["status"])?,
            run_seconds: Histogram::with_opts(seconds("codecall_run_duration_seconds", "Duration of runs."))?,
            active_runs: IntGauge::new("codecall_runs_active", "Runs of scripts that have begun and not ended.")?,
            refused_runs: counters(
                "codecall_runs_refused_total",
                "Runs that did not begin, by the code of the error.",
                &["code"],
            )?,
            requests: counters(
                "codecall_client_requests_total",
                "Requests of clients with tokens of their own, by client and status of HTTP.",
                &["client", "status"],
            )?,
            calls: counters(
                "codecall_tool_calls_total",
                "Calls of tools, by app and by the code of their error; ok: none.",
                &["app", "status"],
            )?,
            call_seconds: HistogramVec::new(
                seconds("codecall_tool_call_duration_seconds", "Duration of calls of tools, by app."),
                &["app"],
            )?,
            permits: gauges("codecall_permits_available", "Scripts that could begin at once, by pool.", &["pool"])?,
            waiting: gauges(
                "codecall_runs_waiting",
                "Scripts that have begun, and wait for tools, timers or people, by pool.",
                &["pool"],
            )?,
            queued: gauges("codecall_queue_length", "Scripts that wait to begin, by pool.", &["pool"])?,
            script_bytes: IntGauge::new("codecall_script_memory_bytes", "Memory of all running scripts.")?,
            upstream_up: gauges("codecall_upstream_up", "Whether the tools of an app can be called.", &["app"])?,
            upstream_tools: gauges("codecall_upstream_tools", "Tools of an app that scripts can call.", &["app"])?,
            resident_bytes: IntGauge::new("process_resident_memory_bytes", "Memory of the process.")?,
            apps: RwLock::default(),
        };
        let registry = &metrics.registry;
        registry.register(Box::new(metrics.runs.clone()))?;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.run_seconds.clone()))?;
        registry.register(Box::new(metrics.active_runs.clone()))?;
        registry.register(Box::new(metrics.refused_runs.clone()))?;
        registry.register(Box::new(metrics.calls.clone()))?;
        registry.register(Box::new(metrics.call_seconds.clone()))?;
        registry.register(Box::new(metrics.permits.clone()))?;
        registry.register(Box::new(metrics.waiting.clone()))?;
        registry.register(Box::new(metrics.queued.clone()))?;
        registry.register(Box::new(metrics.script_bytes.clone()))?;
        registry.register(Box::new(metrics.upstream_up.clone()))?;
        registry.register(Box::new(metrics.upstream_tools.clone()))?;
        if resident_bytes().is_some() {
            registry.register(Box::new(metrics.resident_bytes.clone()))?;
        }
        Ok(Arc::new(metrics))
    }

    /// Sets the apps that can be labels.
    pub(super) fn set_apps(&self, apps: impl Iterator<Item = String>) {
        *self.apps.write().unwrap_or_else(PoisonError::into_inner) = apps.filter(|app| !app.is_empty()).collect();
    }

    fn app<'a>(&self, tool: &'a str) -> &'a str {
        let app = tool.split_once(':').map_or(NO_APP, |(app, _)| app);
        let is_known = self.apps.read().unwrap_or_else(PoisonError::into_inner).contains(app);
        if is_known { app } else { NO_APP }
    }

    /// Counts a run that did not begin.
    pub(super) fn refused(&self, code: ErrorCode) {
        self.refused_runs.with_label_values(&[code.as_str()]).inc();
    }

    /// Returns all figures in the text format of Prometheus.
    #[must_use]
    pub fn text(&self, hub: &Hub) -> String {
        let to_gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.permits.reset();
        self.waiting.reset();
        self.queued.reset();
        for (pool, load) in hub.loads() {
            self.permits.with_label_values(&[pool]).set(to_gauge(load.available));
            self.waiting.with_label_values(&[pool]).set(to_gauge(load.waiting));
            self.queued.with_label_values(&[pool]).set(to_gauge(load.queued));
        }
        self.script_bytes.set(i64::try_from(hub.script_bytes()).unwrap_or(i64::MAX));
        self.upstream_up.reset();
        self.upstream_tools.reset();
        for server in hub.status().servers {
            let app = if server.app.is_empty() { NO_APP } else { server.app.as_str() };
            self.upstream_up.with_label_values(&[app]).set(i64::from(server.error.is_none()));
            self.upstream_tools.with_label_values(&[app]).set(to_gauge(server.tools));
        }
        if let Some(bytes) = resident_bytes() {
            self.resident_bytes.set(bytes);
        }
        // A family without series is not written, and nothing else can fail.
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}

/// The memory of this process; `None` where the system does not say so in a file.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Counts runs.
pub struct CountRuns(pub Arc<Metrics>);

impl RunHook for CountRuns {
    fn begin<'a>(&'a self, _: &'a RunStart) -> BoxFuture<'a, ()> {
        self.0.active_runs.inc();
        Box::pin(std::future::ready(()))
    }

    fn paused(&self, _: &RunStart) {
        self.0.active_runs.dec();
    }

    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        self.0.active_runs.dec();
        self.0.runs.with_label_values(&[end.outcome.status().as_str()]).inc();
        self.0.run_seconds.observe(end.duration.as_secs_f64());
        Box::pin(std::future::ready(()))
    }
}

/// Counts calls of tools.
pub struct CountCalls(pub Arc<Metrics>);

impl Hook for CountCalls {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn recorded(&self, record: &Record<'_>) {
        let app = self.0.app(record.name);
        // A tool can have any code.
        let code = |code: &str| ErrorCode::ALL.iter().map(|code| code.as_str()).find(|known| *known == code);
        let status = record.error.map_or("ok", |error| code(&error.code).unwrap_or("other"));
        self.0.calls.with_label_values(&[app, status]).inc();
        self.0.call_seconds.with_label_values(&[app]).observe(record.duration.as_secs_f64());
    }
}

//! Traces: which operation is a part of which, over the borders of processes (W3C Trace Context).
//!
//! A task has a current trace context, which a client may have sent. It is passed on to upstreams, also where nothing is
//! recorded. Spans are recorded once a sink is installed. This module must not know where they are sent.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Maximum length of a `tracestate` that is passed on, in bytes: what the specification requires.
const MAX_STATE_BYTES: usize = 512;

tokio::task_local! {
    static CURRENT: Option<Arc<TraceContext>>;
}

static SINK: OnceLock<Arc<dyn SpanSink>> = OnceLock::new();

/// Identifies a span in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace: u128,
    /// The span; never 0.
    pub span: u64,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
    /// The data of other vendors of the trace, as it was received.
    pub state: Option<Arc<str>>,
}

impl TraceContext {
    /// Parses the headers or members `traceparent` and `tracestate`; `None` if the first one is invalid.
    #[must_use]
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut parts = parent.trim().split('-');
        let [version, trace, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let lengths = [version.len(), trace.len(), span.len(), flags.len()];
        let is_known = version != "00" || parts.next().is_none();
        if lengths != [2, 32, 16, 2]
            || version == "ff"
            || !is_known
            || ![version, trace, span, flags].into_iter().all(is_hex)
        {
            return None;
        }
        let context = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(span, 16).ok()?,
            is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
            state: state.filter(|state| is_state(state)).map(Into::into),
        };
        (context.trace != 0 && context.span != 0).then_some(context)
    }

    /// Returns the value of `traceparent`.
    #[must_use]
    pub fn parent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Whether a `tracestate` can be passed on: short, and of characters that headers can have.
fn is_state(state: &str) -> bool {
    !state.is_empty() && state.len() <= MAX_STATE_BYTES && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns the trace context of the current task.
#[must_use]
pub fn current() -> Option<Arc<TraceContext>> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// Runs a future with a trace context. Tasks that it spawns do not inherit it.
pub fn within<F: Future>(context: Option<Arc<TraceContext>>, future: F) -> impl Future<Output = F::Output> + use<F> {
    CURRENT.scope(context, future)
}

/// The kind of a span, as seen from the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// An operation within the process.
    Internal,
    /// The answer to a request of a client.
    Server,
    /// A request to a server.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// Text.
    Text(String),
    /// An integer.
    Integer(i64),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct SpanData {
    /// Its trace and its id.
    pub context: TraceContext,
    /// The span that it is a part of; `None`: it is the first one of its trace.
    pub parent: Option<u64>,
    /// The name: an operation and what it is about.
    pub name: String,
    /// The kind.
    pub kind: SpanKind,
    /// When it began.
    pub began: SystemTime,
    /// How long it has taken.
    pub duration: Duration,
    /// Its attributes, by the names of the semantic conventions.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// The description of its failure; `None`: it has not failed.
    pub failure: Option<String>,
}

/// Receives spans.
pub trait SpanSink: Send + Sync {
    /// Whether a span without a parent in this process is recorded. `parent` is the one that a client has sent.
    fn samples(&self, trace: u128, parent: Option<&TraceContext>) -> bool;
    /// Whether inputs and results of tools are attributes.
    fn records_content(&self) -> bool;
    /// Receives a span that has ended. It must return at once.
    fn record(&self, span: SpanData);
}

/// Installs the sink of this process. Returns whether there was none.
pub fn install(sink: Arc<dyn SpanSink>) -> bool {
    SINK.set(sink).is_ok()
}

/// A span in progress, which ends when it is dropped. Without a sink, it only has the context of its parent.
pub struct Span {
    context: Option<Arc<TraceContext>>,
    recording: Option<Box<Recording>>,
}

struct Recording {
    parent: Option<u64>,
    name: String,
    kind: SpanKind,
    began: SystemTime,
    since: Instant,
    attributes: Vec<(&'static str, AttributeValue)>,
    failure: Option<String>,
}

impl Span {
    /// Begins a span in the current trace, or the first one of a trace.
    #[must_use]
    pub fn begin(kind: SpanKind, name: impl FnOnce() -> String) -> Self {
        let Some(sink) = SINK.get() else { return Self { context: current(), recording: None } };
        let current = current();
        let is_sampled = current.as_ref().map(|parent| parent.is_sampled);
        Self::child(&**sink, current, is_sampled, kind, name)
    }

    /// Begins the span of a request. `parent` is the trace context that its client has sent.
    #[must_use]
    pub fn begin_request(parent: Option<TraceContext>, name: impl FnOnce() -> String) -> Self {
        let parent = parent.map(Arc::new);
        let Some(sink) = SINK.get() else { return Self { context: parent, recording: None } };
        Self::child(&**sink, parent, None, SpanKind::Server, name)
    }

    fn child(
        sink: &dyn SpanSink,
        parent: Option<Arc<TraceContext>>,
        is_sampled: Option<bool>,
        kind: SpanKind,
        name: impl FnOnce() -> String,
    ) -> Self {
        let trace = parent.as_ref().map_or_else(|| u128::from_le_bytes(random()) | 1, |parent| parent.trace);
        let is_sampled = is_sampled.unwrap_or_else(|| sink.samples(trace, parent.as_deref()));
        let span = u64::from_le_bytes(random()) | 1;
        let (parent, state) = parent.map_or((None, None), |parent| (Some(parent.span), parent.state.clone()));
        let recording = is_sampled.then(|| {
            let (began, since) = (SystemTime::now(), Instant::now());
            Box::new(Recording { parent, name: name(), kind, began, since, attributes: Vec::new(), failure: None })
        });
        Self { context: Some(Arc::new(TraceContext { trace, span, is_sampled, state })), recording }
    }

    /// Returns the trace context of its parts.
    #[must_use]
    pub fn context(&self) -> Option<Arc<TraceContext>> {
        self.context.clone()
    }

    /// Whether it is recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recording.is_some()
    }

    /// Whether it is recorded with inputs and results of tools.
    #[must_use]
    pub fn records_content(&self) -> bool {
        self.is_recorded() && SINK.get().is_some_and(|sink| sink.records_content())
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        if let Some(recording) = &mut self.recording {
            recording.attributes.push((name, value.into()));
        }
    }

    /// Marks it as failed. `kind` is the attribute `error.type`.
    pub fn fail(&mut self, kind: &str, message: &str) {
        self.set("error.type", kind);
        if let Some(recording) = &mut self.recording {
            recording.failure = Some(message.to_owned());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let (Some(sink), Some(recording), Some(context)) = (SINK.get(), self.recording.take(), self.context.take())
        else {
            return;
        };
        let Recording { parent, name, kind, began, since, attributes, failure } = *recording;
        let context = TraceContext::clone(&context);
        sink.record(SpanData { context, parent, name, kind, began, duration: since.elapsed(), attributes, failure });
    }
}

/// Returns random bytes. If the system has no source of randomness, the hasher's keys still make them different.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        for (part, chunk) in bytes.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&RandomState::new().hash_one(part).to_le_bytes()[..chunk.len()]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn reads_and_writes_what_the_specification_has() {
        let context = TraceContext::parse(PARENT, Some("vendor=1,other=2")).expect("valid");
        assert_eq!((context.span, context.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.state.as_deref(), Some("vendor=1,other=2"));
        assert_eq!(context.parent(), PARENT);
        // A later version may have more parts.
        assert!(TraceContext::parse(&PARENT.replacen("00", "cc", 1).replace("-01", "-01-more"), None).is_some());
    }

    #[test]
    fn refuses_what_is_invalid() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let zero_span = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16));
        let upper = PARENT.to_uppercase();
        let more = format!("{PARENT}-more");
        for invalid in ["", "00", "ff-", &zero_trace, &zero_span, &upper, &more, &PARENT.replacen("00", "ff", 1)] {
            assert_eq!(TraceContext::parse(invalid, None), None, "{invalid}");
        }
        let long = "x".repeat(MAX_STATE_BYTES + 1);
        for state in ["", "a=\n", &long] {
            assert_eq!(TraceContext::parse(PARENT, Some(state)).expect("valid").state, None);
        }
    }

    #[tokio::test]
    async fn passes_the_context_on_where_nothing_is_recorded() {
        let context = TraceContext::parse(PARENT, None);
        let span = Span::begin_request(context.clone(), || unreachable!("there is no sink"));
        assert!(!span.is_recorded());
        let inner = within(span.context(), async { Span::begin(SpanKind::Client, String::new).context() }).await;
        assert_eq!(inner.as_deref(), context.as_ref());
        assert_eq!(current(), None);
    }
}

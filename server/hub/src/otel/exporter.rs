//! Spans in the SDK of OpenTelemetry, which writes, batches and drops them. They are sent by the HTTP client of this program.

use super::{MakeClient, variable};
use codecall_base::redact::SecretRegistry;
use codecall_base::telemetry::{self, AttributeValue, SpanSink, TraceContext};
use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, InstrumentationScope, Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfig, BatchSpanProcessor, Config, SamplingDecision, ShouldSample, SpanData, SpanEvents, SpanLinks,
    SpanProcessor as _,
};
use percent_encoding::percent_decode_str;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// How often a batch is sent again that the collector could not take.
const MAX_RETRIES: u32 = 4;
/// The first pause before that.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// How long the collector may take, unless a variable says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends spans.
pub struct Exporter {
    processor: BatchSpanProcessor,
    sampler: Box<dyn ShouldSample>,
    records_content: bool,
    scope: InstrumentationScope,
    secrets: Arc<SecretRegistry>,
}

impl Exporter {
    /// Starts the thread that sends batches.
    ///
    /// # Errors
    /// The variables ask for what is not supported.
    pub fn start(secrets: &Arc<SecretRegistry>, client: MakeClient) -> Result<Arc<Self>, String> {
        if let Some(other) = variable("PROTOCOL").filter(|name| name != "http/protobuf" && name != "http/json") {
            return Err(format!("the protocol {other} is not supported, only http/protobuf and http/json"));
        }
        if let Ok(other) = std::env::var("OTEL_TRACES_EXPORTER")
            && !["", "otlp"].contains(&other.trim())
        {
            return Err(format!("OTEL_TRACES_EXPORTER={other} is not supported, only otlp and none"));
        }
        // After a scheme, as in `Bearer KEY`, the key alone is the secret. What is too short for a secret is none.
        let headers = variable("HEADERS").unwrap_or_default();
        for (_, value) in headers.split(',').filter_map(|pair| pair.split_once('=')) {
            let value = percent_decode_str(value.trim()).decode_utf8_lossy();
            let _ = secrets.add(value.rsplit(' ').next().unwrap_or_default());
        }
        let timeout = variable("TIMEOUT").and_then(|value| value.trim().parse().ok()).map(Duration::from_millis);
        let http = client(timeout.unwrap_or(DEFAULT_TIMEOUT)).map_err(|_| "there is no HTTP client".to_owned())?;
        let client = Client { http, runtime: Handle::current(), is_failing: AtomicBool::new(false) };
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let exporter = exporter.map_err(|error| error.to_string())?;
        let mut processor = BatchSpanProcessor::new(exporter, BatchConfig::default());
        processor.set_resource(&resource());
        let records_content = std::env::var("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
            .is_ok_and(|value| ["true", "span_only"].contains(&value.trim().to_ascii_lowercase().as_str()));
        let scope = InstrumentationScope::builder("codecall").with_version(env!("CARGO_PKG_VERSION")).build();
        let sampler = Config::default().sampler;
        Ok(Arc::new(Self { processor, sampler, records_content, scope, secrets: Arc::clone(secrets) }))
    }

    /// Sends the spans that wait, within the SDK's time limit.
    pub async fn flush(self: &Arc<Self>) {
        let this = Arc::clone(self);
        // The client has said what was wrong.
        let _ = tokio::task::spawn_blocking(move || this.processor.force_flush()).await;
    }
}

impl SpanSink for Exporter {
    fn samples(&self, trace: u128, parent: Option<&TraceContext>) -> bool {
        let context = parent.map(|parent| Context::new().with_remote_span_context(span_context(parent, true)));
        let (trace, kind) = (TraceId::from_bytes(trace.to_be_bytes()), SpanKind::Internal);
        let sampled = self.sampler.should_sample(context.as_ref(), trace, "", &kind, &[], &[] as &[Link]);
        sampled.decision == SamplingDecision::RecordAndSample
    }

    fn records_content(&self) -> bool {
        self.records_content
    }

    fn record(&self, span: telemetry::SpanData) {
        let redactor = self.secrets.redactor();
        let redacted = |mut text: String| {
            redactor.redact_string(&mut text);
            text
        };
        let attributes = span.attributes.into_iter().map(|(name, value)| match value {
            AttributeValue::Text(text) => KeyValue::new(name, redacted(text)),
            AttributeValue::Integer(number) => KeyValue::new(name, number),
        });
        self.processor.on_end(SpanData {
            span_context: span_context(&span.context, false),
            parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.to_be_bytes())),
            parent_span_is_remote: span.kind == telemetry::SpanKind::Server,
            span_kind: match span.kind {
                telemetry::SpanKind::Internal => SpanKind::Internal,
                telemetry::SpanKind::Server => SpanKind::Server,
                telemetry::SpanKind::Client => SpanKind::Client,
            },
            name: redacted(span.name).into(),
            start_time: span.began,
            end_time: span.began + span.duration,
            attributes: attributes.collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: match span.failure {
                Some(message) => Status::error(redacted(message)),
                None => Status::Unset,
            },
            instrumentation_scope: self.scope.clone(),
        });
    }
}

fn span_context(context: &TraceContext, is_remote: bool) -> SpanContext {
    let flags = if context.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let state = context.state.as_deref().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    let (trace, span) = (context.trace.to_be_bytes(), context.span.to_be_bytes());
    SpanContext::new(TraceId::from_bytes(trace), SpanId::from_bytes(span), flags, is_remote, state)
}

/// Returns the attributes of the process: those of the variables, and what they do not say.
fn resource() -> Resource {
    let own = || {
        let process = i64::from(std::process::id());
        [KeyValue::new("service.version", env!("CARGO_PKG_VERSION")), KeyValue::new("process.pid", process)]
    };
    let resource = Resource::builder().with_attributes(own()).build();
    let name = resource.get(&Key::new("service.name")).map(|name| name.to_string()).unwrap_or_default();
    match name.starts_with("unknown_service") {
        true => Resource::builder().with_attributes(own()).with_service_name("codecall").build(),
        false => resource,
    }
}

/// Sends batches. The SDK's thread has no reactor, so requests are made on the runtime.
#[derive(Debug)]
struct Client {
    http: reqwest::Client,
    runtime: Handle,
    /// Whether the last batch was not taken. Only the first failure in a row is logged.
    is_failing: AtomicBool,
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.runtime.spawn(send(self.http.clone(), request)).await;
        let sent = sent.unwrap_or_else(|error| Err(error.to_string()));
        match &sent {
            Ok(_) => self.is_failing.store(false, Ordering::Relaxed),
            Err(reason) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!("OpenTelemetry: the collector has not taken spans: {reason}");
                }
            }
        }
        sent.map_err(Into::into)
    }
}

/// Sends a batch, again while the collector says that it is busy.
async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let request = reqwest::Request::try_from(request).map_err(|error| error.to_string())?;
    let mut pause = INITIAL_BACKOFF;
    let mut attempts = 0;
    loop {
        let attempt = request.try_clone().ok_or("the batch is no text")?;
        let answer = client.execute(attempt).await.map_err(|error| error.without_url().to_string())?;
        let status = answer.status();
        if status.is_success() {
            let body = answer.bytes().await.map_err(|error| error.without_url().to_string())?;
            return Response::builder().status(status).body(body).map_err(|error| error.to_string());
        }
        if !matches!(status.as_u16(), 429 | 502 | 503 | 504) || attempts == MAX_RETRIES {
            return Err(format!("it answers with status {}", status.as_u16()));
        }
        let wanted = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        tokio::time::sleep(wanted.map_or(pause, Duration::from_secs)).await;
        pause *= 2;
        attempts += 1;
    }
}

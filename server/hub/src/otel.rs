//! OpenTelemetry: spans of requests, runs, tool calls and requests to upstreams, sent to a collector (OTLP over HTTP).
//!
//! It is configured by the variables that all programs with OpenTelemetry have, which its SDK reads. Sending never delays
//! nor fails what is traced. The SDK is only in programs that are built with the feature `otel`.

#[cfg(feature = "otel")]
mod exporter;

use codecall_base::redact::SecretRegistry;
use std::sync::Arc;
use std::time::Duration;

/// Makes an HTTP client whose requests have a time limit.
pub type MakeClient = fn(Duration) -> Result<reqwest::Client, reqwest::Error>;

/// Sends the spans of this process.
pub struct Telemetry {
    #[cfg(feature = "otel")]
    exporter: Arc<exporter::Exporter>,
}

impl Telemetry {
    /// Begins to record and send spans, without the secrets of the registry. `None`: the environment does not ask for it,
    /// or asks for what is not supported, which is logged. `client` makes an HTTP client with a time limit. This needs a
    /// tokio runtime.
    #[must_use]
    pub fn start(secrets: &Arc<SecretRegistry>, client: MakeClient) -> Option<Arc<Self>> {
        if !is_wanted() {
            return None;
        }
        match Self::start_exporter(secrets, client) {
            Ok(telemetry) => telemetry.map(Arc::new),
            Err(problem) => {
                tracing::warn!("OpenTelemetry: {problem}. No traces are sent.");
                None
            }
        }
    }

    #[cfg(feature = "otel")]
    fn start_exporter(secrets: &Arc<SecretRegistry>, client: MakeClient) -> Result<Option<Self>, String> {
        let exporter = exporter::Exporter::start(secrets, client)?;
        let is_installed = codecall_base::telemetry::install(Arc::<exporter::Exporter>::clone(&exporter));
        Ok(is_installed.then_some(Self { exporter }))
    }

    #[cfg(not(feature = "otel"))]
    fn start_exporter(_: &Arc<SecretRegistry>, _: MakeClient) -> Result<Option<Self>, String> {
        Err("this program is built without it; build it with `--features otel`".into())
    }

    /// Sends the spans that wait.
    pub async fn flush(&self) {
        #[cfg(feature = "otel")]
        self.exporter.flush().await;
    }
}

/// Whether the environment asks for traces.
fn is_wanted() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set.trim().eq_ignore_ascii_case(value));
    let is_off = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
    !is_off && (variable("ENDPOINT").is_some() || is("OTEL_TRACES_EXPORTER", "otlp"))
}

/// Returns a variable of the exporter: that of traces, or that of everything.
fn variable(name: &str) -> Option<String> {
    let of = |prefix: &str| std::env::var(format!("{prefix}{name}")).ok().filter(|value| !value.trim().is_empty());
    of("OTEL_EXPORTER_OTLP_TRACES_").or_else(|| of("OTEL_EXPORTER_OTLP_"))
}

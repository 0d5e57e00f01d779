//! Calls that are refused because there were too many. They are made again at the time that the error says, if the tool
//! does no harm, and within the time of the run. Calls of a tool that has refused one take turns in the run.

use super::approval::is_repeatable;
use super::{ActiveCall, Before, Hook, HookCall, Pipeline};
use codecall_base::offload::{self, weight_of};
use codecall_base::rates::{RunEnds, RunRates, Turn};
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Codes of errors that say that there were too many calls.
const CODES: [&str; 6] =
    ["RATE_LIMIT", "RATE_LIMITED", "RATE_LIMIT_EXCEEDED", "RATELIMITED", "TOO_MANY_REQUESTS", "429"];
/// Members of details that say when a tool can be called again, with their unit in milliseconds.
const TIMES: [(&str, f64); 7] = [
    ("retryAfterMs", 1.0),
    ("retry_after_ms", 1.0),
    ("retryAfterSeconds", 1_000.0),
    ("retry_after_seconds", 1_000.0),
    ("retryAfter", 1_000.0),
    ("retry_after", 1_000.0),
    ("Retry-After", 1_000.0),
];
/// The shortest time that a call waits, in milliseconds: no call is made again at once.
const MIN_WAIT_MS: f64 = 10.0;
/// The longest time that counts, in milliseconds.
const MAX_WAIT_MS: f64 = 86_400_000.0;

impl Pipeline {
    /// Returns how the calls of a run that lasts so long obey the rate limits of tools; `None`: refused calls fail.
    #[must_use]
    pub fn rates(&self, time: Duration) -> Option<Arc<RunRates>> {
        (self.rate_limit_retries > 0).then(|| RunRates::new(time, self.rate_limit_retries))
    }

    /// Whether a tool says that it only reads.
    #[must_use]
    pub fn only_reads(&self, tool: &str) -> bool {
        let snapshot = self.catalogue.snapshot();
        let hint = |entry: &crate::catalogue::Entry| entry.definition.annotations.get("readOnlyHint").cloned();
        snapshot.lookup(tool).and_then(|entry| hint(entry)) == Some(Value::Bool(true))
    }

    /// Calls the tool, and again if it refuses the call.
    pub(super) async fn reach_at_rate(&self, active: &mut ActiveCall<'_>) -> Result<ToolResult, ToolError> {
        let Some(Limited { rates, tool, can_repeat }) = Limited::of(active) else { return self.reach(active).await };
        let cancel = active.trace.context().cancel.clone();
        let mut turn = match cancel.run_until_cancelled(rates.turn(&tool)).await {
            Some(Ok(turn)) => turn,
            Some(Err(RunEnds)) => return Err(no_time(&tool)),
            None => None,
        };
        loop {
            let kept = (can_repeat && active.retries < rates.max_retries()).then(|| copy(&active.input));
            let result = self.reach(active).await;
            let refused = match &result {
                Ok(result) => result.failure(&tool).and_then(|error| refusal(&error)),
                Err(error) => refusal(error),
            };
            let Some(wait) = refused else { return result };
            let has_time = rates.refused(&tool, wait.unwrap_or_default());
            let (Some(input), Some(_), true) = (kept, wait, has_time) else { return result };
            if cancel.run_until_cancelled(next_turn(&rates, &tool, &mut turn)).await != Some(Ok(())) {
                return result;
            }
            active.input = input;
            active.retry();
        }
    }

    /// Asks a hook that limits rates, and again if it refuses the call.
    pub(super) async fn ask_at_rate(
        &self,
        hook: &Arc<dyn Hook>,
        call: &HookCall,
        mut input: Map<String, Value>,
        active: &mut ActiveCall<'_>,
    ) -> Result<Before, ToolError> {
        let limited = Limited::of(active).filter(|limited| limited.can_repeat);
        let Some(Limited { rates, tool, .. }) = limited else { return ask(hook, call, input).await };
        let cancel = active.trace.context().cancel.clone();
        let mut turn = None;
        loop {
            let kept = (active.retries < rates.max_retries()).then(|| copy(&input));
            let answer = ask(hook, call, input).await;
            let wait = answer.as_ref().err().and_then(refusal).flatten().filter(|wait| rates.refused(&tool, *wait));
            let (Some(kept), Some(_)) = (kept, wait) else { return answer };
            if cancel.run_until_cancelled(next_turn(&rates, &tool, &mut turn)).await != Some(Ok(())) {
                return answer;
            }
            input = kept;
            active.retry();
        }
    }
}

/// A call whose run obeys rate limits.
struct Limited {
    rates: Arc<RunRates>,
    tool: String,
    /// Whether it does no harm if it is made again.
    can_repeat: bool,
}

impl Limited {
    fn of(active: &ActiveCall<'_>) -> Option<Self> {
        let rates = Arc::clone(active.trace.context().run.as_ref()?.rates.as_ref()?);
        let entry = &active.target.as_ref()?.entry;
        Some(Self { rates, tool: entry.name.clone(), can_repeat: is_repeatable(entry) })
    }
}

impl ActiveCall<'_> {
    fn retry(&mut self) {
        self.retries += 1;
        self.trace.retried();
    }
}

/// Asks a hook before a call.
pub(super) async fn ask(hook: &Arc<dyn Hook>, call: &HookCall, input: Map<String, Value>) -> Result<Before, ToolError> {
    match offload::run(weight_of(&input), || hook.before(call, input)).await {
        Ok(answer) => answer.await,
        Err(busy) => Err(busy.into()),
    }
}

/// Waits until a call can be made again, in its turn, which it keeps.
async fn next_turn(rates: &RunRates, tool: &str, turn: &mut Option<Turn>) -> Result<(), RunEnds> {
    if turn.is_none() {
        *turn = rates.turn(tool).await?;
    }
    rates.wait(tool).await
}

fn copy(input: &Map<String, Value>) -> Map<String, Value> {
    offload::run_without_permit(weight_of(input), || input.clone())
}

fn no_time(tool: &str) -> ToolError {
    let message = format!(
        "Tool '{tool}' has refused calls because there were too many; the run ends before it can be called again"
    );
    ToolError::new(ErrorCode::RateLimit, message)
}

/// If an error says that there were too many calls: when the tool can be called again, if it says that.
fn refusal(error: &ToolError) -> Option<Option<Duration>> {
    let is_code = CODES.iter().any(|code| error.code.eq_ignore_ascii_case(code));
    if !is_code && !error.message.starts_with("HTTP 429") && error.details.is_none() {
        return None;
    }
    let details: Value = error.details.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_status = ["status", "statusCode", "status_code"].iter().any(|key| details[key] == 429);
    let is_refusal = is_code || is_status || error.message.starts_with("HTTP 429");
    is_refusal.then(|| retry_time(&details).or_else(|| retry_time(&details["body"])))
}

/// When a tool can be called again, by the details of its error.
fn retry_time(details: &Value) -> Option<Duration> {
    let ms = TIMES.iter().find_map(|(name, unit)| match &details[name] {
        Value::Number(number) => Some(number.as_f64()? * unit),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) => Some(number * unit),
            // A date of HTTP.
            Err(_) => {
                let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
                Some((date.as_millisecond() - Timestamp::now().as_millisecond()).max(0) as f64)
            }
        },
        _ => None,
    })?;
    (ms.is_finite() && ms >= 0.0).then(|| Duration::from_secs_f64(ms.clamp(MIN_WAIT_MS, MAX_WAIT_MS) / 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal_of(code: &str, message: &str, details: &Value) -> Option<Option<u128>> {
        let details = (!details.is_null()).then(|| details.to_string());
        let error = ToolError { details, ..ToolError::new(code, message) };
        refusal(&error).map(|wait| wait.map(|wait| wait.as_millis()))
    }

    #[test]
    fn refusals_are_recognized_with_their_time() {
        let cases = [
            ("RATE_LIMIT", "Rate limit exceeded", json!({"retryAfterMs": 250}), Some(Some(250))),
            ("rate_limited", "slow down", json!({"retryAfter": 2}), Some(Some(2_000))),
            ("TOO_MANY_REQUESTS", "", json!({"retryAfterSeconds": "1.5"}), Some(Some(1_500))),
            (
                "TOOL_EXECUTION_ERROR",
                "HTTP 429 Too Many Requests",
                json!({"status": 429, "retryAfter": "3"}),
                Some(Some(3_000)),
            ),
            ("TOOL_EXECUTION_ERROR", "busy", json!({"status": 429, "body": {"retry_after": 0.1}}), Some(Some(100))),
            ("TOOL_EXECUTION_ERROR", "HTTP 429 Too Many Requests", Value::Null, Some(None)),
            ("429", "no", json!({"retryAfter": "Wed, 21 Oct 2015 07:28:00 GMT"}), Some(Some(10))),
            ("RATE_LIMIT", "no", json!({"retryAfter": "soon"}), Some(None)),
            ("RATE_LIMIT", "no", json!({"retryAfter": -1}), Some(None)),
            ("RATE_LIMIT", "no", json!({"retryAfter": 1e300}), Some(Some(86_400_000))),
            ("TOOL_EXECUTION_ERROR", "HTTP 503 Service Unavailable", json!({"status": 503, "retryAfter": "3"}), None),
            ("NOT_FOUND", "no", json!({"retryAfter": 1}), None),
            ("NOT_FOUND", "no", Value::Null, None),
        ];
        for (code, message, details, expected) in cases {
            assert_eq!(refusal_of(code, message, &details), expected, "{code} {message} {details}");
        }
    }
}

//! The client of a call or a run, and questions of tools to it: input of a person, a message of its model, roots.
//!
//! Here a question is data of MCP. How it reaches the client, and what is checked before, is not known here.

use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The kind of a tool's request to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `elicitation/create`: input of a person, in a form or on a page.
    Elicitation,
    /// `sampling/createMessage`: a message of the client's model.
    Sampling,
    /// `roots/list`: the folders that the client works on.
    Roots,
}

impl Method {
    /// Returns the name of the method in MCP.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

/// A question of a tool to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The upstream's name for it, if it has one.
    pub key: Option<String>,
    /// The kind.
    pub method: Method,
    /// The parameters of the request, as MCP defines them for the method.
    pub params: Value,
}

impl Question {
    /// Returns the capability that a client needs to answer it.
    #[must_use]
    pub fn capability(&self) -> &'static str {
        match self.method {
            Method::Elicitation if self.params["mode"] == "url" => "elicitation.url",
            Method::Elicitation => "elicitation",
            Method::Sampling if self.params.get("tools").is_some_and(|tools| !tools.is_null()) => "sampling.tools",
            Method::Sampling => "sampling",
            Method::Roots => "roots",
        }
    }

    /// Whether a client with these capabilities can answer it.
    #[must_use]
    pub fn fits(&self, capabilities: &Value) -> bool {
        let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
        let has_in = |name: &str, part: &str| capabilities[name].get(part).is_some_and(Value::is_object);
        match self.capability() {
            "elicitation.url" => has_in("elicitation", "url"),
            // An empty object means forms.
            "elicitation" => has("elicitation") && (has_in("elicitation", "form") || !has_in("elicitation", "url")),
            "sampling.tools" => has_in("sampling", "tools"),
            name => has(name),
        }
    }
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It was not asked, or nobody has answered: why.
    Refused(String),
    /// The client has answered with an error of JSON-RPC.
    Error {
        /// Its code.
        code: i32,
        /// Its message.
        message: String,
    },
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => f.write_str(reason),
            Self::Error { message, .. } => write!(f, "The client refused: {message}"),
        }
    }
}

/// The answer to a question: the result of the request in MCP.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Value, Unanswered>> + Send + 'a>>;

/// How far a server is with a call that it has answered with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskUpdate {
    /// It works.
    Working {
        /// The present step, for people.
        message: Option<String>,
        /// How often it wants to be asked.
        poll_interval: Option<Duration>,
        /// How long it keeps the task from its beginning; `None`: for any time.
        ttl: Option<Duration>,
    },
    /// The request has failed, with this code of JSON-RPC. The error of the call has the message.
    Failed {
        /// The code.
        code: i32,
    },
    /// The server has cancelled it.
    Cancelled,
}

/// Tells a client that what it was asked to do on a page is done: the id of the question. It returns at once.
pub type PageDone = Arc<dyn Fn(&str) + Send + Sync>;

/// The way to a client.
pub trait Port: Send + Sync {
    /// Returns what the client has declared: an object as in `capabilities` of MCP.
    fn capabilities(&self) -> &Value;

    /// Returns the lowest level of log messages that the request wants; `None` if it has not said so.
    fn log_level(&self) -> Option<&str> {
        None
    }

    /// Returns a number that two ports to the same client share.
    fn client(&self) -> u64;

    /// Returns the time that it waits for the client.
    fn waits(&self) -> &Waits;

    /// Asks the client. Dropping the future withdraws the question.
    fn ask(&self, question: Question) -> Answering<'_>;

    /// Tells the client how far the task of the call is. Returns whether the client has a task for its own request then: if
    /// so, no time limit applies but that of the task.
    fn task_changed(&self, _update: TaskUpdate) -> bool {
        false
    }

    /// Returns what tells the client that a page is done, also after the call; `None`: it is not told.
    fn page_done(&self) -> Option<PageDone> {
        None
    }

    /// Whether a question has been asked.
    fn has_asked(&self) -> bool {
        false
    }
}

/// The client of a call or a run; by default there is none that can be asked.
#[derive(Clone, Default)]
pub struct Client(Option<Arc<dyn Port>>);

impl Client {
    /// Creates a client that is reached over a port.
    #[must_use]
    pub fn new(port: Arc<dyn Port>) -> Self {
        Self(Some(port))
    }

    /// Returns the way to the client, if it can be asked.
    #[must_use]
    pub fn port(&self) -> Option<&Arc<dyn Port>> {
        self.0.as_ref()
    }

    /// Whether there is something that the client can be asked.
    #[must_use]
    pub fn can_be_asked(&self) -> bool {
        let has_any = |own: &Value| ["elicitation", "sampling", "roots"].iter().any(|name| own.get(name).is_some());
        self.0.as_ref().is_some_and(|port| has_any(port.capabilities()))
    }

    /// Returns what the client has declared; an empty object if there is none.
    #[must_use]
    pub fn capabilities(&self) -> Value {
        self.0.as_ref().map_or_else(|| Value::Object(serde_json::Map::new()), |port| port.capabilities().clone())
    }

    /// Whether both are the same client.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(port), Some(other)) => port.client() == other.client(),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Whether a question has been asked over this port.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|port| port.has_asked())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Client(…)" } else { "Client(none)" })
    }
}

/// The time that a call or a run waits for answers of its client. Limits of time leave it out, up to a maximum.
#[derive(Debug)]
pub struct Waits {
    // A run has two of these, and mostly nobody asks: a channel would be eight times as large.
    state: Mutex<WaitState>,
    changed: Notify,
    max: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct WaitState {
    /// Number of questions without an answer.
    open: usize,
    /// Since when there is one.
    since: Option<Instant>,
    /// The time before that.
    past: Duration,
    /// Whether limits have ended to apply.
    is_lifted: bool,
}

/// A question that waits for its answer, until it is dropped.
pub struct Waiting<'a>(&'a Waits);

impl Waits {
    /// Creates a counter of time. All answers together may take `max`.
    #[must_use]
    pub fn new(max: Duration) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), max }
    }

    fn state(&self) -> WaitState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut WaitState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }

    /// Returns how much longer answers may take.
    #[must_use]
    pub fn left(&self) -> Duration {
        let state = self.state();
        let open = state.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.max.saturating_sub(state.past + open)
    }

    /// Returns the longest time that answers may take.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Counts the time from now on as waiting, until the guard is dropped.
    pub fn begin(&self) -> Waiting<'_> {
        self.change(|state| {
            state.open += 1;
            state.since.get_or_insert_with(Instant::now);
        });
        Waiting(self)
    }

    /// Ends all limits, those of futures that run included.
    pub fn lift_limits(&self) {
        self.change(|state| state.is_lifted = true);
    }

    /// Runs a future for at most `limit`, without the time that is waited meanwhile. `None`: the time is over.
    pub async fn limit<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        let (began, before) = (Instant::now(), self.state().past);
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on, so that no change is missed.
            changed.as_mut().enable();
            let state = self.state();
            let left = (limit + (state.past - before)).saturating_sub(began.elapsed());
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = changed => {}
                () = tokio::time::sleep(left), if state.open == 0 && !state.is_lifted => return None,
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.open -= 1;
            if state.open == 0
                && let Some(since) = state.since.take()
            {
                state.past += since.elapsed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(method: Method, params: Value) -> Question {
        Question { key: None, method, params }
    }

    #[test]
    fn a_question_fits_what_the_client_has_declared() {
        let form = question(Method::Elicitation, json!({"message": "x", "requestedSchema": {}}));
        let url = question(Method::Elicitation, json!({"mode": "url", "url": "https://example.com"}));
        let tools = question(Method::Sampling, json!({"tools": []}));
        let roots = question(Method::Roots, json!({}));
        for (capabilities, fitting) in [
            (json!({}), [false; 4]),
            (json!({"elicitation": {}}), [true, false, false, false]),
            (json!({"elicitation": {"url": {}}}), [false, true, false, false]),
            (json!({"elicitation": {"form": {}, "url": {}}}), [true, true, false, false]),
            (json!({"sampling": {}, "roots": {"listChanged": true}}), [false, false, false, true]),
            (json!({"sampling": {"tools": {}}}), [false, false, true, false]),
        ] {
            let fits = [&form, &url, &tools, &roots].map(|question| question.fits(&capabilities));
            assert_eq!(fits, fitting, "{capabilities}");
        }
    }

    #[tokio::test]
    async fn time_that_is_waited_does_not_count() {
        let waits = Waits::new(Duration::from_secs(10));
        let asking = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let waiting = waits.begin();
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(waiting);
        };
        assert_eq!(waits.limit(Duration::from_millis(150), asking).await, Some(()));
        assert!(waits.left() < Duration::from_millis(9_750));
        let long = tokio::time::sleep(Duration::from_secs(60));
        assert_eq!(waits.limit(Duration::from_millis(20), long).await, None, "no time is left over from before");
        let lifting = async {
            waits.lift_limits();
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(waits.limit(Duration::from_millis(20), lifting).await, Some(()));
    }
}

//! Questions of an MCP server to the client of a call: requests of a server with a session, results that require input
//! of another.
//!
//! A request over standard input and output does not say which call it belongs to. [`Attribution`] says how that is
//! decided. A question whose client is not known is refused.

use super::notifications::NotificationRouter;
use codecall_base::client::{Client, Method, Question, Unanswered, Waiting};
use rmcp::model::{ErrorData, *};
use rmcp::service::InboundStreamOrigin;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Maximum number of rounds of one request in which a server asks for input.
pub const MAX_ROUNDS: usize = 10;
/// How long a request waits that a server wants to be repeated without an answer; more in each round.
pub const REPEAT_AFTER: Duration = Duration::from_millis(200);

/// The attribution of a request to its call.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// The request on whose stream it came, over HTTP.
    pub request: Option<RequestId>,
    /// The progress token of the call, if the server repeats it.
    pub token: Option<ProgressToken>,
}

impl Attribution {
    /// Reads what a request says.
    #[must_use]
    pub fn of(extensions: &Extensions, meta: &RequestMetaObject) -> Self {
        let request = match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.clone()),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        Self { request, token: meta.get_progress_token() }
    }
}

/// Returns the capabilities that a server with a session is told of. Which of them the client of a call has, is only known
/// when the server asks.
#[must_use]
pub fn declared() -> ClientCapabilities {
    let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true}});
    serde_json::from_value(all).unwrap_or_default()
}

/// Returns the capabilities of the client of a request, for a server without a session. Tasks are always waited for here.
#[must_use]
pub fn capabilities_of(client: &Client) -> ClientCapabilities {
    let Value::Object(all) = client.capabilities() else { return ClientCapabilities::default() };
    let known = ["elicitation", "sampling", "roots"];
    let mut own: Map<String, Value> = all.into_iter().filter(|(name, _)| known.contains(&name.as_str())).collect();
    own.insert("extensions".into(), json!({TASKS_EXTENSION_ID: {}}));
    serde_json::from_value(Value::Object(own)).unwrap_or_default()
}

/// Asks the client of the call that a request belongs to, and returns its answer.
///
/// # Errors
/// The call is not known, or the client has not answered: for the server.
pub async fn ask(
    router: &NotificationRouter,
    attribution: Attribution,
    method: Method,
    params: Value,
) -> Result<Value, ErrorData> {
    let refused = |reason: String| ErrorData::invalid_request(reason, None);
    let question = Question { key: None, method, params };
    let expect_page = |client: &Client| {
        if method == Method::Elicitation && question.params["mode"] == "url" {
            router.expect_page(&question.params, client);
        }
    };
    if let Some(client) = router.only_client().filter(|_| method == Method::Roots) {
        return answer_of(&client, question).await;
    }
    let (client, others) = router.client_of(&attribution).await.map_err(refused)?;
    expect_page(&client);
    // Each of them may be the call that waits.
    let _waiting: Vec<Waiting<'_>> = others.iter().filter_map(Client::port).map(|port| port.waits().begin()).collect();
    answer_of(&client, question).await
}

async fn answer_of(client: &Client, question: Question) -> Result<Value, ErrorData> {
    let refused = |reason: String| ErrorData::invalid_request(reason, None);
    let Some(port) = client.port() else { return Err(refused("nobody can be asked".into())) };
    port.ask(question).await.map_err(|unanswered| match unanswered {
        Unanswered::Refused(reason) => refused(reason),
        Unanswered::Error { code, message } => ErrorData::new(ErrorCode(code), message, None),
    })
}

/// Asks the client all questions of a result that requires input. Returns the answers by their keys.
///
/// # Errors
/// The client has not answered one of them.
pub async fn ask_all(client: &Client, requests: InputRequests) -> Result<InputResponses, Unanswered> {
    let Some(port) = client.port() else { return Err(Unanswered::Refused("nobody can be asked".into())) };
    let asking = requests.into_iter().map(|(key, request)| async move {
        let question = question(key.clone(), &request);
        Ok::<_, Unanswered>((key, port.ask(question).await?))
    });
    Ok(futures_util::future::try_join_all(asking).await?.into_iter().collect())
}

fn question(key: String, request: &InputRequest) -> Question {
    let method = match request {
        InputRequest::CreateMessage(_) => Method::Sampling,
        InputRequest::ListRoots(_) => Method::Roots,
        _ => Method::Elicitation,
    };
    let params = serde_json::to_value(request).ok().and_then(|mut request| Some(request.get_mut("params")?.take()));
    Question { key: Some(key), method, params: params.unwrap_or_else(|| json!({})) }
}

/// Returns what a request of a server asks for, by the name of its method.
#[must_use]
pub fn method(name: &str) -> Option<Method> {
    [Method::Elicitation, Method::Sampling, Method::Roots].into_iter().find(|method| method.as_str() == name)
}

//! Questions of the tool of a call to the client: checked, cleaned, and limited in number, size and time.
//!
//! Nobody answers in the name of a person. If the client cannot be asked, the call fails and says what was asked.

use super::{Hook, bound};
use codecall_base::client::{Answering, Client, Method, PageDone, Port, Question, TaskUpdate, Unanswered, Waits};
use codecall_base::hidden;
use codecall_base::offload::weight;
use codecall_base::redact::SecretRegistry;
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_config::InteractionConfig;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Maximum length of the text of a question in an error, in bytes.
const MAX_SHOWN_BYTES: usize = 300;

/// The client of a call, as its tool reaches it.
pub struct CallClient {
    inner: Client,
    capabilities: Value,
    /// The app whose tool asks, which the person sees.
    app: String,
    /// The tool, prompt or resource, for errors and the log.
    what: String,
    config: Arc<InteractionConfig>,
    secrets: Arc<SecretRegistry>,
    hooks: Arc<[Arc<dyn Hook>]>,
    waits: Waits,
    asked: AtomicUsize,
    /// Whether a task of the call becomes one of the client's request.
    passes_task: bool,
    /// Why the first question without an answer has none; not of a question for roots.
    refusal: Mutex<Option<String>>,
    /// Cancelled when nobody waits for the call, or for the run.
    cancel: CancellationToken,
}

impl CallClient {
    /// Creates the client of a call. `what` is its tool, `inner` the client of the request.
    pub fn new(
        inner: Client,
        app: &str,
        what: &str,
        config: Arc<InteractionConfig>,
        secrets: Arc<SecretRegistry>,
        hooks: Arc<[Arc<dyn Hook>]>,
        cancel: CancellationToken,
    ) -> Self {
        let capabilities = if config.enabled { inner.capabilities() } else { json!({}) };
        Self {
            inner,
            capabilities,
            app: app.to_owned(),
            what: what.to_owned(),
            waits: Waits::new(config.max_wait),
            config,
            secrets,
            hooks,
            asked: AtomicUsize::new(0),
            passes_task: false,
            refusal: Mutex::default(),
            cancel,
        }
    }

    /// Lets a task of the call become one of the client's request, which is nothing but this call.
    pub fn passing_task(mut self, passes_task: bool) -> Self {
        self.passes_task = passes_task;
        self
    }

    /// Says in the answer of a failed call that a question has no answer. What the tool itself says is in the details.
    pub fn explain(&self, answer: Result<ToolResult, ToolError>) -> Result<ToolResult, ToolError> {
        let Some(reason) = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return answer };
        let own = match &answer {
            Ok(result) => result.failure(&self.what),
            Err(error) if error.code == ErrorCode::ToolExecutionError => Some(error.clone()),
            Err(_) => None,
        };
        let Some(own) = own else { return answer };
        let mut error = ToolError::new(ErrorCode::InputRequired, reason);
        error.details = Some(json!({"answer": own.message}).to_string());
        Err(error)
    }

    async fn ask_client(&self, mut question: Question) -> Result<Value, Unanswered> {
        let max = self.config.max_question_bytes;
        let too_long =
            |length| format!("the question has {length} bytes, more than {max} (interaction.maxQuestionBytes)");
        // What is far too long is not cleaned, because that takes its time, and so is not shown.
        let length = weight(&question.params);
        if length > 4 * max {
            return Err(Unanswered::Refused(format!("{} asks the client, but {}", self.what, too_long(length))));
        }
        let is_address_usable = self.clean(&mut question.params);
        let subject = format!("{} {}", self.what, Self::described(&question));
        let refused = |reason: String| Unanswered::Refused(format!("{subject}, but {reason}"));
        let needed = question.capability();
        let Some(port) = self.inner.port().filter(|_| self.config.enabled) else {
            let nobody = "nobody can be asked here: this needs an MCP client with the capability";
            return Err(refused(format!("{nobody} '{needed}'")));
        };
        if !question.fits(&self.capabilities) {
            return Err(refused(format!("the MCP client of this request has not declared the capability '{needed}'")));
        }
        let times = self.config.max_questions;
        if self.asked.fetch_add(1, Ordering::Relaxed) >= times {
            return Err(refused(format!("a call asks at most {times} times (interaction.maxQuestions)")));
        }
        let length = question.params.to_string().len();
        if length > max {
            return Err(refused(too_long(length)));
        }
        if question.method == Method::Elicitation {
            if !is_address_usable {
                return Err(refused("the address of the page contains a secret".into()));
            }
            self.sign(&mut question.params).map_err(refused)?;
        }
        tracing::info!(app = self.app, what = self.what, method = question.method.as_str(), "the client is asked");
        let left = self.waits.left().min(port.waits().left());
        let answer = {
            let _waiting = (self.waits.begin(), port.waits().begin());
            let asking = tokio::time::timeout(left, port.ask(question));
            self.cancel.run_until_cancelled(asking).await
        };
        match answer {
            Some(Ok(Err(Unanswered::Refused(reason)))) => Err(refused(reason)),
            Some(Ok(answer)) => answer,
            Some(Err(_)) => {
                let ms = self.config.max_wait.as_millis();
                Err(refused(format!("nobody has answered within {ms} ms (interaction.maxWaitMs)")))
            }
            None => Err(refused("the call was cancelled".into())),
        }
    }

    /// Asks the person of the client on behalf of the server itself: parameters of a form. `None`: there is no answer.
    pub async fn confirm(&self, params: Value) -> Option<Value> {
        let question = Question { key: None, method: Method::Elicitation, params };
        let port = self.inner.port().filter(|_| self.config.enabled && question.fits(&self.capabilities))?;
        let left = self.waits.left().min(port.waits().left());
        let _waiting = (self.waits.begin(), port.waits().begin());
        let asking = tokio::time::timeout(left, port.ask(question));
        self.cancel.run_until_cancelled(asking).await?.ok()?.ok()
    }

    /// Removes secrets and what people do not see, and masks personal data. `false`: the
    /// address of the page had a secret.
    fn clean(&self, params: &mut Value) -> bool {
        let url = params.get("url").cloned();
        let taken = Arc::new(std::mem::take(params));
        let masked = self.hooks.iter().fold(taken, |value, hook| hook.mask(value));
        *params = Arc::unwrap_or_clone(masked);
        if let (Some(url), Some(own)) = (&url, params.get_mut("url")) {
            // A masked address is another one.
            own.clone_from(url);
        }
        self.secrets.redactor().redact_value(params);
        let is_address_usable = params.get("url") == url.as_ref();
        strip(params);
        if let (Some(url), Some(own)) = (url, params.get_mut("url")) {
            // `sign` writes it so that all of it is visible.
            *own = url;
        }
        is_address_usable
    }

    /// Says in the message of a question to a person whose question it is, and checks the address of a page.
    fn sign(&self, params: &mut Value) -> Result<(), String> {
        if params["mode"] == "url" {
            let url = params["url"].as_str().and_then(|url| Url::parse(url).ok());
            let usable = url.filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
            let Some(url) = usable else { return Err("the address of the page is not one of HTTP".into()) };
            // What stands before the host is easily taken for it.
            if !url.username().is_empty() || url.password().is_some() {
                return Err("the address of the page has a user name".into());
            }
            // A host in other letters is written so that it cannot look like another one.
            params["url"] = url.as_str().into();
        }
        let message = params["message"].as_str().unwrap_or_default();
        params["message"] = format!("[{}] {message}", self.app).into();
        Ok(())
    }

    fn described(question: &Question) -> String {
        let message = question.params["message"].as_str().unwrap_or_default();
        let message = bound::text(message.to_owned(), MAX_SHOWN_BYTES);
        match question.method {
            Method::Elicitation if question.params["mode"] == "url" => {
                let url = question.params["url"].as_str().unwrap_or_default();
                format!("asks a person to open {url} (\"{message}\")")
            }
            Method::Elicitation => format!("asks a person for input (\"{message}\")"),
            Method::Sampling => "asks for a message of the client's model".into(),
            Method::Roots => "asks for the folders of the client".into(),
        }
    }
}

impl Port for CallClient {
    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn log_level(&self) -> Option<&str> {
        self.inner.port().and_then(|port| port.log_level())
    }

    fn client(&self) -> u64 {
        self.inner.port().map_or(0, |port| port.client())
    }

    fn waits(&self) -> &Waits {
        &self.waits
    }

    fn ask(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            // A server may ask for roots at any time, and do without them.
            let is_essential = question.method != Method::Roots;
            let answer = self.ask_client(question).await;
            if let Err(unanswered) = &answer
                && is_essential
            {
                let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
                refusal.get_or_insert_with(|| unanswered.to_string());
            }
            answer
        })
    }

    fn task_changed(&self, mut update: TaskUpdate) -> bool {
        let Some(port) = self.inner.port().filter(|_| self.passes_task) else { return false };
        if let TaskUpdate::Working { message: Some(message), .. } = &mut update {
            let mut params = json!({"message": bound::text(std::mem::take(message), MAX_SHOWN_BYTES)});
            self.clean(&mut params);
            params["message"].as_str().unwrap_or_default().clone_into(message);
        }
        let is_task = port.task_changed(update);
        if is_task {
            self.waits.lift_limits();
        }
        is_task
    }

    fn page_done(&self) -> Option<PageDone> {
        self.inner.port()?.page_done()
    }

    fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }
}

/// Runs a call within its time limit, which leaves out the time that the client takes. `None`: the time is over.
pub fn limited<F: Future>(client: &CallClient, limit: Duration, call: F) -> impl Future<Output = Option<F::Output>> {
    client.waits.limit(limit, call)
}

/// Removes what people do not see from all texts. Names of members stay as they are, because answers use them.
fn strip(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(visible) = hidden::visible(text) {
                *text = visible;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(members) => members.values_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that returns what it is asked.
    struct Echo(Value, Waits);

    impl Port for Echo {
        fn capabilities(&self) -> &Value {
            &self.0
        }

        fn client(&self) -> u64 {
            1
        }

        fn waits(&self) -> &Waits {
            &self.1
        }

        fn ask(&self, question: Question) -> Answering<'_> {
            Box::pin(std::future::ready(Ok(question.params)))
        }
    }

    fn client(config: InteractionConfig) -> CallClient {
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}});
        let inner = Client::new(Arc::new(Echo(capabilities, Waits::new(config.max_wait))));
        let (secrets, hooks) = (Arc::default(), Arc::from([]));
        CallClient::new(inner, "crm", "Tool 'crm:merge'", Arc::new(config), secrets, hooks, CancellationToken::new())
    }

    async fn asked(client: &CallClient, params: Value) -> Result<Value, String> {
        let question = Question { key: None, method: Method::Elicitation, params };
        client.ask(question).await.map_err(|unanswered| unanswered.to_string())
    }

    #[tokio::test]
    async fn the_address_of_a_page_is_shown_as_it_is() {
        for (url, expected) in [
            ("https://example.com/a?b=c#d", Ok("https://example.com/a?b=c#d")),
            ("https://exаmple.com/", Ok("https://xn--exmple-4nf.com/")),
            ("https://example.com/\u{202e}x", Ok("https://example.com/%E2%80%AEx")),
            ("https://example.com@evil.example/", Err("has a user name")),
            ("javascript:alert(1)", Err("is not one of HTTP")),
            ("file:///etc/passwd", Err("is not one of HTTP")),
            ("nonsense", Err("is not one of HTTP")),
        ] {
            let params = json!({"mode": "url", "message": "Sign\u{200b} in", "url": url, "elicitationId": "1"});
            let shown = asked(&client(InteractionConfig::default()), params).await;
            match expected {
                Ok(expected) => {
                    let shown = shown.expect("it is asked");
                    assert_eq!((&shown["url"], &shown["message"]), (&json!(expected), &json!("[crm] Sign in")));
                }
                Err(why) => assert!(shown.expect_err("refused").ends_with(why), "{url}"),
            }
        }
    }

    #[tokio::test]
    async fn a_failed_call_says_what_was_not_answered() {
        let client = client(InteractionConfig { max_questions: 1, ..InteractionConfig::default() });
        let failed = || Err(ToolError::new(ErrorCode::ToolExecutionError, "no"));
        let unavailable = || Err(ToolError::new(ErrorCode::ServerUnavailable, "gone"));
        let form = || json!({"message": "Merge?", "requestedSchema": {}});
        assert!(asked(&client, form()).await.is_ok());
        assert_eq!(client.explain(failed()), failed(), "everything was answered");
        assert!(asked(&client, form()).await.is_err());
        let error = client.explain(failed()).expect_err("failed");
        let expected = "Tool 'crm:merge' asks a person for input (\"Merge?\"), but a call asks at most 1 times (interaction.maxQuestions)";
        assert_eq!((error.code.as_str(), error.message.as_str()), ("INPUT_REQUIRED", expected));
        assert_eq!(error.details.as_deref(), Some(r#"{"answer":"no"}"#));
        assert_eq!(client.explain(unavailable()), unavailable(), "it has another reason");
        let done: Result<ToolResult, ToolError> = Ok(json!(1).into());
        assert_eq!(client.explain(done.clone()), done, "it does without the answer");
    }

    #[tokio::test]
    async fn nobody_is_asked_if_that_is_switched_off() {
        let client = client(InteractionConfig { enabled: false, ..InteractionConfig::default() });
        let refused = asked(&client, json!({"message": "Merge?", "requestedSchema": {}})).await.expect_err("refused");
        assert!(refused.contains("nobody can be asked here"), "{refused}");
    }
}

//! Takes steps for a server, on a limited number of threads.

use super::{ClientToolset, Evaluate, Evaluator};
use agentscript::{Message, Policy};
use codecall_base::offload::{self, weight};
use codecall_base::redact::SecretRegistry;
use codecall_base::tool::ErrorCode;
use codecall_config::vm::lowered;
use codecall_config::{Config, Pool, StatelessConfig};
use codecall_runs::{Admission, ClientKey, Executor, MemoryBudget, Refused, STACK, length};
use codecall_tools::pipeline::{MAX_MESSAGE_BYTES, bounded};
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Takes steps of runs whose clients own the tools. It keeps nothing of a run.
pub struct Stateless {
    executor: Arc<dyn Executor>,
    config: StatelessConfig,
    policy: Policy,
    lenient_input: bool,
    pool: Pool,
    secrets: Arc<SecretRegistry>,
    admission: Arc<Admission>,
    client: ClientKey,
}

/// The answer to a request for a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepAnswer {
    /// The answer as JSON: an object with `status`.
    pub value: Value,
    /// Whether the run has failed, or does not match its journal.
    pub is_error: bool,
    /// The messages that the script has sent with `mcpLog` and `mcpNotify` since the step before.
    pub messages: Vec<Message>,
}

/// Why a step was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is invalid; the text says what to change.
    #[error("{0}")]
    Invalid(String),
    /// There was no capacity, or the step was interrupted. The same request may be sent again.
    #[error(transparent)]
    Unavailable(#[from] Refused),
}

impl Refusal {
    /// Returns the code that clients see.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(_) => ErrorCode::InvalidRequest,
            Self::Unavailable(refused) => refused.code,
        }
    }

    /// Returns the answer for the client: an object with `status` and `error`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let message = bounded(self.to_string(), MAX_MESSAGE_BYTES);
        json!({"status": "refused", "error": {"code": self.code().as_str(), "message": message}})
    }
}

impl Stateless {
    /// Creates the service with as many permits as there are script threads, and a queue of the same size as theirs. It
    /// starts a thread for each step. `executor` evaluates the scripts.
    #[must_use]
    pub fn new(config: &Config, executor: Arc<dyn Executor>) -> Self {
        Self {
            executor,
            config: config.stateless.clone(),
            policy: config.policy.clone(),
            lenient_input: config.lenient_input,
            pool: config.pool,
            secrets: Arc::clone(&config.secrets),
            admission: Arc::new(Admission::new(config.pool.threads, 0, &config.pool, &MemoryBudget::new(u64::MAX))),
            client: ClientKey::default(),
        }
    }

    /// Returns the service of a client, with another policy. Both share their permits.
    #[must_use]
    pub fn for_client(&self, config: &Config, client: ClientKey) -> Self {
        Self {
            executor: Arc::clone(&self.executor),
            config: self.config.clone(),
            policy: config.policy.clone(),
            lenient_input: self.lenient_input,
            pool: self.pool,
            secrets: Arc::clone(&self.secrets),
            admission: Arc::clone(&self.admission),
            client,
        }
    }

    /// Returns what evaluates a step that `cancel` ends.
    #[must_use]
    pub fn evaluator(&self, cancel: CancellationToken) -> Evaluator {
        Evaluator::new(Arc::clone(&self.executor), self.pool.watchdog, cancel)
    }

    /// Stops taking steps.
    pub fn close(&self) {
        self.admission.close();
    }

    /// Returns the policy of a request: that of the server, lowered by `limits`.
    ///
    /// # Errors
    /// `limits` has a wrong key or value.
    pub fn policy(&self, limits: Map<String, Value>) -> Result<Policy, Refusal> {
        lowered(&self.policy, limits).map_err(Refusal::Invalid)
    }

    /// Takes a step. The answer contains no secret, and no more messages of the script than the pool allows.
    ///
    /// # Errors
    /// The request is invalid, or there is no permit for it.
    pub async fn evaluate(&self, mut request: Evaluate, cancel: CancellationToken) -> Result<StepAnswer, Refusal> {
        let policy = self.policy(request.limits.take().unwrap_or_default())?;
        let (config, evaluator, lenient_input) =
            (self.config.clone(), self.evaluator(cancel.clone()), self.lenient_input);
        let evaluate = move || {
            let tools = ClientToolset::read(&request.tools).map_err(|error| error.to_string())?;
            let tools = Arc::new(tools.with_lenient_input(lenient_input));
            let mut evaluation = request.run_with(tools, policy, &config, &evaluator)?;
            let (is_error, messages) = (evaluation.is_error(), std::mem::take(&mut evaluation.messages));
            Ok(StepAnswer { value: evaluation.into_json(&config), is_error, messages })
        };
        let evaluated: Result<StepAnswer, String> = self.blocking(cancel, evaluate).await?;
        let redactor = self.secrets.redactor();
        let mut answer = evaluated.map_err(|problem| Refusal::Invalid(redactor.redact_text(&problem).into_owned()))?;
        offload::run(weight(&answer.value), || redactor.redact_value(&mut answer.value))
            .await
            .map_err(|busy| Refused::new(ErrorCode::QueueTimeout, busy.to_string()))?;
        let Pool { max_messages, max_message_bytes, .. } = self.pool;
        answer.messages.retain(|message| length(message) <= max_message_bytes);
        answer.messages.truncate(usize::try_from(max_messages).unwrap_or(usize::MAX));
        answer.messages.iter_mut().for_each(|message| redactor.redact_message(message));
        Ok(answer)
    }

    /// Runs blocking work on a thread with the native stack that scripts need.
    ///
    /// # Errors
    /// There is no permit for it, it was cancelled, or it panicked. Cancelled work continues to its end and keeps its
    /// permit until then.
    pub async fn blocking<T: Send + 'static>(
        &self,
        cancel: CancellationToken,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.admission.enter(self.client, &cancel).await?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("step".into()).stack_size(STACK);
        let started = thread.spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Refused::crashed());
            drop(permit);
            // The receiver may be gone.
            let _ = sender.send(done);
        });
        started.map_err(|error| Refused::no_thread(&error))?;
        let done = tokio::select! {
            biased;
            done = receiver => done.unwrap_or_else(|_| Err(Refused::crashed())),
            () = self.admission.closed().cancelled() => Err(Refused::disposed()),
            () = cancel.cancelled() => Err(Refused::new(ErrorCode::ExecutionAborted, "The execution was cancelled")),
        };
        Ok(done?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_runs::ThreadExecutor;
    use std::sync::mpsc;
    use std::time::Duration;

    fn stateless(pool: Pool) -> Stateless {
        Stateless::new(&Config { pool, ..Config::default() }, Arc::new(ThreadExecutor::new(Arc::default())))
    }

    fn request(code: &str) -> Evaluate {
        serde_json::from_value(json!({"code": code})).expect("a request")
    }

    fn code<T>(result: Result<T, Refusal>) -> &'static str {
        result.err().map_or("ok", |refusal| refusal.code().as_str())
    }

    #[tokio::test]
    async fn a_full_queue_refuses() {
        let wait = Duration::from_millis(30);
        let steps = stateless(Pool { threads: 1, max_queue: 1, queue_timeout: wait, ..Pool::default() });
        let (resume, resumed) = mpsc::channel::<()>();
        let free = CancellationToken::new;
        let long = steps.blocking(free(), move || resumed.recv().is_ok());
        let others = async {
            // The other future takes the only permit when it is polled.
            let late = || steps.evaluate(request("return 1"), free());
            let (first, second) = tokio::join!(late(), late());
            assert_eq!((code(first), code(second)), ("QUEUE_TIMEOUT", "QUEUE_FULL"));
            let cancel = free();
            cancel.cancel();
            assert_eq!(code(steps.evaluate(request("return 1"), cancel).await), "EXECUTION_ABORTED");
            resume.send(()).expect("it waits");
        };
        let (done, ()) = tokio::join!(long, others);
        assert_eq!(done, Ok(true));
        assert_eq!(code(steps.evaluate(request("return 1"), free()).await), "ok");
        steps.close();
        assert_eq!(code(steps.evaluate(request("return 1"), free()).await), "POOL_DISPOSED");
    }

    #[tokio::test]
    async fn cancelled_work_keeps_its_permit_to_its_end() {
        let steps = stateless(Pool { threads: 1, ..Pool::default() });
        let (resume, resumed) = mpsc::channel::<()>();
        let cancel = CancellationToken::new();
        let long = steps.blocking(cancel.clone(), move || resumed.recv().is_ok());
        let (aborted, ()) = tokio::join!(long, async { cancel.cancel() });
        assert_eq!(code(aborted), "EXECUTION_ABORTED");
        assert!(steps.admission.try_enter(ClientKey::default()).is_none());
        resume.send(()).expect("it still works");
        assert_eq!(code(steps.evaluate(request("return 1"), CancellationToken::new()).await), "ok");
        let (resume, resumed) = mpsc::channel::<()>();
        let long = steps.blocking(CancellationToken::new(), move || resumed.recv().is_ok());
        let (disposed, ()) = tokio::join!(long, async { steps.close() });
        assert_eq!(code(disposed), "POOL_DISPOSED");
        resume.send(()).expect("it still works");
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_step() {
        let steps = stateless(Pool { threads: 1, ..Pool::default() });
        let crashed = steps.blocking(CancellationToken::new(), || assert_eq!(1, 2, "as the test asks")).await;
        assert_eq!(code(crashed), "WORKER_CRASHED");
        // The deepest code that the parser accepts needs more stack than a thread of tokio has.
        let deep = format!("return {}1{}", "(".repeat(900), ")".repeat(900));
        let done = steps.evaluate(request(&deep), CancellationToken::new()).await.expect("a step");
        assert_eq!(done.value["status"], "done", "{}", done.value);
    }

    #[tokio::test]
    async fn a_request_can_only_lower_limits() {
        let steps = stateless(Pool::default());
        let step = |limits: Value, code: &str| {
            let request = serde_json::from_value(json!({"code": code, "limits": limits})).expect("a request");
            steps.evaluate(request, CancellationToken::new())
        };
        let loop_script = "let n = 0; for (let i = 0; i < 200000; i++) n++; return n";
        let higher = step(json!({"maxIterations": 1_000_000}), loop_script).await.expect("a step");
        assert_eq!(higher.value["outcome"]["error"]["code"], "ITERATION_LIMIT");
        assert!(higher.is_error);
        let lower = step(json!({"maxIterations": 10}), "for (let i = 0; i < 20; i++); return 1").await;
        assert_eq!(lower.expect("a step").value["outcome"]["error"]["code"], "ITERATION_LIMIT");
        let wrong = step(json!({"maxIteration": 10}), "return 1").await.expect_err("no such limit");
        assert_eq!(
            wrong.to_json(),
            json!({"status": "refused", "error": {"code": "INVALID_REQUEST", "message": "limits: unknown key 'maxIteration'; did you mean 'maxIterations'?"}})
        );
    }
}

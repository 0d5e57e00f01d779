//! Steps in a process that serves them: on threads of their own, a few at a time.

use super::{Evaluate, Evaluation};
use agentscript::{Policy, ScriptCache};
use codecall_base::offload::{self, weight};
use codecall_base::redact::Redactor;
use codecall_base::tool::ErrorCode;
use codecall_config::policy::lowered;
use codecall_config::{Config, Pool, StatelessConfig};
use codecall_runs::{Admission, Refused, STACK, length};
use codecall_tools::pipeline::{LONGEST_MESSAGE, bounded};
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Steps of runs whose clients own the tools. Nothing of them is kept.
pub struct Stateless {
    scripts: Arc<ScriptCache>,
    config: StatelessConfig,
    policy: Policy,
    pool: Pool,
    secrets: Arc<Redactor>,
    admission: Admission,
}

/// Why there is no evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request makes no sense; the text says how to mend it.
    #[error("{0}")]
    Invalid(String),
    /// The step was not taken, or not to its end. The request may be made again as it is.
    #[error(transparent)]
    Unavailable(#[from] Refused),
}

impl Refusal {
    /// The code that clients see.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::Unavailable(refused) => refused.code.as_str(),
        }
    }

    /// The answer for the client: an object with `status` and `error`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let message = bounded(self.to_string(), LONGEST_MESSAGE);
        json!({"status": "refused", "error": {"code": self.code(), "message": message}})
    }
}

impl Stateless {
    /// With as many permits as scripts have threads, and a queue as theirs. Threads are started when
    /// there is something to do. Compiled scripts are kept in `scripts`.
    #[must_use]
    pub fn new(config: &Config, scripts: Arc<ScriptCache>) -> Self {
        Self {
            scripts,
            config: config.stateless.clone(),
            policy: config.policy.clone(),
            pool: config.pool,
            secrets: Arc::clone(&config.secrets),
            admission: Admission::new(config.pool.threads, &config.pool),
        }
    }

    /// Scripts that were compiled.
    #[must_use]
    pub fn scripts(&self) -> &Arc<ScriptCache> {
        &self.scripts
    }

    /// Take no more steps.
    pub fn close(&self) {
        self.admission.close();
    }

    /// The limits of a request: those of the server, and what is lower in `limits`.
    ///
    /// # Errors
    /// Which key is wrong.
    pub fn policy(&self, limits: Map<String, Value>) -> Result<Policy, Refusal> {
        lowered(&self.policy, limits).map_err(Refusal::Invalid)
    }

    /// Take a step. The answer holds no secret of the configuration, and no more of what the script says
    /// than the pool lets a run say.
    ///
    /// # Errors
    /// The request makes no sense, or there is no permit for it.
    pub async fn evaluate(&self, mut request: Evaluate, cancel: CancellationToken) -> Result<Evaluation, Refusal> {
        let policy = self.policy(std::mem::take(&mut request.limits))?;
        let (config, scripts) = (self.config.clone(), Arc::clone(&self.scripts));
        let evaluated = self.blocking(cancel, move || request.run(policy, &config, &scripts)).await?;
        let mut evaluation =
            evaluated.map_err(|problem| Refusal::Invalid(self.secrets.redact_text(&problem).into_owned()))?;
        offload::run(weight(&evaluation.value), || self.secrets.redact_value(&mut evaluation.value))
            .await
            .map_err(|busy| Refused::new(ErrorCode::QueueTimeout, busy.to_string()))?;
        let Pool { max_messages, max_message_bytes, .. } = self.pool;
        evaluation.said.retain(|message| length(message) <= max_message_bytes);
        evaluation.said.truncate(usize::try_from(max_messages).unwrap_or(usize::MAX));
        evaluation.said.iter_mut().for_each(|message| self.secrets.redact_message(message));
        Ok(evaluation)
    }

    /// Do work that takes a thread, with the native stack that scripts need.
    ///
    /// # Errors
    /// There is no permit for it, it was cancelled, or it crashed. What is cancelled while it works goes
    /// on to its end and keeps its permit until then.
    pub async fn blocking<T: Send + 'static>(
        &self,
        cancel: CancellationToken,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.admission.enter(&cancel).await?;
        let (give, given) = oneshot::channel();
        let thread = std::thread::Builder::new().name("step".into()).stack_size(STACK);
        let started = thread.spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Refused::crashed());
            drop(permit);
            // Nobody may want it any more.
            let _ = give.send(done);
        });
        started.map_err(|error| Refused::no_thread(&error))?;
        let done = tokio::select! {
            biased;
            done = given => done.unwrap_or_else(|_| Err(Refused::crashed())),
            () = self.admission.closed().cancelled() => Err(Refused::disposed()),
            () = cancel.cancelled() => Err(Refused::new(ErrorCode::ExecutionAborted, "The execution was cancelled")),
        };
        Ok(done?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn stateless(pool: Pool) -> Stateless {
        Stateless::new(&Config { pool, ..Config::default() }, Arc::default())
    }

    fn request(code: &str) -> Evaluate {
        serde_json::from_value(json!({"code": code})).expect("a request")
    }

    fn code<T>(result: Result<T, Refusal>) -> &'static str {
        result.err().map_or("ok", |refusal| refusal.code())
    }

    #[tokio::test]
    async fn a_full_queue_refuses() {
        let wait = Duration::from_millis(30);
        let steps = stateless(Pool { threads: 1, max_queue: 1, queue_timeout: wait, ..Pool::default() });
        let (go_on, told) = mpsc::channel::<()>();
        let free = CancellationToken::new;
        let long = steps.blocking(free(), move || told.recv().is_ok());
        let others = async {
            // The only permit is taken once the other future was polled.
            let late = || steps.evaluate(request("return 1"), free());
            let (first, second) = tokio::join!(late(), late());
            assert_eq!((code(first), code(second)), ("QUEUE_TIMEOUT", "QUEUE_FULL"));
            let cancel = free();
            cancel.cancel();
            assert_eq!(code(steps.evaluate(request("return 1"), cancel).await), "EXECUTION_ABORTED");
            go_on.send(()).expect("it waits");
        };
        let (done, ()) = tokio::join!(long, others);
        assert_eq!(done, Ok(true));
        assert_eq!(code(steps.evaluate(request("return 1"), free()).await), "ok");
        steps.close();
        assert_eq!(code(steps.evaluate(request("return 1"), free()).await), "POOL_DISPOSED");
    }

    #[tokio::test]
    async fn what_is_cancelled_keeps_its_place_to_its_end() {
        let steps = stateless(Pool { threads: 1, ..Pool::default() });
        let (go_on, told) = mpsc::channel::<()>();
        let cancel = CancellationToken::new();
        let long = steps.blocking(cancel.clone(), move || told.recv().is_ok());
        let (aborted, ()) = tokio::join!(long, async { cancel.cancel() });
        assert_eq!(code(aborted), "EXECUTION_ABORTED");
        assert!(steps.admission.try_take().is_none());
        go_on.send(()).expect("it still works");
        assert_eq!(code(steps.evaluate(request("return 1"), CancellationToken::new()).await), "ok");
        let (go_on, told) = mpsc::channel::<()>();
        let long = steps.blocking(CancellationToken::new(), move || told.recv().is_ok());
        let (disposed, ()) = tokio::join!(long, async { steps.close() });
        assert_eq!(code(disposed), "POOL_DISPOSED");
        go_on.send(()).expect("it still works");
    }

    #[tokio::test]
    async fn a_crash_is_the_end_of_one_step() {
        let steps = stateless(Pool { threads: 1, ..Pool::default() });
        let crashed = steps.blocking(CancellationToken::new(), || assert_eq!(1, 2, "as the test asks")).await;
        assert_eq!(code(crashed), "WORKER_CRASHED");
        // As deep as the parser goes: a thread of tokio has no stack for it.
        let deep = format!("return {}1{}", "(".repeat(900), ")".repeat(900));
        let done = steps.evaluate(request(&deep), CancellationToken::new()).await.expect("a step");
        assert_eq!(done.value["status"], "done", "{}", done.value);
    }

    #[tokio::test]
    async fn limits_of_a_request_are_lower_ones() {
        let steps = stateless(Pool::default());
        let step = |limits: Value, code: &str| {
            let request = serde_json::from_value(json!({"code": code, "limits": limits})).expect("a request");
            steps.evaluate(request, CancellationToken::new())
        };
        let turns = "let n = 0; for (let i = 0; i < 200000; i++) n++; return n";
        let higher = step(json!({"maxIterations": 1_000_000}), turns).await.expect("a step");
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

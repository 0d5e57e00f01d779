//! A request for one step of a run, and its evaluation.

use super::history::{self, History};
use super::messages::is_same_code_result;
use super::{ClientToolset, CodeId, Evaluation};
use agentscript::stateless::{Journal, Step, StepOptions, replay_with};
use agentscript::{Dialect, Inputs, Language, Policy, Resumable};
use codecall_config::{Pool, StatelessConfig};
use codecall_runs::{Executor, Replayed, SLICE, StartInputs, ThreadExecutor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// A request for one step. The comments of its fields are the descriptions that a model reads.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
// A message of role `code` may have the code instead.
#[schemars(extend("required" = ["code"]))]
pub struct Evaluate {
    /// The script, the same in every step
    #[serde(default)]
    pub code: String,
    /// Another name of `code`
    #[schemars(skip)]
    pub script: Option<String>,
    /// Your tools, as MCP or chat completions list them
    #[serde(default)]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub tools: Vec<Value>,
    /// Token of the step before
    pub token: Option<String>,
    /// Answers to calls since the token
    #[serde(default)]
    pub results: Vec<CallResult>,
    /// Id of the run; made if left out
    pub id: Option<String>,
    /// In place of token and results
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub messages: Option<Vec<Value>>,
    /// Position of the first of `messages` in the list that the client has sent, for errors
    #[serde(skip)]
    #[schemars(skip)]
    pub first_message: usize,
    /// Detected if left out
    pub language: Option<LanguageName>,
    /// Data for the script, seen as codecallContext
    pub context: Option<Map<String, Value>>,
    /// Lower limits: timeoutMs, maxSteps, …
    pub limits: Option<Map<String, Value>>,
    /// The script's time, milliseconds since 1970
    // Absent: the time in the id of the run, or the epoch.
    pub started_at: Option<i64>,
}

/// A language by its name.
// Its variants have no comments: they would make a schema of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LanguageName {
    #[serde(alias = "js")]
    JavaScript,
    #[serde(alias = "ts")]
    TypeScript,
}

impl From<LanguageName> for Language {
    fn from(name: LanguageName) -> Self {
        match name {
            LanguageName::JavaScript => Self::JavaScript,
            LanguageName::TypeScript => Self::TypeScript,
        }
    }
}

impl From<Language> for LanguageName {
    fn from(language: Language) -> Self {
        match language {
            Language::JavaScript => Self::JavaScript,
            Language::TypeScript => Self::TypeScript,
        }
    }
}

// The answer to one call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    pub id: String,
    // Any JSON.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Value>,
    // In place of a result: a text, or an object with `message`, `code`, `details`.
    pub error: Option<Value>,
}

/// Deserializes a member that is present: `null` is a result too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Where steps are evaluated.
#[derive(Clone)]
pub struct Evaluator {
    executor: Arc<dyn Executor>,
    watchdog: Duration,
    cancel: CancellationToken,
}

impl Default for Evaluator {
    /// On the thread that takes the step, without an end but its limits.
    fn default() -> Self {
        let executor = Arc::new(ThreadExecutor::new(Arc::default()));
        Self::new(executor, Pool::default().watchdog, CancellationToken::new())
    }
}

impl Evaluator {
    /// With what evaluates runs. `cancel` ends the step; one whose evaluation does not let go of its slice for longer
    /// than `watchdog` is lost.
    #[must_use]
    pub fn new(executor: Arc<dyn Executor>, watchdog: Duration, cancel: CancellationToken) -> Self {
        Self { executor, watchdog, cancel }
    }

    fn step(&self, script: &str, tools: Arc<ClientToolset>, journal: &Journal, options: &StepOptions<'_>) -> Step {
        let directory = Arc::clone(tools.tool_directory());
        let start = |inputs: Inputs| {
            let start = StartInputs {
                script: script.into(),
                language: options.language,
                dialect: Dialect::Async,
                policy: options.policy.clone(),
                context: inputs.context,
                directory: Arc::clone(&directory),
                record_lookups: false,
                seed: inputs.seed,
                fixed_unix_ms: Some(inputs.clock.unix_ms()),
                is_virtual: false,
                slice: SLICE,
                watchdog: self.watchdog,
                stop: Arc::default(),
            };
            let evaluation = self.executor.start(start)?;
            Ok(Box::new(Replayed::new(evaluation, self.cancel.clone())) as Box<dyn Resumable>)
        };
        replay_with(&start, script, tools, journal, options, None)
    }
}

impl Evaluate {
    /// Takes the step. `policy` has the limits of the server, lowered by those of the request.
    ///
    /// # Errors
    /// The request is invalid; the text says what to change.
    pub fn run(self, policy: Policy, config: &StatelessConfig, evaluator: &Evaluator) -> Result<Evaluation, String> {
        let tools = ClientToolset::read(&self.tools).map_err(|error| error.to_string())?;
        self.run_with(Arc::new(tools), policy, config, evaluator)
    }

    /// Does the same as [`Evaluate::run`] with tools that are parsed already.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn run_with(
        self,
        tools: Arc<ClientToolset>,
        policy: Policy,
        config: &StatelessConfig,
        evaluator: &Evaluator,
    ) -> Result<Evaluation, String> {
        let (request, given) = self.with_one_script()?.with_code_message()?;
        if request.code.trim().is_empty() {
            return Err("'code' is empty".into());
        }
        let evaluation = request.evaluate(tools, policy, config, evaluator)?;
        match (given, evaluation.step.code_result()) {
            (None, _) => {}
            (Some(given), Some(own)) if is_same_code_result(&given, &own) => {}
            (Some(_), _) => {
                return Err("messages: the result of the code block is not that of its code with these answers".into());
            }
        }
        Ok(evaluation)
    }

    /// Returns the script, by either name.
    #[must_use]
    pub fn script(&self) -> &str {
        self.script.as_deref().unwrap_or(&self.code)
    }

    /// Takes the script by its other name.
    fn with_one_script(mut self) -> Result<Self, String> {
        match self.script.take() {
            Some(_) if !self.code.is_empty() => {
                Err("give either 'code' or 'script', not both: they are the same".into())
            }
            Some(script) => Ok(Self { code: script, ..self }),
            None => Ok(self),
        }
    }

    /// Takes the code block from the messages, as chat has them: the last message of role `code` begins it, one of role
    /// `code_result` may end it. Returns the result that the latter gives.
    fn with_code_message(mut self) -> Result<(Self, Option<Value>), String> {
        let Some(messages) = &mut self.messages else { return Ok((self, None)) };
        let Some(at) = messages.iter().rposition(|message| message["role"] == "code") else { return Ok((self, None)) };
        self.first_message += at + 1;
        let mut rest = messages.split_off(at);
        let block = rest.remove(0);
        let (Some(id), Some(code)) = (block["id"].as_str(), block["code"].as_str()) else {
            return Err(format!("messages[{at}]: a message of role 'code' has 'id' and 'code', both texts"));
        };
        if !self.code.is_empty() && self.code != code {
            return Err(format!("messages[{at}]: its code differs from 'code'"));
        }
        if self.id.as_ref().is_some_and(|own| own != id) {
            return Err(format!("messages[{at}]: its id differs from 'id'"));
        }
        let given = rest.pop_if(|last| last["role"] == "code_result");
        if given.as_ref().is_some_and(|given| given["id"] != id || !given["result"].is_object()) {
            return Err(format!(
                "messages[{}]: a message of role 'code_result' has the id of its code block, and 'result', an object",
                at + rest.len() + 1
            ));
        }
        (self.id, self.code) = (Some(id.to_owned()), code.to_owned());
        *messages = rest;
        Ok((self, given.map(|mut given| given["result"].take())))
    }

    fn evaluate(
        self,
        tools: Arc<ClientToolset>,
        policy: Policy,
        config: &StatelessConfig,
        evaluator: &Evaluator,
    ) -> Result<Evaluation, String> {
        let options = StepOptions {
            policy,
            language: self.language.map(Into::into),
            context: self.context.as_ref().map(|context| Value::Object(context.clone()).to_string()),
            max_rounds: config.max_rounds,
            max_journal_bytes: config.max_journal_bytes,
            ..StepOptions::default()
        };
        let (journal, call_ids) = self.journal(&options, config)?;
        let step = evaluator.step(&self.code, tools, &journal, &options);
        Ok(Evaluation::new(step, journal, call_ids))
    }

    /// Returns the journal so far, and the ids of its calls by number.
    fn journal(&self, options: &StepOptions<'_>, config: &StatelessConfig) -> Result<(Journal, Vec<String>), String> {
        match (&self.token, &self.messages) {
            (Some(_), Some(_)) => Err("give either 'token' with 'results', or 'messages', not both".into()),
            (Some(token), None) => self.journal_from_token(token, config),
            (None, _) if !self.results.is_empty() => {
                Err("'results' need the 'token' of the step that they answer".into())
            }
            (None, messages) => {
                let history = History::read(messages.as_deref().unwrap_or_default(), self.first_message);
                let history = history.map_err(|error| error.to_string())?;
                let id = self.id.clone().map_or_else(CodeId::new, CodeId::from_text);
                let started = self.started_at.or_else(|| id.unix_ms()).unwrap_or_else(|| match self.id {
                    Some(_) => 0,
                    None => now(),
                });
                let journal = Journal::new(id.as_str(), started, &self.code, options).with_rounds(history.rounds);
                Ok((journal.map_err(|divergence| divergence.to_string())?, history.names))
            }
        }
    }

    fn journal_from_token(&self, token: &str, config: &StatelessConfig) -> Result<(Journal, Vec<String>), String> {
        let key = config.key.as_deref().map(str::as_bytes);
        let mut journal =
            Journal::from_token(token, key, config.max_journal_bytes).map_err(|error| format!("'token': {error}"))?;
        let id = CodeId::from_text(journal.id.clone());
        if self.id.as_ref().is_some_and(|given| *given != journal.id) {
            return Err(format!("'token' is of the run '{id}', not of that of 'id'"));
        }
        for (at, result) in self.results.iter().enumerate() {
            let located = |problem: &str| format!("results[{at}]: {problem}");
            let number = id
                .number(&result.id)
                .ok_or_else(|| located(&format!("'{}' is no call of the run '{id}'", result.id)))?;
            let answer = match (&result.result, &result.error) {
                (Some(result), None) => Ok(result.to_string()),
                (None, Some(error)) => Err(history::parse_error(error)),
                (Some(_), Some(_)) | (None, None) => return Err(located("give either 'result' or 'error'")),
            };
            journal.answer(number, answer).map_err(|error| located(&error.to_string()))?;
        }
        let calls = journal.rounds.iter().map(|round| round.calls.len()).sum::<usize>();
        let names = (0..u32::try_from(calls).unwrap_or(u32::MAX)).map(|number| id.call(number)).collect();
        Ok((journal, names))
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

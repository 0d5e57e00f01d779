//! Replays of recorded runs. No tool is called.

use super::{Recording, Refusal, Stateless};
use agentscript::stateless::{ClientTools, Journal, Played, Step, StepOptions, play};
use agentscript::{Language, Policy};
use codecall_config::Config;
use codecall_runs::ThreadExecutor;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A journal to replay, and what else is known of its run.
pub struct Replay {
    /// The calls and their answers.
    pub journal: Journal,
    /// The tools that the script can look up.
    pub tools: Arc<dyn ClientTools>,
    /// The language; `None`: it is detected.
    pub language: Option<Language>,
    /// The `codecallContext` of the script: JSON text.
    pub context: Option<String>,
    /// The recorded outcome: JSON text.
    pub outcome: Option<String>,
}

impl Replay {
    /// Creates the replay of a recording.
    ///
    /// # Errors
    /// The problem.
    pub fn from_recording(recording: Recording) -> Result<Self, String> {
        let journal = recording.journal()?;
        let (language, context) = (recording.language(), recording.context());
        let Recording { mut tools, outcome, .. } = recording;
        tools.add_members(&journal);
        Ok(Self {
            journal,
            language,
            context,
            outcome: outcome.map(|outcome| outcome.get().to_owned()),
            tools: Arc::new(tools.into_directory()),
        })
    }

    /// Creates the replay of a recording in the history of runs.
    ///
    /// # Errors
    /// The problem.
    pub fn from_history(recording: &str) -> Result<Self, String> {
        let mut recording = Recording::read(recording)?;
        // In the last rounds the run has only waited for timers, which need no journal.
        while recording.rounds.last().is_some_and(|round| round.calls.is_empty() && round.answers.is_empty()) {
            recording.rounds.pop();
        }
        Self::from_recording(recording)
    }

    /// Uses the journal for another script, such as one that was edited. `language` is that of its file.
    #[must_use]
    pub fn with_script(self, script: &str, language: Option<Language>) -> Self {
        let (language, context) = (language.or(self.language), self.context.clone());
        let options = StepOptions { language, context, ..StepOptions::default() };
        let Journal { id, unix_ms, rounds, .. } = self.journal;
        Self { journal: Journal { rounds, ..Journal::new(&id, unix_ms, script, &options) }, language, ..self }
    }

    /// Whether the run has made requests with `fetch`, rather than called a tool of that name.
    fn has_fetched(&self) -> bool {
        let mut calls = self.journal.rounds.iter().flat_map(|round| &round.calls);
        calls.any(|call| call.tool == "fetch" && (call.input.contains("\"redirect\":") || call.input.starts_with('#')))
    }

    /// Replays a script. Returns the rounds, and how it ends.
    ///
    /// # Errors
    /// It cannot be evaluated.
    pub async fn play(
        &self,
        script: String,
        policy: Policy,
        steps: &Stateless,
        cancel: CancellationToken,
    ) -> Result<(Vec<Played>, Step), Refusal> {
        let options = StepOptions {
            // Recorded responses answer `fetch`: nothing is sent.
            policy: Policy { fetch: self.has_fetched(), ..policy },
            language: self.language,
            context: self.context.clone(),
            // A recorded run may be as long as it is.
            max_rounds: usize::MAX,
            max_journal_bytes: usize::MAX,
            ..StepOptions::default()
        };
        let (journal, tools) = (self.journal.clone(), Arc::clone(&self.tools));
        // Parsing takes more of the native stack than the threads of tokio have.
        let playing = move || {
            let mut rounds = Vec::new();
            let step = play(&script, tools, &journal, &options, Some(&mut |round| rounds.push(round)));
            (rounds, step)
        };
        steps.blocking(cancel, playing).await
    }

    /// Creates what replays are evaluated with, on threads of this process.
    #[must_use]
    pub fn steps(config: &Config) -> Stateless {
        Stateless::new(config, Arc::new(ThreadExecutor::new(Arc::default())))
    }
}

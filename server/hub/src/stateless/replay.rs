//! Replays of journals. No tool is called.

use super::{JournalFile, Refusal, Stateless};
use agentscript::stateless::{ClientTools, Journal, Played, Step, StepOptions, replay};
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
    /// The outcome of the run: JSON text.
    pub outcome: Option<String>,
}

impl Replay {
    /// Creates the replay of a file.
    #[must_use]
    pub fn from_file(file: JournalFile) -> Self {
        let JournalFile { journal, language, context, mut tools, outcome } = file;
        tools.add_members(&journal);
        Self { journal, tools: Arc::new(tools.into_directory()), language, context, outcome }
    }

    /// Creates the replay of a run of the history.
    ///
    /// # Errors
    /// The problem.
    pub fn from_history(file: &str) -> Result<Self, String> {
        let mut file = JournalFile::read(file)?;
        // In the last rounds the run has only waited for timers, which need no journal.
        let rounds = &mut file.journal.rounds;
        while rounds.last().is_some_and(|round| round.calls.is_empty() && round.answers.is_empty()) {
            rounds.pop();
        }
        Ok(Self::from_file(file))
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
            // The journal answers `fetch`: nothing is sent.
            policy: Policy { fetch: self.has_fetched(), ..policy },
            language: self.language,
            context: self.context.clone(),
            // The journal may be as long as it is.
            max_rounds: usize::MAX,
            max_journal_bytes: usize::MAX,
            ..StepOptions::default()
        };
        let (journal, tools) = (self.journal.clone(), Arc::clone(&self.tools));
        // Parsing takes more of the native stack than the threads of tokio have.
        let playing = move || {
            let mut rounds = Vec::new();
            let step = replay(&script, tools, &journal, &options, Some(&mut |round| rounds.push(round)));
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

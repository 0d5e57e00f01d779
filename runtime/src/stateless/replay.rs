//! The replay of a journal: what a script does again is compared with it, here and nowhere else.

use super::journal::{Answer, Journal, JournalCall, Round};
use super::{Divergence, StepOptions};
use crate::interface::host::{Call, CallId, Clock, Event, Inputs, TimeFlow, Tools};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The rounds of a journal that the script has not done again, and the calls of the run by number.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    rounds: VecDeque<Round>,
    /// Number of the next round.
    number: usize,
    /// The calls by number.
    calls: Vec<CallId>,
    numbers: HashMap<CallId, u32>,
    answered: HashSet<u32>,
}

impl Replay {
    /// The replay of these rounds.
    #[must_use]
    pub fn new(rounds: Vec<Round>) -> Self {
        Self { rounds: rounds.into(), ..Self::default() }
    }

    /// Whether the script has done again all of the journal.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.rounds.is_empty()
    }

    /// The calls of the run so far, by number.
    #[must_use]
    pub fn calls(&self) -> &[CallId] {
        &self.calls
    }

    /// The number of a call.
    #[must_use]
    pub fn number_of(&self, call: CallId) -> Option<u32> {
        self.numbers.get(&call).copied()
    }

    /// Whether the journal answers a call of this number.
    #[must_use]
    pub fn has_answered(&self, number: u32) -> bool {
        self.answered.contains(&number)
    }

    /// Numbers calls that the script makes. In a replay they are compared with those of the next round, whose events are
    /// returned. `None`: the script makes them for the first time.
    ///
    /// # Errors
    /// The script does not do again what the journal says.
    pub fn enter(&mut self, made: &[Call]) -> Result<Option<Vec<Event>>, Divergence> {
        let round = self.rounds.pop_front();
        if let Some(round) = &round {
            self.compare(&round.calls, made)?;
        }
        for call in made {
            self.numbers.insert(call.id, u32::try_from(self.calls.len()).unwrap_or(u32::MAX));
            self.calls.push(call.id);
        }
        let Some(round) = round else { return Ok(None) };
        for &Answer { call, .. } in &round.answers {
            let problem = |message| Divergence { round: Some(self.number), call: Some(call), message };
            if call as usize >= self.calls.len() {
                return Err(problem(format!("it answers call {call}, which was not made yet")));
            }
            if !self.answered.insert(call) {
                return Err(problem(format!("it answers call {call} twice")));
            }
        }
        self.number += 1;
        Ok(Some(self.events(round)))
    }

    /// The events of a round, in the order in which the script gets them.
    #[must_use]
    pub fn events(&self, round: Round) -> Vec<Event> {
        let answers = round.answers.into_iter();
        let settled = answers.filter_map(|Answer { call, result }| {
            let &id = self.calls.get(call as usize)?;
            Some(Event::Settled { id, result })
        });
        round.ms.map(Event::Time).into_iter().chain(settled).collect()
    }

    /// The round of events, as a journal has it: without calls. A cancellation is not part of a journal.
    #[must_use]
    pub fn round(&self, events: Vec<Event>) -> Round {
        let mut round = Round::default();
        for event in events {
            match event {
                Event::Time(ms) => round.ms = Some(ms),
                Event::Settled { id, result } => {
                    round.answers.extend(self.number_of(id).map(|call| Answer { call, result }));
                }
                Event::Cancel => {}
            }
        }
        round
    }

    /// Compares the calls of a round with those of the script.
    fn compare(&self, calls: &[JournalCall], made: &[Call]) -> Result<(), Divergence> {
        let differs = |at: usize, message| {
            let call = u32::try_from(self.calls.len() + at).unwrap_or(u32::MAX);
            Divergence { round: Some(self.number), call: Some(call), message }
        };
        for (at, call) in calls.iter().enumerate() {
            let Some(Call { tool, input, .. }) = made.get(at) else {
                return Err(differs(at, format!("it has a call of {call}, which the script does not make")));
            };
            if !call.matches(tool, input) {
                let made = JournalCall::new(tool, input);
                return Err(differs(at, format!("it has a call of {call}, but the script calls {made}")));
            }
        }
        match made.get(calls.len()) {
            Some(Call { tool, input, .. }) => {
                let made = JournalCall::new(tool, input);
                Err(differs(calls.len(), format!("it lacks the script's call of {made}")))
            }
            None => Ok(()),
        }
    }

    /// The divergence of a journal that goes on after the script has ended.
    #[must_use]
    pub fn ended_early(&self) -> Divergence {
        let message = format!("it goes on after round {}, where the script ends", self.number);
        Divergence { round: Some(self.number), call: None, message }
    }
}

impl Journal {
    /// The inputs of the run.
    pub(super) fn inputs(&self, tools: Arc<dyn Tools>, options: &StepOptions<'_>) -> Inputs {
        Inputs {
            context: options.context.clone(),
            tools,
            clock: self.clock(Arc::clone(&options.clock)),
            seed: self.seed(),
            slice: None,
        }
    }

    /// The clock of the run, as [`Inputs::clock`](crate::Inputs::clock) takes it: it stands still for the
    /// script, but for timers. `limits` measures its limits of time.
    #[must_use]
    pub fn clock(&self, limits: Arc<dyn Clock>) -> Arc<dyn Clock> {
        Arc::new(JournalClock { unix_ms: self.unix_ms as f64, limits })
    }
}

/// A clock with the time of the journal for the script, and real time for its limits.
struct JournalClock {
    unix_ms: f64,
    limits: Arc<dyn Clock>,
}

impl Clock for JournalClock {
    fn monotonic(&self) -> Duration {
        self.limits.monotonic()
    }

    fn unix_ms(&self) -> f64 {
        self.unix_ms
    }

    fn flow(&self) -> TimeFlow {
        TimeFlow::Events
    }
}

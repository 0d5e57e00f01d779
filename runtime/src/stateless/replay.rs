//! Replaying a run against its journal.

use super::journal::{Issued, Journal, Round};
use super::{Calls, ClientTools, Divergence, Done, Played, StartRun, StepCall, StepOptions};
use crate::interface::host::{Call, CallId, CallKind, Clock, Event, Inputs, Message, Progress, Resumable, TimeFlow};
use crate::interface::outcome::Outcome;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A run being replayed.
pub struct Replay {
    run: Box<dyn Resumable>,
    tools: Arc<dyn ClientTools>,
    /// The calls that have reached the client, by number.
    issued: Vec<CallId>,
    answered: HashSet<u32>,
    messages: Vec<Message>,
    /// Whether time jumps to the next timer when the script waits for nothing else. It does not while the journal says
    /// when timers fired.
    jumps: bool,
}

/// The state after an advance.
pub enum Advance {
    /// It waits; these calls are new and have passed the check.
    Waits(Vec<Call>),
    /// It has ended.
    Ended(Box<Outcome>),
}

impl Replay {
    /// A run at its beginning.
    pub fn begin(
        start: &StartRun<'_>,
        tools: Arc<dyn ClientTools>,
        journal: &Journal,
        options: &StepOptions<'_>,
    ) -> Result<Self, Box<Outcome>> {
        let inputs = Inputs {
            context: options.context.clone(),
            tools: Arc::clone(&tools).directory(),
            clock: journal.clock(Arc::clone(&options.clock)),
            seed: journal.seed(),
            slice: None,
        };
        let run = start(inputs)?;
        let jumps = !journal.is_timed();
        Ok(Self { run, tools, issued: Vec::new(), answered: HashSet::new(), messages: Vec::new(), jumps })
    }

    /// Advance until only an answer of the client helps. Calls that fail the check are rejected here.
    pub fn advance(&mut self, mut events: Vec<Event>) -> Advance {
        let mut new = Vec::new();
        loop {
            let progress = self.run.resume(std::mem::take(&mut events));
            self.messages.append(&mut self.run.take_messages());
            match progress {
                Progress::Done(outcome) => return Advance::Ended(outcome),
                Progress::Yielded => {}
                Progress::Calls(calls) => {
                    for call in calls {
                        let checked = match call.kind {
                            CallKind::Tool => self.tools.check(&call.tool, &call.input),
                            CallKind::Function | CallKind::Fetch => Ok(()),
                        };
                        match checked {
                            Ok(()) => new.push(call),
                            Err(error) => events.push(Event::Settled { id: call.id, result: Err(error) }),
                        }
                    }
                    let cancelled = self.run.take_cancelled();
                    new.retain(|call: &Call| !cancelled.contains(&call.id));
                    if events.is_empty() {
                        match self.next_timer() {
                            Some(due) => events.push(Event::Time(due)),
                            None => return Advance::Waits(new),
                        }
                    }
                }
            }
        }
    }

    /// When the next timer is due, where the script waits for nothing else.
    fn next_timer(&mut self) -> Option<u64> {
        let due = self.run.next_timer().filter(|_| self.jumps)?;
        let waits = self.run.open_calls().iter().any(|call| call.awaited);
        (!waits).then(|| u64::try_from(due.as_millis()).unwrap_or(u64::MAX))
    }

    /// The journal ends here: from now on time jumps. The messages so far were reported by earlier steps.
    pub fn end_journal(&mut self) {
        self.jumps = true;
        self.messages.clear();
    }

    /// Compare the calls of a round with those of the journal; gives the answers that the round has.
    pub fn enter(&mut self, number: usize, round: &Round, played: Vec<Call>) -> Result<Vec<Event>, Divergence> {
        let first = self.issued.len() as u32;
        let differs = |at: usize, message| Divergence { round: Some(number), call: Some(first + at as u32), message };
        for (at, issued) in round.calls.iter().enumerate() {
            let Some(call) = played.get(at) else {
                return Err(differs(at, format!("it has a call of {issued}, which the script does not make")));
            };
            if !issued.matches(&call.tool, &call.input) {
                let made = Issued::new(&call.tool, &call.input);
                return Err(differs(at, format!("it has a call of {issued}, but the script calls {made}")));
            }
        }
        if let Some(call) = played.get(round.calls.len()) {
            let made = Issued::new(&call.tool, &call.input);
            return Err(differs(round.calls.len(), format!("it lacks the script's call of {made}")));
        }
        self.issued.extend(played.iter().map(|call| call.id));
        let mut events = Vec::with_capacity(round.answers.len() + 1);
        events.extend(round.ms.map(Event::Time));
        for answer in &round.answers {
            let problem = |message| Divergence { round: Some(number), call: Some(answer.call), message };
            let Some(&id) = self.issued.get(answer.call as usize) else {
                return Err(problem(format!("it answers call {}, which was not made yet", answer.call)));
            };
            if !self.answered.insert(answer.call) {
                return Err(problem(format!("it answers call {} twice", answer.call)));
            }
            events.push(Event::Settled { id, result: answer.result.clone() });
        }
        Ok(events)
    }

    /// The calls of a round, and the messages since the one before, for the watcher.
    pub fn played(&mut self, round: usize, calls: &[Call]) -> Played {
        let calls = numbered(self.issued.len(), calls.iter().cloned());
        Played { round, calls, messages: std::mem::take(&mut self.messages) }
    }

    /// The divergence of a journal that continues after the run has ended.
    pub fn ended_early(&self, number: usize) -> Divergence {
        Divergence {
            round: Some(number),
            call: None,
            message: format!("it goes on after round {number}, where the script ends"),
        }
    }

    /// Give new calls to the client.
    pub fn issue(mut self, new: Vec<Call>, journal: &Journal) -> Calls {
        let first = self.issued.len();
        let mut journal = journal.clone();
        let calls = new.iter().map(|call| Issued::new(&call.tool, &call.input)).collect();
        journal.rounds.push(Round { calls, ..Round::default() });
        self.issued.extend(new.iter().map(|call| call.id));
        let new = numbered(first, new.into_iter());
        let open = self.run.open_calls();
        let of = |wanted: &dyn Fn(bool) -> bool| {
            let numbers = (0..).zip(&self.issued);
            let open = numbers.filter(|(_, id)| open.iter().any(|call| call.id == **id && wanted(call.awaited)));
            open.map(|(number, _)| number).collect::<Vec<u32>>()
        };
        let (waiting, abandoned) = (of(&|_| true), of(&|awaited| !awaited));
        Calls { new, waiting, abandoned, journal, messages: self.messages }
    }

    /// A run that has ended.
    pub fn finish(self, mut outcome: Outcome) -> Done {
        // Calls that failed the check have not reached the client.
        if let Err(failure) = &mut outcome.result {
            failure.tool_calls = self.issued.len() as u64;
        }
        let issued = u32::try_from(self.issued.len()).unwrap_or(u32::MAX);
        let abandoned: Vec<u32> = (0..issued).filter(|number| !self.answered.contains(number)).collect();
        let dropped = outcome.unanswered.iter().filter(|call| !self.issued.contains(&call.id)).count();
        let dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
        Done { outcome, abandoned, dropped, messages: self.messages }
    }
}

fn numbered(first: usize, calls: impl Iterator<Item = Call>) -> Vec<StepCall> {
    let first = u32::try_from(first).unwrap_or(u32::MAX);
    let call =
        |(Call { kind, tool, input, timeout_ms, .. }, number)| StepCall { number, kind, tool, input, timeout_ms };
    calls.zip(first..).map(call).collect()
}

impl Journal {
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

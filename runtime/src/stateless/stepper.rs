//! A run that takes steps: it goes on until only an answer of its client helps.

use super::journal::{Journal, JournalCall, Round};
use super::replay::Replay;
use super::{Calls, ClientTools, Divergence, Done, Played, StartRun, StepCall, StepOptions};
use crate::interface::host::{Call, CallKind, Event, Message, Progress, Resumable};
use crate::interface::outcome::Outcome;
use std::sync::Arc;

/// A run that takes steps.
pub struct Stepper {
    run: Box<dyn Resumable>,
    tools: Arc<dyn ClientTools>,
    replay: Replay,
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

impl Stepper {
    /// A run at its beginning.
    pub fn begin(
        start: &StartRun<'_>,
        tools: Arc<dyn ClientTools>,
        journal: &Journal,
        options: &StepOptions<'_>,
    ) -> Result<Self, Box<Outcome>> {
        let run = start(journal.inputs(Arc::clone(&tools).directory(), options))?;
        let replay = Replay::new(journal.rounds.clone());
        Ok(Self { run, tools, replay, messages: Vec::new(), jumps: !journal.is_timed() })
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

    /// Compares the calls of a round with those of the journal. Returns the events of the round.
    pub fn enter(&mut self, made: &[Call]) -> Result<Vec<Event>, Divergence> {
        Ok(self.replay.enter(made)?.unwrap_or_default())
    }

    /// The calls of a round, and the messages since the one before, for the watcher.
    pub fn played(&mut self, round: usize, calls: &[Call]) -> Played {
        let calls = numbered(self.replay.calls().len(), calls.iter().cloned());
        Played { round, calls, messages: std::mem::take(&mut self.messages) }
    }

    /// The divergence of a journal that goes on after the run has ended.
    pub fn ended_early(&self) -> Divergence {
        self.replay.ended_early()
    }

    /// Give new calls to the client.
    pub fn issue(mut self, new: Vec<Call>, journal: &Journal) -> Result<Calls, Divergence> {
        let first = self.replay.calls().len();
        let mut journal = journal.clone();
        let calls = new.iter().map(|call| JournalCall::new(&call.tool, &call.input)).collect();
        journal.rounds.push(Round { calls, ..Round::default() });
        self.replay.enter(&new)?;
        let new = numbered(first, new.into_iter());
        let open = self.run.open_calls();
        let of = |wanted: &dyn Fn(bool) -> bool| {
            let numbers = (0..).zip(self.replay.calls());
            let open = numbers.filter(|(_, id)| open.iter().any(|call| call.id == **id && wanted(call.awaited)));
            open.map(|(number, _)| number).collect::<Vec<u32>>()
        };
        let (waiting, abandoned) = (of(&|_| true), of(&|awaited| !awaited));
        Ok(Calls { new, waiting, abandoned, journal, messages: self.messages })
    }

    /// A run that has ended.
    pub fn finish(self, mut outcome: Outcome) -> Done {
        let calls = self.replay.calls();
        // Calls that failed the check have not reached the client.
        if let Err(failure) = &mut outcome.result {
            failure.tool_calls = calls.len() as u64;
        }
        let made = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let abandoned: Vec<u32> = (0..made).filter(|number| !self.replay.has_answered(*number)).collect();
        let dropped = outcome.unanswered.iter().filter(|call| self.replay.number_of(call.id).is_none()).count();
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

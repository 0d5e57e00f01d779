//! Any text as the token, the journal or the history of a stateless run. It is read or refused, a step with it ends, a
//! journal comes back from its token, and a token that was changed does not.

#![no_main]

use agentscript::stateless::Journal;
use agentscript::{Policy, Preset};
use codecall::stateless::{Evaluate, JournalFile};
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

const KEY: &[u8] = b"a key of this target";
const MAX_JOURNAL_BYTES: usize = 100_000;
const MAX_TIME: Duration = Duration::from_secs(2);

fuzz_target!(|text: &str| {
    let began = ThreadTime::now();
    for key in [None, Some(KEY)] {
        if let Ok(journal) = Journal::from_token(text, key, MAX_JOURNAL_BYTES) {
            round_trip(&journal);
        }
    }
    if let Ok(journal) = serde_json::from_str::<Journal>(text) {
        round_trip(&journal);
    }
    let _ = JournalFile::read(text);
    if let Ok(mut request) = serde_json::from_str::<Evaluate>(text) {
        let mut policy = Policy::preset(Preset::Balanced);
        policy.limits.timeout_ms = 200;
        policy.limits.max_steps = 20_000;
        policy.limits.max_memory_bytes = 1 << 20;
        request.limits = None;
        let config = codecall::Config::default().stateless;
        if let Ok(evaluation) = request.run(policy, &config, &Default::default()) {
            let value = evaluation.into_json(&config);
            assert!(value["status"].is_string(), "{value}");
        }
    }
    assert!(began.elapsed() < MAX_TIME, "{:?}", began.elapsed());
});

fn round_trip(journal: &Journal) {
    for key in [None, Some(KEY)] {
        let token = journal.token(key);
        assert_eq!(Journal::from_token(&token, key, MAX_JOURNAL_BYTES * 4).as_ref(), Ok(journal));
        let other = if key.is_some() { None } else { Some(KEY) };
        assert!(Journal::from_token(&token, other, MAX_JOURNAL_BYTES * 4).is_err());
    }
    // One letter in the middle of a signed token.
    let token = journal.token(Some(KEY));
    let at = token.len() / 2;
    let letter = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
    let changed = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
    assert!(Journal::from_token(&changed, Some(KEY), MAX_JOURNAL_BYTES * 4).is_err(), "{changed}");
}

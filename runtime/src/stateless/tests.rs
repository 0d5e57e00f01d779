use super::*;
use crate::interface::host::NoTools;

const SCRIPT: &str =
    "const a = await callTool('a', { n: 1, m: [1.50, 'é'] }); const b = await callTool('b', { a }); return [a, b]";

fn journal(script: &str) -> Journal {
    Journal::new("code_1", 1_000, script, &StepOptions::default())
}

fn go(script: &str, journal: &Journal) -> Step {
    step(script, Arc::new(NoTools), journal, &StepOptions::default())
}

fn calls(step: Step) -> Calls {
    match step {
        Step::Calls(calls) => *calls,
        other => panic!("{other:?}"),
    }
}

fn divergence(step: Step) -> Divergence {
    match step {
        Step::Diverged(divergence) => divergence,
        other => panic!("{other:?}"),
    }
}

/// A journal with an answer to the first call and the second call made.
fn half_way() -> Journal {
    let mut journal = calls(go(SCRIPT, &journal(SCRIPT))).journal;
    journal.answer(0, Ok("\"one\"".into())).expect("it waits");
    calls(go(SCRIPT, &journal)).journal
}

#[test]
fn canonical_forms() {
    for (text, expected) in [
        (r#" { "b" : [ 1.0 , 1e3, -0 ], "a" : "\u00e9\/" } "#, r#"{"a":"é/","b":[1,1000,0]}"#),
        (r#"{"\ud83d\ude00":1,"\ufb01":2}"#, "{\"\u{1f600}\":1,\"\u{fb01}\":2}"),
        ("[0.1, 1e21, 12345678901234567890, null, true]", "[0.1,1e+21,12345678901234567000,null,true]"),
    ] {
        assert_eq!(canonical(text).expect("JSON"), expected);
    }
    assert!(canonical("{").is_err());
    assert!(canonical(&"[".repeat(100_000)).is_err());
}

#[test]
fn a_changed_script_diverges() {
    let journal = half_way();
    for script in [format!("{SCRIPT} "), SCRIPT.replace("1.50", "1.5")] {
        assert_eq!(divergence(go(&script, &journal)).round, None);
    }
    let options = StepOptions { context: Some("{}".into()), ..StepOptions::default() };
    assert_eq!(divergence(step(SCRIPT, Arc::new(NoTools), &journal, &options)).call, None);
}

#[test]
fn a_changed_journal_diverges() {
    let journal = half_way();
    let told = |change: &dyn Fn(&mut Journal)| {
        let mut changed = journal.clone();
        change(&mut changed);
        let divergence = divergence(go(SCRIPT, &changed));
        (divergence.round, divergence.call, divergence.message)
    };
    let (round, call, message) = told(&|j| j.rounds[0].calls[0].tool = "c".into());
    assert_eq!((round, call), (Some(0), Some(0)));
    assert_eq!(
        message,
        r#"it has a call of 'c' with {"m":[1.5,"é"],"n":1}, but the script calls 'a' with {"m":[1.5,"é"],"n":1}"#
    );
    let (round, call, _) = told(&|j| j.rounds[1].calls[0].input = r#"{"a":"two"}"#.into());
    assert_eq!((round, call), (Some(1), Some(1)));
    // Another answer leads to another input of the next call.
    let (round, call, message) = told(&|j| j.rounds[0].answers[0].result = Ok("\"other\"".into()));
    assert_eq!((round, call), (Some(1), Some(1)));
    assert!(message.contains(r#"'b' with {"a":"other"}"#), "{message}");
    assert_eq!(told(&|j| j.rounds[1].calls.clear()).1, Some(1));
    assert_eq!(
        told(&|j| {
            let more = JournalCall::new("x", "{}");
            j.rounds[1].calls.push(more)
        })
        .1,
        Some(2)
    );
    assert_eq!(told(&|j| j.rounds[0].answers.clear()).0, Some(1));
    assert_eq!(told(&|j| j.rounds[0].answers[0].call = 7).1, Some(7));
    let twice = |j: &mut Journal| {
        let again = j.rounds[0].answers[0].clone();
        j.rounds[1].answers.push(again)
    };
    assert_eq!(told(&twice).2, "it answers call 0 twice");
    let mut over = journal.clone();
    over.answer(1, Ok("2".into())).expect("it waits");
    over.rounds.push(Round::default());
    assert_eq!(divergence(go(SCRIPT, &over)).message, "it goes on after round 2, where the script ends");
}

#[test]
fn inputs_are_compared_by_what_they_mean() {
    let rounds = vec![Round {
        calls: vec![JournalCall { tool: "a".into(), input: "{ \"m\": [15e-1, \"\\u00e9\"], \"n\": 1.0 }".into() }],
        answers: vec![Answer { call: 0, result: Ok("\"one\"".into()) }],
        ms: None,
    }];
    let journal = journal(SCRIPT).with_rounds(rounds).expect("a history");
    let next = calls(go(SCRIPT, &journal));
    assert_eq!((next.new[0].number, next.new[0].input.as_str()), (1, r#"{"a":"one"}"#));
    assert_eq!(next.journal, half_way());
}

#[test]
fn a_history_that_makes_no_sense_is_told() {
    let call =
        |input: &str| Round { calls: vec![JournalCall { tool: "a".into(), input: input.into() }], ..Round::default() };
    assert!(journal(SCRIPT).with_rounds(vec![call("{oops")]).expect_err("no JSON").message.contains("is not JSON"));
    let answer = Answer { call: 3, result: Ok("1".into()) };
    let early = Round { answers: vec![answer], ..call("{}") };
    assert_eq!(journal(SCRIPT).with_rounds(vec![early]).expect_err("early").message, "there is no call 3");
}

#[test]
fn answers_are_noted_once() {
    let mut journal = half_way();
    assert_eq!(journal.answer(0, Ok("1".into())), Err(AnswerError::Answered(0)));
    assert_eq!(journal.answer(2, Ok("1".into())), Err(AnswerError::Unknown(2)));
    assert_eq!(journal.answer(1, Ok("1".into())), Ok(()));
}

#[test]
fn tokens() {
    let journal = half_way();
    let plain = journal.token(None);
    let signed = journal.token(Some(b"key"));
    assert_eq!(Journal::from_token(&plain, None, 1000), Ok(journal.clone()));
    assert_eq!(Journal::from_token(&signed, Some(b"key"), 1000), Ok(journal.clone()));
    assert_eq!(Journal::from_token(&signed, Some(b"other"), 1000), Err(TokenError::Forged));
    assert_eq!(Journal::from_token(&plain, Some(b"key"), 1000), Err(TokenError::Forged));
    assert_eq!(Journal::from_token(&signed, None, 1000), Err(TokenError::Forged));
    assert_eq!(Journal::from_token(&plain, None, 10), Err(TokenError::TooLarge));
    assert_eq!(Journal::from_token(&plain.replace("ccj1", "ccj9"), None, 1000), Err(TokenError::Version));
    // Every single change is found.
    for at in 5..signed.len() {
        let mut bytes = signed.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        assert!(Journal::from_token(&changed, Some(b"key"), 1000).is_err(), "{at}");
    }
    for garbage in ["", "ccj1", "ccj1.", "ccj1.!!!", "ccj1.AAAA", "ccj1.AAAA.AAAA"] {
        assert!(Journal::from_token(garbage, None, 1000).is_err(), "{garbage}");
    }
    let compact = half_way().compact();
    assert_eq!(calls(go(SCRIPT, &compact)).waiting, [1]);
}

#[test]
fn limits_end_a_run() {
    let outcome = |step: Step| match step {
        Step::Done(done) => done.outcome.to_json(),
        other => panic!("{other:?}"),
    };
    let options = StepOptions { max_rounds: 1, ..StepOptions::default() };
    let first = Journal::new("code_1", 0, SCRIPT, &options);
    let mut journal = calls(step(SCRIPT, Arc::new(NoTools), &first, &options)).journal;
    journal.answer(0, Ok("1".into())).expect("it waits");
    assert!(outcome(step(SCRIPT, Arc::new(NoTools), &journal, &options)).contains("MAX_ROUNDS_EXCEEDED"));
    let options = StepOptions { max_journal_bytes: 40, ..StepOptions::default() };
    journal.rounds[0].answers[0].result = Ok(format!("\"{}\"", "x".repeat(40)));
    assert!(outcome(step(SCRIPT, Arc::new(NoTools), &journal, &options)).contains("JOURNAL_TOO_LARGE"));
    let mut options = StepOptions::default();
    options.policy.limits.max_tool_calls = 1;
    journal.rounds[0].answers[0].result = Ok("1".into());
    let over = outcome(step(SCRIPT, Arc::new(NoTools), &journal, &options));
    assert!(over.contains("MAX_TOOL_CALLS_EXCEEDED") && over.contains("\"toolCalls\":1"), "{over}");
    assert!(outcome(go("eval('1')", &self::journal("eval('1')"))).contains("VALIDATION_ERROR"));
}

#[test]
fn only_what_has_lost_is_abandoned() {
    let script = "callTool('log', {}); const first = await Promise.race([callTool('a', {}), callTool('b', {})]); callTool('last', {}); return first";
    let start = calls(go(script, &journal(script)));
    // Nobody awaits the first call, but the run waits for it.
    assert_eq!((start.waiting.as_slice(), start.abandoned.as_slice()), ([0, 1, 2].as_slice(), [].as_slice()));
    let mut journal = start.journal;
    journal.answer(2, Ok("\"b\"".into())).expect("it waits");
    let next = calls(go(script, &journal));
    assert_eq!((next.waiting.as_slice(), next.abandoned.as_slice()), ([0, 1, 3].as_slice(), [1].as_slice()));
    let mut journal = next.journal;
    journal.answer(0, Ok("null".into())).expect("it waits");
    journal.answer(3, Ok("null".into())).expect("it waits");
    match go(script, &journal) {
        Step::Done(done) => {
            assert_eq!(done.outcome.result.expect("ok"), "\"b\"");
            assert_eq!((done.abandoned, done.dropped), (vec![1], 0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn partial_answers_leave_the_others_waiting() {
    let script = "return await Promise.all([callTool('a', {}), callTool('b', {}), callTool('c', {})])";
    let mut now = calls(go(script, &journal(script)));
    for (call, waiting) in [(1, vec![0, 2]), (2, vec![0])] {
        now.journal.answer(call, Ok(call.to_string())).expect("it waits");
        now = calls(go(script, &now.journal));
        assert!(now.new.is_empty());
        assert_eq!(now.waiting, waiting);
    }
    now.journal.answer(0, Ok("0".into())).expect("it waits");
    match go(script, &now.journal) {
        Step::Done(done) => assert_eq!(done.outcome.result.expect("ok"), "[0,1,2]"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rounds_are_told_as_they_are_played() {
    let mut journal = half_way();
    let told = |journal: &Journal| {
        let mut told: Vec<(usize, u32, String)> = Vec::new();
        let mut watch = |played: Played| {
            told.extend(played.calls.into_iter().map(|call| (played.round, call.number, call.tool)));
        };
        let end = replay(SCRIPT, Arc::new(NoTools), journal, &StepOptions::default(), Some(&mut watch));
        (told, end)
    };
    let both = vec![(0, 0, "a".to_owned()), (1, 1, "b".to_owned())];
    let (rounds, end) = told(&journal);
    assert!(rounds == both && matches!(end, Step::Calls(_)), "{rounds:?}");
    journal.rounds[1].calls[0].tool = "c".into();
    let (rounds, end) = told(&journal);
    // What the script does is told, not what the journal says.
    assert!(rounds == both && matches!(end, Step::Diverged(_)), "{rounds:?}");
}

#[test]
fn lower_limits_than_before_are_no_divergence() {
    let script = "for (let i = 0; i < 3; i++) await callTool('a', { i })";
    let mut now = calls(go(script, &journal(script))).journal;
    for call in 0..2 {
        now.answer(call, Ok("1".into())).expect("it waits");
        now = calls(go(script, &now)).journal;
    }
    let ended = |set: &dyn Fn(&mut Policy)| {
        let mut options = StepOptions::default();
        set(&mut options.policy);
        match step(script, Arc::new(NoTools), &now, &options) {
            Step::Done(done) => done.outcome.result.expect_err("a limit").code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended(&|policy| policy.limits.max_iterations = 1), "ITERATION_LIMIT");
    assert_eq!(ended(&|policy| policy.limits.max_tool_calls = 1), "MAX_TOOL_CALLS_EXCEEDED");
    assert_eq!(ended(&|policy| policy.limits.max_steps = 1), "STEP_LIMIT");
    assert_eq!(ended(&|policy| policy.limits.timeout_ms = 0), "TIMEOUT");
}

#[test]
fn a_script_that_nothing_can_wake() {
    let script = "await callTool('a', {});\nawait new Promise(() => {});";
    let mut journal = calls(go(script, &journal(script))).journal;
    journal.answer(0, Ok("1".into())).expect("it waits");
    match go(script, &journal) {
        Step::Deadlock(failure) => assert_eq!(failure.location.map(|location| location.line), Some(2)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_are_told_once() {
    let script = "mcpLog('info', 'one'); await callTool('a', {}); mcpLog('info', 'two'); await callTool('b', {}); mcpLog('info', 'three')";
    let mut now = calls(go(script, &journal(script)));
    assert_eq!(now.messages.len(), 1);
    now.journal.answer(0, Ok("1".into())).expect("it waits");
    now = calls(go(script, &now.journal));
    assert!(matches!(now.messages.as_slice(), [Message::Log { message, .. }] if message == "two"));
    now.journal.answer(1, Ok("1".into())).expect("it waits");
    match go(script, &now.journal) {
        Step::Done(done) => assert_eq!(done.messages.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_of_functions() {
    for (tool, expected) in [
        ("web_search", Some("webSearch")),
        ("web-search", Some("webSearch")),
        ("users:list", Some("usersList")),
        ("_secret", Some("secret")),
        ("getHTTP", Some("getHTTP")),
        ("été", Some("été")),
        ("fetch", None),
        ("delete", None),
        ("parse_int", None),
        ("2fa", None),
        ("--", None),
        ("main", None),
        ("eval", None),
        ("a;b", Some("aB")),
    ] {
        assert_eq!(function_name(tool).as_deref(), expected, "{tool}");
    }
    let names = FunctionNames::new(["web_search", "fetch", "get"]).expect("no clash");
    let of = |name| names.tool(name);
    assert_eq!(
        (of("webSearch"), of("web_search"), of("get"), of("fetch")),
        (Some("web_search"), Some("web_search"), Some("get"), None)
    );
    let clash = FunctionNames::new(["web_search", "web-search"]).expect_err("both are webSearch");
    assert_eq!(
        clash.to_string(),
        "the tools 'web_search' and 'web-search' would both be the function webSearch; rename one of them"
    );
    assert!(FunctionNames::new(["get", "get"]).is_err());
}

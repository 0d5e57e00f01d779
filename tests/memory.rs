//! Memory of runs: garbage is given back while a script runs and before it waits.

use agentscript::{CompileOptions, Event, Inputs, Policy, Preset, Progress, Run};
use codecall_tests::garbage::{KINDS, source};

fn start(script: &str, memory: u64) -> Run {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.max_memory_bytes = memory;
    let script = agentscript::compile(script, &CompileOptions::of(&policy)).expect("the script is valid");
    script.start(Inputs::default(), &policy)
}

#[test]
fn what_lives_a_short_time_fits_into_little_memory() {
    const COUNT: u64 = 50_000;
    for (name, body) in KINDS {
        let progress = start(&source(body, COUNT), 3 << 20).resume([]);
        let Progress::Done(outcome) = progress else { panic!("{name}: {progress:?}") };
        assert_eq!(outcome.result.map_err(|failure| failure.message), Ok(COUNT.to_string()), "{name}");
    }
}

#[test]
fn what_is_alive_does_not_fit() {
    let keeps =
        "const kept = []; for (let i = 0; i < 100000; i++) kept.push({ i, text: 'text ' + i }); return kept.length";
    let progress = start(keeps, 3 << 20).resume([]);
    let Progress::Done(outcome) = progress else { panic!("{progress:?}") };
    assert_eq!(outcome.result.expect_err("it is too much").code, "MEMORY_LIMIT");
}

#[test]
fn a_run_that_waits_keeps_only_what_it_needs() {
    let script = "
        const texts = [];
        let peak = [];
        for (let i = 0; i < 50000; i++) {
          peak.push({ i, text: 'text ' + i, list: [i] });
          if (i % 10000 === 0) texts.push('a long text '.repeat(100).slice(i / 10000, i / 10000 + 13));
        }
        const last = peak[49999];
        const later = (async () => { const [a, b] = [last.text, peak.length]; await callTool('t:b', {}); return a + b; })();
        peak = null;
        const answer = await callTool('t:a', {});
        return [answer, texts, last, await later];
    ";
    let mut run = start(script, 64 << 20);
    let Progress::Calls(calls) = run.resume([]) else { panic!("the script calls tools") };
    let (bytes, most) = run.memory();
    assert!(most > 4 << 20 && bytes < 64 << 10, "{bytes} bytes are left of {most}");
    let answers = calls.iter().rev().map(|call| Event::Settled { id: call.id, result: Ok(format!("{:?}", call.tool)) });
    let Progress::Done(outcome) = run.resume(answers) else { panic!("the script ends") };
    let texts: Vec<String> =
        (0..5).map(|from| format!("{:?}", &"a long text a long text a long text "[from..from + 13])).collect();
    let expected =
        format!(r#"["t:a",[{}],{{"i":49999,"text":"text 49999","list":[49999]}},"text 4999950000"]"#, texts.join(","));
    assert_eq!(outcome.result.expect("it succeeds"), expected);
}

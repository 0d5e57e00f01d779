//! Memory of runs: garbage is collected while a script runs and before it waits, and limits hold.
#![expect(clippy::print_stdout, reason = "a process says what it took, and the test how much that was")]

use agentscript::{
    CompileOptions, Event, Failure, Inputs, MAX_DETAILS_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_TOOL_INPUT_BYTES,
    Outcome, Policy, Preset, Progress, Run, Status, ToolError,
};
use codecall_tests::garbage::{KINDS, source};
use codecall_tests::loops::{self, Loop};
use codecall_tests::parallel;

fn start(script: &str, memory: u64) -> Run {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.max_memory_bytes = memory;
    let script = agentscript::compile(script, &CompileOptions::for_policy(&policy)).expect("the script is valid");
    script.start(Inputs::default(), &policy)
}

#[test]
fn short_lived_values_fit_into_little_memory() {
    const COUNT: u64 = 50_000;
    for (name, body) in KINDS {
        let progress = start(&source(body, COUNT), 3 << 20).resume([]);
        let Progress::Done(outcome) = progress else { panic!("{name}: {progress:?}") };
        assert_eq!(outcome.result.map_err(|failure| failure.message), Ok(COUNT.to_string()), "{name}");
    }
}

#[test]
fn live_data_above_the_limit_ends_the_run() {
    let keeps =
        "const kept = []; for (let i = 0; i < 100000; i++) kept.push({ i, text: 'text ' + i }); return kept.length";
    let progress = start(keeps, 3 << 20).resume([]);
    let Progress::Done(outcome) = progress else { panic!("{progress:?}") };
    assert_eq!(outcome.result.expect_err("it is too much").code, "MEMORY_LIMIT");
}

/// Names of properties stay until the run ends, whatever made them.
#[test]
fn names_of_dropped_objects_end_the_run() {
    let names = [
        "JSON.parse('{\"name' + i + '\": 1}')",
        "JSON.parse('{\"name\\\\u0041' + i + '\": 1}')",
        "({ ['name' + i]: 1 })",
        "Object.fromEntries([['name' + i, 1]])",
        "/(?<name>x)/.exec('x').groups['name' + i] = 1",
        "Object.groupBy([i], (n) => 'name' + n)",
        "structuredClone({ ['name' + i]: 1 })",
    ];
    for name in names {
        let script = format!("for (let i = 0; i < 1e6; i++) {{ {name}; }} return 'all'");
        let progress = start(&script, 3 << 20).resume([]);
        let Progress::Done(outcome) = progress else { panic!("{name}: {progress:?}") };
        let ended = outcome.result.map_err(|failure| failure.code);
        assert!(ended == Err("MEMORY_LIMIT".into()), "{name}: {ended:?}");
    }
}

/// Neither handlers nor a function that captures the constant run: it is never seen uninitialized.
#[test]
fn an_awaited_result_that_exceeds_the_limit_ends_the_run() {
    for push in ["list.push('x'.repeat(1e7))", "list.push(list.length, [])"] {
        for place in ["const x = await PUSH;", "const read = () => x; look = read; const x = await PUSH;"] {
            let body = place.replace("PUSH", push);
            let script = format!(
                "const list = []; let look = () => 0;
                 try {{ for (;;) {{ {body} }} }} catch {{ return look() }} finally {{ return [look(), list.length] }}"
            );
            let failure = failure(&script, 3 << 20);
            assert_eq!((failure.status.as_str(), &*failure.code), ("runtime_error", "MEMORY_LIMIT"), "{script}");
            assert!(failure.message.contains("memory limit of 3145728 bytes"), "{}", failure.message);
        }
    }
}

#[test]
fn a_waiting_run_releases_unused_memory() {
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
    let (bytes, most) = (run.memory_bytes(), run.peak_memory_bytes());
    assert!(most > 4 << 20 && bytes < 64 << 10, "{bytes} bytes are left of {most}");
    let answers = calls.iter().rev().map(|call| Event::Settled { id: call.id, result: Ok(format!("{:?}", call.tool)) });
    let Progress::Done(outcome) = run.resume(answers) else { panic!("the script ends") };
    let texts: Vec<String> =
        (0..5).map(|from| format!("{:?}", &"a long text a long text a long text "[from..from + 13])).collect();
    let expected =
        format!(r#"["t:a",[{}],{{"i":49999,"text":"text 49999","list":[49999]}},"text 4999950000"]"#, texts.join(","));
    assert_eq!(outcome.result.expect("it succeeds"), expected);
}

/// Runs a script with this memory limit, and almost unlimited steps.
fn outcome(script: &str, memory: u64) -> Outcome {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.max_memory_bytes = memory;
    policy.limits.timeout_ms = 60_000;
    policy.limits.max_duration_ms = 60_000;
    let script = agentscript::compile(script, &CompileOptions::for_policy(&policy)).expect("the script is valid");
    let Progress::Done(outcome) = script.start(Inputs::default(), &policy).resume([]) else {
        panic!("no tool is called")
    };
    *outcome
}

fn failure(script: &str, memory: u64) -> Failure {
    *outcome(script, memory).result.expect_err("it fails")
}

/// Scripts with little live data and much garbage, relative to a limit of 64 MB.
const FITTING: &[(&str, &str)] = &[
    ("JSON.parse in a loop", "const text = '[' + '1234,'.repeat(3e6) + '1]'; let n = 0;
        for (let i = 0; i < 6; i++) { const data = JSON.parse(text); n += data.length } return n === 6 * 3000001"),
    ("what is dropped before", "const text = '[' + '1,'.repeat(4e6) + '1]'; let data = JSON.parse(text);
        data = null; data = JSON.parse(text); data = null; data = JSON.parse(text); return data.length === 4000001"),
    ("a chain of arrays", "const rows = Array.from({ length: 300000 }, (_, i) => i); let n = 0;
        for (let i = 0; i < 12; i++) {
          n += rows.map((x) => x + 1).filter((x) => x % 2).map((x) => ({ x })).slice(0, 200000).concat(rows).length
        } return n === 12 * 450000"),
    ("a string that grows", "let text = ''; const part = 'x'.repeat(1000);
        for (let i = 0; i < 48000; i++) text += part; return text.length === 48e6"),
    ("a string that grows at its front", "let text = ''; const part = 'x'.repeat(1000);
        for (let i = 0; i < 2000; i++) text = part + text; return text.length === 2e6"),
    ("an array that grows", "const list = []; for (let i = 0; i < 6e6; i++) list.push(i); return list.length === 6e6"),
    ("one large array in JSON", "const text = '{\"rows\":[' + '1,'.repeat(5e6) + '1]}'; const data = JSON.parse(text);
        return data.rows.length === 5000001"),
    ("text of a large array", "const rows = new Array(1e6).fill(7); let n = 0;
        for (let i = 0; i < 10; i++) n += JSON.stringify(rows).length; return n === 10 * 2000001"),
    ("copies that are dropped", "let rows = new Array(1.5e6).fill(1);
        for (let i = 0; i < 10; i++) { const copy = [...rows, i]; rows = copy.slice(0, 1.5e6) } return rows.length === 1.5e6"),
    ("objects, then strings", "let rows = Array.from({ length: 300000 }, (_, i) => ({ i })); rows = null;
        let texts = []; for (let i = 0; i < 30; i++) texts.push('y'.repeat(1e6)); return texts.length === 30"),
    ("objects, then awaited results", "let rows = Array.from({ length: 300000 }, (_, i) => ({ i })); rows = null;
        const texts = []; let n = 0;
        for (let i = 0; i < 30; i++) { const x = await texts.push('y'.repeat(1e6)); n += x } return n === 465"),
    ("bytes that are dropped", "let n = 0; for (let i = 0; i < 40; i++) n += new Uint8Array(1e7).slice(0, 5e6).length;
        return n === 40 * 5e6"),
    ("buffers that are resized", "const buffer = new ArrayBuffer(1, { maxByteLength: 4e7 }); const all = new Uint8Array(buffer);
        for (let i = 0; i < 20; i++) { buffer.resize(i % 2 ? 1 : 2e7); all.fill(i) } return all.length === 1"),
    ("text and bytes in turn", "let text = 'é'.repeat(2e6); for (let i = 0; i < 20; i++)
        text = new TextDecoder().decode(new TextEncoder().encode(text)); return text.length === 2e6"),
    ("base64 there and back", "let bytes = new Uint8Array(5e6); for (let i = 0; i < 10; i++)
        bytes = Uint8Array.fromBase64(bytes.toBase64()); return bytes.length === 5e6"),
    ("a map that grows", "const map = new Map(); for (let i = 0; i < 1e6; i++) map.set(i, i); return map.size === 1e6"),
];

#[test]
fn garbage_does_not_count_towards_the_limit() {
    let refused = parallel::map(FITTING, |(name, script)| match outcome(script, 64 << 20).result {
        Ok(result) => (result != "true").then(|| format!("{name}: {result}")),
        Err(failure) => Some(format!("{name}: {}", failure.message)),
    });
    let refused: Vec<String> = refused.into_iter().flatten().collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Scripts that request much more than 64 MB in one operation.
const GREEDY: &[(&str, &str)] = &[
    ("spread of a string", "return [...'x'.repeat(3e7)].length"),
    ("spread of a string of two bytes", "return [...'é'.repeat(2e7)].length"),
    ("spread arguments", "const many = new Array(5e6).fill(1); return Math.max(...many, ...many, ...many)"),
    ("rest arguments", "const many = new Array(4e6).fill(1); return ((...all) => all.length)(...many, ...many)"),
    (
        "bound arguments",
        "const many = new Array(3e6).fill(1);
        return ((...all) => all.length).bind(null, ...many).apply(null, many)",
    ),
    ("allSettled", "return (await Promise.allSettled(new Array(3e6).fill(0))).length"),
    ("all", "return (await Promise.all(new Array(5e6).fill(0))).length"),
    ("race", "return await Promise.race(new Array(5e6).fill(0))"),
    ("JSON of numbers", "return JSON.parse('[' + '1,'.repeat(2e7) + '1]').length"),
    ("JSON of levels", "return JSON.parse('['.repeat(3e7))"),
    ("JSON of names", "return JSON.parse('{' + '\"\":1,'.repeat(6e6) + '\"a\":1}').a"),
    ("JSON of objects", "return JSON.parse('[' + '{},'.repeat(1e7) + '1]').length"),
    ("JSON of texts", "return JSON.parse('[' + '\"\",'.repeat(1e7) + '1]').length"),
    ("text of what is escaped", "return JSON.stringify('\\u0001'.repeat(3e7)).length"),
    ("text of many", "return JSON.stringify(new Array(7e6).fill(0), null, 10).length"),
    ("entries of a string", "return Object.entries('x'.repeat(1e7)).length"),
    ("keys of an array", "return Object.keys(new Array(7e6).fill(0)).length"),
    ("values of an array", "return Object.values(new Array(7e6).fill(0)).length"),
    ("a copy by spread", "return Object.keys({ ...new Array(3e6).fill(0) }).length"),
    ("assign", "return Object.keys(Object.assign({}, new Array(3e6).fill(0))).length"),
    ("fromEntries", "return Object.fromEntries(new Array(3e6).fill(['a', 1])).a"),
    ("a clone", "const list = []; for (let i = 0; i < 4e5; i++) list.push([i]); return structuredClone(list).length"),
    ("a list of a length", "return Array.from({ length: 2e7 }).length"),
    ("concat", "const many = new Array(5e6).fill(1); return many.concat(many, many, many).length"),
    ("flat", "const many = new Array(1e6).fill(1); return new Array(20).fill(many).flat().length"),
    ("splice", "const many = new Array(4e6).fill(1); many.splice(1, 0, ...many); return many.length"),
    ("sort", "return new Array(5e6).fill('b').sort().length"),
    ("join", "return new Array(4e6).fill('0123456789').join(', ').length"),
    ("bytes", "return new Uint8Array(1e9).length"),
    ("many bytes", "const all = []; for (let i = 0; i < 1e5; i++) all.push(new Uint8Array(1e4)); return all.length"),
    (
        "views of a buffer",
        "const all = []; const b = new ArrayBuffer(8); for (let i = 0; i < 3e6; i++) all.push(new Uint8Array(b)); return 1",
    ),
    ("a buffer that grows", "const b = new ArrayBuffer(1, { maxByteLength: 4e9 }); b.resize(3e9); return b.byteLength"),
    ("a list of bytes", "return [...new Uint8Array(3e7)].length"),
    ("keys of bytes", "return Object.keys(new Uint8Array(1e7)).length"),
    ("JSON of bytes", "return JSON.stringify(new Uint8Array(1e7)).length"),
    ("text of bytes", "return new Uint8Array(3e7).fill(200).join(', ').length"),
    ("text of what is invalid", "return new TextDecoder().decode(new Uint8Array(5e7).fill(255)).length"),
    ("hexadecimal", "return new Uint8Array(5e7).toHex().length"),
    ("base64 of bytes", "return new Uint8Array(5.5e7).toBase64().length"),
    ("a clone of bytes", "return structuredClone(new Uint8Array(5e7)).length"),
    ("encoded text", "return new TextEncoder().encode('x'.repeat(5e7)).length"),
    ("sorted bytes", "return new Uint8Array(4e6).sort((a, b) => a - b).length"),
    ("filtered bytes", "return new Uint8Array(1e7).filter(() => true).length"),
    ("a set", "return new Set(Array.from({ length: 2e6 }, (_, i) => i)).size"),
    ("a map that doubles", "const map = new Map(); for (let i = 0; i < 5e6; i++) map.set(i, i); return map.size"),
    (
        "places between what is kept",
        "let kept = [];
        for (const make of [(i) => ({ i }), (i) => [i], (i) => new Map(), (i) => () => i, (i) => BigInt(i)]) {
          let all = []; for (let i = 0; i < 4e5; i++) all.push(make(i));
          kept.push(all.filter((_, i) => i % 100 === 99)); all = null;
        } return kept.length",
    ),
    ("a long message", "throw new Error('x'.repeat(3e7))"),
    ("a long text", "throw 'x'.repeat(3e7)"),
    ("replaceAll of every letter", "return 'a'.repeat(2e7).replaceAll('a', '').length"),
    ("replace with a function", "return 'a'.repeat(9e6).replace(/a/g, () => 'b').length"),
    ("replace with a text", "return 'a'.repeat(2e7).replace(/a/g, 'bb').length"),
    ("replace of other letters", "return 'é'.repeat(9e6).replace(/é/g, 'bb').length"),
    ("replaceAll with a function", "return 'é'.repeat(9e6).replaceAll('é', () => 'b').length"),
    ("match of every letter", "return 'a'.repeat(9e6).match(/a/g).length"),
    ("matchAll", "let n = 0; for (const m of 'a'.repeat(2e6).matchAll(/(a)/g)) n++; return n"),
    ("what stands before a match", "return 'ab'.repeat(4e3).replace(/a/g, '$`').length"),
    ("NFKD", "return 'ﷺ'.repeat(3e6).normalize('NFKD').length"),
    ("NFD", "return 'Ǖ'.repeat(9e6).normalize('NFD').length"),
    ("upper case", "return 'ΐ'.repeat(9e6).toUpperCase().length"),
    ("lower case", "return 'İ'.repeat(9e6).toLowerCase().length"),
    (
        "a long needle",
        "const w = 'a'.repeat(1e7) + 'b'; return 'a'.repeat(3e7).indexOf(w) + 'é'.repeat(1e6).lastIndexOf('éa'.repeat(4e5))",
    ),
    ("pieces of text", "return ['a,'.repeat(4e6).split(','), 'é'.repeat(2e6).split('')].map((l) => l.length)"),
    ("pieces by a pattern", "return 'a1'.repeat(2e6).split(/(\\d)/).length"),
    ("codes of letters", "const s = 'é'.repeat(1.2e7); return [s.charCodeAt(9e6), s.slice(1, -1).length, s.at(-1)]"),
    ("text of codes", "return String.fromCharCode(...new Array(1e6).fill(8364)).length"),
    ("padding", "return ['x'.padStart(5e7, 'é'), 'x'.padEnd(5e7, 'ab')].length"),
    ("repeated text", "return '漢'.repeat(3e7).length"),
    ("tags", "return 'x'.repeat(3e7).anchor('\"'.repeat(5e6)).length"),
    ("large integers", "let a = 3n; for (let i = 0; i < 40; i++) a *= a; return a > 0n"),
    ("shifted integers", "return (1n << 600000000n) > 0n"),
    ("patterns", "return new RegExp('(a|b)'.repeat(3e5)).test('a')"),
    ("groups", "return /^(?:(a)|(b)|(c))*$/.exec('abc'.repeat(1e6)).length"),
    ("raw text", "return String.raw({raw: new Array(1e6).fill('xxxxxxxxxx')}).length"),
    ("messages of operators", "const t = 'x'.repeat(3e7); try { t in t } catch (e) { return e.message.length }"),
    (
        "messages of a key",
        "const k = 'x'.repeat(2e7), o = null; for (let i = 0; i < 9; i++) try { o[k] } catch {} return 1",
    ),
    (
        "messages of an error",
        "const e = new Error('x'.repeat(2e7)); for (let i = 0; i < 9; i++) try { null[e] } catch {} return 1",
    ),
    ("the name of a tool", "try { await callTool('x'.repeat(3e7)) } catch (e) { return e.message.length }"),
    ("the text of an error", "const e = new Error('x'.repeat(2e7)); return [String(e), e.stack].length"),
    ("Base64", "return btoa(atob('/+/+'.repeat(4e6))).length"),
    ("what is no JSON", "try { JSON.parse('x'.repeat(3e7)) } catch (e) { return e.message }"),
    ("JSON with escapes", "return JSON.parse('\"' + '\\\\n'.repeat(1.4e7) + '\"').length"),
    ("the indent of JSON", "return JSON.stringify(1, null, 'x'.repeat(3e7))"),
    ("names of JSON", "for (let i = 0; i < 250; i++) JSON.stringify({ [i + 'x'.repeat(1e6)]: 1 })"),
    ("names that JSON may have", "return JSON.stringify({}, Array.from({ length: 1.5e6 }, (_, i) => i))"),
    (
        "promises in a result",
        "const all = [new Promise(() => 1)]; for (let i = 0; i < 4e5; i++) all.push([]); return all",
    ),
    ("an array that is undefined", "return new Array(4e6).fill(undefined).toSorted().length"),
    ("flatMap", "const many = new Array(1e6).fill(1); return [1, 2, 3, 4, 5, 6].flatMap(() => many).length"),
    ("parts of a number", "return new Intl.NumberFormat().formatToParts(10n ** 900000n).length"),
    ("a range of numbers", "return new Intl.NumberFormat().formatRange(10n ** 400000n, 10n ** 400001n).length"),
    (
        "what is deep on the console",
        "let o = {}; for (let i = 0; i < 1e5; i++) o['a' + i] = 1; for (let i = 0; i < 95; i++) o = { o };
        console.dir(o, { depth: null })",
    ),
    (
        "cells of a table",
        "const row = {}; for (let i = 0; i < 90; i++) row['c' + i] = 'x'.repeat(9000);
        console.table(new Array(1000).fill(row))",
    ),
    (
        "frames of a stack",
        "const e = new Error('a', { cause: new Error('b') });
        e.cause.stack = e.stack = '\\n    at' + '\\n'.repeat(8e6); console.log(e)",
    ),
    (
        "indented JSON",
        "let deep = []; for (let i = 0; i < 3e4; i++) deep = [deep]; return JSON.stringify(deep, null, 4).length",
    ),
];

/// Bytes of memory of this process, by a name in its status.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel says so");
    let line = status.lines().find(|line| line.starts_with(name)).expect("it is there");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") << 10
}

/// The process that [`assert_bounded`] measures. It runs the script of the number in `GREEDY`.
#[test]
#[ignore = "it is started by another test"]
fn measured() {
    let number: usize = std::env::var("GREEDY").expect("which").parse().expect("a number");
    let _ = outcome("return [1].map((x) => x + 1)", 64 << 20);
    let before = status("VmRSS");
    let outcome = outcome(GREEDY[number].1, 64 << 20);
    let end = outcome.result.map_or_else(|failure| failure.code, |_| "ok".into());
    println!("grown: {} {end}", status("VmHWM").saturating_sub(before) >> 10);
}

#[test]
#[cfg(target_os = "linux")]
fn some_scripts_take_no_more_than_their_limit() {
    assert_bounded((0..GREEDY.len()).step_by(8));
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "SKIPPED: it takes two minutes: bash .ci/run"]
fn no_script_takes_more_than_its_limit() {
    assert_bounded(0..GREEDY.len());
}

/// Asserts that the processes of greedy scripts grow by no more than the limit, a fifth of it, and 20 MB.
#[cfg(target_os = "linux")]
fn assert_bounded(numbers: impl Iterator<Item = usize>) {
    /// Maximum growth of a process, in KiB.
    const MAX_GROWTH: u64 = (64 << 10) * 6 / 5 + (20 << 10);
    let program = std::env::current_exe().expect("the path of this program");
    let numbers: Vec<usize> = numbers.collect();
    let faults = parallel::map(&numbers, |number| {
        let (name, _) = GREEDY[*number];
        let mut command = std::process::Command::new(&program);
        command.args(["--exact", "measured", "--ignored", "--nocapture"]).env("GREEDY", number.to_string());
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.split_once("grown: ")).map_or("", |(_, rest)| rest);
        let grown: u64 = line.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX);
        let figures = format!("{name}: {} MB, {line}", grown >> 10);
        println!("{figures}");
        (grown > MAX_GROWTH).then_some(figures)
    });
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Steps of a loop for each byte of its limit: enough for loops that keep what they make.
const STEPS_A_BYTE: f64 = 0.4;
/// How much of the turns that the limit allows are made where something comes afterwards.
const SHARE: f64 = 0.8;

/// Runs a loop with this memory limit until that ends it, or until it has made many steps.
fn run_loop(case: &Loop, memory: u64) -> Outcome {
    let mut policy = Policy::preset(Preset::Experimental);
    let limits = &mut policy.limits;
    limits.max_memory_bytes = memory;
    (limits.timeout_ms, limits.max_duration_ms) = (120_000, 120_000);
    limits.max_steps = (memory as f64 * STEPS_A_BYTE) as u64;
    (limits.max_iterations, limits.max_console_bytes, limits.max_result_bytes) = (u64::MAX / 4, 1 << 30, 1 << 30);
    let run = |script: &str| {
        let script = match agentscript::compile(script, &CompileOptions::for_policy(&policy)) {
            Ok(script) => script,
            // Not every built-in takes every argument.
            Err(error) => return Outcome::not_compiled(error.failure),
        };
        match script.start(Inputs::default(), &policy).resume([]) {
            Progress::Done(outcome) => *outcome,
            Progress::Calls(_) | Progress::Yielded => {
                let failure = Failure::new(Status::RuntimeError, "WAITS", "it waits for a timer");
                Outcome::not_compiled(Box::new(failure))
            }
        }
    };
    let endless = run(&case.endless());
    if !case.ends() {
        return endless;
    }
    let count = (endless.stats.iterations as f64 * SHARE) as u64;
    drop(endless);
    run(&case.with_turns(count))
}

fn loops() -> Vec<Loop> {
    [loops::forms(), loops::built_ins(), loops::afterwards()].concat()
}

/// The process that [`assert_loops_bounded`] measures. It runs the loops whose numbers are in `LOOPS`, with the limit
/// before them, and says by how much each has let it grow since it began.
#[test]
#[ignore = "it is started by another test"]
fn measured_loops() {
    let asked = std::env::var("LOOPS").expect("which");
    let mut numbers = asked.split(' ').map(|number| number.parse::<usize>().expect("a number"));
    let memory = numbers.next().expect("a limit") as u64;
    let all = loops();
    let _ = outcome("return [1].map((x) => x + 1)", memory);
    let before = status("VmRSS");
    for number in numbers {
        // The peak begins anew.
        std::fs::write("/proc/self/clear_refs", "5").expect("the kernel allows it");
        let outcome = run_loop(&all[number], memory);
        let end = outcome.result.map_or_else(|failure| failure.code, |_| "ok".into());
        println!("loop: {number} {} {end}", status("VmHWM").saturating_sub(before));
    }
}

/// Loops of values that take much beside themselves, by their names.
const LARGE: &[&str] = &[
    "kept: (() => { const a = []; a[5000] = i; return a; })()",
    "kept: new RegExp('(a|b)*[c-z]{1,' + i % 99 + '}' + i)",
    "kept: new URL('https://a.b/c?d=' + i).searchParams",
    "kept: new Headers({ a: 'b' + i })",
    "kept: new Intl.DateTimeFormat('de', { dateStyle: 'full' })",
    "kept: [1, i].values().map((y) => y)",
    "kept: new DOMException('m' + i)",
    "kept: { ['k' + i]: i }",
    "in both reactions: [i]",
    "in a frame: [i, i, i]",
    "in requests of a generator: () => 1",
    "nested in a list: i",
    "kept: x = [[], [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], x]",
    "kept: i; structuredClone(k)",
    "kept: P.then(() => i); settle(1); await Promise.allSettled(k)",
];

/// A few of all loops, with a small limit.
#[test]
#[cfg(target_os = "linux")]
fn some_loops_take_no_more_than_their_limit() {
    let all = loops();
    let number = |name: &&str| all.iter().position(|case| case.name == **name).unwrap_or_else(|| panic!("no {name}"));
    let large = LARGE.iter().map(number);
    assert_loops_bounded(16 << 20, 8 << 20, large.chain((0..all.len()).step_by(2039)));
}

#[test]
fn loops_of_every_form_compile() {
    let options = CompileOptions::for_policy(&Policy::preset(Preset::Experimental));
    for case in loops::forms().iter().step_by(7) {
        let compiled = agentscript::compile(&case.endless(), &options);
        assert!(compiled.is_ok(), "{}: {:?}", case.name, compiled.err().map(|error| error.failure.message));
    }
}

/// One of so many loops; with `EVERY=1` all of them, which takes a day.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "SKIPPED: it takes half an hour and more: bash .ci/nightly"]
fn measured_loops_take_no_more_than_their_limit() {
    let every = std::env::var("EVERY").map_or(131, |every| every.parse().expect("a number"));
    let count = loops().len();
    assert_loops_bounded(64 << 20, 20 << 20, (1..count).step_by(every));
    assert_loops_bounded(256 << 20, 20 << 20, (2..count).step_by(every * 8));
}

/// Asserts that processes of loops grow by no more than the limit, a fifth of it, and `more`.
#[cfg(target_os = "linux")]
fn assert_loops_bounded(memory: u64, more: u64, numbers: impl Iterator<Item = usize>) {
    /// How many loops share a process. What one leaves behind counts for the next.
    const SHARED: usize = 16;
    let program = std::env::current_exe().expect("the path of this program");
    let measure = |numbers: &[usize]| -> Vec<(usize, u64, String)> {
        let asked: Vec<String> = numbers.iter().map(usize::to_string).collect();
        let mut command = std::process::Command::new(&program);
        command.args(["--exact", "measured_loops", "--ignored", "--nocapture"]);
        let output = command.env("LOOPS", format!("{memory} {}", asked.join(" "))).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter_map(|line| Some(line.split_once("loop: ")?.1.split(' ').collect::<Vec<_>>()));
        let measured = lines.map(|parts| (parts[0].parse().ok(), parts[1].parse().ok(), parts[2].to_owned()));
        let measured: Vec<_> = measured.filter_map(|(number, grown, end)| Some((number?, grown?, end))).collect();
        assert_eq!(measured.len(), numbers.len(), "{numbers:?}: {text}");
        measured
    };
    let most = memory + memory / 5 + more;
    let all = loops();
    let numbers: Vec<usize> = numbers.collect();
    let batches: Vec<&[usize]> = numbers.chunks(SHARED).collect();
    let measured = parallel::map(&batches, |batch| measure(batch)).into_iter().flatten();
    let mut largest = 0;
    let mut faults = Vec::new();
    for (number, mut grown, mut end) in measured {
        if grown > most {
            // Alone it has only its own memory.
            (_, grown, end) = measure(&[number]).remove(0);
        }
        largest = largest.max(grown);
        if grown > most {
            faults.push(format!("{}: {} MB, {end}", all[number].name, grown >> 20));
        }
    }
    println!("{} loops: {:.2} of the limit at most", numbers.len(), largest as f64 / memory as f64);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn long_texts_of_failures_are_truncated() {
    // The note of a truncation.
    let note = 64;
    let failure_of = |script: &str| failure(script, 256 << 20);
    let long = failure_of(
        "throw Object.assign(new TypeError('m'.repeat(2e7)), { name: 'n'.repeat(2e7), code: 'c'.repeat(1e6) })",
    );
    assert!(
        long.message.len() <= MAX_MESSAGE_BYTES + note && long.message.contains("… (20000000 bytes, cut) …"),
        "{}",
        long.message.len()
    );
    let name = long.name.expect("a name");
    assert!(name.len() <= MAX_NAME_BYTES + note && name.contains("… (20000000 bytes, cut) …"), "{}", name.len());
    assert!(long.stack.expect("a stack").len() <= MAX_MESSAGE_BYTES + MAX_NAME_BYTES + 1024);
    assert!(failure_of("throw 'é'.repeat(1e7)").message.contains("… (20000000 bytes, cut) …"));

    let policy = Policy::preset(Preset::Experimental);
    let source = "await callTool('t:a', { text: 'x'.repeat(1e6) })";
    let script = agentscript::compile(source, &CompileOptions::for_policy(&policy)).expect("the script is valid");
    let mut run = script.start(Inputs::default(), &policy);
    let Progress::Calls(calls) = run.resume([]) else { panic!("it calls a tool") };
    let mut error = ToolError::new("c".repeat(1_000_000), "m".repeat(1_000_000));
    error.details = Some(format!("[{:?}]", "d".repeat(1_000_000)));
    let Progress::Done(outcome) = run.resume([Event::Settled { id: calls[0].id, result: Err(error) }]) else {
        panic!("it ends")
    };
    let failure = outcome.result.expect_err("the tool failed");
    assert!(failure.code.len() <= MAX_NAME_BYTES + note && failure.message.len() <= MAX_MESSAGE_BYTES + note);
    let input = failure.tool_input.as_deref().expect("an input");
    assert!(input.len() <= MAX_TOOL_INPUT_BYTES + note && input.contains("bytes, cut)"), "{input}");
    assert!(
        failure
            .details
            .as_deref()
            .is_some_and(|details| details.len() <= MAX_DETAILS_BYTES && details.contains("cut)"))
    );
    let _: serde_json::Value = serde_json::from_str(&failure.to_json()).expect("it is JSON");

    let many = "eval;".repeat(3000);
    let issues = agentscript::compile(&many, &CompileOptions::for_policy(&policy)).err().expect("it is refused");
    let failure = Failure::from_diagnostics(&many, issues.diagnostics);
    assert_eq!(failure.issues.len(), 50);
}

#[test]
fn too_long_names_of_tools_are_not_looked_up() {
    for call in ["getTool(name)", "await callTool(name, {})"] {
        let script = format!(
            "const name = 't'.repeat(3e7); try {{ {call} }} catch (error) {{ return [error.code, error.message.length < 300, error.toolName.length < 100] }}"
        );
        assert_eq!(
            outcome(&script, 256 << 20).result.expect("it is caught"),
            r#"["TOOL_NOT_FOUND",true,true]"#,
            "{call}"
        );
    }
}

#[test]
fn errors_quote_only_a_part_of_long_values() {
    for act in [
        "[1].find(text)",
        "[1].map(new Error(text))",
        "new Promise(text)",
        "text.length = 1",
        "text.name = 1",
        "text in text",
        "null[text]",
        "Object.freeze({})[text] = 1",
        "({ [text]: 1 }).a.b",
        "({ [text]: null })[text].a",
        "new Map([text])",
        "new Set([1]).union(text)",
        "structuredClone(() => text)",
        "new Intl.NumberFormat('en', { style: text })",
        "new Intl.NumberFormat('en', { numberingSystem: text })",
        "new Intl.NumberFormat().formatRange(text, 1)",
        "new TextDecoder(text)",
        "new TextDecoder('utf-8', text)",
        "new TextEncoder().encodeInto(text, text)",
        "new Uint8Array(1).map(text)",
        "Uint8Array.fromBase64('AA', { alphabet: text })",
        "new ArrayBuffer(1).resize.call(text)",
        "JSON.stringify((() => { const o = {}; o[text] = o; return o })())",
        "await callTool(text)",
        "await callTool('t:a', text)",
    ] {
        let script = format!(
            "const text = 'x'.repeat(1e7); try {{ {act} }} catch (error) {{ return error.message.length < 20_000 }}"
        );
        let result = outcome(&script, 256 << 20).result.map_err(|failure| failure.message);
        assert_eq!(result.as_deref(), Ok("true"), "{act}");
    }
}

#[test]
fn a_flag_ends_a_run_in_the_middle_of_a_built_in() {
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut run = start("try { return [...'x'.repeat(2e7)].sort().join() } finally { return 1 }", 1 << 30);
    run.cancel_on(std::sync::Arc::clone(&flag));
    let setter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let Progress::Done(outcome) = run.resume([]) else { panic!("no tool is called") };
    setter.join().expect("it ends");
    assert_eq!(outcome.result.expect_err("it is cancelled").code, "EXECUTION_ABORTED");
}

use super::*;
use crate::interface::host::{CallKind, Event, Inputs, Progress};
use crate::interface::limits::{Policy, Preset};
use crate::interface::outcome::{Outcome, Status};
use crate::test_host::finish;
use crate::{Call, ScriptCache};
use std::sync::atomic::{AtomicU32, Ordering};

/// Functions of both kinds.
fn linker(dialect: Dialect) -> Linker {
    let mut linker = Linker::new(dialect);
    let define = |linker: &mut Linker| -> Result<(), LinkError> {
        linker.func_wrap("add", |(a, b): (f64, f64)| Ok(a + b))?;
        linker.func_wrap("shout", |(text, times): (String, Option<usize>)| {
            Ok(text.to_uppercase().repeat(times.unwrap_or(1)))
        })?;
        linker.func_wrap("count", |all: Vec<serde_json::Value>| Ok(all.len()))?;
        linker.func_wrap("nothing", |()| Ok(()))?;
        linker.func_wrap("refuse", |(code,): (String,)| -> Result<(), ToolError> {
            Err(ToolError { details: Some("[1]".into()), ..ToolError::new(code, "It is refused") })
        })?;
        linker.func_wrap("end", |()| -> Result<(), ToolError> {
            Err(ToolError { fatal: true, ..ToolError::new("ENDED", "No more") })
        })?;
        linker.func_wrap("large", |(bytes,): (usize,)| Ok("x".repeat(bytes)))?;
        linker.func_async("fetchPage", 2)?;
        Ok(())
    };
    define(&mut linker).expect("the names are free");
    linker
}

fn options(dialect: Dialect) -> CompileOptions {
    CompileOptions { linker: linker(dialect), ..CompileOptions::for_policy(&Policy::preset(Preset::Balanced)) }
}

/// Run a script; calls are answered by their own input, or fail where it begins with `"no`.
fn run_with(script: &str, dialect: Dialect, policy: &Policy) -> (Outcome, Vec<Call>) {
    let script = compile(script, &options(dialect)).map_err(|error| error.failure.message).expect("it compiles");
    let mut made = Vec::new();
    let outcome = finish(script.start(Inputs::default(), policy), |call| {
        made.push(call.clone());
        if call.input.starts_with("[\"no") { Err(ToolError::new("GONE", "It is gone")) } else { Ok(call.input.clone()) }
    });
    (outcome, made)
}

fn run(script: &str, dialect: Dialect) -> String {
    run_with(script, dialect, &Policy::preset(Preset::Balanced)).0.to_json()
}

/// What a script gives, in either dialect.
fn gives(script: &str, result: &str) {
    for &dialect in Dialect::ALL {
        assert_eq!(run(script, dialect), format!(r#"{{"status":"ok","result":{result}}}"#), "{script}");
    }
}

#[test]
fn functions_of_rust_answer_at_once() {
    gives("return add(1, 2)", "3");
    gives("return [shout('a'), shout('b', 2), nothing()]", r#"["A","BB",null]"#);
    gives("return [count(), count(1, [2], { a: undefined })]", "[0,3]");
    gives("return [1, 2, 3].map((x) => add(x, x))", "[2,4,6]");
    gives("return ['a', 'b', 'c'].map(shout)", r#"["","B","CC"]"#);
}

#[test]
fn they_are_values_like_other_functions() {
    gives(
        "return [typeof add, add.name, add.length, add === add, add === shout, fetchPage.length]",
        r#"["function","add",2,true,false,2]"#,
    );
    gives(
        "const f = add.bind(null, 1); return [f(2), add.call(null, 3, 4), String(add)]",
        r#"[3,7,"function add() { [native code] }"]"#,
    );
    gives(
        "const own = { add }; return [own.add(1, 1), JSON.stringify({ add }), new Map([[add, 1]]).get(add)]",
        r#"[2,"{}",1]"#,
    );
    gives("try { add.x = 1 } catch (error) { return error.name }", r#""TypeError""#);
    gives("const add = 1; return add", "1");
}

#[test]
fn pending_functions_are_calls() {
    let (outcome, calls) = run_with("return (await fetchPage('a', 2))[0]", Dialect::Async, &Policy::default());
    assert_eq!(outcome.to_json(), r#"{"status":"ok","result":"a"}"#);
    assert_eq!((calls[0].kind, &*calls[0].tool, &*calls[0].input), (CallKind::Function, "fetchPage", r#"["a",2]"#));
    let script = "const [a, b] = await Promise.all([fetchPage(1), callTool('t', {})]); return [a, b]";
    let (outcome, calls) = run_with(script, Dialect::Async, &Policy::default());
    assert_eq!(outcome.to_json(), r#"{"status":"ok","result":[[1],{}]}"#);
    assert_eq!(calls.iter().map(|call| call.kind).collect::<Vec<_>>(), [CallKind::Function, CallKind::Tool]);
    // In the other dialect the script waits, wherever it is.
    let script = "return [[1, 2].map((x) => fetchPage(x)[0]), call_tool('a', 't', {}).result]";
    let (outcome, calls) = run_with(script, Dialect::Sync, &Policy::default());
    assert_eq!(outcome.to_json(), r#"{"status":"ok","result":[[1,2],{}]}"#);
    assert_eq!(calls.len(), 3);
}

#[test]
fn errors_can_be_caught() {
    let shown = r#"["Error","It is refused","E1",[1]]"#;
    gives("try { refuse('E1') } catch (e) { return [e.name, e.message, e.code, e.details] }", shown);
    let message = r#""TypeError: add: invalid type: string \"1\", expected f64""#;
    gives("try { add('1', 2) } catch (e) { return String(e) }", message);
    gives("try { add(1) } catch (e) { return e.message }", r#""add: invalid type: null, expected f64""#);
    let cycle = "const a = []; a.push(a); try { count(a) } catch (e) { return e.name }";
    gives(cycle, r#""TypeError""#);
    let script = "try { await fetchPage('no') } catch (e) { return [e instanceof Error, e.message, e.code, e.toolName ?? null] }";
    let shown = r#"{"status":"ok","result":[true,"It is gone","GONE",null]}"#;
    assert_eq!(run(script, Dialect::Async), shown);
    assert_eq!(run(&script.replace("await ", ""), Dialect::Sync), shown);
    let script = "return (await Promise.allSettled([fetchPage('no'), fetchPage('yes')])).map((one) => one.status)";
    assert_eq!(run(script, Dialect::Async), r#"{"status":"ok","result":["rejected","fulfilled"]}"#);
}

#[test]
fn fatal_errors_and_those_that_nobody_catches_end_the_run() {
    for &dialect in Dialect::ALL {
        let policy = Policy::default();
        let failure = run_with("try { end() } catch { return 1 }", dialect, &policy).0.result.expect_err("it ends");
        assert_eq!((failure.status, &*failure.code), (Status::IllegalAccess, "ENDED"));
        let failure = run_with("refuse('E2')", dialect, &policy).0.result.expect_err("it fails");
        assert_eq!((failure.status, &*failure.message), (Status::RuntimeError, "It is refused"));
        assert!(failure.location.is_some());
    }
}

#[test]
fn waiting_is_impossible_in_conversions() {
    let script = "try { return `${{ toString() { return fetchPage(1)[0] } }}` } catch (e) { return e.message }";
    let json = run(script, Dialect::Sync);
    assert!(json.contains("fetchPage cannot be used inside of an implicit conversion"), "{json}");
    let called = run_with(script, Dialect::Sync, &Policy::preset(Preset::Balanced)).1;
    assert_eq!(called.len(), 0);
}

#[test]
fn limits_hold() {
    let code = |script: &str, change: &dyn Fn(&mut Policy)| {
        let mut policy = Policy::preset(Preset::Balanced);
        change(&mut policy);
        run_with(script, Dialect::Async, &policy).0.result.expect_err("a limit").code
    };
    let calls = "for (let i = 0; i < 5; i++) await fetchPage(i)";
    assert_eq!(code(calls, &|policy| policy.limits.max_tool_calls = 3), "MAX_TOOL_CALLS_EXCEEDED");
    let work = "for (let i = 0; i < 1000; i++) nothing()";
    assert_eq!(code(work, &|policy| policy.limits.max_steps = 20_000), "STEP_LIMIT");
    let data = "const list = Array.from({ length: 10_000 }, () => 'some text'); for (;;) count(list)";
    assert_eq!(code(data, &|policy| policy.limits.max_steps = 100_000), "STEP_LIMIT");
    let answer = "return large(20_000_000).length";
    assert_eq!(code(answer, &|policy| policy.limits.max_memory_bytes = 4 << 20), "MEMORY_LIMIT");
    let kept = "const all = []; for (;;) all.push(large(100_000))";
    assert_eq!(code(kept, &|policy| policy.limits.max_memory_bytes = 4 << 20), "MEMORY_LIMIT");
}

#[test]
fn time_is_looked_at_after_each_call() {
    let mut linker = Linker::default();
    linker
        .func_wrap("slow", |()| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok(())
        })
        .expect("the name is free");
    let mut policy = Policy::preset(Preset::Balanced);
    policy.limits.timeout_ms = 20;
    let options = CompileOptions { linker, ..CompileOptions::for_policy(&policy) };
    let script = compile("let n = 0; for (; n < 1000; n++) slow(); return n", &options).expect("it compiles");
    let began = std::time::Instant::now();
    let Progress::Done(outcome) = script.start(Inputs::default(), &policy).resume([]) else { panic!("it ends") };
    assert_eq!(outcome.result.expect_err("it is slow").code, "TIMEOUT");
    assert!(began.elapsed().as_millis() < 1000);
}

#[test]
fn names_that_mean_something_are_refused() {
    let mut linker = linker(Dialect::Async);
    for name in
        ["Math", "fetch", "Headers", "undefined", "NaN", "callTool", "call_tool", "codecallContext", "input", "console"]
    {
        let error = linker.func_async(name, 0).expect_err(name);
        assert_eq!(error, LinkError::BuiltIn(name.into()));
        assert!(error.to_string().contains("has the name of a built-in"));
    }
    assert_eq!(linker.func_wrap("add", |()| Ok(())).expect_err("twice"), LinkError::Duplicate("add".into()));
    for (name, reason) in [
        ("", "it is no identifier"),
        ("a.b", "it is no identifier"),
        ("2nd", "it is no identifier"),
        ("a b", "it is no identifier"),
    ] {
        assert_eq!(linker.func_async(name, 0).expect_err(name), LinkError::Name(name.into(), reason.into()));
    }
    for name in ["class", "await", "if", "window", "eval"] {
        assert!(matches!(linker.func_async(name, 0), Err(LinkError::Name(..))), "{name}");
    }
}

#[test]
fn names_are_known_when_a_script_is_compiled() {
    let all = linker(Dialect::Async);
    let names: Vec<&str> = all.names().collect();
    assert!(["callTool", "mcpLog", "add", "fetchPage", "codecallContext"].iter().all(|name| names.contains(name)));
    assert!(!names.contains(&"call_tool"));
    let wrong = run_with("return ad(1, 2)", Dialect::Async, &Policy::default()).0.result.expect_err("it is misspelt");
    assert_eq!((&*wrong.message, wrong.hint.as_deref()), ("ad is not defined", None));
    let wrong = run_with("fetchPages(1)", Dialect::Async, &Policy::default()).0.result.expect_err("it is misspelt");
    assert_eq!(wrong.hint.as_deref(), Some("did you mean `fetchPage`?"));
    let options = CompileOptions { disabled_globals: vec!["add".into()], ..options(Dialect::Async) };
    let refused = compile("return add(1, 2)", &options).err().expect("it is disabled");
    assert_eq!(refused.diagnostics[0].code.as_str(), "VALIDATION_ERROR");
    assert!(compile("add = 1", &self::options(Dialect::Async)).is_err());
}

#[test]
fn caches_tell_tables_apart() {
    let cache = ScriptCache::default();
    let with = |function: fn((f64,)) -> Result<f64, ToolError>| {
        let mut linker = Linker::default();
        linker.func_wrap("f", function).expect("the name is free");
        CompileOptions { linker, ..CompileOptions::default() }
    };
    let (double, square, plain) = (with(|(x,)| Ok(x * 2.0)), with(|(x,)| Ok(x * x)), CompileOptions::default());
    let result = |options: &CompileOptions| {
        let script = cache.compile("return f(5)", options).expect("it compiles");
        let Progress::Done(outcome) = script.start(Inputs::default(), &Policy::default()).resume([]) else {
            panic!("it ends")
        };
        outcome.result.map_err(|failure| failure.message)
    };
    for _ in 0..2 {
        assert_eq!(result(&double).as_deref(), Ok("10"));
        assert_eq!(result(&square).as_deref(), Ok("25"));
        assert_eq!(result(&plain), Err("f is not defined".into()));
    }
    assert_eq!(cache.len(), 3);
    assert_eq!(result(&double.clone()).as_deref(), Ok("10"));
    assert_eq!((cache.len(), CompileOptions::default() == plain, double == square), (3, true, false));
}

#[test]
fn functions_can_be_shared_between_threads() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let mut linker = Linker::default();
    linker.func_wrap("note", |()| Ok(CALLS.fetch_add(1, Ordering::Relaxed) < 4)).expect("the name is free");
    let options = CompileOptions { linker, ..CompileOptions::default() };
    let script = compile("return note()", &options).expect("it compiles");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| script.start(Inputs::default(), &Policy::default()).resume([]));
        }
    });
    assert_eq!(CALLS.load(Ordering::Relaxed), 4);
}

#[test]
fn pauses_and_collections_change_nothing() {
    let script = "const all = []; for (let i = 0; i < 50; i++) { all.push(await fetchPage(i, shout('a', i % 3))) } return [all.length, all[49]]";
    let compiled = compile(script, &options(Dialect::Async)).expect("it compiles");
    for stress in [crate::Stress::default(), crate::Stress::pauses(1), crate::Stress::collections(1)] {
        let mut run = compiled.start(Inputs::default(), &Policy::preset(Preset::Balanced));
        run.stress(stress);
        let mut events = Vec::new();
        let outcome = loop {
            match run.resume(std::mem::take(&mut events)) {
                Progress::Done(outcome) => break outcome,
                Progress::Yielded => {}
                Progress::Calls(calls) => {
                    events.extend(calls.into_iter().map(|call| Event::Settled { id: call.id, result: Ok(call.input) }))
                }
            }
        };
        assert_eq!(outcome.to_json(), r#"{"status":"ok","result":[50,[49,"A"]]}"#);
    }
}

#[test]
fn stateless_runs_replay_them() {
    use crate::stateless::{Journal, Step, StepOptions, step};
    let script = "const a = await fetchPage(shout('one')); try { await fetchPage('no') } catch (e) { return [a, e.code, add(1, 2)] }";
    let options = StepOptions { linker: linker(Dialect::Async), ..StepOptions::default() };
    let tools = Arc::new(crate::NoTools);
    let mut journal = Journal::new("code_1", 0, script, &options);
    let mut rounds = 0;
    let outcome = loop {
        match step(script, tools.clone(), &journal, &options) {
            Step::Calls(calls) => {
                journal = calls.journal;
                rounds += 1;
                for call in calls.new {
                    assert_eq!((call.kind, &*call.tool), (CallKind::Function, "fetchPage"));
                    let failed = call.input.contains("no");
                    let result = if failed { Err(ToolError::new("GONE", "It is gone")) } else { Ok(call.input) };
                    journal.answer(call.number, result).expect("the call waits");
                }
            }
            Step::Done(done) => break done.outcome,
            Step::Diverged(divergence) => panic!("{divergence}"),
            Step::Deadlock(failure) => panic!("{}", failure.message),
        }
    };
    assert_eq!((outcome.to_json().as_str(), rounds), (r#"{"status":"ok","result":[["ONE"],"GONE",3]}"#, 2));
    // Without the function the script is another one.
    let other = StepOptions { linker: Linker::default(), ..options };
    assert!(matches!(step(script, tools, &journal, &other), Step::Diverged(_)));
}

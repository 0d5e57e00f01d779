//! Deeply nested scripts and values have a result or an error. They never overflow the native stack, neither when they are
//! created nor when they are used or dropped.

use agentscript::{
    CompileOptions, Event, FixedClock, Inputs, Loops, NoTools, Outcome, Policy, Preset, Status, compile,
};
use codecall_tests::{host, parallel};
use std::sync::Arc;

const DEEP: usize = 20_000;
/// Size of the native stack, in bytes: less than that of threads that run scripts.
const STACK: usize = 1 << 20;

fn policy() -> Policy {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.loops = Loops::All;
    policy.limits.max_script_bytes = 8 << 20;
    policy.limits.timeout_ms = 60_000;
    policy
}

/// Compiles and runs a script whose tools all return `answer`.
fn run(script: &str, context: Option<String>, answer: &str) -> Outcome {
    let policy = policy();
    let script = match compile(script, &CompileOptions::for_policy(&policy)) {
        Ok(script) => script,
        Err(error) => return Outcome::not_compiled(error.failure),
    };
    let inputs =
        Inputs { context, tools: Arc::new(NoTools), clock: Arc::new(FixedClock::default()), seed: 1, slice: None };
    host::finish(script.start(inputs, &policy), |_, calls| {
        calls.into_iter().map(|call| Event::Settled { id: call.id, result: Ok(answer.into()) }).collect()
    })
}

/// Runs a task on a thread with a small stack. If it overflows, the name of the thread is printed.
fn on_small_stack<T: Send + 'static>(name: &str, task: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().name(name.replace('\0', " ")).stack_size(STACK).spawn(task);
    thread.expect("a thread starts").join().unwrap_or_else(|_| panic!("{name}: panicked"))
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Runs a script on a small stack. Asserts that it ends with a result, or with an error that has a code and a message.
fn run_on_small_stack(script: String, context: Option<String>, answer: String) -> Outcome {
    let name = short(&script);
    let outcome = on_small_stack(&name, move || run(&script, context, &answer));
    if let Err(failure) = &outcome.result {
        assert!(!failure.message.is_empty() && !failure.code.is_empty(), "{name}: {failure:?}");
        assert!(failure.status != Status::Timeout, "{name}: {failure:?}");
    }
    outcome
}

fn code(outcome: &Outcome) -> &str {
    outcome.result.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok")
}

#[test]
fn nested_source() {
    const NESTED: &[(&str, &str, &str)] = &[
        ("(", "a", ")"),
        ("[", "", "]"),
        ("{", "", "}"),
        ("({a:", "1", "})"),
        ("!", "a", ""),
        ("- ", "a", ""),
        ("typeof ", "a", ""),
        ("await ", "a", ""),
        ("new ", "a", ""),
        ("new Map(", "", ")"),
        ("1+", "1", ""),
        ("a**", "1", ""),
        ("a??", "1", ""),
        ("a=", "1", ""),
        ("a,", "a", ""),
        ("...", "a", ""),
        ("a", "", ".b"),
        ("a", "", "?.b"),
        ("a", "", "[0]"),
        ("a", "", "()"),
        ("a", "", "``"),
        ("a[", "0", "]"),
        ("f(", "", ")"),
        ("f(()=>", "1", ")"),
        ("()=>", "1", ""),
        ("async()=>", "1", ""),
        ("(a=", "1", ")=>1"),
        ("a?", "1", ":1"),
        ("a?1:", "1", ""),
        ("`${", "1", "}`"),
        ("if(a){}else ", "a", ""),
        ("if(a)", "a", " else a"),
        ("for(;;)", "a", ""),
        ("for(const a of b)", "a", ""),
        ("while(a)", "a", ""),
        ("do ", "a", ";while(a)"),
        ("a:", "a", ""),
        ("try{", "a", "}finally{}"),
        ("try{}catch{", "a", "}"),
        ("switch(a){case 1:", "a", "}"),
        ("function f(){", "", "}"),
        ("({a(){", "", "}})"),
        ("let [", "a", "]=1"),
        ("([", "a", "]=1)"),
        ("let {a:", "a", "}=1"),
        ("let x:A<", "B", ">"),
        ("let x:[", "B", "]"),
        ("let x:{a:", "B", "}"),
        ("let x:(a:", "B", ")=>C"),
        ("a as ", "B", ""),
        ("/(", "a", ")/"),
        ("/* ", "a", ""),
        ("\"\\", "a", "\""),
    ];
    for (open, middle, close) in NESTED {
        // A declaration is not repeated.
        let (head, open) = open
            .strip_prefix("let ")
            .map_or(("", *open), |rest| rest.strip_prefix("x:").map_or(("let ", rest), |inner| ("let x:", inner)));
        for closed in [DEEP, 0] {
            let source = format!("{head}{}{middle}{}", open.repeat(DEEP), close.repeat(closed));
            run_on_small_stack(source, None, String::new());
        }
    }
}

/// Statements that create a deeply nested value in the variable `deep`.
const BUILDERS: &[&str] = &[
    "let deep = []; for (let i = 0; i < DEEP; i++) deep = [deep];",
    "let deep = {}; for (let i = 0; i < DEEP; i++) deep = {a: deep};",
    "let deep = 1; for (let i = 0; i < DEEP; i++) deep = new Map([[1, deep]]);",
    "let deep = 1; for (let i = 0; i < DEEP; i++) deep = new Set([deep]);",
    "let deep = new Error('inner'); for (let i = 0; i < DEEP; i++) deep = new Error('outer', {cause: deep});",
    "let deep = () => 1; for (let i = 0; i < DEEP; i++) { const inner = deep; deep = () => inner(); }",
    "let deep = () => 1; for (let i = 0; i < DEEP; i++) { const inner = deep; deep = async () => await inner(); }",
    "let deep = {toString: () => 'a'}; for (let i = 0; i < DEEP; i++) { const inner = deep; deep = {toString: () => `${inner}`}; }",
    "let deep = {toJSON: () => 'a'}; for (let i = 0; i < DEEP; i++) { const inner = deep; deep = {toJSON: () => [inner]}; }",
    "let deep = {then: (f) => f(1)}; for (let i = 0; i < DEEP; i++) { const inner = deep; deep = {then: (f) => f(inner)}; }",
    "let deep = Promise.resolve(1); for (let i = 0; i < DEEP; i++) deep = deep.then((x) => x + 1);",
    "let deep = Promise.resolve(1); for (let i = 0; i < DEEP; i++) deep = Promise.all([deep]);",
    "let deep = Promise.reject(1); for (let i = 0; i < DEEP; i++) deep = deep.finally(() => {});",
    "let deep = Promise.resolve(1); for (let i = 0; i < DEEP; i++) { const inner = deep; deep = (async () => inner)(); }",
    "let deep = Promise.resolve(1); for (let i = 0; i < DEEP; i++) { const inner = deep; deep = new Promise((f) => f(inner)); }",
    "let deep = [Promise.resolve(1)]; for (let i = 0; i < DEEP; i++) deep = [deep];",
    "let deep = (await callTool('deep', {})).a;",
    "let deep = codecallContext.a;",
    "let deep = JSON.parse('['.repeat(DEEP) + ']'.repeat(DEEP));",
    "let deep = JSON.parse('{\"a\":'.repeat(DEEP) + '1' + '}'.repeat(DEEP));",
];

/// Statements that use the value.
const USES: &[&str] = &[
    "return deep;",
    "return JSON.stringify(deep).length;",
    "return JSON.stringify(deep, (key, value) => value).length;",
    "return JSON.stringify(deep, ['a']).length;",
    "const copy = structuredClone(deep); deep = null; return typeof copy;",
    "console.log(deep); console.log('%s %j %d %o', deep, deep, deep, deep);",
    "return [deep == 'x', deep < 1, deep + 1];",
    "return `${deep}`.length;",
    "return [deep].join().length;",
    "return [deep].flat(Infinity).length;",
    "return [deep, deep].sort().length;",
    "return [deep].indexOf(deep) + [deep].includes({});",
    "return typeof deep === 'function' ? deep() : Object.entries(deep);",
    "throw deep;",
    "await deep;",
    "return await Promise.all([deep, deep]);",
    "return await callTool('deep', {deep});",
    "mcpLog('info', 'message', {deep}); mcpNotify('event', {deep});",
    "Object.freeze(deep); return {...deep};",
    "deep = null; let junk = []; for (let i = 0; i < 1000; i++) junk = Array(1000).fill(i);",
];

/// Further uses for a single value, because the result has the square of its depth as length.
const INDENTED: &[&str] = &["return JSON.stringify(deep, null, 1).length;"];

#[test]
fn nested_values() {
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(DEEP), "]".repeat(DEEP));
    let uses = |first: bool| USES.iter().chain(INDENTED).take(USES.len() + usize::from(first));
    let builders: Vec<(usize, &&str)> = BUILDERS.iter().enumerate().collect();
    parallel::map(&builders, |(index, builder)| {
        for usage in uses(*index == 0) {
            let script = format!("{}\n{usage}", builder.replace("DEEP", &DEEP.to_string()));
            let context = builder.contains("codecallContext").then(|| nested.clone());
            run_on_small_stack(script, context, nested.clone());
        }
    });
}

#[test]
fn deep_recursion() {
    const FUNCTIONS: &[&str] = &[
        "const f = (n) => f(n + 1);",
        "const f = (n) => f(n + 1) + 1;",
        "function f(n) { return g(n) + 1; } function g(n) { return f(n + 1) + 1; }",
        "const f = (n) => [n].map(f);",
        "const f = (n) => [n, n].sort(f);",
        "const f = (n) => [n].reduce(f, 0);",
        "const f = (n) => Array.from([n], f);",
        "const f = (n) => 'a'.replace('a', f);",
        "const f = (n) => JSON.parse('[1]', f);",
        "const f = (n) => JSON.stringify({a: 1}, f);",
        "const f = (n) => `${{toString: f}}`;",
        "const f = (n) => ({valueOf: f}) * 1;",
        "const f = (n) => JSON.stringify({toJSON: f});",
        "const f = (n) => [{toString: f}].join();",
        "const f = (n) => [{toString: f}, 1].sort();",
        "const f = (n) => ({})[{toString: f}];",
        "const f = (n) => new Map([[1, 1]]).forEach(f);",
        "const f = (n) => new Promise(f);",
        "const f = (n) => Object.groupBy([1], f);",
        "const f = (n) => { try { return f(n + 1); } finally { n; } };",
        "const f = ([n = f([])]) => n;",
        "const f = (...n) => f(...n, 1);",
        "const f = async (n) => await f(n + 1);",
        "const f = async (n) => { await null; return await f(n + 1); };",
        "const f = (n) => Promise.resolve(n).then(f);",
        "const f = async (n) => await parallel([f]);",
        "const f = (n) => ({then: f});",
        "const f = (n) => console.log({toString: f}, `${{toString: f}}`);",
        "const f = (n) => String.raw`${{toString: f}}`;",
    ];
    for function in FUNCTIONS {
        for usage in ["return await f(0);", "try { return await f(0); } catch (error) { return `${error.message}`; }"] {
            let outcome = run_on_small_stack(format!("{function}\n{usage}"), None, String::new());
            assert!(outcome.stats.steps > 0, "{function} did not run: {:?}", outcome.result);
        }
    }
    let caught = run_on_small_stack(
        "const f = () => f() + 1; try { f(); } catch (error) { return error.name; }".into(),
        None,
        String::new(),
    );
    assert_eq!(caught.result.ok().as_deref(), Some("\"RangeError\""));
}

#[test]
fn deep_scripts_that_succeed() {
    let n = DEEP;
    for script in [
        format!("let p = Promise.resolve(0); for (let i = 0; i < {n}; i++) p = p.then((x) => x + 1); return await p === {n};"),
        "let s = ''; for (let i = 0; i < 9000; i++) s = 'a' + s + 'b'; return s.length === 18000 && s.indexOf('b') === 9000;".into(),
        format!("let f = async (i) => i; let sum = 0; for (let i = 0; i < {n}; i++) sum += await f(1); return sum === {n};"),
        format!("return {} === {n};", "1 + ".repeat(n - 1) + "1"),
        format!("return '{}'.length === {n};", "a".repeat(n)),
        format!("return [{}].length === {n};", "[1],".repeat(n)),
    ] {
        let outcome = run_on_small_stack(script.clone(), None, String::new());
        assert_eq!((code(&outcome), outcome.result.as_deref().ok()), ("ok", Some("true")), "{}", short(&script));
    }
}

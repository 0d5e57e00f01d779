//! A sweep over the forms that consume a value, each with the promise of a call, and over correct uses.

use crate::test_host::{Users, finish};
use crate::{CompileOptions, Inputs, Outcome, Policy, Preset, compile};
use std::sync::Arc;

/// An app `users` that has every tool.
const USERS: Users = Users { tools: &[], describes: None };

/// The outcome of a script whose calls all give the same object.
fn run(script: &str) -> Outcome {
    let policy = Policy::preset(Preset::Experimental);
    let compiled = compile(script, &CompileOptions::for_policy(&policy).with_tools(&USERS));
    let compiled = compiled.unwrap_or_else(|error| panic!("{script}: {:?}", error.failure.message));
    let run = compiled.start(Inputs { tools: Arc::new(USERS), ..Inputs::default() }, &policy);
    finish(run, |_| Ok(r#"{"id":1,"name":"Ada","rows":[{"n":1}]}"#.into()))
}

fn warnings(script: &str) -> Vec<String> {
    run(script).warnings
}

/// Each form that consumes `p`, and how the warning names it.
const FORMS: &[(&str, &str)] = &[
    ("p.name", "`.name` is read"),
    ("p?.name", "`.name` is read"),
    ("p.name.first", "`.name` is read"),
    ("p.length", "`.length` is read"),
    ("p['a name']", "`[\"a name\"]` is read"),
    ("p[0]", "`[0]` is read"),
    ("p['na' + 'me']", "`.name` is read"),
    ("p.name ?? 'none'", "`.name` is read"),
    ("p.name?.first", "`.name` is read"),
    ("p.rows?.()", "`.rows` is read"),
    ("p.toString()", "put into a text"),
    ("p.rows.map((row) => row.n)", "`.rows` is read"),
    ("p.map((row) => row.n)", "`.map` is called"),
    ("p.push(1)", "`.push` is called"),
    ("p.name()", "`.name` is called"),
    ("p()", "the promise is called"),
    ("(() => { const {name} = p; })()", "`.name` is read"),
    ("(({name}) => name)(p)", "`.name` is read"),
    ("(() => { const {...rest} = p; })()", "properties of the promise are listed"),
    ("(() => { const [first] = p; })()", "iterated over"),
    ("(([first]) => first)(p)", "iterated over"),
    ("[...p]", "iterated over"),
    ("Math.max(...p)", "iterated over"),
    ("((...all) => all)(...p)", "iterated over"),
    ("(() => { for (const item of p) {} })()", "iterated over"),
    ("(() => { for (const key in p) {} })()", "properties of the promise are listed"),
    ("(async () => { for await (const item of p) {} })().catch(() => 0)", "iterated over"),
    ("new Map(p)", "iterated over"),
    ("new Set(p)", "iterated over"),
    ("Object.fromEntries(p)", "iterated over"),
    ("Promise.all(p).catch(() => 0)", "iterated over"),
    ("Array.from(p)", "iterated over"),
    ("({...p})", "properties of the promise are listed"),
    ("Object.assign({}, p)", "properties of the promise are listed"),
    ("Object.keys(p)", "properties of the promise are listed"),
    ("Object.values(p)", "properties of the promise are listed"),
    ("Object.entries(p)", "properties of the promise are listed"),
    ("JSON.stringify(p)", "written as JSON"),
    ("JSON.stringify({user: [p]})", "written as JSON"),
    ("callTool('users:list', {user: p})", "written as JSON"),
    ("users.list({user: p})", "written as JSON"),
    ("`user ${p}`", "put into a text"),
    ("String(p)", "a number or a text"),
    ("'' + p", "operand of `+`"),
    ("p + 1", "operand of `+`"),
    ("1 + p", "operand of `+`"),
    ("p - 1", "operand of `-`"),
    ("2 * p", "operand of `*`"),
    ("p / 2", "operand of `/`"),
    ("p % 2", "operand of `%`"),
    ("p ** 2", "operand of `**`"),
    ("p & 1", "operand of `&`"),
    ("p | 0", "operand of `|`"),
    ("p ^ 1", "operand of `^`"),
    ("p << 1", "operand of `<<`"),
    ("p >> 1", "operand of `>>`"),
    ("p >>> 0", "operand of `>>>`"),
    ("p < 1", "operand of `<`"),
    ("p <= 1", "operand of `<=`"),
    ("1 > p", "operand of `>`"),
    ("p >= 1", "operand of `>=`"),
    ("'name' in p", "operand of `in`"),
    ("+p", "a number or a text"),
    ("-p", "a number or a text"),
    ("~p", "a number or a text"),
    ("(() => { let n = p; n++; })()", "a number or a text"),
    ("(() => { let n = p; --n; })()", "a number or a text"),
    ("(() => { let sum = 0; sum += p; })()", "operand of `+`"),
    ("(() => { let text = ''; text += p; })()", "operand of `+`"),
    ("Number(p)", "a number or a text"),
    ("parseInt(p)", "a number or a text"),
    ("Math.max(p, 1)", "a number or a text"),
    ("new Date(p)", "a number or a text"),
    ("'abc'.includes(p)", "a number or a text"),
    ("({a: 1})[p]", "a number or a text"),
    ("[1, 2].join(p)", "a number or a text"),
    ("[p, p].join()", "a number or a text"),
    ("encodeURIComponent(p)", "a number or a text"),
    ("p === 'x'", "compared with a value"),
    ("p === 1", "compared with a value"),
    ("p !== true", "compared with a value"),
    ("(() => { const x = {}; return p === x; })()", "compared with a value"),
    ("p == 1", "operand of `==`"),
    ("p != 'x'", "operand of `!=`"),
    ("(() => { switch (p) { case 'x': return 1; } })()", "compared with a value"),
    ("p ? 1 : 2", "a condition, which always holds"),
    ("!p", "a condition, which always holds"),
    ("!!p", "a condition, which always holds"),
    ("p && 1", "a condition, which always holds"),
    ("p || 1", "a condition, which always holds"),
    ("(() => { if (p) return 1; })()", "a condition, which always holds"),
    ("(() => { while (p) break; })()", "a condition, which always holds"),
    ("(() => { for (; p; ) break; })()", "a condition, which always holds"),
    ("(() => { do {} while (!p); })()", "a condition, which always holds"),
    ("Boolean(p)", "a condition, which always holds"),
    ("[1].filter(() => p)", "a condition, which always holds"),
    ("[1].some(() => p)", "a condition, which always holds"),
    ("[2, 1].sort(() => p)", "a number or a text"),
    ("console.log(p)", "the promise is logged"),
    ("console.log('user', {p})", "the promise is logged"),
];

#[test]
fn each_form_that_consumes_the_promise_of_a_call_is_named() {
    let mut wrong = Vec::new();
    for (form, named) in FORMS {
        for (call, shown) in
            [("users.get({id: 1})", "`users.get(…)`"), ("callTool('users:get', {id: 1})", "`callTool('users:get', …)`")]
        {
            // With an object of the script that is written to, properties take their slow path.
            let script = format!("const p = {call};\nlet r;\ntry {{ r = {form}; }} catch {{}}\nreturn 1;");
            let outcome = run(&script);
            let start = format!("line 1, column 11: {shown} is not awaited: ");
            let first = outcome.warnings.first().cloned().unwrap_or_default();
            if !first.starts_with(&start) || !first.contains(named) || !first.contains("; write `") {
                wrong.push(format!("{form}: {:?}", outcome.warnings));
            }
            assert_eq!(outcome.result.as_deref().ok(), Some("1"), "{form}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_promise_is_named_also_when_it_is_settled() {
    for (form, named) in FORMS.iter().filter(|(_, named)| !named.contains("always") && !named.contains("compared")) {
        let script =
            format!("const p = users.get({{}});\nawait users.list();\ntry {{ {form}; }} catch {{}}\nreturn 1;");
        let found = warnings(&script);
        assert!(found.first().is_some_and(|first| first.contains(named)), "{form}: {found:?}");
    }
}

#[test]
fn correct_uses_have_no_warning() {
    let scripts = [
        "const u = await users.get({}); return u.name",
        "return users.get({})",
        "return {user: users.get({}), all: [users.get({}), users.list({})]}",
        "return (await users.get({})).name",
        "return users.get({}).then((user) => user.name)",
        "return users.get({}).catch(() => 0).finally(() => 0).then((user) => user.name)",
        "const all = await Promise.all([1, 2].map((id) => users.get({id}))); return all[0].name",
        "const [a, b] = await Promise.all([users.get({}), users.list({})]); return a.name + b.name",
        "const all = []; for (const id of [1, 2]) all.push(users.get({id})); const done = []; for (const one of all) done.push((await one).name); return done",
        "const p = users.get({}); return p instanceof Promise && typeof p === 'object' ? (await p).name : 0",
        "const p = users.get({}); return typeof p.then === 'function' ? (await p).name : 0",
        "const p = users.get({}); const q = p; return [p === q, (await p).name]",
        "const known = {}; const get = (id) => known[id] ||= users.get({id}); return [(await get(1)).name, (await get(1)).name]",
        "const known = {}; const get = (id) => { if (!known[id]) known[id] = users.get({id}); return known[id]; }; return [(await get(1)).name, (await get(1)).name]",
        "const known = new Map(); const get = async (id) => { if (!known.has(id)) known.set(id, users.get({id})); return known.get(id); }; return [(await get(1)).name, (await get(1)).name]",
        "let p = null; if (p === null) p = users.get({}); if (p !== undefined && p != null) return {p}",
        "const p = users.get({}); console.log(p); return (await p).name",
        "const first = await Promise.race([users.get({}), users.list({})]); return first.name",
        "const settled = await Promise.allSettled([users.get({})]); return settled[0].value.name",
        "const all = await parallel([() => users.get({}), () => users.list({})]); return all.map((one) => one.name)",
        "const all = await parallel([1, 2], (id) => users.get({id})); return all.map((one) => one.name)",
        "async function f() { return users.get({}); } return (await f()).name",
        "for await (const one of [users.get({}), users.list({})]) console.log(one.name); return 1",
        "users.get({}); return 1",
        "const answer = await callTool('users:get', {}, {throwOnError: false}); return answer.success ? answer.data.name : answer.error",
        "const set = new Set([users.get({})]); return [set.size, (await [...set][0]).name]",
        "const p = users.get({}); p.label = 'x'; return [p.label, (await p).name]",
        "const u = await users.get({}); return [u.phone ?? 'none', u.address?.city ?? 'none']",
        "async function* pages() { yield users.get({}); yield users.list({}); } const all = []; for await (const page of pages()) all.push(page.name); return all",
        "const f = async (n) => n > 0 ? f(n - 1) : users.get({}); return (await f(3)).name",
        "const {promise, resolve} = Promise.withResolvers(); resolve(1); return promise",
        "return [1].map(async (id) => (await users.get({id})).name)",
    ];
    for script in scripts {
        let outcome = run(script);
        assert!(outcome.result.is_ok(), "{script}: {:?}", outcome.result);
        assert_eq!(outcome.warnings, [""; 0], "{script}");
    }
}

#[test]
fn the_first_warning_names_the_place_and_the_fix() {
    let lines = [
        (
            "const total = NaN;\nconst name = users.get({id: 1}).name;\nreturn {name, total};",
            "line 2, column 14: `users.get(…)` is not awaited: `.name` is read from the promise; write `(await users.get(…)).name`",
        ),
        (
            "const u = users.get({id: 1});\nreturn u.name;",
            "line 1, column 11: `users.get(…)` is not awaited: `.name` is read from the promise in line 2; write `await users.get(…)` there",
        ),
        (
            "const rows = [1, 2, 3].map((id) => users.get({id}));\nreturn rows.map((row) => row.name);",
            "line 1, column 36: `users.get(…)` is not awaited: `.name` is read from the promise in line 2 (3 times); \
             write `await users.get(…)` there, or `await Promise.all(promises)`",
        ),
        (
            "const rows = [1, 2].map(async (id) => (await users.get({id})).rows);\nreturn rows.map((row) => row.length);",
            "line 1, column 14: `[1, 2].map(…)` gets promises from its callback: `.length` is read from the promise in line 2 \
             (2 times); write `await Promise.all([1, 2].map(…))`, and use the values",
        ),
        (
            "const ids = [1, 2];\nreturn ids.filter(async (id) => (await users.get({id})).id === id);",
            "line 2, column 8: `ids.filter(…)` gets promises from its callback: the promise is a condition, which always holds \
             (2 times); get the values before: `await Promise.all(list.map(…))`",
        ),
        (
            "async function load() { return users.get({}); }\nreturn load().name;",
            "line 2, column 8: `load(…)` is not awaited: `.name` is read from the promise; write `(await load(…)).name`",
        ),
        (
            "const all = Promise.all([users.get({})]);\nreturn all.length;",
            "line 1, column 13: `Promise.all(…)` is not awaited: `.length` is read from the promise in line 2; write `await Promise.all(…)` there",
        ),
        (
            "const p = users.get({}).then((user) => user);\nreturn `${p}`;",
            "line 2, column 8: a promise is not awaited: the promise is put into a text; write `await` before it",
        ),
    ];
    for (script, expected) in lines {
        assert_eq!(warnings(script).first().map(String::as_str), Some(expected), "{script}");
    }
    // Whatever else there is comes after it.
    assert_eq!(warnings(lines[0].0).len(), 3);
}

#[test]
fn a_failed_run_has_the_warning_too() {
    let outcome = run("const rows = users.list({});\nreturn rows.map((row) => row.name);");
    assert_eq!(outcome.result.expect_err("there is no such method").message, "rows.map is not a function");
    let expected = "line 1, column 14: `users.list(…)` is not awaited: `.map` is called on the promise in line 2; write `await users.list(…)` there";
    assert_eq!(outcome.warnings, [expected]);
}

#[test]
fn there_are_few_warnings_and_they_are_short() {
    let many: String = (0..200).map(|number| format!("users.get({{}}).field{number};\n")).collect();
    assert_eq!(warnings(&format!("{many}return 1")).len(), super::MAX_USES);
    let long = "x".repeat(100_000);
    let found = warnings(&format!(
        "const p = users.get({{}}); const t = await users.get({{}}); return [p['{long}'], p.{long}, t.name]"
    ));
    assert!(found.iter().all(|text| text.len() < 600), "{found:?}");
    let found = warnings("for (let i = 0; i < 20000; i++) (async () => 1)().name; return 1");
    assert!(found.len() == 1 && found[0].contains("(20000 times)"), "{found:?}");
}

#[test]
fn a_result_that_is_undefined_says_why() {
    let cases = [
        (
            "const x = 1;",
            "the result is undefined: the script has no `return` and ends with no expression; write `return value`",
        ),
        (
            "const x = await users.get({});\nreturn x.absent;",
            "line 2, column 1: the result is undefined, as is the value of `return`",
        ),
        (
            "async function main() { await users.get({}); }",
            "line 1, column 16: the result is undefined, as is the value that the function returns; write `return value` in it",
        ),
        (
            "const rows = [1];\nrows.forEach((row) => row)",
            "line 2, column 1: the result is undefined, as is the value of the last statement; `forEach` gives undefined, `map` gives the values",
        ),
        (
            "return [1].find((row) => { row === 1; });",
            "line 1, column 1: the result is undefined, as is the value of `return`; a callback in braces needs its own `return`",
        ),
        (
            "if (codecallContext.a) return 1;\nif (codecallContext.b) return 2;",
            "the result is undefined: none of its `return` statements gave a value",
        ),
        (
            "if (codecallContext.a) { 1 }",
            "line 1, column 1: the result is undefined, as is the value of the last statement; write `return value`",
        ),
    ];
    for (script, expected) in cases {
        assert_eq!(warnings(script), [expected], "{script}");
    }
    for script in ["return null", "return 0", "null", "return {}", "return {a: 1}"] {
        assert_eq!(warnings(script), [""; 0], "{script}");
    }
}

#[test]
fn a_result_that_is_given_before_the_callbacks_of_for_each_end_has_a_warning() {
    let script = "const names = [];\n[1, 2].forEach(async (id) => names.push((await users.get({ id })).name));\n";
    let early = run(&format!("{script}return names"));
    assert_eq!(early.result.as_deref().ok(), Some("[]"));
    assert_eq!(
        early.warnings,
        [
            "line 2, column 8: `forEach` awaits no callback, and the result was given before they ended; write `await Promise.all(list.map(async …))`"
        ]
    );
    for late in ["await sleep(10); return names", "return users.list().then(() => names)"] {
        assert_eq!(warnings(&format!("{script}{late}")), [""; 0], "{late}");
    }
    assert_eq!(warnings("[1].map(async (id) => users.get({ id })); return 1"), [""; 0]);
}

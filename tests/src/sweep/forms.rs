//! Operators and syntax with huge operands, and huge sources.

use super::cases::Cases;
use super::kinds::{ARGUMENTS, Kind};

/// Forms of one operand `a`.
const ONE: &[(&str, &str)] = &[
    ("unary plus", "+a"),
    ("unary minus", "-a"),
    ("~", "~a"),
    ("!", "!a"),
    ("typeof", "typeof a"),
    ("void", "void a"),
    ("await", "await a"),
    ("template", "`${a}`"),
    ("template twice", "`${a}-${a}`"),
    ("tagged template", "String.raw`${a}${a}`"),
    ("spread in list", "[...a]"),
    ("spread in list twice", "[...a, ...a]"),
    ("spread in call", "Math.max(...a)"),
    ("spread in closure call", "((...rest) => rest.length)(...a)"),
    ("spread in method call", "[].push(...a)"),
    ("spread in new", "new Array(...a)"),
    ("spread in object", "({ ...a })"),
    ("spread in object twice", "({ ...a, ...a, b: 1 })"),
    ("destructured list", "(() => { const [x, , ...rest] = a; return rest.length })()"),
    ("destructured object", "(() => { const { x, length, ...rest } = a; return rest })()"),
    ("destructured parameter", "(({ x = 1, ...rest }) => rest)(a)"),
    ("computed key", "({ [a]: 1 })"),
    ("computed destructuring", "(() => { const { [a]: x } = { b: 1 }; return x })()"),
    ("computed read", "({ b: 1 })[a]"),
    ("computed read of list", "[1, 2][a]"),
    ("computed read of text", "'abc'[a]"),
    ("computed write", "(() => { const o = {}; o[a] = 1; return o })()"),
    ("computed write to list", "(() => { const o = []; o[a] = 1; return o.length })()"),
    ("computed delete", "(() => { const o = { a: 1 }; return delete o[a] })()"),
    ("read of null", "null[a]"),
    ("call of it", "a()"),
    ("call of computed", "({})[a]()"),
    ("method that is none", "a.nothing()"),
    ("optional call", "a?.[a]?.(a)"),
    ("optional read", "a?.b?.c"),
    ("new of it", "new Error(a)"),
    ("throw", "(() => { throw a })()"),
    ("throw and catch", "(() => { try { throw a } catch (e) { return e } })()"),
    ("throw new", "(() => { throw new TypeError(a) })()"),
    ("rejected", "Promise.reject(a)"),
    ("for of", "(() => { for (const x of a); })()"),
    ("for of destructured", "(() => { for (const [x, y] of a); })()"),
    ("for in", "(() => { for (const k in a); })()"),
    ("for await", "(async () => { for await (const x of a); })()"),
    ("length", "a.length"),
    ("length written", "(() => { a.length = 1e9 })()"),
    ("length cut", "(() => { a.length = 1 })()"),
    ("increment", "(() => { let b = a; return ++b })()"),
    ("text that grows", "(() => { let s = ''; for (;;) s += a })()"),
    ("text that grows in front", "(() => { let s = ''; for (;;) s = a + s })()"),
    ("list that grows", "(() => { const l = []; for (;;) l.push([a]) })()"),
    ("copies", "(() => { const l = []; for (;;) l.push([...a]) })()"),
    ("slices", "(() => { for (let i = 0; ; i++) a.slice(i % 10) })()"),
    ("texts of it", "(() => { for (;;) `${a}x` })()"),
    ("key of it each time", "(() => { const o = {}; for (let i = 0; ; i++) o[a + i] = 1 })()"),
    ("in set", "(() => { const s = new Set(); for (let i = 0; ; i++) s.add(a + i) })()"),
    ("switch on it", "(() => { switch (a) { case 1: case 'a': case a + 'b': return 1 } })()"),
    ("regexp of it", "(() => { for (let i = 0; ; i++) new RegExp('a' + i).test(a) })()"),
    ("console in a loop", "(() => { for (;;) console.log(a) })()"),
    ("tool input", "callTool('sweep:none', { a })"),
    ("tool input in a loop", "(async () => { for (;;) callTool('sweep:none', { a }) })()"),
    ("tool name", "callTool(a, {})"),
    ("app function", "sweep.none({ a })"),
    ("app function that is none", "sweep[a]({})"),
    ("first characters", "(() => { for (let i = 0; ; i++) a[i * 7919 % 1000000] })()"),
];

/// Forms of two operands `a` and `b`.
const TWO: &[&str] = &[
    "a + b",
    "a - b",
    "a * b",
    "a / b",
    "a % b",
    "a ** b",
    "a == b",
    "a === b",
    "a != b",
    "a < b",
    "a <= b",
    "a > b",
    "a >= b",
    "a & b",
    "a | b",
    "a ^ b",
    "a << b",
    "a >> b",
    "a >>> b",
    "a && b",
    "a ?? b",
    "a in b",
    "a[b]",
    "a instanceof b",
    "a[b] = b",
    "(() => { switch (a) { case b: return 1 } })()",
    "(() => { let c = a; c += b; return c })()",
    "(() => { for (;;) a === b })()",
    "(() => { for (;;) a < b })()",
    "(() => { for (;;) a + b })()",
];

/// Forms whose answer or error is measured too, and forms that change their operands.
const ALONE: &[&str] = &[
    "throw",
    "throw new",
    "rejected",
    "read of null",
    "call of it",
    "call of computed",
    "method that is none",
    "new of it",
    "tool name",
    "app function that is none",
    "console in a loop",
    "tool input in a loop",
    "length written",
    "length cut",
];

/// Values that represent all others in combinations of two.
const MEETING: &[&str] = &[
    "text:ascii",
    "text:digits",
    "text:emoji",
    "list:numbers",
    "list:long-texts",
    "list:deep",
    "bigint:ones",
    "object:wide",
    "object:to-string",
    "map:wide",
    "unread:rows",
    "error:long",
    "number:6e7",
];

/// Adds all forms with all values.
pub fn add(cases: &mut Cases) {
    for kind in ARGUMENTS {
        for (name, form) in ONE {
            if ALONE.contains(name) {
                cases.add_alone(name, &[(kind, "a")], form);
            } else {
                cases.add(name, &[(kind, "a")], form);
            }
        }
        // The value itself is the result.
        cases.add_alone("return", &[(kind, "a")], "RETURN");
        // Equal values that are not identical.
        for form in TWO {
            two(cases, form, kind, kind);
        }
    }
    let meeting = || ARGUMENTS.iter().filter(|kind| MEETING.contains(&kind.name));
    for kind in meeting() {
        for other in meeting().filter(|other| other.name != kind.name) {
            for form in TWO {
                two(cases, form, kind, other);
            }
        }
    }
}

fn two(cases: &mut Cases, form: &str, kind: &Kind, other: &Kind) {
    let values = [(kind, "a"), (other, "b")];
    if form == "a[b] = b" { cases.add_alone(form, &values, form) } else { cases.add(form, &values, form) }
}

/// Adds sources of nearly 2 MB, whose compilation is measured.
pub fn add_sources(cases: &mut Cases) {
    let full = (2 << 20) - 100;
    let repeated = |unit: &str| unit.repeat(full / unit.len());
    let sources = [
        ("text", format!("return '{}'.length", repeated("a"))),
        ("escapes", format!("return '{}'.length", repeated("\\u{1F600}"))),
        ("digits", format!("return {}", repeated("7"))),
        ("bigint", format!("return {}n > 1n", repeated("7"))),
        ("binary bigint", format!("return 0b{}n > 1n", repeated("1"))),
        ("classes", format!("return [{}].length", repeated("/[\\p{L}\\p{N}]/iu,"))),
        ("classes as statements", repeated("/[\\p{L}\\p{N}]/iu;")),
        ("one pattern", format!("return /{}/u.test('a')", repeated("[\\p{L}]"))),
        ("one pattern of alternatives", format!("return /{}/.test('a')", repeated("(a|b)*"))),
        ("counts", format!("return /{}/.test('a')", repeated("(?:a{0,99}){0,99}"))),
        ("names", format!("let a = 1; return {}1", repeated("a+"))),
        ("declarations", (0..100_000).map(|at| format!("let a{at}=1;")).collect::<String>()),
        ("functions", (0..60_000).map(|at| format!("function f{at}(){{}}")).collect::<String>()),
        ("arrows", format!("return [{}].length", repeated("()=>1,"))),
        ("keys", format!("return {{{}}}", (0..100_000).map(|at| format!("k{at}:1,")).collect::<String>())),
        ("items", format!("return [{}].length", repeated("1,"))),
        ("holes", format!("return [{}].length", repeated(","))),
        ("nested lists", format!("return {}", repeated("["))),
        ("nested blocks", repeated("{")),
        ("nested calls", repeated("f(")),
        ("nested functions", repeated("()=>")),
        ("nested templates", repeated("`${")),
        ("conditions", repeated("a?b:")),
        ("template", format!("return `{}`", repeated("${1}"))),
        ("comments", repeated("/**/")),
        ("lines", repeated("\n")),
        ("unknown names", repeated("zz;")),
        ("refused names", repeated("eval;")),
        ("labels", (0..100_000).map(|at| format!("l{at}:")).collect::<String>() + ";"),
        ("cases", format!("switch (1) {{ {} }}", repeated("case 2:"))),
        ("catches", repeated("try{}catch{}")),
        ("types", format!("let a: {} = 1", repeated("A<"))),
        ("chain", format!("let a = {{}}; return a{}", repeated("?.a"))),
        ("operators", format!("return {}1", repeated("-"))),
        ("bytes that are nothing", repeated("\\")),
        ("brackets that close", repeated(")")),
        ("quotes", repeated("'")),
    ];
    for (name, source) in sources {
        cases.add_source(name, &source);
    }
}

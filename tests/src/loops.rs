//! Scripts that make one kind of value, or let one grow, in a loop until a limit ends them.
//!
//! Built-ins come from the interpreter's own tables. The value of a turn is kept, dropped, or given to the next turn.
//! The expressions of [`FORMS`] also wait: in promises, frames, generators and closures. Then [`AFTER`] comes an
//! operation on
//! all that was kept. Nothing here calls a tool.

use agentscript::{Callable, Use, callables};

/// A loop, and what happens after it.
#[derive(Clone, Debug)]
pub struct Loop {
    /// For reports: what a turn does with an expression.
    pub name: String,
    /// The loop, of `COUNT` turns.
    turns: String,
    /// The fate of all values that it has made.
    after: Option<&'static str>,
}

impl Loop {
    /// Whether something comes after the loop, which then ends before the limit.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.after.is_some()
    }

    /// The script whose loop has no end.
    #[must_use]
    pub fn endless(&self) -> String {
        self.turns.replace("COUNT", "Infinity")
    }

    /// The script whose loop has so many turns, with what comes after it.
    #[must_use]
    pub fn with_turns(&self, count: u64) -> String {
        format!("{}\n{}", self.turns.replace("COUNT", &count.to_string()), self.after.unwrap_or_default())
    }
}

/// The uses of a value `v` in a turn `i`.
const MODES: &[(&str, &str)] = &[
    ("kept", "k.push(v);"),
    ("dropped", ""),
    ("awaited", "k.push(v); if (v instanceof Promise) v.catch(() => 0); if (i % 16 === 0) await null;"),
];

/// More uses, for expressions that stand for many.
const MORE_MODES: &[(&str, &str)] = &[
    ("every tenth kept", "if (i % 10 === 0) k.push(v);"),
    ("replaced", "k[i % 50000] = v;"),
    ("in a list of its own", "k.push([v]);"),
    ("in an object", "k.push({ v });"),
    ("in a table", "k.push({ ['n' + i % 999]: v });"),
    ("in a map", "m.set(i, v);"),
    ("as a key", "m.set(v, i);"),
    ("nested in a list", "x = [v, x];"),
    ("nested in an object", "x = { v, x };"),
    ("nested in a closure", "{ const [a, b] = [v, x]; x = () => [a, b]; }"),
    ("nested in an error", "x = new Error('m', { cause: [v, x] });"),
    ("nested in a promise", "x = Promise.resolve([v, x]);"),
    ("in a closure", "{ const c = v; k.push(() => c); }"),
    ("in a changing variable", "{ let c = v; k.push(() => c++); }"),
    ("in a reaction", "{ const c = v; P.then(() => c); }"),
    ("in both reactions", "{ const c = v; P.then(() => c, () => c).catch(() => c); }"),
    ("in a frame", "(async () => { const c = v; await P; return c; })();"),
    (
        "in frames that call",
        "(async () => { const f = async () => { const c = v; await P; return c; }; await f(); })();",
    ),
    (
        "in a frame of its own promise",
        "(async () => { const c = v; await new Promise((f) => { k.push(f); }); return c; })();",
    ),
    ("in a chain of frames", "{ const [a, b] = [v, x]; x = (async () => { await b; return a; })(); }"),
    ("in a chain of promises", "{ const [a, b] = [v, x ?? P]; x = b.then(() => a); }"),
    ("in a generator", "{ const g = yields(v); g.next(); k.push(g); }"),
    ("in a fresh generator", "k.push(yields(v));"),
    ("in an async generator", "{ const g = later(v); g.next(); k.push(g); }"),
    ("in requests of a generator", "queue.next(v);"),
    ("in a job", "queueMicrotask(() => v);"),
    ("in a timer", "setTimeout(() => v, 9e6);"),
    ("in an iterator", "k.push([v].values());"),
    ("in a bound function", "k.push(yields.bind(null, v));"),
    ("in the log", "console.log(v);"),
];

const HEAD: &str = "const k = [], m = new Map(); let settle, v, x; const P = new Promise((f) => { settle = f; });
function* yields(a) { yield a; return a; }
async function* later(a) { await P; yield a; }
const queue = later(0);
";

/// Arguments of functions in turn `i`.
const ARGUMENTS: &[&str] = &[
    "",
    "i",
    "'k' + i",
    "[i]",
    "{ a: i }",
    "(y) => [y]",
    "'k' + i, 'v' + i",
    "i, 'v'",
    "i % 100, [i]",
    "[['k' + i, i]]",
    "/b|c/g, 'x'",
    "P",
    "'a-b'.repeat(9), '-'",
    "[1, 2, i], (y) => ({ y })",
    "(f) => f(i)",
    "new Error('m' + i)",
    "'https://a.b/?q=' + i",
    "1000 + i % 1000, i",
    "'en', { style: 'unit', unit: 'meter', type: 'language' }",
    "new Map([[i, i]])",
    "new Uint8Array(9)",
];

/// Arguments in which `x` is the result of the turn before.
const FED: &[&str] = &["x", "[x]", "{ a: x }", "i, x", "x, x", "() => x"];

/// Expressions that stand for everything that allocates.
const FORMS: &[&str] = &[
    "i",
    "i + 0.5",
    "'k' + i",
    "'k'.repeat(50) + i",
    "'é' + i",
    "('é' + i).charCodeAt(1)",
    "`${i}é`.at(-1)",
    "x = (x ?? '') + 'ab'",
    "x = [[], [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], x]",
    "(() => { let a, b, c, d, e, f; const y = x; const s = () => { a = b = c = d = e = f = i; }; return x = () => [a, b, c, d, e, f, s, y]; })()",
    "('abcdefghijklmnopqrstuvwxyz' + i).slice(3, 20)",
    "BigInt(i)",
    "BigInt(i) ** 9n",
    "1n << BigInt(i % 999)",
    "[]",
    "[i]",
    "[i, i, i]",
    "[, i]",
    "(() => { const a = []; a.push(i); return a; })()",
    "(() => { const a = []; a[1000] = i; return a; })()",
    "(() => { const a = []; a[5000] = i; return a; })()",
    "(() => { const a = []; a[5000] = i; a[9000] = i; a[99000] = i; return a; })()",
    "(() => { const a = [1, 2, 3]; a[1e6 + i] = i; return a; })()",
    "(() => { const a = new Array(1e6); a[i] = i; return a; })()",
    "(() => { const a = []; a.length = 5e4 + i; return a; })()",
    "(() => { const a = [i]; a.name = i; return a; })()",
    "(() => { const a = [1, 2, 3, 4]; a.length = 1; return a; })()",
    "(() => { const a = Array(40).fill(1); while (a.length > 1) a.pop(); return a; })()",
    "(() => { const a = Array(40).fill(1); a.splice(1, 38); return a; })()",
    "[...'abc']",
    "[...[i, i], i]",
    "new Array(9)",
    "Array.of(i)",
    "Array.from('ab')",
    "{}",
    "{ i }",
    "{ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 }",
    "Object.fromEntries(Array.from({ length: 15 }, (_, n) => ['n' + n, n]))",
    "Object.fromEntries(Array.from({ length: 30 }, (_, n) => ['n' + n, n]))",
    "{ ['k' + i]: i }",
    "{ ['k' + i % 9999]: i }",
    "{ [i]: i }",
    "(() => { const o = { a: 1, b: 2 }; delete o.a; return o; })()",
    "(() => { const o = {}; for (let n = 0; n < 16; n++) o['n' + n] = n; return o; })()",
    "(() => { const o = {}; for (let n = 0; n < 26; n++) o['n' + n] = n; return o; })()",
    "(() => { const o = {}; for (let n = 0; n < 40; n++) o[n] = n; return o; })()",
    "(() => { const o = {}; for (let n = 0; n < 40; n++) o['n' + n] = n; for (let n = 0; n < 40; n++) delete o['n' + n]; return o; })()",
    "{ m() { return i; }, async n() {}, *g() {} }",
    "{ ...{ a: i, b: 2 } }",
    "(({ a, ...rest }) => rest)({ a: 1, b: i })",
    "(([a, ...rest]) => rest)([1, i])",
    "((...rest) => rest)(i, i)",
    "() => 1",
    "() => i",
    "function named() { return [i, v]; }",
    "async () => i",
    "yields(i)",
    "(() => 1).bind(null, i)",
    "Object.assign(() => i, { a: i })",
    "new Map()",
    "new Map([[i, i]])",
    "new Set([i])",
    "new Set([1, 2, 3, 4, 5, 6, 7, 8, 9, i])",
    "(() => { const s = new Set(); for (let n = 0; n < 40; n++) s.add(n); for (let n = 0; n < 40; n++) s.delete(n); return s; })()",
    "Object.assign(new Map(), { a: i })",
    "new Date(i)",
    "new Error('m')",
    "new Error('m' + i)",
    "new AggregateError([i], 'm')",
    "(() => { const e = new Error('m' + i); e.stack; return e; })()",
    "new Error('m' + i).stack",
    "(() => { try { null.a; } catch (e) { return e; } })()",
    "new DOMException('m' + i)",
    "new RegExp('a')",
    "new RegExp('a' + i)",
    "new RegExp('(a|b)*[c-z]{1,' + i % 99 + '}' + i)",
    "new RegExp('\\\\p{L}+' + i, 'u')",
    "new RegExp('[^\\\\p{Lu}]' + i, 'iu')",
    "/a/g",
    "/(?<n>a)(b)?/d.exec('a' + i)",
    "('a' + i).match(/\\d/g)",
    "('a' + i).matchAll(/\\d/g)",
    "('a,b' + i).split(',')",
    "('a,b' + i).split('')",
    "new Uint8Array(1)",
    "new Uint8Array(100)",
    "new ArrayBuffer(9, { maxByteLength: 99 })",
    "(() => { const b = new ArrayBuffer(900, { maxByteLength: 999 }); b.resize(1); return b; })()",
    "new TextEncoder().encode('ab' + i)",
    "new TextDecoder()",
    "new URL('https://a.b/c?d=' + i)",
    "new URL('https://a.b/c?d=' + i).searchParams",
    "new URLSearchParams({ a: i, b: 'c' })",
    "new Headers({ a: 'b' + i })",
    "new AbortController()",
    "new AbortController().signal",
    "AbortSignal.abort()",
    "AbortSignal.any([new AbortController().signal])",
    "AbortSignal.timeout(9e6)",
    "(() => { const c = new AbortController(); c.signal.addEventListener('abort', () => i); return c; })()",
    "(() => { const c = new AbortController(); c.signal.onabort = () => i; c.abort(i); return c; })()",
    "setTimeout(() => i, 9e6)",
    "new Promise(() => {})",
    "new Promise((f) => f(i))",
    "Promise.resolve(i)",
    "Promise.resolve([i]).then((y) => y)",
    "Promise.reject(i).catch(() => 1)",
    "Promise.all([P, i])",
    "Promise.allSettled([P, i])",
    "Promise.race([P])",
    "Promise.any([P])",
    "Promise.withResolvers()",
    "P.then(() => i)",
    "P.finally(() => i)",
    "(async () => i)()",
    "(async () => { await P; })()",
    "(async () => { for await (const y of [P]) return y; })()",
    "(async () => { for (const y of [P]) await y; })()",
    "(async () => await Promise.all([P, P]))()",
    "(async () => { const [a, b, c, d, e, f, g, h] = [i, i, i, i, i, i, i, i]; await P; return a + b + c + d + e + f + g + h; })()",
    "(async (a) => { const f = async (b) => { const g = async (c) => { await P; return c; }; return await g(b); }; return await f(a); })(i)",
    "(() => { const g = yields(i); g.next(); return g; })()",
    "(() => { const g = later(i); g.next(); g.next(); return g; })()",
    "queue.next(i)",
    "({ then(f) { f(i); } })",
    "Promise.resolve({ then(f) { f(i); } })",
    "[i].values()",
    "[i].entries().next()",
    "new Map([[i, i]]).entries()",
    "'ab'[Symbol.iterator]()",
    "[1, i].values().map((y) => y)",
    "(1n << 9000n) - ((1n << 9000n) - (1n << BigInt(2400 + i % 9)))",
    "x = Math.random() < 0.99 ? [() => i, () => x, { a: i, x }, new Map(), [i], x] : [x]",
    "JSON.parse('{\"a\":[1,{\"b\":' + i + '}]}')",
    "JSON.parse('[' + i + ']')",
    "JSON.parse('\"a\\\\n' + i + '\"')",
    "JSON.parse('{\"k' + i % 9999 + '\":1}')",
    "JSON.parse('{\"0\":1,\"a\":2,\"1\":3}')",
    "JSON.parse('['.repeat(50) + ']'.repeat(50))",
    "JSON.stringify({ a: i })",
    "structuredClone({ a: [i] })",
    "structuredClone((() => { const o = { i }; o.o = o; return o; })())",
    "structuredClone(new Map([[i, new Set([i])]]))",
    "structuredClone(new Error('m' + i))",
    "Object.groupBy([1, 2, 3, i], (y) => y % 3)",
    "Map.groupBy([1, 2, 3, i], (y) => y % 3)",
    "Object.entries({ a: i, b: 2 })",
    "Object.freeze({ i })",
    "Object.create(null)",
    "String.raw`a${i}`",
    "((s) => s)`a${i}`",
    "i.toString(2)",
    "('A' + i).toLowerCase()",
    "('ab' + i).normalize('NFD')",
    "('ab' + i).padEnd(30, 'é')",
    "encodeURIComponent('é' + i)",
    "btoa('ab' + i)",
    "i.toLocaleString('de')",
    "new Date(i).toISOString()",
    "new Date(i).toLocaleString('de')",
    "new Intl.NumberFormat('de', { style: 'currency', currency: 'EUR' })",
    "new Intl.NumberFormat('de').format",
    "new Intl.NumberFormat(['de', 'en', 'fr'][i % 3], { minimumFractionDigits: i % 20 }).resolvedOptions()",
    "new Intl.DateTimeFormat('de', { dateStyle: 'full' })",
    "new Intl.DateTimeFormat('de').format",
    "new Intl.Collator('de').compare",
    "new Intl.PluralRules('ar')",
    "new Intl.ListFormat('de')",
    "new Intl.RelativeTimeFormat('de')",
    "new Intl.DisplayNames('de', { type: 'region' })",
    "new Intl.Segmenter('de', { granularity: 'word' })",
    "new Intl.Segmenter('de').segment('ab' + i)",
    "[...new Intl.Segmenter('de', { granularity: 'word' }).segment('a b' + i)]",
    "new Intl.NumberFormat('de').formatToParts(i)",
    "Intl.getCanonicalLocales('de')",
    "(() => { for (const n in { a: 1, ['b' + i % 999]: 2 }) return n; })()",
    "(() => { label: for (const [a, b] of new Map([[i, i]])) break label; })()",
    "(() => { class2: switch (i) { case 1: return []; default: return [[i]]; } })()",
];

/// The fates of all that was kept, before the limit.
const AFTER: &[&str] = &[
    "return k",
    "settle(1); await null; await null; await null; return 1",
    "settle(1); for (let n = 0; n < 99; n++) await null; return k.map((y) => y)",
    "settle(1); await Promise.allSettled(k)",
    "await Promise.race([...k, 1])",
    "await Promise.any([...k, 1])",
    "structuredClone(k)",
    "const a = [...k, ...k]; k.length = 0; const b = [...a, ...a]; return b.length",
    "JSON.stringify(k)",
    "JSON.stringify([x])",
    "String(k)",
    "console.log(k)",
    "console.dir(k, { depth: null, maxArrayLength: null })",
    "k.sort()",
    "k.toSorted((a, b) => 1)",
    "k.flat(Infinity)",
    "k.map((y) => [y])",
    "k.flatMap((y) => [y, y])",
    "k.filter((y) => { m.set(y, y); return true; })",
    "Object.groupBy(k, (y, n) => 'g' + n % 5)",
    "Object.groupBy(k, (y, n) => 'g' + n)",
    "Map.groupBy(k, (y, n) => n)",
    "Object.entries(k)",
    "Object.assign({}, k)",
    "Object.fromEntries(k.map((y, n) => ['f' + n, y]))",
    "({ ...k })",
    "new Map(k.map((y, n) => [n, y]))",
    "new Set(k)",
    "k.map((y) => y?.stack)",
    "k.map((y) => String(y))",
    "k.map((y) => structuredClone(y))",
    "k.map((y) => JSON.stringify(y))",
    "k.map((y) => JSON.parse(JSON.stringify(y) ?? '1'))",
    "k.map((y) => y?.next?.())",
    "k.map((y) => ({ ...y }))",
    "k.map((y) => Object.entries(y ?? {}))",
    "k.map((y) => Object.assign(y, { extra: 1 }))",
    "k.forEach((y, n) => { k[n] = null; });  const a = []; for (;;) a.push([1])",
    "k.forEach((y, n) => { if (n % 50) k[n] = null; }); for (;;) k.push('t' + k.length)",
    "k.length = 0; for (;;) k.push(new Map([[1, 2]]))",
    "x = null; m.clear(); k.splice(1); for (;;) k.push({ a: [1] })",
    "throw k",
    "throw new Error('m', { cause: k })",
    "for (let n = 0; ; n++) { settle(1); await null; k.push((async () => { await null; return n; })()) }",
];

/// Every loop over a built-in of the interpreter's tables.
#[must_use]
pub fn built_ins() -> Vec<Loop> {
    let mut all = Vec::new();
    for callable in callables() {
        for (mode, expression) in expressions(&callable) {
            match mode {
                None => all.extend(MODES.iter().map(|(mode, turn)| turns(mode, &expression, turn))),
                Some("fed") => all.push(turns("fed", &expression, "x = v;")),
                Some(mode) => all.push(turns(mode, &expression, "k.push(v);")),
            }
        }
    }
    all
}

/// The expressions that use a built-in, with the mode that they are for, if they are for one.
fn expressions(callable: &Callable) -> Vec<(Option<&'static str>, String)> {
    let Callable { owner, name, way } = callable;
    let dot = if owner.is_empty() { "" } else { "." };
    let new = if *way == Use::New { "new " } else { "" };
    let mut all = Vec::new();
    match way {
        Use::Call | Use::New => {
            let callee = format!("{new}{owner}{dot}{name}");
            all.extend(ARGUMENTS.iter().map(|arguments| (None, format!("{callee}({arguments})"))));
            all.extend(FED.iter().map(|arguments| (Some("fed"), format!("{callee}({arguments})"))));
        }
        Use::Method => {
            for receiver in receivers(owner) {
                let fresh = format!("{receiver}.{name}");
                all.extend(ARGUMENTS.iter().map(|arguments| (None, format!("{fresh}({arguments})"))));
                let shared = format!("(r ??= {receiver}).{name}");
                all.extend(ARGUMENTS.iter().map(|arguments| (Some("shared"), format!("{shared}({arguments})"))));
                all.extend(FED.iter().map(|arguments| (Some("fed"), format!("{fresh}({arguments})"))));
                let itself = format!("(x ??= {receiver}).{name}");
                all.extend(
                    ["", "i", "x", "'k' + i"].iter().map(|arguments| (Some("fed"), format!("{itself}({arguments})"))),
                );
            }
        }
        Use::Get => {
            for receiver in receivers(owner) {
                all.push((None, format!("{receiver}.{name}")));
            }
        }
        Use::Set => {
            for receiver in receivers(owner) {
                all.push((None, format!("(r = {receiver}, r.{name} = 'k' + i, r)")));
                all.push((Some("shared"), format!("((r ??= {receiver}).{name} += 'k' + i, r)")));
            }
        }
    }
    all
}

/// A loop that evaluates an expression in every turn.
fn turns(mode: &str, expression: &str, turn: &str) -> Loop {
    let turns = format!(
        "{HEAD}let r; for (let i = 0; i < COUNT; i++) {{ try {{ v = ({expression}); }} catch (e) {{ v = e; }} {turn} }}"
    );
    Loop { name: format!("{mode}: {expression}"), turns, after: None }
}

/// Every loop over a form, in each mode.
#[must_use]
pub fn forms() -> Vec<Loop> {
    let modes = || MODES.iter().chain(MORE_MODES);
    FORMS.iter().flat_map(|form| modes().map(|(mode, turn)| turns(mode, form, turn))).collect()
}

/// Loops that end before the limit, with an operation on all that they have made.
#[must_use]
pub fn afterwards() -> Vec<Loop> {
    let (kept, more) = MODES.split_first().expect("there are modes");
    let kept = FORMS.iter().map(|form| turns(kept.0, form, kept.1));
    let other = more.iter().chain(MORE_MODES).map(|(mode, turn)| turns(mode, "[i]", turn));
    let made: Vec<Loop> = kept.chain(other).collect();
    let with = |made: &Loop, after: &'static str| Loop {
        name: format!("{}; {after}", made.name),
        turns: made.turns.clone(),
        after: Some(after),
    };
    made.iter().flat_map(|made| AFTER.iter().map(|after| with(made, after))).collect()
}

/// Small receivers of the methods of a family.
fn receivers(family: &str) -> &'static [&'static str] {
    match family {
        "Object" => &["({ a: i, b: 'c' })"],
        "Array" => &["[3, 1, i]"],
        "Function" => &["((a) => [a, i])"],
        "String" => &["('aé-b' + i)", "('abc,' + i)"],
        "Number" => &["(i + 0.5)"],
        "Boolean" => &["true"],
        "BigInt" => &["BigInt(i)"],
        "Error" => &["new Error('m' + i)"],
        "DomException" => &["new DOMException('m' + i)"],
        "Map" => &["new Map([[i, i]])"],
        "Set" => &["new Set([i, 1])"],
        "Promise" => &["P", "Promise.resolve(i)"],
        "ArrayIterator" => &["[1, i].values()"],
        "MapIterator" => &["new Map([[i, i]]).entries()"],
        "SetIterator" => &["new Set([i]).values()"],
        "StringIterator" => &["('é' + i)[Symbol.iterator]()"],
        "RegExpStringIterator" => &["('a' + i).matchAll(/a|1/g)"],
        "ParamsIterator" => &["new URLSearchParams('a=' + i).entries()"],
        "HeadersIterator" => &["new Headers({ a: 'b' + i }).entries()"],
        "SegmentsIterator" => &["new Intl.Segmenter('en').segment('ab' + i)[Symbol.iterator]()"],
        "ArrayBuffer" => &["new ArrayBuffer(9, { maxByteLength: 99 })"],
        "Uint8Array" => &["new Uint8Array([3, 1, i])"],
        "Date" => &["new Date(i)"],
        "RegExp" => &["new RegExp('a|' + i, 'g')"],
        "Url" => &["new URL('https://a.b/c?d=' + i)"],
        "Params" => &["new URLSearchParams('a=' + i)"],
        "Headers" => &["new Headers({ a: 'b' + i })"],
        "Response" => &[],
        "TextEncoder" => &["new TextEncoder()"],
        "TextDecoder" => &["new TextDecoder()"],
        "Collator" => &["new Intl.Collator('de')"],
        "DateTimeFormat" => &["new Intl.DateTimeFormat('de')"],
        "NumberFormat" => &["new Intl.NumberFormat('de')"],
        "DisplayNames" => &["new Intl.DisplayNames('de', { type: 'region' })"],
        "ListFormat" => &["new Intl.ListFormat('de')"],
        "PluralRules" => &["new Intl.PluralRules('de')"],
        "RelativeTimeFormat" => &["new Intl.RelativeTimeFormat('de')"],
        "Segmenter" => &["new Intl.Segmenter('de')"],
        "Segments" => &["new Intl.Segmenter('de').segment('ab' + i)"],
        "Generator" => &["yields(i)"],
        "AsyncGenerator" => &["later(i)"],
        "AbortController" => &["new AbortController()"],
        "AbortSignal" => &["new AbortController().signal"],
        "AbortEvent" => &[
            "(() => { let e; const c = new AbortController(); c.signal.onabort = (y) => { e = y; }; c.abort(); return e; })()",
        ],
        "Timeout" => &["setTimeout(() => i, 9e6)"],
        other => panic!("the family {other} has no receivers: add some"),
    }
}

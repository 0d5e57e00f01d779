//! The receivers and arguments of built-ins, as expressions of a script.
//!
//! `S` is the scale of the setting. The values are created by cheap operations, which are not measured.

/// A value.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in reports.
    pub name: &'static str,
    /// The expression.
    pub js: &'static str,
    /// Whether it represents similar values in combinations.
    pub core: bool,
}

const fn core(name: &'static str, js: &'static str) -> Kind {
    Kind { name, js, core: true }
}

const fn more(name: &'static str, js: &'static str) -> Kind {
    Kind { name, js, core: false }
}

/// Returns all kinds of arguments.
pub static ARGUMENTS: &[Kind] = &[
    // Strings of 60 MB.
    core("text:ascii", "'a'.repeat(6e7 * S)"),
    core("text:cyrillic", "'я'.repeat(3e7 * S)"),
    more("text:latin", "'é'.repeat(3e7 * S)"),
    more("text:cjk", "'漢'.repeat(2e7 * S)"),
    core("text:emoji", "'😀'.repeat(1.5e7 * S)"),
    core("text:marks", "'e' + '\\u0301\\u0323'.repeat(1.4e7 * S)"),
    more("text:expanding", "'\\ufdfa'.repeat(2e7 * S)"),
    more("text:sharp", "'ß'.repeat(3e7 * S)"),
    core("text:lone", "'\\ud800'.repeat(2e7 * S)"),
    core("text:digits", "'7'.repeat(6e7 * S)"),
    more("text:fraction", "'0.' + '0'.repeat(6e7 * S) + '1'"),
    more("text:hex", "'0x' + 'f'.repeat(6e7 * S)"),
    core("text:aaab", "'a'.repeat(6e7 * S) + 'b'"),
    core("text:words", "'Lorem Ipsum '.repeat(5e6 * S)"),
    more("text:spaces", "' '.repeat(6e7 * S)"),
    more("text:lines", "'a\\n'.repeat(3e7 * S)"),
    more("text:percent", "'%41'.repeat(2e7 * S)"),
    core("text:query", "'?a=b' + '&a=b'.repeat(1.2e7 * S)"),
    core("text:url", "'http://a.b/' + 'x/'.repeat(3e7 * S)"),
    more("text:dots", "'http://a.b/' + '../'.repeat(2e7 * S)"),
    more("text:host", "'http://' + 'a.'.repeat(3e7 * S) + 'b/'"),
    more("text:punycode", "'http://' + 'ü'.repeat(2e6 * S) + '/'"),
    more("text:date", "'2020-01-01T00:00:00.' + '0'.repeat(6e7 * S) + 'Z'"),
    more("text:months", "'Jan '.repeat(1.5e7 * S)"),
    core("text:json", "'[' + '1,'.repeat(2e7 * S) + '1]'"),
    more("text:json-deep", "'['.repeat(1e7 * S)"),
    more("text:json-objects", "'[' + '{\"a\":{}},'.repeat(2e6 * S) + '1]'"),
    more("text:json-keys", "'{' + Array.from({ length: 5e5 * S }, (_, i) => '\"k' + i + '\":1').join(',') + '}'"),
    more("text:json-escapes", "'\"' + '\\\\u0041'.repeat(1e7 * S) + '\"'"),
    more("text:base64", "'QUJD'.repeat(1.5e7 * S)"),
    core("text:pattern", "'(a|b)*'.repeat(1e6 * S)"),
    more("text:pattern-classes", "'[\\\\p{L}\\\\p{N}]'.repeat(1e5 * S)"),
    more("text:pattern-deep", "'(?:'.repeat(1e6 * S)"),
    more("text:pattern-counts", "'(?:(?:a{1,1000}){1,1000}){1,1000}'"),
    more("text:flags", "'gimsuy'.repeat(1e6 * S)"),
    core("text:locale", "'en-' + 'abcdefgh-'.repeat(6e6 * S) + 'x'"),
    more("text:formats", "'%s%d%o '.repeat(8e6 * S)"),
    more("text:joined", "(() => { let s = ''; for (let i = 0; i < 2e5; i++) s += 'xy'.repeat(50); return s })()"),
    // Lists of 10,000,000.
    core("list:numbers", "Array(1e7 * S).fill(0)"),
    core("list:holes", "Array(1e7 * S)"),
    core("list:texts", "Array(1e7 * S).fill('ab')"),
    more("list:fractions", "Array(5e6 * S).fill(0.1)"),
    core("list:distinct", "Array.from({ length: 5e5 * S }, (_, i) => 'k' + (i * 7919) % 500009)"),
    core("list:lists", "Array(3e6 * S).fill([1, 2, 3, 4])"),
    more("list:pairs", "Array.from({ length: 3e5 * S }, (_, i) => ['k' + i, i])"),
    core("list:objects", "Array(3e6 * S).fill({ a: 1, b: 'x' })"),
    more("list:rows", "Array.from({ length: 2e5 * S }, (_, i) => ({ id: i, name: 'n' + i, tags: ['a'] }))"),
    core("list:long-texts", "Array(1e5).fill('x'.repeat(1e6 * S))"),
    core("list:deep", "(() => { let d = []; for (let i = 0; i < 3e5; i++) d = [d]; return d })()"),
    more("list:nulls", "Array(1e7 * S).fill(null)"),
    more(
        "list:nested-wide",
        "(() => { let d = Array(1000).fill(1); for (let i = 0; i < 5; i++) d = Array(1000).fill(d); return d })()",
    ),
    more("list:fulfilled", "Array(2e6 * S).fill(Promise.resolve(1))"),
    core("list:promises", "Array.from({ length: 4e5 * S }, () => Promise.resolve(1))"),
    more("list:pending", "Array.from({ length: 3e5 * S }, () => new Promise(() => {}))"),
    more("list:thenables", "Array(1e6 * S).fill({ then: (f) => f(1) })"),
    more("list:functions", "Array(1e7 * S).fill(() => 1)"),
    more("list:maps", "Array(1e6 * S).fill(new Map([[1, 2]]))"),
    more("list:errors", "Array(1e6 * S).fill(new Error('x'))"),
    more("list:bigints", "Array(1e6 * S).fill(10n ** 30n)"),
    more("list:huge-bigints", "Array(1000).fill((1n << BigInt(3300000 * S)) - 1n)"),
    more("list:cycle", "(() => { const a = Array(1e6 * S).fill(1); a[5] = a; return a })()"),
    more("list:locales", "Array(1e6 * S).fill('en-US')"),
    // BigInts of 1,000,000 digits.
    core("bigint:ones", "(1n << BigInt(3322000 * S)) - 1n"),
    more("bigint:power", "1n << BigInt(3322000 * S)"),
    more("bigint:negative", "-((1n << BigInt(3322000 * S)) - 1n)"),
    more("bigint:1e9", "10n ** 9n"),
    // Objects.
    core("object:wide", "(() => { const o = {}; for (let i = 0; i < 1e6 * S; i++) o['k' + i] = i; return o })()"),
    more("object:indices", "(() => { const o = {}; for (let i = 0; i < 1e6 * S; i++) o[i] = i; return o })()"),
    core("object:deep", "(() => { let o = {}; for (let i = 0; i < 2e5; i++) o = { o }; return o })()"),
    more("object:long-keys", "({ ['a'.repeat(2e7 * S)]: 1, ['b'.repeat(2e7 * S)]: 2 })"),
    more("object:long-values", "({ a: 'a'.repeat(3e7 * S), message: 'm'.repeat(3e7 * S), locale: 'en' })"),
    core("object:list-like", "({ length: 1e9 })"),
    more("object:list-like-max", "({ length: 2 ** 53 - 1, 5: 1 })"),
    core("object:to-string", "({ toString: () => 'a'.repeat(6e7 * S) })"),
    more("object:value-of", "({ valueOf: () => (1n << BigInt(3322000 * S)) })"),
    more("object:value-digits", "({ valueOf: () => '7'.repeat(6e7 * S) })"),
    more("object:to-json", "({ toJSON: () => 'a'.repeat(6e7 * S) })"),
    more("object:cycle", "(() => { const o = {}; o.o = o; return o })()"),
    more(
        "object:options",
        "({ currency: 'X'.repeat(6e7 * S), style: 'currency', timeZone: 'Y'.repeat(6e7 * S), localeMatcher: 'z'.repeat(1e7 * S), cause: 1 })",
    ),
    more("object:zone", "({ timeZone: 'Europe/' + 'y'.repeat(6e7 * S) })"),
    more("object:digits", "({ minimumFractionDigits: 100, maximumFractionDigits: 100, minimumIntegerDigits: 21 })"),
    more("object:thenable", "({ then: (f) => f('a'.repeat(6e7 * S)) })"),
    more(
        "object:thenable-chain",
        "(() => { let t = 1; for (let i = 0; i < 1e5; i++) { const u = t; t = { then: (f) => f(u) } } return t })()",
    ),
    more("object:thenable-itself", "(() => { const t = { then: (f) => f(t) }; return t })()"),
    more("object:set-like", "({ size: 1e9, has: () => true, keys: () => [1, 2, 3].values() })"),
    more(
        "object:set-endless",
        "({ size: 1e9, has: () => true, keys: () => ({ next: () => ({ done: false, value: {} }) }) })",
    ),
    core("map:wide", "(() => { const m = new Map(); for (let i = 0; i < 1e6 * S; i++) m.set(i, i); return m })()"),
    more(
        "map:texts",
        "(() => { const m = new Map(); for (let i = 0; i < 4e5 * S; i++) m.set('k' + i, 'v' + i); return m })()",
    ),
    core("set:wide", "(() => { const m = new Set(); for (let i = 0; i < 1e6 * S; i++) m.add(i); return m })()"),
    more("set:texts", "(() => { const m = new Set(); for (let i = 0; i < 4e5 * S; i++) m.add('k' + i); return m })()"),
    more("iterator:list", "Array(1e7 * S).fill(1).values()"),
    more("iterator:text", "'a'.repeat(6e7 * S).matchAll(/a/g)"),
    // Bytes: 60 MB.
    core("bytes:zeros", "new Uint8Array(6e7 * S)"),
    more("bytes:invalid", "new Uint8Array(6e7 * S).fill(255)"),
    more("bytes:letters", "new TextEncoder().encode('é'.repeat(3e7 * S))"),
    more("buffer:zeros", "new ArrayBuffer(6e7 * S)"),
    more("buffer:resizable", "new ArrayBuffer(3e7 * S, { maxByteLength: 4e9 })"),
    // Data of the host that is not parsed yet.
    core("unread:rows", "(await callTool('sweep:rows', { n: 3e5 * S })).rows"),
    more("unread:keys", "(await callTool('sweep:keys', { n: 3e5 * S })).keys"),
    more("unread:text", "(await callTool('sweep:text', { n: 1e7 * S })).text"),
    more("unread:numbers", "(await callTool('sweep:numbers', { n: 2e6 * S })).rows"),
    more("unread:deep", "(await callTool('sweep:deep', { n: 1e5 * S })).deep"),
    // Functions of the script.
    core("function:one", "() => 1"),
    core(
        "function:grows",
        "(x, y, z) => { if (Array.isArray(z)) z.push(1, 2, 3); else if (z?.set) z.set({}, 1); else if (z?.add) z.add({}); return true }",
    ),
    core("function:throws", "() => { throw new Error('E'.repeat(3e7 * S)) }"),
    core("function:long-texts", "(() => { const t = 'x'.repeat(1e6 * S); return () => t })()"),
    more("function:new-texts", "(x, i) => 'x'.repeat(1000) + i"),
    more("function:slow", "() => { for (let i = 0; i < 1e6; i++); return 0 }"),
    more("function:sums", "(a, b) => a + b"),
    more("function:compares", "(a, b) => (a < b ? -1 : 1)"),
    more("function:lists", "(x) => [x, x, x, x, x, x, x, x, x, x]"),
    more("function:to-string", "() => ({ toString: () => 'a'.repeat(6e7 * S) })"),
    more("function:bigints", "(() => { const b = (1n << BigInt(3322000 * S)) - 1n; return () => b })()"),
    more("function:async", "async (x) => x"),
    more("function:calls-itself", "(() => { const f = (x) => [1].map(f); return f })()"),
    more("function:native", "String"),
    // Numbers.
    core("number:1e9", "1e9"),
    core("number:6e7", "6e7 * S"),
    core("number:2^53", "2 ** 53"),
    core("number:-1", "-1"),
    core("number:NaN", "NaN"),
    core("number:Infinity", "Infinity"),
    more("number:2^31", "2 ** 31"),
    more("number:2^32-1", "2 ** 32 - 1"),
    more("number:1e7", "1e7 * S"),
    more("number:100", "100"),
    more("number:0.1", "0.1"),
    more("number:1e308", "1e308"),
    more("number:5e-324", "5e-324"),
    more("null", "null"),
    more("undefined", "undefined"),
    more("true", "true"),
    // Others.
    core("regexp:nested", "/(a+)+$/"),
    more("regexp:alternatives", "/(?:a|a|aa)*c/g"),
    core("regexp:empty", "/(?:)/g"),
    more("regexp:one", "/a/g"),
    more("regexp:letters", "/[\\p{L}]/giu"),
    more("regexp:reference", "/(a*)\\1b/"),
    more("regexp:ahead", "/(?=.*b)(?=.*c)/g"),
    more("regexp:behind", "/(?<=a.*)b/g"),
    more("regexp:groups", "/(a)(?<n>a)?(.)/g"),
    more("regexp:sticky", "/a*?b/y"),
    more("regexp:split", "/(,)|(;)|/"),
    more("date:max", "new Date(8.64e15)"),
    more("date:invalid", "new Date(NaN)"),
    more("url:long", "new URL('http://a/?' + 'a=b&'.repeat(1e6 * S))"),
    core("params:wide", "new URLSearchParams('a=b&'.repeat(4e5 * S))"),
    more("promise:pending", "new Promise(() => {})"),
    more("promise:long", "Promise.resolve('a'.repeat(6e7 * S))"),
    more(
        "promise:rejected",
        "(() => { const p = Promise.reject(new Error('E'.repeat(3e7 * S))); p.catch(() => 1); return p })()",
    ),
    core("error:long", "new Error('E'.repeat(6e7 * S))"),
    more(
        "error:causes",
        "(() => { let e = new Error('x'); for (let i = 0; i < 1e5 * S; i++) e = new Error('y', { cause: e }); return e })()",
    ),
    more("error:many", "new AggregateError(Array(1e6 * S).fill(new Error('x')), 'm')"),
];

/// The arguments before the one that is tested.
pub static FILLERS: &[&str] = &["'a'", "5", "(x) => x", "[3, 1, 2]", "{ a: 1 }"];

/// Returns the receivers of the methods of a family. The first one is the simplest.
///
/// # Panics
/// If the family has no receivers: add some for a new one.
#[must_use]
pub fn receivers(family: &str) -> Vec<Kind> {
    let kinds_with = |prefixes: &[&str]| -> Vec<Kind> {
        ARGUMENTS.iter().filter(|kind| prefixes.iter().any(|prefix| kind.name.starts_with(prefix))).copied().collect()
    };
    let with = |first: &[Kind], prefixes: &[&str]| -> Vec<Kind> {
        let mut all = first.to_vec();
        all.extend(kinds_with(prefixes));
        all
    };
    match family {
        "String" => with(&[more("text:short", "'abcabc'")], &["text:", "unread:text"]),
        "Array" => with(&[more("list:short", "[3, 1, 2]")], &["list:", "unread:rows", "unread:numbers", "unread:deep"]),
        "Object" => kinds_with(&[
            "object:",
            "list:numbers",
            "list:holes",
            "text:ascii",
            "map:wide",
            "unread:",
            "error:",
            "bigint:ones",
        ]),
        "Number" => kinds_with(&["number:"]),
        "BigInt" => kinds_with(&["bigint:"]),
        "Boolean" => kinds_with(&["true"]),
        "Function" => with(
            &[
                more("function:built-in", "Math.max"),
                more("function:bound", "((x) => x).bind(null, 'a'.repeat(1e7 * S))"),
            ],
            &["function:"],
        ),
        "Error" => kinds_with(&["error:"]),
        "Map" => kinds_with(&["map:"]),
        "Set" => kinds_with(&["set:"]),
        "Promise" => kinds_with(&["promise:"]),
        "ArrayIterator" => {
            with(&[more("iterator:code-points", "'é'.repeat(3e7 * S).split('').values()")], &["iterator:"])
        }
        "MapIterator" => vec![more(
            "iterator:map",
            "(() => { const m = new Map(); for (let i = 0; i < 1e6 * S; i++) m.set(i, i); return m })().entries()",
        )],
        "SetIterator" => vec![more(
            "iterator:set",
            "(() => { const s = new Set(); for (let i = 0; i < 1e6 * S; i++) s.add(i); return s })().entries()",
        )],
        "StringIterator" => vec![more("iterator:string", "'aé'.repeat(2e7 * S)[Symbol.iterator]()")],
        "RegExpStringIterator" => vec![more("iterator:matches", "'ab'.repeat(2e7 * S).matchAll(/a/g)")],
        "ParamsIterator" => vec![more("iterator:params", "new URLSearchParams('a=b&'.repeat(4e5 * S)).entries()")],
        "HeadersIterator" => vec![more("iterator:headers", "new Headers({ 'x-a': 'b'.repeat(6e7 * S) }).entries()")],
        "SegmentsIterator" => vec![more(
            "iterator:segments",
            "new Intl.Segmenter('en', { granularity: 'word' }).segment('a b. c'.repeat(1e6 * S))[Symbol.iterator]()",
        )],
        "DomException" => vec![more("exception:long", "new DOMException('E'.repeat(6e7 * S), 'AbortError')")],
        "Date" => with(&[more("date:now", "new Date(1.7e12)")], &["date:"]),
        "RegExp" => with(
            &[
                more("regexp:long", "new RegExp('(a|b|c)'.repeat(3e4 * S), 'g')"),
                more("regexp:counts", "new RegExp('(?:a{0,200}){0,200}b')"),
            ],
            &["regexp:"],
        ),
        "Url" => kinds_with(&["url:"]),
        "Params" => kinds_with(&["params:"]),
        "Headers" => vec![
            more("headers:few", "new Headers({ accept: 'text/html', 'x-a': 'b' })"),
            more(
                "headers:many",
                "(() => { const h = new Headers(); for (let i = 0; i < 1e5 * S; i++) h.append('x-' + i, 'b'); return h })()",
            ),
            more("headers:long", "new Headers({ 'x-a': 'b'.repeat(6e7 * S) })"),
        ],
        "Response" => vec![
            more("response:short", "await fetch('https://example.com/', { method: 'POST', body: '{\"n\":1}' })"),
            more(
                "response:long",
                "await fetch('https://example.com/', { method: 'POST', body: JSON.stringify({ n: 1e7 * S }) })",
            ),
        ],
        "ArrayBuffer" => kinds_with(&["buffer:"]),
        "Uint8Array" => with(&[more("bytes:short", "new Uint8Array([3, 1, 2])")], &["bytes:"]),
        "TextEncoder" => vec![more("encoder", "new TextEncoder()")],
        "TextDecoder" => vec![
            more("decoder:utf-8", "new TextDecoder()"),
            more("decoder:fatal", "new TextDecoder('utf-8', { fatal: true })"),
            more("decoder:gb18030", "new TextDecoder('gb18030')"),
            more("decoder:utf-16", "new TextDecoder('utf-16le')"),
        ],
        "Collator" => vec![
            more("collator:en", "new Intl.Collator('en')"),
            more(
                "collator:numeric",
                "new Intl.Collator('de', { numeric: true, sensitivity: 'base', ignorePunctuation: true })",
            ),
        ],
        "DateTimeFormat" => vec![
            more("dates:short", "new Intl.DateTimeFormat('en')"),
            more(
                "dates:full",
                "new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'full', timeZone: 'Europe/Berlin' })",
            ),
        ],
        "NumberFormat" => vec![
            more("numbers:plain", "new Intl.NumberFormat('en')"),
            more(
                "numbers:currency",
                "new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR', minimumFractionDigits: 20 })",
            ),
            more("numbers:compact", "new Intl.NumberFormat('en', { notation: 'compact' })"),
            more("numbers:unit", "new Intl.NumberFormat('en', { style: 'unit', unit: 'kilometer-per-hour' })"),
        ],
        "Generator" => vec![
            more(
                "iterator:generator",
                "(function* (list) { try { yield* list } finally { yield list } })(Array(1e6 * S))",
            ),
            more("iterator:fresh", "(function* () { yield 1 })()"),
        ],
        "AsyncGenerator" => vec![more("iterator:async", "(async function* () { yield 1; yield await 2 })()")],
        "DisplayNames" => vec![
            more("names:language", "new Intl.DisplayNames('de', { type: 'language' })"),
            more("names:currency", "new Intl.DisplayNames('ja', { type: 'currency', style: 'short' })"),
        ],
        "ListFormat" => vec![
            more("list:and", "new Intl.ListFormat('es')"),
            more("list:unit", "new Intl.ListFormat('en', { type: 'unit', style: 'narrow' })"),
        ],
        "PluralRules" => vec![
            more("plurals:cardinal", "new Intl.PluralRules('ar')"),
            more("plurals:ordinal", "new Intl.PluralRules('en', { type: 'ordinal' })"),
        ],
        "RelativeTimeFormat" => vec![more("relative:auto", "new Intl.RelativeTimeFormat('pl', { numeric: 'auto' })")],
        "Segmenter" => vec![
            more("segmenter:grapheme", "new Intl.Segmenter('en')"),
            more("segmenter:word", "new Intl.Segmenter('en', { granularity: 'word' })"),
            more("segmenter:sentence", "new Intl.Segmenter('el', { granularity: 'sentence' })"),
        ],
        "Segments" => {
            vec![more("segments:word", "new Intl.Segmenter('en', { granularity: 'word' }).segment('a b. c')")]
        }
        "AbortController" => vec![more("controller:fresh", "new AbortController()")],
        "AbortSignal" => vec![
            more("signal:fresh", "new AbortController().signal"),
            more("signal:aborted", "AbortSignal.abort()"),
            more(
                "signal:handlers",
                "((signal) => { for (let i = 0; i < 1e5 * S; i++) signal.addEventListener('abort', () => i); return signal })(new AbortController().signal)",
            ),
        ],
        "AbortEvent" => vec![more(
            "event:abort",
            "(() => { let seen; const it = new AbortController(); it.signal.onabort = (event) => { seen = event }; it.abort(); return seen })()",
        )],
        "Timeout" => vec![more("timeout:set", "setTimeout(() => 1, 1)")],
        other => panic!("the family {other} has no receivers: add some"),
    }
}

//! Scripts made of huge constants and every method there is: a run ends within its limits of time and
//! memory, whatever it asks for.

#![no_main]

use agentscript::{Clock, CompileOptions, Inputs, Loops, NoTools, Policy, Preset, Progress, SystemClock, compile};
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use peak_alloc::PeakAlloc;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const TIMEOUT_MS: u64 = 100;
const MAX_MEMORY: usize = 8 << 20;
/// A fifth over the limit, and what instrumented code and a cold cache take beside.
const MAX_TIME: Duration = Duration::from_millis(TIMEOUT_MS * 12 / 10 + 100);
/// A fifth over the limit, and 20 MB for all that is not the script's.
const MAX_PEAK: usize = MAX_MEMORY * 12 / 10 + 20_000_000;

const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "3.7",
    "100",
    "65536",
    "1e5",
    "1e6",
    "1e7",
    "2**30",
    "2**31",
    "-(2**31)",
    "2**32-1",
    "2**32",
    "2**53",
    "1e21",
    "1e100",
    "1e308",
    "5e-324",
    "NaN",
    "Infinity",
    "-Infinity",
    "-0",
];
const TEXTS: [&str; 16] = [
    "'a'",
    "'ab '",
    "''",
    "'ä'",
    "'\\u0301'",
    "'\\ud83d\\ude00'",
    "'\\ud800'",
    "'7'",
    "'[[['",
    "'{\"a\":1,'",
    "'ﷺ'",
    "'\\n'",
    "'中文'",
    "'x=1&'",
    "'%F0%9F'",
    "'İıß'",
];
const VALUES: [&str; 16] = [
    "undefined",
    "null",
    "true",
    "{}",
    "[]",
    "/(?=(x+)y)x|(a*)*b/gu",
    "/\\p{L}+/gv",
    "new Date(8.64e15)",
    "new Map([[1,2]])",
    "new Set([1])",
    "Promise.resolve(1)",
    "(x) => x",
    "() => 'x'.repeat(1e5)",
    "(a, b) => b - a",
    "async () => 1",
    "new URL('http://a/?b=c')",
];
/// Methods of every type; what a value does not have is a `TypeError`, and caught.
const METHODS: &str = "at charAt charCodeAt codePointAt concat endsWith includes indexOf isWellFormed lastIndexOf localeCompare match matchAll \
    normalize padEnd padStart repeat replace replaceAll search slice split startsWith substring toLocaleLowerCase toLocaleUpperCase \
    toLowerCase toString toUpperCase toWellFormed trim trimEnd trimStart valueOf copyWithin entries every fill filter find findIndex \
    findLast findLastIndex flat flatMap forEach join keys map pop push reduce reduceRight reverse shift some sort splice toLocaleString \
    toReversed toSorted toSpliced unshift values with toExponential toFixed toPrecision exec test add clear delete get has set size \
    difference intersection isDisjointFrom isSubsetOf isSupersetOf symmetricDifference union then catch finally getTime setFullYear \
    setMonth setMilliseconds setHours toISOString toJSON toLocaleDateString toUTCString getTimezoneOffset append getAll searchParams href next";
const FUNCTIONS: &str = "Array Array.from Array.of Array.isArray BigInt BigInt.asIntN BigInt.asUintN Boolean Number Number.parseFloat String \
    String.fromCharCode String.fromCodePoint Object.assign Object.entries Object.freeze Object.fromEntries Object.groupBy Object.keys \
    Object.values Object.is Object.hasOwn Map.groupBy JSON.parse JSON.stringify Math.max Math.min Math.hypot Math.pow Math.clz32 \
    parseInt parseFloat isNaN encodeURIComponent decodeURIComponent encodeURI decodeURI structuredClone atob btoa Date.parse Date.UTC \
    console.log Promise.all Promise.allSettled Promise.any Promise.race Promise.resolve RegExp Error parallel URL.canParse";
const CONSTRUCTORS: [&str; 12] = [
    "Array",
    "Map",
    "Set",
    "Date",
    "RegExp",
    "Error",
    "AggregateError",
    "URL",
    "URLSearchParams",
    "Promise",
    "Object",
    "Intl.Collator",
];
const OPERATORS: [&str; 24] = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "<<",
    ">>",
    ">>>",
    "&",
    "|",
    "^",
    "==",
    "===",
    "!=",
    "<",
    "<=",
    "in",
    "instanceof",
    "&&",
    "??",
    ",",
    "> -",
    "+ +",
];

fuzz_target!(|data: &[u8]| {
    let source = script(data);
    let mut policy = Policy::preset(Preset::Balanced);
    policy.loops = Loops::All;
    policy.limits.timeout_ms = TIMEOUT_MS;
    policy.limits.max_steps = 100_000_000;
    policy.limits.max_memory_bytes = MAX_MEMORY as u64;
    policy.limits.max_script_bytes = 1 << 20;
    let (took, peak) = measure(&source, &policy);
    assert!(peak < MAX_PEAK, "{} MB for {source}", peak / 1_000_000);
    if took >= MAX_TIME {
        // The clock of the thread also counts the time for which a virtual machine is stopped.
        let again = measure(&source, &policy).0.min(measure(&source, &policy).0);
        assert!(again < MAX_TIME, "{took:?}, again {again:?}, for {source}");
    }
});

/// Time of this thread and peak of allocated bytes in a run.
fn measure(source: &str, policy: &Policy) -> (Duration, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let began = ThreadTime::now();
    run(source, policy);
    (began.elapsed(), MEMORY.peak_usage().saturating_sub(before))
}

fn run(source: &str, policy: &Policy) {
    let Ok(script) = compile(source, &CompileOptions::for_policy(policy)) else { return };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let inputs = Inputs { context: None, tools: Arc::new(NoTools), clock, seed: 1, slice: None };
    let mut run = script.start(inputs, policy);
    loop {
        match run.resume([]) {
            Progress::Yielded => {}
            Progress::Done(outcome) => {
                // What clients would see.
                drop(outcome.to_json());
                return;
            }
            Progress::Calls(_) => return,
        }
    }
}

struct Writer<'a> {
    choices: std::slice::Iter<'a, u8>,
    variables: usize,
}

/// The script that the bytes choose: a line a variable, each made from those before.
fn script(data: &[u8]) -> String {
    let mut writer = Writer { choices: data.iter(), variables: 0 };
    let mut out = String::new();
    while writer.choices.len() > 0 && writer.variables < 40 {
        let value = writer.value(0);
        let number = writer.variables;
        let _ = writeln!(out, "let v{number}; try {{ v{number} = {value} }} catch (e) {{ v{number} = e }}");
        writer.variables += 1;
    }
    let _ = write!(out, "return v{}", writer.variables.saturating_sub(1));
    if writer.variables == 0 { "return 1".into() } else { out }
}

impl Writer<'_> {
    fn below(&mut self, most: usize) -> usize {
        usize::from(self.choices.next().copied().unwrap_or(0)) % most
    }

    fn of<'b>(&mut self, list: &[&'b str]) -> &'b str {
        list[self.below(list.len())]
    }

    fn word(&mut self, words: &'static str) -> &'static str {
        let count = words.split_whitespace().count();
        let at = self.below(count);
        words.split_whitespace().nth(at).unwrap_or_default()
    }

    fn variable(&mut self) -> String {
        if self.variables == 0 {
            return "'x'".into();
        }
        // Newer ones more often: chains grow.
        let back = self.below(4) + 1;
        format!("v{}", self.variables.saturating_sub(back))
    }

    fn value(&mut self, depth: usize) -> String {
        if depth > 3 {
            return self.of(&NUMBERS).into();
        }
        match self.below(20) {
            0 => self.of(&NUMBERS).into(),
            1 => self.of(&TEXTS).into(),
            2 => self.of(&VALUES).into(),
            3 => format!("{}.repeat({})", self.of(&TEXTS), self.of(&NUMBERS)),
            4 => format!("Array({}).fill({})", self.of(&NUMBERS), self.value(depth + 1)),
            5 => format!("Array.from({{ length: {} }}, {})", self.of(&NUMBERS), self.callback(depth)),
            6 => format!("{}n ** {}n", 3 + self.below(100), [1, 10, 1_000, 100_000, 10_000_000][self.below(5)]),
            7 => format!("{}.split({})", self.variable(), self.of(&TEXTS)),
            8 => format!("[...{}]", self.variable()),
            9 => format!("{{ ...{} }}", self.variable()),
            10 => format!("Math.max(...{})", self.variable()),
            11 => format!("{} {} {}", self.variable(), self.of(&OPERATORS), self.value(depth + 1)),
            12 => format!("new {}({})", self.of(&CONSTRUCTORS), self.value(depth + 1)),
            13 => format!("`${{{}}}${{{}}}`", self.variable(), self.variable()),
            14 => format!("await {}", self.value(depth + 1)),
            15 | 16 => {
                let name = self.word(FUNCTIONS);
                format!("{name}({})", self.arguments(depth))
            }
            _ => {
                let (of, name) = (self.variable(), self.word(METHODS));
                format!("{of}.{name}({})", self.arguments(depth))
            }
        }
    }

    fn arguments(&mut self, depth: usize) -> String {
        let list: Vec<String> = (0..self.below(4))
            .map(|_| match self.below(4) {
                0 => self.of(&NUMBERS).to_owned(),
                1 => self.variable(),
                2 => self.callback(depth),
                _ => self.value(depth + 1),
            })
            .collect();
        list.join(", ")
    }

    fn callback(&mut self, depth: usize) -> String {
        match self.below(4) {
            0 => "(x) => x".into(),
            1 => "(x, y) => y".into(),
            2 => format!("(x) => {}", self.variable()),
            _ => format!("() => ({})", self.value(depth + 1)),
        }
    }
}

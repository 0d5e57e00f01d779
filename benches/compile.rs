//! Benchmarks the compilation of the scripts in the corpus that resemble those of models: all of it, and its first
//! stages.

use agentscript::{CompileOptions, Policy, Preset, compile};
use agentscript_lang::ast::Arena;
use agentscript_lang::{Language, Loops, Options, parse};
use codecall_tests::corpus::{Case, load};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;

fn realistic(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/realistic");
    let cases = load(&folder);
    stages(criterion, "compile", cases.iter());
    // Those that were measured first: the others came later.
    stages(criterion, "compile scripts.txt", cases.iter().filter(|case| case.file.ends_with("scripts.txt")));
}

fn stages<'c>(criterion: &mut Criterion, name: &str, cases: impl Iterator<Item = &'c Case>) {
    let options = CompileOptions::for_policy(&Policy::preset(Preset::Balanced));
    let scripts: Vec<&str> = cases.map(|case| case.script.as_str()).collect();
    for script in &scripts {
        assert!(compile(script, &options).is_ok(), "{script}");
    }
    let bytes = scripts.iter().map(|script| script.len()).sum::<usize>();
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(bytes as u64));
    let mut stage = |name: &str, succeeds: &dyn Fn(&str) -> bool| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| scripts.iter().filter(|script| succeeds(black_box(script))).count());
        });
    };
    stage(&format!("{} realistic scripts", scripts.len()), &|script| compile(script, &options).is_ok());
    // Each line holds the stages of the one before it.
    stage("lexer, layout, grammar", &|script| {
        parse::parse(&Arena::for_source(script.len()), script, Language::JavaScript).is_ok()
    });
    stage("lexer, layout, grammar, resolver", &|script| {
        agentscript_lang::compile(&Arena::for_source(script.len()), script, &LANGUAGE_ONLY).is_ok()
    });
    group.finish();
}

/// Knows no built-ins, so that only the resolver itself is measured.
const LANGUAGE_ONLY: Options<'_> = Options {
    language: None,
    loops: Loops::All,
    max_bytes: usize::MAX,
    disabled: &[],
    missing: &[],
    fence_tags: &[],
    calls_result: true,
    alternative: &|_| None,
    globals: &|_| true,
    plain_call: &|_, _| false,
    apps: &|_| false,
    provided: &|_| false,
    own_tool: &|_, _| None,
};

criterion_group!(benches, realistic);
criterion_main!(benches);

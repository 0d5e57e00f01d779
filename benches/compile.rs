//! Benchmarks the compilation of the scripts in the corpus that resemble those of models.

use agentscript::{CompileOptions, Policy, Preset, compile};
use codecall_tests::corpus::load;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;

fn realistic(criterion: &mut Criterion) {
    let options = CompileOptions::for_policy(&Policy::preset(Preset::Balanced));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/realistic");
    let scripts: Vec<String> = load(&folder).into_iter().map(|case| case.script).collect();
    for script in &scripts {
        assert!(compile(script, &options).is_ok(), "{script}");
    }
    let bytes = scripts.iter().map(String::len).sum::<usize>();
    let mut group = criterion.benchmark_group("compile");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(format!("{} realistic scripts", scripts.len()), |bencher| {
        bencher.iter(|| {
            scripts.iter().map(|script| compile(black_box(script), &options).is_ok()).filter(|ok| *ok).count()
        });
    });
    group.finish();
}

criterion_group!(benches, realistic);
criterion_main!(benches);

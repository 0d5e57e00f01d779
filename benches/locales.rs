//! Benchmarks what depends on locales, in AgentScript only: the other engines have no locales or other ones.

#[path = "common/setting.rs"]
mod setting;

use codecall_benches::cases::Case;
use codecall_benches::peers::{Peer as _, agentscript::AgentScript};
use criterion::{Criterion, criterion_group, criterion_main};

/// Each formats or sorts some hundred values.
const SCRIPTS: &[(&str, &str)] = &[
    (
        "numbers",
        "let n = 0; for (let i = 0; i < 300; i++) n += (i * 1234.5).toLocaleString('de-DE', \
         { style: 'currency', currency: 'EUR' }).length; return n",
    ),
    (
        "dates",
        "let n = 0; for (let i = 0; i < 300; i++) n += new Date(i * 864e5).toLocaleDateString('en-CA', \
         { timeZone: 'Europe/Berlin' }).length; return n",
    ),
    (
        "formatter",
        "const format = new Intl.DateTimeFormat('fr', { dateStyle: 'full', timeStyle: 'short', timeZone: 'UTC' }); \
         let n = 0; for (let i = 0; i < 300; i++) n += format.format(new Date(i * 864e5)).length; return n",
    ),
    (
        "collation",
        "const names = Array.from({ length: 300 }, (_, i) => 'Zoë Ärger Muñoz'.slice(i % 7) + i * 7919 % 300); \
         return names.sort((a, b) => a.localeCompare(b, 'sv'))[0]",
    ),
    ("case", "let n = 0; for (let i = 0; i < 300; i++) n += ('Iıİi' + i).toLocaleUpperCase('tr').length; return n"),
];

fn locales(criterion: &mut Criterion) {
    let mut ours = AgentScript::new();
    for (name, script) in SCRIPTS {
        let case = Case::new(name, "", *script);
        let mut group = setting::group(criterion, format!("locales/{name}"));
        group.bench_function("AgentScript", |bencher| {
            bencher.iter_custom(|times| {
                ours.round(&case, u32::try_from(times).unwrap_or(u32::MAX)).expect("the case succeeds").time
            });
        });
        group.finish();
    }
}

criterion_group!(benches, locales);
criterion_main!(benches);

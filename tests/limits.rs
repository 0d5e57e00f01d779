//! Exceeds each limit under each preset, in each place of a script where that is possible.

use agentscript::{CompileOptions, LIMITS, Limit, Limits, Loops, Policy, Preset};
use codecall_tests::limits::{Place, ROWS, Row, run};
use codecall_tests::parallel;

/// Whether a run takes seconds until its limit ends it.
fn is_long(row: &Row, preset: Preset) -> bool {
    row.limit == "maxSteps" && preset == Preset::Experimental && row.place != Place::Plain
}

#[test]
fn every_limit_ends_a_run_under_every_preset() {
    check(|row, preset| !is_long(row, preset));
}

#[test]
#[ignore = "SKIPPED: it takes ten seconds: bash .ci/run"]
fn every_limit_ends_a_long_run() {
    check(is_long);
}

fn check(wanted: impl Fn(&Row, Preset) -> bool) {
    let mut cases: Vec<(&Row, Preset)> = ROWS.iter().flat_map(|row| Preset::ALL.map(|preset| (row, preset))).collect();
    cases.retain(|&(row, preset)| wanted(row, preset));
    let wrong = parallel::map(&cases, |&(row, preset)| {
        let value = Limit::named(row.limit).expect("a limit").get(&Limits::preset(preset)).to_string();
        let (ends, text) = run(row, preset);
        (ends != row.ends || !text.contains(&row.message.replace("LIMIT", &value))).then(|| {
            let (limit, place, preset) = (row.limit, row.place, preset.as_str());
            format!("{limit} {place:?} {preset}: {ends}: {}", text.chars().take(200).collect::<String>())
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_limit_has_its_rows() {
    for limit in LIMITS {
        let places: Vec<Place> = ROWS.iter().filter(|row| row.limit == limit.name).map(|row| row.place).collect();
        assert!(places.contains(&Place::Plain), "{} is not tested in the middle of a script", limit.name);
        assert!(places.is_sorted() && places.windows(2).all(|pair| pair[0] != pair[1]), "{}: {places:?}", limit.name);
    }
}

/// Constructs that a preset does not permit are refused before the script runs.
#[test]
fn every_permission_of_every_preset() {
    let loops = [
        ("for (let i = 0; i < 1; i++) {}", Loops::Bounded),
        ("for (const x of [1]) {}", Loops::Bounded),
        ("for (const key in {}) {}", Loops::Bounded),
        ("for await (const x of [1]) {}", Loops::Bounded),
        ("[1].forEach(() => { for (const x of [1]) {} })", Loops::Bounded),
        ("try { for (const x of [1]) {} } catch {}", Loops::Bounded),
        ("while (false) {}", Loops::All),
        ("do {} while (false)", Loops::All),
        ("for (;;) break", Loops::All),
    ];
    for preset in Preset::ALL {
        let policy = Policy::preset(preset);
        let refused = |script: &str, policy: &Policy| {
            let compiled = agentscript::compile(script, &CompileOptions::for_policy(policy));
            compiled
                .err()
                .map(|error| (error.failure.status.as_str(), error.failure.code.clone(), error.failure.message))
        };
        for (script, needed) in loops {
            let found = refused(script, &policy).map(|(status, code, _)| format!("{status} {code}"));
            let expected = (policy.loops < needed).then(|| "illegal_access LOOP_NOT_ALLOWED".to_owned());
            assert_eq!(found, expected, "{script} under {}", preset.as_str());
        }
        let found =
            refused("try { console.log(1) } catch {}", &policy).map(|(status, code, _)| format!("{status} {code}"));
        let expected = (!policy.allow_console).then(|| "illegal_access VALIDATION_ERROR".to_owned());
        assert_eq!(found, expected, "console under {}", preset.as_str());
        let strict =
            Policy { disabled_builtins: vec!["Map".into()], disabled_globals: vec!["getTool".into()], ..policy };
        for (script, kind) in
            [("return new Map()", "IllegalBuiltinAccess"), ("return [1].map(() => getTool('x'))", "DisallowedGlobal")]
        {
            let error = agentscript::compile(script, &CompileOptions::for_policy(&strict)).err().expect("refused");
            assert_eq!(error.failure.refusal.map(|refusal| refusal.as_str()), Some(kind), "{script}");
        }
        assert!(agentscript::compile("const Map = 1; return Map", &CompileOptions::for_policy(&strict)).is_ok());
    }
}

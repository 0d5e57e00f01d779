use super::*;
use agentscript::{LIMITS, Policy, Preset};
use clap::CommandFactory as _;

fn parse_words(words: &str) -> Result<CommandLine, clap::Error> {
    CommandLine::try_parse_from(std::iter::once("codecall").chain(words.split(' ')))
}

fn run(words: &str) -> run::Run {
    match parse_words(words).expect("valid arguments").command {
        Command::Run(run) => *run,
        other => panic!("not a run: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    CommandLine::command().debug_assert();
}

#[test]
fn what_is_accepted_and_what_is_not() {
    for words in [
        "serve",
        "serve --config codecall.toml --demo",
        "run -",
        "run a.js b.ts --demo -v",
        "-vv run a.js --mock-tools fixture.json --context {} --language ts --timeout 100 --max-tool-calls 0",
        "run --batch scripts --preset locked_down",
        "check a.js b.ts --json",
        "tools --demo --json",
        "search refund an invoice --top-k 3 --app billing",
        "describe users:list orders:list --format typescript",
        "invoke users:get {\"id\":\"usr_001\"} --demo",
        "invoke billing:syncLedger",
    ] {
        assert!(parse_words(words).is_ok(), "{words}");
    }
    for (words, part) in [
        ("run", "<FILE>..."),
        ("run a.js --batch scripts", "cannot be used with"),
        ("run a.js --demo --mock-tools f.json", "cannot be used with"),
        ("run a.js --preset strict", "locked_down, secure, balanced, experimental"),
        ("run a.js --timeout fast", "--timeout <MS>"),
        ("run a.js --max-step 5", "'--max-steps'"),
        ("check", "<FILE>"),
        ("serv", "'serve'"),
    ] {
        let error = parse_words(words).expect_err(words);
        assert_eq!(error.exit_code(), 2, "{words}");
        let text = error.to_string();
        assert!(text.contains(part), "{words} gives:\n{text}");
    }
}

#[test]
fn every_limit_is_a_flag() {
    for limit in LIMITS {
        let run = run(&format!("run a.js --{} 7", limit.flag));
        let policy = run.policy.on(Policy::preset(Preset::Balanced));
        for other in LIMITS {
            let expected =
                if other.name == limit.name { 7 } else { other.get(&Policy::preset(Preset::Balanced).limits) };
            assert_eq!(other.get(&policy.limits), expected, "{} under --{}", other.name, limit.flag);
        }
    }
}

#[test]
fn a_preset_replaces_the_configuration_but_not_what_it_forbids() {
    let configured = Policy { disabled: vec!["Math.random".into()], ..Policy::preset(Preset::Experimental) };
    let policy = run("run a.js --preset locked_down --timeout 50").policy.on(configured);
    let mut expected = Policy::preset(Preset::LockedDown);
    expected.limits.timeout_ms = 50;
    expected.disabled = vec!["Math.random".into()];
    assert_eq!(policy, expected);
}

#[test]
fn json_is_indented_without_touching_numbers_and_texts() {
    let line = r#"{"a":[1e400,-0,"x: {\"y\", [] \\"],"b":{},"c":[ ],"d":{"e":null}}"#;
    let expected = r#"{
  "a": [
    1e400,
    -0,
    "x: {\"y\", [] \\"
  ],
  "b": {},
  "c": [],
  "d": {
    "e": null
  }
}"#;
    assert_eq!(output::indented(line), expected);
}

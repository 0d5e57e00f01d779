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
fn command_lines_are_accepted_or_refused() {
    for words in [
        "serve",
        "serve --config codecall.toml --demo",
        "run -",
        "run a.js b.ts --demo -v",
        "-vv run a.js --mock-tools fixture.json --context {} --language ts --timeout 100 --max-tool-calls 0",
        "run --batch scripts --preset locked_down",
        "run a.js --record journal.json --demo",
        "replay a.js --journal ccj1.x --json --config c.toml --tools t.json --language ts --max-steps 9",
        "check a.js b.ts --json",
        "tools --demo --json",
        "search refund an invoice --top-k 3 --app billing",
        "describe users:list orders:list --format typescript",
        "invoke users:get {\"id\":\"usr_001\"} --demo",
        "invoke billing:syncLedger",
        "config check codecall.toml",
        "config explain",
        "config explain pool.maxRuns",
        "config schema",
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
        let policy = run.policy.apply_to(Policy::preset(Preset::Balanced));
        for other in LIMITS {
            let expected =
                if other.name == limit.name { 7 } else { other.get(&Policy::preset(Preset::Balanced).limits) };
            assert_eq!(other.get(&policy.limits), expected, "{} under --{}", other.name, limit.flag);
        }
    }
}

#[test]
fn a_preset_replaces_the_configuration_but_not_what_it_forbids() {
    let configured = Policy { disabled_builtins: vec!["Map".into()], ..Policy::preset(Preset::Experimental) };
    let policy = run("run a.js --preset locked_down --timeout 50").policy.apply_to(configured);
    let mut expected = Policy::preset(Preset::LockedDown);
    expected.limits.timeout_ms = 50;
    expected.disabled_builtins = vec!["Map".into()];
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
    assert_eq!(output::indent(line), expected);
}

/// A directory that is removed when it is dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &[u8])]) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("codecall-cli-{}-{name}", std::process::id())));
        for (file, bytes) in files {
            let path = folder.0.join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, bytes).expect("a file");
        }
        folder
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_batch_is_every_script_of_a_directory_by_name() {
    let folder = Folder::with("batch", &[("b.ts", b"1"), ("a.js", b"1"), ("sub/c.JS", b"1"), ("notes.md", b"")]);
    let scripts = run(&format!("run --batch {}", folder.path(""))).scripts().expect("scripts");
    let names: Vec<_> = scripts.iter().map(|script| (script.name.as_str(), script.language)).collect();
    let (a, b, c) = (folder.path("a.js"), folder.path("b.ts"), folder.path("sub/c.JS"));
    let typescript = Some(agentscript::Language::TypeScript);
    assert_eq!(names, [(a.as_str(), None), (b.as_str(), typescript), (c.as_str(), None)]);
}

#[tokio::test]
async fn errors_before_a_run_are_reported() {
    let folder = Folder::with(
        "faults",
        &[("ok.js", b"return 1"), ("latin.js", b"return '\xe9'"), ("list.json", b"[1]"), ("bad.json", b"{\n  x}")],
    );
    for (words, part) in [
        ("run latin.js", "latin.js: not UTF-8 at byte 8"),
        ("run nil.js", "nil.js: No such file"),
        ("run ok.js --context @list.json", "--context: must be a JSON object"),
        ("run ok.js --context {", "--context: not valid JSON: EOF"),
        ("run ok.js --mock-tools nil.json", "nil.json: No such file"),
        ("run ok.js --mock-tools bad.json", "bad.json:2:3: key must be a string"),
        ("run ok.js --config nil.toml", "nil.toml"),
        ("run --batch nil", "nil: No such file"),
    ] {
        let placed = words.split(' ').map(|word| match word.strip_prefix('@') {
            Some(file) => format!("@{}", folder.path(file)),
            None if word.contains('.') || word == "nil" => folder.path(word),
            None => word.to_owned(),
        });
        let words: Vec<String> = std::iter::once("codecall".to_owned()).chain(placed).collect();
        let Command::Run(run) = CommandLine::try_parse_from(&words).expect("valid arguments").command else {
            panic!("not a run");
        };
        let error = run.execute().await.expect_err("an error");
        assert!(error.message.contains(part), "{words:?} gives {}", error.message);
    }
}

#[test]
fn a_replay_on_a_terminal() {
    use agentscript::stateless::{Journal, Played, StepCall, StepOptions};
    let script = "const [a, b] = await Promise.all([callTool('n:get', { n: 1 }), callTool('n:get', { n: 2 })]);\nreturn await callTool('n:add', { a, b })";
    let options = StepOptions::default();
    let replay = |journal: &Journal, call_ids: &[String], outcome: Option<&str>| {
        let mut rounds: Vec<Played> = Vec::new();
        let step = agentscript::stateless::replay(
            script,
            std::sync::Arc::new(agentscript::NoTools),
            journal,
            &options,
            Some(&mut |round| rounds.push(round)),
        );
        (replay::Printer { journal, call_ids, outcome }.to_lines(&rounds, &step).join("\n"), step)
    };
    let begin = Journal::new("code_1", 0, script, &options);
    let (text, step) = replay(&begin, &[], None);
    assert_eq!(
        text,
        "round 0\n  #0 n:get {\"n\":1}\n  #1 n:get {\"n\":2}\nThe journal ends here; the script waits for #0, #1"
    );
    let agentscript::stateless::Step::Calls(calls) = step else { panic!("calls") };
    assert!(matches!(calls.new.as_slice(), [StepCall { number: 0, .. }, StepCall { number: 1, .. }]));
    let mut journal = calls.journal;
    journal.answer(1, Ok("2".into())).expect("it waits");
    journal.answer(0, Err(agentscript::ToolError::new("GONE", "no\nsuch"))).expect("it waits");
    let (text, _) = replay(&journal, &["x".into(), "y".into()], Some("{\"status\":\"ok\"}"));
    let expected = "round 0\n  x n:get {\"n\":1}\n  y n:get {\"n\":2}\n  y = 2\n  x failed: GONE: no such\n{\n  \"status\": \"tool_error\",";
    assert!(
        text.starts_with(expected) && text.contains("not as recorded, which was\n{\n  \"status\": \"ok\""),
        "{text}"
    );
    journal.rounds[0].calls[1].input = "{\"n\":3}".into();
    let (text, _) = replay(&journal, &[], None);
    assert!(
        text.contains("diverged in round 0 at call #1: it has a call of 'n:get' with {\"n\":3}, but the script calls"),
        "{text}"
    );
    journal.script = "other".into();
    assert!(replay(&journal, &[], None).0.starts_with("diverged: the script, its language or its context"));
}

//! Properties of `parseText` on any text: nothing panics, what is recognized is read, and the work is charged.

use agentscript::text_form::{Form, Part, Reading, Sink, check, content, read};
use agentscript::{CompileOptions, ErrorCode, Inputs, Outcome, Policy, Preset, Progress, compile};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::convert::Infallible;

/// Parts of texts that mean something in a form.
const PIECES: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "'",
    "\"",
    "\\",
    "\\u",
    "\\ud83d",
    "\\xe9",
    ":",
    ",",
    ";",
    "|",
    "||",
    "\t",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\r",
    "-",
    "---",
    "--  --",
    "|---|",
    "+---+",
    "┌──┐",
    "│",
    "├",
    "a",
    "name",
    "ID",
    "1",
    "-2.5e3",
    "None",
    "True",
    "nan",
    "b'x'",
    "datetime.date(1, 2)",
    "<x>",
    "é",
    "日本",
    "😀",
    "\u{feff}",
    "```",
    "```csv\n",
    "key: value",
    "- x: ",
    "commit 40f65255069a2510ba9478b0333c6ba1447d6e4c",
    "Author: ",
    "Date: ",
    "(2 rows)",
    "=",
    "==  ==",
    "...",
    "set()",
];

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![9 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Checks that parts are those of one value or of rows.
#[derive(Default)]
struct Checked {
    open: Vec<bool>,
    width: Option<usize>,
    values: usize,
}

impl Sink for Checked {
    type Stop = Infallible;

    fn part(&mut self, part: Part<'_>) -> Result<(), Infallible> {
        match part {
            Part::List => self.open.push(false),
            Part::Object => self.open.push(true),
            Part::Key(_) => assert_eq!(self.open.last(), Some(&true)),
            Part::End => assert!(self.open.pop().is_some()),
            Part::Columns(names) => {
                assert_eq!((self.width, self.values), (None, 0), "they come first");
                self.width = Some(names.len());
            }
            Part::Row(cells) => assert_eq!(*self.width.get_or_insert(cells.len()), cells.len()),
            Part::Text(_) | Part::Number(_) | Part::Boolean(_) | Part::Null => {}
        }
        self.values += usize::from(self.open.is_empty());
        Ok(())
    }
}

/// The outcome of a script that parses its input.
fn parsed(text: &str, policy: &Policy) -> Outcome {
    let script = "return parseText(codecallContext.text)";
    let script = compile(script, &CompileOptions::for_policy(policy)).expect("a script");
    let input = serde_json::json!({ "text": text }).to_string();
    let mut run = script.start(Inputs { context: Some(input), ..Inputs::default() }, policy);
    loop {
        if let Progress::Done(outcome) = run.resume([]) {
            return *outcome;
        }
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn any_text_is_read_or_refused(text in text(), header in any::<Option<bool>>(), is_chosen in any::<bool>()) {
        let text = content(&text);
        for form in Form::ALL.into_iter().skip(2) {
            let reading = Reading { header, is_chosen };
            let mut sink = Checked::default();
            let found = check(form, text, reading);
            prop_assert_eq!(found.is_ok(), read(form, text, reading, &mut sink).is_ok());
            if found.is_ok() {
                prop_assert!(sink.open.is_empty());
            }
        }
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn a_script_gets_data_or_an_error(text in text()) {
        let outcome = parsed(&text, &Policy::preset(Preset::Secure));
        match &outcome.result {
            Ok(data) => {
                let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
                let form = data["format"].as_str().and_then(Form::of_name);
                prop_assert!(form.is_some(), "{}", data);
            }
            Err(failure) => prop_assert_eq!(failure.name.as_deref(), Some("SyntaxError"), "{}", failure.message),
        }
    }
}

/// Each form of a long text costs steps in proportion, and ends at the limits.
#[test]
fn long_texts_are_charged() {
    let units =
        ["[1],\n", "'a', ", "a,b\n", "a\tb\n", "| a | b |\n", "+---+\n", "a  b\n", "a: b\n", "word ", "{'a': 1},\n"];
    for unit in units {
        let text = |size: usize| unit.repeat(size / unit.len());
        let mut policy = Policy::preset(Preset::Experimental);
        let steps = |size| parsed(&text(size), &policy).stats.steps;
        let (short, long) = (steps(100_000), steps(400_000));
        assert!(long >= 400_000 / 16 && long <= short * 5, "{unit:?}: {short} and {long}");
        policy.limits.max_steps = 10_000;
        let outcome = parsed(&text(400_000), &policy);
        let failure = outcome.result.expect_err(unit);
        assert_eq!(failure.code, ErrorCode::StepLimit.as_str(), "{unit:?}");
    }
}

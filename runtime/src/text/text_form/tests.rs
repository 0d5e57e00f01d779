use super::*;
use serde_json::{Value, json};

/// The form that is found for a text, and its data.
fn found(text: &str) -> Result<(&'static str, Value), String> {
    let text = content(text);
    let mut reasons = String::new();
    for form in Form::ALL.into_iter().skip(2) {
        match data(form, text, Reading::default()) {
            Ok(data) => return Ok((form.name(), data)),
            Err(reason) => reasons.push_str(&format!("{}: {reason}\n", form.name())),
        }
    }
    Err(reasons)
}

fn data(form: Form, text: &str, reading: Reading) -> Result<Value, String> {
    let mut builder = JsonBuilder::new(usize::MAX);
    match read(form, text, reading, &mut builder) {
        Ok(_) => {}
        Err(Fault::Form(reason)) => return Err(reason),
        Err(Fault::Stop(TooLarge)) => return Err("too large".into()),
    }
    let mut values = builder.into_values();
    Ok(if form == Form::Python { values.pop().expect("a value") } else { values.into() })
}

fn cases(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON"))
}

#[test]
fn what_python_prints_is_read() {
    for case in cases(include_str!("tests/python.jsonl")) {
        let text = case["text"].as_str().expect("a text");
        let data = data(Form::Python, text, Reading::default());
        assert_eq!(data.as_ref(), Ok(&case["data"]), "{text}");
    }
}

#[test]
fn what_the_csv_module_of_python_writes_is_read() {
    for case in cases(include_str!("tests/csv.jsonl")) {
        let text = case["text"].as_str().expect("a text");
        let form = Form::of_name(case["form"].as_str().expect("a form")).expect("a form");
        let reading = Reading { header: Some(true), is_chosen: false };
        assert_eq!(data(form, content(text), reading).as_ref(), Ok(&case["data"]), "{text}");
    }
}

#[test]
fn python_is_told_from_what_looks_like_it() {
    for (text, expected) in [
        ("{'a': 1, 'b': [True, None]}", json!({"a": 1, "b": [true, null]})),
        ("[{'id': 12345678901234567890}]", json!([{"id": "12345678901234567890"}])),
        (
            "{'when': datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)}",
            json!({"when": "datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)"}),
        ),
        (
            "{'n': Decimal('1.50'), 'b': b'x', 'o': <Shop at 0x7f>}",
            json!({"n": "Decimal('1.50')", "b": "b'x'", "o": "<Shop at 0x7f>"}),
        ),
        ("{1: 'a', (1, 'x'): 'b', None: 'c'}", json!({"1": "a", "(1, 'x')": "b", "None": "c"})),
        ("{'a', 'b'}", json!(["a", "b"])),
        ("(1,)", json!([1])),
        (
            "['caf\\xe9', '\\u65e5', '\\U0001f600', '\\ud83d\\ude00', '\\ud83d']",
            json!(["café", "日", "😀", "😀", "\u{fffd}"]),
        ),
        ("('long '\n 'text')", json!("long text")),
        ("[nan, inf, -0.0]", json!([null, null, -0.0])),
        ("[...]", json!(["..."])),
    ] {
        assert_eq!(found(text), Ok(("python", expected)), "{text}");
    }
    for text in [
        "(see below)",
        "[x] done",
        "{a: 1}",
        "['a' 1]",
        "['a",
        "[1, 2",
        "{'a'}}",
        "[1]]",
        "{[1]: 2}",
        "(a) first, (b) second",
        "[1 2]",
        "{'a': }",
    ] {
        let reason = data(Form::Python, text, Reading::default()).expect_err(text);
        assert!(reason.starts_with("line 1, at "), "{text}: {reason}");
    }
    assert!(
        data(Form::Python, &"[".repeat(2_000), Reading::default()).expect_err("deep").contains("nested too deeply")
    );
}

#[test]
fn tables_are_found_by_their_form() {
    let rows = json!([{"id": "1", "name": "Ann"}, {"id": "2", "name": "Bob B"}]);
    for (form, text) in [
        ("csv", "id,name\n1,Ann\n2,Bob B\n"),
        ("csv", "\u{feff}id;name\r\n1;Ann\r\n2;\"Bob B\"\r\n"),
        ("csv", "id|name\n1|Ann\n2|Bob B"),
        ("tsv", "id\tname\n1\tAnn\n2\tBob B"),
        ("csv", "```csv\nid,name\n1,Ann\n2,Bob B\n```"),
        ("markdown", "| id | name |\n|---:|:---|\n| 1 | Ann |\n| 2 | Bob B |"),
        ("markdown", "Two people:\n\nid | name\n--|--\n1 | Ann\n2 | Bob B\n\nThat is all."),
        (
            "grid",
            "+----+-------+\n| id | name  |\n+----+-------+\n|  1 | Ann   |\n|  2 | Bob B |\n+----+-------+\n2 rows in set (0.00 sec)",
        ),
        ("grid", "┌────┬───────┐\n│ id │ name  │\n├────┼───────┤\n│ 1  │ Ann   │\n│ 2  │ Bob B │\n└────┴───────┘"),
        (
            "grid",
            "╭────┬──────╮\n│ id │ name │\n├────┼──────┤\n│ 1  │ Ann  │\n├────┼──────┤\n│ 2  │ Bob  │\n│    │ B    │\n╰────┴──────╯",
        ),
        ("aligned", "id  name \n--  -----\n1   Ann  \n2   Bob B"),
        ("aligned", " id | name  \n----+-------\n  1 | Ann\n  2 | Bob B\n(2 rows)\n"),
        ("aligned", "id  name\n1   Ann\n2   Bob B"),
        ("records", "id: 1\nname: Ann\n\nid: 2\nname: Bob B\n"),
        ("records", "- **id:** 1\n- **name:** Ann\n---\n- **id:** 2\n- **name:** Bob B"),
    ] {
        let expected = if text.starts_with('╭') {
            json!([{"id": "1", "name": "Ann"}, {"id": "2", "name": "Bob\nB"}])
        } else {
            rows.clone()
        };
        assert_eq!(found(text), Ok((form, expected)), "{text}");
    }
}

#[test]
fn the_output_of_commands_is_read() {
    let ps = "  PID TTY          TIME CMD\n    1 ?        00:00:06 process_api\n  204 pts/0    00:00:00 bash --login\n";
    assert_eq!(
        found(ps),
        Ok((
            "aligned",
            json!([{"PID": "1", "TTY": "?", "TIME": "00:00:06", "CMD": "process_api"}, {"PID": "204", "TTY": "pts/0", "TIME": "00:00:00", "CMD": "bash --login"}])
        ))
    );
    let df = "Filesystem      Size  Used Avail Use% Mounted on\ntmpfs            24G   64K   24G   1% /dev/shm\n/dev/vda        252G   29G   63G  32% /\n";
    let (_, rows) = found(df).expect("a table");
    assert_eq!(
        rows[1],
        json!({"Filesystem": "/dev/vda", "Size": "252G", "Used": "29G", "Avail": "63G", "Use%": "32%", "Mounted on": "/"})
    );
    let docker = "CONTAINER ID   IMAGE     PORTS     NAMES\n4c01db0b339c   nginx     80/tcp    web\n8f1e0a2b3c4d   busybox             box\n";
    let (_, rows) = found(docker).expect("a table");
    assert_eq!(rows[1], json!({"CONTAINER ID": "8f1e0a2b3c4d", "IMAGE": "busybox", "PORTS": "", "NAMES": "box"}));
    let top = "USER PID %CPU COMMAND\nroot 1 0.0 init\nsomebody-else 12345 10.0 python3 -m http.server\n";
    let (_, rows) = found(top).expect("a table");
    assert_eq!(
        rows[1],
        json!({"USER": "somebody-else", "PID": "12345", "%CPU": "10.0", "COMMAND": "python3 -m http.server"})
    );
    let pandas = "   a    b\n0  1  x y\n1  2    z\n";
    assert_eq!(found(pandas), Ok(("aligned", json!([{"": "0", "a": "1", "b": "x y"}, {"": "1", "a": "2", "b": "z"}]))));
    let log = "commit 40f65255069a2510ba9478b0333c6ba1447d6e4c (HEAD -> main)\nAuthor: A <b@c>\nDate:   Sat Nov 28 19:10:46 2026 +0000\n\n    One\n    \n    body\n\ncommit 50f65255069a2510ba9478b0333c6ba1447d6e4c\nMerge: 1a 2b\nAuthor: B <b@c>\nDate:   Sat\n\n    Two\n\n file | 3 ++-\n";
    let (form, rows) = found(log).expect("commits");
    assert_eq!(
        (form, rows[0]["refs"].as_str(), rows[0]["message"].as_str()),
        ("git-log", Some("HEAD -> main"), Some("One\n\nbody"))
    );
    assert_eq!((rows[1]["merge"].as_str(), rows[1]["changes"].as_str()), (Some("1a 2b"), Some(" file | 3 ++-")));
    // `git diff --numstat` has no header.
    assert_eq!(found("1\t2\ta.rs\n3\t0\tb.rs"), Ok(("tsv", json!([["1", "2", "a.rs"], ["3", "0", "b.rs"]]))));
}

#[test]
fn text_without_a_form_has_none() {
    for text in [
        "",
        "Hello",
        "Hello, world",
        "The user was created.\nIts id is 5.",
        "First, do this.\nThen do that, and that.",
        "def f(x):\n    return x  # twice\n",
        "- one\n- two\n",
        "Title\n-----\nText below a heading",
        "Note: this is\na text.",
        "id,name\n1,Ann,extra",
        "* main  1a3f369b Say which memory of a run the limit does not count\n  other 64e42aff Log the first line of a message\n",
        "a1b2c3 First, a commit\nd4e5f6 Another one\n",
    ] {
        assert!(found(text).is_err(), "{text}: {:?}", found(text));
    }
    let reasons = found("id,name\n1,Ann,extra").expect_err("no form");
    assert!(reasons.contains("csv: line 2 has 3 cells, the first has 2"), "{reasons}");
}

#[test]
fn a_header_is_what_looks_like_names_or_what_the_user_says() {
    let reading = |header| Reading { header, is_chosen: true };
    let csv = |text, header| data(Form::Csv, text, reading(header));
    assert_eq!(csv("a,b\n1,2", Some(false)), Ok(json!([["a", "b"], ["1", "2"]])));
    assert_eq!(csv("1,2\n3,4", None), Ok(json!([["1", "2"], ["3", "4"]])));
    assert_eq!(csv("1,2\n3,4", Some(true)), Ok(json!([{"1": "3", "2": "4"}])));
    assert_eq!(csv("a,a\n3,4", None), Ok(json!([["a", "a"], ["3", "4"]])));
    assert!(csv("a,a\n3,4", Some(true)).is_err());
    assert_eq!(csv("name\nAnn", None), Ok(json!([{"name": "Ann"}])));
    assert_eq!(csv("a,b", None), Ok(json!([])));
}

#[test]
fn two_tables_are_not_one() {
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    let two = format!("{table}\nand\n\n{table}");
    assert!(data(Form::Markdown, &two, Reading::default()).expect_err("two").contains("second table"));
    let grid = "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n+---+---+\n";
    let two = format!("{grid}and\n{grid}");
    assert!(data(Form::Grid, &two, Reading::default()).expect_err("two").contains("second table"));
}

#[test]
fn time_is_linear_in_the_text() {
    // Each would take minutes if a part of it were read for each other part.
    let size = 1 << 20;
    for unit in [
        "{(", "{'a':", "{1,", "((", "('a'", "<", "f(", "'", "a:", "\"", "\"\"", "a,", "|", "||\n", "- ", "a  ", "A ",
        "a b\n", "\\|", "+-+\n", "--  --\n", "│", "a: b\n", "commit ", "\t", "\n", " \n", "x(", "{x(", "aa",
    ] {
        let text = unit.repeat(size / unit.len());
        for form in Form::ALL {
            let _ = check(form, &text, Reading::default());
            let _ = check(form, &format!("a  b\n{text}"), Reading { header: None, is_chosen: true });
        }
    }
}

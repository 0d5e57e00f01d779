use super::super::LookupRecorder;
use super::*;

/// Names with every kind of character, and some that are hard to tell apart.
const NAMES: [&str; 18] = [
    "list",
    "List",
    "li-st",
    "li_st",
    "get by id",
    "get.by:id",
    "--",
    "",
    " codecall:x",
    "codecall:search",
    "über-größe",
    "ÜBER_GRÖSSE",
    "日本",
    "a\u{0}b",
    "\"quoted\\",
    "é",
    "e\u{301}",
    "😀",
];

const APPS: [&str; 5] = ["users", "my-app", "my_app", "日本", "a.b"];

/// A tool of each name in each app, and answers of every kind.
fn directory() -> ToolDirectory {
    let (mut names, mut descriptions) = (ToolNames::default(), Vec::new());
    for app in APPS {
        for name in NAMES {
            let tool = names.add(format!("{app}:{name}"));
            names.add_spelling(tool, format!("{app}.{name}"));
            names.add_spelling(tool, name);
            names.add_member(tool, app, name);
            let description = serde_json::json!({"name": format!("{app}:{name}"), "n": tool});
            descriptions.push(Arc::new(ToolDescription::new(move || description.to_string())));
        }
    }
    names.add_apps(APPS.map(str::to_owned));
    let pairs = |to: &str| NAMES.iter().map(|name| (Box::from(*name), format!("{name}{to}").into())).collect();
    let answers = ToolLookups { functions: pairs("!"), positional: pairs("?"), ..ToolLookups::default() };
    ToolDirectory::new(names, descriptions).with_answers(answers).with_meta_tools()
}

/// The answers to all lookups of names that exist, are spelled otherwise, or do not exist.
fn answers(tools: &dyn Tools) -> Vec<String> {
    let mut names: Vec<String> = NAMES.iter().chain(&APPS).map(|name| (*name).to_owned()).collect();
    for app in APPS {
        for name in NAMES {
            names.extend([format!("{app}:{name}"), format!("{app}.{name}"), format!("{app}:{name}x")]);
        }
    }
    let mut answers = Vec::new();
    for name in &names {
        let found = (tools.describe(name), tools.is_app(name), tools.function(name), tools.positional(name));
        answers.push(format!("{name}: {found:?} {:?} {}", tools.similar(name), tools.is_reserved(name)));
        let members = APPS.map(|app| tools.member(app, name));
        answers.push(format!("{name}: {members:?}"));
    }
    answers
}

fn deserialised(directory: &ToolDirectory) -> ToolDirectory {
    ToolDirectory::from_bytes(directory.to_bytes().expect("bytes")).expect("a directory")
}

#[test]
fn a_serialised_directory_gives_the_same_answers() {
    let directory = directory();
    let all = answers(&directory);
    assert!(all.iter().any(|answer| answer.contains("Some(\"users:get by id\")")), "{all:?}");
    let second = deserialised(&directory);
    assert_eq!(answers(&second), all);
    assert_eq!(second.to_bytes(), directory.to_bytes(), "equal directories have equal bytes");
    assert_ne!(second.id(), directory.id());
    let empty = ToolDirectory::default();
    assert_eq!(answers(&deserialised(&empty)), answers(&empty));
    assert!(!empty.is_reserved("codecall:search"));
}

#[test]
fn bytes_that_are_no_directory_are_refused() {
    let bytes = directory().to_bytes().expect("bytes").to_vec();
    let longer = [&bytes[..], &[0]].concat();
    for wrong in [&bytes[..bytes.len() - 1], &longer[..], &[0xff; 40][..], &[]] {
        assert!(ToolDirectory::from_bytes(wrong).is_err());
    }
}

#[test]
fn recorded_lookups_give_the_same_answers() {
    let directory = Arc::new(directory());
    let recorder = LookupRecorder::new(Arc::clone(&directory));
    let all = answers(&recorder);
    assert_eq!(answers(&*directory), all);
    let lookups = recorder.take();
    assert!(!lookups.is_empty() && recorder.take().is_empty());
    let replayed = ToolDirectory::from_lookups(lookups).with_meta_tools();
    assert_eq!(answers(&replayed), all);
    assert_eq!(answers(&deserialised(&replayed)), all);
}

#[test]
fn only_what_was_looked_up_is_recorded() {
    let recorder = LookupRecorder::new(Arc::new(directory()));
    assert_eq!(recorder.member("users", "codecall_search").as_deref(), Some("users:codecall:search"));
    assert_eq!(recorder.member("users", "nothing"), None);
    let mut lookups = recorder.take();
    assert!(recorder.is_app("users") && !recorder.is_app("nobody"));
    lookups.append(recorder.take());
    let replayed = ToolDirectory::from_lookups(lookups);
    assert_eq!(replayed.member("users", "codecall_search").as_deref(), Some("users:codecall:search"));
    assert!(replayed.is_app("users"));
    assert_eq!(replayed.member("users", "codecallSearch"), None, "another spelling was not looked up");
    assert_eq!((replayed.describe("users:list"), replayed.similar("users:lst")), (None, Vec::new()));
}

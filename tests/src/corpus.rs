//! Reads the files of `tests/corpus`. `README.md` in that folder describes their format.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// A case of the corpus.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Its file.
    pub file: PathBuf,
    /// Its name.
    pub name: String,
    /// The fixture of its tools.
    pub tools: Option<PathBuf>,
    /// Its context: JSON text.
    pub context: Option<String>,
    /// The name of its preset.
    pub preset: Option<String>,
    /// Limits that replace those of the preset.
    pub limits: Option<Value>,
    /// The only tools that the run may call.
    pub allowed: Option<Vec<String>>,
    /// `javascript` or `typescript`.
    pub language: Option<String>,
    /// `sync`; `None` for the default dialect.
    pub dialect: Option<String>,
    /// Why its expectation differs from Node, if it does.
    pub differs: Option<String>,
    /// Whether it also runs on Node.
    pub on_node: bool,
    /// The script.
    pub script: String,
    /// The expected log lines, each as JSON text.
    pub logs: Vec<String>,
    /// The expected end.
    pub expected: Expected,
}

/// The expected end of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Expected {
    /// The file has no expectation.
    #[default]
    Nothing,
    /// A result: JSON text.
    Result(String),
    /// An uncaught error: `Name: message`.
    Error(String),
    /// A status with a code, and the texts that fields of `error` contain.
    Status(String, Vec<(String, String)>),
}

impl Expected {
    /// Parses a section (`result`, `error`, `status`); `None` if it is another one.
    #[must_use]
    pub fn read(kind: &str, text: &str) -> Option<Self> {
        match kind {
            "result" => Some(Self::Result(text.into())),
            "error" => Some(Self::Error(text.into())),
            "status" => {
                let mut lines = text.lines();
                let first = lines.next().unwrap_or_default().into();
                let fields =
                    lines.filter_map(|line| line.split_once(": ")).map(|(k, v)| (k.into(), v.into())).collect();
                Some(Self::Status(first, fields))
            }
            _ => None,
        }
    }
}

/// Returns all cases in a folder and its subfolders, in the order of their files.
///
/// # Panics
/// If a file cannot be read, or is not a file of the corpus.
#[must_use]
pub fn load(folder: &Path) -> Vec<Case> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    files.iter().flat_map(|file| parse(file, &std::fs::read_to_string(file).expect("a corpus file is text"))).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the corpus is a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
}

/// Parses the cases of a file.
#[must_use]
pub fn parse(file: &Path, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut section = "";
    let mut body = String::new();
    for line in text.split('\n').chain(["=== "]) {
        let next = line
            .strip_prefix("=== ")
            .map(|_| "case")
            .or_else(|| ["logs", "result", "error", "status"].into_iter().find(|name| *line == format!("--- {name}")));
        if let Some(next) = next {
            if let Some(case) = cases.last_mut() {
                end_section(case, section, body.trim_end());
            }
            body.clear();
            section = if next == "case" { "script" } else { next };
            if let Some(name) = line.strip_prefix("=== ") {
                cases.push(Case { file: file.into(), name: name.into(), on_node: true, ..Case::default() });
            }
        } else if section == "script" && body.is_empty() && line.starts_with('@') {
            if let Some(case) = cases.last_mut() {
                header(case, line);
            }
        } else if !section.is_empty() {
            body.push_str(line);
            body.push('\n');
        }
    }
    cases.pop();
    cases
}

fn header(case: &mut Case, line: &str) {
    let (key, value) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
    match key {
        "tools" => case.tools = case.file.parent().map(|folder| folder.join(value)),
        "context" => case.context = Some(value.into()),
        "preset" => case.preset = Some(value.into()),
        "limits" => case.limits = Some(serde_json::from_str(value).expect("limits are JSON")),
        "allowed" => case.allowed = Some(serde_json::from_str(value).expect("allowed is a list")),
        "language" => case.language = Some(value.into()),
        "dialect" => case.dialect = Some(value.into()),
        "no-node" => case.on_node = false,
        "differs" => (case.on_node, case.differs) = (false, Some(value.into())),
        _ => panic!("{}: {}: unknown header {line}", case.file.display(), case.name),
    }
}

fn end_section(case: &mut Case, section: &str, body: &str) {
    match section {
        "script" => case.script = body.into(),
        "logs" => case.logs = body.lines().map(Into::into).collect(),
        kind => {
            if let Some(expected) = Expected::read(kind, body) {
                case.expected = expected;
            }
        }
    }
}

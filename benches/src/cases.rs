//! The measured scripts and their data. The data is generated, always the same.

pub mod growth;
pub mod steps;

use std::fmt::Write as _;
use std::path::Path;

/// A script with its data.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of its file.
    pub name: String,
    /// A title: a few words on what the script does.
    pub title: String,
    /// The source.
    pub script: String,
    /// The `codecallContext` of the script: JSON text.
    pub context: Option<String>,
    /// The answers of tools by name: JSON text.
    pub tools: Vec<(&'static str, String)>,
}

impl Case {
    /// Creates a case without data.
    #[must_use]
    pub fn new(name: &str, title: &str, script: impl Into<String>) -> Self {
        Self { name: name.into(), title: title.into(), script: script.into(), context: None, tools: Vec::new() }
    }

    /// Sets the context.
    #[must_use]
    pub fn with_context(self, json: String) -> Self {
        Self { context: Some(json), ..self }
    }

    /// Adds a tool with its answer.
    #[must_use]
    pub fn with_tool(mut self, name: &'static str, json: String) -> Self {
        self.tools.push((name, json));
        self
    }

    /// Returns the answer of a tool; `null` if it is unknown.
    #[must_use]
    pub fn answer(&self, tool: &str) -> &str {
        self.tools.iter().find(|(name, _)| *name == tool).map_or("null", |(_, json)| json)
    }
}

/// Returns small scripts as models write them, for which the whole time from source text to result matters.
#[must_use]
pub fn fresh() -> Vec<Case> {
    vec![
        Case::new("add", "`return 1 + 1`", include_str!("../fresh/add.js").trim_end()),
        Case::new("users", "filter and map over 100 users passed in", include_str!("../fresh/users.js"))
            .with_context(format!(r#"{{"users":{}}}"#, users(100))),
        Case::new("join", "two tool calls, a join of 2 × 50 rows", include_str!("../fresh/join.js"))
            .with_tool("users:list", users(50))
            .with_tool("orders:list", orders(50)),
        Case::new("parallel", "ten tool calls in `Promise.all`", include_str!("../fresh/parallel.js"))
            .with_tool("items:get", r#"{"id":7,"name":"Desk lamp","price":3900,"stock":12}"#.into()),
        Case::new("aggregate", "40 lines: group, sum and sort 500 rows", include_str!("../fresh/aggregate.js"))
            .with_tool("orders:list", orders(500)),
    ]
}

/// Returns programs that compute for some milliseconds: `kernels/*.js`, sorted by name.
///
/// # Panics
/// If the folder cannot be read.
#[must_use]
pub fn kernels() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let entries = std::fs::read_dir(folder).expect("the folder of the kernels");
    let mut kernels: Vec<Case> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let script = std::fs::read_to_string(&path).expect("a kernel");
            let title = script.lines().next().unwrap_or_default().trim_start_matches("// ").trim_end_matches('.');
            Case::new(&path.file_stem().unwrap_or_default().to_string_lossy(), title, script.as_str())
        })
        .collect();
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    kernels
}

/// Returns users as a tool lists them.
#[must_use]
pub fn users(count: usize) -> String {
    array(count, |i, out| {
        write!(
            out,
            r#"{{"id":"usr_{i:03}","name":"User {i}","email":"user{i}@example.com","active":{},"team":"t{}","score":{}}}"#,
            i % 3 != 0,
            i % 7,
            i * 13 % 97,
        )
    })
}

/// Returns orders as a tool lists them.
#[must_use]
pub fn orders(count: usize) -> String {
    const REGIONS: [&str; 5] = ["north", "south", "east", "west", "overseas"];
    array(count, |i, out| {
        write!(
            out,
            r#"{{"id":"ord_{i:05}","userId":"usr_{:03}","region":"{}","status":"{}","amount":{},"tax":{},"created":"2026-{:02}-{:02}T09:{:02}:00Z"}}"#,
            i * 7 % 60,
            REGIONS[i * 3 % 5],
            if i % 11 == 0 { "cancelled" } else { "paid" },
            1000 + i * 7919 % 90_000,
            i * 7919 % 90_000 / 5,
            i % 12 + 1,
            i % 28 + 1,
            i % 60,
        )
    })
}

/// Returns a JSON array of `count` elements.
pub fn array(count: usize, element: impl Fn(usize, &mut String) -> std::fmt::Result) -> String {
    let mut out = String::from("[");
    for i in 0..count {
        if i > 0 {
            out.push(',');
        }
        element(i, &mut out).expect("a string can be written");
    }
    out.push(']');
    out
}

//! The content of a database as lines of JSON, to move it to another one or to keep a copy. Data that expires soon or
//! that only its servers share is left out.
//!
//! The first line says what the file is. Each further one is a row, with bytes in base64. Secrets stay sealed: another
//! database needs the same master key.

use crate::database::{Database, Problem, Row, Statement, Value};
use crate::{RecordedRun, StoreError};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};
use std::ops::RangeInclusive;
use tokio::sync::mpsc;

/// The version of the format.
const FORMAT: u64 = 1;
/// Rows that are read or written at once.
const PAGE: usize = 500;

/// A table: its name and its columns.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
    /// How many of the last columns files of earlier versions lack.
    added: usize,
}

impl Table {
    /// How many values a row can have.
    fn lengths(&self) -> RangeInclusive<usize> {
        self.columns.len() - self.added..=self.columns.len()
    }
}

const TABLES: [Table; 18] = [
    Table {
        name: "runs",
        columns: &[
            "key",
            "id",
            "kind",
            "parent",
            "status",
            "code",
            "client",
            "title",
            "started",
            "duration_us",
            "script_us",
            "steps",
            "tool_calls",
            "peak_bytes",
            "bytes",
            "saved_bytes",
            "fence",
        ],
        added: 1,
    },
    Table { name: "run_details", columns: &["key", "detail"], added: 0 },
    Table { name: "run_tools", columns: &["tool", "key"], added: 0 },
    Table { name: "secrets", columns: &["workspace", "name", "created", "changed", "sealed"], added: 0 },
    Table {
        name: "approval_requests",
        columns: &[
            "id",
            "subject",
            "run",
            "tool",
            "input",
            "digest",
            "client",
            "scope",
            "asked",
            "expires",
            "state",
            "used",
            "decided",
            "decided_by",
            "reason",
            "long_members",
        ],
        added: 0,
    },
    Table {
        name: "journaled_runs",
        columns: &[
            "id",
            "state",
            "principal",
            "began",
            "active_ms",
            "owner",
            "lease",
            "keep_until",
            "header",
            "outcome",
            "cancelled",
            "fence",
            "resumed",
        ],
        added: 3,
    },
    Table { name: "journal_entries", columns: &["run", "number", "sealed"], added: 0 },
    Table { name: "run_results", columns: &["run", "piece", "keep_until", "sealed"], added: 0 },
    Table { name: "script_tools", columns: &["workspace", "name", "version", "enabled"], added: 0 },
    Table {
        name: "script_tool_versions",
        columns: &["workspace", "name", "version", "code", "typescript", "author", "stored"],
        added: 0,
    },
    Table { name: "script_tool_changes", columns: &["workspace", "changes"], added: 0 },
    Table { name: "master_keys", columns: &["place", "id", "registered"], added: 0 },
    Table { name: "tool_approvals", columns: &["server", "tool", "digest", "definition", "approved"], added: 0 },
    Table { name: "tool_approval_changes", columns: &["server", "changes"], added: 0 },
    Table { name: "credentials", columns: &["server", "version", "sealed"], added: 0 },
    Table { name: "known_servers", columns: &["server", "written", "record"], added: 0 },
    Table { name: "known_shapes", columns: &["app", "written", "record"], added: 0 },
    Table { name: "vectors", columns: &["model", "text", "used", "vector"], added: 0 },
];

/// The content of an exported file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Rows.
    pub rows: u64,
    /// Durable runs that have not ended.
    pub open_runs: u64,
}

/// Writes all rows as they are at one moment, whatever servers write meanwhile: a run has all calls that it has made by then.
///
/// # Errors
/// The database cannot be read, or the file cannot be written.
pub async fn export(database: &Database, to: &mut dyn Write) -> Result<Exported, StoreError> {
    write(to, &json!({"codecallStore": FORMAT, "tables": Database::version()}))?;
    let select = |Table { name, columns, .. }: &Table| {
        // A number of its own for each row needs no second column.
        let order = if columns[0] == "key" { "1" } else { "1, 2" };
        Statement::new(format!("SELECT {} FROM {name} ORDER BY {order}", columns.join(", ")), [])
    };
    let (sender, mut received) = mpsc::channel(PAGE);
    let reading = database.snapshot(TABLES.iter().map(select).collect(), sender);
    let writing = async move {
        let mut exported = Exported::default();
        while let Some((number, row)) = received.recv().await {
            let name = TABLES.get(number).map_or("", |table| table.name);
            if name == "journaled_runs" && row.get(1).and_then(Value::text) != Some("ended") {
                exported.open_runs += 1;
            }
            let values: Vec<Json> = row.iter().map(to_json).collect();
            write(to, &json!({"table": name, "row": values}))?;
            exported.rows += 1;
        }
        Ok(exported)
    };
    let (read, written) = tokio::join!(reading, writing);
    let exported = written?;
    read.map(|()| exported).map_err(|problem| database.error(&problem))
}

/// Reads rows into a database. Rows that it has already are left as they are. Returns the number of rows read.
///
/// # Errors
/// The file is not one of [`export`], or the database cannot be written. Rows before the error are there.
pub async fn import(database: &Database, from: &mut dyn BufRead) -> Result<u64, StoreError> {
    let invalid = |line: u64, problem: &str| StoreError(format!("line {line}: {problem}"));
    let (mut rows, mut line) = (0, 0);
    let mut statements = Vec::new();
    let mut text = String::new();
    loop {
        text.clear();
        line += 1;
        let bytes = from.read_line(&mut text).map_err(|error| invalid(line, &error.to_string()))?;
        if bytes == 0 {
            break;
        }
        let read: Json = serde_json::from_str(&text).map_err(|_| invalid(line, "it is not JSON"))?;
        if line == 1 {
            match (read["codecallStore"].as_u64(), read["tables"].as_i64()) {
                (Some(FORMAT), Some(version)) if version <= Database::version() => continue,
                (Some(_), Some(_)) => return Err(invalid(line, "a newer version of this program has written it")),
                _ => return Err(invalid(line, "it is not a file of `codecall store export`")),
            }
        }
        let table = TABLES.iter().find(|table| read["table"] == table.name);
        let row: Option<Row> = read["row"].as_array().and_then(|row| row.iter().map(from_json).collect());
        let (table, row) = match (table, row) {
            (Some(table), Some(row)) if table.lengths().contains(&row.len()) => (table, row),
            _ => return Err(invalid(line, "it is not a row of a known table")),
        };
        statements.extend(insert(table, row));
        rows += 1;
        if statements.len() >= PAGE {
            flush(database, &mut statements).await?;
        }
    }
    if line == 1 {
        return Err(invalid(line, "it is not a file of `codecall store export`"));
    }
    flush(database, &mut statements).await?;
    Ok(rows)
}

async fn flush(database: &Database, statements: &mut Vec<Statement>) -> Result<(), StoreError> {
    let done = database.batch(std::mem::take(statements)).await;
    done.map(drop).map_err(|problem: Problem| database.error(&problem))
}

/// Returns the statements that insert a row. Words of a run are computed again.
fn insert(table: &Table, row: Row) -> Vec<Statement> {
    let Table { name, columns, .. } = table;
    let columns = &columns[..row.len().min(columns.len())];
    let parameters: Vec<String> = (1..=columns.len()).map(|at| format!("${at}")).collect();
    let (list, parameters) = (columns.join(", "), parameters.join(", "));
    let texts = (*name == "run_details").then(|| {
        let detail = crate::runs::inflated(row[1].bytes()).unwrap_or_default();
        let words = crate::runs::index_words(&RecordedRun::texts_of(&detail));
        // The same run may be imported twice.
        [
            Statement::new("DELETE FROM run_texts WHERE {texts_key} = $1", [row[0].clone()]),
            Statement::new(
                "INSERT INTO run_texts ({texts_key}, words) VALUES ($1, $2)",
                [row[0].clone(), words.as_str().into()],
            ),
        ]
    });
    let sql = format!("INSERT INTO {name} ({list}) VALUES ({parameters}) ON CONFLICT DO NOTHING");
    std::iter::once(Statement::new(sql, row)).chain(texts.into_iter().flatten()).collect()
}

fn write(to: &mut dyn Write, line: &Json) -> Result<(), StoreError> {
    writeln!(to, "{line}").map_err(|error| StoreError(format!("the file cannot be written: {error}")))
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => json!({"base64": BASE64_STANDARD.encode(bytes)}),
    }
}

fn from_json(value: &Json) -> Option<Value> {
    match value {
        Json::Null => Some(Value::Null),
        Json::Number(number) => number.as_i64().map(Value::Int),
        Json::String(text) => Some(text.as_str().into()),
        Json::Object(object) => BASE64_STANDARD.decode(object.get("base64")?.as_str()?).ok().map(Value::Bytes),
        Json::Bool(_) | Json::Array(_) => None,
    }
}

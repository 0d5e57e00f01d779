//! The history of runs.
//!
//! A run consists of its summary, which lists show and filters compare, and its detail, JSON text that only its writer and
//! its readers understand. The detail is compressed. Texts are found by their words.

use crate::database::{Database, Dialect, Problem, Row, Statement, Value};
use crate::{BoxFuture, StoreError};
use codecall_config::HistoryConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How many bits of a key are random: runs of several processes that end in the same microsecond have different keys.
const RANDOM_BITS: u32 = 10;
/// Maximum number of different words by which a run is found.
const MAX_WORDS: usize = 400;
/// Maximum number of spellings of a name of a tool that a filter looks for.
const MAX_SPELLINGS: usize = 64;
/// Maximum length of a word, in bytes. Longer ones are cut, also in queries.
const MAX_WORD_BYTES: usize = 32;
/// How much of a text is searched for words, in bytes.
const MAX_TEXT_BYTES: usize = 4_096;
/// Maximum size of a detail, in bytes, against damaged rows.
const MAX_DETAIL_BYTES: usize = 256 << 20;
/// The level of compression: higher ones take twice the time for 5 % less.
const COMPRESSION: u8 = 3;

/// The kinds of runs: scripts of both dialects, script tools, calls of tools without a script, steps of stateless runs.
pub const RUN_KINDS: [&str; 6] = ["execute", "code_execution", "tool", "invoke", "direct", "step"];
/// The statuses that a filter of runs can name: `failed` are all but `ok`. The last two are those of steps.
pub const RUN_STATUSES: [&str; 9] = [
    "ok",
    "failed",
    "runtime_error",
    "tool_error",
    "timeout",
    "syntax_error",
    "illegal_access",
    "diverged",
    "deadlock",
];

/// A run, as lists show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// The id of the run.
    pub id: String,
    /// The kind of the run: one of [`RUN_KINDS`].
    pub kind: String,
    /// The run that has made the call in which this run is nested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// `ok`, or how it has failed.
    pub status: String,
    /// The code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The client that has requested it, as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The beginning of the script, or the name of the tool.
    pub title: String,
    /// The start, in milliseconds since 1970.
    pub started_ms: i64,
    /// From start to end, in microseconds.
    pub duration_us: i64,
    /// The script's own time, in microseconds.
    pub script_us: i64,
    /// Steps of the script.
    pub steps: i64,
    /// Number of tool calls.
    pub tool_calls: i64,
    /// Maximum memory of the script, in bytes.
    pub peak_memory_bytes: i64,
    /// Bytes of answers of tools that a model did not have to read: what the script has got, without what it has returned
    /// and written to the console.
    pub saved_bytes: i64,
}

/// A run to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRun {
    /// Its summary.
    pub summary: RunSummary,
    /// The tools that it has called.
    pub tools: Vec<String>,
    /// When it has ended, in microseconds since 1970 by the clock of the store. It decides on the order of runs.
    pub ended_us: i64,
    /// How often a process has taken the run over. Of several ends of one run, that with the highest number is right: its outcome
    /// is the one of the journal.
    pub fence: i64,
    /// Everything else: JSON text of an object. The run is found by the words of `script`, `parameters`, `result` and
    /// `error`, which are anything.
    pub detail: String,
}

impl RecordedRun {
    /// Returns the texts by whose words a run is found.
    pub(crate) fn texts_of(detail: &str) -> String {
        let detail: serde_json::Value = serde_json::from_str(detail).unwrap_or_default();
        let mut texts = String::new();
        for part in ["error", "script", "tool", "parameters", "result"] {
            match &detail[part] {
                serde_json::Value::Null => {}
                serde_json::Value::String(text) => texts.push_str(codecall_base::text::truncate(text, MAX_TEXT_BYTES)),
                value => texts.push_str(codecall_base::text::truncate(&value.to_string(), MAX_TEXT_BYTES)),
            }
            texts.push('\n');
        }
        texts
    }
}

/// A filter of runs. All conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The status; `failed` are all but `ok`.
    pub status: Option<String>,
    /// A tool that it has called, by any spelling of its name; with `*` at the end, any that begins so.
    pub tool: Option<String>,
    /// The kind of the run.
    pub kind: Option<String>,
    /// The beginning of the client's name, in any case.
    pub client: Option<String>,
    /// Words that its texts contain, all of them; with `*` at the end, the last one is the beginning of a word.
    pub text: Option<String>,
    /// It has ended at this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// It has ended before this time.
    pub until_ms: Option<i64>,
    /// It has ended after the run with this position.
    pub after: Option<i64>,
    /// It has ended before the run with this position.
    pub before: Option<i64>,
    /// Maximum number of runs.
    pub limit: usize,
}

/// A run in a list, and its position: runs that end later have higher ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    /// The position.
    pub position: i64,
    /// The run.
    pub summary: RunSummary,
}

/// How many runs there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTotals {
    /// Number of runs.
    pub runs: i64,
    /// Bytes that they take, without indexes.
    pub bytes: i64,
}

/// Figures of the runs that have ended in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFigures {
    /// The number of the span, from 0.
    pub span: i64,
    /// Number of runs.
    pub runs: i64,
    /// Number of runs that have failed.
    pub failed: i64,
    /// Number of runs of scripts that a client has requested.
    pub scripts: i64,
    /// The sum of [`RunSummary::saved_bytes`].
    pub saved_bytes: i64,
    /// The duration that half of the runs do not exceed, in microseconds.
    pub median_us: i64,
    /// The duration that 95 % of the runs do not exceed.
    pub p95_us: i64,
}

/// The history of runs.
pub trait RunStore: Send + Sync {
    /// Returns the time of the store, in microseconds since 1970.
    fn now_us(&self) -> i64;

    /// Records runs: all, or none. Of a run that is known already, the end with the highest number stays.
    fn record<'a>(&'a self, runs: &'a [RecordedRun]) -> BoxFuture<'a, Result<(), Problem>>;

    /// Returns the runs of a filter, the latest first.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<ListedRun>, StoreError>>;

    /// Returns a run and its detail, by its id or an unambiguous beginning of it.
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(RunSummary, String)>, StoreError>>;

    /// Deletes runs that are too old or too many, or take too much space. Returns how many.
    fn retain<'a>(&'a self, config: &'a HistoryConfig) -> BoxFuture<'a, Result<i64, StoreError>>;

    /// Returns figures of the runs that have ended since a time in milliseconds since 1970, for each span of `span_ms`
    /// milliseconds in which a run has ended, the earliest first.
    fn figures(&self, since_ms: i64, span_ms: i64) -> BoxFuture<'_, Result<Vec<RunFigures>, StoreError>>;

    /// Returns the names of the tools that most runs have called, those of the most runs first.
    fn used_tools(&self, max: usize) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Counts the runs.
    fn totals(&self) -> BoxFuture<'_, Result<RunTotals, StoreError>>;
}

/// The history in a database.
#[derive(Clone, Debug)]
pub struct SqlRuns(pub Database);

impl SqlRuns {
    /// Returns the recorded names that a name of a tool means, in any spelling; with `*` at the end their beginnings. Most names
    /// mean one, by whose index the runs come in order.
    async fn recorded_names(&self, tool: &str) -> Result<Vec<String>, StoreError> {
        let spellings = spellings(tool);
        if tool.ends_with('*') {
            return Ok(spellings);
        }
        let places: Vec<String> = (1..=spellings.len()).map(|place| format!("${place}")).collect();
        let sql = format!("SELECT DISTINCT tool FROM run_tools WHERE tool IN ({})", places.join(", "));
        let values: Vec<Value> = spellings.iter().map(|name| name.as_str().into()).collect();
        let mut rows = self.0.query(sql, values).await.map_err(|problem| self.0.error(&problem))?;
        if rows.is_empty() && !tool.contains([':', '.']) {
            let sql = "SELECT DISTINCT tool FROM run_tools LIMIT 10000";
            rows = self.0.query(sql, []).await.map_err(|problem| self.0.error(&problem))?;
            rows.retain(|row| row.first().and_then(Value::text).is_some_and(|name| may_be_listed_as(name, tool)));
        }
        Ok(rows.iter().filter_map(|row| row.first()?.text().map(str::to_owned)).collect())
    }
}

/// Whether a tool may be in a list under a name: its own name without the app, or one with `_` for the characters that some
/// client refuses.
fn may_be_listed_as(full_name: &str, listed: &str) -> bool {
    let common = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let own = full_name.split_once(':').map_or(full_name, |(_, own)| own);
    [full_name, own].into_iter().any(|name| name == listed || name.chars().map(common).eq(listed.chars()))
}

/// Returns all spellings of a name of a tool: `app:tool`, `app.tool`, `app_tool`; also those of `app__tool`, as some lists
/// write it. Where the app ends in a name with several separators is not known.
fn spellings(name: &str) -> Vec<String> {
    let separators: &[char] = if name.contains(':') { &[':'] } else { &['.', '_'] };
    let mut spellings = vec![name.to_owned()];
    for (at, separator) in name.match_indices(separators) {
        let (app, tool) = (&name[..at], &name[at + separator.len()..]);
        let doubled = tool.strip_prefix('_').filter(|_| separator == "_");
        for tool in [Some(tool), doubled].into_iter().flatten().filter(|tool| !app.is_empty() && !tool.is_empty()) {
            spellings.extend([':', '.', '_'].map(|separator| format!("{app}{separator}{tool}")));
        }
    }
    spellings.truncate(MAX_SPELLINGS);
    spellings
}

/// The columns of a summary, in the order of [`summary`].
const COLUMNS: &str = "r.key, r.id, r.kind, r.parent, r.status, r.code, r.client, r.title, r.started, r.duration_us, r.script_us, \
                       r.steps, r.tool_calls, r.peak_bytes, r.saved_bytes";

/// The figures of spans. The runs of a span are numbered by their duration.
const FIGURES: &str = "SELECT span, count(*), CAST(sum(failed) AS BIGINT), CAST(sum(script) AS BIGINT), \
    CAST(sum(saved_bytes) AS BIGINT), max(CASE WHEN place = (total + 1) / 2 THEN duration_us ELSE 0 END), \
    max(CASE WHEN place = (total * 95 + 99) / 100 THEN duration_us ELSE 0 END) \
    FROM (SELECT span, failed, script, saved_bytes, duration_us, \
        row_number() OVER (PARTITION BY span ORDER BY duration_us) AS place, \
        count(*) OVER (PARTITION BY span) AS total \
        FROM (SELECT (key - $1) / $2 AS span, CASE WHEN status = 'ok' THEN 0 ELSE 1 END AS failed, \
            CASE WHEN parent IS NULL AND kind IN ('execute', 'code_execution') THEN 1 ELSE 0 END AS script, \
            saved_bytes, duration_us FROM runs WHERE key >= $1) AS spans) AS places \
    GROUP BY span ORDER BY span";

impl RunStore for SqlRuns {
    fn now_us(&self) -> i64 {
        self.0.now_us()
    }

    fn record<'a>(&'a self, runs: &'a [RecordedRun]) -> BoxFuture<'a, Result<(), Problem>> {
        let mut keys = BTreeSet::new();
        let statements = runs.iter().flat_map(|run| {
            let mut key = new_key(run.ended_us);
            while !keys.insert(key) {
                key += 1;
            }
            insert(run, key)
        });
        let statements = statements.collect();
        Box::pin(async move { self.0.batch(statements).await.map(drop) })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<ListedRun>, StoreError>> {
        Box::pin(async move {
            let tools = match &filter.tool {
                Some(tool) => Some(self.recorded_names(tool).await?),
                None => None,
            };
            let Some(statement) = select(filter, tools.as_deref(), self.0.dialect()) else { return Ok(Vec::new()) };
            let rows = self.0.batch(vec![statement]).await.map_err(|problem| self.0.error(&problem))?;
            Ok(rows.iter().map(|row| ListedRun { position: row[0].int(), summary: summary(row) }).collect())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<(RunSummary, String)>, StoreError>> {
        Box::pin(async move {
            // The next text after all that begin with `id`.
            let end = format!("{id}\u{7f}");
            let sql = format!(
                "SELECT {COLUMNS}, d.detail FROM runs r JOIN run_details d ON d.key = r.key \
                 WHERE r.id >= $1 AND r.id < $2 ORDER BY r.id LIMIT 2"
            );
            let rows = self.0.query(sql, [id.into(), end.as_str().into()]).await;
            let rows = rows.map_err(|problem| self.0.error(&problem))?;
            let row = match rows.as_slice() {
                [row] => row,
                [row, _] if row[1].text() == Some(id) => row,
                [_, _, ..] => return Err(StoreError(format!("several runs have an id that begins with {id}"))),
                [] => return Ok(None),
            };
            let detail = row.last().map(Value::bytes).unwrap_or_default();
            Ok(Some((summary(row), inflated(detail).ok_or_else(|| self.0.error(&Problem::Damaged))?)))
        })
    }

    fn retain<'a>(&'a self, config: &'a HistoryConfig) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(async move {
            let age = i64::try_from(config.max_age.as_millis()).unwrap_or(i64::MAX);
            let oldest = first_key(self.0.now_ms().saturating_sub(age));
            // The latest run that is too old, is beyond the count, or is where the sum of bytes exceeds the limit.
            let by_age = self.0.query("SELECT max(key) FROM runs WHERE key < $1", [oldest.into()]);
            let by_count =
                self.0.query("SELECT key FROM runs ORDER BY key DESC LIMIT 1 OFFSET $1", [config.max_runs.into()]);
            let by_size = self.0.query(
                "SELECT max(key) FROM (SELECT key, sum(bytes) OVER (ORDER BY key DESC) AS total FROM runs) AS sums \
                 WHERE total > CAST($1 AS BIGINT)",
                [config.max_bytes.into()],
            );
            let mut last = i64::MIN;
            for rows in [by_age.await, by_count.await, by_size.await] {
                let rows = rows.map_err(|problem| self.0.error(&problem))?;
                if let Some(Value::Int(key)) = rows.first().and_then(|row| row.first()) {
                    last = last.max(*key);
                }
            }
            if last == i64::MIN {
                return Ok(0);
            }
            let deleted = self.0.query("SELECT count(*) FROM runs WHERE key <= $1", [last.into()]).await;
            let deletes = [
                "DELETE FROM run_texts WHERE {texts_key} <= $1",
                "DELETE FROM run_tools WHERE key <= $1",
                "DELETE FROM run_details WHERE key <= $1",
                "DELETE FROM runs WHERE key <= $1",
            ];
            let deleting = self.0.batch(deletes.map(|sql| Statement::new(sql, [last.into()])).into()).await;
            deleting.map_err(|problem| self.0.error(&problem))?;
            let deleted = deleted.map_err(|problem| self.0.error(&problem))?;
            Ok(deleted.first().and_then(|row| row.first()).map(Value::int).unwrap_or_default())
        })
    }

    fn figures(&self, since_ms: i64, span_ms: i64) -> BoxFuture<'_, Result<Vec<RunFigures>, StoreError>> {
        Box::pin(async move {
            let (first, width) = (first_key(since_ms), first_key(span_ms.max(1)));
            let rows = self.0.query(FIGURES, [first.into(), width.into()]).await;
            let rows = rows.map_err(|problem| self.0.error(&problem))?;
            let figures = |row: &Row| RunFigures {
                span: row[0].int(),
                runs: row[1].int(),
                failed: row[2].int(),
                scripts: row[3].int(),
                saved_bytes: row[4].int(),
                median_us: row[5].int(),
                p95_us: row[6].int(),
            };
            Ok(rows.iter().map(figures).collect())
        })
    }

    fn used_tools(&self, max: usize) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT tool, count(*) AS runs FROM run_tools GROUP BY tool ORDER BY runs DESC, tool LIMIT $1";
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            let rows = self.0.query(sql, [max.into()]).await.map_err(|problem| self.0.error(&problem))?;
            Ok(rows.iter().filter_map(|row| row.first()?.text().map(str::to_owned)).collect())
        })
    }

    fn totals(&self) -> BoxFuture<'_, Result<RunTotals, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM runs";
            let rows = self.0.query(sql, []).await.map_err(|problem| self.0.error(&problem))?;
            Ok(rows.first().map(|row| RunTotals { runs: row[0].int(), bytes: row[1].int() }).unwrap_or_default())
        })
    }
}

/// Deletes what is known of a run, unless that is of a later end.
const REPLACED: [&str; 4] = [
    "DELETE FROM run_texts WHERE {texts_key} IN (SELECT key FROM runs WHERE id = $1 AND fence <= $2)",
    "DELETE FROM run_tools WHERE key IN (SELECT key FROM runs WHERE id = $1 AND fence <= $2)",
    "DELETE FROM run_details WHERE key IN (SELECT key FROM runs WHERE id = $1 AND fence <= $2)",
    "DELETE FROM runs WHERE id = $1 AND fence <= $2",
];

/// Returns the statements that insert a run. Where a connection is lost, they may be repeated although they were committed.
fn insert(run: &RecordedRun, key: i64) -> Vec<Statement> {
    let RecordedRun { summary, tools, detail, fence, .. } = run;
    let words = index_words(&RecordedRun::texts_of(detail));
    let detail = deflated(detail);
    let names: usize = tools.iter().map(String::len).sum();
    let bytes = detail.len() + words.len() + names + summary.title.len() + 150;
    let id = || Value::from(summary.id.as_str());
    // Only a run that others can take over has several ends.
    let replaced = REPLACED.iter().filter(|_| *fence > 0).map(|sql| Statement::new(*sql, [id(), (*fence).into()]));
    let mut statements: Vec<Statement> = replaced.collect();
    statements.extend([
        Statement::new(
            "INSERT INTO runs (key, id, kind, parent, status, code, client, title, started, duration_us, script_us, steps, \
             tool_calls, peak_bytes, bytes, saved_bytes, fence) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
             ON CONFLICT (id) DO NOTHING",
            [
                key.into(),
                summary.id.as_str().into(),
                summary.kind.as_str().into(),
                summary.parent.as_deref().into(),
                summary.status.as_str().into(),
                summary.code.as_deref().into(),
                summary.client.as_deref().into(),
                summary.title.as_str().into(),
                summary.started_ms.into(),
                summary.duration_us.into(),
                summary.script_us.into(),
                summary.steps.into(),
                summary.tool_calls.into(),
                summary.peak_memory_bytes.into(),
                (bytes as u64).into(),
                summary.saved_bytes.into(),
                (*fence).into(),
            ],
        ),
        Statement::new(
            "INSERT INTO run_details (key, detail) SELECT key, CAST($1 AS {bytes}) FROM runs WHERE key = $2 AND id = $3 \
             ON CONFLICT DO NOTHING",
            [detail.into(), key.into(), id()],
        ),
        Statement::new(
            "INSERT INTO run_texts ({texts_key}, words) SELECT key, CAST($1 AS TEXT) FROM runs WHERE key = $2 AND id = $3 \
             AND NOT EXISTS (SELECT 1 FROM run_texts t WHERE t.{texts_key} = runs.key)",
            [words.as_str().into(), key.into(), id()],
        ),
    ]);
    for tool in tools.iter().collect::<BTreeSet<_>>() {
        let sql = "INSERT INTO run_tools (tool, key) SELECT CAST($1 AS TEXT), key FROM runs WHERE key = $2 AND id = $3 \
                   ON CONFLICT DO NOTHING";
        statements.push(Statement::new(sql, [tool.as_str().into(), key.into(), id()]));
    }
    statements
}

/// Returns the query of a filter; `None` if no run can match.
/// `tools` are the recorded names, or the beginnings, that `filter.tool` means.
pub(crate) fn select(filter: &RunFilter, tools: Option<&[String]>, dialect: Dialect) -> Option<Statement> {
    let RunFilter { status, tool: _, kind, client, text, since_ms, until_ms, after, before, limit } = filter;
    let mut values: Vec<Value> = Vec::new();
    let mut conditions: Vec<String> = Vec::new();
    // By the index of a tool the runs come in the right order, so that the query ends with the last one that is wanted.
    let (mut from, mut key) = ("runs r", "r.key");
    let add = |conditions: &mut Vec<String>, values: &mut Vec<Value>, condition: &str, value: Value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(text) = text {
        let words: Vec<String> = words(text).collect();
        if words.is_empty() {
            return None;
        }
        let query: Value = dialect.words_query(&words, text.trim_end().ends_with('*')).as_str().into();
        match dialect {
            // The index of words gives its rows in the right order too.
            Dialect::Sqlite => {
                (from, key) = ("run_texts x CROSS JOIN runs r", "x.rowid");
                add(&mut conditions, &mut values, "r.key = x.rowid AND x.run_texts MATCH ?", query);
            }
            Dialect::Postgres => {
                let matching = "to_tsvector('simple', words) @@ to_tsquery('simple', ?)";
                add(
                    &mut conditions,
                    &mut values,
                    &format!("r.key IN (SELECT key FROM run_texts WHERE {matching})"),
                    query,
                );
            }
        }
    }
    match tools {
        None => {}
        Some([]) => return None,
        Some([tool]) if !tool.ends_with('*') && text.is_some() => {
            let condition = "EXISTS (SELECT 1 FROM run_tools t WHERE t.tool = ? AND t.key = r.key)";
            add(&mut conditions, &mut values, condition, tool.as_str().into());
        }
        Some([tool]) if !tool.ends_with('*') => {
            (from, key) = ("run_tools t JOIN runs r ON r.key = t.key", "t.key");
            add(&mut conditions, &mut values, "t.tool = ?", tool.as_str().into());
        }
        Some(tools) => {
            let mut either = Vec::new();
            for tool in tools {
                let (condition, value) = match tool.strip_suffix('*') {
                    Some(beginning) => ("tool LIKE ? ESCAPE '!'", format!("{}%", escape_like(beginning))),
                    None => ("tool = ?", tool.clone()),
                };
                add(&mut either, &mut values, condition, value.as_str().into());
            }
            conditions.push(format!("r.key IN (SELECT key FROM run_tools WHERE {})", either.join(" OR ")));
        }
    }
    match status.as_deref() {
        // As the condition of the index of failed runs is written.
        Some("failed") => conditions.push("r.status <> 'ok'".into()),
        Some(status) => add(&mut conditions, &mut values, "r.status = ?", status.into()),
        None => {}
    }
    if let Some(kind) = kind {
        add(&mut conditions, &mut values, "r.kind = ?", kind.as_str().into());
    }
    if let Some(client) = client {
        let pattern = format!("{}%", escape_like(&client.to_lowercase()));
        add(&mut conditions, &mut values, "lower(r.client) LIKE ? ESCAPE '!'", pattern.as_str().into());
    }
    for (bound, operator) in [(since_ms, ">="), (until_ms, "<")] {
        if let Some(ms) = bound {
            add(&mut conditions, &mut values, &format!("{key} {operator} ?"), first_key(*ms).into());
        }
    }
    for (bound, operator) in [(after, ">"), (before, "<")] {
        if let Some(position) = bound {
            add(&mut conditions, &mut values, &format!("{key} {operator} ?"), (*position).into());
        }
    }
    let mut sql = format!("SELECT {COLUMNS} FROM {from}");
    if !conditions.is_empty() {
        let _ = write!(sql, " WHERE {}", conditions.join(" AND "));
    }
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    values.push(limit.into());
    let _ = write!(sql, " ORDER BY {key} DESC LIMIT ${}", values.len());
    Some(Statement::new(sql, values))
}

/// Escapes a text for `LIKE … ESCAPE '!'`.
fn escape_like(text: &str) -> String {
    text.chars().flat_map(|c| "!%_".contains(c).then_some('!').into_iter().chain([c])).collect()
}

fn summary(row: &Row) -> RunSummary {
    let text = |at: usize| row[at].text().map(str::to_owned);
    RunSummary {
        id: text(1).unwrap_or_default(),
        kind: text(2).unwrap_or_default(),
        parent: text(3),
        status: text(4).unwrap_or_default(),
        code: text(5),
        client: text(6),
        title: text(7).unwrap_or_default(),
        started_ms: row[8].int(),
        duration_us: row[9].int(),
        script_us: row[10].int(),
        steps: row[11].int(),
        tool_calls: row[12].int(),
        peak_memory_bytes: row[13].int(),
        saved_bytes: row[14].int(),
    }
}

/// Compresses a text.
pub fn deflated(text: &str) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), COMPRESSION)
}

/// Returns a text that was compressed; `None`: it is damaged.
pub fn inflated(detail: &[u8]) -> Option<String> {
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(detail, MAX_DETAIL_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the different words of texts, with spaces between them.
pub fn index_words(texts: &str) -> String {
    let mut seen = BTreeSet::new();
    let words = words(texts).filter(|word| seen.insert(word.clone()));
    words.take(MAX_WORDS).collect::<Vec<_>>().join(" ")
}

/// Returns the words of a text: letters and digits, in lower case. `users:getOne` has `users`, `getone`.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| codecall_base::text::truncate(word, MAX_WORD_BYTES).to_lowercase())
}

/// Returns the key of a run.
fn new_key(ended_us: i64) -> i64 {
    let mut random = [0; 4];
    // Without random numbers, two runs of two processes may collide, which fails the later one.
    let _ = getrandom::fill(&mut random);
    position(ended_us) + i64::from(u32::from_le_bytes(random) >> (u32::BITS - RANDOM_BITS))
}

/// Returns the first key of a time in milliseconds since 1970.
fn first_key(ms: i64) -> i64 {
    position(ms.saturating_mul(1_000))
}

/// Returns the first position of a time in microseconds since 1970.
#[must_use]
pub fn position(ended_us: i64) -> i64 {
    ended_us.clamp(0, i64::MAX >> RANDOM_BITS) << RANDOM_BITS
}

/// Returns when a run of a position has ended, in milliseconds since 1970.
#[must_use]
pub fn ended_ms(position: i64) -> i64 {
    (position >> RANDOM_BITS) / 1_000
}

//! The same tests for a file and for Postgres, which is started from the packages of the distribution. Skipped, with a
//! message, where it is not installed or the feature is off.

mod approvals;
mod filters;
#[cfg(unix)]
mod loss;
mod replicas;
mod rotated;
mod shared;
mod snapshot;
#[cfg(feature = "postgres")]
mod server;

use super::*;
use crate::sealed::{KeyRing, SealError, new_key};
use crate::{
    ApprovalRequest, ApprovalRequests as _, ApprovalState, Decided, Decision, Hold, JournalProblem, JournalStore as _,
    JournaledRun, JournaledState, Lease, RecordedRun, ResultStore as _, RunFigures, RunFilter, RunStore as _,
    RunSummary, ScriptToolStore as _, SecretName, SecretStore as _, Spent, SqlApprovalRequests, SqlJournals,
    SqlResults, SqlRuns, SqlScriptTools, SqlSecrets, StoredCode, StoredTool, Submitted, VaultError, now_ms, rotation,
    transfer,
};
use codecall_config::{HistoryConfig, ResultStore as Bounds};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A folder that is deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        // Tests that run at once must not share one.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("codecall-store-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn database(&self) -> Database {
        Database::file(&self.0.join("codecall.db"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(number: usize) -> RecordedRun {
    let is_ok = number % 10 != 3;
    let tool = if number % 50 == 7 { "billing:refund" } else { "users:get" };
    let script =
        format!("const user = await users.get({{ id: {number} }}); return user.name.toUpperCase() + 'x{number}'");
    let detail = serde_json::json!({"script": script, "result": {"name": format!("Person{number}")}, "logs": []});
    RecordedRun {
        summary: RunSummary {
            id: format!("{number:032x}"),
            kind: "execute".into(),
            status: if is_ok { "ok" } else { "runtime_error" }.into(),
            code: (!is_ok).then(|| "TypeError".into()),
            client: Some(if number.is_multiple_of(2) { "Claude 1.2" } else { "cursor 3" }.into()),
            title: script.chars().take(80).collect(),
            started_ms: now_ms(),
            duration_us: 1_000 + number as i64,
            saved_bytes: 10 * number as i64,
            tool_calls: 1,
            ..RunSummary::default()
        },
        tools: vec![tool.into(), "users:get".into()],
        ended_us: crate::now_us(),
        fence: 0,
        detail: detail.to_string(),
    }
}

async fn ids(runs: &SqlRuns, filter: RunFilter) -> Vec<usize> {
    let filter = RunFilter { limit: if filter.limit == 0 { 100 } else { filter.limit }, ..filter };
    let found = runs.list(&filter).await.expect("a list");
    found.iter().map(|run| usize::from_str_radix(&run.summary.id, 16).expect("a number")).collect()
}

/// Checks a history of runs, on any database.
async fn history(database: Database) {
    let runs = SqlRuns(database);
    assert!(ids(&runs, RunFilter::default()).await.is_empty());
    for number in 0..20 {
        // The order is that of the ends.
        runs.record(&[run(number)]).await.expect("recorded");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let with = |change: fn(&mut RunFilter)| {
        let mut filter = RunFilter::default();
        change(&mut filter);
        ids(&runs, filter)
    };
    assert_eq!(with(|_| ()).await, (0..20).rev().collect::<Vec<_>>());
    assert_eq!(with(|f| f.limit = 3).await, [19, 18, 17]);
    assert_eq!(with(|f| f.status = Some("failed".into())).await, [13, 3]);
    assert_eq!(with(|f| f.status = Some("runtime_error".into())).await, [13, 3]);
    assert_eq!(with(|f| f.tool = Some("billing:refund".into())).await, [7]);
    assert_eq!(with(|f| f.tool = Some("bill*".into())).await, [7]);
    assert_eq!(with(|f| f.tool = Some("%".into())).await, [] as [usize; 0]);
    assert_eq!(with(|f| (f.client, f.limit) = (Some("claude".into()), 2)).await, [18, 16]);
    assert_eq!(with(|f| f.text = Some("PERSON12".into())).await, [12]);
    assert_eq!(with(|f| f.text = Some("user pers*".into())).await.len(), 20, "the last word is a beginning");
    assert_eq!(with(|f| f.text = Some("user pers".into())).await, [] as [usize; 0]);
    assert_eq!(with(|f| f.text = Some("\"' OR 1 --".into())).await, [] as [usize; 0]);
    assert_eq!(with(|f| f.text = Some("…".into())).await, [] as [usize; 0]);
    assert_eq!(
        with(|f| (f.text, f.status) = (Some("touppercase x1*".into()), Some("failed".into()))).await,
        [13],
        "conditions are combined"
    );
    assert_eq!(with(|f| f.since_ms = Some(now_ms() + 1_000)).await, [] as [usize; 0]);
    assert_eq!(with(|f| f.until_ms = Some(now_ms() + 1_000)).await.len(), 20);
    let all = runs.list(&RunFilter { limit: 100, ..RunFilter::default() }).await.expect("a list");
    let middle = all[10].position;
    assert_eq!(ids(&runs, RunFilter { after: Some(middle), ..RunFilter::default() }).await.len(), 10);
    assert_eq!(ids(&runs, RunFilter { before: Some(middle), ..RunFilter::default() }).await.len(), 9);

    let figures = runs.figures(now_ms() - 60_000, 120_000).await.expect("figures");
    let all_of_them =
        RunFigures { span: 0, runs: 20, failed: 2, scripts: 20, saved_bytes: 1_900, median_us: 1_009, p95_us: 1_018 };
    assert_eq!(figures, [all_of_them]);
    assert_eq!(runs.figures(now_ms() + 60_000, 1).await, Ok(Vec::new()));

    let (summary, detail) = runs.get(&run(5).summary.id).await.expect("read").expect("it exists");
    assert_eq!((summary, detail), (run(5).summary.clone(), run(5).detail).map_started(&all));
    assert!(runs.get("ffff").await.expect("read").is_none());
    assert!(runs.get("000").await.expect_err("ambiguous").0.contains("several runs"));
    runs.record(&[run(5)]).await.expect("the same end again");
    assert_eq!(with(|_| ()).await.len(), 20, "a run has one row");

    let keep = HistoryConfig { max_runs: 8, ..HistoryConfig::default() };
    assert_eq!(runs.retain(&keep).await, Ok(12));
    assert_eq!(with(|_| ()).await, (12..20).rev().collect::<Vec<_>>());
    assert_eq!(with(|f| f.text = Some("person3".into())).await, [] as [usize; 0], "its words are gone too");
    let totals = runs.totals().await.expect("totals");
    assert_eq!(totals.runs, 8);
    let half = HistoryConfig { max_bytes: totals.bytes.unsigned_abs() / 2 + 10, ..HistoryConfig::default() };
    assert_eq!(runs.retain(&half).await, Ok(4));
    assert_eq!(with(|_| ()).await, [19, 18, 17, 16]);
    let old = HistoryConfig { max_age: Duration::ZERO, ..HistoryConfig::default() };
    assert_eq!(runs.retain(&old).await, Ok(4));
    assert_eq!(runs.retain(&old).await, Ok(0));
}

/// Checks stored results, on any database.
async fn results(database: Database) {
    let bounds = Bounds { max_results: 3, max_bytes: 2_000_000, ..Bounds::default() };
    let store = SqlResults::new(database.clone(), bounds);
    let put = |text: String| async { store.put(text).await.expect("stored") };
    let get = |handle: String| {
        let store = &store;
        async move { store.get(&handle).await.expect("read").map(|text| text.len()) }
    };
    let long = put("ü".repeat(400_000)).await.expect("a handle");
    assert_eq!(get(long.clone()).await, Some(800_000));
    let empty = put(String::new()).await.expect("a handle");
    assert_eq!(get(empty.clone()).await, Some(0));
    assert_eq!(put("x".repeat(2_000_001)).await, None, "it is too long");
    assert_eq!(get("result-of-nobody".into()).await, None);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(get(long.clone()).await, Some(800_000), "reading prolongs it");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let third = put("third".into()).await.expect("a handle");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let fourth = put("fourth".into()).await.expect("a handle");
    assert_eq!(get(empty).await, None, "the least recently read one is evicted");
    assert_eq!(get(third.clone()).await, Some(5));
    tokio::time::sleep(Duration::from_millis(5)).await;
    let large = put("y".repeat(1_500_000)).await.expect("a handle");
    assert_eq!((get(long).await, get(large).await), (None, Some(1_500_000)), "bytes are bounded");
    assert_eq!(get(fourth.clone()).await, Some(6));
    database.query("UPDATE results SET expires = 1", []).await.expect("changed");
    assert_eq!(get(fourth).await, None, "it has expired");
    assert_eq!(database.query("SELECT handle FROM results", []).await.expect("rows").len(), 0);
}

#[tokio::test]
async fn a_file_keeps_results() {
    let folder = Folder::new("results");
    results(folder.database()).await;
}

/// Replaces the time of the start, which differs.
trait WithStart {
    fn map_started(self, all: &[crate::ListedRun]) -> Self;
}

impl WithStart for (RunSummary, String) {
    fn map_started(mut self, all: &[crate::ListedRun]) -> Self {
        let same = all.iter().find(|run| run.summary.id == self.0.id).expect("it is listed");
        self.0.started_ms = same.summary.started_ms;
        self
    }
}

/// Checks stored secrets, on any database.
async fn secrets(database: Database) {
    let keys = KeyRing::parse(&new_key().expect("random"), "test").expect("a key");
    let vault = SqlSecrets(database.clone());
    let (api, other) = (SecretName::in_default("API_KEY"), SecretName { workspace: "team", name: "API_KEY" });
    assert_eq!(vault.get(&keys, api).await.expect("read").map(|value| value.to_string()), None);
    vault.set(&keys, api, "hunter2-very-long").await.expect("stored");
    vault.set(&keys, other, "another-secret\nwith lines \u{1f511}").await.expect("stored");
    let (vault_ref, keys_ref) = (&vault, &keys);
    let value = |name| async move { vault_ref.get(keys_ref, name).await.expect("read").map(|value| value.to_string()) };
    assert_eq!(value(api).await.as_deref(), Some("hunter2-very-long"));
    assert_eq!(value(other).await.as_deref(), Some("another-secret\nwith lines \u{1f511}"));
    vault.set(&keys, api, "hunter3-very-long").await.expect("replaced");
    assert_eq!(value(api).await.as_deref(), Some("hunter3-very-long"));
    let entries = vault.list(None).await.expect("a list");
    let names: Vec<_> = entries.iter().map(|entry| (entry.workspace.as_str(), entry.name.as_str())).collect();
    assert_eq!(names, [("default", "API_KEY"), ("team", "API_KEY")]);
    assert_eq!(vault.list(Some("team")).await.expect("a list").len(), 1);
    assert!(matches!(vault.set(&keys, api, "short").await, Err(VaultError::Invalid(_))));
    assert!(SecretName::parse("a b", "default").is_err() && SecretName::parse("a/b/c", "default").is_err());
    assert_eq!(SecretName::parse("team/API_KEY", "default"), Ok(other));

    // A row that was copied to another name, and another key, open nothing.
    let copy =
        "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE workspace = 'team') WHERE workspace = 'default'";
    database.query(copy, []).await.expect("changed");
    assert_eq!(vault.get(&keys, api).await.err(), Some(VaultError::Seal(SealError::Tampered)));
    vault.set(&keys, api, "hunter4-very-long").await.expect("set again");
    let (new, old) = (new_key().expect("random"), new_key().expect("random"));
    let wrong = KeyRing::parse(&new, "test").expect("a key");
    assert!(matches!(vault.get(&wrong, api).await, Err(VaultError::Seal(SealError::OtherKey(_)))));
    assert!(!rotation::seal_again(&database, &wrong).await.expect("read").left.is_empty());
    assert!(KeyRing::parse(&old, "test").is_ok());
    assert_eq!(rotation::seal_again(&database, &keys).await, Ok(rotation::Rotated::default()));
    assert_eq!(vault.remove(api).await, Ok(true));
    assert_eq!(vault.remove(api).await, Ok(false));
}

async fn script_tools(database: Database) {
    let tools = SqlScriptTools(database);
    let code = |text: &str| StoredCode { code: text.to_owned(), typescript: text.contains(':') };
    assert_eq!(tools.stamp("web").await, Ok(0));
    assert_eq!(tools.put("web", "b", &code("one"), "ada").await, Ok(1));
    assert_eq!(tools.put("web", "b", &code("two: string"), "grace").await, Ok(2));
    assert_eq!(tools.put("web", "a", &code("a"), "ada").await, Ok(1));
    assert_eq!(tools.put("other", "b", &code("x"), "ada").await, Ok(1));
    let listed = |found: &[StoredTool]| -> Vec<(String, i64, bool)> {
        found.iter().map(|tool| (tool.name.clone(), tool.version.version, tool.enabled)).collect()
    };
    let all = tools.list("web").await.expect("tools");
    assert_eq!(listed(&all), [("a".into(), 1, true), ("b".into(), 2, true)]);
    assert!(
        all[1].version.code == code("two: string") && all[1].version.author == "grace" && all[1].version.stored_ms > 0
    );
    let before = tools.stamp("web").await.expect("a stamp");
    assert_eq!(tools.set_enabled("web", "b", false).await, Ok(true));
    assert_ne!(tools.stamp("web").await, Ok(before));
    assert_eq!(tools.set_enabled("web", "c", false).await, Ok(false));
    assert_eq!(tools.put("web", "b", &code("three"), "ada").await, Ok(3), "it stays disabled");
    assert_eq!(listed(&tools.list("web").await.expect("tools")), [("a".into(), 1, true), ("b".into(), 3, false)]);
    let versions = tools.versions("web", "b").await.expect("versions");
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(versions[2].code, code("one"));
    assert_eq!(tools.remove("web", "b").await, Ok(true));
    assert_eq!(tools.remove("web", "b").await, Ok(false));
    assert_eq!(tools.versions("web", "b").await.expect("versions").len(), 3);
    assert_eq!(tools.put("web", "b", &code("four"), "ada").await, Ok(4), "its versions go on");
    assert_eq!(listed(&tools.list("other").await.expect("tools")), [("b".into(), 1, true)]);
}

#[tokio::test]
async fn a_file_keeps_script_tools() {
    let folder = Folder::new("script-tools");
    script_tools(folder.database()).await;
}

#[tokio::test]
async fn a_file_keeps_the_history() {
    let folder = Folder::new("history");
    history(folder.database()).await;
}

#[tokio::test]
async fn a_file_keeps_secrets() {
    let folder = Folder::new("secrets");
    secrets(folder.database()).await;
}

#[tokio::test]
async fn a_rotated_key_reads_everything() {
    let folder = Folder::new("rotation");
    let vault = SqlSecrets(folder.database());
    let (old, new) = (new_key().expect("random"), new_key().expect("random"));
    let before = KeyRing::parse(&old, "test").expect("a key");
    let name = SecretName::in_default("A");
    vault.set(&before, name, "a-secret-value").await.expect("stored");
    let both = KeyRing::parse(&format!("{}\n{}", *new, *old), "test").expect("two keys");
    let rotated = rotation::seal_again(&folder.database(), &both).await.expect("rotated");
    assert_eq!((rotated.sealed.to_string().as_str(), rotated.left.is_empty()), ("1 secrets", true));
    let after = KeyRing::parse(&new, "test").expect("a key");
    assert_eq!(
        vault.get(&after, name).await.expect("read").map(|value| value.to_string()).as_deref(),
        Some("a-secret-value")
    );
    assert!(vault.get(&before, name).await.is_err());
}

#[tokio::test]
async fn no_value_is_in_the_file() {
    let folder = Folder::new("bytes");
    let database = folder.database();
    let keys = KeyRing::parse(&new_key().expect("random"), "test").expect("a key");
    let value = "a-value-that-must-not-be-there";
    SqlSecrets(database.clone()).set(&keys, SecretName::in_default("A"), value).await.expect("stored");
    database.vacuum().await.expect("vacuumed");
    for entry in std::fs::read_dir(&folder.0).expect("a folder").flatten() {
        let bytes = std::fs::read(entry.path()).expect("readable");
        assert!(!bytes.windows(12).any(|part| value.as_bytes().windows(12).any(|of| of == part)), "{entry:?}");
    }
}

#[tokio::test]
async fn everything_moves_to_another_database() {
    let folder = Folder::new("export");
    let from = folder.database();
    let keys = KeyRing::parse(&new_key().expect("random"), "test").expect("a key");
    let numbers: Vec<RecordedRun> = (0..1_203).map(run).collect();
    SqlRuns(from.clone()).record(&numbers).await.expect("recorded");
    SqlSecrets(from.clone()).set(&keys, SecretName::in_default("A"), "a-secret-value").await.expect("stored");
    let mut file = Vec::new();
    let rows = transfer::export(&from, &mut file).await.expect("exported").rows;
    let to = Database::file(&folder.0.join("other.db"));
    assert_eq!(transfer::import(&to, &mut file.as_slice()).await, Ok(rows));
    assert_eq!(transfer::import(&to, &mut file.as_slice()).await, Ok(rows), "a second time changes nothing");
    let mut again = Vec::new();
    transfer::export(&to, &mut again).await.expect("exported");
    assert!(file == again);
    let text = RunFilter { text: Some("person77*".into()), ..RunFilter::default() };
    assert_eq!(ids(&SqlRuns(to.clone()), RunFilter { limit: 2, ..text }).await.len(), 2);
    assert!(SqlSecrets(to.clone()).get(&keys, SecretName::in_default("A")).await.expect("opened").is_some());
    for (text, problem) in [
        ("", "not a file of"),
        ("{}\n", "not a file of"),
        ("{\"codecallStore\":1,\"tables\":999}\n", "newer"),
        ("{\"codecallStore\":1,\"tables\":1}\n{\"table\":\"x\",\"row\":[]}\n", "line 2: it is not a row"),
        ("{\"codecallStore\":1,\"tables\":1}\nnonsense\n", "line 2: it is not JSON"),
    ] {
        let error = transfer::import(&to, &mut text.as_bytes()).await.expect_err(problem);
        assert!(error.0.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_says_what_to_do() {
    let folder = Folder::new("problems");
    let problem = |path: PathBuf| async move { Database::file(&path).check().await.err() };
    assert_eq!(problem(folder.0.clone()).await, Some(Problem::NoFile));
    let path = |name: &str| folder.0.join(name);
    std::fs::write(path("text"), "x".repeat(5_000)).expect("written");
    assert_eq!(problem(path("text")).await, Some(Problem::Damaged));
    assert_eq!(std::fs::read(path("text")).expect("readable"), "x".repeat(5_000).as_bytes(), "it was not changed");
    assert!(matches!(problem(path("text").join("file")).await, Some(Problem::NoFolder(_))));
    let foreign = rusqlite::Connection::open(path("foreign")).expect("opened");
    foreign.execute_batch("CREATE TABLE t (a)").expect("created");
    assert_eq!(problem(path("foreign")).await, Some(Problem::Foreign));
    Database::file(&path("newer")).check().await.expect("created");
    let newer = rusqlite::Connection::open(path("newer")).expect("opened");
    newer.execute("INSERT INTO codecall_migrations VALUES (99, 'x', 0)", []).expect("inserted");
    assert_eq!(problem(path("newer")).await, Some(Problem::Newer { found: 99, known: schema::VERSION }));
    newer.execute("DELETE FROM codecall_migrations WHERE version = 99", []).expect("deleted");
    newer.execute("UPDATE codecall_migrations SET digest = 'other'", []).expect("changed");
    assert_eq!(problem(path("newer")).await, Some(Problem::Differs(1)));
    assert!(schema::missing(&[], Dialect::Sqlite).is_ok_and(|all| all.len() as i64 == schema::VERSION));
}

#[tokio::test]
async fn a_database_that_is_mended_is_used_again() {
    let folder = Folder::new("mended");
    let path = folder.0.join("codecall.db");
    std::fs::write(&path, "x".repeat(5_000)).expect("written");
    let runs = SqlRuns(folder.database());
    assert!(runs.record(&[run(1)]).await.is_err());
    std::fs::remove_file(&path).expect("removed");
    runs.record(&[run(1)]).await.expect("recorded");
    assert_eq!(ids(&runs, RunFilter::default()).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_connections_write_at_once() {
    let folder = Folder::new("shared");
    let writers = (0..4).map(|writer| {
        let runs = SqlRuns(folder.database());
        tokio::spawn(async move {
            for number in 0..25 {
                runs.record(&[run(writer * 1_000 + number)]).await.expect("recorded");
            }
        })
    });
    futures_util::future::try_join_all(writers.collect::<Vec<_>>()).await.expect("no panic");
    assert_eq!(ids(&SqlRuns(folder.database()), RunFilter { limit: 1_000, ..RunFilter::default() }).await.len(), 100);
    assert_eq!(folder.database().check().await, Ok(Vec::new()));
}

/// Several ends of one run, and runs that are recorded twice, in any order.
async fn ends_of_runs(database: Database) {
    let runs = SqlRuns(database.clone());
    let end = |number: usize, fence: i64, status: &str| {
        let run = run(number);
        RecordedRun { fence, summary: RunSummary { status: status.into(), ..run.summary }, ..run }
    };
    let (lost, right) = (end(1, 1, "runtime_error"), end(1, 2, "ok"));
    for batch in [[&lost, &right], [&right, &lost], [&lost, &lost]] {
        let mut batch: Vec<RecordedRun> = batch.into_iter().cloned().collect();
        // Others in the batch are recorded, also if they were before.
        batch.extend([end(2, 0, "ok"), end(5, 0, "ok"), end(5, 0, "timeout")]);
        runs.record(&batch).await.expect("recorded");
    }
    let listed = runs.list(&RunFilter { limit: 10, ..RunFilter::default() }).await.expect("a list");
    let mut listed: Vec<_> = listed.iter().map(|run| (&run.summary.id[31..], &*run.summary.status)).collect();
    listed.sort_unstable();
    assert_eq!(listed, [("1", "ok"), ("2", "ok"), ("5", "ok")]);
    // Nothing is left of those that were replaced.
    for table in ["run_details", "run_texts"] {
        let count = database.query(format!("SELECT count(*) FROM {table}"), []).await.expect("counted");
        assert_eq!(count[0][0].int(), 3, "{table}");
    }
    assert_eq!(ids(&runs, RunFilter { text: Some("person1".into()), ..RunFilter::default() }).await, [1]);
    assert!(runs.get(&right.summary.id).await.is_ok_and(|run| run.is_some_and(|(run, _)| run.status == "ok")));
}

#[tokio::test]
async fn a_run_has_one_end_in_a_file() {
    ends_of_runs(Folder::new("ends").database()).await;
}

/// Batches that wait for each other are written together: one that fails does no harm to the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_fails_alone() {
    let folder = Folder::new("together");
    let database = folder.database();
    assert_eq!(database.check().await, Ok(Vec::new()));
    let insert = |id: String, state: &str| {
        let sql = "INSERT INTO journaled_runs (id, state, began, active_ms, lease, keep_until, header) \
                   VALUES ($1, $2, 0, 0, 0, 0, $3)";
        Statement::new(sql, [id.as_str().into(), state.into(), Value::Bytes(vec![1])])
    };
    let batches = (0..600).map(|number| {
        let (id, database) = (format!("run {}", number / 2), database.clone());
        // The second of a pair has an id that is used, after a statement that succeeds.
        let statements = match number % 2 {
            0 => vec![insert(id, "ended")],
            _ => vec![insert(format!("more {number}"), "ended"), insert(id, "running")],
        };
        tokio::spawn(async move { database.batch(statements).await.is_ok() })
    });
    let done = futures_util::future::try_join_all(batches.collect::<Vec<_>>()).await.expect("no panic");
    let count = done.iter().filter(|&&done| done).count();
    assert_eq!(count, 300, "one of each pair");
    let sql = "SELECT id, state FROM journaled_runs ORDER BY id";
    let rows = database.batch(vec![Statement::new(sql, [])]).await.expect("read");
    let expected: usize = (0..300).map(|pair| if done[pair * 2 + 1] { 2 } else { 1 }).sum();
    assert_eq!(rows.len(), expected);
}

/// The moment between "the file is empty" and "it has our mark" is short, so many files are created.
#[tokio::test(flavor = "multi_thread")]
async fn several_connections_create_a_file_at_once() {
    let folder = Folder::new("created");
    for file in 0..100 {
        let path = folder.0.join(format!("{file}.db"));
        let openings = (0..4).map(|_| {
            let database = Database::file(&path);
            tokio::spawn(async move { database.check().await })
        });
        let found = futures_util::future::try_join_all(openings.collect::<Vec<_>>()).await.expect("no panic");
        assert_eq!(found, vec![Ok(Vec::new()); 4], "file {file}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("private");
    let database = Database::file(&folder.0.join("inner/codecall.db"));
    SqlRuns(database.clone()).record(&[run(1)]).await.expect("recorded");
    for (path, mode) in [("inner", 0o700), ("inner/codecall.db", 0o600), ("inner/codecall.db-wal", 0o600)] {
        let metadata = std::fs::metadata(folder.0.join(path)).expect(path);
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
}

#[tokio::test]
async fn approvals_and_journals_are_kept_in_a_file() {
    approvals::keep_and_decide(Folder::new("approvals").database()).await;
}

#[tokio::test]
async fn a_rotation_reaches_all_that_is_sealed() {
    let folder = Folder::new("rotation");
    rotated::reaches_all(folder.database()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_of_one_moment() {
    let folder = Folder::new("snapshot");
    snapshot::is_consistent(folder.database()).await;
}

#[tokio::test]
async fn replicas_share_a_file() {
    replicas::share(Folder::new("replicas").database()).await;
}

#[tokio::test]
async fn a_file_has_what_servers_share() {
    let folder = Folder::new("shared");
    shared::is_shared(&folder, || folder.database()).await;
}

/// All in one test, because a server takes seconds to start.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn postgres_does_the_same() {
    let server = server::Server::start().expect("Postgres is installed (the package postgresql)");
    // Two servers that start at the same time make the tables once.
    let database = || Database::postgres(&server.url()).expect("an address");
    let (a, b) = (database(), database());
    let (first, second) = tokio::join!(a.check(), b.check());
    assert_eq!((first, second), (Ok(Vec::new()), Ok(Vec::new())));
    ends_of_runs(database()).await;
    for table in ["runs", "run_details", "run_tools", "run_texts"] {
        a.query(format!("DELETE FROM {table}"), []).await.expect("deleted");
    }
    history(database()).await;
    secrets(database()).await;
    script_tools(database()).await;
    results(database()).await;
    approvals::keep_and_decide(database()).await;
    replicas::share(database()).await;
    // A message wakes its recipient.
    let (listener, keys) = (b.listen("two"), KeyRing::parse(&new_key().expect("random"), "test").expect("a key"));
    listener.notified().await;
    crate::SqlReplicas::new(a.clone()).send(&keys, "one", &["two".into()], "a", "x").await.expect("sent");
    tokio::time::timeout(Duration::from_secs(60), listener.notified()).await.expect("notified");
    // Its secrets were sealed with keys of other tests.
    for table in ["secrets", "journaled_runs", "journal_entries"] {
        a.query(format!("DELETE FROM {table}"), []).await.expect("deleted");
    }
    let shared = Folder::new("shared-postgres");
    shared::is_shared(&shared, database).await;
    let (one, two) = (SqlRuns(a.clone()), SqlRuns(b));
    let writing = |runs: SqlRuns, first: usize| async move {
        for number in first..first + 50 {
            runs.record(&[run(number)]).await.expect("recorded");
        }
    };
    tokio::join!(writing(one.clone(), 1_000), writing(two, 2_000));
    assert_eq!(one.totals().await.expect("totals").runs, 100);
    let mut file = Vec::new();
    let rows = transfer::export(&a, &mut file).await.expect("exported").rows;
    let folder = Folder::new("from-postgres");
    assert_eq!(transfer::import(&folder.database(), &mut file.as_slice()).await, Ok(rows));
    snapshot::is_consistent(database()).await;
    for table in [
        "secrets",
        "journaled_runs",
        "journal_entries",
        "run_results",
        "answers",
        "tasks",
        "credentials",
        "replica_secrets",
    ] {
        a.query(format!("DELETE FROM {table}"), []).await.expect("deleted");
    }
    rotated::reaches_all(database()).await;
    a.vacuum().await.expect("vacuumed");
    // It goes away, and comes back.
    server.stop().expect("stopped");
    let problem = one.record(&[run(1)]).await.expect_err("it is gone");
    assert!(problem.is_passing(), "{problem}");
    server.begin().expect("started");
    one.record(&[run(1)]).await.expect("recorded");
    a.query("INSERT INTO codecall_migrations VALUES (99, 'x', 0)", []).await.expect("inserted");
    assert!(matches!(database().check().await, Err(Problem::Newer { found: 99, .. })));
}

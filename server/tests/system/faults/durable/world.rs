//! Servers on one store behind a balancer, and the bank that their scripts pay with.

use super::bank::{Bank, PERMITS, SERVER};
use super::database::Database;
use super::proxy::Proxy;
use super::random::Random;
use crate::faults::machine::find_libfaketime;
use crate::model_server::http_client;
use crate::support::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long a server that has died holds its runs.
pub const LEASE: Duration = Duration::from_millis(1_000);
/// How long clients wait for an answer.
const ANSWER: Duration = Duration::from_secs(3);
/// How long a server is started again and again, as a supervisor does.
const START: Duration = Duration::from_secs(30);

/// The effect of a fault, with its moment: what is not a violation after it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A server was killed. What it had to record may be lost.
    Killed { server: String, at: Instant },
    /// A server that was suspended goes on. A call that it was just sending may be late.
    Continued { server: String, at: Instant },
    /// The store is gone, with all that was in it.
    Gone { at: Instant },
    /// The store is as it was at a time.
    Restored { to: Instant },
}

/// The needs of an attempt from its world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    pub servers: usize,
    /// Servers have clocks of their own.
    pub clocks: bool,
    /// The store is on a small disk.
    pub small_disk: bool,
    /// Servers are of two versions.
    pub other: bool,
}

/// One server.
pub struct Replica {
    pub name: String,
    program: PathBuf,
    child: Option<Child>,
    address: Option<SocketAddr>,
    /// Between it and its database.
    pub network: Option<Proxy>,
    log: String,
    clock: String,
}

pub struct World {
    pub folder: Folder,
    pub began: Instant,
    pub bank: Bank,
    /// Between servers and the bank.
    pub bank_network: Proxy,
    /// Before the servers.
    pub balancer: Proxy,
    pub replicas: Vec<tokio::sync::Mutex<Replica>>,
    pub database: Option<Arc<Database>>,
    /// The names of the databases in Postgres; the last one is used.
    databases: Mutex<Vec<String>>,
    config: String,
    needs: Needs,
    events: Mutex<Vec<Event>>,
    /// Commands that have failed.
    failures: Mutex<Vec<String>>,
}

/// The program under test, or the other one.
pub fn program() -> PathBuf {
    std::env::var_os("FAULTS_PROGRAM").map_or_else(|| PROGRAM.into(), PathBuf::from)
}

/// Another version of the program.
pub fn other_program() -> Option<PathBuf> {
    std::env::var_os("FAULTS_OTHER").map(PathBuf::from)
}

impl World {
    pub async fn start(needs: Needs, database: Option<Arc<Database>>) -> Self {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path("state")).expect("a folder");
        if needs.small_disk {
            small_disk(&folder.path("state"));
        }
        let (bank, address) = Bank::start(&folder.path("bank.jsonl")).await;
        let bank_network = Proxy::start(vec![address]).await;
        let store = match &database {
            Some(_) => {
                json!({"url": "postgres://codecall@127.0.0.1:${FAULTS_PORT}/${FAULTS_DATABASE}?sslmode=disable"})
            }
            None => json!({"path": folder.path("state/codecall.db")}),
        };
        let headers = json!({SERVER: "${FAULTS_SERVER}"});
        let config = json!({
            "mcpServers": {"bank": {"url": format!("http://{}/mcp", bank_network.address), "headers": headers}},
            "stateDir": folder.path("state"),
            "store": store,
            "durable": {"enabled": true, "leaseMs": LEASE.as_millis()},
            // A busy machine is no fault.
            "vm": {"timeoutMs": 60_000, "maxDurationMs": 300_000},
            // Calls wait for permits.
            "concurrencyLimits": [{"tool": "bank:pay", "limit": PERMITS}],
            "approval": {"rules": [{"tool": "bank:transfer", "approval": "always"}]},
        });
        let world = Self {
            config: folder.file("config.json", config.to_string()),
            folder,
            began: Instant::now(),
            bank,
            bank_network,
            balancer: Proxy::start(Vec::new()).await,
            replicas: Vec::new(),
            database,
            databases: Mutex::default(),
            needs,
            events: Mutex::default(),
            failures: Mutex::default(),
        };
        world.new_database().await;
        let mut world = world;
        for number in 0..needs.servers {
            let replica = world.replica(number).await;
            world.replicas.push(tokio::sync::Mutex::new(replica));
        }
        futures_util::future::join_all((0..needs.servers).map(|number| world.begin(number))).await;
        world
    }

    async fn replica(&self, number: usize) -> Replica {
        let name = format!("s{number}");
        let network = match &self.database {
            Some(database) => Some(Proxy::start(vec![database.address]).await),
            None => None,
        };
        let other = other_program().filter(|_| self.needs.other && number % 2 == 1);
        Replica {
            program: other.unwrap_or_else(program),
            child: None,
            address: None,
            network,
            log: self.folder.file(&format!("{name}.log"), ""),
            clock: self.folder.file(&format!("{name}.clock"), "+0"),
            name,
        }
    }

    /// Makes an empty database, and uses it from now on.
    pub async fn new_database(&self) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if let Some(database) = &self.database {
            let name = format!("faults{}", COUNT.fetch_add(1, Ordering::Relaxed));
            database.execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
            self.databases.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        }
    }

    /// Drops the databases.
    pub async fn clear(&self) {
        let names = std::mem::take(&mut *self.databases.lock().unwrap_or_else(PoisonError::into_inner));
        for (database, name) in self.database.iter().flat_map(|database| names.iter().map(move |name| (database, name)))
        {
            let _ = database.execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }

    pub const fn needs(&self) -> Needs {
        self.needs
    }

    /// Sets the maximum length of files that servers write, in bytes.
    pub async fn limit_files(&self, most: &str) {
        for replica in &self.replicas {
            if let Some(id) = replica.lock().await.child.as_ref().and_then(Child::id) {
                let words = [format!("--pid={id}"), format!("--fsize={most}:unlimited")];
                let _ = Command::new("prlimit").args(words).status().await;
            }
        }
    }

    pub fn note(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a command has failed.
    pub fn fail(&self, problem: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    }

    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the path of the file of the store.
    pub fn store(&self) -> PathBuf {
        Path::new(&self.folder.path("state")).join("codecall.db")
    }

    /// Returns the number of a server by chance.
    pub fn any(&self, random: &mut Random) -> usize {
        random.below(self.replicas.len() as u64) as usize
    }

    /// Starts a server that does not run, until it listens. Whether it does.
    pub async fn begin(&self, number: usize) -> bool {
        let mut replica = self.replicas[number].lock().await;
        let began = Instant::now();
        while began.elapsed() < START {
            let network = replica.network.as_ref().map(|network| network.address);
            let mut command = Command::new("sh");
            self.prepare(&mut command, &replica.name, network);
            // A write that is too long fails, and is no signal.
            command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
            command.arg(&replica.program).args(["serve", "--http", "0", "--config", &self.config]);
            if self.needs.clocks {
                command.envs(find_libfaketime().map(|library| ("LD_PRELOAD", library)));
                command.env("FAKETIME_TIMESTAMP_FILE", &replica.clock);
                command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            }
            let seen = std::fs::read_to_string(&replica.log).unwrap_or_default().len();
            let log = std::fs::OpenOptions::new().append(true).open(&replica.log).expect("a file of ours");
            let child = command.stdin(Stdio::null()).stderr(log).kill_on_drop(true).spawn().expect("starts");
            if let Some((child, address)) = listening(child, &replica.log, seen).await {
                (replica.child, replica.address) = (Some(child), Some(address));
                drop(replica);
                self.balance().await;
                return true;
            }
            let log = std::fs::read_to_string(&replica.log).unwrap_or_default();
            let last = log.lines().next_back().unwrap_or_default();
            let problem = format!("server {} ends when it is started: {last}", replica.name);
            // One that has a database waits for it.
            if self.database.is_some() {
                self.fail(problem);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        false
    }

    /// Gives a command the environment of a server.
    fn prepare(&self, command: &mut Command, name: &str, network: Option<SocketAddr>) {
        let port =
            network.or(self.database.as_ref().map(|database| database.address)).map_or(0, |address| address.port());
        let databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        let database = databases.last().map_or("", String::as_str);
        command.env("FAULTS_SERVER", name).env("FAULTS_PORT", port.to_string()).env("FAULTS_DATABASE", database);
        command.env_remove("RUST_LOG");
    }

    /// The files of the store.
    pub fn files(&self) -> [PathBuf; 3] {
        ["db", "db-wal", "db-shm"].map(|extension| self.store().with_extension(extension))
    }

    /// Runs a command of the program beside the servers. Returns what it prints, or how it fails.
    pub async fn run(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program());
        self.prepare(&mut command, "cli", None);
        let finished = finish(command.args(words).args(["--config", &self.config]), "").await;
        match finished.code {
            Some(0) => Ok(finished.stdout),
            _ => Err(format!("codecall {}: {finished:?}", words.join(" "))),
        }
    }

    /// Lets the balancer know which servers run.
    async fn balance(&self) {
        let mut targets = Vec::new();
        for replica in &self.replicas {
            targets.extend(replica.lock().await.address);
        }
        self.balancer.set_targets(targets);
    }

    /// Returns the addresses of the servers that run.
    pub async fn urls(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for replica in &self.replicas {
            urls.extend(replica.lock().await.address.map(|address| format!("http://{address}")));
        }
        urls
    }

    pub async fn signal(&self, number: usize, signal: Signal) {
        let replica = self.replicas[number].lock().await;
        let id = replica.child.as_ref().and_then(Child::id).and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            let _ = kill_process(id, signal);
        }
        let server = replica.name.clone();
        match signal {
            Signal::KILL => self.note(Event::Killed { server, at: Instant::now() }),
            Signal::CONT => self.note(Event::Continued { server, at: Instant::now() }),
            _ => {}
        }
    }

    /// Ends a server by a signal. Whether it ended in time.
    pub async fn end(&self, number: usize, signal: Signal) -> bool {
        self.signal(number, signal).await;
        let mut replica = self.replicas[number].lock().await;
        let Some(mut child) = replica.child.take() else { return true };
        let ended = tokio::time::timeout(START, child.wait()).await.is_ok();
        if !ended {
            let _ = child.kill().await;
            self.note(Event::Killed { server: replica.name.clone(), at: Instant::now() });
        }
        replica.address = None;
        drop(replica);
        self.balance().await;
        ended
    }

    /// Ends all servers by a signal, and starts them again.
    pub async fn restart_all(&self, signal: Signal) {
        let all = 0..self.replicas.len();
        futures_util::future::join_all(all.clone().map(|number| self.end(number, signal))).await;
        futures_util::future::join_all(all.map(|number| self.begin(number))).await;
    }

    /// Sets the clock of a server, in seconds of difference.
    pub async fn set_clock(&self, number: usize, seconds: i64) {
        let replica = self.replicas[number].lock().await;
        let next = format!("{}.next", replica.clock);
        let _ = std::fs::write(&next, format!("{seconds:+}")).and_then(|()| std::fs::rename(&next, &replica.clock));
    }

    /// Starts a server over standard input and output.
    pub fn stdio(&self, name: &str) -> Child {
        let mut command = Command::new(program());
        self.prepare(&mut command, name, None);
        command.args(["serve", "--config", &self.config]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).kill_on_drop(true).spawn().expect("starts")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.needs.small_disk {
            let _ = std::process::Command::new("umount").args(["-l", &self.folder.path("state")]).status();
        }
        if let Some(kept) = std::env::var_os("FAULTS_KEEP") {
            let _ = std::process::Command::new("cp").args(["-r", &self.folder.path("")]).arg(kept).status();
        }
    }
}

/// Waits until a server says where it listens. `None`: it does not.
async fn listening(mut child: Child, log: &str, seen: usize) -> Option<(Child, SocketAddr)> {
    let began = Instant::now();
    while began.elapsed() < START {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let line = text[seen..].lines().find_map(|line| line.strip_prefix("codecall: listening on http://"));
        if let Some(address) = line.and_then(|address| address.trim().parse().ok()) {
            return Some((child, address));
        }
        if child.try_wait().ok().flatten().is_some() {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let _ = child.kill().await;
    None
}

/// Mounts a small disk in memory, if that is permitted.
fn small_disk(folder: &str) {
    let mut command = std::process::Command::new("mount");
    command.args(["-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", folder]).stderr(Stdio::null());
    let _ = command.status();
}

/// A client of the balancer. Each request is a connection of its own, so that the balancer decides about it.
pub fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        drop(http_client());
        reqwest::Client::builder().pool_max_idle_per_host(0).timeout(ANSWER).build().expect("a client")
    })
}

/// Sends a request. `None`: there is no answer of a server.
pub async fn send(request: reqwest::RequestBuilder) -> Option<(u16, Value)> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let text = response.text().await.ok()?;
    Some((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

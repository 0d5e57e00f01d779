//! Submits runs, lets machines and the store fail, decides on calls, and compares what has come of it.

use crate::costs::Folder;
use crate::machine::{Machine, SCRIPT, answer, has_step};
use crate::world::{Link, Random, STEPS, StoreState, World};
use codecall_hub::meta;
use codecall_store::sealed::KeyRing;
use codecall_store::{
    ApprovalRequests as _, ApprovalState, Database, Decision, JournalStore as _, SqlApprovalRequests, SqlJournals,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How many runs a machine evaluates or lets wait in memory at once.
const MAX_RUNS: usize = 400;
/// How far the clocks are advanced at once, in milliseconds.
const TICK_MS: u64 = 100;
/// The run of this remainder is denied what it asks.
const DENIED: usize = 10;
/// Virtual time after which runs that have not ended count as lost.
const LIMIT_MS: i64 = 2 * 3_600_000;

/// How many runs have not ended. It names the states, or SQLite would read all runs.
const OPEN: &str = "SELECT count(*) FROM journaled_runs WHERE state IN ('running', 'waiting')";
/// How often it says how far it is.
const PROGRESS: Duration = Duration::from_secs(30);

/// The plan of a simulation.
pub struct Plan {
    pub runs: usize,
    pub machines: usize,
    pub seed: u64,
    /// How often something fails: 1 is every few seconds, 0 never.
    pub failures: u64,
}

/// The report on a simulation.
#[derive(Default)]
pub struct Report {
    runs: usize,
    machines: usize,
    /// How many runs waited for a person at once.
    waiting: i64,
    waiting_bytes: u64,
    waiting_after: Duration,
    ended_after: Duration,
    virtual_ms: i64,
    deaths: usize,
    zones: usize,
    suspensions: usize,
    outages: usize,
    flaky: usize,
    pub failures: usize,
    transactions: u64,
    pub repeated: usize,
    pub interrupted: usize,
    resident: u64,
    pub problems: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, machines, waiting, waiting_bytes, virtual_ms, transactions, repeated, interrupted, .. } = self;
        let per_run = *transactions as f64 / *runs as f64;
        writeln!(f, "{runs} runs on {machines} machines, {} s of virtual time", virtual_ms / 1_000)?;
        writeln!(f, "{waiting} runs waited for a person at once, in a file of {waiting_bytes} bytes")?;
        writeln!(
            f,
            "failures: {} machines have died, {} zones, {} machines were suspended, the store was down {} times, flaky {} times",
            self.deaths, self.zones, self.suspensions, self.outages, self.flaky
        )?;
        writeln!(f, "{transactions} transactions, {per_run:.1} for each run")?;
        writeln!(f, "{repeated} calls were made again, {interrupted} were interrupted")?;
        writeln!(
            f,
            "took {:.0} s until all waited, {:.0} s in all",
            self.waiting_after.as_secs_f64(),
            self.ended_after.as_secs_f64()
        )?;
        writeln!(f, "{} bytes resident", self.resident)?;
        write!(f, "{} problems", self.problems.len())
    }
}

pub struct Simulation {
    plan_runs: usize,
    failures: u64,
    folder: Folder,
    world: Arc<World>,
    machines: Vec<Option<Machine>>,
    /// When a machine that has died is started again.
    restarts: Vec<i64>,
    random: Random,
    /// Runs that are to be submitted.
    todo: VecDeque<usize>,
    stored: usize,
    store_until: i64,
    people: Runtime,
    requests: SqlApprovalRequests,
    report: Report,
    began: Instant,
    progress: Instant,
}

impl Simulation {
    pub fn new(plan: &Plan) -> Self {
        let folder = Folder::new(&plan.seed.to_string());
        let world = World::new(Database::file(&folder.path().join("codecall.db")), plan.runs, plan.seed);
        let people = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // Each end of a run is noted.
        let triggers = [
            "CREATE TABLE ends (run TEXT NOT NULL)",
            "CREATE TRIGGER note_end AFTER UPDATE OF outcome ON journaled_runs BEGIN INSERT INTO ends VALUES (NEW.id); END",
        ];
        for sql in triggers {
            people.block_on(world.database.query(sql, [])).expect("a trigger");
        }
        let requests = SqlApprovalRequests(world.database.intercepted(Link::new(&world, 0)));
        let mut simulation = Self {
            plan_runs: plan.runs,
            failures: plan.failures,
            folder,
            machines: Vec::new(),
            restarts: vec![0; plan.machines],
            random: Random::new(plan.seed),
            todo: (0..plan.runs).collect(),
            stored: 0,
            store_until: 0,
            people,
            requests,
            report: Report { runs: plan.runs, machines: plan.machines, ..Report::default() },
            began: Instant::now(),
            progress: Instant::now(),
            world,
        };
        for number in 0..plan.machines {
            let machine = simulation.start(number);
            simulation.machines.push(Some(machine));
            // The first one makes the master key.
            simulation.machines[number].as_mut().expect("a machine").drive();
        }
        simulation
    }

    /// Starts a machine. Its clock is up to two seconds off.
    fn start(&mut self, number: usize) -> Machine {
        let skew = self.random.below(4_001) as i64 - 2_000;
        Machine::start(&self.world, self.folder.path(), MAX_RUNS, number % 3, skew)
    }

    pub fn run(mut self) -> Report {
        let began = self.began;
        let start_ms = self.world.now_ms();
        // All runs are submitted, and wait for people, apart from some that have lost their call before they could ask.
        while self.stored < self.plan_runs
            || self.count("SELECT count(*) FROM journaled_runs WHERE state = 'running'") > 0
        {
            if self.is_late(start_ms) {
                return self.give_up("not all runs wait for a person");
            }
            // A look takes a time that grows with the number of runs.
            for _ in 0..20 {
                self.tick();
            }
            self.show_progress(start_ms);
        }
        self.report.waiting = self.waiting();
        self.report.waiting_bytes = self.bytes();
        self.report.waiting_after = began.elapsed();
        // People decide, and the runs end.
        loop {
            for _ in 0..20 {
                self.decide();
                self.tick();
            }
            self.show_progress(start_ms);
            if self.count(OPEN) == 0 {
                break;
            }
            if self.is_late(start_ms) {
                return self.give_up("not all runs have ended");
            }
        }
        self.report.virtual_ms = self.world.now_ms() - start_ms;
        self.report.ended_after = began.elapsed();
        self.report.transactions = self.world.transactions.load(Ordering::Relaxed);
        self.report.resident = resident();
        self.check();
        std::mem::take(&mut self.report)
    }

    /// Says how far it is, now and then.
    fn show_progress(&mut self, start_ms: i64) {
        if self.progress.elapsed() < PROGRESS {
            return;
        }
        self.progress = Instant::now();
        let running = self.count("SELECT count(*) FROM journaled_runs WHERE state = 'running'");
        let line = format!(
            "{} s: {} s of virtual time, {} stored, {running} running, {} waiting, {} transactions, {} bytes resident",
            self.began.elapsed().as_secs(),
            (self.world.now_ms() - start_ms) / 1_000,
            self.stored,
            self.waiting(),
            self.world.transactions.load(Ordering::Relaxed),
            resident()
        );
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    fn is_late(&self, start_ms: i64) -> bool {
        self.world.now_ms() - start_ms > LIMIT_MS
    }

    fn give_up(mut self, problem: &str) -> Report {
        let states = "SELECT r.id, r.state, r.owner, r.lease, a.state, a.used FROM journaled_runs r \
                      LEFT JOIN approval_requests a ON a.run = r.id WHERE r.state <> 'ended' LIMIT 10";
        let states = self.people.block_on(self.world.database.query(states, []));
        self.report.problems.push(format!("{problem}: {} are stored, {states:?}", self.stored));
        std::mem::take(&mut self.report)
    }

    fn count(&self, sql: &'static str) -> i64 {
        let rows = self.people.block_on(self.world.database.query(sql, [])).expect("a count");
        rows[0][0].int()
    }

    fn waiting(&self) -> i64 {
        self.count("SELECT count(*) FROM journaled_runs WHERE state = 'waiting'")
    }

    fn bytes(&self) -> u64 {
        let size = |name: &str| std::fs::metadata(self.folder.path().join(name)).map_or(0, |file| file.len());
        size("codecall.db") + size("codecall.db-wal")
    }

    /// One step of time: failures, requests of clients, and what the machines do.
    fn tick(&mut self) {
        self.world.advance(TICK_MS);
        if self.failures > 0 {
            self.fail();
        }
        for number in 0..self.machines.len() {
            if self.machines[number].is_none() && self.restarts[number] <= self.world.now_ms() {
                self.machines[number] = Some(self.start(number));
            }
            let Some(machine) = &mut self.machines[number] else { continue };
            // So that the runs of a small simulation begin one after the other, too.
            let requests = (self.plan_runs / 1_000).clamp(1, 100);
            while machine.requests() < requests && machine.suspended_until <= self.world.now_ms() {
                let Some(run) = self.todo.pop_front() else { break };
                machine.submit(run, SCRIPT);
            }
            machine.drive();
            for (run, is_stored) in machine.answered() {
                match is_stored {
                    true => self.stored += 1,
                    // A client sends its request again, to any machine.
                    false => self.todo.push_back(run),
                }
            }
            if machine.link.is_dead() {
                self.kill(number);
            }
        }
    }

    /// Ends a machine, which is started again after up to a minute.
    fn kill(&mut self, number: usize) {
        if let Some(machine) = self.machines[number].take() {
            self.todo.extend(machine.kill());
            self.restarts[number] = self.world.now_ms() + 1_000 + self.random.below(60_000) as i64;
            self.report.failures += 1;
        }
    }

    /// Lets something fail, now and then.
    fn fail(&mut self) {
        let (now, rate) = (self.world.now_ms(), self.failures);
        let number = self.random.below(self.machines.len() as u64) as usize;
        // Each 20 s a machine dies in the middle of what it does.
        if self.random.is_one_in(200 / rate)
            && let Some(machine) = &self.machines[number]
        {
            machine.link.die_after(1 + self.random.below(50));
            self.report.deaths += 1;
        }
        // Each minute one is suspended, for longer than its leases as often as not.
        if self.random.is_one_in(600 / rate)
            && let Some(machine) = &mut self.machines[number]
        {
            machine.suspended_until = now + 1_000 + self.random.below(30_000) as i64;
            (self.report.suspensions, self.report.failures) = (self.report.suspensions + 1, self.report.failures + 1);
        }
        // Each four minutes a third of them is gone.
        if self.random.is_one_in(2_400 / rate) {
            let zone = self.random.below(3) as usize;
            for number in 0..self.machines.len() {
                if self.machines[number].as_ref().is_some_and(|machine| machine.zone == zone) {
                    self.kill(number);
                }
            }
            self.report.zones += 1;
        }
        // Each two minutes the store fails, for up to 25 s.
        if self.store_until > 0 && self.store_until <= now {
            self.world.set_store(StoreState::Up);
            self.store_until = 0;
        } else if self.store_until == 0 && self.random.is_one_in(1_200 / rate) {
            let is_down = self.random.is_one_in(2);
            self.world.set_store(if is_down { StoreState::Down } else { StoreState::Flaky });
            self.store_until = now + self.random.below(25_000) as i64;
            *(if is_down { &mut self.report.outages } else { &mut self.report.flaky }) += 1;
            self.report.failures += 1;
        }
    }

    /// People decide on calls that wait.
    fn decide(&mut self) {
        let decisions = (self.plan_runs as u64 / 200).clamp(1, 1_000);
        let Self { people, requests, .. } = self;
        people.block_on(async {
            // The store may be down.
            let Ok(waiting) = requests.list(Some(ApprovalState::Waiting), decisions).await else { return };
            for request in waiting {
                let input: Value = serde_json::from_str(&request.input).expect("an input");
                let is_approved = input["run"].as_u64().expect("a run") as usize % DENIED != 3;
                let decision = Decision { digest: None, is_approved, by: "a person".into(), reason: None };
                let _ = requests.decide(&request.id, &decision).await;
            }
        });
    }

    /// Compares outcomes and calls with those of undisturbed runs.
    fn check(&mut self) {
        let key =
            std::fs::read_dir(self.folder.path()).expect("a folder").filter_map(Result::ok).map(|entry| entry.path());
        let key = key.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "key"));
        let text = std::fs::read_to_string(key.expect("a master key")).expect("readable");
        let keys = KeyRing::parse(&text, "the file").expect("keys");
        let journals = SqlJournals::new(self.world.database.clone());
        let ids = self.people.block_on(self.world.database.query("SELECT id FROM journaled_runs", [])).expect("ids");
        let mut seen = vec![false; self.plan_runs];
        for id in ids.iter().filter_map(|row| row[0].text()) {
            let run = self.people.block_on(journals.get(&keys, id)).expect("a run").expect("a run");
            let outcome = meta::kept_answer(&run.outcome.unwrap_or_default()).content.into_value();
            self.check_run(id, &outcome, &mut seen);
        }
        let lost = seen.iter().filter(|seen| !**seen).count();
        if lost > 0 {
            self.problem(format!("{lost} runs are lost"));
        }
        let (ends, runs) =
            (self.count("SELECT count(*) FROM ends"), self.count("SELECT count(DISTINCT run) FROM ends"));
        if (ends, runs) != (self.plan_runs as i64, self.plan_runs as i64) {
            self.problem(format!("{runs} runs have ended {ends} times"));
        }
        if self.count("SELECT count(*) FROM journal_entries") != 0 {
            self.problem("entries of runs that have ended are left".into());
        }
    }

    fn problem(&mut self, problem: String) {
        if self.report.problems.len() < 20 {
            self.report.problems.push(problem);
        }
    }

    fn check_run(&mut self, id: &str, outcome: &Value, seen: &mut [bool]) {
        let result = &outcome["result"];
        let Some(run) = result["run"].as_u64().map(|run| run as usize) else {
            return self.problem(format!("{id}: {outcome}"));
        };
        if std::mem::replace(&mut seen[run], true) {
            self.problem(format!("run {run} was run twice"));
        }
        let sums: Vec<u64> = vec![answer(run, 2), answer(run, 3)];
        if result["first"] != answer(run, 0) || result["sums"] != serde_json::json!(sums) {
            self.problem(format!("run {run}: {outcome}"));
        }
        for step in (0..STEPS).filter(|step| has_step(run, *step)) {
            let (begun, ended) = self.world.times(run, step);
            let is_once = step == 1 || step == 4;
            let value = if step == 1 { &result["paid"] } else { &result["charged"] };
            if !is_once {
                self.report.repeated += usize::from(begun.saturating_sub(1));
                if ended == 0 {
                    self.problem(format!("run {run}, step {step} has an answer, and was not called"));
                }
                continue;
            }
            let is_denied = step == 1 && run % DENIED == 3;
            let is_right = match value.as_str() {
                Some("APPROVAL_DENIED") => is_denied && begun == 0,
                // It may have reached its tool, or not.
                Some("CALL_INTERRUPTED") => {
                    self.report.interrupted += 1;
                    self.failures > 0 && begun <= 1
                }
                Some(_) => false,
                None => !is_denied && *value == answer(run, step) && (begun, ended) == (1, 1),
            };
            if !is_right {
                self.problem(format!("run {run}, step {step} was called {begun} times: {outcome}"));
            }
        }
    }
}

/// Returns the resident memory of this process, in bytes.
pub fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

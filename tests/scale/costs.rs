//! Costs of waiting runs: memory of a server, and the time of repeated questions to the store.

use crate::machine::Machine;
use crate::simulation::resident;
use crate::world::World;
use codecall_store::sealed::KeyRing;
use codecall_store::{
    ApprovalRequests as _, Database, JournalStore as _, JournaledRun, JournaledState, Lease, SqlApprovalRequests,
    SqlJournals,
};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A folder that is deleted at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let parent = std::env::var_os("CODECALL_SCALE_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = parent.join(format!("codecall-scale-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Returns the CPU time of this process.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 =
        text.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2).flat_map(str::parse::<u64>).sum();
    Duration::from_millis(ticks * 10)
}

/// One server has so many runs in memory, all of which wait for a slow tool, for an hour. Returns how many do.
pub fn waiting_in_memory(runs: usize) -> usize {
    let folder = Folder::new("memory");
    let world = World::new(Database::file(&folder.path().join("codecall.db")), runs, 1);
    let mut machine = Machine::start(&world, folder.path(), runs + 1, 0, 0);
    let tick = |machine: &mut Machine| {
        world.advance(100);
        machine.drive();
    };
    for _ in 0..50 {
        tick(&mut machine);
    }
    let (before, began, transactions) = (resident(), cpu(), world.transactions.load(Ordering::Relaxed));
    for run in 0..runs {
        machine.submit(run, "return await bank.wait({ run: codecallContext.run, step: 0 })");
        if run % 200 == 0 {
            tick(&mut machine);
        }
    }
    for _ in 0..200 {
        tick(&mut machine);
    }
    let reached = (0..runs).filter(|run| world.times(*run, 0).0 == 1).count();
    let (bytes, spent, since) =
        (resident() - before, cpu() - began, world.transactions.load(Ordering::Relaxed) - transactions);
    let count = runs as u64;
    print(&format!("{runs} runs wait for a tool: {} bytes of memory for each", bytes / count));
    print(&format!(
        "  to get there: {} µs of CPU, {:.1} transactions for each",
        spent.as_micros() / u128::from(count),
        since as f64 / runs as f64
    ));
    let (began, transactions) = (cpu(), world.transactions.load(Ordering::Relaxed));
    for _ in 0..600 {
        tick(&mut machine);
    }
    let since = world.transactions.load(Ordering::Relaxed) - transactions;
    print(&format!("  in a minute: {} ms of CPU, {since} transactions in all", (cpu() - began).as_millis()));
    let _ = machine.kill();
    reached
}

/// One server, which may have `max_runs` in memory, gets more runs than that, each of which sleeps for an hour. Returns
/// how many
/// have begun within half of it, and how many have ended soon after it.
pub fn asleep(runs: usize, max_runs: usize) -> (usize, usize) {
    let folder = Folder::new("asleep");
    let world = World::new(Database::file(&folder.path().join("codecall.db")), runs, 1);
    let mut machine = Machine::start(&world, folder.path(), max_runs, 0, 0);
    for run in 0..runs {
        machine.submit(
            run,
            "const { run } = codecallContext; await bank.read({ run, step: 0 }); await sleep(3600_000); return await bank.read({ run, step: 1 })",
        );
    }
    let pass = |machine: &mut Machine, seconds: usize| {
        for _ in 0..seconds {
            world.advance(1_000);
            machine.drive();
        }
    };
    let ended = |step: usize| (0..runs).filter(|run| world.times(*run, step) == (1, 1)).count();
    pass(&mut machine, 1_800);
    let begun = ended(0);
    assert_eq!(ended(1), 0, "they sleep");
    pass(&mut machine, 2_000);
    let _ = machine.kill();
    (begun, ended(1))
}

/// Measures the questions that servers ask a store again and again, with so many runs that wait for people.
pub fn looks(runs: u64) {
    let folder = Folder::new("looks");
    let database = Database::file(&folder.path().join("codecall.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let fill = [
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
             INSERT INTO journaled_runs (id, state, began, active_ms, lease, keep_until, header) \
             SELECT lower(hex(randomblob(16))), 'waiting', i, 0, 9223372036854775807, 0, randomblob(700) FROM n",
            "INSERT INTO approval_requests (id, subject, run, tool, input, digest, asked, expires, state, used) \
             SELECT substr(id, 1, 16), id || id, id, 'bank:pay', '{\"run\":1}', id || id, 1, 4000000000000, 'waiting', 0 FROM journaled_runs \
             WHERE began <= $1",
        ];
        for sql in fill {
            database.query(sql, [runs.into()]).await.expect("filled");
        }
        let keys = KeyRing::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "the test").expect("a key");
        let (journals, requests) = (SqlJournals::new(database.clone()), SqlApprovalRequests(database.clone()));
        let lease = Lease { owner: "a server".into(), duration: Duration::from_secs(15) };
        let time = |what: &str, took: Duration| print(&format!("  {what}: {:.3} ms", took.as_secs_f64() * 1e3));
        print(&format!("{runs} runs wait for people"));
        let began = Instant::now();
        assert_eq!(journals.claim(&lease, &[], 1).await, Ok(Vec::new()));
        time("take over a run, if there is none", began.elapsed());
        let began = Instant::now();
        assert_eq!(journals.cancelled(&lease).await, Ok(Vec::new()));
        time("look for runs that were cancelled", began.elapsed());
        let began = Instant::now();
        assert_eq!(requests.expire(0).await, Ok(0));
        time("end requests whose time is over", began.elapsed());
        let began = Instant::now();
        journals.retain().await.expect("deleted");
        time("delete runs that are no longer kept", began.elapsed());
        let run = |id: String| JournaledRun {
            id,
            state: JournaledState::Running,
            principal: None,
            began_ms: 0,
            active_ms: 0,
            resumed_ms: Some(0),
            is_cancelled: false,
            outcome: None,
        };
        let submitted = u64::min(runs, 1_000);
        let began = Instant::now();
        for number in 0..submitted {
            journals.submit(&keys, &run(format!("{number:032x}")), "{}", 10_000_000).await.expect("submitted");
        }
        time("submit a run", began.elapsed() / submitted as u32);
        let mut held = Vec::new();
        let began = Instant::now();
        loop {
            let claimed = journals.claim(&lease, &[], 32).await.expect("claimed");
            if claimed.is_empty() {
                break;
            }
            held.extend(claimed);
        }
        assert_eq!(held.len() as u64, submitted);
        time("take over a run", began.elapsed() / submitted as u32);
        let began = Instant::now();
        let ids: Vec<String> = held.iter().map(|hold| hold.id.clone()).collect();
        journals.renew(&lease, &ids).await.expect("renewed");
        time(&format!("renew {submitted} leases"), began.elapsed());
        let began = Instant::now();
        for hold in &held {
            journals.append(&keys, &lease, hold, 0, "{\"calls\":[]}").await.expect("appended");
        }
        time("append an entry", began.elapsed() / submitted as u32);
        let began = Instant::now();
        for hold in &held {
            journals.end(&keys, &lease, hold, "{}", 0).await.expect("ended");
        }
        time("end a run", began.elapsed() / submitted as u32);
    });
}

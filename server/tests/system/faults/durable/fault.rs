//! The faults, and how each is done to a world.

use super::random::Random;
use super::world::{Event, LEASE, Needs, World};
use crate::faults::machine::find_libfaketime;
use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// How far a clock jumps, in seconds.
const JUMP: i64 = 3_600;

/// A fault. Each ends with all servers running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A server is killed.
    Kill,
    /// All servers are killed at once.
    KillAll,
    /// A server is stopped, as in a deploy.
    Term,
    /// A server is suspended for longer than its lease.
    Suspend,
    /// Clocks jump.
    ClockJump,
    /// Clocks differ all the time, and servers are killed.
    ClockSkew,
    /// The connections to the tools are lost for a second.
    ToolLost,
    /// Two persons decide about each call at the same moment.
    BothDecide,
    /// A copy that was made beside working servers replaces the store.
    Restore,
    /// A copy is read into the store that it was made from.
    Import,
    /// The master key is rotated.
    Rotate,
    /// Servers of two versions, which are killed.
    Versions,
    /// The file of the store is deleted.
    FileDeleted,
    /// The file is moved away, and back.
    FileMoved,
    /// An older copy replaces the file.
    FileReplaced,
    /// No more can be written.
    DiskFull,
    /// The database server is stopped at once and started again.
    DatabaseCrash,
    /// It is restarted.
    DatabaseRestart,
    /// An administrator ends all connections.
    DatabaseTerminate,
    /// Connections to the database are dropped.
    DatabaseDropped,
    /// They stand still.
    DatabasePaused,
    /// They end at one side.
    DatabaseHalfClosed,
    /// The database accepts no more connections.
    DatabaseExhausted,
    /// A server starts while the database refuses connections.
    DatabaseRefused,
    /// Two of them.
    Two,
}

impl Fault {
    pub const ALL: [Self; 25] = [
        Self::Kill,
        Self::KillAll,
        Self::Term,
        Self::Suspend,
        Self::ClockJump,
        Self::ClockSkew,
        Self::ToolLost,
        Self::BothDecide,
        Self::Restore,
        Self::Import,
        Self::Rotate,
        Self::Versions,
        Self::FileDeleted,
        Self::FileMoved,
        Self::FileReplaced,
        Self::DiskFull,
        Self::DatabaseCrash,
        Self::DatabaseRestart,
        Self::DatabaseTerminate,
        Self::DatabaseDropped,
        Self::DatabasePaused,
        Self::DatabaseHalfClosed,
        Self::DatabaseExhausted,
        Self::DatabaseRefused,
        Self::Two,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::KillAll => "kill-all",
            Self::Term => "term",
            Self::Suspend => "suspend",
            Self::ClockJump => "clock-jump",
            Self::ClockSkew => "clock-skew",
            Self::ToolLost => "tool-lost",
            Self::BothDecide => "both-decide",
            Self::Restore => "restore",
            Self::Import => "import",
            Self::Rotate => "rotate",
            Self::Versions => "versions",
            Self::FileDeleted => "file-deleted",
            Self::FileMoved => "file-moved",
            Self::FileReplaced => "file-replaced",
            Self::DiskFull => "disk-full",
            Self::DatabaseCrash => "db-crash",
            Self::DatabaseRestart => "db-restart",
            Self::DatabaseTerminate => "db-terminate",
            Self::DatabaseDropped => "db-dropped",
            Self::DatabasePaused => "db-paused",
            Self::DatabaseHalfClosed => "db-half-closed",
            Self::DatabaseExhausted => "db-exhausted",
            Self::DatabaseRefused => "db-refused",
            Self::Two => "two",
        }
    }

    /// Why it cannot be tried; `None`: it can.
    pub fn is_impossible(self, has_database: bool) -> Option<&'static str> {
        let is_of_files = matches!(self, Self::FileDeleted | Self::FileMoved | Self::FileReplaced | Self::DiskFull);
        let is_of_databases = matches!(
            self,
            Self::DatabaseCrash
                | Self::DatabaseRestart
                | Self::DatabaseTerminate
                | Self::DatabaseDropped
                | Self::DatabasePaused
                | Self::DatabaseHalfClosed
                | Self::DatabaseExhausted
                | Self::DatabaseRefused
        );
        match self {
            Self::Versions if super::world::other_program().is_none() => Some("FAULTS_OTHER names no program"),
            Self::ClockJump | Self::ClockSkew if find_libfaketime().is_none() => Some("libfaketime is not installed"),
            _ if is_of_files && has_database || is_of_databases && !has_database => Some("it is of the other store"),
            _ => None,
        }
    }

    /// Returns the needs of a fault from a world.
    pub fn needs(self, random: &mut Random) -> Needs {
        let least =
            if matches!(self, Self::Suspend | Self::BothDecide | Self::Versions | Self::ClockSkew) { 2 } else { 1 };
        Needs {
            servers: random.between(least, 3) as usize,
            clocks: matches!(self, Self::ClockJump | Self::ClockSkew),
            small_disk: self == Self::DiskFull && random.is_one_in(2),
            other: self == Self::Versions,
        }
    }

    /// Whether a server of another process may be started while it is done: it would make a new file.
    pub const fn allows_stdio(self) -> bool {
        !matches!(
            self,
            Self::ClockJump
                | Self::ClockSkew
                | Self::Restore
                | Self::FileDeleted
                | Self::FileMoved
                | Self::FileReplaced
        )
    }

    /// Does what has to be done before runs are submitted.
    pub async fn prepare(self, world: &World, random: &mut Random) {
        if self == Self::ClockSkew {
            let skew = [JUMP, -JUMP, 5, -5][random.below(4) as usize];
            world.set_clock(world.any(random), skew).await;
        }
    }

    pub async fn inject(self, world: &World, random: &mut Random) {
        match self {
            Self::Kill | Self::Versions | Self::ClockSkew => {
                for _ in 0..random.between(1, 2) {
                    replace(world, random, Signal::KILL).await;
                    random.sleep(0, 500).await;
                }
            }
            Self::KillAll => world.restart_all(Signal::KILL).await,
            Self::Term => {
                for _ in 0..random.between(1, 2) {
                    replace(world, random, Signal::TERM).await;
                    random.sleep(0, 500).await;
                }
            }
            Self::Suspend => suspend(world, random).await,
            Self::ClockJump => jump(world, random).await,
            Self::ToolLost => {
                world.bank_network.refuse(true);
                world.bank_network.drop_all();
                random.sleep(900, 1_200).await;
                world.bank_network.refuse(false);
            }
            Self::BothDecide => {}
            Self::Restore => restore(world, random).await,
            Self::Import => import(world, random).await,
            Self::Rotate => rotate(world, random).await,
            Self::FileDeleted => {
                // A file that was deleted is gone for runs from here on.
                remove(world);
                world.note(Event::Gone { at: Instant::now() });
                random.sleep(700, 1_500).await;
                world.restart_all(Signal::KILL).await;
            }
            Self::FileMoved => move_files(world, random).await,
            Self::FileReplaced => replace_file(world, random).await,
            Self::DiskFull => fill(world, random).await,
            Self::DatabaseCrash | Self::DatabaseRestart => {
                let down = Duration::from_millis(random.between(0, 1_500));
                match &world.database {
                    Some(database) if self == Self::DatabaseCrash => database.crash(down).await,
                    Some(database) => database.restart(down).await,
                    None => {}
                }
            }
            Self::DatabaseTerminate => {
                for _ in 0..random.between(1, 3) {
                    if let Some(database) = &world.database {
                        database.terminate().await;
                    }
                    random.sleep(0, 500).await;
                }
            }
            Self::DatabaseDropped | Self::DatabasePaused | Self::DatabaseHalfClosed => {
                disturb(self, world, random).await;
            }
            Self::DatabaseExhausted => {
                disturb(Self::DatabaseDropped, world, random).await;
                if let Some(database) = &world.database {
                    let taken = database.exhaust().await;
                    random.sleep(500, 2_500).await;
                    drop(taken);
                }
            }
            Self::DatabaseRefused => start_refused(world, random).await,
            Self::Two => two(world, random).await,
        }
    }
}

/// Ends a server, and starts it again after a time.
async fn replace(world: &World, random: &mut Random, signal: Signal) {
    let server = world.any(random);
    world.end(server, signal).await;
    if random.is_one_in(2) {
        random.sleep(0, 2_000).await;
    }
    world.begin(server).await;
}

/// Suspends a server whose calls wait for permits for longer than its lease. Answers for which its calls wait come only after it goes on for a while, so that
/// calls that wait for permits go on later than one that was just being sent.
async fn suspend(world: &World, random: &mut Random) {
    let (mut server, began) = (world.any(random), Instant::now());
    while began.elapsed() < LEASE * 3 {
        let busy = world.bank.busy().and_then(|name| name.strip_prefix('s')?.parse().ok());
        if let Some(busy) = busy.filter(|busy| *busy < world.replicas.len()) {
            server = busy;
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.signal(server, Signal::STOP).await;
    world.bank.hold(&format!("s{server}"));
    let lease = LEASE.as_millis() as u64;
    random.sleep(lease + 500, 2 * lease + 1_000).await;
    world.signal(server, Signal::CONT).await;
    tokio::time::sleep(2 * super::check::WINDOW).await;
    world.bank.release();
}

/// Lets clocks jump, and kills a server of them.
async fn jump(world: &World, random: &mut Random) {
    let seconds = if random.is_one_in(2) { JUMP } else { -JUMP };
    let is_of_all = random.is_one_in(2);
    let server = world.any(random);
    let servers = if is_of_all { 0..world.replicas.len() } else { server..server + 1 };
    for server in servers.clone() {
        world.set_clock(server, seconds).await;
    }
    random.sleep(200, 1_200).await;
    if random.is_one_in(2) {
        replace(world, random, Signal::KILL).await;
    }
    if random.is_one_in(2) {
        for server in servers {
            world.set_clock(server, 0).await;
        }
    }
}

/// Makes a copy beside working servers, and reads it into the same store.
async fn import(world: &World, random: &mut Random) {
    let file = world.folder.path("copy");
    for words in [["store", "export", &file], ["store", "import", &file]] {
        if let Err(problem) = world.run(&words).await {
            world.fail(problem);
        }
        random.sleep(0, 300).await;
    }
}

/// Rotates the master key a few times, or twenty times.
async fn rotate(world: &World, random: &mut Random) {
    // Many keys, or a few over a while.
    let (count, pause) = if random.is_one_in(3) { (20, 0) } else { (random.between(1, 4), 300) };
    for _ in 0..count {
        if let Err(problem) = world.run(&["secret", "rotate"]).await {
            world.fail(problem);
        }
        random.sleep(0, pause).await;
    }
    if random.is_one_in(2) {
        replace(world, random, Signal::KILL).await;
    }
}

/// Moves the files of the store away, and back.
async fn move_files(world: &World, random: &mut Random) {
    let away = |file: &Path| Path::new(&world.folder.path("")).join(file.file_name().unwrap_or_default());
    for file in world.files() {
        let _ = std::fs::rename(&file, away(&file));
    }
    random.sleep(200, 1_500).await;
    for file in world.files() {
        let _ = std::fs::rename(away(&file), &file);
    }
    random.sleep(0, 1_000).await;
    if random.is_one_in(2) {
        replace(world, random, Signal::KILL).await;
    }
}

/// Starts a server while the database refuses its connections.
async fn start_refused(world: &World, random: &mut Random) {
    let server = world.any(random);
    world.end(server, Signal::KILL).await;
    let network = world.replicas[server].lock().await.network.clone();
    if let Some(network) = network {
        network.refuse(true);
        let begun = world.begin(server);
        tokio::join!(begun, async {
            random.sleep(500, 3_000).await;
            network.refuse(false);
        });
    }
}

/// Does two faults at the same time.
async fn two(world: &World, random: &mut Random) {
    let simple = [Fault::Kill, Fault::Term, Fault::Suspend, Fault::ToolLost];
    let database = [Fault::DatabaseDropped, Fault::DatabasePaused, Fault::DatabaseHalfClosed];
    let second = match world.database {
        Some(_) => database[random.below(3) as usize],
        None => simple[random.below(4) as usize],
    };
    let first = simple[random.below(4) as usize];
    let (mut one, mut two) = (random.part(1), random.part(2));
    tokio::join!(Box::pin(first.inject(world, &mut one)), Box::pin(second.inject(world, &mut two)));
}

/// Makes a copy beside working servers, which then replaces the store.
async fn restore(world: &World, random: &mut Random) {
    random.sleep(300, 1_200).await;
    let (file, to) = (world.folder.path("copy"), Instant::now());
    if let Err(problem) = world.run(&["store", "export", &file]).await {
        world.fail(problem);
    }
    for server in 0..world.replicas.len() {
        world.end(server, Signal::KILL).await;
    }
    world.note(Event::Restored { to });
    if world.database.is_none() {
        remove(world);
    }
    world.new_database().await;
    if let Err(problem) = world.run(&["store", "import", &file]).await {
        world.fail(problem);
    }
    for server in 0..world.replicas.len() {
        world.begin(server).await;
    }
}

fn remove(world: &World) {
    for file in world.files() {
        let _ = std::fs::remove_file(file);
    }
}

/// Replaces the file by an older copy, as somebody does who restores a backup under working servers.
async fn replace_file(world: &World, random: &mut Random) {
    let copy = world.folder.path("copy.db");
    if let Ok(store) = rusqlite::Connection::open(world.store()) {
        let _ = store.execute("VACUUM INTO ?1", [&copy]);
    }
    random.sleep(100, 700).await;
    remove(world);
    let _ = std::fs::rename(&copy, world.store());
    world.note(Event::Gone { at: Instant::now() });
    random.sleep(700, 1_500).await;
    world.restart_all(Signal::KILL).await;
}

/// Lets the disk be full for a time, or files be as long as they may be.
async fn fill(world: &World, random: &mut Random) {
    let filler = world.store().with_extension("filler");
    if world.needs().small_disk {
        if let Ok(mut file) = std::fs::File::create(&filler) {
            let _ = std::io::copy(&mut std::io::repeat(0), &mut file);
        }
    } else {
        world.limit_files("16384").await;
    }
    random.sleep(500, 2_500).await;
    if world.needs().small_disk {
        let _ = std::fs::remove_file(&filler);
    } else {
        world.limit_files("unlimited").await;
    }
}

/// Disturbs the connections of some servers to the database.
async fn disturb(fault: Fault, world: &World, random: &mut Random) {
    let is_of_all = random.is_one_in(2);
    let server = world.any(random);
    let mut networks = Vec::new();
    for (number, replica) in world.replicas.iter().enumerate() {
        if is_of_all || number == server {
            networks.extend(replica.lock().await.network.clone());
        }
    }
    match fault {
        Fault::DatabasePaused => networks.iter().for_each(|network| network.pause(true)),
        Fault::DatabaseHalfClosed => networks.iter().for_each(super::proxy::Proxy::half_close_all),
        _ => {
            let refuses = random.is_one_in(2);
            networks.iter().for_each(|network| network.refuse(refuses));
            networks.iter().for_each(super::proxy::Proxy::drop_all);
        }
    }
    random.sleep(300, 3_000).await;
    for network in networks {
        network.pause(false);
        network.refuse(false);
        if fault == Fault::DatabaseHalfClosed {
            network.drop_all();
        }
    }
}

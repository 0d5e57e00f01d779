//! Shared parts of the machines: time, the store and its failures, and the effects of the tools.

use codecall_store::database::{Interceptor, Problem, Row};
use codecall_store::{BoxFuture, Database};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of steps of a run.
pub const STEPS: usize = 5;

/// Numbers that look random and follow from a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `below`.
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }

    pub fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Returns a number that follows from others.
pub fn mixed(numbers: [u64; 3]) -> u64 {
    numbers.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, number| {
        let sum = (sum ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        sum ^ (sum >> 29)
    })
}

/// How the store is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StoreState {
    Up,
    /// Each transaction fails.
    Down,
    /// Some fail, half of them after they were done.
    Flaky,
}

/// The world that the machines share.
pub struct World {
    /// The store, as people and the test see it.
    pub database: Database,
    now_ms: AtomicI64,
    store: AtomicU8,
    pub transactions: AtomicU64,
    random: Mutex<Random>,
    /// How often each step of each run has begun at its tool, and ended there.
    begun: Vec<[AtomicU8; STEPS]>,
    ended: Vec<[AtomicU8; STEPS]>,
}

impl World {
    pub fn new(database: Database, runs: usize, seed: u64) -> Arc<Self> {
        let steps = || std::iter::repeat_with(<[AtomicU8; STEPS]>::default).take(runs).collect();
        Arc::new(Self {
            now_ms: AtomicI64::new(codecall_store::now_ms()),
            database,
            store: AtomicU8::new(StoreState::Up as u8),
            transactions: AtomicU64::new(0),
            random: Mutex::new(Random::new(seed ^ 0x5EED)),
            begun: steps(),
            ended: steps(),
        })
    }

    pub fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    pub fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms as i64, Ordering::Relaxed);
    }

    pub fn set_store(&self, state: StoreState) {
        self.store.store(state as u8, Ordering::Relaxed);
    }

    /// Notes that a step has begun at its tool.
    pub fn begin(&self, run: usize, step: usize) {
        self.begun[run][step].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it has ended there.
    pub fn end(&self, run: usize, step: usize) {
        self.ended[run][step].fetch_add(1, Ordering::Relaxed);
    }

    /// How often a step has begun at its tool, and ended there.
    pub fn times(&self, run: usize, step: usize) -> (u8, u8) {
        (self.begun[run][step].load(Ordering::Relaxed), self.ended[run][step].load(Ordering::Relaxed))
    }

    /// Returns the fate of the next transaction.
    fn fate(&self) -> Fate {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        let store = self.store.load(Ordering::Relaxed);
        if store == StoreState::Up as u8 {
            return Fate::Done;
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        match store == StoreState::Down as u8 {
            true => Fate::Refused,
            false if random.is_one_in(20) => {
                if random.is_one_in(2) {
                    Fate::Refused
                } else {
                    Fate::AnswerLost
                }
            }
            false => Fate::Done,
        }
    }
}

enum Fate {
    Done,
    Refused,
    AnswerLost,
}

/// The connection of a machine with the store and the tools, until it dies.
pub struct Link {
    pub world: Arc<World>,
    /// By how much its clock is ahead.
    skew_ms: i64,
    is_dead: AtomicBool,
    /// After how many transactions it dies.
    left: AtomicU64,
    in_flight: AtomicUsize,
}

impl Link {
    pub fn new(world: &Arc<World>, skew_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            skew_ms,
            is_dead: AtomicBool::new(false),
            left: AtomicU64::new(u64::MAX),
            in_flight: AtomicUsize::new(0),
        })
    }

    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    pub fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
    }

    /// Lets the machine die in one of its next transactions: after it was done, and before the machine knows.
    pub fn die_after(&self, transactions: u64) {
        self.left.store(transactions, Ordering::Relaxed);
    }

    /// How many transactions are in progress.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }
}

/// Counts a transaction in progress.
struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Interceptor for Link {
    fn batch<'a>(&'a self, work: BoxFuture<'a, Result<Vec<Row>, Problem>>) -> BoxFuture<'a, Result<Vec<Row>, Problem>> {
        Box::pin(async move {
            if self.is_dead() {
                return std::future::pending().await;
            }
            let is_last = self.left.fetch_sub(1, Ordering::Relaxed) == 1;
            let fate = self.world.fate();
            let lost = || Err(Problem::Unreachable("it has failed".into()));
            if matches!(fate, Fate::Refused) {
                return lost();
            }
            self.in_flight.fetch_add(1, Ordering::AcqRel);
            let in_flight = InFlight(&self.in_flight);
            let done = work.await;
            drop(in_flight);
            if is_last {
                self.die();
            }
            match fate {
                _ if self.is_dead() => std::future::pending().await,
                Fate::AnswerLost => lost(),
                Fate::Done | Fate::Refused => done,
            }
        })
    }

    fn now_ms(&self) -> i64 {
        self.world.now_ms() + self.skew_ms
    }
}

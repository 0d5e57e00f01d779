//! The engines, behind one small trait. The first is ours.

pub mod agentscript;
pub mod boa;
pub mod node;
pub mod process;
pub mod quickjs;

use crate::cases::Case;
use cpu_time::ThreadTime;
use std::time::Duration;

/// An engine that runs scripts.
pub trait Peer {
    /// Run a case some times, each in a fresh sandbox and from the source text.
    ///
    /// # Errors
    /// What the script or the engine failed with.
    fn round(&mut self, case: &Case, times: u32) -> Result<Round, String>;
}

/// What a round of runs gave.
#[derive(Debug)]
pub struct Round {
    /// How long they took, all together.
    pub time: Duration,
    /// JSON text of the last result.
    pub answer: String,
}

/// An engine that can be started.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name in tables.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Start it: one for each thread.
    pub start: fn() -> Result<Box<dyn Peer + Send>, String>,
}

/// All engines.
pub static ENGINES: &[Engine] = &[
    Engine { name: "AgentScript", what: "this interpreter", start: || Ok(Box::new(agentscript::AgentScript::new())) },
    Engine { name: "QuickJS", what: "QuickJS-ng, by the crate rquickjs", start: || Ok(Box::new(quickjs::QuickJs)) },
    Engine {
        name: "node --jitless",
        what: "V8 without machine code: interpreters only",
        start: || Ok(Box::new(node::start(&["--jitless", "--no-expose-wasm"])?)),
    },
    Engine { name: "node", what: "V8 with all its compilers", start: || Ok(Box::new(node::start(&[])?)) },
    Engine { name: "Boa", what: "an engine in Rust", start: || Ok(Box::new(boa::start()?)) },
];

/// Call a function some times and take the thread's own time.
fn timed(times: u32, mut run: impl FnMut() -> Result<String, String>) -> Result<Round, String> {
    let mut answer = String::new();
    let start = ThreadTime::now();
    for _ in 0..times {
        answer = run()?;
    }
    Ok(Round { time: start.elapsed(), answer })
}

/// What a host defines for a script where the engine knows no tools. Calls are queued until the host answers them;
/// all data crosses as JSON text.
const BRIDGE: &str = include_str!("peers/bridge.js");

/// A script as the program of an engine that knows no tools.
fn wrapped(case: &Case) -> String {
    format!("{BRIDGE}__main(async () => {{\n{}\n}});", case.script)
}

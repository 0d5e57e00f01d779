//! The engines. The first one is AgentScript.

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
    /// Runs a case several times, each in a fresh sandbox and from the source text.
    ///
    /// # Errors
    /// The message of the script or the engine.
    fn round(&mut self, case: &Case, times: u32) -> Result<Round, String>;
}

/// The result of a round.
#[derive(Debug)]
pub struct Round {
    /// The time of all runs together.
    pub time: Duration,
    /// JSON text of the last result.
    pub answer: String,
}

/// An engine that can be started.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Its name in tables.
    pub name: &'static str,
    /// A description.
    pub what: &'static str,
    /// Starts the engine; called for each thread.
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

/// Calls a function several times, and measures the CPU time of the thread.
fn timed(times: u32, mut run: impl FnMut() -> Result<String, String>) -> Result<Round, String> {
    let mut answer = String::new();
    let start = ThreadTime::now();
    for _ in 0..times {
        answer = run()?;
    }
    Ok(Round { time: start.elapsed(), answer })
}

/// The definitions of a host for engines without tools. Calls are queued until the host answers them, and all data is passed
/// as JSON text.
const BRIDGE: &str = include_str!("peers/bridge.js");

/// Wraps a script as a program for an engine without tools.
fn wrapped(case: &Case) -> String {
    format!("{BRIDGE}__main(async () => {{\n{}\n}});", case.script)
}

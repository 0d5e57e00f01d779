//! Runs in worker processes of the same program, each with one run at a time.
//!
//! A worker is confined before it gets a script (see [`codecall_base::sandbox`]), so a bug in the interpreter harms
//! nothing else. A worker that crashes, is killed or does not answer ends its run, and is replaced. As with
//! threads, the server decides about turns, limits over all runs, cancellation and tool calls. A thread of the queue
//! waits while a worker evaluates a slice.

mod directories;
mod message;
mod pool;
mod process;
mod remote;
mod serve;

pub use pool::Workers;
pub use remote::RemoteRun;
pub use serve::{Confinement, serve};

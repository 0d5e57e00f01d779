//! Runs in processes of their own: worker processes of the same program, each with one run at a time.
//!
//! A worker is confined before it sees a script (see [`codecall_base::sandbox`]), so that whatever goes wrong in
//! the interpreter stays there: a worker that crashes, is killed or does not answer is the end of its run,
//! and is replaced. The server keeps what it has with threads too: turns, limits over all runs,
//! cancellation, tool calls. A thread of the queue waits while a worker takes a slice.

mod message;
mod pool;
mod process;
mod remote;
mod serve;

pub use message::Begin;
pub use pool::Workers;
pub use remote::Remote;
pub use serve::{Confinement, serve};

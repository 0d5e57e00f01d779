//! Durable runs on Restate: the services that a worker serves to it.
//!
//! Restate keeps the journal of a run: a worker evaluates the script, each tool call is an invocation of its own, on any worker, and
//! timers, approvals and the limit of time are Restate's. A worker that dies is replaced by another one, which evaluates the script
//! again with the recorded answers, in their order.
//!
//! This crate decides nothing about tools, and knows nothing of how clients submit runs.

#![forbid(unsafe_code)]

mod code;
mod engine;
mod http;
mod journal;
mod people;
mod protocol;
mod snapshots;
mod tools;
mod worker;

pub use worker::Worker;

//! Durable runs on Restate: the services that a worker serves to it.
//!
//! Restate keeps the journal of a run. A worker evaluates the script, and each tool call is an invocation of its own,
//! on any worker. Timers, approvals and the limit of time are Restate's. A worker that dies is replaced by another one,
//! which evaluates the script
//! again with the recorded answers, in their order.
//!
//! Servers submit runs with [`RestateClient`], the engine of their hub. This crate decides nothing about tools, and
//! knows nothing of the
//! clients that runs come from.

#![forbid(unsafe_code)]

mod client;
mod code;
mod engine;
mod people;
mod snapshots;
mod tools;
mod worker;

pub use client::{Deployment, RestateClient, RestateProblem};
pub use worker::Worker;

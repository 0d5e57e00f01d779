//! The interface between a host and a run: calls and answers, limits, outcomes and their codes. All of it is plain
//! data: nothing here knows a value or how a script is evaluated.

pub mod dialect;
pub mod error_code;
pub mod host;
pub mod limits;
pub mod outcome;

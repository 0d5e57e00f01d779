//! Code of several tests: the corpus and its comparison, a host with fixtures in virtual time, a
//! printer of syntax trees, and the sweep.

pub mod compare;
pub mod corpus;
pub mod garbage;
pub mod host;
pub mod limits;
pub mod loops;
pub mod parallel;
pub mod print;
pub mod sweep;

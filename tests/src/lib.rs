//! What the tests share: the corpus, how its cases are compared, a host that answers from a
//! fixture in virtual time, and a printer of syntax trees.

pub mod compare;
pub mod corpus;
pub mod garbage;
pub mod host;
pub mod limits;
pub mod parallel;
pub mod print;
pub mod sweep;

//! What the tests share: the corpus, how its cases are compared, and a host that answers from a fixture in virtual time.

pub mod compare;
pub mod corpus;
pub mod garbage;
pub mod host;
pub mod limits;
pub mod sweep;

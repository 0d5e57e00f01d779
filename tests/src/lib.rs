//! What the tests share: the corpus and a host that answers from a fixture in virtual time.

pub mod corpus;
pub mod host;

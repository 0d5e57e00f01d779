//! Measures AgentScript and its peers, with the same scripts at the same time.
//!
//! Every engine gets source text and JSON text and returns JSON text, each time in a fresh sandbox. A result that differs
//! from that of the other engines is an error.

pub mod cases;
pub mod machine;
pub mod measure;
pub mod page;
pub mod peers;
pub mod plot;
pub mod report;
pub mod tables;

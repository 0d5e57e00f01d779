//! Measuring: this interpreter and its peers, on the same scripts, in the same run.
//!
//! Every engine gets source text and JSON text and answers with JSON text, each time in a fresh sandbox.
//! An answer that differs from that of the others is an error: a wrong result has no speed.

pub mod cases;
pub mod machine;
pub mod measure;
pub mod page;
pub mod peers;
pub mod plot;
pub mod report;
pub mod tables;

//! Skills: instructions for agents with the files that belong to them, as [SEP-2640] serves them over MCP.
//!
//! A skill comes from a folder ([`Folders`]), from a tool that describes itself ([`TextSkill`]), or from an upstream.
//! The URIs of an upstream get its app as a namespace ([`namespace`]).
//!
//! This crate does not know which tools exist, nor who asks for skills.
//!
//! [SEP-2640]: https://modelcontextprotocol.io/seps/2640-skills-extension

#![forbid(unsafe_code)]

mod folders;
pub mod install;
pub mod namespace;
mod text;

pub use folders::Folders;
pub use rmcp::model::{Skill, SkillResource, SkillResources};
pub use text::TextSkill;

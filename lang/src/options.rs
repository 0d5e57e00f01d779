//! The options of a compilation.

use crate::diagnostic::Refusal;
use crate::refused::Missing;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// JavaScript as AgentScript accepts it.
    JavaScript,
    /// JavaScript with TypeScript's types, which are erased.
    TypeScript,
}

/// The loops that a script may contain, the fewest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loops {
    /// None.
    None,
    /// `for` with a test, `for…of`, `for…in`, `for await`; no `while`, no `do`, no endless `for`.
    Bounded,
    /// All.
    #[default]
    All,
}

/// Finds the tool of the host itself that a call of a free name calls, by the constant texts that its arguments begin with.
pub type OwnTool<'a> = dyn Fn(&str, &[Cow<'_, [u8]>]) -> Option<String> + 'a;

/// The options of [`compile`](crate::compile).
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Absent: JavaScript first, and TypeScript where the text is not JavaScript.
    pub language: Option<Language>,
    /// The loops that are allowed.
    pub loops: Loops,
    /// Longest source in bytes.
    pub max_bytes: usize,
    /// Free names refused on top of the built-in list, with the kind of refusal.
    pub disabled: &'a [(String, Refusal)],
    /// Built-ins that the host was built without: free names, and properties that are read.
    pub missing: &'a [Missing],
    /// Words of Markdown fences that name scripts of this host, in lower case, beside those of JavaScript and
    /// TypeScript.
    pub fence_tags: &'a [&'a str],
    /// Whether a script that is a function expression, or ends with one, calls it. Otherwise that function is its result.
    pub calls_result: bool,
    /// The alternative of the host to a refused name or construct, such as `fetch` or `import`: it is added to
    /// the hint.
    pub alternative: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the host has an app of this name. A name that the language refuses is fine where a member of such an app is
    /// read: `fetch.get(…)`.
    pub apps: &'a dyn Fn(&str) -> bool,
    /// Whether the host provides a global that the language refuses otherwise, such as `fetch`.
    pub provided: &'a dyn Fn(&str) -> bool,
    /// Finds tools of the host itself, which no script may call: that of `callTool('codecall:search')`.
    pub own_tool: &'a OwnTool<'a>,
    /// Names of built-in globals: they are no reason for a suggestion and cannot be assigned to.
    pub globals: &'a dyn Fn(&str) -> bool,
    /// Whether a call can be evaluated without leaving the expression it is part of: it never runs
    /// a function of the script. The flag is [`Program::iterables`](crate::program::Program::iterables).
    pub plain_call: &'a dyn Fn(PlainCall<'_>, bool) -> bool,
}

/// A call by name, for [`Options::plain_call`]. All names are free where they name globals.
#[derive(Clone, Copy, Debug)]
pub enum PlainCall<'a> {
    /// `name(…)` of a global
    Global(&'a str),
    /// `Namespace.name(…)` of a global object
    Static(&'a str, &'a str),
    /// `value.name(…)` of any value but a global, where the script writes no property of that name
    Method(&'a str),
    /// `new Name(…)`
    New(&'a str),
}

//! Tools as functions by their own names: `webSearch({...})` for `web_search`.

use crate::builtins::registry::registry;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The name under which a script calls a tool as a function: words are joined as JavaScript does,
/// `web_search`, `web-search` and `web:search` are all `webSearch`. Absent where nothing is left of the
/// name, it begins with a digit, or it means something else already (`delete`, `fetch`, `parseInt`):
/// such tools are called with `callTool`.
#[must_use]
pub fn function_name(tool: &str) -> Option<String> {
    let mut name = String::with_capacity(tool.len());
    let mut joins = false;
    for c in tool.chars() {
        if c == '$' || c.is_alphanumeric() {
            if joins && !name.is_empty() {
                name.extend(c.to_uppercase());
            } else {
                name.push(c);
            }
            joins = false;
        } else {
            joins = true;
        }
    }
    is_free(&name).then_some(name)
}

/// Whether an undeclared name is allowed in scripts and has no meaning yet.
fn is_free(name: &str) -> bool {
    let options = crate::script::CompileOptions::default();
    name.starts_with(|first: char| first == '_' || first == '$' || first.is_alphabetic())
        && registry().global(name).is_none()
        && !crate::linker::Linker::default().has(name)
        && !matches!(name, "undefined" | "NaN" | "Infinity" | "main")
        && crate::script::compile(&format!("{name};{name}()"), &options).is_ok()
}

/// Two tools with one function name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameClash {
    /// The function.
    pub function: String,
    /// The tools.
    pub tools: [String; 2],
}

impl fmt::Display for NameClash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.tools;
        write!(f, "the tools '{one}' and '{other}' would both be the function {}; rename one of them", self.function)
    }
}

impl std::error::Error for NameClash {}

/// The functions of a list of tools.
#[derive(Clone, Debug, Default)]
pub struct FunctionNames {
    tools: HashMap<String, String>,
}

impl FunctionNames {
    /// The functions of these tools. A tool whose name can be written as it is has that name too.
    ///
    /// # Errors
    /// Two of them have one name or one function name.
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a str>) -> Result<Self, NameClash> {
        let mut names = Self::default();
        let mut exact = HashSet::new();
        for tool in tools {
            if !exact.insert(tool) {
                let clash = [tool.to_owned(), tool.to_owned()];
                return Err(NameClash { function: tool.to_owned(), tools: clash });
            }
            let Some(function) = function_name(tool) else { continue };
            if let Some(other) = names.tools.insert(function.clone(), tool.to_owned()) {
                return Err(NameClash { function, tools: [other, tool.to_owned()] });
            }
        }
        for tool in exact {
            let plain = tool.chars().all(|c| c == '_' || c == '$' || c.is_alphanumeric());
            if plain && !names.tools.contains_key(tool) && is_free(tool) {
                names.tools.insert(tool.to_owned(), tool.to_owned());
            }
        }
        Ok(names)
    }

    /// The tool of a function.
    #[must_use]
    pub fn tool(&self, function: &str) -> Option<&str> {
        self.tools.get(function).map(String::as_str)
    }

    /// The function of a tool, in the spelling of JavaScript.
    #[must_use]
    pub fn function(&self, tool: &str) -> Option<String> {
        function_name(tool).filter(|function| self.tool(function) == Some(tool))
    }

    /// All functions.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

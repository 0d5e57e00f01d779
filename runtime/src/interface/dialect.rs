//! The two dialects of the host's interface to scripts. The language is the same in both; every difference is here.

use crate::text::wtf8::lossy;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How a script calls tools, what its input is called, and what it may give back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// `await callTool(name, input)` and tools of apps as functions; the input is `codecallContext`, which is
    /// frozen; a result is what `JSON.stringify` makes of it.
    #[default]
    Async,
    /// `call_tool(app, tool, args)` waits by itself and gives `{ok: true, result}` or
    /// `{ok: false, error: {message, code}}`; the input is `input`; a result that is not plain data is an error.
    Sync,
}

impl Dialect {
    /// All dialects, in the order of their numbers.
    pub(crate) const ALL: &[Self] = &[Self::Async, Self::Sync];

    /// The global that holds the input of the run.
    pub(crate) fn input_name(self) -> &'static str {
        match self {
            Self::Async => "codecallContext",
            Self::Sync => "input",
        }
    }

    /// Whether the script can change its input.
    pub(crate) fn input_is_frozen(self) -> bool {
        self == Self::Async
    }

    /// Whether an undeclared name that is an app means the namespace of its tools.
    pub(crate) fn has_apps(self) -> bool {
        self == Self::Async
    }

    /// Whether a result has to be plain JSON data.
    pub(crate) fn is_strict(self) -> bool {
        self == Self::Sync
    }

    /// Whether a script that ends with a function expression calls it. The reference of the synchronous dialect says that
    /// such a function is a result, which cannot be written.
    pub(crate) fn calls_result(self) -> bool {
        self == Self::Async
    }

    /// The tool that a call of a global calls, by the constant texts that its arguments begin with.
    pub(crate) fn called_tool(self, function: &str, texts: &[Cow<'_, [u8]>]) -> Option<String> {
        match (self, function, texts) {
            (Self::Async, "callTool", [name, ..]) => Some(lossy(name).into_owned()),
            (Self::Sync, "call_tool", [app, rest @ ..]) => {
                let tool = rest.first().map(|tool| lossy(tool)).unwrap_or_default();
                Some(format!("{}:{tool}", lossy(app)))
            }
            _ => None,
        }
    }

    /// How a tool is called, for hints.
    pub(crate) fn tool_call(self) -> &'static str {
        match self {
            Self::Async => "await callTool(name, input)",
            Self::Sync => "call_tool(server, tool, args)",
        }
    }

    /// How several tools are called at the same time, for hints.
    pub(crate) fn calls_together(self) -> &'static str {
        match self {
            Self::Async => "parallel(items, work)",
            Self::Sync => "call_tools([{server, tool, args}, …])",
        }
    }

    /// What a script uses instead of a name or construct that the language refuses, for hints.
    #[must_use]
    pub fn alternative(self, refused: &str) -> Option<String> {
        let (call, input) = (self.tool_call(), self.input_name());
        match refused {
            "import" | "require" => Some(brief!("tools are called with `{call}`")),
            "process" | "Deno" | "Bun" | "__dirname" | "__filename" => Some(brief!("input is in `{input}`")),
            "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => Some(brief!("call a tool: `{call}`")),
            "WebAssembly" => Some("or call a tool".into()),
            "Worker" => Some(brief!("`{}` runs tool calls at the same time", self.calls_together())),
            _ => None,
        }
    }
}

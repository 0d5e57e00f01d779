//! Compiling a script.

use crate::builtins::intl;
use crate::builtins::registry::{compiled_prelude, registry};
use crate::eval::build::{Origin, build};
use crate::eval::linker::Linker;
use crate::eval::prelude::plain_call;
use crate::eval::suggest::{FENCE_TAGS, other_language};
use crate::interface::host::{FETCH, Tools, is_tool_of};
use crate::interface::limits::Policy;
use crate::interface::outcome::{Failure, MAX_NAME_BYTES, cut_text};
use agentscript_lang::ast::Arena;
use agentscript_lang::{Diagnostic, Language, Loops, Options, PlainCall, Refusal, refused};
use std::sync::Arc;

pub use crate::eval::script::Script;

/// How a script is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Absent: JavaScript first, and TypeScript where the text is not JavaScript.
    pub language: Option<Language>,
    /// What the script sees of its host: a dialect, and functions of the embedder.
    pub linker: Linker,
    /// Which loops are allowed.
    pub loops: Loops,
    /// Whether `console` is allowed.
    pub allow_console: bool,
    /// Whether timers are allowed.
    pub timers: bool,
    /// Whether the script has `fetch`.
    pub fetch: bool,
    /// Longest source in bytes.
    pub max_bytes: u64,
    /// Built-ins refused on top of the language's own list.
    pub disabled_builtins: Vec<String>,
    /// Globals refused on top of the language's own list.
    pub disabled_globals: Vec<String>,
    /// The apps of the host's own tools: a call of one by a constant name is refused.
    pub reserved_apps: Vec<String>,
    /// Apps of the host whose names the language refuses as globals: a script may read members of them, as in `fetch.get(…)`.
    pub apps: Vec<String>,
}

impl CompileOptions {
    /// The options that a policy asks for.
    #[must_use]
    pub fn for_policy(policy: &Policy) -> Self {
        Self {
            language: None,
            linker: Linker::default(),
            loops: policy.loops,
            allow_console: policy.allow_console,
            timers: policy.timers,
            fetch: policy.fetch,
            max_bytes: policy.limits.max_script_bytes,
            disabled_builtins: policy.disabled_builtins.clone(),
            disabled_globals: policy.disabled_globals.clone(),
            reserved_apps: Vec::new(),
            apps: Vec::new(),
        }
    }

    /// The same for a script that sees these tools.
    #[must_use]
    pub fn with_tools(mut self, tools: &dyn Tools) -> Self {
        if self.linker.dialect().has_apps() {
            self.apps = refused::globals().filter(|name| tools.is_app(name)).map(str::to_owned).collect();
        }
        self.reserved_apps = tools.reserved_apps();
        self
    }
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self::for_policy(&Policy::default())
    }
}

/// Why a script was not compiled.
#[derive(Clone, Debug)]
pub struct CompileError {
    /// What is wrong, in the order of the source; never empty.
    pub diagnostics: Vec<Diagnostic>,
    /// The same as the failure of a run.
    pub failure: Box<Failure>,
}

/// Compile a script.
///
/// # Errors
/// Syntax errors and everything that AgentScript or the options refuse.
pub fn compile(source: &str, options: &CompileOptions) -> Result<Arc<Script>, CompileError> {
    let (registry, prelude) = (registry(), compiled_prelude());
    let timers: &[&str] = if options.timers { &[] } else { crate::builtins::timer::TIMERS };
    let disabled: Vec<(String, Refusal)> = options
        .disabled_builtins
        .iter()
        .map(|name| (name.clone(), Refusal::IllegalBuiltinAccess))
        .chain(options.disabled_globals.iter().map(|name| (name.clone(), Refusal::DisallowedGlobal)))
        .chain((!options.allow_console).then(|| ("console".to_owned(), Refusal::DisallowedGlobal)))
        .chain(timers.iter().map(|name| ((*name).to_owned(), Refusal::DisallowedGlobal)))
        .collect();
    let is_app = |name: &str| options.apps.iter().any(|app| app == name);
    let lang = Options {
        language: options.language,
        loops: options.loops,
        max_bytes: usize::try_from(options.max_bytes).unwrap_or(usize::MAX),
        disabled: &disabled,
        missing: intl::MISSING,
        fence_tags: FENCE_TAGS,
        calls_result: options.linker.dialect().calls_result(),
        alternative: &|refused| match is_app(refused) {
            true => Some(format!("the tools of the server '{refused}' are called as `await {refused}.tool(input)`")),
            false => options.linker.dialect().alternative(refused),
        },
        apps: &is_app,
        own_tool: &|function, texts| {
            let name = options.linker.dialect().called_tool(function, texts)?;
            options.reserved_apps.iter().any(|app| is_tool_of(app, &name)).then(|| cut_text(&name, MAX_NAME_BYTES))
        },
        provided: &|name| options.fetch && name == FETCH,
        globals: &|name| {
            registry.global(name).is_some()
                || matches!(name, "undefined" | "NaN" | "Infinity")
                || options.linker.has(name)
        },
        plain_call: &|call, iterables| match call {
            PlainCall::Global(name) if registry.global(name).is_none() => options.linker.is_plain(name),
            call => plain_call(registry, call, iterables),
        },
    };
    let arena = Arena::for_source(source.len());
    match agentscript_lang::compile(&arena, source, &lang) {
        Ok(program) => {
            let linker = options.linker.clone();
            let missing = intl::MISSING.iter().map(|missing| missing.name.to_owned());
            let disabled = disabled.into_iter().map(|(name, _)| name).chain(missing).collect();
            Ok(Arc::new(Script {
                source: source.to_owned(),
                code: build(&program, registry, Origin::Script { prelude, linker: &linker, has_fetch: options.fetch }),
                registry,
                prelude,
                linker,
                disabled,
            }))
        }
        Err(failure) => {
            let mut failed = Failure::from_diagnostics(source, failure.diagnostics.clone());
            if let Some(hint) = other_language(source) {
                failed.hint = Some(hint.into());
            }
            Err(CompileError { failure: Box::new(failed), diagnostics: failure.diagnostics })
        }
    }
}

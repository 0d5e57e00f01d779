//! The inputs of a run, as its journal has them.

use super::INTERPRETER;
use crate::hub::{Hub, Principal};
use agentscript::{LIMITS, Language, Limits, Loops, Policy, Preset};
use codecall_base::call::client;
use codecall_runs::ExecuteRequest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The inputs with which a run was begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The version of the interpreter.
    pub interpreter: String,
    pub script: String,
    pub language: Option<String>,
    pub context: Option<String>,
    pub allowed_tools: Option<Vec<String>>,
    pub allowed_apps: Option<Vec<String>>,
    pub limits: BTreeMap<String, u64>,
    pub loops: String,
    pub allow_console: bool,
    pub timers: bool,
    pub disabled_builtins: Vec<String>,
    pub disabled_globals: Vec<String>,
    pub seed: u64,
    /// The time that the script sees at its beginning, in milliseconds since 1970.
    pub began_ms: i64,
    /// How the client names itself.
    pub client: Option<String>,
    /// The permissions of the client of the HTTP server.
    pub permissions: Option<String>,
    /// The scopes of its token; `None`: tokens of the client have none, or an earlier version has begun the run.
    #[serde(default)]
    pub scopes: Option<BTreeSet<String>>,
    /// The longest result that its client gets.
    pub max_result_bytes: u64,
}

impl Header {
    pub fn new(hub: &Hub, request: &ExecuteRequest, began_ms: i64) -> Self {
        // Runs with `fetch` are not journaled.
        let Policy { limits, loops, allow_console, timers, fetch: _, disabled_builtins, disabled_globals } =
            &request.policy;
        Self {
            interpreter: INTERPRETER.to_owned(),
            script: request.script.to_string(),
            language: request.language.map(|language| language_name(language).to_owned()),
            context: request.context.clone(),
            allowed_tools: request.allowed_tools.clone(),
            allowed_apps: request.allowed_apps.clone(),
            limits: LIMITS.iter().map(|limit| (limit.name.to_owned(), limit.get(limits))).collect(),
            loops: loops_name(*loops).to_owned(),
            allow_console: *allow_console,
            timers: *timers,
            disabled_builtins: disabled_builtins.clone(),
            disabled_globals: disabled_globals.clone(),
            seed: 0,
            began_ms,
            client: client().map(|name| name.to_string()),
            permissions: hub.principal.as_ref().map(Principal::permissions),
            scopes: hub.principal.as_ref().and_then(|principal| principal.scopes.clone()),
            max_result_bytes: request.max_client_bytes.unwrap_or(limits.max_result_bytes),
        }
    }

    /// Returns the policy of the run; `None`: a limit is missing or unknown.
    pub fn policy(&self) -> Option<Policy> {
        let mut limits = Limits::preset(Preset::LockedDown);
        if self.limits.len() != LIMITS.len() {
            return None;
        }
        for limit in LIMITS {
            limit.set(&mut limits, *self.limits.get(limit.name)?);
        }
        let loops = LOOPS.into_iter().find(|(_, name)| *name == self.loops).map(|(loops, _)| loops)?;
        Some(Policy {
            limits,
            loops,
            allow_console: self.allow_console,
            timers: self.timers,
            fetch: false,
            disabled_builtins: self.disabled_builtins.clone(),
            disabled_globals: self.disabled_globals.clone(),
        })
    }
}

const LANGUAGES: [(Language, &str); 2] = [(Language::JavaScript, "javascript"), (Language::TypeScript, "typescript")];
const LOOPS: [(Loops, &str); 3] = [(Loops::None, "none"), (Loops::Bounded, "bounded"), (Loops::All, "all")];

fn language_name(language: Language) -> &'static str {
    LANGUAGES.into_iter().find(|(known, _)| *known == language).map_or("javascript", |(_, name)| name)
}

pub fn parse_language(name: &str) -> Option<Language> {
    LANGUAGES.into_iter().find(|(_, known)| *known == name).map(|(language, _)| language)
}

fn loops_name(loops: Loops) -> &'static str {
    LOOPS.into_iter().find(|(known, _)| *known == loops).map_or("none", |(_, name)| name)
}

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
    /// The format of the lines of the journal; `None`: the first one, or there are no lines, as on an engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<u32>,
    /// The version of the interpreter.
    pub interpreter: String,
    pub script: String,
    pub language: Option<Language>,
    pub context: Option<String>,
    pub allowed_tools: Option<Vec<String>>,
    pub allowed_apps: Option<Vec<String>>,
    pub limits: BTreeMap<String, u64>,
    pub loops: Loops,
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
            format: None,
            interpreter: INTERPRETER.to_owned(),
            script: request.script.to_string(),
            language: request.language,
            context: request.context.clone(),
            allowed_tools: request.allowed_tools.clone(),
            allowed_apps: request.allowed_apps.clone(),
            limits: LIMITS.iter().map(|limit| (limit.name.to_owned(), limit.get(limits))).collect(),
            loops: *loops,
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
        Some(Policy {
            limits,
            loops: self.loops,
            allow_console: self.allow_console,
            timers: self.timers,
            fetch: false,
            disabled_builtins: self.disabled_builtins.clone(),
            disabled_globals: self.disabled_globals.clone(),
        })
    }
}

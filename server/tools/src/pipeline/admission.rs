//! Whether a call may proceed: its tool exists, the caller may call it, and the input is valid.

use super::{Pipeline, ToolCall, check};
use crate::catalogue::{Entry, Snapshot};
use codecall_base::call::Caller;
use codecall_base::offload::{self, weight};
use codecall_base::schema::without_nulls;
use codecall_base::text::{nearest, truncate};
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES, ToolError, glob_matches, is_reserved};
use codecall_config::DirectCalls;
use serde_json::Value;
use std::sync::Arc;

impl Pipeline {
    /// Returns the tool that a call would reach: it exists, is allowed, and the input is valid. No hook is called.
    ///
    /// # Errors
    /// The call would be refused.
    pub fn admit(&self, call: &ToolCall) -> Result<Arc<Entry>, ToolError> {
        let snapshot = self.catalogue.snapshot();
        let sent = Value::Object(call.input.clone());
        offload::run_without_permit(weight(&sent), || {
            let found = self.find(&snapshot, call);
            let admitted = |entry: &'_ Arc<Entry>| {
                let entry = Arc::clone(entry);
                let input = self.lenient(&entry, &sent);
                self.admitted(&snapshot, &entry, call, input.as_ref().unwrap_or(&sent)).map(|()| entry)
            };
            let entry = found.and_then(admitted);
            entry.map_err(|error| self.cleaned(error, Some(&sent)))
        })
    }

    /// Whether no server has a tool of this name, and none that is starting may have it.
    #[must_use]
    pub fn is_unknown(&self, name: &str) -> bool {
        // In this order: the tools of a server may become known in between.
        let is_owner_known = self.catalogue.unknown_owner(name).is_none();
        self.catalogue.catch_up();
        is_owner_known && self.catalogue.snapshot().lookup(name).is_none()
    }

    /// Returns the tool that a call names, and the snapshot that has it or does not.
    pub(super) fn find_now(&self, call: &ToolCall) -> (Arc<Snapshot>, Result<Arc<Entry>, ToolError>) {
        let find = || {
            let snapshot = self.catalogue.snapshot();
            let found = self.find(&snapshot, call).cloned();
            (snapshot, found)
        };
        let now = find();
        if now.1.is_ok() {
            return now;
        }
        // The tools of a server may have become known since the snapshot.
        self.catalogue.catch_up();
        find()
    }

    /// Returns the tool that a call names.
    pub(super) fn find<'a>(&self, snapshot: &'a Snapshot, call: &ToolCall) -> Result<&'a Arc<Entry>, ToolError> {
        let name = call.tool.as_str();
        if is_reserved(name) {
            let message = format!("Tool '{name}' is one of CodeCall's own and cannot be called from here");
            return Err(ToolError { fatal: true, ..ToolError::new(ErrorCode::SelfReferenceBlocked, message) });
        }
        let entry = match call.context.caller {
            Caller::Direct => snapshot.lookup_listed(name),
            Caller::Script | Caller::Invoke => snapshot.lookup(name),
        };
        let app = match entry {
            Some(entry) => entry.definition.app.as_str(),
            None => name.split([':', '.']).next().unwrap_or_default(),
        };
        if let Some(apps) = &call.apps
            && !apps.iter().any(|allowed| allowed == app)
        {
            let message = format!("Server '{app}' is not in the list of allowed servers");
            return Err(ToolError { fatal: true, ..ToolError::new(ErrorCode::ServerNotAllowed, message) });
        }
        if let Some(entry) = entry {
            return Ok(entry);
        }
        if let Some(waiting) = snapshot.quarantined(name) {
            let state = match (&waiting.approved, waiting.is_revoked) {
                (_, true) => "its approval was revoked",
                (Some(_), false) => "it has changed since it was approved",
                (None, false) => "it is new",
            };
            let message = format!(
                "Tool '{name}' is quarantined: {state}. A person can review it with 'codecall tools pending' and allow it with 'codecall tools approve {}'",
                waiting.name
            );
            return Err(ToolError::new(ErrorCode::ToolQuarantined, message));
        }
        let meant = snapshot.meant_by(name);
        if meant.len() > 1 {
            return Err(ToolError::new(ErrorCode::ToolNotFound, shared_name(name, &meant)));
        }
        if let Some(broken) = self.catalogue.broken_tool(name) {
            return Err(broken.to_error());
        }
        // Some servers give their tools names with a colon, which are no names of tools here.
        let of_server = snapshot.rows().iter().filter(|row| row.definition.name == name).map(|row| row.name.as_str());
        let mut near: Vec<&str> = of_server.take(3).collect();
        if near.is_empty() {
            near = nearest(name, snapshot.rows().iter().map(|row| row.name.as_str()), 3);
        }
        let near: Vec<String> = near.into_iter().map(|name| format!("'{name}'")).collect();
        let did_you_mean = || format!("Did you mean {}?", near.join(" or "));
        // A name without an app may be that of a tool that is not known, and of one that is.
        let or_near = if near.is_empty() { String::new() } else { format!(". {}", did_you_mean()) };
        if let Some(owner) = self.catalogue.unknown_owner(name)
            && self.catalogue.may_name(&**owner)
            && let Some(reason) = owner.unavailable_reason()
        {
            let (code, advice) = match owner.is_starting() {
                true => (ErrorCode::ServerStarting, ". Try again soon"),
                false if owner.needs_login() => (ErrorCode::LoginRequired, ""),
                false => (ErrorCode::ServerUnavailable, ""),
            };
            return Err(ToolError::new(code, format!("Tool '{name}' is not known: {reason}{advice}{or_near}")));
        }
        // Tools of other upstreams are known, and this one is not among them.
        let failed = self.catalogue.upstreams().filter(|up| up.app() == app && up.tools().is_empty());
        let mut failed = failed.filter(|up| self.catalogue.may_name(&***up));
        if let Some((failed, trouble)) = failed.find_map(|up| Some((up, up.unavailable_reason()?))) {
            let code = if failed.needs_login() { ErrorCode::LoginRequired } else { ErrorCode::ServerUnavailable };
            return Err(ToolError::new(code, format!("Tool '{name}' is not known: {trouble}")));
        }
        let hint = if near.is_empty() { "Find tools with codecall_search".to_owned() } else { did_you_mean() };
        Err(ToolError::new(ErrorCode::ToolNotFound, format!("Tool '{name}' not found. {hint}")))
    }

    /// Checks whether a call may proceed to the hooks.
    pub(super) fn admitted(
        &self,
        snapshot: &Snapshot,
        entry: &Entry,
        call: &ToolCall,
        sent: &Value,
    ) -> Result<(), ToolError> {
        allow(snapshot, entry, call.allowed.as_deref())?;
        let name = call.tool.as_str();
        let is_only_offered = || snapshot.listed().lookup(name).is_none() && snapshot.offered().lookup(name).is_some();
        match call.context.caller {
            Caller::Invoke => self.allow_direct(snapshot, entry)?,
            Caller::Direct if is_only_offered() => self.allow_direct(snapshot, entry)?,
            Caller::Direct | Caller::Script => {}
        }
        check::input(entry, sent)
    }

    /// Returns an input without `null` for optional properties that cannot be `null`; `None` if it stays as it is.
    pub(super) fn lenient(&self, entry: &Entry, sent: &Value) -> Option<Value> {
        if !self.lenient_input || !matches!(entry.validator(), Some(Ok(_))) {
            return None;
        }
        let mut input = sent.clone();
        without_nulls(&entry.definition.input_schema, &mut input);
        (input != *sent).then_some(input)
    }

    /// Whether a tool may be called without a script.
    #[must_use]
    pub fn may_call_directly(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        self.allow_direct(snapshot, entry).is_ok()
    }

    /// Checks whether a tool may be called without a script.
    fn allow_direct(&self, snapshot: &Snapshot, entry: &Entry) -> Result<(), ToolError> {
        let DirectCalls { enabled, allowed_tools, filter } = &self.direct_calls;
        if !enabled {
            return Err(ToolError::new(ErrorCode::AccessDenied, "Direct calls are switched off; use codecall_execute"));
        }
        let allowed = allowed_tools.as_ref().is_none_or(|allowed| is_allowed(snapshot, entry, allowed));
        if allowed && filter.selects(&entry.definition) {
            return Ok(());
        }
        let message = format!("Tool '{}' may not be called directly; use codecall_execute", entry.name);
        Err(ToolError::new(ErrorCode::AccessDenied, message))
    }
}

/// Maximum number of tools that are named as those that share a name.
const MAX_SHARING: usize = 5;

/// Says that several tools share a name.
#[must_use]
pub fn shared_name(name: &str, tools: &[&str]) -> String {
    let named: Vec<String> = tools.iter().take(MAX_SHARING).map(|tool| format!("'{tool}'")).collect();
    let more = if tools.len() > MAX_SHARING { ", …" } else { "" };
    format!("The name '{name}' means {} tools: {}{more}. Write one of these names", tools.len(), named.join(", "))
}

/// Refuses a name that no tool can have, and truncates it.
pub(super) fn check_name_length(name: &mut String) -> Result<(), ToolError> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let length = name.len();
    *name = format!("{}…", truncate(name, MAX_NAME_BYTES / 4));
    let message =
        format!("Tool '{name}' not found: its name has {length} bytes, and names have at most {MAX_NAME_BYTES}");
    Err(ToolError::new(ErrorCode::ToolNotFound, message))
}

/// Whether a list of allowed names, in any spelling or as patterns, contains the tool.
#[must_use]
fn is_allowed(snapshot: &Snapshot, entry: &Entry, allowed: &[String]) -> bool {
    allowed.iter().any(|pattern| {
        glob_matches(pattern, &entry.name) || snapshot.lookup(pattern).is_some_and(|other| other.name == entry.name)
    })
}

fn allow(snapshot: &Snapshot, entry: &Entry, allowed: Option<&[String]>) -> Result<(), ToolError> {
    match allowed {
        Some(allowed) if !is_allowed(snapshot, entry, allowed) => {
            let message = format!("Tool '{}' is not among the allowed tools of this request", entry.name);
            Err(ToolError::new(ErrorCode::AccessDenied, message))
        }
        Some(_) | None => Ok(()),
    }
}

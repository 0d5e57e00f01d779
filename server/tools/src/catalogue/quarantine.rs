//! Quarantine: tools that are new or have changed since a person has approved them.
//!
//! A tool is compared by a digest of all that a model reads of it. A tool in quarantine is not in the index and in no
//! list; a call by its name says so.

use codecall_base::redact::Redactor;
use codecall_base::text::diff::unified;
use codecall_base::tool::ToolDefinition;
use codecall_config::Quarantine;
use codecall_store::{Approval, ApprovalStore, Approvals, BoxFuture, Digest, StoreError};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The watch over the tools that wait for approval, by app.
pub struct Watch {
    store: Arc<dyn ApprovalStore>,
    /// By app: what waits, and what identifies its server.
    rules: BTreeMap<String, (Quarantine, Digest)>,
    /// The approvals when the tools of an app were last decided about; `None`: they were not known.
    decided: Mutex<HashMap<String, Option<Arc<Approvals>>>>,
    /// Whether it was tried to read what is approved.
    is_read: watch::Sender<bool>,
    /// The digests of an app's tools, so that they are not computed at each change of another.
    digests: Mutex<HashMap<String, Digests>>,
}

/// By name: a definition and its digest.
type Digests = HashMap<String, (Arc<ToolDefinition>, Box<str>)>;

/// A tool that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its full name.
    pub name: String,
    /// The definition by its server now, as canonical JSON.
    pub definition: Box<str>,
    /// The approved definition; `None`: it is new, or its approval was revoked.
    pub approved: Option<Box<str>>,
    /// Whether a person has revoked its approval.
    pub is_revoked: bool,
    /// Whether it is known what is approved of its server.
    pub is_known: bool,
    app: String,
    /// The name that its server gives it.
    own_name: String,
    server: Digest,
    digest: Box<str>,
}

/// The judge of the tools of an app.
pub struct Judge<'a> {
    watch: &'a Watch,
    app: &'a str,
    before: Digests,
    digests: Digests,
    mode: Quarantine,
    server: Digest,
    /// `None`: it is not known yet, so all tools wait.
    approved: Option<Arc<Approvals>>,
    /// The tools that are approved without being asked about.
    accepted: Approvals,
}

impl Pending {
    /// Returns the app of its server.
    #[must_use]
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Returns the name that its server gives it.
    #[must_use]
    pub fn own_name(&self) -> &str {
        &self.own_name
    }

    /// Returns the lines of a unified diff between what was approved and what it is. Secrets are masked before a text
    /// is divided
    /// into lines: one with line breaks is found in no line.
    #[must_use]
    pub fn diff(&self, secrets: &Redactor) -> Vec<String> {
        let shown = |definition: &str| lines(&secrets.redact_json(definition));
        let old = self.approved.as_deref().map(shown).unwrap_or_default();
        unified(&old, &shown(&self.definition))
    }
}

impl Watch {
    /// Creates a watch with rules by app: what waits for approval, and what identifies the server. Apps without a rule are
    /// not watched.
    #[must_use]
    pub fn new(store: Arc<dyn ApprovalStore>, mut rules: BTreeMap<String, (Quarantine, Digest)>) -> Self {
        rules.retain(|_, (mode, _)| *mode != Quarantine::Off);
        // Now the store knows of whom something is asked.
        let is_known = rules.values().all(|(_, server)| store.approved(*server).is_some());
        Self {
            store,
            rules,
            decided: Mutex::default(),
            is_read: watch::Sender::new(is_known),
            digests: Mutex::default(),
        }
    }

    /// Whether any app is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Reads what others have approved since. Returns whether anything is different from what was decided with.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn refresh(&self) -> Result<bool, StoreError> {
        // Several watches may have the store, and only one of them is told of a change.
        self.store.refresh().await?;
        let decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |(app, (_, server)): (&String, &(Quarantine, Digest))| match (
            decided.get(app).and_then(Option::as_ref),
            self.store.approved(*server),
        ) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, &now),
            (before, now) => before.is_none() && now.is_none(),
        };
        Ok(!self.rules.iter().all(is_same))
    }

    /// Notes that the catalogue knows what was read.
    pub fn set_read(&self) {
        self.is_read.send_replace(true);
    }

    /// Resolves when the catalogue knows what is approved, or the store could not be read.
    pub async fn read(&self) {
        let _ = self.is_read.subscribe().wait_for(|is_read| *is_read).await;
    }

    /// Begins to decide about the tools of an app; `None` if it is not watched.
    pub fn judge<'a>(&'a self, app: &'a str) -> Option<Judge<'a>> {
        let (mode, server) = *self.rules.get(app)?;
        let before = self.digests.lock().unwrap_or_else(PoisonError::into_inner).remove(app).unwrap_or_default();
        let (digests, accepted) = (Digests::with_capacity(before.len()), Approvals::new());
        let approved = self.store.approved(server);
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).insert(app.to_owned(), approved.clone());
        Some(Judge { watch: self, app, before, digests, mode, server, approved, accepted })
    }

    /// Judges an item of an app that is not a tool, such as a skill, by its definition. `own_name` is its name in the list of
    /// approvals. Returns the item if it waits for approval; an item that is accepted without a question is approved.
    ///
    /// # Errors
    /// The approval cannot be stored.
    pub async fn judge_item(
        &self,
        app: &str,
        own_name: &str,
        name: &str,
        definition: &Value,
    ) -> Result<Option<Pending>, StoreError> {
        let Some(&(mode, server)) = self.rules.get(app) else { return Ok(None) };
        let definition = sorted(definition).to_string();
        let judged = Judged { app, own_name, name, mode, server, digest: digest(&definition) };
        match judged.waits(self.store.approved(server).as_deref(), || definition.clone().into_boxed_str()) {
            Verdict::Approved => Ok(None),
            Verdict::Accepted(approval) => {
                self.store.approve(server, Approvals::from_iter([(own_name.to_owned(), approval)])).await?;
                Ok(None)
            }
            Verdict::Waits(pending) => Ok(Some(pending)),
        }
    }

    /// Returns the apps and own names of the tools that are approved, also those that their servers do not have now.
    #[must_use]
    pub fn approved(&self) -> Vec<(String, String)> {
        let of_app = |(app, (_, server)): (&String, &(Quarantine, Digest))| {
            let approved = self.store.approved(*server).unwrap_or_default();
            let names = approved.iter().filter(|(_, approval)| !is_revocation(approval));
            names.map(|(name, _)| (app.clone(), name.clone())).collect::<Vec<_>>()
        };
        self.rules.iter().flat_map(of_app).collect()
    }

    /// Revokes the approval of tools, given by app and own name: they wait for approval again, whatever they are.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn revoke(&self, tools: &[(String, String)]) -> Result<(), StoreError> {
        for (app, (_, server)) in &self.rules {
            let own = tools.iter().filter(|(of, _)| of == app).map(|(_, name)| (name.clone(), revocation()));
            let revoked: Approvals = own.collect();
            if !revoked.is_empty() {
                self.store.approve(*server, revoked).await?;
            }
        }
        Ok(())
    }

    /// Approves tools.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn approve(&self, tools: &[&Pending]) -> Result<(), StoreError> {
        let mut servers: BTreeMap<Digest, Approvals> = BTreeMap::new();
        for tool in tools {
            let approval = Approval { digest: tool.digest.clone(), definition: tool.definition.clone() };
            servers.entry(tool.server).or_default().insert(tool.own_name.clone(), approval);
        }
        for (server, approvals) in servers {
            self.store.approve(server, approvals).await?;
        }
        Ok(())
    }
}

/// The approval of a tool that waits whatever its definition is.
fn revocation() -> Approval {
    Approval { digest: Box::default(), definition: Box::default() }
}

fn is_revocation(approval: &Approval) -> bool {
    approval.digest.is_empty()
}

impl Judge<'_> {
    /// Returns the tool as one that waits, if it does. `name` is its full name.
    pub fn pending(&mut self, name: &str, tool: &Arc<ToolDefinition>) -> Option<Pending> {
        let digest = match self.before.remove(&tool.name) {
            Some((before, digest)) if Arc::ptr_eq(&before, tool) => digest,
            Some(_) | None => digest(&canonical(tool)),
        };
        self.digests.insert(tool.name.clone(), (Arc::clone(tool), digest.clone()));
        let judged = Judged { app: self.app, own_name: &tool.name, name, mode: self.mode, server: self.server, digest };
        match judged.waits(self.approved.as_deref(), || canonical(tool).into_boxed_str()) {
            Verdict::Approved => None,
            Verdict::Accepted(approval) => {
                self.accepted.insert(tool.name.clone(), approval);
                None
            }
            Verdict::Waits(pending) => Some(pending),
        }
    }

    /// Ends the decisions. What was accepted without being asked about is approved from now on; the future stores it.
    pub fn end(self) -> Option<BoxFuture<'static, Result<(), StoreError>>> {
        let Self { watch, app, digests, server, accepted, .. } = self;
        watch.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(app.to_owned(), digests);
        (!accepted.is_empty()).then(|| watch.store.approve(server, accepted))
    }
}

/// A definition that is compared with what is approved.
struct Judged<'a> {
    app: &'a str,
    own_name: &'a str,
    name: &'a str,
    mode: Quarantine,
    server: Digest,
    digest: Box<str>,
}

/// The result of a comparison.
enum Verdict {
    /// A person has approved it.
    Approved,
    /// Nobody is asked.
    Accepted(Approval),
    /// It waits for approval.
    Waits(Pending),
}

impl Judged<'_> {
    /// Compares it with the approvals of its server; `None`: they are not known yet, so it waits.
    fn waits(self, approved: Option<&Approvals>, definition: impl FnOnce() -> Box<str>) -> Verdict {
        let before = approved.and_then(|approved| approved.get(self.own_name));
        if before.is_some_and(|before| before.digest == self.digest) {
            return Verdict::Approved;
        }
        let definition = definition();
        let is_revoked = before.is_some_and(is_revocation);
        let waits = match before {
            _ if approved.is_none() => true,
            Some(_) if is_revoked => true,
            None => matches!(self.mode, Quarantine::New | Quarantine::All),
            Some(_) => matches!(self.mode, Quarantine::Changed | Quarantine::All),
        };
        if !waits {
            return Verdict::Accepted(Approval { digest: self.digest, definition });
        }
        Verdict::Waits(Pending {
            name: self.name.to_owned(),
            definition,
            approved: before.filter(|_| !is_revoked).map(|before| before.definition.clone()),
            is_revoked,
            is_known: approved.is_some(),
            app: self.app.to_owned(),
            own_name: self.own_name.to_owned(),
            server: self.server,
            digest: self.digest,
        })
    }
}

/// Returns all that a model reads of a tool, as JSON with sorted keys.
fn canonical(tool: &ToolDefinition) -> String {
    let ToolDefinition {
        name,
        title,
        description,
        input_schema,
        output_schema,
        annotations,
        execution,
        tags,
        examples,
        received,
        ..
    } = tool;
    let examples: Vec<Value> =
        examples.iter().map(|example| json!({"description": example.description, "code": example.code})).collect();
    let mut all = json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": input_schema,
        "outputSchema": output_schema,
        "annotations": annotations,
        "tags": tags,
        "examples": examples,
    });
    // Most tools have none, and stay approved.
    if let Some(execution) = execution {
        all["execution"] = execution.clone();
    }
    // A part that could not be read may change, too.
    if let Some(received) = received {
        all["received"] = received.as_str().into();
    }
    sorted(&all).to_string()
}

/// Returns a value with the keys of all objects in order. Schemas nest as deeply as readers of JSON follow, so this may
/// recurse.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> = members.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(members.into_iter().map(|(key, value)| (key.clone(), value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn digest(canonical: &str) -> Box<str> {
    codecall_store::state::hex(&Sha256::digest(canonical.as_bytes())).into()
}

/// Returns a definition as lines: texts as they are, all else as JSON.
fn lines(definition: &str) -> Vec<String> {
    let members: Map<String, Value> = serde_json::from_str(definition).unwrap_or_default();
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let mut out = Vec::new();
    for (key, value) in members.iter().filter(|(_, value)| !is_empty(value)) {
        let text = match value {
            Value::String(text) => text.clone(),
            value => serde_json::to_string_pretty(value).unwrap_or_default(),
        };
        let mut parts = text.split('\n');
        match (parts.next(), parts.clone().next().is_none()) {
            (Some(only), true) => out.push(format!("{key}: {only}")),
            (first, _) => {
                out.push(format!("{key}:"));
                out.extend(first.into_iter().chain(parts).map(|line| format!("  {line}")));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_covers_all_that_a_model_reads() {
        let tool = ToolDefinition {
            name: "t".into(),
            description: "d".into(),
            input_schema: json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}),
            ..ToolDefinition::default()
        };
        let original = digest(&canonical(&tool));
        let reordered = json!({"properties": {"b": {}, "a": {"type": "string"}}, "type": "object"});
        let same = ToolDefinition { input_schema: reordered, app: "other".into(), ..tool.clone() };
        assert_eq!(digest(&canonical(&same)), original);
        let hints = json!({"readOnlyHint": true}).as_object().cloned().unwrap_or_default();
        for changed in [
            ToolDefinition { description: "d\u{200b}".into(), ..tool.clone() },
            ToolDefinition { title: Some("x".into()), ..tool.clone() },
            ToolDefinition { annotations: hints, ..tool.clone() },
            ToolDefinition { output_schema: Some(json!({})), ..tool.clone() },
            ToolDefinition { tags: vec!["x".into()], ..tool.clone() },
            ToolDefinition { execution: Some(json!({"taskSupport": "required"})), ..tool.clone() },
            ToolDefinition { received: Some("x".into()), ..tool.clone() },
            ToolDefinition { input_schema: json!({"type": "object"}), ..tool },
        ] {
            assert_ne!(digest(&canonical(&changed)), original);
        }
    }
}

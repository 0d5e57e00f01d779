//! The start of a run on an engine: data with which any worker of the same version evaluates the run.

use super::INTERPRETER;
use super::header::Header;
use crate::hub::{Hub, LiveHub, Principal};
use codecall_base::event::RunId;
use codecall_base::tool::ToolFilter;
use codecall_runs::ExecuteRequest;
use codecall_store::now_ms;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Number of digits of the id of a run that say whose it is.
const OWNER_DIGITS: usize = 8;

/// The start of a run on an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    header: Header,
    /// The digest of the directory of tools.
    tools: String,
    /// The digest of the request.
    request: String,
    owner: Option<Owner>,
}

/// The client of the HTTP server that a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    name: String,
    /// Its key in the store. An earlier version has not noted it.
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    scopes: Option<BTreeSet<String>>,
    allowed: Option<Vec<ToolFilter>>,
    key: String,
}

/// A run as a worker evaluates it.
pub struct Started {
    /// The hub of its client.
    pub hub: Arc<Hub>,
    /// Its request.
    pub request: ExecuteRequest,
    /// How its client names itself.
    pub client: Option<Arc<str>>,
    /// The longest result that its client gets.
    pub max_result_bytes: u64,
}

impl Start {
    pub(super) fn new(hub: &Hub, request: &ExecuteRequest, tools: &str) -> Self {
        let header = Header { seed: codecall_runs::Runs::random_seed(), ..Header::new(hub, request, now_ms()) };
        let request = request_digest(&header);
        let owner = hub.principal.as_ref().map(|principal| Owner {
            name: principal.name.to_string(),
            owner: Some(principal.owner.to_string()),
            scopes: principal.scopes.clone(),
            allowed: principal.allowed.clone(),
            key: hex(&principal.key),
        });
        Self { header, tools: tools.to_owned(), request, owner }
    }

    /// The version of the interpreter that the run was submitted for.
    #[must_use]
    pub fn interpreter(&self) -> &str {
        &self.header.interpreter
    }

    /// The digest of the request.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The digest of the directory of tools.
    #[must_use]
    pub fn tools(&self) -> &str {
        &self.tools
    }

    /// The seed of random numbers.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.header.seed
    }

    /// How long the run may take, in milliseconds.
    #[must_use]
    pub fn max_duration_ms(&self) -> Option<u64> {
        self.header.limits.get("maxDurationMs").copied()
    }

    /// Whose run it is; `None`: the server's own.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// Returns the run as it is evaluated in a process with this hub.
    ///
    /// # Errors
    /// The problem.
    pub fn begin(self, id: &str, hub: Arc<Hub>) -> Result<Started, String> {
        let id = RunId::parse(id).ok_or("its id is none")?;
        let Self { header, .. } = self;
        let mut policy = header.policy().ok_or("its list of limits is damaged")?;
        policy.limits.max_result_bytes = hub.results().max_bytes(header.max_result_bytes);
        let request = ExecuteRequest {
            language: header.language,
            context: header.context,
            allowed_tools: header.allowed_tools,
            allowed_apps: header.allowed_apps,
            id: Some(id),
            ..ExecuteRequest::new(header.script, policy)
        };
        let client = header.client.as_deref().map(Into::into);
        Ok(Started { hub, request, client, max_result_bytes: header.max_result_bytes })
    }
}

impl Owner {
    /// Returns the client as the configuration or its token has described it.
    #[must_use]
    pub fn principal(&self) -> Principal {
        let mut key = [0; 32];
        for (byte, digits) in key.iter_mut().zip(self.key.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        Principal {
            name: self.name.as_str().into(),
            owner: self.owner.as_deref().unwrap_or(&self.name).into(),
            former_owner: None,
            scopes: self.scopes.clone(),
            // A worker asks nobody.
            is_operator: false,
            allowed: self.allowed.clone(),
            front: None,
            limits: serde_json::Map::new(),
            runs: None,
            key,
        }
    }

    /// Creates the hub of the client in another process.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn hub(&self, live: &LiveHub) -> Result<LiveHub, String> {
        live.for_principal(self.principal()).map_err(|error| error.to_string())
    }
}

/// Returns the version of the interpreter of this process.
#[must_use]
pub fn interpreter() -> &'static str {
    INTERPRETER
}

/// Returns the digest of what a client has requested, without what follows from the time.
fn request_digest(header: &Header) -> String {
    let header = Header {
        interpreter: String::new(),
        seed: 0,
        began_ms: 0,
        client: None,
        permissions: None,
        scopes: None,
        ..header.clone()
    };
    hex(&Sha256::digest(serde_json::to_vec(&header).unwrap_or_default()))
}

/// Returns the id of a run that belongs to the client of a hub: its last digits say so, and follow from the others.
pub(super) fn owned(hub: &Hub, id: &RunId) -> RunId {
    owned_by(hub.principal.as_ref().map(|principal| &*principal.owner), id)
}

/// Whether a run of this id belongs to the client of a hub.
pub(super) fn is_own(hub: &Hub, id: &RunId) -> bool {
    let former = hub.principal.as_ref().and_then(|principal| principal.former_owner.as_deref());
    owned(hub, id) == *id || former.is_some_and(|former| owned_by(Some(former), id) == *id)
}

pub(super) fn owned_by(owner: Option<&str>, id: &RunId) -> RunId {
    let digits = &id.as_str()[..id.as_str().len() - OWNER_DIGITS];
    let mut hash = Sha256::new();
    hash.update(digits);
    if let Some(owner) = owner {
        hash.update(owner.as_bytes());
    }
    let owned = format!("{digits}{}", &hex(&hash.finalize())[..OWNER_DIGITS]);
    RunId::parse(&owned).unwrap_or_else(|| id.clone())
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

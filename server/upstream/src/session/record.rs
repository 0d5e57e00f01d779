//! The record of a server: in the store between starts of this process, and here between connections.

use crate::pagination::limit_tools;
use codecall_config::{HttpConfig, Lifecycle, StdioConfig, UpstreamConfig, UpstreamKind};
use codecall_store::{Digest, ServerRecord, ServerStore};
use rmcp::model::Tool;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of a server.
pub struct Remembered {
    app: String,
    store: Arc<dyn ServerStore>,
    server: Digest,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// How the last connection began.
    lifecycle: Option<Lifecycle>,
    /// Number of connections of this process.
    connections: u64,
    /// A digest of what the store has.
    stored: Option<Digest>,
}

/// The facts that an earlier connection has learned of a server.
pub struct Known {
    pub title: Option<String>,
    pub tools: Vec<Tool>,
}

impl Remembered {
    pub fn new(app: &str, config: &UpstreamConfig, store: Arc<dyn ServerStore>) -> Self {
        Self { app: app.to_owned(), store, server: identity(app, config), memory: Mutex::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how the last connection began; `None` if there was none.
    pub fn lifecycle(&self) -> Option<Lifecycle> {
        self.memory().lifecycle
    }

    /// Returns the number of connections of this process.
    pub fn connections(&self) -> u64 {
        self.memory().connections
    }

    /// Notes how a connection has begun.
    pub fn connected(&self, lifecycle: Lifecycle) {
        let mut memory = self.memory();
        memory.lifecycle = Some(lifecycle);
        memory.connections += 1;
    }

    /// Reads what an earlier process has learned; `None` if nothing is known.
    pub async fn read(&self) -> Option<Known> {
        let record = match self.store.get(self.server).await {
            Ok(record) => record?,
            Err(error) => {
                tracing::warn!(app = self.app, "its tools of the last time are not known: {error}");
                return None;
            }
        };
        let tools = record.tools.iter().filter_map(|tool| serde_json::from_value(tool.clone()).ok()).collect();
        let (tools, _) = limit_tools(tools);
        let known = Known { title: record.title.clone(), tools };
        let mut memory = self.memory();
        memory.lifecycle = Some(record.lifecycle);
        memory.stored = digest(&record);
        Some(known)
    }

    /// Stores what this connection has learned, unless the store has the same already.
    pub async fn write(&self, title: Option<String>, tools: &[Tool]) {
        let tools: Result<Vec<Value>, _> = tools.iter().map(serde_json::to_value).collect();
        let record = {
            let mut memory = self.memory();
            let (Some(lifecycle), Ok(tools)) = (memory.lifecycle, tools) else { return };
            let record = ServerRecord { lifecycle, title, tools };
            let digest = digest(&record);
            if digest.is_some() && digest == memory.stored {
                return;
            }
            memory.stored = digest;
            record
        };
        if let Err(error) = self.store.put(self.server, record).await {
            tracing::warn!(app = self.app, "its tools cannot be stored for the next start: {error}");
        }
    }
}

/// Returns a digest of a record: the record itself may take megabytes.
fn digest(record: &ServerRecord) -> Option<Digest> {
    Some(Sha256::digest(serde_json::to_vec(record).ok()?).into())
}

/// Returns a digest of what identifies a server. Values of its environment and of its headers, which change with every
/// renewed token, are not part of it.
#[must_use]
pub fn identity(app: &str, config: &UpstreamConfig) -> Digest {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        // With its length, so that different lists of parts never have the same text.
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        digest.update(part);
    };
    add(app.as_bytes());
    match &config.kind {
        UpstreamKind::Stdio(StdioConfig { command, args, env, cwd, .. }) => {
            add(b"stdio");
            add(command.as_bytes());
            add(&args.len().to_le_bytes());
            args.iter().for_each(|arg| add(arg.as_bytes()));
            env.keys().for_each(|name| add(name.as_bytes()));
            add(cwd.as_deref().map_or(&[], |cwd| cwd.as_os_str().as_encoded_bytes()));
        }
        UpstreamKind::Http(HttpConfig { url, headers, .. }) => {
            add(b"http");
            add(url.as_bytes());
            headers.keys().for_each(|name| add(name.as_bytes()));
        }
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_config::{Config, Format};
    use codecall_store::MemoryServers;
    use serde_json::json;

    fn server(entry: Value) -> Digest {
        let text = json!({"mcpServers": {"app": entry}}).to_string();
        let config = Config::parse(&text, Format::Json, &|_| None).expect("valid");
        identity("app", &config.upstreams["app"])
    }

    #[test]
    fn a_server_is_its_command_or_address() {
        let one = server(json!({"command": "npx", "args": ["-y", "a"], "env": {"TOKEN": "first-token"}}));
        let same = json!({"command": "npx", "args": ["-y", "a"], "env": {"TOKEN": "other-token"}, "startTimeoutMs": 1});
        assert_eq!(server(same), one);
        let others = [
            json!({"command": "npx", "args": ["-ya"], "env": {"TOKEN": "first-token"}}),
            json!({"command": "npx", "args": ["-y", "a", "TOKEN"]}),
            json!({"command": "npx", "args": ["-y", "b"], "env": {"TOKEN": "first-token"}}),
            json!({"command": "npx", "args": ["-y", "a"], "env": {"TOKEN": "first-token"}, "cwd": "/tmp"}),
            json!({"url": "http://127.0.0.1:1/mcp"}),
        ];
        let mut all: Vec<Digest> = others.into_iter().map(server).collect();
        all.push(one);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[tokio::test]
    async fn the_next_process_knows_what_this_one_has_learned() {
        let store: Arc<dyn ServerStore> = Arc::new(MemoryServers::default());
        let config = UpstreamConfig::default();
        let remembered = || Remembered::new("app", &config, Arc::clone(&store));
        let first = remembered();
        assert!(first.read().await.is_none() && first.lifecycle().is_none());
        let tool: Tool =
            serde_json::from_value(json!({"name": "t", "inputSchema": {"type": "object"}})).expect("a tool");
        first.connected(Lifecycle::Discover);
        first.write(Some("Title".into()), std::slice::from_ref(&tool)).await;
        let next = remembered();
        let known = next.read().await.expect("known");
        assert_eq!(
            (known.title.as_deref(), known.tools, next.lifecycle()),
            (Some("Title"), vec![tool], Some(Lifecycle::Discover))
        );
        assert_eq!(next.connections(), 0);
    }
}

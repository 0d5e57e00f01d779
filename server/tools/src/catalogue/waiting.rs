//! Waiting for servers: only for those whose tools somebody names, and only until their tools are known.

use super::Catalogue;
use codecall_upstream::{BoxFuture, Upstream};
use futures_util::future::{join_all, select_all};
use std::sync::Arc;

impl Catalogue {
    /// Waits until a tool is known, if it may belong to servers whose tools are not known yet. It takes as long as these
    /// servers take to start.
    pub async fn wait_for_tool(&self, name: &str) {
        self.approvals_read().await;
        if self.snapshot().lookup(name).is_some() {
            return;
        }
        // Tools that have become known this moment may not be in the snapshot yet.
        let unknown: Vec<&Arc<dyn Upstream>> = self.upstreams().filter(is_awaited).collect();
        join_all(unknown.into_iter().filter(|up| self.may_own(name, up.app())).map(needed)).await;
        self.catch_up();
    }

    /// Waits until the tools of the servers are known that texts mention: a script, its context. It takes as long as these
    /// servers take to start.
    pub async fn wait_for_mentioned(&self, texts: &[&str]) {
        self.approvals_read().await;
        let unknown: Vec<&Arc<dyn Upstream>> = self.upstreams().filter(is_awaited).collect();
        let is_mentioned = |up: &&Arc<dyn Upstream>| texts.iter().any(|text| mentions(text, up.app()));
        join_all(unknown.into_iter().filter(is_mentioned).map(needed)).await;
        self.catch_up();
    }

    /// Waits until the tools of all servers are known. It takes as long as the slowest server that was never started
    /// before.
    pub async fn wait_for_all(&self) {
        self.approvals_read().await;
        join_all(self.upstreams().map(|up| up.tools_known())).await;
        self.catch_up();
    }

    /// Waits until the tools of one more server are known, or it has failed. Returns `false` at once if none is starting.
    pub async fn wait_for_one_more(&self) -> bool {
        let starting: Vec<_> = self.upstreams().filter(is_awaited).map(|up| up.tools_known()).collect();
        if starting.is_empty() {
            return false;
        }
        select_all(starting).await;
        self.catch_up();
        true
    }

    /// Returns the apps of the servers that are starting and whose tools are not known.
    pub fn starting_apps(&self) -> Vec<&str> {
        self.upstreams().filter(|up| is_awaited(up) && self.may_name(&***up)).map(|up| up.app()).collect()
    }

    /// Waits until it was read what people have approved of tools.
    pub async fn approvals_read(&self) {
        if let Some(watch) = self.watch.as_ref().filter(|watch| !watch.is_empty()) {
            watch.read().await;
        }
    }

    /// Returns a server that has not connected yet and that may have a tool of this name.
    pub fn unknown_owner(&self, name: &str) -> Option<&Arc<dyn Upstream>> {
        self.upstreams().find(|up| !up.are_tools_known() && self.may_own(name, up.app()))
    }

    /// Whether a name may be that of a tool of an app: it begins with the app, or with none at all.
    fn may_own(&self, name: &str, app: &str) -> bool {
        let is_bare = || !name.contains([':', '.']) && !self.upstreams().any(|up| begins_with(name, up.app()));
        begins_with(name, app) || is_bare()
    }
}

/// Has a server start before others, and waits until its tools are known.
fn needed(upstream: &Arc<dyn Upstream>) -> BoxFuture<'_, ()> {
    upstream.need();
    upstream.tools_known()
}

/// Whether the tools of a server are not known yet.
fn is_awaited(upstream: &&Arc<dyn Upstream>) -> bool {
    !upstream.are_tools_known() && upstream.is_starting()
}

/// Whether a name of a tool begins with the name of an app, however both are spelled.
fn begins_with(name: &str, app: &str) -> bool {
    let (name, app) = (spelled(name), spelled(app));
    !app.is_empty() && name.strip_prefix(app.as_slice()).is_some_and(|rest| rest.first() == Some(&b'_'))
}

/// Whether a script contains the name of an app, as the app is spelled or as an identifier.
#[must_use]
pub fn mentions(script: &str, app: &str) -> bool {
    let (text, app) = (spelled(script), spelled(app));
    if app.is_empty() {
        return false;
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let starts_word = |at: usize| at == 0 || !is_word(&script.as_bytes()[at - 1]);
    let ends_word = |at: usize| !text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    (0..text.len().saturating_sub(app.len() - 1))
        .any(|at| text[at..].starts_with(&app) && starts_word(at) && ends_word(at + app.len()))
}

/// Returns a text with `_` in the place of each character that is neither a letter nor a digit.
fn spelled(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte.is_ascii_alphanumeric() || !byte.is_ascii() { byte } else { b'_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_mention_apps() {
        for script in
            ["return fs.read({})", "callTool('fs:read')", "await fs_read({})", "call_tool(\"fs\", 'read')", "fs"]
        {
            assert!(mentions(script, "fs"), "{script}");
        }
        for script in ["return 1", "offs.x", "my_fs.read()", "fsx.read()", "$fs", "f s"] {
            assert!(!mentions(script, "fs"), "{script}");
        }
        assert!(mentions("my_server.list()", "my-server") && mentions("callTool('my-server:list')", "my-server"));
        assert!(!mentions("x", ""));
    }

    #[test]
    fn names_begin_with_apps() {
        for name in ["fs:read", "fs.read", "fs_read"] {
            assert!(begins_with(name, "fs"), "{name}");
        }
        assert!(begins_with("my_server:x", "my-server"));
        assert!(!begins_with("fsread", "fs") && !begins_with("fs", "fs") && !begins_with("read", ""));
    }
}

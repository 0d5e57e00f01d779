//! Script tools that were stored, and all of their versions. A version never changes; an older one comes back as a new one.

use crate::database::{Database, Problem, Row, Statement, Value};
use crate::{BoxFuture, StoreError, now_ms};
use serde::{Deserialize, Serialize};

/// Maximum length of the name of an author, in bytes.
const MAX_AUTHOR_BYTES: usize = 200;

/// The content of a version of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StoredCode {
    /// The code, which contains the manifest.
    pub code: String,
    /// Whether it is TypeScript.
    #[serde(default)]
    pub typescript: bool,
}

/// A version of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredVersion {
    /// Its number, from 1.
    pub version: i64,
    /// The content.
    #[serde(flatten)]
    pub code: StoredCode,
    /// The person who has stored it.
    pub author: String,
    /// When, in milliseconds since 1970.
    pub stored_ms: i64,
}

/// A stored tool: the version in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredTool {
    /// Its name.
    pub name: String,
    /// Whether it can be called.
    pub enabled: bool,
    /// The version.
    #[serde(flatten)]
    pub version: StoredVersion,
}

/// Stored tools, by workspace and name.
pub trait ScriptToolStore: Send + Sync {
    /// Returns a number that is another one after each change of the tools of a workspace.
    fn stamp<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<i64, StoreError>>;

    /// Returns the tools of a workspace, by name.
    fn list<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>>;

    /// Returns all versions of a tool, the latest first; also those of a tool that was removed.
    fn versions<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<StoredVersion>, StoreError>>;

    /// Stores a new version, which is used from now on. Returns its number. A new tool is enabled.
    fn put<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        code: &'a StoredCode,
        author: &'a str,
    ) -> BoxFuture<'a, Result<i64, StoreError>>;

    /// Sets whether a tool can be called. Returns whether there is one.
    fn set_enabled<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        enabled: bool,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes a tool. Its versions stay. Returns whether there was one.
    fn remove<'a>(&'a self, workspace: &'a str, name: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// Stored tools in a database.
#[derive(Clone, Debug)]
pub struct SqlScriptTools(pub Database);

impl SqlScriptTools {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        let done = self.0.batch(statements).await;
        done.map_err(|problem: Problem| self.0.error(&problem))
    }

    async fn query(&self, sql: &'static str, values: impl Into<Vec<Value>>) -> Result<Vec<Row>, StoreError> {
        self.batch(vec![Statement::new(sql, values)]).await
    }
}

/// Counts a change of a workspace.
fn changed(workspace: &str) -> Statement {
    let sql = "INSERT INTO script_tool_changes (workspace, changes) VALUES ($1, 1) \
               ON CONFLICT (workspace) DO UPDATE SET changes = script_tool_changes.changes + 1";
    Statement::new(sql, [workspace.into()])
}

impl ScriptToolStore for SqlScriptTools {
    fn stamp<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT changes FROM script_tool_changes WHERE workspace = $1";
            Ok(self.query(sql, [workspace.into()]).await?.first().map_or(0, |row| row[0].int()))
        })
    }

    fn list<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT v.version, v.code, v.typescript, v.author, v.stored, t.name, t.enabled \
                       FROM script_tools t JOIN script_tool_versions v \
                       ON v.workspace = t.workspace AND v.name = t.name AND v.version = t.version \
                       WHERE t.workspace = $1 ORDER BY t.name";
            let rows = self.query(sql, [workspace.into()]).await?;
            let tool =
                |row: &Row| StoredTool { name: text(&row[5]), enabled: row[6].int() != 0, version: version(row) };
            Ok(rows.iter().map(tool).collect())
        })
    }

    fn versions<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<StoredVersion>, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT version, code, typescript, author, stored FROM script_tool_versions \
                       WHERE workspace = $1 AND name = $2 ORDER BY version DESC";
            Ok(self.query(sql, [workspace.into(), name.into()]).await?.iter().map(version).collect())
        })
    }

    fn put<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        code: &'a StoredCode,
        author: &'a str,
    ) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(async move {
            let author = codecall_base::text::truncate(author, MAX_AUTHOR_BYTES);
            let add = "INSERT INTO script_tool_versions (workspace, name, version, code, typescript, author, stored) \
                       SELECT $1, $2, COALESCE(MAX(version), 0) + 1, $3, CAST($4 AS BIGINT), $5, CAST($6 AS BIGINT) FROM script_tool_versions \
                       WHERE workspace = $1 AND name = $2";
            let values = [
                workspace.into(),
                name.into(),
                code.code.as_str().into(),
                i64::from(code.typescript).into(),
                author.into(),
                now_ms().into(),
            ];
            let latest = "INSERT INTO script_tools (workspace, name, version, enabled) \
                          SELECT $1, $2, MAX(version), 1 FROM script_tool_versions WHERE workspace = $1 AND name = $2 \
                          ON CONFLICT (workspace, name) DO UPDATE SET version = excluded.version \
                          RETURNING version";
            let latest = Statement::new(latest, [workspace.into(), name.into()]);
            let rows = self.batch(vec![changed(workspace), Statement::new(add, values), latest]).await?;
            Ok(rows.last().map_or(0, |row| row[0].int()))
        })
    }

    fn set_enabled<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        enabled: bool,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let sql = "UPDATE script_tools SET enabled = $1 WHERE workspace = $2 AND name = $3 RETURNING name";
            let values = [i64::from(enabled).into(), workspace.into(), name.into()];
            Ok(!self.batch(vec![changed(workspace), Statement::new(sql, values)]).await?.is_empty())
        })
    }

    fn remove<'a>(&'a self, workspace: &'a str, name: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let sql = "DELETE FROM script_tools WHERE workspace = $1 AND name = $2 RETURNING name";
            let values = [workspace.into(), name.into()];
            Ok(!self.batch(vec![changed(workspace), Statement::new(sql, values)]).await?.is_empty())
        })
    }
}

fn text(value: &Value) -> String {
    value.text().unwrap_or_default().to_owned()
}

fn version(row: &Row) -> StoredVersion {
    let code = StoredCode { code: text(&row[1]), typescript: row[2].int() != 0 };
    StoredVersion { version: row[0].int(), code, author: text(&row[3]), stored_ms: row[4].int() }
}

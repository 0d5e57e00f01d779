//! `scriptTools`: a folder of files of AgentScript that become tools.

use super::StoreConfig;
use super::mcp_servers::check_app;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Script tools: files `NAME.js` and `NAME.ts` of a folder with a function `execute(params, config)`, which are tools of one
/// app.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("x-short" = "folder"))]
pub struct ScriptToolsConfig {
    /// The folder. It is looked at once a second: files that change are checked and used from then on.
    pub folder: Option<PathBuf>,
    /// Whether there are tools in the store too, which operators add over HTTP and by `codecall tool put`.
    pub stored: bool,
    /// Whether agents may save scripts with `codecall_save_script`, each of which a person approves, and run them with
    /// `codecall_run_script`. It needs `stored`.
    pub save_scripts: bool,
    /// The id of their app: a file `weather.js` is the tool `tools:weather`.
    pub app: String,
    /// The workspace of stored tools, and of the secrets that the tools may see.
    #[schemars(extend("x-default" = "`store.workspace`"))]
    pub workspace: Option<String>,
}

impl Default for ScriptToolsConfig {
    fn default() -> Self {
        Self { folder: None, stored: false, save_scripts: false, app: "tools".into(), workspace: None }
    }
}

impl ScriptToolsConfig {
    /// Whether there may be script tools.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.folder.is_some() || self.stored
    }

    /// Returns the workspace of the tools and of their secrets.
    #[must_use]
    pub fn workspace<'a>(&'a self, store: &'a StoreConfig) -> &'a str {
        self.workspace.as_deref().unwrap_or_else(|| store.workspace())
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check_app("scriptTools.app", &self.app)?;
        if self.save_scripts && !self.stored {
            return Err("scriptTools.saveScripts: it needs 'stored = true', so that scripts can be stored".into());
        }
        match &self.workspace {
            Some(workspace) if !super::is_name(workspace) => {
                Err("scriptTools.workspace: 1 to 128 letters, digits, '_', '-' and '.'".into())
            }
            Some(_) | None => Ok(()),
        }
    }
}

//! `approval`: which calls of tools a person has to approve.

use super::duration::WithUnit;
use codecall_base::tool::{Approval, OWN_SOURCE, ToolDefinition, ToolPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The calls of tools that a person has to approve. The first rule that matches decides, else what the tool itself says, else
/// its annotations.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ApprovalConfig {
    /// Tools, and when their calls have to be approved.
    pub rules: Vec<ApprovalRule>,
    /// When calls of other tools that may destroy something have to be approved. A tool may if it says neither
    /// `readOnlyHint` nor `destructiveHint: false`.
    pub destructive: Approval,
    /// The role that decides about calls. The default is `"operator"` for clients with tokens of their own where
    /// somebody has the token of
    /// an operator, else `"client"`.
    #[schemars(extend("x-default" = "by tokens"))]
    pub decided_by: Option<DecidedBy>,
    /// How long a call waits for a decision. Then it fails with `APPROVAL_EXPIRED`.
    #[serde(with = "WithUnit")]
    pub expiry: Duration,
    /// How long the outcome of a run that has waited is kept for its client.
    #[serde(with = "WithUnit")]
    pub keep: Duration,
    /// How many runs may wait at once. Calls of further ones fail with `APPROVAL_REQUIRED`.
    #[schemars(range(min = 0, max = 10_000_000))]
    pub max_waiting: u64,
}

/// The role that decides about calls that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecidedBy {
    /// Operators, and the person of the client that makes the call, whom the client asks.
    Client,
    /// Operators only, on the command line, on the page or over HTTP: no client approves its own calls.
    Operator,
}

/// Tools, and when their calls have to be approved.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// The tools.
    pub tool: ToolPattern,
    /// When: `"always"`, `"once"` for each client, or `"never"`.
    pub approval: Approval,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            destructive: Approval::Never,
            decided_by: None,
            expiry: Duration::from_secs(7 * 86_400),
            keep: Duration::from_secs(7 * 86_400),
            max_waiting: 10_000,
        }
    }
}

impl ApprovalConfig {
    /// Returns when calls of a tool have to be approved.
    ///
    /// A rule that approves nothing, such as `"*"` with `"never"`, only holds for questions of CodeCall itself if it
    /// names them. An operator who allows calls of tools does not thereby allow agents to add tools.
    #[must_use]
    pub fn of(&self, tool: &ToolDefinition) -> Approval {
        let covers = |rule: &&ApprovalRule| {
            let is_own = tool.source == OWN_SOURCE && rule.approval == Approval::Never;
            rule.tool.matches(tool) && (!is_own || rule.tool.names(tool))
        };
        if let Some(rule) = self.rules.iter().find(covers) {
            return rule.approval;
        }
        let says = |hint: &str| tool.annotations.get(hint).and_then(Value::as_bool);
        let is_harmless = says("readOnlyHint") == Some(true) || says("destructiveHint") == Some(false);
        match tool.approval {
            Some(approval) => approval,
            None if is_harmless => Approval::Never,
            None => self.destructive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_decides_before_the_tool_and_its_annotations() {
        let config: ApprovalConfig = serde_json::from_value(json!({
            "rules": [{"tool": "bank:balance", "approval": "never"}, {"tool": "bank:*", "approval": "always"}],
            "destructive": "once",
        }))
        .expect("a section");
        let tool = |app: &str, name: &str, annotations: Value, approval| {
            let annotations = annotations.as_object().expect("an object").clone();
            ToolDefinition { app: app.into(), name: name.into(), annotations, approval, ..ToolDefinition::default() }
        };
        let harmless = json!({"readOnlyHint": true});
        for (tool, expected) in [
            (tool("bank", "balance", json!({}), Some(Approval::Always)), Approval::Never),
            (tool("bank", "transfer", harmless.clone(), None), Approval::Always),
            (tool("users", "get", harmless, None), Approval::Never),
            (tool("users", "rename", json!({"destructiveHint": false}), None), Approval::Never),
            (tool("users", "rename", json!({"destructiveHint": false}), Some(Approval::Always)), Approval::Always),
            (tool("users", "delete", json!({"destructiveHint": true}), None), Approval::Once),
            (tool("users", "delete", json!({"destructiveHint": true}), Some(Approval::Never)), Approval::Never),
            (tool("users", "unsaid", json!({}), None), Approval::Once),
        ] {
            assert_eq!(config.of(&tool), expected, "{tool:?}");
        }
        // Nothing but its own name lets scripts be saved unread.
        let save =
            ToolDefinition { source: OWN_SOURCE, ..tool("codecall", "save_script", json!({}), Some(Approval::Always)) };
        let rule = |pattern: &str| -> ApprovalConfig {
            serde_json::from_value(json!({"rules": [{"tool": pattern, "approval": "never"}]})).expect("a section")
        };
        for (pattern, expected) in [
            ("*", Approval::Always),
            ("codecall:*", Approval::Always),
            ("*:save_script", Approval::Always),
            ("codecall:save_script", Approval::Never),
        ] {
            assert_eq!(rule(pattern).of(&save), expected, "{pattern}");
        }
        assert_eq!(rule("*").of(&tool("bank", "transfer", json!({}), Some(Approval::Always))), Approval::Never);
        assert_eq!(ApprovalConfig::default().of(&tool("users", "delete", json!({}), None)), Approval::Never);
    }
}

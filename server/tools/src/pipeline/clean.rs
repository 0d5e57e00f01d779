//! Data that leaves the chain: without host paths and secrets, and for notifications and records without personal data.

use super::{Pipeline, bound};
use crate::catalogue::Broken;
use crate::result_shapes;
use codecall_base::offload::{self, weight};
use codecall_base::redact::Redactor;
use codecall_base::shape::Shape;
use codecall_base::tool::{ToolDefinition, ToolError, ToolResult};
use codecall_upstream::Upstream;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of oddities of an upstream that are named to clients.
const MAX_ODDITIES: usize = 3;
/// Maximum number of broken tools in the troubles of a server.
const MAX_BROKEN: usize = 10;

impl Pipeline {
    /// Returns a value as notifications and records show it: personal data masked, secrets redacted.
    #[must_use]
    pub fn masked(&self, sent: &Arc<Value>) -> Arc<Value> {
        let mut shown = self.hooks.iter().fold(Arc::clone(sent), |value, hook| hook.mask(value));
        redact(&self.secrets.redactor(), &mut shown);
        shown
    }

    /// Returns a text of an upstream as notifications and records show it.
    #[must_use]
    pub fn masked_text(&self, text: &str) -> String {
        match &*self.masked(&Arc::new(Value::String(text.to_owned()))) {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Returns an error that no call has caused as clients see it.
    #[must_use]
    pub fn masked_error(&self, error: ToolError) -> ToolError {
        self.cleaned(error, None)
    }

    /// Returns why tools of some upstreams are unavailable at the moment, and which tools are broken, for clients.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let clean = |trouble| self.masked_error(ToolError::new("", trouble)).message;
        let upstreams = self.catalogue.upstreams().filter(|upstream| self.catalogue.may_name(&***upstream));
        let (starting, others): (Vec<_>, Vec<_>) = upstreams.partition(|upstream| upstream.is_starting());
        let starting = match starting.as_slice() {
            [] => None,
            [upstream] => upstream.unavailable_reason(),
            several => {
                let names: Vec<String> = several.iter().map(|upstream| format!("'{}'", upstream.app())).collect();
                Some(format!("The MCP servers {} are still starting", names.join(", ")))
            }
        };
        let unavailable = starting.into_iter().chain(others.into_iter().filter_map(|up| up.unavailable_reason()));
        let mut broken = self.catalogue.broken_tools();
        let more = broken.len().saturating_sub(MAX_BROKEN);
        broken.truncate(MAX_BROKEN);
        let more = (more > 0).then(|| format!("{more} more tools cannot be used; 'codecall status' lists them"));
        unavailable.chain(broken.iter().map(Broken::reason)).chain(more).map(clean).collect()
    }

    /// Returns why a tool exists and cannot be used, for clients.
    #[must_use]
    pub fn broken_reason(&self, name: &str) -> Option<String> {
        let broken = self.catalogue.broken_tool(name)?;
        Some(self.masked_error(broken.to_error()).message)
    }

    /// Returns what is odd about the tools of each upstream, for clients: one line for each upstream.
    #[must_use]
    pub fn oddities(&self) -> Vec<String> {
        let upstreams = self.catalogue.upstreams().filter(|upstream| self.catalogue.may_name(&***upstream));
        let line = |upstream: &Arc<dyn Upstream>| {
            let oddities = upstream.oddities();
            let more = oddities.len().saturating_sub(MAX_ODDITIES);
            let named = oddities.get(..MAX_ODDITIES).unwrap_or(&oddities).join("; ");
            let more = if more > 0 { format!("; and {more} more: see 'codecall status'") } else { String::new() };
            (!oddities.is_empty()).then(|| format!("The list of tools of '{}' is odd: {named}{more}", upstream.app()))
        };
        let clean = |oddity| self.masked_error(ToolError::new("", oddity)).message;
        upstreams.filter_map(line).map(clean).collect()
    }

    /// Removes host paths and secrets from a result. `sent` is what the caller has sent.
    pub(super) async fn cleaned_result(&self, mut result: ToolResult, sent: &Value) -> Result<ToolResult, ToolError> {
        let failed = result.is_error();
        if failed && let ToolResult::Mcp(value) = &mut result {
            offload::run(weight(value), || bound::content(value)).await?;
        }
        let weight = result.weight().max(if failed { weight(sent) } else { 0 });
        let redactor = self.secrets.redactor();
        let clean = || match &mut result {
            ToolResult::Long(long) => {
                if let Cow::Owned(clean) = redactor.redact_json(long.text()) {
                    long.set_text(clean);
                }
            }
            ToolResult::Data(value) | ToolResult::Mcp(value) => {
                // Before the paths: without a part that is one, the rest of a secret is not found.
                redactor.redact_value(value);
                if failed {
                    self.sanitizer.content(value, sent);
                }
            }
        };
        offload::run(weight, clean).await?;
        Ok(result)
    }

    /// Removes host paths and secrets from an error. `sent` is what the caller has sent.
    pub(super) fn cleaned(&self, error: ToolError, sent: Option<&Value>) -> ToolError {
        let mut error = bound::error(error);
        // Before the paths: without a part that is one, the rest of a secret is not found.
        self.secrets.redactor().redact_error(&mut error);
        self.sanitizer.error(error, sent)
    }

    /// Learns the shape of a result.
    pub(super) async fn learn(&self, tool: &ToolDefinition, result: &ToolResult) {
        let weight = result.weight();
        if weight > result_shapes::MAX_RESULT_BYTES || result.is_error() || !self.result_shapes.is_wanted(tool) {
            return;
        }
        let shape = || {
            let mut result = result.clone();
            result.read().ok()?;
            if tool.output_schema.is_none() {
                result.join_text();
            }
            let mut data = result.data()?.into_owned();
            // If a text is JSON, its keys are parsed only now.
            self.secrets.redactor().redact_value(&mut data);
            Some(Shape::of(&data))
        };
        if let Ok(Some(shape)) = offload::run(weight, shape).await {
            self.result_shapes.learn(tool, shape).await;
        }
    }
}

pub(super) fn redact(redactor: &Redactor, value: &mut Arc<Value>) {
    if !redactor.is_empty() {
        redactor.redact_value(Arc::make_mut(value));
    }
}

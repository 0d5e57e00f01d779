//! Dry runs, which check all calls but make none: the result of a tool is a sample generated from its output schema.

use super::Finished;
use super::calls::DryRunCalls;
use serde_json::json;

impl Finished {
    /// Returns the outcome of a dry run in the format of `codecall_execute`, with the calls that the script would make.
    #[must_use]
    pub fn dry_run_json(&self) -> String {
        let DryRunCalls { calls, omitted, has_unknown_results } = self.log.dry_run();
        let mut more = json!({"dryRun": true, "calls": calls});
        if omitted > 0 {
            more["omitted"] = omitted.into();
        }
        if has_unknown_results {
            more["note"] = json!(
                "Tools whose result is 'unknown' have no usable output schema: {} stood for it, and what the script \
                 does with it, calls included, may differ in a real run"
            );
        }
        let (json, more) = (self.outcome.to_json(), more.to_string());
        // The texts of the two objects are joined, because parsing would change numbers of the script.
        format!("{},{}", json.strip_suffix('}').unwrap_or(&json), more.strip_prefix('{').unwrap_or(&more))
    }
}

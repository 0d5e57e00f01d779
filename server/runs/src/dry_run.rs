//! Dry runs: the same engine and the same checks, and no tool is reached. A tool's result is an
//! example made from its output schema.

use super::Finished;
use serde_json::json;

impl Finished {
    /// The outcome of a dry run as clients see it: what the script would call, as far as that is known
    /// without calling anything.
    #[must_use]
    pub fn dry_run_json(&self) -> String {
        let (calls, omitted) = self.log.dry_run();
        let unknown = calls.iter().any(|call| call["result"] == "unknown");
        let mut more = json!({"dryRun": true, "calls": calls});
        if omitted > 0 {
            more["omitted"] = omitted.into();
        }
        if unknown {
            more["note"] = json!(
                "Tools whose result is 'unknown' have no usable output schema: {} stood for it, and what the script \
                 does with it, calls included, may differ in a real run"
            );
        }
        let (json, more) = (self.outcome.to_json(), more.to_string());
        // Two objects, one after the other: numbers of the script stay as it has written them.
        format!("{},{}", json.strip_suffix('}').unwrap_or(&json), more.strip_prefix('{').unwrap_or(&more))
    }
}

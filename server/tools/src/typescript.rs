//! Signatures of tools in TypeScript: what a model needs to write a call. The interpreter's crate writes them; this adds what is
//! known of results that the tool does not promise.

pub use agentscript::declarations::{Function, declarations, name, type_of};

use agentscript::declarations::{Observed, signature as written};
use codecall_base::tool::ToolDefinition;
use codecall_store::SeenShape;

/// Maximum length of the type of results that were seen, in bytes.
pub const MAX_SEEN_BYTES: usize = 2_000;

/// Returns `callTool('users:list', input: {…}): Promise<…>`, and the types that it names. If the tool does not say what its
/// results are, `seen` is what is known of them.
pub fn signature(tool: &ToolDefinition, seen: Option<&SeenShape>) -> String {
    let seen = seen.map(|seen| {
        let times = if seen.results == 1 { "1 result".into() } else { format!("{} results", seen.results) };
        (seen.shape.to_type(MAX_SEEN_BYTES), format!("seen in {times}; the tool does not promise it"))
    });
    let observed = seen.as_ref().map(|(kind, note)| Observed { kind, note });
    written(&tool.full_name(), &tool.input_schema, tool.output_schema.as_ref(), observed)
}

/// Does the same for a tool whose results have the type of those of another one.
pub fn signature_as(tool: &ToolDefinition, other: &str) -> String {
    let note = format!("of the type that callTool('{other}') has");
    written(&tool.full_name(), &tool.input_schema, None, Some(Observed { kind: "object", note: &note }))
}

//! Parses files of clients: JSON with comments and trailing commas, and TOML.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::Value;
use std::path::Path;

/// A parsed file.
pub struct Document {
    /// Its value.
    pub value: Value,
}

/// Whether a file is TOML; all others are JSON.
pub fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Parses a file.
///
/// # Errors
/// It is not what its name says. The message does not quote it, as it may contain secrets.
pub fn document(path: &Path, text: &str) -> Result<Document, String> {
    let text = text.trim_start_matches('\u{feff}');
    let value = if is_toml(path) {
        toml::from_str(text).map_err(|error| {
            let before = error.span().map_or("", |span| &text[..span.start.min(text.len())]);
            format!("not valid TOML at line {}", before.matches('\n').count() + 1)
        })?
    } else if text.trim().is_empty() {
        Value::Null
    } else {
        json(text)?.to_serde_value().ok_or_else(|| "not valid JSON".to_owned())?
    };
    Ok(Document { value })
}

/// Parses JSON with comments, and keeps the text as it is.
///
/// # Errors
/// It is not JSON.
pub fn json(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| {
        let before = text.get(..error.range().start).unwrap_or_default();
        format!("not valid JSON at line {}", before.matches('\n').count() + 1)
    })
}

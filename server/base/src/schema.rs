//! Validates values against the JSON schemas of tools, in bounded time: the crate `codecall-schema`, with work on large schemas on
//! threads of its own.

use crate::offload;
pub use codecall_schema::{CheckError, Mismatch, Schema, SchemaError, compile_pattern, mismatch, without_nulls};
use serde_json::Value;

/// Compiles a schema.
///
/// # Errors
/// The schema is invalid or too complex.
pub fn compile(schema: &Value) -> Result<Schema, SchemaError> {
    let bytes = if Schema::is_small(schema) { 0 } else { offload::INLINE_LIMIT + 1 };
    offload::run_without_permit(bytes, || Schema::new(schema))
}

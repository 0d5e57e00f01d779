//! Maximum sizes of descriptions and of what is made of them. docs/guide/openapi.md names them.

/// Maximum size of all documents of a description, in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Maximum size of one document in YAML, in bytes; reading YAML takes ten times as long as JSON.
pub const MAX_YAML_BYTES: usize = 16 << 20;
/// Maximum number of values in one document in YAML, with aliases replaced by what they refer to.
pub const MAX_YAML_VALUES: usize = 2_000_000;
/// Maximum depth of nested values in a document. (JSON has the limit of its parser.)
pub const MAX_DEPTH: usize = 120;
/// Maximum number of documents of a description.
pub const MAX_DOCUMENTS: usize = 500;
/// Maximum number of operations in a description; the others are left out.
pub const MAX_OPERATIONS: usize = 30_000;
/// Maximum number of references that lead to each other without a value.
pub const MAX_REFERENCES: usize = 32;
/// Maximum number of values that are looked at, also again and again, while operations are converted; those after it
/// are left out.
pub const MAX_WORK: usize = 100_000_000;
/// Maximum length of the name of a parameter or a security scheme, in bytes; one with a longer name is not used.
pub const MAX_MEMBER_BYTES: usize = 256;
/// Maximum number of parameters of an operation; one with more is left out.
pub const MAX_PARAMETERS: usize = 500;
/// Maximum length of the path of an operation, in bytes; one with a longer path is left out.
pub const MAX_PATH_BYTES: usize = 2_048;
/// Size of an input schema in bytes up to which it is complete. Above it, texts and conditions are left out, and what
/// is nested deepest accepts any value.
pub const MAX_INPUT_SCHEMA_BYTES: usize = 32 << 10;
/// Size of an output schema in bytes above which what is nested deepest is any value.
pub const MAX_OUTPUT_SCHEMA_BYTES: usize = 6 << 10;
/// Maximum length of the description of a tool, in bytes; a longer one is truncated.
pub const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
/// Maximum length of a description in a schema, in bytes; a longer one is truncated.
pub const MAX_NOTE_BYTES: usize = 600;
/// Maximum length of a name of a tool without its app, in bytes; a longer one is truncated and gets a digest.
pub const MAX_NAME_BYTES: usize = 100;
/// Maximum length of the address of a request, in bytes.
pub const MAX_URL_BYTES: usize = 64 << 10;
/// Maximum number of warnings of a description; further ones are counted.
pub const MAX_WARNINGS: usize = 1_000;

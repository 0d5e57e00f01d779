//! `pii`: masking of personal data.

use codecall_base::tool::ToolFilter;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// The personal data that are masked, and the places. Notifications and audit records are always masked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PiiConfig {
    /// Mask the input of tools. The input is checked against the schema before.
    pub input: bool,
    /// Mask the results and error messages of tools before a script sees them.
    pub output: bool,
    /// Kinds of data that are recognised by their form.
    #[schemars(extend("x-default" = "all"))]
    pub detect: Vec<PiiKind>,
    /// Names of fields whose values are masked, whatever they are, in any case; `*` stands for any text.
    pub fields: Vec<String>,
    /// Additional patterns of data to mask.
    pub patterns: Vec<PiiPattern>,
    /// The tools whose data are masked.
    pub tools: ToolFilter,
}

impl Default for PiiConfig {
    fn default() -> Self {
        Self {
            input: true,
            output: true,
            detect: PiiKind::ALL.to_vec(),
            fields: Vec::new(),
            patterns: Vec::new(),
            tools: ToolFilter::default(),
        }
    }
}

/// Personal data that are recognised by their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PiiKind {
    /// E-mail addresses.
    Email,
    /// Bank account numbers with a valid checksum.
    Iban,
    /// Payment card numbers with a valid Luhn checksum.
    Card,
    /// Social security numbers of the United States.
    Ssn,
    /// Telephone numbers.
    Phone,
}

impl PiiKind {
    /// All kinds in the order in which they are searched for: the more certain ones first.
    pub const ALL: [Self; 5] = [Self::Email, Self::Iban, Self::Card, Self::Ssn, Self::Phone];
}

/// Data that are masked as `[name]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PiiPattern {
    /// The name of the data; the mask is `[name]`.
    pub name: String,
    /// The data to mask.
    #[serde(with = "Expression")]
    pub pattern: regex::Regex,
}

/// For `#[serde(with)]`: a regular expression that takes linear time.
struct Expression;

impl Expression {
    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<regex::Regex, D::Error> {
        let text = String::deserialize(deserializer)?;
        regex::Regex::new(&text).map_err(|_| {
            serde::de::Error::custom("must be a regular expression (without look-around and back-references)")
        })
    }
}

impl JsonSchema for Expression {
    fn schema_name() -> Cow<'static, str> {
        "Expression".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-type": "regular expression" })
    }
}

//! What the chain of every tool call does, as it is configured.

use codecall_base::tool::{ToolFilter, ToolPattern};
use serde::{Deserialize, Deserializer};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// The steps of the chain that can be configured.
#[derive(Clone, Debug, Default)]
pub struct ChainConfig {
    /// How often tools may be called.
    pub rate_limits: Vec<RateLimit>,
    /// How often tools may be at work at once.
    pub concurrency_limits: Vec<ConcurrencyLimit>,
    /// What happens with a result that does not fit the schema that its tool gives.
    pub check_output: CheckOutput,
    /// Personal data; absent: nothing is masked.
    pub pii: Option<PiiConfig>,
    /// Which answers are kept.
    pub cache: CacheConfig,
    /// Where calls are recorded; absent: nowhere.
    pub audit: Option<AuditConfig>,
}

/// At most `limit` calls of a tool in `window`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// The tools, each counted for itself; `codecall:execute` and its kin are the meta-tools.
    pub tool: ToolPattern,
    /// How many calls.
    pub limit: NonZeroU32,
    /// In what time.
    pub window: Span,
}

/// At most `limit` calls at once, of all tools that fit together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyLimit {
    /// The tools.
    pub tool: ToolPattern,
    /// How many calls at once; further ones wait, within the time that their call may take.
    pub limit: NonZeroU32,
}

/// What happens with a result that does not fit the schema that its tool gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutput {
    /// The call fails with `INVALID_OUTPUT`.
    #[default]
    Error,
    /// It is logged.
    Warn,
    /// Nothing.
    Off,
}

/// Which personal data are masked, and where. Notifications and audit records are always masked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PiiConfig {
    /// In what tools are given.
    pub input: bool,
    /// In what they give, errors too.
    pub output: bool,
    /// What is found by its look.
    pub detect: Vec<PiiKind>,
    /// Names of fields whose values are masked whatever they are, in any case; `*` stands for any text.
    pub fields: Vec<String>,
    /// More that is found by its look.
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

/// Personal data that are found by their look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PiiKind {
    /// Addresses of e-mail.
    Email,
    /// Numbers of bank accounts, with their checksum.
    Iban,
    /// Numbers of payment cards, with their checksum.
    Card,
    /// Social security numbers of the United States.
    Ssn,
    /// Telephone numbers.
    Phone,
}

impl PiiKind {
    /// All, in the order in which they are looked for: what is more certain comes first.
    pub const ALL: [Self; 5] = [Self::Email, Self::Iban, Self::Card, Self::Ssn, Self::Phone];
}

/// What is masked as `[name]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PiiPattern {
    /// What it is called.
    pub name: String,
    /// What it looks like.
    #[serde(deserialize_with = "expression")]
    pub pattern: regex::Regex,
}

fn expression<'de, D: Deserializer<'de>>(deserializer: D) -> Result<regex::Regex, D::Error> {
    let text = String::deserialize(deserializer)?;
    regex::Regex::new(&text)
        .map_err(|_| serde::de::Error::custom("must be a regular expression (without look-around and back-references)"))
}

/// Which answers of tools are kept and given again to the same input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct CacheConfig {
    /// For which tools, and how long; the first rule that fits a tool decides.
    pub rules: Vec<CacheRule>,
    /// How many answers at most.
    pub max_entries: usize,
    /// How many bytes of JSON at most, all together.
    pub max_bytes: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { rules: Vec::new(), max_entries: 1_000, max_bytes: 16 * 1024 * 1024 }
    }
}

/// Answers of these tools are kept for `ttl`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRule {
    /// The tools.
    pub tool: ToolPattern,
    /// How long.
    pub ttl: Span,
}

/// Where calls are recorded, one line of JSON each.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// A file, to which lines are added.
    pub file: Option<PathBuf>,
    /// Standard error.
    pub stderr: bool,
}

/// A length of time, as `"500ms"`, `"30s"`, `"1m"`, `"2h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let span = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
        match span {
            Some(span) if !span.is_zero() && span <= Duration::from_secs(366 * 86_400) => Ok(Self(span)),
            Some(_) | None => {
                Err(serde::de::Error::custom("must be a length of time such as \"500ms\", \"30s\", \"1m\" or \"2h\""))
            }
        }
    }
}

//! The limits of a run: one table for fields, presets, names and messages.
//!
//! To add a limit, add a row here and the code that consumes it. A limit ends a run at once and no
//! script can catch it; `max_call_depth` alone is a `RangeError` as in JavaScript.

pub use agentscript_lang::Loops;

use serde::{Deserialize, Serialize};

/// How a value of a limit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// A plain number.
    Count,
}

/// One row of the table, for command lines, configurations and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The name in configurations and requests: `timeoutMs`.
    pub name: &'static str,
    /// The flag of the command line without its dashes: `timeout`.
    pub flag: &'static str,
    /// What it is, in one sentence.
    pub doc: &'static str,
    /// How it is counted.
    pub unit: Unit,
    /// The value in each preset, in the order of [`Preset::ALL`].
    pub presets: [u64; 4],
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

impl Limit {
    /// The value in `limits`.
    #[must_use]
    pub fn get(&self, limits: &Limits) -> u64 {
        (self.get)(limits)
    }

    /// Set the value in `limits`.
    pub fn set(&self, limits: &mut Limits, value: u64) {
        (self.set)(limits, value);
    }

    /// The row of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LIMITS.iter().find(|limit| limit.name == name)
    }
}

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $field:ident: $name:literal, $flag:literal, $unit:ident, $presets:expr;)+) => {
        /// The limits of one run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Limits {
            $($(#[doc = $doc])+ #[serde(rename = $name)] pub $field: u64,)+
        }

        /// All limits, in the order of the documentation.
        pub static LIMITS: &[Limit] = &[$(Limit {
            name: $name,
            flag: $flag,
            doc: concat!($($doc),+),
            unit: Unit::$unit,
            presets: $presets,
            get: |limits| limits.$field,
            set: |limits, value| limits.$field = value,
        }),+];

        impl Limits {
            /// The limits of a preset.
            #[must_use]
            pub fn preset(preset: Preset) -> Self {
                Self { $($field: const { $presets }[preset as usize]),+ }
            }
        }
    };
}

const KI: u64 = 1024;
const MI: u64 = 1024 * 1024;

limits! {
    /// Time the script itself may take, waits for tools excluded.
    timeout_ms: "timeoutMs", "timeout", Milliseconds, [2_000, 3_500, 5_000, 10_000];
    /// Time from start to end, waits for tools included.
    max_duration_ms: "maxDurationMs", "max-duration", Milliseconds, [30_000, 60_000, 120_000, 600_000];
    /// Time one tool call may take.
    tool_timeout_ms: "toolTimeoutMs", "tool-timeout", Milliseconds, [10_000, 30_000, 60_000, 120_000];
    /// How many loop bodies may be entered.
    max_iterations: "maxIterations", "max-iterations", Count, [0, 100_000, 1_000_000, 10_000_000];
    /// How many statements, calls, loop turns and units of work inside built-ins may be evaluated.
    max_steps: "maxSteps", "max-steps", Count, [200_000, 5_000_000, 50_000_000, 500_000_000];
    /// How many tools may be called; 0 is no limit.
    max_tool_calls: "maxToolCalls", "max-tool-calls", Count, [10, 100, 200, 1_000];
    /// How much memory live data may take. Garbage does not count.
    max_memory_bytes: "maxMemoryBytes", "max-memory-bytes", Bytes, [16 * MI, 64 * MI, 128 * MI, 256 * MI];
    /// How deep calls may nest.
    max_call_depth: "maxCallDepth", "max-call-depth", Count, [200, 1_000, 5_000, 10_000];
    /// How long a script may be.
    max_script_bytes: "maxScriptBytes", "max-script-bytes", Bytes, [64 * KI, 128 * KI, 512 * KI, 2 * MI];
    /// How long the result may be, as JSON.
    max_result_bytes: "maxResultBytes", "max-result-bytes", Bytes, [256 * KI, MI, 4 * MI, 16 * MI];
    /// How much may be logged.
    max_console_bytes: "maxConsoleBytes", "max-console-bytes", Bytes, [0, 256 * KI, MI, 10 * MI];
    /// How often something may be logged.
    max_console_calls: "maxConsoleCalls", "max-console-calls", Count, [0, 500, 1_000, 10_000];
    /// How many tool calls may be under way at once; further ones wait their turn.
    max_concurrency: "maxConcurrency", "max-concurrency", Count, [4, 20, 20, 50];
}

/// A set of limits and permissions with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// For sensitive deployments: no loops, no timers, no console.
    LockedDown,
    /// For code written by a model.
    #[default]
    Secure,
    /// For trusted, internal use.
    Balanced,
    /// For development.
    Experimental,
}

impl Preset {
    /// All presets, the strictest first.
    pub const ALL: [Self; 4] = [Self::LockedDown, Self::Secure, Self::Balanced, Self::Experimental];

    /// The name in configurations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LockedDown => "locked_down",
            Self::Secure => "secure",
            Self::Balanced => "balanced",
            Self::Experimental => "experimental",
        }
    }

    /// The preset of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name)
    }
}

/// Limits and permissions of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The limits.
    pub limits: Limits,
    /// Which loops a script may contain.
    pub loops: Loops,
    /// Whether a script may use `console`.
    pub allow_console: bool,
    /// Whether a script may set timers: `setTimeout`, `setInterval`, `sleep`, `AbortSignal.timeout`.
    pub timers: bool,
    /// Whether the script has `fetch`. The host answers its calls, which are of kind [`CallKind::Fetch`](crate::CallKind::Fetch).
    /// Default: it has not, in every preset.
    pub fetch: bool,
    /// Built-ins that are refused on top of the language's own list, by their names (`Map`): kind
    /// `IllegalBuiltinAccess`.
    pub disabled_builtins: Vec<String>,
    /// Globals that are refused on top of the language's own list: kind `DisallowedGlobal`.
    pub disabled_globals: Vec<String>,
}

impl Policy {
    /// The policy of a preset.
    #[must_use]
    pub fn preset(preset: Preset) -> Self {
        Self {
            limits: Limits::preset(preset),
            loops: match preset {
                Preset::LockedDown => Loops::None,
                Preset::Secure | Preset::Balanced | Preset::Experimental => Loops::All,
            },
            allow_console: preset != Preset::LockedDown,
            timers: preset != Preset::LockedDown,
            fetch: false,
            disabled_builtins: Vec::new(),
            disabled_globals: Vec::new(),
        }
    }
}

impl Default for Policy {
    /// The preset `secure`.
    fn default() -> Self {
        Self::preset(Preset::default())
    }
}

//! Limits and permissions of runs, as flags: the presets and every row of [`LIMITS`].

use agentscript::{LIMITS, Language, Limit, Policy, Preset, Unit};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};

/// The flags that change the configured policy.
#[derive(Args, Clone, Debug)]
pub struct PolicyFlags {
    /// Limits and permissions of a run; replaces those of the configuration.
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub preset: Option<Preset>,
    #[command(flatten)]
    pub limits: LimitFlags,
}

/// Returns the parser of the name of a preset.
pub fn preset() -> impl clap::builder::TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::as_str))
        .try_map(|name| Preset::named(&name).ok_or("unknown preset"))
}

impl PolicyFlags {
    /// Applies the flags to the configured policy.
    pub fn apply_to(&self, configured: Policy) -> Policy {
        let mut policy = match self.preset {
            // The preset does not enable what the configuration forbids by name.
            Some(preset) => Policy {
                disabled_builtins: configured.disabled_builtins,
                disabled_globals: configured.disabled_globals,
                ..Policy::preset(preset)
            },
            None => configured,
        };
        for (limit, value) in &self.limits.0 {
            limit.set(&mut policy.limits, *value);
        }
        policy
    }
}

/// The limits that were set by flags.
#[derive(Clone, Debug, Default)]
pub struct LimitFlags(pub Vec<(&'static Limit, u64)>);

impl Args for LimitFlags {
    fn augment_args(command: Command) -> Command {
        command.next_help_heading("Limits").args(LIMITS.iter().map(flag)).next_help_heading(None)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(limit: &'static Limit) -> Arg {
    let unit = match limit.unit {
        Unit::Milliseconds => "MS",
        Unit::Bytes => "BYTES",
        Unit::Count => "N",
    };
    let by_preset: Vec<String> =
        Preset::ALL.iter().zip(limit.presets).map(|(preset, value)| format!("{} {value}", preset.as_str())).collect();
    Arg::new(limit.flag)
        .long(limit.flag)
        .value_name(unit)
        .value_parser(move |text: &str| whole_number(text, limit.unit))
        .help(limit.doc.trim())
        .long_help(format!("{}\n\n[presets: {}]", limit.doc.trim(), by_preset.join(", ")))
}

/// Parses the value of a limit.
fn whole_number(text: &str, unit: Unit) -> Result<u64, String> {
    let (of, example) = match unit {
        Unit::Milliseconds => (" of milliseconds", 5000),
        Unit::Bytes => (" of bytes", 65_536),
        Unit::Count => ("", 100),
    };
    text.parse().map_err(|_| format!("write a whole number{of}, such as {example}"))
}

impl FromArgMatches for LimitFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let set = |limit: &'static Limit| Some((limit, *matches.get_one::<u64>(limit.flag)?));
        Ok(Self(LIMITS.iter().filter_map(set).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The language of scripts, as a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LanguageFlag {
    #[value(alias = "js")]
    Javascript,
    #[value(alias = "ts")]
    Typescript,
}

impl From<LanguageFlag> for Language {
    fn from(flag: LanguageFlag) -> Self {
        match flag {
            LanguageFlag::Javascript => Self::JavaScript,
            LanguageFlag::Typescript => Self::TypeScript,
        }
    }
}

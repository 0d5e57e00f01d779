//! The settings of a script as JSON: a preset, values on top of it, and the language.

use crate::error::InputError;
use agentscript::{CompileOptions, Dialect, Language, Limit, Linker, Loops, Policy, Preset};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Names among the limits that are no numbers.
pub(crate) const PERMISSIONS: [&str; 6] =
    ["loops", "allowLoops", "timers", "allowConsole", "disabledBuiltins", "disabledGlobals"];

/// How scripts are compiled and run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) policy: Policy,
    pub(crate) language: Option<Language>,
    pub(crate) dialect: Dialect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Text {
    preset: String,
    limits: Map<String, Value>,
    language: Option<String>,
    dialect: String,
    fetch: bool,
}

impl Default for Text {
    fn default() -> Self {
        let preset = Preset::default().as_str().to_owned();
        Self { preset, limits: Map::new(), language: None, dialect: "async".into(), fetch: false }
    }
}

impl Default for Settings {
    /// The preset `secure`, JavaScript or TypeScript.
    fn default() -> Self {
        Self { policy: Policy::default(), language: None, dialect: Dialect::default() }
    }
}

impl Settings {
    /// Reads `{"preset", "limits", "language", "dialect", "fetch"}`, all optional. The keys of `limits` are those of `docs/reference/limits.md`;
    /// `fetch` says whether scripts have it.
    ///
    /// # Errors
    /// A name is unknown, or a value has another type.
    pub fn from_json(text: &str) -> Result<Self, InputError> {
        let text: Text = serde_json::from_str(text).map_err(|error| InputError(error.to_string()))?;
        let preset = Preset::named(&text.preset).ok_or_else(|| {
            let names = Preset::ALL.map(Preset::as_str).join("', '");
            InputError(format!("there is no preset '{}'; the presets are '{names}'", text.preset))
        })?;
        let language = match text.language.as_deref() {
            None => None,
            Some("javascript") => Some(Language::JavaScript),
            Some("typescript") => Some(Language::TypeScript),
            Some(other) => {
                return Err(InputError(format!("there is no language '{other}'; use 'javascript' or 'typescript'")));
            }
        };
        let dialect = match text.dialect.as_str() {
            "async" => Dialect::Async,
            "sync" => Dialect::Sync,
            other => return Err(InputError(format!("there is no dialect '{other}'; use 'async' or 'sync'"))),
        };
        let mut policy = Policy::preset(preset);
        for (name, value) in &text.limits {
            set(&mut policy, name, value)?;
        }
        policy.fetch = text.fetch;
        Ok(Self { policy, language, dialect })
    }

    pub(crate) fn compile_options(&self) -> CompileOptions {
        CompileOptions {
            language: self.language,
            linker: Linker::new(self.dialect),
            ..CompileOptions::for_policy(&self.policy)
        }
    }
}

/// Sets one value of a policy.
fn set(policy: &mut Policy, name: &str, value: &Value) -> Result<(), InputError> {
    let switch = || value.as_bool().ok_or_else(|| wrong(name, "true or false", value));
    match name {
        "loops" => {
            policy.loops = match value.as_str() {
                Some("all") => Loops::All,
                Some("bounded") => Loops::Bounded,
                Some("none") => Loops::None,
                Some(_) | None => return Err(wrong(name, "'all', 'bounded' or 'none'", value)),
            };
        }
        "allowLoops" => policy.loops = if switch()? { Loops::All } else { Loops::None },
        "timers" => policy.timers = switch()?,
        "allowConsole" => policy.allow_console = switch()?,
        "disabledBuiltins" => policy.disabled_builtins = names(name, value)?,
        "disabledGlobals" => policy.disabled_globals = names(name, value)?,
        name => {
            let limit = Limit::named(name).ok_or_else(|| InputError(unknown(name)))?;
            let number = whole(value).ok_or_else(|| wrong(name, "a whole number that is not negative", value))?;
            limit.set(&mut policy.limits, number);
        }
    }
    Ok(())
}

/// A number of a limit. Languages with one type of numbers write whole numbers as `1e9` or `1000.0` too.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|number| *number >= 0.0 && *number < 2f64.powi(63) && number.fract() == 0.0);
    value.as_u64().or_else(|| float().map(|number| number as u64))
}

fn names(name: &str, value: &Value) -> Result<Vec<String>, InputError> {
    let list = value.as_array().map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
    list.flatten().ok_or_else(|| wrong(name, "a list of names", value))
}

fn wrong(name: &str, wanted: &str, value: &Value) -> InputError {
    InputError(format!("the limit '{name}' must be {wanted}, not {value}"))
}

fn unknown(name: &str) -> String {
    let near = crate::nearest(name, crate::limit_names());
    format!("there is no limit '{name}'{}", near.map_or_else(String::new, |near| format!("; did you mean '{near}'?")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Settings::from_json(text).err().map_or_else(|| panic!("{text} is accepted"), |error| error.0)
    }

    #[test]
    fn values_are_set_on_top_of_a_preset() {
        let text = r#"{"preset": "balanced", "limits": {"maxSteps": 1000, "timeoutMs": 1e3, "loops": "bounded",
            "disabledBuiltins": ["Map"]}, "fetch": true, "language": "typescript", "dialect": "sync"}"#;
        let Settings { policy, language, dialect } = Settings::from_json(text).expect("the settings are valid");
        assert_eq!(
            (policy.limits.max_steps, policy.limits.timeout_ms, policy.limits.max_tool_calls),
            (1000, 1000, 200)
        );
        assert_eq!((policy.loops, policy.fetch, policy.disabled_builtins), (Loops::Bounded, true, vec!["Map".into()]));
        assert_eq!((language, dialect), (Some(Language::TypeScript), Dialect::Sync));
    }

    #[test]
    fn mistakes_say_what_to_write() {
        assert_eq!(refused(r#"{"limits": {"maxStep": 1}}"#), "there is no limit 'maxStep'; did you mean 'maxSteps'?");
        assert_eq!(refused(r#"{"limits": {"fetch": true}}"#), "there is no limit 'fetch'");
        assert_eq!(refused(r#"{"limits": {"zebra": 1}}"#), "there is no limit 'zebra'");
        assert!(refused(r#"{"limits": {"maxSteps": -1}}"#).contains("a whole number that is not negative, not -1"));
        assert!(refused(r#"{"limits": {"timers": 1}}"#).contains("true or false"));
        assert!(refused(r#"{"preset": "safe"}"#).contains("'locked_down', 'secure', 'balanced', 'experimental'"));
        assert!(refused(r#"{"presets": "safe"}"#).contains("unknown field `presets`"));
    }
}

//! The effective configuration: each key with its value and where that comes from, for `codecall config show`.

use super::environment::Override;
use super::reference::Key;
use super::{Config, Format};
use super::{StoredSecrets, environment, read, with_lookup};
use agentscript::{LIMITS, Loops};
use codecall_base::error::Error;
use codecall_base::redact::Redactor;
use serde_json::{Value, json};
use std::path::Path;

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The path of the key: `vm.preset`, `mcpServers.github.command`.
    pub path: String,
    /// Its value as it is written, without secrets; `None`: the key is not set, and `default` says what that means.
    pub value: Option<Value>,
    /// Its default, in words or as JSON.
    pub default: String,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file of the configuration.
    File,
    /// A variable of the environment, by its name.
    Variable(String),
    /// A preset of `vm`, by its name.
    Preset(String),
    /// The default of the key.
    Default,
}

/// Returns all settings: those of the file and of the environment, and the defaults of the other keys.
/// `secret` looks up stored secrets, whose values are masked.
///
/// # Errors
/// The errors of [`Config::load`].
pub fn settings(path: Option<&Path>, secret: StoredSecrets<'_>) -> Result<Vec<Setting>, Error> {
    let (text, format) = match path {
        Some(path) => Config::read_file(path)?,
        None => (String::new(), Format::Toml),
    };
    let problem = |message: String| match path {
        Some(path) => Error::Config(format!("{}: {message}", path.display())),
        None => Error::Config(message),
    };
    with_lookup(&text, format, secret, |variables, lookup| of_text(&text, format, variables, lookup)).map_err(problem)
}

/// Returns the settings of a text.
///
/// # Errors
/// The mistake, with the name of the key.
pub fn of_text(
    text: &str,
    format: Format,
    variables: &[(String, String)],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Setting>, String> {
    let config = read::parse(text, format, variables, lookup)?;
    let mut document = read::document(text, format)?;
    let (overrides, _) = environment::apply(&mut document, variables);
    let view = View { config: &config, overrides: &overrides, redactor: config.secrets.redactor() };
    let mut settings = Vec::new();
    view.collect(&Key::root(), "", Some(&document), &mut settings);
    Ok(settings)
}

struct View<'a> {
    config: &'a Config,
    overrides: &'a [Override],
    redactor: Redactor,
}

impl View<'_> {
    fn collect(&self, key: &Key, path: &str, value: Option<&Value>, settings: &mut Vec<Setting>) {
        for inner in key.keys() {
            if inner.is_ignored() {
                continue;
            }
            let names = std::iter::once(inner.name()).chain(inner.aliases());
            let found = names.filter_map(|name| Some((name, value?.get(name)?))).find(|(_, value)| !value.is_null());
            let name = found.map_or(inner.name(), |(name, _)| name);
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            self.add(&inner, path, found.map(|(_, value)| value), settings);
        }
    }

    fn add(&self, key: &Key, path: String, value: Option<&Value>, settings: &mut Vec<Setting>) {
        let is_list = value.is_some_and(Value::is_array) || key.is_list();
        if let (Some(entry), Some(Value::Object(entries))) = (key.entry(), value)
            && !entry.keys().is_empty()
        {
            for (name, value) in entries {
                self.collect(&entry, &format!("{path}.{name}"), Some(value), settings);
            }
            return;
        }
        let is_table = value.is_none_or(Value::is_object);
        if key.entry().is_none() && !is_list && is_table && !key.keys().is_empty() && !key.has_words() {
            return self.collect(key, &path, value, settings);
        }
        let default = key.default().replace('`', "");
        let (value, origin) = match value {
            Some(value) => (Some(self.masked(key, value)), self.origin(&path)),
            None => match self.by_preset(&path) {
                Some((value, preset)) => (Some(value), Origin::Preset(preset)),
                None => (None, Origin::Default),
            },
        };
        settings.push(Setting { path, value, default, origin });
    }

    fn origin(&self, path: &str) -> Origin {
        let is_it = |set: &&Override| {
            path == set.path || path.strip_prefix(set.path.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        // A table of texts may be from both; a part of it is from a variable.
        let is_within = |set: &&Override| set.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        let set = self.overrides.iter().rfind(is_it).or_else(|| self.overrides.iter().rfind(is_within));
        set.map_or(Origin::File, |set| Origin::Variable(set.variable.clone()))
    }

    /// The value of a key of `vm` that the preset decides.
    fn by_preset(&self, path: &str) -> Option<(Value, String)> {
        let name = path.strip_prefix("vm.")?;
        let policy = &self.config.policy;
        let value = match name {
            "loops" => json!(match policy.loops {
                Loops::None => "none",
                Loops::Bounded => "bounded",
                Loops::All => "all",
            }),
            "allowConsole" => policy.allow_console.into(),
            "timers" => policy.timers.into(),
            _ => LIMITS.iter().find(|limit| limit.name == name)?.get(&policy.limits).into(),
        };
        Some((value, self.config.preset.as_str().to_owned()))
    }

    /// A value without its secrets. References to variables are kept.
    fn masked(&self, key: &Key, value: &Value) -> Value {
        let mut value = value.clone();
        let is_reference = |text: &str| text.starts_with("${") && text.ends_with('}') && !text.contains(":-");
        if let Some(kind @ ("value" | "headers")) = key.secret() {
            let hide = |value: &mut Value| {
                if !value.as_str().is_some_and(is_reference) {
                    *value = "[secret]".into();
                }
            };
            match (kind, &mut value) {
                ("headers", Value::Object(entries)) => entries.values_mut().for_each(hide),
                (_, value) => hide(value),
            }
        }
        self.redactor.redact_value(&mut value);
        value
    }
}

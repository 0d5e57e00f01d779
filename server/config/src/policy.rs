//! Limits and permissions of a run as they are written: under `vm` in the configuration, under
//! `limits` in a request. The keys are the same; what differs is that a request can only lower.

use super::read::keys;
use agentscript::{LIMITS, Limit, Limits, Loops, Policy, Preset};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What is asked for; everything may be absent.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    preset: Option<Preset>,
    limits: Vec<(&'static Limit, u64)>,
    loops: Option<Loops>,
    allow_console: Option<bool>,
    disabled_builtins: Vec<String>,
    disabled_globals: Vec<String>,
}

/// The keys besides those of [`LIMITS`].
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Keys {
    preset: Option<String>,
    loops: Option<String>,
    allow_loops: Option<bool>,
    allow_console: Option<bool>,
    disabled_builtins: Vec<String>,
    disabled_globals: Vec<String>,
}

/// `base` under the limits of a request: only what is stricter counts.
///
/// # Errors
/// What is wrong, naming the key.
pub fn lowered(base: &Policy, limits: Map<String, Value>) -> Result<Policy, String> {
    Ok(Wanted::read(limits, "limits")?.lowering(base))
}

impl Wanted {
    /// Read a table. `path` is its place, for messages.
    ///
    /// # Errors
    /// What is wrong, naming the key.
    pub fn read(mut table: Map<String, Value>, path: &str) -> Result<Self, String> {
        let mut limits: Vec<(&Limit, u64)> = Vec::new();
        for limit in LIMITS {
            if let Some(value) = table.shift_remove(limit.name) {
                // Values from the environment are texts.
                let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
                let problem = || format!("{path}.{}: must be a whole number, 0 or more", limit.name);
                limits.push((limit, number.ok_or_else(problem)?));
            }
        }
        let names: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
        let table: Keys = keys(Value::Object(table), path, &names)?;
        let preset = table.preset.as_deref().map(|name| {
            Preset::named(name).ok_or_else(|| {
                let known: Vec<&str> = Preset::ALL.iter().map(|preset| preset.as_str()).collect();
                format!("{path}.preset: must be one of {}", known.join(", "))
            })
        });
        let loops = match (table.loops.as_deref(), table.allow_loops) {
            (None, None) => None,
            (None, Some(true)) | (Some("all"), None) => Some(Loops::All),
            (None, Some(false)) | (Some("none"), None) => Some(Loops::None),
            (Some("bounded"), None) => Some(Loops::Bounded),
            (Some(_), Some(_)) => return Err(format!("{path}: give either 'loops' or 'allowLoops', not both")),
            (Some(_), None) => return Err(format!("{path}.loops: must be one of none, bounded, all")),
        };
        Ok(Self {
            preset: preset.transpose()?,
            limits,
            loops,
            allow_console: table.allow_console,
            disabled_builtins: names_of(table.disabled_builtins, path, "disabledBuiltins")?,
            disabled_globals: names_of(table.disabled_globals, path, "disabledGlobals")?,
        })
    }

    /// The policy: that of the preset, with all that is asked for on top.
    #[must_use]
    pub fn policy(self) -> Policy {
        let mut policy = Policy::preset(self.preset.unwrap_or_default());
        for (limit, value) in self.limits {
            limit.set(&mut policy.limits, value);
        }
        let secure = Limits::preset(Preset::Secure);
        policy.loops = self.loops.unwrap_or(policy.loops);
        // A preset without loops has no iterations either; loops asked for mean that they can be entered.
        if policy.loops != Loops::None && policy.limits.max_iterations == 0 {
            policy.limits.max_iterations = secure.max_iterations;
        }
        policy.allow_console = self.allow_console.unwrap_or(policy.allow_console);
        if self.allow_console == Some(true)
            && policy.limits.max_console_bytes == 0
            && policy.limits.max_console_calls == 0
        {
            policy.limits.max_console_bytes = secure.max_console_bytes;
            policy.limits.max_console_calls = secure.max_console_calls;
        }
        policy.disabled_builtins = self.disabled_builtins;
        policy.disabled_globals = self.disabled_globals;
        policy
    }

    /// `base` with whatever of this is stricter: a higher limit or a wider permission changes nothing.
    fn lowering(self, base: &Policy) -> Policy {
        let mut policy = base.clone();
        let mut lower = |limit: &Limit, wanted: u64| {
            // No limit is the highest one.
            let height = |value: u64| if limit.name == "maxToolCalls" && value == 0 { u64::MAX } else { value };
            if height(wanted) < height(limit.get(&policy.limits)) {
                limit.set(&mut policy.limits, wanted);
            }
        };
        let preset = self.preset.map(Policy::preset);
        if let Some(preset) = &preset {
            LIMITS.iter().for_each(|limit| lower(limit, limit.get(&preset.limits)));
        }
        self.limits.iter().for_each(|(limit, wanted)| lower(limit, *wanted));
        let loops = self.loops.into_iter().chain(preset.as_ref().map(|preset| preset.loops));
        policy.loops = loops.fold(policy.loops, Loops::min);
        policy.allow_console &= self.allow_console.unwrap_or(true) && preset.is_none_or(|preset| preset.allow_console);
        policy.disabled_builtins.extend(self.disabled_builtins);
        policy.disabled_globals.extend(self.disabled_globals);
        policy
    }
}

/// Names of globals. Anything else would be looked for in vain, and nothing would be refused.
fn names_of(names: Vec<String>, path: &str, key: &str) -> Result<Vec<String>, String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    match names.iter().find(|name| name.is_empty() || !name.chars().all(is_part)) {
        Some(_) => {
            Err(format!("{path}.{key}: must be names of globals, such as 'Map'; a part of one cannot be disabled"))
        }
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(table: Value) -> Result<Wanted, String> {
        let Value::Object(table) = table else { panic!("an object") };
        Wanted::read(table, "limits")
    }

    fn lowered(table: Value) -> Policy {
        wanted(table).expect("fits").lowering(&Policy::default())
    }

    #[test]
    fn limits_only_go_down() {
        let base = Policy::default();
        let policy = lowered(json!({"timeoutMs": 100, "maxSteps": 99_999_999_999_u64, "maxToolCalls": 0}));
        assert_eq!(policy.limits, Limits { timeout_ms: 100, ..base.limits });
        for limit in LIMITS {
            let one = limit.get(&base.limits) - 1;
            assert_eq!(limit.get(&lowered(json!({limit.name: one})).limits), one, "{}", limit.name);
            let more = limit.get(&base.limits) + 1;
            assert_eq!(lowered(json!({limit.name: more})), base, "{}", limit.name);
        }
    }

    #[test]
    fn permissions_only_go_down() {
        let base = Policy::default();
        assert_eq!(lowered(json!({"allowLoops": true, "allowConsole": true})), base);
        assert_eq!(lowered(json!({"loops": "all"})).loops, Loops::Bounded);
        assert_eq!(lowered(json!({"allowLoops": false})).loops, Loops::None);
        assert_eq!(lowered(json!({"loops": "none"})).loops, Loops::None);
        assert!(!lowered(json!({"allowConsole": false})).allow_console);
        let policy = lowered(json!({"disabledBuiltins": ["Map"], "disabledGlobals": ["mcpNotify"]}));
        assert_eq!((policy.disabled_builtins, policy.disabled_globals), (vec!["Map".into()], vec!["mcpNotify".into()]));
    }

    #[test]
    fn a_preset_of_a_request_lowers_all_that_it_has() {
        assert_eq!(lowered(json!({"preset": "locked_down"})), Policy::preset(Preset::LockedDown));
        assert_eq!(lowered(json!({"preset": "experimental"})), Policy::default());
        let policy = lowered(json!({"preset": "locked_down", "timeoutMs": 3_000}));
        assert_eq!(policy.limits.timeout_ms, Limits::preset(Preset::LockedDown).timeout_ms);
    }

    #[test]
    fn mistakes_name_the_key() {
        for (table, expected) in [
            (json!({"timeout": 1}), "limits: unknown key 'timeout'; did you mean 'timeoutMs'?"),
            (json!({"timeoutMs": -1}), "limits.timeoutMs: must be a whole number, 0 or more"),
            (json!({"loops": "some"}), "limits.loops: must be one of none, bounded, all"),
            (json!({"loops": "all", "allowLoops": true}), "limits: give either 'loops' or 'allowLoops', not both"),
            (json!({"preset": "safe"}), "limits.preset: must be one of locked_down, secure, balanced, experimental"),
            (json!({"allowConsole": 1}), "limits.allowConsole: wrong value, expected a boolean"),
            (json!({"disabledBuiltins": ["Math.random"]}), "limits.disabledBuiltins: must be names of globals"),
        ] {
            let problem = wanted(table).expect_err(expected);
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}

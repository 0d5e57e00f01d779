//! `vm`: limits and permissions of scripts. The `limits` of a request have the same keys and can only lower.

use super::check::check;
use super::read::read;
use super::secrets::FoundSecrets;
use agentscript::{LIMITS, Limit, Limits, Loops, Policy, Preset, Unit};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Whether the schema of the section has no default as a whole: each of its keys has one.
pub(crate) fn has_own_defaults(_: &Policy) -> bool {
    true
}

/// The settings of a table; every key may be absent.
#[derive(Clone, Debug, Default)]
pub struct VmConfig {
    limits: Vec<(&'static Limit, u64)>,
    permissions: Permissions,
}

/// The keys besides those of [`LIMITS`].
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Permissions {
    /// The preset from which the other keys of this section start.
    #[serde(deserialize_with = "preset")]
    #[schemars(with = "String", extend("enum" = Preset::ALL.map(Preset::as_str), "x-default" = "`\"secure\"`"))]
    preset: Option<Preset>,
    /// The loops that a script may contain. `"bounded"`: no `while`, `do` or endless `for`.
    #[serde(deserialize_with = "loops")]
    #[schemars(with = "String", extend("enum" = LOOPS.map(|(name, _)| name), "x-default" = "by preset"))]
    loops: Option<Loops>,
    /// The short form of `loops`: `true` is `"all"`, `false` is `"none"`.
    #[schemars(extend("x-default" = "by preset"))]
    allow_loops: Option<bool>,
    /// Whether a script may use `console`.
    #[schemars(extend("x-default" = "by preset"))]
    allow_console: Option<bool>,
    /// Whether `null` for an optional property of a tool's input, whose schema does not allow `null`, means that the
    /// property is left out. The tool gets the input without it.
    #[schemars(extend("x-default" = "`true`"))]
    lenient_input: Option<bool>,
    /// Bytes of a longer result that a client gets at once. The rest is stored (`resultStore`) and read by its handle.
    /// Without a store, results come whole, up to `maxResultBytes`. Clients of `codecall_execute` and `codecall_invoke`
    /// over MCP
    /// have models, so their default is lower.
    #[serde(deserialize_with = "whole_number")]
    #[schemars(with = "u64", range(min = 1000), extend("x-default" = "`16000` for these, else `50000`", "type" = ["integer", "string"], "x-type" = "bytes"))]
    max_inline_bytes: Option<u64>,
    /// Whether a script may set timers: `setTimeout`, `setInterval`, `sleep`, `AbortSignal.timeout`.
    #[schemars(extend("x-default" = "by preset"))]
    timers: Option<bool>,
    /// Names of built-ins that a script may not use.
    #[serde(deserialize_with = "globals")]
    disabled_builtins: Vec<String>,
    /// Names of globals that a script may not use.
    #[serde(deserialize_with = "globals")]
    disabled_globals: Vec<String>,
}

/// The default of `maxInlineBytes` for programs.
const MAX_INLINE_BYTES: u64 = 50_000;
/// The default of `maxInlineBytes` for models: about 4,000 tokens. Of a longer result they select a part in the script.
const MAX_MODEL_BYTES: u64 = 16_000;
/// The minimum of `maxInlineBytes`: a piece has a notice of about 200 bytes.
const MIN_INLINE_BYTES: u64 = 1_000;

const LOOPS: [(&str, Loops); 3] = [("none", Loops::None), ("bounded", Loops::Bounded), ("all", Loops::All)];

fn preset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Preset>, D::Error> {
    let preset = Preset::named(&String::deserialize(deserializer)?);
    let known = || Preset::ALL.map(Preset::as_str).join(", ");
    preset.map(Some).ok_or_else(|| D::Error::custom(format!("must be one of {}", known())))
}

fn loops<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Loops>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let loops = LOOPS.iter().find(|(known, _)| *known == name).map(|(_, loops)| *loops);
    let known = || LOOPS.map(|(name, _)| name).join(", ");
    loops.map(Some).ok_or_else(|| D::Error::custom(format!("must be one of {}", known())))
}

/// A whole number. Values from the environment are texts.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
    let number = number.filter(|number| *number >= MIN_INLINE_BYTES);
    let problem = || D::Error::custom(format!("must be a whole number, {MIN_INLINE_BYTES} or more"));
    number.map(Some).ok_or_else(problem)
}

/// Names of globals. Nothing else can be disabled.
fn globals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = Vec::deserialize(deserializer)?;
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if names.iter().any(|name| name.is_empty() || !name.chars().all(is_part)) {
        return Err(D::Error::custom("must be names of globals, such as 'Map'; a part of one cannot be disabled"));
    }
    Ok(names)
}

static SCHEMA: LazyLock<Value> = LazyLock::new(super::schema::of_type::<VmConfig>);

impl JsonSchema for VmConfig {
    fn schema_name() -> Cow<'static, str> {
        "Vm".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Permissions::json_schema(generator);
        if let Some(Value::Object(keys)) = schema.get_mut("properties") {
            keys.extend(LIMITS.iter().map(|limit| (limit.name.to_owned(), schema_of(limit))));
        }
        schema
    }
}

/// Values from the environment are texts.
fn schema_of(limit: &Limit) -> Value {
    let values = Preset::ALL.iter().zip(limit.presets).map(|(preset, value)| format!("{} {value}", preset.as_str()));
    let unit = match limit.unit {
        Unit::Milliseconds => "milliseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "whole number",
    };
    let default = format!("by preset: {}", values.collect::<Vec<_>>().join(", "));
    json!({
        "type": ["integer", "string"], "minimum": 0, "description": limit.doc, "x-type": unit, "x-default": default
    })
}

impl crate::Config {
    /// Returns the longest result that a client gets at once, in bytes. `for_model`: a model reads it.
    #[must_use]
    pub fn inline_bytes(&self, for_model: bool) -> u64 {
        self.max_inline_bytes.unwrap_or(if for_model { MAX_MODEL_BYTES } else { MAX_INLINE_BYTES })
    }
}

/// `base` with the limits of a request that are stricter.
///
/// # Errors
/// The mistake, with the name of the key.
pub fn lowered(base: &Policy, limits: Map<String, Value>) -> Result<Policy, String> {
    let wanted = VmConfig::read(limits, "limits")?;
    if wanted.permissions.lenient_input.is_some() {
        return Err("limits.lenientInput: it is a key of the configuration".into());
    }
    if wanted.permissions.max_inline_bytes.is_some() {
        return Err("limits.maxInlineBytes: it is a key of the configuration; maxResultBytes can be lowered".into());
    }
    Ok(wanted.lowering(base))
}

impl VmConfig {
    /// Reads a table. `path` is where it is, for messages.
    ///
    /// # Errors
    /// The mistake, with the name of the key.
    pub fn read(table: Map<String, Value>, path: &str) -> Result<Self, String> {
        let mut table = Value::Object(table);
        check(&mut table, &SCHEMA, path, &mut FoundSecrets::default())?;
        let mut limits: Vec<(&Limit, u64)> = Vec::new();
        for limit in LIMITS {
            if let Some(value) = table.as_object_mut().and_then(|table| table.shift_remove(limit.name)) {
                // Values from the environment are texts.
                let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
                let problem = || format!("{path}.{}: must be a whole number, 0 or more", limit.name);
                limits.push((limit, number.ok_or_else(problem)?));
            }
        }
        let permissions: Permissions = read(table, path)?;
        if permissions.loops.is_some() && permissions.allow_loops.is_some() {
            return Err(format!("{path}: give either 'loops' or 'allowLoops', not both"));
        }
        Ok(Self { limits, permissions })
    }

    /// The preset that the other keys start from.
    #[must_use]
    pub fn preset(&self) -> Preset {
        self.permissions.preset.unwrap_or_default()
    }

    /// Whether `null` for an optional property that cannot be `null` is left out of inputs.
    #[must_use]
    pub fn lenient_input(&self) -> bool {
        self.permissions.lenient_input.unwrap_or(true)
    }

    /// The longest result that a client gets at once, in bytes; `None`: it depends on the client.
    #[must_use]
    pub fn max_inline_bytes(&self) -> Option<u64> {
        self.permissions.max_inline_bytes
    }

    fn loops(&self) -> Option<Loops> {
        let short = |all: bool| if all { Loops::All } else { Loops::None };
        self.permissions.loops.or(self.permissions.allow_loops.map(short))
    }

    /// The policy of the preset, with the keys that are set on top.
    #[must_use]
    pub fn policy(self) -> Policy {
        let loops = self.loops();
        let Permissions { preset, allow_console, timers, disabled_builtins, disabled_globals, .. } = self.permissions;
        let mut policy = Policy::preset(preset.unwrap_or_default());
        for (limit, value) in self.limits {
            limit.set(&mut policy.limits, value);
        }
        let secure = Limits::preset(Preset::Secure);
        policy.loops = loops.unwrap_or(policy.loops);
        // A preset without loops allows no iterations either. Where loops are allowed on top, they can be entered.
        if policy.loops != Loops::None && policy.limits.max_iterations == 0 {
            policy.limits.max_iterations = secure.max_iterations;
        }
        policy.timers = timers.unwrap_or(policy.timers);
        policy.allow_console = allow_console.unwrap_or(policy.allow_console);
        if allow_console == Some(true) && policy.limits.max_console_bytes == 0 && policy.limits.max_console_calls == 0 {
            policy.limits.max_console_bytes = secure.max_console_bytes;
            policy.limits.max_console_calls = secure.max_console_calls;
        }
        Policy { disabled_builtins, disabled_globals, ..policy }
    }

    /// `base` with the limits and permissions of this that are stricter. A higher limit or a wider permission
    /// changes nothing.
    fn lowering(self, base: &Policy) -> Policy {
        let mut policy = base.clone();
        let mut lower = |limit: &Limit, wanted: u64| {
            // No limit is the highest one.
            let height = |value: u64| if limit.name == "maxToolCalls" && value == 0 { u64::MAX } else { value };
            if height(wanted) < height(limit.get(&policy.limits)) {
                limit.set(&mut policy.limits, wanted);
            }
        };
        let loops = self.loops();
        let Permissions { preset, allow_console, timers, disabled_builtins, disabled_globals, .. } = self.permissions;
        let preset = preset.map(Policy::preset);
        if let Some(preset) = &preset {
            LIMITS.iter().for_each(|limit| lower(limit, limit.get(&preset.limits)));
        }
        self.limits.iter().for_each(|(limit, wanted)| lower(limit, *wanted));
        let loops = loops.into_iter().chain(preset.as_ref().map(|preset| preset.loops));
        policy.loops = loops.fold(policy.loops, Loops::min);
        policy.allow_console &=
            allow_console.unwrap_or(true) && preset.as_ref().is_none_or(|preset| preset.allow_console);
        policy.timers &= timers.unwrap_or(true) && preset.is_none_or(|preset| preset.timers);
        policy.disabled_builtins.extend(disabled_builtins);
        policy.disabled_globals.extend(disabled_globals);
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(table: Value) -> Result<VmConfig, String> {
        let Value::Object(table) = table else { panic!("an object") };
        VmConfig::read(table, "limits")
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
        assert_eq!(lowered(json!({"allowConsole": true, "timers": true, "loops": "all"})), base);
        assert_eq!(lowered(json!({"allowLoops": true})), base);
        assert_eq!(lowered(json!({"loops": "bounded"})).loops, Loops::Bounded);
        assert!(!lowered(json!({"timers": false})).timers && base.timers);
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

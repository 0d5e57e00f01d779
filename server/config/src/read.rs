//! Parses a configuration.
//!
//! `${NAME}` is expanded, the value is checked against the schema of its keys, and serde deserializes the structs of
//! the sections. The structs check conditions across keys.

use super::check::check;
use super::environment::{self, Override};
use super::expand::{Environment, SECRET_PREFIX, expand};
use super::schema::{self, properties};
use super::secrets::FoundSecrets;
use super::server_entry::{ServerEntry, UnusableServer};
use super::vm::VmConfig;
use super::{ChainConfig, CodeExecution, Config, Format, OpenApiConfig, Sections, ToolPolicy, UpstreamConfig};
use codecall_base::error::sanitize_serde_error;
use codecall_base::redact::SecretRegistry;
use codecall_base::text::excerpt::{Position, excerpt};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

static TOOLS: LazyLock<Vec<String>> = LazyLock::new(properties::<ToolPolicy>);
static CODE_EXECUTION: LazyLock<Vec<String>> = LazyLock::new(properties::<CodeExecution>);
static CHAIN: LazyLock<Vec<String>> = LazyLock::new(properties::<ChainConfig>);

/// Editors of Windows begin a file with it.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Additions to JSON: comments and trailing commas, as in the files of VS Code.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text. `variables` are those of the environment that override its keys, `environment` returns the values of
/// `${NAME}`.
pub fn parse(
    text: &str,
    format: Format,
    variables: &[(String, String)],
    environment: Environment<'_>,
) -> Result<Config, String> {
    let mut value = document(text, format)?;
    let (overrides, warnings) = environment::apply(&mut value, variables);
    let mut config = of_document(value, environment).map_err(|message| from_variable(message, &overrides))?;
    config.warnings.splice(0..0, warnings);
    for server in config.unusable.values_mut() {
        server.reason = from_variable(std::mem::take(&mut server.reason), &overrides);
    }
    Ok(config)
}

/// Adds the variable that has set the key of an error.
fn from_variable(message: String, overrides: &[Override]) -> String {
    let is_of =
        |set: &&Override| message.strip_prefix(set.path.as_str()).is_some_and(|rest| rest.starts_with([':', '.', '[']));
    match overrides.iter().rfind(is_of) {
        Some(set) => format!("{message} (the value is that of the environment variable {})", set.variable),
        None => message,
    }
}

/// Reads the keys that say where secrets are stored, so that secrets of other keys can be looked up there.
///
/// # Errors
/// It cannot be read.
pub fn store_keys(
    text: &str,
    format: Format,
    variables: &[(String, String)],
    environment: Environment<'_>,
) -> Result<Config, String> {
    let mut value = document(text, format)?;
    environment::apply(&mut value, variables);
    let keys = value.as_object_mut().into_iter().flat_map(|root| {
        ["store", "stateDir"].into_iter().filter_map(|key| root.shift_remove_entry(key)).collect::<Vec<_>>()
    });
    let mut section = Value::Object(keys.collect());
    expand(&mut section, "", environment)?;
    check(&mut section, schema::root(), "", &mut FoundSecrets::default())?;
    let config: Config = read(section, "")?;
    config.store.check().map(|()| config)
}

fn of_document(mut value: Value, environment: Environment<'_>) -> Result<Config, String> {
    let found = RefCell::new(FoundSecrets::default());
    let digest = RefCell::new(Sha256::new_with_prefix(value.to_string()));
    let environment = |name: &str| {
        let value = environment(name)?;
        digest.borrow_mut().update(format!("{name:?}={value:?}"));
        match name.strip_prefix(SECRET_PREFIX) {
            Some(_) => found.borrow_mut().add(&value),
            None => found.borrow_mut().add_variable(name, &value),
        }
        Some(value)
    };
    // Entries that are disabled are not expanded.
    let servers = take_table(&mut value, "mcpServers")?;
    let services = take_table(&mut value, "openapi")?;
    expand(&mut value, "", &environment)?;
    check(&mut value, schema::root(), "", &mut found.borrow_mut())?;
    let mut sections = Sections(value.as_object().cloned().unwrap_or_default());
    sections.0.insert("openapi".into(), services.clone().into_iter().collect());
    let vm = VmConfig::read(take_table(&mut value, "vm")?, "vm")?;
    let (lenient_input, max_inline_bytes) = (vm.lenient_input(), vm.max_inline_bytes());
    let (preset, policy) = (vm.preset(), vm.policy());
    let tools: ToolPolicy = take_keys(&mut value, &TOOLS, "")?;
    let code_execution = take_keys(&mut value, &CODE_EXECUTION, "")?;
    let chain: ChainConfig = take_keys(&mut value, &CHAIN, "")?;
    let mut config =
        Config { policy, preset, lenient_input, max_inline_bytes, tools, code_execution, chain, ..read(value, "")? };
    config.tools.check()?;
    config.warnings.extend(config.tools.idle_front());
    config.chain.check()?;
    config.search.check()?;
    config.http.check()?;
    config.model.check()?;
    config.store.check()?;
    config.script_tools.check()?;
    for (app, entry) in servers {
        match UpstreamConfig::read(&app, entry, &environment, &found, &mut config.warnings)? {
            ServerEntry::Usable(server) => drop(config.upstreams.insert(app, server)),
            ServerEntry::Unusable(reason) => {
                config.unusable.insert(app, UnusableServer { source: "mcp", reason });
            }
            ServerEntry::Disabled => {}
        }
    }
    config.sections = sections;
    for (app, entry) in services {
        let read = OpenApiConfig::read(&app, entry, &environment, &found, &mut config.warnings)?;
        if !matches!(read, ServerEntry::Disabled) && config.has_server(&app) {
            return Err(format!("openapi.{app}: there is an MCP server of this name; choose another"));
        }
        match read {
            ServerEntry::Usable(service) => drop(config.openapi.insert(app, service)),
            ServerEntry::Unusable(reason) => {
                config.unusable.insert(app, UnusableServer { source: "openapi", reason });
            }
            ServerEntry::Disabled => {}
        }
    }
    let scripts = &config.script_tools;
    if scripts.is_used() && config.has_server(&scripts.app) {
        return Err(format!("scriptTools.app: there is another app '{}'; choose another name", scripts.app));
    }
    // Those of files with variables are there, too.
    found.borrow().all().for_each(|secret| digest.borrow_mut().update(format!("{secret:?}")));
    config.digest = digest.into_inner().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    config.secrets = Arc::new(SecretRegistry::new(found.borrow().all()));
    Ok(config)
}

/// Parses a text: TOML, or JSON with comments and trailing commas, as clients read their files. A byte order mark is no
/// part of it.
///
/// # Errors
/// It is not, with the line of the error without its values.
pub fn document(text: &str, format: Format) -> Result<Value, String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let problem = |kind: &str, byte: usize, message: &str| {
        let position = Position::of(text, byte);
        let place = format!("line {}, column {}", position.line, position.column);
        format!("not valid {kind} at {place}: {message}\n{}", excerpt(text, position))
    };
    let value: Value = match format {
        Format::Json => parse_to_serde_value(text, &JSON)
            .map_err(|error: ParseError| problem("JSON", error.range().start, &lower(&error.kind().to_string())))?,
        Format::Toml if is_yaml(text) => return Err("this is YAML; a configuration is TOML or JSON".into()),
        Format::Toml => toml::from_str(text)
            .map_err(|error| problem("TOML", error.span().map_or(0, |span| span.start), error.message()))?,
    };
    if value.is_object() { Ok(value) } else { Err("must be an object".into()) }
}

/// Whether the first line that says something is one of YAML: `---`, `key:` or `key: value`.
fn is_yaml(text: &str) -> bool {
    let first = text.lines().map(str::trim_end).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let key = line.split_once(':').filter(|(_, value)| value.is_empty() || value.starts_with(' '));
        line == "---" || key.is_some_and(|(key, _)| key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-'))
    })
}

/// A message as the part of a sentence.
fn lower(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Returns the secrets in a text, those of disabled servers included. References to variables are none.
///
/// # Errors
/// The text is not what `format` says.
pub fn secrets(text: &str, format: Format) -> Result<SecretRegistry, String> {
    let mut value = document(text, format)?;
    let mut found = FoundSecrets::default();
    for (_, entry) in take_table(&mut value, "mcpServers")? {
        UpstreamConfig::collect_secrets(entry, &mut found);
    }
    // What is wrong with a key is for those who use it.
    let _ = check(&mut value, schema::root(), "", &mut found);
    Ok(SecretRegistry::new(found.all().filter(|secret| !secret.contains("${"))))
}

/// Takes a table out of the whole configuration.
fn take_table(root: &mut Value, key: &str) -> Result<Map<String, Value>, String> {
    match root.as_object_mut().and_then(|root| root.shift_remove(key)) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(table)) => Ok(table),
        Some(_) => Err(format!("{key}: wrong value, expected a table")),
    }
}

/// Deserializes a value. `path` is where it is, for messages.
///
/// # Errors
/// The mistake, with the name of the key.
pub fn read<T: DeserializeOwned>(value: Value, path: &str) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let problem = sanitize_serde_error(&error.inner().to_string());
        let at = match error.path().to_string().as_str() {
            "" | "." => path.to_owned(),
            inner if path.is_empty() => inner.to_owned(),
            inner => format!("{path}.{inner}"),
        };
        if at.is_empty() { problem } else { format!("{at}: {problem}") }
    })
}

/// Takes `keys` out of a table and deserializes them. (Serde's `flatten` does not say which key is wrong.)
///
/// # Errors
/// The mistake, with the name of the key.
pub fn take_keys<T: DeserializeOwned>(table: &mut Value, keys: &[String], path: &str) -> Result<T, String> {
    let table = table.as_object_mut();
    let part: Map<String, Value> =
        table.into_iter().flat_map(|table| keys.iter().filter_map(|key| table.shift_remove_entry(key))).collect();
    read(Value::Object(part), path)
}

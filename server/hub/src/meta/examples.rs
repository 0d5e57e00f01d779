//! Usage examples of a tool: those of its author, then generated ones.
//!
//! All are checked: the code compiles, and the inputs of its calls fit the schemas of the tools. An invalid example
//! would teach mistakes, so it is omitted, and the log says so once.

use agentscript::{CompileOptions, Dialect, Event, Outcome, Policy, Preset, Progress, Status};
use codecall_base::tool::{Example, ToolDirectory};
use codecall_runs::{Executor, StartInputs};
use codecall_tools::catalogue::{Entry, Snapshot};
use codecall_tools::sample;
use codecall_tools::typescript::name;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum number of examples of a tool.
const MAX_EXAMPLES: usize = 5;
/// Maximum number of them that are generated.
const MAX_GENERATED: usize = 2;

/// How long an example is evaluated at a time.
const SLICE: Duration = Duration::from_millis(10);

/// Returns the examples of a tool as `codecall_describe` shows them. Those of its author are run by `executor`, which gives
/// up one whose slice takes longer than `watchdog`.
pub fn for_tool(executor: &dyn Executor, watchdog: Duration, snapshot: &Snapshot, entry: &Entry) -> Vec<Value> {
    let own = entry.examples(|example| is_valid(executor, watchdog, snapshot, entry, example));
    let own = own.iter().map(|example| (example.description.clone(), example.code.clone()));
    own.chain(generated(entry).into_iter().take(MAX_GENERATED))
        .take(MAX_EXAMPLES)
        .map(|(description, code)| json!({"description": description, "code": code}))
        .collect()
}

/// Whether an example of the author runs, and calls tools with inputs that fit.
fn is_valid(
    executor: &dyn Executor,
    watchdog: Duration,
    snapshot: &Snapshot,
    entry: &Entry,
    example: &Example,
) -> bool {
    match dry_run(executor, watchdog, snapshot, &example.code) {
        Ok(()) => true,
        Err(problem) => {
            tracing::warn!(tool = entry.name, problem, "an invalid example of the tool's author is omitted");
            false
        }
    }
}

/// Runs a script with sample results of its tools, as far as possible.
///
/// # Errors
/// It does not compile, or the input of a call does not fit the tool's schema. Inputs are not checked after the first
/// tool without an output schema, because they may depend on its result. A call of an unknown tool is no error, because
/// its server may be down.
fn dry_run(executor: &dyn Executor, watchdog: Duration, snapshot: &Snapshot, code: &str) -> Result<(), String> {
    let mut policy = Policy::preset(Preset::Experimental);
    let limits = &mut policy.limits;
    // The code comes from an upstream, so it must end soon whatever it does.
    (limits.max_steps, limits.max_memory_bytes, limits.max_tool_calls) = (200_000, 16 << 20, 50);
    let start = StartInputs {
        script: code.into(),
        language: None,
        dialect: Dialect::Async,
        policy,
        context: None,
        directory: Arc::<ToolDirectory>::clone(snapshot.directory()),
        record_lookups: false,
        seed: 1,
        fixed_unix_ms: None,
        is_virtual: true,
        slice: SLICE,
        watchdog,
        stop: Arc::default(),
    };
    let cancel = CancellationToken::new();
    let mut run = executor.start(start).map_err(|outcome| problem_of(&outcome).unwrap_or_default())?;
    let (mut events, mut results_are_known) = (Vec::new(), true);
    loop {
        let calls = match run.resume(std::mem::take(&mut events), &cancel) {
            Progress::Done(outcome) => return problem_of(&outcome).map_or(Ok(()), Err),
            Progress::Yielded => continue,
            Progress::Calls(calls) => calls,
        };
        let is_checked = results_are_known;
        for call in calls {
            let called = snapshot.lookup(&call.tool);
            if let Some(called) = called.filter(|_| is_checked) {
                called.fits(&serde_json::from_str(&call.input).unwrap_or_default())?;
            }
            let (result, is_known) = sample::result(called.and_then(|called| called.definition.output_schema.as_ref()));
            results_are_known &= is_known;
            events.push(Event::Settled { id: call.id, result: Ok(result.to_string()) });
        }
    }
}

/// Returns why the script of an outcome cannot run at all. A run that fails is no problem: samples are not what its author
/// expects.
fn problem_of(outcome: &Outcome) -> Option<String> {
    let refused = matches!(outcome.status(), Status::SyntaxError | Status::IllegalAccess);
    let failure = outcome.result.as_ref().err().filter(|_| refused)?;
    Some(failure.message.clone())
}

/// The purpose of a tool, guessed from the verb in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intent {
    Create,
    Get,
    List,
    Search,
    Update,
    Delete,
    Other,
}

const VERBS: &[(Intent, &[&str])] = &[
    (
        Intent::Create,
        &["create", "add", "insert", "new", "register", "send", "post", "upload", "write", "make", "open", "start"],
    ),
    (Intent::Search, &["search", "find", "query", "lookup", "filter", "match"]),
    (Intent::List, &["list", "all", "browse", "enumerate", "index"]),
    (
        Intent::Update,
        &["update", "edit", "set", "modify", "patch", "put", "change", "rename", "move", "replace", "assign"],
    ),
    (Intent::Delete, &["delete", "remove", "drop", "destroy", "cancel", "clear", "archive", "close"]),
    (Intent::Get, &["get", "read", "fetch", "show", "view", "describe", "retrieve", "load", "download", "info"]),
];

fn intent(name: &str) -> Intent {
    let words = codecall_tools::index::split(name);
    let verb =
        |word: &String| VERBS.iter().find(|(_, verbs)| verbs.contains(&word.as_str())).map(|(intent, _)| *intent);
    words.iter().find_map(verb).unwrap_or(Intent::Other)
}

fn generated(entry: &Entry) -> Vec<(String, String)> {
    let schema = &entry.definition.input_schema;
    let Some(Value::Object(input)) = sample::input(schema) else {
        return Vec::new();
    };
    let input = with_placeholders(entry, input);
    let subject = subject(entry);
    let call = |input: &Map<String, Value>, options: &str| {
        let tool = Value::String(entry.name.clone());
        format!("await callTool({tool}, {}{options})", literal(&Value::Object(input.clone())))
    };
    let plain = format!("const result = {};\nreturn result;", call(&input, ""));
    let safe = || {
        let call = call(&input, ", { throwOnError: false }");
        format!("const answer = {call};\nreturn answer.success ? answer.data : answer.error.message;")
    };
    let mut examples: Vec<(String, Map<String, Value>, String)> = Vec::new();
    match intent(&entry.definition.name) {
        Intent::Create => examples.push((format!("Create {subject}"), input.clone(), plain)),
        Intent::Get => {
            examples.push((format!("Get {subject}"), input.clone(), plain));
            if let Some((key, value)) =
                input.iter().find(|(key, value)| is_identifier(&schema["properties"][*key], value))
            {
                let mut rest = input.clone();
                rest.shift_remove(key);
                let tool = Value::String(entry.name.clone());
                let members: String =
                    rest.iter().map(|(key, value)| format!(", {}: {}", name(key), literal(value))).collect();
                let code = format!(
                    "const values = [{}];\nreturn await parallel(values, (value) => callTool({tool}, {{ {}: value{members} }}));",
                    literal(value),
                    name(key),
                );
                examples.push(("Several at once".into(), input.clone(), code));
            }
        }
        Intent::List | Intent::Search => {
            let what = if intent(&entry.definition.name) == Intent::List { "List" } else { "Search" };
            examples.push((format!("{what} {subject}"), input.clone(), plain));
            if let Some(limited) = with_limit(schema, &input) {
                let code = format!("const result = {};\nreturn result;", call(&limited, ""));
                examples.push((format!("{what} a few of them"), limited, code));
            }
        }
        Intent::Update => {
            examples.push((format!("Update {subject}"), input.clone(), plain));
            if let Some(fuller) = with_optional_property(schema, &input) {
                let code = format!("const result = {};\nreturn result;", call(&fuller, ""));
                examples.push(("With an optional value".into(), fuller, code));
            }
        }
        Intent::Delete => {
            examples.push((format!("Delete {subject}"), input.clone(), plain));
            examples.push(("Go on when it fails".into(), input.clone(), safe()));
        }
        Intent::Other => examples.push((format!("Call {}", entry.name), input.clone(), plain)),
    }
    examples
        .into_iter()
        .filter(|(_, input, code)| {
            let compiles = |code: &str| agentscript::compile(code, &CompileOptions::default()).is_ok();
            entry.fits(&Value::Object(input.clone())).is_ok() && compiles(code)
        })
        .map(|(description, _, code)| (description, code))
        .collect()
}

/// Replaces texts that say nothing by the names of their properties, where the schema allows that: `{ query: "<query>" }`.
fn with_placeholders(entry: &Entry, input: Map<String, Value>) -> Map<String, Value> {
    let mut named = input.clone();
    for (key, value) in &mut named {
        if value.as_str() == Some(sample::NOTHING) {
            *value = format!("<{key}>").into();
        }
    }
    if named != input && entry.fits(&Value::Object(named.clone())).is_ok() { named } else { input }
}

/// Whether the value of a property can identify one of several things.
fn is_identifier(property: &Value, value: &Value) -> bool {
    let is_fixed = ["enum", "const", "default"].iter().any(|key| property.get(key).is_some());
    (value.is_string() || value.is_number()) && !is_fixed
}

/// Returns the object of the tool's name: its words without the verb, or the app.
fn subject(entry: &Entry) -> String {
    let verbs = || VERBS.iter().flat_map(|(_, verbs)| verbs.iter());
    let words: Vec<String> = codecall_tools::index::split(&entry.definition.name)
        .into_iter()
        .filter(|word| !verbs().any(|verb| verb == word))
        .collect();
    if !words.is_empty() {
        words.join(" ")
    } else if entry.definition.app.is_empty() {
        "something".into()
    } else {
        entry.definition.app.clone()
    }
}

/// Adds the property that limits the number of results, if there is one.
fn with_limit(schema: &Value, input: &Map<String, Value>) -> Option<Map<String, Value>> {
    let names = [
        "limit",
        "pageSize",
        "page_size",
        "perPage",
        "per_page",
        "topK",
        "maxResults",
        "max_results",
        "first",
        "count",
    ];
    let key = names.into_iter().find(|name| schema["properties"].get(name).is_some() && !input.contains_key(*name))?;
    let mut input = input.clone();
    input.insert(key.into(), json!(10));
    Some(input)
}

/// Adds an optional property, if there is one.
fn with_optional_property(schema: &Value, input: &Map<String, Value>) -> Option<Map<String, Value>> {
    let (key, property) = schema.get("properties")?.as_object()?.iter().find(|(key, _)| !input.contains_key(*key))?;
    let mut input = input.clone();
    input.insert(key.clone(), sample::property(property, schema, key)?);
    Some(input)
}

/// Formats a value as a literal of the language.
fn literal(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".into(),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}: {}", name(key), literal(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_base::tool::ToolFilter;
    use codecall_config::ToolPolicy;
    use codecall_runs::ThreadExecutor;
    use codecall_tools::catalogue::Catalogue;
    use codecall_upstream::inline::Inline;

    fn examples(name: &str, schema: Value) -> Vec<String> {
        let tools = Arc::new(Inline::echo(&[("users", name, "", schema)]));
        let catalogue = Catalogue::new(vec![(tools, ToolFilter::default())], ToolPolicy::default(), Arc::default());
        let snapshot = catalogue.snapshot();
        for_tool(&ThreadExecutor::new(Arc::default()), Duration::from_secs(5), &snapshot, &snapshot.rows()[0])
            .iter()
            .map(|example| example["code"].as_str().expect("code").to_owned())
            .collect()
    }

    #[test]
    fn examples_follow_the_intent_of_the_tool() {
        let id = || json!({"type": "object", "properties": {"id": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["id"]});
        assert_eq!(
            examples("getUser", id())[1],
            "const values = [\"123\"];\nreturn await parallel(values, (value) => callTool(\"users:getUser\", { id: value }));"
        );
        assert_eq!(
            examples("list_users", id())[1],
            "const result = await callTool(\"users:list_users\", { id: \"123\", limit: 10 });\nreturn result;"
        );
        assert!(examples("deleteUser", id())[1].contains("throwOnError: false"));
        assert_eq!(
            examples("frobnicate", json!({"type": "object"})),
            ["const result = await callTool(\"users:frobnicate\", {});\nreturn result;"]
        );
    }

    #[test]
    fn values_that_nobody_knows_have_names() {
        let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
        assert_eq!(
            examples("find", schema),
            ["const result = await callTool(\"users:find\", { query: \"<query>\" });\nreturn result;"]
        );
    }

    #[test]
    fn examples_that_cannot_be_generated_are_omitted() {
        let odd = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?=x{40}).*zq$"}}, "required": ["x"]});
        assert!(examples("get", odd).is_empty());
        let endless = json!({"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]});
        assert!(examples("get", endless).is_empty());
    }
}

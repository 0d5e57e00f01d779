//! The tested functions, called as the server calls them.

use super::values::{Kind, Made, SECRET};
use agentscript::stateless::ClientTools as _;
use codecall::call::{CallContext, Caller};
use codecall::catalogue::Catalogue;
use codecall::config::{AuditConfig, PiiConfig, ToolPolicy};
use codecall::error::{sanitize_serde_error, with_path};
use codecall::event::EventSink;
use codecall::index::Index;
use codecall::pipeline::{Pipeline, canonical};
use codecall::redact::{Redactor, SecretRegistry};
use codecall::results::Results;
use codecall::schema::Schema;
use codecall::stateless::ClientToolset;
use codecall::store::{MemoryResults, Stores};
use codecall::text::nearest;
use codecall::tool::{ToolDefinition, ToolError, ToolFilter};
use codecall::upstream::Upstream;
use codecall::upstream::inline::Inline;
use codecall::{Config, Hub, fuzzing, offload, sample, terminal};
use serde_json::{Map, Value, json};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name in reports.
    pub name: &'static str,
    /// The kinds of values that it accepts.
    pub takes: &'static [Kind],
    /// Maximum time for each byte, in nanoseconds.
    pub nanoseconds: f64,
    /// Maximum time in addition to that, in milliseconds.
    pub more_ms: f64,
    /// Maximum memory, as a multiple of the memory of the value.
    pub copies: u64,
    /// Calls the function.
    pub call: fn(&Made),
}

const TEXTS: &[Kind] = &[Kind::Text];
const TEXTS_AND_VALUES: &[Kind] = &[Kind::Text, Kind::Value];
const VALUES: &[Kind] = &[Kind::Value];
const SCHEMAS: &[Kind] = &[Kind::Schema];
const READ: &[Kind] = &[Kind::Text, Kind::Json, Kind::Value];

const fn function(
    name: &'static str,
    takes: &'static [Kind],
    nanoseconds: f64,
    copies: u64,
    call: fn(&Made),
) -> Function {
    Function { name, takes, nanoseconds, more_ms: 200.0, copies, call }
}

/// Defines a function whose time does not depend on the value.
const fn bounded(name: &'static str, takes: &'static [Kind], more_ms: f64, copies: u64, call: fn(&Made)) -> Function {
    Function { name, takes, nanoseconds: 20.0, more_ms, copies, call }
}

/// All functions.
pub static FUNCTIONS: &[Function] = &[
    function("error without paths", TEXTS_AND_VALUES, 60.0, 4, |made| {
        let mut error = ToolError::new("CODE", made.text());
        error.details = Some(json!({"a": made.text()}).to_string());
        black_box(fuzzing::clean_error(error, &value(made)));
    }),
    function("failed result without paths", TEXTS_AND_VALUES, 60.0, 5, |made| {
        let mut result = match made {
            Made::Value(value) if value.get("isError").is_some() => value.clone(),
            other => {
                json!({"isError": true, "content": [{"type": "text", "text": other.text()}], "structuredContent": value(other)})
            }
        };
        fuzzing::clean_failure(&mut result, &value(made));
    }),
    function("data without paths", TEXTS_AND_VALUES, 200.0, 6, |made| fuzzing::clean_data(&mut value(made))),
    function("secrets in a text", TEXTS, 600.0, 12, |made| {
        black_box(redactor().redact_text(&made.text()));
    }),
    function("secrets in a value", VALUES, 600.0, 12, |made| redactor().redact_value(&mut value(made))),
    function("secrets in JSON", READ, 600.0, 12, |made| {
        black_box(redactor().redact_json(&made.text()));
    }),
    function("personal data", TEXTS_AND_VALUES, 600.0, 12, |made| {
        black_box(personal().masked(&Arc::new(value(made))));
    }),
    function("audit", TEXTS_AND_VALUES, 600.0, 12, |made| {
        let error = ToolError::new("CODE", made.text());
        let context = CallContext { caller: Caller::Direct, ..context() };
        audited().refused("echo:any", context, value(made), error);
    }),
    function("call", TEXTS_AND_VALUES, 1_500.0, 24, |made| call("echo:any", made)),
    function("call that fails", TEXTS_AND_VALUES, 1_500.0, 24, |made| call("echo:fail", made)),
    function("call of a tool that there is not", TEXTS_AND_VALUES, 1_500.0, 24, |made| call(&made.text(), made)),
    function("invoke", TEXTS_AND_VALUES, 1_500.0, 24, |made| {
        meta("codecall:invoke", json!({"tool": "echo:any", "input": value(made)}));
    }),
    function("execute", TEXTS, 1_500.0, 40, |made| {
        meta("codecall:execute", json!({"script": made.text()}));
    }),
    function("result of a script", TEXTS_AND_VALUES, 1_500.0, 40, |made| {
        meta("codecall:execute", json!({"script": "return codecallContext", "context": value(made)}));
    }),
    bounded("search", TEXTS, 2_000.0, 12, |made| meta("codecall:search", json!({"query": made.text()}))),
    bounded("search with a filter", TEXTS, 2_000.0, 12, |made| {
        meta(
            "codecall:search",
            json!({"query": "x", "filter": {"appIds": [made.text()]}, "excludeToolNames": [made.text()]}),
        );
    }),
    bounded("describe", TEXTS, 2_000.0, 12, |made| meta("codecall:describe", json!({"toolNames": [made.text()]}))),
    bounded("arguments that do not fit", VALUES, 2_000.0, 12, |made| meta("codecall:describe", value(made))),
    bounded("nearest name", TEXTS, 2_000.0, 3, |made| {
        let names = names();
        black_box(nearest(&made.text(), names.iter().map(String::as_str), 3));
    }),
    bounded("nearest of long names", TEXTS, 2_000.0, 8, |made| {
        let text = made.text();
        let (middle, _) = text.split_at(text.floor_char_boundary(text.len() / 2));
        black_box(nearest("abc", [text.as_str(), middle].into_iter(), 3));
    }),
    bounded("text of a wrong key", TEXTS, 500.0, 8, |made| {
        let text = made.text();
        black_box((
            sanitize_serde_error(&format!("unknown field `{text}`, expected `a` or `b`")),
            with_path(&text, "wrong"),
        ));
    }),
    function("index", TEXTS, 2_000.0, 30, |made| {
        let text = made.text();
        let tool = ToolDefinition { description: text.clone(), title: Some(text), ..definition("long") };
        black_box(snapshot(tool).index().search("long words"));
    }),
    function("index of parameters", SCHEMAS, 3_000.0, 40, |made| {
        let tool = ToolDefinition { input_schema: schema(made), ..definition("long") };
        let snapshot = snapshot(tool);
        black_box(Index::new(snapshot.rows(), &Default::default()).search("p1"));
    }),
    function("query", TEXTS, 1_000.0, 16, |made| {
        black_box(index().search(&made.text()));
    }),
    function("schema", SCHEMAS, 4_000.0, 60, |made| {
        let Made::Schema(schema, value) = made else { return };
        if let Ok(schema) = Schema::new(schema) {
            let _ = black_box(schema.check(value));
        }
    }),
    function("check of an input", SCHEMAS, 6_000.0, 80, |made| {
        let Made::Schema(schema, value) = made else { return };
        if let Ok(tools) = ClientToolset::read(&[json!({"name": "tool", "inputSchema": schema})]) {
            let _ = black_box(tools.check("tool", &value.to_string()));
        }
    }),
    function("call that is checked", SCHEMAS, 6_000.0, 80, |made| {
        let Made::Schema(schema, value) = made else { return };
        let tool = ToolDefinition {
            input_schema: schema.clone(),
            output_schema: Some(schema.clone()),
            ..definition("checked")
        };
        let hub = hub_of(vec![tool]);
        direct(&hub, "echo:checked", value.as_object().cloned().unwrap_or_default());
    }),
    function("declarations", SCHEMAS, 1_000.0, 40, |made| {
        let schema = schema(made);
        let tools = ClientToolset::read(&[json!({"name": "tool", "inputSchema": schema, "outputSchema": schema})]);
        black_box(tools.map(|tools| tools.declarations()).ok());
    }),
    function("declarations of texts", TEXTS, 300.0, 16, |made| {
        let text = made.text();
        let tools =
            ClientToolset::read(&[json!({"name": text, "description": text, "inputSchema": {"description": text}})]);
        black_box(tools.map(|tools| tools.declarations()).ok());
    }),
    function("description of a tool", SCHEMAS, 6_000.0, 80, |made| {
        let tool =
            ToolDefinition { input_schema: schema(made), output_schema: Some(schema(made)), ..definition("described") };
        let hub = hub_of(vec![tool]);
        for format in ["typescript", "json"] {
            ask(&hub, "codecall:describe", json!({"toolNames": ["echo:described"], "format": format}));
        }
    }),
    function("sample of an input", SCHEMAS, 200.0, 8, |made| {
        black_box(sample::input(&schema(made)));
    }),
    function("sample of a result", SCHEMAS, 6_000.0, 80, |made| {
        black_box(sample::result(Some(&schema(made))));
    }),
    function("pages of a result", TEXTS, 100.0, 4, |made| {
        let results = results();
        runtime().block_on(async {
            let Some((handle, mut piece)) = results.put(made.text(), 64 << 10).await else { return };
            while let Some(offset) = piece.next {
                piece = results.read(&handle, offset, 64 << 10).await.expect("a piece");
            }
        });
    }),
    function("terminal", TEXTS, 300.0, 16, |made| {
        let text = made.text();
        black_box((
            terminal::escape_block(&text).len(),
            terminal::escape_line(&text).len(),
            terminal::escape_json(&text).len(),
        ));
        black_box((terminal::truncate(&text, 80).len(), terminal::width(&text)));
    }),
    function("message of a server", READ, 200.0, 30, |made| {
        black_box(fuzzing::incoming(made.text().as_bytes()));
    }),
    function("key of a kept answer", VALUES, 200.0, 12, |made| {
        black_box(canonical(&value(made).as_object().cloned().unwrap_or_default()));
    }),
    bounded("weight", VALUES, 100.0, 1, |made| {
        let Made::Value(value) = made else { return };
        black_box(offload::weight(value));
    }),
];

fn value(made: &Made) -> Value {
    match made {
        Made::Text(text) => json!({"a": text}),
        Made::Value(value) | Made::Schema(_, value) => value.clone(),
    }
}

fn schema(made: &Made) -> Value {
    match made {
        Made::Schema(schema, _) => schema.clone(),
        Made::Text(_) | Made::Value(_) => json!({}),
    }
}

fn redactor() -> &'static Redactor {
    static MADE: OnceLock<Redactor> = OnceLock::new();
    MADE.get_or_init(|| secrets().redactor())
}

fn secrets() -> Arc<SecretRegistry> {
    let secrets = [SECRET, "another secret", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "77777777777777777778"];
    Arc::new(SecretRegistry::new(secrets))
}

fn names() -> &'static Vec<String> {
    static MADE: OnceLock<Vec<String>> = OnceLock::new();
    MADE.get_or_init(|| (0..20_000).map(|at| format!("app{}:tool{at}", at % 7)).collect())
}

fn results() -> Results {
    let mut config = Config::default().result_store;
    (config.enabled, config.max_bytes, config.max_result_bytes) = (true, 1 << 30, 1 << 30);
    Results::new(Arc::new(MemoryResults::new(config)), config, Arc::default())
}

/// Returns the configuration: personal data is masked, secrets are redacted.
fn config() -> Config {
    let mut config = Config::default();
    config.chain.pii = Some(PiiConfig { fields: vec!["*password*".into(), "pin".into()], ..PiiConfig::default() });
    config.secrets = secrets();
    config.policy.limits.timeout_ms = 1_000;
    config.direct_calls.enabled = true;
    config
}

/// Returns a pipeline that only masks personal data.
fn personal() -> &'static Pipeline {
    static MADE: OnceLock<Pipeline> = OnceLock::new();
    MADE.get_or_init(|| {
        let config = Config { secrets: Arc::default(), ..config() };
        Pipeline::configured(catalogue(Vec::new()), &config, &Stores::in_memory(&config), Vec::new())
            .expect("a pipeline")
    })
}

/// Returns a pipeline that writes audit records.
fn audited() -> &'static Pipeline {
    static MADE: OnceLock<Pipeline> = OnceLock::new();
    MADE.get_or_init(|| {
        let file = std::env::temp_dir().join(format!("sweep-audit-{}", std::process::id()));
        let mut config = config();
        config.chain.audit = Some(AuditConfig { file: Some(file.clone()), stderr: false });
        let made = Pipeline::configured(catalogue(Vec::new()), &config, &Stores::in_memory(&config), Vec::new())
            .expect("a pipeline");
        // The pipeline has opened the file, and nothing else needs its path.
        std::fs::remove_file(file).expect("the file is there");
        made
    })
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        app: "echo".into(),
        name: name.into(),
        description: "Gives back what it gets. All of it.".into(),
        input_schema: json!({"type": "object"}),
        source: "inline",
        ..ToolDefinition::default()
    }
}

/// Returns tools that answer with their input. The tool `fail` fails with its input.
fn echo(tools: Vec<ToolDefinition>) -> Inline {
    tools.into_iter().fold(Inline::new("echo"), |echo, tool| {
        echo.define(tool, |call| async move {
            let input = Value::Object(call.input);
            if call.tool.name != "fail" {
                return Ok(input);
            }
            let text = input.to_string();
            Err(ToolError { details: Some(text.clone()), ..ToolError::new("FAILED", text) })
        })
    })
}

fn catalogue(tools: Vec<ToolDefinition>) -> Arc<Catalogue> {
    let upstream: Arc<dyn Upstream> = Arc::new(echo(tools));
    Arc::new(Catalogue::new(vec![(upstream, ToolFilter::default())], ToolPolicy::default(), secrets()))
}

fn snapshot(tool: ToolDefinition) -> Arc<codecall::catalogue::Snapshot> {
    catalogue(vec![tool]).snapshot()
}

/// Returns an index of many tools.
fn index() -> &'static Index {
    static MADE: OnceLock<Index> = OnceLock::new();
    MADE.get_or_init(|| {
        let tool = |at: usize| ToolDefinition {
            description: format!("Lists words of kind {at} and their beta gamma"),
            ..definition(&format!("tool{at}"))
        };
        let catalogue = catalogue((0..500).map(tool).collect());
        Index::new(catalogue.snapshot().rows(), &Default::default())
    })
}

fn hub_of(tools: Vec<ToolDefinition>) -> Arc<Hub> {
    let upstream: Arc<dyn Upstream> = Arc::new(echo(tools));
    runtime().block_on(async { Hub::start(config(), vec![upstream]) }).expect("a hub")
}

fn hub() -> &'static Arc<Hub> {
    static MADE: OnceLock<Arc<Hub>> = OnceLock::new();
    MADE.get_or_init(|| {
        let more = (0..200).map(|at| definition(&format!("tool{at}")));
        hub_of([definition("any"), definition("fail")].into_iter().chain(more).collect())
    })
}

/// Returns a runtime with a single thread.
fn runtime() -> &'static tokio::runtime::Runtime {
    static MADE: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    MADE.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

fn meta(name: &str, arguments: Value) {
    ask(hub(), name, arguments);
}

fn ask(hub: &Arc<Hub>, name: &str, arguments: Value) {
    let answer = runtime().block_on(codecall::meta::call(hub, name, arguments, None, CancellationToken::new()));
    let answer = answer.expect("a meta-tool of that name");
    black_box(answer.content.into_value().to_string());
}

fn call(tool: &str, made: &Made) {
    let input = value(made).as_object().cloned().unwrap_or_default();
    direct(hub(), tool, input);
}

/// Calls a tool as a script does, with a sink.
fn context() -> CallContext {
    let sink: EventSink = Some(Arc::new(|event| {
        black_box(&event);
    }));
    let (timeout, cancel) = (std::time::Duration::from_secs(600), CancellationToken::new());
    CallContext { caller: Caller::Script, run: None, timeout, client: Default::default(), sink, cancel }
}

fn direct(hub: &Arc<Hub>, tool: &str, input: Map<String, Value>) {
    let call = codecall::pipeline::ToolCall { tool: tool.into(), input, context: context(), allowed: None, apps: None };
    let _ = black_box(runtime().block_on(hub.pipeline().call(call)));
}

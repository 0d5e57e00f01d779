use super::*;
use crate::catalogue::{Catalogue, Snapshot, tests::catalogue};
use codecall_base::tool::{ToolError, ToolFilter, ToolResult};
use codecall_config::ToolPolicy;
use codecall_upstream::{BoxFuture, Upstream, UpstreamCall};
use serde_json::{Value, json};
use std::sync::Mutex;
use tokio::sync::watch;

fn found(query: &str) -> Vec<String> {
    let schema = || json!({"type": "object", "properties": {"userId": {"type": "string", "description": "whose"}}});
    let catalogue = catalogue(
        &[
            ("users", "list", "List all users with pagination", schema()),
            ("users", "getProfile", "Get user profile by ID with full details", schema()),
            ("mail", "send_message", "Send an e-mail to someone", json!({})),
            ("b", "twin", "Same words", json!({})),
            ("a", "twin", "Same words", json!({})),
            ("wetter", "holen", "天気を取得", json!({})),
        ],
        ToolFilter::default(),
    );
    let snapshot = catalogue.snapshot();
    let hits = snapshot.index().search(query);
    assert!(hits.iter().all(|(_, score)| *score > 0.0 && *score <= 1.0), "{hits:?}");
    hits.into_iter().map(|(at, _)| snapshot.rows()[at].name.clone()).collect()
}

#[test]
fn the_best_first() {
    assert_eq!(found("get user profile information")[0], "users:getProfile");
    assert_eq!(found("listing users")[0], "users:list");
    assert_eq!(found("Sending messages"), ["mail:send_message"]);
    assert_eq!(found("天気"), ["wetter:holen"]);
}

#[test]
fn equal_scores_in_the_order_of_names() {
    assert_eq!(found("same words"), ["a:twin", "b:twin"]);
}

#[test]
fn what_fits_every_word_best_fits_perfectly() {
    let scores = |query: &str| {
        let tools =
            [("users", "list", "", json!({})), ("users", "get", "", json!({})), ("mail", "send", "", json!({}))];
        let hits = catalogue(&tools, ToolFilter::default()).snapshot().index().search(query);
        hits.into_iter().map(|(_, score)| score).collect::<Vec<_>>()
    };
    assert_eq!(scores("list users")[0], 1.0);
    assert_eq!(scores("list list users"), scores("list users"), "a word counts once");
    let partial = scores("list users quux")[0];
    assert!(partial > 0.5 && partial < 1.0, "{partial}");
}

#[test]
fn nothing_fits_nothing() {
    assert!(found("").is_empty() && found("the of").is_empty() && found("quux").is_empty());
}

/// An app whose tools can change.
struct Growing {
    app: &'static str,
    tools: Mutex<Vec<Arc<ToolDefinition>>>,
    version: watch::Sender<u64>,
}

fn tool(app: &str, name: &str) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition { app: app.into(), name: name.into(), source: "inline", ..ToolDefinition::default() })
}

impl Growing {
    fn new(app: &'static str, names: &[&str]) -> Arc<Self> {
        let tools = names.iter().map(|name| tool(app, name)).collect();
        Arc::new(Self { app, tools: Mutex::new(tools), version: watch::Sender::new(0) })
    }

    fn grow(&self, name: &str) {
        self.tools.lock().expect("not poisoned").push(tool(self.app, name));
        self.version.send_modify(|version| *version += 1);
    }
}

impl Upstream for Growing {
    fn app(&self) -> &str {
        self.app
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn title(&self) -> Option<String> {
        Some(format!("The server of {}", self.app))
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.lock().expect("not poisoned").clone()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(Value::Null.into()) })
    }

    fn tools_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.version.subscribe())
    }
}

fn names(snapshot: &Snapshot, query: &str) -> Vec<String> {
    snapshot.index().search(query).into_iter().map(|(at, _)| snapshot.rows()[at].name.clone()).collect()
}

#[test]
fn a_change_indexes_only_the_tools_of_its_app() {
    let (stable, growing) = (Growing::new("stable", &["list_items"]), Growing::new("growing", &["list_parcels"]));
    let upstreams: [Arc<dyn Upstream>; 2] = [stable, Arc::clone(&growing) as _];
    let catalogue = Catalogue::new(
        upstreams.map(|upstream| (upstream, ToolFilter::default())).into(),
        ToolPolicy::default(),
        Arc::default(),
    );
    let before = catalogue.snapshot();
    assert_eq!(names(&before, "track"), Vec::<String>::new());
    growing.grow("track_parcel");
    catalogue.catch_up();
    // Nobody searches between these two changes.
    growing.grow("weigh_parcel");
    catalogue.catch_up();
    let after = catalogue.snapshot();
    assert_eq!(names(&after, "track"), ["growing:track_parcel"]);
    assert_eq!(names(&after, "weigh"), ["growing:weigh_parcel"]);
    assert_eq!(names(&after, "list items")[0], "stable:list_items");
    let same = |app: &str| Arc::ptr_eq(&before.index().segments().0[app], &after.index().segments().0[app]);
    assert!(same("stable") && !same("growing"));
    // Nor is anything else made again of a tool that has not changed: its compiled schemas stay.
    let kept = |name: &str| match (before.lookup(name), after.lookup(name)) {
        (Some(before), Some(after)) => Arc::ptr_eq(before, after),
        _ => false,
    };
    assert!(kept("stable:list_items") && kept("growing:list_parcels") && !kept("growing:track_parcel"));
    assert_eq!(names(&before, "track"), Vec::<String>::new(), "a snapshot never changes");
}

#[test]
fn every_part_of_a_tool_is_searched() {
    let definition = ToolDefinition {
        title: Some("Reschedule".into()),
        description: "Shifts an appointment. It keeps the participants.".into(),
        input_schema: json!({"properties": {"slotId": {"description": "which hour"}}}),
        tags: vec!["calendar".into()],
        ..(*tool("office", "move_event")).clone()
    };
    let growing = Growing::new("office", &["other"]);
    growing.tools.lock().expect("not poisoned").push(Arc::new(definition));
    let upstream: Arc<dyn Upstream> = growing;
    let catalogue = Catalogue::new(vec![(upstream, ToolFilter::default())], ToolPolicy::default(), Arc::default());
    for query in ["moving", "events", "reschedule", "shift", "participant", "slot", "slotId", "hours", "calendars"] {
        assert_eq!(names(&catalogue.snapshot(), query)[0], "office:move_event", "{query}");
    }
    assert_eq!(names(&catalogue.snapshot(), "office").len(), 2, "the app is a word of all its tools");
    assert_eq!(names(&catalogue.snapshot(), "server").len(), 2, "and so is the title of its server");
}

fn ranked(tools: &[&str], query: &str) -> Vec<(String, f64)> {
    let tools: Vec<(&str, &str, &str, Value)> = tools.iter().map(|name| ("", *name, "", json!({}))).collect();
    let snapshot = catalogue(&tools, ToolFilter::default()).snapshot();
    let hits = snapshot.index().search(query);
    hits.into_iter().map(|(at, score)| (snapshot.rows()[at].name.clone(), score)).collect()
}

#[test]
fn synonyms_find_and_never_outvote() {
    let found = ranked(&["fetch_user", "get_user", "send_mail"], "get user");
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("get_user", "fetch_user"));
    assert!(found[0].1 > found[1].1);
    assert_eq!(ranked(&["delete_user", "send_mail"], "erase")[0].0, "delete_user", "an unknown word by its synonym");
    // Rare as it is, the synonym stays behind the word that many have.
    let tools = ["get_a", "get_b", "get_c", "get_d", "fetch_fetch_fetch"];
    let found = ranked(&tools, "get");
    assert_eq!(found.last().map(|(name, _)| name.as_str()), Some("fetch_fetch_fetch"), "{found:?}");
}

#[test]
fn words_written_together_and_apart() {
    let tools = ["convert_timezone", "listGitHubIssues", "send_mail"];
    assert_eq!(ranked(&tools, "time zones")[0].0, "convert_timezone");
    assert_eq!(ranked(&tools, "github")[0].0, "listGitHubIssues");
    assert_eq!(ranked(&tools, "GitHub")[0].0, "listGitHubIssues");
    assert_eq!(ranked(&tools, "listGitHubIssues")[0], ("listGitHubIssues".into(), 1.0));
    assert_eq!(ranked(&tools, "sendMail")[0].0, "send_mail");
}

#[test]
fn embeddings_of_huge_texts() {
    let long = "list users ".repeat(100_000);
    let tool = ToolDefinition {
        name: long.clone(),
        title: Some(long.clone()),
        description: format!("{long}. {long}"),
        input_schema: json!({"properties": {&long: {"description": long}}}),
        tags: vec![long; 20],
        ..(*tool("app", "")).clone()
    };
    let embedding = fields::embedding(&tool, None);
    assert!(embedding.len() < 8, "the words, and what a cut leaves of one: {embedding}");
    assert!(embedding.values().all(|value| *value > 0.0 && *value < 1.0), "{embedding}");
}

#[test]
fn a_query_ends_where_its_work_is_done() {
    // Every tool has every word, and most of them are synonyms of each other.
    let words = "get fetch read retrieve show view display find search create add make insert delete remove drop erase";
    let tool =
        |at| Arc::new(ToolDefinition { description: words.to_owned(), ..(*tool("app", &format!("t{at}"))).clone() });
    let growing = Growing::new("app", &[]);
    *growing.tools.lock().expect("not poisoned") = (0..2_000).map(tool).collect();
    let upstream: Arc<dyn Upstream> = growing;
    let catalogue = Catalogue::new(vec![(upstream, ToolFilter::default())], ToolPolicy::default(), Arc::default());
    let snapshot = catalogue.snapshot();
    let scores = |query: &str| {
        let hits = snapshot.index().search(query);
        (hits.len(), hits[0].1, hits[1].1)
    };
    assert_eq!(scores(&format!("{words} t7")), (2_000, 1.0, 1.0), "the last word is not read");
    let (tools, first, second) = scores(&format!("t7 {words}"));
    assert!(tools == 2_000 && first > second, "the first word is");
    let fits = |query: &str| {
        let (hits, fit) = snapshot.index().judge(query);
        fit.any(&hits)
    };
    assert!(!fits("get a flight"));
    assert!(
        fits("get show give create add new make start delete remove list all a flight"),
        "the last word might be that of a tool"
    );
}

/// Whether the words of a query are more than incidental in one of the tools that it finds.
fn fits(tools: &[(&str, &str, &str)], query: &str) -> bool {
    let tools: Vec<(&str, &str, &str, Value)> =
        tools.iter().map(|(app, name, description)| (*app, *name, *description, json!({}))).collect();
    let (hits, fit) = catalogue(&tools, ToolFilter::default()).snapshot().index().judge(query);
    fit.any(&hits)
}

#[test]
fn a_general_word_alone_fits_no_query_about_something_else() {
    let tools = [
        ("shop", "create_order", "Create an order. Fails while a payment of the customer is pending."),
        ("shop", "list_orders", "List orders"),
        ("files", "read_file", "Read a file"),
    ];
    for query in ["create order", "list the orders of Ann", "read notes.txt", "show notes.txt", "purchase orders"] {
        assert!(fits(&tools, query), "{query}");
    }
    for query in ["create a calendar entry for Ann", "list employees", "send a refund", "book a flight", ""] {
        assert!(!fits(&tools, query), "{query}");
    }
    // A query of general words, literals and words that say nothing has nothing else to go by.
    for query in [
        "list",
        "list all",
        "show everything",
        "get a list of all available things",
        "create 2 of them",
        "create https://example.org/a.b",
    ] {
        assert!(fits(&tools, query), "{query}");
    }
}

#[test]
fn more_words_about_the_user_change_nothing() {
    let tools = [("chat", "post_message", "Post a message to a channel"), ("files", "read_file", "Read a file")];
    let query = "post a message for grandmother Mathilda, whose birthday is tomorrow, about flowers and a cake";
    assert!(fits(&tools, query) && fits(&tools[..1], query));
}

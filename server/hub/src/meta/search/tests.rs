use super::*;
use codecall_base::tool::{ToolDefinition, ToolError, ToolResult};
use codecall_config::Config;
use codecall_upstream::{Upstream, UpstreamCall};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Tools that are only listed, of an app that may be in trouble.
struct Listed {
    app: &'static str,
    tools: Vec<Arc<ToolDefinition>>,
    trouble: Option<&'static str>,
}

impl Upstream for Listed {
    fn app(&self) -> &str {
        self.app
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.clone()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(Value::Null.into()) })
    }

    fn unavailable_reason(&self) -> Option<String> {
        self.trouble.map(str::to_owned)
    }
}

fn tool(app: &str, name: &str, description: &str, source: &'static str, tags: &[&str]) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        app: app.into(),
        name: name.into(),
        description: description.into(),
        source,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..ToolDefinition::default()
    })
}

fn upstreams(trouble: Option<&'static str>) -> Vec<Arc<dyn Upstream>> {
    let users = vec![
        tool("users", "list", "List users", "inline", &["read"]),
        tool("users", "get", "Get a user", "openapi", &["read"]),
        tool("users", "delete", "Delete a user", "mcp", &["write"]),
    ];
    let mail = vec![tool("mail", "send", &format!("Send a mail {}", "to all of them ".repeat(40)), "inline", &[])];
    vec![
        Arc::new(Listed { app: "users", tools: users, trouble: None }),
        Arc::new(Listed { app: "mail", tools: mail, trouble }),
    ]
}

async fn ask_of(upstreams: Vec<Arc<dyn Upstream>>, arguments: Value) -> Value {
    let hub = Hub::start(Config::default(), upstreams).expect("starts");
    let answer =
        call(&hub, "codecall_search", arguments, None, CancellationToken::new()).await.expect("there is search");
    assert!(!answer.is_error, "{answer:?}");
    answer.content.into_value()
}

async fn ask(arguments: Value) -> Value {
    ask_of(upstreams(None), arguments).await
}

fn names(answer: &Value) -> Vec<&str> {
    answer["tools"].as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect()
}

fn sorted(answer: &Value) -> Vec<&str> {
    let mut names = names(answer);
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_row_has_all_that_a_model_needs_to_choose() {
    let answer = ask(json!({"query": "send mail"})).await;
    let row = &answer["tools"][0];
    assert_eq!(
        (&row["name"], &row["appId"], &row["source"], &row["score"]),
        (&json!("mail:send"), &json!("mail"), &json!("inline"), &json!(1.0))
    );
    let description = row["description"].as_str().expect("a text");
    assert!(description.starts_with("Send a mail to all") && description.ends_with('…') && description.len() < 310);
    assert!(row.get("matchedQueries").is_none() && answer.get("warnings").is_none(), "{answer}");
    assert_eq!(answer["totalIndexed"], 4);
}

#[tokio::test]
async fn filters() {
    for (filter, expected) in [
        (json!({"appIds": ["users"]}), vec!["users:delete", "users:get", "users:list"]),
        (json!({"appIds": "mail"}), vec!["mail:send"]),
        (json!({"tags": ["read", "write"]}), vec!["users:delete", "users:get", "users:list"]),
        (json!({"tags": ["write"]}), vec!["users:delete"]),
        (json!({"appIds": ["users", "mail"], "includeInline": false}), vec!["users:delete", "users:get"]),
        (json!({"includeOpenApi": false, "tags": ["read"]}), vec!["users:list"]),
        (json!({"includeOpenApi": true, "includeInline": true, "tags": ["read"]}), vec!["users:get", "users:list"]),
    ] {
        let answer = ask(json!({"query": "list get delete user send mail", "filter": filter})).await;
        assert_eq!(sorted(&answer), expected, "{filter}");
        assert!(answer.get("warnings").is_none(), "{answer}");
    }
    let answer = ask(json!({"query": "user", "excludeToolNames": ["users.get", "list", "no:such"]})).await;
    assert_eq!(names(&answer), ["users:delete"], "in any spelling");
}

#[tokio::test]
async fn several_queries_are_fused_by_rank() {
    let answer = ask(json!({"queries": ["delete user", "send mail", "delete", "send mail"], "topK": 2})).await;
    assert_eq!(names(&answer), ["users:delete", "mail:send"], "two queries agree on the first");
    assert_eq!(answer["tools"][0]["matchedQueries"], json!(["delete user", "delete"]));
    assert_eq!(answer["tools"][1]["matchedQueries"], json!(["send mail"]), "each query counts once");
    let score = |at: usize| answer["tools"][at]["score"].as_f64().expect("a number");
    assert!(score(0) <= 1.0 && score(0) >= score(1) && score(1) > 0.0, "{answer}");
    let one = ask(json!({"queries": ["send mail"]})).await;
    assert_eq!(one["tools"][0]["matchedQueries"], json!(["send mail"]));
    let both = ask(json!({"query": "send mail", "queries": ["delete user"]})).await;
    assert!(sorted(&both).contains(&"mail:send") && sorted(&both).contains(&"users:delete"), "{both}");
}

#[tokio::test]
async fn the_minimum_score_applies_to_each_query() {
    let all = ask(json!({"query": "delete user"})).await;
    assert_eq!(names(&all).len(), 3);
    let good = ask(json!({"query": "delete user", "minScore": 0.9})).await;
    assert_eq!(names(&good), ["users:delete"]);
    let several = ask(json!({"queries": ["delete user", "send mail"], "minScore": 0.9})).await;
    assert_eq!(sorted(&several), ["mail:send", "users:delete"]);
}

#[tokio::test]
async fn the_threshold_of_the_configuration_applies_to_words() {
    let ask = async |threshold: Option<f64>, arguments: Value| {
        let mut config = Config::default();
        config.search.similarity_threshold = threshold;
        let hub = Hub::start(config, upstreams(None)).expect("starts");
        let answer = call(&hub, "codecall_search", arguments, None, CancellationToken::new()).await.expect("search");
        answer.content.into_value()
    };
    let query = || json!({"query": "delete user"});
    assert_eq!(names(&ask(None, query()).await).len(), 3);
    assert_eq!(names(&ask(Some(0.0), query()).await).len(), 3);
    assert_eq!(names(&ask(Some(0.9), query()).await), ["users:delete"]);
    let several = json!({"queries": ["delete user", "send mail"], "minScore": 0.1});
    assert_eq!(sorted(&ask(Some(0.9), several).await), ["mail:send", "users:delete"]);
    let none = ask(Some(1.0), json!({"query": "user quux"})).await;
    let warning = none["warnings"][0].as_str().expect("a warning");
    assert!(none["tools"] == json!([]) && warning.contains("'search.similarityThreshold'"), "{none}");
    assert!(warning.contains("; the best has 0."), "{warning}");
    // A list has no scores.
    assert_eq!(names(&ask(Some(1.0), json!({"filter": {"appIds": ["users"]}})).await).len(), 3);
}

#[tokio::test]
async fn warnings_say_what_to_do() {
    for (arguments, expected) in [
        (json!({"query": "user", "filter": {"appIds": ["user"]}}), "There is no app 'user'; did you mean 'users'?"),
        (json!({"query": "user", "filter": {"appIds": ["zzz"]}}), "There is no app 'zzz'; there are mail, users"),
        (json!({"query": "user", "filter": {"tags": ["reads"]}}), "There is no tag 'reads'; did you mean 'read'?"),
        (json!({"query": "quux"}), "No tool fits 'quux'; say in other words what the tool should do"),
        (json!({"queries": ["user", "quux"]}), "No tool fits 'quux'; say in other words what the tool should do"),
        (
            json!({"query": "user", "filter": {"appIds": ["mail"]}}),
            "No tool fits 'user' within 'filter' and 'excludeToolNames'; 3 do without them",
        ),
    ] {
        let answer = ask(arguments).await;
        assert_eq!(answer["warnings"][0], expected, "{answer}");
    }
    let high = ask(json!({"query": "user quux", "minScore": 1})).await;
    let warning = high["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.starts_with("No tool fits 'user quux' as well as 'minScore' asks for; the best has 0."),
        "{warning}"
    );
    let down = ask_of(upstreams(Some("The MCP server 'mail' does not work")), json!({"query": "user"})).await;
    assert_eq!(down["warnings"], json!(["The MCP server 'mail' does not work"]));
    assert_eq!(names(&down).len(), 3);
    let none = ask_of(Vec::new(), json!({"query": "user"})).await;
    assert_eq!((&none["warnings"], &none["totalIndexed"]), (&json!(["There are no tools at the moment"]), &json!(0)));
}

/// Returns the text of an answer, which a model reads.
async fn told(upstreams: Vec<Arc<dyn Upstream>>, arguments: Value) -> String {
    let hub = Hub::start(Config::default(), upstreams).expect("starts");
    let answer = call(&hub, "codecall_search", arguments, None, CancellationToken::new()).await.expect("enabled");
    answer.text.unwrap_or_else(|| panic!("{:?}", answer.content))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_reads_signatures() {
    let text = told(upstreams(None), json!({"query": "list users", "topK": 2})).await;
    assert!(text.starts_with("// List users\ncallTool(\"users:list\""), "{text}");
    // More tools than have whole signatures.
    let many = (0..20).map(|at| tool("users", &format!("list{at}"), "List users. At once.", "inline", &[])).collect();
    let many: Arc<dyn Upstream> = Arc::new(Listed { app: "users", tools: many, trouble: None });
    let text = told(vec![Arc::clone(&many)], json!({"query": "list users"})).await;
    assert!(text.starts_with("users:\nlist0() // List users.\nlist1()"), "{text}");
    assert_eq!(text.matches("// List users.").count(), 8, "{text}");
    assert!(text.contains("\nOther tools of these apps:\nusers:\nlist"), "{text}");
    assert!(!text.contains("score") && !text.contains("inline"), "{text}");
    // A list of the tools of an app goes on.
    let text = told(vec![many], json!({"filter": {"appIds": ["users"]}, "topK": 5})).await;
    assert!(text.ends_with("There are 20 in all; go on with offset 5."), "{text}");
    assert_eq!(text.matches("\nlist").count(), 5, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_reads_that_nothing_fits() {
    let text = told(upstreams(None), json!({"query": "play some music"})).await;
    assert_eq!(text, "No tool fits 'play some music'; say in other words what the tool should do");
    let text = told(upstreams(None), json!({"queries": ["delete a calendar event", "send a mail"]})).await;
    assert!(
        text.contains("Nothing fits 'delete a calendar event'; the nearest tools only share a word with it"),
        "{text}"
    );
    assert!(text.contains("send"), "{text}");
}

/// An answer is short, however long signatures and descriptions are.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_reads_little() {
    let properties: Map<String, Value> = (0..200)
        .map(|at| (format!("property_{at}"), json!({"type": "string", "description": "words ".repeat(50)})))
        .collect();
    let required: Vec<String> = (0..200).map(|at| format!("property_{at}")).collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let long = (0..40).map(|at| {
        let tool =
            ToolDefinition::clone(&tool("users", &format!("list{at}"), &"List users ".repeat(200), "inline", &[]));
        Arc::new(ToolDefinition { input_schema: schema.clone(), ..tool })
    });
    let long: Arc<dyn Upstream> = Arc::new(Listed { app: "users", tools: long.collect(), trouble: None });
    for arguments in [
        json!({"query": "list users"}),
        json!({"query": "list users", "topK": 1}),
        json!({"queries": ["list users", "users"]}),
    ] {
        let text = told(vec![Arc::clone(&long)], arguments).await;
        let tokens = codecall_tools::tokens::estimate(&text);
        assert!(tokens < 1_000, "{tokens} tokens: {text}");
    }
}

//! The search, as MCP clients see it.

use crate::support::*;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

fn names(answer: &Value) -> Vec<&str> {
    answer["tools"].as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[tokio::test]
async fn requests_and_answers() {
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let server = Server::start_as(&["--demo"], lifecycle).await;
        let one = server.ask("codecall_search", json!({"query": "list unpaid invoices"})).await;
        assert_eq!(one["tools"].as_array().map(Vec::len), Some(8), "{one}");
        assert_eq!((&one["totalIndexed"], one.get("warnings")), (&json!(23), None));
        let row = one["tools"][0].as_object().expect("a row");
        assert_eq!(row.keys().collect::<Vec<_>>(), ["name", "appId", "source", "description", "score"]);
        assert_eq!((&row["name"], &row["appId"]), (&json!("billing:listInvoices"), &json!("billing")));
        let scores: Vec<f64> =
            one["tools"].as_array().expect("a list").iter().filter_map(|row| row["score"].as_f64()).collect();
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)) && scores.is_sorted_by(|a, b| a >= b));

        let both = json!({"queries": ["list users", "list invoices", "invoices of a user"], "topK": 4});
        let both = server.ask("codecall:search", both).await;
        assert_eq!(both["tools"].as_array().map(Vec::len), Some(4));
        assert_eq!(names(&both)[0], "billing:listInvoices", "two queries want it: {both}");
        assert!(names(&both).contains(&"users:list"), "{both}");
        let matched = both["tools"][0]["matchedQueries"].as_array().expect("a list");
        assert!(matched.contains(&json!("list invoices")) && matched.contains(&json!("invoices of a user")), "{both}");

        let filter = json!({"query": "list", "topK": 50, "filter": {"appIds": ["orders"], "includeOpenApi": false}});
        let filtered = server.ask("codecall.search", filter).await;
        assert!(!names(&filtered).is_empty() && names(&filtered).iter().all(|name| name.starts_with("orders:")));
        let known = json!({"query": "list unpaid invoices", "excludeToolNames": ["billing:listInvoices"]});
        let known = server.ask("codecall_search", known).await;
        assert!(!names(&known).contains(&"billing:listInvoices"), "{known}");
        let good = server.ask("codecall_search", json!({"query": "list invoices", "minScore": 0.95})).await;
        assert_eq!(names(&good), ["billing:listInvoices"]);
        server.end().await;
    }
}

#[tokio::test]
async fn warnings() {
    let folder = Folder::new();
    let config = json!({"mcpServers": {"gone": {"command": "codecall-no-such-program"}}});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--demo", "--config", &config]).await;
    let request = json!({"query": "quux", "filter": {"appIds": ["order"], "tags": ["x"]}});
    let answer = server.ask("codecall_search", request).await;
    let warnings: Vec<&str> = answer["warnings"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for part in ["'gone'", "no app 'order'; did you mean 'orders'?", "no tag 'x'", "No tool fits 'quux'"] {
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:?}");
    }
    assert_eq!(answer["tools"], json!([]));
    server.end().await;
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let server = Server::start(&["--demo"]).await;
    let many: Vec<String> = (0..11).map(|at| format!("query {at}")).collect();
    for (arguments, expected) in [
        (json!({"query": "  "}), "give 1 to 10 queries, none of them empty"),
        (json!({"queries": []}), "give 1 to 10 queries, none of them empty"),
        (json!({"queries": many}), "give 1 to 10 queries, none of them empty"),
        (json!({"query": "x", "minScore": 2}), "'minScore' must be from 0 to 1"),
        (json!({"query": "x", "topK": 0}), "'topK' must be from 1 to 50"),
        (json!({"queries": ["x", 5]}), "'queries[1]': wrong value, expected a string"),
        (
            json!({"query": "x", "filter": {"appIds": ["users", {}]}}),
            "'filter.appIds[1]': wrong value, expected a string",
        ),
        (json!({"query": "x", "excludeToolNames": ["a", "x".repeat(300)]}), "'excludeToolNames[1]' has 300 bytes"),
        (json!({"query": "x", "filter": {"apps": ["users"]}}), "'filter': unknown key 'apps'"),
        (json!({"query": "x", "filter": {"apps": ["users"]}}), "unknown key 'apps'; did you mean 'appIds'?"),
        (json!({"query": "x", "filter": {"includeInline": "no"}}), "'filter.includeInline': wrong value"),
    ] {
        let result = server.call("codecall_search", arguments.clone()).await.expect("a result");
        assert_eq!(result.is_error, Some(true), "{arguments}");
        assert!(text(&result).contains(expected), "{arguments}: {}", text(&result));
    }
    server.end().await;
}

/// Other strategies are available, or the error at the start says how to get them.
#[tokio::test]
async fn a_strategy_that_cannot_work_is_refused_at_the_start() {
    let folder = Folder::new();
    let search = json!({"search": {"strategy": "hybrid", "modelDir": folder.path("s3cret-model")}});
    let config = folder.file("config.json", search.to_string());
    let refused = codecall(&["tools", "--demo", "--config", &config]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let expected = if cfg!(feature = "embeddings") {
        "search.modelDir: config.json cannot be read"
    } else {
        "search.strategy: this program was built without embeddings; build it with `cargo build --release --features embeddings`"
    };
    assert!(refused.stderr.contains(expected) && !refused.stderr.contains("s3cret"), "{refused:?}");
}

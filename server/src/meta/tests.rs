use super::*;
use crate::catalogue::tests::Echo;
use crate::config::Config;
use std::sync::Arc;

fn hub(config: Config) -> Arc<Hub> {
    let schema = || json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let echo = Echo::new(&[
        ("users", "get", "Get a user", schema()),
        ("users", "list", "List users", json!({"type": "object"})),
        ("mail", "fail", "Fail", json!({})),
    ]);
    Hub::start(config, vec![Arc::new(echo)]).expect("starts")
}

async fn ask(name: &str, arguments: Value) -> Answer {
    let hub = hub(Config::default());
    hub.meta(name, arguments, None, CancellationToken::new()).await.expect("there is such a tool")
}

#[test]
fn descriptions_are_short() {
    let lengths: Vec<usize> = ALL.iter().map(|tool| tool.description().len()).collect();
    assert!(lengths.iter().all(|length| *length < 2_048), "{lengths:?}");
    // Four characters a token, which is pessimistic for English. Those of a default configuration.
    let listed = ALL.iter().filter(|tool| tool.is_enabled(&Config::default()));
    let whole: usize = listed.map(|tool| tool.description().len() + tool.input_schema().to_string().len()).sum();
    assert!(whole / 4 < 2_000, "{whole}");
}

#[test]
fn three_spellings() {
    for name in ["codecall:search", "codecall.search", "codecall_search"] {
        assert!(named(name).is_some(), "{name}");
    }
    for name in ["search", "codecall", "codecall__search", "codecall_find"] {
        assert!(named(name).is_none(), "{name}");
    }
}

#[tokio::test]
async fn search() {
    let answer = ask("codecall_search", json!({"queries": ["list users", "get user"], "topK": 2})).await;
    assert!(!answer.is_error);
    assert_eq!(answer.value["totalIndexed"], 3);
    let tools = answer.value["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), 2);
    assert_eq!(
        tools[0].as_object().expect("a row").keys().collect::<Vec<_>>(),
        ["name", "appId", "source", "description", "score", "matchedQueries"]
    );
    let answer = ask("codecall.search", json!({"query": "users", "filter": {"appIds": ["user"]}})).await;
    assert_eq!(answer.value["warnings"][0], "There is no app 'user'; did you mean 'users'?");
}

#[tokio::test]
async fn describe() {
    let answer = ask("codecall_describe", json!({"toolNames": ["users.get", "users:nope", "codecall:execute"]})).await;
    let tool = &answer.value["tools"][0];
    assert_eq!(
        tool.as_object().expect("a row").keys().collect::<Vec<_>>(),
        ["name", "appId", "description", "inputSchema", "outputSchema", "annotations", "usageExamples"]
    );
    assert_eq!(answer.value["notFound"], json!(["users:nope", "codecall:execute"]));
    let answer = ask("codecall_describe", json!({"tools": "users:get", "format": "typescript"})).await;
    assert_eq!(
        answer.value["tools"][0]["signature"],
        "callTool(\"users:get\", input: {\n  id: number;\n}): Promise<unknown>"
    );
}

#[tokio::test]
async fn invoke() {
    let answer = ask("codecall_invoke", json!({"tool": "users:get", "input": {"id": 3}})).await;
    assert_eq!((answer.value, answer.is_error), (json!({"status": "ok", "result": {"id": 3}}), false));
    let answer = ask("codecall_invoke", json!({"tool": "users:get", "input": {}})).await;
    assert_eq!(answer.value["error"]["code"], "INVALID_INPUT");
    assert!(answer.is_error);
    let mut config = Config::default();
    config.direct_calls.enabled = false;
    assert!(hub(config).meta("codecall_invoke", json!({}), None, CancellationToken::new()).await.is_none());
}

#[tokio::test]
async fn execute() {
    let answer = ask("codecall:execute", json!({"script": "return null", "context": "{\"a\": 1}"})).await;
    assert_eq!(answer.value, json!({"status": "ok", "result": null}));
    assert!(answer.meta.expect("statistics")["codecall/stats"]["durationMs"].is_number());
}

#[tokio::test]
async fn requests_that_do_not_fit_say_how_to_mend_them() {
    for (name, arguments, expected) in [
        ("codecall_search", json!({"q": "x"}), "Invalid arguments: unknown key 'q'"),
        (
            "codecall_search",
            json!({}),
            "Invalid arguments: 'query' is missing. Expected { query?: string, queries?: string[], topK?: number",
        ),
        ("codecall_search", json!({"query": "x", "topK": 99}), "Invalid arguments: 'topK' must be from 1 to 50"),
        ("codecall_search", json!({"query": 3}), "Invalid arguments: 'query': wrong value, expected a string"),
        ("codecall_describe", json!({}), "Invalid arguments: missing field `toolNames`"),
        ("codecall_execute", json!({"script": "x", "context": [1]}), "Invalid arguments: 'context' must be an object"),
        ("codecall_execute", json!({"code": "x"}), "Invalid arguments: unknown key 'code'"),
        (
            "codecall_execute",
            json!({"script": "x", "limits": {"timeout": 1}}),
            "Invalid arguments: 'limits': there is no limit 'timeout'",
        ),
        ("codecall_invoke", json!({"tool": "x", "input": 1}), "Invalid arguments: 'input' must be an object"),
    ] {
        let answer = ask(name, arguments).await;
        let text = answer.value.as_str().expect("a text");
        assert!(answer.is_error && text.starts_with(expected), "{text}");
    }
}

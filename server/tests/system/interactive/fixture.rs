//! An MCP server of both lifecycles whose tools ask the client.

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Starts the server. Returns its address.
pub async fn serve() -> String {
    let fixture = Fixture::default();
    let config = StreamableHttpServerConfig::default();
    let service =
        StreamableHttpService::new(move || Ok(fixture.clone()), Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

#[derive(Clone, Default)]
struct Fixture {
    tasks: Arc<TaskManager>,
}

fn greeting(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

fn sampling() -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "6 × 7?"}}]);
    json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 10}})
}

/// Returns what a tool asks, by the keys of its questions.
fn questions(name: &str) -> Value {
    match name {
        "greet" | "ask" => json!({"user_name": greeting("Your name?")}),
        "think" => json!({"answer": sampling()}),
        "where" => json!({"folders": {"method": "roots/list", "params": {}}}),
        "sign_in" => {
            let params = json!({
                "mode": "url", "message": "Sign in", "url": "https://example.com/login?state=1", "elicitationId": "1",
            });
            json!({"page": {"method": "elicitation/create", "params": params}})
        }
        "shout" => json!({"user_name": greeting(&"x".repeat(4_000))}),
        "trick" => json!({"user_name": greeting("key topsecret-1234 is \u{202e}exe\u{200b}.safe\u{1b}")}),
        "nag" => json!({"a": greeting("1"), "b": greeting("2"), "c": greeting("3")}),
        _ => json!({}),
    }
}

/// Describes an answer of a client.
fn described(answer: &Value) -> String {
    let roots = || answer["roots"][0]["uri"].as_str();
    let action = answer["action"].as_str();
    match (action, answer["content"]["name"].as_str(), answer["content"]["text"].as_str().or_else(roots)) {
        (Some(action), Some(name), _) => format!("{action} {name}"),
        (Some(action), None, _) => action.to_owned(),
        (None, _, text) => text.unwrap_or("nothing").to_owned(),
    }
}

fn all_described<'a>(answers: impl Iterator<Item = &'a Value>) -> String {
    answers.map(described).collect::<Vec<_>>().join(", ")
}

/// The result of something that asks, or what it asks first.
enum Asked {
    Answered(String),
    Asking(InputRequiredResult),
}

/// Asks the client as its lifecycle has it.
async fn ask(
    name: &str,
    responses: Option<InputResponses>,
    context: &RequestContext<RoleServer>,
) -> Result<Asked, ErrorData> {
    let Value::Object(questions) = questions(name) else { panic!("an object") };
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        let answers = responses.unwrap_or_default();
        if questions.keys().all(|key| answers.contains_key(key)) {
            return Ok(Asked::Answered(all_described(questions.keys().map(|key| &answers[key]))));
        }
        let requests = serde_json::from_value(Value::Object(questions)).expect("requests");
        return Ok(Asked::Asking(InputRequiredResult::from_input_requests(requests)));
    }
    let mut answers = Vec::new();
    for question in questions.values() {
        let request: ServerRequest = serde_json::from_value(question.clone()).expect("a request");
        let answer = context.peer.send_request(request).await;
        let answer = answer.map_err(|error| ErrorData::internal_error(format!("no answer: {error}"), None))?;
        answers.push(serde_json::to_value(answer).expect("JSON"));
    }
    Ok(Asked::Answered(all_described(answers.iter())))
}

fn page(id: &str) -> ElicitRequestParams {
    let params = json!({"mode": "url", "message": "Open", "url": "https://example.com/page", "elicitationId": id});
    serde_json::from_value(params).expect("a page")
}

async fn page_is_done(context: &RequestContext<RoleServer>, id: &str) {
    let notification =
        CustomNotification::new("notifications/elicitation/complete", Some(json!({"elicitationId": id})));
    let _ = context.peer.send_notification(ServerNotification::CustomNotification(notification)).await;
}

impl Fixture {
    /// Asks in two rounds. The state says which one it is.
    fn rounds(request: CallToolRequestParams) -> CallToolResponse {
        let answers = request.input_responses.unwrap_or_default();
        let again = |questions: Value, state: &str| {
            let requests = serde_json::from_value(questions).expect("requests");
            InputRequiredResult::new(Some(requests), Some(state.into())).into()
        };
        match request.request_state.as_deref() {
            None => again(json!({"first": greeting("1"), "second": greeting("2")}), "one"),
            Some("one") => {
                let all = all_described(answers.values());
                again(json!({"third": sampling()}), &format!("two {all}"))
            }
            Some(state) => {
                let before = state.strip_prefix("two ").expect("the state");
                let text = format!("{before}, {}", all_described(answers.values()));
                CallToolResult::success(vec![ContentBlock::text(text)]).into()
            }
        }
    }

    /// Answers with a task, which asks.
    fn errand(&self) -> CallToolResponse {
        let question: InputRequest = serde_json::from_value(greeting("Your name?")).expect("a request");
        let options = TaskOptions::new().with_poll_interval_ms(50);
        let task = self.tasks.spawn(options, |context| {
            Box::pin(async move {
                let answer = context.request_input("user_name", question).await?;
                let text = format!("task: {}", described(&answer));
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
            })
        });
        CreateTaskResult::new(task).into()
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("fixture", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = [
            "greet",
            "think",
            "where",
            "sign_in",
            "shout",
            "trick",
            "nag",
            "rounds",
            "errand",
            "open_page",
            "page_first",
        ];
        let schema = Arc::new(json!({"type": "object"}).as_object().expect("an object").clone());
        Ok(ListToolsResult::with_all_items(names.map(|name| Tool::new(name, "Asks", Arc::clone(&schema))).to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "rounds" => Ok(Self::rounds(request)),
            "errand" => Ok(self.errand()),
            "open_page" => {
                let page = ServerRequest::ElicitRequest(ElicitRequest::new(page("open_page-1")));
                let answered = context.peer.send_request(page).await;
                answered.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                page_is_done(&context, "open_page-1").await;
                Ok(CallToolResult::success(Vec::new()).into())
            }
            "page_first" => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    page_is_done(&context, "page_first-1").await;
                });
                let data = json!({"elicitations": [page("page_first-1")]});
                Err(ErrorData::new(ErrorCode(-32_042), "Open the page first", Some(data)))
            }
            name => match ask(name, request.input_responses.clone(), &context).await {
                Ok(Asked::Answered(text)) => Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into()),
                Ok(Asked::Asking(required)) => Ok(required.into()),
                Err(error) => Ok(CallToolResult::error(vec![ContentBlock::text(error.message)]).into()),
            },
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("ask", Some("Asks"), None)]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match ask(&request.name, request.input_responses, &context).await? {
            Asked::Asking(required) => Ok(required.into()),
            Asked::Answered(text) => {
                let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
                Ok(GetPromptResult::new(serde_json::from_value(messages).expect("messages")).into())
            }
        }
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template =
            serde_json::from_value(json!({"uriTemplate": "fixture://{id}", "name": "x"})).expect("a template");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(Vec::new()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let name = request.uri.strip_prefix("fixture://").unwrap_or_default().to_owned();
        match ask(&name, request.input_responses, &context).await? {
            Asked::Asking(required) => Ok(required.into()),
            Asked::Answered(text) => {
                Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
            }
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values: Vec<String> = ["1", "2"].iter().map(|end| format!("{}{end}", request.argument.value)).collect();
        let result = json!({"completion": {"values": values}});
        Ok(serde_json::from_value(result).expect("a completion"))
    }
}

//! An upstream that tells secrets wherever it can.

use codecall::client::Client;
use codecall::event::{CallUpdate, LogMessage};
use codecall::tool::{Example, ToolDefinition, ToolError, ToolResult};
use codecall::upstream::{BoxFuture, ResourcesAndPrompts, Upstream, UpstreamCall, UpstreamNotification};
use rmcp::ErrorData;
use rmcp::model::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::sync::broadcast;

/// The texts that the upstream, the model server and scripts tell.
#[derive(Clone)]
pub struct Told {
    /// Where a name belongs.
    pub name: String,
    /// In code: a literal adds an encoding.
    pub text: String,
    /// Everywhere else.
    pub deep: String,
    /// In an answer that comes in small pieces, each of which is searched with what is held back.
    pub streamed: String,
}

impl Told {
    pub fn only(secret: &str) -> Self {
        Self { name: secret.to_owned(), text: secret.to_owned(), deep: secret.to_owned(), streamed: secret.to_owned() }
    }

    /// Returns a literal of a script.
    pub fn literal(&self) -> Value {
        self.text.as_str().into()
    }

    /// Returns a script whose call has the text in its input.
    pub fn input(&self) -> String {
        format!("await callTool('leak:tell', {{ a: {} }}); return 1", self.literal())
    }
}

/// An upstream that tells the secret wherever it can.
pub struct Leaky {
    pub told: Told,
    pub notifications: broadcast::Sender<UpstreamNotification>,
}

impl Upstream for Leaky {
    fn app(&self) -> &str {
        "leak"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let Told { name: short, deep: told, .. } = &self.told;
        let tool = |name: &str| ToolDefinition {
            app: "leak".into(),
            name: name.into(),
            title: Some(format!("With {short}")),
            description: format!("Signs in with {short}: {told}"),
            input_schema: json!({"type": "object", "description": told, "properties": {"a": {"default": told}}}),
            output_schema: Some(json!({"type": "object", "description": told})),
            annotations: Map::from_iter([("title".into(), short.as_str().into())]),
            examples: vec![Example { description: told.clone(), code: format!("callTool('leak:{name}', {{}})") }],
            ..ToolDefinition::default()
        };
        ["tell", "fail", "ask"].map(|name| Arc::new(tool(name))).into()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let Told { name, deep: told, .. } = &self.told;
        let log = LogMessage { level: "info".into(), logger: Some(name.clone()), data: json!({told: told}) };
        call.sink.notify(CallUpdate::Progress { progress: 1.0, total: None, message: Some(told.clone()) });
        call.sink.notify(CallUpdate::Log(log));
        let failed = ToolError { details: Some(json!([told]).to_string()), ..ToolError::new("NO", told.as_str()) };
        let result = if call.tool.name == "fail" { Err(failed) } else { Ok(json!({"told": told, told: 1}).into()) };
        Box::pin(std::future::ready(result))
    }

    fn resources_and_prompts(&self) -> Option<&dyn ResourcesAndPrompts> {
        Some(self)
    }

    fn unavailable_reason(&self) -> Option<String> {
        Some(format!("Cannot sign in with {}", self.told.deep))
    }

    fn oddities(&self) -> Vec<String> {
        vec![format!("a tool is left out: its name is {}", self.told.deep)]
    }
}

fn ready<'a, T: DeserializeOwned + Send + 'a>(value: Value) -> BoxFuture<'a, Result<T, ErrorData>> {
    Box::pin(std::future::ready(Ok(serde_json::from_value(value).expect("of this type"))))
}

impl ResourcesAndPrompts for Leaky {
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>> {
        ready(json!([{"uri": "leak://a", "name": self.told.name}]))
    }

    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>> {
        ready(json!([{"uriTemplate": "leak://{a}", "name": self.told.name}]))
    }

    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>> {
        ready(json!([{"name": "ask", "description": self.told.deep}]))
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _client: Client,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>> {
        match uri {
            "leak://a" => ready(json!({"contents": [{"uri": uri, "text": self.told.deep}]})),
            _ => Box::pin(std::future::ready(Err(ErrorData::resource_not_found(self.told.deep.clone(), None)))),
        }
    }

    fn get_prompt<'a>(
        &'a self,
        _name: &'a str,
        _arguments: Option<Map<String, Value>>,
        _client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>> {
        ready(json!({"messages": [{"role": "user", "content": {"type": "text", "text": self.told.deep}}]}))
    }

    fn set_subscribed<'a>(&'a self, _uri: &'a str, _subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>> {
        Box::pin(std::future::ready(Err(ErrorData::resource_not_found(self.told.deep.clone(), None))))
    }

    fn notifications(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.notifications.subscribe()
    }
}

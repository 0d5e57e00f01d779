//! Resources and prompts.

use crate::input::{ask, field, required, response};
use crate::tools::IMAGE;
use rmcp::ErrorData;
use rmcp::model::*;
use serde_json::json;

/// The resources that are listed.
pub fn resources() -> Vec<Resource> {
    [
        ("test://static-text", "Static text", "text/plain"),
        ("test://static-binary", "Static bytes", "image/png"),
        ("test://watched-resource", "A text to subscribe to", "text/plain"),
        ("test://example-resource", "A text for prompts", "text/plain"),
    ]
    .map(|(uri, name, mime)| Resource::new(uri, name).with_description(name).with_mime_type(mime))
    .into()
}

/// The templates that are listed.
pub fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "Data by id");
    vec![template.with_description("Data of an id").with_mime_type("application/json")]
}

/// A resource that is a text.
pub fn text(uri: &str, mime: &str, text: &str) -> ResourceContents {
    ResourceContents::TextResourceContents {
        uri: uri.into(),
        mime_type: Some(mime.into()),
        text: text.into(),
        meta: None,
    }
}

/// Reads a resource.
pub fn read(uri: &str) -> Result<ResourceContents, ErrorData> {
    match uri {
        "test://static-text" => Ok(text(uri, "text/plain", "This is the content of the static text resource.")),
        "test://watched-resource" => Ok(text(uri, "text/plain", "This text never changes.")),
        "test://example-resource" => Ok(text(uri, "text/plain", "This is an example.")),
        "test://static-binary" => Ok(ResourceContents::BlobResourceContents {
            uri: uri.into(),
            mime_type: Some("image/png".into()),
            blob: IMAGE.into(),
            meta: None,
        }),
        _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
            Some(id) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                Ok(text(uri, "application/json", &data.to_string()))
            }
            None => Err(ErrorData::resource_not_found(format!("Resource not found: {uri}"), Some(json!({"uri": uri})))),
        },
    }
}

/// The prompts that are listed.
pub fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, is_required| {
        PromptArgument::new(name).with_description(format!("The argument {name}")).with_required(is_required)
    };
    vec![
        Prompt::new("test_simple_prompt", Some("A prompt without arguments"), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("A prompt with arguments"),
            Some(vec![argument("arg1", true), argument("arg2", false)]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("A prompt with a resource"),
            Some(vec![argument("resourceUri", true)]),
        ),
        Prompt::new("test_prompt_with_image", Some("A prompt with an image"), None),
        Prompt::new("test_input_required_result_prompt", Some("A prompt that needs the input of a person"), None),
    ]
}

/// Returns a prompt.
pub fn prompt(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let user = |text: &str| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![user("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![user(&format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2")))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = ContentBlock::resource(text(
                &argument("resourceUri"),
                "text/plain",
                "Embedded resource content for testing.",
            ));
            vec![PromptMessage::new(Role::User, resource), user("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(IMAGE, "image/png")),
            user("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => match response(request.input_responses.as_ref(), "user_context") {
            Some(answer) => vec![user(&format!("Prompt with context: {}", field(answer, "context")))],
            None => return Ok(required([("user_context", ask("What is the context?", "context"))]).into()),
        },
        name => return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

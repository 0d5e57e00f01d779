//! `codecall_step`: takes one step of a run whose client owns the tools.

use super::*;
use crate::stateless::{Evaluate, Refusal, StepAnswer};
use codecall_base::event::RunEvent;

pub struct Step;

impl MetaTool for Step {
    fn id(&self) -> &'static str {
        "step"
    }

    fn is_enabled(&self, config: &Config) -> bool {
        config.stateless.enabled
    }

    fn title(&self) -> &'static str {
        "Take a step of a script"
    }

    fn description(&self) -> &'static str {
        include_str!("step.md").trim_end()
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Evaluate>()
    }

    fn output_schema(&self) -> Value {
        let names = || json!({"type": "array", "items": {"type": "string"}});
        let messages = json!({"type": "array", "items": {"type": "object"}});
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["calls", "done", "diverged", "deadlock", "refused"]},
                "id": {"type": "string"},
                "calls": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "name": {"type": "string"},
                            "input": {"type": "object"},
                            "timeoutMs": {"type": "integer"},
                        },
                        "required": ["id", "name", "input", "timeoutMs"],
                    },
                },
                "waiting": names(),
                "abandoned": names(),
                "token": {"type": "string"},
                "messages": messages,
                "outcome": {
                    "type": "object",
                    "properties": {"status": {"type": "string"}, "result": {}, "error": {"type": "object"}, "warnings": names()},
                    "required": ["status"],
                },
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        // A step only computes: the client calls the tools.
        ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let evaluate: Evaluate = match parse(self, request.arguments) {
                Ok(evaluate) => evaluate,
                Err(invalid) => return invalid.into(),
            };
            match request.hub.step(evaluate, request.cancel).await {
                Ok(StepAnswer { value, is_error, messages }) => {
                    if let Some(sink) = &request.sink {
                        messages.into_iter().for_each(|message| sink(RunEvent::Message(message)));
                    }
                    Answer::structured(value, is_error)
                }
                Err(Refusal::Invalid(problem)) => InvalidArguments::new(self, &problem).into(),
                Err(unavailable) => Answer::structured(unavailable.to_json(), true),
            }
        })
    }
}

//! The question whether a call may be made, as the person of a client sees it: with all of the input, in pages.

use crate::pipeline::client::CallClient;
use codecall_base::hidden::visible;
use codecall_store::{ApprovalRequests, ApprovalState, long_members, pages};
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum number of pages that a person goes through in a client. A longer input waits in the store, where it can be read.
const MAX_PAGES: usize = 32;
/// How often the store is asked for a decision while the client is asked.
const LOOK: Duration = Duration::from_millis(500);

const ALLOW: &str = "allow";
const DENY: &str = "deny";
const NEXT: &str = "next page";
const FIRST: &str = "first page";

/// A call that a person decides about.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// All of the input, as JSON text without secrets.
    pub input: &'a str,
    /// The digest of the input that is sent.
    pub digest: &'a str,
}

impl Question<'_> {
    /// Returns the form of a page. Only the last page lets the call be allowed.
    fn form(&self, pages: &[&str], at: usize) -> Value {
        let Self { tool, input, digest } = self;
        let mut message = format!("Allow this call?\nTool: {}\nSHA-256: {digest}", visible(tool));
        // Named before the input, which may hide what follows them.
        if let Some(long) = long_members(input) {
            message += &format!("\nLong members: {}", visible(&long));
        }
        message += &match pages {
            [page] => format!("\nInput: {}", visible(page)),
            _ => {
                let (number, all, bytes) = (at + 1, pages.len(), input.len());
                format!("\nInput, page {number} of {all}, {bytes} bytes in all: {}", visible(pages[at]))
            }
        };
        let decisions: &[&str] = match (at + 1 == pages.len(), pages.len()) {
            (true, 1) => &[ALLOW, DENY],
            (true, _) => &[ALLOW, DENY, FIRST],
            (false, _) => &[NEXT, DENY],
        };
        let schema = json!({
            "type": "object",
            "properties": {
                "decision": {"type": "string", "title": "Decision", "enum": decisions},
                "reason": {"type": "string", "title": "Reason (the agent sees it)"},
            },
            "required": ["decision"],
        });
        json!({"message": message, "requestedSchema": schema})
    }
}

/// Asks the person of a client. Returns the decision, and why; `None`: nobody has decided, or somebody did in the store.
pub async fn ask(
    client: &CallClient,
    question: Question<'_>,
    stored: Option<(&dyn ApprovalRequests, &str)>,
) -> Option<(bool, Option<String>)> {
    let pages = pages(question.input);
    if pages.len() > MAX_PAGES {
        return None;
    }
    let mut at = 0;
    loop {
        let asking = client.confirm(question.form(&pages, at));
        let answer = match stored {
            None => asking.await?,
            Some((requests, id)) => tokio::select! {
                answer = asking => answer?,
                () = decided(requests, id) => return None,
            },
        };
        let reason = answer["content"]["reason"].as_str().map(str::trim).filter(|reason| !reason.is_empty());
        let reason = reason.map(str::to_owned);
        let is_last = at + 1 == pages.len();
        match (answer["action"].as_str(), answer["content"]["decision"].as_str()) {
            (Some("accept"), Some(ALLOW)) if is_last => return Some((true, reason)),
            (Some("accept"), Some(NEXT)) if !is_last => at += 1,
            (Some("accept"), Some(FIRST)) if is_last && at > 0 => at = 0,
            (Some("decline"), _) => return Some((false, reason)),
            (Some("accept"), decision) if decision != Some(ALLOW) => return Some((false, reason)),
            // Nobody has seen the rest of it, or the person has closed the question.
            _ => return None,
        }
    }
}

/// Resolves when a request no longer waits.
async fn decided(requests: &dyn ApprovalRequests, id: &str) {
    loop {
        tokio::time::sleep(LOOK).await;
        let request = requests.get(id).await;
        if request.is_ok_and(|request| request.is_none_or(|request| request.state != ApprovalState::Waiting)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_input_is_shown_and_only_the_last_page_allows() {
        let input = json!({"body": "ä".repeat(5_000), "to": "mallory"}).to_string();
        let question = Question { tool: "mail:send", input: &input, digest: "ab12" };
        let pages = pages(&input);
        assert_eq!((pages.len(), pages.concat()), (3, input.clone()));
        let forms: Vec<Value> = (0..pages.len()).map(|at| question.form(&pages, at)).collect();
        for (at, form) in forms.iter().enumerate() {
            let message = form["message"].as_str().expect("a text");
            let expected = format!(
                "Allow this call?\nTool: mail:send\nSHA-256: ab12\nLong members: \"body\" (10002 bytes)\nInput, page {} of 3, {} bytes in all: ",
                at + 1,
                input.len()
            );
            assert!(message.starts_with(&expected), "{message}");
            let decisions = &form["requestedSchema"]["properties"]["decision"]["enum"];
            let expected = if at == 2 { json!([ALLOW, DENY, FIRST]) } else { json!([NEXT, DENY]) };
            assert_eq!(*decisions, expected);
        }
        assert!(forms[2]["message"].as_str().is_some_and(|message| message.contains("mallory")));
    }
}

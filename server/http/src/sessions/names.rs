//! Names of messages that are unambiguous among replicas: ids of requests to the client, and of events.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rmcp::model::{NumberOrString, RequestId, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use std::sync::Arc;

/// Between the id of a replica and what it names. Ids of replicas do not contain it.
const SEPARATOR: char = '~';
/// Maximum length of the id of a request in the id of an event. Clients send it back in a header.
const MAX_REQUEST_ID_BYTES: usize = 256;

/// An event of a stream that answers a request.
#[derive(Clone, Debug, PartialEq)]
pub struct EventName {
    /// The replica that has sent it.
    pub replica: String,
    /// Its id there.
    pub id: String,
    /// The request; `None`: its id is too long.
    pub request: Option<RequestId>,
}

impl EventName {
    /// Parses the id of an event; `None`: it is not one of a stream that answers a request.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(SEPARATOR);
        let (replica, id, request) = (parts.next()?, parts.next()?, parts.next()?);
        let request = BASE64_URL_SAFE_NO_PAD.decode(request).ok().and_then(|json| serde_json::from_slice(&json).ok());
        Some(Self { replica: replica.to_owned(), id: id.to_owned(), request })
    }

    fn format(replica: &str, id: &str, request: &RequestId) -> String {
        let json = serde_json::to_vec(request).unwrap_or_default();
        let json = if json.len() > MAX_REQUEST_ID_BYTES { &[][..] } else { &json };
        format!("{replica}{SEPARATOR}{id}{SEPARATOR}{}", BASE64_URL_SAFE_NO_PAD.encode(json))
    }
}

/// Names what a replica sends on the stream that answers `request`, or on the client's own stream, whose events have no ids: what
/// it has missed is not sent again.
pub fn named(replica: &str, mut sent: ServerSseMessage, request: Option<&RequestId>) -> ServerSseMessage {
    sent.event_id = match (sent.event_id, request) {
        (Some(id), Some(request)) => Some(EventName::format(replica, &id, request)),
        (Some(_) | None, _) => None,
    };
    sent.message = sent.message.map(|message| match with_named_request(replica, &message) {
        Some(named) => Arc::new(named),
        None => message,
    });
    sent
}

/// Returns a message with the unambiguous id of its request to the client; `None`: it has none.
fn with_named_request(replica: &str, message: &ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
    let name = |id: &RequestId| match id {
        NumberOrString::Number(number) => Some(NumberOrString::String(format!("{replica}{SEPARATOR}{number}").into())),
        NumberOrString::String(_) => None,
    };
    match message {
        ServerJsonRpcMessage::Request(request) => {
            let id = name(&request.id)?;
            let mut request = request.clone();
            request.id = id;
            Some(ServerJsonRpcMessage::Request(request))
        }
        ServerJsonRpcMessage::Notification(notification) => {
            let ServerNotification::CancelledNotification(cancelled) = &notification.notification else { return None };
            let id = name(cancelled.params.request_id.as_ref()?)?;
            let mut cancelled = cancelled.clone();
            cancelled.params.request_id = Some(id);
            let mut notification = notification.clone();
            notification.notification = ServerNotification::CancelledNotification(cancelled);
            Some(ServerJsonRpcMessage::Notification(notification))
        }
        ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => None,
    }
}

/// Returns which replica has sent a request to the client, and its id there. `None`: the id is not one of [`named`].
pub fn request_of(id: &RequestId) -> Option<(String, RequestId)> {
    let NumberOrString::String(text) = id else { return None };
    let (replica, number) = text.split_once(SEPARATOR)?;
    Some((replica.to_owned(), NumberOrString::Number(number.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn server_message(json: serde_json::Value) -> ServerJsonRpcMessage {
        serde_json::from_value(json).expect("a message")
    }

    #[test]
    fn events_and_requests_are_named() {
        let request = NumberOrString::String("a~b \"c\"".into());
        let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
        let sent = named("r1", ServerSseMessage::new("3/5", server_message(ping)), Some(&request));
        let event = EventName::parse(sent.event_id.as_deref().expect("an id")).expect("a name");
        assert_eq!(event, EventName { replica: "r1".into(), id: "3/5".into(), request: Some(request) });
        let message = serde_json::to_value(&*sent.message.expect("a message")).expect("JSON");
        assert_eq!(message["id"], "r1~7");
        let id = NumberOrString::String("r1~7".into());
        assert_eq!(request_of(&id), Some(("r1".to_owned(), NumberOrString::Number(7))));
        let withdrawn = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        let sent = named("r1", ServerSseMessage::new("1", server_message(withdrawn)), None);
        let message = serde_json::to_value(&*sent.message.expect("a message")).expect("JSON");
        assert_eq!((&message["params"]["requestId"], sent.event_id), (&json!("r1~7"), None));
    }

    #[test]
    fn other_ids_are_no_names() {
        for id in [NumberOrString::Number(7), NumberOrString::String("7".into()), NumberOrString::String("a~b".into())]
        {
            assert_eq!(request_of(&id), None, "{id:?}");
        }
        assert!(["", "0", "3/5", "a~b"].iter().all(|id| EventName::parse(id).is_none()));
        let damaged = EventName::parse("a~1/2~!").expect("a name");
        assert_eq!(damaged.request, None);
    }

    #[test]
    fn a_long_id_of_a_request_is_left_out() {
        let request = NumberOrString::String("x".repeat(10_000).into());
        let named = EventName::format("r", "1/2", &request);
        assert_eq!(EventName::parse(&named).map(|event| event.request), Some(None));
    }
}

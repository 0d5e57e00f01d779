//! The stdio transport of MCP: one message per line, with a limit on its length.
//!
//! A line that is too long or malformed fails the call that it answers. If it has no id, a malformed line fails all
//! pending calls, because one of them would never get a response. A line that is too long ends the connection. A
//! response to no pending call is ignored.

use crate::incoming::{self, ID_SEARCH_BYTES, Incoming};
use codecall_base::offload;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many messages are read ahead.
const READ_AHEAD: usize = 16;
/// How much memory the line buffer keeps after a longer line.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// Sends and receives messages as lines.
pub struct LineTransport<W> {
    read: mpsc::Receiver<ServerJsonRpcMessage>,
    write: Arc<tokio::sync::Mutex<Option<W>>>,
    pending: PendingCalls,
}

/// The requests that have no response yet, by their ids, and whether their results stay text.
#[derive(Clone, Default)]
struct PendingCalls(Arc<Mutex<HashMap<RequestId, bool>>>);

impl<W: AsyncWrite + Send + Unpin + 'static> LineTransport<W> {
    /// Creates a transport that reads from one stream, in a task, and writes to another. The task fails with the reason
    /// if it ends before the stream.
    pub fn new(
        from: impl AsyncBufRead + Send + Unpin + 'static,
        to: W,
        max_bytes: usize,
    ) -> (Self, JoinHandle<Result<(), String>>) {
        let (sender, read) = mpsc::channel(READ_AHEAD);
        let pending = PendingCalls::default();
        let reader = tokio::spawn(read_messages(from, sender, pending.clone(), max_bytes));
        (Self { read, write: Arc::new(tokio::sync::Mutex::new(Some(to))), pending }, reader)
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient> for LineTransport<W> {
    type Error = Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        match &message {
            JsonRpcMessage::Request(request) => {
                let stays_text = incoming::stays_text(&request.request);
                self.pending.lock().insert(request.id.clone(), stays_text);
            }
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(cancelled) = &message.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.lock().remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let stream = write.as_mut().ok_or_else(|| Error::from(ErrorKind::NotConnected))?;
            stream.write_all(&line).await?;
            stream.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.read.recv().await
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.read.close();
        if let Some(mut stream) = self.write.lock().await.take() {
            stream.shutdown().await?;
        }
        Ok(())
    }
}

impl PendingCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts a line to messages: one, or several in a batch, as MCP 2025-03-26 allows.
    fn accept_line(&self, line: &[u8]) -> Vec<ServerJsonRpcMessage> {
        if line.trim_ascii_start().first() == Some(&b'[')
            && let Ok(batch) = serde_json::from_slice::<Vec<&RawValue>>(line)
        {
            return batch.iter().flat_map(|message| self.accept_message(message.get().as_bytes())).collect();
        }
        self.accept_message(line)
    }

    /// Converts a message to those that the client gets: itself, or an error for one or for all pending calls.
    fn accept_message(&self, line: &[u8]) -> Vec<ServerJsonRpcMessage> {
        let stays_text = |id: &RequestId| self.lock().get(id).copied().unwrap_or_default();
        match incoming::parse(line, stays_text) {
            Incoming::Ignored => Vec::new(),
            Incoming::Malformed { id: Some(id), reason } => {
                self.fail(&incoming::number(&id), |id| incoming::malformed(id, &reason))
            }
            Incoming::Malformed { id: None, reason } => {
                self.lock().drain().map(|(id, _)| incoming::malformed(id, &reason)).collect()
            }
            Incoming::Message(mut message) | Incoming::Mended(mut message) => {
                if let Some(id) = incoming::answered(&message).as_ref().map(incoming::number) {
                    // The server has responded twice, or after the call was cancelled.
                    if self.lock().remove(&id).is_none() {
                        tracing::debug!("a response to no pending call is ignored");
                        return Vec::new();
                    }
                    incoming::set_id(&mut message, id);
                }
                vec![*message]
            }
        }
    }

    /// Fails the call that a line answers, if its id can be found.
    fn accept_unread(&self, line: &[u8], reason: &str) -> Vec<ServerJsonRpcMessage> {
        let head = &line[..line.len().min(ID_SEARCH_BYTES)];
        let tail = &line[line.len().saturating_sub(ID_SEARCH_BYTES)..];
        let id = incoming::find_id(head, tail).as_ref().map(incoming::number);
        id.map(|id| self.fail(&id, |id| incoming::malformed(id, reason))).unwrap_or_default()
    }

    fn fail(&self, id: &RequestId, error: impl Fn(RequestId) -> ServerJsonRpcMessage) -> Vec<ServerJsonRpcMessage> {
        self.lock().remove_entry(id).map(|(id, _)| error(id)).into_iter().collect()
    }
}

/// Reads messages until the stream or the channel is closed.
///
/// # Errors
/// The stream cannot be read, or a line that is too long has no id.
async fn read_messages(
    mut from: impl AsyncBufRead + Unpin,
    to: mpsc::Sender<ServerJsonRpcMessage>,
    pending: PendingCalls,
    max_bytes: usize,
) -> Result<(), String> {
    let mut line: Vec<u8> = Vec::new();
    // Start, end and length of a line that is too long.
    let mut long: Option<(Vec<u8>, Vec<u8>, usize)> = None;
    loop {
        let available = from.fill_buf().await.map_err(|error| error.to_string())?;
        if available.is_empty() {
            return Ok(());
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        let part = &available[..taken];
        match &mut long {
            Some((_, tail, length)) => {
                append_tail(tail, part);
                *length += taken;
            }
            None if line.len() + taken > max_bytes + 1 => {
                let mut head = std::mem::take(&mut line);
                let length = head.len() + taken;
                let mut tail = head[head.len().saturating_sub(ID_SEARCH_BYTES)..].to_vec();
                append_tail(&mut tail, part);
                head.extend_from_slice(&part[..part.len().min(ID_SEARCH_BYTES)]);
                head.truncate(ID_SEARCH_BYTES);
                long = Some((head, tail, length));
            }
            None => line.extend_from_slice(part),
        }
        from.consume(taken);
        if end.is_none() {
            continue;
        }
        let messages = match long.take() {
            None => match offload::run(line.len(), || pending.accept_line(&line)).await {
                Ok(messages) => messages,
                Err(busy) => pending.accept_unread(&line, &busy.to_string()),
            },
            Some((head, tail, length)) => {
                let message = format!("The response has {length} bytes; at most {max_bytes} are allowed");
                let Some(id) = incoming::find_id(&head, &tail) else { return Err(message) };
                pending.fail(&id, |id| incoming::too_large(id, message.clone()))
            }
        };
        line.clear();
        line.shrink_to(MAX_KEPT_BYTES);
        for message in messages {
            if to.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

fn append_tail(tail: &mut Vec<u8>, part: &[u8]) {
    tail.extend_from_slice(&part[part.len().saturating_sub(ID_SEARCH_BYTES)..]);
    let surplus = tail.len().saturating_sub(ID_SEARCH_BYTES);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::BufReader;

    /// Reads a text while these calls are pending.
    async fn read_text(text: &[u8], calls: &[i64]) -> (Result<(), String>, Vec<Value>) {
        let (sender, mut messages) = mpsc::channel(100);
        let pending = PendingCalls::default();
        pending.lock().extend(calls.iter().map(|id| (RequestId::Number(*id), false)));
        let ended = read_messages(BufReader::with_capacity(16, text), sender, pending, 2_000).await;
        let mut out = Vec::new();
        while let Some(message) = messages.recv().await {
            out.push(serde_json::to_value(message).expect("JSON"));
        }
        (ended, out)
    }

    fn response(id: i64) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "x"}})
    }

    #[tokio::test]
    async fn valid_lines_are_received() {
        let text = format!("not json\n{}\n\n{{\"jsonrpc\":\"2.0\",\n{}\n", response(1), response(2));
        assert_eq!(read_text(text.as_bytes(), &[1, 2]).await, (Ok(()), vec![response(1), response(2)]));
    }

    #[tokio::test]
    async fn a_batch_is_split_into_messages() {
        let text =
            format!("[{}, 1, [{}],{}]\n[]\n[{}\n{}\n", response(2), response(1), response(1), response(3), response(3));
        assert_eq!(read_text(text.as_bytes(), &[1, 2, 3]).await, (Ok(()), vec![response(2), response(1), response(3)]));
    }

    #[tokio::test]
    async fn a_response_to_no_pending_call_is_ignored() {
        let text = format!("{}\n{}\n{}\n", response(1), response(1), response(9));
        assert_eq!(read_text(text.as_bytes(), &[1, 2]).await, (Ok(()), vec![response(1)]));
    }

    #[tokio::test]
    async fn a_long_line_becomes_an_error_with_its_id() {
        let big = "y\\\"id\\\":9".repeat(1_000);
        for line in [
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"x\":\"{big}\"}}}}"),
            format!("{{\"result\":{{\"id\": 3, \"x\":\"{big}\"}},\"jsonrpc\":\"2.0\",\"id\":7}}"),
            format!("{{\"result\":{{\"x\":\"{big}\"}}, \"id\" : 7 , \"jsonrpc\":\"2.0\"}}"),
        ] {
            let (ended, out) = read_text(format!("{line}\n{}\n", response(8)).as_bytes(), &[7, 8]).await;
            assert_eq!(ended, Ok(()), "{}", &line[line.len() - 30..]);
            assert_eq!((&out[0]["id"], &out[1]), (&json!(7), &response(8)));
            let expected = format!("The response has {} bytes; at most 2000 are allowed", line.len() + 1);
            assert_eq!(out[0]["error"]["message"], expected);
        }
    }

    #[tokio::test]
    async fn a_long_line_without_id_ends_the_connection() {
        let (ended, out) = read_text(format!("{}\n", "z".repeat(9_000)).as_bytes(), &[1]).await;
        assert!(ended.is_err() && out.is_empty());
    }

    #[tokio::test]
    async fn a_malformed_line_fails_its_call_or_all_calls() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{deep}}}\n{}\n", response(1));
        let (ended, out) = read_text(text.as_bytes(), &[1, 2, 3]).await;
        assert_eq!((ended, out.len(), &out[1]), (Ok(()), 2, &response(1)));
        assert_eq!((&out[0]["id"], &out[0]["error"]["code"]), (&json!(2), &json!(-32700)));
        let (ended, out) = read_text(format!("{{\"jsonrpc\":\"2.0\",\"result\":{deep}}}\n").as_bytes(), &[1, 2]).await;
        let mut ids: Vec<Option<i64>> = out.iter().map(|message| message["id"].as_i64()).collect();
        ids.sort_unstable();
        assert_eq!((ended, ids), (Ok(()), vec![Some(1), Some(2)]));
        let (_, out) = read_text(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\xfe\"}}\n", &[1]).await;
        assert_eq!(out[0]["error"]["message"], "The response cannot be parsed: it is not UTF-8");
    }
}

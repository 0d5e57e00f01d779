//! MCP over the streams of a child: a message a line, none longer than allowed.
//!
//! A line that is too long or cannot be understood fails the call that it answers; where that cannot be
//! seen, all calls that wait, as one of them would wait in vain. What answers no call is passed over.

use crate::incoming::{self, EDGE, Incoming};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that were read and wait to be taken.
const AHEAD: usize = 16;
/// A line that was longer leaves no memory behind.
const KEPT: usize = 64 * 1024;

/// Both directions.
pub struct Lines<W> {
    read: mpsc::Receiver<ServerJsonRpcMessage>,
    write: Arc<tokio::sync::Mutex<Option<W>>>,
    waiting: Waiting,
}

/// Calls without an answer.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<HashSet<RequestId>>>);

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    /// Read from one stream in a task of its own, which gives why it ended where that is not simply the end
    /// of the stream, and write to another.
    pub fn new(
        from: impl AsyncBufRead + Send + Unpin + 'static,
        to: W,
        longest: usize,
    ) -> (Self, JoinHandle<Result<(), String>>) {
        let (sender, read) = mpsc::channel(AHEAD);
        let waiting = Waiting::default();
        let reading = tokio::spawn(relay(from, sender, waiting.clone(), longest));
        (Self { read, write: Arc::new(tokio::sync::Mutex::new(Some(to))), waiting }, reading)
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient> for Lines<W> {
    type Error = Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        match &message {
            JsonRpcMessage::Request(request) => drop(self.waiting.lock().insert(request.id.clone())),
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.lock().remove(id);
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

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be made of a line: a message, or several in a list, as MCP of 2025-03-26 allows.
    fn messages(&self, line: &[u8]) -> Vec<ServerJsonRpcMessage> {
        if line.trim_ascii_start().first() == Some(&b'[')
            && let Ok(batch) = serde_json::from_slice::<Vec<&RawValue>>(line)
        {
            return batch.iter().flat_map(|message| self.message(message.get().as_bytes())).collect();
        }
        self.message(line)
    }

    /// What is to be made of a message: one for a call that waits, for all of them, or what the server says on its own.
    fn message(&self, line: &[u8]) -> Vec<ServerJsonRpcMessage> {
        match incoming::read(line) {
            Incoming::Noise => Vec::new(),
            Incoming::Broken { id: Some(id), why } => self.failed(&id, |id| incoming::failure(id, &why)),
            Incoming::Broken { id: None, why } => self.lock().drain().map(|id| incoming::failure(id, &why)).collect(),
            Incoming::Message(message) => {
                let answered = match &*message {
                    JsonRpcMessage::Response(response) => Some(&response.id),
                    JsonRpcMessage::Error(error) => error.id.as_ref(),
                    JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
                };
                // Answered twice, or after it was cancelled.
                if answered.is_some_and(|id| !self.lock().remove(id)) {
                    tracing::debug!("an answer to no call is passed over");
                    return Vec::new();
                }
                vec![*message]
            }
        }
    }

    fn failed(&self, id: &RequestId, message: impl Fn(RequestId) -> ServerJsonRpcMessage) -> Vec<ServerJsonRpcMessage> {
        self.lock().take(id).map(message).into_iter().collect()
    }
}

/// Read lines until the end of either side.
///
/// # Errors
/// Why it ended, where that is not simply the end of the stream.
async fn relay(
    mut from: impl AsyncBufRead + Unpin,
    to: mpsc::Sender<ServerJsonRpcMessage>,
    waiting: Waiting,
    longest: usize,
) -> Result<(), String> {
    let mut line: Vec<u8> = Vec::new();
    // Beginning, end and length of a line that is too long.
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
                keep_end(tail, part);
                *length += taken;
            }
            None if line.len() + taken > longest + 1 => {
                let mut head = std::mem::take(&mut line);
                let length = head.len() + taken;
                let mut tail = head[head.len().saturating_sub(EDGE)..].to_vec();
                keep_end(&mut tail, part);
                head.extend_from_slice(&part[..part.len().min(EDGE)]);
                head.truncate(EDGE);
                long = Some((head, tail, length));
            }
            None => line.extend_from_slice(part),
        }
        from.consume(taken);
        if end.is_none() {
            continue;
        }
        let messages = match long.take() {
            None => waiting.messages(&line),
            Some((head, tail, length)) => {
                let message = format!("The answer has {length} bytes; at most {longest} are allowed");
                let Some(id) = incoming::id(&head, &tail) else { return Err(message) };
                waiting.failed(&id, |id| incoming::too_long(id, message.clone()))
            }
        };
        line.clear();
        line.shrink_to(KEPT);
        for message in messages {
            if to.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

fn keep_end(tail: &mut Vec<u8>, part: &[u8]) {
    tail.extend_from_slice(&part[part.len().saturating_sub(EDGE)..]);
    let surplus = tail.len().saturating_sub(EDGE);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::BufReader;

    /// What comes of a text while these calls wait.
    async fn relayed(text: &[u8], calls: &[i64]) -> (Result<(), String>, Vec<Value>) {
        let (sender, mut messages) = mpsc::channel(100);
        let waiting = Waiting::default();
        waiting.lock().extend(calls.iter().map(|id| RequestId::Number(*id)));
        let ended = relay(BufReader::with_capacity(16, text), sender, waiting, 2_000).await;
        let mut out = Vec::new();
        while let Some(message) = messages.recv().await {
            out.push(serde_json::to_value(message).expect("JSON"));
        }
        (ended, out)
    }

    fn answer(id: i64) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "x"}})
    }

    #[tokio::test]
    async fn lines_go_through() {
        let text = format!("not json\n{}\n\n{{\"jsonrpc\":\"2.0\",\n{}\n", answer(1), answer(2));
        assert_eq!(relayed(text.as_bytes(), &[1, 2]).await, (Ok(()), vec![answer(1), answer(2)]));
    }

    #[tokio::test]
    async fn several_messages_in_a_line_are_taken_one_by_one() {
        let text = format!("[{}, 1, [{}],{}]\n[]\n[{}\n{}\n", answer(2), answer(1), answer(1), answer(3), answer(3));
        assert_eq!(relayed(text.as_bytes(), &[1, 2, 3]).await, (Ok(()), vec![answer(2), answer(1), answer(3)]));
    }

    #[tokio::test]
    async fn what_answers_no_call_is_passed_over() {
        let text = format!("{}\n{}\n{}\n", answer(1), answer(1), answer(9));
        assert_eq!(relayed(text.as_bytes(), &[1, 2]).await, (Ok(()), vec![answer(1)]));
    }

    #[tokio::test]
    async fn a_long_line_becomes_an_error_with_its_id() {
        let big = "y\\\"id\\\":9".repeat(1_000);
        for line in [
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"x\":\"{big}\"}}}}"),
            format!("{{\"result\":{{\"id\": 3, \"x\":\"{big}\"}},\"jsonrpc\":\"2.0\",\"id\":7}}"),
            format!("{{\"result\":{{\"x\":\"{big}\"}}, \"id\" : 7 , \"jsonrpc\":\"2.0\"}}"),
        ] {
            let (ended, out) = relayed(format!("{line}\n{}\n", answer(8)).as_bytes(), &[7, 8]).await;
            assert_eq!(ended, Ok(()), "{}", &line[line.len() - 30..]);
            assert_eq!((&out[0]["id"], &out[1]), (&json!(7), &answer(8)));
            let expected = format!("The answer has {} bytes; at most 2000 are allowed", line.len() + 1);
            assert_eq!(out[0]["error"]["message"], expected);
        }
    }

    #[tokio::test]
    async fn a_long_line_without_id_ends_the_connection() {
        let (ended, out) = relayed(format!("{}\n", "z".repeat(9_000)).as_bytes(), &[1]).await;
        assert!(ended.is_err() && out.is_empty());
    }

    #[tokio::test]
    async fn what_is_not_understood_fails_its_call_or_all() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{deep}}}\n{}\n", answer(1));
        let (ended, out) = relayed(text.as_bytes(), &[1, 2, 3]).await;
        assert_eq!((ended, out.len(), &out[1]), (Ok(()), 2, &answer(1)));
        assert_eq!((&out[0]["id"], &out[0]["error"]["code"]), (&json!(2), &json!(-32700)));
        let (ended, out) = relayed(format!("{{\"result\":{deep}}}\n").as_bytes(), &[1, 2]).await;
        let mut ids: Vec<Option<i64>> = out.iter().map(|message| message["id"].as_i64()).collect();
        ids.sort_unstable();
        assert_eq!((ended, ids), (Ok(()), vec![Some(1), Some(2)]));
        let (_, out) = relayed(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\xfe\"}}\n", &[1]).await;
        assert_eq!(out[0]["error"]["message"], "The answer cannot be understood: it is not UTF-8");
    }
}

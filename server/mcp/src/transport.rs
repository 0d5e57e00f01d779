//! The transport of a connection over two streams: one message per line.
//!
//! A line that is not JSON is answered with `-32700`, one that is no message with `-32600`. A notification that MCP does
//! not know is ignored, as MCP says.

use codecall_base::json;
use codecall_base::offload;
use codecall_upstream::BoxFuture;
use rmcp::model::{
    CancelledNotification, ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::{RoleServer, transport::Transport};
use serde_json::Value;
use serde_json::error::Category;
use std::collections::HashSet;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum length of a line, in bytes. A longer one is skipped.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Maximum memory of the values of a message, in bytes.
const MAX_PARSED_BYTES: usize = 64 << 20;
/// How much memory the line buffer keeps after a longer line.
const MAX_KEPT_BYTES: usize = 64 << 10;
/// How long open requests may take after the end of the input. rmcp forwards no notification after the end.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Reads messages of a client, and writes those of the server.
pub struct LineTransport<R, W> {
    reader: BufReader<R>,
    /// The line that is being read. A read that is cancelled continues with it.
    line: Vec<u8>,
    /// Whether the rest of the line is skipped, because it is too long.
    skips: bool,
    /// `None`: it is closed.
    writer: Arc<Mutex<Option<W>>>,
    /// Requests that have no response.
    open: watch::Sender<HashSet<RequestId>>,
    /// Sends the answer to a line that is not a message, before the next line is read.
    answer: Option<BoxFuture<'static, Result<(), Error>>>,
    /// Ends the input when it is cancelled.
    stop: CancellationToken,
    /// Until when open requests may be answered after the end of the input; `None`: it has not ended.
    end: Option<Instant>,
    /// Ends what open requests wait for, if that takes longer than [`GRACE_PERIOD`].
    end_work: Option<Box<dyn FnOnce() + Send>>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    /// Creates a transport. Its input also ends when `stop` is cancelled.
    pub fn new(from: R, to: W, stop: CancellationToken) -> Self {
        let reader = BufReader::with_capacity(64 << 10, from);
        let (writer, open) = (Arc::new(Mutex::new(Some(to))), watch::Sender::default());
        Self { reader, line: Vec::new(), skips: false, writer, open, answer: None, stop, end: None, end_work: None }
    }

    /// Has `end_work` called when requests are still open some time after the end of the input. They can be answered then,
    /// before they are cancelled.
    pub fn with_end_of_work(self, end_work: impl FnOnce() + Send + 'static) -> Self {
        Self { end_work: Some(Box::new(end_work)), ..self }
    }

    /// Reads to the end of a line. Returns `false` at the end of the input. Cancelling it loses nothing.
    async fn read_line(&mut self) -> bool {
        loop {
            let available = match self.reader.fill_buf().await {
                Ok([]) => return false,
                Ok(available) => available,
                Err(error) => {
                    tracing::error!("the input cannot be read: {error}");
                    return false;
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(available.len(), |end| end + 1);
            if !self.skips && self.line.len() + length > MAX_LINE_BYTES {
                tracing::error!("a message is longer than {MAX_LINE_BYTES} bytes and is skipped");
                self.skips = true;
                self.line = Vec::new();
            }
            if !self.skips {
                self.line.extend_from_slice(&available[..length]);
            }
            self.reader.consume(length);
            if end.is_some() {
                if std::mem::take(&mut self.skips) {
                    continue;
                }
                return true;
            }
        }
    }

    /// Reads the next message; `None` at the end of the input. Cancelling it loses nothing.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(answer) = &mut self.answer {
                answer.await.ok()?;
                self.answer = None;
            }
            if !self.read_line().await {
                return None;
            }
            let parsed = offload::run_without_permit(self.line.len(), || parse(&self.line));
            self.line.clear();
            self.line.shrink_to(MAX_KEPT_BYTES);
            match parsed {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(error) => self.answer = Some(Box::pin(self.send(ServerJsonRpcMessage::error(error, None)))),
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let (writer, open) = (Arc::clone(&self.writer), self.open.clone());
        async move {
            let written = write(&writer, &message).await;
            let answered = match message {
                JsonRpcMessage::Response(response) => Some(response.id),
                JsonRpcMessage::Error(error) => error.id,
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if let Some(id) = answered {
                open.send_if_modified(|open| open.remove(&id));
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let stop = self.stop.clone();
        let message = match self.end {
            Some(_) => None,
            None => stop.run_until_cancelled(self.next()).await.flatten(),
        };
        match &message {
            Some(JsonRpcMessage::Request(request)) => {
                self.open.send_if_modified(|open| open.insert(request.id.clone()));
            }
            // A cancelled request has no response.
            Some(JsonRpcMessage::Notification(notification)) => {
                if let ClientNotification::CancelledNotification(CancelledNotification { params, .. }) =
                    &notification.notification
                    && let Some(id) = &params.request_id
                {
                    self.open.send_if_modified(|open| open.remove(id));
                }
            }
            Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {}
            None => {
                let end = *self.end.get_or_insert_with(|| Instant::now() + GRACE_PERIOD);
                let mut open = self.open.subscribe();
                let is_late = tokio::time::timeout_at(end, open.wait_for(HashSet::is_empty)).await.is_err();
                if is_late && let Some(end_work) = self.end_work.take() {
                    end_work();
                    let _ = tokio::time::timeout(GRACE_PERIOD, open.wait_for(HashSet::is_empty)).await;
                }
            }
        }
        message
    }

    async fn close(&mut self) -> Result<(), Error> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}

/// Writes a message as a line.
async fn write<W: AsyncWrite + Unpin>(writer: &Mutex<Option<W>>, message: &ServerJsonRpcMessage) -> Result<(), Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut writer = writer.lock().await;
    let writer = writer.as_mut().ok_or_else(|| Error::from(ErrorKind::NotConnected))?;
    writer.write_all(&line).await?;
    writer.flush().await
}

/// Parses a line; `None` for one that needs no answer.
fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, ErrorData> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    if let Err(too_large) = json::check_size(line, line.len() + MAX_PARSED_BYTES) {
        return Err(ErrorData::invalid_request(format!("The message is too large: {too_large}"), None));
    }
    let error = match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    if let Category::Syntax | Category::Eof = error.classify() {
        let message = format!("Parse error: the line is not JSON at column {}", error.column());
        return Err(ErrorData::new(ErrorCode::PARSE_ERROR, message, None));
    }
    // Notifications are not answered.
    let is_notification = |value: &Value| value["method"].is_string() && value.get("id").is_none();
    match serde_json::from_slice::<Value>(line) {
        Ok(value) if is_notification(&value) => Ok(None),
        Ok(_) => Err(ErrorData::invalid_request("Invalid request", None)),
        Err(_) => Err(ErrorData::new(ErrorCode::PARSE_ERROR, "Parse error: the line is not JSON", None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &[u8]) -> Option<i32> {
        match parse(line) {
            Ok(message) => message.map(|_| 0),
            Err(error) => Some(error.code.0),
        }
    }

    #[test]
    fn a_line_is_a_message_or_an_error() {
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Some(0));
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n"), Some(0));
        for line in [&b"{"[..], b"hello", b"{\"id\": 1,}", b"\xff\xfe", b"[1"] {
            assert_eq!(code(line), Some(ErrorCode::PARSE_ERROR.0), "{line:?}");
        }
        assert_eq!(code(b"[]"), Some(ErrorCode::INVALID_REQUEST.0));
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":1}"#), Some(ErrorCode::INVALID_REQUEST.0));
        for line in [&b""[..], b" \r\n", br#"{"jsonrpc":"2.0","method":7}"#] {
            assert!(matches!(code(line), None | Some(-32600)), "{line:?}");
        }
        assert_eq!(code(br#"{"method":"textDocument/didOpen","params":{}}"#), None);
    }
}

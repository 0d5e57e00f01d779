//! The transport of a connection over two streams: one message per line.
//!
//! A line that is not JSON is answered with `-32700`, one that is no message with `-32600`. A notification that MCP does
//! not know is ignored, as MCP says.

use super::open_calls::{self, OpenCalls};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcRequest, ServerJsonRpcMessage};
use rmcp::{RoleServer, transport::Transport};
use serde_json::Value;
use serde_json::error::Category;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Maximum length of a line, in bytes. A longer one is skipped.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Calls that are read, but have not begun. Many at once would take memory for no use, as they begin in turn.
const MAX_BEGINNING: usize = 32;
/// How much memory the line buffer keeps after a longer line.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Writes the messages of a server, each whole, even if its writer is dropped in the middle of it.
#[derive(Clone)]
pub struct MessageWriter(Arc<Mutex<Option<Lines>>>);

impl MessageWriter {
    /// Creates a writer on a stream.
    pub fn new(to: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Lines { stream: Box::new(to), line: Vec::new(), written: 0 }))))
    }

    /// Writes a message. The future holds it as a line only.
    ///
    /// # Errors
    /// The stream fails, or is closed.
    pub fn write(&self, message: &ServerJsonRpcMessage) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let (lines, line) = (Arc::clone(&self.0), serde_json::to_vec(message));
        async move {
            let mut line = line?;
            line.push(b'\n');
            let mut lines = lines.lock().await;
            let lines = lines.as_mut().ok_or_else(|| Error::from(ErrorKind::NotConnected))?;
            lines.finish().await?;
            (lines.line, lines.written) = (line, 0);
            lines.finish().await
        }
    }

    /// Closes the stream.
    async fn close(&self) {
        drop(self.0.lock().await.take());
    }
}

/// The output of a connection.
struct Lines {
    stream: Box<dyn AsyncWrite + Send + Unpin>,
    /// The line that is being written.
    line: Vec<u8>,
    /// How much of it has been written.
    written: usize,
}

impl Lines {
    /// Writes the rest of the line. Cancelling it loses nothing.
    async fn finish(&mut self) -> Result<(), Error> {
        while self.written < self.line.len() {
            match self.stream.write(&self.line[self.written..]).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
        }
        (self.line, self.written) = (Vec::new(), 0);
        self.stream.flush().await
    }
}

/// Reads messages of a client, and writes those of the server.
pub struct LineTransport<R> {
    reader: BufReader<R>,
    /// The line that is being read. A read that is cancelled continues with it.
    line: Vec<u8>,
    /// Whether the rest of the line is skipped, because it is too long.
    skips: bool,
    writer: MessageWriter,
    /// Calls that rmcp does not answer.
    calls: Arc<OpenCalls>,
    /// One permit for each call that may be read before it has begun.
    beginning: Arc<Semaphore>,
    /// That of the next call.
    permit: Option<OwnedSemaphorePermit>,
    /// An answer to a line that is not a message, which is sent before the next line is read.
    answer: Option<ServerJsonRpcMessage>,
    /// Ends the input when it is cancelled.
    stop: CancellationToken,
}

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    /// Creates a transport. Its input also ends when `stop` is cancelled.
    pub fn new(from: R, writer: MessageWriter, calls: Arc<OpenCalls>, stop: CancellationToken) -> Self {
        let reader = BufReader::with_capacity(64 << 10, from);
        let beginning = Arc::new(Semaphore::new(MAX_BEGINNING));
        Self { reader, line: Vec::new(), skips: false, writer, calls, beginning, permit: None, answer: None, stop }
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

    /// Reads the next message; `None` at the end of the input.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        if self.permit.is_none() {
            // The semaphore is never closed.
            self.permit = Arc::clone(&self.beginning).acquire_owned().await.ok();
        }
        loop {
            if let Some(answer) = self.answer.clone() {
                // The client may not read; its next message is read nevertheless.
                self.writer.write(&answer).await.ok()?;
                self.answer = None;
            }
            if !self.read_line().await {
                return None;
            }
            let parsed = parse(&self.line);
            self.line.clear();
            self.line.shrink_to(MAX_KEPT_BYTES);
            match parsed {
                Ok(Some(mut message)) => {
                    if let ClientJsonRpcMessage::Request(JsonRpcRequest { request, .. }) = &mut message
                        && let ClientRequest::CallToolRequest(call) = request
                    {
                        // It is given back when the call has begun, and its request is dropped.
                        call.extensions.insert(Arc::new(self.permit.take()));
                    }
                    return Some(message);
                }
                Ok(None) => {}
                Err(error) => self.answer = Some(ServerJsonRpcMessage::error(error, None)),
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for LineTransport<R> {
    type Error = Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let writing = (!open_calls::is_placeholder(&message)).then(|| self.writer.write(&message));
        async move {
            match writing {
                Some(writing) => writing.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.next()).await.flatten()
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.calls.close().await;
        self.writer.close().await;
        Ok(())
    }
}

/// Parses a line; `None` for one that needs no answer.
fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, ErrorData> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
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
    use rmcp::model::{CustomResult, RequestId, ServerResult};

    fn code(line: &[u8]) -> Option<i32> {
        match parse(line) {
            Ok(message) => message.map(|_| 0),
            Err(error) => Some(error.code.0),
        }
    }

    /// A notification is given up when its answer cannot wait any longer. What follows must not be in the middle of it.
    #[tokio::test]
    async fn a_line_is_whole_although_its_writer_is_dropped() {
        let (to, mut from) = tokio::io::duplex(8);
        let writer = MessageWriter::new(to);
        let message = |text: &str| {
            let result = ServerResult::CustomResult(CustomResult(text.into()));
            ServerJsonRpcMessage::response(result, RequestId::Number(1))
        };
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), writer.write(&message("one")));
        assert!(given_up.await.is_err(), "nobody reads");
        let second = tokio::spawn(writer.write(&message("two")));
        let mut lines = BufReader::new(&mut from).lines();
        for text in ["one", "two"] {
            let line = lines.next_line().await.expect("read").expect("a line");
            assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON")["result"], text);
        }
        second.await.expect("not cancelled").expect("written");
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

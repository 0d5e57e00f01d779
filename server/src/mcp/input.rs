//! The input of a connection, which signals its end.

use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// A reader that cancels a token at its end.
pub struct Input<R> {
    inner: R,
    ended: CancellationToken,
}

impl<R> Input<R> {
    /// Wraps `inner`, whose end or error cancels `ended`.
    pub fn new(inner: R, ended: CancellationToken) -> Self {
        Self { inner, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        match &read {
            Poll::Pending => {}
            Poll::Ready(Ok(())) if buffer.filled().len() > before || buffer.remaining() == 0 => {}
            Poll::Ready(Ok(()) | Err(_)) => self.ended.cancel(),
        }
        read
    }
}

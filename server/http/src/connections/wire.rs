//! The stream of a connection.

use super::Connection;
use axum::body::Bytes;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A stream that ends if the client does not read, and from which bytes can be read again.
pub struct Wire {
    stream: TcpStream,
    /// What is read before the stream.
    unread: Bytes,
    connection: Arc<Connection>,
    /// How long a write may take.
    timeout: Duration,
    /// When that is over for a write that waits. In a box: few do.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    /// Creates the stream of a connection. A write may take `timeout`.
    pub fn new(stream: TcpStream, timeout: Duration, connection: Arc<Connection>) -> Self {
        Self { stream, unread: Bytes::new(), connection, timeout, blocked: None }
    }

    /// Lets bytes be read before all others.
    pub fn unread(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            // A copy: they may be a part of a buffer.
            self.unread = [bytes, &self.unread].concat().into();
        }
    }

    /// Waits until there is something to read, which may be the end.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_read_ready(context)
    }

    /// Waits until the client closes the connection, which is not seen while there is something to read.
    pub fn poll_closed(&self, context: &mut Context<'_>) -> Poll<()> {
        if !self.unread.is_empty() {
            return Poll::Pending;
        }
        match self.stream.poll_peek(context, &mut ReadBuf::new(&mut [0])) {
            Poll::Ready(Ok(1..)) | Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(()),
        }
    }

    /// Notes whether what is written waits for the client, and ends the stream if it does so for too long.
    fn written(&mut self, written: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.connection.is_blocked.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.timeout)));
        blocked.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

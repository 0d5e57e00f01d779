//! The stream of a connection.

use super::Connection;
use axum::body::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutWriter;

/// A stream that ends if the client does not read, and from which bytes can be read again.
pub struct Wire {
    stream: Pin<Box<TimeoutWriter<TcpStream>>>,
    /// What is read before the stream.
    unread: Bytes,
    connection: Arc<Connection>,
}

impl Wire {
    /// Creates the stream of a connection. A write may take `timeout`.
    pub fn new(stream: TcpStream, timeout: Duration, connection: Arc<Connection>) -> Self {
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(timeout));
        Self { stream: Box::pin(stream), unread: Bytes::new(), connection }
    }

    /// Lets bytes be read before all others.
    pub fn unread(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            // A copy: they may be a part of a buffer.
            self.unread = [bytes, &self.unread].concat().into();
        }
    }

    /// Waits for a future until the client closes the connection, which is not seen while there is something to read.
    pub async fn run_until_closed<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            value = future => Some(value),
            () = self.closed(), if self.unread.is_empty() => None,
        }
    }

    /// Waits until there is something to read, which may be the end.
    pub async fn readable(&self) -> io::Result<()> {
        self.tcp().readable().await
    }

    fn tcp(&self) -> &TcpStream {
        let stream: &TimeoutWriter<TcpStream> = &self.stream;
        stream.get_ref()
    }

    async fn closed(&self) {
        if matches!(self.tcp().peek(&mut [0]).await, Ok(1..)) {
            std::future::pending().await
        }
    }

    /// Notes whether what is written waits for the client.
    fn written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.connection.is_blocked.store(written.is_pending(), Ordering::Relaxed);
        written
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return self.stream.as_mut().poll_read(context, buffer);
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write(context, bytes);
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write_vectored(context, slices);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

//! The body of a request, which has to come in time: one byte now and then does not keep a request active.

use super::seats::Seat;
use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A body with a limit on the time that all of it takes.
pub struct TimedBody {
    body: Incoming,
    ends: Instant,
    /// Set when the time is over.
    timed_out: Arc<AtomicBool>,
    /// Made when the body has to be waited for.
    sleep: Option<Pin<Box<Sleep>>>,
    /// Its connection; `None`: the body is there.
    seat: Option<Seat>,
}

impl TimedBody {
    /// Limits a body of a connection. `timed_out` is set if it does not come in time.
    pub fn new(body: Incoming, timeout: Duration, seat: Seat, timed_out: Arc<AtomicBool>) -> Self {
        let seat = Some(seat).filter(|_| !body.is_end_stream());
        if let Some(seat) = &seat {
            seat.set_receiving(true);
        }
        Self { body, ends: Instant::now() + timeout, timed_out, sleep: None, seat }
    }

    fn received(&mut self) {
        if let Some(seat) = self.seat.take() {
            seat.set_receiving(false);
        }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // A client that always has some bytes ready does not get more time.
        let mut is_late = self.seat.is_some() && Instant::now() >= self.ends;
        if !is_late {
            if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
                if frame.as_ref().is_none_or(Result::is_err) || self.body.is_end_stream() {
                    self.received();
                }
                return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
            }
            let ends = self.ends;
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(ends)));
            is_late = sleep.as_mut().poll(context).is_ready();
        }
        if !is_late {
            return Poll::Pending;
        }
        self.timed_out.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(Error::new(ErrorKind::TimedOut, "the body took too long").into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        self.received();
    }
}

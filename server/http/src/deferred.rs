//! Responses that come later than the layers of the router are passed.
//!
//! Each layer holds its future, and parts of the request, until its response is there. A call of a tool may wait for minutes. So
//! the layers pass an empty response, which has the future of the one to send.

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};

/// The future of a response. A response can be cloned, but this is taken once.
#[derive(Clone)]
struct Later(Arc<Mutex<Option<BoxFuture<'static, Response>>>>);

impl Later {
    fn take(response: &mut Response) -> Option<BoxFuture<'static, Response>> {
        response.extensions_mut().remove::<Self>()?.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns an empty response, for which [`resolved`] returns that of a future.
pub fn later(response: impl Future<Output = Response> + Send + 'static) -> Response {
    let later = Later(Arc::new(Mutex::new(Some(Box::pin(response)))));
    let mut response = Body::empty().into_response();
    response.extensions_mut().insert(later);
    response
}

/// Calls a function with a response when it is there.
pub fn inspect(mut response: Response, see: impl FnOnce(&Response) + Send + 'static) -> Response {
    match Later::take(&mut response) {
        Some(coming) => later(async move {
            let response = coming.await;
            see(&response);
            response
        }),
        None => {
            see(&response);
            response
        }
    }
}

/// Returns a response, or the future of one that comes later. It gets the headers that layers have added to the empty one.
pub fn split(mut response: Response) -> Result<Response, BoxFuture<'static, Response>> {
    let Some(coming) = Later::take(&mut response) else { return Ok(response) };
    let mut headers = std::mem::take(response.headers_mut());
    // That of the empty one.
    headers.remove(CONTENT_LENGTH);
    if headers.is_empty() {
        return Err(coming);
    }
    let headers = Box::new(headers);
    Err(Box::pin(async move {
        let mut response = coming.await;
        response.headers_mut().extend(*headers);
        response
    }))
}

/// Waits for a response that comes later.
pub async fn resolved(response: Response) -> Response {
    match split(response) {
        Ok(response) => response,
        Err(coming) => coming.await,
    }
}

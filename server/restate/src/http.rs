//! Serves the endpoint of the SDK, and tells its handlers what their journals say.

use crate::journal;
use crate::protocol;
use futures_util::FutureExt as _;
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::{Endpoint, HandleOptions, ProtocolMode, ResponseBody};
use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long requests may go on after the end.
const GRACE: Duration = Duration::from_secs(10);
/// How long it waits if no connection can be accepted, as there are no descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the head of a response waits for its first message.
const HEAD: Duration = Duration::from_millis(20);

/// Serves until it is cancelled.
pub async fn serve(endpoint: Endpoint, listener: TcpListener, cancel: CancellationToken) {
    serve_with(move |request| answer(endpoint.clone(), request), listener, cancel).await;
}

/// Answers requests until it is cancelled.
async fn serve_with<Answer, Answering, B>(answer: Answer, listener: TcpListener, cancel: CancellationToken)
where
    Answer: Fn(Request<Incoming>) -> Answering + Clone + Send + 'static,
    Answering: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = cancel.cancelled() => break,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let answer = answer.clone();
        let service = service_fn(move |request| answer(request).map(Ok::<_, Infallible>));
        let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%peer, "a connection of Restate has ended: {error}");
            }
        });
    }
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

async fn answer(
    endpoint: Endpoint,
    request: Request<Incoming>,
) -> Response<Either<Either<journal::Response<ResponseBody>, ResponseBody>, Full<Bytes>>> {
    let options = HandleOptions { protocol_mode: ProtocolMode::BidiStream };
    if !request.uri().path().contains("/invoke/") {
        return endpoint.handle_with_options(request, options).map(|body| Either::Left(Either::Right(body)));
    }
    let (parts, body) = request.into_parts();
    let (attempt, body) = match journal::Request::read(body).await {
        Ok(read) => read,
        Err(error) => return said(StatusCode::BAD_REQUEST, Bytes::from(error.to_string())),
    };
    if attempt.has_output() {
        let mut response = said(StatusCode::OK, protocol::end());
        if let Some(version) = parts.headers.get(CONTENT_TYPE) {
            response.headers_mut().insert(CONTENT_TYPE, version.clone());
        }
        return response;
    }
    let (parts, body) = endpoint.handle_with_options(Request::from_parts(parts, body), options).into_parts();
    let body = journal::Response::begin(attempt, body, HEAD).await;
    Response::from_parts(parts, Either::Left(Either::Left(body)))
}

fn said<B: Body>(status: StatusCode, body: Bytes) -> Response<Either<B, Full<Bytes>>> {
    let mut response = Response::new(Either::Right(Full::new(body)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;

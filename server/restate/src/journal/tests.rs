use super::*;
use crate::protocol::Value;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use prost::Message as _;
use std::convert::Infallible;

/// A message as Restate sends it.
fn message_of(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("short");
    [&kind.to_be_bytes()[..], &[0, 0], &length.to_be_bytes(), content].concat()
}

fn start(known_entries: u32) -> Vec<u8> {
    message_of(START, &Start { known_entries }.encode_to_vec())
}

fn state(key: &'static str, value: &'static str) -> Vec<u8> {
    let state = SetState { key: key.into(), value: Some(Value { content: value.into() }) };
    message_of(SET_STATE, &state.encode_to_vec())
}

/// How long the head of a response waits here.
const LONGEST: Duration = Duration::from_secs(5);

const INPUT: u16 = 0x0400;
const CALL: u16 = 0x040D;
const SIGNAL: u16 = 0xFBFF;

/// A body that comes in pieces of a length.
fn pieces(bytes: &[u8], length: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin + use<> {
    let pieces: Vec<_> = bytes.chunks(length).map(Bytes::copy_from_slice).collect();
    StreamBody::new(stream::iter(pieces).map(|piece| Ok(Frame::data(piece))))
}

async fn whole(body: impl Body<Data = Bytes, Error = Infallible>) -> Vec<u8> {
    body.collect().await.expect("reads").to_bytes().to_vec()
}

async fn read(bytes: &[u8], length: usize) -> (Arc<Attempt>, Vec<u8>) {
    let (attempt, request) = Request::read(pieces(bytes, length)).await.expect("reads");
    let rest = whole(request).await;
    (attempt, rest)
}

#[tokio::test]
async fn a_journal_is_read_in_any_pieces_and_the_request_stays_whole() {
    let bytes = [
        start(5),
        message_of(INPUT, b"a script"),
        state("begun", "at noon"),
        message_of(CALL, &[7; 300]),
        message_of(RUN, b""),
        message_of(OUTPUT, b""),
        message_of(SIGNAL, b"after the journal"),
    ]
    .concat();
    let expected = Journal { states: vec![("begun".into(), "at noon".into())], has_run: true, has_output: true };
    for length in 1..=bytes.len() {
        let (attempt, rest) = read(&bytes, length).await;
        assert_eq!((&attempt.journal, &rest), (&expected, &bytes), "pieces of {length} bytes");
    }
}

#[tokio::test]
async fn what_follows_the_journal_is_not_read() {
    let begin = [start(2), message_of(INPUT, b""), message_of(CALL, b"")].concat();
    let bytes = [begin, state("begun", "later"), message_of(RUN, b""), message_of(OUTPUT, b"")].concat();
    assert_eq!(read(&bytes, 5).await.0.journal, Journal::default());
}

#[tokio::test]
async fn an_invocation_that_begins_is_not_waited_for() {
    // Restate sends nothing more than this, and waits.
    let first = Bytes::from(start(1));
    let body = stream::iter([Ok::<_, Infallible>(Frame::data(first))]).chain(stream::pending());
    let (attempt, _) = Request::read(StreamBody::new(body)).await.expect("reads");
    assert_eq!(attempt.journal, Journal::default());
}

#[tokio::test]
async fn other_bytes_are_passed_on() {
    for bytes in [&b""[..], b"no messages", &[0xFF; 40], &start(9)] {
        let (attempt, rest) = read(bytes, 3).await;
        assert_eq!((&attempt.journal, &rest[..]), (&Journal::default(), bytes));
    }
}

#[tokio::test]
async fn a_step_is_stored_when_restate_says_so() {
    let (begin, end) = ([start(1), message_of(INPUT, b"")].concat(), message_of(SIGNAL, b"no"));
    let bytes = [&begin[..], &message_of(COMMAND_ACK, &[8, 1]), &end].concat();
    let passed = [begin, end].concat();
    for length in 1..=bytes.len() {
        let (attempt, request) = Request::read(pieces(&bytes, length)).await.expect("reads");
        assert!(!attempt.is_stored.is_cancelled(), "pieces of {length} bytes");
        // The SDK does not know this message.
        assert_eq!(whole(request).await, passed, "pieces of {length} bytes");
        attempt.run_stored().await;
    }
}

#[tokio::test]
async fn a_step_asks_when_it_is_stored() {
    let bytes = [message_of(CALL, b"1"), message_of(RUN, b"2"), message_of(OUTPUT, b"3")].concat();
    let mut expected = bytes.clone();
    expected[9 + 2] = 0x80;
    for length in 1..=bytes.len() {
        let response = Response::begin(Arc::default(), pieces(&bytes, length), LONGEST).await;
        assert_eq!(whole(response).await, expected, "pieces of {length} bytes");
    }
}

#[tokio::test]
async fn a_response_begins_with_its_first_message_or_without_it_when_that_is_late() {
    let first = message_of(CALL, b"1");
    for length in [1, first.len()] {
        let response = Response::begin(Arc::default(), pieces(&first, length), LONGEST).await;
        assert!(response.first.is_some(), "pieces of {length} bytes");
        assert_eq!(whole(response).await, first);
    }
    let ended = Response::begin(Arc::default(), pieces(b"", 1), LONGEST).await;
    assert_eq!(whole(ended).await, b"");
    let late = stream::once(async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from(message_of(CALL, b"1"))))
    });
    let response = Response::begin(Arc::default(), StreamBody::new(late), Duration::from_millis(1)).await;
    assert!(response.first.is_none());
    assert_eq!(whole(response).await, first);
}

#[tokio::test]
async fn a_handler_knows_its_own_attempt_only() {
    let journal = Journal { states: vec![("begun".into(), "at noon".into())], ..Journal::default() };
    let body = stream::once(async {
        let attempt = attempt();
        assert_eq!((attempt.state_set("begun"), attempt.state_set("other")), (Some("at noon".into()), None));
        Ok(Frame::data(Bytes::from("seen")))
    });
    let attempted = Arc::new(Attempt { journal, ..Attempt::default() });
    assert_eq!(whole(Response::begin(attempted, StreamBody::new(body), LONGEST).await).await, b"seen");
    assert_eq!(attempt().state_set("begun"), None);
}

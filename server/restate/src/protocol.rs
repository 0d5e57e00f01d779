//! Messages of the service protocol of Restate, as far as the SDK does not tell its handlers of them; versions 5 to 7.
//!
//! <https://github.com/restatedev/service-protocol/blob/main/dev/restate/service/protocol.proto>

use bytes::BytesMut;
use hyper::body::Bytes;

/// Length of what precedes the content of a message: its type, flags and length.
const HEADER_BYTES: usize = 8;
/// The flag of a command whose sender is told when it is stored; in the third byte.
const REQUESTED_ACK: u8 = 0x80;

/// Types of messages.
pub const START: u16 = 0x0000;
const END: u16 = 0x0003;
pub const COMMAND_ACK: u16 = 0x0004;
pub const OUTPUT: u16 = 0x0401;
pub const SET_STATE: u16 = 0x0403;
pub const RUN: u16 = 0x0411;

/// The first message of a request.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Start {
    /// Number of messages that follow and are the journal.
    #[prost(uint32, tag = "3")]
    pub known_entries: u32,
}

/// The command that sets a state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SetState {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(message, optional, tag = "3")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    #[prost(bytes = "bytes", tag = "1")]
    pub content: Bytes,
}

/// Returns the message that ends an invocation.
pub fn end() -> Bytes {
    let mut message = [0; HEADER_BYTES];
    message[..2].copy_from_slice(&END.to_be_bytes());
    Bytes::copy_from_slice(&message)
}

/// A message with its header.
pub struct Message(BytesMut);

impl Message {
    /// Its type.
    pub fn kind(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// Its content, as that of another type: what cannot be read is empty.
    pub fn content<M: prost::Message + Default>(&self) -> M {
        M::decode(&self.0[HEADER_BYTES..]).unwrap_or_default()
    }

    /// Lets Restate say when this command is stored.
    pub fn request_ack(&mut self) {
        self.0[2] |= REQUESTED_ACK;
    }

    /// Appends it to others. Nothing is copied if it follows them in the stream too.
    pub fn append_to(self, bytes: &mut BytesMut) {
        bytes.unsplit(self.0);
    }
}

/// Divides a stream of bytes into messages.
#[derive(Default)]
pub struct Messages(BytesMut);

impl Messages {
    /// Adds the bytes that follow.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next message; `None`: it is not there yet.
    pub fn next(&mut self) -> Option<Message> {
        let (&[_, _, _, _, length @ ..], content) = self.0.split_first_chunk::<HEADER_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        (length <= content.len()).then(|| Message(self.0.split_to(HEADER_BYTES + length)))
    }

    /// Returns the bytes that are no message yet.
    pub fn rest(&mut self) -> Bytes {
        self.0.split().freeze()
    }
}

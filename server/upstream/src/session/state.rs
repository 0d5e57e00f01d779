//! How the connection to a server is at a moment.

use rmcp::RoleClient;
use rmcp::service::Peer;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// The state of a connection.
#[derive(Clone)]
pub enum ConnectionState {
    /// There is no connection. A call makes one.
    Idle(Wake),
    /// It is connected when it is its turn, and before others when it is needed.
    Queued(Wake),
    /// An attempt to connect is under way that calls wait for.
    Starting(Instant),
    /// Calls can be made.
    Connected(Connection),
    /// The connection has ended, for this reason. It is connected again soon; a call does so at once.
    Lost(Wake, String),
    /// It could not be connected: calls fail with this reason.
    Disconnected(String),
}

/// Cancelled when somebody needs the connection.
pub type Wake = CancellationToken;

/// A connection to a server.
#[derive(Clone)]
pub struct Connection {
    pub peer: Peer<RoleClient>,
    /// Cancelled when the server turns out to be gone: all calls fail then.
    pub lost: CancellationToken,
}

impl Connection {
    /// Whether the server is gone, as far as is known.
    fn is_gone(&self) -> bool {
        self.lost.is_cancelled() || self.peer.is_transport_closed()
    }
}

impl ConnectionState {
    /// Whether an attempt to connect has begun.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Idle(_) | Self::Queued(_) => false,
            Self::Starting(_) | Self::Connected(_) | Self::Lost(..) | Self::Disconnected(_) => true,
        }
    }

    /// Whether an attempt to connect is under way or waits for its turn.
    pub fn is_starting(&self) -> bool {
        matches!(self, Self::Queued(_) | Self::Starting(_))
    }

    /// Whether there is no connection, and a call makes one.
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_) | Self::Lost(..))
    }

    /// Says that somebody needs the connection.
    pub fn wake(&self) {
        match self {
            Self::Idle(wake) | Self::Queued(wake) | Self::Lost(wake, _) => wake.cancel(),
            Self::Starting(_) | Self::Connected(_) | Self::Disconnected(_) => {}
        }
    }

    /// Does the same, and returns whether there is a connection, or it could not be made.
    pub fn wake_until_decided(&self) -> bool {
        self.wake();
        match self {
            Self::Connected(connection) => !connection.is_gone(),
            Self::Disconnected(_) => true,
            Self::Idle(_) | Self::Queued(_) | Self::Lost(..) | Self::Starting(_) => false,
        }
    }

    /// Whether there was a connection, and it is lost.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Lost(..) => true,
            Self::Connected(connection) => connection.is_gone(),
            Self::Idle(_) | Self::Queued(_) | Self::Starting(_) | Self::Disconnected(_) => false,
        }
    }

    /// Returns why no call can be made at the moment; `None`: it can, or makes a connection.
    pub fn unavailable_reason(&self, app: &str) -> Option<String> {
        match self {
            Self::Idle(_) | Self::Connected(_) => None,
            Self::Queued(_) => Some(format!("The MCP server '{app}' is still starting: others start first")),
            Self::Starting(since) => {
                let seconds = since.elapsed().as_secs();
                Some(format!("The MCP server '{app}' is still starting, for {seconds} s so far"))
            }
            Self::Lost(_, reason) | Self::Disconnected(reason) => Some(reason.clone()),
        }
    }
}

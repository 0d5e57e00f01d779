//! Postgres as the kit uses it: a database for each attempt, and what a database server does to its clients.
//!
//! It speaks as much of the protocol as that takes: opening a connection, and statements without results.

use crate::postgres_server::Server;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long a database server may take to do something.
const LIMIT: Duration = Duration::from_secs(30);

/// A database server.
pub struct Database {
    server: Server,
    pub address: SocketAddr,
}

impl Database {
    /// Starts it; `None`: Postgres is not installed.
    pub async fn start() -> Option<Self> {
        let server = tokio::task::spawn_blocking(Server::start).await.ok().flatten()?;
        let url = server.url();
        let address = url.split(['@', '/']).find_map(|part| part.parse().ok()).expect("an address");
        Some(Self { server, address })
    }

    /// Opens a connection. `None`: it is refused.
    pub async fn connect(&self) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        let parameters = b"user\0codecall\0database\0postgres\0\0";
        let mut message = u32::try_from(parameters.len() + 8).ok()?.to_be_bytes().to_vec();
        message.extend(196_608_u32.to_be_bytes());
        message.extend(parameters);
        stream.write_all(&message).await.ok()?;
        until_ready(&mut stream).await?;
        Some(stream)
    }

    /// Executes a statement.
    pub async fn execute(&self, sql: &str) -> Option<()> {
        let mut stream = self.connect().await?;
        let mut message = vec![b'Q'];
        message.extend(u32::try_from(sql.len() + 5).ok()?.to_be_bytes());
        message.extend(sql.as_bytes());
        message.push(0);
        stream.write_all(&message).await.ok()?;
        until_ready(&mut stream).await
    }

    /// Takes all connections that are left.
    pub async fn exhaust(&self) -> Vec<TcpStream> {
        let mut taken = Vec::new();
        while let Some(stream) = self.connect().await {
            taken.push(stream);
        }
        taken
    }

    /// Ends all connections as an administrator does.
    pub async fn terminate(&self) {
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        let _ = self.execute(others).await;
    }

    /// Stops the server as a crash does, and starts it again after a time.
    pub async fn crash(&self, down: Duration) {
        tokio::task::block_in_place(|| {
            self.server.stop();
            std::thread::sleep(down);
            self.server.begin();
        });
        let _ = tokio::time::timeout(LIMIT, async {
            while self.connect().await.is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    }
}

/// Reads messages until the server waits for a statement. `None`: there is an error.
async fn until_ready(stream: &mut TcpStream) -> Option<()> {
    loop {
        let kind = stream.read_u8().await.ok()?;
        let length = stream.read_u32().await.ok()?;
        let mut body = vec![0; length.checked_sub(4)? as usize];
        stream.read_exact(&mut body).await.ok()?;
        match kind {
            b'Z' => return Some(()),
            b'E' => return None,
            _ => {}
        }
    }
}

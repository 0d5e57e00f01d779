//! Postgres as the kit uses it: a database for each attempt, and what a database server does to its clients.
//!
//! It speaks as much of the protocol as that takes: opening a connection, and statements with one value at most.

use crate::postgres_server::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
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

    /// Executes a statement. Returns the first value of its first row, or nothing.
    pub async fn execute(&self, sql: &str) -> Option<String> {
        let mut stream = self.connect().await?;
        let mut message = vec![b'Q'];
        message.extend(u32::try_from(sql.len() + 5).ok()?.to_be_bytes());
        message.extend(sql.as_bytes());
        message.push(0);
        stream.write_all(&message).await.ok()?;
        until_ready(&mut stream).await
    }

    /// Stops the server as an administrator does, and starts it again after a time.
    pub async fn restart(&self, down: Duration) {
        let Some(folder) = self.execute("SHOW data_directory").await else { return };
        let file = std::path::Path::new(&folder).join("postmaster.pid");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let Some(id) = text.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw) else { return };
        let _ = kill_process(id, Signal::INT);
        let began = Instant::now();
        while file.exists() && began.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.begin(down).await;
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
        tokio::task::block_in_place(|| self.server.stop());
        self.begin(down).await;
    }

    async fn begin(&self, down: Duration) {
        tokio::time::sleep(down).await;
        tokio::task::block_in_place(|| self.server.begin());
        let _ = tokio::time::timeout(LIMIT, async {
            while self.connect().await.is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    }
}

/// Reads messages until the server waits for a statement. Returns the first value; `None`: there is an error.
async fn until_ready(stream: &mut TcpStream) -> Option<String> {
    let mut first = None;
    loop {
        let kind = stream.read_u8().await.ok()?;
        let length = stream.read_u32().await.ok()?;
        let mut body = vec![0; length.checked_sub(4)? as usize];
        stream.read_exact(&mut body).await.ok()?;
        match kind {
            b'Z' => return Some(first.unwrap_or_default()),
            b'E' => return None,
            // The number of columns, and the length of the first one.
            b'D' if first.is_none() => first = body.get(6..).map(|value| String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
    }
}

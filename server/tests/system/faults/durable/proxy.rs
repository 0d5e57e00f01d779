//! Passes TCP connections on, and lets them fail: a balancer before servers, a bad network before a database or a tool.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The state of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Network {
    /// Whether new connections end at once.
    refuses: bool,
    /// Whether bytes wait.
    is_paused: bool,
    /// Connections of an earlier number are closed.
    dropped: u64,
    /// To those who have opened a connection of an earlier number, the other side has closed it; the other side does not
    /// know.
    half_closed: u64,
}

/// A listener, and where its connections go. It ends with the runtime of the test.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    network: Arc<watch::Sender<Network>>,
}

impl Proxy {
    /// Starts one. Each connection goes to the next target that accepts it.
    pub async fn start(targets: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let proxy = Self { address, targets: Arc::new(Mutex::new(targets)), network: Arc::default() };
        let (accepting, next) = (proxy.clone(), AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let proxy = accepting.clone();
                let first = next.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move { proxy.pass(client, first).await });
            }
        });
        proxy
    }

    pub fn set_targets(&self, targets: Vec<SocketAddr>) {
        *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = targets;
    }

    /// Closes all connections.
    pub fn drop_all(&self) {
        self.network.send_modify(|network| network.dropped += 1);
    }

    /// Closes all connections at the side that has opened them.
    pub fn half_close_all(&self) {
        self.network.send_modify(|network| network.half_closed += 1);
    }

    /// Lets bytes wait, or go on.
    pub fn pause(&self, is_paused: bool) {
        self.network.send_modify(|network| network.is_paused = is_paused);
    }

    /// Ends new connections at once, or no more.
    pub fn refuse(&self, refuses: bool) {
        self.network.send_modify(|network| network.refuses = refuses);
    }

    async fn pass(&self, client: TcpStream, first: usize) {
        let network = self.network.subscribe();
        let began = *network.borrow();
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if began.refuses || targets.is_empty() {
            return;
        }
        for at in 0..targets.len() {
            let Ok(target) = TcpStream::connect(targets[(first + at) % targets.len()]).await else { continue };
            let _ = (client.set_nodelay(true), target.set_nodelay(true));
            let ((from, to), (back, forth)) = (client.into_split(), target.into_split());
            tokio::join!(copy(from, forth, network.clone(), began, false), copy(back, to, network, began, true));
            return;
        }
    }
}

/// Copies bytes of one direction until the connection ends. `is_back`: to the side that has opened it.
async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
    began: Network,
    is_back: bool,
) {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let now = *network.borrow_and_update();
        if now.dropped != began.dropped {
            return;
        }
        if now.half_closed != began.half_closed {
            // Towards the opener it ends. What the opener sends goes nowhere, and the other side hears nothing.
            if is_back {
                let _ = to.shutdown().await;
            }
            let _ = network.wait_for(|now| now.dropped != began.dropped).await;
            return;
        }
        if now.is_paused {
            let _ = network.changed().await;
            continue;
        }
        let read = tokio::select! {
            read = from.read(&mut bytes) => read,
            _ = network.changed() => continue,
        };
        let Ok(length @ 1..) = read else { break };
        // What was read before a pause goes on after it.
        let is_lost = |now: &Network| now.dropped != began.dropped || now.half_closed != began.half_closed;
        let now = network.wait_for(|now| !now.is_paused || is_lost(now)).await.map(|now| *now);
        if now.is_ok_and(|now| is_lost(&now)) {
            continue;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

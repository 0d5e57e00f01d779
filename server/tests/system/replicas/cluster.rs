//! A Postgres server, servers that share it, and a balancer in front of them.

use crate::model_server::{HttpProcess, http_client};
use crate::postgres_server;
use crate::support::*;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Servers of one database. Dropping it ends all.
pub struct Cluster {
    config: String,
    folder: Folder,
    balanced: Vec<Option<HttpProcess>>,
    ports: Vec<u16>,
    balancer: Option<(Child, String)>,
    _postgres: postgres_server::Server,
}

impl Cluster {
    /// Starts the database.
    pub async fn start(mut config: Value) -> Self {
        let postgres = tokio::task::spawn_blocking(postgres_server::Server::start).await.expect("started");
        let postgres = postgres.expect("Postgres is installed (the package postgresql)");
        let folder = Folder::new();
        config["store"] = json!({"url": postgres.url()});
        config["stateDir"] = json!(folder.path("state"));
        let config = folder.file("config.json", config.to_string());
        Self { config, folder, balanced: Vec::new(), ports: Vec::new(), balancer: None, _postgres: postgres }
    }

    pub fn config(&self) -> &str {
        &self.config
    }

    /// Starts a server.
    pub async fn server(&self) -> HttpProcess {
        HttpProcess::start(&["--config", &self.config]).await
    }

    /// Starts a server of the demo shop.
    pub async fn demo(&self) -> HttpProcess {
        HttpProcess::start(&["--config", &self.config, "--demo"]).await
    }

    /// Kills a server.
    pub async fn kill(&self, server: &HttpProcess) {
        let id = server.pid().to_string();
        assert!(Command::new("kill").args(["-9", &id]).status().await.expect("kill").success());
    }

    /// Starts a balancer, round robin and without stickiness, for up to so many servers.
    pub async fn balance(&mut self, most: usize) {
        let listeners: Vec<std::net::TcpListener> =
            (0..=most).map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let mut ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().expect("an address").port()).collect();
        drop(listeners);
        let front = ports.pop().expect("one more");
        let mut text = format!(
            "global\n  maxconn 8000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n  \
             retries 3\n  option redispatch 1\n  retry-on conn-failure\nfrontend front\n  bind 127.0.0.1:{front}\n  \
             default_backend servers\nbackend servers\n  balance roundrobin\n  option httpchk\n  http-check send meth GET uri /readyz ver HTTP/1.1 hdr host localhost\n  \
             timeout check 5s\n  default-server check inter 500ms fall 2 rise 1\n"
        );
        for (at, port) in ports.iter().enumerate() {
            let _ = writeln!(text, "  server s{at} 127.0.0.1:{port}");
        }
        let file = self.folder.file("haproxy.cfg", text);
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f", &file]).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().expect("starts");
        self.ports = ports;
        self.balancer = Some((child, format!("http://127.0.0.1:{front}/mcp")));
    }

    /// Returns the address of the balancer.
    pub fn url(&self) -> &str {
        &self.balancer.as_ref().expect("it is started").1
    }

    /// Returns how many servers are behind the balancer.
    pub fn balanced(&self) -> usize {
        self.balanced.iter().flatten().count()
    }

    /// Adds a server to the balancer, and waits until it is used.
    pub async fn add(&mut self) {
        let port = self.ports[self.balanced.len()].to_string();
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--http", &port, "--config", &self.config]);
        let server = HttpProcess::start_as(&mut command).await;
        let ready = format!("{}/readyz", server.url);
        self.balanced.push(Some(server));
        let began = tokio::time::Instant::now();
        while !http_client().get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()) {
            assert!(began.elapsed() < TIMEOUT, "it does not get ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The balancer looks every 500 ms.
        let health = self.url().replace("/mcp", "/healthz");
        while !http_client().get(&health).send().await.is_ok_and(|answer| answer.status().is_success()) {
            assert!(began.elapsed() < TIMEOUT, "the balancer does not use it");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }

    /// Kills the first server behind the balancer.
    pub async fn kill_first(&mut self) {
        if let Some(server) = self.balanced.iter_mut().find_map(Option::take) {
            self.kill(&server).await;
        }
    }
}

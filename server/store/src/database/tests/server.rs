//! A Postgres server on a temporary folder; `None` where there is none. The tests of the whole program use it too.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Server {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    user: Option<&'static str>,
}

impl Server {
    pub fn start() -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let programs =
            versions.flatten().map(|entry| entry.path().join("bin")).find(|bin| bin.join("initdb").exists())?;
        let port = std::net::TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        // Postgres refuses to run as root.
        let user = rustix_is_root().then_some("postgres");
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("codecall-postgres-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).ok()?;
        let server = Self { folder, programs, port, user };
        if let Some(user) = user {
            Command::new("chown").arg(user).arg(&server.folder).status().ok()?;
        }
        let data = server.folder.join("data").display().to_string();
        server.run(
            "initdb",
            &["-D", &data, "-A", "trust", "-U", "codecall", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"],
        )?;
        server.begin()?;
        Some(server)
    }

    pub fn begin(&self) -> Option<()> {
        let folder = self.folder.display();
        let (data, log) = (format!("{folder}/data"), format!("{folder}/log"));
        let options =
            format!("-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off", self.port);
        self.run("pg_ctl", &["-D", &data, "-w", "-l", &log, "-o", &options, "start"])
    }

    pub fn stop(&self) -> Option<()> {
        let data = self.folder.join("data").display().to_string();
        self.run("pg_ctl", &["-D", &data, "-m", "immediate", "stop"])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Option<()> {
        let program = self.programs.join(program);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups", "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let quiet = std::process::Stdio::null;
        let status = command.args(arguments).current_dir("/").stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
        status.ok()?.success().then_some(())
    }

    pub fn url(&self) -> String {
        format!("postgres://codecall@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn rustix_is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}

//! `codecall auth`: logins to MCP servers over HTTP.

use super::sources::open_config;
use super::store::open_database;
use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use codecall_config::Config;
use codecall_config::UpstreamKind;
use codecall_store::SqlCredentials;
use codecall_upstream::oauth::{Authorizer, CredentialState, Login, Prompt};
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Log in to MCP servers over HTTP, and out.
#[derive(Args, Debug)]
pub struct Auth {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Log in to a server with a browser, or with a code on another device.
    Login(LogIn),
    /// Revoke and remove the tokens of a server.
    Logout(LogOut),
    /// Show which servers there are tokens for.
    Status(AuthStatus),
}

#[derive(Args, Debug)]
struct LogIn {
    /// The server, as the configuration names it.
    #[arg(value_name = "SERVER")]
    server: String,
    /// Enter a code on another device, where the authorization server offers it.
    #[arg(long)]
    device: bool,
    /// Ask for this scope too; may be given more than once.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Print the address, and open no browser.
    #[arg(long)]
    no_browser: bool,
    /// Configuration, as for other commands.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct LogOut {
    /// The server, as the configuration names it.
    #[arg(value_name = "SERVER")]
    server: String,
    /// Configuration, as for other commands.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct AuthStatus {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Configuration, as for other commands.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Auth {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            AuthCommand::Login(login) => login.execute().await,
            AuthCommand::Logout(logout) => logout.execute().await,
            AuthCommand::Status(status) => status.execute().await,
        }
    }
}

impl LogIn {
    async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let authorizer = authorizer(&config, &self.server)?;
        let prompt = Terminal { opens_browser: !self.no_browser && std::io::stderr().is_terminal() };
        let login = Login { device: self.device, scopes: self.scope };
        let server = &self.server;
        let failed = |reason: String| {
            let reason = config.secrets.redactor().redact_text(&reason).into_owned();
            CommandError::new(format!("{server}: {reason}")).with_help("see docs/operate/authorization.md")
        };
        authorizer.log_in(&login, &prompt).await.map_err(failed)?;
        output::print_lines(&[format!("logged in to {server}")])?;
        Ok(CommandStatus::Success)
    }
}

impl LogOut {
    async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let authorizer = authorizer(&config, &self.server)?;
        let had_tokens = authorizer.log_out().await.map_err(CommandError::new)?;
        let what = if had_tokens { "logged out of" } else { "there were no tokens of" };
        output::print_lines(&[format!("{what} {}", self.server)])?;
        Ok(CommandStatus::Success)
    }
}

impl AuthStatus {
    /// Succeeds if the tokens of all servers can be read.
    async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let mut servers: Vec<Value> = Vec::new();
        for (app, server) in &config.upstreams {
            if !matches!(server.kind, UpstreamKind::Http(_)) {
                continue;
            }
            let state = match authorizer(&config, app) {
                Ok(authorizer) => authorizer.credentials().await,
                Err(error) => Err(error.message),
            };
            servers.push(match state {
                Ok(CredentialState::None) => json!({"server": app, "state": "no tokens"}),
                Ok(CredentialState::Tokens { issuer, scopes, expires_in, is_renewable }) => json!({
                    "server": app, "state": "logged in", "issuer": issuer, "scopes": scopes,
                    "expiresIn": expires_in, "renewable": is_renewable,
                }),
                Err(error) => json!({"server": app, "state": "error", "error": error}),
            });
        }
        if servers.is_empty() {
            output::notice("no MCP server of the configuration is reached over HTTP, so none has tokens");
        }
        let is_well = servers.iter().all(|server| server["state"] != "error");
        if self.json {
            output::print_json(&Value::from(servers).to_string())?;
        } else {
            output::print_table(&["server", "state", "token", "issuer", "scopes"], servers.iter().map(row).collect())?;
        }
        Ok(CommandStatus::from_success(is_well))
    }
}

fn row(server: &Value) -> Vec<String> {
    let text = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
    let scopes = server["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let token = match (server["expiresIn"].as_u64(), server["renewable"] == true) {
        (_, true) => "renewed by itself".to_owned(),
        (Some(0), false) => "expired".to_owned(),
        (Some(seconds), false) => format!("expires in {seconds} s"),
        (None, false) => String::new(),
    };
    let state = if server["state"] == "error" { format!("error: {}", text("error")) } else { text("state") };
    vec![text("server"), state, token, text("issuer"), scopes.join(" ")]
}

fn authorizer(config: &Config, app: &str) -> Result<Authorizer, CommandError> {
    if let Some(server) = config.unusable.get(app) {
        return Err(CommandError::new(server.reason.clone()));
    }
    let Some(server) = config.upstreams.get(app) else {
        let names = config.upstreams.keys().map(String::as_str);
        let near = codecall_base::text::nearest(app, names, 1).first().map(|near| format!("; did you mean '{near}'?"));
        return Err(CommandError::new(format!("there is no server '{app}'{}", near.unwrap_or_default())));
    };
    let UpstreamKind::Http(http) = &server.kind else {
        return Err(CommandError::new(format!("{app}: it is started as a process, which needs no login here")));
    };
    let credentials = SqlCredentials::new(open_database(config)?, config);
    Authorizer::new(app, http, Arc::new(credentials), Arc::clone(&config.secrets))
        .map_err(|reason| CommandError::new(format!("{app}: {reason}")))
}

/// Shows a login on the terminal.
struct Terminal {
    opens_browser: bool,
}

impl Prompt for Terminal {
    fn open(&self, address: &str) {
        output::notice(&format!("open this address in a browser of this machine to log in: {address}"));
        if self.opens_browser {
            open_browser(address);
        }
    }

    fn enter(&self, address: &str, code: &str) {
        output::notice(&format!("open this address on any device to log in: {address}"));
        output::notice(&format!("and enter the code: {code}"));
    }
}

/// Opens a browser. That it cannot be opened is no error: the address is printed too.
fn open_browser(address: &str) {
    let mut command = if cfg!(target_os = "macos") {
        std::process::Command::new("open")
    } else if cfg!(windows) {
        // Not `cmd /c start`, which would interpret the address.
        let mut command = std::process::Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        std::process::Command::new("xdg-open")
    };
    let null = std::process::Stdio::null;
    let _ = command.arg(address).stdin(null()).stdout(null()).stderr(null()).spawn();
}

//! `codecall ui`: the web page, on a free port of this machine.

use super::output::{notice, print_lines};
use super::serve::Serve;
use super::sources::Sources;
use super::{CommandError, CommandStatus};
use clap::Args;
use std::process::{Command, Stdio};

/// Open the web page: runs, tools, charts. Starts a server on a free port of this machine, which ends with Ctrl-C.
#[derive(Args, Debug)]
pub struct Ui {
    /// Listen on an address: HOST:PORT, or a port of this machine alone.
    #[arg(long, value_name = "ADDR", default_value = "0")]
    http: String,
    /// Open the page in the browser of this machine.
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    sources: Sources,
}

impl Ui {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let opens = self.open;
        let first = move |link: &str| {
            // A failed write is ignored: stderr has the address, too.
            let _ = print_lines(&[link.to_owned()]);
            if opens {
                open(link);
            }
        };
        Serve::with_page(self.http, self.sources).serve(Some(Box::new(first))).await
    }
}

/// Opens an address in a browser.
fn open(link: &str) {
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => notice(&format!("no browser can be opened ({program}: {error}); open the address above")),
    }
}

//! The program: parse, dispatch, exit code.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let command_line = match cli::parse() {
        Ok(command_line) => command_line,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::Fault::new(format!("cannot start threads: {error}")).report(),
    };
    let code = runtime.block_on(command_line.execute());
    // A read of standard input cannot be taken back; nobody waits for it.
    runtime.shutdown_background();
    code
}

//! The program: parse, dispatch, exit code.

#![deny(unsafe_code)]

mod allocator;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::tune();
    // What this process was started with beside its streams is not for workers and MCP servers.
    #[cfg(unix)]
    close_fds::set_fds_cloexec(3, &[]);
    let command_line = match cli::parse() {
        Ok(command_line) => command_line,
        Err(code) => return code,
    };
    let command_line = match command_line.execute_for_server() {
        Ok(code) => return code,
        Err(command_line) => *command_line,
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

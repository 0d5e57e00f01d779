//! The program: parses the command line, executes the command and returns its exit code.

#![deny(unsafe_code)]

mod allocator;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::tune();
    // Child processes must not inherit other file descriptors than the standard streams.
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
        Err(error) => return cli::CommandError::new(format!("cannot start threads: {error}")).report(),
    };
    let answering = codecall::call::with_client("codecall".into(), command_line.execute());
    let code = runtime.block_on(answering);
    // A blocked read of stdin cannot be cancelled, so do not wait for it.
    runtime.shutdown_background();
    code
}

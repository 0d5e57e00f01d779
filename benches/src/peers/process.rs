//! An engine in a separate process, which measures the time itself. It gets and returns lines of JSON.
//!
//! ```text
//! {bridge}                          definitions for every sandbox        → {}
//! {script, context, tools, times}   sequential fresh runs                → {ms, answer} or {error}
//! ```

use super::{BRIDGE, Peer, Round};
use crate::cases::Case;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A process that runs scripts.
pub struct Process {
    child: Child,
    /// `None` when the process has been asked to exit.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the process.
    ///
    /// # Errors
    /// It cannot be started, or does not answer.
    pub fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        let mut process = Self { child, input, output };
        process.ask(&json!({ "bridge": BRIDGE }))?;
        Ok(process)
    }

    fn ask(&mut self, question: &Value) -> Result<Value, String> {
        let ended = |_| "the process has ended";
        let input = self.input.as_mut().ok_or("the process has ended")?;
        writeln!(input, "{question}").map_err(ended)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(ended)?;
        let answer: Value = serde_json::from_str(&line).map_err(|_| format!("it answers {line:?}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(error.into()),
            None => Ok(answer),
        }
    }
}

impl Peer for Process {
    fn round(&mut self, case: &Case, times: u32) -> Result<Round, String> {
        let tools: serde_json::Map<String, Value> =
            case.tools.iter().map(|(name, json)| ((*name).to_owned(), json.as_str().into())).collect();
        let question = json!({ "script": case.script, "context": case.context, "tools": tools, "times": times });
        let answer = self.ask(&question)?;
        let (Some(ms), Some(text)) = (answer["ms"].as_f64(), answer["answer"].as_str()) else {
            return Err(format!("it answers {answer}"));
        };
        Ok(Round { time: Duration::from_secs_f64(ms / 1e3), answer: text.into() })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process exits at the end of its input.
        self.input = None;
        let _ = self.child.wait();
    }
}

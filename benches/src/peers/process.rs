//! An engine in a process of its own, which takes the time itself: JSON lines to it, JSON lines back.
//!
//! ```text
//! {bridge}                          what every sandbox is given          → {}
//! {script, context, tools, times}   fresh runs, one after the other      → {ms, answer} or {error}
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
    /// Absent once it was told to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Start it.
    ///
    /// # Errors
    /// If it cannot be started, or does not answer.
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
        // The end of its input is its end.
        self.input = None;
        let _ = self.child.wait();
    }
}

//! What goes to stdout, and to files. A reader that goes away (`codecall … | head`) is no failure.

use super::Fault;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Print a line.
pub fn line(text: &str) -> Result<(), Fault> {
    let mut stdout = std::io::stdout().lock();
    let written =
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Fault::new(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Print several lines.
pub fn lines(lines: &[String]) -> Result<(), Fault> {
    if lines.is_empty() { Ok(()) } else { line(&lines.join("\n")) }
}

/// Print JSON: indented for a person, one line for a program.
pub fn json(text: &str) -> Result<(), Fault> {
    if is_terminal() { line(&indented(text)) } else { line(text) }
}

/// Whether a person reads along.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// The same JSON over several lines. Numbers and texts stay as they are written.
pub fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                while let Some(c) = chars.next() {
                    out.push(c);
                    match c {
                        '\\' => out.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                match chars.next_if(|&next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// A file that is there as a whole or not at all.
pub struct AtomicFile {
    path: PathBuf,
    /// What becomes the file; beside it, as only within a folder it can take its place.
    draft: PathBuf,
}

impl AtomicFile {
    /// See that the file can be written, and leave the one that may be there as it is.
    pub fn begin(path: &Path) -> Result<Self, Fault> {
        let mut name =
            path.file_name().ok_or_else(|| Fault::new(format!("{}: not a file", path.display())))?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let file = Self { path: path.to_owned(), draft: path.with_file_name(name) };
        std::fs::write(&file.draft, "").map_err(|error| file.unwritten(&error))?;
        Ok(file)
    }

    /// Write it.
    pub fn write(&self, text: &str) -> Result<(), Fault> {
        std::fs::write(&self.draft, text)
            .and_then(|()| std::fs::rename(&self.draft, &self.path))
            .map_err(|error| self.unwritten(&error))
    }

    fn unwritten(&self, error: &std::io::Error) -> Fault {
        Fault::new(format!("{}: cannot be written: {error}", self.path.display()))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // It is not there any more where it has become the file.
        let _ = std::fs::remove_file(&self.draft);
    }
}

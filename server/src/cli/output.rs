//! What goes to stdout. A reader that goes away (`codecall … | head`) is no failure.
//!
//! What tools, scripts and files say cannot act on a terminal: texts for people are made safe wherever they
//! go, JSON where a person reads along.

use super::Fault;
use codecall::terminal;
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal as _, Write as _};

fn print(text: &str) -> Result<(), Fault> {
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

/// Print lines for people. Where a part of one must not begin another, it has been made safe before.
pub fn lines(lines: &[String]) -> Result<(), Fault> {
    if lines.is_empty() { Ok(()) } else { print(&terminal::escape_block(&lines.join("\n"))) }
}

/// Print JSON: indented for a person, one line for a program.
pub fn json(text: &str) -> Result<(), Fault> {
    if is_terminal() { json_as_it_is(&indented(text)) } else { json_as_it_is(text) }
}

/// Print JSON that has its lines already.
pub fn json_as_it_is(text: &str) -> Result<(), Fault> {
    print(&if is_terminal() { terminal::escape_json(text) } else { Cow::Borrowed(text) })
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

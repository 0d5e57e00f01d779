//! Output to stdout. A closed pipe (`codecall … | head`) is no error.
//!
//! Control characters from tools, scripts and files are escaped: in lines always, in JSON if stdout is a terminal.

use super::CommandError;
use codecall_base::terminal;
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = std::io::stdout().lock();
    let written =
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::new(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints lines for people. The caller escapes parts that must not contain line breaks.
pub fn print_lines(lines: &[String]) -> Result<(), CommandError> {
    if lines.is_empty() { Ok(()) } else { print(&terminal::escape_block(&lines.join("\n"))) }
}

/// Columns of a terminal in which cells of tables are broken into lines.
const MIN_COLUMNS: u16 = 60;

/// Whether notices are events of the log.
static NOTICES_ARE_LOGGED: AtomicBool = AtomicBool::new(false);

/// Makes notices events of the log: it is read by a program.
pub fn log_notices() {
    NOTICES_ARE_LOGGED.store(true, Ordering::Relaxed);
}

/// Tells the user of a server something on stderr, whatever the level of the log is.
pub fn notice(text: &str) {
    if NOTICES_ARE_LOGGED.load(Ordering::Relaxed) {
        tracing::info!(target: "notice", "{text}");
    } else {
        let clean = codecall_base::redact::redact_log_line(text);
        // A failed write is ignored: there is nowhere to report it.
        let _ = writeln!(std::io::stderr(), "codecall: {}", terminal::escape_line(&clean));
    }
}

/// Prints rows: as a table on a terminal, else as lines with tabs between the cells, without the head.
pub fn print_table(head: &[&str], rows: Vec<Vec<String>>) -> Result<(), CommandError> {
    let clean = rows.iter().map(|row| row.iter().map(|cell| terminal::escape_line(cell).into_owned()).collect());
    if is_terminal() {
        let mut table = table(clean.collect());
        table.set_header(head);
        print(&table.trim_fmt())
    } else {
        print_lines(&clean.map(|row: Vec<String>| row.join("\t")).collect::<Vec<_>>())
    }
}

/// Prints groups of rows on a terminal: a head, which is not broken into lines, and the rows below it.
pub fn print_groups(groups: Vec<(String, Vec<Vec<String>>)>) -> Result<(), CommandError> {
    groups.into_iter().try_for_each(|(head, rows)| print(&group_lines(&head, &rows, None)))
}

/// The lines of a group. `columns`: those of the terminal, unless it says so itself.
fn group_lines(head: &str, rows: &[Vec<String>], columns: Option<u16>) -> String {
    let clean = |cell: &String| terminal::escape_block(cell).into_owned();
    let mut table = table(rows.iter().map(|row| row.iter().map(clean).collect()).collect());
    if let Some(columns) = columns {
        table.set_width(columns).set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    }
    let lines: Vec<String> = table.trim_fmt().lines().map(|line| format!(" {line}")).collect();
    format!("{}\n{}", terminal::escape_line(head), lines.join("\n"))
}

fn table(rows: Vec<Vec<String>>) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    // In a few columns, words would be written letter below letter.
    if table.width().is_some_and(|columns| columns >= MIN_COLUMNS) {
        table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    }
    table.add_rows(rows);
    table
}

/// Prints JSON: indented on a terminal, else as one line.
pub fn print_json(text: &str) -> Result<(), CommandError> {
    if is_terminal() { print_json_line(&indent(text)) } else { print_json_line(text) }
}

/// Prints JSON text as it is formatted.
pub fn print_json_line(text: &str) -> Result<(), CommandError> {
    print(&if is_terminal() { terminal::escape_json(text) } else { Cow::Borrowed(text) })
}

/// Whether stdout is a terminal.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Indents JSON text. Numbers and strings stay as they are written.
pub fn indent(json: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::group_lines;

    #[test]
    fn the_head_of_a_group_is_one_line() {
        let path = format!("Cursor: /home/{}/mcp.json", "me/".repeat(40));
        let row = |name: &str, note: &str| vec![name.to_owned(), "skipped".to_owned(), note.to_owned()];
        let rows = [row("a", "it is long ".repeat(10).trim()), row("b\u{1b}[1m", "x")];
        let text = group_lines(&path, &rows, Some(60));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], path);
        assert!(lines[1..].iter().all(|line| line.chars().count() <= 61) && lines.len() > 3, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

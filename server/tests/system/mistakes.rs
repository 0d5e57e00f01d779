//! Mistakes, and what the program says of each: what is wrong, where, and what to do. `docs/reports/mistakes.md` has the table, which
//! `UPDATE=1` writes.

mod table;

use crate::support::*;
use serde_json::{Value, json};
use std::fmt::Write as _;
use table::*;
use tokio::process::Command;

const HEAD: &str = "# Mistakes

People and models make these mistakes. The last column is the message of the program: the error with its hint, or the first warning. `config check`
checks the configurations, and `run` executes the scripts.

`UPDATE=1 cargo test -p codecall --test system -- mistakes::` writes this page.
";
/// The words that stand for the port of a test and for its folder.
const PORT: &str = "8931";
const SHOWN_FOLDER: &str = "/home/ada";

fn program(folder: &Folder, words: &[&str]) -> Command {
    let home = folder.path("");
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(&home).env_remove("GITHUB_TOKN");
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
    {
        command.env(variable, &home);
    }
    command.env("CODECALL_STORE", folder.path("codecall.db"));
    command
}

/// The error of a command, with its tip or help.
fn error_lines(stderr: &str) -> String {
    let is_told = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).filter(is_told).collect();
    lines.join("\n")
}

/// The first warning, or the error of an outcome with its place and hint.
fn told(outcome: &Value) -> String {
    let (error, warning) = (&outcome["error"], &outcome["warnings"][0]);
    if let Some(warning) = warning.as_str() {
        return warning.to_owned();
    }
    let mut text = String::new();
    if let Some(line) = error["location"]["line"].as_u64() {
        write!(text, "line {line}, column {}: ", error["location"]["column"]).expect("a string can be written");
    }
    text.push_str(error["message"].as_str().unwrap_or_else(|| panic!("nothing is said: {outcome}")));
    if let Some(hint) = error["hint"].as_str() {
        text.truncate(text.trim_end_matches('.').len());
        write!(text, "; {hint}").expect("a string can be written");
    }
    text
}

async fn says(made: &Made) -> (String, String) {
    let folder = Folder::new();
    for (name, text) in FILES {
        folder.file(name, text);
    }
    let run = async |words: &[&str], input: &str| finish(&mut program(&folder, words), input).await;
    let shown = |text: String| text.replace(folder.path("").trim_end_matches('/'), SHOWN_FOLDER);
    match made {
        Made::Command(words) => {
            let ran = run(words, "").await;
            assert_ne!(ran.code, Some(0), "{words:?}: {ran:?}");
            let text = if ran.stderr.starts_with("error:") { error_lines(&ran.stderr) } else { told(&ran.json()) };
            let quoted =
                words.iter().map(|word| if word.contains([' ', '{']) { format!("'{word}'") } else { (*word).into() });
            (format!("codecall {}", quoted.collect::<Vec<_>>().join(" ")), shown(text))
        }
        Made::Config(name, text) => {
            folder.file(name, text);
            let ran = run(&["config", "check", name], "").await;
            let said = if ran.code == Some(0) { ran.stdout.trim().to_owned() } else { error_lines(&ran.stderr) };
            (text.replace('\u{feff}', "U+FEFF"), shown(said))
        }
        Made::Server(entry) => {
            let entry_value: Value = serde_json::from_str(entry).expect("JSON");
            folder.file("codecall.json", json!({"mcpServers": {"shop": entry_value}}).to_string());
            let ran = run(&["run", "-", "--config", "codecall.json"], "return await shop.list({})").await;
            (format!("\"shop\": {entry}"), shown(told(&ran.json())))
        }
        Made::Script(script) => {
            let ran = run(&["run", "-", "--mock-tools", "tools.json"], script).await;
            ((*script).to_owned(), told(&ran.json()))
        }
        Made::PortInUse => {
            let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = taken.local_addr().expect("an address").port().to_string();
            let ran = run(&["serve", "--demo", "--http", &port], "").await;
            assert_eq!(ran.code, Some(2), "{ran:?}");
            (format!("codecall serve --demo --http {PORT}"), error_lines(&ran.stderr).replace(&port, PORT))
        }
        Made::WrongToken => {
            let config =
                folder.file("codecall.json", json!({"http": {"token": "the-token-of-the-server"}}).to_string());
            let server = crate::model_server::HttpProcess::start(&["--config", &config]).await;
            let response = crate::model_server::http_client()
                .post(format!("{}/mcp", server.url))
                .bearer_auth("another")
                .send()
                .await;
            let response = response.expect("a response");
            assert_eq!(response.status(), 401);
            let body: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
            ("Authorization: Bearer another".into(), told(&body))
        }
    }
}

/// A cell of a table: code where `is_code`.
fn cell(text: &str, is_code: bool) -> String {
    let lines = text.trim().lines().map(|line| {
        let line = line.replace('|', "\\|");
        match is_code {
            true if line.contains('`') => format!("`` {line} ``"),
            true => format!("`{line}`"),
            false => line.replace('<', "&lt;").replace('*', "\\*"),
        }
    });
    lines.collect::<Vec<_>>().join("<br>")
}

#[tokio::test]
async fn each_mistake_has_a_message() {
    let mut page = HEAD.to_owned();
    let mut count = 0;
    for (group, mistakes) in GROUPS {
        write!(page, "\n## {group}\n\n| mistake | written | message |\n|---|---|---|\n")
            .expect("a string can be written");
        for Mistake { what, made } in mistakes {
            let (written, message) = says(made).await;
            writeln!(page, "| {what} | {} | {} |", cell(&written, true), cell(&message, false))
                .expect("a string can be written");
            count += 1;
        }
    }
    assert!(count >= 40, "{count}");
    let path = root().join("docs/reports/mistakes.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, page).expect("the page can be written");
    } else {
        let kept = std::fs::read_to_string(path).expect("the page");
        let changed = page.lines().zip(kept.lines()).find(|(line, kept)| line != kept);
        assert!(
            page == kept,
            "docs/reports/mistakes.md is out of date: UPDATE=1 cargo test -p codecall --test system -- mistakes::\n{changed:?}"
        );
    }
}

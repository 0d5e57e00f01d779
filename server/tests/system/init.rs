//! `codecall init`, `codecall config`, and where the configuration comes from.

use crate::support::*;
use serde_json::{Value, json};
use tokio::process::Command;

/// The program in a home of its own, with the folder of the home as the current one.
async fn at_home(home: &Folder, words: &[&str], variables: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(PROGRAM);
    for name in ["CODECALL_CONFIG", "CODECALL_ISOLATION", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA"] {
        command.env_remove(name);
    }
    let folder = home.path("");
    command.args(words).current_dir(&folder).env("HOME", &folder).env("USERPROFILE", &folder);
    command.env("XDG_CONFIG_HOME", home.path(".config")).envs(variables.iter().copied());
    finish(&mut command, "").await
}

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a-server\", \"env\": {\"API_KEY\": \"k-1234567\"}},\n    \"b\": {\"url\": \"https://b.example/sse\", \"type\": \"sse\"},\n  }\n}\n";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn servers_of_clients_are_taken_over_and_given_back() {
    let home = Folder::new();
    let cursor = home.file(".cursor/mcp.json", CURSOR);
    home.file(".mcp.json", r#"{"mcpServers": {"a": {"command": "other-server"}}}"#);
    let config = home.path(".config/codecall/codecall.toml");
    let ran = at_home(&home, &["init", "--dry-run"], &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!std::path::Path::new(&config).exists(), "nothing is written");
    let ran = at_home(&home, &["init"], &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let canonical = std::fs::canonicalize(home.path("")).expect("a folder").display().to_string();
    for line in [
        format!("a-2\ttaken over\tCursor\t{cursor}\tnamed 'a'"),
        format!("a\ttaken over\tClaude Code\t{canonical}/.mcp.json\t"),
        format!("b\tskipped\tCursor\t{cursor}\tit speaks HTTP with SSE (protocol 2024-11-05), which is not supported"),
        format!("2 servers written to {config}"),
    ] {
        assert!(ran.stdout.lines().any(|found| found == line), "{line}\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("k-1234567"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&cursor).expect("a file"), CURSOR, "no client is changed unasked");
    // What was written is what is used.
    let ran = at_home(&home, &["config", "check"], &[]).await;
    assert_eq!((ran.code, ran.stdout), (Some(0), format!("{config}: valid\n")));
    let ran = at_home(&home, &["init", "--apply", "cursor", "--json"], &[]).await;
    let report = ran.json();
    assert_eq!(report["changed"], json!([{"file": cursor, "backup": format!("{cursor}.before-codecall")}]));
    let changed = std::fs::read_to_string(&cursor).expect("a file");
    assert!(changed.contains("// mine") && changed.contains("sse") && !changed.contains("a-server"), "{changed}");
    let start = format!(r#"["serve", "--config", "{config}"]"#);
    assert!(changed.contains(&start), "{changed}");
    // Again: our own entry is no server, and what is there already stays.
    let again = at_home(&home, &["init", "--apply", "all", "--json"], &[]).await.json();
    assert!(
        again["servers"].as_array().is_some_and(|all| all.iter().all(|server| server["added"] == false)),
        "{again}"
    );
    let ran = at_home(&home, &["init", "--undo", "all", "--json"], &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&cursor).expect("a file"), CURSOR, "to the byte");
    let ran = at_home(&home, &["init", "--undo", "all"], &[]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "nothing to undo: no file has a backup beside it\n"));
    let ran = at_home(&home, &["init", "--apply", "emacs"], &[]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("claude-desktop"), "{ran:?}");
}

#[tokio::test]
async fn the_configuration_is_found() {
    let home = Folder::new();
    let value = |ran: &Finished| {
        let line = ran.stdout.lines().find(|line| line.starts_with("topK\t"));
        line.unwrap_or_else(|| panic!("{ran:?}")).split('\t').skip(1).collect::<Vec<_>>().join(" ")
    };
    let show = ["config", "show"];
    assert_eq!(value(&at_home(&home, &show, &[]).await), "8 default");
    let user = home.file(".config/codecall/codecall.toml", "topK = 2\n[http]\ntoken = \"a-secret-of-http\"\n");
    assert_eq!(value(&at_home(&home, &show, &[]).await), format!("2 {user}"));
    home.file("codecall.toml", "topK = 3\n");
    assert_eq!(value(&at_home(&home, &show, &[]).await), "3 codecall.toml");
    let named = [("CODECALL_CONFIG", user.as_str())];
    assert_eq!(value(&at_home(&home, &show, &named).await), format!("2 {user}"));
    let ran = at_home(&home, &show, &[named[0], ("CODECALL_TOP_K", "4")]).await;
    assert_eq!(value(&ran), "4 CODECALL_TOP_K");
    assert!(ran.stdout.contains(&format!("http.token\t\"[secret]\"\t{user}")), "{}", ran.stdout);
    assert_eq!(value(&at_home(&home, &show, &[("CODECALL_CONFIG", "")]).await), "8 default");
    let ran = at_home(&home, &show, &[("CODECALL_CONFIG", "nowhere.toml")]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("CODECALL_CONFIG names nowhere.toml"), "{ran:?}");
    let ran = at_home(&home, &["config", "check"], &[("CODECALL_TOP_K", "400")]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("variable CODECALL_TOP_K)"), "{ran:?}");
    let ran = at_home(&home, &["config", "show", "--set", "--json"], &[]).await;
    let expected = json!({"value": 3, "default": "8", "origin": "codecall.toml"});
    assert_eq!(ran.json()["topK"], expected);
    let schema: Value = serde_json::from_str(&at_home(&home, &["config", "schema"], &[]).await.stdout).expect("JSON");
    assert!(schema["properties"]["vm"].is_object());
}

/// The variable of the first description of this server.
#[tokio::test]
async fn the_environment_overrides_the_file() {
    let home = Folder::new();
    home.file("codecall.toml", "[vm]\npreset = \"balanced\"\n");
    let script = home.file("loop.js", "for (const x of [1]) console.log(x); return 1");
    let run = ["run", script.as_str()];
    assert_eq!(at_home(&home, &run, &[]).await.code, Some(0));
    let ran = at_home(&home, &run, &[("CODECALL_VM_PRESET", "locked_down")]).await;
    assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!("illegal_access")), "{ran:?}");
    let ran = at_home(&home, &run, &[("CODECALL_VM_PRESETS", "locked_down")]).await;
    assert!(ran.code == Some(0) && ran.stderr.contains("did you mean CODECALL_VM_PRESET?"), "{ran:?}");
}

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
    assert!(ran.stdout.contains("API_KEY = \"[secret]\"") && !ran.stdout.contains("k-1234567"), "{ran:?}");
    let ran = at_home(&home, &["init"], &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let canonical = std::fs::canonicalize(home.path("")).expect("a folder").display().to_string();
    for line in [
        format!("a-2\ttaken over\tCursor\t{cursor}\tnamed 'a'"),
        format!("a\ttaken over\tClaude Code\t{canonical}/.mcp.json\t"),
        format!("b\tskipped\tCursor\t{cursor}\tit speaks HTTP with SSE (protocol 2024-11-05), which is not supported"),
        format!("2 servers written to {config}; 1 skipped"),
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

const MCPPROXY: &str = r#"{
    "listen": "127.0.0.1:8080", "enable_code_execution": true, "code_execution_timeout_ms": 60000,
    "code_execution_max_tool_calls": 20, "code_execution_pool_size": 4, "top_k": 6, "tool_response_limit": 20000,
    "call_tool_timeout": "2m0s", "quarantine_enabled": true, "api_key": "a-key-of-mcpproxy-1234", "max_concurrent_requests": 9,
    "docker_isolation": {"enabled": true, "memory_limit": "512m"}, "environment": {"custom_vars": {"REGION": "eu"}},
    "mcpServers": [
        {"name": "isolated", "command": "uvx", "args": ["a"], "enabled": true},
        {"name": "plain", "command": "b", "env": {"X": "1"}, "isolation": {"enabled": false}, "enabled": true, "init_timeout": "90s"},
        {"name": "off", "command": "c", "enabled": false},
        {"name": "new", "command": "d", "isolation": {"enabled": false}, "enabled": true, "quarantined": true},
        {"name": "remote", "url": "https://a.example/mcp", "headers": {"X-Key": "k"}, "oauth": {"client_id": "me", "scopes": ["r"]}, "enabled": true, "skip_quarantine": true, "max_concurrent_requests": 2}
    ]
}"#;

/// All of the file of mcpproxy: each key is taken over or named, and servers in isolation stay off.
#[tokio::test]
async fn mcpproxy_is_taken_over() {
    let home = Folder::new();
    let file = home.file(".mcpproxy/mcp_config.json", MCPPROXY);
    let config = home.path(".config/codecall/codecall.toml");
    let ran = at_home(&home, &["init", "--json"], &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let taken: Vec<&str> =
        report["settings"].as_array().expect("a list").iter().filter_map(|one| one["as"].as_str()).collect();
    let expected = [
        "code_execution_timeout_ms",
        "code_execution_max_tool_calls",
        "code_execution_pool_size",
        "enable_code_execution",
        "topK",
        "vm.maxInlineBytes",
        "vm.toolTimeoutMs",
        "quarantine",
        "http.token",
        "concurrencyLimits",
    ];
    assert_eq!(taken, expected, "{report}");
    assert_eq!(report["settingsLeft"][0]["key"], "listen", "{report}");
    assert!(!ran.stdout.contains("a-key-of-mcpproxy"), "{ran:?}");
    assert_eq!(at_home(&home, &["config", "check"], &[]).await.code, Some(0));
    let written = std::fs::read_to_string(&config).expect("a file");
    let server = |name: &str| {
        let after = written.split_once(&format!("[mcpServers.{name}]\n")).expect("a server").1;
        after.split("\n\n").next().unwrap_or_default().to_owned()
    };
    for (name, is_off) in [("isolated", true), ("plain", false), ("off", true), ("new", true), ("remote", false)] {
        assert_eq!(server(name).contains("enabled = false"), is_off, "{name}: {written}");
    }
    assert!(server("plain").contains("startTimeoutMs = 90000"), "{written}");
    assert!(server("plain").contains(r#"env = { X = "1", REGION = "eu" }"#), "{written}");
    assert!(server("remote").contains(r#"auth = { clientId = "me", scopes = ["r"] }"#), "{written}");
    assert!(server("remote").contains("quarantine = false"), "{written}");
    for line in ["topK = 6", "toolTimeoutMs = 120000", "maxInlineBytes = 20000", "enable_code_execution = true"] {
        assert!(written.lines().any(|found| found == line), "{line}: {written}");
    }
    let limits = r#"concurrencyLimits = [{ tool = "*", limit = 9 }, { tool = "remote:*", limit = 2 }]"#;
    assert!(written.contains(limits), "{written}");
    assert!(written.contains("# it is disabled: mcpproxy starts it in Docker"), "{written}");
    let again = at_home(&home, &["init"], &[]).await;
    assert!(again.stdout.contains("nothing to add to"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&config).expect("a file"), written, "it is the same again");
    // Such a file is no configuration of ours.
    let claude =
        home.file("claude_desktop_config.json", r#"{"mcpServers": {"a": {"command": "a"}}, "globalShortcut": ""}"#);
    for (path, client) in [(&file, "mcpproxy"), (&claude, "Claude Desktop")] {
        for words in [&["status"][..], &["serve"], &["run", "-"]] {
            let ran = at_home(&home, &[words, &["--config", path.as_str()]].concat(), &[]).await;
            let is_named = ran.stderr.contains(client) && ran.stderr.contains("codecall init");
            assert!(ran.code == Some(2) && is_named, "{words:?}: {ran:?}");
        }
    }
}

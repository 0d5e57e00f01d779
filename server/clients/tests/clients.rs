//! The files of all clients, as they are documented, in temporary homes: what is found, what it becomes, and that changes
//! can be undone.

use codecall_clients::change::{Taken, Undone, apply, backup_of, undo};
use codecall_clients::{CLIENTS, Environment, Found, Plan, Platform, find, plan, write};
use codecall_config::{Config, Format, UpstreamKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A copy of `tests/files`, which is removed when it is dropped.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("codecall-clients-{}-{count}", std::process::id()));
        let home = Self(path);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files"), &home.0);
        let file = home.0.join("home/.claude.json");
        let text = std::fs::read_to_string(&file).expect("a file");
        std::fs::write(&file, text.replace("FOLDER", &home.0.join("folder").display().to_string())).expect("written");
        // The files that servers of the samples name.
        std::fs::create_dir_all(home.0.join("home/notes")).expect("a folder");
        std::fs::write(home.0.join("home/notes/.env"), "FROM_FILE=1\n").expect("written");
        std::fs::write(home.0.join("folder/.env"), "BUILD=debug\n").expect("written");
        home
    }

    fn with<T>(&self, then: impl FnOnce(&Environment<'_>) -> T) -> T {
        let set = ["SENTRY_TOKEN", "FIGMA_OAUTH_TOKEN", "FIGMA_TEAM"];
        let variables = |name: &str| set.contains(&name).then(|| format!("value of {name}"));
        then(&Environment {
            platform: Platform::Linux,
            home: self.0.join("home"),
            config: self.0.join("config"),
            folder: self.0.join("folder"),
            variables: &variables,
        })
    }

    fn plan(&self) -> (Vec<Found>, Plan) {
        self.with(|environment| {
            let found = find(environment);
            let plan = plan(&found, environment);
            (found, plan)
        })
    }

    /// All files with their bytes.
    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        collect(&self.0, &mut all);
        all
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() { copy(&path, &target) } else { std::fs::copy(&path, &target).map(drop).expect("copied") }
    }
}

fn collect(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, all);
        } else {
            all.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
}

const VARIABLES: [(&str, &str); 8] = [
    ("SENTRY_TOKEN", "s-token"),
    ("NOTES_KEY", "n-key"),
    ("REMOTE_KEY", "r-key"),
    ("PERPLEXITY_KEY", "p-key"),
    ("FIGMA_TOKEN", "f-token"),
    ("FIGMA_OAUTH_TOKEN", "fo-token"),
    ("FIGMA_TEAM", "team"),
    ("MODE", "rw"),
];

/// Reads what was written, with all variables set.
fn read(text: &str) -> Config {
    let lookup =
        |name: &str| VARIABLES.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned());
    Config::parse(text, Format::Toml, &lookup).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A server as one line: how it is started or reached.
fn line(config: &Config, name: &str) -> String {
    let entries = |map: &BTreeMap<String, codecall_config::Secret>| {
        map.iter().map(|(name, value)| format!("{name}={}", &**value)).collect::<Vec<_>>().join(",")
    };
    match &config.upstreams.get(name).unwrap_or_else(|| panic!("no server '{name}'")).kind {
        UpstreamKind::Stdio(stdio) => {
            let args: Vec<&str> = stdio.args.iter().map(|arg| &**arg).collect();
            let cwd = stdio.cwd.as_ref().map(|cwd| cwd.display().to_string()).unwrap_or_default();
            format!("{} {args:?} {{{}}} {cwd}", stdio.command, entries(&stdio.env)).trim_end().to_owned()
        }
        UpstreamKind::Http(http) => format!("{} {{{}}}", &*http.url, entries(&http.headers)),
        #[expect(unreachable_patterns, reason = "there may be other kinds, which clients do not have")]
        _ => panic!("'{name}' is no MCP server"),
    }
}

/// Every server of every client, as the client starts it.
#[test]
fn servers_are_what_they_are_in_their_clients() {
    let home = Home::new();
    let (_, plan) = home.plan();
    let written = write(None, &plan).expect("written");
    // A server whose variable is not set is written as disabled, and all others are there.
    let config = read(&written.text);
    assert!(!config.upstreams.contains_key("perplexity"), "{}", written.text);
    let enabled = written.text.replace("enabled = false", "enabled = true");
    let config = read(&enabled);
    let (folder, user) = (home.0.join("folder").display().to_string(), home.0.join("home").display().to_string());
    let expected = [
        ("filesystem", r#"npx ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Desktop"] {}"#.to_owned()),
        (
            "github",
            r#"docker ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"] {GITHUB_PERSONAL_ACCESS_TOKEN=ghp_0123456789,PRICE=${5}}"#.to_owned(),
        ),
        ("sentry", "https://mcp.sentry.dev/mcp {Authorization=Bearer s-token}".to_owned()),
        ("local-db", format!(r#"db-mcp ["--dsn", "sqlite:///x.db"] {{}} {folder}"#)),
        ("scripts", format!(r#"./tools/scripts ["--port", "8080"] {{}} {folder}"#)),
        ("notes", format!(r#"python ["{user}/notes/server.py", "{folder}", "a/b"] {{API_KEY=n-key,FROM_FILE=1}}"#)),
        ("remote", "https://remote.example.com/mcp {X-Key=r-key}".to_owned()),
        ("remote-2", "https://other.example.com/mcp {}".to_owned()),
        (
            "perplexity",
            r#"npx ["-y", "server-perplexity-ask", "--region=eu"] {PERPLEXITY_API_KEY=p-key,RETRIES=3,VERBOSE=true}"#
                .to_owned(),
        ),
        ("github-2", "https://api.githubcopilot.com/mcp {}".to_owned()),
        ("time", r#"uvx ["mcp-server-time"] {}"#.to_owned()),
        ("build", format!(r#"node ["{folder}/build.js", "folder"] {{BUILD=debug}} {folder}"#)),
        ("figma", "https://figma.example.com/mcp {API_KEY=Bearer f-token}".to_owned()),
        ("off", "y [] {}".to_owned()),
        ("old-form", r#"old-server ["--stdio"] {LEVEL=1}"#.to_owned()),
        ("new-form", r#"new-server ["a b"] {}"#.to_owned()),
        ("remote-zed", "https://zed.example.com/mcp {Authorization=Bearer zed-token-1}".to_owned()),
        ("docs", r#"docs-server ["--stdio"] {MY_VAR=MY_VALUE}"#.to_owned()),
        (
            "figma-codex",
            "https://mcp.figma.com/mcp {Authorization=Bearer fo-token,X-Figma-Region=us-east-1,X-Team=team}".to_owned(),
        ),
        ("sqlite", r#"uvx ["mcp-server-sqlite", "--db-path", "/data/a.db"] {MODE=rw} /data"#.to_owned()),
        ("context7", "https://mcp.context7.com/mcp {}".to_owned()),
        ("new", "new [] {}".to_owned()),
    ];
    for (name, expected) in &expected {
        assert_eq!(line(&config, name), *expected, "{name}");
    }
    let names: BTreeSet<&str> = config.upstreams.keys().map(String::as_str).collect();
    assert_eq!(names, expected.iter().map(|(name, _)| *name).collect());
    let docs = &config.upstreams["docs"];
    assert_eq!((docs.start_timeout.as_secs(), docs.disabled_tools.as_slice()), (20, &["delete".to_owned()][..]));
    assert_eq!(docs.enabled_tools.as_deref(), Some(&["search".to_owned()][..]));
    // What the clients have disabled stays so.
    let config = read(&written.text);
    for off in ["off", "context7", "new"] {
        assert!(!config.upstreams.contains_key(off), "{off}");
    }
}

#[test]
fn what_is_left_out_has_a_reason() {
    let home = Home::new();
    let (found, plan) = home.plan();
    let clients: BTreeSet<&str> = found.iter().map(|found| found.client.id).collect();
    assert_eq!(clients, CLIENTS.iter().map(|client| client.id).collect(), "a file of every client is found");
    let skipped: BTreeMap<&str, &str> =
        plan.skipped.iter().map(|skipped| (skipped.name.as_str(), skipped.reason.as_str())).collect();
    let expected = BTreeMap::from([
        ("asana", "it speaks HTTP with SSE (protocol 2024-11-05), which is not supported"),
        ("helper", "a program of the client makes its headers"),
        ("api", "a program of the client makes its headers"),
        ("oauth", "it signs in with OAuth, which is not supported"),
        ("settings", "it refers to ${config:my.tool}, which only the client has"),
        ("from-file", "it refers to ${file:/run/secrets/token}, which only the client has"),
        ("mcp-server-context7", "it is an extension of the client"),
        ("secretive", "it refers to ${keyring:my-token}, which only the client has"),
    ]);
    assert_eq!(skipped, expected);
    let [duplicate] = plan.duplicates.as_slice() else { panic!("{:?}", plan.duplicates) };
    assert_eq!((duplicate.name.as_str(), duplicate.client), ("filesystem", "Claude Code"));
    let missing: Vec<(&str, &[String])> = plan
        .servers
        .iter()
        .filter(|planned| !planned.missing.is_empty())
        .map(|planned| (planned.name.as_str(), planned.missing.as_slice()))
        .collect();
    assert_eq!(missing, [("perplexity", &["PERPLEXITY_KEY".to_owned()][..])]);
    let text = write(None, &plan).expect("written").text;
    assert!(text.contains("# It needs the environment variable PERPLEXITY_KEY (Perplexity API key).\n"), "{text}");
    assert!(text.contains("# the open folder is "), "{text}");
}

#[test]
fn an_existing_configuration_is_added_to() {
    let home = Home::new();
    let (_, mut plan) = home.plan();
    // They stand before all tables.
    assert_eq!(
        plan.settings.drain(..).map(|planned| planned.setting.path()).collect::<Vec<_>>(),
        ["enable_code_execution"]
    );
    let mine = "# mine\ntopK = 3 # few\n\n[mcpServers.github]\ncommand = \"my-github\"\n";
    let written = write(Some(mine), &plan).expect("written");
    assert!(written.text.starts_with(mine), "{}", written.text);
    assert_eq!((written.kept.len(), written.different), (0, ["github".to_owned()].into()));
    let config = read(&written.text);
    assert_eq!((config.top_k, line(&config, "github").as_str()), (3, "my-github [] {}"));
    assert!(write(None, &plan).expect("written").text.starts_with("# The configuration of CodeCall"));
    let commented = write(Some("topK = 3\n# the end\n"), &plan).expect("written");
    assert!(commented.text.starts_with("topK = 3\n# the end\n\n# From "), "{}", commented.text);
    let again = write(Some(&written.text), &plan).expect("written");
    assert_eq!((again.added.len(), again.text.as_str()), (0, written.text.as_str()));
    assert_eq!(again.kept, written.added);
}

const COMMAND: [&str; 4] = ["/usr/bin/codecall", "serve", "--config", "/home/ada/codecall.toml"];

/// Applies to all files, and returns those that were changed.
fn apply_all(found: &[Found], plan: &Plan) -> BTreeSet<PathBuf> {
    let command = COMMAND.map(str::to_owned);
    let paths: BTreeSet<PathBuf> = found.iter().map(|found| found.path.clone()).collect();
    let places = |path: &PathBuf| {
        let places = found.iter().filter(|found| found.path == *path);
        places.map(|found| Taken { found, names: plan.taken(found, |_| true) }).collect::<Vec<_>>()
    };
    paths.into_iter().filter(|path| apply(path, &places(path), &command).expect("applied")).collect()
}

fn undo_all(found: &[Found]) -> BTreeMap<PathBuf, Undone> {
    let paths: BTreeSet<&PathBuf> = found.iter().map(|found| &found.path).collect();
    let undo = |path: &PathBuf| {
        let places: Vec<Found> = found.iter().filter(|found| found.path == *path).cloned().collect();
        (path.clone(), undo(path, &places).expect("undone"))
    };
    paths.into_iter().map(undo).collect()
}

#[test]
fn changes_of_clients_are_undone_to_the_byte() {
    let home = Home::new();
    let before = home.bytes();
    let (found, plan) = home.plan();
    let changed = apply_all(&found, &plan);
    assert_eq!(changed.len(), 12, "{changed:?}");
    for path in &changed {
        assert_eq!(std::fs::read(backup_of(path)).expect("a backup"), before[path], "{}", path.display());
    }
    // What is in each file now is CodeCall and what was skipped.
    let (now, plan) = home.plan();
    assert!(plan.servers.is_empty() && plan.duplicates.is_empty(), "{plan:?}");
    for file in &now {
        let servers = file.servers.as_ref().expect("still readable");
        let (name, entry) = servers.last().expect("an entry");
        assert_eq!((name.as_str(), entry["command"].as_str()), ("codecall", Some(COMMAND[0])), "{file:?}");
        assert_eq!(entry["args"][2], COMMAND[3]);
    }
    let skipped = plan.skipped.iter().filter(|skipped| skipped.name == "codecall").count();
    assert_eq!(skipped, now.len(), "its own entries are not taken over");
    // Comments and other settings are still there.
    let text = |path: &str| std::fs::read_to_string(home.0.join(path)).expect("a file");
    let zed = text("config/zed/settings.json");
    for kept in ["// Zed settings", "// and this stays", "\"vim_mode\": true", "mcp-server-context7"] {
        assert!(zed.contains(kept), "{zed}");
    }
    assert!(text("home/.codex/config.toml").contains("# Codex\nmodel = \"gpt-5\""));
    assert!(text("home/.claude.json").contains("\"/somewhere/else\": {\"mcpServers\": {\"other\""));
    let undone = undo_all(&found);
    assert!(undone.values().all(|undone| *undone == Undone::Restored), "{undone:?}");
    assert_eq!(home.bytes(), before);
    assert!(undo_all(&found).values().all(|undone| *undone == Undone::Nothing));
}

/// Changes of a client since then are kept.
#[test]
fn a_file_that_has_changed_since_gets_its_servers_back() {
    let home = Home::new();
    let (found, plan) = home.plan();
    apply_all(&found, &plan);
    for path in found.iter().map(|found| &found.path).collect::<BTreeSet<_>>() {
        let text = std::fs::read_to_string(path).expect("a file");
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        let text = if is_toml {
            text.replacen("model = ", "effort = 3\nmodel = ", 1)
        } else {
            text.replacen('{', "{\"since\": 3,", 1)
        };
        std::fs::write(path, text).expect("written");
    }
    let undone = undo_all(&found);
    assert!(undone.values().all(|undone| *undone == Undone::Merged), "{undone:?}");
    let (now, plan) = home.plan();
    let by_name = |found: &Found| {
        let servers = found.servers.clone().expect("readable");
        (found.path.clone(), found.keys.clone(), servers.into_iter().collect::<BTreeMap<_, _>>())
    };
    assert_eq!(now.iter().map(by_name).collect::<Vec<_>>(), found.iter().map(by_name).collect::<Vec<_>>());
    assert_eq!(plan.servers.len(), 22);
    for path in undone.keys() {
        let text = std::fs::read_to_string(path).expect("a file");
        assert!(text.contains("\"since\": 3") || text.contains("effort = 3"), "{text}");
        assert!(!text.contains(COMMAND[0]) && !backup_of(path).exists(), "{text}");
    }
}

/// A server that was added after the first change is in the backup after the second.
#[test]
fn a_second_change_can_be_undone_too() {
    let home = Home::new();
    let path = home.0.join("home/.cursor/mcp.json");
    let (found, plan) = home.plan();
    apply_all(&found, &plan);
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(
        &path,
        text.replacen("\"mcpServers\": {", "\"mcpServers\": {\n    \"later\": {\"command\": \"l\"},", 1),
    )
    .expect("written");
    let (found, plan) = home.plan();
    assert_eq!(plan.servers.iter().map(|planned| planned.name.as_str()).collect::<Vec<_>>(), ["later"]);
    assert_eq!(apply_all(&found, &plan), BTreeSet::from([path.clone()]));
    assert!(!std::fs::read_to_string(&path).expect("a file").contains("later"));
    undo_all(&found);
    let text = std::fs::read_to_string(&path).expect("a file");
    for name in ["later", "notes", "oauth", "remote", "// Cursor reads comments"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(!text.contains(COMMAND[0]), "{text}");
}

#[test]
fn files_are_where_each_system_has_them() {
    let variables = |_: &str| None;
    for (platform, config, zed) in [
        (Platform::Linux, "h/.config", "h/.config/zed/settings.json"),
        (Platform::MacOs, "h/Library/Application Support", "h/.config/zed/settings.json"),
        (Platform::Windows, "h/AppData/Roaming", "h/AppData/Roaming/Zed/settings.json"),
    ] {
        let home = Home::new();
        let under = |path: &str| home.0.join(path);
        let claude = format!("{config}/Claude/claude_desktop_config.json");
        for path in [claude.as_str(), zed, &format!("{config}/Code/User/mcp.json"), "h/.claude.json"] {
            std::fs::create_dir_all(under(path).parent().expect("a folder")).expect("a folder");
            let entry = r#"{"s": {"command": "x"}}"#;
            let text = format!(r#"{{"mcpServers": {entry}, "servers": {entry}, "context_servers": {entry}}}"#);
            std::fs::write(under(path), text).expect("a file");
        }
        let environment = Environment {
            platform,
            home: under("h"),
            config: under(config),
            folder: under("none"),
            variables: &variables,
        };
        let found: Vec<&str> = find(&environment).iter().map(|found| found.client.id).collect();
        assert_eq!(found, ["claude-desktop", "claude-code", "vscode", "zed"], "{platform:?}");
    }
}

#[test]
fn broken_files_are_reported_without_their_text() {
    let home = Home::new();
    for path in ["config/Claude/claude_desktop_config.json", "home/.codex/config.toml"] {
        std::fs::write(home.0.join(path), "{\n \"mcpServers\": {\"s3cret").expect("written");
    }
    let (_, plan) = home.plan();
    let problems: Vec<&str> =
        plan.skipped.iter().filter(|skipped| skipped.name.is_empty()).map(|skipped| skipped.reason.as_str()).collect();
    let expected =
        ["the file cannot be read: not valid JSON at line 2", "the file cannot be read: not valid TOML at line 1"];
    for (problem, begin) in problems.iter().zip(expected) {
        let (first, excerpt) = problem.split_once('\n').expect("an excerpt");
        assert!(first.starts_with(begin) && excerpt.contains(" | ") && excerpt.ends_with('^'), "{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
    }
    assert_eq!(problems.len(), 2);
}

/// A byte order mark, line ends of Windows and a file with comments alone.
#[test]
fn files_of_windows_stay_as_they_are() {
    let home = Home::new();
    let cursor = home.0.join("home/.cursor/mcp.json");
    let codex = home.0.join("home/.codex/config.toml");
    let vscode = home.0.join("folder/.vscode/mcp.json");
    let json = "\u{feff}{\r\n  // mine\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"},\r\n    \"b\": {\"command\": \"b\",},\r\n  }\r\n}\r\n";
    let toml = "\u{feff}# mine\r\nmodel = \"x\"\r\n\r\n[mcp_servers.c]\r\ncommand = \"c\"\r\n\r\n[mcp_servers.d]\r\nurl = 5\r\n";
    std::fs::write(&cursor, json).expect("written");
    std::fs::write(&codex, toml).expect("written");
    std::fs::write(&vscode, "// nothing yet\n").expect("written");
    let (found, plan) = home.plan();
    assert!(!found.iter().any(|found| found.path == vscode), "comments are no error");
    for name in ["a", "b", "c"] {
        assert!(plan.servers.iter().any(|planned| planned.original == name), "{name}: {:?}", plan.skipped);
    }
    apply_all(&found, &plan);
    for path in [&cursor, &codex] {
        let text = std::fs::read_to_string(path).expect("a file");
        assert!(text.starts_with('\u{feff}') && text.contains("mine") && text.contains("codecall"), "{text}");
        assert_eq!(text.matches("\r\n").count(), text.matches('\n').count(), "{text:?}");
    }
    // What the client has written since stays, the mark too.
    let changed = std::fs::read_to_string(&cursor).expect("a file");
    std::fs::write(&cursor, changed.replace("// mine", "// yours")).expect("written");
    undo_all(&found);
    let text = std::fs::read_to_string(&cursor).expect("a file");
    assert!(text.starts_with('\u{feff}') && text.contains("// yours") && !text.contains("codecall"), "{text}");
    assert_eq!(std::fs::read_to_string(&codex).expect("a file"), toml);
}

/// The time is linear in the number of servers. With 8,000 it was more than a minute without optimisation.
#[test]
fn thousands_of_servers_are_replaced() {
    let home = Home::new();
    let file = home.0.join("home/.cursor/mcp.json");
    let entries: Vec<String> = (0..8_000).map(|n| format!("    \"s{n}\": {{\"command\": \"c{n}\"}}")).collect();
    std::fs::write(&file, format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", entries.join(",\n"))).expect("written");
    let (found, plan) = home.plan();
    let found: Vec<Found> = found.into_iter().filter(|found| found.path == file).collect();
    let began = std::time::Instant::now();
    apply_all(&found, &plan);
    let taken = began.elapsed();
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(text.starts_with("{\n  \"mcpServers\": {\n    \"codecall\"") && text.len() < 500, "{text}");
    assert!(taken.as_secs() < 10, "{taken:?}");
}

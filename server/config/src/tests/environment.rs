//! Keys in the environment, and the effective configuration.

use super::super::effective::{Origin, Setting, of_text};
use super::super::{environment, read};
use super::*;
use serde_json::{Value, json};

fn with(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read::parse(text, Format::Toml, &variables, &|_| None)
}

#[test]
fn every_key_is_a_variable() {
    let file = "topK = 3\n[embedding]\nstrategy = \"bm25\"\n[isolation]\nconfine = \"best-effort\"\n[mcpServers.gitHub]\ncommand = \"x\"\nenv = { A = \"1\" }\n";
    let config = with(
        file,
        &[
            ("CODECALL_VM_PRESET", "balanced"),
            ("CODECALL_VM_MAX_TOOL_CALLS", "7"),
            ("CODECALL_VM_ALLOW_CONSOLE", "true"),
            ("CODECALL_TOP_K", "9"),
            ("CODECALL_SEARCH_SIMILARITY_THRESHOLD", "0.5"),
            ("CODECALL_ENABLE_CODE_EXECUTION", "1"),
            ("CODECALL_ISOLATION", "process"),
            ("CODECALL_HTTP_TOKEN", "0123456789${X}abcdef"),
            ("CODECALL_HTTP_ALLOWED_ORIGINS", "https://a.example, https://b.example"),
            ("CODECALL_RATE_LIMITS", r#"[{"tool": "a:*", "limit": 1, "window": "1m"}]"#),
            ("CODECALL_MCP_SERVERS_GIT_HUB_ENV_A", "2"),
            ("CODECALL_MCP_SERVERS_GIT_HUB_ARGS", r#"["a,b"]"#),
            ("CODECALL_MCP_SERVERS_MY_FILES_COMMAND", "files"),
            ("CODECALL_MCP_SERVERS_MY_FILES_ENV_API_KEY", "k-1234567"),
            ("CODECALL_MCP_SERVERS_REMOTE", r#"{"url": "https://h/mcp"}"#),
        ],
    )
    .expect("valid");
    assert_eq!((config.preset.as_str(), config.policy.limits.max_tool_calls), ("balanced", 7));
    assert!(config.policy.allow_console && config.code_execution.enabled);
    assert_eq!((config.top_k, config.search.similarity_threshold), (9, Some(0.5)));
    assert_eq!(config.isolation.mode, IsolationMode::Process);
    assert_ne!(config.isolation.confine, IsolationConfig::default().confine, "the file's own keys stay");
    assert_eq!(config.http.token.as_deref(), Some("0123456789${X}abcdef"));
    assert_eq!(config.http.allowed_origins, ["https://a.example", "https://b.example"]);
    assert_eq!(config.chain.rate_limits.len(), 1);
    assert_eq!(config.upstreams.keys().collect::<Vec<_>>(), ["gitHub", "my_files", "remote"]);
    assert_eq!((&*stdio(&config, "gitHub").env["A"], &*stdio(&config, "gitHub").args[0]), ("2", "a,b"));
    assert_eq!(&*stdio(&config, "my_files").env["API_KEY"], "k-1234567");
    assert_eq!(config.secrets.redactor().redact_text("k-1234567"), "[secret]");
    assert_eq!(config.warnings, [""; 0]);
}

/// The rule is the same for all keys, and no two keys have the same variable.
#[test]
fn every_key_is_found_by_its_variable() {
    let mut checked = 0;
    for key in keys::all() {
        let path = key.path();
        if path.contains("[]") || path.contains("PATTERN") || key.is_ignored() {
            continue;
        }
        let variable = environment::variable(path);
        let (overrides, warnings) = environment::apply(&mut json!({}), &[(variable.clone(), "x".into())]);
        assert_eq!(warnings, [""; 0], "{path}");
        let found = path.replace("NAME", "name").replace("SCOPE", "scope");
        assert_eq!(overrides[0].path, found, "{variable}");
        checked += 1;
    }
    assert!(checked > 120, "{checked} keys");
}

#[test]
fn mistakes_name_the_variable() {
    for (name, value, expected) in [
        (
            "CODECALL_VM_TIMEOUT_MS",
            "soon",
            "vm.timeoutMs: must be a whole number, 0 or more (the value is that of the environment variable CODECALL_VM_TIMEOUT_MS)",
        ),
        ("CODECALL_TOP_K", "99", "topK: must be from 1 to 50 (the value is"),
        ("CODECALL_POOL", "99", "pool: wrong value, expected a table (the value is"),
        ("CODECALL_STRUCTURED", "maybe", "structured: must be \"auto\", true or false (the value is"),
    ] {
        let message = with("", &[(name, value)]).expect_err(name);
        assert!(message.starts_with(expected) && !message.contains("soon"), "{message}");
    }
    let config = with("", &[("CODECALL_VM_PRESETS", "secure"), ("CODECALL_PORT_80_TCP", "10.0.0.1")]).expect("valid");
    assert_eq!(
        config.warnings,
        [
            "the environment variable CODECALL_VM_PRESETS is no key; did you mean CODECALL_VM_PRESET?",
            "the environment variable CODECALL_PORT_80_TCP is no key; it is ignored"
        ]
    );
}

#[test]
fn unknown_keys_of_servers_are_warnings() {
    let config = toml("[mcpServers.a]\ncommand = \"x\"\nzzz = 3\nargz = []\nenv = { N = 3, B = true }").expect("valid");
    let ignored = |name: &str| format!("mcpServers.a: unknown key '{name}' is ignored");
    assert_eq!(config.warnings, [ignored("argz"), ignored("zzz")]);
    assert_eq!((&*stdio(&config, "a").env["N"], &*stdio(&config, "a").env["B"]), ("3", "true"));
}

#[test]
fn variables_from_a_file() {
    let path = std::env::temp_dir().join(format!("codecall-env-file-{}", std::process::id()));
    std::fs::write(&path, "A=1\nTOKEN=t0k3n-of-file\n").expect("a file");
    let text =
        format!("[mcpServers.a]\ncommand = \"x\"\nenvFile = {:?}\nenv = {{ A = \"2\" }}", path.display().to_string());
    let config = toml(&text).expect("valid");
    std::fs::remove_file(&path).expect("removed");
    let env = stdio(&config, "a").env;
    assert_eq!((&*env["A"], &*env["TOKEN"]), ("2", "t0k3n-of-file"));
    assert_eq!(config.secrets.redactor().redact_text("t0k3n-of-file"), "[secret]");
}

#[test]
fn the_effective_configuration_says_where_values_come_from() {
    let text = r#"
        topK = 5
        [vm]
        preset = "balanced"
        timeoutMs = 7
        [http]
        token = "short-but-secret"
        [mcpServers.a]
        command = "x"
        env = { API_KEY = "k-1234567", B = "${NO:-b}", M = "plain" }
        [mcpServers.b]
        url = "https://h/mcp?key=q-1234567"
        headers = { Authorization = "abc", X = "${TOKEN}" }
    "#;
    let variables = [("CODECALL_TOP_K".to_owned(), "6".to_owned())];
    let settings =
        of_text(text, Format::Toml, &variables, &|name| (name == "TOKEN").then(|| "s3cret-token".to_owned()));
    let settings = settings.expect("valid");
    let find = |path: &str| {
        let found: Vec<&Setting> = settings.iter().filter(|setting| setting.path == path).collect();
        let [setting] = found.as_slice() else { panic!("{path}: {found:?}") };
        (setting.value.clone().unwrap_or(Value::Null), setting.origin.clone())
    };
    assert_eq!(find("topK"), (json!(6), Origin::Variable("CODECALL_TOP_K".into())));
    assert_eq!(find("vm.timeoutMs"), (json!(7), Origin::File));
    let calls = find("vm.maxToolCalls");
    assert!(calls.0.is_u64() && calls.1 == Origin::Preset("balanced".into()), "{calls:?}");
    assert_eq!(find("pool.maxRuns"), (Value::Null, Origin::Default));
    assert_eq!(find("http.token"), (json!("[secret]"), Origin::File));
    assert_eq!(find("mcpServers.a.command"), (json!("x"), Origin::File));
    assert_eq!(find("mcpServers.a.env").0, json!({"API_KEY": "[secret]", "B": "${NO:-b}", "M": "plain"}));
    assert_eq!(find("mcpServers.b.headers").0, json!({"Authorization": "[secret]", "X": "${TOKEN}"}));
    let all = format!("{settings:?}");
    for secret in ["k-1234567", "q-1234567", "s3cret", "short-but", "abc"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

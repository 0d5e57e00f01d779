use super::*;
mod environment;
mod keys;

use agentscript::Loops;
use std::time::Duration;

fn toml(text: &str) -> Result<Config, String> {
    Config::parse(text, Format::Toml, &|name| (name == "TOKEN").then(|| "s3cret-token".to_owned()))
}

fn json(text: &str) -> Result<Config, String> {
    Config::parse(text, Format::Json, &|name| (name == "TOKEN").then(|| "s3cret-token".to_owned()))
}

/// Returns the problem with a configuration, or with the only server of it.
fn mistake(text: &str) -> String {
    mistake_of(toml(text))
}

fn mistake_of(read: Result<Config, String>) -> String {
    read.map_or_else(|message| message, |config| config.unusable.into_values().next().expect("a mistake").reason)
}

fn stdio(config: &Config, app: &str) -> StdioConfig {
    match &config.upstreams[app].kind {
        UpstreamKind::Stdio(stdio) => stdio.clone(),
        UpstreamKind::Http(_) => panic!("a command"),
    }
}

#[test]
fn servers_as_clients_write_them() {
    let config = json(
        r#"{"mcpServers": {
            "github": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"T": "Bearer ${TOKEN}", "D": "${NO:-none}", "P": "$${x}"}},
            "off": {"command": "x", "env": {"A": "${NOT_SET}"}, "disabled": true}
        }}"#,
    )
    .expect("valid");
    assert_eq!(config.upstreams.keys().collect::<Vec<_>>(), ["github"]);
    let github = stdio(&config, "github");
    assert_eq!(github.args, ["-y", "x"].map(Secret::from));
    assert_eq!(&*github.env["T"], "Bearer s3cret-token");
    assert_eq!(&*github.env["D"], "none");
    assert_eq!(&*github.env["P"], "${x}");
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn secrets_are_known() {
    let config = json(
        r#"{"mcpServers": {
            "a": {"command": "x", "env": {"KEY": "k-1234567", "MODE": "production"}, "args": ["--token", "t-1234567"]},
            "b": {"url": "https://h/mcp?key=q-1234567", "headers": {"Authorization": "Bearer h-1234567", "X": "${TOKEN}"}}
        }}"#,
    )
    .expect("valid");
    let told = "k-1234567 production t-1234567 q-1234567 h-1234567 s3cret-token --token";
    let hidden = "[secret] production [secret] [secret] [secret] [secret] --token";
    assert_eq!(config.secrets.redactor().redact_text(told), hidden);
}

/// An entry that cannot be used switches off its server. A wrong key that restricts the server does not.
#[test]
fn one_bad_server_is_one_bad_server() {
    for (entry, is_fatal) in [
        ("a.command = \"${NOPE}\"", false),
        ("a = { command = \"x\", env = { T = \"${NOPE}\" } }", false),
        ("a = { command = \"x\", args = \"y\" }", false),
        ("a = { command = \"x\", startTimeoutMs = \"soon\" }", false),
        ("a = { command = \"x\", url = \"http://x\" }", false),
        ("a = { comand = \"x\" }", false),
        ("a = 5", false),
        ("a = { command = \"x\", enabledTools = \"y\" }", true),
        ("a = { command = \"x\", allowedTools = [\"${NOPE}\"] }", true),
        ("a = { command = \"x\", disabledTool = [\"y\"] }", true),
        ("a = { command = \"${NOPE}\", disabledTools = 3 }", true),
        ("a = { command = \"x\", disabled = \"yes\" }", true),
        ("a = { command = \"x\", confine = { reed = [] } }", true),
        ("a = { url = \"http://x\", confine = {} }", true),
        ("a = { command = \"x\", quarantine = \"never\" }", true),
        ("\"a:b\" = { command = \"x\" }", true),
    ] {
        let read = toml(&format!("[mcpServers]\n{entry}\nb = {{ command = \"x\" }}"));
        assert_eq!(read.is_err(), is_fatal, "{entry}: {read:?}");
        let Ok(config) = read else { continue };
        assert_eq!(config.upstreams.keys().collect::<Vec<_>>(), ["b"], "{entry}");
        assert!(config.unusable["a"].reason.starts_with("mcpServers.a"), "{:?}", config.unusable);
    }
    for (entry, is_fatal) in [
        ("spec = \"${NOPE}\"", false),
        ("spek = \"x\"", false),
        ("spec = \"x\"\nallowWrites = \"yes\"", true),
        ("spec = \"x\"\nexclude = { tags = 3 }", true),
        ("spec = \"x\"\nallowPrivate = [\"*\"]", true),
    ] {
        let read = toml(&format!("[openapi.a]\n{entry}\n[openapi.b]\nspec = \"x\""));
        assert_eq!(read.is_err(), is_fatal, "{entry}: {read:?}");
        let Ok(config) = read else { continue };
        assert!(config.openapi.contains_key("b") && config.unusable["a"].source == "openapi", "{entry}");
    }
    // Its secrets are secrets all the same.
    let config = toml(
        "[mcpServers.a]\nurl = \"${NOPE}\"\nheaders = { A = \"Bearer h-1234567\", B = \"Bearer ${NOPE}\", C = \"${TOKEN}\" }",
    );
    let redacted = config.expect("valid").secrets.redactor().redact_text("h-1234567 s3cret-token Bearer").to_string();
    assert_eq!(redacted, "[secret] [secret] Bearer");
    // Two servers cannot share a name, usable or not.
    let shared = toml("[mcpServers.a]\ncommand = \"${NOPE}\"\n[openapi.a]\nspec = \"x\"").expect_err("shared");
    assert!(shared.starts_with("openapi.a: there is an MCP server of this name"), "{shared}");
}

#[test]
fn services_with_openapi() {
    let config = toml(
        "[openapi.shop]\nspec = \"shop.yaml\"\nbaseUrl = \"https://me:pw-123456@shop.example.com/v1\"\nallowPrivate = [\"localhost:8080\"]\n\
         [openapi.shop.auth]\nkey = \"k-1234567\"\nbasic = \"me:p-1234567\"\n[openapi.shop.include]\ntags = [\"a*\"]\noperationIds = [\"x\"]\n\
         [openapi.off]\nspec = \"${NOT_SET}\"\nenabled = false",
    )
    .expect("valid");
    let shop = &config.openapi["shop"];
    assert_eq!(config.openapi.len(), 1);
    assert_eq!(
        (shop.include.tags.as_slice(), shop.allow_writes, shop.is_remote()),
        (["a*".to_owned()].as_slice(), false, false)
    );
    let hidden = config.secrets.redactor().redact_text("pw-123456 k-1234567 p-1234567 shop.yaml");
    assert_eq!(hidden, "[secret] [secret] [secret] shop.yaml");
    for (text, problem) in [
        ("[openapi.a]", "openapi.a: 'spec' is missing"),
        ("[openapi.a]\nspec = \"ftp://x\"", "openapi.a.spec: must begin with http:// or https://"),
        ("[openapi.a]\nspec = \"x\"\nbaseUrl = \"x\"", "openapi.a.baseUrl: must begin with http:// or https://"),
        (
            "[openapi.a]\nspec = \"x\"\nallowWrite = true",
            "openapi.a: unknown key 'allowWrite'; did you mean 'allowWrites'?",
        ),
        ("[openapi.a]\nspec = \"x\"\nallowPrivate = [\"http://x\"]", "openapi.a.allowPrivate: write a host"),
        (
            "[openapi.a]\nspec = \"x\"\n[mcpServers.a]\ncommand = \"x\"",
            "openapi.a: there is an MCP server of this name",
        ),
        (
            "[openapi.a]\nspec = \"x\"\n[openapi.a.oauth.s]\ntokenUrl = \"https://x/t\"\nclientId = \"c\"",
            "openapi.a.oauth.s: 'clientId' and 'clientSecret' are required",
        ),
        (
            "[openapi.a]\nspec = \"x\"\n[openapi.a.oauth.s]\nclientId = \"c\"\nclientSecret = \"s\"\ntokenUrl = \"t\"",
            "openapi.a.oauth.s.tokenUrl: must begin with http:// or https://",
        ),
        (
            "[openapi.a]\nspec = \"x\"\n[openapi.a.oauth.s]\nclientId = \"c\"\nclientSecret = \"s\"\ntokenUrl = \"http://h/t\"",
            "openapi.a.oauth.s.tokenUrl: must begin with https://, or 'allowPrivate' must name its host",
        ),
        (
            "[openapi.a]\nspec = \"x\"\nauth = { s = \"k\" }\n[openapi.a.oauth.s]\nclientId = \"c\"\nclientSecret = \"s\"\ntokenUrl = \"https://h/t\"",
            "openapi.a.oauth.s: 'auth' has a secret of this scheme too; keep one of them",
        ),
        ("[openapi.codecall]\nspec = \"x\"", "openapi.codecall: this name is the server's own; choose another"),
    ] {
        let error = mistake(text);
        assert!(error.starts_with(problem), "{error}");
    }
}

#[test]
fn every_limit_by_its_name() {
    for limit in agentscript::LIMITS {
        let config = toml(&format!("[vm]\npreset = \"balanced\"\n{} = 7", limit.name)).expect(limit.name);
        assert_eq!(limit.get(&config.policy.limits), 7, "{}", limit.name);
    }
    let config = toml(
        "[vm]\nallowLoops = false\nallowConsole = false\ndisabledGlobals = [\"Date\"]\ndisabledBuiltins = [\"Map\"]",
    )
    .expect("valid");
    assert_eq!(config.policy.loops, Loops::None);
    assert!(!config.policy.allow_console);
    assert_eq!(config.policy.disabled_globals, ["Date"]);
    assert_eq!(config.policy.disabled_builtins, ["Map"]);
}

#[test]
fn what_is_asked_for_on_top_of_a_strict_preset_can_be_used() {
    let config = toml("[vm]\npreset = \"locked_down\"\nallowLoops = true\nallowConsole = true").expect("valid");
    assert!(config.policy.limits.max_iterations > 0 && config.policy.limits.max_console_calls > 0);
}

#[test]
fn how_tools_are_found() {
    let strategy = |text: &str| toml(text).expect(text).search.strategy;
    assert_eq!(strategy(""), Strategy::Auto);
    assert_eq!(strategy("[embedding]\nstrategy = \"tfidf\"\nsimilarityThreshold = 0.3"), Strategy::Bm25);
    assert_eq!(strategy("[search]\nstrategy = \"hybrid\"\nmodelDir = \"/models/s3cret\""), Strategy::Hybrid);
    let config = toml("[search]\nstrategy = \"embedding\"\nmodelDir = \"/models/s3cret\"").expect("valid");
    assert_eq!((config.search.strategy, config.search.similarity_threshold), (Strategy::Embedding, None));
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn mistakes_name_the_key_and_never_the_value() {
    for (text, expected) in [
        ("topk = 3", "unknown key 'topk'; did you mean 'topK'?"),
        ("[vm]\ntimeoutMS = 3", "vm: unknown key 'timeoutMS'; did you mean 'timeoutMs'?"),
        ("[vm]\npreset = \"safe\"", "vm.preset: must be one of locked_down, secure, balanced, experimental"),
        ("[vm]\ntimeoutMs = -3", "vm.timeoutMs: must be a whole number, 0 or more"),
        ("topK = 99", "topK: must be from 1 to 50"),
        ("topK = \"s3cret\"", "topK: wrong value, expected a whole number"),
        ("topK = 1.5", "topK: wrong value, expected a whole number"),
        ("pool = 12345", "pool: wrong value, expected a table"),
        ("vm = 12345", "vm: wrong value, expected a table"),
        ("[search]\nstrategie = \"bm25\"", "search: unknown key 'strategie'; did you mean 'strategy'?"),
        ("[search]\nmodeldir = \"x\"", "search: unknown key 'modeldir'; did you mean 'modelDir'?"),
        ("[search]\nmodelDir = 3", "search.modelDir: wrong value, expected"),
        ("[search]\nstrategy = \"hybrid\"", "search.modelDir: this strategy needs a folder"),
        ("[search]\nsimilarityThreshold = 1.5", "search.similarityThreshold: must be from 0 to 1"),
        ("[mcpServers.a]\ncomand = \"x\"", "mcpServers.a: unknown key 'comand'; did you mean 'command'?"),
        ("[mcpServers.a]\nargs = []", "mcpServers.a: 'command' or 'url' is missing"),
        (
            "[mcpServers.a]\ncommand = \"x\"\nenv = { A = [12345] }",
            "mcpServers.a.env.A: wrong value, expected a string",
        ),
        (
            "[mcpServers.a]\ncommand = \"x\"\n[mcpServers.a.confin]\nread = []",
            "mcpServers.a: unknown key 'confin'; did you mean 'confine'?",
        ),
        (
            "[mcpServers.a]\ncommand = \"x\"\nenabledTool = []",
            "mcpServers.a: unknown key 'enabledTool'; did you mean 'enabledTools'?",
        ),
        ("[mcpServers.a]\ncommand = \"x\"\nenvFile = \"/s3cret\"", "mcpServers.a.envFile: cannot be read: "),
        (
            "[mcpServers.a]\ncommand = \"x\"\nargs = \"${TOKEN}\"",
            "mcpServers.a.args: wrong value, expected a list, such as",
        ),
        ("[mcpServers.a]\ncommand = \"${NOPE}\"", "mcpServers.a.command: the environment variable NOPE is not set"),
        (
            "[mcpServers.codecall]\ncommand = \"x\"",
            "mcpServers.codecall: this name is the server's own; choose another",
        ),
        ("[mcpServers.a]\nurl = \"ftp://x\"", "mcpServers.a.url: must begin with http:// or https://"),
        ("names = ", "not valid TOML at line 1, column 9: "),
        (
            "mode = \"s3cret\"",
            "mode: wrong value, expected one of 'codecall_only', 'codecall_opt_in', 'metadata_driven'",
        ),
        ("[includeTools]\ndeny = [3]", "includeTools.deny[0]: wrong value, expected a text or a table"),
        ("[includeTools]\ndeny = [{ nam = \"x\" }]", "includeTools.deny[0]: unknown key 'nam'; did you mean 'name'?"),
        (
            "[includeTools]\nallow = [{}]",
            "includeTools.allow[0]: must have one of name, app, source, tag and description",
        ),
        ("[tools.x]\nvisible = true", "tools.x: unknown key 'visible'; "),
        ("[tools.x]\nappId = \"codecall\"", "tools.x.appId: this name is the server's own"),
        (
            "[[rateLimits]]\ntool = \"x\"\nlimit = 1\nwindow = \"12345\"",
            "rateLimits[0].window: must be a duration such as",
        ),
        (
            "[[rateLimits]]\ntool = \"x\"\nlimit = 0\nwindow = \"1m\"",
            "rateLimits[0].limit: must be a whole number, 1 or more",
        ),
        ("[[rateLimits]]\ntool = \"x\"\nlimit = 1", "rateLimits[0]: missing field `window`"),
        ("[pii]\ndetect = [\"mail\"]", "pii.detect[0]: wrong value, expected one of 'email', 'iban'"),
        (
            "[pii]\npatterns = [{ name = \"x\", pattern = \"(s3cret\" }]",
            "pii.patterns[0].pattern: must be a regular expression",
        ),
        ("[cache]\nrules = [{ tool = \"x\", ttl = \"soon\" }]", "cache.rules[0].ttl: must be a duration such as"),
        ("[model]\nurl = \"example.com\"", "model.url: must begin with http:// or https://"),
        ("[model]\nmaxTurns = 0", "model.maxTurns: must be from 1 to 100"),
        ("[model]\nkeys = 1", "model: unknown key 'keys'; did you mean 'key'?"),
        ("[stateless]\nkey = \"s3cret\"", "stateless.key: must have at least 16 characters"),
        ("[stateless]\nmaxRounds = 0", "stateless.maxRounds: must be from 1 to 1000000"),
        ("[stateless]\nmaxRound = 9", "stateless: unknown key 'maxRound'; did you mean 'maxRounds'?"),
        ("[audit]\nstderr = false", "audit: give 'file', or 'stderr = true', or both"),
    ] {
        let message = mistake(text);
        assert!(message.starts_with(expected), "{text}: {message}");
        assert!(!message.contains("s3cret") && !message.contains("12345"), "{message}");
    }
    let message = json("{\n  \"topK\": 3,\n  \"http\" {\"token\": \"s3cret-word\"}}").expect_err("no colon");
    assert!(message.starts_with("not valid JSON at line 3, column "), "{message}");
    let (_, excerpt) = message.split_once('\n').expect("an excerpt");
    assert!(
        excerpt.starts_with("  3 |   \"****\" {\"*****\": \"******-****\"}}\n    | ") && excerpt.ends_with('^'),
        "{message}"
    );
    let message = toml("topK = 3\n[http]\r\ntoken = \"s3cret-word\" x\n").expect_err("too much");
    assert!(message.contains("\n  3 | token = \"******-****\" *\n    |                       ^"), "{message}");
}

/// Files of editors: a byte order mark, line ends of Windows, comments, trailing commas. JSON has nothing else that JSON has not.
#[test]
fn files_are_read_as_editors_write_them() {
    let jsonc = "{\n  // mine\n  \"topK\": 3, /* and */\n  \"http\": {\"maxConnections\": 7,},\n}\n// end\n";
    let plain = "topK = 3\n[http]\nmaxConnections = 7\n";
    for mark in ["", "\u{feff}"] {
        for (text, format) in [(jsonc, Format::Json), (plain, Format::Toml)] {
            for text in [text.to_owned(), text.replace('\n', "\r\n")] {
                let config = Config::parse(&format!("{mark}{text}"), format, &|_| None).expect("valid");
                assert_eq!((config.top_k, config.http.max_connections), (3, 7), "{mark:?} {text}");
            }
        }
    }
    let folder = std::env::temp_dir().join(format!("codecall-config-editors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in
        [("a", format!("\u{feff}{jsonc}")), ("b", format!("// first\n{jsonc}")), ("c.jsonc", jsonc.to_owned())]
    {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("written");
        assert_eq!(Config::load(&path).expect("valid").top_k, 3, "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    for text in
        ["{'topK': 3}", "{topK: 3}", "{\"topK\": 0x3}", "{\"topK\": +3}", "{\"topK\": 3 \"http\": {}}", "{} {}", ""]
    {
        assert!(json(text).is_err(), "{text}");
    }
}

/// The secrets of a text, as `codecall init --dry-run` masks them.
#[test]
fn secrets_of_a_text() {
    let text = "[http]\ntoken = \"token-of-http-1\"\n[mcpServers.a]\ncommand = \"x\"\nenabled = false\nunknown = 1\n\
                args = [\"--api-key\", \"key-of-args-1\"]\nenv = { API_KEY = \"key-of-env-123\", PATH = \"/usr/bin\", TOKEN = \"${TOKEN}\" }\n\
                [mcpServers.b]\nurl = \"https://b.example/\"\nheaders = { Authorization = \"Bearer key-of-header-1\" }\n";
    let shown = Config::secrets_of(text, Format::Toml).expect("valid").redactor().redact_text(text).into_owned();
    assert!(!shown.contains("key-of") && !shown.contains("token-of"), "{shown}");
    assert!(
        shown.contains("/usr/bin") && shown.contains("${TOKEN}") && shown.contains("https://b.example/"),
        "{shown}"
    );
}

/// Keys that are valid at a place, as the error for a key that is not tells them. `wrap` puts the
/// members of an object there.
fn known(wrap: impl Fn(&str) -> String) -> Vec<String> {
    let message = mistake_of(json(&wrap("\"\\u0001\": 1")));
    let (_, names) = message.split_once("known are ").unwrap_or_else(|| panic!("{message}"));
    names.split(", ").map(str::to_owned).collect()
}

/// A section of docs/reference/configuration.md: the keys of its first table, and their other names. Keys of tables within
/// have a path.
fn documented(section: &str) -> Vec<String> {
    let page = include_str!("../../../docs/reference/configuration.md");
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let rows =
        rest.lines().skip_while(|line| !line.starts_with("| key |")).skip(2).take_while(|line| line.starts_with('|'));
    let mut names = Vec::new();
    for row in rows {
        let mut cells = row.split('|').skip(1);
        let key = cells.next().and_then(|cell| cell.split('`').nth(1)).expect("a key");
        if key.contains('.') {
            continue;
        }
        names.push(key.to_owned());
        let what = cells.nth(2).expect("a sentence");
        assert!(what.trim().len() > 5, "{section}: {key} says nothing");
        let others = what.split_once("Other names: ").map_or("", |(_, others)| others);
        names.extend(others.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    names
}

/// Each key has a row on its page, and each row a key.
#[test]
fn every_key_is_on_its_page() {
    // What puts the members of an object into the section.
    type Wrap<'a> = &'a dyn Fn(&str) -> String;
    let sections: [(&str, Wrap<'_>); 17] = [
        ("Top level", &|inner| format!("{{{inner}}}")),
        ("mcpServers.NAME", &|inner| format!(r#"{{"mcpServers": {{"x": {{{inner}}}}}}}"#)),
        ("tools.PATTERN", &|inner| format!(r#"{{"tools": {{"x": {{{inner}}}}}}}"#)),
        ("search", &|inner| format!(r#"{{"search": {{{inner}}}}}"#)),
        ("vm", &|inner| format!(r#"{{"vm": {{{inner}}}}}"#)),
        ("directCalls", &|inner| format!(r#"{{"directCalls": {{{inner}}}}}"#)),
        ("pool", &|inner| format!(r#"{{"pool": {{{inner}}}}}"#)),
        ("resultStore", &|inner| format!(r#"{{"resultStore": {{{inner}}}}}"#)),
        ("stateless", &|inner| format!(r#"{{"stateless": {{{inner}}}}}"#)),
        ("http", &|inner| format!(r#"{{"http": {{{inner}}}}}"#)),
        ("model", &|inner| format!(r#"{{"model": {{{inner}}}}}"#)),
        ("sanitization", &|inner| format!(r#"{{"sanitization": {{{inner}}}}}"#)),
        ("rateLimits", &|inner| format!(r#"{{"rateLimits": [{{{inner}}}]}}"#)),
        ("concurrencyLimits", &|inner| format!(r#"{{"concurrencyLimits": [{{{inner}}}]}}"#)),
        ("pii", &|inner| format!(r#"{{"pii": {{{inner}}}}}"#)),
        ("cache", &|inner| format!(r#"{{"cache": {{{inner}}}}}"#)),
        ("audit", &|inner| format!(r#"{{"audit": {{{inner}}}}}"#)),
    ];
    for (section, wrap) in sections {
        let mut known = known(wrap);
        if section == "vm" {
            // They have a page of their own, which is made from them.
            known.retain(|name| agentscript::Limit::named(name).is_none());
        }
        let mut documented = documented(section);
        known.sort();
        documented.sort();
        assert_eq!(
            known, documented,
            "keys of '{section}' (left) and its rows in docs/reference/configuration.md (right)"
        );
    }
}

#[test]
fn code_execution() {
    let config = toml("").expect("valid").code_execution;
    assert_eq!(config, CodeExecution { enabled: false, timeout_ms: 120_000, max_tool_calls: 0, pool_size: 10 });
    let text = r#"{"enable_code_execution": true, "code_execution_timeout_ms": 600000, "code_execution_max_tool_calls": 3, "code_execution_pool_size": 100}"#;
    let config = json(text).expect("valid").code_execution;
    assert_eq!(config, CodeExecution { enabled: true, timeout_ms: 600_000, max_tool_calls: 3, pool_size: 100 });
    for (text, expected) in [
        ("code_execution_timeout_ms = 0", "code_execution_timeout_ms: must be from 1 to 600000"),
        ("code_execution_timeout_ms = 600001", "code_execution_timeout_ms: must be from 1 to 600000"),
        ("code_execution_pool_size = 0", "code_execution_pool_size: must be from 1 to 100"),
        ("code_execution_pool_size = 101", "code_execution_pool_size: must be from 1 to 100"),
    ] {
        assert_eq!(toml(text).expect_err(text), expected);
    }
}

#[test]
fn steps_of_clients() {
    let config = toml("").expect("valid").stateless;
    assert_eq!(
        (config.enabled, config.key, config.max_rounds, config.max_journal_bytes),
        (false, None, 1_000, 8 << 20)
    );
    let text = "[stateless]\nenabled = true\nkey = \"${TOKEN}-and-more\"\nmaxRounds = 7\nmaxJournalBytes = 5000";
    let config = toml(text).expect("valid");
    assert_eq!(config.stateless.key.as_deref(), Some("s3cret-token-and-more"));
    assert_eq!((config.stateless.max_rounds, config.stateless.max_journal_bytes), (7, 5_000));
    assert!(!format!("{config:?}").contains("s3cret"));
    assert_eq!(config.secrets.redactor().redact_text("signed with s3cret-token-and-more"), "signed with [secret]");
}

#[test]
fn http_and_a_model() {
    let config = toml("").expect("valid");
    assert_eq!((config.http.token, config.http.max_body_bytes), (None, 16 << 20));
    assert_eq!((config.model.url, config.model.max_turns, config.model.timeout), (None, 10, Duration::from_secs(300)));
    let text = r#"{"http": {"token": "${TOKEN}-of-http", "allowedOrigins": ["https://a.example"]},
        "model": {"url": "https://models.example/v1?key=in-the-address", "key": "sk-0123456789",
                  "headers": {"x-org": "org-of-headers"}, "codeMessages": true}}"#;
    let config = json(text).expect("valid");
    assert_eq!(config.http.token.as_deref(), Some("s3cret-token-of-http"));
    assert!(config.model.code_messages);
    let shown = format!("{config:?}");
    for secret in ["s3cret-token-of-http", "in-the-address", "sk-0123456789", "org-of-headers"] {
        assert!(!shown.contains(secret), "{shown}");
        assert_eq!(config.secrets.redactor().redact_text(secret), "[secret]");
    }
}

#[test]
fn a_front_without_effect_is_a_warning() {
    for (text, expected) in [
        (r#"{"front": "direct"}"#, None),
        (r#"{"mode": "codecall_only"}"#, None),
        (
            r#"{"mode": "codecall_only", "front": "direct"}"#,
            Some("front: it has no effect, because 'mode' says what is listed"),
        ),
        (
            r#"{"expose": "visible", "front": {"clients": {"x": "code"}}}"#,
            Some("front: it has no effect, because 'expose' says what is listed"),
        ),
    ] {
        let config = Config::parse(text, Format::Json, &|_| None).expect("valid");
        assert_eq!(config.warnings.first().map(String::as_str), expected, "{text}");
    }
    for (text, problem) in [
        (r#"{"front": "code_only"}"#, "front.default: "),
        (r#"{"tools": {"listed": ["serch"]}}"#, "tools.listed[0]: "),
        (r#"{"tools": {"listed": ["search"]}}"#, "tools.listed: without 'execute' or 'invoke' no tool can be called"),
        (r#"{"tools": {"indexTokens": -1}}"#, "tools.indexTokens: "),
        (r#"{"tools": {"indexToken": 5}}"#, "tools.indexToken: "),
        (r#"{"tools": {"users:*": {"visible": true}}}"#, "tools.users:*: "),
    ] {
        let error = Config::parse(text, Format::Json, &|_| None).expect_err(text).to_string();
        assert!(error.starts_with(problem), "{text}: {error}");
    }
}

//! Rules that hold for every key, by the schema.

use super::super::reference::Key;
use super::super::schema;
use super::*;
use serde_json::{Map, Value, json};

/// All keys with the keys of tables, of entries and of items.
pub(super) fn all() -> Vec<Key> {
    fn below(key: &Key, found: &mut Vec<Key>) {
        for key in key.keys().into_iter().chain(key.entry().into_iter().flat_map(|entry| entry.keys())) {
            below(&key, found);
            found.push(key);
        }
    }
    let mut found = Vec::new();
    below(&Key::root(), &mut found);
    found
}

/// A configuration with one value, at the path of a key.
fn with(path: &str, value: Value) -> Value {
    let path = path.replace("NAME", "a").replace("PATTERN", "a");
    path.rsplit('.').fold(value, |inner, name| match name.strip_suffix("[]") {
        Some(name) => json!({ name: [inner] }),
        None => json!({ name: inner }),
    })
}

#[test]
fn every_key_is_documented() {
    let keys = all();
    assert!(keys.len() > 150, "{} keys", keys.len());
    for key in keys {
        assert!(key.text().ends_with(['.', '…']), "{}: {:?}", key.path(), key.text());
        assert_ne!(key.kind(), "", "{}", key.path());
    }
}

#[test]
fn every_key_is_found_by_its_names() {
    for key in all() {
        assert_eq!(Key::find(key.path()).expect("a key").path(), key.path());
    }
    for (path, found) in [
        ("embedding.strategy", "search.strategy"),
        ("mcpServers.github.url", "mcpServers.NAME.url"),
        ("mcpServers.github.httpUrl", "mcpServers.NAME.url"),
        ("rateLimits[0].limit", "rateLimits[].limit"),
        ("rateLimits.limit", "rateLimits[].limit"),
        ("tools.users.tags", "tools.PATTERN.tags"),
        ("pii.tools.allow.tag", "pii.tools.allow[].tag"),
        ("vm.timeoutMs", "vm.timeoutMs"),
        ("", ""),
    ] {
        assert_eq!(Key::find(path).expect(path).path(), found);
    }
    for (path, problem) in [
        ("topk", "unknown key 'topk'; did you mean 'topK'?"),
        ("pool.maxRun", "pool: unknown key 'maxRun'; did you mean 'maxRuns'?"),
        ("topK.x", "topK: there are no keys below it"),
        ("cache.zzz", "cache: unknown key 'zzz'; known are rules, persistent, maxEntries, maxBytes"),
    ] {
        assert_eq!(Key::find(path).expect_err(path), problem);
    }
}

/// The value of a configuration, whatever it was read from.
fn debug_text(config: Config) -> String {
    format!("{:#?}", Config { digest: String::new(), ..config })
}

/// The value that has every key at its default; `null` where there is none, as for a table with required keys.
fn defaults(schema: &Value) -> Value {
    match (&schema["default"], schema::keys(schema)) {
        (Value::Null, Some(keys)) => {
            if schema["required"].as_array().is_some_and(|required| !required.is_empty()) {
                return Value::Null;
            }
            keys.iter().map(|(name, schema)| (name.clone(), defaults(schema))).collect::<Map<_, _>>().into()
        }
        (Value::Null, None) if schema["type"] == "array" && schema["x-default"].is_null() => json!([]),
        (Value::Null, None) if schema["additionalProperties"].is_object() => json!({}),
        (default, _) => default.clone(),
    }
}

#[test]
fn defaults_of_the_schema_are_those_of_the_structs() {
    let mut keys = defaults(schema::root());
    // There is masking, and there are records and tokens of an issuer, as soon as these tables are there.
    let sections = [("pii", keys["pii"].take()), ("audit", keys["audit"].take())];
    keys["http"]["jwt"].take();
    let parsed = json(&keys.to_string()).expect("valid");
    let parsed = debug_text(parsed);
    assert_eq!(parsed, debug_text(Config::default()));
    assert_eq!(parsed, debug_text(json("{}").expect("valid")));
    let [(_, pii), (_, mut audit)] = sections;
    audit["stderr"] = true.into();
    let chain = json(&json!({"pii": pii, "audit": audit}).to_string()).expect("valid").chain;
    assert_eq!(format!("{:?}", chain.pii), format!("{:?}", Some(PiiConfig::default())));
    assert_eq!(format!("{:?}", chain.audit), format!("{:?}", Some(AuditConfig { stderr: true, file: None })));
    let server = defaults(&schema::root()["properties"]["mcpServers"]["additionalProperties"]);
    let mut server = server.as_object().expect("keys").clone();
    server.remove("url");
    server.remove("confine");
    server.remove("auth");
    server.insert("command".into(), "x".into());
    let configured = json(&json!({"mcpServers": {"a": server}}).to_string()).expect("valid");
    let short = json(r#"{"mcpServers": {"a": {"command": "x"}}}"#).expect("valid");
    assert_eq!(debug_text(configured), debug_text(short));
}

#[test]
fn bounds_are_those_of_the_schema() {
    let mut bounded = 0;
    // A key of these is not enough for a valid table.
    let parts = ["[]", "NAME", "PATTERN", "http.jwt."];
    for key in all().iter().filter(|key| !parts.iter().any(|part| key.path().contains(part))) {
        let schema = key.path().split('.').fold(schema::root(), |schema, name| &schema["properties"][name]);
        for (bound, beyond) in [("minimum", -1.0), ("maximum", 1.0)] {
            let Some(value) = schema[bound].as_f64() else { continue };
            let wrap = |value: f64| {
                let value = if schema["type"] == "number" { json!(value) } else { json!(value as i64) };
                json(&with(key.path(), value).to_string())
            };
            assert!(wrap(value).is_ok(), "{} = {value}: {:?}", key.path(), wrap(value));
            let problem = wrap(value + beyond).expect_err(key.path());
            assert!(problem.starts_with(&format!("{}: must be ", key.path())), "{problem}");
            bounded += 1;
        }
    }
    assert!(bounded > 50, "{bounded} bounds");
}

#[test]
fn null_is_the_same_as_nothing() {
    let config = json(r#"{"topK": null, "pool": null, "search": {"strategy": null}, "vm": {"timeoutMs": null}}"#);
    assert_eq!(debug_text(config.expect("valid")), debug_text(Config::default()));
    let problem = json(r#"{"rateLimits": [{"tool": "x", "limit": 1, "window": null}]}"#).expect_err("required");
    assert_eq!(problem, "rateLimits[0]: missing field `window`");
}

#[test]
fn a_key_and_its_other_name_are_one() {
    let config = json(r#"{"mcpServers": {"a": {"url": "http://x", "httpUrl": "http://y"}}}"#).expect("another server");
    assert_eq!(
        config.unusable["a"].reason,
        "mcpServers.a.httpUrl: 'url' is given twice, as 'httpUrl' is another name of it"
    );
    // Clients write several of these at once.
    json(r#"{"mcpServers": {"a": {"command": "x", "autoApprove": [], "timeout": 60}}}"#).expect("ignored");
}

#[test]
fn no_message_has_a_value() {
    let secret = "s3cret-987654321";
    let mut refused = 0;
    for key in all() {
        for value in [json!(secret), json!([secret]), json!({"a": secret}), json!(-987_654_321), json!(987_654_321.5)] {
            if let Err(problem) = json(&with(key.path(), value).to_string()) {
                assert!(!problem.contains("s3cret") && !problem.contains("987654321"), "{problem}");
                refused += 1;
            }
        }
    }
    assert!(refused > 500, "{refused} are refused");
}

/// Whatever is said to be a secret is one, and is in no output of `Debug`.
#[test]
fn every_secret_is_known() {
    let mut secret = 0;
    for key in all() {
        let path = key.path();
        let Some((value, shown)) = key.secret().and_then(|kind| hidden(kind, secret)) else { continue };
        let mut value = with(path, value);
        match path {
            "mcpServers.NAME.headers" | "mcpServers.NAME.auth.clientSecret" => {
                value["mcpServers"]["a"]["url"] = "http://x".into()
            }
            "openapi.NAME.baseUrl" | "openapi.NAME.auth" | "openapi.NAME.headers" => {
                value["openapi"]["a"]["spec"] = "x".into();
            }
            "openapi.NAME.oauth.NAME.clientSecret" => {
                value["openapi"]["a"]["spec"] = "x".into();
                let client =
                    value["openapi"]["a"]["oauth"].as_object_mut().and_then(|clients| clients.values_mut().next());
                let client = client.expect("a client");
                client["clientId"] = "x".into();
                client["tokenUrl"] = "https://x/token".into();
            }
            "mcpServers.NAME.args" | "mcpServers.NAME.env" => value["mcpServers"]["a"]["command"] = "x".into(),
            "store.url" => value["store"]["url"] = format!("postgres://user:{shown}@example.com/db").into(),
            "http.tokens[].token" => value["http"]["tokens"][0]["name"] = "x".into(),
            _ => {}
        }
        let config = json(&value.to_string()).unwrap_or_else(|problem| panic!("{path}: {problem}"));
        assert_eq!(config.secrets.redactor().redact_text(&shown), "[secret]", "{path}");
        assert!(!format!("{config:?}").contains(&shown), "{path}");
        secret += 1;
    }
    assert!(secret >= 8, "{secret} secrets");
}

/// A value with a secret of this kind, and the secret.
fn hidden(kind: &str, number: usize) -> Option<(Value, String)> {
    let secret = format!("s3cret-value-number-{number}");
    let value = match kind {
        "value" => json!(secret),
        "address" => json!(format!("https://example.com/?key={secret}")),
        "arguments" => json!(["--token", secret]),
        "credentials" | "headers" | "variables" => json!({"X-Token": secret}),
        // The environment of the tests has none.
        "inherited" => return None,
        other => panic!("an unknown kind of secret: {other}"),
    };
    Some((value, secret))
}

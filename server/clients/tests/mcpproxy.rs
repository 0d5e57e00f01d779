//! The settings of mcpproxy: each key is taken over or named, and what depends on a lost one stays off.

use codecall_clients::mcpproxy::{Settings, milliseconds, settings};
use serde_json::{Map, Value, json};

fn of(root: &Value) -> Settings {
    settings(root.as_object().expect("a table"))
}

#[test]
fn durations_of_go() {
    for (text, ms) in [
        ("2m0s", Some(120_000)),
        ("1h2m3.5s", Some(3_723_500)),
        ("500ms", Some(500)),
        ("1ns", Some(1)),
        ("0", Some(0)),
        ("0s", Some(0)),
        ("2", None),
        ("m", None),
        ("-1s", None),
        ("1 s", None),
        ("1d", None),
        ("9999999999h", None),
        ("", Some(0)),
    ] {
        assert_eq!(milliseconds(&json!(text)), ms, "{text}");
    }
    assert_eq!(milliseconds(&json!(5)), None);
}

/// Every wrong value of every limit: it is named, and what it limits stays off.
#[test]
fn what_a_lost_limit_limits_stays_off() {
    let wrong = [json!("60000"), json!(-1), json!(1.5), json!([]), json!({}), json!(true), json!(1e30)];
    for key in ["code_execution_timeout_ms", "code_execution_max_tool_calls", "code_execution_pool_size"] {
        for value in wrong.iter().chain(&[json!(600_001), json!(101)]) {
            if key == "code_execution_max_tool_calls" && value.is_u64() || key.contains("timeout") && *value == 101 {
                continue;
            }
            let settings = of(&json!({ "enable_code_execution": true, key: value }));
            let left: Vec<&str> = settings.left.iter().map(|(key, _)| key.as_str()).collect();
            assert_eq!((left, settings.taken.len()), (vec![key, "enable_code_execution"], 0), "{key} {value}");
        }
        let settings = of(&json!({ "enable_code_execution": true, key: 7 }));
        assert_eq!((settings.left.len(), settings.taken.len()), (0, 2), "{key}");
        let settings = of(&json!({ "enable_code_execution": true, key: null }));
        assert_eq!((settings.left.len(), settings.taken.len()), (0, 1), "{key}");
    }
}

#[test]
fn servers_in_isolation() {
    let isolation = |root: Value, entry: Value| {
        let mut entry = entry.as_object().cloned().expect("a table");
        entry.entry("command").or_insert_with(|| "uvx".into());
        codecall_clients::mcpproxy::isolation(root.as_object().expect("a table"), &entry).is_some()
    };
    let (on, off) = (json!({"docker_isolation": {"enabled": true}}), json!({"docker_isolation": {"enabled": false}}));
    for (own, with_on, with_off) in [
        (json!({}), true, false),
        (json!({"isolation": null}), true, false),
        (json!({"isolation": {}}), true, false),
        (json!({"isolation": {"image": "python:3.12"}}), true, false),
        (json!({"isolation": {"enabled": true}}), true, true),
        (json!({"isolation": {"enabled": false}}), false, false),
        (json!({"isolation": {"enabled": "no"}}), true, true),
        (json!({"isolation": {"mode": "docker"}}), true, true),
        (json!({"isolation": {"mode": "sandbox", "enabled": false}}), true, true),
        (json!({"isolation": {"mode": "none", "enabled": true}}), false, false),
        (json!({"isolation": {"mode": "", "enabled": true}}), true, true),
        (json!({"isolation": {"mode": "new"}}), true, true),
        (json!({"isolation": true}), true, true),
        (json!({"isolation": false}), false, false),
        (json!({"isolation": "docker"}), true, true),
        (json!({"docker_isolation": {"enabled": true}}), true, true),
        (json!({"command": "/usr/bin/docker"}), false, false),
    ] {
        assert_eq!(
            (isolation(on.clone(), own.clone()), isolation(off.clone(), own.clone())),
            (with_on, with_off),
            "{own}"
        );
    }
    for root in [json!({"docker_isolation": {"mode": "sandbox"}}), json!({"docker_isolation": true})] {
        assert!(isolation(root.clone(), json!({})), "{root}");
    }
    assert!(!isolation(json!({"docker_isolation": {"mode": "none", "enabled": true}}), json!({})));
    let remote = json!({"url": "https://a.example/mcp", "isolation": {"enabled": true}});
    assert_eq!(codecall_clients::mcpproxy::isolation(&Map::new(), remote.as_object().expect("a table")), None);
}

/// Each key of a file is taken over or named, whatever its value is.
#[test]
fn no_key_gets_lost() {
    let keys = [
        "listen",
        "tray_endpoint",
        "enable_socket",
        "data_dir",
        "enable_tray",
        "debug_search",
        "profiles",
        "top_k",
        "tools_limit",
        "tool_response_limit",
        "call_tool_timeout",
        "max_result_size_chars",
        "queue_size",
        "queue_timeout",
        "toon_output",
        "toon_min_savings_pct",
        "health_check_interval",
        "tool_discovery_interval",
        "http_read_timeout",
        "http_write_timeout",
        "http_idle_timeout",
        "forward_proxy_env",
        "logging",
        "api_key",
        "require_mcp_auth",
        "trusted_hosts",
        "read_only_mode",
        "disable_management",
        "allow_server_add",
        "allow_server_remove",
        "enable_prompts",
        "aggregate_upstream_prompts",
        "check_server_repo",
        "docker_recovery",
        "registries",
        "registries_locked",
        "features",
        "tls",
        "tokenizer",
        "enable_code_execution",
        "code_execution_timeout_ms",
        "code_execution_max_tool_calls",
        "code_execution_pool_size",
        "code_execution_max_parallel",
        "activity_retention_days",
        "intent_declaration",
        "sensitive_data_detection",
        "output_validation",
        "output_sanitisation",
        "telemetry",
        "observability",
        "update_check",
        "routing_mode",
        "tool_response_mode",
        "instructions",
        "quarantine_enabled",
        "security",
        "unknown",
    ];
    for key in keys {
        for value in [
            json!(5),
            json!(2_000),
            json!("x"),
            json!("2m"),
            json!(true),
            json!({"a": 1}),
            json!([1]),
            json!("a-key-of-20-letters-"),
        ] {
            let settings = of(&json!({ key: value }));
            let known =
                settings.taken.iter().map(|setting| &setting.from).chain(settings.left.iter().map(|(key, _)| key));
            assert!(known.into_iter().any(|known| known == key), "{key}: {value}: {settings:?}");
        }
    }
}

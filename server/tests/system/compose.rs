//! `compose.yaml`: it is valid by the schema of the Compose specification (`compose/compose-spec.json`, Apache-2.0), and its commands,
//! environment and health checks work with a real Postgres. No container is started here.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// Variables of the file `.env`.
const VARIABLES: [(&str, &str); 2] = [("POSTGRES_PASSWORD", "4f1c8e"), ("CODECALL_HTTP_TOKEN", "a-token-of-a-person")];

fn read() -> Value {
    let text = std::fs::read(root().join("compose.yaml")).expect("the file is there");
    let parsed = codecall_openapi::parse(&text, "application/yaml").expect("it is YAML");
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    parsed.value
}

/// Replaces `${NAME:?message}` by the variable, as Compose does.
fn interpolated(text: &str) -> String {
    let mut parts = text.split("${");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once('}').expect("an expression ends");
        let (name, message) = expression.split_once(":?").expect("each variable is required");
        assert!(!message.is_empty(), "{name} says what it is");
        let (_, value) = VARIABLES.iter().find(|(known, _)| *known == name).expect("a variable of the documentation");
        result.push_str(value);
        result.push_str(rest);
    }
    result
}

fn environment(service: &Value) -> BTreeMap<String, String> {
    let entries = service["environment"].as_object().expect("variables");
    entries.iter().map(|(name, value)| (name.clone(), interpolated(value.as_str().expect("a text")))).collect()
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|word| interpolated(word.as_str().expect("a text"))).collect()
}

#[test]
fn the_file_is_valid() {
    let schema = include_str!("compose/compose-spec.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let file = read();
    let errors: Vec<String> =
        validator.iter_errors(&file).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut wrong = file.clone();
    wrong["services"]["codecall"]["comand"] = Value::Null;
    assert!(!validator.is_valid(&wrong), "the schema knows its keys");
    let (database, server) = (environment(&file["services"]["postgres"]), environment(&file["services"]["codecall"]));
    let store = &server["CODECALL_STORE_URL"];
    assert!(store.contains(&database["POSTGRES_PASSWORD"]), "{store} has the password of the database");
    let container = std::fs::read_to_string(root().join("server/packaging/container/Containerfile")).expect("is there");
    let health = words(&file["services"]["codecall"]["healthcheck"]["test"]);
    let health: Vec<String> = health[1..].iter().map(|word| format!("\"{word}\"")).collect();
    assert!(container.contains(&format!("CMD [{}]", health.join(", "))), "the health check is that of the container");
    assert!(root().join("examples/compose.toml").exists());
}

#[cfg(all(unix, feature = "postgres"))]
mod running {
    use super::*;
    use crate::model_server::{HttpProcess, http_client};
    use crate::postgres_server;
    use crate::replicas::{call, modern};
    use std::path::PathBuf;
    use tokio::process::Command;

    /// The folder of the programs of Postgres.
    fn programs() -> PathBuf {
        let versions = std::fs::read_dir("/usr/lib/postgresql").expect("Postgres is installed");
        let mut folders = versions.flatten().map(|entry| entry.path().join("bin"));
        folders.find(|folder| folder.join("pg_isready").exists()).expect("Postgres is installed")
    }

    #[tokio::test]
    async fn the_services_work_together() {
        let file = read();
        let (codecall, postgres) = (&file["services"]["codecall"], &file["services"]["postgres"]);
        let database = environment(postgres);
        let server = tokio::task::spawn_blocking(postgres_server::Server::start).await.expect("started");
        let server = server.expect("Postgres starts");
        let address = server.url();
        let port = address.split_once("127.0.0.1:").and_then(|(_, rest)| rest.split_once('/')).expect("a port").0;
        let of_postgres = |program: &str| {
            let mut command = Command::new(programs().join(program));
            command.env("PGHOST", "127.0.0.1").env("PGPORT", port).env("PGUSER", &database["POSTGRES_USER"]);
            command
        };
        // The image makes the database before it is healthy.
        assert!(of_postgres("createdb").arg(&database["POSTGRES_DB"]).status().await.expect("runs").success());
        let health = words(&postgres["healthcheck"]["test"]);
        assert!(of_postgres(&health[1]).args(&health[2..]).status().await.expect("runs").success());

        let folder = Folder::new();
        let mut variables = environment(codecall);
        let store = variables.get_mut("CODECALL_STORE_URL").expect("the address of the store");
        let there = format!(
            "postgres://{}:{}@postgres:5432/{}?",
            database["POSTGRES_USER"], database["POSTGRES_PASSWORD"], database["POSTGRES_DB"]
        );
        assert!(store.starts_with(&there), "{store} is the address of the other service");
        *store = store.replace("@postgres:5432/", &format!("@127.0.0.1:{port}/"));
        // As the container has it.
        for (name, path) in [("HOME", "home"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
            variables.insert(name.into(), folder.path(path));
        }
        let config = root().join("examples/compose.toml").display().to_string();
        let mounted = "/etc/codecall/codecall.toml";
        let volumes = words(&codecall["volumes"]);
        assert!(volumes.contains(&format!("./examples/compose.toml:{mounted}:ro")), "{volumes:?}");
        let mut command = Command::new(PROGRAM);
        let here = |word: String| word.replace("0.0.0.0:8931", "0.0.0.0:0").replace(mounted, &config);
        command.args(words(&codecall["command"]).into_iter().map(here)).envs(&variables);
        let mut process = HttpProcess::start_as(&mut command).await;
        let port = process.url.rsplit_once(':').expect("a port").1.to_owned();
        process.url = format!("http://127.0.0.1:{port}");

        let health = words(&codecall["healthcheck"]["test"]);
        assert_eq!(health[1], "/usr/bin/codecall");
        let is_healthy = async || {
            let here = |word: &String| word.replace("8931", &port);
            let mut command = Command::new(PROGRAM);
            command.args(health[2..].iter().map(here)).envs(&variables);
            command.output().await.expect("runs").status.success()
        };
        assert!(is_healthy().await);
        let get = async |path: &str| {
            let answer = http_client().get(format!("{}{path}", process.url)).send().await.expect("an answer");
            (answer.status().as_u16(), answer.text().await.expect("a text"))
        };
        assert_eq!(get("/readyz").await.0, 200);
        let page = get("/ui/").await;
        assert!(page.1.contains("<html") && page.1.contains("token"), "{page:?}");

        let refused = http_client().post(format!("{}/mcp", process.url)).body("{}").send().await.expect("an answer");
        assert_eq!(refused.status().as_u16(), 401);
        let token = variables["CODECALL_HTTP_TOKEN"].as_str();
        let answer = modern(&process, Some(token), "tools/call", call("return 6 * 7")).await;
        assert!(answer.to_string().contains("42"), "{answer}");

        let mut history = Command::new(PROGRAM);
        history.args(["history", "--json", "--config", &config]).envs(&variables);
        let mut listed = String::new();
        for _ in 0..100 {
            let output = history.output().await.expect("runs");
            listed = String::from_utf8_lossy(&output.stdout).into_owned();
            if listed.contains("codecall_execute") || listed.contains("execute") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert!(listed.contains("execute"), "the run is in the database: {listed}");
        assert_eq!(process.end().await, Some(0));
        assert!(!is_healthy().await, "a server that has ended is not healthy");
    }
}

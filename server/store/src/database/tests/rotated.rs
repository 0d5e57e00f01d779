//! The rotation of master keys.

use super::*;
use crate::key_source::KeySource;
use crate::{MasterKeys, RunResults as _, SqlRunResults};

/// Stores something in each column that is sealed with this ring.
async fn fill(database: &Database, keys: &KeyRing, number: usize) {
    let name = format!("A{number}");
    SqlSecrets(database.clone()).set(keys, SecretName::in_default(&name), "a-secret-value").await.expect("stored");
    let lease = Lease { owner: "a".into(), duration: Duration::from_secs(600) };
    let journals = SqlJournals::new(database.clone());
    for (kind, entries) in [("open", 300), ("ended", 1)] {
        let run = JournaledRun {
            id: format!("{kind} {number}"),
            state: JournaledState::Running,
            principal: None,
            began_ms: 0,
            active_ms: 0,
            resumed_ms: Some(0),
            is_cancelled: false,
            outcome: None,
        };
        journals.begin(keys, &lease, &run, "header", Some("0")).await.expect("begun");
        for entry in 1..entries {
            journals.append(keys, &lease, &Hold::first(&run.id), entry, &entry.to_string()).await.expect("appended");
        }
        let hold = Hold::first(&run.id);
        SqlRunResults(database.clone()).put(keys, &lease, &hold, &"long ".repeat(9), i64::MAX).await.expect("put");
        if kind == "ended" {
            journals.end(keys, &lease, &hold, "outcome", i64::MAX).await.expect("ended");
        }
    }
    let seal = |table, owner: &str, name: &str| {
        keys.seal(crate::sealed::Place { table, owner, name }, b"text").expect("sealed")
    };
    let task = "INSERT INTO tasks (id, scope, description, expires, sealed) VALUES ($1, 's', '', 0, $2)";
    let server = "INSERT INTO credentials (server, version, sealed) VALUES ($1, 1, $2)";
    let answer = "INSERT INTO answers (key, stored, expires, bytes, sealed) VALUES ($1, 0, 0, 0, $2)";
    let secret = "INSERT INTO replica_secrets (name, sealed) VALUES ($1, $2)";
    for (sql, sealed) in [
        (task, seal("task", "s", &name)),
        (server, seal("credentials", "", &name)),
        (answer, seal("answers", "", &name)),
        (secret, seal("replica secret", "", &name)),
    ] {
        database.query(sql, [name.as_str().into(), sealed.into()]).await.expect("stored");
    }
}

/// Checks that a ring opens all that [`fill`] has stored.
async fn check(database: &Database, keys: &KeyRing, number: usize) {
    let name = format!("A{number}");
    let secret = SqlSecrets(database.clone()).get(keys, SecretName::in_default(&name)).await.expect("opened");
    assert_eq!(secret.expect("there").as_str(), "a-secret-value");
    let journals = SqlJournals::new(database.clone());
    let entries = journals.entries(keys, &format!("open {number}")).await.expect("opened");
    assert!(entries.len() == 300 && entries[299] == "299");
    let (run, header) = journals.read(keys, &format!("ended {number}")).await.expect("opened").expect("there");
    assert_eq!((run.outcome.as_deref(), header.as_str()), (Some("outcome"), "header"));
    let result = SqlRunResults(database.clone()).get(keys, &run.id).await.expect("opened");
    assert_eq!(result, Some("long ".repeat(9)));
    for (table, key, place, owner) in [
        ("tasks", "id", "task", "s"),
        ("credentials", "server", "credentials", ""),
        ("answers", "key", "answers", ""),
        ("replica_secrets", "name", "replica secret", ""),
    ] {
        let sql = format!("SELECT sealed FROM {table} WHERE {key} = $1");
        let rows = database.query(sql, [name.as_str().into()]).await.expect("read");
        let place = crate::sealed::Place { table: place, owner, name: &name };
        assert_eq!(keys.open(place, rows[0][0].bytes()).expect(table).as_slice(), b"text");
    }
}

/// Each kind of a sealed record is sealed again, and then nothing needs the earlier key.
pub async fn reaches_all(database: Database) {
    let (old, new) = (new_key().expect("random"), new_key().expect("random"));
    let before = KeyRing::parse(&old, "test").expect("a key");
    fill(&database, &before, 1).await;
    let both = KeyRing::parse(&format!("{}\n{}", *new, *old), "test").expect("two keys");
    fill(&database, &both, 2).await;
    let needed = rotation::needed(&database, &before.id()).await.expect("read").to_string();
    assert_eq!(
        needed,
        "1 cached answers, 2 durable runs, 300 entries of journals, 2 long results of durable runs, \
         1 outcomes of durable runs, 1 secrets, 1 secrets of replicas, 1 tasks, 1 tokens of MCP servers",
        "a column that is sealed belongs into the list"
    );
    let rotated = rotation::seal_again(&database, &both).await.expect("rotated");
    assert_eq!((rotated.sealed.to_string(), rotated.problem), (needed, None));
    assert!(rotation::needed(&database, &before.id()).await.expect("read").is_empty());
    let after = KeyRing::parse(&new, "test").expect("a key");
    check(&database, &after, 1).await;
    check(&database, &after, 2).await;
}

/// A ring has as many keys as were made, and one that something needs is missed by its name.
#[tokio::test]
async fn a_key_that_is_needed_is_not_given_up() {
    let folder = Folder::new("keys");
    let (database, path) = (folder.database(), folder.0.join("master.key"));
    let source = KeySource::of_file(path.clone());
    let first = MasterKeys::of(&database, &source).await.expect("made").ring;
    fill(&database, &first, 1).await;
    for _ in 0..40 {
        source.add_key().expect("added");
        let ring = source.load().expect("loaded");
        MasterKeys::replace(&database, &ring, &source).await.expect("replaced");
    }
    let all = std::fs::read_to_string(&path).expect("a file");
    assert_eq!(all.lines().count(), 41);
    // Another one that nothing needs may go, the first one not.
    let lines: Vec<&str> = all.lines().collect();
    std::fs::write(&path, [&lines[..10], &lines[11..]].concat().join("\n")).expect("written");
    MasterKeys::of(&database, &source).await.expect("nothing needs it");
    std::fs::write(&path, lines[..40].join("\n")).expect("written");
    let error = MasterKeys::of(&database, &source).await.expect_err("it is needed").to_string();
    assert!(error.contains(&first.id()) && error.contains("1 secrets") && error.contains("300 entries"), "{error}");
    std::fs::write(&path, &all).expect("written");
    let ring = MasterKeys::of(&database, &source).await.expect("all").ring;
    rotation::seal_again(&database, &ring).await.expect("rotated");
    assert!(source.remove(&first.id()).expect("removed") && !source.remove(&first.id()).expect("it is gone"));
    check(&database, &MasterKeys::of(&database, &source).await.expect("keys").ring, 1).await;
    // The last one stays.
    std::fs::write(&path, lines[0]).expect("written");
    assert!(source.remove(&source.load().expect("a key").id()).is_err());
}

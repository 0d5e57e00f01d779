//! Data that the servers of a database share: the id of the master key, approvals of tools, tokens, records of servers,
//! vectors.

use super::*;
use crate::sealed::KeySource;
use crate::{
    AnswerCache as _, Approval, ApprovalStore as _, Approvals, CredentialStore as _, Digest, MasterKeys, ServerRecord,
    ServerStore as _, ShapeStore as _, SqlAnswers, SqlApprovals, SqlCredentials, SqlServers, SqlShapes, SqlVectors,
    VaultError, Vector, VectorModel, VectorStore as _, upkeep,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use codecall_base::tool::ToolResult;
use codecall_config::{Config, Lifecycle};
use std::path::Path;

const SECRET: &[u8] = b"{\"access_token\": \"very-secret-token\"}";

/// The configuration of a server with a folder of its own.
fn config(folder: &Folder, server: &str) -> Config {
    Config { state_dir: Some(folder.0.join(server)), ..Config::default() }
}

/// Each part with two stores of one database, as two servers have them.
pub async fn is_shared(folder: &Folder, open: impl Fn() -> Database) {
    one_master_key(folder, &open).await;
    credentials(folder, &open).await;
    approvals(folder, &open).await;
    records(&open).await;
    vectors(&open).await;
    answers(folder, &open).await;
    upkeep::delete_expired(&open()).await.expect("deleted");
    let counts = upkeep::counts(&open()).await.expect("counts");
    assert!(counts.contains(&("approvedTools", 5)) && counts.contains(&("knownServers", 1)), "{counts:?}");
}

/// Two servers that have no key, and no folder in common, do not make a key each.
async fn one_master_key(folder: &Folder, open: &impl Fn() -> Database) {
    let names = ["a", "b", "c", "d"];
    let sources = names.map(|name| KeySource::of(&config(folder, name)));
    let databases = names.map(|_| open());
    let (a, b, c, d) = tokio::join!(
        MasterKeys::of(&databases[0], &sources[0]),
        MasterKeys::of(&databases[1], &sources[1]),
        MasterKeys::of(&databases[2], &sources[2]),
        MasterKeys::of(&databases[3], &sources[3]),
    );
    let all = [a, b, c, d];
    let winner = all.iter().position(Result::is_ok).expect("one of them has a key");
    for (at, result) in all.iter().enumerate().filter(|(at, _)| *at != winner) {
        let Err(VaultError::Seal(SealError::NotRegistered { .. })) = result else { panic!("{result:?}") };
        assert!(!Path::new(&sources[at].to_string()).exists(), "a key of no use");
    }
    let keys = all[winner].as_ref().expect("a key");
    assert!(keys.made.is_some());
    // With the key of the first one, another one works; with a key of its own it is refused.
    let (first, other) = (&sources[winner], &sources[(winner + 1) % 4]);
    let (file, first_file) = (other.to_string(), first.to_string());
    let file = Path::new(&file);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::copy(first_file, file).expect("copied");
    let same = MasterKeys::of(&open(), other).await.expect("the same key");
    assert_eq!((same.ring.id(), same.made), (keys.ring.id(), None));
    std::fs::remove_file(file).expect("removed");
    other.ensure_key().expect("a key");
    let refused = MasterKeys::of(&open(), other).await.expect_err("another key").to_string();
    assert!(refused.contains(&keys.ring.id()) && refused.contains(&file.display().to_string()), "{refused}");
    // Rotation: the new key is first, the old one still opens.
    first.add_key().expect("added");
    let rotated = first.load().expect("keys");
    MasterKeys::replace(&open(), &rotated, first).await.expect("replaced");
    let refused = MasterKeys::replace(&open(), &other.load().expect("a key"), other).await;
    assert!(matches!(refused, Err(VaultError::Seal(SealError::NotRegistered { .. }))), "{refused:?}");
    // Where no key is registered, that of what is sealed counts.
    let sealed =
        rotated.seal(crate::sealed::Place { table: "secrets", owner: "w", name: "n" }, b"value").expect("sealed");
    let insert = "INSERT INTO secrets (workspace, name, created, changed, sealed) VALUES ('w', 'n', 0, 0, $1)";
    open().query(insert, [sealed.into()]).await.expect("inserted");
    open().query("DELETE FROM master_keys", []).await.expect("deleted");
    assert!(MasterKeys::of(&open(), other).await.is_err());
    assert!(MasterKeys::of(&open(), first).await.is_ok());
    open().query("DELETE FROM secrets WHERE workspace = 'w'", []).await.expect("deleted");
    // A lost key.
    MasterKeys::renounce(&open(), other).await.expect("another key");
    assert!(MasterKeys::of(&open(), other).await.is_ok() && MasterKeys::of(&open(), first).await.is_err());
    open().query("DELETE FROM master_keys", []).await.expect("deleted");
}

/// An answer that one server has stored is given by the other one, sealed until it expires, and within bounds.
async fn answers(folder: &Folder, open: &impl Fn() -> Database) {
    let mut config = config(folder, "credentials");
    (config.chain.cache.max_entries, config.chain.cache.max_bytes) = (2, 2_000);
    let (one, two) = (SqlAnswers::new(open(), &config), SqlAnswers::new(open(), &config));
    let hours = |count: u64| Duration::from_secs(3_600 * count);
    let answer = |text: &str| ToolResult::Mcp(serde_json::json!({"content": [{"type": "text", "text": text}]}));
    let put = async |key: &str, answer: &ToolResult, ttl| one.put(key.into(), answer.clone(), ttl).await;
    assert_eq!(two.get("users:get {}").await, Ok(None));
    put("users:get {}", &answer("secret words"), hours(1)).await.expect("stored");
    assert_eq!(two.get("users:get {}").await, Ok(Some(answer("secret words"))));
    let rows = open().query("SELECT key, sealed FROM answers", []).await.expect("rows");
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(rows.len() == 1 && !has(rows[0][1].bytes(), b"secret"));
    assert!(!has(rows[0][0].text().expect("text").as_bytes(), b"users"), "{rows:?}");
    // A later answer replaces it; plain data stays plain data.
    let data = ToolResult::Data(serde_json::json!([1, null]));
    put("users:get {}", &data, hours(1)).await.expect("stored");
    assert_eq!(two.get("users:get {}").await, Ok(Some(data.clone())));
    // What was stored first is evicted first, above the number of entries and above the bytes.
    put("b", &data, hours(3)).await.expect("stored");
    put("c", &data, hours(2)).await.expect("stored");
    assert_eq!((two.get("users:get {}").await, two.get("c").await), (Ok(None), Ok(Some(data.clone()))));
    put("d", &answer(&"x".repeat(1_880)), hours(1)).await.expect("stored");
    assert_eq!((two.get("b").await, two.get("c").await), (Ok(None), Ok(None)));
    assert!(two.get("d").await.expect("read").is_some());
    put("e", &answer(&"x".repeat(2_000)), hours(1)).await.expect("not stored");
    assert_eq!(two.get("e").await, Ok(None), "it is too large");
    put("d", &data, Duration::ZERO).await.expect("stored");
    assert_eq!(two.get("d").await, Ok(None), "it has expired");
    // In the place of another one it is not opened, and is replaced.
    put("f", &data, hours(1)).await.expect("stored");
    open().query("UPDATE answers SET key = 'moved'", []).await.expect("updated");
    put("g", &data, hours(1)).await.expect("stored");
    let swap = "UPDATE answers SET sealed = (SELECT sealed FROM answers WHERE key = 'moved') WHERE key <> 'moved'";
    open().query(swap, []).await.expect("updated");
    assert!(two.get("g").await.expect_err("refused").0.contains("belongs to another row"));
    put("g", &data, hours(1)).await.expect("stored");
    assert_eq!(two.get("g").await, Ok(Some(data)));
}

async fn credentials(folder: &Folder, open: &impl Fn() -> Database) {
    let config = config(folder, "credentials");
    let (one, two) = (SqlCredentials::new(open(), &config), SqlCredentials::new(open(), &config));
    let (server, other): (Digest, Digest) = ([1; 32], [2; 32]);
    assert_eq!((one.get(server).await, one.version(server).await), (Ok(None), Ok(None)));
    one.put(server, SECRET.to_vec()).await.expect("stored");
    assert_eq!(two.get(server).await, Ok(Some(SECRET.to_vec())));
    let version = two.version(server).await.expect("a version");
    one.put(server, b"other".to_vec()).await.expect("stored");
    assert_ne!(two.version(server).await.expect("a version"), version);
    // Sealed, and bound to its server.
    let rows = open().query("SELECT sealed FROM credentials", []).await.expect("rows");
    assert!(rows.len() == 1 && !rows[0][0].bytes().windows(5).any(|part| part == b"other"));
    let copy = "INSERT INTO credentials (server, version, sealed) VALUES ($1, 1, $2)";
    let moved = [state::hex(&other).as_str().into(), rows[0][0].clone()];
    open().query(copy, moved).await.expect("copied");
    assert!(two.get(other).await.expect_err("refused").0.contains("belongs to another row"));
    assert_eq!((one.remove(other).await, one.remove(other).await), (Ok(true), Ok(false)));
    // One of them renews.
    let guard = one.lock(server).await.expect("the lock");
    let waiting = tokio::time::timeout(Duration::from_millis(300), two.lock(server)).await;
    assert!(waiting.is_err(), "both renew");
    guard.release().await;
    two.lock(server).await.expect("the lock").release().await;
    // The file of an earlier version is moved.
    let state = folder.0.join("credentials");
    let old = BASE64_STANDARD.decode(OLD_CREDENTIALS).expect("base64");
    let path = state.join("credentials").join(state::hex(&[7; 32]));
    std::fs::create_dir_all(state.join("credentials")).expect("a folder");
    std::fs::write(&path, old).expect("written");
    let key = std::fs::read_to_string(state.join("master.key")).expect("a key");
    std::fs::write(state.join("master.key"), format!("{key}\n{}\n", BASE64_STANDARD.encode([9; 32]))).expect("written");
    assert_eq!(one.get([7; 32]).await, Ok(Some(SECRET.to_vec())));
    assert!(!path.exists());
    assert_eq!(two.get([7; 32]).await, Ok(Some(SECRET.to_vec())));
}

/// `SECRET` as an earlier version has stored it for the server `[7; 32]`, with the key `[9; 32]`.
const OLD_CREDENTIALS: &str = "AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f7TK/nnszhOG9xbXVE2O5ctv9mx3ZH8f4pBxpWm0m7m9DqabiG4Ke9J7Y413VAiSRQIvSmzo=";

async fn approvals(folder: &Folder, open: &impl Fn() -> Database) {
    let config = config(folder, "approvals");
    let tools = |tools: &[(&str, &str)]| -> Approvals {
        let approval = |digest: &str| Approval { digest: digest.into(), definition: "{}".into() };
        tools.iter().map(|(name, digest)| ((*name).to_owned(), approval(digest))).collect()
    };
    let (one, other) = (SqlApprovals::new(open(), &config), SqlApprovals::new(open(), &config));
    let server: Digest = [1; 32];
    assert_eq!((one.approved(server), other.approved(server)), (None, None), "nothing was read");
    assert_eq!((one.refresh().await, other.refresh().await), (Ok(true), Ok(true)));
    assert_eq!(other.refresh().await, Ok(false));
    let approved = |store: &SqlApprovals| store.approved(server).map(|approved| Approvals::clone(&approved));
    assert_eq!(approved(&one), Some(Approvals::new()));
    one.approve(server, tools(&[("a", "1"), ("b", "1")])).await.expect("stored");
    assert_eq!(approved(&one), Some(tools(&[("a", "1"), ("b", "1")])));
    assert_eq!(approved(&other), Some(Approvals::new()), "it has not looked yet");
    assert_eq!(other.refresh().await, Ok(true));
    let (first, second) =
        (one.approve(server, tools(&[("d", "")])), other.approve(server, tools(&[("b", "2"), ("c", "2")])));
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first, second), (Ok(()), Ok(())));
    let _ = (one.refresh().await, other.refresh().await);
    let expected = Some(tools(&[("a", "1"), ("b", "2"), ("c", "2"), ("d", "")]));
    assert_eq!((approved(&one), approved(&other)), (expected.clone(), expected));
    assert_eq!(one.refresh().await, Ok(false));
    // The file of an earlier version is moved.
    let old: Digest = [7; 32];
    let path = folder.0.join("approvals/approvals").join(format!("{}.json", state::hex(&old)));
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, r#"{"format":1,"tools":{"x":{"digest":"1","definition":"{}"}}}"#).expect("written");
    assert_eq!((one.approved(old), one.refresh().await), (None, Ok(true)));
    assert_eq!(one.approved(old).as_deref(), Some(&tools(&[("x", "1")])));
    assert!(!path.exists());
    assert_eq!((other.approved(old), other.refresh().await), (None, Ok(true)));
    assert_eq!(other.approved(old).as_deref(), Some(&tools(&[("x", "1")])));
}

async fn records(open: &impl Fn() -> Database) {
    let record = ServerRecord {
        lifecycle: Lifecycle::Initialize,
        title: Some("Server".into()),
        tools: vec![serde_json::json!({"name": "z", "inputSchema": {"b": 1, "a": 2}})],
    };
    let (one, other) = (SqlServers::new(open()), SqlServers::new(open()));
    assert_eq!(one.get([1; 32]).await, Ok(None));
    one.put([1; 32], record.clone()).await.expect("stored");
    assert_eq!(other.get([1; 32]).await, Ok(Some(record.clone())));
    let changed = ServerRecord { title: None, ..record };
    other.put([1; 32], changed.clone()).await.expect("stored");
    assert_eq!((one.get([1; 32]).await, one.get([2; 32]).await), (Ok(Some(changed)), Ok(None)));
    let damage = "UPDATE known_servers SET record = $1";
    open().query(damage, [vec![1, 2, 3].into()]).await.expect("written");
    assert_eq!(one.get([1; 32]).await, Ok(None), "damaged");
    let shapes = SqlShapes::new(open());
    assert_eq!(shapes.get([1; 32]).await, Ok(None));
    shapes.put([1; 32], crate::ToolShapes::default()).await.expect("stored");
    assert_eq!(shapes.get([1; 32]).await, Ok(Some(crate::ToolShapes::default())));
}

async fn vectors(open: &impl Fn() -> Database) {
    let model = VectorModel { digest: [1; 32], dimensions: 2 };
    let longer = VectorModel { dimensions: 3, ..model };
    let digest = |at: usize| -> Digest {
        std::array::from_fn(|byte| u8::try_from(at >> (8 * (byte % 4)) & 255).expect("a byte"))
    };
    let vector = |at: usize| -> Vector { [at as f32, 0.5].into() };
    let (one, other) = (SqlVectors::new(open()), SqlVectors::new(open()));
    let all: Vec<(Digest, Vector)> = (0..250).map(|at| (digest(at), vector(at))).collect();
    one.put_many(&model, &all).await.expect("stored");
    // More than one statement reads, in any order, with some that are not there, and one twice.
    let wanted: Vec<usize> = (0..301).rev().chain([7]).collect();
    let texts: Vec<Digest> = wanted.iter().map(|at| digest(*at)).collect();
    let expected: Vec<Option<Vector>> = wanted.iter().map(|at| (*at < 250).then(|| vector(*at))).collect();
    assert_eq!(other.get_many(&model, &texts).await, Ok(expected));
    assert_eq!(other.get_many(&model, &[]).await, Ok(Vec::new()));
    assert_eq!(other.get_many(&longer, &texts[60..61]).await, Ok(vec![None]), "of another length");
    // The time of use is written once a day.
    let old = "UPDATE vectors SET used = used - 172800000 WHERE text <> $1";
    open().query(old, [digest(0).to_vec().into()]).await.expect("written");
    let _ = other.get_many(&model, &texts).await;
    other.note_use(&model, &[digest(1), digest(300)]).await.expect("noted");
    let recent = "SELECT count(*) FROM vectors WHERE used > $1";
    let rows = open().query(recent, [(now_ms() - 86_400_000).into()]).await.expect("a count");
    assert_eq!(rows[0][0].int(), 2);
    // The least recently used ones are deleted.
    let small = SqlVectors::with_max(open(), 2);
    small.put_many(&model, &[(digest(0), vector(0))]).await.expect("stored");
    assert_eq!(
        other.get_many(&model, &[digest(0), digest(1), digest(2)]).await,
        Ok(vec![Some(vector(0)), Some(vector(1)), None])
    );
}

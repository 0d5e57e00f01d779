//! Random secrets in every spelling.

use super::leaky::Told;
use super::spellings::{Needles, Random, pair, spellings, written};
use super::world::World;
use crate::support::*;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How many servers have random secrets, and how many of them at once.
const ROUNDS: u64 = 3;
const AT_ONCE: usize = 3;
/// How long the secrets of a server are at least.
const BYTES_OF_A_ROUND: usize = 16;
/// How often a secret is told in two encodings within each other.
const PAIRS: usize = 4;
const MAX_PAIR_BYTES: usize = 400;

/// Returns what random secrets are told as, and what finds them.
fn random_told(random: &mut Random, secrets: &[String]) -> (Told, Needles) {
    let (mut all, mut needles) = (Vec::new(), Needles::default());
    for secret in secrets {
        let own = spellings(secret);
        own.iter().for_each(|spelling| needles.add(secret, spelling));
        all.extend(own);
    }
    let text = written(all, random);
    // Where a long text is cut, only parts of single encodings are found, so the pairs are at its beginning.
    let mut pairs: Vec<_> =
        secrets.iter().flat_map(|secret| [0; PAIRS].map(|_| (secret, pair(secret, random)))).collect();
    pairs.retain(|(_, pair)| pair.text.len() <= MAX_PAIR_BYTES);
    pairs.iter().for_each(|(secret, pair)| needles.add(secret, pair));
    let some = spellings(&secrets[0]).into_iter().filter(|_| random.below(4) == 0).collect();
    let streamed = written(some, random);
    let deep = written(pairs.into_iter().map(|(_, pair)| pair).collect(), random) + &text;
    (Told { name: secrets[0].clone(), text, deep, streamed }, needles)
}

/// Every way out, with secrets that are known from the start, in every spelling. `CODECALL_TEST_SEED` and
/// `CODECALL_TEST_ROUNDS` make other secrets, and more.
#[tokio::test(flavor = "multi_thread")]
async fn no_way_out_lets_random_secrets_pass() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let seed = number("CODECALL_TEST_SEED", 1);
    let mut rounds = stream::iter(seed..seed + number("CODECALL_TEST_ROUNDS", ROUNDS))
        .map(|seed| tokio::spawn(random_round(seed)))
        .buffer_unordered(AT_ONCE);
    while let Some(round) = rounds.next().await {
        round.expect("no leak");
    }
}

async fn random_round(seed: u64) {
    let mut random = Random(seed);
    let mut secrets = vec![random.secret()];
    while secrets.iter().map(String::len).sum::<usize>() < BYTES_OF_A_ROUND {
        secrets.push(random.secret());
    }
    let (told, needles) = random_told(&mut random, &secrets);
    let mut world = World::start(told, 1, &secrets).await;
    let mut ways = world.ways_out().await;
    let silent: Vec<_> = ways.iter().filter(|(_, left)| !left.to_string().contains("[secret]")).collect();
    assert!(silent.is_empty(), "CODECALL_TEST_SEED={seed}: they do not show what is to be redacted: {silent:#?}");
    ways.extend(world.figures().await);
    world.hub.history().expect("a history").flush().await;
    let stored = world.stored();
    // Their code is what its author has written, and is stored as it is.
    ways.extend(world.script_tools().await);
    world.hub.close().await;
    let texts = ways.into_iter().map(|(name, left)| match left {
        Value::String(text) => (name, text),
        left => (name, left.to_string()),
    });
    let leaks: BTreeSet<_> =
        texts.chain(stored).filter_map(|(name, text)| Some((name, needles.find(&text)?.to_owned()))).collect();
    assert!(leaks.is_empty(), "CODECALL_TEST_SEED={seed} {secrets:?}: {leaks:#?}");
}

/// The stderr of an MCP server is a part of the log, and of the reason why it has ended.
#[tokio::test]
async fn no_line_of_the_log_has_a_random_secret() {
    let (folder, mut random, mut needles) = (Folder::new(), Random(7), Needles::default());
    let (mut environment, mut lines) = (Map::new(), Vec::new());
    while environment.len() < 4 {
        let secret = random.secret();
        // No variable of an environment has it.
        if secret.contains('\0') || secret.len() > 60 {
            continue;
        }
        let own = spellings(&secret);
        own.iter().for_each(|spelling| needles.add(&secret, spelling));
        lines.push(written(own, &mut random));
        environment.insert(format!("KEY_{}", environment.len()), secret.into());
    }
    let output = folder.file("output", lines.join("\n") + "\n");
    // The last lines are those of the message.
    let tells = json!({"command": "sh", "args": ["-c", "cat \"$0\" >&2", output], "env": environment});
    let config = folder.file("config.json", json!({"mcpServers": {"leak": tells}}).to_string());
    for format in ["text", "json"] {
        let words = ["-v", "--log-format", format, "--config", &config];
        let server = Server::start(&words).await;
        let failed = server.call("codecall_execute", json!({"script": "return await callTool('leak:a', {})"})).await;
        let failed = json!(failed.expect("a result")).to_string();
        let stderr = server.end().await;
        assert!(stderr.matches("[secret]").count() > 10, "{stderr}");
        assert_eq!((needles.find(&stderr), needles.find(&failed)), (None, None), "{stderr}\n{failed}");
    }
}

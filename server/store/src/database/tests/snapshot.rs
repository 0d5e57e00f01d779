//! Copies of a database while servers write.

use super::*;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

fn journaled(id: &str) -> JournaledRun {
    JournaledRun {
        id: id.to_owned(),
        state: JournaledState::Running,
        principal: None,
        began_ms: 0,
        active_ms: 0,
        resumed_ms: Some(0),
        is_cancelled: false,
        outcome: None,
    }
}

/// Begins runs, adds entries to them and ends them, until it is dropped.
async fn work(database: Database, writer: usize) {
    let (journals, keys) =
        (SqlJournals::new(database), KeyRing::parse(&new_key().expect("random"), "test").expect("a key"));
    let lease = Lease { owner: format!("writer {writer}"), duration: Duration::from_secs(600) };
    for number in 0.. {
        let id = format!("{:032x}", writer * 1_000_000 + number);
        journals.begin(&keys, &lease, &journaled(&id), "{}", Some("first")).await.expect("begun");
        for entry in 1..4 {
            journals.append(&keys, &lease, &Hold::first(&id), entry, "next").await.expect("appended");
        }
        journals.end(&keys, &lease, &Hold::first(&id), "outcome", now_ms() + 600_000).await.expect("ended");
    }
}

/// The rows of a table of a file.
fn rows(file: &[u8], table: &str) -> Vec<Vec<Json>> {
    let lines = file.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Json>(line).expect("JSON"));
    lines.filter(|line| line["table"] == table).filter_map(|line| line["row"].as_array().cloned()).collect()
}

/// Each open run of a copy has all entries that it had then, and no ended one has any.
pub async fn is_consistent(database: Database) {
    let writers: Vec<_> = (1..4).map(|writer| tokio::spawn(work(database.clone(), writer))).collect();
    let (mut open_runs, began) = (0, Instant::now());
    while open_runs < 20 && began.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut file = Vec::new();
        let exported = transfer::export(&database, &mut file).await.expect("exported");
        let mut entries: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for row in rows(&file, "journal_entries") {
            let run = row[0].as_str().expect("a run").to_owned();
            entries.entry(run).or_default().push(row[1].as_i64().expect("a number"));
        }
        let is_open =
            |row: &Vec<Json>| row[1] == "running" && row[5].as_str().is_some_and(|owner| owner.starts_with("writer"));
        let open: BTreeSet<String> = rows(&file, "journaled_runs")
            .into_iter()
            .filter(is_open)
            .map(|row| row[0].as_str().expect("an id").to_owned())
            .collect();
        for run in &open {
            let entries = entries.get(run).map(Vec::as_slice).unwrap_or_default();
            assert!(!entries.is_empty() && (0..).zip(entries).all(|(at, number)| at == *number), "{run}: {entries:?}");
        }
        let ended = entries.keys().filter(|run| run.as_str() > "0000000000000000000000000000" && !open.contains(*run));
        assert_eq!(ended.collect::<Vec<_>>(), Vec::<&String>::new());
        assert!(exported.open_runs >= open.len() as u64);
        open_runs += open.len();
    }
    assert!(open_runs > 0, "some are open");
    writers.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Marks of runs that were cancelled are copied. Files of earlier versions lack them.
#[tokio::test]
async fn a_run_that_was_cancelled_is_cancelled_in_the_copy() {
    let (one, other) = (Folder::new("cancelled"), Folder::new("cancelled-copy"));
    let keys = KeyRing::parse(&new_key().expect("random"), "test").expect("a key");
    let lease = Lease { owner: "a".into(), duration: Duration::from_secs(600) };
    let journals = SqlJournals::new(one.database());
    for id in ["1", "2"] {
        journals.begin(&keys, &lease, &journaled(id), "{}", Some("x")).await.expect("begun");
    }
    assert_eq!(journals.cancel("1").await, Ok(true));
    let mut file = Vec::new();
    assert_eq!(transfer::export(&one.database(), &mut file).await.expect("exported").open_runs, 2);
    transfer::import(&other.database(), &mut file.as_slice()).await.expect("imported");
    let copy = SqlJournals::new(other.database());
    let is_cancelled = async |id: &str| copy.get(&keys, id).await.expect("read").expect("there").is_cancelled;
    assert!(is_cancelled("1").await && !is_cancelled("2").await);
    let before = "{\"codecallStore\":1,\"tables\":9}\n{\"table\":\"journaled_runs\",\"row\":[\"3\",\"running\",null,0,0,\"a\",0,0,{\"base64\":\"\"},null]}\n";
    assert_eq!(transfer::import(&other.database(), &mut before.as_bytes()).await, Ok(1));
    assert!(!is_cancelled("3").await);
}

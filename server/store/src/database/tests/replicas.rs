//! Data that replicas share, on any database.

use super::*;
use crate::{
    Quota, RateLimiter as _, ReplicaMessage, ReplicaProblem, SqlRates, SqlReplicas, SqlSessions, SqlTasks,
    StoredSession, StoredTask,
};
use std::num::NonZeroU32;

fn keys() -> KeyRing {
    KeyRing::parse(&new_key().expect("random"), "test").expect("a key")
}

/// Beats, messages and secrets of two replicas; rates, sessions and tasks.
pub async fn share(database: Database) {
    messages(database.clone()).await;
    rates(database.clone()).await;
    sessions(database.clone()).await;
    tasks(database).await;
}

async fn messages(database: Database) {
    let (keys, one, two) = (keys(), SqlReplicas::new(database.clone()), SqlReplicas::new(database));
    assert_eq!(one.beat("one").await, Ok(vec![("one".to_owned(), 1)]));
    let mut all = two.beat("two").await.expect("counted");
    all.extend(one.beat("one").await.expect("counted").into_iter().filter(|(id, _)| id == "one"));
    all.sort();
    assert_eq!(all, [("one".to_owned(), 1), ("one".to_owned(), 2), ("two".to_owned(), 1)]);
    let recipients = ["two".to_owned(), "three".to_owned()];
    for number in 0..100 {
        one.send(&keys, "one", &recipients, "a", &format!("message {number}")).await.expect("sent");
    }
    let read = two.receive(&keys, "two").await.expect("read");
    let bodies: Vec<String> = read.iter().filter_map(|message| message.body.clone()).collect();
    assert_eq!(bodies, (0..100).map(|number| format!("message {number}")).collect::<Vec<_>>(), "in their order");
    assert_eq!(two.receive(&keys, "two").await, Ok(Vec::new()), "they are read once");
    // Another master key.
    let other = self::keys();
    one.send(&other, "one", &recipients[..1], "a", "x").await.expect("sent");
    let unread = ReplicaMessage { sender: "one".into(), address: "a".into(), body: None };
    assert_eq!(two.receive(&keys, "two").await, Ok(vec![unread]));
    let secret = one.secret(&keys, "s").await.expect("made");
    assert_eq!(two.secret(&keys, "s").await, Ok(secret));
    assert!(matches!(two.secret(&other, "s").await, Err(ReplicaProblem::Seal(SealError::OtherKey(_)))));
    one.remove("one").await.expect("removed");
    assert_eq!(two.beat("two").await, Ok(vec![("two".to_owned(), 2)]));
}

async fn rates(database: Database) {
    let (one, two) = (SqlRates::new(database.clone()), SqlRates::new(database));
    let quota = |limit: u32, window: Duration| Quota { limit: NonZeroU32::new(limit).expect("not zero"), window };
    let minute = quota(3, Duration::from_secs(60));
    for rates in [&one, &two, &one] {
        assert_eq!(rates.take("a", minute).await, Ok(None));
    }
    let wait = two.take("a", minute).await.expect("counted").expect("the bucket is empty");
    assert!(wait > Duration::from_secs(15) && wait <= Duration::from_secs(20), "{wait:?}");
    assert_eq!(two.take("b", minute).await, Ok(None), "another key");
    assert_eq!(two.take("a", quota(4, Duration::from_secs(60))).await, Ok(None), "another quota");
    let short = quota(1, Duration::from_millis(50));
    assert_eq!(one.take("a", short).await, Ok(None));
    let wait = two.take("a", short).await.expect("counted").expect("the bucket is empty");
    tokio::time::sleep(wait).await;
    assert_eq!(two.take("a", short).await, Ok(None), "it is refilled");
    for _ in 0..10 {
        assert_eq!(one.take("a", quota(1, Duration::ZERO)).await, Ok(None), "without a window there is no limit");
    }
    // None is taken twice.
    let many = quota(50, Duration::from_secs(3_600));
    let taking = (0..100).map(|at| if at % 2 == 0 { one.take("c", many) } else { two.take("c", many) });
    let taken = futures_util::future::join_all(taking).await;
    assert_eq!(taken.iter().filter(|taken| **taken == Ok(None)).count(), 50);
}

async fn sessions(database: Database) {
    let (sessions, hour) = (SqlSessions(database.clone()), Duration::from_secs(3_600));
    sessions.put("s", "{}", hour).await.expect("stored");
    sessions.put("s", "{\"other\": 1}", hour).await.expect("known");
    assert_eq!(sessions.get("s", hour).await, Ok(Some(StoredSession { opening: "{}".into(), stream: None })));
    assert_eq!(sessions.get("t", hour).await, Ok(None));
    sessions.set_stream("s", "one").await.expect("stored");
    for (name, request) in
        [("level", Some("1")), ("level", Some("2")), ("resource a", Some("3")), ("resource b", Some("4"))]
    {
        sessions.set_request("s", name, request).await.expect("stored");
    }
    sessions.set_request("s", "resource a", None).await.expect("deleted");
    assert_eq!(sessions.requests("s").await, Ok(vec!["2".to_owned(), "4".to_owned()]));
    let stream = sessions.get("s", hour).await.expect("read").and_then(|session| session.stream);
    assert_eq!(stream.as_deref(), Some("one"));
    sessions.put("old", "{}", Duration::ZERO).await.expect("stored");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(sessions.get("old", hour).await, Ok(None), "it has expired");
    sessions.retain().await.expect("deleted");
    let left = database.query("SELECT id FROM sessions", []).await.expect("read");
    assert_eq!(left, [[Value::Text("s".into())]]);
    sessions.delete("s").await.expect("deleted");
    assert_eq!((sessions.get("s", hour).await, sessions.requests("s").await), (Ok(None), Ok(Vec::new())));
}

async fn tasks(database: Database) {
    let (tasks, keys, hour) = (SqlTasks(database), keys(), Duration::from_secs(3_600));
    tasks.put("a", "t", Some("r"), "{}", hour).await.expect("stored");
    let stored =
        |end: Option<&str>| StoredTask { run: Some("r".into()), description: "{}".into(), end: end.map(str::to_owned) };
    assert_eq!(tasks.get(&keys, "a", "t").await, Ok(Some(stored(None))));
    assert_eq!(tasks.get(&keys, "b", "t").await, Ok(None), "it is that of another client");
    tasks.end(&keys, "b", "t", "x").await.expect("no row");
    tasks.end(&keys, "a", "t", "done").await.expect("stored");
    assert_eq!(tasks.get(&keys, "a", "t").await, Ok(Some(stored(Some("done")))));
    assert!(matches!(tasks.get(&self::keys(), "a", "t").await, Err(ReplicaProblem::Seal(_))));
    tasks.put("a", "old", None, "{}", Duration::ZERO).await.expect("stored");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(tasks.get(&keys, "a", "old").await, Ok(None));
}

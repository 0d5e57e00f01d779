//! Approvals and journals.

use super::*;

/// Checks approvals and journals, on any database.
pub async fn keep_and_decide(database: Database) {
    let (requests, journals) = (SqlApprovalRequests(database.clone()), SqlJournals::new(database));
    let request = |id: &str, run: Option<&str>, expires_ms: i64| ApprovalRequest {
        id: id.into(),
        subject: format!("subject of {id}"),
        run: run.map(str::to_owned),
        tool: "bank:transfer".into(),
        input: "{}".into(),
        input_bytes: 2,
        input_digest: "d1e2".into(),
        asked_ms: now_ms(),
        expires_ms,
        ..ApprovalRequest::default()
    };
    let later = now_ms() + 60_000;
    let run = "0123456789abcdef0123456789abcdef";
    requests.ask(&request("aa11", Some(run), later)).await.expect("asked");
    requests.ask(&request("aa22", None, now_ms() - 1)).await.expect("asked");
    assert!(requests.ask(&request("aa11", None, later)).await.is_err(), "an id is used once");
    assert_eq!(requests.waiting().await, Ok(2));
    assert!(requests.get("aa").await.is_err() && requests.get("bb").await == Ok(None));
    assert_eq!(requests.use_decision("aa11").await, Ok(false), "there is none");

    let (keys, other) =
        (KeyRing::parse(&new_key().expect("random"), "test"), KeyRing::parse(&new_key().expect("random"), "test"));
    let (keys, other) = (keys.expect("a key"), other.expect("a key"));
    let lease = |owner: &str, seconds| Lease { owner: owner.into(), duration: Duration::from_secs(seconds) };
    let (one, two) = (lease("one", 60), lease("two", 0));
    let stored = JournaledRun {
        id: run.into(),
        state: JournaledState::Running,
        principal: Some("ada".into()),
        began_ms: 3,
        active_ms: 5,
        resumed_ms: Some(0),
        is_cancelled: false,
        outcome: None,
    };
    journals.begin(&keys, &one, &stored, "the header", Some("first")).await.expect("begun");
    // The same, repeated after a connection was lost.
    journals.begin(&keys, &one, &stored, "the header", Some("first")).await.expect("begun");
    assert_eq!(journals.begin(&keys, &two, &stored, "x", Some("x")).await, Err(JournalProblem::Lost));
    let held = |fence| Hold { id: run.into(), fence };
    assert_eq!(Hold::first(run), held(1));
    journals.append(&keys, &one, &held(1), 1, "second").await.expect("appended");
    assert_eq!(journals.append(&keys, &two, &held(1), 2, "x").await, Err(JournalProblem::Lost));
    assert_eq!(journals.append(&keys, &one, &held(2), 2, "x").await, Err(JournalProblem::Lost));
    journals.append(&keys, &one, &held(1), 1, "x").await.expect("an entry is never replaced");
    assert_eq!(journals.check(&one, &held(1)).await, Ok(()));
    for (lease, fence) in [(&one, 2), (&two, 1)] {
        assert_eq!(journals.check(lease, &held(fence)).await, Err(JournalProblem::Lost));
    }
    assert_eq!(journals.get(&keys, run).await.expect("read"), Some(stored.clone()));
    assert_eq!(journals.read(&keys, run).await, Ok(Some((stored.clone(), "the header".into()))));
    assert!(matches!(journals.read(&other, run).await, Err(JournalProblem::Seal(SealError::OtherKey(_)))));
    assert_eq!(journals.entries(&keys, run).await.expect("read"), ["first", "second"]);

    assert_eq!(journals.claim(&two, &[], 1).await, Ok(Vec::new()), "its process holds it");
    journals.pause(&one, &held(1), Spent { active_ms: 7, script_ms: 9 }, None).await.expect("paused");
    assert_eq!(journals.claim(&two, &[], 1).await, Ok(Vec::new()), "nobody has decided");
    let approve = Decision { digest: None, is_approved: true, by: "ada".into(), reason: Some("fine".into()) };
    let of_other = Decision { digest: Some("ab".into()), ..approve.clone() };
    assert!(
        matches!(requests.decide("aa11", &of_other).await, Ok(Decided::OtherInput(_))),
        "it is about another input"
    );
    let approve = Decision { digest: Some("D1".into()), ..approve };
    let Ok(Decided::Done(decided)) = requests.decide("aa11", &approve).await else { panic!("decided") };
    assert_eq!(
        (decided.state, decided.reason.as_deref(), decided.decided_by.as_deref()),
        (ApprovalState::Approved, Some("fine"), Some("ada"))
    );
    assert_eq!(requests.decide("aa1", &Decision::default()).await, Ok(Decided::TooLate(decided)));
    assert!(matches!(requests.decide("aa22", &approve).await, Ok(Decided::TooLate(_))), "its time is over");
    assert_eq!(requests.decide("zz", &approve).await, Ok(Decided::Unknown));
    assert_eq!(journals.claim(&two, &[run.to_owned()], 1).await, Ok(Vec::new()));
    assert_eq!(journals.claim(&two, &[], 1).await, Ok(vec![held(2)]));
    // Its lease has lapsed at once, and is not renewed by a process that has lost sight of the run.
    journals.renew(&lease("two", 60), &[]).await.expect("renewed");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(journals.claim(&one, &[], 1).await, Ok(vec![held(3)]));
    assert_eq!(journals.claim(&two, &[], 1).await, Ok(Vec::new()));
    assert_eq!(journals.append(&keys, &two, &held(2), 2, "x").await, Err(JournalProblem::Lost), "it was taken over");
    assert_eq!(journals.check(&two, &held(2)).await, Err(JournalProblem::Lost));
    let spent = Spent { active_ms: 7, script_ms: 20 };
    assert_eq!(journals.resume(&two, &held(2), spent).await, Err(JournalProblem::Lost));
    journals.resume(&one, &held(3), spent).await.expect("resumed");
    assert!(journals.get(&keys, run).await.is_ok_and(|run| run.is_some_and(|run| run.resumed_ms == Some(20))));
    assert_eq!((requests.use_decision("aa11").await, requests.use_decision("aa11").await), (Ok(true), Ok(false)));
    assert_eq!(requests.of_subject("subject of aa11").await, Ok(None), "it was used");
    assert_eq!(journals.renew(&one, &[run.to_owned()]).await, Ok(vec![held(3)]));
    assert_eq!(journals.renew(&two, &[run.to_owned()]).await, Ok(Vec::new()));
    journals.release(&one, &held(2)).await.expect("nothing");
    assert_eq!(journals.claim(&two, &[], 1).await, Ok(Vec::new()), "it was another hold");
    journals.release(&one, &held(3)).await.expect("released");
    assert_eq!(journals.claim(&one, &[], 1).await, Ok(vec![held(4)]));
    assert_eq!(journals.end(&keys, &two, &held(4), "x", later).await, Err(JournalProblem::Lost));
    assert_eq!(journals.end(&keys, &one, &held(3), "x", later).await, Err(JournalProblem::Lost));
    journals.end(&keys, &one, &held(4), "the outcome", now_ms() - 1).await.expect("ended");
    let ended = journals.get(&keys, run).await.expect("read").expect("kept");
    assert_eq!(
        (ended.state, ended.outcome.as_deref(), ended.active_ms),
        (JournaledState::Ended, Some("the outcome"), 7)
    );
    assert_eq!(journals.entries(&keys, run).await, Ok(Vec::new()));
    journals.retain().await.expect("deleted");
    assert_eq!(journals.get(&keys, run).await, Ok(None));
    several(&journals, &keys, &stored).await;
    // Runs that are submitted, and cancelled.
    let submitted = |id: &str| JournaledRun { id: id.into(), principal: None, active_ms: 0, ..stored.clone() };
    let (here, there) = ("a".repeat(32), "b".repeat(32));
    assert_eq!(journals.submit(&keys, &submitted(&here), "h", 2).await, Ok(Submitted::Stored));
    assert_eq!(journals.submit(&keys, &submitted(&here), "h", 2).await, Ok(Submitted::Known));
    assert_eq!(journals.submit(&keys, &submitted(&there), "h", 1).await, Ok(Submitted::Full));
    assert_eq!(journals.submit(&keys, &submitted(&there), "h", 2).await, Ok(Submitted::Stored));
    assert_eq!(journals.claim(&one, &[], 1).await, Ok(vec![Hold::first(&here)]));
    assert_eq!(journals.claim(&one, &[], 1).await, Ok(vec![Hold::first(&there)]));
    assert_eq!(journals.claim(&one, &[], 1).await, Ok(Vec::new()));
    journals.release_all(&one).await.expect("released");
    let (here_again, there_again) = (Hold { id: here.clone(), fence: 2 }, Hold { id: there.clone(), fence: 2 });
    for _ in 0..2 {
        assert!(journals.claim(&one, &[], 1).await.is_ok_and(|ids| ids.len() == 1));
    }
    assert_eq!(journals.entries(&keys, &here).await, Ok(Vec::new()));
    journals.append(&keys, &one, &here_again, 0, "first").await.expect("appended");
    assert_eq!((journals.cancel(&here).await, journals.cancel(run).await), (Ok(true), Ok(false)));
    assert_eq!(journals.cancelled(&one).await, Ok(vec![here.clone()]));
    assert_eq!(journals.cancelled(&two).await, Ok(Vec::new()));
    assert!(journals.get(&keys, &here).await.is_ok_and(|run| run.is_some_and(|run| run.is_cancelled)));
    journals.pause(&one, &there_again, Spent::default(), None).await.expect("paused");
    assert_eq!(journals.claim(&two, &[], 1).await, Ok(Vec::new()), "it waits");
    assert_eq!(journals.cancel(&there).await, Ok(true));
    assert_eq!(journals.claim(&two, &[], 1).await, Ok(vec![Hold { fence: 3, ..there_again.clone() }]), "to end it");
    journals.end(&keys, &one, &here_again, "x", 0).await.expect("ended");
    journals.end(&keys, &two, &Hold { fence: 3, ..there_again }, "x", 0).await.expect("ended");
    assert_eq!(journals.cancel(&here).await, Ok(false), "it has ended");
    journals.retain().await.expect("deleted");
    assert_eq!(requests.expire(0).await, Ok(1));
    let states: Vec<_> = requests.list(None, 10).await.expect("listed").iter().map(|one| one.state).collect();
    assert!(states.len() == 2 && states.contains(&ApprovalState::Expired), "{states:?}");
    assert_eq!(requests.list(Some(ApprovalState::Waiting), 10).await, Ok(Vec::new()));
    requests.expire(later + 1).await.expect("deleted");
    assert_eq!(requests.list(None, 10).await, Ok(Vec::new()));
}

/// Runs are taken over several at a time, by one process each, also when their time has come.
async fn several(journals: &SqlJournals, keys: &KeyRing, run: &JournaledRun) {
    let ids: Vec<String> = (0..50).map(|number| format!("{number:032x}")).collect();
    for id in &ids {
        let run = JournaledRun { id: id.clone(), principal: None, ..run.clone() };
        assert_eq!(journals.submit(keys, &run, "h", 100).await, Ok(Submitted::Stored));
    }
    let lease = |owner: &str| Lease { owner: owner.into(), duration: Duration::from_secs(60) };
    let (one, two) = (lease("one"), lease("two"));
    let claim = async |lease: &Lease| {
        let mut all = Vec::new();
        loop {
            let claimed = journals.claim(lease, &[], 8).await.expect("claimed");
            assert!(claimed.len() <= 8);
            if claimed.is_empty() {
                return all;
            }
            all.extend(claimed);
        }
    };
    let (first, second) = tokio::join!(claim(&one), claim(&two));
    let mut all: Vec<&String> = first.iter().chain(&second).map(|hold| &hold.id).collect();
    all.sort();
    assert_eq!(all, ids.iter().collect::<Vec<_>>());
    // A process finds another one behind those that it must not have.
    for (lease, holds) in [(&one, &first), (&two, &second)] {
        for hold in holds {
            journals.release(lease, hold).await.expect("released");
        }
    }
    let (last, not) = ids.split_last().expect("ids");
    let second_hold = |id: &String| Hold { id: id.clone(), fence: 2 };
    assert_eq!(journals.claim(&one, not, 1).await, Ok(vec![second_hold(last)]));
    assert_eq!(journals.claim(&two, std::slice::from_ref(last), 50).await.expect("claimed").len(), 49);
    let (first, second) = (vec![last.clone()], not);
    // One waits for a time that is over, one for a later one, and the others for a person.
    let (past, later) = (now_ms() - 1, now_ms() + 60_000);
    for (lease, ids) in [(&one, &*first), (&two, second)] {
        for id in ids {
            let due = [past, later].get(usize::from_str_radix(id, 16).expect("a number")).copied();
            journals.pause(lease, &second_hold(id), Spent::default(), due).await.expect("paused");
        }
    }
    let third = Hold { id: ids[0].clone(), fence: 3 };
    assert_eq!(claim(&one).await, std::slice::from_ref(&third));
    journals.pause(&one, &third, Spent::default(), None).await.expect("paused");
    assert_eq!(claim(&one).await, []);
    for id in &ids {
        assert_eq!(journals.cancel(id).await, Ok(true));
    }
    // Each reason has its turn: however many were cancelled, one that was submitted is not left to the end.
    let submitted = JournaledRun { id: "f".repeat(32), principal: None, ..run.clone() };
    assert_eq!(journals.submit(keys, &submitted, "h", 100).await, Ok(Submitted::Stored));
    let claimed = journals.claim(&one, &[], 2).await.expect("claimed");
    assert!(claimed.len() == 2 && claimed.contains(&Hold::first(&submitted.id)), "{claimed:?}");
    for hold in claimed.into_iter().chain(claim(&one).await) {
        journals.end(keys, &one, &hold, "x", 0).await.expect("ended");
    }
    journals.retain().await.expect("deleted");
    assert_eq!(journals.get(keys, &ids[49]).await, Ok(None));
}

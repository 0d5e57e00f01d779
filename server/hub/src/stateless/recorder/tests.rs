//! A recorded run replays to the same outcome.

use super::*;
use crate::Hub;
use crate::stateless::JournalFile;
use agentscript::stateless::{Step, replay};
use agentscript::{Policy, Preset};
use codecall_config::Config;
use codecall_runs::ExecuteRequest;
use codecall_upstream::inline::Inline;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn hub() -> Arc<Hub> {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    let tools = Inline::echo(&[
        ("users", "get-one", "Get a user", schema),
        ("users", "fail", "Fail", json!({"type": "object"})),
        ("users", "slow", "Never answers", json!({"type": "object"})),
    ]);
    Hub::start(Config::default(), vec![Arc::new(tools)]).expect("starts")
}

fn request(script: &str, recorder: &Arc<MemoryRecorder>) -> ExecuteRequest {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.max_duration_ms = 1_000;
    ExecuteRequest { journal: Some(Arc::<MemoryRecorder>::clone(recorder)), ..ExecuteRequest::new(script, policy) }
}

/// Records a run and replays it. Returns its outcome, its journal, and the last step of the replay.
async fn recorded(hub: &Hub, script: &str, context: Option<&str>) -> (String, JournalFile, Step) {
    let recorder = MemoryRecorder::new(script, None, context);
    let finished = hub.execute(request(script, &recorder), None, CancellationToken::new()).await;
    let text = recorder.to_file(&finished.outcome, &Redactor::default());
    let file = JournalFile::read(&text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    let options = StepOptions {
        policy: Policy::preset(Preset::Experimental),
        context: file.context.clone(),
        ..StepOptions::default()
    };
    let step = replay(script, Arc::new(file.tools.clone().into_directory()), &file.journal, &options, None);
    (finished.outcome.to_json(), file, step)
}

const PROGRAMS: &[&str] = &[
    "return 1",
    "return [Math.random(), crypto.randomUUID(), Date.now(), new Date().toISOString()]",
    "const a = await users.getOne({ id: 1 }); return [a, await callTool('users:get-one', { id: 2 })]",
    "return await parallel(Array.from({ length: 60 }, (_, id) => () => users.get_one({ id })), { maxConcurrency: 15 })",
    "return await Promise.all(Array.from({ length: 80 }, (_, id) => users.getOne({ id, r: Math.random() })))",
    "const chain = async (n) => { let out = 0; for (let id = 0; id < n; id++) out += (await users.getOne({ id })).id; return out };
     return await Promise.all([chain(3), chain(9), chain(1)])",
    "const tries = await Promise.allSettled([users.fail({}), users.getOne({ id: 'x' }), callTool('users:getone', {}), callTool('nope', {})]);
     return tries.map((t) => [t.status, t.reason?.code, t.reason?.message, t.reason?.details])",
    "return await Promise.race([users.slow({}), users.getOne({ id: 1 })])",
    "try { await users.fail({}) } catch (e) { console.warn(e.message, e.code) } finally { await users.getOne({}) } throw new TypeError('late')",
    "await users.fail({ why: 'uncaught' })",
    "const tool = getTool('users:get-one'); await users.getOne({}); return [tool.name, tool.inputSchema, tool.description]",
    "try { getTool('users:get-on') } catch (e) { return e.message }",
    "try { await users.nothing({}) } catch (e) { return e.message }",
    "try { await nothing.at({}) } catch (e) { return e.message }",
    "await users.getOne({ id: 1 }); await callTool('codecall:execute', {})",
    "users.getOne({ id: 1 }); return 'at once'",
    "await users.getOne({ half: '\\ud83d', emoji: '😀', n: 0.1 + 0.2, big: 1e300 }); return 0.30000000000000004",
    "let deep = 1; for (let i = 0; i < 100; i++) deep = [deep]; await users.getOne({ deep }); let r = 1; for (let i = 0; i < 500; i++) r = [r]; return r",
    "let sum = 0; for (let id = 0; id < 150; id++) sum += (await users.getOne({ id })).id; return sum",
    "return await Promise.race([users.slow({}), sleep(40)]) ?? 'the timer'",
    "const start = Date.now(); await users.getOne({}); await sleep(30); const at = Date.now() - start; return [at, (await users.getOne({ id: 7, at })).at, performance.now()]",
    "setTimeout(() => users.getOne({ id: 1 }).then((r) => console.log(r.id)), 20); await users.slow({}, { signal: AbortSignal.timeout(60) }).catch((e) => console.log(e.name)); return 'done'",
    "let n = 0; const timer = setInterval(async () => { n += 1; const turn = n; if (n === 3) clearInterval(timer); console.log((await users.getOne({ id: turn })).id) }, 15); return 'started'",
    "[1, 2].forEach(async (id) => { await sleep(id * 10); await users.getOne({ id }); }); return 'at once'",
    "users.fail({}); await sleep(200); return 1",
    "mcpLog('info', 'one'); await users.getOne({}); mcpNotify('two', { n: 2 }); return codecallContext",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_run_replays_to_the_same_outcome() {
    let hub = hub();
    for script in PROGRAMS {
        let context = r#"{ "b" : [ 1, 2.50 ],  "a": "x  \" y" }"#;
        let (outcome, file, step) = recorded(&hub, script, Some(context)).await;
        assert_eq!(file.outcome.as_deref(), Some(outcome.as_str()));
        match step {
            Step::Done(done) => assert_eq!(done.outcome.to_json(), outcome, "{script}"),
            other => panic!("{script}\n{outcome}\n{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_the_host_ended_replays_up_to_there() {
    let (outcome, _, step) = recorded(&hub(), "await users.getOne({}); await users.slow({}); return 1", None).await;
    assert!(outcome.contains("TIMEOUT"), "{outcome}");
    match step {
        Step::Calls(calls) => assert_eq!(calls.waiting, [1]),
        other => panic!("{other:?}"),
    }
    let (outcome, _, step) = recorded(&hub(), "await users.getOne({}); await new Promise(() => {})", None).await;
    assert!(outcome.contains("a promise that nothing can settle") && matches!(step, Step::Deadlock(_)), "{outcome}");
    let (outcome, file, step) = recorded(&hub(), "eval('1')", None).await;
    assert!(outcome.contains("VALIDATION_ERROR") && file.journal.rounds.is_empty(), "{outcome}");
    assert!(matches!(step, Step::Done(_)));
}

#[tokio::test]
async fn secrets_are_not_recorded() {
    let script =
        "await users.getOne({ id: 1, key: 'k-1234567', note: 'plain' }); console.log('k-1234567'); return 'k-1234567'";
    let recorder = MemoryRecorder::new(script, None, Some(r#"{"key":"k-1234567"}"#));
    let finished = hub().execute(request(script, &recorder), None, CancellationToken::new()).await;
    let text = recorder.to_file(&finished.outcome, &Redactor::new(["k-1234567"]));
    assert!(!text.contains("k-1234567"), "{text}");
    assert_eq!(text.matches("[secret]").count(), 5, "{text}");
    let file = JournalFile::read(&text).expect("a journal");
    assert_eq!(file.journal.rounds[0].calls[0].input, r#"{"id":1,"key":"[secret]","note":"plain"}"#);
}

#[test]
fn invalid_files_are_refused() {
    let good = r#"{"version": 1, "id": "x", "startedAt": 1, "script": "d", "rounds": [{"calls": [{"call": 0, "tool": "t", "input": {}}], "answers": [{"call": 0, "result": 1}]}]}"#;
    assert!(JournalFile::read(good).is_ok());
    for (change, problem) in [
        (("\"version\": 1", "\"version\": 2"), "'version' must be 1"),
        (("\"version\": 1", "\"v\": 1"), "'version' must be 1"),
        (("\"id\"", "\"name\""), "unknown field `name`"),
        (("{\"call\": 0, \"tool\"", "{\"call\": 3, \"tool\""), "call 3 stands where call 0 must be"),
        (("\"result\"", "\"reslt\""), "unknown field `reslt`"),
        ((", \"result\": 1", ""), "round 0: the answer to call 0 needs 'result' or 'error'"),
        (("]}]}", "]}"), "EOF"),
    ] {
        let text = good.replace(change.0, change.1);
        let found = JournalFile::read(&text).expect_err(problem);
        assert!(found.contains(problem), "{text}\n{found}");
    }
}

//! Tests of runs within runs.

use super::*;
use codecall_base::tool::ToolError;
use std::sync::{OnceLock, Weak};

/// Creates runs with a tool that runs the script in its input.
fn nesting(pool: Pool) -> Arc<Runs> {
    let within: Arc<OnceLock<Weak<Runs>>> = Arc::default();
    let runs = {
        let within = Arc::clone(&within);
        let schema = data!({"type": "object", "properties": {"script": {"type": "string"}}});
        let tool = Inline::new("scripts").tool("run", "Run a script", schema, move |call| {
            let runs = within.get().and_then(Weak::upgrade).expect("they are there");
            async move {
                let script = call.input["script"].as_str().unwrap_or_default();
                let request = ExecuteRequest { parent: call.run, ..request(script) };
                match runs.execute(request, None, call.cancel).await.outcome.result {
                    Ok(json) => Ok(serde_json::from_str::<Value>(&json).expect("JSON")),
                    Err(failure) => Err(ToolError::new(failure.code, failure.message)),
                }
            }
        });
        let tools: Vec<(Arc<dyn Upstream>, ToolFilter)> = vec![(Arc::new(tool), ToolFilter::default())];
        let catalogue = Arc::new(Catalogue::new(tools, ToolPolicy::default(), Arc::default()));
        let sanitization = Sanitization { remove_stack_traces: true, remove_file_paths: true };
        let pipeline = Arc::new(Pipeline::new(Arc::clone(&catalogue), sanitization));
        Arc::new(Runs::new(catalogue, pipeline, pool))
    };
    within.set(Arc::downgrade(&runs)).expect("once");
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_run_takes_no_second_permit() {
    let runs = nesting(Pool { max_runs: 1, max_queue: 0, ..Pool::default() });
    let script = "return 1 + await callTool('scripts:run', { script: \"return await callTool('scripts:run', { script: 'return 40 + 1' })\" })";
    let outcome = execute(&runs, script).await;
    assert_eq!(outcome.result.as_deref().map_err(|failure| failure.message.as_str()), Ok("42"));
    // The permit is free again.
    assert_eq!(code(&execute(&runs, "return 1").await), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_of_runs_is_limited() {
    let runs = nesting(Pool { max_runs: 1, max_queue: 0, ..Pool::default() });
    let script = (0..MAX_NESTING + 1).fold("return 1".to_owned(), |inner, _| {
        format!("return await callTool('scripts:run', {{ script: {} }})", data!(inner))
    });
    let outcome = execute(&runs, &script).await;
    let failure = outcome.result.expect_err("too deep");
    assert_eq!(failure.code, "EXECUTION_ERROR");
    assert!(failure.message.contains("more than 8 deep"), "{}", failure.message);
}

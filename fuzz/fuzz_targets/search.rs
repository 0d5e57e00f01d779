//! Tools that come, go and change, and queries between. An index that was carried on from snapshot to snapshot answers
//! as one that was made at once. Answers are in order, with scores from 0 to 1.

#![no_main]

use codecall::catalogue::Catalogue;
use codecall::tool::{ToolDefinition, ToolError, ToolResult, ToolFilter};
use codecall::config::ToolPolicy;
use codecall::index::Index;
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MAX_TIME: Duration = Duration::from_secs(2);

struct App {
    name: &'static str,
    tools: Mutex<Vec<Arc<ToolDefinition>>>,
}

impl Upstream for App {
    fn app(&self) -> &str {
        self.name
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.lock().expect("not poisoned").clone()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(Ok(Value::Null.into())))
    }
}

fuzz_target!(|text: &str| {
    let began = ThreadTime::now();
    let apps: Vec<Arc<App>> =
        ["", "users", "two words"].map(|name| Arc::new(App { name, tools: Mutex::default() })).into();
    let upstream = |app: &Arc<App>| (Arc::clone(app) as Arc<dyn Upstream>, ToolFilter::default());
    let catalogue = Catalogue::new(apps.iter().map(upstream).collect(), ToolPolicy::default(), Arc::default());
    for (at, line) in text.lines().enumerate().take(64) {
        let app = &apps[at % apps.len()];
        let mut tools = app.tools.lock().expect("not poisoned");
        match line.chars().next() {
            // A query.
            Some('?') => {
                drop(tools);
                catalogue.refresh();
                let snapshot = catalogue.snapshot();
                let found = snapshot.index().search(&line[1..]);
                let fresh = Index::new(snapshot.rows(), &Default::default()).search(&line[1..]);
                assert_eq!(found, fresh, "{line}");
                assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
                assert!(
                    found.iter().all(|(place, score)| *place < snapshot.rows().len() && (0.0..=1.0).contains(score))
                );
            }
            // The oldest tool goes.
            Some('-') if !tools.is_empty() => drop(tools.remove(0)),
            Some('-') | None => {}
            Some(_) => {
                let mut parts = line.split('|');
                let mut next = || parts.next().unwrap_or_default().to_owned();
                let (name, description, parameter) = (next(), next(), next());
                let tool = ToolDefinition {
                    app: app.name.into(),
                    name,
                    input_schema: json!({"type": "object", "properties": {&parameter: {"description": description}}}),
                    description,
                    tags: vec![parameter],
                    ..ToolDefinition::default()
                };
                tools.push(Arc::new(tool));
            }
        }
    }
    assert!(began.elapsed() < MAX_TIME, "{:?}", began.elapsed());
});

use super::*;
use agentscript::Tools as _;
use codecall_base::tool::{ToolError, ToolResult, is_reserved};
use codecall_config::Expose;
use codecall_upstream::inline::Inline;
use codecall_upstream::{BoxFuture, UpstreamCall};
use serde_json::{Value, json};

/// A catalogue of tools that answer with their input.
pub fn catalogue(tools: &[(&str, &str, &str, Value)], include: ToolFilter) -> Catalogue {
    let echo: Arc<dyn Upstream> = Arc::new(Inline::echo(tools));
    let policy = ToolPolicy { include, ..ToolPolicy::default() };
    Catalogue::new(vec![(echo, ToolFilter::default())], policy, Arc::default())
}

fn example(include: ToolFilter) -> Catalogue {
    let any = || json!({"type": "object"});
    catalogue(
        &[
            ("users", "list", "List users", any()),
            ("users", "get-by_id", "Get a user", any()),
            ("orders", "list", "List orders", any()),
            ("my-shop", "createItem", "Create an item", any()),
            ("codecall", "execute", "must never be there", any()),
        ],
        include,
    )
}

#[test]
fn a_tool_has_several_spellings() {
    let snapshot = example(ToolFilter::default()).snapshot();
    let found = |name: &str| snapshot.lookup(name).map(|entry| entry.name.clone());
    assert_eq!(snapshot.rows().len(), 4);
    assert_eq!(found("users:list").as_deref(), Some("users:list"));
    assert_eq!(found("users.list").as_deref(), Some("users:list"));
    assert_eq!(found("createItem").as_deref(), Some("my-shop:createItem"));
    assert_eq!(found("list"), None, "two tools have this name");
    assert_eq!(found("USERS:LIST"), None);
}

#[test]
fn apps_are_namespaces() {
    let snapshot = example(ToolFilter::default()).snapshot();
    let directory = snapshot.directory();
    assert!(directory.is_app("users") && directory.is_app("my_shop") && !directory.is_app("list"));
    assert_eq!(directory.member("users", "getById").as_deref(), Some("users:get-by_id"));
    assert_eq!(directory.member("my_shop", "create_item").as_deref(), Some("my-shop:createItem"));
    assert_eq!(directory.member("users", "drop"), None);
    assert_eq!(directory.similar("user:lst"), ["users:list", "orders:list"]);
    assert_eq!(directory.similar("zzzzzzzzzz"), Vec::<String>::new());
    assert!(directory.is_reserved("codecall:execute") && directory.describe("codecall:execute").is_none());
}

/// An upstream whose list of tools is set from outside.
struct Changing(Mutex<Vec<Arc<ToolDefinition>>>);

impl Changing {
    fn set(&self, names: &[(&str, &str)]) {
        let tool = |(name, description): &(&str, &str)| ToolDefinition {
            app: "app".into(),
            name: (*name).into(),
            description: (*description).into(),
            ..ToolDefinition::default()
        };
        *self.0.lock().expect("no panic") = names.iter().map(tool).map(Arc::new).collect();
    }
}

impl Upstream for Changing {
    fn app(&self) -> &str {
        "app"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.lock().expect("no panic").clone()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_change_of_one_tool_describes_no_other_again() {
    let upstream = Arc::new(Changing(Mutex::default()));
    upstream.set(&[("one", "first"), ("two", "second")]);
    let sources = vec![(Arc::clone(&upstream) as Arc<dyn Upstream>, ToolFilter::default())];
    let catalogue = Catalogue::new(sources, ToolPolicy::default(), Arc::default());
    let before = catalogue.snapshot();
    let directory = Arc::clone(before.directory());
    catalogue.refresh();
    assert!(Arc::ptr_eq(catalogue.snapshot().directory(), &directory), "nothing has changed");
    upstream.set(&[("one", "first"), ("two", "changed")]);
    catalogue.refresh();
    let after = catalogue.snapshot();
    let (one, two) = ("app:one", "app:two");
    let text = |snapshot: &Snapshot, name: &str| Arc::clone(&snapshot.lookup(name).expect("it exists").description);
    assert!(Arc::ptr_eq(&text(&after, one), &text(&before, one)));
    assert!(after.directory().describe(two).is_some_and(|text| text.contains("changed")));
    assert!(directory.describe(two).is_some_and(|text| text.contains("second")), "a directory never changes");
}

#[test]
fn a_snapshot_contains_no_secret_that_was_added_before() {
    let any = || json!({"type": "object"});
    let tools = [("users", "list", "Signs in with late-secret", any()), ("users", "get", "Get a user", any())];
    let secrets = Arc::new(SecretRegistry::default());
    let upstream: Arc<dyn Upstream> = Arc::new(Inline::echo(&tools));
    // All are listed, because only those are announced.
    let policy = ToolPolicy { expose: Some(Expose::Direct), ..ToolPolicy::default() };
    let catalogue = Catalogue::new(vec![(upstream, ToolFilter::default())], policy, Arc::clone(&secrets));
    let description =
        |snapshot: &Snapshot| snapshot.lookup("users:list").expect("a tool").definition.description.clone();
    let get = |snapshot: &Snapshot| Arc::clone(snapshot.lookup("users:get").expect("a tool"));
    let (first, mut changed) = (catalogue.snapshot(), catalogue.changed());
    let is_changed = |changed: &mut watch::Receiver<u64>| {
        let is_changed = changed.has_changed().expect("not dropped");
        changed.mark_unchanged();
        is_changed
    };
    assert!(Arc::ptr_eq(&first, &catalogue.snapshot()));

    secrets.add("late-secret").expect("long enough");
    let second = catalogue.snapshot();
    assert_eq!(description(&second), "Signs in with [secret]");
    assert!(Arc::ptr_eq(&get(&first), &get(&second)), "other tools are as they were");
    assert!(is_changed(&mut changed) && Arc::ptr_eq(&second, &catalogue.snapshot()));
    assert_eq!(description(&first), "Signs in with late-secret", "a snapshot never changes");

    secrets.add("another-secret").expect("long enough");
    assert_eq!(description(&catalogue.snapshot()), "Signs in with [secret]");
    assert!(!is_changed(&mut changed), "no description contains it");

    secrets.remove("late-secret");
    assert_eq!(description(&catalogue.snapshot()), "Signs in with late-secret");
    assert!(is_changed(&mut changed));
}

#[test]
fn own_tools_are_reserved_in_every_spelling() {
    for name in ["codecall:execute", "codecall.search", "CodeCall_invoke", "codecall__describe", " codecall:x"] {
        assert!(is_reserved(name), "{name}");
    }
    for name in ["codecall", "codecaller:x", "my:codecall:x", "users:list"] {
        assert!(!is_reserved(name), "{name}");
    }
}

#[test]
fn filters_drop_tools_before_all_else() {
    let filter = ToolFilter::by_name(Some(vec!["users:*".into(), "createItem".into()]), vec!["*by_id".into()]);
    let snapshot = example(filter).snapshot();
    let names: Vec<&str> = snapshot.rows().iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["my-shop:createItem", "users:list"]);
}

//! Converts a description to operations.

use crate::document::{Documents, Resolver};
use crate::limits::{MAX_OPERATIONS, MAX_WARNINGS};
use crate::name::Names;
use crate::operation::{Filter, Found, Key, Operation, Shared};
use crate::{security, server};
use codecall_base::text::truncate;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use url::Url;

/// How a description is used.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The app that the tools belong to.
    pub app: String,
    /// The server; `None`: the one that the description names.
    pub base_url: Option<Url>,
    /// Values of variables in the addresses of servers.
    pub variables: BTreeMap<String, String>,
    /// Names of security schemes that have a secret.
    pub secrets: BTreeSet<String>,
    /// Names of headers that every request has.
    pub headers: BTreeSet<String>,
    /// Selects operations.
    pub include: Filter,
    /// Leaves out operations.
    pub exclude: Filter,
    /// Whether operations that may change something are tools.
    pub writes: bool,
    /// Whether deprecated operations are tools.
    pub deprecated: bool,
}

/// A description that was converted.
#[derive(Debug, Default)]
pub struct Api {
    /// Its title.
    pub title: Option<String>,
    /// Its operations that are tools, in the order of the description.
    pub operations: Vec<Operation>,
    /// How many operations were left out on purpose.
    pub left_out: LeftOut,
    /// Operations that cannot become tools, and parts of operations that could not be used, with reasons.
    pub warnings: Vec<String>,
    /// How many operations cannot become tools.
    pub refused: usize,
    /// How many warnings there were, with those that were not kept.
    pub warned: usize,
}

/// How many operations were left out on purpose, by the first reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// `include` and `exclude`.
    pub filtered: usize,
    /// They are deprecated.
    pub deprecated: usize,
    /// They may change something.
    pub writes: usize,
}

const METHODS: [(&str, &str); 7] = [
    ("get", "GET"),
    ("head", "HEAD"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
];
/// Methods that no tool has.
const REFUSED: [&str; 2] = ["trace", "query"];

/// Returns the method that a key of a path names, in any case.
fn method(key: &str) -> Option<&'static str> {
    METHODS.iter().find(|(member, _)| key.eq_ignore_ascii_case(member)).map(|(_, method)| *method)
}

fn is_refused(key: &str) -> bool {
    REFUSED.iter().any(|member| key.eq_ignore_ascii_case(member))
}

/// Converts a description to operations.
///
/// # Errors
/// No operation of the description could be used.
pub fn describe(documents: &Documents, settings: &Settings) -> Result<Api, String> {
    let resolver = Resolver::new(documents);
    let (context, root) = resolver.root();
    let server = match &settings.base_url {
        Some(base) => Ok(base.clone()),
        None => server::first(&root["servers"], documents.url(), &settings.variables)
            .or_else(|| server::of_host(root, documents.url()))
            .unwrap_or_else(|| {
                let own = documents.url().join("/").unwrap_or_else(|_| documents.url().clone());
                server::check(own).map_err(|_| "the description names no server; give 'baseUrl'".to_owned())
            }),
    };
    let schemes = security::schemes(&resolver, context, root);
    let title = root["info"]["title"].as_str().map(|title| truncate(title.trim(), 200).to_owned());
    let mut api = Api { title, ..Api::default() };
    documents.problems().iter().for_each(|problem| api.warn(problem.clone()));
    for name in &settings.secrets {
        match schemes.get(name) {
            Some(Ok(_)) => {}
            Some(Err(reason)) => api.warn(format!("the security scheme '{name}' cannot be used: {reason}")),
            None => {
                let known: Vec<&str> = schemes.keys().take(20).map(String::as_str).collect();
                api.warn(format!("there is no security scheme '{name}'; known are {}", known.join(", ")));
            }
        }
    }
    let shared =
        Shared { resolver: &resolver, settings, root, schemes: &schemes, base: documents.url(), server: &server };
    let (mut names, mut ids) = (Names::default(), HashSet::new());
    let mut count = 0;
    for (path, item) in root["paths"].as_object().into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let shown = truncate(path, 200);
        let item = match (resolver.follow(context, item), item) {
            (Ok((context, Value::Object(members))), _) => (context, members),
            (Ok(_), _) => {
                api.refuse(format!("{shown}: it is no object"));
                continue;
            }
            // It may have operations of its own.
            (Err(reason), Value::Object(members)) if members.keys().any(|key| method(key).is_some()) => {
                api.warn(format!("{shown}: {reason}"));
                (context, members)
            }
            (Err(reason), _) => {
                api.refuse(format!("{shown}: {reason}"));
                continue;
            }
        };
        for (key, _) in item.1.iter().filter(|(key, value)| is_refused(key) && value.is_object()) {
            api.refuse(format!("{} {shown}: this method is not supported", truncate(key, 20).to_uppercase()));
        }
        for (member, method) in METHODS {
            let own = item.1.iter().find(|(key, _)| key.eq_ignore_ascii_case(member));
            let Some((_, operation)) = own else { continue };
            if !operation.is_object() {
                api.refuse(format!("{method} {shown}: it is no object"));
                continue;
            }
            count += 1;
            if count > MAX_OPERATIONS {
                api.refused += 1;
                continue;
            }
            let operation = (item.0, operation);
            let id = operation.1["operationId"].as_str().map(str::trim).filter(|id| !id.is_empty());
            // Every operation gets a name, so that names do not depend on filters.
            let name = names.add(id, member, path);
            let is_again = id.is_some_and(|id| !ids.insert(id));
            let tags =
                operation.1["tags"].as_array().into_iter().flatten().take(100).filter_map(Value::as_str).collect();
            let key = Key { method, path, id, tags };
            if !api.select(settings, &key, operation.1) {
                continue;
            }
            if !path.starts_with('/') {
                api.refuse(format!("{method} {shown}: its path does not begin with '/'"));
                continue;
            }
            if !resolver.work(10) {
                api.refuse(format!(
                    "{method} {shown}: the description is too large, together with all that it refers to"
                ));
                continue;
            }
            let found = Found { key, name, item, operation };
            let mut notes = Vec::new();
            if is_again {
                notes.push("another operation has the same 'operationId'".to_owned());
            }
            match Operation::read(&shared, &found, &mut notes) {
                Ok(operation) => api.operations.push(operation),
                Err(reason) => api.refuse(format!("{method} {shown}: {reason}")),
            }
            for note in notes {
                api.warn(format!("{method} {shown} ('{}'): {note}", found.name));
            }
        }
    }
    if count > MAX_OPERATIONS {
        api.warn(format!(
            "the description has {count} operations; those after the first {MAX_OPERATIONS} are left out"
        ));
    }
    if !root["paths"].is_object() && !root["paths"].is_null() {
        api.warn("'paths' is no object".into());
    }
    match server {
        Err(reason) if api.operations.is_empty() && api.refused > 0 => Err(reason),
        _ if count == 0 => Err("the description has no operations".into()),
        _ => Ok(api),
    }
}

impl Api {
    fn warn(&mut self, warning: String) {
        self.warned += 1;
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }

    fn refuse(&mut self, reason: String) {
        self.refused += 1;
        self.warn(reason);
    }

    /// Whether an operation is wanted; counts it otherwise.
    fn select(&mut self, settings: &Settings, key: &Key<'_>, operation: &Value) -> bool {
        let left_out = &mut self.left_out;
        let reason = if !settings.include.includes(key) || settings.exclude.excludes(key) {
            &mut left_out.filtered
        } else if operation["deprecated"] == true && !settings.deprecated {
            &mut left_out.deprecated
        } else if !settings.writes && !matches!(key.method, "GET" | "HEAD") {
            &mut left_out.writes
        } else {
            return true;
        };
        *reason += 1;
        false
    }
}

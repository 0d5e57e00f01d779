//! The documents of a description, and the references between their values.

use crate::limits::{MAX_DOCUMENTS, MAX_REFERENCES, MAX_WORK};
use codecall_base::text::truncate;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use url::Url;

/// The documents of a description. The first one is the description itself, the others are those that it refers to.
#[derive(Debug)]
pub struct Documents {
    documents: Vec<(Url, Value)>,
    /// Positions of the documents by address; an error says why one cannot be used.
    known: HashMap<String, Result<usize, String>>,
    /// Addresses that documents refer to and that were neither added nor refused.
    missing: BTreeSet<String>,
    /// The parts of the documents that are left out or mended.
    problems: Vec<String>,
}

impl Documents {
    /// Creates the documents of a description at `url`.
    ///
    /// # Errors
    /// It is not a description of OpenAPI 3.
    pub fn new(url: Url, root: Value) -> Result<Self, String> {
        let problems = check_version(&root)?.into_iter().collect();
        let mut documents = Self { documents: Vec::new(), known: HashMap::new(), missing: BTreeSet::new(), problems };
        documents.add(url, Ok(root));
        Ok(documents)
    }

    /// Returns the addresses of the documents to add next. Adding them may make further ones known.
    #[must_use]
    pub fn missing(&self) -> Vec<Url> {
        self.missing.iter().filter_map(|url| Url::parse(url).ok()).collect()
    }

    /// Adds a document, or the reason why it is not available.
    pub fn add(&mut self, mut url: Url, document: Result<Value, String>) {
        url.set_fragment(None);
        let key = url.to_string();
        self.missing.remove(&key);
        let document = document.and_then(|document| match self.documents.len() {
            MAX_DOCUMENTS => Err(format!("the description has more than {MAX_DOCUMENTS} documents")),
            _ => Ok(document),
        });
        match document {
            Ok(document) => {
                let wanted = external_references(&url, &document);
                self.known.insert(key, Ok(self.documents.len()));
                self.documents.push((url, document));
                for url in wanted {
                    if self.known.len() + self.missing.len() >= 2 * MAX_DOCUMENTS {
                        break;
                    }
                    if !self.known.contains_key(&url) {
                        self.missing.insert(url);
                    }
                }
            }
            Err(reason) => drop(self.known.insert(key, Err(reason))),
        }
    }

    /// Reports what of the document at `url` was left out or mended when it was parsed.
    pub fn report(&mut self, url: &Url, problems: Vec<String>) {
        let is_root = *url == self.documents[0].0;
        let of = if is_root { String::new() } else { format!("{}: ", truncate(url.as_str(), 200)) };
        self.problems.extend(problems.into_iter().map(|problem| format!("{of}{problem}")));
    }

    /// Returns what of the documents was left out or mended.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the address of the description.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.documents[0].0
    }

    /// Returns the description itself.
    #[must_use]
    pub fn root(&self) -> &Value {
        &self.documents[0].1
    }
}

/// Returns what is missing, although the description can be used.
fn check_version(root: &Value) -> Result<Option<String>, String> {
    let version = match &root["openapi"] {
        Value::String(version) => version.trim().to_owned(),
        // `openapi: 3.1` in YAML.
        Value::Number(version) => version.to_string(),
        _ if root.get("swagger").is_some() => {
            return Err(
                "it is a description of Swagger 2.0; convert it to OpenAPI 3, for example with swagger2openapi".into(),
            );
        }
        _ if root["paths"].is_object() => {
            return Ok(Some("'openapi' is missing; it is read as a description of OpenAPI 3.0".into()));
        }
        _ => return Err("it is not a description of OpenAPI: 'openapi' is missing".into()),
    };
    match version.split('.').take(2).collect::<Vec<_>>().as_slice() {
        ["3", "0" | "1" | "2"] | ["3"] => Ok(None),
        _ => Err(format!("it has version '{}' of OpenAPI; 3.0 and 3.1 can be read", truncate(&version, 20))),
    }
}

/// Returns the addresses of other documents that a document refers to.
fn external_references(base: &Url, document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(document, |members| {
        for key in ["$ref", "$dynamicRef"] {
            if let Some(reference) = members.get(key).and_then(Value::as_str)
                && !reference.starts_with('#')
                && found.len() < 2 * MAX_DOCUMENTS
                && let Ok(mut url) = base.join(reference)
            {
                url.set_fragment(None);
                found.insert(url.to_string());
            }
        }
    });
    found
}

/// Calls a function for each object in a value.
fn visit<'a>(value: &'a Value, mut each: impl FnMut(&'a serde_json::Map<String, Value>)) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                each(members);
                pending.extend(members.values().filter(|member| member.is_object() || member.is_array()));
            }
            Value::Array(items) => pending.extend(items.iter().filter(|item| item.is_object() || item.is_array())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Where a value stands, to resolve the references in it.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    document: usize,
    /// The value that `#` means: the document, or the schema with an `$id`.
    root: &'a Value,
}

impl<'a> Context<'a> {
    /// Returns the context of what is in a schema.
    pub fn of_schema(self, schema: &'a Value) -> Self {
        match schema["$id"].as_str() {
            Some(id) if !id.starts_with('#') => Self { root: schema, ..self },
            Some(_) | None => self,
        }
    }
}

/// Resolves references between complete documents.
pub struct Resolver<'a> {
    documents: &'a Documents,
    /// Schemas by document and anchor.
    anchors: HashMap<(usize, &'a str), &'a Value>,
    /// Schemas with an `$id`, by address.
    ids: HashMap<String, (usize, &'a Value)>,
    /// How much work is left.
    work: Cell<usize>,
}

impl<'a> Resolver<'a> {
    pub fn new(documents: &'a Documents) -> Self {
        let mut resolver = Self { documents, anchors: HashMap::new(), ids: HashMap::new(), work: Cell::new(MAX_WORK) };
        for (at, (url, document)) in documents.documents.iter().enumerate() {
            let mut pending = vec![document];
            while let Some(value) = pending.pop() {
                if let Value::Object(members) = value {
                    for key in ["$anchor", "$dynamicAnchor"] {
                        if let Some(anchor) = members.get(key).and_then(Value::as_str) {
                            resolver.anchors.entry((at, anchor)).or_insert(value);
                        }
                    }
                    if let Some(id) = members.get("$id").and_then(Value::as_str)
                        && let Ok(id) = url.join(id)
                    {
                        resolver.ids.entry(id.to_string()).or_insert((at, value));
                    }
                    pending.extend(members.values().filter(|member| member.is_object() || member.is_array()));
                } else if let Value::Array(items) = value {
                    pending.extend(items.iter().filter(|item| item.is_object() || item.is_array()));
                }
            }
        }
        resolver
    }

    /// Counts values that are looked at: operations can share parts of any size. Returns `false` if there were too many.
    pub fn work(&self, values: usize) -> bool {
        let left = self.work.get();
        self.work.set(left.saturating_sub(values));
        left >= values
    }

    /// Returns the description itself.
    pub fn root(&self) -> (Context<'a>, &'a Value) {
        let root = self.documents.root();
        (Context { document: 0, root }, root)
    }

    /// Resolves one reference.
    ///
    /// # Errors
    /// It leads to nothing.
    pub fn resolve(&self, context: Context<'a>, reference: &str) -> Result<(Context<'a>, &'a Value), String> {
        let broken = |why: &str| format!("the reference '{}' {why}", truncate(reference, 200));
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let (document, root) = if address.is_empty() {
            (context.document, context.root)
        } else {
            let base = &self.documents.documents[context.document].0;
            let mut url = base.join(address).map_err(|_| broken("is not an address"))?;
            url.set_fragment(None);
            match (self.documents.known.get(url.as_str()), self.ids.get(url.as_str())) {
                (_, Some(found)) => *found,
                (Some(Ok(document)), None) => (*document, &self.documents.documents[*document].1),
                (Some(Err(reason)), None) => return Err(broken(&format!("cannot be followed: {reason}"))),
                (None, None) => return Err(broken("leads to a document that was not read")),
            }
        };
        let whole = &self.documents.documents[document].1;
        let fragment = percent_decode_str(fragment).decode_utf8().map_err(|_| broken("is not UTF-8"))?;
        let found = match &*fragment {
            "" => Some((root, root)),
            pointer if pointer.starts_with('/') => {
                let inside = root.pointer(pointer).map(|found| (root, found));
                inside.or_else(|| whole.pointer(pointer).map(|found| (whole, found)))
            }
            anchor => self.anchors.get(&(document, anchor)).map(|found| (whole, *found)),
        };
        let (root, found) = found.ok_or_else(|| broken("leads to nothing"))?;
        Ok((Context { document, root }, found))
    }

    /// Follows references from a value, if it is one, to a value that is none.
    ///
    /// # Errors
    /// A reference leads to nothing, or in a circle.
    pub fn follow(&self, mut context: Context<'a>, mut value: &'a Value) -> Result<(Context<'a>, &'a Value), String> {
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Ok((context, value)) };
            (context, value) = self.resolve(context, reference)?;
        }
        Err(format!("more than {MAX_REFERENCES} references lead to each other"))
    }
}

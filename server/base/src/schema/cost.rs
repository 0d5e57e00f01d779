//! How often the parts of a schema are looked at to check a value: counted on both, part by part and
//! value by value, each pair once.

use super::parts::{self, Kind};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Parts of a schema that lie inside each other, references followed: checks recurse as deeply.
const DEEPEST: usize = 300;
/// Parts of a schema with all its references followed; where they hold themselves, each is counted once.
const MOST_EXPANDED: u64 = 200_000;
/// Pairs of a part and a value that are remembered.
const MOST_PAIRS: usize = 1_000_000;

/// It takes too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooComplex;

type Counted = Result<u64, TooComplex>;

/// The parts of a schema and how they hold each other.
pub struct Graph {
    parts: Vec<Part>,
    /// How many parts there are with all references followed; absent: they hold themselves.
    expanded: Option<u64>,
    /// Whether the work on a value follows from the number of its parts: no patterns, no long lists.
    plain: bool,
}

/// One schema.
#[derive(Default)]
struct Part {
    /// Those that look at the same value.
    same: Vec<usize>,
    /// Those of which one or more must fit: looked at again for their errors.
    choices: Vec<usize>,
    properties: HashMap<String, usize>,
    /// With the cost of a match of one byte.
    patterns: Vec<(u64, usize)>,
    /// Of members that `properties` does not name.
    rest: Vec<usize>,
    /// Of the first items.
    first: Vec<usize>,
    /// Of all items.
    items: Vec<usize>,
    /// Of names of members.
    names: Vec<usize>,
    /// Cost of its own keywords.
    own: u64,
    /// Cost of its pattern for one byte.
    pattern: u64,
    /// Values of `enum` and `const`, which are compared.
    compared: u64,
    is_unique: bool,
    /// What looks for members and items that nothing else has looked at.
    unevaluated: bool,
    /// How many others hold it.
    holders: u32,
}

impl Part {
    fn parts(&self) -> impl Iterator<Item = usize> {
        let lists = [&self.same, &self.choices, &self.rest, &self.first, &self.items, &self.names];
        let named = self.properties.values().chain(self.patterns.iter().map(|(_, part)| part));
        lists.into_iter().flatten().chain(named).copied()
    }
}

impl Graph {
    /// The parts of a schema. `weights` are the costs of its patterns.
    ///
    /// # Errors
    /// They hold each other too often or too deeply.
    pub fn new(schema: &Value, weights: &HashMap<String, u64>) -> Result<Self, TooComplex> {
        let mut builder = Builder::new(schema, weights);
        builder.part(schema, schema);
        while let Some((at, schema, resource)) = builder.waiting.pop() {
            builder.fill(at, schema, resource);
        }
        if builder.is_lost {
            return Err(TooComplex);
        }
        let mut parts = builder.parts;
        let held: Vec<usize> = parts.iter().flat_map(Part::parts).collect();
        for part in held {
            parts[part].holders += 1;
        }
        let plain = parts.iter().all(|part| {
            part.pattern == 0
                && part.patterns.is_empty()
                && part.compared < 50
                && !part.is_unique
                && part.names.is_empty()
        });
        let mut graph = Self { parts, expanded: None, plain };
        graph.expanded = graph.expand()?;
        Ok(graph)
    }

    /// Whether it is shallow and no part holds itself.
    pub fn is_flat(&self) -> bool {
        self.expanded.is_some_and(|parts| parts < 2_000)
    }

    /// How many parts there are with all references followed; none where they hold themselves.
    fn expand(&self) -> Result<Option<u64>, TooComplex> {
        let mut expander = Expander { graph: self, known: vec![None; self.parts.len()], is_recursive: false };
        let all = expander.count(0, 0)?;
        if all > MOST_EXPANDED {
            return Err(TooComplex);
        }
        Ok((!expander.is_recursive).then_some(all))
    }

    /// The cost of a check, at most, where that is easy to see and no more than `most`.
    pub fn quick(&self, value: &Value, most: u64) -> Option<u64> {
        let parts = self.expanded.filter(|_| self.plain)?;
        let mut left = usize::try_from(most / parts.max(1)).ok()?;
        let before = left;
        super::is_at_most(value, &mut left).then(|| u64::try_from(before - left).unwrap_or(u64::MAX) * parts)
    }

    /// The cost of a check with all that it says of what does not fit.
    ///
    /// # Errors
    /// It is more than `most`.
    pub fn cost(&self, value: &Value, most: u64) -> Counted {
        let mut counter = Counter { graph: self, known: HashMap::new(), looks: 0, most };
        counter.count(0, value, 0)
    }
}

struct Expander<'a> {
    graph: &'a Graph,
    /// By part: its count; zero while it is counted.
    known: Vec<Option<u64>>,
    is_recursive: bool,
}

impl Expander<'_> {
    fn count(&mut self, at: usize, depth: usize) -> Counted {
        match self.known[at] {
            Some(0) => {
                self.is_recursive = true;
                return Ok(1);
            }
            Some(count) => return Ok(count),
            None if depth > DEEPEST => return Err(TooComplex),
            None => self.known[at] = Some(0),
        }
        let part = &self.graph.parts[at];
        let mut count = part.own;
        for held in part.parts() {
            count = count.saturating_add(self.count(held, depth + 1)?);
        }
        if part.unevaluated {
            count = count.saturating_mul(2);
        }
        self.known[at] = Some(count);
        Ok(count)
    }
}

/// The cost of a part for a value; zero while it is counted.
type Known = HashMap<(usize, *const Value), u64>;

struct Counter<'a> {
    graph: &'a Graph,
    known: Known,
    /// How many pairs were looked at to count.
    looks: u64,
    most: u64,
}

impl<'a> Counter<'a> {
    fn within(&self, cost: u64) -> Counted {
        if cost > self.most { Err(TooComplex) } else { Ok(cost) }
    }

    /// A cost with that of one more part.
    fn add(&mut self, cost: u64, at: usize, value: &Value, depth: usize) -> Counted {
        let more = self.count(at, value, depth + 1)?;
        self.within(cost.saturating_add(more))
    }

    fn count(&mut self, at: usize, value: &Value, depth: usize) -> Counted {
        let graph: &'a Graph = self.graph;
        let part = &graph.parts[at];
        let key = (at, std::ptr::from_ref(value));
        let is_shared = part.holders != 1;
        if is_shared {
            match self.known.get(&key) {
                // It holds itself for the same value.
                Some(0) => return Err(TooComplex),
                Some(cost) => return Ok(*cost),
                None if self.known.len() >= MOST_PAIRS => return Err(TooComplex),
                None => self.known.insert(key, 0),
            };
        }
        self.looks += 1;
        if self.looks > self.most || depth > DEEPEST {
            return Err(TooComplex);
        }
        let mut cost = part.own.saturating_add(self.own(part, value)?);
        for held in &part.same {
            cost = self.add(cost, *held, value, depth)?;
        }
        for held in &part.choices {
            let twice = self.count(*held, value, depth + 1)?.saturating_mul(2);
            cost = self.within(cost.saturating_add(twice))?;
        }
        match value {
            Value::Object(members) => cost = self.members(part, members, depth, cost)?,
            Value::Array(items) => cost = self.items(part, items, depth, cost)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if part.unevaluated {
            cost = cost.saturating_mul(2);
        }
        if is_shared {
            self.known.insert(key, cost);
        }
        self.within(cost)
    }

    /// What the keywords of a part cost that compare and match.
    fn own(&self, part: &Part, value: &Value) -> Counted {
        let mut cost = part.compared;
        if let Value::String(text) = value {
            cost = cost.saturating_add(part.pattern.saturating_mul(length(text)));
        }
        if part.is_unique || part.compared > 0 {
            let most = usize::try_from(self.most).unwrap_or(usize::MAX);
            let mut left = most;
            if !super::is_at_most(value, &mut left) {
                return Err(TooComplex);
            }
            let values = u64::try_from(most - left).unwrap_or(u64::MAX);
            cost = cost.saturating_add(values.saturating_mul(if part.is_unique { 4 } else { 1 }));
        }
        self.within(cost)
    }

    fn members(&mut self, part: &Part, members: &Map<String, Value>, depth: usize, before: u64) -> Counted {
        let mut cost = before.saturating_add(count(members.len()));
        for (name, member) in members {
            let named = part.properties.get(name);
            let mut held: Vec<usize> = named.copied().into_iter().collect();
            for (weight, pattern) in &part.patterns {
                // Whether the name fits is not asked: it would take as long as the check itself.
                cost = self.within(cost.saturating_add(weight.saturating_mul(length(name))))?;
                held.push(*pattern);
            }
            if named.is_none() {
                held.extend(&part.rest);
            }
            if !part.names.is_empty() {
                // A copy of its own, which is remembered by nobody.
                let name = Value::String(name.clone());
                for names in &part.names {
                    let mut counter = Counter { graph: self.graph, known: HashMap::new(), looks: 0, most: self.most };
                    cost = self.within(cost.saturating_add(counter.count(*names, &name, depth + 1)?))?;
                }
            }
            for held in held {
                cost = self.add(cost, held, member, depth)?;
            }
        }
        Ok(cost)
    }

    fn items(&mut self, part: &Part, items: &[Value], depth: usize, before: u64) -> Counted {
        let mut cost = before.saturating_add(count(items.len()));
        for (at, item) in items.iter().enumerate() {
            for held in part.first.get(at).into_iter().chain(&part.items) {
                cost = self.add(cost, *held, item, depth)?;
            }
        }
        Ok(cost)
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn length(text: &str) -> u64 {
    count(text.len() + 1)
}

/// Makes parts of a schema, each place of it once.
struct Builder<'a> {
    root: &'a Value,
    weights: &'a HashMap<String, u64>,
    parts: Vec<Part>,
    known: HashMap<*const Value, usize>,
    /// Places that are still empty, with the schemas that belong there and the documents they are of.
    waiting: Vec<(usize, &'a Value, &'a Value)>,
    /// Schemas by what they call themselves.
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// Whether a reference leads where nobody knows.
    is_lost: bool,
}

impl<'a> Builder<'a> {
    fn new(root: &'a Value, weights: &'a HashMap<String, u64>) -> Self {
        let mut anchors = HashMap::new();
        name(root, &mut anchors);
        Self { root, weights, parts: Vec::new(), known: HashMap::new(), waiting: Vec::new(), anchors, is_lost: false }
    }

    /// The part of a schema in the document `resource`.
    fn part(&mut self, schema: &'a Value, resource: &'a Value) -> usize {
        *self.known.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.parts.push(Part::default());
            self.waiting.push((self.parts.len() - 1, schema, resource));
            self.parts.len() - 1
        })
    }

    fn fill(&mut self, at: usize, schema: &'a Value, resource: &'a Value) {
        let mut part = Part { own: 1, ..Part::default() };
        if let Value::Object(members) = schema {
            let id = members.get("$id").or_else(|| members.get("id")).and_then(Value::as_str);
            let resource = if id.is_some_and(|id| !id.starts_with('#')) { schema } else { resource };
            part.own += count(members.len());
            for (key, value) in members {
                self.keyword(&mut part, key, value, resource);
            }
        }
        self.parts[at] = part;
    }

    fn keyword(&mut self, part: &mut Part, key: &str, value: &'a Value, resource: &'a Value) {
        match (key, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let targets = self.targets(reference, resource);
                self.is_lost |= targets.is_empty();
                for target in targets {
                    let held = self.part(target, resource);
                    part.same.push(held);
                }
            }
            ("pattern", Value::String(pattern)) => part.pattern = self.weight(pattern),
            ("enum", Value::Array(values)) => part.compared += count(values.len()),
            ("const", _) => part.compared += 1,
            ("required", Value::Array(names)) => part.own += count(names.len()),
            ("uniqueItems", Value::Bool(true)) => part.is_unique = true,
            ("properties", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let held = self.part(schema, resource);
                    part.properties.insert(name.clone(), held);
                }
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (pattern, schema) in schemas {
                    let held = (self.weight(pattern), self.part(schema, resource));
                    part.patterns.push(held);
                }
            }
            _ => self.others(part, key, value, resource),
        }
    }

    fn others(&mut self, part: &mut Part, key: &str, value: &'a Value, resource: &'a Value) {
        part.unevaluated |= matches!(key, "unevaluatedProperties" | "unevaluatedItems");
        let list = match key {
            "allOf" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => &mut part.same,
            "anyOf" | "oneOf" | "not" => &mut part.choices,
            "additionalProperties" | "unevaluatedProperties" => &mut part.rest,
            "prefixItems" => &mut part.first,
            "items" if value.is_array() => &mut part.first,
            "items" | "additionalItems" | "contains" | "unevaluatedItems" => &mut part.items,
            "propertyNames" => &mut part.names,
            _ => return,
        };
        match (parts::kind(key), value) {
            (Some(Kind::Map), Value::Object(schemas)) => {
                list.extend(
                    schemas.values().filter(|schema| !schema.is_array()).map(|schema| self.part(schema, resource)),
                );
            }
            (Some(Kind::List | Kind::Schema), Value::Array(schemas)) => {
                list.extend(schemas.iter().map(|schema| self.part(schema, resource)));
            }
            (Some(Kind::Schema), schema) => list.push(self.part(schema, resource)),
            (Some(Kind::List | Kind::Map) | None, _) => {}
        }
    }

    fn weight(&self, pattern: &str) -> u64 {
        self.weights.get(pattern).copied().unwrap_or(1)
    }

    /// The schemas that a reference may mean, all of those that share a name.
    fn targets(&self, reference: &str, resource: &'a Value) -> Vec<&'a Value> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = |id: &'a str| id.trim_end_matches('#').rsplit('/').next().unwrap_or(id);
        let resource = if document.is_empty() {
            vec![resource]
        } else {
            let wanted = document.rsplit('/').next().unwrap_or(document);
            let named = self.anchors.iter().filter(|(id, _)| last(id) == wanted);
            named.flat_map(|(_, schemas)| schemas.iter().copied()).collect()
        };
        let Ok(fragment) = percent_decode_str(fragment).decode_utf8() else { return Vec::new() };
        match &*fragment {
            "" => resource,
            pointer if pointer.starts_with('/') => resource
                .iter()
                .filter_map(|schema| schema.pointer(pointer).or_else(|| self.root.pointer(pointer)))
                .collect(),
            anchor => self.anchors.get(anchor).cloned().unwrap_or_default(),
        }
    }
}

/// Note what schemas call themselves.
fn name<'a>(schema: &'a Value, anchors: &mut HashMap<&'a str, Vec<&'a Value>>) {
    match schema {
        Value::Object(members) => {
            for key in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(id)) = members.get(key) {
                    anchors.entry(id.trim_start_matches('#')).or_default().push(schema);
                }
            }
            members.values().for_each(|member| name(member, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| name(item, anchors)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

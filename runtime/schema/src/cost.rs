//! Computes an upper bound for the cost of a check: how often subschemas are evaluated. Each pair of a subschema and a
//! value is counted once.

use super::keywords::{self, Subschemas};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// Maximum depth of nested subschemas, with references followed. A check recurses to the same depth.
const MAX_DEPTH: usize = 300;
/// Maximum number of subschemas with all references followed. A recursive reference is counted once.
const MAX_EXPANDED: u64 = 200_000;
/// Maximum number of pairs of a subschema and a value that are cached.
const MAX_PAIRS: usize = 1_000_000;

/// The check would take too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooComplex;

type CostResult = Result<u64, TooComplex>;

/// The subschemas of a schema and their references to each other, as indices into a list.
pub struct Graph {
    subschemas: Vec<Subschema>,
    /// The number of subschemas with all references followed; `None` if the schema is recursive.
    expanded: Option<u64>,
    /// Whether the cost only depends on the number of values: no patterns, no long lists.
    plain: bool,
}

/// A subschema and the subschemas that it applies.
#[derive(Default)]
struct Subschema {
    /// Applied to the same value.
    in_place: Vec<usize>,
    /// Alternatives (`anyOf`, `oneOf`, `not`): evaluated a second time for their errors.
    choices: Vec<usize>,
    properties: HashMap<String, usize>,
    /// Patterns of property names, by the cost of matching one byte.
    patterns: Vec<(u64, usize)>,
    /// Applied to members that `properties` does not name.
    additional: Vec<usize>,
    /// Applied to the first items, by position.
    prefix_items: Vec<usize>,
    /// Applied to all items.
    items: Vec<usize>,
    /// Applied to the names of members.
    property_names: Vec<usize>,
    /// Cost of its other keywords.
    own: u64,
    /// Cost of matching one byte with its pattern.
    pattern: u64,
    /// Number of values in `enum` and `const`.
    compared: u64,
    is_unique: bool,
    /// Whether it has `unevaluatedProperties` or `unevaluatedItems`.
    unevaluated: bool,
    /// The number of references to it.
    references: u32,
}

impl Subschema {
    fn applied(&self) -> impl Iterator<Item = usize> {
        let lists =
            [&self.in_place, &self.choices, &self.additional, &self.prefix_items, &self.items, &self.property_names];
        let named = self.properties.values().chain(self.patterns.iter().map(|(_, schema)| schema));
        lists.into_iter().flatten().chain(named).copied()
    }
}

/// Returns the references of a schema that lead nowhere.
pub fn unresolved(schema: &Value) -> BTreeSet<String> {
    let weights = HashMap::new();
    let mut builder = Builder { is_whole: true, ..Builder::new(schema, &weights) };
    builder.add(schema, schema);
    while let Some((at, schema, resource)) = builder.pending.pop() {
        builder.fill(at, schema, resource);
    }
    builder.unresolved
}

impl Graph {
    /// Builds the graph of a schema. `weights` are the costs of its patterns.
    ///
    /// # Errors
    /// The schema has too many or too deep references, or one that cannot be resolved.
    pub fn new(schema: &Value, weights: &HashMap<String, u64>) -> Result<Self, TooComplex> {
        let mut builder = Builder::new(schema, weights);
        builder.add(schema, schema);
        while let Some((at, schema, resource)) = builder.pending.pop() {
            builder.fill(at, schema, resource);
        }
        if !builder.unresolved.is_empty() {
            return Err(TooComplex);
        }
        let mut subschemas = builder.subschemas;
        let applied: Vec<usize> = subschemas.iter().flat_map(Subschema::applied).collect();
        for schema in applied {
            subschemas[schema].references += 1;
        }
        let plain = subschemas.iter().all(|schema| {
            schema.pattern == 0
                && schema.patterns.is_empty()
                && schema.compared < 50
                && !schema.is_unique
                && schema.property_names.is_empty()
        });
        let mut graph = Self { subschemas, expanded: None, plain };
        graph.expanded = graph.expand()?;
        Ok(graph)
    }

    /// Whether the schema is small and not recursive.
    pub fn is_flat(&self) -> bool {
        self.expanded.is_some_and(|count| count < 2_000)
    }

    /// Counts the subschemas with all references followed. Returns `None` if the schema is recursive.
    fn expand(&self) -> Result<Option<u64>, TooComplex> {
        let mut expander = Expander { graph: self, known: vec![None; self.subschemas.len()], is_recursive: false };
        let all = expander.count(0, 0)?;
        if all > MAX_EXPANDED {
            return Err(TooComplex);
        }
        Ok((!expander.is_recursive).then_some(all))
    }

    /// Returns an upper bound for the cost of a check; `None` if it needs a full computation or exceeds `max`.
    pub fn quick(&self, value: &Value, max: u64) -> Option<u64> {
        let subschemas = self.expanded.filter(|_| self.plain)?;
        let mut remaining = usize::try_from(max / subschemas.max(1)).ok()?;
        let before = remaining;
        super::is_at_most(value, &mut remaining)
            .then(|| u64::try_from(before - remaining).unwrap_or(u64::MAX) * subschemas)
    }

    /// Returns the cost of a check that collects its errors.
    ///
    /// # Errors
    /// The cost exceeds `max`.
    pub fn cost(&self, value: &Value, max: u64) -> CostResult {
        let mut calculator = Calculator { graph: self, known: HashMap::new(), visited: 0, max };
        calculator.cost(0, value, 0)
    }
}

struct Expander<'a> {
    graph: &'a Graph,
    /// The count of each subschema; zero while it is being counted.
    known: Vec<Option<u64>>,
    is_recursive: bool,
}

impl Expander<'_> {
    fn count(&mut self, at: usize, depth: usize) -> CostResult {
        match self.known[at] {
            Some(0) => {
                self.is_recursive = true;
                return Ok(1);
            }
            Some(count) => return Ok(count),
            None if depth > MAX_DEPTH => return Err(TooComplex),
            None => self.known[at] = Some(0),
        }
        let schema = &self.graph.subschemas[at];
        let mut count = schema.own;
        for applied in schema.applied() {
            count = count.saturating_add(self.count(applied, depth + 1)?);
        }
        if schema.unevaluated {
            count = count.saturating_mul(2);
        }
        self.known[at] = Some(count);
        Ok(count)
    }
}

/// The cost of a subschema for a value; zero while it is being computed.
type Known = HashMap<(usize, *const Value), u64>;

struct Calculator<'a> {
    graph: &'a Graph,
    known: Known,
    /// The number of pairs visited, which bounds the time of the computation itself.
    visited: u64,
    max: u64,
}

impl<'a> Calculator<'a> {
    fn check_max(&self, cost: u64) -> CostResult {
        if cost > self.max { Err(TooComplex) } else { Ok(cost) }
    }

    /// Adds the cost of a subschema to `cost`.
    fn add(&mut self, cost: u64, at: usize, value: &Value, depth: usize) -> CostResult {
        let more = self.cost(at, value, depth + 1)?;
        self.check_max(cost.saturating_add(more))
    }

    fn cost(&mut self, at: usize, value: &Value, depth: usize) -> CostResult {
        let graph: &'a Graph = self.graph;
        let schema = &graph.subschemas[at];
        let key = (at, std::ptr::from_ref(value));
        let is_shared = schema.references != 1;
        if is_shared {
            match self.known.get(&key) {
                // The subschema refers to itself for the same value.
                Some(0) => return Err(TooComplex),
                Some(cost) => return Ok(*cost),
                None if self.known.len() >= MAX_PAIRS => return Err(TooComplex),
                None => self.known.insert(key, 0),
            };
        }
        self.visited += 1;
        if self.visited > self.max || depth > MAX_DEPTH {
            return Err(TooComplex);
        }
        let mut cost = schema.own.saturating_add(self.own_cost(schema, value)?);
        for applied in &schema.in_place {
            cost = self.add(cost, *applied, value, depth)?;
        }
        for applied in &schema.choices {
            let twice = self.cost(*applied, value, depth + 1)?.saturating_mul(2);
            cost = self.check_max(cost.saturating_add(twice))?;
        }
        match value {
            Value::Object(members) => cost = self.members_cost(schema, members, depth, cost)?,
            Value::Array(items) => cost = self.items_cost(schema, items, depth, cost)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if schema.unevaluated {
            cost = cost.saturating_mul(2);
        }
        if is_shared {
            self.known.insert(key, cost);
        }
        self.check_max(cost)
    }

    /// Returns the cost of the keywords that compare values or match patterns.
    fn own_cost(&self, schema: &Subschema, value: &Value) -> CostResult {
        let mut cost = schema.compared;
        if let Value::String(text) = value {
            cost = cost.saturating_add(schema.pattern.saturating_mul(length(text)));
        }
        if schema.is_unique || schema.compared > 0 {
            let max = usize::try_from(self.max).unwrap_or(usize::MAX);
            let mut remaining = max;
            if !super::is_at_most(value, &mut remaining) {
                return Err(TooComplex);
            }
            let values = u64::try_from(max - remaining).unwrap_or(u64::MAX);
            cost = cost.saturating_add(values.saturating_mul(if schema.is_unique { 4 } else { 1 }));
        }
        self.check_max(cost)
    }

    fn members_cost(
        &mut self,
        schema: &Subschema,
        members: &Map<String, Value>,
        depth: usize,
        before: u64,
    ) -> CostResult {
        let mut cost = before.saturating_add(count(members.len()));
        for (name, member) in members {
            let named = schema.properties.get(name);
            let mut applied: Vec<usize> = named.copied().into_iter().collect();
            for (weight, pattern) in &schema.patterns {
                // The name is not matched here, because that would take as long as the check itself.
                cost = self.check_max(cost.saturating_add(weight.saturating_mul(length(name))))?;
                applied.push(*pattern);
            }
            if named.is_none() {
                applied.extend(&schema.additional);
            }
            if !schema.property_names.is_empty() {
                // The name is a temporary value, so its costs must not be cached by address.
                let name = Value::String(name.clone());
                for names in &schema.property_names {
                    let mut calculator =
                        Calculator { graph: self.graph, known: HashMap::new(), visited: 0, max: self.max };
                    cost = self.check_max(cost.saturating_add(calculator.cost(*names, &name, depth + 1)?))?;
                }
            }
            for applied in applied {
                cost = self.add(cost, applied, member, depth)?;
            }
        }
        Ok(cost)
    }

    fn items_cost(&mut self, schema: &Subschema, items: &[Value], depth: usize, before: u64) -> CostResult {
        let mut cost = before.saturating_add(count(items.len()));
        for (at, item) in items.iter().enumerate() {
            for applied in schema.prefix_items.get(at).into_iter().chain(&schema.items) {
                cost = self.add(cost, *applied, item, depth)?;
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

/// Builds the graph. Each position of the schema becomes one subschema.
struct Builder<'a> {
    root: &'a Value,
    weights: &'a HashMap<String, u64>,
    subschemas: Vec<Subschema>,
    known: HashMap<*const Value, usize>,
    /// Subschemas that are not filled in yet: index, schema, and the schema resource that contains it.
    pending: Vec<(usize, &'a Value, &'a Value)>,
    /// Schemas by their ids and anchors.
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// References that lead nowhere.
    unresolved: BTreeSet<String>,
    /// Whether the subschemas are added that nothing applies, too.
    is_whole: bool,
}

impl<'a> Builder<'a> {
    fn new(root: &'a Value, weights: &'a HashMap<String, u64>) -> Self {
        let mut anchors = HashMap::new();
        collect_anchors(root, &mut anchors);
        Self {
            root,
            weights,
            subschemas: Vec::new(),
            known: HashMap::new(),
            pending: Vec::new(),
            anchors,
            unresolved: BTreeSet::new(),
            is_whole: false,
        }
    }

    /// Adds a subschema of the schema resource `resource`. Returns its index.
    fn add(&mut self, schema: &'a Value, resource: &'a Value) -> usize {
        *self.known.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.subschemas.push(Subschema::default());
            self.pending.push((self.subschemas.len() - 1, schema, resource));
            self.subschemas.len() - 1
        })
    }

    fn fill(&mut self, at: usize, schema: &'a Value, resource: &'a Value) {
        let mut subschema = Subschema { own: 1, ..Subschema::default() };
        if let Value::Object(members) = schema {
            let id = members.get("$id").or_else(|| members.get("id")).and_then(Value::as_str);
            let resource = if id.is_some_and(|id| !id.starts_with('#')) { schema } else { resource };
            subschema.own += count(members.len());
            for (key, value) in members {
                self.keyword(&mut subschema, key, value, resource);
            }
        }
        self.subschemas[at] = subschema;
    }

    fn keyword(&mut self, subschema: &mut Subschema, key: &str, value: &'a Value, resource: &'a Value) {
        match (key, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let targets = self.targets(reference, resource);
                if targets.is_empty() {
                    self.unresolved.insert(reference.clone());
                }
                for target in targets {
                    let applied = self.add(target, resource);
                    subschema.in_place.push(applied);
                }
            }
            ("pattern", Value::String(pattern)) => subschema.pattern = self.weight(pattern),
            ("enum", Value::Array(values)) => subschema.compared += count(values.len()),
            ("const", _) => subschema.compared += 1,
            ("required", Value::Array(names)) => subschema.own += count(names.len()),
            ("uniqueItems", Value::Bool(true)) => subschema.is_unique = true,
            ("properties", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let applied = self.add(schema, resource);
                    subschema.properties.insert(name.clone(), applied);
                }
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (pattern, schema) in schemas {
                    let applied = (self.weight(pattern), self.add(schema, resource));
                    subschema.patterns.push(applied);
                }
            }
            _ => self.other_keyword(subschema, key, value, resource),
        }
    }

    fn other_keyword(&mut self, subschema: &mut Subschema, key: &str, value: &'a Value, resource: &'a Value) {
        subschema.unevaluated |= matches!(key, "unevaluatedProperties" | "unevaluatedItems");
        let list = match key {
            "allOf" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => &mut subschema.in_place,
            "anyOf" | "oneOf" | "not" => &mut subschema.choices,
            "additionalProperties" | "unevaluatedProperties" => &mut subschema.additional,
            "prefixItems" => &mut subschema.prefix_items,
            "items" if value.is_array() => &mut subschema.prefix_items,
            "items" | "additionalItems" | "contains" | "unevaluatedItems" => &mut subschema.items,
            "propertyNames" => &mut subschema.property_names,
            _ if self.is_whole => &mut subschema.in_place,
            _ => return,
        };
        match (keywords::subschemas(key), value) {
            (Some(Subschemas::Map), Value::Object(schemas)) => {
                list.extend(
                    schemas.values().filter(|schema| !schema.is_array()).map(|schema| self.add(schema, resource)),
                );
            }
            (Some(Subschemas::List | Subschemas::Schema), Value::Array(schemas)) => {
                list.extend(schemas.iter().map(|schema| self.add(schema, resource)));
            }
            (Some(Subschemas::Schema), schema) => list.push(self.add(schema, resource)),
            // A reference may lead into an unknown keyword.
            (None, Value::Object(schemas)) if self.is_whole && !keywords::is_data(key) => {
                list.extend(schemas.values().map(|schema| self.add(schema, resource)));
            }
            (Some(Subschemas::List | Subschemas::Map) | None, _) => {}
        }
    }

    fn weight(&self, pattern: &str) -> u64 {
        self.weights.get(pattern).copied().unwrap_or(1)
    }

    /// Returns the schemas that a reference may resolve to: all schemas with the same id or anchor.
    fn targets(&self, reference: &str, resource: &'a Value) -> Vec<&'a Value> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last_segment = |id: &'a str| id.trim_end_matches('#').rsplit('/').next().unwrap_or(id);
        let resource = if document.is_empty() {
            vec![resource]
        } else {
            let wanted = document.rsplit('/').next().unwrap_or(document);
            let named = self.anchors.iter().filter(|(id, _)| last_segment(id) == wanted);
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

/// Collects the ids and anchors of all schemas.
fn collect_anchors<'a>(schema: &'a Value, anchors: &mut HashMap<&'a str, Vec<&'a Value>>) {
    match schema {
        Value::Object(members) => {
            for key in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(id)) = members.get(key) {
                    anchors.entry(id.trim_start_matches('#')).or_default().push(schema);
                }
            }
            members.values().for_each(|member| collect_anchors(member, anchors));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_anchors(item, anchors)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

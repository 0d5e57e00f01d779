//! All cases: functions with their receivers and arguments.
//!
//! Each built-in is called on every kind of receiver with plain arguments, and with every kind of argument in each position
//! next to plain ones. Combinations of a huge receiver and a huge argument are limited to values that represent others.

use super::kinds::{ARGUMENTS, FILLERS, Kind, receivers};
use super::worker::all_allowed;
use super::{Case, SETTINGS, forms};
use agentscript::{Callable, CompileOptions, Use, callables};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of cases that share their values.
const MAX_BATCH: usize = 64;

/// Returns all cases under all settings, in an arbitrary but fixed order.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = Cases { part: "values".into(), compiles: true, cases: Vec::new() };
    for kind in ARGUMENTS {
        cases.add("value", &[(kind, "a")], "a");
    }
    for callable in callables() {
        // The name of the object, or of a function without one.
        let whole = if callable.owner.is_empty() { callable.name } else { &callable.owner };
        let first = whole.split('.').next().unwrap_or_default();
        cases.part = if first.starts_with(char::is_uppercase) { first } else { "functions" }.into();
        cases.callable(&callable);
    }
    cases.compiles = true;
    cases.part = "operators and statements".into();
    forms::add(&mut cases);
    cases.part = "sources".into();
    forms::add_sources(&mut cases);
    let mut all = cases.cases;
    all.sort_by_cached_key(|case| hash(&(&case.name, case.setting)));
    all
}

/// Returns a hash of a case that is the same in all builds.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns a sample of about `count` cases, always the same one. Half of them do not share their values; the others are a
/// few cases of as many values as possible.
#[must_use]
pub fn sample(cases: &[Case], count: usize) -> Vec<Case> {
    let (alone, shared): (Vec<_>, Vec<_>) = batches(cases).into_iter().partition(|batch| batch.len() == 1);
    let some = |batches: Vec<Vec<&Case>>, of_each: usize| -> Vec<Case> {
        let every = (batches.len() * of_each * 2 / count.max(1)).max(1);
        let batches = batches.into_iter().step_by(every);
        batches.flat_map(|batch| batch.into_iter().take(of_each).cloned().collect::<Vec<_>>()).collect()
    };
    let mut sample = some(alone, 1);
    sample.extend(some(shared, OF_EACH));
    sample
}

/// Number of cases in a sample that share their values.
const OF_EACH: usize = 4;

/// Returns batches of cases that can share their values, in an arbitrary but fixed order.
#[must_use]
pub fn batches(cases: &[Case]) -> Vec<Vec<&Case>> {
    let mut groups: BTreeMap<(usize, &str), Vec<&Case>> = BTreeMap::new();
    let mut batches: Vec<Vec<&Case>> = Vec::new();
    for case in cases {
        if case.alone {
            batches.push(vec![case]);
        } else {
            groups.entry((case.setting, &case.values)).or_default().push(case);
        }
    }
    batches.extend(groups.values().flat_map(|group| group.chunks(MAX_BATCH)).map(<[&Case]>::to_vec));
    batches.sort_by_cached_key(|batch| hash(&(&batch[0].name, batch[0].setting)));
    batches
}

fn compiles(script: &str) -> bool {
    agentscript::compile(script, &CompileOptions::for_policy(&all_allowed())).is_ok()
}

/// Methods that change their receiver.
const CHANGING: &[&str] = &[
    "Array#copyWithin",
    "Array#fill",
    "Array#pop",
    "Array#push",
    "Array#reverse",
    "Array#shift",
    "Array#sort",
    "Array#splice",
    "Array#unshift",
    "ArrayBuffer#resize",
    "Uint8Array#copyWithin",
    "Uint8Array#fill",
    "Uint8Array#reverse",
    "Uint8Array#set",
    "Uint8Array#setFromBase64",
    "Uint8Array#setFromHex",
    "Uint8Array#sort",
    "TextDecoder#decode",
    "TextEncoder#encodeInto",
    "crypto.getRandomValues",
    "structuredClone",
    "Map#clear",
    "Map#delete",
    "Map#set",
    "Set#add",
    "Set#clear",
    "Set#delete",
    "Headers#append",
    "Headers#delete",
    "Headers#set",
    "Response#arrayBuffer",
    "Response#bytes",
    "Response#json",
    "Response#text",
    "Params#append",
    "Params#delete",
    "Params#set",
    "Params#sort",
    "Object.assign",
    "Object.freeze",
    "Object.seal",
    "Object.preventExtensions",
    "Object.defineProperty",
    "Object.defineProperties",
    "Object.setPrototypeOf",
];

/// Collects cases.
pub struct Cases {
    part: String,
    /// Whether calls compile. A script with a call that does not compile would not run.
    compiles: bool,
    cases: Vec<Case>,
}

impl Cases {
    /// Adds a case under every setting: values by the names of their variables, and the measured expression.
    pub fn add(&mut self, target: &str, values: &[(&Kind, &str)], measured: &str) {
        let changes = CHANGING.contains(&target)
            || target.contains("#set ")
            || ["Iterator#", "Generator#", "AsyncGenerator#", "Url#set", "console.", "mcp"]
                .iter()
                .any(|beginning| target.starts_with(beginning));
        let is_used_up = |kind: &Kind| kind.name.starts_with("iterator:") || kind.name == "function:grows";
        let alone = changes || !self.compiles || values.iter().any(|(kind, _)| is_used_up(kind));
        self.put(target, values, measured, alone);
    }

    /// Adds a case that does not share its values, and whose answer is measured too.
    pub fn add_alone(&mut self, target: &str, values: &[(&Kind, &str)], measured: &str) {
        self.put(target, values, measured, true);
    }

    fn put(&mut self, target: &str, values: &[(&Kind, &str)], measured: &str, alone: bool) {
        let names: Vec<String> = values.iter().map(|(kind, name)| format!("{name}={}", kind.name)).collect();
        let name = format!("{target}({}) {measured}", names.join("; "));
        let made: String = values.iter().map(|(kind, name)| format!("const {name} = {};\n", kind.js)).collect();
        for number in 0..SETTINGS.len() {
            let (values, measured) = match target {
                // If only the value is measured, its creation is included.
                "value" => (String::new(), values[0].0.js.to_owned()),
                _ => (made.clone(), measured.to_owned()),
            };
            let (name, target, part) = (name.clone(), target.to_owned(), self.part.clone());
            self.cases.push(Case { name, target, part, values, measured, alone, is_source: false, setting: number });
        }
    }

    /// Adds a case whose compilation is measured.
    pub fn add_source(&mut self, name: &str, source: &str) {
        for number in 0..SETTINGS.len() {
            self.cases.push(Case {
                name: format!("source({name})"),
                part: self.part.clone(),
                target: format!("source {name}"),
                values: String::new(),
                measured: source.to_owned(),
                alone: true,
                is_source: true,
                setting: number,
            });
        }
    }

    fn callable(&mut self, callable: &Callable) {
        let Callable { owner, name, way } = callable;
        let dot = if owner.is_empty() { "" } else { "." };
        self.compiles = *way != Use::Call || compiles(&format!("{owner}{dot}{name}(1)"));
        match way {
            Use::Call => self.function(&format!("{owner}{dot}{name}"), &format!("{owner}{dot}{name}"), None),
            Use::New => self.function(&format!("new {owner}{dot}{name}"), &format!("new {owner}{dot}{name}"), None),
            Use::Method => self.methods(owner, &format!("{owner}#{name}"), &format!("r.{name}")),
            Use::Get => {
                for receiver in receivers(owner) {
                    self.add(&format!("{owner}#get {name}"), &[(&receiver, "r")], &format!("r.{name}"));
                }
            }
            Use::Set => {
                let receivers = receivers(owner);
                for kind in ARGUMENTS {
                    let target = format!("{owner}#set {name}");
                    self.add(&target, &[(&receivers[0], "r"), (kind, "a")], &format!("r.{name} = a"));
                }
                for receiver in &receivers {
                    self.add(&format!("{owner}#set {name}"), &[(receiver, "r")], &format!("r.{name} = 'b'"));
                }
            }
        }
    }

    fn methods(&mut self, family: &str, target: &str, callee: &str) {
        let receivers = receivers(family);
        for receiver in &receivers {
            self.add(target, &[(receiver, "r")], &format!("{callee}()"));
            let fillers = FILLERS.iter().filter(|filler| receiver.core || **filler != "{ a: 1 }");
            for filler in fillers {
                self.add(target, &[(receiver, "r")], &format!("{callee}({filler}, {filler})"));
            }
            // Receiver and argument are the same value.
            self.add(target, &[(receiver, "r")], &format!("{callee}(r, r)"));
        }
        self.function(target, callee, Some(&receivers[0]));
        let huge = receivers.iter().find(|receiver| receiver.core).filter(|huge| huge.name != receivers[0].name);
        for kind in ARGUMENTS.iter().filter(|kind| kind.core) {
            if let Some(huge) = huge {
                self.add(target, &[(huge, "r"), (kind, "a")], &format!("{callee}(a)"));
                self.add(target, &[(huge, "r"), (kind, "a")], &format!("{callee}('a', a)"));
            }
        }
    }

    /// Adds cases with arguments in all positions.
    fn function(&mut self, target: &str, callee: &str, receiver: Option<&Kind>) {
        let with = |kind| -> Vec<(&Kind, &str)> {
            receiver.map(|receiver| (receiver, "r")).into_iter().chain([(kind, "a")]).collect()
        };
        // The argument before the one that is tested.
        let others: &[&str] = match receiver {
            Some(_) => &["a, a, a", "'a', a", "5, a"],
            None => &["a, a, a", "'a', a", "[3, 1, 2], a", "{ a: 1 }, a"],
        };
        for kind in ARGUMENTS {
            self.add(target, &with(kind), &format!("{callee}(a)"));
            for others in others.iter().filter(|_| kind.core) {
                self.add(target, &with(kind), &format!("{callee}({others})"));
            }
        }
    }
}

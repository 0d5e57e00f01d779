//! All cases: what is called, on what, with what.

use super::kinds::{ARGUMENTS, FILLERS, Kind, receivers};
use super::{Case, SETTINGS, forms};
use agentscript::{Callable, Use, callables};
use std::hash::{DefaultHasher, Hash, Hasher};

/// All cases under all settings, in an order that mixes them.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = Cases::default();
    for kind in ARGUMENTS {
        cases.add("value", &[(kind, "a")], "undefined", "a");
    }
    for callable in callables() {
        cases.callable(&callable);
    }
    forms::add(&mut cases);
    forms::add_sources(&mut cases);
    let mut all = cases.0;
    all.sort_by_cached_key(|case| hash(&(&case.name, case.setting)));
    all
}

/// A number that is the same in every build for the same case.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Some of them: evenly spread, and of each target at least one.
#[must_use]
pub fn sample(cases: Vec<Case>, count: usize) -> Vec<Case> {
    let mut seen = std::collections::HashSet::new();
    let every = (cases.len() / count.max(1)).max(1);
    let pick = |(at, case): (usize, Case)| {
        let first = case.setting == 0 && seen.insert(case.target.clone());
        (first || at % every == 0).then_some(case)
    };
    cases.into_iter().enumerate().filter_map(pick).collect()
}

/// Cases as they are collected.
#[derive(Default)]
pub struct Cases(Vec<Case>);

impl Cases {
    /// A case under every setting: values by the names of their variables, what comes before the measurement, and
    /// the expression that is measured.
    pub fn add(&mut self, target: &str, values: &[(&Kind, &str)], before: &str, measured: &str) {
        let names: Vec<String> = values.iter().map(|(kind, name)| format!("{name}={}", kind.name)).collect();
        let name = format!("{target}({})", names.join("; "));
        // The values are made by what is measured, for once, where they are all that is.
        let made: String = values.iter().map(|(kind, name)| format!("const {name} = {};\n", kind.js)).collect();
        let go = "await callTool('sweep:go', {});\n";
        for (number, setting) in SETTINGS.iter().enumerate() {
            let scale = setting.scale;
            let body = if target == "value" { format!("{go}{made}") } else { format!("{made}{before};\n{go}") };
            // Promises and iterators do their work when someone asks.
            let script = format!(
                "const S = {scale};\n{body}const result = await ({measured});\n\
                 if (typeof result?.next === 'function') while (!result.next().done);"
            );
            self.0.push(Case { name: name.clone(), target: target.to_owned(), script, setting: number });
        }
    }

    /// A case whose source is what is measured.
    pub fn add_source(&mut self, name: &str, source: &str) {
        for number in 0..SETTINGS.len() {
            let script = format!("//source\n{source}");
            self.0.push(Case {
                name: format!("source({name})"),
                target: format!("source {name}"),
                script,
                setting: number,
            });
        }
    }

    fn callable(&mut self, callable: &Callable) {
        let Callable { owner, name, way } = callable;
        let dot = if owner.is_empty() { "" } else { "." };
        match way {
            Use::Call => self.function(&format!("{owner}{dot}{name}"), &format!("{owner}{dot}{name}"), None),
            Use::New => self.function(&format!("new {owner}{dot}{name}"), &format!("new {owner}{dot}{name}"), None),
            Use::Method => self.methods(owner, &format!("{owner}#{name}"), &format!("r.{name}")),
            Use::Get => {
                for receiver in receivers(owner) {
                    self.add(&format!("{owner}#get {name}"), &[(&receiver, "r")], "undefined", &format!("r.{name}"));
                }
            }
            Use::Set => {
                for receiver in receivers(owner) {
                    for kind in ARGUMENTS {
                        let target = format!("{owner}#set {name}");
                        self.add(&target, &[(&receiver, "r"), (kind, "a")], "undefined", &format!("r.{name} = a"));
                    }
                }
            }
        }
    }

    fn methods(&mut self, family: &str, target: &str, callee: &str) {
        let receivers = receivers(family);
        for (at, receiver) in receivers.iter().enumerate() {
            self.add(target, &[(receiver, "r")], "undefined", &format!("{callee}()"));
            for filler in FILLERS {
                self.add(target, &[(receiver, "r")], &format!("const f = {filler}"), &format!("{callee}(f, f)"));
            }
            for kind in ARGUMENTS.iter().filter(|kind| kind.core || at < 2) {
                self.add(target, &[(receiver, "r"), (kind, "a")], "undefined", &format!("{callee}(a)"));
            }
            // What a method does with itself.
            self.add(target, &[(receiver, "r")], "undefined", &format!("{callee}(r, r)"));
        }
        let huge = receivers.iter().find(|receiver| receiver.core).unwrap_or(&receivers[0]);
        for receiver in [&receivers[0], huge] {
            self.function(target, callee, Some(receiver));
        }
    }

    /// Arguments in all positions.
    fn function(&mut self, target: &str, callee: &str, receiver: Option<&Kind>) {
        let with = |kind| -> Vec<(&Kind, &str)> {
            receiver.map(|receiver| (receiver, "r")).into_iter().chain([(kind, "a")]).collect()
        };
        for kind in ARGUMENTS {
            if receiver.is_none() {
                self.add(target, &with(kind), "undefined", &format!("{callee}(a)"));
            }
            self.add(target, &with(kind), "undefined", &format!("{callee}(a, a, a)"));
            for filler in FILLERS.iter().filter(|_| kind.core || receiver.is_none()) {
                self.add(target, &with(kind), &format!("const f = {filler}"), &format!("{callee}(f, a)"));
            }
            for filler in FILLERS.iter().take(3).filter(|_| kind.core) {
                self.add(target, &with(kind), &format!("const f = {filler}"), &format!("{callee}(f, f, a)"));
            }
        }
    }
}

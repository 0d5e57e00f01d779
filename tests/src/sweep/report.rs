//! What came out, for people: the worst of each target, and everything above a bound.

use super::{Case, Measured, SETTINGS};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Results as they come in.
#[derive(Default)]
pub struct Report {
    cases: usize,
    not_reached: usize,
    worst: BTreeMap<String, Worst>,
    /// Cases that passed a bound: their faults, the cases and what they took.
    pub faults: Vec<(&'static str, Case, Measured)>,
}

/// The largest factors of a target.
#[derive(Clone, Default)]
struct Worst {
    cases: usize,
    time: (f64, String),
    memory: (f64, String),
}

impl Report {
    /// Add a result.
    pub fn add(&mut self, case: &Case, measured: Measured) {
        let setting = &SETTINGS[case.setting];
        let name = format!("{} {}", setting.name, case.name);
        self.cases += 1;
        self.not_reached += usize::from(!measured.reached && !measured.lost);
        let worst = self.worst.entry(case.target.clone()).or_default();
        worst.cases += 1;
        let time = measured.call_ms / setting.timeout_ms as f64;
        let memory = measured.grown as f64 / setting.memory_bytes as f64;
        if time > worst.time.0 {
            worst.time = (time, name.clone());
        }
        if memory > worst.memory.0 {
            worst.memory = (memory, name);
        }
        if let Some(fault) = measured.fault(setting) {
            self.faults.push((fault, case.clone(), measured));
        }
    }

    /// How many cases there were.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// The whole as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let reached = self.cases - self.not_reached;
        let _ = writeln!(
            out,
            "{} cases, {} of which reached their call; {} above a bound.\n",
            self.cases,
            reached,
            self.faults.len()
        );
        let mut faults: BTreeMap<(&str, &str), Vec<(&Case, &Measured)>> = BTreeMap::new();
        for (fault, case, measured) in &self.faults {
            faults.entry((&case.target, fault)).or_default().push((case, measured));
        }
        if !faults.is_empty() {
            let _ = writeln!(
                out,
                "| target | fault | cases | ms | MB | ends | first case |\n|---|---|---|---|---|---|---|"
            );
        }
        for ((target, fault), mut list) in faults {
            list.sort_by_key(|(case, measured)| (case.name.len(), measured.grown));
            let (case, _) = list[0];
            let most_ms = list.iter().map(|(_, measured)| measured.call_ms).fold(0.0, f64::max);
            let most = list.iter().map(|(_, measured)| measured.grown).max().unwrap_or_default() >> 20;
            let ends = &list[0].1.end;
            let _ = writeln!(
                out,
                "| `{target}` | {fault} | {} | {most_ms:.0} | {most} | {} | {} `{}` |",
                list.len(),
                ends.chars().take(60).collect::<String>(),
                SETTINGS[case.setting].name,
                case.name.replace('|', "\\|")
            );
        }
        let _ = writeln!(out, "\n| target | cases | time × | in | memory × | in |\n|---|---|---|---|---|---|");
        let mut worst: Vec<(&String, &Worst)> = self.worst.iter().collect();
        worst.sort_by(|(_, a), (_, b)| b.time.0.max(b.memory.0).total_cmp(&a.time.0.max(a.memory.0)));
        for (target, worst) in worst {
            let _ = writeln!(
                out,
                "| `{}` | {} | {:.2} | {} | {:.2} | {} |",
                target.replace('|', "\\|"),
                worst.cases,
                worst.time.0,
                worst.time.1.replace('|', "\\|"),
                worst.memory.0,
                worst.memory.1.replace('|', "\\|")
            );
        }
        out
    }
}

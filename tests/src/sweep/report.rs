//! The report of a sweep: the maximum of each function and of each part, and all cases above a bound.

use super::{Case, Measured, SETTINGS};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// The results so far.
#[derive(Default)]
pub struct Report {
    cases: usize,
    not_reached: usize,
    targets: BTreeMap<String, Worst>,
    /// The maximum of each part, by setting and part.
    parts: BTreeMap<(usize, String), Worst>,
    /// Cases above a bound: the bound, the case and its measurements.
    pub faults: Vec<(&'static str, Case, Measured)>,
}

/// The maximum of a function or a part, relative to the limits.
#[derive(Clone, Default)]
struct Worst {
    cases: usize,
    faults: usize,
    time: (f64, String),
    memory: (f64, String),
}

impl Worst {
    fn add(&mut self, case: &Case, measured: &Measured) {
        let setting = case.limits();
        let name = format!("{} {}", setting.name, case.name);
        self.cases += 1;
        self.faults += usize::from(measured.fault(&setting).is_some());
        let time = measured.call_ms / setting.timeout_ms as f64;
        let memory = measured.grown as f64 / setting.memory_bytes as f64;
        if time > self.time.0 {
            self.time = (time, name.clone());
        }
        if memory > self.memory.0 {
            self.memory = (memory, name);
        }
    }
}

impl Report {
    /// Adds a result.
    pub fn add(&mut self, case: &Case, measured: Measured) {
        self.cases += 1;
        self.not_reached += usize::from(!measured.reached && measured.fault(&case.limits()).is_none());
        self.targets.entry(case.target.clone()).or_default().add(case, &measured);
        self.parts.entry((case.setting, case.part.clone())).or_default().add(case, &measured);
        if let Some(fault) = measured.fault(&case.limits()) {
            self.faults.push((fault, case.clone(), measured));
        }
    }

    /// Returns the number of cases.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// Returns the table of the parts for the documentation. `all` is the number of all cases, also of those that were not
    /// run.
    #[must_use]
    pub fn table(&self, all: usize) -> String {
        let mut out = String::from(
            "| limits | part | cases | time ÷ `timeoutMs` | memory ÷ `maxMemoryBytes` | above a bound |\n\
             |---|---|---:|---:|---:|---:|\n",
        );
        for ((setting, part), worst) in &self.parts {
            let setting = &SETTINGS[*setting];
            let (time, memory) = (worst.time.0, worst.memory.0);
            let name = format!("{} ms, {} MiB", setting.timeout_ms, setting.memory_bytes >> 20);
            let _ = writeln!(out, "| {name} | {part} | {} | {time:.2} | {memory:.2} | {} |", worst.cases, worst.faults);
        }
        let reached = self.cases - self.not_reached;
        let _ = writeln!(out, "\n{} of {all} cases, in {reached} of which the values could be made.", self.cases);
        out
    }

    /// Returns the whole report as Markdown.
    #[must_use]
    pub fn markdown(&self, all: usize) -> String {
        let mut out = self.table(all);
        let mut faults: BTreeMap<(&str, &str), Vec<(&Case, &Measured)>> = BTreeMap::new();
        for (fault, case, measured) in &self.faults {
            faults.entry((&case.target, fault)).or_default().push((case, measured));
        }
        let _ =
            writeln!(out, "\n| target | fault | cases | ms | MB | ends | worst case |\n|---|---|---|---|---|---|---|");
        for ((target, fault), mut list) in faults {
            list.sort_by_key(|(_, measured)| std::cmp::Reverse((measured.grown, measured.call_ms as u64)));
            let (case, measured) = list[0];
            let max_ms = list.iter().map(|(_, measured)| measured.call_ms).fold(0.0, f64::max);
            let max_mb = list.iter().map(|(_, measured)| measured.grown).max().unwrap_or_default() >> 20;
            let ends: String = measured.end.chars().take(60).collect();
            let (count, setting) = (list.len(), SETTINGS[case.setting].name);
            let cells = [target, fault, &count.to_string(), &format!("{max_ms:.0}"), &max_mb.to_string(), &ends];
            let _ = writeln!(out, "| {} | {setting} `{}` |", cells.join(" | ").replace("||", "\\|\\|"), case.name);
        }
        let _ = writeln!(out, "\n| target | cases | time × | in | memory × | in |\n|---|---|---|---|---|---|");
        let mut worst: Vec<(&String, &Worst)> = self.targets.iter().collect();
        worst.sort_by(|(_, a), (_, b)| b.time.0.max(b.memory.0).total_cmp(&a.time.0.max(a.memory.0)));
        for (target, worst) in worst {
            let (time, memory) = (&worst.time, &worst.memory);
            let _ = writeln!(
                out,
                "| `{target}` | {} | {:.2} | {} | {:.2} | {} |",
                worst.cases, time.0, time.1, memory.0, memory.1
            );
        }
        out
    }
}

/// Formats a result as a line of the file from which an interrupted sweep is resumed.
#[must_use]
pub fn format_line(case: &Case, measured: &Measured) -> String {
    let Measured { call_ms, grown, answer_bytes, end, reached, lost } = measured;
    let (setting, name) = (SETTINGS[case.setting].name, &case.name);
    format!("{setting}\t{name}\t{call_ms}\t{grown}\t{answer_bytes}\t{reached}\t{lost}\t{end}\n")
}

/// Parses lines of [`format_line`]. Returns the results by setting and name.
#[must_use]
pub fn parse_lines(lines: &str) -> HashMap<(&str, &str), Measured> {
    let parse = |line| -> Option<_> {
        let parts: Vec<&str> = str::splitn(line, 8, '\t').collect();
        let [setting, name, call_ms, grown, answer_bytes, reached, lost, end] = parts.try_into().ok()?;
        let measured = Measured {
            call_ms: call_ms.parse().ok()?,
            grown: grown.parse().ok()?,
            answer_bytes: answer_bytes.parse().ok()?,
            end: end.to_owned(),
            reached: reached == "true",
            lost: lost == "true",
        };
        Some(((setting, name), measured))
    };
    lines.lines().filter_map(parse).collect()
}

/// Replaces the text between the marks `<!-- NAME` and `<!-- /NAME` of a page by a table; `None` if there are no marks.
#[must_use]
pub fn replace_table(page: &str, name: &str, table: &str) -> Option<String> {
    let (head, rest) = page.split_once(&format!("<!-- {name}"))?;
    let (mark, rest) = rest.split_once('\n')?;
    let end = format!("<!-- /{name}");
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}<!-- {name}{mark}\n{table}{end}{tail}"))
}

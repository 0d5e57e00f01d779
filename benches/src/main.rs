//! The tables of docs/reports/performance.md: `cargo run --release -p codecall-benches`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the tables are what it is for")]

use clap::Parser;
use codecall_benches::cases::{self, Case};
use codecall_benches::measure::{Lab, Plan};
use codecall_benches::peers::{ENGINES, Engine};
use codecall_benches::report::{Table, digits, geometric_mean, time};
use codecall_benches::tables::growth::{Series, growth, table};
use codecall_benches::tables::memory::{memory, waiting};
use codecall_benches::tables::parts::{convert, parts};
use codecall_benches::tables::peers::{Row, fresh, kernels};
use codecall_benches::tables::steps::steps;
use codecall_benches::tables::throughput::throughput;
use codecall_benches::{machine, page, plot};
use std::error::Error;
use std::process::ExitCode;

/// Measure AgentScript and its peers. The engines run alternately in rounds; the best round counts. The exit code is 1 if a
/// result is wrong.
#[derive(Parser)]
struct Arguments {
    /// Only these: cases by a part of their name, tables by their name (fresh, parts, convert, kernels, throughput,
    /// memory, waiting, steps, growth).
    names: Vec<String>,
    /// Fewer and shorter rounds, for quick measurements during development.
    #[arg(long)]
    quick: bool,
    /// Only these peers, by a part of the name; may be given more than once.
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,
    /// Write tables and plots into docs/reports/performance.md, and a summary into README.md.
    #[arg(long, conflicts_with_all = ["names", "peer"])]
    markdown: bool,
}

impl Arguments {
    /// Whether the whole table is requested.
    fn is_requested(&self, table: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == table)
    }

    /// Returns the requested cases of a table.
    fn requested_cases(&self, table: &str, cases: Vec<Case>) -> Vec<Case> {
        let is_chosen =
            |case: &Case| self.is_requested(table) || self.names.iter().any(|name| case.name.contains(name));
        cases.into_iter().filter(is_chosen).collect()
    }

    /// Returns AgentScript and the requested peers.
    fn engines(&self) -> Vec<Engine> {
        let is_chosen = |name: &str| {
            let name = name.to_lowercase();
            self.peer.is_empty() || self.peer.iter().any(|part| name.contains(&part.to_lowercase()))
        };
        let ours = ENGINES.iter().take(1);
        ours.chain(ENGINES.iter().skip(1).filter(|engine| is_chosen(engine.name))).copied().collect()
    }
}

/// The results of the measurement.
struct Findings {
    lab: Lab,
    tables: Vec<Table>,
    fresh: Vec<Row>,
    kernels: Vec<Row>,
    growth: Vec<Series>,
}

impl Findings {
    fn show(&mut self, table: Table) {
        println!("{table}");
        self.tables.push(table);
    }

    fn note<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|problem| self.lab.problems.push(problem)).ok()
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = if arguments.quick { Plan::QUICK } else { Plan::FULL };
    let (lab, missing) = Lab::new(&arguments.engines(), plan);
    let mut findings = Findings { lab, tables: Vec::new(), fresh: Vec::new(), kernels: Vec::new(), growth: Vec::new() };
    let machine = machine::machine();
    println!("{}\n", machine.join("\n"));
    measure(&arguments, plan, &mut findings);
    let noise = describe_noise(&findings.lab.spreads);
    println!("{noise}");
    for missing in &missing {
        eprintln!("!!! SKIPPED: {missing}");
    }
    if arguments.markdown {
        let rounds = format!("Rounds: up to {} of at least {:?}, the best counts", plan.rounds, plan.round);
        let lines: Vec<String> = machine.iter().chain([&rounds, &noise]).map(|line| format!("- {line}\n")).collect();
        if let Err(error) = write(&findings, &lines.concat()) {
            findings.lab.problems.push(error.to_string());
        }
    }
    for problem in &findings.lab.problems {
        eprintln!("!!! {problem}");
    }
    if findings.lab.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(arguments: &Arguments, plan: Plan, findings: &mut Findings) {
    let cases = arguments.requested_cases("fresh", cases::fresh());
    if !cases.is_empty() {
        let (table, rows) = fresh(&mut findings.lab, &cases);
        findings.show(table);
        findings.fresh = rows;
    }
    let cases = arguments.requested_cases("parts", cases::fresh());
    if !cases.is_empty() {
        let table = parts(&plan, &cases);
        if let Some(table) = findings.note(table) {
            findings.show(table);
        }
    }
    if arguments.is_requested("convert") {
        let table = convert(&mut findings.lab);
        findings.show(table);
    }
    let cases = arguments.requested_cases("kernels", cases::kernels());
    if !cases.is_empty() {
        let (table, rows) = kernels(&mut findings.lab, &cases);
        findings.show(table);
        findings.kernels = rows;
    }
    let engines: Vec<Engine> = findings.lab.runners.iter().map(|runner| runner.engine).collect();
    if arguments.is_requested("throughput")
        && let Some(join) = cases::fresh().iter().find(|case| case.name == "join")
    {
        let table = throughput(&plan, &engines, join);
        if let Some(table) = findings.note(table) {
            findings.show(table);
        }
    }
    if arguments.is_requested("memory") {
        let table = memory();
        if let Some(table) = findings.note(table) {
            findings.show(table);
        }
    }
    if arguments.is_requested("waiting") {
        let table = waiting();
        if let Some(table) = findings.note(table) {
            findings.show(table);
        }
    }
    if arguments.is_requested("steps") {
        let table = steps(&plan);
        if let Some(table) = findings.note(table) {
            findings.show(table);
        }
    }
    if arguments.is_requested("growth") {
        let few: Vec<Engine> =
            engines.iter().filter(|engine| !["node --jitless", "Boa"].contains(&engine.name)).copied().collect();
        findings.growth = growth(plan, &few, &mut findings.lab.problems);
        let table = table(&findings.growth);
        findings.show(table);
    }
}

/// Describes the differences between rounds.
fn describe_noise(spreads: &[f64]) -> String {
    let mut spreads = spreads.to_vec();
    spreads.sort_by(f64::total_cmp);
    let percent = |spread: Option<&f64>| spread.map_or(0.0, |spread| spread * 100.0);
    let (middle, worst) = (percent(spreads.get(spreads.len() / 2)), percent(spreads.last()));
    format!("Noise: the middle round of a case was {middle:.0} % slower than its best one, at worst {worst:.0} %")
}

/// Writes the page and its plots.
fn write(findings: &Findings, machine: &str) -> Result<(), Box<dyn Error>> {
    let folder = page::plots();
    std::fs::create_dir_all(&folder)?;
    let engines: Vec<&str> = findings.lab.runners.iter().map(|runner| runner.engine.name).collect();
    if let Some(base) = engines.iter().position(|name| *name == "QuickJS") {
        plot::bars(&folder.join("kernels.svg"), &findings.kernels, &engines, base)?;
    }
    for (file, names) in [
        ("source", &["source"][..]),
        ("data", &["filter", "join"]),
        ("calls", &["sequence", "parallel"]),
        ("runs", &["runs"]),
    ] {
        let series: Vec<&Series> = findings.growth.iter().filter(|series| names.contains(&series.name)).collect();
        plot::growth(&folder.join(format!("growth-{file}.svg")), &series)?;
    }
    let tables = findings.tables.iter().map(|table| (table.id, table.markdown()));
    let parts: Vec<(&str, String)> = tables.chain([("machine", machine.to_owned())]).collect();
    page::write(page::PERFORMANCE, &parts)?;
    Ok(page::write(page::README, &[("figures", summary(findings, &engines))])?)
}

/// Returns the summary of the figures for the README.
fn summary(findings: &Findings, engines: &[&str]) -> String {
    let place = |name: &str| engines.iter().position(|engine| *engine == name);
    let seconds = |case: &str, engine: &str| {
        let row = findings.fresh.iter().find(|row| row.name == case)?;
        row.seconds.get(place(engine)?).copied()?.map(time)
    };
    let time_of = |case: &str, engine: &str| seconds(case, engine).unwrap_or_else(|| "unknown".into());
    let mean = |engine: &str| {
        let ratios: Vec<f64> = findings.kernels.iter().filter_map(|row| row.ratio(place(engine)?)).collect();
        digits(geometric_mean(&ratios))
    };
    format!(
        "A fresh `return 1 + 1`, compile included, takes {} (QuickJS-ng {}, a context of Node {}). A join of two tools' rows takes {}
({}, {}). Kernels take {} of QuickJS-ng's time and {} of `node --jitless`'s in the geometric mean.
",
        time_of("add", "AgentScript"),
        time_of("add", "QuickJS"),
        time_of("add", "node"),
        time_of("join", "AgentScript"),
        time_of("join", "QuickJS"),
        time_of("join", "node"),
        mean("QuickJS"),
        mean("node --jitless"),
    )
}

//! The tables of docs/performance.md: `cargo run --release -p codecall-benches`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the tables are what it is for")]

use clap::Parser;
use codecall_benches::cases::{self, Case};
use codecall_benches::measure::{Lab, Plan};
use codecall_benches::peers::ENGINES;
use codecall_benches::tables;
use std::process::ExitCode;

/// Measure this interpreter beside its peers.
#[derive(Parser)]
struct Arguments {
    /// Only cases whose name contains one of these.
    names: Vec<String>,
    /// Fewer and shorter rounds, for a look while working.
    #[arg(long)]
    quick: bool,
    /// Only these engines, beside ours: part of a name, as often as needed.
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,
}

impl Arguments {
    fn chosen(&self, cases: Vec<Case>) -> Vec<Case> {
        let is_chosen = |case: &Case| self.names.is_empty() || self.names.iter().any(|name| case.name.contains(name));
        cases.into_iter().filter(is_chosen).collect()
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_chosen = |name: &str| {
        let name = name.to_lowercase();
        arguments.peer.is_empty() || arguments.peer.iter().any(|peer| name.contains(&peer.to_lowercase()))
    };
    let engines: Vec<_> =
        ENGINES.iter().enumerate().filter(|(i, engine)| *i == 0 || is_chosen(engine.name)).map(|(_, e)| *e).collect();
    let (mut lab, missing) = Lab::new(&engines, if arguments.quick { Plan::QUICK } else { Plan::FULL });
    for missing in missing {
        eprintln!("!!! SKIPPED: {missing}");
    }
    let fresh = arguments.chosen(cases::fresh());
    if !fresh.is_empty() {
        println!("{}", tables::fresh(&mut lab, &fresh).0);
    }
    let kernels = arguments.chosen(cases::kernels());
    if !kernels.is_empty() {
        println!("{}", tables::kernels(&mut lab, &kernels).0);
    }
    for problem in &lab.problems {
        eprintln!("!!! {problem}");
    }
    if lab.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Every built-in with every kind of huge argument, in processes that are measured from outside.
//!
//! `sweep [--only PART] [--sample COUNT] [--setting NAME] [--jobs N] [--report FILE] [--script]`: the cases whose
//! names contain `PART` (all), some `COUNT` of them (all), under one setting (both); `--script` prints the scripts
//! instead of running them. What passes a bound is told as it comes; the table goes to `FILE`. It fails where one did.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use codecall_tests::sweep::report::Report;
use codecall_tests::sweep::{SETTINGS, cases, watch, worker};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    if flag("--worker") {
        std::panic::set_hook(Box::new(|_| {}));
        worker::serve();
        return ExitCode::SUCCESS;
    }
    let mut cases = cases::all();
    if let Some(part) = value("--only") {
        cases.retain(|case| case.name.contains(&part));
    }
    if let Some(setting) = value("--setting") {
        cases.retain(|case| SETTINGS[case.setting].name == setting);
    }
    if let Some(count) = value("--sample").and_then(|count| count.parse().ok()) {
        cases = cases::sample(cases, count);
    }
    if flag("--script") {
        for case in &cases {
            println!("// {} {}\n{}\n", SETTINGS[case.setting].name, case.name, case.script);
        }
        return ExitCode::SUCCESS;
    }
    let jobs = value("--jobs").and_then(|jobs| jobs.parse().ok()).unwrap_or(2);
    let program = std::env::current_exe().expect("the path of this program");
    let mut report = Report::default();
    let (total, began) = (cases.len(), std::time::Instant::now());
    watch::run(&program, &cases, jobs, |case, measured| {
        let setting = &SETTINGS[case.setting];
        if let Some(fault) = measured.fault(setting) {
            let (ms, mb) = (measured.call_ms, measured.grown >> 20);
            println!("{fault}: {} {}: {ms:.0} ms, {mb} MB, {}", setting.name, case.name, measured.end);
        }
        report.add(case, measured);
        if report.cases() % 1000 == 0 {
            println!("… {} of {total}, {} s", report.cases(), began.elapsed().as_secs());
        }
    });
    let markdown = report.markdown();
    match value("--report") {
        Some(file) => std::fs::write(&file, markdown).expect("the report can be written"),
        None => println!("{markdown}"),
    }
    println!("{} of {} cases are above a bound", report.faults.len(), report.cases());
    if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Every built-in with every kind of huge argument, and every function of the server that sees data of others with
//! every kind of huge value, in processes that are measured from outside.
//!
//! `sweep [--server] [--only PART] [--sample COUNT] [--setting NAME] [--jobs N] [--results FILE] [--known]
//! [--report FILE] [--write docs] [--script]`: the built-ins, or the functions of the server, with values of `--bytes`
//! (60,000,000); of them the cases whose names contain `PART` (all), some `COUNT` of them (all), under one setting
//! (both). `--script` prints the scripts instead of running them. What passes a bound is told as it comes. Each result
//! goes to the file of `--results`, and those that are there already are not made again; with `--known`, no others are.
//! The tables go to the file of `--report`, the one of the parts to `docs/trust.md`. It fails where something passed a
//! bound.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use codecall_tests::sweep::report::{self, Report};
use codecall_tests::sweep::{Case, Measured, SETTINGS, cases, script, server, watch, worker};
use std::io::Write as _;
use std::process::ExitCode;

/// Bytes of the values that functions of the server get.
const BYTES: usize = 60_000_000;

/// Where the tables are.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/trust.md");

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
    let jobs = value("--jobs").and_then(|jobs| jobs.parse().ok()).unwrap_or(2);
    if flag("--server") {
        let bytes = value("--bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(BYTES);
        let mut cases = server::all(bytes);
        cases.retain(|case| value("--only").is_none_or(|part| case.name().contains(&part)));
        let report = run_server(&cases, jobs);
        let faults = report.faults();
        say(&report.table(), &report.markdown(), "server-sweep", &value);
        println!("{faults} of {} cases are above a bound", report.cases());
        return if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut cases = cases::all();
    if let Some(part) = value("--only") {
        cases.retain(|case| case.name.contains(&part));
    }
    if let Some(setting) = value("--setting") {
        cases.retain(|case| SETTINGS[case.setting].name == setting);
    }
    if let Some(count) = value("--sample").and_then(|count| count.parse().ok()) {
        cases = cases::sample(&cases, count);
    }
    if flag("--script") {
        for case in &cases {
            println!("// {} {}\n{}\n", SETTINGS[case.setting].name, case.name, script(&[case]));
        }
        return ExitCode::SUCCESS;
    }
    let all = cases.len();
    let report = run(cases, jobs, value("--results").as_deref(), flag("--known"));
    say(&report.table(all), &report.markdown(all), "sweep", &value);
    println!("{} of {} cases are above a bound", report.faults.len(), report.cases());
    if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Run cases, but for those whose results are in a file.
fn run(mut cases: Vec<Case>, jobs: usize, results: Option<&str>, known_alone: bool) -> Report {
    let mut report = Report::default();
    let old = results.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let known = report::known(&old);
    cases.retain(|case| match known.get(&(SETTINGS[case.setting].name, case.name.as_str())) {
        Some(measured) => {
            report.add(case, measured.clone());
            false
        }
        None => !known_alone,
    });
    let open = |file| std::fs::OpenOptions::new().create(true).append(true).open(file);
    let mut file = results.map(|file| open(file).expect("the results can be written"));
    let program = std::env::current_exe().expect("the path of this program");
    let (total, began) = (report.cases() + cases.len(), std::time::Instant::now());
    watch::run(&program, &cases, jobs, |case, measured: Measured| {
        let setting = &SETTINGS[case.setting];
        if let Some(file) = &mut file {
            file.write_all(report::line(case, &measured).as_bytes()).expect("the results can be written");
        }
        if let Some(fault) = measured.fault(setting) {
            let (ms, mb) = (measured.call_ms, measured.grown >> 20);
            println!("{fault}: {} {}: {ms:.0} ms, {mb} MB, {}", setting.name, case.name, measured.end);
        }
        report.add(case, measured);
        if report.cases() % 1000 == 0 {
            println!("… {} of {total}, {} s", report.cases(), began.elapsed().as_secs());
        }
    });
    report
}

fn run_server(cases: &[server::Case], jobs: usize) -> server::report::Report {
    let mut report = server::report::Report::default();
    let program = std::env::current_exe().expect("the path of this program");
    server::run(&program, cases, jobs, |case, result| {
        if let Some(fault) = case.fault(&result) {
            println!("{fault}: {}: {result:?}", case.name());
        }
        report.add(case, &result);
    });
    report
}

/// Where the results are wanted.
fn say(table: &str, markdown: &str, mark: &str, value: &dyn Fn(&str) -> Option<String>) {
    match value("--report") {
        Some(file) => std::fs::write(&file, markdown).expect("the report can be written"),
        None => println!("{markdown}"),
    }
    if value("--write").is_some() {
        let page = std::fs::read_to_string(PAGE).expect("the page is there");
        let page = report::written(&page, mark, table).expect("the page has the marks");
        std::fs::write(PAGE, page).expect("the page can be written");
    }
}

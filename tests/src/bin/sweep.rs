//! Calls every built-in with every kind of huge argument, in processes that are measured from outside. Every function
//! of the server for untrusted data is called with every kind of huge value.
//!
//! `sweep [--server] [--only PART] [--sample COUNT] [--setting NAME] [--jobs N] [--results FILE] [--known]
//! [--report FILE] [--write docs] [--script]`:
//! - `--server` calls the functions of the server, with values of `--bytes` (60,000,000), instead of the built-ins.
//! - `--only` selects cases whose names contain `PART`, `--sample` a sample of `COUNT` cases, `--setting` one of the
//!   settings.
//! - `--results` appends each result to a file, and skips cases that are in it; `--known` skips all others too.
//! - `--report` writes the report to a file, `--write docs` the table of the parts to `docs/reports/trust.md`.
//! - `--script` prints the scripts instead of running them.
//!
//! Cases above a bound are printed as they are found, and the program fails if there are any.
#![expect(clippy::print_stdout, reason = "it prints a report")]

use codecall_tests::sweep::report::{self, Report};
use codecall_tests::sweep::{Case, Measured, SETTINGS, cases, runner, script, server, worker};
use std::io::Write as _;
use std::process::ExitCode;

/// Size of the values for functions of the server, in bytes.
const BYTES: usize = 60_000_000;

/// The page with the tables.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reports/trust.md");

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
        write_report(&report.table(), &report.markdown(), "server-sweep", &value);
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
    write_report(&report.table(all), &report.markdown(all), "sweep", &value);
    println!("{} of {} cases are above a bound", report.faults.len(), report.cases());
    if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs cases, except for those whose results are in a file.
fn run(mut cases: Vec<Case>, jobs: usize, results: Option<&str>, known_only: bool) -> Report {
    let mut report = Report::default();
    let old = results.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let known = report::parse_lines(&old);
    cases.retain(|case| match known.get(&(SETTINGS[case.setting].name, case.name.as_str())) {
        Some(measured) => {
            report.add(case, measured.clone());
            false
        }
        None => !known_only,
    });
    let open = |file| std::fs::OpenOptions::new().create(true).append(true).open(file);
    let mut file = results.map(|file| open(file).expect("the results can be written"));
    let program = std::env::current_exe().expect("the path of this program");
    let (total, began) = (report.cases() + cases.len(), std::time::Instant::now());
    runner::run(&program, &cases, jobs, |case, measured: Measured| {
        let setting = case.limits();
        if let Some(file) = &mut file {
            file.write_all(report::format_line(case, &measured).as_bytes()).expect("the results can be written");
        }
        if let Some(fault) = measured.fault(&setting) {
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

/// Writes the report to standard output or a file, and the table to the documentation if that is requested.
fn write_report(table: &str, markdown: &str, mark: &str, value: &dyn Fn(&str) -> Option<String>) {
    match value("--report") {
        Some(file) => std::fs::write(&file, markdown).expect("the report can be written"),
        None => println!("{markdown}"),
    }
    if value("--write").is_some() {
        let page = std::fs::read_to_string(PAGE).expect("the page is there");
        let page = report::replace_table(&page, mark, table).expect("the page has the marks");
        std::fs::write(PAGE, page).expect("the page can be written");
    }
}

//! Any text as a configuration, as TOML and as JSON: it is read or refused soon, and what is said of it
//! holds no value of the environment.

#![no_main]

use codecall::Config;
use codecall::config::Format;
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

const SECRET: &str = "sk-a-value-of-the-environment";
/// For a few kilobytes; they take less than a thousandth of it.
const LONGEST: Duration = Duration::from_secs(1);

fuzz_target!(|text: &str| {
    for format in [Format::Toml, Format::Json] {
        let began = ThreadTime::now();
        let read = Config::parse(text, format, &|name| match name {
            "SECRET" => Some(SECRET.to_owned()),
            "EMPTY" => Some(String::new()),
            "TWICE" => Some("${SECRET}${TWICE}".to_owned()),
            _ => None,
        });
        assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
        if let Err(message) = read {
            assert!(!message.contains(SECRET), "{message}");
            assert!(
                !message.is_empty() && message.len() <= 4 * text.len() + 4_000,
                "{} bytes of message",
                message.len()
            );
        }
    }
});

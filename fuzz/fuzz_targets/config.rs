//! Any text as a configuration, as TOML and as JSON. It is read or refused soon, and the messages about it are the same
//! whatever the values of the environment are.

#![no_main]

use codecall::Config;
use codecall::config::Format;
use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

/// Two values of one shape: what tells them apart tells of them. A text may hold either itself.
const SECRETS: [&str; 2] = ["sk-a-value-of-the-environment", "sk-b-other-of-the-environment"];
/// For a few kilobytes; they take less than a thousandth of it.
const MAX_TIME: Duration = Duration::from_secs(1);

fuzz_target!(|text: &str| {
    for format in [Format::Toml, Format::Json] {
        let [one, other] = SECRETS.map(|secret| said(text, format, secret));
        assert_eq!(one, other);
    }
});

/// What is said of a text that is refused.
fn said(text: &str, format: Format, secret: &str) -> Option<String> {
    let began = ThreadTime::now();
    let read = Config::parse(text, format, &|name| match name {
        "SECRET" => Some(secret.to_owned()),
        "EMPTY" => Some(String::new()),
        "TWICE" => Some("${SECRET}${TWICE}".to_owned()),
        _ => None,
    });
    assert!(began.elapsed() < MAX_TIME, "{:?}", began.elapsed());
    let message = read.err()?.to_string();
    assert!(
        !message.is_empty() && message.len() <= 4 * text.len() + 4_000,
        "{} bytes of message",
        message.len()
    );
    Some(message)
}

//! Matching by itself: what must not stall, and that it goes on where it paused.

use super::*;

fn search(pattern: &str, flags: &str, text: &str, steps: usize) -> (Option<(usize, usize)>, usize) {
    let pattern: Vec<u16> = pattern.encode_utf16().collect();
    let flags = Flags::parse(flags.as_bytes()).unwrap_or_default();
    let Ok(program) = compile(&pattern, flags) else { return (None, 0) };
    let mut matcher = Matcher::default();
    matcher.begin(&program, 0, false);
    let mut spent = 0;
    loop {
        let (progress, used) = matcher.run(&program, text.as_bytes(), steps, 1 << 24);
        spent += used;
        match progress {
            Progress::Matched => return (matcher.group(0), spent),
            Progress::Failed => return (None, spent),
            Progress::Paused => {}
        }
    }
}

#[test]
fn pausing_changes_nothing() {
    let text = "the year 2024, the month 11, the day 21 ".repeat(10) + "x";
    for pattern in [r"(\w+\s?)*x$", r"(?<=day )\d+", r"(\w)\w*\1", "(?:a|b|[^x])*x", r"(\d{2,4}\D+){20}", "x*?y|$"] {
        let whole = search(pattern, "", &text, usize::MAX).0;
        assert!(whole.is_some(), "{pattern}");
        for steps in [1, 2, 3, 7, 100] {
            assert_eq!(search(pattern, "", &text, steps).0, whole, "{pattern} by {steps} steps");
        }
    }
}

#[test]
fn catastrophic_patterns_are_linear() {
    let patterns = [
        "(a+)+$", "(a|aa)+$", "(.*)*x", r"^(\w+\s?)*$", "(a*)*b", "(a|a)*b", "(a|a?)+b", "(?:a?){30}a{30}b",
        "^(([a-z])+.)+[A-Z]([a-z])+$", ".*.*.*.*=", "((a+)?)*c", "((a*)*)*c", "(?:(?:a*)*)*$x", "(a*?)*?b",
    ];
    for pattern in patterns {
        let spent: Vec<usize> =
            [2000, 4000].map(|length| search(pattern, "", &("a".repeat(length) + "!"), 10_000).1).into();
        assert!(spent[1] < spent[0] * 5 / 2 + 2000, "{pattern}: {spent:?}");
    }
}

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
        "(a+)+$",
        "(a|aa)+$",
        "(.*)*x",
        r"^(\w+\s?)*$",
        "(a*)*b",
        "(a|a)*b",
        "(a|a?)+b",
        "(?:a?){30}a{30}b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        ".*.*.*.*=",
        "((a+)?)*c",
        "((a*)*)*c",
        "(?:(?:a*)*)*$x",
        "(a*?)*?b",
    ];
    for pattern in patterns {
        let spent: Vec<usize> =
            [2000, 4000].map(|length| search(pattern, "", &("a".repeat(length) + "!"), 10_000).1).into();
        assert!(spent[1] < spent[0] * 5 / 2 + 2000, "{pattern}: {spent:?}");
    }
}

/// Whether a pattern matches the same when failures are remembered from the first step on.
#[test]
fn remembering_changes_nothing() {
    let mut state = 7_u32;
    let mut below = move |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % limit
    };
    for _ in 0..3_000 {
        let pattern = random(&mut below, 2);
        let text: Vec<u8> = (0..below(9)).map(|_| b"aabc"[below(4) as usize]).collect();
        let units: Vec<u16> = pattern.encode_utf16().collect();
        let program = compile(&units, Flags::default()).unwrap_or_else(|error| panic!("{pattern}: {error:?}"));
        let found = [false, true].map(|eager| {
            let mut matcher = Matcher::default();
            matcher.begin(&program, 0, false);
            matcher.eager = eager;
            // Remembering begins when the first steps are used up.
            let (mut progress, mut slices) = (Progress::Paused, 0);
            while progress == Progress::Paused {
                (progress, _) = matcher.run(&program, &text, 3, 1 << 20);
                slices += 1;
                assert!(slices < 10_000_000, "/{pattern}/ does not end on {}", String::from_utf8_lossy(&text));
            }
            let groups: Vec<_> = (0..=program.groups).map(|group| matcher.group(group)).collect();
            (progress, if progress == Progress::Matched { groups } else { Vec::new() })
        });
        assert_eq!(found[0], found[1], "/{pattern}/ on {}", String::from_utf8_lossy(&text));
    }
}

fn random(below: &mut impl FnMut(u32) -> u32, depth: u32) -> String {
    let mut out = String::new();
    for _ in 0..=below(3) {
        if depth > 0 && below(3) > 0 {
            let open = ["(", "(?:"][below(2) as usize];
            let bar = ["|", ""][below(2) as usize];
            out += &format!("{open}{}{bar}{})", random(below, depth - 1), random(below, depth - 1));
        } else {
            out += ["a", "b", "c", "[ab]", ".", "a?", "b??", "[^c]"][below(8) as usize];
            if out.ends_with('?') {
                continue;
            }
        }
        out += ["", "", "*", "+", "?", "*?", "+?", "??", "{0,2}", "{2,}"][below(10) as usize];
    }
    out + ["", "", "$", "c"][below(4) as usize]
}

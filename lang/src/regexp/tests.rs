//! Patterns that are too deep, and sets.

use super::*;

fn read(pattern: &str, flags: &str) -> Result<Pattern, Wrong> {
    let units: Vec<u16> = pattern.encode_utf16().collect();
    parse(&units, Flags::parse(flags.as_bytes()).unwrap_or_default()).map_err(|error| error.wrong)
}

#[test]
fn deep_patterns_end() {
    assert_eq!(read(&"(".repeat(100_000), "").err(), Some(Wrong::TooLarge));
    assert_eq!(read(&"[".repeat(100_000), "v").err(), Some(Wrong::TooLarge));
    assert!(read(&format!("{}{}", "(?:a|".repeat(200), ")*".repeat(200)), "").is_ok());
}

#[test]
fn sets_are_sets() {
    let set = CharSet::new(vec![(5, 9), (1, 2), (3, 3), (20, 30)]);
    assert_eq!(set.ranges(), [(1, 3), (5, 9), (20, 30)]);
    assert_eq!(set.complement().complement(), set);
    assert_eq!(set.difference(&CharSet::new(vec![(2, 25)])).ranges(), [(1, 1), (26, 30)]);
    assert!(set.contains(7) && !set.contains(4) && !set.contains(31));
}

#[test]
fn case_is_folded_as_the_flags_say() {
    let kelvin = |flags| match read("k", flags) {
        Ok(Pattern { root: Node::Set(set), .. }) => set.contains(0x212A),
        _ => false,
    };
    assert!(kelvin("iu") && kelvin("iv") && !kelvin("i"));
}

#[test]
fn closing_a_great_set_is_closing_what_it_lacks() {
    for (pattern, inside, outside) in [
        (r"[^]", 'a', None),
        (r"[\0-Zb-\u{10ffff}]", 'a', None),
        (r"\P{Ll}", 'a', None),
        (r"\D", 'K', Some('1')),
        (r"\W", '-', Some('\u{17F}')),
        (r"[\0-@\u{100}-\u{10ffff}]", 's', Some('b')),
    ] {
        let Ok(Pattern { root: Node::Set(set), .. }) = read(pattern, "iu") else { panic!("{pattern} is a set") };
        assert!(set.contains(inside.into()), "{pattern}");
        assert!(outside.is_none_or(|outside| !set.contains(outside.into())), "{pattern}");
    }
}

#[test]
fn validating_finds_what_reading_finds() {
    for flags in ["", "i", "u", "iu", "v", "iv"] {
        for pattern in [
            "a",
            "a*|b{2,3}?(c)(?<n>d)\\k<n>",
            "(",
            ")",
            "a**",
            "[b-a]",
            "[a-\\d]",
            "\\p{L}",
            "\\p{No}x",
            "\\p{Nonsense}",
            "[^\\q{ab}]",
            "[\\q{ab|c}--a]",
            "[a&&&b]",
            "[\\p{L}--[a-z]]",
            "\\k<n>",
            "(?<n>a)(?<n>b)",
            "\\u{110000}",
            "(?<=a)*",
            "{1}",
            "a{2,1}",
            "[[a]&&b--c]",
            "(?:",
            "[",
            "\\",
            "\\1(a)",
            "\\8",
            "]",
            "}",
        ] {
            let units: Vec<u16> = pattern.encode_utf16().collect();
            let read = Flags::parse(flags.as_bytes()).unwrap_or_default();
            let wrong = |error: Error| (error.wrong, error.at);
            assert_eq!(
                validate(&units, read).map_err(wrong),
                parse(&units, read).map(|_| ()).map_err(wrong),
                "/{pattern}/{flags}"
            );
        }
    }
}

#[test]
fn classes_are_bounded() {
    assert!(read(&"[\\p{L}a]".repeat(200), "iu").is_ok());
    assert_eq!(read(&"[\\p{L}a]".repeat(20_000), "iu").err(), Some(Wrong::TooLarge));
}

#[test]
fn properties_of_strings_need_their_brace_and_the_flag() {
    assert!(read(r"\p{RGI_Emoji}", "v").is_ok() && read(r"[\p{RGI_Emoji}a]", "iv").is_ok());
    for (pattern, flags) in [(r"\p{RGI_Emoji", "v"), (r"\p{RGI_Emoji}", "u"), (r"\P{RGI_Emoji}", "v")] {
        assert_eq!(read(pattern, flags).err(), Some(Wrong::PropertyName), "{pattern}");
    }
    assert_eq!(read(r"[^\p{RGI_Emoji}]", "v").err(), Some(Wrong::NegatedStrings));
}

#[test]
fn sets_of_strings_do_not_nest_too_deep() {
    let nested: Vec<String> = (1..300).map(|length| "a".repeat(length)).collect();
    assert!(read(&format!("[\\q{{{}}}]", nested.join("|")), "v").is_ok());
    let many = r"\p{RGI_Emoji}".repeat(10_000);
    assert_eq!(read(&many, "v").err(), Some(Wrong::TooLarge));
}

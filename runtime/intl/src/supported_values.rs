//! `Intl.supportedValuesOf`: `supported_values.txt` has a line for each key, as Node prints them. The words of Node 20 are
//! the same as those of Node 24:
//! `for (const key of keys) console.log(key, ...Intl.supportedValuesOf(key))`.

const VALUES: &str = include_str!("data/supported_values.txt");

/// The values of a key, with spaces between them; `None` for an unknown key.
pub fn of(key: &str) -> Option<&'static str> {
    let mut lines = VALUES.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == key).map(|(_, values)| values)
}

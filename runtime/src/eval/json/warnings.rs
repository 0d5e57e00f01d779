//! Values that the JSON text of a result does not hold, for the author of the script: `result.rows[0].total: NaN is written as
//! null`. Places that differ only in the index of an array are one warning.
//!
//! Bounded by MAX_WARNINGS, MAX_SEGMENTS and MAX_NAME; a file without access to data of a script

use crate::interface::outcome::cut_message_bytes;
use crate::text::quote::is_identifier;

/// Most warnings of a result.
const MAX_WARNINGS: usize = 20;
/// Most parts of a path that are shown.
const MAX_SEGMENTS: usize = 8;
/// Most bytes of a name in a path.
const MAX_NAME: usize = 128;

/// A part of a path.
#[derive(Clone, Copy)]
pub enum Segment<'a> {
    /// An item of an array.
    Index(u32),
    /// A property, in WTF-8.
    Name(&'a [u8]),
}

/// A place, or several that differ in indices.
struct Warning {
    /// The path without its indices, and what is lost.
    pattern: String,
    /// The path of the first place.
    path: String,
    /// What is lost, and how.
    text: String,
    /// How many places there are.
    count: u64,
}

/// What the text of a result does not hold.
#[derive(Default)]
pub struct Warnings {
    list: Vec<Warning>,
    /// Places beyond the last warning.
    omitted: u64,
}

impl Warnings {
    /// Note that `what` is lost at a place.
    pub fn add<'a>(&mut self, place: impl ExactSizeIterator<Item = Segment<'a>>, what: &str, how: &str) {
        let (mut path, mut pattern) = (String::from("result"), String::new());
        let length = place.len();
        for (index, segment) in place.enumerate() {
            if length > MAX_SEGMENTS && (MAX_SEGMENTS / 2..length - MAX_SEGMENTS / 2).contains(&index) {
                if index == MAX_SEGMENTS / 2 {
                    path.push('…');
                }
                continue;
            }
            match segment {
                Segment::Index(index) => {
                    path.push_str(&format!("[{index}]"));
                    pattern.push_str("[]");
                }
                Segment::Name(name) => {
                    let shown = cut_message_bytes(name, MAX_NAME);
                    let is_plain = name.len() <= MAX_NAME && is_identifier(name);
                    let shown = if is_plain { format!(".{shown}") } else { format!("[{shown:?}]") };
                    path.push_str(&shown);
                    pattern.push_str(&shown);
                }
            }
        }
        let text = format!("{what}{how}");
        pattern.push_str(&text);
        if let Some(warning) = self.list.iter_mut().find(|warning| warning.pattern == pattern) {
            warning.count += 1;
        } else if self.list.len() == MAX_WARNINGS {
            self.omitted += 1;
        } else {
            self.list.push(Warning { pattern, path, text, count: 1 });
        }
    }

    /// The warnings, in the order of the text.
    pub fn texts(self) -> Vec<String> {
        let text = |Warning { path, text, count, .. }| match count {
            1 => format!("{path}: {text}"),
            count => format!("{path} and {} more like it: {text}", count - 1),
        };
        let omitted = (self.omitted > 0).then(|| format!("{} more values are left out or replaced", self.omitted));
        self.list.into_iter().map(text).chain(omitted).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, Inputs, Policy, Preset, Progress};

    /// The result of a script, and its warnings.
    fn run(script: &str) -> (String, Vec<String>) {
        let policy = Policy::preset(Preset::Experimental);
        let script = crate::compile(script, &CompileOptions::for_policy(&policy)).expect("it compiles");
        match script.start(Inputs::default(), &policy).resume([]) {
            Progress::Done(outcome) => (outcome.result.expect("it succeeds"), outcome.warnings),
            other => panic!("{other:?}"),
        }
    }

    fn warnings(script: &str) -> Vec<String> {
        run(script).1
    }

    #[test]
    fn what_json_cannot_hold_is_named() {
        let (result, warnings) = run("return {a: undefined, b: [() => 1, NaN], 'c d': -1 / 0, e: {f: parseInt}};");
        assert_eq!(result, r#"{"b":[null,null],"c d":null,"e":{}}"#);
        assert_eq!(
            warnings,
            [
                "result.a: undefined is left out",
                "result.b[0]: a function is written as null",
                "result.b[1]: NaN is written as null",
                r#"result["c d"]: -Infinity is written as null"#,
                "result.e.f: a function is left out",
            ]
        );
        let lost = "return [new Error('no'), /x/, new Map([[1, 2]]).values(), [1, , 2]]";
        assert_eq!(warnings_of_kinds(lost), ["an error", "RegExp", "an iterator", "undefined"]);
        assert_eq!(self::warnings("return NaN"), ["result: NaN is written as null"]);
    }

    fn warnings_of_kinds(script: &str) -> Vec<String> {
        let kind =
            |text: &String| text.split(": ").nth(1).and_then(|text| text.split(" is ").next()).unwrap_or("").into();
        warnings(script).iter().map(kind).collect()
    }

    #[test]
    fn nothing_is_said_of_what_json_holds() {
        let script = "return {d: new Date(0), m: new Map([['a', 1]]), s: new Set([1]), n: null, p: Promise.resolve(1), \
                      u: new URL('https://a.b/')}";
        assert_eq!(warnings(script), [""; 0]);
    }

    #[test]
    fn places_in_maps_and_sets_are_named() {
        let script = "return {m: new Map([['a', NaN]]), p: new Map([[1, NaN]]), s: new Set([undefined])}";
        let places = ["result.m.a: NaN", "result.p[0]: NaN", "result.s[0]: undefined"];
        assert_eq!(warnings(script), places.map(|place| format!("{place} is written as null")));
    }

    #[test]
    fn there_are_few_warnings_and_they_are_short() {
        let rows = "return Array.from({length: 1000}, () => ({total: NaN}))";
        assert_eq!(warnings(rows), ["result[0].total and 999 more like it: NaN is written as null"]);
        let names = "return Object.fromEntries(Array.from({length: 100}, (_, i) => ['k' + i + '-'.repeat(1000), NaN]))";
        let found = warnings(names);
        assert_eq!(
            (found.len(), found.last().map(String::as_str)),
            (21, Some("80 more values are left out or replaced"))
        );
        assert!(found.iter().all(|text| text.len() < 400), "{found:?}");
        let deep = "let x = NaN; for (let i = 0; i < 5000; i++) x = {a: [x]}; return x";
        assert_eq!(warnings(deep), ["result.a[0].a[0]….a[0].a[0]: NaN is written as null"]);
    }
}

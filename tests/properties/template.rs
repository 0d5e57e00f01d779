//! Templates of calls of built-ins with unusual arguments, and of unusual combinations of statements.
//!
//! A placeholder is `$` with a letter (see [`Writer::placeholder`]) or a digit. A digit is replaced by a new name, the same in
//! the whole template. The templates avoid features that Node 20 does not have, and known differences (`@differs` in
//! the corpus). A pattern that begins with a default does not match `undefined`, and loops iterate over variables.

mod calls;
mod statements;

use super::{Around, Kind, Writer};
use calls::{CALLS, ODD};
use statements::{MUTATIONS, STATEMENTS, WAITING};

impl Writer<'_> {
    /// Generates a call of a built-in, or an operator with unusual operands.
    pub(super) fn odd_call(&mut self) -> String {
        let template = self.pick_wide(CALLS);
        self.nested(|writer| writer.fill(template))
    }

    /// Generates an unusual statement.
    pub(super) fn odd_statement(&mut self) -> String {
        let template = self.pick_wide(STATEMENTS);
        self.fill(template)
    }

    /// Generates an unusual statement with promises.
    pub(super) fn odd_waiting(&mut self) -> String {
        let template = self.pick_wide(WAITING);
        self.fill(template)
    }

    fn odd(&mut self) -> String {
        let at = self.byte();
        // Sometimes it is the value of a variable.
        if at >= 230 {
            return self.variable(|variable| !matches!(variable.kind, Kind::Async)).unwrap_or_else(|| "1".into());
        }
        let value = ODD[at % ODD.len()];
        if value.starts_with(['{', '-']) { format!("({value})") } else { value.into() }
    }

    fn fill(&mut self, template: &str) -> String {
        let mut names: [Option<String>; 10] = Default::default();
        let mut parts = template.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        while let Some(part) = parts.next() {
            let mut letters = part.chars();
            match letters.next() {
                // `$$` is a literal dollar sign.
                None => text = text + "$" + parts.next().unwrap_or_default(),
                Some(digit @ '0'..='9') => {
                    let at = digit as usize - '0' as usize;
                    let name = names[at].take().unwrap_or_else(|| self.fresh("t"));
                    text = text + &name + letters.as_str();
                    names[at] = Some(name);
                }
                Some(letter) => text = text + &self.nested(|writer| writer.placeholder(letter)) + letters.as_str(),
            }
        }
        text
    }

    /// Generates the replacement of a placeholder.
    fn placeholder(&mut self, letter: char) -> String {
        let deep = self.depth > super::MAX_DEPTH;
        match letter {
            'x' => self.odd(),
            'd' => (self.byte() % 24).to_string(),
            'n' => self.number_operand(),
            't' => self.text(),
            'l' => self.list(),
            'o' => format!("({})", self.object()),
            'c' => self.condition(),
            // In a function that is not async.
            'C' => self.inside(Around::default(), &[], Self::condition),
            'b' => self.pick(&["0n", "1n", "7n", "123n", "(-5n)", "(2n ** 64n)", "(-(10n ** 20n))"]).into(),
            'X' => self.pattern(&["", "g", "i", "gi", "m", "s", "u", "y", "gu", "iu"]),
            'Y' => self.pattern(&["g", "gi", "gm", "gu", "gs"]),
            'R' => (2 + self.byte() % 35).to_string(),
            'F' => self.any_number(),
            'U' => self.any_text(),
            'm' => self.pick(&["new Map()", "new Map([[1, 'a'], ['b', 2], [NaN, 0]])", "new Map([[{}, []]])"]).into(),
            's' => self.pick(&["new Set()", "new Set([1, 'a', NaN, -0])", "new Set('hello')"]).into(),
            'k' if deep => self.odd(),
            'k' => self.odd_call(),
            'f' => {
                let body = self.callback(Around::default(), &["item", "index"]);
                self.pick(&["(item, index) => B", "(item, index, all) => (all.length, B)", "item => ({item})"])
                    .replace('B', &format!("({body})"))
                    .replace(
                        "(item, index)",
                        if body.contains("index") { "(item, index)" } else { "(item, index = 0)" },
                    )
            }
            'r' => {
                let body = self.callback(Around::default(), &["a", "b"]);
                format!("(a, b) => ({body})")
            }
            'p' => self.promise(),
            'P' => self.inside(Around::default(), &[], Self::promise),
            'M' => self.pick(MUTATIONS).into(),
            'S' if deep => String::new(),
            'S' => self.scoped(Self::statements),
            'A' | 'B' if deep => String::new(),
            'B' => self.inside(Around::default(), &[], Self::statements),
            'A' => self.inside(Around { is_async: true, ..Around::default() }, &[], Self::statements),
            other => unreachable!("no gap is called {other}"),
        }
    }

    /// Generates a number of any size: random bits, or a decimal of a few digits.
    fn any_number(&mut self) -> String {
        let form = self.byte() % 4;
        let mut bits = [0; 8];
        let count = if form == 3 { 8 } else { 3 };
        bits.iter_mut().take(count).for_each(|byte| *byte = self.byte() as u8);
        let number = match (form, u32::from_le_bytes([bits[0], bits[1], bits[2], 0])) {
            (0, number) => f64::from(number) / 1000.0,
            (1, number) => f64::from(number),
            (2, number) => f64::from(number) * 1e-9,
            _ => f64::from_bits(u64::from_le_bytes(bits)),
        };
        if number.is_finite() { format!("({number:e})") } else { "NaN".into() }
    }

    /// Generates a regular expression with flags.
    fn pattern(&mut self, flags: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..=self.byte() % 5 {
            let atom = self.pick(&[
                "a", "b", "c", ".", "\\d", "\\w", "\\s", "[a-c]", "[^a]", "(a|b)", "(?:x|)", "(.)", "(?=a)", "(?!b)",
                "\\b", "^", "$", "e", " ", "\\W", "[\\d\\s]", "(b*)(c)", "(?<=a)", "(?<!.)", "\\u0061", "(|a)",
            ]);
            let assertion = atom.starts_with(['^', '$']) || atom.starts_with("(?=") || atom.starts_with("(?!");
            let repeated = !assertion && !atom.starts_with("(?<") && atom != "\\b";
            let times = if repeated {
                self.pick(&["", "", "", "*", "+", "?", "*?", "+?", "{1,2}", "{2}", "{0,1}?"])
            } else {
                ""
            };
            text = text + atom + times;
        }
        format!("/{text}/{}", self.pick(flags))
    }

    /// Generates a string of various code units, lone surrogates included.
    fn any_text(&mut self) -> String {
        let mut text = String::from("'");
        for _ in 0..self.byte() % 6 {
            let unit = match self.byte() % 8 {
                0..=2 => 32 + self.byte() % 95,
                3 => self.byte() % 48,
                4 => 0xA0 + self.byte() % 224,
                5 => 0xD800 + self.byte() * 8,
                6 => 0x300 + self.byte() * 4,
                _ => self.pick(&[0x2028, 0xFEFF, 0x3042, 0xFB01, 0x1E9E, 0x130, 0x131, 0x212B, 0xAC00, 0xFFFD, 0x200D]),
            };
            text += &format!("\\u{unit:04x}");
        }
        text + "'"
    }

    /// Returns one of the options, of which there may be more than 256.
    fn pick_wide<'t>(&mut self, of: &[&'t str]) -> &'t str {
        let at = self.byte() * 256 + self.byte();
        of[at % of.len()]
    }
}

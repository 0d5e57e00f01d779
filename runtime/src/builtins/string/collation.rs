//! `localeCompare`: the order of text as people sort it, by the Unicode collation algorithm with the
//! order of CLDR's root for common scripts. Other letters are ordered by code point behind them.
//!
//! First the letters count, without their accents and case; where they are all the same, accents do;
//! then case, lower case first.

mod order;

use super::{Result, Value, Vm, arg, receiver};
use crate::value::Kind;
use hashbrown::HashMap;
use std::cmp::Ordering;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{decompose_canonical, decompose_compatible, is_combining_mark};

/// What makes a difference.
#[derive(Clone, Copy)]
struct Options {
    accents: bool,
    case: bool,
    numeric: bool,
    upper_first: bool,
}

/// `string.localeCompare(other, locales, options)`, in the one locale there is
pub fn locale_compare(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let left = receiver(vm, this, "localeCompare")?;
    let right = vm.to_string(arg(arguments, 0))?;
    check_locales(vm, arg(arguments, 1))?;
    let options = options(vm, arg(arguments, 2))?;
    let (a, b) = (vm.heap.str(left), vm.heap.str(right));
    let order = if a.is_ascii() && b.is_ascii() && !options.numeric {
        vm.work((a.bytes + b.bytes) as usize / 64)?;
        compare_ascii(vm.heap.bytes(left), vm.heap.bytes(right), options)
    } else {
        vm.work((a.bytes + b.bytes) as usize / 2)?;
        vm.reserve((a.bytes + b.bytes) as usize * 12)?;
        compare(&vm.heap.text(left), &vm.heap.text(right), options)
    };
    Ok(Value::number(f64::from(order as i8)))
}

/// Refuse what is no language tag.
pub fn check_locales(vm: &mut Vm, locales: Value) -> Result<()> {
    let tags = match locales.kind() {
        Kind::String => vec![locales],
        Kind::Array => vm.heap.items(locales).to_vec(),
        _ => return Ok(()),
    };
    for tag in tags {
        if !tag.is_string() || !is_tag(&vm.heap.text(tag)) {
            return Err(vm.range_error("Incorrect locale information provided"));
        }
    }
    Ok(())
}

fn is_tag(text: &str) -> bool {
    let mut parts = text.split('-');
    let language = parts.next().unwrap_or_default();
    matches!(language.len(), 2..=3 | 5..=8)
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn options(vm: &mut Vm, options: Value) -> Result<Options> {
    let mut read = Options { accents: true, case: true, numeric: false, upper_first: false };
    if options.is_undefined() {
        return Ok(read);
    }
    if options == Value::NULL {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    let mut option = |name: &str| {
        let key = vm.intern_text(name);
        vm.get(options, key)
    };
    let (numeric, case_first, sensitivity) = (option("numeric")?, option("caseFirst")?, option("sensitivity")?);
    read.numeric = vm.truthy(numeric);
    if !case_first.is_undefined() {
        let text = vm.to_text(case_first)?;
        if !matches!(text.as_str(), "upper" | "lower" | "false") {
            return Err(
                vm.range_error(&format!("Value {text} out of range for Intl.Collator options property caseFirst"))
            );
        }
        read.upper_first = text == "upper";
    }
    if !sensitivity.is_undefined() {
        let text = vm.to_text(sensitivity)?;
        (read.accents, read.case) = match text.as_str() {
            "base" => (false, false),
            "accent" => (true, false),
            "case" => (false, true),
            "variant" => (true, true),
            _ => {
                return Err(vm.range_error(&format!(
                    "Value {text} out of range for Intl.Collator options property sensitivity"
                )));
            }
        };
    }
    Ok(read)
}

/// The same as [`compare`], without making keys: ASCII has no accents.
fn compare_ascii(left: &[u8], right: &[u8], options: Options) -> Ordering {
    let weight = |byte: &u8| TABLE.ascii[usize::from(byte & 127)];
    let sorted = |weight: &u32| *weight > 0;
    let order = left.iter().map(weight).filter(sorted).cmp(right.iter().map(weight).filter(sorted));
    if order != Ordering::Equal || !options.case {
        return order;
    }
    let sorted = |byte: &&u8| weight(byte) > 0;
    let is_upper = u8::is_ascii_uppercase;
    let order = left.iter().filter(sorted).map(is_upper).cmp(right.iter().filter(sorted).map(is_upper));
    if options.upper_first { order.reverse() } else { order }
}

fn compare(left: &str, right: &str, options: Options) -> Ordering {
    let (left, right) = (Key::of(left, options.numeric), Key::of(right, options.numeric));
    let mut order = left.letters.cmp(&right.letters);
    if options.accents {
        order = order.then_with(|| left.accents.cmp(&right.accents));
    }
    if options.case {
        let cases = left.cases.cmp(&right.cases);
        order = order.then(if options.upper_first { cases.reverse() } else { cases });
    }
    order
}

/// What a string is sorted by, level by level.
#[derive(Default)]
struct Key {
    letters: Vec<u32>,
    accents: Vec<u16>,
    cases: Vec<u8>,
}

/// The accent of a letter that has none.
const NO_ACCENT: u16 = 0x20;

/// Where the weights of accents begin.
const MARKS: u16 = 0x60;
const OTHER_MARKS: u16 = 0x1000;
/// Where the weights of each kind of character begin.
const OTHER_SYMBOLS: u32 = 0x1000;
const CURRENCIES: u32 = 0x20_0000;
const DIGITS: u32 = 0x20_1000;
const LETTERS: u32 = 0x20_2000;
const OTHER_LETTERS: u32 = 0x30_0000;

impl Key {
    fn of(text: &str, numeric: bool) -> Self {
        let mut key = Self::default();
        let mut characters = text.nfc().peekable();
        while let Some(character) = characters.next() {
            if numeric && character.is_ascii_digit() {
                let mut digits = vec![character];
                while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                key.number(&digits);
            } else {
                key.character(character);
            }
        }
        key
    }

    /// A number: longer ones are larger.
    fn number(&mut self, digits: &[char]) {
        let zeros = digits.iter().take_while(|&&digit| digit == '0').count().min(digits.len() - 1);
        self.weights(DIGITS + 10, NO_ACCENT, 0);
        self.weights((digits.len() - zeros) as u32, NO_ACCENT, 0);
        for &digit in &digits[zeros..] {
            self.weights(u32::from(digit), NO_ACCENT, 0);
        }
    }

    fn character(&mut self, character: char) {
        if TABLE.weights.contains_key(&character) || character.is_ascii() {
            return self.simple(character, 0);
        }
        let lower = if character == 'ẞ' { 'ß' } else { lower(character) };
        if TABLE.weights.contains_key(&lower) {
            return self.simple(lower, u8::from(lower != character) * UPPER);
        }
        let mut compatible = Vec::new();
        decompose_compatible(character, |part| compatible.push(part));
        let mut canonical = 0;
        decompose_canonical(character, |_| canonical += 1);
        let case = u8::from(canonical != compatible.len() || canonical == 1 && compatible[0] != character);
        for part in compatible {
            self.simple(part, case);
        }
    }

    /// A character that is not composed of others, and what is added to its case.
    fn simple(&mut self, character: char, case: u8) {
        let lower = if character == 'ẞ' { 'ß' } else { lower(character) };
        let case = case + u8::from(lower != character) * UPPER;
        if let Some((_, expansion)) = order::EXPANSIONS.iter().find(|&&(from, _)| from == lower) {
            for part in expansion.chars() {
                self.simple(part, case);
            }
        } else if let Some(&(weight, accent)) = TABLE.weights.get(&lower) {
            self.weights(weight, accent, case);
        } else if character == order::JOINT {
            self.accents.push(u16::MAX);
        } else if is_combining_mark(character) {
            let place = order::MARKS.chars().position(|mark| mark == character);
            self.accents.push(place.map_or(OTHER_MARKS | character as u16 & 0x7FFF, |place| MARKS + place as u16));
        } else if !is_ignorable(character) {
            // What means nothing comes last; half a pair of surrogates is such a replacement character.
            let is_last = matches!(lower, '\u{e000}'..='\u{f8ff}' | '\u{fffd}' | '\u{f0000}'..);
            let base = if lower.is_alphanumeric() || is_last { OTHER_LETTERS } else { OTHER_SYMBOLS };
            self.weights(base + lower as u32, NO_ACCENT, case);
        }
    }

    fn weights(&mut self, letter: u32, accent: u16, case: u8) {
        self.letters.push(letter);
        self.accents.push(accent);
        self.cases.push(case);
    }
}

/// What upper case adds to the case of a character; forms for compatibility come between.
const UPPER: u8 = 2;

fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => character,
    }
}

/// Controls and formatting characters have no place in the order.
fn is_ignorable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The weights of the characters of [`order`].
struct Table {
    weights: HashMap<char, (u32, u16)>,
    /// The same of ASCII, case apart; 0: ignorable.
    ascii: [u32; 128],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let digits = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let groups = [(1, order::SYMBOLS), (CURRENCIES, order::CURRENCIES), (DIGITS, &digits), (LETTERS, order::LETTERS)];
    let mut weights = HashMap::new();
    for (first, rows) in groups {
        for (row, weight) in rows.iter().zip(first..) {
            for (character, accent) in row.chars().zip(NO_ACCENT..) {
                weights.insert(character, (weight, accent));
            }
        }
    }
    let weight = |byte: u8| weights.get(&char::from(byte.to_ascii_lowercase())).map_or(0, |&(weight, _)| weight);
    let ascii = std::array::from_fn(|byte| weight(byte as u8));
    Table { weights, ascii }
});

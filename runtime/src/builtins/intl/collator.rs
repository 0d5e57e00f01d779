//! `Intl.Collator` (ECMA-402 11) and `localeCompare`: the Unicode collation algorithm with the orders of CLDR.

mod pieces;

use super::locale::{Available, Resolved, available_collator, by_bytes};
use super::{MATCHERS, canonical_locales, choice, flag, option, word};
use crate::builtins::string::normalize;
use crate::builtins::{Body, Global, Row, arg, getter, native};
use crate::charge::Buffer;
use crate::heap::{Action, InternalSlots};
use crate::thrown::{Result, Thrown};
use crate::value::Value;
use crate::vm::Vm;
use crate::wtf8::first_code_point;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "Collator",
    length: 0,
    call: Body::Native(construct),
    construct: Some(Body::Native(construct)),
    functions: &[native("supportedLocalesOf", 1, supported_locales_of)],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[native("resolvedOptions", 0, resolved_options), getter("compare", get_compare)];

/// The internal slots of an `Intl.Collator`.
#[derive(Clone, Debug)]
pub struct Collator {
    locale: String,
    search: bool,
    order: Order,
    /// What `resolvedOptions` says of it.
    collation: &'static str,
    /// The function of `compare`, `undefined` until it is read.
    pub bound: Value,
}

/// The options of an order, as indices in the tables below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Order {
    /// The locale, `""` for the order of the root, and its collation, `""` for the default one.
    tailoring: (&'static str, &'static str),
    sensitivity: usize,
    ignore_punctuation: bool,
    numeric: bool,
    case_first: usize,
}

const SENSITIVITIES: &[&str] = &["base", "accent", "case", "variant"];
const CASE_FIRST: &[&str] = &["upper", "lower", "false"];
const USAGES: &[&str] = &["sort", "search"];

/// Languages in which `usage: 'search'` has letters of its own, nearly those that are sorted; in others it is the root.
const SEARCHED_AS_SORTED: &[&str] = &[
    "az", "bs", "da", "de", "es", "fi", "fo", "gl", "hr", "is", "kl", "nb", "nn", "no", "se", "sk", "smn", "sv", "tr",
];

/// `new Intl.Collator(locales, options)`, the same without `new`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let collator = read(vm, arg(arguments, 0), arg(arguments, 1), "Intl.Collator")?;
    Ok(vm.heap.new_with_slots(InternalSlots::Collator(Box::new(collator))))
}

/// `Intl.Collator.supportedLocalesOf(locales, options)`
fn supported_locales_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    super::supported(vm, this, arguments, |tag| available_collator(tag).is_some())
}

/// `string.localeCompare(other, locales, options)` of two strings
pub fn locale_compare(vm: &mut Vm, left: Value, right: Value, arguments: &[Value]) -> Result {
    let (locales, options) = (arg(arguments, 1), arg(arguments, 2));
    let order = if locales.is_undefined() && options.is_undefined() {
        DEFAULT
    } else {
        read(vm, locales, options, "String.prototype.localeCompare")?.order
    };
    compare(vm, left, right, order)
}

/// The default options.
const DEFAULT: Order =
    Order { tailoring: ("", ""), sensitivity: 3, ignore_punctuation: false, numeric: false, case_first: 2 };

fn read(vm: &mut Vm, locales: Value, options: Value, service: &str) -> Result<Collator> {
    vm.work(4)?;
    let tags = canonical_locales(vm, locales)?;
    vm.work(tags.len())?;
    if options == Value::NULL {
        return Err(vm.type_error(&format!("{service} called on null or undefined"))); // bounded: a name
    }
    let search = choice(vm, options, service, "usage", USAGES)? == Some(1);
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let wanted = option(vm, options, "collation")?;
    let wanted = if wanted.is_undefined() { None } else { Some(word(vm, wanted)?) };
    if let Some(name) = &wanted {
        let is_part =
            |part: &str| (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !name.split('-').all(is_part) {
            let name = by_bytes(name);
            return Err(vm.range_error(&format!("Invalid collation : {name}"))); // bounded: a word
        }
    }
    // The case does not matter.
    let wanted = wanted.map(|name| name.to_ascii_lowercase());
    let numeric = flag(vm, options, "numeric")?;
    let case_first = choice(vm, options, service, "caseFirst", CASE_FIRST)?;
    let sensitivity = choice(vm, options, service, "sensitivity", SENSITIVITIES)?.unwrap_or(3);
    let ignore_punctuation = flag(vm, options, "ignorePunctuation")?.unwrap_or(false);

    let requested = Resolved::of(&tags, available_collator);
    let Available { tag, data, collations, .. } = requested.locale;
    let known = |name: &str| collations.split(',').find(|&known| known == name && known != "=");
    // An option replaces what is in the tag, also one that is unknown.
    let is_kept = |own: &&str| wanted.as_deref().is_none_or(|wanted| wanted == *own);
    let in_tag = requested.keyword("co").filter(is_kept).and_then(known);
    let given = wanted.as_deref().and_then(known);
    let collation = if search { None } else { given.or(in_tag) };
    let kept = collation.filter(|&name| in_tag == Some(name));
    let tag_numeric = requested.keyword("kn").and_then(|value| match value {
        "" | "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    let tag_case = requested.keyword("kf").and_then(|value| CASE_FIRST.iter().position(|&word| word == value));
    // As in V8, the order in a tag is shown beside other keywords, also where an option replaces it.
    let has_others = tag_numeric.is_some() || tag_case.is_some();
    let mut locale = requested.tag(|key, value| match key {
        "co" => kept.is_some() || has_others && known(value).is_some(),
        "kn" => matches!(value, "" | "true" | "false"),
        "kf" => tag_case.is_some(),
        _ => false,
    });
    // As in V8, an option is shown where there is no other keyword; not in tags without their script.
    if let Some(name) = collation.filter(|_| kept.is_none() && locale == tag && has_script(tag) == has_script(data)) {
        locale = format!("{tag}-u-co-{name}"); // bounded: names that there are
    }
    let language = data.split('-').next().unwrap_or_default();
    let is_default = !search && collation.is_none();
    let is_upper_first = is_default && matches!(language, "da" | "mt");
    let own_search = SEARCHED_AS_SORTED.contains(&language) || data.starts_with("sr-Latn");
    let tailoring = match (search, collation) {
        (true, _) if !own_search => ("", ""),
        (true, _) => (tag, if language == "de" { "phonebk" } else { "" }),
        (false, None) if language == "en" => ("", ""),
        (false, collation) => (tag, collation.unwrap_or_default()),
    };
    let order = Order {
        tailoring,
        sensitivity,
        ignore_punctuation: ignore_punctuation || data == "th" && is_default,
        numeric: numeric.or(tag_numeric).unwrap_or(false),
        case_first: case_first.or(tag_case).unwrap_or(if is_upper_first { 0 } else { 2 }),
    };
    Ok(Collator { locale, search, order, collation: collation.unwrap_or("default"), bound: Value::UNDEFINED })
}

/// Whether a tag names a script.
fn has_script(tag: &str) -> bool {
    tag.split('-').skip(1).any(|part| part.len() == 4)
}

/// The order of two strings: -1, 0 or 1.
fn compare(vm: &mut Vm, left: Value, right: Value, order: Order) -> Result {
    let (a, b) = (vm.heap.str(left), vm.heap.str(right));
    if left == right {
        vm.work(1)?;
        return Ok(Value::ZERO);
    }
    let is_ascii = a.is_ascii() && b.is_ascii();
    let length = a.bytes as usize + b.bytes as usize;
    let is_root = order.tailoring.0.is_empty();
    let may_have_runs = length > SHORT && (!is_ascii || order.numeric || !is_root);
    let mut runs = Runs::default();
    if may_have_runs {
        runs.look(vm, left, order.numeric)?;
        runs.look(vm, right, order.numeric)?;
    }
    if length > pieces::LARGE && is_root && runs.longest <= LONG {
        vm.work(runs.expanding)?;
        if let Some(ordering) = pieces::compare(vm, left, right, order)? {
            return Ok(Value::number(f64::from(ordering as i8)));
        }
    }
    vm.charge_piece(1 + length / if is_ascii { 64 } else { 16 }, if is_ascii { 900 } else { 300 })?;
    let Some(collator) = order.collator() else { return Ok(Value::ZERO) };
    if may_have_runs {
        vm.charge_piece(runs.expanding, 300)?;
        // Where letters are tailored, any may belong to a contraction.
        if runs.longest > LONG || !is_root {
            // The memory of the library for a run of characters.
            let _room = vm.hold(runs.longest.saturating_mul(48))?;
            let a = prepared(vm, left, '\u{1}', runs.has_long_marks)?;
            let b = prepared(vm, right, '\u{2}', runs.has_long_marks)?;
            vm.charge_piece((a.len() + b.len()) / 16, 300)?;
            return Ok(Value::number(f64::from(collator.compare_utf8(&a, &b) as i8)));
        }
    }
    // A lone surrogate compares as U+FFFD; strings that have one are copied.
    // charged: above
    let is_text = |string: Value| vm.heap.str(string).is_ascii() || std::str::from_utf8(vm.heap.bytes(string)).is_ok();
    let ordering = if is_text(left) && is_text(right) {
        // charged: above
        collator.compare_utf8(vm.heap.bytes(left), vm.heap.bytes(right))
    } else {
        let _room = vm.hold(length.saturating_mul(2))?;
        // charged: above
        let (a, b) = (vm.heap.text(left), vm.heap.text(right));
        collator.compare(&a, &b)
    };
    Ok(Value::number(f64::from(ordering as i8)))
}

/// Texts up to this length together have no long run.
const SHORT: usize = 256;
/// Longer runs take the library quadratic time, so both texts are prepared.
const LONG: usize = 128;
/// Most consecutive marks that are sorted at a time.
const MARKS: usize = 64;
/// Bytes between two charges.
const TURN: usize = 1 << 12;

/// Runs of characters that the library processes in quadratic time, by removing each from the front of a list: marks,
/// which it collects to sort them, and, after a common prefix, all characters that may belong to a contraction.
#[derive(Default)]
struct Runs {
    /// Characters of the longest run.
    longest: usize,
    /// Whether a long one holds many marks.
    has_long_marks: bool,
    /// Characters with long decompositions.
    expanding: usize,
}

impl Runs {
    /// Scan one more string.
    fn look(&mut self, vm: &mut Vm, string: Value, is_numeric: bool) -> Result<()> {
        let classes = CanonicalCombiningClassMapBorrowed::new();
        let (mut run, mut marks, mut at) = (0, 0, 0);
        loop {
            vm.charge_bytes(TURN)?;
            // charged: above
            let rest = vm.heap.bytes(string).get(at..).unwrap_or_default();
            let mut offset = 0;
            while offset < TURN
                && let Some((point, length)) = rest.get(offset..).and_then(first_code_point)
            {
                offset += length;
                if point < 0x300 && !(is_numeric && matches!(point, 0x30..=0x39)) {
                    (run, marks) = (0, 0);
                    continue;
                }
                self.expanding += usize::from(matches!(point, 0x3200..=0x33FF | 0xFB00..=0xFEFF));
                let character = char::from_u32(point).unwrap_or('\0');
                let is_mark = classes.get_u8(character) != 0 || is_compound(character);
                marks = if is_mark { marks + 1 } else { 0 };
                run =
                    if is_mark || is_contracted(character) || is_numeric && is_digit(character) { run + 1 } else { 0 };
                self.longest = self.longest.max(run);
                self.has_long_marks |= marks > MARKS;
            }
            if offset == 0 {
                return Ok(());
            }
            at += offset;
        }
    }
}

/// Whether a character is a digit where numbers are compared.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit() || character > '\u{660}' && character.is_numeric()
}

/// Marks that are two, without a class of their own; in kana one may stand for itself.
fn is_compound(character: char) -> bool {
    matches!(character, '\u{F73}' | '\u{F75}' | '\u{F81}')
}

/// A copy of a text that the library compares in linear time. It begins with `first`, an ignorable character that
/// differs in the two texts, so that they have no common prefix. Long runs of marks are sorted and broken up by an
/// ignorable character.
fn prepared(vm: &mut Vm, string: Value, first: char, has_long_marks: bool) -> Result<Buffer<u8>> {
    const JOINER: &[u8] = "\u{34F}".as_bytes();
    // To put the marks in order, the decomposed text.
    let string = if has_long_marks { normalize::decomposed(vm, string)? } else { string };
    let classes = CanonicalCombiningClassMapBorrowed::new();
    let mut out = Buffer::new();
    out.push(&vm.heap, first as u8)?;
    let (mut marks, mut at) = (0, 0);
    loop {
        vm.charge_bytes(TURN)?;
        // charged: above
        let rest = vm.heap.bytes(string).get(at..).unwrap_or_default();
        let mut offset = 0;
        while offset < TURN
            && let Some((point, length)) = rest.get(offset..).and_then(first_code_point)
        {
            let is_mark = point >= 0x300 && classes.get32_u8(point) != 0;
            marks = if is_mark { marks + 1 } else { 0 };
            if marks > MARKS {
                out.extend_from_slice(&vm.heap, JOINER)?;
                marks = 1;
            }
            if (0xD800..0xE000).contains(&point) {
                out.extend_from_slice(&vm.heap, "\u{FFFD}".as_bytes())?;
            } else {
                out.extend_from_slice(&vm.heap, rest.get(offset..offset + length).unwrap_or_default())?;
            }
            offset += length;
        }
        if offset == 0 {
            return Ok(out);
        }
        at += offset;
    }
}

/// Whether a character may begin or continue a contraction: letters of Indic scripts, Thai, Lao, Tibetan, Myanmar, Tai.
fn is_contracted(character: char) -> bool {
    matches!(character, '\u{900}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{1950}'..='\u{1AAF}' | '\u{1B00}'..='\u{1C4F}'
        | '\u{A800}'..='\u{A8FF}' | '\u{A980}'..='\u{AADF}' | '\u{11000}'..='\u{11FFF}')
}

/// Collators of the root by number of [`Order`], each made when it is first needed and shared by all runs.
static COLLATORS: [OnceLock<Option<CollatorBorrowed<'static>>>; 48] = [const { OnceLock::new() }; 48];

/// The same of other locales. When there are many, all are forgotten.
static TAILORED: LazyLock<Mutex<HashMap<Order, Option<Arc<CollatorBorrowed<'static>>>>>> =
    LazyLock::new(Mutex::default);
const MAX_TAILORED: usize = 500;

/// A collator that is shared.
enum Shared {
    Root(&'static CollatorBorrowed<'static>),
    Tailored(Arc<CollatorBorrowed<'static>>),
}

impl Deref for Shared {
    type Target = CollatorBorrowed<'static>;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Root(collator) => collator,
            Self::Tailored(collator) => collator,
        }
    }
}

impl Order {
    fn collator(self) -> Option<Shared> {
        if self.tailoring.0.is_empty() {
            let number = self.sensitivity
                + 4 * self.case_first
                + 12 * usize::from(self.numeric)
                + 24 * usize::from(self.ignore_punctuation);
            return COLLATORS.get(number)?.get_or_init(|| self.make()).as_ref().map(Shared::Root);
        }
        let mut known = TAILORED.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TAILORED {
            known.clear();
        }
        known.entry(self).or_insert_with(|| self.make().map(Arc::new)).clone().map(Shared::Tailored)
    }

    fn make(self) -> Option<CollatorBorrowed<'static>> {
        let mut options = CollatorOptions::default();
        let (strength, case_level) = match self.sensitivity {
            0 => (Strength::Primary, CaseLevel::Off),
            1 => (Strength::Secondary, CaseLevel::Off),
            2 => (Strength::Primary, CaseLevel::On),
            _ => (Strength::Tertiary, CaseLevel::Off),
        };
        options.strength = Some(strength);
        options.case_level = Some(case_level);
        let alternate =
            if self.ignore_punctuation { AlternateHandling::Shifted } else { AlternateHandling::NonIgnorable };
        options.alternate_handling = Some(alternate);
        let (locale, collation) = self.tailoring;
        let tag = match (locale, collation) {
            ("", _) => "und".to_owned(),                                 // bounded: a word
            (locale, "") => locale.to_owned(),                           // bounded: a tag that there is
            (locale, collation) => format!("{locale}-u-co-{collation}"), // bounded: names that there are
        };
        let mut preferences = CollatorPreferences::from(&icu_locale::Locale::try_from_str(&tag).ok()?);
        preferences.case_first = Some(match self.case_first {
            0 => CollationCaseFirst::Upper,
            1 => CollationCaseFirst::Lower,
            _ => CollationCaseFirst::False,
        });
        preferences.numeric_ordering =
            Some(if self.numeric { CollationNumericOrdering::True } else { CollationNumericOrdering::False });
        icu_collator::Collator::try_new(preferences, options).ok()
    }
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<Collator> {
    match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::Collator(collator)) => Ok((**collator).clone()),
        _ => Err(incompatible(vm, this, method)),
    }
}

#[cold]
fn incompatible(vm: &mut Vm, this: Value, method: &str) -> Thrown {
    let what = vm.describe(this);
    // bounded: a kind of value
    vm.type_error(&format!("Method Intl.Collator.prototype.{method} called on incompatible receiver {what}"))
}

/// `collator.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let Collator { locale, search, order, collation, .. } = receiver(vm, this, "resolvedOptions")?;
    let texts = [
        ("locale", locale.as_str()),
        ("usage", USAGES[usize::from(search)]),
        ("sensitivity", SENSITIVITIES[order.sensitivity]),
    ];
    let object = vm.heap.new_object();
    let put = |vm: &mut Vm, name: &str, value: Value| {
        let name = vm.intern_text(name);
        vm.heap.set_own(object, name, value);
    };
    for (name, text) in texts {
        let text = vm.string(text);
        put(vm, name, text);
    }
    put(vm, "ignorePunctuation", Value::bool(order.ignore_punctuation));
    let collation = vm.string(collation);
    put(vm, "collation", collation);
    put(vm, "numeric", Value::bool(order.numeric));
    let case_first = vm.string(CASE_FIRST[order.case_first]);
    put(vm, "caseFirst", case_first);
    Ok(object)
}

/// `collator.compare`: a function bound to the collator, always the same one.
fn get_compare(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let known = receiver(vm, this, "compare")?.bound;
    if !known.is_undefined() {
        return Ok(known);
    }
    let function =
        vm.heap.new_native_closure(Action::Native(bound_compare), [this, Value::UNDEFINED, Value::UNDEFINED]);
    if let Some(InternalSlots::Collator(collator)) = vm.heap.internal_slots_of_mut(this) {
        collator.bound = function;
    }
    Ok(function)
}

/// A call of the function that `collator.compare` returns.
fn bound_compare(vm: &mut Vm, function: Value, arguments: &[Value]) -> Result {
    let this = vm.heap.native_closures[function.index()].data[0];
    let order = match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::Collator(collator)) => collator.order,
        _ => return Err(incompatible(vm, this, "compare")),
    };
    let left = vm.to_string(arg(arguments, 0))?;
    let right = vm.to_string(arg(arguments, 1))?;
    compare(vm, left, right, order)
}

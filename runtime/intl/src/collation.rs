//! The order of texts (ECMA-402 10): the Unicode collation algorithm with the orders of CLDR.
//!
//! charged: by the callers, by the texts

use crate::locale::{Available, Resolved, available_collator};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// The values of the option `sensitivity`.
pub const SENSITIVITIES: &[&str] = &["base", "accent", "case", "variant"];
/// The values of the option `caseFirst`.
pub const CASE_FIRST: &[&str] = &["upper", "lower", "false"];
/// The values of the option `usage`.
pub const USAGES: &[&str] = &["sort", "search"];

/// The options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether the option `usage` is `search`.
    pub search: bool,
    /// The option `collation`, of the form of a type.
    pub collation: Option<String>,
    /// The option `numeric`.
    pub numeric: Option<bool>,
    /// The option `caseFirst`, an index of [`CASE_FIRST`].
    pub case_first: Option<usize>,
    /// The option `sensitivity`, an index of [`SENSITIVITIES`].
    pub sensitivity: Option<usize>,
    /// The option `ignorePunctuation`.
    pub ignore_punctuation: bool,
}

/// The resolved options.
#[derive(Clone, Debug)]
pub struct Collator {
    /// The resolved tag.
    pub locale: String,
    /// Whether it is for searching.
    pub search: bool,
    /// How it compares.
    pub order: Order,
    /// The collation in the result of `resolvedOptions`.
    pub collation: &'static str,
}

/// The options of an order, as indices of the tables above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// The locale, `""` for the order of the root, and its collation, `""` for the default one.
    tailoring: (&'static str, &'static str),
    /// An index of [`SENSITIVITIES`].
    pub sensitivity: usize,
    /// Whether punctuation and spaces do not count.
    pub ignore_punctuation: bool,
    /// Whether digits are compared as numbers.
    pub numeric: bool,
    /// An index of [`CASE_FIRST`].
    pub case_first: usize,
}

/// Languages in which `usage: 'search'` has letters of its own, nearly those that are sorted; in others it is the root.
const SEARCHED_AS_SORTED: &[&str] = &[
    "az", "bs", "da", "de", "es", "fi", "fo", "gl", "hr", "is", "kl", "nb", "nn", "no", "se", "sk", "smn", "sv", "tr",
];

impl Collator {
    /// The locale that canonical tags and options resolve to.
    pub fn new(tags: &[String], options: Options) -> Self {
        let Options { search, collation: wanted, numeric, case_first, sensitivity, ignore_punctuation } = options;
        let requested = Resolved::of(tags, available_collator);
        // The case does not matter.
        let wanted = wanted.map(|name| name.to_ascii_lowercase());
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
        if let Some(name) = collation.filter(|_| kept.is_none() && locale == tag && has_script(tag) == has_script(data))
        {
            locale = format!("{tag}-u-co-{name}");
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
            sensitivity: sensitivity.unwrap_or(3),
            ignore_punctuation: ignore_punctuation || data == "th" && is_default,
            numeric: numeric.or(tag_numeric).unwrap_or(false),
            case_first: case_first.or(tag_case).unwrap_or(if is_upper_first { 0 } else { 2 }),
        };
        Self { locale, search, order, collation: collation.unwrap_or("default") }
    }
}

/// Whether a tag names a script.
fn has_script(tag: &str) -> bool {
    tag.split('-').skip(1).any(|part| part.len() == 4)
}

/// Most consecutive marks that are sorted at a time.
pub const MARKS: usize = 64;

/// Runs of characters that the library processes in quadratic time, by removing each from the front of a list: marks,
/// which it collects to sort them, and, after a common prefix, all characters that may belong to a contraction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// Characters of the longest run.
    pub longest: usize,
    /// Whether a long one holds many marks.
    pub has_long_marks: bool,
    /// Characters with long decompositions.
    pub expanding: usize,
    run: usize,
    marks: usize,
}

impl Runs {
    /// Begins a text.
    pub fn begin(&mut self) {
        (self.run, self.marks) = (0, 0);
    }

    /// The next character of it, which may be a lone surrogate.
    #[inline]
    pub fn push(&mut self, point: u32, is_numeric: bool) {
        if point < 0x300 && !(is_numeric && matches!(point, 0x30..=0x39)) {
            self.begin();
            return;
        }
        self.expanding += usize::from(matches!(point, 0x3200..=0x33FF | 0xFB00..=0xFEFF));
        let character = char::from_u32(point).unwrap_or('\0');
        let is_mark = has_class(point) || is_compound(character);
        self.marks = if is_mark { self.marks + 1 } else { 0 };
        let is_in_run = is_mark || is_contracted(character) || is_numeric && is_digit(character);
        self.run = if is_in_run { self.run + 1 } else { 0 };
        self.longest = self.longest.max(self.run);
        self.has_long_marks |= self.marks > MARKS;
    }
}

/// Whether a character has a combining class, so that it is sorted with its neighbours.
pub fn has_class(point: u32) -> bool {
    CanonicalCombiningClassMapBorrowed::new().get32_u8(point) != 0
}

/// Whether a character is a digit where numbers are compared.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit() || character > '\u{660}' && character.is_numeric()
}

/// Marks that are two, without a class of their own; in kana one may stand for itself.
fn is_compound(character: char) -> bool {
    matches!(character, '\u{F73}' | '\u{F75}' | '\u{F81}')
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
    /// The default options.
    pub const DEFAULT: Self =
        Self { tailoring: ("", ""), sensitivity: 3, ignore_punctuation: false, numeric: false, case_first: 2 };

    /// The same with another sensitivity.
    pub fn with_sensitivity(self, sensitivity: usize) -> Self {
        Self { sensitivity, ..self }
    }

    /// Whether it is that of the root: no letter is tailored.
    pub fn is_root(self) -> bool {
        self.tailoring.0.is_empty()
    }

    /// The order of two texts of UTF-8; of equal ones where the library has no such order. Long runs of some characters
    /// take quadratic time: see [`Runs`].
    pub fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        self.collator().map_or(Ordering::Equal, |collator| collator.compare_utf8(left, right))
    }

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
            ("", _) => "und".to_owned(),
            (locale, "") => locale.to_owned(),
            (locale, collation) => format!("{locale}-u-co-{collation}"),
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

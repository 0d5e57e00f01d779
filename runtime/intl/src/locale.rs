//! Locales: canonical language tags (UTS 35), and the one that a request resolves to (ECMA-402 9.2.7).
//!
//! bounded: by a tag

mod code;
mod keywords;

pub use code::language;

use icu_locale::LocaleCanonicalizer;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The default locale.
pub const DEFAULT: &str = "en-US";

/// A locale that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// Its tag, without extensions.
    pub tag: &'static str,
    /// The name of its data in the packs.
    pub data: &'static str,
    /// Its calendar.
    pub calendar: &'static str,
    /// Its numbering system.
    pub numbering: &'static str,
    /// Its hour cycle.
    pub hour_cycle: &'static str,
    /// Its collations besides the default one; `-` where `Intl.Collator` does not have the locale.
    pub collations: &'static str,
    /// Whether only `Intl.Collator` has it.
    is_of_collator: bool,
}

/// The locales by tag.
static AVAILABLE: LazyLock<HashMap<&'static str, Available>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (tag, data, calendar) = (word(), word(), word());
        let (numbering, hour_cycle, collations) = (word(), word(), word());
        let is_of_collator = !word().is_empty();
        (tag, Available { tag, data, calendar, numbering, hour_cycle, collations, is_of_collator })
    };
    include_str!("data/locales.txt").lines().map(line).collect()
});

/// The locale of the longest prefix of a tag that there is (`BestAvailableLocale`).
pub fn available(tag: &str) -> Option<Available> {
    available_where(tag, |locale| !locale.is_of_collator)
}

/// The same of the locales that `Intl.Collator` has.
pub fn available_collator(tag: &str) -> Option<Available> {
    available_where(tag, |locale| locale.collations != "-")
}

/// The same of those that `Intl.NumberFormat` has.
pub fn available_numbers(tag: &str) -> Option<Available> {
    available_where(tag, |locale| !locale.is_of_collator && !WITHOUT_NUMBERS.contains(&locale.language()))
}

/// The same of those that `Intl.ListFormat` has.
pub fn available_lists(tag: &str) -> Option<Available> {
    available_where(tag, |locale| {
        let is_without = WITHOUT_LISTS.split(' ').any(|language| language == locale.language());
        !locale.is_of_collator && !is_without && !locale.tag.starts_with("ff-Latn")
    })
}

/// The same of those that `Intl.Segmenter` has.
pub fn available_segments(tag: &str) -> Option<Available> {
    available_where(tag, |_| true)
}

/// Languages of which `Intl.NumberFormat` has none in Node.
const WITHOUT_NUMBERS: &[&str] = &["lag", "lkt", "mgo", "za"];
/// Languages of which `Intl.ListFormat` has none in Node.
const WITHOUT_LISTS: &str = "agq asa bas bem bez bgc bho bm bo bua ce cgg ckb dav dje dua dyo ebu ewo guz gv haw jmc kab \
     kam kde khq ki kkj kl kln ksb ksf kw lag lg lij lkt lmo ln lrc lu luo luy mas mer mfe mg mgh mgo mua mzn naq nd nds \
     nmg nnh nqo nso nus nyn oc om pms prg raj rn rof rw rwk saq sat sbp seh ses sg shi smn sn st szl teo tn tok twq tyv \
     tzm vai vmw vun xog yav za zgh";

impl Available {
    fn language(&self) -> &'static str {
        self.tag.split('-').next().unwrap_or_default()
    }
}

fn available_where(tag: &str, is_there: impl Fn(&Available) -> bool) -> Option<Available> {
    let mut candidate = without_extensions(tag);
    loop {
        if let Some(&found) = AVAILABLE.get(candidate).filter(|found| is_there(found)) {
            return Some(found);
        }
        candidate = candidate.rsplit_once('-')?.0;
    }
}

/// What a request resolves to: the locale, and the keywords of the extension `u` in the requested tag.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The locale.
    pub locale: Available,
    /// Keys and values, with `""` for `true`, in order.
    keywords: Vec<(String, String)>,
}

impl Resolved {
    /// The first of the canonical tags that there is; the default locale where there is none.
    pub fn new(tags: &[String]) -> Self {
        Self::of(tags, available)
    }

    /// The same of the locales that `available` finds.
    pub fn of(tags: &[String], available: impl Fn(&str) -> Option<Available>) -> Self {
        let found = tags.iter().find_map(|tag| Some((available(tag)?, tag.as_str())));
        match found {
            Some((locale, tag)) => Self { locale, keywords: keywords::of(tag) },
            None => Self { locale: default(), keywords: Vec::new() },
        }
    }

    /// The value of a keyword of the requested tag.
    pub fn keyword(&self, key: &str) -> Option<&str> {
        self.keywords.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The resolved tag: that of the locale with the keywords that `supports` admits, and the variant of POSIX.
    pub fn tag(&self, supports: impl Fn(&str, &str) -> bool) -> String {
        let mut out = self.locale.tag.to_owned();
        let mut is_first = true;
        let is_shown = |key: &str, value: &str| (key, value) == ("va", "posix") || supports(key, value);
        for (key, value) in self.keywords.iter().filter(|(key, value)| is_shown(key, value)) {
            out.push_str(if is_first { "-u-" } else { "-" });
            is_first = false;
            out.push_str(key);
            if !value.is_empty() {
                out.push('-');
                out.push_str(value);
            }
        }
        out
    }
}

/// The default locale.
pub fn default() -> Available {
    const NONE: Available = Available {
        tag: DEFAULT,
        data: "en",
        calendar: "gregory",
        numbering: "latn",
        hour_cycle: "h12",
        collations: "=",
        is_of_collator: false,
    };
    AVAILABLE.get(DEFAULT).copied().unwrap_or(NONE)
}

/// A canonical tag up to its first extension.
pub fn without_extensions(tag: &str) -> &str {
    let mut end = 0_usize;
    for part in tag.split('-') {
        if part.len() == 1 {
            return tag.get(..end.saturating_sub(1)).unwrap_or_default();
        }
        end += part.len() + 1;
    }
    tag
}

/// Whether a text has the form of a type of an extension (UTS 35): parts of three to eight letters and digits.
pub fn is_type(text: &str) -> bool {
    let is_part = |part: &str| (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    text.split('-').all(is_part)
}

/// Why a tag has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It does not begin with a language, as UTS 35 has it.
    Language,
    /// What follows is invalid.
    Rest,
}

/// The canonical form of a language tag (UTS 35, annex C).
pub fn canonical(tag: &str) -> Result<String, Invalid> {
    if AVAILABLE.contains_key(tag) {
        return Ok(tag.to_owned());
    }
    if let Some(rest) = tag.strip_suffix('-') {
        // As in V8, an empty part at the end is no part of the language.
        return Err(check(rest).err().unwrap_or(Invalid::Rest));
    }
    check(tag)?;
    canonical_form(tag)
}

/// The same of a tag that is well-formed.
fn canonical_form(tag: &str) -> Result<String, Invalid> {
    // Languages of four to eight letters are registered nowhere, and the crate has none: another one stands for them.
    let (language, rest) = tag.split_at(tag.find('-').unwrap_or(tag.len()));
    let long = (language.len() > 3).then(|| language.to_ascii_lowercase());
    let stand_in = long.as_ref().map(|_| [UNKNOWN, rest].concat());
    let Ok(mut locale) = icu_locale::Locale::try_from_str(stand_in.as_deref().unwrap_or(tag)) else {
        return Err(Invalid::Rest);
    };
    // It borrows its tables, so making one costs nothing.
    LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
    let mut tag = locale.to_string();
    if let Some(long) = long {
        tag.replace_range(..UNKNOWN.len(), &long);
    }
    Ok(keywords::completed(tag))
}

/// A language of private use, of which nothing is known.
const UNKNOWN: &str = "qaa";

/// An invalid tag as V8 shows it: in lower case, or its bytes as characters.
pub fn printable(tag: &str) -> String {
    if tag.is_ascii() { tag.to_ascii_lowercase() } else { by_bytes(tag) }
}

/// A text as V8 shows it where it has its bytes: these as characters.
pub fn by_bytes(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

/// Whether a tag has the form of a `unicode_locale_id` without what ECMA-402 excludes.
fn check(tag: &str) -> Result<(), Invalid> {
    let mut parts = tag.split('-').peekable();
    let is_alpha = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_word = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let language = parts.next().unwrap_or_default();
    if !is_alpha(language) || !matches!(language.len(), 2 | 3 | 5..=8) {
        return Err(Invalid::Language);
    }
    parts.next_if(|part| part.len() == 4 && is_alpha(part));
    let is_region = |part: &&str| {
        part.len() == 2 && is_alpha(part) || part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    parts.next_if(is_region);
    let is_variant = |part: &&str| {
        is_word(part) && (matches!(part.len(), 5..=8) || part.len() == 4 && part.as_bytes()[0].is_ascii_digit())
    };
    let mut variants = Vec::new();
    while let Some(variant) = parts.next_if(is_variant) {
        variants.push(variant.to_ascii_lowercase());
    }
    if parts.peek().is_some_and(|part| part.len() != 1 || !is_word(part)) {
        return Err(Invalid::Language);
    }
    variants.sort();
    if variants.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Invalid::Rest);
    }
    let mut singletons = Vec::new();
    while let Some(singleton) = parts.next() {
        let singleton = singleton.to_ascii_lowercase();
        let is_private = singleton == "x";
        if singleton.len() != 1 || !is_word(&singleton) || singletons.contains(&singleton) {
            return Err(Invalid::Rest);
        }
        singletons.push(singleton);
        let shortest = if is_private { 1 } else { 2 };
        let mut count = 0;
        while parts.next_if(|part| is_word(part) && part.len() <= 8 && part.len() >= shortest).is_some() {
            count += 1;
        }
        if count == 0 || is_private && parts.peek().is_some() {
            return Err(Invalid::Rest);
        }
    }
    Ok(())
}

static DIGITS: LazyLock<HashMap<&'static str, [char; 10]>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let (name, digits) = line.split_once(' ')?;
        let digits: Vec<char> = digits.chars().collect();
        Some((name, digits.try_into().ok()?))
    };
    include_str!("data/digits.txt").lines().filter_map(line).collect()
});

/// The ten digits of a numbering system; `None` for an unknown one.
pub fn digits(system: &str) -> Option<[char; 10]> {
    DIGITS.get(system).copied()
}

/// The name of a numbering system, if there is one of it.
pub fn numbering_system(name: &str) -> Option<&'static str> {
    DIGITS.get_key_value(name).map(|(&name, _)| name)
}

/// A text with these digits in the place of ASCII's.
pub fn with_digits(text: &str, digits: &[char; 10]) -> String {
    let digit = |c: char| c.to_digit(10).map_or(c, |digit| digits[digit as usize]);
    text.chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(tag: &str) -> Resolved {
        Resolved::new(&[canonical(tag).expect("a tag")])
    }

    #[test]
    fn a_request_resolves_to_the_longest_prefix() {
        for (tag, locale, data) in [
            ("de-DE", "de-DE", "de"),
            ("de-XX", "de", "de"),
            ("nb-NO", "nb", "nb"),
            ("zh-TW", "zh-TW", "zh-Hant"),
            ("sr-ME", "sr-ME", "sr-Latn-ME"),
            ("tlh", "en-US", "en"),
            ("iw", "he", "he"),
            ("de-u-nu-arab-x-foo", "de", "de"),
        ] {
            let found = resolved(tag).locale;
            assert_eq!((found.tag, found.data), (locale, data), "{tag}");
        }
    }

    #[test]
    fn keywords_are_those_of_the_extension() {
        let found = resolved("de-a-nu-arab-u-attr-nu-latn-kn-co-phonebk-x-u-hc-h12");
        assert_eq!(found.keyword("nu"), Some("latn"));
        assert_eq!(found.keyword("kn"), Some(""));
        assert_eq!(found.keyword("hc"), None);
        assert_eq!(found.tag(|key, _| key != "co"), "de-u-kn-nu-latn");
    }
}

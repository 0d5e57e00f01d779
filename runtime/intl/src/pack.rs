//! Packs of CLDR: texts by locale and key, compressed by language, and unpacked when they are first needed.
//!
//! `tests/node/cldr/pack.mjs` writes them. A number is LEB128: seven bits a byte, the low ones first. A text is a number,
//! its bytes, and these. A pack begins with the number of its chunks. For each follow its name and that of its
//! dictionary, its unpacked and its packed size. Then follow the packed chunks (raw deflate). The first, without a
//! name, has the
//! keys in order: their number, and each as a text. Each other one is a language. It has the number of its locales, and
//! for each, in order of the tags, its tag and the tag of its parent. Then follow the number of
//! its entries, the numbers of their keys in ascending order as differences, the lengths of their values, and the
//! values. An empty value
//! says that there is none although the parent has one. The preset dictionary of a chunk is the chunk of a similar
//! language, unpacked, which may have one too. Packs are a fifth smaller with it.
//!
//! bounded: by the packs, which are part of the program; what is unpacked stays for all runs of the process

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use std::fmt;
use std::sync::OnceLock;

/// Names and patterns of dates.
pub static DATES: Pack = Pack::new(include_bytes!("data/dates.bin"));
/// Names of time zones.
#[cfg(feature = "time-zones")]
pub static ZONES: Pack = Pack::new(include_bytes!("data/zones.bin"));
/// Numbers: symbols, patterns, compact notations.
pub static NUMBERS: Pack = Pack::new(include_bytes!("data/numbers.bin"));
/// Symbols and names of currencies.
pub static CURRENCIES: Pack = Pack::new(include_bytes!("data/currencies.bin"));
/// Patterns of units.
pub static UNITS: Pack = Pack::new(include_bytes!("data/units.bin"));
/// Lists and relative times.
pub static PHRASES: Pack = Pack::new(include_bytes!("data/phrases.bin"));
/// Names of languages, regions, scripts, calendars.
pub static NAMES: Pack = Pack::new(include_bytes!("data/names.bin"));
/// Rules that do not depend on the locale alone: plurals, digits of currencies, numbering systems.
pub static RULES: Pack = Pack::new(include_bytes!("data/rules.bin"));

/// Separates the fields of a value.
pub const FIELD: char = '\u{1f}';

/// The locale that all others inherit from.
const ROOT: &str = "und";

/// A pack.
pub struct Pack {
    bytes: &'static [u8],
    content: OnceLock<Content>,
}

#[derive(Default)]
struct Content {
    keys: Vec<String>,
    languages: Vec<Language>,
}

struct Language {
    name: &'static str,
    /// The language that is its preset dictionary; empty where there is none.
    dictionary: &'static str,
    size: usize,
    packed: &'static [u8],
    locales: OnceLock<Vec<Locale>>,
}

struct Locale {
    tag: String,
    parent: String,
    /// The numbers of the keys, with where their values end in the text.
    entries: Vec<(u16, u32)>,
    text: String,
}

impl Pack {
    const fn new(bytes: &'static [u8]) -> Self {
        Self { bytes, content: OnceLock::new() }
    }

    fn content(&'static self) -> &'static Content {
        self.content.get_or_init(|| Content::read(self.bytes).unwrap_or_default())
    }

    /// The text of a key in a locale, or in one that it inherits from.
    pub fn get(&'static self, tag: &str, key: &str) -> Option<&'static str> {
        self.view(tag).get(key)
    }

    /// What a locale sees of the pack.
    pub fn view(&'static self, tag: &str) -> View {
        let content = self.content();
        let mut locales = content.chain(tag);
        View { content, chain: std::array::from_fn(|_| locales.next()) }
    }

    /// A text that does not depend on the locale.
    pub fn root(&'static self, key: &str) -> Option<&'static str> {
        self.get(ROOT, key)
    }
}

impl Content {
    fn read(bytes: &'static [u8]) -> Option<Self> {
        let mut reader = Reader { bytes };
        let count = reader.number()?;
        let mut heads = Vec::new();
        for _ in 0..count {
            heads.push((reader.text()?, reader.text()?, reader.number()?, reader.number()?));
        }
        let mut languages = Vec::new();
        for (name, dictionary, size, packed) in heads {
            languages.push(Language {
                name,
                dictionary,
                size,
                packed: reader.bytes(packed)?,
                locales: OnceLock::new(),
            });
        }
        let unpacked = languages.remove(0).unpack(&[])?;
        let mut reader = Reader { bytes: &unpacked };
        let count = reader.number()?;
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push(reader.text()?.to_owned());
        }
        Some(Self { keys, languages })
    }

    /// The number of a key.
    fn number(&self, key: &str) -> Option<u16> {
        self.keys.binary_search_by(|one| one.as_str().cmp(key)).ok().map(|number| number as u16)
    }

    /// The locale of a tag, the one that it inherits from, …
    fn chain(&self, tag: &str) -> impl Iterator<Item = &Locale> {
        std::iter::successors(self.nearest(tag), |locale| self.locale(&locale.parent))
    }

    /// A language by its name.
    fn language(&self, name: &str) -> Option<&Language> {
        let index = self.languages.binary_search_by(|one| one.name.cmp(name)).ok()?;
        Some(&self.languages[index])
    }

    /// The unpacked chunk of a language.
    fn unpacked(&self, language: &Language) -> Option<Vec<u8>> {
        let dictionary = match language.dictionary {
            "" => Vec::new(),
            name => self.unpacked(self.language(name)?)?,
        };
        language.unpack(&dictionary)
    }

    /// The locales of a language.
    fn locales<'a>(&self, language: &'a Language) -> &'a [Locale] {
        let read = || self.unpacked(language).and_then(|bytes| Language::read(&bytes)).unwrap_or_default();
        language.locales.get_or_init(read)
    }

    /// A locale by its tag.
    fn locale(&self, tag: &str) -> Option<&Locale> {
        let language = self.language(tag.split('-').next()?)?;
        let locales = self.locales(language);
        let index = locales.binary_search_by(|locale| locale.tag.as_str().cmp(tag)).ok()?;
        Some(&locales[index])
    }

    /// The locale of a tag, or of its longest beginning that there is.
    fn nearest(&self, tag: &str) -> Option<&Locale> {
        let mut tag = tag;
        loop {
            if let Some(locale) = self.locale(tag) {
                return Some(locale);
            }
            match tag.rfind('-') {
                Some(end) => tag = &tag[..end],
                None => return self.locale(ROOT),
            }
        }
    }
}

impl Language {
    fn unpack(&self, dictionary: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = dictionary.to_vec();
        bytes.resize(dictionary.len() + self.size, 0);
        let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let mut state = DecompressorOxide::new();
        let (status, _, size) = decompress(&mut state, self.packed, &mut bytes, dictionary.len(), flags);
        bytes.drain(..dictionary.len());
        (status == TINFLStatus::Done && size == self.size).then_some(bytes)
    }

    fn read(bytes: &[u8]) -> Option<Vec<Locale>> {
        let mut reader = Reader { bytes };
        let mut locales = Vec::new();
        for _ in 0..reader.number()? {
            let (tag, parent) = (reader.text()?.to_owned(), reader.text()?.to_owned());
            let count = reader.number()?;
            let mut entries = Vec::new();
            let (mut key, mut end) = (0, 0);
            for _ in 0..count {
                key += reader.number()?;
                entries.push((u16::try_from(key).ok()?, 0));
            }
            for entry in &mut entries {
                end += reader.number()?;
                entry.1 = u32::try_from(end).ok()?;
            }
            let text = str::from_utf8(reader.bytes(end)?).ok()?.to_owned();
            locales.push(Locale { tag, parent, entries, text });
        }
        Some(locales)
    }
}

impl Locale {
    fn value(&self, key: u16) -> Option<&str> {
        let index = self.entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].1);
        self.text.get(start as usize..self.entries[index].1 as usize)
    }
}

/// Most generations of locales; CLDR has 5: `en-AT`, `en-150`, `en-001`, `en`, `und`.
const MAX_CHAIN: usize = 8;

/// What a locale sees of a pack: its own texts and those of its ancestors.
#[derive(Clone, Copy)]
pub struct View {
    content: &'static Content,
    /// The locale, its parent, …
    chain: [Option<&'static Locale>; MAX_CHAIN],
}

impl View {
    /// The text of a key.
    pub fn get(&self, key: &str) -> Option<&'static str> {
        self.found(self.content.number(key)?).map(|(_, text)| text)
    }

    /// The text of a key, empty where there is none.
    pub fn text(&self, key: &str) -> &'static str {
        self.get(key).unwrap_or_default()
    }

    /// The keys that begin with a prefix, without it, and their texts: those of the locale itself, of its parent, …,
    /// each in order.
    pub fn with_prefix(&self, prefix: &str) -> Vec<(&'static str, &'static str)> {
        let keys = &self.content.keys;
        let first = keys.partition_point(|key| key.as_str() < prefix);
        let keys =
            keys.iter().enumerate().skip(first).map_while(|(number, key)| Some((number, key.strip_prefix(prefix)?)));
        let entry = |(number, key)| self.found(number as u16).map(|(depth, text)| (depth, (key, text)));
        let mut all: Vec<_> = keys.filter_map(entry).collect();
        all.sort_by_key(|&(depth, _)| depth);
        all.into_iter().map(|(_, pair)| pair).collect()
    }

    /// The text of a key, and how many generations above it is.
    fn found(&self, key: u16) -> Option<(usize, &'static str)> {
        let locales = self.chain.iter().map_while(|locale| *locale).enumerate();
        let mut values = locales.filter_map(|(depth, locale)| Some((depth, locale.value(key)?)));
        values.next().filter(|(_, text)| !text.is_empty())
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.chain.iter().map_while(|locale| locale.map(|locale| &locale.tag))).finish()
    }
}

/// Reads numbers and texts one after the other; `None` at the end.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for place in 0..4 {
            let byte = *self.bytes(1)?.first()?;
            number |= usize::from(byte & 0x7F) << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        str::from_utf8(self.bytes(length)?).ok()
    }
}

/// The fields of a value.
pub fn fields<const N: usize>(value: &'static str) -> [&'static str; N] {
    let mut fields = value.split(FIELD);
    std::array::from_fn(|_| fields.next().unwrap_or_default())
}

/// The form of a text for a plural category, by its letter.
pub fn form(forms: &'static str, letter: char) -> Option<&'static str> {
    let find = |letter: char| forms.split(FIELD).find_map(|form| form.strip_prefix(letter));
    find(letter).or_else(|| find('x'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_chunks_unpack() {
        let zones: &[&Pack] = &[
            #[cfg(feature = "time-zones")]
            &ZONES,
        ];
        for pack in [&DATES, &NUMBERS, &CURRENCIES, &UNITS, &PHRASES, &NAMES, &RULES].iter().chain(zones) {
            let content = Content::read(pack.bytes).expect("the pack is whole");
            assert!(!content.keys.is_empty());
            assert!(content.languages.iter().all(|language| !content.locales(language).is_empty()));
        }
    }

    #[test]
    fn a_view_inherits() {
        let months =
            |locale| DATES.view(locale).text("gregorian/months/format/wide").split('|').next().expect("a month");
        assert_eq!(months("de"), "Januar");
        assert_eq!(months("de-AT"), "Jänner");
        assert_eq!(months("de-LI"), "Januar");
        assert_eq!(months("en-AU"), "January");
        assert_eq!(months("xx"), months("und"));
        assert_eq!(DATES.view("de").get("no such key"), None);
        assert!(DATES.view("de").with_prefix("gregorian/available/").iter().any(|(key, _)| *key == "yMMMd"));
    }

    #[test]
    fn no_chain_is_longer_than_a_view() {
        for pack in [&DATES, &NUMBERS] {
            let content = pack.content();
            let locales = content.languages.iter().flat_map(|language| content.locales(language));
            assert!(locales.map(|locale| content.chain(&locale.tag).count()).max().expect("locales") <= MAX_CHAIN);
        }
    }

    #[test]
    fn locales_inherit() {
        assert_eq!(NUMBERS.get("de-AT", "ns"), Some("latn"));
        assert_eq!(NUMBERS.get("de-XX", "d/latn"), Some("#,##0.###"));
        assert_eq!(NUMBERS.get("xx", "group"), Some("1"));
        assert_eq!(RULES.root("f/JPY"), Some("0"));
        assert_eq!(RULES.root("f/EUR"), None);
    }
}

//! Texts of CLDR by locale and key, in the packs that `tests/node/cldr` writes; `pack.mjs` describes their format.
//!
//! bounded: by the files in the folder `data`

use std::sync::LazyLock;

/// A pack.
#[derive(Debug)]
pub struct Pack {
    bytes: &'static [u8],
    locales: usize,
    keys: usize,
    texts: usize,
    entries: usize,
}

/// Bytes before the locales.
const HEADER: usize = 20;
/// Bytes of a locale, of a key, of an entry, and of the start of a text.
const LOCALE: usize = 12;
const KEY: usize = 4;
const ENTRY: usize = 5;
const START: usize = 3;
/// Most ancestors of a locale.
const MAX_DEPTH: usize = 8;
/// The text of a key that the parent has and the locale does not.
const GONE: &str = "\0";

/// Patterns and names of dates.
pub static DATES: LazyLock<Pack> = LazyLock::new(|| Pack::new(include_bytes!("data/dates.bin")));

/// Names of time zones.
#[cfg(feature = "time-zones")]
pub static ZONES: LazyLock<Pack> = LazyLock::new(|| Pack::inflated(include_bytes!("data/zones.bin")));

impl Pack {
    /// The pack in a compressed file; it stays in memory once it is read.
    #[cfg(feature = "time-zones")]
    pub fn inflated(bytes: &'static [u8]) -> Self {
        Self::new(miniz_oxide::inflate::decompress_to_vec_zlib(bytes).unwrap_or_default().leak())
    }

    /// The pack in a file.
    pub const fn new(bytes: &'static [u8]) -> Self {
        let mut this = Self { bytes, locales: 0, keys: 0, texts: 0, entries: 0 };
        this.locales = this.u32(4);
        this.keys = this.u32(8);
        this.texts = this.u32(12);
        this.entries = this.u32(16);
        this
    }

    const fn byte(&self, at: usize) -> usize {
        if at < self.bytes.len() { self.bytes[at] as usize } else { 0 }
    }

    const fn u32(&self, at: usize) -> usize {
        self.byte(at) | self.byte(at + 1) << 8 | self.byte(at + 2) << 16 | self.byte(at + 3) << 24
    }

    fn text(&self, number: usize) -> &'static str {
        let table = self.first_entry() + self.entries * ENTRY;
        let count = self.texts + 1;
        let start = |number| {
            let byte = |column| self.byte(table + column * count + number);
            table + count * START + (byte(0) | byte(1) << 8 | byte(2) << 16)
        };
        std::str::from_utf8(self.bytes.get(start(number)..start(number + 1)).unwrap_or_default()).unwrap_or_default()
    }

    fn locale_name(&self, number: usize) -> &'static str {
        self.text(self.u32(HEADER + number * LOCALE))
    }

    fn key(&self, number: usize) -> &'static str {
        self.text(self.u32(HEADER + self.locales * LOCALE + number * KEY))
    }

    /// The entries of a locale: their numbers.
    fn entries_of(&self, locale: usize) -> (usize, usize) {
        let start = |number: usize| match number < self.locales {
            true => self.u32(HEADER + number * LOCALE + 4),
            false => self.entries,
        };
        (start(locale), start(locale + 1))
    }

    const fn first_entry(&self) -> usize {
        HEADER + self.locales * LOCALE + self.keys * KEY
    }

    /// The number of the key of an entry.
    fn key_of(&self, number: usize) -> usize {
        self.column(number, 0) | self.column(number, 1) << 8
    }

    /// The number of the text of an entry.
    fn text_of(&self, number: usize) -> usize {
        self.column(number, 2) | self.column(number, 3) << 8 | self.column(number, 4) << 16
    }

    /// A byte of an entry: all first bytes come first, then all second ones, and so on.
    fn column(&self, number: usize, byte: usize) -> usize {
        self.byte(self.first_entry() + byte * self.entries + number)
    }

    fn find_locale(&self, name: &str) -> Option<usize> {
        let at = partition(0, self.locales, |number| self.locale_name(number) < name);
        (at < self.locales && self.locale_name(at) == name).then_some(at)
    }

    /// What a locale sees of the pack; `locale` is a name of CLDR's files, see [`super::locale::Locale::data`]. The
    /// root for an unknown one.
    pub fn view(&'static self, locale: &str) -> View {
        let mut name = locale;
        let mut found = self.find_locale(name);
        while found.is_none()
            && let Some((cut, _)) = name.rsplit_once('-')
        {
            name = cut;
            found = self.find_locale(name);
        }
        let mut view = View { pack: self, chain: [0; MAX_DEPTH], depth: 0 };
        let mut next = found.or_else(|| self.find_locale("und"));
        while let Some(number) = next
            && view.depth < MAX_DEPTH
        {
            view.chain[view.depth] = number as u16;
            view.depth += 1;
            let parent = self.u32(HEADER + number * LOCALE + 8);
            next = (parent != number).then_some(parent);
        }
        view
    }
}

/// The first number that does not satisfy a condition, which those before it do.
fn partition(mut low: usize, mut high: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// What a locale sees of a pack: its own texts and those of its ancestors.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pack: &'static Pack,
    /// The locale, its parent, …
    chain: [u16; MAX_DEPTH],
    depth: usize,
}

impl View {
    /// The text of a key.
    pub fn get(&self, key: &str) -> Option<&'static str> {
        let pack = self.pack;
        let number = partition(0, pack.keys, |number| pack.key(number) < key);
        (number < pack.keys && pack.key(number) == key).then(|| self.text_of(number))?
    }

    /// The text of a key, empty where there is none.
    pub fn text(&self, key: &str) -> &'static str {
        self.get(key).unwrap_or_default()
    }

    /// The keys that begin with a prefix, without it, and their texts: those of the locale itself, of its parent, …,
    /// each in order.
    pub fn with_prefix(&self, prefix: &str) -> Vec<(&'static str, &'static str)> {
        let pack = self.pack;
        let first = partition(0, pack.keys, |number| pack.key(number) < prefix);
        let last = partition(first, pack.keys, |number| pack.key(number).starts_with(prefix));
        let entry = |number: usize| {
            let (text, depth) = self.found(number)?;
            Some((depth, (pack.key(number).get(prefix.len()..)?, text)))
        };
        let mut all: Vec<_> = (first..last).filter_map(entry).collect();
        all.sort_by_key(|&(depth, _)| depth);
        all.into_iter().map(|(_, pair)| pair).collect()
    }

    fn text_of(&self, key: usize) -> Option<&'static str> {
        self.found(key).map(|(text, _)| text)
    }

    /// The text of a key, and how many generations above it is.
    fn found(&self, key: usize) -> Option<(&'static str, usize)> {
        let pack = self.pack;
        for (depth, &locale) in self.chain.get(..self.depth)?.iter().enumerate() {
            let (first, last) = pack.entries_of(usize::from(locale));
            let at = partition(first, last, |number| pack.key_of(number) < key);
            if at < last && pack.key_of(at) == key {
                let text = pack.text(pack.text_of(at));
                return (text != GONE).then_some((text, depth));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_inherits_from_its_parents() {
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
}

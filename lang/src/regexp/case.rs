//! Characters that are the same where case does not matter (ECMAScript 22.2.2.7.3, Canonicalize).

use super::{CharSet, Flags};
use hashbrown::HashMap;
use icu_casemap::CaseMapper;
use std::sync::LazyLock;

/// Characters that are the same in any case.
struct Orbits {
    /// The canonical form of characters that are not their own.
    canonical: HashMap<u32, u32>,
    /// All characters that have others which are the same, in order.
    characters: Vec<u32>,
    /// The characters of a canonical form, that one included.
    members: HashMap<u32, Vec<u32>>,
}

impl Orbits {
    fn new(last: u32, canonicalize: impl Fn(u32) -> u32) -> Self {
        let mut canonical = HashMap::new();
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        for character in 0..=last {
            let form = canonicalize(character);
            if form != character {
                canonical.insert(character, form);
                members.entry(form).or_insert_with(|| vec![form]).push(character);
            }
        }
        let mut characters: Vec<u32> = members.values().flatten().copied().collect();
        characters.sort_unstable();
        Self { canonical, characters, members }
    }

    fn canonicalize(&self, character: u32) -> u32 {
        self.canonical.get(&character).copied().unwrap_or(character)
    }

    /// Returns the characters of a set that have others which are the same.
    fn cased<'a>(&'a self, set: &'a CharSet) -> impl Iterator<Item = u32> + 'a {
        set.ranges().iter().flat_map(|&(first, last)| {
            let begin = self.characters.partition_point(|&character| character < first);
            let end = self.characters.partition_point(|&character| character <= last);
            self.characters[begin..end].iter().copied()
        })
    }

    fn orbit(&self, character: u32) -> &[u32] {
        self.members.get(&self.canonicalize(character)).map_or(&[], Vec::as_slice)
    }

    fn close(&self, set: &CharSet) -> CharSet {
        let rest = set.complement();
        let mut ranges = set.ranges().to_vec();
        let before = ranges.len();
        // Whichever is smaller is looked at: all that is not a digit, or the digits.
        if self.cased(set).take(self.characters.len() / 2).count() < self.characters.len() / 2 {
            let missing = self.cased(set).flat_map(|character| self.orbit(character));
            ranges.extend(missing.filter(|&&member| !set.contains(member)).map(|&member| (member, member)));
        } else {
            let belongs = |&character: &u32| self.orbit(character).iter().any(|&member| !rest.contains(member));
            ranges.extend(self.cased(&rest).filter(belongs).map(|character| (character, character)));
        }
        if ranges.len() == before { set.clone() } else { CharSet::new(ranges) }
    }
}

/// With the flags `u` and `v`: simple case folding.
static FOLDED: LazyLock<Orbits> = LazyLock::new(|| {
    let mapper = CaseMapper::new();
    // Nothing above this has case.
    Orbits::new(0x1_FFFF, |character| {
        char::from_u32(character).map_or(character, |character| u32::from(mapper.simple_fold(character)))
    })
});

/// Without them: upper case of code units, as far as it is one code unit.
static UPPER: LazyLock<Orbits> = LazyLock::new(|| Orbits::new(0xFFFF, upper));

fn upper(unit: u32) -> u32 {
    let Some(character) = char::from_u32(unit) else { return unit };
    let mut mapped = character.to_uppercase();
    let (Some(form), None) = (mapped.next(), mapped.next()) else { return unit };
    let form = u32::from(form);
    if form > 0xFFFF || unit >= 128 && form < 128 { unit } else { form }
}

/// Returns the form in which a character is compared where case does not matter.
#[must_use]
pub fn canonicalize(character: u32, unicode: bool) -> u32 {
    if character < 128 {
        let ascii = character as u8;
        return u32::from(if unicode { ascii.to_ascii_lowercase() } else { ascii.to_ascii_uppercase() });
    }
    if unicode { FOLDED.canonicalize(character) } else { UPPER.canonicalize(character) }
}

/// Returns the set with all characters that are the same as one of it, where the flags say so.
pub(super) fn close(set: &CharSet, flags: Flags) -> CharSet {
    if !flags.ignore_case {
        return set.clone();
    }
    if flags.is_unicode() { FOLDED.close(set) } else { UPPER.close(set) }
}

/// `\w`
pub(super) fn words(flags: Flags) -> CharSet {
    let mut ranges = vec![(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
    if flags.ignore_case && flags.is_unicode() {
        ranges.extend([(0x17F, 0x17F), (0x212A, 0x212A)]);
    }
    CharSet::new(ranges)
}

/// Whether `\w` matches a character.
#[must_use]
pub fn is_word(character: u32, flags: Flags) -> bool {
    match character {
        0x30..=0x39 | 0x41..=0x5A | 0x5F | 0x61..=0x7A => true,
        0x17F | 0x212A => flags.ignore_case && flags.is_unicode(),
        _ => false,
    }
}

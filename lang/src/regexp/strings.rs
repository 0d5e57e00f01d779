//! Sets of strings in patterns with the flag `v`: the properties of strings (ECMAScript, table 69), and alternatives
//! that match the longest string.

use super::parse::{Parser, Result};
use super::property::property;
use super::{CharSet, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// The sequences of emoji that no property of characters tells: a line of flags, then those with U+200D. In these `x` and
/// `y` are tones of skin, and `z` is another one than `x`. Written by `tests/node/emoji.mjs`; 7.5 kB.
const SEQUENCES: &str = include_str!("emoji.txt");
/// The tones of skin.
const TONES: std::ops::RangeInclusive<u32> = 0x1F3FB..=0x1F3FF;
/// The character that makes the one before it an emoji.
const EMOJI_STYLE: u32 = 0xFE0F;
/// Alternatives nest no deeper than this: walks over the tree recurse.
const MAX_DEPTH: u32 = 50;
/// A string takes about as much memory as so many ranges of characters.
const RANGES_A_STRING: usize = 64;

/// The matches of a class with the flag `v`: characters, and strings of any other length.
#[derive(Clone, Default)]
pub(super) struct Strings {
    pub set: CharSet,
    pub strings: BTreeSet<Vec<u32>>,
    /// Whether it is written with strings, even if none is left.
    pub may_have_strings: bool,
}

impl Strings {
    pub fn from_set(set: CharSet) -> Self {
        Self { set, ..Self::default() }
    }
}

/// Returns the strings of `\p{name}`; nothing where there is no such property.
fn property_of_strings(name: &str) -> Option<&'static Strings> {
    type LazyStrings = LazyLock<Strings>;
    static BASIC: LazyStrings = LazyLock::new(basic);
    static KEYCAPS: LazyStrings = LazyLock::new(|| of(keycaps()));
    static MODIFIED: LazyStrings = LazyLock::new(|| of(modified()));
    static FLAGS: LazyStrings = LazyLock::new(|| of(flags()));
    static TAGS: LazyStrings = LazyLock::new(|| of(tags()));
    static JOINED: LazyStrings = LazyLock::new(|| of(joined()));
    static ALL: LazyStrings = LazyLock::new(|| {
        let mut all = basic();
        all.strings.extend(keycaps().chain(modified()).chain(flags()).chain(tags()).chain(joined()));
        all
    });
    Some(match name {
        "Basic_Emoji" => &BASIC,
        "Emoji_Keycap_Sequence" => &KEYCAPS,
        "RGI_Emoji_Modifier_Sequence" => &MODIFIED,
        "RGI_Emoji_Flag_Sequence" => &FLAGS,
        "RGI_Emoji_Tag_Sequence" => &TAGS,
        "RGI_Emoji_ZWJ_Sequence" => &JOINED,
        "RGI_Emoji" => &ALL,
        _ => return None,
    })
}

fn of(strings: impl Iterator<Item = Vec<u32>>) -> Strings {
    Strings { set: CharSet::default(), strings: strings.collect(), may_have_strings: true }
}

fn named(property_name: &str) -> Arc<CharSet> {
    property(property_name).unwrap_or_default()
}

fn characters(set: &CharSet) -> impl Iterator<Item = u32> + '_ {
    set.ranges().iter().flat_map(|&(first, last)| first..=last)
}

fn basic() -> Strings {
    let pictures = named("Emoji_Presentation");
    let mut all = of(characters(&named("Emoji").difference(&pictures))
        .filter(|&character| character > 0x7F)
        .map(|character| vec![character, EMOJI_STYLE]));
    all.set = pictures.difference(&named("Regional_Indicator"));
    all
}

fn keycaps() -> impl Iterator<Item = Vec<u32>> {
    "#*0123456789".chars().map(|key| vec![u32::from(key), EMOJI_STYLE, 0x20E3])
}

fn modified() -> impl Iterator<Item = Vec<u32>> {
    let bases: Vec<u32> = characters(&named("Emoji_Modifier_Base")).collect();
    bases.into_iter().flat_map(|base| TONES.map(move |tone| vec![base, tone]))
}

fn flags() -> impl Iterator<Item = Vec<u32>> {
    let letters = SEQUENCES.lines().next().unwrap_or_default().as_bytes();
    letters.chunks_exact(2).map(|pair| pair.iter().map(|&letter| 0x1F1E6 + u32::from(letter - b'A')).collect())
}

fn tags() -> impl Iterator<Item = Vec<u32>> {
    let tagged = |tags: &str| {
        let tags = tags.bytes().map(|tag| 0xE0000 + u32::from(tag));
        [0x1F3F4].into_iter().chain(tags).chain([0xE007F]).collect()
    };
    ["gbeng", "gbsct", "gbwls"].into_iter().map(tagged)
}

fn joined() -> impl Iterator<Item = Vec<u32>> {
    SEQUENCES.lines().skip(1).flat_map(|line| {
        let tones = |marks: &[char]| if line.contains(marks) { TONES } else { 0..=0 };
        let pairs = tones(&['x']).flat_map(|first| tones(&['y', 'z']).map(move |second| (first, second)));
        let pairs = pairs.filter(|(first, second)| !(line.contains('z') && first == second));
        let with = |(first, second)| {
            let tone = |letter| match letter {
                'x' => first,
                'y' | 'z' => second,
                other => u32::from(other),
            };
            line.chars().map(tone).collect()
        };
        pairs.map(with).collect::<Vec<Vec<u32>>>()
    })
}

impl Parser {
    /// `\p{…}` of a property of strings, if one stands here.
    pub fn strings_escape(&mut self) -> Result<Option<Strings>> {
        if !self.flags.unicode_sets || !self.is("\\p{") {
            return Ok(None);
        }
        let name = self.text[self.at + 3..].iter().map_while(|&next| char::from_u32(next).filter(|&next| next != '}'));
        let name: String = name.take(64).collect();
        let is_closed = self.peek_at(3 + name.len()) == Some(u32::from('}'));
        let Some(found) = property_of_strings(&name).filter(|_| is_closed) else { return Ok(None) };
        self.at += name.len() + 4;
        if self.checks_only {
            return Ok(Some(Strings { may_have_strings: true, ..Strings::default() }));
        }
        self.look_at(found.strings.len() * RANGES_A_STRING)?;
        Ok(Some(found.clone()))
    }

    /// Returns the node for strings: the longest first, as the specification has it; then the characters, then nothing.
    pub fn strings_node(&mut self, found: Strings) -> Result<Node> {
        let Strings { set, mut strings, .. } = found;
        let is_empty_last = strings.remove(&Vec::new());
        let mut alternatives = Vec::new();
        if !strings.is_empty() {
            let strings: Vec<&[u32]> = strings.iter().map(Vec::as_slice).collect();
            alternatives.push(self.longest(&strings, 0)?);
        }
        if !set.is_empty() || alternatives.is_empty() && !is_empty_last {
            alternatives.push(Node::Set(Arc::new(set)));
        }
        if is_empty_last {
            alternatives.push(Node::Empty);
        }
        Ok(one_of(alternatives))
    }

    /// Returns the node for the longest of these strings, which are in order. Strings with the same beginning share it, and at
    /// most one of the alternatives matches. That is so from the left to the right only.
    fn longest(&mut self, strings: &[&[u32]], depth: u32) -> Result<Node> {
        if self.look_behinds > 0 || depth > MAX_DEPTH {
            let mut strings = strings.to_vec();
            strings.sort_by_key(|string| std::cmp::Reverse(string.len()));
            let all: Result<Vec<Node>> = strings.into_iter().map(|string| self.sequence(string)).collect();
            return all.map(one_of);
        }
        // By what follows the first character.
        let mut groups: BTreeMap<Vec<&[u32]>, Vec<(u32, u32)>> = BTreeMap::new();
        let mut has_empty = false;
        for group in strings.chunk_by(|a, b| a.first() == b.first()) {
            let Some(&first) = group[0].first() else {
                has_empty = true;
                continue;
            };
            let rests = group.iter().map(|string| &string[1..]).collect();
            groups.entry(rests).or_default().push((first, first));
        }
        let mut alternatives = Vec::new();
        for (rests, firsts) in groups {
            let first = match *firsts.as_slice() {
                [(only, _)] => self.character(only)?,
                _ => self.set_node(Arc::new(CharSet::new(firsts)))?,
            };
            let shared = match *rests.as_slice() {
                [first, .., last] => first.iter().zip(last).take_while(|(a, b)| a == b).count(),
                [only] => only.len(),
                [] => 0,
            };
            let tails: Vec<&[u32]> = rests.iter().map(|rest| &rest[shared..]).collect();
            let tail = match *tails.as_slice() {
                [[]] => None,
                _ => Some(self.longest(&tails, depth + 1)?),
            };
            let mut terms = vec![first];
            for &character in rests.first().and_then(|rest| rest.get(..shared)).unwrap_or_default() {
                terms.push(self.character(character)?);
            }
            terms.extend(tail);
            alternatives.push(in_sequence(terms));
        }
        if has_empty {
            alternatives.push(Node::Empty);
        }
        Ok(one_of(alternatives))
    }

    fn sequence(&mut self, string: &[u32]) -> Result<Node> {
        let terms: Result<Vec<Node>> = string.iter().map(|&character| self.character(character)).collect();
        terms.map(in_sequence)
    }
}

fn one_of(mut alternatives: Vec<Node>) -> Node {
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => Node::Alternatives(alternatives),
    }
}

fn in_sequence(mut terms: Vec<Node>) -> Node {
    match terms.len() {
        0 => Node::Empty,
        1 => terms.remove(0),
        _ => Node::Sequence(terms),
    }
}

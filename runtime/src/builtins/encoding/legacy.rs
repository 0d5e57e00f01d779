//! Encodings that Node decodes by tables of ICU, which are not those of the standard. They have characters of their own
//! for some bytes, and bytes that end a malformed character. Common parts of both come from `encoding_rs`.
//!
//! Bounded by a piece of the input, for which the caller charges.

use encoding_rs::*;
use std::sync::OnceLock;

/// An encoding, and how its tables differ from the standard's.
struct Table {
    encoding: &'static Encoding,
    /// Bytes that begin characters of two bytes, and the bytes that end them.
    leads: &'static [(u8, u8)],
    trails: &'static [(u8, u8)],
    /// Bytes that neither are nor begin a character: they belong to a malformed one before them.
    illegal: &'static [(u8, u8)],
    /// First and last byte, and the character of the first, which the others follow.
    singles: &'static [(u8, u8, u16)],
    /// The same for pairs of bytes.
    pairs: &'static [(u16, u16, u16)],
}

/// No character.
const NONE: u16 = u16::MAX;

const FIRST_LEAD: u8 = 0x81;
const LEADS: usize = 0xFE - 0x81 + 1;
const FIRST_TRAIL: u8 = 0x40;
const TRAILS: usize = 0xFE - 0x40 + 1;

/// Characters by byte and by two bytes, the last ones.
struct Lookup {
    singles: Vec<u16>,
    pairs: Vec<u16>,
    triples: Vec<u16>,
}

const fn table(encoding: &'static Encoding) -> Table {
    Table { encoding, leads: &[], trails: &[], illegal: &[], singles: &[], pairs: &[] }
}

/// ICU's IBM tables exchange three control characters.
const EXCHANGED: [(u8, u8, u16); 3] = [(0x1A, 0x1A, 0x1C), (0x1C, 0x1C, 0x7F), (0x7F, 0x7F, 0x1A)];
/// The controls of ISO 8859 that do not begin characters in EUC.
const CONTROLS: &[(u8, u8, u16)] = &[(0x80, 0x8D, 0x80), (0x90, 0x9F, 0x90)];
const EUC: &[(u8, u8)] = &[(0xA1, 0xFE)];

/// The byte before the half-width katakana of EUC-JP.
const HALF_WIDTH: u8 = 0x8E;
/// The byte before the characters of JIS X 0212, which have three.
const THREE: u8 = 0x8F;
/// Characters of JIS X 0212.
const TRIPLES: &[(u16, u16, u16)] = &[(0xF3A1, 0xF3AA, 0x2170), (0xF3AB, 0xF3B4, 0x2160), (0xF3B7, 0xF3B7, 0x3231)];

static TABLES: [Table; 10] = [
    Table { singles: &EXCHANGED, ..table(IBM866) },
    Table { singles: &[(0xAE, 0xAE, 0x255D), (0xBE, 0xBE, 0x256C)], ..table(KOI8_U) },
    Table { singles: &[(0xDB, 0xDE, 0xF8C1), (0xFC, 0xFF, 0xF8C5)], ..table(WINDOWS_874) },
    Table { singles: &[(0xAA, 0xAA, 0xAA)], ..table(WINDOWS_1253) },
    Table { singles: &[(0xCA, 0xCA, NONE)], ..table(WINDOWS_1255) },
    Table {
        leads: &[(0x81, 0xFE)],
        trails: &[(0x40, 0x7E), (0x80, 0xFE)],
        singles: &[(0xFF, 0xFF, 0xF8F5)],
        pairs: &[
            (0xA2E3, 0xA2E3, 0xE76C),
            (0xA3A0, 0xA3A0, 0xE5E5),
            (0xA6D9, 0xA6DF, 0xE78D),
            (0xA6EC, 0xA6ED, 0xE794),
            (0xA6F3, 0xA6F3, 0xE796),
            (0xA8BC, 0xA8BC, 0xE7C7),
            (0xA8BF, 0xA8BF, 0xE7C8),
            (0xA989, 0xA995, 0xE7E7),
            (0xFE50, 0xFE50, 0xE815),
            (0xFE54, 0xFE6B, 0xE819),
            (0xFE6D, 0xFE75, 0xE832),
            (0xFE77, 0xFE7E, 0xE83C),
            (0xFE80, 0xFE90, 0xE844),
            (0xFE92, 0xFEA0, 0xE856),
        ],
        ..table(GBK)
    },
    Table {
        leads: &[(0x81, 0xFE)],
        trails: &[(0x40, 0x7E), (0xA1, 0xFE)],
        illegal: &[(0x80, 0xA0)],
        singles: &[(0x80, 0x80, 0x80), (0xFF, 0xFF, 0xF8F8)],
        pairs: &[
            (0x8140, 0x8DFE, 0xEEB8),
            (0x8E40, 0xA0FE, 0xE311),
            (0xA3C0, 0xA3E0, NONE),
            (0xC6A1, 0xC8FE, 0xF6B1),
            (0xF9FE, 0xF9FE, 0x2593),
            (0xFA40, 0xFEFE, 0xE000),
        ],
        ..table(BIG5)
    },
    Table {
        leads: &[(0x81, 0x9F), (0xE0, 0xFC)],
        trails: &[(0x40, 0x7E), (0x80, 0xFC)],
        singles: &[EXCHANGED[0], EXCHANGED[1], EXCHANGED[2], (0x80, 0x80, NONE)],
        ..table(SHIFT_JIS)
    },
    Table {
        leads: &[(0x8E, 0x8F), (0xA1, 0xFE)],
        trails: EUC,
        illegal: &[(0xA0, 0xA0), (0xFF, 0xFF)],
        singles: CONTROLS,
        pairs: &[(0x8EE0, 0x8EE1, 0xA2), (0x8EE2, 0x8EE2, 0xAC)],
        ..table(EUC_JP)
    },
    Table {
        leads: EUC,
        trails: EUC,
        illegal: &[(0xA0, 0xA0), (0xFF, 0xFF)],
        singles: CONTROLS,
        pairs: &[(0xA2E6, 0xA2E7, NONE), (0xC9A1, 0xC9FE, 0xE000), (0xFEA1, 0xFEFE, 0xE05E)],
        ..table(EUC_KR)
    },
];

/// The decoding tables, each of which is made of an entry of [`TABLES`] when that is first used.
static LOOKUPS: [OnceLock<Lookup>; TABLES.len()] = [const { OnceLock::new() }; TABLES.len()];

impl Table {
    fn make(&self) -> Lookup {
        let mut singles: Vec<u16> = (0..=0xFF).map(|byte| self.standard(&[byte])).collect();
        for &(first, last, letter) in self.singles {
            for byte in first..=last {
                singles[usize::from(byte)] = following(letter, (byte - first).into());
            }
        }
        let mut pairs = vec![NONE; if self.leads.is_empty() { 0 } else { LEADS * TRAILS }];
        let mut triples = vec![NONE; if self.has_triples() { LEADS * TRAILS } else { 0 }];
        let bytes = |index: usize| [(index / TRAILS) as u8 + FIRST_LEAD, (index % TRAILS) as u8 + FIRST_TRAIL];
        for (index, letter) in pairs.iter_mut().enumerate() {
            *letter = self.standard(&bytes(index));
        }
        for (index, letter) in triples.iter_mut().enumerate() {
            let [second, third] = bytes(index);
            *letter = self.standard(&[THREE, second, third]);
        }
        self.replace(self.pairs, &mut pairs);
        if self.has_triples() {
            self.replace(TRIPLES, &mut triples);
        }
        Lookup { singles, pairs, triples }
    }

    /// The character of the standard for some bytes.
    fn standard(&self, bytes: &[u8]) -> u16 {
        let text = self.encoding.decode_without_bom_handling_and_without_replacement(bytes);
        let mut units = text.iter().flat_map(|text| text.encode_utf16());
        match (units.next(), units.next()) {
            (Some(unit), None) => unit,
            _ => NONE,
        }
    }

    /// Replace characters of pairs by others, which follow each other.
    fn replace(&self, others: &[(u16, u16, u16)], letters: &mut [u16]) {
        for &(first, last, letter) in others {
            let pairs = (first..=last).filter(|pair| within(self.trails, *pair as u8));
            for (offset, pair) in (0..).zip(pairs) {
                letters[position((pair >> 8) as u8, pair as u8)] = following(letter, offset);
            }
        }
    }

    fn has_triples(&self) -> bool {
        self.encoding == EUC_JP
    }

    /// Whether a byte may follow the first one of a character.
    fn follows(&self, lead: u8, byte: u8) -> bool {
        within(if self.has_triples() && lead == HALF_WIDTH { &[(0xA1, 0xE4)] } else { self.trails }, byte)
    }
}

fn within(ranges: &[(u8, u8)], byte: u8) -> bool {
    ranges.iter().any(|&(first, last)| (first..=last).contains(&byte))
}

fn following(letter: u16, offset: u16) -> u16 {
    if letter == NONE { NONE } else { letter + offset }
}

fn position(lead: u8, trail: u8) -> usize {
    usize::from(lead - FIRST_LEAD) * TRAILS + usize::from(trail - FIRST_TRAIL)
}

/// A decoder, with the bytes of a character that has not ended.
pub struct Legacy {
    table: &'static Table,
    lookup: &'static Lookup,
    begun: [u8; 2],
    length: usize,
}

/// The characters that are decoded, and whether all bytes were valid.
pub struct Decoded<'a> {
    pub text: &'a mut String,
    pub is_valid: bool,
}

impl Decoded<'_> {
    fn push(&mut self, letter: u16) {
        let letter = if letter == NONE { None } else { char::from_u32(letter.into()) };
        self.is_valid &= letter.is_some();
        self.text.push(letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
}

impl Legacy {
    /// The decoder of an encoding that is not decoded by the standard.
    pub fn new(encoding: &'static Encoding) -> Option<Self> {
        let index = TABLES.iter().position(|table| table.encoding == encoding)?;
        let (table, lookup) = (TABLES.get(index)?, LOOKUPS.get(index)?);
        Some(Self { table, lookup: lookup.get_or_init(|| table.make()), begun: [0; 2], length: 0 })
    }

    /// Decode some bytes; `last`: none follow.
    pub fn decode(&mut self, bytes: &[u8], last: bool, out: &mut Decoded<'_>) {
        for &byte in bytes {
            self.add(byte, out);
        }
        if last && std::mem::take(&mut self.length) > 0 {
            out.push(NONE);
        }
    }

    fn add(&mut self, byte: u8, out: &mut Decoded<'_>) {
        let [first, second] = self.begun;
        match std::mem::take(&mut self.length) {
            0 if within(self.table.leads, byte) => (self.begun[0], self.length) = (byte, 1),
            0 => out.push(self.lookup.singles[usize::from(byte)]),
            1 if self.table.follows(first, byte) => match first {
                THREE if self.table.has_triples() => (self.begun[1], self.length) = (byte, 2),
                _ => out.push(self.lookup.pairs[position(first, byte)]),
            },
            1 => {
                out.push(NONE);
                // A byte that can begin a character is not a part of the malformed one.
                if !within(self.table.illegal, byte) {
                    self.add(byte, out);
                }
            }
            _ if within(self.table.trails, byte) => out.push(self.lookup.triples[position(second, byte)]),
            _ => {
                out.push(NONE);
                self.add(second, out);
                self.add(byte, out);
            }
        }
    }
}

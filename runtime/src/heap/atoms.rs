//! The tables of atoms: those of a program, and those of a run.

use super::{Heap, block, hash_cost};
use crate::interface::outcome::{MAX_MESSAGE_BYTES, cut_message_bytes};
use crate::value::Value;
use crate::value::atom::{Atom, SYMBOLS, hash, known};
use agentscript_lang::program::Texts;
use hashbrown::HashTable;
use std::sync::Arc;

/// The fixed atoms: names of built-ins and what the evaluator itself needs, the same in all runs of the process.
#[derive(Debug)]
pub struct FixedNames {
    names: Vec<&'static str>,
    /// All of them, concatenated.
    pub bytes: Arc<[u8]>,
    /// The range of each name in `bytes`.
    ranges: Vec<(u32, u32)>,
    table: HashTable<(&'static [u8], Atom)>,
}

impl FixedNames {
    /// Returns the names that the evaluator itself needs.
    pub fn new() -> Self {
        let mut this = Self { names: Vec::new(), bytes: Arc::default(), ranges: Vec::new(), table: HashTable::new() };
        for text in known::TEXTS {
            this.add(text);
        }
        // No string is one of these keys, only what programs name them by.
        for (symbol, text) in SYMBOLS {
            this.table.retain(|&mut (_, atom)| atom != symbol);
            this.table.insert_unique(hash(text), (text, symbol), |(text, _)| hash(text));
        }
        this
    }

    /// Adds a name, if it is new; returns its atom.
    pub fn add(&mut self, text: &'static str) -> Atom {
        let key = hash(text.as_bytes());
        if let Some(known) = self.find(key, text.as_bytes()) {
            return known;
        }
        let new = Atom(self.names.len() as u32);
        self.names.push(text);
        self.table.insert_unique(key, (text.as_bytes(), new), |(text, _)| hash(text));
        new
    }

    /// Concatenates the names, when the last one was added.
    pub fn complete(&mut self) {
        let mut bytes = Vec::new();
        for name in &self.names {
            self.ranges.push((bytes.len() as u32, name.len() as u32));
            bytes.extend_from_slice(name.as_bytes());
        }
        self.bytes = bytes.into();
    }

    /// Returns how many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the names in the order of their atoms.
    pub fn iter(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.names.iter().copied()
    }

    /// Returns the text of a fixed atom.
    pub fn text(&self, atom: Atom) -> &'static str {
        self.names[atom.0 as usize]
    }

    /// Returns whether an atom is one of these.
    pub fn has(&self, atom: Atom) -> bool {
        (atom.0 as usize) < self.names.len()
    }

    /// Returns the fixed atom of a text.
    #[inline]
    pub fn atom(&self, text: &[u8]) -> Option<Atom> {
        self.find(hash(text), text)
    }

    #[inline]
    fn find(&self, key: u64, text: &[u8]) -> Option<Atom> {
        self.table.find(key, |&(known, _)| known == text).map(|&(_, atom)| atom)
    }
}

/// The texts of one compiled script, or of the prelude, and their atoms; shared by all its runs.
#[derive(Debug, Default)]
pub struct ProgramTexts {
    /// All texts, concatenated, in WTF-8.
    pub bytes: Arc<[u8]>,
    /// The range of each text that is no fixed name: start and length. Its atom is `first` plus its index here.
    pub ranges: Vec<(u32, u32)>,
    /// The first atom.
    first: u32,
    table: HashTable<u32>,
}

impl ProgramTexts {
    /// Numbers the texts of a program; returns their atoms in the same order. `prelude` has the texts of the prelude;
    /// absent while the prelude itself is compiled.
    pub fn new(texts: &Texts, names: &FixedNames, prelude: Option<&Self>) -> (Self, Vec<Atom>) {
        let mut bytes = Vec::with_capacity(texts.total());
        let first = names.len() + prelude.map_or(0, |prelude| prelude.ranges.len());
        let count = texts.iter().len();
        let mut this = Self {
            first: first as u32,
            ranges: Vec::with_capacity(count),
            table: HashTable::with_capacity(count),
            ..Self::default()
        };
        let atoms = texts
            .iter()
            .map(|text| {
                let key = hash(text);
                let known = names.find(key, text).or_else(|| prelude?.find(key, text));
                if let Some(atom) = known {
                    return atom;
                }
                let index = this.ranges.len() as u32;
                this.ranges.push((bytes.len() as u32, text.len() as u32));
                bytes.extend_from_slice(text);
                let Self { table, ranges, .. } = &mut this;
                table.insert_unique(key, index, |&other| {
                    let (start, length) = ranges[other as usize];
                    hash(&bytes[start as usize..][..length as usize])
                });
                Atom(this.first + index)
            })
            .collect();
        this.bytes = bytes.into();
        (this, atoms)
    }

    /// The text of an atom that is one of these.
    pub fn text(&self, atom: Atom) -> &[u8] {
        let (start, length) = self.ranges[(atom.0 - self.first) as usize];
        &self.bytes[start as usize..][..length as usize]
    }

    fn find(&self, key: u64, text: &[u8]) -> Option<Atom> {
        let index = self.table.find(key, |&index| self.text(Atom(self.first + index)) == text)?;
        Some(Atom(self.first + index))
    }

    fn end(&self) -> u32 {
        self.first + self.ranges.len() as u32
    }
}

/// The atoms of a run: fixed names, texts of the prelude, texts of the script, then those it makes.
#[derive(Debug)]
pub struct Atoms {
    names: &'static FixedNames,
    prelude: &'static ProgramTexts,
    program: Arc<ProgramTexts>,
    /// Texts that the run has made.
    made: Vec<Box<[u8]>>,
    /// The atoms that the run has looked up by their text.
    table: HashTable<Atom>,
    /// The atoms of small indices that were looked up.
    indices: Vec<Option<Atom>>,
    /// Strings that were property names lately.
    recent: [(Value, Atom); RECENT],
}

/// How many strings are remembered with their atoms.
const RECENT: usize = 8;

/// How many texts a run that reads some data usually looks up: the first capacity of the table.
const USUAL: usize = 14;

/// The cost of a text that a run has made, beside the text: its entries in the list, which doubles, and in the table.
const MADE: usize = size_of::<Box<[u8]>>() * 3 / 2 + hash_cost::<Atom>();

/// Indices whose atoms are remembered.
const SMALL_INDICES: usize = 256;

impl Atoms {
    /// Returns the atoms of a run of a program.
    pub fn new(names: &'static FixedNames, prelude: &'static ProgramTexts, program: Arc<ProgramTexts>) -> Self {
        let (made, indices) = (Vec::new(), Vec::new());
        let recent = [(Value::UNDEFINED, known::EMPTY); RECENT];
        Self { names, prelude, program, made, table: HashTable::new(), indices, recent }
    }

    /// Returns the texts of all fixed names.
    pub fn fixed_bytes(&self) -> &Arc<[u8]> {
        &self.names.bytes
    }

    /// Returns the texts of the program.
    pub fn program_bytes(&self) -> &Arc<[u8]> {
        &self.program.bytes
    }

    /// The text of an atom, in WTF-8.
    pub fn text(&self, atom: Atom) -> &[u8] {
        if atom.0 < self.prelude.first {
            self.names.text(atom).as_bytes()
        } else if atom.0 < self.program.first {
            self.prelude.text(atom)
        } else if atom.0 < self.program.end() {
            self.program.text(atom)
        } else {
            &self.made[(atom.0 - self.program.end()) as usize]
        }
    }

    /// Whether it is a name of a built-in or in the text of the script.
    pub fn is_mentioned(&self, atom: Atom) -> bool {
        atom.0 < self.program.end()
    }

    /// The atom of a text, if there is one.
    pub fn find(&self, text: &[u8]) -> Option<Atom> {
        let key = hash(text);
        let known = self.find_fixed(key, text);
        if known.is_some() {
            return known;
        }
        self.table.find(key, |&atom| self.text(atom) == text).copied()
    }

    fn find_fixed(&self, key: u64, text: &[u8]) -> Option<Atom> {
        let program = || self.program.find(key, text);
        self.names.find(key, text).or_else(program).or_else(|| self.prelude.find(key, text))
    }

    /// The atom of a text, and how many bytes were allocated for it.
    fn intern(&mut self, text: &[u8]) -> (Atom, usize) {
        let key = hash(text);
        if let Some(&atom) = self.table.find(key, |&atom| self.text(atom) == text) {
            return (atom, 0);
        }
        let (atom, bytes) = match self.find_fixed(key, text) {
            Some(atom) => (atom, hash_cost::<Atom>()),
            None => {
                self.made.push(text.into());
                (Atom(self.program.end() + self.made.len() as u32 - 1), MADE + block(text.len()))
            }
        };
        let mut table = std::mem::take(&mut self.table);
        if table.capacity() == 0 {
            table.reserve(USUAL, |_| 0);
        }
        table.insert_unique(key, atom, |&other| hash(self.text(other)));
        self.table = table;
        (atom, bytes)
    }

    /// The atom of a string that was looked up lately.
    #[inline(always)]
    pub fn recent(&self, string: Value) -> Option<Atom> {
        let (handle, atom) = self.recent[string.index() % RECENT];
        (handle == string).then_some(atom)
    }

    /// Remember the atom of a string.
    pub fn remember(&mut self, string: Value, atom: Atom) {
        self.recent[string.index() % RECENT] = (string, atom);
    }

    /// Forget the strings of recent lookups: a collection may free them and reuse their handles.
    pub fn forget(&mut self) {
        self.recent = [(Value::UNDEFINED, known::EMPTY); RECENT];
    }

    /// The atom of an index as a name, if there is one.
    #[inline]
    pub fn find_index(&mut self, index: u32) -> Option<Atom> {
        match self.indices.get(index as usize) {
            Some(&Some(atom)) => Some(atom),
            _ => {
                let atom = self.find(digits(index, &mut [0; 10]))?;
                self.remember_index(index, atom);
                Some(atom)
            }
        }
    }

    /// The atom of an index as a name, and how many bytes were allocated for it.
    fn intern_index(&mut self, index: u32) -> (Atom, usize) {
        match self.find_index(index) {
            Some(atom) => (atom, 0),
            None => {
                let (atom, bytes) = self.intern(digits(index, &mut [0; 10]));
                self.remember_index(index, atom);
                (atom, bytes)
            }
        }
    }

    fn remember_index(&mut self, index: u32, atom: Atom) {
        let index = index as usize;
        if index < SMALL_INDICES {
            if self.indices.len() <= index {
                self.indices.resize((index + 1).next_power_of_two(), None);
            }
            self.indices[index] = Some(atom);
        }
    }

    /// The array index that a property name is, if it is one: `"12"`.
    pub fn index(&self, atom: Atom) -> Option<u32> {
        array_index(self.text(atom))
    }

    /// Returns the range of an atom's text in [`FixedNames::bytes`].
    pub fn fixed_range(&self, atom: Atom) -> Option<(u32, u32)> {
        self.names.ranges.get(atom.0 as usize).copied()
    }

    /// The range of an atom's text among the texts of the script.
    pub fn program_range(&self, atom: Atom) -> Option<(u32, u32)> {
        let range = self.program.first..self.program.end();
        range.contains(&atom.0).then(|| self.program.ranges[(atom.0 - self.program.first) as usize])
    }
}

impl Heap {
    /// The string of an atom.
    #[inline]
    pub fn atom_string(&mut self, atom: Atom) -> Value {
        match self.atom_strings.get(atom) {
            Some(string) => string,
            None => self.make_atom_string(atom),
        }
    }

    #[cold]
    fn make_atom_string(&mut self, atom: Atom) -> Value {
        let string = if let Some((start, length)) = self.atoms.fixed_range(atom) {
            self.builtin_string(start, length)
        } else if let Some((start, length)) = self.atoms.program_range(atom) {
            self.program_string(start, length)
        } else {
            let text: Box<[u8]> = self.atoms.text(atom).into();
            self.new_string(&text)
        };
        let bytes = self.atom_strings.set(atom, string);
        self.meter.keep_bytes(bytes);
        string
    }

    /// The atom of a string.
    #[inline]
    pub fn intern(&mut self, string: Value) -> Atom {
        let bytes = self.strings[string.index()].bytes(&self.buffers);
        let interned = self.atoms.intern(bytes);
        self.kept(interned)
    }

    /// The atom of a text.
    pub fn intern_text(&mut self, text: &str) -> Atom {
        self.intern_bytes(text.as_bytes())
    }

    /// The atom of a text in UTF-8.
    pub fn intern_bytes(&mut self, text: &[u8]) -> Atom {
        let interned = self.atoms.intern(text);
        self.kept(interned)
    }

    /// The atom of an array index.
    pub fn intern_index(&mut self, index: u32) -> Atom {
        let interned = self.atoms.intern_index(index);
        self.kept(interned)
    }

    /// Count the bytes of an atom that may be new: it stays until the run ends.
    #[inline]
    fn kept(&mut self, (atom, bytes): (Atom, usize)) -> Atom {
        if bytes > 0 {
            self.meter.keep_bytes(bytes);
        }
        atom
    }

    /// A new string of a text.
    pub fn string(&mut self, text: &str) -> Value {
        self.new_string(text.as_bytes())
    }

    /// The text of an atom for messages; a long one is cut.
    pub fn atom_text(&self, atom: Atom) -> String {
        cut_message_bytes(self.atoms.text(atom), MAX_MESSAGE_BYTES)
    }
}

/// The decimal digits of an index.
fn digits(index: u32, buffer: &mut [u8; 10]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = index;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &buffer[at..];
        }
    }
}

/// The strings of those atoms that a run needed as values. Stored in pages, because a script uses few of the many
/// names of built-ins, which come first.
#[derive(Debug, Default)]
pub struct AtomStrings {
    pages: Vec<Option<Box<[Value; PAGE]>>>,
}

const PAGE: usize = 32;
/// Pages that a script usually needs after the first one.
const SPARE_PAGES: usize = 4;

impl AtomStrings {
    /// The string of an atom, where it was set.
    #[inline(always)]
    pub fn get(&self, atom: Atom) -> Option<Value> {
        let page = self.pages.get(atom.0 as usize / PAGE)?.as_deref()?;
        Some(page[atom.0 as usize % PAGE]).filter(|string| string.is_string())
    }

    /// Set the string of an atom; gives how many bytes were allocated.
    pub fn set(&mut self, atom: Atom, string: Value) -> usize {
        let (number, index) = (atom.0 as usize / PAGE, atom.0 as usize % PAGE);
        let before = self.cost();
        if self.pages.len() <= number {
            // Reserve little: the names of a script come far behind those of built-ins, and few scripts have many.
            self.pages.reserve_exact((number + 1 + SPARE_PAGES - self.pages.len()).max(self.pages.len() / 2));
            self.pages.resize_with(number + 1, || None);
        }
        let page = &mut self.pages[number];
        let fresh = if page.is_none() { block(PAGE * 8) } else { 0 };
        page.get_or_insert_with(|| Box::new([Value::UNDEFINED; PAGE]))[index] = string;
        self.cost() - before + fresh
    }

    fn cost(&self) -> usize {
        self.pages.capacity() * 8
    }

    /// All values; `undefined` where a string was not set.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.pages.iter().flatten().flat_map(|page| page.iter().copied())
    }
}

/// The array index that a text is the canonical form of: 0 to 2³²−2.
pub fn array_index(text: &[u8]) -> Option<u32> {
    match text {
        [b'0'] => Some(0),
        [b'1'..=b'9', rest @ ..] if rest.len() < 10 && rest.iter().all(u8::is_ascii_digit) => {
            let number = text.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
            u32::try_from(number).ok().filter(|&index| index != u32::MAX)
        }
        _ => None,
    }
}

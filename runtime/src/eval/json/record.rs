//! Records: the property names of a shape as JSON text, computed once for reading and writing all objects of the shape.

use super::parse::ParserBuffers;
use super::stringify::{LONG, Open};
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::text::quote::quote_bytes;
use crate::value::atom::{Atom, known};

/// The names of a shape in the order of `Object.keys`.
pub struct Record {
    shape: u32,
    pub names: Box<[Name]>,
    /// All names, each in quotation marks and with its colon.
    text: Vec<u8>,
    /// Whether one of them is `toJSON`.
    pub to_json: bool,
    /// Whether reading these names in this order gives the shape: they have no escapes and are in the order of the
    /// slots.
    is_readable: bool,
}

/// A name.
#[derive(Clone, Copy)]
pub struct Name {
    pub key: PropertyKey,
    /// The slot or index of the value.
    pub slot: u32,
    /// The range of the name in the text.
    start: u32,
    end: u32,
}

impl Record {
    /// `None` where the names are too long to be worth caching, or one has to be charged each time that it is written.
    fn new(vm: &Vm, shape: u32) -> Option<Self> {
        let keys = vm.heap.shape_keys(shape);
        if keys.iter().any(|key| key.is_symbol()) {
            return None;
        }
        let length: usize = keys.iter().map(|&atom| vm.heap.atoms.text(atom).len() + size_of::<Name>()).sum();
        if length > MAX_NAME_LIST_BYTES || keys.iter().any(|&atom| vm.heap.atoms.text(atom).len() > LONG) {
            return None;
        }
        let mut text = Vec::with_capacity(keys.len() * 16); // bounded: by MAX_NAME_LIST_BYTES
        let mut is_readable = true;
        let mut names: Vec<Name> = Vec::with_capacity(keys.len()); // bounded: by MAX_NAME_LIST_BYTES
        for (slot, &atom) in keys.iter().enumerate() {
            let (start, name) = (text.len(), vm.heap.atoms.text(atom));
            quote_bytes(name, &mut text);
            is_readable &= text.len() == start + name.len() + 2;
            text.push(b':');
            let (start, end) = (start as u32, text.len() as u32);
            names.push(Name { key: vm.atom_key(atom), slot: slot as u32, start, end });
        }
        if names.iter().any(|name| matches!(name.key, PropertyKey::Index(_))) {
            is_readable = false;
            names.sort_by_key(|name| name.key.rank());
        }
        Some(Self { shape, names: names.into(), text, to_json: keys.contains(&known::TO_JSON), is_readable })
    }

    /// A name of this record as it is written, with its colon.
    #[inline(always)]
    pub fn text(&self, name: Name) -> &[u8] {
        self.text.get(name.start as usize..name.end as usize).unwrap_or(&[])
    }

    /// The atom of a name.
    pub fn atom(&self, index: usize) -> Option<Atom> {
        match self.names.get(index)?.key {
            PropertyKey::Name(atom) => Some(atom),
            PropertyKey::Index(_) => None,
        }
    }

    /// The shape.
    #[inline(always)]
    pub fn shape(&self) -> u32 {
        self.shape
    }
}

/// Most records, and the sizes of the lookup tables.
const MAX_RECORDS: usize = 256;
/// Most bytes of the names of a record. Records are not counted: together they take a few megabytes at most.
const MAX_NAME_LIST_BYTES: usize = 8 << 10;
const SHAPES: usize = 32;
const FIRST: usize = 16;
const NAMES: usize = 64;
/// No record.
const NONE: u16 = u16::MAX;

/// The records of a run since it was idle, by number.
pub struct Records {
    list: Vec<Record>,
    /// The last record of a shape.
    by_shape: [u16; SHAPES],
    /// The latest record that begins with a name.
    by_first: [u16; FIRST],
    /// Names that were read lately.
    names: [Atom; NAMES],
    /// Memory of the parser, reused for the next text.
    pub(super) buffers: ParserBuffers,
    /// Memory of the writer, reused.
    pub(super) writing: Vec<Open>,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            list: vec![],
            by_shape: [NONE; SHAPES],
            by_first: [NONE; FIRST],
            names: [known::EMPTY; NAMES],
            buffers: ParserBuffers::default(),
            writing: vec![],
        }
    }
}

impl std::ops::Index<u16> for Records {
    type Output = Record;
    #[inline(always)]
    fn index(&self, number: u16) -> &Record {
        &self.list[usize::from(number)]
    }
}

impl Records {
    /// The record of a shape; none where there are too many.
    #[inline]
    pub fn for_shape(&mut self, vm: &Vm, shape: u32) -> Option<u16> {
        let number = self.by_shape[shape as usize % SHAPES];
        match self.list.get(usize::from(number)) {
            Some(record) if record.shape == shape => Some(number),
            _ => self.find_shape(vm, shape),
        }
    }

    #[inline(never)]
    fn find_shape(&mut self, vm: &Vm, shape: u32) -> Option<u16> {
        let number = match self.list.iter().position(|record| record.shape == shape) {
            Some(number) => number,
            None if self.list.len() >= MAX_RECORDS => return None,
            None => {
                self.list.push(Record::new(vm, shape)?);
                self.list.len() - 1
            }
        };
        let number = u16::try_from(number).ok()?;
        self.by_shape[shape as usize % SHAPES] = number;
        Some(number)
    }

    /// The record of the latest objects that begin with a name.
    pub fn starting_with(&self, first: Atom) -> Option<u16> {
        let number = self.by_first[first.0 as usize % FIRST];
        let record = self.list.get(usize::from(number))?;
        (record.atom(0) == Some(first)).then_some(number)
    }

    /// Add the record of a shape that begins with a name, for further objects of the text.
    pub fn predict(&mut self, vm: &Vm, shape: u32, first: Atom) -> Option<u16> {
        let number = self.for_shape(vm, shape)?;
        if !self[number].is_readable {
            return None;
        }
        self.by_first[first.0 as usize % FIRST] = number;
        Some(number)
    }

    /// The atom of a name in a text.
    pub fn name(&mut self, vm: &mut Vm, text: &[u8]) -> Atom {
        let index = match text {
            [first, .., last] => usize::from(*first) ^ usize::from(*last) << 2 ^ text.len() << 4,
            [only] => usize::from(*only),
            [] => 0,
        } % NAMES;
        let atom = self.names[index];
        if vm.heap.atoms.text(atom) == text {
            return atom;
        }
        let atom = vm.heap.intern_bytes(text);
        self.names[index] = atom;
        atom
    }
}

/// Take the records of the run while a text is read or written.
pub(super) fn take_records(vm: &mut Vm) -> Box<Records> {
    vm.pools.records.take().filter(|records| records.list.len() < MAX_RECORDS).unwrap_or_default()
}

//! Strings: headers over shared buffers.
//!
//! Text is WTF-8: UTF-8 in which a lone surrogate stands as three bytes. Lengths and positions that
//! scripts see are UTF-16 code units. A string whose units equal its bytes is ASCII. Slices share
//! the buffer of their string; `a += b` appends in place when `a` ends where its buffer ends.

use super::collect::Marks;
use super::{Heap, Meter, Slab, block, hash_cost, slab_cost};
use crate::meter::buffer::LARGE;
use crate::text::wtf8::{has_split_pair, lossy, push_utf16, splits_pair, to_utf16, units, wtf8_length};
use crate::value::{Kind, Value};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// Header of a string.
#[derive(Clone, Copy)]
pub struct Str {
    buffer: u32,
    start: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// Length in UTF-16 code units.
    pub units: u32,
}

/// The cost of the UTF-16 copy of a string.
fn wide_cost(units: usize) -> usize {
    hash_cost::<(u32, Box<[u16]>)>() + block(units * 2)
}

impl Str {
    const COST: usize = slab_cost::<Self>();

    /// Whether all characters are ASCII.
    #[inline(always)]
    pub fn is_ascii(&self) -> bool {
        self.bytes == self.units
    }

    #[inline]
    pub(super) fn bytes<'a>(&self, buffers: &'a [Buffer]) -> &'a [u8] {
        &buffers[self.buffer as usize].bytes()[self.start as usize..][..self.bytes as usize]
    }
}

/// A buffer that strings share.
pub enum Buffer {
    /// Of the built-ins or of the script: never written to.
    Shared(Arc<[u8]>),
    /// Of the run. Strings may grow into the capacity after the contents, and into the first `front` bytes.
    Owned { bytes: Vec<u8>, front: usize },
}

impl Buffer {
    /// A buffer of the run.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self::Owned { bytes, front: 0 }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Owned { bytes, .. } => bytes,
        }
    }

    /// Its capacity, where it is of the run.
    fn room(&self) -> usize {
        match self {
            Self::Shared(_) => 0,
            Self::Owned { bytes, .. } => bytes.capacity(),
        }
    }

    /// Bytes that count as used by the run.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Shared(_) => 0,
            Self::Owned { bytes, .. } => size_of::<Self>() + block(bytes.capacity()),
        }
    }
}

/// Size of the buffers that small strings share; the first ones of a run are smaller.
const CHUNK: usize = 16 << 10;
const FIRST_CHUNK: usize = 1 << 8;
/// Strings longer than this get a buffer of their own.
pub const SMALL: usize = 512;

/// The texts of the strings of a heap.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    strings: &'a Slab<Str>,
    buffers: &'a [Buffer],
    wide: &'a HashMap<u32, Box<[u16]>>,
}

impl<'a> Texts<'a> {
    /// The bytes of a string, in WTF-8.
    pub fn bytes(&self, string: Value) -> &'a [u8] {
        self.strings[string.index()].bytes(self.buffers)
    }

    /// The UTF-16 code units of a string that [`Heap::keep_utf16`] was given; none of another one.
    pub fn utf16(&self, string: Value) -> &'a [u16] {
        self.wide.get(&string.payload()).map_or(&[], |units| units)
    }
}

impl Heap {
    /// The texts of all strings, apart from the meter.
    pub fn texts(&mut self) -> (Texts<'_>, &mut Meter) {
        (Texts { strings: &self.strings, buffers: &self.buffers, wide: &self.wide }, &mut self.meter)
    }

    /// The header of a string.
    #[inline(always)]
    pub fn str(&self, string: Value) -> Str {
        debug_assert!(string.is_string());
        self.strings[string.index()]
    }

    /// The bytes of a string, in WTF-8.
    #[inline]
    pub fn bytes(&self, string: Value) -> &[u8] {
        self.str(string).bytes(&self.buffers)
    }

    /// The text of a string; lone surrogates become U+FFFD.
    pub fn text(&self, string: Value) -> Cow<'_, str> {
        lossy(self.bytes(string))
    }

    fn header(&mut self, buffer: usize, start: usize, bytes: usize, units: usize) -> Value {
        self.meter.add_bytes(Str::COST);
        // An empty string keeps no buffer alive, so it must not point into one that may be freed.
        let (buffer, start) = if bytes == 0 { (0, 0) } else { (buffer, start) };
        let header = Str { buffer: buffer as u32, start: start as u32, bytes: bytes as u32, units: units as u32 };
        Value::handle(Kind::String, self.strings.add(header))
    }

    /// A string that is part of the texts of the built-ins.
    pub fn builtin_string(&mut self, start: u32, bytes: u32) -> Value {
        self.header(0, start as usize, bytes as usize, bytes as usize)
    }

    /// A string that is part of the texts of the script.
    pub fn program_string(&mut self, start: u32, bytes: u32) -> Value {
        let units = units(&self.buffers[1].bytes()[start as usize..][..bytes as usize]);
        self.header(1, start as usize, bytes as usize, units)
    }

    /// A new string of WTF-8 bytes.
    pub fn new_string(&mut self, bytes: &[u8]) -> Value {
        self.new_counted(bytes, units(bytes))
    }

    /// A new string of ASCII.
    pub fn new_ascii(&mut self, bytes: &[u8]) -> Value {
        self.new_counted(bytes, bytes.len())
    }

    /// A new string of WTF-8 bytes that are so many code units.
    pub fn new_counted(&mut self, bytes: &[u8], units: usize) -> Value {
        if bytes.len() > SMALL {
            return self.own_buffer(bytes.to_vec(), units);
        }
        let chunk = self.room(bytes.len());
        let Buffer::Owned { bytes: buffer, .. } = &mut self.buffers[chunk] else { return Value::UNDEFINED };
        let start = buffer.len();
        buffer.extend_from_slice(bytes);
        self.header(chunk, start, bytes.len(), units)
    }

    /// A new string that takes over `bytes`, which are WTF-8.
    pub fn take_string(&mut self, mut bytes: Vec<u8>) -> Value {
        if bytes.len() > SMALL {
            let slack = bytes.capacity() - bytes.len();
            if slack > LARGE && slack > bytes.len() / 4 {
                bytes.shrink_to_fit();
            }
            let units = units(&bytes);
            return self.own_buffer(bytes, units);
        }
        self.new_string(&bytes)
    }

    /// An empty buffer to write a string into, for [`Heap::written`].
    pub fn scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    /// A new string of parts that were concatenated in a scratch buffer, where halves of a surrogate pair may have met.
    pub(super) fn take_parts(&mut self, mut bytes: Vec<u8>) -> Value {
        if has_split_pair(&bytes) {
            return self.new_utf16(&to_utf16(&bytes));
        }
        if bytes.len() > SMALL {
            return self.take_string(bytes);
        }
        let string = self.new_string(&bytes);
        bytes.clear();
        self.scratch = bytes;
        string
    }

    /// A copy of a string in ASCII whose bytes are changed to other ASCII.
    pub fn changed_ascii(&mut self, string: Value, change: fn(&mut [u8])) -> Value {
        let header = self.str(string);
        let length = header.bytes as usize;
        if length > SMALL {
            let mut bytes = self.bytes(string).to_vec();
            change(&mut bytes);
            return self.own_buffer(bytes, length);
        }
        let chunk = self.room(length);
        let start = self.append(chunk, header);
        if let Buffer::Owned { bytes, .. } = &mut self.buffers[chunk] {
            change(&mut bytes[start..]);
        }
        self.header(chunk, start, length, length)
    }

    /// A new string of UTF-16 code units.
    pub fn new_utf16(&mut self, units: &[u16]) -> Value {
        let mut bytes = Vec::with_capacity(if units.len() <= SMALL { units.len() } else { wtf8_length(units) });
        push_utf16(units, &mut bytes);
        self.take_string(bytes)
    }

    /// A string that is part of a buffer of the heap.
    #[inline]
    pub fn part_of(&mut self, buffer: usize, start: usize, bytes: usize, units: usize) -> Value {
        self.header(buffer, start, bytes, units)
    }

    /// Whether substrings of a string of so many bytes should share its buffer rather than be copied.
    pub fn worth_sharing(bytes: usize) -> bool {
        bytes > SMALL
    }

    /// Take over bytes that strings will share.
    pub fn share(&mut self, bytes: Vec<u8>) -> usize {
        self.add_buffer(bytes)
    }

    /// Take a buffer out temporarily; meanwhile its strings must not be read.
    pub fn lend(&mut self, buffer: usize) -> Buffer {
        std::mem::replace(&mut self.buffers[buffer], Buffer::from_bytes(Vec::new()))
    }

    /// Put a buffer back.
    pub fn give_back(&mut self, buffer: usize, bytes: Buffer) {
        self.buffers[buffer] = bytes;
    }

    /// Where the bytes of a string are: the buffer and the offset in it; `None` in the buffer of small strings.
    pub fn buffer_position(&self, string: Value) -> Option<(usize, usize)> {
        let header = self.str(string);
        let buffer = header.buffer as usize;
        (self.chunk != Some(buffer)).then_some((buffer, header.start as usize))
    }

    fn own_buffer(&mut self, bytes: Vec<u8>, units: usize) -> Value {
        let length = bytes.len();
        let buffer = self.add_buffer(bytes);
        self.header(buffer, 0, length, units)
    }

    /// A buffer with room for `length` more bytes.
    fn room(&mut self, length: usize) -> usize {
        if let Some(chunk) = self.chunk
            && let Buffer::Owned { bytes: buffer, .. } = &self.buffers[chunk]
            && buffer.capacity() - buffer.len() >= length
        {
            return chunk;
        }
        let capacity = self.chunk.map_or(FIRST_CHUNK, |chunk| (self.buffers[chunk].room() * 2).min(CHUNK)).max(length);
        let chunk = self.add_buffer(Vec::with_capacity(capacity));
        self.chunk = Some(chunk);
        chunk
    }

    /// `left + right` for strings. The caller has checked the length.
    pub fn concat(&mut self, left: Value, right: Value) -> Value {
        let (a, b) = (self.str(left), self.str(right));
        if a.bytes == 0 {
            return right;
        }
        if b.bytes == 0 {
            return left;
        }
        if !a.is_ascii() && !b.is_ascii() && splits_pair(self.bytes(left), self.bytes(right)) {
            let mut joined = to_utf16(self.bytes(left));
            joined.extend(to_utf16(self.bytes(right)));
            return self.new_utf16(&joined);
        }
        if a.bytes < b.bytes && !self.has_room_behind(a, b.bytes as usize) && (a.bytes + b.bytes) as usize > SMALL {
            return self.prepend(a, b);
        }
        let (buffer, start) = self.extend(a, b.bytes as usize);
        self.append(buffer, b);
        self.header(buffer, start, (a.bytes + b.bytes) as usize, (a.units + b.units) as usize)
    }

    /// `left` followed by ASCII. The caller has checked the length.
    pub fn concat_ascii(&mut self, left: Value, right: &[u8]) -> Value {
        let a = self.str(left);
        let (buffer, start) = self.extend(a, right.len());
        if let Buffer::Owned { bytes, .. } = &mut self.buffers[buffer] {
            let before = bytes.capacity();
            make_room(bytes, right.len(), &self.meter);
            bytes.extend_from_slice(right);
            let grown = bytes.capacity() - before;
            self.meter.add_bytes(grown);
        }
        self.header(buffer, start, a.bytes as usize + right.len(), a.units as usize + right.len())
    }

    /// An owned buffer that ends with a string, to append `more` bytes to; where the string begins in it.
    fn extend(&mut self, string: Str, more: usize) -> (usize, usize) {
        let length = string.bytes as usize + more;
        let buffer = string.buffer as usize;
        if self.has_room_behind(string, more) {
            return (buffer, string.start as usize);
        }
        let buffer = if length <= SMALL {
            self.room(length)
        } else {
            // A string that grew once will grow again.
            self.add_buffer(Vec::with_capacity(length + self.meter.spare(length)))
        };
        (buffer, self.append(buffer, string))
    }

    /// How many bytes appending so many to a string allocates; includes the string where it has to be copied.
    #[cold]
    pub fn bytes_to_append(&self, string: Str, more: usize) -> usize {
        match &self.buffers[string.buffer as usize] {
            Buffer::Owned { bytes, .. } if self.has_room_behind(string, more) => {
                (bytes.len() + more).saturating_sub(bytes.capacity())
            }
            Buffer::Owned { .. } | Buffer::Shared(_) => string.bytes as usize + more,
        }
    }

    /// Whether so many bytes can be appended to a string in its buffer.
    #[inline]
    fn has_room_behind(&self, string: Str, more: usize) -> bool {
        let buffer = string.buffer as usize;
        let Buffer::Owned { bytes, .. } = &self.buffers[buffer] else { return false };
        (string.start + string.bytes) as usize == bytes.len()
            && (self.chunk != Some(buffer)
                || bytes.capacity() - bytes.len() >= more && string.bytes as usize + more <= SMALL)
    }

    /// Prepend a string to a longer one: into the room before it, or into a new buffer with such room.
    fn prepend(&mut self, left: Str, right: Str) -> Value {
        let (length, units) = ((left.bytes + right.bytes) as usize, (left.units + right.units) as usize);
        let added = left.bytes as usize;
        let [from, target] = [left, right].map(|string| string.buffer as usize);
        let source = left.start as usize..left.start as usize + added;
        if let Buffer::Owned { bytes, front } = &mut self.buffers[target]
            && right.start as usize == *front
            && *front >= added
        {
            *front -= added;
            let start = *front;
            if from == target {
                bytes.copy_within(source, start);
            } else if let Ok([Buffer::Owned { bytes, .. }, source_buffer]) =
                self.buffers.get_disjoint_mut([target, from])
            {
                bytes[start..start + added].copy_from_slice(&source_buffer.bytes()[source]);
            }
            return self.header(target, start, length, units);
        }
        let room = self.meter.spare(length);
        let mut bytes = Vec::with_capacity(room + length);
        bytes.resize(room, 0);
        bytes.extend_from_slice(&self.buffers[from].bytes()[source]);
        bytes.extend_from_slice(&self.buffers[target].bytes()[right.start as usize..][..right.bytes as usize]);
        let buffer = self.add_buffer(bytes);
        if let Buffer::Owned { front, .. } = &mut self.buffers[buffer] {
            *front = room;
        }
        self.header(buffer, room, length, units)
    }

    /// Append the bytes of a string to an owned buffer; gives where they begin.
    fn append(&mut self, target: usize, string: Str) -> usize {
        let range = string.start as usize..(string.start + string.bytes) as usize;
        let source = string.buffer as usize;
        let (start, before, after);
        if source == target {
            let Buffer::Owned { bytes, .. } = &mut self.buffers[target] else { return 0 };
            (start, before) = (bytes.len(), bytes.capacity());
            make_room(bytes, range.len(), &self.meter);
            bytes.extend_from_within(range);
            after = bytes.capacity();
        } else {
            let Ok([target, source]) = self.buffers.get_disjoint_mut([target, source]) else { return 0 };
            let Buffer::Owned { bytes, .. } = target else { return 0 };
            (start, before) = (bytes.len(), bytes.capacity());
            make_room(bytes, range.len(), &self.meter);
            bytes.extend_from_slice(&source.bytes()[range]);
            after = bytes.capacity();
        }
        self.meter.add_bytes(after - before);
        start
    }

    /// The part of a string between two byte positions, which are boundaries of characters.
    pub fn slice_bytes(&mut self, string: Value, start: usize, end: usize) -> Value {
        let Str { buffer, start: base, bytes, units: all } = self.str(string);
        if start == 0 && end == bytes as usize {
            return string;
        }
        let units = if bytes == all { end - start } else { units(&self.bytes(string)[start..end]) };
        self.header(buffer as usize, base as usize + start, end - start, units)
    }

    /// The UTF-16 code units of a string that [`Heap::keep_utf16`] was given; none of another one.
    pub fn known_utf16(&self, string: Value) -> &[u16] {
        self.wide.get(&string.payload()).map_or(&[], |units| units)
    }

    /// Whether the UTF-16 code units of a string are kept.
    pub fn has_utf16(&self, string: Value) -> bool {
        self.wide.contains_key(&string.payload())
    }

    /// Keep the UTF-16 code units of a string that is not ASCII.
    pub fn keep_utf16(&mut self, string: Value, units: Vec<u16>) {
        self.meter.add_bytes(wide_cost(units.len()));
        self.wide.insert(string.payload(), units.into());
    }

    /// Sweep strings by the marks of their headers; gives the bytes in use.
    pub(super) fn sweep_strings(&mut self, marks: &mut Marks) -> usize {
        let used = self.strings.sweep(marks, |_| {});
        let mut kept = vec![0_usize; self.buffers.len()];
        for index in marks.iter() {
            let header = &self.strings[index];
            kept[header.buffer as usize] += header.bytes as usize;
        }
        self.wide.retain(|&index, _| marks.get(index as usize));
        self.compact(&kept, marks);
        let wide: usize = self.wide.values().map(|units| wide_cost(units.len())).sum();
        used * Str::COST + wide + self.buffers.iter().map(Buffer::cost).sum::<usize>()
    }

    /// Release memory that no string uses.
    pub(super) fn shrink_strings(&mut self) {
        self.chunk = None;
        self.scratch = Vec::new();
        for buffer in &mut self.buffers {
            if let Buffer::Owned { bytes, .. } = buffer {
                let before = bytes.capacity();
                bytes.shrink_to_fit();
                self.meter.bytes = self.meter.bytes.saturating_sub(before - bytes.capacity());
            }
        }
        self.buffers.shrink_to_fit();
        self.free_buffers.shrink_to_fit();
    }

    /// Free buffers that no string uses, and copy what is left out of those that are mostly empty.
    fn compact(&mut self, kept: &[usize], live: &Marks) {
        self.chunk = self.chunk.filter(|&chunk| kept[chunk] > 0);
        let sparse: Vec<bool> = (0..self.buffers.len())
            .map(|index| Some(index) != self.chunk && kept[index] * 2 < self.buffers[index].room())
            .collect();
        let (strings, buffers) = (&mut self.strings, &mut self.buffers);
        let mut target: Option<usize> = None;
        for index in live.iter() {
            let header = &mut strings[index];
            let source = header.buffer as usize;
            if header.bytes == 0 || !sparse.get(source).copied().unwrap_or(false) {
                continue;
            }
            let slot = match target {
                Some(slot) if buffers[slot].bytes().len() < CHUNK => slot,
                _ => self.free_buffers.pop().unwrap_or_else(|| {
                    buffers.push(Buffer::from_bytes(Vec::new()));
                    buffers.len() - 1
                }),
            };
            target = Some(slot);
            let Ok([source, Buffer::Owned { bytes: fresh, .. }]) = buffers.get_disjoint_mut([source, slot]) else {
                continue;
            };
            let range = header.start as usize..(header.start + header.bytes) as usize;
            header.buffer = slot as u32;
            header.start = fresh.len() as u32;
            fresh.extend_from_slice(&source.bytes()[range]);
        }
        self.free_buffers.clear();
        for (index, buffer) in self.buffers.iter_mut().enumerate() {
            let Buffer::Owned { bytes, front } = buffer else { continue };
            if sparse.get(index).copied().unwrap_or(false) {
                (*bytes, *front) = (Vec::new(), 0);
            }
            if bytes.capacity() == 0 && Some(index) != self.chunk {
                self.free_buffers.push(index);
            }
        }
    }

    /// Add a buffer; gives its number.
    fn add_buffer(&mut self, bytes: Vec<u8>) -> usize {
        let buffer = Buffer::from_bytes(bytes);
        self.meter.add_bytes(buffer.cost());
        if let Some(index) = self.free_buffers.pop() {
            self.buffers[index] = buffer;
            return index;
        }
        self.buffers.push(buffer);
        self.buffers.len() - 1
    }
}

/// Make room for so many more bytes in a large buffer; a small one doubles by itself.
#[inline]
fn make_room(bytes: &mut Vec<u8>, more: usize, meter: &Meter) {
    if bytes.capacity() - bytes.len() < more && bytes.capacity() >= LARGE {
        grow_large(bytes, more, meter);
    }
}

#[cold]
#[inline(never)]
fn grow_large(bytes: &mut Vec<u8>, more: usize, meter: &Meter) {
    bytes.reserve_exact(more + meter.spare(bytes.len() + more));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;
    use crate::heap::atoms::{Atoms, FixedNames, ProgramTexts};
    use crate::interface::limits::{Policy, Preset};
    use crate::meter::timer::Timer;
    use std::sync::Arc;

    /// Bytes allocated for appending, prepending and surrounding a string with a character `turns` times.
    fn bytes_for(turns: usize, grow: impl Fn(&mut Heap, Value, Value) -> Value) -> usize {
        let limits = Policy::preset(Preset::Experimental).limits;
        let names: &FixedNames = Box::leak(Box::new(FixedNames::new()));
        let texts: &ProgramTexts = Box::leak(Box::default());
        let atoms = Atoms::new(names, texts, Arc::default());
        let mut heap = Heap::new(Meter::new(limits, Timer::new(Arc::new(SystemClock), None)), atoms);
        let part = heap.new_string(b"x");
        let mut string = part;
        for _ in 0..turns {
            string = grow(&mut heap, string, part);
        }
        assert!(heap.bytes(string).iter().all(|&byte| byte == b'x'));
        heap.meter.bytes
    }

    #[test]
    fn growing_a_string_takes_linear_room() {
        let ways: [fn(&mut Heap, Value, Value) -> Value; 4] = [
            |heap, string, part| heap.concat(string, part),
            |heap, string, part| heap.concat(part, string),
            |heap, string, _| heap.concat_ascii(string, b"x"),
            |heap, string, part| {
                let string = heap.concat(part, string);
                heap.concat(string, part)
            },
        ];
        for (index, way) in ways.into_iter().enumerate() {
            let (few, many) = (bytes_for(5_000, way), bytes_for(50_000, way));
            assert!(many < few * 13, "{index}: {few} bytes, then {many}");
        }
    }
}

//! Metered access for built-in functions: reading data of a script and growing memory, both charged before they happen.
//!
//! **Reading.** A string, a BigInt, an array, a map or an object may be as large as the memory of the run. A built-in
//! reads one by a method of [`Heap`] whose name begins with `charged_`. It charges fuel in proportion *before* it gives
//! the data, so the limits of time and steps are checked before the work. Or the built-in charges for all of its work
//! ([`Meter::work`], [`Heap::charge_bytes`]), and shows the [`Charge`] that it gets to a method whose name begins with
//! `read_`. A bounded part, such as `Heap::string_byte`, needs none (`charge/read.rs`).
//! `Heap::bytes`, `Heap::items` and the like charge nothing: they are for the interpreter itself, and the test in
//! `charge/guard.rs` refuses them in built-ins.
//!
//! **Growing.** Data that grows with data of a script grows in a [`Buffer`]: it counts before it allocates, and stops at
//! the limit. When it becomes a string or an array ([`Heap::string_of`], [`Heap::array_of`]) its memory is handed over;
//! when it is dropped it is given back at once. Memory of another form, whose size is known before, is counted by a
//! [`Hold`] beside it ([`Heap::hold`]), and a [`Charge`] makes the list or text. `brief!` formats short text. Live data,
//! garbage and held data never pass [`Meter::most_bytes`].

#[cfg(test)]
mod guard;
mod read;

use super::{Heap, Held};
use crate::meter::buffer::{Buffer, Hold, Metered, SMALL};
use crate::meter::{Charge, Meter};
use crate::text::wtf8::{
    has_split_pair, join_pairs, push_utf16, push_wtf8, units, utf16_pieces, wtf8_length, wtf8_pieces,
};
use crate::value::atom::Atom;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use num_bigint::BigInt;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes that are scanned in about the time of one statement.
pub const BYTES_A_STEP: usize = 64;
/// Bytes or code units that are translated from UTF-8 to UTF-16, or back, in that time.
const TRANSLATED_A_STEP: usize = 16;
/// How many of them are translated between two charges.
pub const PIECE: usize = 32 << 10;
/// How many bytes or items are copied between two charges.
const COPIED: usize = 128 << 10;
/// The first byte of a surrogate in WTF-8, and of other characters.
const SURROGATE: u8 = 0xED;
impl Metered for Heap {
    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Heap {
    /// Charge for a scan of so many bytes.
    #[inline]
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<Charge> {
        self.meter.work(1 + bytes / BYTES_A_STEP)
    }

    /// Charge for a scan of a string: one step for every 64 bytes.
    #[inline]
    pub fn charge_string(&mut self, string: Value) -> Result<Charge> {
        self.charge_bytes(self.str(string).bytes as usize)
    }

    /// The bytes of a string in WTF-8, charged for: one step for every 64.
    pub fn charged_bytes(&mut self, string: Value) -> Result<&[u8]> {
        let charge = self.charge_string(string)?;
        Ok(self.read_bytes(string, charge))
    }

    /// The UTF-16 code units of a string, charged and counted in pieces the first time, and kept for the next one.
    pub fn charged_utf16(&mut self, string: Value) -> Result<&[u16]> {
        if !self.has_utf16(string) {
            let units = self.charged_utf16_copy(string)?;
            self.keep_utf16(string, units.into_vec());
        }
        Ok(self.known_utf16(string))
    }

    /// A copy of these, charged and counted in pieces.
    pub fn charged_utf16_copy(&mut self, string: Value) -> Result<Buffer<u16>> {
        let mut out = Buffer::with_capacity(self, self.str(string).units as usize)?;
        let (texts, meter) = self.texts();
        for piece in wtf8_pieces(texts.bytes(string), PIECE) {
            meter.work(1 + piece.len() / TRANSLATED_A_STEP)?;
            out.write(&*meter, units(piece), |out| push_wtf8(piece, out))?;
        }
        Ok(out)
    }

    /// The code unit at a position of a string, if there is one.
    pub fn code_unit(&mut self, string: Value, index: usize) -> Result<Option<u16>> {
        if self.str(string).is_ascii() {
            return Ok(self.bytes(string).get(index).map(|&byte| u16::from(byte)));
        }
        Ok(self.charged_utf16(string)?.get(index).copied())
    }

    /// A copy of these, charged and counted.
    pub fn charged_copy(&mut self, string: Value) -> Result<Buffer<u8>> {
        let mut copy = Buffer::new();
        self.charged_append(string, &mut copy)?;
        Ok(copy)
    }

    /// Append the bytes of a string, charged and counted.
    pub fn charged_append(&mut self, string: Value, out: &mut Buffer<u8>) -> Result<()> {
        let bytes = self.str(string).bytes as usize;
        if bytes > COPIED {
            out.make_room(self, bytes)?;
        }
        let mut from = 0;
        loop {
            let to = bytes.min(from + COPIED);
            self.charge_bytes(to - from)?;
            out.extend_from_slice(self, &self.bytes(string)[from..to])?;
            if to == bytes {
                return Ok(());
            }
            from = to;
        }
    }

    /// The text of a string, charged for; lone surrogates become U+FFFD. Where there are such it is a copy, for
    /// which room is asked before.
    pub fn charged_text(&mut self, string: Value) -> Result<Cow<'_, str>> {
        let header = self.str(string);
        self.charge_bytes(header.bytes as usize)?;
        if !header.is_ascii() && std::str::from_utf8(self.bytes(string)).is_err() {
            self.meter.check(header.bytes as usize)?;
        }
        Ok(self.text(string))
    }

    /// The same as a text of its own.
    pub fn charged_string(&mut self, string: Value) -> Result<String> {
        Ok(self.charged_text(string)?.into_owned())
    }

    /// A BigInt, charged for: one step for every 512 bits. Work beyond one pass over the digits is the caller's to
    /// charge.
    pub fn charged_bigint(&mut self, bigint: Value) -> Result<&BigInt> {
        let bits = self.bigints[bigint.index()].bits();
        self.meter.work(1 + usize::try_from(bits / 512).unwrap_or(usize::MAX))?;
        Ok(&self.bigints[bigint.index()])
    }

    /// The items of an array, charged for: one step for every 8. Work beyond reading or copying them is the caller's
    /// to charge.
    #[inline]
    pub fn charged_items(&mut self, array: Value) -> Result<&[Value]> {
        self.densify(array)?;
        self.meter.work(self.items(array).len() / 8)?;
        Ok(self.items(array))
    }

    /// A copy of these, charged and counted.
    pub fn charged_items_copy(&mut self, array: Value) -> Result<Buffer<Value>> {
        let mut copy = Buffer::new();
        self.charged_append_items(array, &mut copy)?;
        Ok(copy)
    }

    /// Append the items of an array, charged and counted.
    pub fn charged_append_items(&mut self, array: Value, out: &mut Buffer<Value>) -> Result<()> {
        self.densify(array)?;
        let items = self.items(array).len();
        if items > COPIED {
            out.make_room(self, items)?;
        }
        for from in (0..items).step_by(COPIED) {
            let to = items.min(from + COPIED);
            self.meter.work((to - from) / 8)?;
            out.extend_from_slice(self, &self.items(array)[from..to])?;
        }
        Ok(())
    }

    /// The items of a sparse array in a range of indices, without its holes, charged and counted: one step for each.
    pub fn charged_sparse_items(&mut self, array: Value, range: Range<usize>) -> Result<Buffer<(u32, Value)>> {
        let count = self.sparse_count(array);
        self.meter.work(1 + count)?;
        let mut copy = Buffer::with_capacity(self, count)?;
        copy.extend(self, self.sparse_items(array, range))?;
        Ok(copy)
    }

    /// Make an array dense if it is sparse, for what reads all of its items and holes; charged and counted.
    #[inline]
    pub fn densify(&mut self, array: Value) -> Result<()> {
        if self.is_sparse(array) { self.densified(array) } else { Ok(()) }
    }

    #[cold]
    fn densified(&mut self, array: Value) -> Result<()> {
        let length = self.length(array);
        self.meter.check(length.saturating_mul(size_of::<Value>()))?;
        self.meter.work(length / 8 + self.sparse_count(array))?;
        self.make_dense(array);
        Ok(())
    }

    /// The bytes of a `Uint8Array` or an `ArrayBuffer`, charged for: one step for every 64.
    pub fn charged_view(&mut self, value: Value) -> Result<&[u8]> {
        self.charge_bytes(self.view_bytes(value).len())?;
        Ok(self.view_bytes(value))
    }

    /// A copy of a part of these, charged and counted.
    pub fn charged_view_copy(&mut self, value: Value, range: Range<usize>) -> Result<Buffer<u8>> {
        self.charge_bytes(range.len())?;
        let mut copy = Buffer::with_capacity(self, range.len())?;
        copy.extend_from_slice(self, self.view_bytes(value).get(range).unwrap_or_default())?;
        Ok(copy)
    }

    /// So many zeros, charged and counted.
    pub fn zeros(&mut self, length: usize) -> Result<Buffer<u8>> {
        self.charge_bytes(length)?;
        let hold = self.hold(length)?;
        Ok(Buffer::from_parts(vec![0; length], hold))
    }

    /// A new `Uint8Array` that takes over the bytes of a buffer.
    pub fn bytes_of(&mut self, bytes: Buffer<u8>) -> Value {
        self.new_bytes(bytes.into_vec())
    }

    /// The entries of a `Map` or `Set`, charged and counted: one step for every 8, removed ones included. In a `Set` keys
    /// are the values.
    pub fn charged_entries(&mut self, map: Value) -> Result<Buffer<(Value, Value)>> {
        let data = &self.maps[map.index()];
        let (length, entries) = (data.len(), data.entry_count());
        self.meter.work(1 + entries / 8)?;
        let mut copy = Buffer::with_capacity(self, length)?;
        copy.extend(self, self.maps[map.index()].entries())?;
        Ok(copy)
    }

    /// The own properties of an object in the order they were made, charged and counted: one step for every 8.
    pub fn charged_own_entries(&mut self, object: Value) -> Result<Buffer<(Atom, Held)>> {
        let count = self.own_len(object);
        self.meter.work(count / 8)?;
        let hold = self.hold(count.saturating_mul(size_of::<(Atom, Held)>()))?;
        Ok(Buffer::from_parts(self.own_entries(object), hold))
    }

    /// How many indices a string or a list that is not sparse has, holes included.
    pub fn dense_count(&self, value: Value) -> usize {
        match value.kind() {
            Kind::Array if !self.is_sparse(value) => self.length(value),
            Kind::String => self.str(value).units as usize,
            Kind::Uint8Array => self.view_length(value),
            _ => 0,
        }
    }

    /// About how many own properties of a value would be listed.
    pub fn own_count(&self, value: Value) -> usize {
        let named = |object: u32| self.own_len(Value::handle(Kind::Object, object));
        let extra = || self.extras.get(&value).map_or(0, |&extra| named(extra));
        match value.kind() {
            Kind::Object => self.own_len(value),
            Kind::Array if self.is_sparse(value) => self.sparse_count(value) + extra(),
            Kind::String => self.dense_count(value),
            Kind::Array | Kind::Uint8Array => self.dense_count(value) + extra(),
            _ => 1 + extra(),
        }
    }

    /// Count so many bytes of temporary memory until the hold is dropped; an error where they do not fit.
    pub fn hold(&self, bytes: usize) -> Result<Hold> {
        let mut hold = Hold::NONE;
        if bytes > SMALL {
            hold.grow(self, bytes)?;
        }
        Ok(hold)
    }

    /// A new string that takes over the bytes of a buffer, which are WTF-8. The caller has charged for them.
    pub fn string_of(&mut self, bytes: Buffer<u8>) -> Value {
        self.take_string(bytes.into_vec())
    }

    /// A new string of parts that were concatenated, where halves of a surrogate pair may have met. The caller has
    /// charged for them;
    /// that it is looked for where they are long is charged here.
    pub fn string_of_parts(&mut self, mut bytes: Vec<u8>) -> Result<Value> {
        if bytes.len() <= PIECE {
            return Ok(self.take_parts(bytes));
        }
        for from in (0..bytes.len()).step_by(PIECE) {
            self.charge_bytes(PIECE)?;
            // A pair has six bytes.
            if has_split_pair(&bytes[from..bytes.len().min(from + PIECE + 5)]) {
                self.join_pairs(&mut bytes)?;
                break;
            }
        }
        Ok(self.take_string(bytes))
    }

    /// Join the halves of surrogate pairs that stand beside each other, charged in pieces.
    pub fn join_pairs(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut at = (0, 0);
        while at.0 < bytes.len() {
            self.meter.work(PIECE / TRANSLATED_A_STEP)?;
            let until = bytes.len().min(at.0 + PIECE);
            at = join_pairs(bytes, at, until);
        }
        bytes.truncate(at.1);
        Ok(())
    }

    /// Replace lone surrogates by U+FFFD, which is as long, charged in pieces.
    pub fn replace_surrogates(&mut self, bytes: &mut [u8]) -> Result<()> {
        for from in (0..bytes.len()).step_by(PIECE) {
            self.charge_bytes(PIECE)?;
            let mut at = from;
            let end = bytes.len().min(from + PIECE);
            while let Some(found) = memchr::memchr(SURROGATE, &bytes[at..end]) {
                at += found;
                if let Some(letter @ [_, 0xA0..=0xBF, _]) = bytes.get_mut(at..at + 3) {
                    letter.copy_from_slice("\u{FFFD}".as_bytes());
                }
                at += 1;
            }
        }
        Ok(())
    }

    /// A new string of UTF-16 code units, charged and counted in pieces.
    pub fn string_of_utf16(&mut self, units: &[u16]) -> Result<Value> {
        let bytes = self.texts().1.encode(units)?;
        Ok(self.string_of(bytes))
    }

    /// A new array that takes over the items of a buffer.
    pub fn array_of(&mut self, items: Buffer<Value>) -> Value {
        self.new_array(items.into_vec())
    }
}

impl Meter {
    /// UTF-16 code units as WTF-8, charged and counted in pieces.
    pub fn encode(&mut self, units: &[u16]) -> Result<Buffer<u8>> {
        let mut length = 0;
        for piece in utf16_pieces(units, PIECE) {
            self.work(piece.len() / (2 * TRANSLATED_A_STEP))?;
            length += wtf8_length(piece);
        }
        let mut out = Buffer::with_capacity(&*self, length)?;
        for piece in utf16_pieces(units, PIECE) {
            self.work(piece.len() / (2 * TRANSLATED_A_STEP))?;
            out.write(&*self, wtf8_length(piece), |out| push_utf16(piece, out))?;
        }
        Ok(out)
    }
}

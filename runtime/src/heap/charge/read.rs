//! Data of a script for built-in functions: all of it for a [`Charge`], a bounded part without one.

use super::Heap;
use crate::meter::Charge;
use crate::text::wtf8::first_code_point;
use crate::value::Value;
use num_bigint::{BigInt, Sign};
use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of a bounded part.
const MAX_PART: usize = 4 << 10;

/// Reads that somebody has charged for.
impl Heap {
    /// The bytes of a string, in WTF-8.
    #[inline]
    pub fn read_bytes(&self, string: Value, _: Charge) -> &[u8] {
        self.bytes(string)
    }

    /// The text of a string; lone surrogates become U+FFFD. Where there are such it is a copy.
    pub fn read_text(&self, string: Value, _: Charge) -> Cow<'_, str> {
        self.text(string)
    }

    /// The UTF-16 code units of a string that [`Heap::keep_utf16`] was given; none of another one.
    #[inline]
    pub fn read_utf16(&self, string: Value, _: Charge) -> &[u16] {
        self.known_utf16(string)
    }

    /// The items of a dense array.
    #[inline]
    pub fn read_items(&self, array: Value, _: Charge) -> &[Value] {
        self.items(array)
    }

    /// The bytes of a `Uint8Array` or an `ArrayBuffer`.
    #[inline]
    pub fn read_view(&self, value: Value, _: Charge) -> &[u8] {
        self.view_bytes(value)
    }

    /// The same to be changed.
    #[inline]
    pub fn write_view(&mut self, value: Value, _: Charge) -> &mut [u8] {
        self.view_bytes_mut(value)
    }

    /// A BigInt.
    #[inline]
    pub fn read_bigint(&self, bigint: Value, _: Charge) -> &BigInt {
        &self.bigints[bigint.index()]
    }
}

/// Reads of a bounded part.
impl Heap {
    /// The byte at a position of a string.
    #[inline]
    pub fn string_byte(&self, string: Value, index: usize) -> Option<u8> {
        self.bytes(string).get(index).copied()
    }

    /// The first `N` bytes of a string, or all where it has less.
    #[inline]
    pub fn first_bytes<const N: usize>(&self, string: Value) -> &[u8] {
        const { assert!(N <= MAX_PART, "no bounded part") };
        let bytes = self.bytes(string);
        &bytes[..bytes.len().min(N)]
    }

    /// The last `N` bytes of a string, or all where it has less.
    #[inline]
    pub fn last_bytes<const N: usize>(&self, string: Value) -> &[u8] {
        const { assert!(N <= MAX_PART, "no bounded part") };
        let bytes = self.bytes(string);
        &bytes[bytes.len().saturating_sub(N)..]
    }

    /// The character at a byte of a string, and how many bytes it has.
    #[inline]
    pub fn code_point_at(&self, string: Value, position: usize) -> Option<(u32, usize)> {
        first_code_point(self.bytes(string).get(position..)?)
    }

    /// The first `N` items of a dense array that has as many.
    #[inline]
    pub fn first_items<const N: usize>(&self, array: Value) -> Option<[Value; N]> {
        const { assert!(N <= MAX_PART / size_of::<Value>(), "no bounded part") };
        self.items(array).first_chunk().copied()
    }

    /// The first index of an item of a sparse array in a range.
    pub fn first_sparse(&self, array: Value, range: Range<usize>) -> Option<u32> {
        self.sparse_items(array, range).next().map(|(index, _)| index)
    }

    /// The byte at a position of a `Uint8Array` or an `ArrayBuffer`.
    #[inline]
    pub fn view_byte(&self, value: Value, index: usize) -> Option<u8> {
        self.view_bytes(value).get(index).copied()
    }

    /// How many bytes a `Uint8Array` or an `ArrayBuffer` has.
    pub fn byte_length(&self, value: Value) -> usize {
        self.view_bytes(value).len()
    }

    /// How many bits the magnitude of a BigInt has.
    #[inline]
    pub fn bigint_bits(&self, bigint: Value) -> u64 {
        self.bigints[bigint.index()].bits()
    }

    /// The sign of a BigInt.
    pub fn bigint_sign(&self, bigint: Value) -> Sign {
        self.bigints[bigint.index()].sign()
    }
}

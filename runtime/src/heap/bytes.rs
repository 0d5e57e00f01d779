//! Byte buffers: `ArrayBuffer`, and `Uint8Array` as a view of one.

use super::{Heap, block, slab_cost};
use crate::value::numeric::{as_int32, to_int32};
use crate::value::{Kind, Value};
use std::ops::Range;

/// The data of an `ArrayBuffer`.
#[derive(Default)]
pub struct ByteBuffer {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The most bytes that it may be resized to, if it may.
    pub max: Option<usize>,
    /// Whether its bytes were transferred to another buffer.
    pub detached: bool,
}

impl ByteBuffer {
    pub(super) fn cost(&self) -> usize {
        slab_cost::<Self>() + block(self.bytes.capacity())
    }
}

/// The data of a `Uint8Array`: a part of a buffer.
#[derive(Clone, Copy)]
pub struct ByteView {
    /// The buffer.
    pub buffer: Value,
    /// Where it begins.
    pub offset: usize,
    /// Its length; `None`: it extends to the end of a buffer that can be resized.
    pub length: Option<usize>,
    /// The same where the buffer cannot be resized, else 0: with it, an access needs no other check.
    fixed: usize,
}

impl ByteView {
    pub(super) const COST: usize = slab_cost::<Self>();
}

impl Heap {
    /// A new `ArrayBuffer`; with `max` it can be resized.
    pub fn new_byte_buffer(&mut self, bytes: Vec<u8>, max: Option<usize>) -> Value {
        let buffer = ByteBuffer { bytes, max, detached: false };
        self.meter.add_bytes(buffer.cost());
        Value::handle(Kind::ArrayBuffer, self.byte_buffers.add(buffer))
    }

    /// A new `Uint8Array` of a part of a buffer.
    pub fn new_byte_view(&mut self, buffer: Value, offset: usize, length: Option<usize>) -> Value {
        self.meter.add_bytes(ByteView::COST);
        let is_resizable = self.byte_buffers[buffer.index()].max.is_some();
        let fixed = if is_resizable { 0 } else { length.unwrap_or(0) };
        Value::handle(Kind::Uint8Array, self.byte_views.add(ByteView { buffer, offset, length, fixed }))
    }

    /// A new `Uint8Array` with a buffer of its own.
    pub fn new_bytes(&mut self, bytes: Vec<u8>) -> Value {
        let length = bytes.len();
        let buffer = self.new_byte_buffer(bytes, None);
        self.new_byte_view(buffer, 0, Some(length))
    }

    /// The byte at an index of a `Uint8Array` of fixed length, where it has one.
    #[inline(always)]
    pub fn byte(&self, view: Value, index: f64) -> Option<Value> {
        // A negative index becomes a large one.
        self.byte_at(view, as_int32(index)? as usize)
    }

    /// The same.
    #[inline(always)]
    pub fn byte_at(&self, view: Value, index: usize) -> Option<Value> {
        let view = &self.byte_views[view.index()];
        if index >= view.fixed {
            return None;
        }
        let byte = self.byte_buffers[view.buffer.index()].bytes.get(view.offset + index)?;
        Some(Value::number(f64::from(*byte)))
    }

    /// The length of a `Uint8Array`, as scripts read it.
    #[inline]
    pub fn byte_count(&self, view: Value) -> usize {
        let data = &self.byte_views[view.index()];
        if data.fixed > 0 && !self.byte_buffers[data.buffer.index()].detached {
            return data.fixed;
        }
        self.view_length(view)
    }

    /// Replace that byte by a number; `false` where there is none.
    #[inline(always)]
    pub fn set_byte(&mut self, view: Value, index: f64, number: f64) -> bool {
        let Some(index) = as_int32(index) else { return false };
        let index = index as usize;
        let view = &self.byte_views[view.index()];
        if index >= view.fixed {
            return false;
        }
        let Some(byte) = self.byte_buffers[view.buffer.index()].bytes.get_mut(view.offset + index) else {
            return false;
        };
        *byte = to_int32(number) as u8;
        true
    }

    /// The range of a `Uint8Array` in its buffer; `None` where the buffer is detached or has become too short.
    #[inline]
    pub fn view_range(&self, view: Value) -> Option<Range<usize>> {
        let view = &self.byte_views[view.index()];
        let buffer = &self.byte_buffers[view.buffer.index()];
        let end = match view.length {
            Some(length) => view.offset + length,
            None => buffer.bytes.len(),
        };
        (!buffer.detached && view.offset <= end && end <= buffer.bytes.len()).then_some(view.offset..end)
    }

    /// How many bytes a `Uint8Array` has.
    pub fn view_length(&self, view: Value) -> usize {
        self.view_range(view).map_or(0, |range| range.len())
    }

    /// The buffer of a `Uint8Array`, or the buffer itself.
    pub fn buffer_of(&self, value: Value) -> Value {
        if value.is(Kind::Uint8Array) { self.byte_views[value.index()].buffer } else { value }
    }

    /// The bytes of a `Uint8Array` or an `ArrayBuffer`.
    #[inline]
    pub fn view_bytes(&self, value: Value) -> &[u8] {
        if value.is(Kind::ArrayBuffer) {
            return &self.byte_buffers[value.index()].bytes;
        }
        let Some(range) = self.view_range(value) else { return &[] };
        self.byte_buffers[self.byte_views[value.index()].buffer.index()].bytes.get(range).unwrap_or_default()
    }

    /// The same to be changed.
    #[inline]
    pub fn view_bytes_mut(&mut self, value: Value) -> &mut [u8] {
        if value.is(Kind::ArrayBuffer) {
            return &mut self.byte_buffers[value.index()].bytes;
        }
        let Some(range) = self.view_range(value) else { return &mut [] };
        let buffer = self.byte_views[value.index()].buffer.index();
        self.byte_buffers[buffer].bytes.get_mut(range).unwrap_or_default()
    }

    /// Resize a buffer, and count the difference. The caller has reserved memory for it.
    pub fn resize_buffer(&mut self, buffer: Value, length: usize) {
        let data = &mut self.byte_buffers[buffer.index()];
        let before = data.cost();
        if length > data.bytes.len() {
            data.bytes.reserve_exact(length - data.bytes.len());
        }
        data.bytes.resize(length, 0);
        if data.bytes.capacity() / 2 > length {
            data.bytes.shrink_to_fit();
        }
        let after = data.cost();
        self.meter.bytes = self.meter.bytes.saturating_sub(before);
        self.meter.add_bytes(after);
    }

    /// Take the bytes of a buffer, which has none afterwards. They are no longer counted.
    pub fn detach_buffer(&mut self, buffer: Value) -> (Vec<u8>, Option<usize>) {
        let data = &mut self.byte_buffers[buffer.index()];
        self.meter.bytes = self.meter.bytes.saturating_sub(block(data.bytes.capacity()));
        data.detached = true;
        (std::mem::take(&mut data.bytes), data.max)
    }
}

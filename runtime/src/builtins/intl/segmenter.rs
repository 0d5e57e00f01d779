//! `Intl.Segmenter` (ECMA-402 19): graphemes, words and sentences.
//!
//! The boundaries of a text are found when it is segmented. Words of scripts that are written without spaces would need
//! dictionaries, so texts with these are refused.

use super::{LOCALE, MATCHERS, SUPPORTED_LOCALES_OF, choice, incompatible, needs_new, resolved_of};
use crate::builtins::{Body, Global, Row, arg, native};
use crate::eval::vm::Vm;
use crate::heap::{InternalSlots, block};
use crate::meter::buffer::Buffer;
use crate::text::wtf8::first_code_point;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use agentscript_intl::locale::available_segments;
use agentscript_intl::segments::{GRANULARITIES, ends, is_word, is_word_like, unspaced_script};

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "Segmenter",
    length: 0,
    call: Body::Native(|vm, _, _| Err(needs_new(vm, "Segmenter"))),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[native("resolvedOptions", 0, resolved_options), native("segment", 1, segment)];

/// The methods of a segmented text, which is iterable.
pub const SEGMENTS_METHODS: &[Row] = &[native("containing", 1, containing)];

/// The internal slots of an `Intl.Segmenter`.
#[derive(Clone, Debug)]
pub struct Segmenter {
    locale: String,
    granularity: usize,
}

impl InternalSlots for Segmenter {
    fn family(&self) -> Family {
        Family::Segmenter
    }

    fn tag(&self) -> &'static str {
        "Intl.Segmenter"
    }

    fn cost(&self) -> usize {
        LOCALE
    }
}

/// The internal slots of a segmented text.
#[derive(Clone, Debug)]
pub struct Segments {
    /// The text.
    pub string: Value,
    has_words: bool,
    ends: Vec<End>,
}

impl InternalSlots for Segments {
    fn family(&self) -> Family {
        Family::Segments
    }

    fn class(&self) -> &'static str {
        "Object"
    }

    fn tag(&self) -> &'static str {
        "Object"
    }

    fn cost(&self) -> usize {
        block(size_of::<Self>()) + block(self.ends.capacity() * size_of::<End>())
    }

    fn iterator_family(&self) -> Family {
        Family::SegmentsIterator
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.string);
    }
}

/// Where a segment ends.
#[derive(Clone, Copy, Debug)]
struct End {
    bytes: u32,
    units: u32,
    is_word: bool,
}

/// Bytes between two charges.
const TURN: usize = 1 << 12;

/// `new Intl.Segmenter(locales, options)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let service = "Intl.Segmenter";
    vm.work(4)?;
    let requested = resolved_of(vm, arg(arguments, 0), available_segments)?;
    let options = super::options_object(vm, arg(arguments, 1))?;
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let granularity = choice(vm, options, service, "granularity", GRANULARITIES)?.unwrap_or(0);
    let segmenter = Segmenter { locale: requested.tag(|_, _| false), granularity };
    Ok(vm.heap.new_with_slots(segmenter))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<Segmenter> {
    match vm.heap.slots::<Segmenter>(this) {
        Some(segmenter) => Ok(segmenter.clone()),
        _ => Err(incompatible(vm, this, "Segmenter", method)),
    }
}

/// `segmenter.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let segmenter = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &segmenter.locale);
    super::put_text(vm, object, "granularity", GRANULARITIES[segmenter.granularity]);
    Ok(object)
}

/// `segmenter.segment(text)`
fn segment(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let segmenter = receiver(vm, this, "segment")?;
    let string = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.str(string).bytes as usize;
    // The boundaries take several table look-ups a character.
    let charge = vm.heap.meter.charge_piece(1 + length / 4, 300)?;
    let has_words = is_word(segmenter.granularity);
    if has_words && let Some(script) = unspaced(vm, string)? {
        let message = brief!("Segmenting words of {script} needs a dictionary, which AgentScript does not have");
        return Err(vm.range_error(&message));
    }
    // A copy without lone surrogates, where there are any, has the same number of bytes and code units.
    let _room = vm.heap.hold(length)?;
    let mut found = Buffer::new();
    let text = String::from(vm.heap.read_text(string, charge));
    let mut at = (0, 0);
    ends(&text, segmenter.granularity, &segmenter.locale, |end| {
        let piece = text.get(at.0..end).unwrap_or_default();
        let is_word = has_words && is_word_like(piece);
        at = (end, at.1 + piece.encode_utf16().count());
        found.push(vm, End { bytes: at.0 as u32, units: at.1 as u32, is_word })
    })?;
    let segments = Segments { string, has_words, ends: found.into_vec() };
    Ok(vm.heap.new_with_slots(segments))
}

/// The first script in a text that is written without spaces.
fn unspaced(vm: &mut Vm, string: Value) -> Result<Option<&'static str>> {
    if vm.heap.str(string).is_ascii() {
        return Ok(None);
    }
    let mut at = 0;
    loop {
        let charge = vm.heap.charge_bytes(TURN)?;
        let rest = vm.heap.read_bytes(string, charge).get(at..).unwrap_or_default();
        let mut offset = 0;
        while offset < TURN
            && let Some((point, length)) = rest.get(offset..).and_then(first_code_point)
        {
            if let Some(script) = unspaced_script(point) {
                return Ok(Some(script));
            }
            offset += length;
        }
        if offset == 0 {
            return Ok(None);
        }
        at += offset;
    }
}

/// Whether a value is a segmented text.
pub fn is_segments(vm: &Vm, value: Value) -> bool {
    vm.heap.has_slots::<Segments>(value)
}

/// The description of a segment by its number; `None` behind the last one.
pub fn at(vm: &mut Vm, segments: Value, index: usize) -> Result<Option<Value>> {
    let Some(state) = vm.heap.slots::<Segments>(segments) else { return Ok(None) };
    let Some(&end) = state.ends.get(index) else { return Ok(None) };
    let start = index.checked_sub(1).and_then(|before| state.ends.get(before));
    let (from, units) = start.map_or((0, 0), |start| (start.bytes, start.units));
    let (string, has_words) = (state.string, state.has_words);
    vm.work(2 + (end.bytes - from) as usize / 16)?;
    let piece = vm.heap.slice_bytes(string, from as usize, end.bytes as usize);
    let object = vm.heap.new_object();
    super::put(vm, object, "segment", piece);
    super::put(vm, object, "index", Value::number(f64::from(units)));
    super::put(vm, object, "input", string);
    if has_words {
        super::put(vm, object, "isWordLike", Value::bool(end.is_word));
    }
    Ok(Some(object))
}

/// `segments.containing(index)`
fn containing(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !is_segments(vm, this) {
        let what = vm.describe(this);
        return Err(
            vm.type_error(&brief!("Method %SegmentsPrototype%.containing called on incompatible receiver {what}"))
        );
    }
    let number = vm.to_number(arg(arguments, 0))?;
    let number = if number.is_nan() { 0.0 } else { number.trunc() };
    vm.work(8)?;
    let Some(state) = vm.heap.slots::<Segments>(this) else { return Ok(Value::UNDEFINED) };
    if number < 0.0 {
        return Ok(Value::UNDEFINED);
    }
    let index = state.ends.partition_point(|end| f64::from(end.units) <= number);
    Ok(at(vm, this, index)?.unwrap_or(Value::UNDEFINED))
}

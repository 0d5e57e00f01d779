//! Global functions that belong to no type: `structuredClone`, `atob`, `btoa`.

use super::url::coded;
use super::{Global, native};
use crate::builtins::dom_exception;
use crate::builtins::url;
use crate::eval::json;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::charge::BYTES_A_STEP;
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_MESSAGE};
use crate::heap::{Class, block};
use crate::meter::buffer::{Buffer, Hold};
use crate::text::wtf8::code_points;
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hashbrown::{HashMap, HashSet};

/// Globals of this file.
pub const GLOBALS: &[Global] = &[
    Global::function(native("structuredClone", 0, structured_clone)),
    Global::function(native("atob", 1, atob)),
    Global::function(native("btoa", 1, btoa)),
];

/// Base64 without padding, allowing trailing bits.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How much Base64 is decoded between two charges: a multiple of four.
const PIECE: usize = 1 << 14;

/// `atob(text)`: decoded Base64, each byte as a character.
fn atob(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let input = base64_input(vm, arguments)?;
    let bytes = vm.heap.str(input).bytes as usize;
    let mut digits = Buffer::with_capacity(vm, bytes)?;
    let mut is_base64 = true;
    for from in (0..bytes).step_by(PIECE) {
        let charge = vm.work(PIECE / BYTES_A_STEP)?;
        let bytes = vm.heap.read_bytes(input, charge);
        let piece = &bytes[from..bytes.len().min(from + PIECE)];
        is_base64 &= piece.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte) || is_blank(*byte));
        digits.extend(vm, piece.iter().copied().filter(|byte| !is_blank(*byte)))?;
    }
    let length = digits.len();
    while digits.last() == Some(&b'=') {
        digits.pop();
    }
    let padding = length - digits.len();
    let has_padding_inside = digits.contains(&b'=');
    if !is_base64 || has_padding_inside || padding > 2 || padding > 0 && !length.is_multiple_of(4) {
        return Err(dom_exception::exception(vm, "InvalidCharacterError", "Invalid character"));
    }
    let mut text = Buffer::new();
    // bounded: a piece
    let mut decoded = vec![0; PIECE / 4 * 3];
    for piece in digits.chunks(PIECE) {
        vm.work(PIECE / BYTES_A_STEP * 4)?;
        let Ok(length) = FORGIVING.decode_slice(piece, &mut decoded) else {
            let message = "The string to be decoded is not correctly encoded.";
            return Err(dom_exception::exception(vm, "InvalidCharacterError", message));
        };
        for &byte in decoded.iter().take(length) {
            text.extend_from_slice(vm, char::from(byte).encode_utf8(&mut [0; 2]).as_bytes())?;
        }
    }
    Ok(vm.heap.string_of(text))
}

/// `btoa(text)`: characters below 256 as bytes in Base64.
fn btoa(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = base64_input(vm, arguments)?;
    let units = vm.heap.str(text).units as usize;
    let length = base64::encoded_len(units, true).unwrap_or(usize::MAX);
    let mut encoded = Buffer::with_capacity(vm, length)?;
    // bounded: a piece
    let mut piece = Vec::with_capacity(PIECE / 4 * 3);
    let mut count = 0;
    let (texts, meter) = vm.heap.texts();
    let mut points = code_points(texts.bytes(text));
    loop {
        meter.work(PIECE / BYTES_A_STEP * 4)?;
        piece.clear();
        piece.extend(points.by_ref().take(PIECE / 4 * 3).map_while(|point| u8::try_from(point).ok()));
        encoded.extend_from_slice(&*meter, STANDARD.encode(&piece).as_bytes())?;
        count += piece.len();
        if piece.len() < PIECE / 4 * 3 {
            break;
        }
    }
    drop(points);
    if count < units {
        return Err(dom_exception::exception(vm, "InvalidCharacterError", "Invalid character"));
    }
    Ok(vm.heap.string_of(encoded))
}

/// The argument as a string, charged for.
fn base64_input(vm: &mut Vm, arguments: &[Value]) -> Result {
    let Some(&input) = arguments.first() else {
        return Err(coded(vm, "ERR_MISSING_ARGS", "The \"input\" argument must be specified"));
    };
    let text = vm.to_string(input)?;
    vm.work(vm.heap.str(text).bytes as usize / 8)?;
    Ok(text)
}

/// White space that Base64 may contain.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0xC | b'\r' | b' ')
}

fn structured_clone(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let Some(&value) = arguments.first() else {
        return Err(webidl_error(vm, "ERR_MISSING_ARGS", "The value argument must be specified"));
    };
    let transferred = transfer_list(vm, super::arg(arguments, 1))?;
    let mut cloner = Cloner { clones: HashMap::new(), pending: Buffer::new(), hold: Hold::NONE };
    // A transferred buffer gets its bytes at the end: nothing changes if a value cannot be cloned.
    for &buffer in &*transferred {
        let moved = vm.heap.new_byte_buffer(Vec::default(), vm.heap.byte_buffers[buffer.index()].max);
        cloner.add(vm, buffer, moved)?;
    }
    let clone = cloner.clone_of(vm, value)?;
    while let Some((source, clone)) = cloner.pending.pop() {
        cloner.fill(vm, source, clone)?;
    }
    for &buffer in &*transferred {
        cloner.transfer(vm, buffer);
    }
    Ok(clone)
}

/// The buffers that the option `transfer` lists; it is the only option, and nothing else can be transferred.
fn transfer_list(vm: &mut Vm, options: Value) -> Result<Buffer<Value>> {
    if options.is_nullish() {
        return Ok(Buffer::new());
    }
    if !options.is_object() {
        let message = "The options argument must be either an object or undefined";
        return Err(webidl_error(vm, "ERR_INVALID_ARG_TYPE", message));
    }
    let name = vm.heap.intern_text("transfer");
    let transfer = vm.get(options, name)?;
    if transfer.is_nullish() {
        return Ok(Buffer::new());
    }
    // As in Node, an object that is not iterable is options in its turn.
    let is_options = transfer.is_object() && !vm.is_iterable(transfer) && !vm.is_script_iterable(transfer);
    let transfer = if is_options { vm.get(transfer, name)? } else { transfer };
    if is_options && transfer.is_nullish() {
        return Ok(Buffer::new());
    }
    if !transfer.is_object() || !vm.is_iterable(transfer) {
        let what = if is_options { "options.transfer" } else { "transferList" };
        let message = brief!("Optional {what} argument must be an iterable");
        return Err(webidl_error(vm, "ERR_INVALID_ARG_TYPE", &message));
    }
    let list = vm.iterate_to_list(transfer)?;
    if list.iter().any(|value| !value.is(Kind::ArrayBuffer)) {
        return Err(webidl_error(vm, "ERR_INVALID_TRANSFER_OBJECT", "Found invalid object in transferList"));
    }
    vm.work(list.len())?;
    let mut seen = HashSet::new();
    let _hold = vm.heap.hold(list.len().saturating_mul(32))?;
    if list.iter().any(|buffer| !seen.insert(*buffer)) {
        return Err(clone_error(vm, "Transfer list contains duplicate ArrayBuffer"));
    }
    Ok(list)
}

/// A `TypeError` with a code that is not part of its text.
#[cold]
pub fn webidl_error(vm: &mut Vm, code: &str, message: &str) -> Thrown {
    let error = vm.new_error(Class::TypeError, message);
    let code = vm.heap.string(code);
    vm.heap.set_own(error, known::CODE, code);
    Thrown::value(error)
}

/// Bytes of an entry in the table of clones, while it grows.
const CLONE_BYTES: usize = 40;

/// A deep copy in progress.
struct Cloner {
    clones: HashMap<Value, Value>,
    /// Clones that are to be filled.
    pending: Buffer<(Value, Value)>,
    /// Counts `clones`.
    hold: Hold,
}

impl Cloner {
    /// The clone of a value; that of an object is empty at first.
    fn clone_of(&mut self, vm: &mut Vm, value: Value) -> Result {
        if !value.is_object() {
            return Ok(value);
        }
        if let Some(&clone) = self.clones.get(&value) {
            return Ok(clone);
        }
        vm.work(1)?;
        let clone = match value.kind() {
            Kind::Array => {
                let length = vm.heap.length(value);
                vm.new_holes(length as u32)?
            }
            Kind::Map | Kind::Set => vm.heap.new_map(value.kind()),
            Kind::InternalSlots => match vm.heap.internal_slots_of(value).and_then(|slots| slots.structured_clone()) {
                Some(slots) => vm.heap.new_with_boxed_slots(slots),
                // Node clones these as plain objects without properties.
                None if !url::inherited_names(vm, value).is_empty() => vm.heap.new_object(),
                None => return Err(not_cloned(vm, value)),
            },
            Kind::ArrayBuffer => {
                let data = &vm.heap.byte_buffers[value.index()];
                if data.detached {
                    return Err(clone_error(vm, "An ArrayBuffer is detached and could not be cloned."));
                }
                let (max, length) = (data.max, data.bytes.len());
                let copy = vm.heap.charged_view_copy(value, 0..length)?;
                vm.heap.new_byte_buffer(copy.into_vec(), max)
            }
            Kind::Uint8Array => {
                let view = vm.heap.byte_views[value.index()];
                let buffer = self.clone_of(vm, view.buffer)?;
                if vm.heap.view_range(value).is_none() {
                    return Err(clone_error(vm, "[object Object] could not be cloned."));
                }
                vm.heap.new_byte_view(buffer, view.offset, view.length)
            }
            Kind::Object => {
                let class = clone_class(vm, value)?;
                vm.heap.new_of_class(class)
            }
            Kind::Native if vm.type_of(value) == "object" => vm.heap.new_object(),
            _ => return Err(not_cloned(vm, value)),
        };
        self.add(vm, value, clone)?;
        self.pending.push(vm, (value, clone))?;
        Ok(clone)
    }

    /// Note the clone of a value.
    fn add(&mut self, vm: &mut Vm, value: Value, clone: Value) -> Result<()> {
        if self.clones.len() == self.clones.capacity() {
            // It doubles, and has both for a moment.
            self.hold.grow(vm, self.clones.len().max(4) * CLONE_BYTES)?;
        }
        self.clones.insert(value, clone);
        Ok(())
    }

    /// Move the bytes of a buffer to its clone.
    fn transfer(&self, vm: &mut Vm, buffer: Value) {
        let Some(&clone) = self.clones.get(&buffer) else { return };
        if vm.heap.byte_buffers[buffer.index()].detached {
            return;
        }
        let (bytes, _) = vm.heap.detach_buffer(buffer);
        vm.heap.meter.add_bytes(block(bytes.capacity()));
        vm.heap.byte_buffers[clone.index()].bytes = bytes;
    }

    fn fill(&mut self, vm: &mut Vm, source: Value, clone: Value) -> Result<()> {
        match source.kind() {
            Kind::Map | Kind::Set => self.fill_map(vm, source, clone),
            Kind::Object if vm.heap.class(source).is_error() => self.fill_error(vm, source, clone),
            Kind::Array => {
                if vm.heap.is_sparse(source) {
                    for (index, value) in vm.heap.charged_sparse_items(source, 0..usize::MAX)? {
                        vm.work(1)?;
                        let value = self.clone_of(vm, value)?;
                        vm.set_key(clone, PropertyKey::Index(index), value)?;
                    }
                } else {
                    for (index, value) in vm.heap.charged_items_copy(source)?.into_iter().enumerate() {
                        vm.work(1)?;
                        if value != Value::HOLE {
                            let value = self.clone_of(vm, value)?;
                            vm.define(clone, PropertyKey::Index(index as u32), value);
                        }
                    }
                }
                match vm.heap.extras.get(&source) {
                    Some(&extra) => self.fill_object(vm, Value::handle(Kind::Object, extra), clone),
                    None => Ok(()),
                }
            }
            Kind::Object => self.fill_object(vm, source, clone),
            _ => Ok(()),
        }
    }

    fn fill_object(&mut self, vm: &mut Vm, source: Value, clone: Value) -> Result<()> {
        for (key, value) in crate::eval::property::counted_pairs(vm, source)? {
            vm.work(1)?;
            let value = self.clone_of(vm, value)?;
            vm.define(clone, key, value);
        }
        Ok(())
    }

    fn fill_map(&mut self, vm: &mut Vm, source: Value, clone: Value) -> Result<()> {
        for (key, value) in vm.heap.charged_entries(source)? {
            super::collections::charge_key(vm, key)?;
            let key = self.clone_of(vm, key)?;
            let value = self.clone_of(vm, value)?;
            let key = vm.heap.map_key(clone, key);
            vm.heap.map_set(clone, key, value);
        }
        Ok(())
    }

    /// An error keeps its class, message, cause and stack.
    fn fill_error(&mut self, vm: &mut Vm, source: Value, clone: Value) -> Result<()> {
        vm.heap.add_flags(clone, HIDDEN_MESSAGE | HIDDEN_CAUSE);
        if let Some(message) = json::own(vm, source, known::MESSAGE)? {
            let message = vm.to_string(message)?;
            vm.heap.set_own(clone, known::MESSAGE, message);
        }
        if let Some(cause) = json::own(vm, source, known::CAUSE)? {
            let cause = self.clone_of(vm, cause)?;
            vm.heap.set_own(clone, known::CAUSE, cause);
        }
        if let Some(stack) = vm.own_property(source, PropertyKey::Name(known::STACK))?.filter(|stack| stack.is_string())
        {
            vm.heap.set_own(clone, known::STACK, stack);
        }
        if let Some(trace) = vm.heap.traces.get(&source.payload()).cloned() {
            vm.heap.meter.add_bytes(trace.cost());
            vm.heap.traces.insert(clone.payload(), trace);
        }
        Ok(())
    }
}

/// The class of the clone of a plain object or an error; that of an error depends on its name.
fn clone_class(vm: &mut Vm, value: Value) -> Result<Class> {
    if !vm.heap.class(value).is_error() {
        return Ok(Class::Plain);
    }
    let name = vm.get(value, known::NAME)?;
    let name = if name.is_string() { vm.heap.charged_bytes(name)? } else { b"" };
    let known = |class: &Class| class.name().as_bytes() == name && *class != Class::AggregateError;
    Ok(Class::ERRORS.iter().copied().find(known).unwrap_or(Class::Error))
}

#[cold]
fn not_cloned(vm: &mut Vm, value: Value) -> Thrown {
    let what = vm.describe(value);
    clone_error(vm, &brief!("{what} could not be cloned."))
}

#[cold]
fn clone_error(vm: &mut Vm, message: &str) -> Thrown {
    dom_exception::exception(vm, "DataCloneError", message)
}

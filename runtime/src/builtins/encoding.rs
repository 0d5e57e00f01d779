//! `TextEncoder` and `TextDecoder` (<https://encoding.spec.whatwg.org>), with the messages of Node.

mod legacy;

use self::legacy::{Decoded, Legacy};
use super::url::{coded, natively_coded};
use super::{Body, Global, Row, arg, getter, native};
use crate::builtins::bytes;
use crate::builtins::url::params;
use crate::eval::vm::Vm;
use crate::heap::object::CODED;
use crate::heap::{Class, InternalSlots};
use crate::meter::buffer::Buffer;
use crate::text::wtf8::first_code_point;
use crate::value::atom::known;
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use encoding_rs::{CoderResult, Decoder, Encoding, ISO_8859_16, REPLACEMENT, UTF_8, WINDOWS_1252, X_USER_DEFINED};
use std::fmt;

/// The two constructors.
pub const GLOBALS: &[Global] =
    &[constructor("TextEncoder", call_encoder, new_encoder), constructor("TextDecoder", call_decoder, new_decoder)];

/// Methods of encoders.
pub const ENCODER_METHODS: &[Row] =
    &[getter("encoding", encoder_encoding), native("encode", 0, encode), native("encodeInto", 2, encode_into)];

/// Methods of decoders.
pub const DECODER_METHODS: &[Row] = &[
    native("decode", 0, decode),
    getter("encoding", decoder_encoding),
    getter("fatal", fatal),
    getter("ignoreBOM", ignore_bom),
];

const fn constructor(name: &'static str, call: super::NativeFn, construct: super::NativeFn) -> Global {
    Global {
        name,
        length: 0,
        call: Body::Native(call),
        construct: Some(Body::Native(construct)),
        functions: &[],
        numbers: &[],
    }
}

/// The internal slots of a `TextDecoder`.
pub struct Decoding {
    encoding: &'static Encoding,
    fatal: bool,
    ignore_bom: bool,
    /// Whether a call was a part of a stream: Node decodes some encodings in another way then, with other errors.
    has_streamed: bool,
    /// Between two calls of a stream.
    decoder: Option<Running>,
}

impl InternalSlots for Decoding {
    fn family(&self) -> Family {
        Family::TextDecoder
    }
}

/// The internal slots of a `TextEncoder`.
pub struct TextEncoder;

impl InternalSlots for TextEncoder {
    fn family(&self) -> Family {
        Family::TextEncoder
    }
}

/// A decoder within a stream.
enum Running {
    /// As the standard has it.
    Standard(Decoder),
    /// As Node has it.
    Legacy(Legacy),
}

impl Clone for Decoding {
    /// The same, at the beginning of a stream.
    fn clone(&self) -> Self {
        let &Self { encoding, fatal, ignore_bom, has_streamed, .. } = self;
        Self { encoding, fatal, ignore_bom, has_streamed, decoder: None }
    }
}

impl fmt::Debug for Decoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoding").field(&self.encoding.name()).finish()
    }
}

impl Decoding {
    /// The name of the encoding, as `encoding` has it.
    pub fn name(&self) -> String {
        self.encoding.name().to_ascii_lowercase()
    }

    /// The text that `util.inspect` shows.
    pub fn inspected(&self) -> String {
        let Self { fatal, ignore_bom, .. } = self;
        brief!("TextDecoder {{ encoding: '{}', fatal: {fatal}, ignoreBOM: {ignore_bom} }}", self.name())
    }

    /// A decoder at the beginning of a stream.
    fn start(&self) -> Running {
        match (Legacy::new(self.encoding), self.ignore_bom) {
            (Some(legacy), _) => Running::Legacy(legacy),
            (None, true) => Running::Standard(self.encoding.new_decoder_without_bom_handling()),
            (None, false) => Running::Standard(self.encoding.new_decoder_with_bom_removal()),
        }
    }
}

fn call_encoder(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor TextEncoder cannot be invoked without 'new'"))
}

fn new_encoder(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(vm.heap.new_with_slots(TextEncoder))
}

fn call_decoder(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor TextDecoder cannot be invoked without 'new'"))
}

/// `new TextDecoder(label, {fatal, ignoreBOM})`
fn new_decoder(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let label = match arg(arguments, 0) {
        Value::UNDEFINED => vm.heap.string("utf-8"),
        label => vm.to_string(label)?,
    };
    let options = arg(arguments, 1);
    check_options(vm, options)?;
    let encoding = match Encoding::for_label(vm.heap.charged_bytes(label)?) {
        // Node has no tables of these.
        Some(encoding) if [X_USER_DEFINED, ISO_8859_16, REPLACEMENT].contains(&encoding) => {
            let name = encoding.name().to_ascii_lowercase();
            return Err(unsupported(vm, &name));
        }
        Some(encoding) => encoding,
        None => {
            let label = vm.to_text_lossy(label);
            return Err(unsupported(vm, &label));
        }
    };
    let (fatal, ignore_bom) = (flag(vm, options, "fatal")?, flag(vm, options, "ignoreBOM")?);
    let decoding = Decoding { encoding, fatal, ignore_bom, has_streamed: false, decoder: None };
    Ok(vm.heap.new_with_slots(decoding))
}

/// Options are an object or nothing.
fn check_options(vm: &mut Vm, options: Value) -> Result<()> {
    if options.is_nullish() || options.is_object() {
        return Ok(());
    }
    Err(wrong_type(vm, "The \"options\" argument must be of type object", options))
}

#[cold]
fn unsupported(vm: &mut Vm, label: &str) -> Thrown {
    let message = brief!("The \"{label}\" encoding is not supported");
    let error = vm.new_error(Class::RangeError, &message);
    let code = vm.heap.string("ERR_ENCODING_NOT_SUPPORTED");
    vm.heap.set_own(error, known::CODE, code);
    vm.heap.add_flags(error, CODED);
    Thrown::value(error)
}

/// An option that is true or false.
fn flag(vm: &mut Vm, options: Value, name: &str) -> Result<bool> {
    if !options.is_object() {
        return Ok(false);
    }
    let name = vm.heap.intern_text(name);
    let value = vm.get(options, name)?;
    Ok(vm.truthy(value))
}

fn encoder_encoding(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(vm.heap.string("utf-8"))
}

/// `encoder.encode(text)`
fn encode(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_encoder(vm, this)?;
    let text = match arg(arguments, 0) {
        Value::UNDEFINED => return Ok(vm.heap.bytes_of(Buffer::new())),
        text => vm.to_string(text)?,
    };
    let mut bytes = vm.heap.charged_copy(text)?;
    if !vm.heap.str(text).is_ascii() {
        vm.heap.replace_surrogates(&mut bytes)?;
    }
    Ok(vm.heap.bytes_of(bytes))
}

/// `encoder.encodeInto(text, bytes)`: as much of the text as fits; `{read, written}`.
fn encode_into(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_encoder(vm, this)?;
    let (text, target) = (arg(arguments, 0), arg(arguments, 1));
    if !text.is_string() {
        return Err(wrong_type(vm, "The \"src\" argument must be of type string", text));
    }
    if !target.is(Kind::Uint8Array) {
        return Err(wrong_type(vm, "The \"dest\" argument must be an instance of Uint8Array", target));
    }
    let room = vm.heap.view_length(target);
    let length = room.min(vm.heap.str(text).bytes as usize);
    let charge = vm.heap.charge_bytes(3 * length)?;
    let bytes = vm.heap.read_bytes(text, charge);
    let (mut read, mut written) = (0, 0);
    while let Some((point, length)) = first_code_point(&bytes[written..])
        && written + length <= room
    {
        read += if point > 0xFFFF { 2 } else { 1 };
        written += length;
    }
    let mut copy = Buffer::new();
    copy.extend_from_slice(vm, &bytes[..written])?;
    vm.heap.replace_surrogates(&mut copy)?;
    let room = vm.heap.write_view(target, charge);
    if let Some(part) = room.get_mut(..written) {
        part.copy_from_slice(&copy);
    }
    let result = vm.heap.new_object();
    for (name, count) in [("read", read), ("written", written)] {
        let name = vm.heap.intern_text(name);
        vm.heap.set_own(result, name, Value::number(count as f64));
    }
    Ok(result)
}

#[cold]
fn wrong_type(vm: &mut Vm, what: &str, value: Value) -> Thrown {
    match params::received(vm, value) {
        Ok(received) => coded(vm, "ERR_INVALID_ARG_TYPE", &brief!("{what}. Received {received}")),
        Err(thrown) => thrown,
    }
}

/// Bytes that are decoded between two charges.
const PIECE: usize = 8 << 10;

/// `decoder.decode(bytes, {stream})`
fn decode(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let Some(_) = vm.heap.slots::<Decoding>(this) else {
        return Err(coded(vm, "ERR_INVALID_THIS", "Value of \"this\" must be of type TextDecoder"));
    };
    let (source, options) = (arg(arguments, 0), arg(arguments, 1));
    let stream = flag(vm, options, "stream")?;
    check_input(vm, this, source, options, stream)?;
    // Reading the option may have run a function that resized the buffer.
    let length = if source.is_undefined() { 0 } else { vm.heap.byte_length(source) };
    let Some(state) = vm.heap.slots_mut::<Decoding>(this) else {
        return Ok(Value::UNDEFINED);
    };
    let (fatal, name) = (state.fatal, state.name());
    let mut decoder = state.decoder.take().unwrap_or_else(|| state.start());
    let mut out = Buffer::new();
    // bounded: a piece, of which each byte gives three at most, and what has begun before it
    let mut room = String::with_capacity(PIECE.min(length) * 3 + 64);
    let mut from = 0;
    loop {
        let to = length.min(from + PIECE);
        let charge = vm.heap.charge_bytes((to - from) * 4)?;
        let last = to == length;
        let bytes = if length == 0 { &[][..] } else { vm.heap.read_view(source, charge) };
        room.clear();
        if !decoder.decode(&bytes[from..to], last && !stream, &mut room) && fatal {
            let message = brief!("The encoded data was not valid for encoding {name}");
            return Err(natively_coded(vm, "ERR_ENCODING_INVALID_ENCODED_DATA", &message));
        }
        out.extend_from_slice(vm, room.as_bytes())?;
        from = to;
        if last {
            break;
        }
    }
    if stream && let Some(state) = vm.heap.slots_mut::<Decoding>(this) {
        state.decoder = Some(decoder);
    }
    Ok(vm.heap.string_of(out))
}

/// The arguments of `decode`, in the order and with the errors that depend on how Node decodes the encoding.
fn check_input(vm: &mut Vm, this: Value, source: Value, options: Value, stream: bool) -> Result<()> {
    let Some(state) = vm.heap.slots_mut::<Decoding>(this) else { return Ok(()) };
    state.has_streamed |= stream;
    let quick = if state.has_streamed { None } else { Some(state.encoding) };
    let expected = match quick {
        Some(encoding) if encoding == UTF_8 => {
            "\"list\" argument must be an instance of SharedArrayBuffer, ArrayBuffer or"
        }
        Some(encoding) if encoding == WINDOWS_1252 => {
            "\"input\" argument must be an instance of ArrayBuffer, SharedArrayBuffer, or"
        }
        Some(_) | None => {
            check_options(vm, options)?;
            "\"input\" argument must be an instance of SharedArrayBuffer, ArrayBuffer or"
        }
    };
    if source.is_undefined() || bytes::is_bytes(source) {
        return Ok(());
    }
    Err(natively_coded(vm, "ERR_INVALID_ARG_TYPE", &brief!("The {expected} ArrayBufferView.")))
}

impl Running {
    /// Append the characters of some bytes to a text that has room for them; whether all are valid.
    fn decode(&mut self, mut bytes: &[u8], last: bool, out: &mut String) -> bool {
        match self {
            Self::Standard(decoder) => {
                let mut is_valid = true;
                loop {
                    let (result, read, has_replaced) = decoder.decode_to_string(bytes, out, last);
                    is_valid &= !has_replaced;
                    bytes = &bytes[read..];
                    match result {
                        CoderResult::InputEmpty => return is_valid,
                        CoderResult::OutputFull => out.reserve(64),
                    }
                }
            }
            Self::Legacy(legacy) => {
                let mut decoded = Decoded { text: out, is_valid: true };
                legacy.decode(bytes, last, &mut decoded);
                decoded.is_valid
            }
        }
    }
}

fn decoding(vm: &Vm, this: Value) -> Option<&Decoding> {
    match vm.heap.slots::<Decoding>(this) {
        Some(state) => Some(state),
        _ => None,
    }
}

fn decoder_encoding(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let name = decoding(vm, this).map(Decoding::name).unwrap_or_default();
    Ok(vm.heap.string(&name))
}

fn fatal(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::bool(decoding(vm, this).is_some_and(|state| state.fatal)))
}

fn ignore_bom(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::bool(decoding(vm, this).is_some_and(|state| state.ignore_bom)))
}

fn check_encoder(vm: &mut Vm, this: Value) -> Result<()> {
    if vm.heap.has_slots::<TextEncoder>(this) {
        return Ok(());
    }
    Err(coded(vm, "ERR_INVALID_THIS", "Value of \"this\" must be of type TextEncoder"))
}

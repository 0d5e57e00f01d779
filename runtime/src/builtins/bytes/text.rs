//! Bytes as text, in base64 and hexadecimal: <https://tc39.es/proposal-arraybuffer-base64/spec/>.
//!
//! Messages are V8's.

use super::validate;
use crate::builtins::arg;
use crate::eval::operator::MAX_STRING;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::meter::buffer::Buffer;
use crate::value::atom::Atom;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// Characters or bytes whose work is charged at once: a multiple of twelve.
const PIECE: usize = 12 << 10;

const CHARACTER: &str = "Found a character that cannot be part of a valid base64 string.";
const REMAINDER: &str = "The base64 input terminates with a single character, excluding padding.";
const EXTRA_BITS: &str = "The base64 input has extra bits in its last character.";
const PADDING: &str = "The base64 input has missing or invalid padding.";
const HEX: &str = "Input string must contain hex characters in even length";

/// The characters of base64, in their order.
const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What is no digit.
const NONE: u8 = 0xFF;

/// The values of the characters of an alphabet.
const fn digits(alphabet: &[u8; 64]) -> [u8; 256] {
    let mut digits = [NONE; 256];
    let mut value = 0;
    while value < alphabet.len() {
        digits[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    digits
}

static STANDARD_DIGITS: [u8; 256] = digits(STANDARD);
static URL_SAFE_DIGITS: [u8; 256] = digits(URL_SAFE);

/// What is done with fewer than four characters at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastChunk {
    /// Padding may be missing.
    Loose,
    /// Padding is needed, and the bits that no byte has are 0.
    Strict,
    /// They are left for the next call.
    StopBeforePartial,
}

/// How text is read.
struct Reading {
    digits: &'static [u8; 256],
    last_chunk: LastChunk,
}

/// What was read.
struct Read {
    bytes: Buffer<u8>,
    /// How many characters that took.
    read: usize,
    /// Why it ended early.
    error: Option<&'static str>,
}

/// `Uint8Array.fromBase64(text, {alphabet, lastChunkHandling})`
pub fn from_base64(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = string(vm, arg(arguments, 0))?;
    let reading = reading(vm, arg(arguments, 1))?;
    let Read { bytes, error, .. } = read_base64(vm, text, &reading, usize::MAX)?;
    match error {
        Some(error) => Err(syntax_error(vm, error)),
        None => Ok(vm.heap.bytes_of(bytes)),
    }
}

/// `Uint8Array.fromHex(text)`
pub fn from_hex(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = string(vm, arg(arguments, 0))?;
    let Read { bytes, error, .. } = read_hex(vm, text, usize::MAX)?;
    match error {
        Some(error) => Err(syntax_error(vm, error)),
        None => Ok(vm.heap.bytes_of(bytes)),
    }
}

/// `bytes.setFromBase64(text, options)`: `{read, written}`.
pub fn set_from_base64(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, "setFromBase64")?;
    let text = string(vm, arg(arguments, 0))?;
    let reading = reading(vm, arg(arguments, 1))?;
    let length = validate(vm, this, "setFromBase64")?;
    let read = read_base64(vm, text, &reading, length)?;
    write(vm, this, &read)
}

/// `bytes.setFromHex(text)`: `{read, written}`.
pub fn set_from_hex(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, "setFromHex")?;
    let text = string(vm, arg(arguments, 0))?;
    let length = validate(vm, this, "setFromHex")?;
    let read = read_hex(vm, text, length)?;
    write(vm, this, &read)
}

/// `bytes.toBase64({alphabet, omitPadding})`
pub fn to_base64(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, "toBase64")?;
    let options = options(vm, arg(arguments, 0))?;
    let alphabet = if is_url_safe(vm, options)? { URL_SAFE } else { STANDARD };
    let omits_padding = option(vm, options, "omitPadding")?;
    let omits_padding = vm.truthy(omits_padding);
    let length = validate(vm, this, "toBase64")?;
    let mut out = text_room(vm, length.div_ceil(3) * 4)?;
    for from in (0..length).step_by(PIECE) {
        let charge = vm.heap.charge_bytes(PIECE.min(length - from) * 2)?;
        let bytes = vm.heap.read_view(this, charge);
        let digit = |bits: u32| alphabet[bits as usize & 63];
        for chunk in bytes[from..length.min(from + PIECE)].chunks(3) {
            let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let text = [digit(bits >> 18), digit(bits >> 12), digit(bits >> 6), digit(bits)];
            out.extend_from_slice(vm, &text[..=chunk.len()])?;
        }
    }
    if !omits_padding && !length.is_multiple_of(3) {
        out.extend_from_slice(vm, &b"=="[..3 - length % 3])?;
    }
    Ok(vm.heap.string_of(out))
}

/// `bytes.toHex()`
pub fn to_hex(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, "toHex")?;
    let length = validate(vm, this, "toHex")?;
    let mut out = text_room(vm, length * 2)?;
    for from in (0..length).step_by(PIECE) {
        let charge = vm.heap.charge_bytes(PIECE.min(length - from) * 2)?;
        let bytes = vm.heap.read_view(this, charge);
        for &byte in &bytes[from..length.min(from + PIECE)] {
            let digit = |bits: u8| b"0123456789abcdef"[usize::from(bits & 15)];
            out.extend_from_slice(vm, &[digit(byte >> 4), digit(byte)])?;
        }
    }
    Ok(vm.heap.string_of(out))
}

/// Room for a text of so many characters.
fn text_room(vm: &mut Vm, length: usize) -> Result<Buffer<u8>> {
    if length as u64 > MAX_STRING {
        return Err(vm.range_error("Invalid string length"));
    }
    Buffer::with_capacity(vm, length)
}

/// An error unless the receiver is a `Uint8Array`.
fn check(vm: &mut Vm, this: Value, method: &str) -> Result<()> {
    if this.is(Kind::Uint8Array) {
        return Ok(());
    }
    Err(super::incompatible(vm, this, &brief!("Uint8Array.prototype.{method}")))
}

/// The text to read, which is not converted.
fn string(vm: &mut Vm, text: Value) -> Result {
    if text.is_string() { Ok(text) } else { Err(vm.type_error("Input argument must be a string")) }
}

#[cold]
fn syntax_error(vm: &mut Vm, message: &str) -> Thrown {
    vm.throw(Class::SyntaxError, message)
}

/// The options, an object where there are any.
fn options(vm: &mut Vm, options: Value) -> Result {
    if options.is_undefined() || options.is_object() {
        return Ok(options);
    }
    Err(vm.type_error("Options must be an object"))
}

fn option(vm: &mut Vm, options: Value, name: &str) -> Result {
    if options.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    let name: Atom = vm.heap.intern_text(name);
    vm.get(options, name)
}

/// Whether the option `alphabet` is `base64url`.
fn is_url_safe(vm: &mut Vm, options: Value) -> Result<bool> {
    let alphabet = option(vm, options, "alphabet")?;
    match (alphabet.is_undefined(), choice(vm, alphabet, &["base64", "base64url"])?) {
        (true, _) => Ok(false),
        (false, Some(choice)) => Ok(choice == 1),
        (false, None) => Err(vm.type_error("The option 'alphabet' must be 'base64' or 'base64url'")),
    }
}

/// Which of these texts a value is.
fn choice(vm: &mut Vm, value: Value, choices: &[&str]) -> Result<Option<usize>> {
    if !value.is_string() {
        return Ok(None);
    }
    let text = vm.heap.charged_bytes(value)?;
    Ok(choices.iter().position(|choice| choice.as_bytes() == text))
}

fn reading(vm: &mut Vm, given: Value) -> Result<Reading> {
    let options = options(vm, given)?;
    let digits = if is_url_safe(vm, options)? { &URL_SAFE_DIGITS } else { &STANDARD_DIGITS };
    let handling = option(vm, options, "lastChunkHandling")?;
    let last_chunk = match (handling, choice(vm, handling, &["loose", "strict", "stop-before-partial"])?) {
        (Value::UNDEFINED, _) | (_, Some(0)) => LastChunk::Loose,
        (_, Some(1)) => LastChunk::Strict,
        (_, Some(_)) => LastChunk::StopBeforePartial,
        (_, None) => {
            let message = "The option 'lastChunkHandling' must be 'loose', 'strict' or 'stop-before-partial'";
            return Err(vm.type_error(message));
        }
    };
    Ok(Reading { digits, last_chunk })
}

/// Write what was read, and give `{read, written}`; an error only comes after that.
fn write(vm: &mut Vm, view: Value, read: &Read) -> Result {
    let charge = vm.heap.charge_bytes(read.bytes.len())?;
    let room = vm.heap.write_view(view, charge);
    if let Some(room) = room.get_mut(..read.bytes.len()) {
        room.copy_from_slice(&read.bytes);
    }
    if let Some(error) = read.error {
        return Err(syntax_error(vm, error));
    }
    let result = vm.heap.new_object();
    for (name, count) in [("read", read.read), ("written", read.bytes.len())] {
        let name = vm.heap.intern_text(name);
        vm.heap.set_own(result, name, Value::number(count as f64));
    }
    Ok(result)
}

/// FromHex of the proposal: no more than `most` bytes.
fn read_hex(vm: &mut Vm, text: Value, most: usize) -> Result<Read> {
    let length = vm.heap.str(text).bytes as usize;
    let mut read = Read { bytes: Buffer::new(), read: 0, error: None };
    if !vm.heap.str(text).units.is_multiple_of(2) {
        read.error = Some(HEX);
        return Ok(read);
    }
    let most = most.min(length / 2);
    read.bytes.room(vm, most)?;
    for from in (0..most * 2).step_by(PIECE) {
        let charge = vm.heap.charge_bytes(PIECE.min(most * 2 - from) * 2)?;
        let text = vm.heap.read_bytes(text, charge);
        for pair in text[from..(most * 2).min(from + PIECE)].chunks_exact(2) {
            let digit = |letter: u8| char::from(letter).to_digit(16);
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                read.error = Some(HEX);
                return Ok(read);
            };
            read.bytes.push(vm, (high << 4 | low) as u8)?;
            read.read += 2;
        }
    }
    Ok(read)
}

/// FromBase64 of the proposal: no more than `most` bytes.
fn read_base64(vm: &mut Vm, text: Value, reading: &Reading, most: usize) -> Result<Read> {
    let length = vm.heap.str(text).bytes as usize;
    let mut out = Read { bytes: Buffer::new(), read: 0, error: None };
    if most == 0 {
        return Ok(out);
    }
    out.bytes.room(vm, most.min(length / 4 * 3 + 3))?;
    let mut chunk = Chunk { bits: 0, length: 0 };
    let mut at = 0;
    while at < length {
        let end = length.min(at + PIECE);
        let charge = vm.heap.charge_bytes((end - at) * 2)?;
        let bytes = &vm.heap.read_bytes(text, charge)[..end];
        while let Some(&character) = bytes.get(at) {
            if chunk.length == 0
                && most - out.bytes.len() > 3
                && let Some(four) = bytes.get(at..at + 4)
                && let Some(whole) = Chunk::of(four, reading.digits)
            {
                out.bytes.extend_from_slice(vm, &whole.bytes())?;
                at += 4;
                out.read = at;
                continue;
            }
            at += 1;
            let digit = reading.digits[usize::from(character)];
            if digit == NONE {
                if is_blank(character) {
                    continue;
                }
                if character != b'=' {
                    out.error = Some(CHARACTER);
                    return Ok(out);
                }
                return padding(vm, text, at, chunk, reading.last_chunk, out);
            }
            let room = most - out.bytes.len();
            if room == 1 && chunk.length == 2 || room == 2 && chunk.length == 3 {
                return Ok(out);
            }
            chunk.push(digit);
            if chunk.length == 4 {
                out.bytes.extend_from_slice(vm, &chunk.bytes())?;
                out.read = at;
                if out.bytes.len() == most {
                    return Ok(out);
                }
                chunk = Chunk { bits: 0, length: 0 };
            }
        }
    }
    if chunk.length > 0 {
        match reading.last_chunk {
            LastChunk::StopBeforePartial => return Ok(out),
            LastChunk::Loose if chunk.length == 1 => out.error = Some(REMAINDER),
            LastChunk::Loose => chunk.finish(vm, false, &mut out)?,
            LastChunk::Strict => out.error = Some(PADDING),
        }
    }
    if out.error.is_none() {
        out.read = length;
    }
    Ok(out)
}

/// What follows the first `=`.
fn padding(
    vm: &mut Vm,
    text: Value,
    mut at: usize,
    chunk: Chunk,
    last_chunk: LastChunk,
    mut out: Read,
) -> Result<Read> {
    if chunk.length < 2 {
        out.error = Some(PADDING);
        return Ok(out);
    }
    let charge = vm.heap.charge_bytes(vm.heap.str(text).bytes as usize - at)?;
    let bytes = vm.heap.read_bytes(text, charge);
    let skip = |at: usize| at + bytes[at..].iter().take_while(|&&byte| is_blank(byte)).count();
    at = skip(at);
    if chunk.length == 2 {
        match bytes.get(at) {
            None if last_chunk == LastChunk::StopBeforePartial => return Ok(out),
            Some(b'=') => at = skip(at + 1),
            None | Some(_) => {
                out.error = Some(PADDING);
                return Ok(out);
            }
        }
    }
    if at < bytes.len() {
        out.error = Some(PADDING);
        return Ok(out);
    }
    chunk.finish(vm, last_chunk == LastChunk::Strict, &mut out)?;
    if out.error.is_none() {
        out.read = at;
    }
    Ok(out)
}

/// Up to four characters.
#[derive(Clone, Copy)]
struct Chunk {
    bits: u32,
    length: usize,
}

impl Chunk {
    fn push(&mut self, digit: u8) {
        self.bits = self.bits << 6 | u32::from(digit);
        self.length += 1;
    }

    /// Four characters, if all of them are digits.
    fn of(four: &[u8], digits: &[u8; 256]) -> Option<Self> {
        let mut bits = 0;
        for &character in four {
            let digit = digits[usize::from(character)];
            if digit == NONE {
                return None;
            }
            bits = bits << 6 | u32::from(digit);
        }
        Some(Self { bits, length: 4 })
    }

    /// The bytes of four characters.
    fn bytes(self) -> [u8; 3] {
        [(self.bits >> 16) as u8, (self.bits >> 8) as u8, self.bits as u8]
    }

    /// Append the bytes of two or three characters. `strict`: the bits beyond them must be 0.
    fn finish(self, vm: &Vm, strict: bool, out: &mut Read) -> Result<()> {
        let bits = self.bits << (6 * (4 - self.length));
        let whole = self.length - 1;
        let bytes = Self { bits, length: 4 }.bytes();
        if strict && bytes[whole] != 0 {
            out.error = Some(EXTRA_BITS);
            return Ok(());
        }
        out.bytes.extend_from_slice(vm, &bytes[..whole])
    }
}

/// ASCII white space.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0xC | b'\r' | b' ')
}

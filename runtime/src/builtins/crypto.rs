//! `crypto`: random values and digests. Random numbers come from the seed, so that a run can be replayed; they are not
//! fit for secrets.

use super::global::webidl_error;
use super::url::coded;
use super::{Body, Global, Row, arg, native, prelude};
use crate::builtins::bytes;
use crate::builtins::dom_exception;
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::fmt::Write as _;

/// The namespace. Its property `subtle` is [`SUBTLE`].
pub const GLOBALS: &[Global] = &[Global {
    name: "crypto",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[native("getRandomValues", 1, get_random_values), native("randomUUID", 0, random_uuid)],
    numbers: &[],
}];

/// `crypto.subtle`
pub const SUBTLE: Global = Global {
    name: "SubtleCrypto",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[prelude("digest", 2, "SubtleCrypto_digest")],
    numbers: &[],
};

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[native("$digest", 2, digest)];

/// Most bytes that [`get_random_values`] makes at once.
const MAX_RANDOM_BYTES: usize = 65_536;

/// `crypto.getRandomValues(bytes)`
fn get_random_values(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let view = arg(arguments, 0);
    if !view.is(Kind::Uint8Array) {
        return Err(dom_exception::exception(
            vm,
            "TypeMismatchError",
            "The data argument must be an integer-type TypedArray",
        ));
    }
    let length = vm.heap.view_length(view);
    if length > MAX_RANDOM_BYTES {
        return Err(dom_exception::exception(vm, "QuotaExceededError", "The requested length exceeds 65,536 bytes"));
    }
    let charge = vm.work(1 + length / 8)?;
    let Vm { heap, random, .. } = vm;
    let bytes = heap.write_view(view, charge);
    bytes.iter_mut().for_each(|byte| *byte = (random.next() * 256.0) as u8);
    Ok(view)
}

/// `crypto.randomUUID()`: a version 4 UUID of RFC 9562.
fn random_uuid(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    vm.work(1)?;
    let mut bytes = [0_u8; 16];
    for byte in &mut bytes {
        *byte = (vm.random.next() * 256.0) as u8;
    }
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let mut text = String::with_capacity(36); // bounded: by the constant
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(vm.heap.string(&text))
}

/// `$digest(self, [algorithm, data])`: an `ArrayBuffer`.
fn digest(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, values) = (arg(arguments, 0), arg(arguments, 1));
    if !this.is(Kind::Native) || super::registry::registry().natives[this.index()].name != SUBTLE.name {
        return Err(coded(vm, "ERR_INVALID_THIS", "Value of \"this\" must be of type SubtleCrypto"));
    }
    let count = vm.heap.length(values);
    let [Some(algorithm), Some(data)] = [0, 1].map(|index| vm.heap.at(values, index)) else {
        let only = brief!("2 arguments required, but only {count} present.");
        let message = brief!("Failed to execute 'digest' on 'SubtleCrypto': {only}");
        return Err(webidl_error(vm, "ERR_MISSING_ARGS", &message));
    };
    if !bytes::is_bytes(data) {
        let message = "Failed to execute 'digest' on 'SubtleCrypto': 2nd argument is not instance of ArrayBuffer, \
                       Buffer, TypedArray, or DataView.";
        return Err(webidl_error(vm, "ERR_INVALID_ARG_TYPE", message));
    }
    let name = algorithm_name(vm, algorithm)?;
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let digest = if is("SHA-1") {
        digest_of::<Sha1>(vm, data)
    } else if is("SHA-256") {
        digest_of::<Sha256>(vm, data)
    } else if is("SHA-384") {
        digest_of::<Sha384>(vm, data)
    } else if is("SHA-512") {
        digest_of::<Sha512>(vm, data)
    } else {
        return Err(dom_exception::exception(vm, "NotSupportedError", "Unrecognized algorithm name"));
    }?;
    Ok(vm.heap.new_byte_buffer(digest.into_vec(), None))
}

/// The name of an algorithm, which is a text or an object with a `name`.
fn algorithm_name(vm: &mut Vm, algorithm: Value) -> Result<Buffer<u8>> {
    let name = if algorithm.is_object() {
        match vm.get(algorithm, known::NAME)? {
            Value::UNDEFINED => return Err(no_name(vm)),
            name => name,
        }
    } else {
        algorithm
    };
    let name = vm.to_string(name)?;
    vm.heap.charged_copy(name)
}

#[cold]
fn no_name(vm: &mut Vm) -> Thrown {
    let message = "Failed to normalize algorithm: passed algorithm can not be converted to 'Algorithm' because 'name' is \
                   required in 'Algorithm'.";
    webidl_error(vm, "ERR_MISSING_OPTION", message)
}

/// Bytes that are digested between two charges, and how many take about the time of one statement.
const PIECE: usize = 16 << 10;
const DIGESTED_A_STEP: usize = 8;

fn digest_of<D: Digest>(vm: &mut Vm, data: Value) -> Result<Buffer<u8>> {
    let length = vm.heap.byte_length(data);
    let mut state = D::new();
    for from in (0..length).step_by(PIECE) {
        let to = length.min(from + PIECE);
        let charge = vm.work((to - from) / DIGESTED_A_STEP)?;
        state.update(&vm.heap.read_view(data, charge)[from..to]);
    }
    vm.work(16)?;
    let mut digest = Buffer::new();
    digest.extend_from_slice(vm, &state.finalize())?;
    Ok(digest)
}

//! `crypto.randomUUID`. Its random numbers come from the seed, so that a run can be replayed; they are not fit for
//! secrets.

use super::{Body, Global, native};
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;
use std::fmt::Write as _;

/// The namespace.
pub const GLOBALS: &[Global] = &[Global {
    name: "crypto",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[native("randomUUID", 0, random_uuid)],
    numbers: &[],
}];

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
    Ok(vm.string(&text))
}

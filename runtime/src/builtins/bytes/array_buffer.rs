//! `ArrayBuffer`: bytes that views show.

use super::{MAX_BYTES, detached, incompatible, part, to_index};
use crate::builtins::{Row, arg, getter, native};
use crate::eval::vm::Vm;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// Methods of buffers.
pub const BUFFER_METHODS: &[Row] = &[
    getter("byteLength", byte_length),
    getter("detached", is_detached),
    getter("maxByteLength", max_byte_length),
    getter("resizable", resizable),
    native("resize", 1, resize),
    native("slice", 2, slice_buffer),
    native("transfer", 0, transfer::<true>),
    native("transferToFixedLength", 0, transfer::<false>),
];

pub(super) fn call_buffer(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Constructor ArrayBuffer requires 'new'"))
}

/// `new ArrayBuffer(length, {maxByteLength})`
pub(super) fn new_buffer(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let Some(length) = to_index(vm, arg(arguments, 0))? else {
        return Err(vm.range_error("Invalid array buffer length"));
    };
    let mut max = None;
    if arg(arguments, 1).is_object() {
        let name = vm.heap.intern_text("maxByteLength");
        let most = vm.get(arg(arguments, 1), name)?;
        if !most.is_undefined() {
            max = match to_index(vm, most)? {
                Some(most) if most >= length => Some(most),
                _ => return Err(vm.range_error("Invalid array buffer max length")),
            };
        }
    }
    if length.max(max.unwrap_or(0.0)) > MAX_BYTES {
        return Err(vm.range_error("Array buffer allocation failed"));
    }
    let bytes = vm.heap.zeros(length as usize)?.into_vec();
    Ok(vm.heap.new_byte_buffer(bytes, max.map(|max| max as usize)))
}

/// `ArrayBuffer.isView(value)`
pub(super) fn is_view(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(arg(arguments, 0).is(Kind::Uint8Array)))
}

/// `byteLength` of a buffer
fn byte_length(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.heap.byte_buffers[this.index()].bytes.len() as f64))
}

fn max_byte_length(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let data = &vm.heap.byte_buffers[this.index()];
    let most = if data.detached { 0 } else { data.max.unwrap_or(data.bytes.len()) };
    Ok(Value::number(most as f64))
}

fn resizable(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::bool(vm.heap.byte_buffers[this.index()].max.is_some()))
}

fn resize(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_buffer(vm, this, "ArrayBuffer.prototype.resize")?;
    let Some(max) = vm.heap.byte_buffers[this.index()].max else {
        return Err(incompatible(vm, this, "ArrayBuffer.prototype.resize"));
    };
    let length = to_index(vm, arg(arguments, 0))?;
    if vm.heap.byte_buffers[this.index()].detached {
        return Err(detached(vm, "ArrayBuffer.prototype.resize"));
    }
    let Some(length) = length.filter(|length| *length <= max as f64) else {
        return Err(vm.range_error("ArrayBuffer.prototype.resize: Invalid length parameter"));
    };
    let (length, present) = (length as usize, vm.heap.byte_buffers[this.index()].bytes.len());
    // Growing may copy what is there.
    vm.heap.charge_bytes(length.max(present))?;
    if length > present {
        vm.reserve(length)?;
    }
    vm.heap.resize_buffer(this, length);
    Ok(Value::UNDEFINED)
}

fn is_detached(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check_buffer(vm, this, "ArrayBuffer.prototype.detached")?;
    Ok(Value::bool(vm.heap.byte_buffers[this.index()].detached))
}

/// `buffer.transfer(length)`, and `buffer.transferToFixedLength(length)`, whose result cannot be resized.
fn transfer<const KEEPS_MAX: bool>(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let name = match KEEPS_MAX {
        true => "ArrayBuffer.prototype.transfer",
        false => "ArrayBuffer.prototype.transferToFixedLength",
    };
    check_buffer(vm, this, name)?;
    let present = vm.heap.byte_buffers[this.index()].bytes.len();
    let length = match arg(arguments, 0) {
        Value::UNDEFINED => Some(present as f64),
        length => to_index(vm, length)?,
    };
    if vm.heap.byte_buffers[this.index()].detached {
        return Err(detached(vm, name));
    }
    let max = vm.heap.byte_buffers[this.index()].max.filter(|_| KEEPS_MAX);
    let most = max.map_or(MAX_BYTES, |max| max as f64);
    let Some(length) = length.filter(|length| *length <= most) else {
        return Err(vm.range_error("Invalid array buffer length"));
    };
    let length = length as usize;
    vm.heap.charge_bytes(length.max(present))?;
    vm.reserve(length)?;
    let (mut bytes, _) = vm.heap.detach_buffer(this);
    bytes.resize(length, 0);
    Ok(vm.heap.new_byte_buffer(bytes, max))
}

fn slice_buffer(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_buffer(vm, this, "ArrayBuffer.prototype.slice")?;
    let is_detached = |vm: &Vm| vm.heap.byte_buffers[this.index()].detached;
    if is_detached(vm) {
        return Err(detached(vm, "ArrayBuffer.prototype.slice"));
    }
    let length = vm.heap.byte_buffers[this.index()].bytes.len();
    let from = vm.to_position(arg(arguments, 0), length, 0)?;
    let to = vm.to_position(arg(arguments, 1), length, length)?;
    if is_detached(vm) {
        return Err(detached(vm, "ArrayBuffer.prototype.slice"));
    }
    // The conversions may have resized it: what is not there any more is 0.
    let mut copy = part(vm, this, from, to)?;
    let missing = to.saturating_sub(from) - copy.len();
    copy.extend(vm, std::iter::repeat_n(0, missing))?;
    Ok(vm.heap.new_byte_buffer(copy.into_vec(), None))
}

fn check_buffer(vm: &mut Vm, this: Value, method: &str) -> Result<()> {
    if this.is(Kind::ArrayBuffer) { Ok(()) } else { Err(incompatible(vm, this, method)) }
}

//! Searching with an `exec` that the script has given to an object (ECMAScript 22.2.7.1). The call is nested, as
//! conversions are; `replace` with it is in the prelude.

use super::exec::{advanced, exec, set_last_index};
use crate::builtins::arg;
use crate::eval::vm::Vm;
use crate::heap::RegExp;
use crate::meter::buffer::Buffer;
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// Whether an object has an `exec` of the script, so that searches call it.
#[inline]
pub fn has_exec(vm: &mut Vm, object: Value) -> Result<bool> {
    let is_regexp = vm.heap.has_slots::<RegExp>(object);
    if is_regexp && !vm.has_own_method(object, known::EXEC) || !object.is_object() || object.is(Kind::App) {
        return Ok(false);
    }
    Ok(vm.get(object, known::EXEC)?.is_callable())
}

/// The result of the `exec` of an object: an object or `null`.
fn result(vm: &mut Vm, object: Value, string: Value) -> Result {
    let own = vm.get(object, known::EXEC)?;
    if !own.is_callable() {
        return exec(vm, object, &[string]);
    }
    let result = vm.call_nested(own, object, &[string])?;
    check(vm, result)
}

fn check(vm: &mut Vm, result: Value) -> Result {
    if result.is_object() || result == Value::NULL {
        return Ok(result);
    }
    Err(vm.type_error("RegExp exec method returned something other than an Object or null"))
}

/// `regexp.test(string)`
pub fn test(vm: &mut Vm, object: Value, string: Value) -> Result {
    let string = vm.to_string(string)?;
    Ok(Value::bool(result(vm, object, string)? != Value::NULL))
}

/// `string.match(regexp)`
pub fn match_text(vm: &mut Vm, string: Value, regexp: Value) -> Result {
    if !is_global(vm, regexp) {
        return result(vm, regexp, string);
    }
    set_last_index(vm, regexp, 0)?;
    let mut found = Buffer::new();
    loop {
        vm.work(1)?;
        let result = result(vm, regexp, string)?;
        if result == Value::NULL {
            break;
        }
        let text = vm.get_index(result, Value::ZERO)?;
        let text = vm.to_string(text)?;
        found.push(vm, text)?;
        advance(vm, Value::UNDEFINED, &[regexp, string, text])?;
    }
    Ok(if found.is_empty() { Value::NULL } else { vm.heap.array_of(found) })
}

/// `string.search(regexp)`
pub fn search(vm: &mut Vm, string: Value, regexp: Value) -> Result {
    let before = vm.get(regexp, known::LAST_INDEX)?;
    if !vm.same_value(before, Value::ZERO)? {
        set_last_index(vm, regexp, 0)?;
    }
    let result = result(vm, regexp, string)?;
    let after = vm.get(regexp, known::LAST_INDEX)?;
    if !vm.same_value(before, after)? {
        vm.set(regexp, known::LAST_INDEX, before)?;
    }
    if result == Value::NULL { Ok(Value::number(-1.0)) } else { vm.get(result, known::INDEX) }
}

/// `$hasExec(regexp)`
pub fn observed(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    has_exec(vm, arg(arguments, 0)).map(Value::bool)
}

/// `$execResult(result)`: what an `exec` has given; an error unless it is an object or `null`.
pub fn exec_result(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    check(vm, arg(arguments, 0))
}

/// `$advance(regexp, string, match)`: behind an empty match the search goes on at the next character.
pub fn advance(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let [regexp, string, text] = [0, 1, 2].map(|index| arg(arguments, index));
    if vm.heap.str(text).bytes > 0 {
        return Ok(Value::UNDEFINED);
    }
    let last = vm.get(regexp, known::LAST_INDEX)?;
    let last = vm.to_integer(last)?.max(0.0);
    let is_unicode = vm.heap.regexp(regexp).is_some_and(|regexp| regexp.program.flags.is_unicode());
    let next = if last < f64::from(vm.heap.str(string).units) {
        advanced(vm, is_unicode, string, last as usize)? as f64
    } else {
        last + 1.0
    };
    vm.set(regexp, known::LAST_INDEX, Value::number(next))?;
    Ok(Value::UNDEFINED)
}

fn is_global(vm: &Vm, regexp: Value) -> bool {
    vm.heap.regexp(regexp).is_some_and(|regexp| regexp.program.flags.global)
}

//! `match`, `matchAll`, `search` and `split` of strings (ECMAScript 22.1.3 and 22.2.6).

use super::exec::{behind, find, group, match_array, next, set_last_index};
use super::from_text;
use super::observed::{self, has_exec};
use crate::builtins::arg;
use crate::builtins::string::{part, receiver};
use crate::eval::vm::Vm;
use crate::heap::{RegExp, Yields};
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::atom::known;
use crate::value::numeric::to_int32;
use crate::value::thrown::Result;
use agentscript_lang::regexp::Flags;

/// `string.match(pattern)`
pub fn match_text(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "match")?;
    let regexp = pattern(vm, arg(arguments, 0), Flags::default())?;
    if has_exec(vm, regexp)? {
        return observed::match_text(vm, string, regexp);
    }
    let global = vm.heap.regexp(regexp).is_some_and(|regexp| regexp.program.flags.global);
    if !global {
        return match next(vm, regexp, string)? {
            Some(program) => match_array(vm, &program, string),
            None => Ok(Value::NULL),
        };
    }
    set_last_index(vm, regexp, 0)?;
    let mut found = Buffer::new();
    while let Some(program) = next(vm, regexp, string)? {
        let Some((start, end)) = vm.pools.matcher.group(0) else { break };
        let text = part(vm, string, start, end)?;
        found.push(vm, text)?;
        if start == end {
            let behind = behind(vm, &program, string, end)?;
            set_last_index(vm, regexp, behind)?;
        }
    }
    Ok(if found.is_empty() { Value::NULL } else { vm.heap.array_of(found) })
}

/// `string.matchAll(pattern)`
pub fn match_all(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if this.is_nullish() {
        receiver(vm, this, "matchAll")?;
    }
    let wanted = arg(arguments, 0);
    let known = vm.heap.regexp(wanted).cloned();
    if known.as_ref().is_some_and(|known| !known.program.flags.global) {
        return Err(vm.type_error("String.prototype.matchAll called with a non-global RegExp argument"));
    }
    let string = receiver(vm, this, "matchAll")?;
    let regexp = match known {
        Some(RegExp { program, source, last_index }) => {
            let last_index = vm.to_integer(last_index)?.max(0.0);
            let copy = vm.heap.new_regexp(program, source);
            vm.set(copy, known::LAST_INDEX, Value::number(last_index))?;
            copy
        }
        None => pattern(vm, wanted, Flags { global: true, ..Flags::default() })?,
    };
    let source = vm.heap.new_array(vec![regexp, string]);
    Ok(vm.heap.new_iterator(source, Yields::Matches))
}

/// `string.search(pattern)`
pub fn search(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "search")?;
    let regexp = pattern(vm, arg(arguments, 0), Flags::default())?;
    if has_exec(vm, regexp)? {
        return observed::search(vm, string, regexp);
    }
    let Some(RegExp { program, .. }) = vm.heap.regexp(regexp).cloned() else { return Ok(Value::UNDEFINED) };
    let found = find(vm, &program, string, 0, program.flags.sticky)?;
    let range = vm.pools.matcher.group(0).filter(|_| found);
    Ok(Value::number(range.map_or(-1.0, |(start, _)| start as f64)))
}

/// The regular expression that is the argument of a method of strings, or made from it.
fn pattern(vm: &mut Vm, value: Value, flags: Flags) -> Result {
    if vm.heap.regexp(value).is_some() {
        return Ok(value);
    }
    let source = if value.is_undefined() { vm.heap.atom_string(known::EMPTY) } else { vm.to_string(value)? };
    from_text(vm, source, flags)
}

/// `string.split(regexp, limit)` (22.2.6.14)
pub fn split(vm: &mut Vm, string: Value, regexp: Value, limit: Value) -> Result {
    let Some(RegExp { program, .. }) = vm.heap.regexp(regexp).cloned() else { return Ok(Value::UNDEFINED) };
    let limit = match limit {
        Value::UNDEFINED => usize::MAX,
        limit => to_int32(vm.to_number(limit)?) as u32 as usize,
    };
    let mut pieces = Buffer::new();
    let length = vm.heap.str(string).units as usize;
    if limit == 0 {
        return Ok(vm.heap.array_of(pieces));
    }
    if length == 0 {
        if !find(vm, &program, string, 0, true)? {
            pieces.push(vm, string)?;
        }
        return Ok(vm.heap.array_of(pieces));
    }
    let (mut begin, mut from) = (0, 0);
    let sticky = program.flags.sticky;
    while from < length {
        if !find(vm, &program, string, from, sticky)? {
            if !sticky {
                break;
            }
            from = behind(vm, &program, string, from)?;
            continue;
        }
        let Some((start, end)) = vm.pools.matcher.group(0) else { break };
        if start >= length {
            break;
        }
        if end == begin {
            from = behind(vm, &program, string, start.max(from))?;
            continue;
        }
        vm.work(program.groups as usize + 1)?;
        let piece = part(vm, string, begin, start)?;
        pieces.push(vm, piece)?;
        for number in 1..=program.groups {
            if pieces.len() == limit {
                break;
            }
            let range = vm.pools.matcher.group(number);
            let text = group(vm, string, range)?;
            pieces.push(vm, text)?;
        }
        if pieces.len() >= limit {
            return Ok(vm.heap.array_of(pieces));
        }
        (begin, from) = (end, end);
    }
    let piece = part(vm, string, begin, length)?;
    pieces.push(vm, piece)?;
    Ok(vm.heap.array_of(pieces))
}

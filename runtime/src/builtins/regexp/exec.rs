//! Searching: `exec`, `test`, and the arrays that describe a match (ECMAScript 22.2.7).

use super::observed;
use crate::builtins::arg;
use crate::builtins::string::part;
use crate::eval::vm::Vm;
use crate::heap::RegExp;
use crate::heap::object::{FROZEN, NULL_PROTOTYPE};
use crate::meter::buffer::{Buffer, Hold};
use crate::regexp::{Program, Progress};
use crate::value::Value;
use crate::value::atom::known;
use crate::value::thrown::Result;
use std::sync::Arc;

/// Steps of the matcher between two charges, and how many of them are one unit of work.
const SLICE: usize = 1 << 14;
const STEPS: usize = 4;
/// Bytes of the matcher that are reused for the next search.
const KEPT: usize = 1 << 20;

/// `regexp.exec(string)`
pub fn exec(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, "exec")?;
    let string = vm.to_string(arg(arguments, 0))?;
    match next(vm, this, string)? {
        Some(program) => match_array(vm, &program, string),
        None => Ok(Value::NULL),
    }
}

/// `regexp.test(string)`
pub fn test(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if observed::has_exec(vm, this)? {
        return observed::test(vm, this, arg(arguments, 0));
    }
    if !this.is_object() {
        return Err(incompatible(vm, "test", "undefined"));
    }
    let string = vm.to_string(arg(arguments, 0))?;
    check(vm, this, "exec")?;
    Ok(Value::bool(next(vm, this, string)?.is_some()))
}

fn check(vm: &mut Vm, this: Value, method: &str) -> Result<()> {
    if vm.heap.regexp(this).is_some() {
        return Ok(());
    }
    let what = vm.describe(this);
    Err(incompatible(vm, method, &what))
}

fn incompatible(vm: &mut Vm, method: &str, what: &str) -> crate::value::thrown::Thrown {
    vm.type_error(&brief!("Method RegExp.prototype.{method} called on incompatible receiver {what}"))
}

/// The next match of an iterator of `matchAll`, whose source is a regular expression and a string.
pub fn next_match(vm: &mut Vm, source: Value) -> Result<Option<Value>> {
    let Some([regexp, string]) = vm.heap.first_items(source) else { return Ok(None) };
    let Some(program) = next(vm, regexp, string)? else { return Ok(None) };
    if !program.flags.global {
        // The only one: the iterator ends.
        vm.heap.with_items(source, Vec::clear);
    } else if let Some((start, end)) = vm.pools.matcher.group(0)
        && start == end
    {
        let behind = behind(vm, &program, string, end)?;
        set_last_index(vm, regexp, behind)?;
    }
    match_array(vm, &program, string).map(Some)
}

/// The next match, found from `lastIndex` on and stored there if the flags ask for it (22.2.7.2). The matcher has its
/// ranges.
pub fn next(vm: &mut Vm, regexp: Value, string: Value) -> Result<Option<Arc<Program>>> {
    let Some(RegExp { program, last_index, .. }) = vm.heap.regexp(regexp).cloned() else { return Ok(None) };
    let from = match last_index {
        Value::ZERO => 0.0,
        other => vm.to_integer(other)?.max(0.0),
    };
    let moves = program.flags.global || program.flags.sticky;
    let from = if moves { from } else { 0.0 };
    let fits = from <= f64::from(vm.heap.str(string).units);
    let found = fits && find(vm, &program, string, from as usize, program.flags.sticky)?;
    if moves {
        let end = vm.pools.matcher.group(0).filter(|_| found).map_or(0, |(_, end)| end);
        if found || last_index != Value::ZERO || vm.heap.flags(regexp) & FROZEN != 0 {
            set_last_index(vm, regexp, end)?;
        }
    }
    Ok(found.then_some(program))
}

/// Write `lastIndex`; an error where the object is frozen.
pub fn set_last_index(vm: &mut Vm, regexp: Value, index: usize) -> Result<()> {
    vm.set(regexp, known::LAST_INDEX, Value::number(index as f64))
}

/// The position to continue at after an empty match.
pub fn behind(vm: &mut Vm, program: &Program, string: Value, index: usize) -> Result<usize> {
    advanced(vm, program.flags.is_unicode(), string, index)
}

/// The position of the next character (22.2.7.3).
pub fn advanced(vm: &mut Vm, is_unicode: bool, string: Value, index: usize) -> Result<usize> {
    let is_pair = is_unicode
        && matches!(vm.heap.code_unit(string, index)?, Some(0xD800..=0xDBFF))
        && matches!(vm.heap.code_unit(string, index + 1)?, Some(0xDC00..=0xDFFF));
    Ok(index + 1 + usize::from(is_pair))
}

/// Search from an index on, charged; gives whether there is a match.
pub fn find(vm: &mut Vm, program: &Arc<Program>, string: Value, from: usize, sticky: bool) -> Result<bool> {
    if vm.heap.str(string).is_ascii() {
        return search(vm, program, string, from, sticky);
    }
    let text = vm.heap.charged_utf16(string)?;
    let before = from.checked_sub(1).and_then(|before| text.get(before));
    let splits_pair = matches!((before, text.get(from)), (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)));
    // Where characters are code points, a search begins at the first half of a pair; V8 then tries the second one, too.
    if program.flags.is_unicode() && splits_pair {
        if search(vm, program, string, from - 1, sticky)? {
            return Ok(true);
        }
        if !sticky {
            return Ok(false);
        }
    }
    search(vm, program, string, from, sticky)
}

/// The same; the UTF-16 of a string that is not ASCII is known.
fn search(vm: &mut Vm, program: &Arc<Program>, string: Value, from: usize, sticky: bool) -> Result<bool> {
    let header = vm.heap.str(string);
    let room = vm.heap.meter.limits.max_memory_bytes as usize / 4;
    let mut charge = vm.work(1)?;
    let mut matcher = std::mem::take(&mut vm.pools.matcher);
    matcher.begin(program, from, sticky);
    let mut hold = Hold::NONE;
    let mut held = 0;
    loop {
        let (progress, steps) = if header.is_ascii() {
            matcher.run(program, vm.heap.read_bytes(string, charge), SLICE, room)
        } else {
            matcher.run(program, vm.heap.read_utf16(string, charge), SLICE, room)
        };
        charge = vm.work(steps / STEPS)?;
        let bytes = matcher.bytes();
        if progress == Progress::Paused {
            if bytes > held {
                hold.grow(vm, bytes - held)?;
                held = bytes;
            }
            // Its memory may double before the next check.
            vm.reserve(bytes)?;
            continue;
        }
        if bytes > KEPT {
            matcher.shrink();
        }
        vm.pools.matcher = matcher;
        return Ok(progress == Progress::Matched);
    }
}

/// The text of a group, or `undefined`.
pub fn group(vm: &mut Vm, string: Value, range: Option<(usize, usize)>) -> Result {
    match range {
        Some((start, end)) => part(vm, string, start, end),
        None => Ok(Value::UNDEFINED),
    }
}

/// An array of the match and its groups, with `index`, `input`, `groups` and `indices`.
pub fn match_array(vm: &mut Vm, program: &Program, string: Value) -> Result {
    let count = program.groups as usize + 1;
    vm.work(4 + count)?;
    let mut items = Buffer::with_capacity(vm, count)?;
    for number in 0..=program.groups {
        let range = vm.pools.matcher.group(number);
        let text = group(vm, string, range)?;
        items.push(vm, text)?;
    }
    let start = vm.pools.matcher.group(0).map_or(0, |(start, _)| start);
    let groups = named(vm, program, &items)?;
    let found = vm.heap.array_of(items);
    let extra =
        vm.heap.object_of(&[known::INDEX, known::INPUT, known::GROUPS], &[Value::number(start as f64), string, groups]);
    vm.heap.set_extra(found, extra);
    if program.flags.has_indices {
        let mut pairs = Buffer::with_capacity(vm, count)?;
        for number in 0..=program.groups {
            vm.work(1)?;
            let pair = match vm.pools.matcher.group(number) {
                Some((start, end)) => vm.heap.new_array(vec![Value::number(start as f64), Value::number(end as f64)]),
                None => Value::UNDEFINED,
            };
            pairs.push(vm, pair)?;
        }
        let groups = named(vm, program, &pairs)?;
        let indices = vm.heap.array_of(pairs);
        let named = vm.heap.extra_of(indices);
        vm.heap.set_own(named, known::GROUPS, groups);
        vm.heap.set_own(extra, known::INDICES, indices);
    }
    Ok(found)
}

/// An object of the named groups, by their values; `undefined` where no group has a name.
pub fn named(vm: &mut Vm, program: &Program, values: &[Value]) -> Result {
    if program.names.is_empty() {
        return Ok(Value::UNDEFINED);
    }
    let mut keys = Buffer::with_capacity(vm, program.names.len())?;
    let mut items = Buffer::with_capacity(vm, program.names.len())?;
    for (name, number) in &program.names {
        vm.work(1 + name.len() / 16)?;
        let atom = vm.heap.intern_bytes(name);
        keys.push(vm, atom)?;
        items.push(vm, values.get(*number as usize).copied().unwrap_or(Value::UNDEFINED))?;
    }
    let object = vm.heap.object_of(&keys, &items);
    vm.heap.add_flags(object, NULL_PROTOTYPE);
    Ok(object)
}

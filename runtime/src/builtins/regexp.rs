//! `RegExp` (ECMAScript 22.2): the constructor and properties. Searching is in [`exec`], methods of strings are in
//! [`text`] and [`replace`].
//!
//! A script cannot replace `Symbol.match` and similar methods, so methods of strings do not look them up. An `exec` of
//! its own is called by [`observed`].

mod exec;
pub mod observed;
mod replace;
mod text;

pub use exec::next_match;
pub use replace::replace_matches;
pub use text::{match_all, match_text, search, split};

use super::{Body, Global, Row, arg, getter, native};
use crate::eval::regexp_literal::program_of;
use crate::eval::vm::Vm;
use crate::heap::{Class, RegExp};
use crate::meter::buffer::Buffer;
use crate::text::wtf8::to_utf16;
use crate::value::Value;
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use agentscript_lang::regexp::Flags;
use std::sync::Arc;

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "RegExp",
    length: 2,
    call: Body::Native(call),
    construct: Some(Body::Native(construct)),
    functions: &[native("escape", 1, super::escape::escape_pattern)],
    numbers: &[],
}];

/// Methods and properties of regular expressions.
pub const METHODS: &[Row] = &[
    native("exec", 1, exec::exec),
    native("test", 1, exec::test),
    native("toString", 0, to_string),
    getter("source", source),
    getter("flags", flags),
    getter("dotAll", |vm, this, _| flag(vm, this, |flags| flags.dot_all)),
    getter("global", |vm, this, _| flag(vm, this, |flags| flags.global)),
    getter("hasIndices", |vm, this, _| flag(vm, this, |flags| flags.has_indices)),
    getter("ignoreCase", |vm, this, _| flag(vm, this, |flags| flags.ignore_case)),
    getter("multiline", |vm, this, _| flag(vm, this, |flags| flags.multiline)),
    getter("sticky", |vm, this, _| flag(vm, this, |flags| flags.sticky)),
    getter("unicode", |vm, this, _| flag(vm, this, |flags| flags.unicode)),
    getter("unicodeSets", |vm, this, _| flag(vm, this, |flags| flags.unicode_sets)),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$isRegExp", 1, is_regexp),
    native("$hasExec", 1, observed::observed),
    native("$execResult", 1, observed::exec_result),
    native("$advance", 3, observed::advance),
    native("$matches", 2, replace::matches),
    native("$replaceMatches", 3, replace_matches),
];

/// Most programs in the cache, and the largest one that is cached.
const CACHED: usize = 64;
const CACHED_BYTES: usize = 16 << 10;

/// `RegExp(pattern, flags)`
fn call(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let pattern = arg(arguments, 0);
    if vm.heap.regexp(pattern).is_some() && arg(arguments, 1).is_undefined() {
        return Ok(pattern);
    }
    construct(vm, this, arguments)
}

/// `new RegExp(pattern, flags)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (pattern, flags) = (arg(arguments, 0), arg(arguments, 1));
    let known = vm.heap.regexp(pattern).map(|known| (known.source, known.program.flags));
    let source = match known {
        Some((source, _)) => source,
        None if pattern.is_undefined() => vm.heap.atom_string(known::EMPTY),
        None => vm.to_string(pattern)?,
    };
    let flags = match known {
        Some((_, same)) if flags.is_undefined() => same,
        _ if flags.is_undefined() => Flags::default(),
        _ => {
            let text = vm.to_string(flags)?;
            match Flags::parse(vm.heap.charged_bytes(text)?) {
                Some(flags) => flags,
                None => {
                    let before = vm.heap.string("Invalid flags supplied to RegExp constructor '");
                    let message = vm.concat(before, text)?;
                    let after = vm.heap.string("'");
                    let message = vm.concat(message, after)?;
                    return Err(Thrown::value(vm.error_of(Class::SyntaxError, message)));
                }
            }
        }
    };
    from_text(vm, source, flags)
}

/// A regular expression of a text that is a string.
fn from_text(vm: &mut Vm, source: Value, flags: Flags) -> Result {
    let length = vm.heap.str(source).bytes as usize;
    let charge = vm.work(length / 64)?;
    if length <= CACHED_BYTES {
        let bytes = vm.heap.read_bytes(source, charge);
        if let Some(program) = vm.realm.regexp_cache.get(&(bytes.into(), flags)) {
            let program = Arc::clone(program);
            return Ok(vm.heap.new_regexp(program, source));
        }
    }
    let charge = vm.heap.meter.charge_piece(64 + length.saturating_mul(16), 40)?;
    let program = program_of(vm, source, flags, charge)?;
    if length + program.bytes() <= CACHED_BYTES {
        if vm.realm.regexp_cache.len() >= CACHED {
            vm.realm.regexp_cache.clear();
        }
        let bytes = vm.heap.read_bytes(source, charge).into();
        vm.realm.regexp_cache.insert((bytes, flags), Arc::clone(&program));
    }
    Ok(vm.heap.new_regexp(program, source))
}

/// `regexp.toString()`, which works on anything with `source` and `flags`.
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !this.is_object() {
        let what = vm.describe(this);
        let text = brief!("Method RegExp.prototype.toString called on incompatible receiver {what}");
        return Err(vm.type_error(&text));
    }
    let (source, flags) = (vm.heap.intern_text("source"), vm.heap.intern_text("flags"));
    let slash = vm.heap.string("/");
    let mut text = slash;
    for (part, tail) in [(source, Some(slash)), (flags, None)] {
        let part = vm.get(this, part)?;
        let part = vm.to_string(part)?;
        text = vm.concat(text, part)?;
        if let Some(tail) = tail {
            text = vm.concat(text, tail)?;
        }
    }
    Ok(text)
}

/// The literal of a regular expression, independent of its properties.
pub fn literal_text(vm: &mut Vm, regexp: Value) -> Result<String> {
    let (source, flags) = (source(vm, regexp, &[])?, flags(vm, regexp, &[])?);
    let charge = vm.heap.charge_string(source)?;
    let (source, flags) = (vm.heap.read_text(source, charge), vm.heap.read_text(flags, charge));
    Ok(charge.text(format_args!("/{source}/{flags}")))
}

/// `regexp.source` (22.2.6.13.1): the pattern as a literal has it.
fn source(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let Some(&RegExp { source, .. }) = vm.heap.regexp(this) else { return Ok(Value::UNDEFINED) };
    let charge = vm.heap.charge_string(source)?;
    let bytes = vm.heap.read_bytes(source, charge);
    if bytes.is_empty() {
        return Ok(vm.heap.string("(?:)"));
    }
    if !bytes.iter().any(|byte| matches!(byte, b'/' | b'\n' | b'\r' | 0xE2)) {
        return Ok(source);
    }
    // Each character may need five more bytes.
    let length = bytes.len();
    let _room = vm.heap.hold(length.saturating_mul(10))?;
    let (mut units, mut escaped, mut in_class) = (Buffer::new(), false, false);
    for unit in to_utf16(vm.heap.read_bytes(source, charge)) {
        let ends_line = match unit {
            0x0A => "n",
            0x0D => "r",
            0x2028 => "u2028",
            0x2029 => "u2029",
            _ => "",
        };
        if !ends_line.is_empty() {
            units.extend(vm, (!escaped).then_some(u16::from(b'\\')))?;
            units.extend(vm, ends_line.bytes().map(u16::from))?;
            escaped = false;
            continue;
        }
        let plain = u8::try_from(unit).unwrap_or(0);
        if !escaped {
            match plain {
                b'/' if !in_class => units.push(vm, u16::from(b'\\'))?,
                b'[' => in_class = true,
                b']' => in_class = false,
                _ => {}
            }
        }
        escaped = !escaped && plain == b'\\';
        units.push(vm, unit)?;
    }
    vm.heap.string_of_utf16(&units)
}

/// `regexp.flags`
fn flags(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let text = vm.heap.regexp(this).map(|regexp| regexp.program.flags.to_string());
    Ok(text.map_or(Value::UNDEFINED, |text| vm.heap.string(&text)))
}

fn flag(vm: &mut Vm, this: Value, which: fn(Flags) -> bool) -> Result {
    Ok(vm.heap.regexp(this).map_or(Value::UNDEFINED, |regexp| Value::bool(which(regexp.program.flags))))
}

/// `$isRegExp(value)`
fn is_regexp(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(vm.heap.has_slots::<RegExp>(arg(arguments, 0))))
}

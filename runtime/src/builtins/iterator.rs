//! Iterators of built-in collections, for `for…of`, spread and `next()`. Also the iterator records of iterables of the
//! script, whose methods only operations and the prelude call.

use super::url::coded;
use super::{Row, native, prelude};
use crate::builtins::url::params;
use crate::eval::vm::Vm;
use crate::heap::{Iterator, Yields};
use crate::value::atom::{Atom, known};
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// Methods of iterators, by family.
pub const METHODS: &[(Family, &[Row])] = &[
    (Family::ArrayIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::ArrayIterator))]),
    (Family::MapIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::MapIterator))]),
    (Family::SetIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::SetIterator))]),
    (Family::StringIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::StringIterator))]),
    (Family::RegExpStringIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::RegExpStringIterator))]),
    (Family::ParamsIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::ParamsIterator))]),
    (Family::HeadersIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::HeadersIterator))]),
    (Family::SegmentsIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::SegmentsIterator))]),
];

/// Methods whose keys are symbols, by family.
pub const SYMBOL_METHODS: &[(&[Family], Atom, &Row)] = &[
    (&[Family::String], known::SYMBOL_ITERATOR, &native("[Symbol.iterator]", 0, string_iterator)),
    (Family::ITERATORS, known::SYMBOL_ITERATOR, &native("[Symbol.iterator]", 0, itself)),
    (&[Family::Segments], known::SYMBOL_ITERATOR, &native("[Symbol.iterator]", 0, segments_iterator)),
    (&[Family::AsyncGenerator], known::SYMBOL_ASYNC_ITERATOR, &native("[Symbol.asyncIterator]", 0, itself)),
];

/// Functions that only the prelude and the evaluator can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$isScriptIterable", 1, is_script_iterable),
    native("$asyncIterable", 1, is_async_iterable),
    native("$notAResult", 1, not_a_result),
    prelude("$listed", 1, "Iterable_list"),
    prelude("$asyncFromSync", 2, "Iterable_asyncFromSync"),
];

/// `iterator.next()`
fn next(vm: &mut Vm, this: Value, family: Family) -> Result {
    if !this.is(Kind::Iterator) || vm.family(this) != family {
        return Err(incompatible(vm, this, family));
    }
    let item = vm.iterator_next(this)?;
    let result = vm.heap.new_object();
    vm.heap.set_own(result, known::VALUE, item.unwrap_or(Value::UNDEFINED));
    vm.heap.set_own(result, known::DONE, Value::bool(item.is_none()));
    Ok(result)
}

/// The error for a receiver of `next` that is no iterator of its family.
#[cold]
fn incompatible(vm: &mut Vm, this: Value, family: Family) -> Thrown {
    let next = match family {
        Family::ParamsIterator => {
            return coded(vm, "ERR_INVALID_THIS", "Value of \"this\" must be of type URLSearchParamsIterator");
        }
        Family::HeadersIterator => {
            return vm.type_error("'next' called on an object that does not implement interface Headers Iterator.");
        }
        Family::RegExpStringIterator => "%RegExpStringIterator%.prototype.next",
        Family::SegmentsIterator => "%SegmentIterator.prototype%.next",
        _ => &brief!("{}.prototype.next", tag(family)),
    };
    let what = vm.describe(this);
    vm.type_error(&brief!("Method {next} called on incompatible receiver {what}"))
}

/// What `Object.prototype.toString` calls the iterators of a family.
pub fn tag(family: Family) -> &'static str {
    match family {
        Family::MapIterator => "Map Iterator",
        Family::SetIterator => "Set Iterator",
        Family::StringIterator => "String Iterator",
        Family::RegExpStringIterator => "RegExp String Iterator",
        Family::ParamsIterator => "URLSearchParams Iterator",
        Family::HeadersIterator => "Headers Iterator",
        Family::SegmentsIterator => "Segmenter String Iterator",
        _ => "Array Iterator",
    }
}

/// `segments[Symbol.iterator]()`
fn segments_iterator(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if vm.family(this) != Family::Segments {
        let what = vm.describe(this);
        let message = brief!("Method %SegmentIsPrototype%[@@iterator] called on incompatible receiver {what}");
        return Err(vm.type_error(&message));
    }
    Ok(vm.heap.new_iterator(this, Yields::Values))
}

/// `string[Symbol.iterator]()`
fn string_iterator(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = vm.to_string(this)?;
    Ok(vm.heap.new_iterator(string, Yields::Values))
}

/// `iterator[Symbol.iterator]()`
fn itself(_: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(this)
}

/// `$isScriptIterable(value)`
fn is_script_iterable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(vm.is_script_iterable(super::arg(arguments, 0))))
}

/// `$asyncIterable(value)`: whether `for await` takes it; an error for `undefined` and `null`.
fn is_async_iterable(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let value = super::arg(arguments, 0);
    let method = vm.script_method(value, known::SYMBOL_ASYNC_ITERATOR)?;
    if method.is_some_and(Value::is_callable) || vm.family(value) == Family::AsyncGenerator {
        return Ok(Value::TRUE);
    }
    iterable(vm, this, arguments)
}

/// `$notAResult(value)`: throws.
fn not_a_result(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Err(vm.not_a_result(super::arg(arguments, 0)))
}

/// The key of the last entry that an iterator of a map gave.
pub fn last_key(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let &Iterator { source, position, .. } = &vm.heap.iterators[super::arg(arguments, 0).index()];
    let entry = position.checked_sub(1).and_then(|last| vm.heap.maps[source.index()].entry_from(last));
    Ok(entry.map_or(Value::UNDEFINED, |entry| entry.key))
}

/// An error if a value has a `[Symbol.iterator]` that is no function; `what` requires it.
pub fn check_iterator(vm: &mut Vm, value: Value, what: &str) -> Result<()> {
    let method = vm.script_method(value, known::SYMBOL_ITERATOR)?.unwrap_or(Value::UNDEFINED);
    if method.is_nullish() || method.is_callable() {
        return Ok(());
    }
    let message = brief!(
        "{what} requires that the property of the first argument, items[Symbol.iterator], when exists, be a function"
    );
    Err(vm.type_error(&message))
}

/// `$fromIterable(value, name)`: the same as [`iterable`] for `from`, which takes values with a length too.
pub fn from_iterable(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let name = vm.to_text_lossy(super::arg(arguments, 1));
    check_iterator(vm, super::arg(arguments, 0), &name)?;
    iterable(vm, this, arguments)
}

/// Whether a value is iterable; an error for `undefined` and `null`.
pub fn iterable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = super::arg(arguments, 0);
    if value.is_nullish() {
        return Err(vm.not_iterable(value));
    }
    Ok(Value::bool(vm.is_script_iterable(value) || vm.is_iterable(value)))
}

/// Returns the next item of an iterator over an object that only its own file knows, and the position behind it.
pub fn next_item(vm: &mut Vm, source: Value, yields: Yields, position: usize) -> Result<Option<(Value, usize)>> {
    if source.is(Kind::Array) {
        return Ok(super::regexp::next_match(vm, source)?.map(|found| (found, 0)));
    }
    if source.is(Kind::Uint8Array) {
        let Some(range) = vm.heap.view_range(source) else {
            return Err(super::bytes::detached(vm, "%ArrayIteratorPrototype%.next"));
        };
        let byte = vm.heap.view_byte(source, position);
        return Ok(byte.filter(|_| position < range.len()).map(|byte| {
            let (key, item) = (Value::number(position as f64), Value::number(f64::from(byte)));
            (vm.yielded(yields, key, item), position + 1)
        }));
    }
    if super::intl::segmenter::is_segments(vm, source) {
        return Ok(super::intl::segmenter::at(vm, source, position)?.map(|segment| (segment, position + 1)));
    }
    let bytes = params::pair_bytes(vm, source, position);
    vm.work(bytes / 16)?;
    vm.reserve(4 * bytes)?;
    let pair = params::pair_at(vm, source, position);
    Ok(pair.map(|(name, value)| (vm.yielded(yields, name, value), position + 1)))
}

//! `Intl.Collator` (ECMA-402 10) and `localeCompare`: options, and comparisons whose work is charged for.

mod pieces;

use super::{LOCALE, MATCHERS, canonical_locales, choice, flag, type_option};
use crate::builtins::string::normalize;
use crate::builtins::{Body, ClosureFn, Global, Row, arg, getter, native};
use crate::eval::vm::Vm;
use crate::heap::{Action, InternalSlots};
use crate::meter::buffer::Buffer;
use crate::text::wtf8::first_code_point;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use agentscript_intl::collation::{self, CASE_FIRST, MARKS, Options, Order, Runs, SENSITIVITIES, USAGES, has_class};
use agentscript_intl::locale::available_collator;

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "Collator",
    length: 0,
    call: Body::Native(construct),
    construct: Some(Body::Native(construct)),
    functions: &[native("supportedLocalesOf", 1, supported_locales_of)],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[native("resolvedOptions", 0, resolved_options), getter("compare", get_compare)];

/// The internal slots of an `Intl.Collator`.
#[derive(Clone, Debug)]
pub struct Collator {
    collator: collation::Collator,
    /// The function of `compare`, `undefined` until it is read.
    pub bound: Value,
}

impl InternalSlots for Collator {
    fn family(&self) -> Family {
        Family::Collator
    }

    fn tag(&self) -> &'static str {
        "Intl.Collator"
    }

    fn cost(&self) -> usize {
        LOCALE
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.bound);
    }
}

/// `new Intl.Collator(locales, options)`, the same without `new`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let collator = read(vm, arg(arguments, 0), arg(arguments, 1), "Intl.Collator")?;
    let collator = Collator { collator, bound: Value::UNDEFINED };
    Ok(vm.heap.new_with_slots(collator))
}

/// `Intl.Collator.supportedLocalesOf(locales, options)`
fn supported_locales_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    super::supported(vm, this, arguments, |tag| available_collator(tag).is_some())
}

/// `string.localeCompare(other, locales, options)` of two strings
pub fn locale_compare(vm: &mut Vm, left: Value, right: Value, arguments: &[Value]) -> Result {
    let (locales, options) = (arg(arguments, 1), arg(arguments, 2));
    let order = if locales.is_undefined() && options.is_undefined() {
        Order::DEFAULT
    } else {
        read(vm, locales, options, "String.prototype.localeCompare")?.order
    };
    compare(vm, left, right, order)
}

fn read(vm: &mut Vm, locales: Value, options: Value, service: &str) -> Result<collation::Collator> {
    vm.work(4)?;
    let tags = canonical_locales(vm, locales)?;
    vm.work(tags.len())?;
    if options == Value::NULL {
        return Err(vm.type_error(&brief!("{service} called on null or undefined")));
    }
    let search = choice(vm, options, service, "usage", USAGES)? == Some(1);
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let collation = type_option(vm, options, "collation", "Invalid collation")?;
    let numeric = flag(vm, options, "numeric")?;
    let case_first = choice(vm, options, service, "caseFirst", CASE_FIRST)?;
    let sensitivity = choice(vm, options, service, "sensitivity", SENSITIVITIES)?;
    let ignore_punctuation = flag(vm, options, "ignorePunctuation")?.unwrap_or(false);
    let options = Options { search, collation, numeric, case_first, sensitivity, ignore_punctuation };
    Ok(collation::Collator::new(&tags, options))
}

/// The order of two strings: -1, 0 or 1.
fn compare(vm: &mut Vm, left: Value, right: Value, order: Order) -> Result {
    let (a, b) = (vm.heap.str(left), vm.heap.str(right));
    if left == right {
        vm.work(1)?;
        return Ok(Value::ZERO);
    }
    let is_ascii = a.is_ascii() && b.is_ascii();
    let length = a.bytes as usize + b.bytes as usize;
    let is_root = order.is_root();
    let may_have_runs = length > SHORT && (!is_ascii || order.numeric || !is_root);
    let mut runs = Runs::default();
    if may_have_runs {
        scan(vm, left, order.numeric, &mut runs)?;
        scan(vm, right, order.numeric, &mut runs)?;
    }
    if length > pieces::LARGE && is_root && runs.longest <= LONG {
        vm.work(runs.expanding)?;
        if let Some(ordering) = pieces::compare(vm, left, right, order)? {
            return Ok(Value::number(f64::from(ordering as i8)));
        }
    }
    let charge =
        vm.heap.meter.charge_piece(1 + length / if is_ascii { 64 } else { 16 }, if is_ascii { 900 } else { 300 })?;
    if may_have_runs {
        vm.heap.meter.charge_piece(runs.expanding, 300)?;
        // Where letters are tailored, any may belong to a contraction.
        if runs.longest > LONG || !is_root {
            // The memory of the library for a run of characters.
            let _room = vm.heap.hold(runs.longest.saturating_mul(48))?;
            let a = prepared(vm, left, '\u{1}', runs.has_long_marks)?;
            let b = prepared(vm, right, '\u{2}', runs.has_long_marks)?;
            vm.heap.meter.charge_piece((a.len() + b.len()) / 16, 300)?;
            return Ok(Value::number(f64::from(order.compare(&a, &b) as i8)));
        }
    }
    // A lone surrogate compares as U+FFFD; strings that have one are copied.
    let bytes = |string: Value| vm.heap.read_bytes(string, charge);
    let is_text = |string: Value| vm.heap.str(string).is_ascii() || std::str::from_utf8(bytes(string)).is_ok();
    let ordering = if is_text(left) && is_text(right) {
        order.compare(bytes(left), bytes(right))
    } else {
        let _room = vm.heap.hold(length.saturating_mul(2))?;
        let (a, b) = (vm.heap.read_text(left, charge), vm.heap.read_text(right, charge));
        order.compare(a.as_bytes(), b.as_bytes())
    };
    Ok(Value::number(f64::from(ordering as i8)))
}

/// Texts up to this length together have no long run.
const SHORT: usize = 256;
/// Longer runs take the library quadratic time, so both texts are prepared.
const LONG: usize = 128;
/// Bytes between two charges.
const TURN: usize = 1 << 12;

/// Find the runs of one more string.
fn scan(vm: &mut Vm, string: Value, is_numeric: bool, runs: &mut Runs) -> Result<()> {
    runs.begin();
    let mut at = 0;
    loop {
        let charge = vm.heap.charge_bytes(TURN)?;
        let rest = vm.heap.read_bytes(string, charge).get(at..).unwrap_or_default();
        let mut offset = 0;
        while offset < TURN
            && let Some((point, length)) = rest.get(offset..).and_then(first_code_point)
        {
            offset += length;
            runs.push(point, is_numeric);
        }
        if offset == 0 {
            return Ok(());
        }
        at += offset;
    }
}

/// A copy of a text that the library compares in linear time. It begins with `first`, an ignorable character that
/// differs in the two texts, so that they have no common prefix. Long runs of marks are sorted and broken up by an
/// ignorable character.
fn prepared(vm: &mut Vm, string: Value, first: char, has_long_marks: bool) -> Result<Buffer<u8>> {
    const JOINER: &[u8] = "\u{34F}".as_bytes();
    // To put the marks in order, the decomposed text.
    let string = if has_long_marks { normalize::decomposed(vm, string)? } else { string };
    let mut out = Buffer::new();
    out.push(&vm.heap, first as u8)?;
    let (mut marks, mut at) = (0, 0);
    loop {
        let charge = vm.heap.charge_bytes(TURN)?;
        let rest = vm.heap.read_bytes(string, charge).get(at..).unwrap_or_default();
        let mut offset = 0;
        while offset < TURN
            && let Some((point, length)) = rest.get(offset..).and_then(first_code_point)
        {
            let is_mark = point >= 0x300 && has_class(point);
            marks = if is_mark { marks + 1 } else { 0 };
            if marks > MARKS {
                out.extend_from_slice(&vm.heap, JOINER)?;
                marks = 1;
            }
            if (0xD800..0xE000).contains(&point) {
                out.extend_from_slice(&vm.heap, "\u{FFFD}".as_bytes())?;
            } else {
                out.extend_from_slice(&vm.heap, rest.get(offset..offset + length).unwrap_or_default())?;
            }
            offset += length;
        }
        if offset == 0 {
            return Ok(out);
        }
        at += offset;
    }
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<Collator> {
    match vm.heap.slots::<Collator>(this) {
        Some(collator) => Ok(collator.clone()),
        _ => Err(incompatible(vm, this, method)),
    }
}

#[cold]
fn incompatible(vm: &mut Vm, this: Value, method: &str) -> Thrown {
    let what = vm.describe(this);
    vm.type_error(&brief!("Method Intl.Collator.prototype.{method} called on incompatible receiver {what}"))
}

/// `collator.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let collation::Collator { locale, search, order, collation } = receiver(vm, this, "resolvedOptions")?.collator;
    let texts = [
        ("locale", locale.as_str()),
        ("usage", USAGES[usize::from(search)]),
        ("sensitivity", SENSITIVITIES[order.sensitivity]),
    ];
    let object = vm.heap.new_object();
    let put = |vm: &mut Vm, name: &str, value: Value| {
        let name = vm.heap.intern_text(name);
        vm.heap.set_own(object, name, value);
    };
    for (name, text) in texts {
        let text = vm.heap.string(text);
        put(vm, name, text);
    }
    put(vm, "ignorePunctuation", Value::bool(order.ignore_punctuation));
    let collation = vm.heap.string(collation);
    put(vm, "collation", collation);
    put(vm, "numeric", Value::bool(order.numeric));
    let case_first = vm.heap.string(CASE_FIRST[order.case_first]);
    put(vm, "caseFirst", case_first);
    Ok(object)
}

/// `collator.compare`: a function bound to the collator, always the same one.
fn get_compare(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let known = receiver(vm, this, "compare")?.bound;
    if !known.is_undefined() {
        return Ok(known);
    }
    let function =
        vm.heap.new_native_closure(Action::Native(&BOUND_COMPARE), [this, Value::UNDEFINED, Value::UNDEFINED]);
    if let Some(collator) = vm.heap.slots_mut::<Collator>(this) {
        collator.bound = function;
    }
    Ok(function)
}

static BOUND_COMPARE: ClosureFn = ClosureFn { length: 2, call: bound_compare };

/// A call of the function that `collator.compare` returns.
fn bound_compare(vm: &mut Vm, function: Value, arguments: &[Value]) -> Result {
    let this = vm.heap.native_closures[function.index()].data[0];
    let order = match vm.heap.slots::<Collator>(this) {
        Some(collator) => collator.collator.order,
        _ => return Err(incompatible(vm, this, "compare")),
    };
    let left = vm.to_string(arg(arguments, 0))?;
    let right = vm.to_string(arg(arguments, 1))?;
    compare(vm, left, right, order)
}

//! `Intl` (ECMA-402): objects, their options and the charges for their work. The crate `agentscript_intl` makes the texts.
//!
//! This file has the namespace and what its constructors share: requested locales and options.

pub mod case;
pub mod collator;
pub mod date_time_format;
pub mod display_names;
pub mod list_format;
mod methods;
pub mod number_format;
pub mod plural_rules;
pub mod relative_time_format;
pub mod segmenter;
mod supported_values;

use super::registry::registry;
use super::{Body, Global, Row, native};
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_intl::locale::{self, Invalid, Resolved};
use agentscript_intl::plurals;
use agentscript_lang::refused::Missing;

/// The cost of the tag of a locale.
const LOCALE: usize = crate::heap::block(64);

/// The namespace.
pub const GLOBALS: &[Global] = &[Global {
    name: "Intl",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[
        native("getCanonicalLocales", 1, get_canonical_locales),
        native("supportedValuesOf", 1, supported_values::supported_values_of),
    ],
    numbers: &[],
}];

/// Its constructors.
pub const CONSTRUCTORS: &[Global] = &[
    collator::CONSTRUCTOR,
    date_time_format::CONSTRUCTOR,
    display_names::CONSTRUCTOR,
    list_format::CONSTRUCTOR,
    number_format::CONSTRUCTOR,
    plural_rules::CONSTRUCTOR,
    relative_time_format::CONSTRUCTOR,
    segmenter::CONSTRUCTOR,
];

/// The methods of its objects.
pub const METHODS: &[(Family, &[Row])] = &[
    (Family::Collator, collator::METHODS),
    (Family::NumberFormat, number_format::METHODS),
    (Family::DisplayNames, display_names::METHODS),
    (Family::ListFormat, list_format::METHODS),
    (Family::PluralRules, plural_rules::METHODS),
    (Family::RelativeTimeFormat, relative_time_format::METHODS),
    (Family::Segmenter, segmenter::METHODS),
    (Family::Segments, segmenter::SEGMENTS_METHODS),
    (Family::DateTimeFormat, date_time_format::METHODS),
];

/// The methods of other types that follow a locale.
pub const LOCALIZED: &[(Family, &[Row])] = methods::METHODS;

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = list_format::INTRINSICS;

/// What scripts cannot use: nothing.
pub const MISSING: &[Missing] = &[];

/// `supportedLocalesOf` of every constructor.
pub const SUPPORTED_LOCALES_OF: Row = native("supportedLocalesOf", 1, supported_locales_of);

/// `Intl.getCanonicalLocales(locales)`
fn get_canonical_locales(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let tags = canonical_locales(vm, super::arg(arguments, 0))?;
    texts(vm, &tags)
}

/// `supportedLocalesOf(locales, options)`: the requested locales that there are.
fn supported_locales_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let name = if this.is(Kind::Native) { registry().natives[this.index()].name } else { "" };
    supported(vm, this, arguments, |tag| match name {
        "ListFormat" => locale::available_lists(tag).is_some(),
        "NumberFormat" => locale::available_numbers(tag).is_some(),
        "PluralRules" => plurals::available(locale::without_extensions(tag)).is_some(),
        _ => locale::available(tag).is_some(),
    })
}

/// The requested locales that are available to a constructor, which is the receiver.
pub fn supported(vm: &mut Vm, this: Value, arguments: &[Value], is_available: impl Fn(&str) -> bool) -> Result {
    let mut tags = canonical_locales(vm, super::arg(arguments, 0))?;
    let options = super::arg(arguments, 1);
    let name = if this.is(Kind::Native) { registry().natives[this.index()].name } else { "Collator" };
    let service = brief!("Intl.{name}.supportedLocalesOf");
    if options == Value::NULL {
        return Err(vm.type_error(&brief!("{service} called on null or undefined")));
    }
    choice(vm, options, &service, "localeMatcher", MATCHERS)?;
    vm.work(tags.len())?;
    tags.retain(|tag| is_available(tag));
    texts(vm, &tags)
}

/// The values of the option `localeMatcher`, which all mean the same.
pub const MATCHERS: &[&str] = &["lookup", "best fit"];

fn texts(vm: &mut Vm, texts: &[String]) -> Result {
    let mut items = Buffer::with_capacity(vm, texts.len())?;
    for text in texts {
        let text = vm.heap.string(text);
        items.push(vm, text)?;
    }
    Ok(vm.heap.array_of(items))
}

/// Most bytes of an option that is read in full; valid ones are far shorter.
const MAX_OPTION_BYTES: usize = 256;

/// An option as text. One that is too long to be valid is cut, for messages.
pub fn word(vm: &mut Vm, value: Value) -> Result<String> {
    let string = vm.to_string(value)?;
    // With the rest of the character at the end.
    let bytes = vm.heap.first_bytes::<{ MAX_OPTION_BYTES + 4 }>(string);
    let mut end = bytes.len().min(MAX_OPTION_BYTES);
    // A character is not cut in two.
    while end < bytes.len() && end > 0 && bytes[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    let text = crate::text::wtf8::lossy(&bytes[..end]);
    Ok(if end < bytes.len() { text + "…" } else { text }.into())
}

/// What the argument `locales` resolves to.
pub fn resolved(vm: &mut Vm, locales: Value) -> Result<Resolved> {
    resolved_of(vm, locales, locale::available)
}

/// The same of the locales that `available` finds.
fn resolved_of(vm: &mut Vm, locales: Value, available: fn(&str) -> Option<locale::Available>) -> Result<Resolved> {
    let tags = canonical_locales(vm, locales)?;
    vm.work(tags.len())?;
    Ok(Resolved::of(&tags, available))
}

/// `CanonicalizeLocaleList` (ECMA-402 9.2.1)
pub fn canonical_locales(vm: &mut Vm, locales: Value) -> Result<Vec<String>> {
    canonical(vm, locales, usize::MAX)
}

/// The same up to so many tags; what follows is not looked at.
pub fn canonical(vm: &mut Vm, locales: Value, most: usize) -> Result<Vec<String>> {
    if locales.is_undefined() {
        return Ok(vec![]);
    }
    if locales == Value::NULL {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    let items = match locales.kind() {
        Kind::String => {
            let mut one = Buffer::new();
            one.push(vm, locales)?;
            one
        }
        _ if locales.is_object() => super::array::array_like(vm, locales)?,
        _ => Buffer::new(),
    };
    let mut tags = Vec::new(); // bounded: each is charged for by those before it
    let mut hold = Hold::NONE;
    for (index, item) in items.into_iter().enumerate() {
        if tags.len() == most {
            break;
        }
        vm.work(1)?;
        if item.is_undefined() && !vm.has_property(locales, PropertyKey::Index(index as u32))? {
            continue;
        }
        if !item.is_string() && !item.is_object() {
            return Err(vm.type_error("Language ID should be string or object."));
        }
        let text = word(vm, item)?;
        vm.work(text.len() / 8 + tags.len() / 8)?;
        match locale::canonical(&text) {
            Ok(tag) if tags.contains(&tag) => {}
            Ok(tag) => {
                hold.grow(vm, 64 + 2 * tag.len())?;
                tags.push(tag);
            }
            Err(Invalid::Language) => return Err(vm.range_error("Incorrect locale information provided")),
            Err(Invalid::Rest) => {
                let text = locale::printable(&text);
                return Err(vm.range_error(&brief!("Invalid language tag: {text}")));
            }
        }
    }
    Ok(tags)
}

/// An options argument: `null` is no object (ECMA-402 9.2.12).
pub fn options(vm: &mut Vm, options: Value) -> Result<Value> {
    if options == Value::NULL {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    Ok(options)
}

/// An options argument that is an object or `undefined` (ECMA-402 9.2.10).
pub fn options_object(vm: &mut Vm, options: Value) -> Result<Value> {
    if options.is_undefined() || options.is_object() {
        return Ok(options);
    }
    Err(vm.type_error("invalid_argument"))
}

/// The error of a constructor that is called without `new`.
#[cold]
pub fn needs_new(vm: &mut Vm, name: &str) -> Thrown {
    vm.type_error(&brief!("Constructor Intl.{name} requires 'new'"))
}

/// The error of a method whose receiver is another value.
#[cold]
pub fn incompatible(vm: &mut Vm, this: Value, class: &str, method: &str) -> Thrown {
    let what = vm.describe(this);
    vm.type_error(&brief!("Method Intl.{class}.prototype.{method} called on incompatible receiver {what}"))
}

/// The same of a method that takes an object around the right one from the time before ES6.
#[cold]
pub fn incompatible_wrapper(vm: &mut Vm, this: Value, class: &str, method: &str) -> Thrown {
    if !this.is_object() {
        return incompatible(vm, this, class, method);
    }
    // V8 does not show the receiver of a number format.
    let what = if class == "NumberFormat" { "undefined".into() } else { vm.describe(this) };
    vm.type_error(&brief!("Method Unwrap{class} called on incompatible receiver {what}"))
}

/// Set a property of a new object.
pub fn put(vm: &mut Vm, object: Value, name: &str, value: Value) {
    let name = vm.heap.intern_text(name);
    vm.heap.set_own(object, name, value);
}

/// Set a property of a new object to a text.
pub fn put_text(vm: &mut Vm, object: Value, name: &str, text: &str) {
    let text = vm.heap.string(text);
    put(vm, object, name, text);
}

/// The value of an option; `undefined` where there is none.
pub fn option(vm: &mut Vm, options: Value, name: &str) -> Result {
    if options.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    let name = vm.heap.intern_text(name);
    vm.get(options, name)
}

/// An option that is one of some words (ECMA-402 9.2.13): its index among them. `service` is the
/// constructor, as messages name it.
pub fn choice(vm: &mut Vm, options: Value, service: &str, name: &str, words: &[&str]) -> Result<Option<usize>> {
    let value = option(vm, options, name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let text = word(vm, value)?;
    match words.iter().position(|&word| word == text) {
        Some(index) => Ok(Some(index)),
        None => {
            // The message shows the object, not its text.
            let shown = if value.is_object() { vm.object_tag(value) } else { text };
            Err(vm.range_error(&brief!("Value {shown} out of range for {service} options property {name}")))
        }
    }
}

/// An option that is a type of an extension of a tag: it may be one that nobody knows. `invalid` begins the message.
pub fn type_option(vm: &mut Vm, options: Value, name: &str, invalid: &str) -> Result<Option<String>> {
    let value = option(vm, options, name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let text = word(vm, value)?;
    if !locale::is_type(&text) {
        let text = locale::by_bytes(&text);
        return Err(vm.range_error(&brief!("{invalid} : {text}")));
    }
    Ok(Some(text))
}

/// An option that is a whole number in a range (ECMA-402 9.2.15).
pub fn number(vm: &mut Vm, options: Value, name: &str, (least, most): (f64, f64)) -> Result<Option<f64>> {
    let value = option(vm, options, name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let number = vm.to_number(value)?;
    if !(least..=most).contains(&number) {
        return Err(vm.range_error(&brief!("{name} value is out of range.")));
    }
    Ok(Some(number.floor()))
}

/// An option that is true or false.
pub fn flag(vm: &mut Vm, options: Value, name: &str) -> Result<Option<bool>> {
    let value = option(vm, options, name)?;
    Ok((!value.is_undefined()).then(|| vm.truthy(value)))
}

/// A list of `{type, value}` objects: what every `formatToParts` gives. A third text is `source`.
pub fn parts_value<'a>(vm: &mut Vm, parts: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)>) -> Result {
    let [kind, value, source] = ["type", "value", "source"].map(|name| vm.heap.intern_text(name));
    let mut items = Buffer::new();
    for (name, text, from) in parts {
        vm.work(1 + text.len() / 16)?;
        let object = vm.heap.new_object();
        let name = vm.heap.string(name);
        vm.heap.set_own(object, kind, name);
        let text = vm.heap.string(text);
        vm.heap.set_own(object, value, text);
        if let Some(from) = from {
            let from = vm.heap.string(from);
            vm.heap.set_own(object, source, from);
        }
        items.push(vm, object)?;
    }
    Ok(vm.heap.array_of(items))
}

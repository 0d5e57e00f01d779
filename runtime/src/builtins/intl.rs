//! `Intl` (ECMA-402): formatting in the only locale en-US, to which others fall back.
//!
//! This file has the namespace and what its constructors share: locales and options.

pub mod collator;
pub mod date_time_format;
pub mod number_format;
pub mod zone;

use super::{Body, Global, Row, native};
use crate::charge::{Buffer, Hold};
use crate::property::PropertyKey;
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;

/// The namespace.
pub const GLOBALS: &[Global] = &[Global {
    name: "Intl",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[native("getCanonicalLocales", 1, get_canonical_locales)],
    numbers: &[],
}];

/// Its constructors.
pub const CONSTRUCTORS: &[Global] = &[collator::CONSTRUCTOR, date_time_format::CONSTRUCTOR, number_format::CONSTRUCTOR];

/// `supportedLocalesOf` of every constructor.
pub const SUPPORTED_LOCALES_OF: Row = native("supportedLocalesOf", 1, supported_locales_of);

/// `Intl.getCanonicalLocales(locales)`
fn get_canonical_locales(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let tags = canonical_locales(vm, super::arg(arguments, 0))?;
    Ok(texts(vm, &tags))
}

/// `supportedLocalesOf(locales)`: the requested locales that are English.
fn supported_locales_of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut tags = canonical_locales(vm, super::arg(arguments, 0))?;
    tags.retain(|tag| tag.split('-').next() == Some("en"));
    Ok(texts(vm, &tags))
}

fn texts(vm: &mut Vm, texts: &[String]) -> Value {
    let items = texts.iter().map(|text| vm.string(text)).collect(); // bounded: by the tags of a list, counted there
    vm.heap.new_array(items)
}

/// Most bytes of an option that is read in full; valid ones are far shorter.
const MAX_OPTION_BYTES: usize = 256;

/// An option as text. One that is too long to be valid is cut, for messages.
pub fn word(vm: &mut Vm, value: Value) -> Result<String> {
    let string = vm.to_string(value)?;
    let bytes = vm.heap.bytes(string); // charged: by a bound on what is read of it
    let mut end = bytes.len().min(MAX_OPTION_BYTES);
    // A character is not cut in two.
    while end < bytes.len() && end > 0 && bytes[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    let text = crate::wtf8::lossy(&bytes[..end]);
    Ok(if end < bytes.len() { text + "…" } else { text }.into())
}

/// The resolved locale: the requested one where it is a form of en-US, else `en-US`.
pub fn resolved_locale(vm: &mut Vm, locales: Value) -> Result<String> {
    let tags = canonical_locales(vm, locales)?;
    Ok(match tags.first() {
        Some(tag) if tag == "en" || tag == "en-US" => tag.clone(),
        Some(tag) if tag.starts_with("en-u-") || tag.starts_with("en-x-") => "en".into(),
        Some(_) | None => "en-US".into(),
    })
}

/// `CanonicalizeLocaleList` (ECMA-402 9.2.1)
pub fn canonical_locales(vm: &mut Vm, locales: Value) -> Result<Vec<String>> {
    if locales.is_undefined() {
        return Ok(Vec::new()); // bounded: empty
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
        if item.is_undefined() && !vm.has_property(locales, PropertyKey::Index(index as u32))? {
            continue;
        }
        if !item.is_string() && !item.is_object() {
            return Err(vm.type_error("Language ID should be string or object."));
        }
        let text = word(vm, item)?;
        vm.work(1 + text.len() / 8 + tags.len() / 8)?;
        match canonical_tag(&text) {
            Some(tag) if tags.contains(&tag) => {}
            Some(tag) => {
                hold.grow(vm, 64 + 2 * tag.len())?;
                tags.push(tag);
            }
            None => {
                return Err(vm.range_error("Incorrect locale information provided"));
            }
        }
    }
    Ok(tags)
}

/// The canonical form of a language tag; `None` where it is invalid (UTS 35, section 3).
fn canonical_tag(tag: &str) -> Option<String> {
    let mut parts = tag.split('-').peekable();
    let is_alpha = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_word = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let language = parts.next().filter(|part| is_alpha(part) && matches!(part.len(), 2 | 3 | 5..=8))?;
    // bounded: by the longest word, here and below
    let mut out = vec![language.to_ascii_lowercase()];
    if let Some(script) = parts.next_if(|part| part.len() == 4 && is_alpha(part)) {
        out.push(script[..1].to_ascii_uppercase() + &script[1..].to_ascii_lowercase());
    }
    let is_region = |part: &&str| {
        part.len() == 2 && is_alpha(part) || part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some(region) = parts.next_if(is_region) {
        out.push(region.to_ascii_uppercase());
    }
    let is_variant = |part: &&str| {
        is_word(part) && (matches!(part.len(), 5..=8) || part.len() == 4 && part.as_bytes()[0].is_ascii_digit())
    };
    let mut variants = Vec::new(); // bounded: by the tag
    while let Some(variant) = parts.next_if(is_variant) {
        let variant = variant.to_ascii_lowercase();
        if variants.contains(&variant) {
            return None;
        }
        variants.push(variant);
    }
    variants.sort();
    out.extend(variants);
    let mut extensions: Vec<String> = Vec::new(); // bounded: by the tag
    while let Some(singleton) = parts.next() {
        if singleton.len() != 1 || !is_word(singleton) {
            return None;
        }
        let is_private = singleton.eq_ignore_ascii_case("x");
        let shortest = if is_private { 1 } else { 2 };
        let mut extension = singleton.to_ascii_lowercase();
        if extensions.iter().any(|other| other.starts_with(&extension)) {
            return None;
        }
        let mut count = 0;
        while let Some(part) = parts.next_if(|part| is_word(part) && part.len() <= 8 && part.len() >= shortest) {
            extension.push('-');
            extension.push_str(&part.to_ascii_lowercase());
            count += 1;
        }
        if count == 0 || is_private && parts.peek().is_some() {
            return None;
        }
        extensions.push(extension);
    }
    extensions.sort_by_key(|extension| (extension.starts_with('x'), extension.clone()));
    out.extend(extensions);
    Some(out.join("-")) // bounded: by the tag
}

/// An options argument: `null` is no object (ECMA-402 9.2.12).
pub fn options(vm: &mut Vm, options: Value) -> Result<Value> {
    if options == Value::NULL {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    Ok(options)
}

/// The value of an option; `undefined` where there is none.
pub fn option(vm: &mut Vm, options: Value, name: &str) -> Result {
    if options.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    let name = vm.intern_text(name);
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
            // bounded: the longest word
            Err(vm.range_error(&format!("Value {shown} out of range for {service} options property {name}")))
        }
    }
}

/// An option that is a whole number in a range (ECMA-402 9.2.15).
pub fn number(vm: &mut Vm, options: Value, name: &str, (least, most): (f64, f64)) -> Result<Option<f64>> {
    let value = option(vm, options, name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let number = vm.to_number(value)?;
    if !(least..=most).contains(&number) {
        // bounded: the name of an option
        return Err(vm.range_error(&format!("{name} value is out of range.")));
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
    let [kind, value, source] = ["type", "value", "source"].map(|name| vm.intern_text(name));
    let mut items = Buffer::new();
    for (name, text, from) in parts {
        vm.work(1 + text.len() / 16)?;
        let object = vm.heap.new_object();
        let name = vm.string(name);
        vm.heap.set_own(object, kind, name);
        let text = vm.string(text);
        vm.heap.set_own(object, value, text);
        if let Some(from) = from {
            let from = vm.string(from);
            vm.heap.set_own(object, source, from);
        }
        items.push(vm, object)?;
    }
    Ok(vm.array_of(items))
}

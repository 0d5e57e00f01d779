//! `Intl.DisplayNames` (ECMA-402 12).

use super::{LOCALE, MATCHERS, SUPPORTED_LOCALES_OF, choice, incompatible, needs_new, resolved, word};
use crate::builtins::{Body, Global, Row, arg, native};
use crate::eval::vm::Vm;
use crate::heap::InternalSlots;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use agentscript_intl::display_names::{DISPLAYS, FALLBACKS, InvalidCode, STYLES, TYPES};

pub use agentscript_intl::display_names::DisplayNames;

impl InternalSlots for DisplayNames {
    fn family(&self) -> Family {
        Family::DisplayNames
    }

    fn tag(&self) -> &'static str {
        "Intl.DisplayNames"
    }

    fn cost(&self) -> usize {
        LOCALE
    }
}

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "DisplayNames",
    length: 2,
    call: Body::Native(|vm, _, _| Err(needs_new(vm, "DisplayNames"))),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[native("resolvedOptions", 0, resolved_options), native("of", 1, of)];

/// `new Intl.DisplayNames(locales, options)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let service = "Intl.DisplayNames";
    vm.work(4)?;
    let requested = resolved(vm, arg(arguments, 0))?;
    let options = arg(arguments, 1);
    if !options.is_object() {
        return Err(vm.type_error("invalid_argument"));
    }
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let style = choice(vm, options, service, "style", STYLES)?.unwrap_or(2);
    let Some(kind) = choice(vm, options, service, "type", TYPES)? else {
        return Err(vm.type_error("invalid_argument"));
    };
    let has_fallback = choice(vm, options, service, "fallback", FALLBACKS)? != Some(0);
    let is_dialect = choice(vm, options, service, "languageDisplay", DISPLAYS)? != Some(0);
    let tag = requested.tag(|_, _| false);
    let names = DisplayNames { tag, locale: requested.locale, style, kind, has_fallback, is_dialect };
    Ok(vm.heap.new_with_slots(names))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<DisplayNames> {
    match vm.heap.slots::<DisplayNames>(this) {
        Some(names) => Ok(names.clone()),
        _ => Err(incompatible(vm, this, "DisplayNames", method)),
    }
}

/// `names.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let names = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &names.tag);
    super::put_text(vm, object, "style", STYLES[names.style]);
    super::put_text(vm, object, "type", TYPES[names.kind]);
    super::put_text(vm, object, "fallback", FALLBACKS[usize::from(names.has_fallback)]);
    if names.kind == 0 {
        super::put_text(vm, object, "languageDisplay", DISPLAYS[usize::from(names.is_dialect)]);
    }
    Ok(object)
}

/// `names.of(code)`
fn of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let names = receiver(vm, this, "of")?;
    let code = word(vm, arg(arguments, 0))?;
    vm.work(16)?;
    match names.of(&code) {
        Ok(Some(name)) => Ok(vm.heap.string(&name)),
        Ok(None) => Ok(Value::UNDEFINED),
        Err(InvalidCode) => Err(vm.range_error("invalid_argument")),
    }
}

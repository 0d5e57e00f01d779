//! The options of a format, read in the order of V8.

use crate::builtins::intl::{MATCHERS, choice, flag, number, option, options, resolved, type_option, word};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_intl::date::{
    CYCLES, Conventions, DateTimeFormat, Preferences, Request, STYLES, Wanted, field_options,
};
use agentscript_intl::zone::Zone;

/// Reads the arguments of a constructor (ECMA-402 11.1.2).
pub fn read(vm: &mut Vm, locales: Value, given: Value, wanted: Wanted) -> Result<DateTimeFormat> {
    let given = options(vm, given)?;
    if let Some(name) = other_style(wanted)
        && !option(vm, given, name)?.is_undefined()
    {
        return Err(vm.type_error(&brief!("Invalid option : {name}")));
    }
    let requested = resolved(vm, locales)?;
    let service = service(wanted);
    choice(vm, given, service, "localeMatcher", MATCHERS)?;
    // As in V8, the case of a calendar does not matter, and that of a numbering system does.
    let calendar = type_option(vm, given, "calendar", "Invalid calendar")?.map(|name| name.to_ascii_lowercase());
    let numbering = type_option(vm, given, "numberingSystem", "Invalid numberingSystem")?;
    let hour12 = flag(vm, given, "hour12")?;
    let hour_cycle = choice(vm, given, service, "hourCycle", CYCLES)?;
    let tag = requested.locale.tag;
    let conventions = Conventions::new(requested, Preferences { calendar, numbering, hour12, hour_cycle });
    let conventions = match conventions {
        Ok(conventions) => conventions,
        Err(calendar) => {
            let message = brief!(
                "Dates of '{tag}' in the calendar '{calendar}' are not supported; give the option calendar: 'gregory'"
            );
            return Err(vm.range_error(&message));
        }
    };
    let zone = zone(vm, given)?;
    let mut fields = Vec::new(); // bounded: by the options for fields
    let (mut explicit, mut fraction) = (None, None);
    for field in field_options() {
        let is_fraction = field.words.is_empty();
        let value = if is_fraction {
            number(vm, given, field.name, (1.0, 3.0))?.map(|count| count as usize)
        } else {
            choice(vm, given, service, field.name, field.words)?
        };
        if let Some(value) = value {
            // V8 names the digits of seconds last.
            if is_fraction { &mut fraction } else { &mut explicit }.get_or_insert(field.name);
            fields.extend(field.field(&conventions, value));
        }
    }
    _ = choice(vm, given, service, "formatMatcher", &["best fit", "basic"])?;
    let styles = [choice(vm, given, service, "dateStyle", STYLES)?, choice(vm, given, service, "timeStyle", STYLES)?];
    if styles != [None, None]
        && let Some(name) = explicit.or(fraction)
    {
        let style = if styles[0].is_some() { "dateStyle" } else { "timeStyle" };
        return Err(vm.type_error(&brief!("Can't set option {name} when {style} is used")));
    }
    let format = DateTimeFormat::new(conventions, Request { zone, fields, styles }, wanted);
    if let Some(limits) = Zone::LIMITS
        && format.names_zone()
    {
        return Err(vm.range_error(&brief!("The name of the time zone is not available: {limits}")));
    }
    Ok(format)
}

/// The option `timeZone`.
fn zone(vm: &mut Vm, given: Value) -> Result<Zone> {
    let zone = option(vm, given, "timeZone")?;
    if zone.is_undefined() {
        return Ok(Zone::utc());
    }
    let name = word(vm, zone)?;
    match Zone::find(&name) {
        Some(zone) => Ok(zone),
        None => {
            let limits = Zone::LIMITS.map(|limits| brief!("; {limits}")).unwrap_or_default();
            Err(vm.range_error(&brief!("Invalid time zone specified: {name}{limits}")))
        }
    }
}

/// The name of the service in messages.
fn service(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Date => "Date.prototype.toLocaleDateString",
        Wanted::Time => "Date.prototype.toLocaleTimeString",
        Wanted::Any => "Date.prototype.toLocaleString",
        Wanted::Format => "Intl.DateTimeFormat",
    }
}

/// The style that a service cannot have.
fn other_style(wanted: Wanted) -> Option<&'static str> {
    match wanted {
        Wanted::Date => Some("timeStyle"),
        Wanted::Time => Some("dateStyle"),
        Wanted::Any | Wanted::Format => None,
    }
}

//! `util.format`: a text with placeholders for values.

use crate::builtins::Body;
use crate::builtins::console;
use crate::builtins::inspect::{self, Options};
use crate::builtins::registry::registry;
use crate::builtins::url;
use crate::eval::json::{self, Layout};
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::value::atom::known;
use crate::value::numeric::number_text;
use crate::value::thrown::{Cause, Result};
use crate::value::{Kind, Value};

/// `util.format(...arguments)`
pub(super) fn format(vm: &mut Vm, arguments: &[Value]) -> Result<String> {
    let mut out = String::new(); // bounded: by what a script may log
    let mut rest = arguments;
    if let Some((&first, values)) = arguments.split_first()
        && first.is_string()
    {
        let format = console::line_text(vm, first)?;
        if values.is_empty() {
            return Ok(format);
        }
        rest = fill(vm, &format, values, &mut out)?;
        if !rest.is_empty() {
            out.push(' ');
        }
    }
    let options = console::console_options(vm);
    let limit = vm.heap.meter.limits.max_console_bytes as usize;
    for (index, &value) in rest.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        match value.is_string() {
            true => out.push_str(&console::line_text(vm, value)?),
            false => out.push_str(&inspect::inspect(vm, value, options)?),
        }
        if out.len() > limit {
            return Err(inspect::too_much(limit));
        }
    }
    Ok(out)
}

/// Append `format` with its placeholders filled; gives the values that are left.
fn fill<'a>(vm: &mut Vm, format: &str, mut values: &'a [Value], out: &mut String) -> Result<&'a [Value]> {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let Some(kind) = rest[at + 1..].chars().next() else { break };
        let behind = at + 1 + kind.len_utf8();
        out.push_str(&rest[..at]);
        match (kind, values) {
            ('%', _) => out.push('%'),
            ('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O' | 'c', [value, others @ ..]) => {
                let text = placed(vm, kind, *value)?;
                console::check_line(vm, out.len() + text.len())?;
                out.push_str(&text);
                values = others;
            }
            // The next character may itself be the percent sign of another placeholder.
            _ => out.push_str(&rest[at..behind]),
        }
        rest = &rest[behind..];
    }
    out.push_str(rest);
    Ok(values)
}

fn placed(vm: &mut Vm, kind: char, value: Value) -> Result<String> {
    let options = console::console_options(vm);
    match kind {
        's' => placed_string(vm, value),
        'd' | 'i' | 'f' if value.is(Kind::BigInt) && kind != 'f' => placed_bigint(vm, value),
        'd' if value.is_object() => call_global(vm, "Number", value),
        'd' => Ok(signed(vm.to_number(value)?)),
        'i' => call_global(vm, "parseInt", value),
        'f' => call_global(vm, "parseFloat", value),
        'j' => placed_json(vm, value),
        'o' => inspect::inspect(vm, value, Options { hidden: true, depth: 4, ..options }),
        'O' => inspect::inspect(vm, value, options),
        _ => Ok(String::default()),
    }
}

fn placed_string(vm: &mut Vm, value: Value) -> Result<String> {
    match value.kind() {
        Kind::Number => Ok(signed(value.as_number())),
        Kind::BigInt => placed_bigint(vm, value),
        _ if vm.type_of(value) == "object" && value != Value::NULL => {
            let own = vm.own_property(value, PropertyKey::Name(known::TO_STRING))?;
            // Node does not treat these as built-in objects.
            let has_text = url::has_shown_text(vm, value);
            if has_text || own.is_some_and(Value::is_callable) {
                let text = vm.to_string(value)?;
                return console::line_text(vm, text);
            }
            let options = Options { depth: 0, ..console::console_options(vm) };
            inspect::inspect(vm, value, options)
        }
        _ => {
            let text = vm.to_string(value)?;
            console::line_text(vm, text)
        }
    }
}

fn placed_bigint(vm: &mut Vm, value: Value) -> Result<String> {
    let digits = vm.to_string(value)?;
    Ok(console::line_text(vm, digits)? + "n")
}

fn placed_json(vm: &mut Vm, value: Value) -> Result<String> {
    match json::stringify(vm, value, Layout::default()) {
        Ok(text) => {
            console::check_line(vm, text.as_ref().map_or(0, |text| text.len()))?;
            Ok(text.map_or_else(|| "undefined".into(), |text| crate::text::wtf8::lossy(&text).into()))
        }
        Err(thrown) => {
            if let Cause::Value(error) = &*thrown.0 {
                let message = vm.short_error(*error)?;
                if message.starts_with("TypeError: Converting circular structure") {
                    return Ok("[Circular]".into());
                }
            }
            Err(thrown)
        }
    }
}

/// The result of a global function, as a number.
fn call_global(vm: &mut Vm, name: &str, value: Value) -> Result<String> {
    let native = registry().global(name).map(|number| registry().natives[number as usize].call);
    let number = match native {
        Some(Body::Native(function) | Body::Iterating(function, _)) => function(vm, Value::UNDEFINED, &[value])?,
        Some(Body::Prelude(_) | Body::Namespace | Body::Accessor { .. } | Body::Resume(..)) | None => {
            Value::number(vm.to_number(value)?)
        }
    };
    Ok(signed(vm.to_number(number)?))
}

/// A number, with the sign of a negative zero.
fn signed(number: f64) -> String {
    if number == 0.0 && number.is_sign_negative() { "-0".into() } else { number_text(number) }
}

//! `util.format`: a text with placeholders for values.

use crate::builtins::Body;
use crate::builtins::inspect::Options;
use crate::builtins::registry::registry;
use crate::eval::json::Layout;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::value::atom::known;
use crate::value::numeric::number_text;
use crate::value::thrown::{Cause, Result};
use crate::value::{Kind, Value};

impl Vm {
    /// `util.format(...arguments)`
    pub(super) fn format(&mut self, arguments: &[Value]) -> Result<String> {
        let mut out = String::new(); // bounded: by what a script may log
        let mut rest = arguments;
        if let Some((&first, values)) = arguments.split_first()
            && first.is_string()
        {
            let format = self.line_text(first)?;
            if values.is_empty() {
                return Ok(format);
            }
            rest = self.fill(&format, values, &mut out)?;
            if !rest.is_empty() {
                out.push(' ');
            }
        }
        let limit = self.heap.meter.limits.max_console_bytes as usize;
        for (index, &value) in rest.iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            match value.is_string() {
                true => out.push_str(&self.line_text(value)?),
                false => out.push_str(&self.inspect(value, self.console_options())?),
            }
            if out.len() > limit {
                return Err(crate::builtins::inspect::too_much(limit));
            }
        }
        Ok(out)
    }

    /// Append `format` with its placeholders filled; gives the values that are left.
    fn fill<'a>(&mut self, format: &str, mut values: &'a [Value], out: &mut String) -> Result<&'a [Value]> {
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            let Some(kind) = rest[at + 1..].chars().next() else { break };
            let behind = at + 1 + kind.len_utf8();
            out.push_str(&rest[..at]);
            match (kind, values) {
                ('%', _) => out.push('%'),
                ('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O' | 'c', [value, others @ ..]) => {
                    let text = self.placed(kind, *value)?;
                    self.check_line(out.len() + text.len())?;
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

    fn placed(&mut self, kind: char, value: Value) -> Result<String> {
        match kind {
            's' => self.placed_string(value),
            'd' | 'i' | 'f' if value.is(Kind::BigInt) && kind != 'f' => self.placed_bigint(value),
            'd' if value.is_object() => self.call_global("Number", value),
            'd' => Ok(signed(self.to_number(value)?)),
            'i' => self.call_global("parseInt", value),
            'f' => self.call_global("parseFloat", value),
            'j' => self.placed_json(value),
            'o' => self.inspect(value, Options { hidden: true, depth: 4, ..self.console_options() }),
            'O' => self.inspect(value, self.console_options()),
            _ => Ok(String::default()),
        }
    }

    fn placed_string(&mut self, value: Value) -> Result<String> {
        match value.kind() {
            Kind::Number => Ok(signed(value.as_number())),
            Kind::BigInt => self.placed_bigint(value),
            _ if self.type_of(value) == "object" && value != Value::NULL => {
                let own = self.own_property(value, PropertyKey::Name(known::TO_STRING))?;
                // Node does not treat these as built-in objects.
                let has_text = self.has_shown_text(value);
                if has_text || own.is_some_and(Value::is_callable) {
                    let text = self.to_string(value)?;
                    return self.line_text(text);
                }
                self.inspect(value, Options { depth: 0, ..self.console_options() })
            }
            _ => {
                let text = self.to_string(value)?;
                self.line_text(text)
            }
        }
    }

    fn placed_bigint(&mut self, value: Value) -> Result<String> {
        let digits = self.to_string(value)?;
        Ok(self.line_text(digits)? + "n")
    }

    fn placed_json(&mut self, value: Value) -> Result<String> {
        match self.stringify(value, Layout::default()) {
            Ok(text) => {
                self.check_line(text.as_ref().map_or(0, |text| text.len()))?;
                Ok(text.map_or_else(|| "undefined".into(), |text| crate::text::wtf8::lossy(&text).into()))
            }
            Err(thrown) => {
                if let Cause::Value(error) = &*thrown.0 {
                    let message = self.short_error(*error)?;
                    if message.starts_with("TypeError: Converting circular structure") {
                        return Ok("[Circular]".into());
                    }
                }
                Err(thrown)
            }
        }
    }

    /// The result of a global function, as a number.
    fn call_global(&mut self, name: &str, value: Value) -> Result<String> {
        let native = registry().global(name).map(|number| registry().natives[number as usize].call);
        let number = match native {
            Some(Body::Native(function) | Body::Iterating(function, _)) => function(self, Value::UNDEFINED, &[value])?,
            Some(Body::Prelude(_) | Body::Namespace | Body::Accessor { .. } | Body::Resume(..)) | None => {
                Value::number(self.to_number(value)?)
            }
        };
        Ok(signed(self.to_number(number)?))
    }
}

/// A number, with the sign of a negative zero.
fn signed(number: f64) -> String {
    if number == 0.0 && number.is_sign_negative() { "-0".into() } else { number_text(number) }
}

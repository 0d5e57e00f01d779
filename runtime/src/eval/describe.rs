//! Texts of values in messages, as V8 prints them, without running functions of the script.

use crate::eval::callable;
use crate::eval::vm::Vm;
use crate::heap::object::NULL_PROTOTYPE;
use crate::value::atom::known;
use crate::value::{Kind, Value};
use std::borrow::Cow;

impl Vm {
    /// The source of a function of the script.
    pub fn function_source(&self, function: Value) -> Option<&str> {
        let code = function.is(Kind::Function).then(|| self.heap.closures[function.index()].code)?;
        let span = (!code.is_prelude()).then(|| self.realm.function(code).span)?;
        Some(self.realm.script.source().get(span.start as usize..span.end as usize).unwrap_or_default())
    }

    /// The text of a function: the source of one of the script, which is no longer than the script; `[native code]`
    /// for others.
    pub fn function_text(&mut self, function: Value) -> Cow<'_, str> {
        // The borrow checker extends a conditionally returned borrow, hence the second call.
        if self.function_source(function).is_some() {
            return self.function_source(function).unwrap_or_default().into();
        }
        if let Kind::Function | Kind::NativeClosure = function.kind() {
            return "function () { [native code] }".into();
        }
        brief!("function {}() {{ [native code] }}", callable::name(self, function)).into()
    }

    /// A value as V8 prints it in messages, without running functions of the script; a long text is cut.
    pub fn describe(&mut self, value: Value) -> String {
        match value.kind() {
            Kind::Function | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => {
                shortened(&self.function_text(value))
            }
            Kind::Native if self.realm.registry.natives[value.index()].is_function() => {
                self.function_text(value).into()
            }
            Kind::Object if self.heap.class(value).is_error() => {
                self.short_error(value).unwrap_or_else(|_| "Error".into())
            }
            Kind::Object if self.heap.flags(value) & NULL_PROTOTYPE != 0 => "[object Object]".into(),
            Kind::Object if self.heap.own(value, known::TO_STRING).is_some() => "[object Object]".into(),
            _ => self.to_text_lossy(value),
        }
    }

    /// A value with its type, as V8 prints it where it has no source text for it: a long text is cut.
    pub fn describe_typed(&mut self, value: Value) -> String {
        let what = self.type_of(value);
        match value.kind() {
            Kind::String => brief!("{what} \"{}\"", self.to_text_lossy(value)),
            Kind::Number | Kind::Boolean | Kind::Null => brief!("{what} {}", self.to_text_lossy(value)),
            _ => what.into(),
        }
    }

    /// How V8 names a receiver in messages.
    pub fn receiver_text(&mut self, value: Value) -> String {
        match value.kind() {
            Kind::Object
            | Kind::Array
            | Kind::Map
            | Kind::Set
            | Kind::Promise
            | Kind::InternalSlots
            | Kind::ArrayBuffer
            | Kind::Uint8Array => self.object_tag(value),
            Kind::App | Kind::Iterator => "#<Object>".into(),
            Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => {
                self.function_text(value).into()
            }
            _ => self.to_text_lossy(value),
        }
    }
}

/// The source of a function in a message: of a long one the beginning and the end.
fn shortened(text: &str) -> String {
    if text.encode_utf16().take(129).count() <= 128 {
        return text.into();
    }
    let (mut left, mut start) = (111, "");
    for (at, letter) in text.char_indices() {
        if letter.len_utf16() > left {
            start = &text[..at];
            break;
        }
        left -= letter.len_utf16();
    }
    let mut back = text.char_indices().rev();
    let end = back.nth(1).map_or(text, |(at, _)| &text[at..]);
    brief!("{start}...<omitted>...{end}")
}

//! Errors as `util.inspect` prints them: the stack, and properties that are not part of it.

use super::{Inspector, Property};
use crate::eval::json;
use crate::eval::property::PropertyKey;
use crate::meter::Charge;
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// The start of the first frame in a stack.
const FRAMES: &str = "\n    at";
/// Frames of a stack that are compared with those of its cause.
const MAX_FRAMES: usize = 1000;

impl Inspector<'_> {
    /// The text of an error; takes properties away that are part of it and adds those that are hidden.
    pub(super) fn error(&mut self, error: Value, properties: &mut Vec<Property>) -> Result<String> {
        let name = self.text_of(error, known::NAME)?.unwrap_or_else(|| "Error".into());
        let message = self.text_of(error, known::MESSAGE)?.unwrap_or_default();
        let stack = self.stack(error)?;
        for shown in [known::NAME, known::MESSAGE, known::STACK] {
            let Some(index) = properties.iter().position(|one| one.key == PropertyKey::Name(shown)) else {
                continue;
            };
            let text = self.printed_text(properties[index].value)?;
            if stack.contains(&text) {
                properties.remove(index);
            }
        }
        for hidden in [known::CAUSE, known::ERRORS] {
            let key = PropertyKey::Name(hidden);
            let Some(value) = json::own(self.vm, error, hidden)? else { continue };
            let shown = properties.iter().any(|one| one.key == key);
            if !shown && (hidden == known::CAUSE || value.is(Kind::Array)) {
                properties.push(Property { key, value, enumerable: false });
            }
        }
        let charge = self.vm.work(stack.len() / 64)?;
        let stack = improved(charge, stack, self.vm.heap.class(error).name(), &name);
        let behind = if message.is_empty() { 0 } else { stack.find(&message).map_or(0, |at| at + message.len()) };
        let text = match stack[behind..].find(FRAMES) {
            None => charge.text(format_args!("[{stack}]")),
            Some(at) => {
                let (head, frames) = stack.split_at(behind + at);
                let frames = self.frames(error, &frames[1..])?;
                charge.text(format_args!("{head}\n{frames}"))
            }
        };
        self.indented(text)
    }

    fn text_of(&mut self, error: Value, name: crate::value::atom::Atom) -> Result<Option<String>> {
        let value = self.vm.get(error, name)?;
        if value.is_nullish() || value.is_object() {
            return Ok(None);
        }
        self.printed_text(value).map(Some)
    }

    /// A value as text; an error where it is too long to be printed.
    fn printed_text(&mut self, value: Value) -> Result<String> {
        let text = self.vm.to_string(value)?;
        self.check(self.vm.heap.str(text).bytes as usize)?;
        self.vm.heap.charged_string(text)
    }

    fn stack(&mut self, error: Value) -> Result<String> {
        let stack = self.vm.get(error, known::STACK)?;
        let is_text = self.vm.truthy(stack) && !stack.is_object();
        let stack = if is_text { stack } else { self.vm.error_string(error)? };
        self.printed_text(stack)
    }

    /// The frames of a stack; those that it shares with its cause are left out.
    fn frames(&mut self, error: Value, frames: &str) -> Result<String> {
        let cause = json::own(self.vm, error, known::CAUSE)?;
        let is_error = |value: Value| value.is(Kind::Object) && self.vm.heap.class(value).is_error();
        let Some(cause) = cause.filter(|&cause| is_error(cause)) else { return Ok(frames.into()) };
        let stack = self.stack(cause)?;
        let Some(others) = stack.find(FRAMES).map(|at| &stack[at + 1..]) else { return Ok(frames.into()) };
        // Real stacks are far shorter, but a script can set any text.
        if [frames, others].iter().any(|frames| memchr::memchr_iter(b'\n', frames.as_bytes()).count() >= MAX_FRAMES) {
            return Ok(frames.into());
        }
        let charge = self.vm.work((frames.len() + others.len()) / 64)?;
        let (mut lines, others) = (charge.list(frames.split('\n')), charge.list(others.split('\n')));
        let Some((first, length)) = shared(&lines, &others) else { return Ok(frames.into()) };
        let skipped = length - 2;
        let note = brief!("    ... {skipped} lines matching cause stack trace ...");
        lines.splice(first + 1..first + 1 + skipped, [note.as_str()]);
        Ok(charge.joined(&lines, "\n"))
    }
}

/// The first run of more than three lines that both have: where it begins in `a`, and its length.
fn shared(a: &[&str], b: &[&str]) -> Option<(usize, usize)> {
    for first in 0..a.len().saturating_sub(3) {
        let Some(other) = b.iter().position(|line| *line == a[first]) else { continue };
        let length = a[first..].iter().zip(&b[other..]).take_while(|(a, b)| a == b).count();
        if b.len() - other > 3 && length > 3 {
            return Some((first, length));
        }
    }
    None
}

/// The stack, with the class of the error where its name differs.
fn improved(charge: Charge, stack: String, class: &str, name: &str) -> String {
    let rest = stack.strip_prefix(name);
    let regular =
        name.ends_with("Error") && rest.is_some_and(|rest| matches!(rest.as_bytes(), [] | [b':' | b'\n', ..]));
    match rest {
        Some(rest) if regular && name != class => match class.contains(name) {
            true => charge.text(format_args!("{class}{rest}")),
            false => charge.text(format_args!("{class} [{name}]{rest}")),
        },
        _ => stack,
    }
}

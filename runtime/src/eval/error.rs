//! Values that can be thrown: errors, their messages and their stack traces.
//!
//! A script can catch values. It cannot catch the end of its run: a limit, a refusal or a cancelled
//! run passes every `catch` and `finally`.

use crate::eval::execute;
use crate::eval::json;
use crate::eval::node::OpKind;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::frame::FunctionRef;
use crate::heap::object::{CODED, HIDDEN_CAUSE, HIDDEN_MESSAGE};
use crate::heap::promise::{Origin, State};
use crate::interface::outcome::{MAX_DETAILS_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, cut_message_bytes, cut_text};
use crate::meter::buffer::Buffer;
use crate::text::wtf8::lossy;
use crate::value::atom::{Atom, known};
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::Location;
use agentscript_lang::Span;

/// Up to so many bytes, the text of an error costs no more than reading its parts.
const UNCHARGED: usize = 1 << 10;
/// How many frames a trace keeps, as in V8.
const TRACE_DEPTH: usize = 10;

impl Thrown {
    /// Set the location, unless it is set.
    #[cold]
    pub fn at(self, vm: &mut Vm, offset: u32) -> Self {
        match *self.0 {
            Cause::Value(value) => {
                locate_thrown(vm, value, offset);
                Self(Box::new(Cause::Value(value)))
            }
            Cause::Stop(mut failure) => {
                if failure.location.is_none() {
                    failure.location = vm.realm.location(vm.stack.current, offset);
                }
                Self(Box::new(Cause::Stop(failure)))
            }
        }
    }
}

impl Vm {
    /// A new error of a class with a message.
    pub fn new_error(&mut self, class: Class, message: &str) -> Value {
        let message = self.heap.new_string(message.as_bytes());
        self.error_of(class, message)
    }

    /// A new error whose message is a string already.
    pub fn error_of(&mut self, class: Class, message: Value) -> Value {
        let error = self.heap.new_of_class(class);
        self.heap.set_own(error, known::MESSAGE, message);
        self.heap.add_flags(error, HIDDEN_MESSAGE | HIDDEN_CAUSE);
        error
    }

    /// Throw a new error.
    #[cold]
    pub fn throw(&mut self, class: Class, message: &str) -> Thrown {
        Thrown::value(self.new_error(class, message))
    }

    /// Throw a `TypeError`.
    #[cold]
    pub fn type_error(&mut self, message: &str) -> Thrown {
        self.throw(Class::TypeError, message)
    }

    /// Throw a `RangeError`.
    #[cold]
    pub fn range_error(&mut self, message: &str) -> Thrown {
        self.throw(Class::RangeError, message)
    }

    /// Throw a `ReferenceError`.
    #[cold]
    pub fn reference_error(&mut self, message: &str) -> Thrown {
        self.throw(Class::ReferenceError, message)
    }

    /// Record where an error was made, unless that is recorded or the value is no error.
    pub fn locate(&mut self, error: Value, offset: u32) {
        if execute::error_class(self, error).is_none() {
            return;
        }
        if let Some(trace) = self.heap.traces.get(&error.payload())
            && !trace.frames.is_empty()
            && trace.open.is_none_or(|nesting| self.heap.meter.nesting >= nesting)
        {
            return;
        }
        let innermost = std::iter::once((self.stack.current, offset));
        // The topmost frame is the innermost frame itself, or has called the leaf that is.
        let is_frame = self.stack.frames.last().is_some_and(|frame| frame.code == self.stack.current);
        // The offsets of the frames below are known when the error reaches them.
        let frames = self
            .stack
            .frames
            .get(self.stack.nested_above..)
            .unwrap_or_default()
            .iter()
            .rev()
            .skip(usize::from(is_frame));
        let callers = frames.map(|frame| (frame.code, self.realm.offset_of(frame)));
        let frames: Vec<_> =
            innermost.chain(callers).filter(|(code, _)| !code.is_prelude()).take(TRACE_DEPTH).collect();
        let open = (self.heap.meter.nesting > 0).then_some(self.heap.meter.nesting);
        let trace = self.heap.traces.entry(error.payload()).or_default();
        trace.frames.extend(frames);
        trace.frames.truncate(TRACE_DEPTH);
        trace.open = open;
        let bytes = trace.cost();
        self.heap.meter.add_bytes(bytes);
    }

    /// Record anew where an error was made: here, above the calls of a function.
    pub fn recapture(&mut self, error: Value, above: Value) {
        if let Some(trace) = self.heap.traces.get_mut(&error.payload()) {
            trace.frames.clear();
        }
        let Some((code, offset)) = self.place() else { return };
        let current = std::mem::replace(&mut self.stack.current, code);
        self.locate(error, offset);
        self.stack.current = current;
        if above.is(Kind::Function)
            && let Some(trace) = self.heap.traces.get_mut(&error.payload())
        {
            let above = self.heap.closures[above.index()].code;
            let hidden = trace.frames.iter().rposition(|&(code, _)| code == above);
            trace.frames.drain(..hidden.map_or(trace.frames.len(), |last| last + 1));
        }
    }

    /// Record where a built-in was called that gives a new error or the promise of a tool call.
    pub fn locate_result(&mut self, value: Value, offset: u32) {
        if value.is(Kind::Promise) { self.locate_call(value, offset) } else { self.locate(value, offset) }
    }

    /// The promise of a call was made here, or is rejected already because there was no call.
    pub fn locate_call(&mut self, promise: Value, offset: u32) {
        let place = (self.stack.current, offset);
        if place.0.is_prelude() {
            return;
        }
        let data = &mut self.heap.promises[promise.index()];
        data.origin = Origin::call(offset, false);
        if let State::Rejected = data.state {
            let reason = data.value;
            if execute::error_class(self, reason).is_some() {
                self.locate(reason, offset);
            }
        } else if let Some(call) = self.host.calls.latest().filter(|call| call.promise == promise) {
            call.place = Some(place);
        }
    }

    /// The operation of the script that is executed: the innermost frame that is not of the prelude, and its offset.
    pub fn place(&self) -> Option<(FunctionRef, u32)> {
        let frame = self.stack.frames.iter().rev().find(|frame| !frame.code.is_prelude())?;
        Some((frame.code, self.realm.offset_of(frame)))
    }

    /// A new promise of the call that is executed. `may_be_callback`: a built-in that is executed has called a function for it.
    pub fn promise_of_call(&mut self, may_be_callback: bool) -> Value {
        let promise = self.heap.new_promise();
        if let Some((_, offset)) = self.place() {
            let is_callback = may_be_callback && self.stack.frames.last().is_some_and(|frame| frame.code.is_prelude());
            self.heap.promises[promise.index()].origin = Origin::call(offset, is_callback);
        }
        promise
    }

    /// Set the location of what was thrown to the operation that is executed, unless it is set.
    #[cold]
    pub fn at_operation(&mut self, thrown: Thrown) -> Thrown {
        let Some((code, offset)) = self.place() else { return thrown };
        let current = std::mem::replace(&mut self.stack.current, code);
        let thrown = thrown.at(self, offset);
        self.stack.current = current;
        thrown
    }

    /// The `stack` of an error, charged and counted: its text and the frames of the script.
    pub fn stack_string(&mut self, error: Value) -> Result {
        let mut text = text_of_error(self, error)?;
        let frames = frames_text(self, error);
        text.extend_from_slice(self, frames.as_bytes())?;
        Ok(self.heap.string_of(text))
    }

    /// The same for outcomes, where long texts are cut.
    pub fn short_stack(&mut self, error: Value) -> Result<String> {
        Ok(self.short_error(error)? + &frames_text(self, error))
    }

    /// The text of an error, where long parts of it are cut.
    pub fn short_error(&mut self, error: Value) -> Result<String> {
        let name = part_of_error(self, error, known::NAME, "Error")?;
        let message = part_of_error(self, error, known::MESSAGE, "")?;
        if (self.heap.str(name).bytes + self.heap.str(message).bytes) as usize <= MAX_MESSAGE_BYTES {
            return Ok(lossy(&text_of_error(self, error)?).into_owned());
        }
        let mut parts = vec![self.short_text(name, MAX_NAME_BYTES)?, self.short_text(message, MAX_MESSAGE_BYTES)?];
        parts.retain(|part| !part.is_empty());
        Ok(parts.join(": "))
    }

    /// The text of a value, or its beginning and end with how much there was.
    pub fn short_text(&mut self, value: Value, most: usize) -> Result<String> {
        let string = self.to_string(value)?;
        Ok(cut_message_bytes(self.heap.bytes(string), most))
    }

    /// The message for a thrown value that is no error; strings as they are.
    pub fn uncaught_text(&mut self, value: Value) -> String {
        if value.is_string() {
            return self.short_text(value, MAX_MESSAGE_BYTES).unwrap_or_default();
        }
        let tag = self.object_tag(value);
        (self.realm.registry.hooks.inspect)(self, value, MAX_DETAILS_BYTES).unwrap_or(tag)
    }

    /// The text of an error as `Error.prototype.toString` gives it (ECMAScript 20.5.3.4), charged and counted.
    pub fn error_string(&mut self, error: Value) -> Result {
        let text = text_of_error(self, error)?;
        Ok(self.heap.string_of(text))
    }
}

/// Record where a value is thrown, unless that is recorded; of an error, where it was made.
fn locate_thrown(vm: &mut Vm, value: Value, offset: u32) {
    if execute::error_class(vm, value).is_some() {
        return vm.locate(value, offset);
    }
    let code = vm.stack.current;
    if !code.is_prelude() && vm.stack.thrown.is_none_or(|(thrown, ..)| thrown != value) {
        vm.stack.thrown = Some((value, code, offset));
    }
}

/// The frames of an error, each on a line of its own.
fn frames_text(vm: &mut Vm, error: Value) -> String {
    let mut text = String::new();
    let frames = vm.heap.traces.get(&error.payload()).map_or_else(Vec::new, |trace| trace.frames.clone());
    let shown = if vm.stress.hide_frames { &[][..] } else { &frames[..] };
    for &(code, offset) in shown {
        let Some(Location { line, column }) = vm.realm.location(code, offset) else { continue };
        let name = function_name(vm, code);
        text.push_str(&match name.as_str() {
            "" => format!("\n    at script:{line}:{column}"),
            name => format!("\n    at {} (script:{line}:{column})", cut_text(name, MAX_NAME_BYTES)),
        });
    }
    text
}

fn text_of_error(vm: &mut Vm, error: Value) -> Result<Buffer<u8>> {
    let name = part_of_error(vm, error, known::NAME, "Error")?;
    let message = part_of_error(vm, error, known::MESSAGE, "")?;
    let is_coded = error.is(Kind::Object) && vm.heap.flags(error) & CODED != 0;
    let code = if is_coded { json::own(vm, error, known::CODE)? } else { None };
    let code = code.map(|code| vm.to_string(code)).transpose()?;
    let parts = [Some(name), code, Some(message)];
    let bytes: usize = parts.iter().flatten().map(|&part| vm.heap.str(part).bytes as usize).sum();
    if bytes > UNCHARGED {
        vm.heap.charge_bytes(bytes)?;
    }
    let mut out = Buffer::with_capacity(vm, bytes + " []: ".len())?;
    out.extend_from_slice(vm, vm.heap.bytes(name))?;
    if let Some(code) = code {
        for part in [b" [", vm.heap.bytes(code), b"]"] {
            out.extend_from_slice(vm, part)?;
        }
    }
    if !out.is_empty() && vm.heap.str(message).bytes > 0 {
        out.extend_from_slice(vm, b": ")?;
    }
    out.extend_from_slice(vm, vm.heap.bytes(message))?;
    Ok(out)
}

fn part_of_error(vm: &mut Vm, error: Value, key: Atom, default: &str) -> Result {
    let part = vm.get(error, key)?;
    if part.is_undefined() { Ok(vm.heap.string(default)) } else { vm.to_string(part) }
}

/// The source position of the call that the script is in.
pub(crate) fn calling_place(vm: &Vm) -> Option<(FunctionRef, u32)> {
    let frame = vm.stack.frames.iter().rev().find(|frame| !frame.code.is_prelude())?;
    Some((frame.code, vm.realm.offset_of(frame)))
}

/// The operation of the script that the prelude works for.
pub(crate) fn calling_op(vm: &Vm) -> Option<&OpKind> {
    let frame = vm.stack.frames.iter().rev().find(|frame| !frame.code.is_prelude())?;
    let function = vm.realm.function(frame.code);
    Some(&function.ops.get(frame.pc.checked_sub(1)? as usize)?.kind)
}

/// The source position at which the main function waits.
pub(crate) fn main_wait(vm: &Vm) -> Option<(FunctionRef, u32)> {
    let main = FunctionRef::script(0);
    (0..vm.stack.suspended.len())
        .filter_map(|number| vm.stack.suspended[number].as_ref())
        .find(|frame| frame.code == main)
        .map(|frame| (main, vm.realm.offset_of(frame)))
}

/// The text of an expression as V8 prints it in messages about its value.
pub fn value_text(vm: &Vm, span: Span) -> String {
    if vm.stack.current.is_prelude() {
        "value".into()
    } else {
        agentscript_lang::value_text(vm.realm.script.source(), span)
    }
}

/// The name of a function of the script; empty for the prelude.
pub fn function_name(vm: &Vm, code: FunctionRef) -> String {
    match vm.realm.function(code).name {
        Some(name) if !code.is_prelude() => vm.heap.atom_text(name),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, Inputs, Policy, Preset, Progress, compile};

    #[test]
    fn a_captured_stack_is_that_of_the_call() {
        let script = "const error = new Error('x');\nconst check = () => {\n  Error.captureStackTrace(error); };\ncheck();\n\
                      const own = new Error('y');\nconst above = () => {\n  const inner = () => Error.captureStackTrace(own, above);\n\
                      inner(); };\nabove();\nreturn [error, own].map((one) => one.stack.replaceAll('\\n    ', ' '));";
        let policy = Policy::preset(Preset::default());
        let script = compile(script, &CompileOptions::for_policy(&policy)).expect("it compiles");
        let Progress::Done(outcome) = script.start(Inputs::default(), &policy).resume([]) else {
            panic!("nothing is waited for")
        };
        let expected = r#"["Error: x at check (script:3:3) at script:4:1","Error: y at script:9:1"]"#;
        assert_eq!(outcome.result.expect("it returns"), expected);
    }

    #[test]
    fn the_callers_of_a_conversion_stand_in_the_stack() {
        let script = "const f = () => 'b'.at({ toString: () => {\n  throw new RangeError('odd'); } });\n\
                      let calls = 0;\nconst g = () => { calls += 1;\n  return f(); };\ng();";
        let policy = Policy::preset(Preset::default());
        let script = compile(script, &CompileOptions::for_policy(&policy)).expect("it compiles");
        let Progress::Done(outcome) = script.start(Inputs::default(), &policy).resume([]) else {
            panic!("nothing is waited for")
        };
        let stack = outcome.result.expect_err("it throws").stack.expect("a stack");
        let lines: Vec<&str> = stack.lines().skip(1).map(|line| line.trim_start()).collect();
        let expected = ["at toString (script:2:9)", "at f (script:1:17)", "at g (script:5:10)", "at script:6:1"];
        assert_eq!(lines, expected);
    }
}

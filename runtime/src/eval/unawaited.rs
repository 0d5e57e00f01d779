//! Uses of promises as if they were their results, for the warnings of an outcome: a forgotten `await`.
//!
//! A use changes nothing: the value of the expression is that of JavaScript. Only slow paths on which a value is known to be a
//! promise note one, so that other programs do nothing for it.
//!
//! Bounded by MAX_USES, MAX_CALLEE and MAX_NAME; work at the end of a run, in proportion to a few lines of the source

use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::promise::Origin;
use crate::interface::outcome::cut_message_bytes;
use crate::text::quote::is_identifier;
use crate::value::atom::{Atom, known};
use crate::value::{Kind, Value};
use agentscript_lang::Location;
use agentscript_lang::program::Binary;
use std::cell::RefCell;

/// Most uses that are kept; those of one kind at one place are one.
const MAX_USES: usize = 10;
/// Longest callee that is shown, in bytes.
const MAX_CALLEE: usize = 60;
/// Longest name of a property or tool that is shown, in bytes.
const MAX_NAME: usize = 128;

/// What promises have, and what is read of each value that is written as JSON.
const METHODS: [Atom; 4] = [known::THEN, known::CATCH, known::FINALLY, known::TO_JSON];

/// How a promise is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromiseUse {
    /// `promise.name`
    Read(PropertyKey),
    /// `promise.name(…)`
    Method(PropertyKey),
    /// `promise(…)`
    Call,
    /// `promise + 1`
    Operand(Binary),
    /// `` `${promise}` ``
    Text,
    /// `-promise`, or a built-in that takes a number or a text.
    Primitive,
    /// `for (… of promise)`, `[...promise]`
    Iterate,
    /// `{...promise}`, `Object.keys(promise)`
    Properties,
    /// `JSON.stringify(promise)`, or a part of the input of a tool.
    Json,
    /// `if (promise)`
    Test,
    /// `promise === value`
    Equal,
    /// `console.log(promise)`
    Log,
}

impl PromiseUse {
    /// Whether a promise may also be used so by a script that awaits it later.
    fn may_be_meant(self) -> bool {
        match self {
            Self::Test | Self::Equal | Self::Log => true,
            Self::Read(_) | Self::Method(_) | Self::Call | Self::Operand(_) | Self::Text | Self::Primitive => false,
            Self::Iterate | Self::Properties | Self::Json => false,
        }
    }
}

/// A use of a promise, or several that differ in the promise.
struct Noted {
    promise: Value,
    what: PromiseUse,
    origin: Origin,
    /// The offset of the use, where it is known.
    at: Option<u32>,
    count: u64,
}

/// The uses of a run.
#[derive(Default)]
pub struct Unawaited(RefCell<Vec<Noted>>);

impl Unawaited {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// The values that the collector has to mark.
    pub fn values(&self) -> Vec<Value> {
        self.0.borrow().iter().map(|noted| noted.promise).collect()
    }
}

/// Note a use, if the value is a promise.
#[cold]
#[inline(never)]
pub fn note_use(vm: &Vm, value: Value, what: PromiseUse, at: Option<u32>) {
    if !value.is(Kind::Promise) {
        return;
    }
    let at = at.filter(|_| !vm.stack.current.is_prelude());
    let origin = vm.heap.promises[value.index()].origin;
    let mut uses = vm.unawaited.0.borrow_mut();
    if let Some(known) = uses.iter_mut().find(|known| known.promise == value) {
        // Only a certain mistake counts.
        if known.what.may_be_meant() && !what.may_be_meant() {
            (known.what, known.at) = (what, at);
        }
        return;
    }
    if let Some(known) = uses.iter_mut().find(|one| (one.what, one.origin, one.at) == (what, origin, at)) {
        if vm.heap.promises[known.promise.index()].handled {
            known.promise = value;
        } else {
            known.count += 1;
        }
    } else if uses.len() < MAX_USES {
        uses.push(Noted { promise: value, what, origin, at, count: 1 });
    }
}

/// Note that a promise is compared with a value that can be no promise; a test whether there is one is meant.
#[cold]
#[inline(never)]
pub fn note_compared(vm: &Vm, left: Value, right: Value, at: Option<u32>) {
    for (value, other) in [(left, right), (right, left)] {
        if !other.is(Kind::Promise) && !other.is_nullish() {
            note_use(vm, value, PromiseUse::Equal, at);
        }
    }
}

/// Note that a property of a promise is read, unless promises have it.
#[cold]
#[inline(never)]
pub fn note_read(vm: &mut Vm, promise: Value, key: PropertyKey, at: u32) {
    if !promise.is(Kind::Promise) || vm.has_own(promise, key) {
        return;
    }
    if matches!(key, PropertyKey::Name(name) if name.is_symbol() || METHODS.contains(&name)) {
        return;
    }
    // A built-in takes it for a list.
    let what = if vm.stack.current.is_prelude() { PromiseUse::Iterate } else { PromiseUse::Read(key) };
    note_use(vm, promise, what, Some(at));
}

/// The warnings about uses that are mistakes, in the order in which they were made.
pub fn unawaited_texts(vm: &mut Vm, is_ok: bool) -> Vec<String> {
    let uses = std::mem::take(&mut *vm.unawaited.0.borrow_mut());
    let is_mistake =
        |noted: &Noted| !noted.what.may_be_meant() || is_ok && !vm.heap.promises[noted.promise.index()].handled;
    let mistakes: Vec<Noted> = uses.into_iter().filter(is_mistake).collect();
    mistakes.into_iter().map(|noted| unawaited_text(vm, &noted)).collect()
}

fn unawaited_text(vm: &mut Vm, noted: &Noted) -> String {
    let (what, read) = use_text(vm, noted.what);
    let source = vm.realm.script.source();
    let place = |offset: usize| Location::of(source, offset as u32);
    let used = noted.at.map(|at| place(at as usize));
    let times = if noted.count > 1 { brief!(" ({} times)", noted.count) } else { String::new() };
    let Some((offset, is_callback)) = noted.origin.place() else {
        let at = used.map_or_else(String::new, |at| brief!("line {}, column {}: ", at.line, at.column));
        return brief!("{at}a promise is not awaited: {what}{times}; write `await` before it");
    };
    let Location { line, column } = place(offset);
    let call = call_text(source, offset);
    let away = match used {
        Some(used) if used.line != line => brief!(" in line {}", used.line),
        _ => String::new(),
    };
    let shown = call.as_deref().map_or("a call".into(), |call| brief!("`{call}`"));
    let call = call.unwrap_or_else(|| "…".into());
    let (problem, fix) = match is_callback {
        true if call.ends_with(".map(…)") => {
            ("gets promises from its callback", brief!("write `await Promise.all({call})`, and use the values"))
        }
        true => ("gets promises from its callback", "get the values before: `await Promise.all(list.map(…))`".into()),
        false if away.is_empty() => (
            "is not awaited",
            match read {
                Some(read) => brief!("write `(await {call}){read}`"),
                None => brief!("write `await {call}`"),
            },
        ),
        false => ("is not awaited", brief!("write `await {call}` there")),
    };
    let all = if noted.count > 1 && !is_callback { ", or `await Promise.all(promises)`" } else { "" };
    brief!("line {line}, column {column}: {shown} {problem}: {what}{away}{times}; {fix}{all}")
}

/// Describes a use, and the text that follows the awaited value in the fix.
fn use_text(vm: &mut Vm, what: PromiseUse) -> (String, Option<String>) {
    let text = match what {
        PromiseUse::Read(key) => {
            let member = member_text(vm, key);
            return (brief!("`{member}` is read from the promise"), Some(member));
        }
        PromiseUse::Method(key) => {
            let member = member_text(vm, key);
            return (brief!("`{member}` is called on the promise"), Some(brief!("{member}(…)")));
        }
        PromiseUse::Call => return ("the promise is called".into(), Some("(…)".into())),
        PromiseUse::Operand(operator) => brief!("the promise is an operand of `{}`", operator.sign()),
        PromiseUse::Text => "the promise is put into a text".into(),
        PromiseUse::Primitive => "the promise is used as a number or a text".into(),
        PromiseUse::Iterate => "the promise is iterated over".into(),
        PromiseUse::Properties => "the properties of the promise are listed".into(),
        PromiseUse::Json => "the promise is written as JSON, as `{}`".into(),
        PromiseUse::Test => "the promise is a condition, which always holds".into(),
        PromiseUse::Equal => "the promise is compared with a value".into(),
        PromiseUse::Log => "the promise is logged".into(),
    };
    (text, None)
}

/// `.name`, `[0]` or `["a name"]`
fn member_text(vm: &mut Vm, key: PropertyKey) -> String {
    match key {
        PropertyKey::Index(index) => brief!("[{index}]"),
        PropertyKey::Name(name) => {
            let text = vm.heap.atoms.text(name);
            let shown = cut_message_bytes(text, MAX_NAME);
            if text.len() <= MAX_NAME && is_identifier(text) { brief!(".{shown}") } else { brief!("[{shown:?}]") }
        }
    }
}

/// A call as it stands at an offset in the source, without its arguments: `users.get(…)`, `callTool('users:get', …)`.
fn call_text(source: &str, offset: usize) -> Option<String> {
    let text = source.get(offset..)?;
    let (callee, rest) = text.split_once('(')?;
    let is_part = |c: char| c.is_alphanumeric() || "_$.[],'\" ".contains(c);
    if callee.is_empty() || callee.len() > MAX_CALLEE || !callee.chars().all(is_part) {
        return None;
    }
    let callee = callee.trim_end();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
    let name = quote.and_then(|quote| rest[1..].split_once(quote)).map(|(name, _)| name);
    Some(match name.filter(|name| callee == "callTool" && name.len() <= MAX_NAME && !name.contains(['\\', '\n'])) {
        Some(name) => brief!("{callee}('{name}', …)"),
        None => brief!("{callee}(…)"),
    })
}

#[cfg(test)]
mod tests;

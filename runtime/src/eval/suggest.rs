//! Suggestions for names that do not exist: the `hint` of an uncaught error.
//!
//! Messages are V8's; hints come in addition. The tables list names of other languages and libraries that people and
//! models use; other names are matched by spelling. Nothing is looked up until the run has failed.

mod other_language;
mod table;

pub use other_language::other_language;

use crate::eval::error;
use crate::eval::node::OpKind;
use crate::eval::property::PropertyKey;
use crate::eval::registry::Registry;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::trace::Missing;
use crate::heap::trace::Notation;
use crate::interface::dialect::Dialect;
use crate::text::quote::is_identifier;
use crate::value::atom::Atom;
use crate::value::family::Family;
use crate::value::thrown::{Cause, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::Span;

/// Words of Markdown fences that name scripts for tools.
pub const FENCE_TAGS: &[&str] = &["codecall"];

/// Longest name that is compared with others.
const MAX_NAME_CHARS: usize = 40;
/// How much of a text is looked at to tell its notation, in bytes.
const MAX_NOTATION_BYTES: usize = 200;
/// Most arguments that a hint names.
const MAX_ARGUMENTS: usize = 3;
/// Most names of a script that are compared, as this work is not charged.
const MAX_NAMES: usize = 5_000;

/// The error for a callee that is no function, given its value and receiver.
#[cold]
pub fn not_a_function(vm: &mut Vm, callee: Span, function: Value, this: Value) -> Thrown {
    unawaited::note_use(vm, function, PromiseUse::Call, Some(callee.start));
    if vm.stack.current.is_prelude() {
        return not_a_callback(vm, function);
    }
    let text = vm.realm.callee_text(callee);
    if let Some((_, name)) = text.rsplit_once('.').filter(|_| this.is(Kind::Promise)) {
        let key = PropertyKey::Name(vm.heap.intern_text(name));
        unawaited::note_use(vm, this, PromiseUse::Method(key), Some(callee.start));
    }
    let message = vm.realm.not_a_function_text(callee);
    let thrown = vm.type_error(&message);
    let Some((owner, name)) = text.rsplit_once('.') else { return thrown };
    let hides_app = !this.is(Kind::App)
        && vm.realm.script.linker.dialect().has_apps()
        && vm.host.tools.member(owner, name).is_some();
    let data = text_of_data(vm, this);
    let owner: Box<str> = owner.into();
    let name: Box<str> = name.into();
    let missing = if hides_app && function.is_undefined() {
        Missing::Hidden(owner)
    } else if let Some(data) = data.filter(|_| function.is_undefined()) {
        Missing::Data(data)
    } else if !function.is_undefined() {
        Missing::Property(name)
    } else if this.is_nullish() {
        return thrown;
    } else if this.is(Kind::App) {
        let app = vm.heap.atom_text(Atom(this.payload()));
        Missing::Tool(format!("{app}:{name}").into())
    } else if this.is(Kind::Native) {
        Missing::Static(this.payload(), name)
    } else {
        Missing::Method(vm.family(this), name)
    };
    note_missing(vm, thrown, missing)
}

/// The error for what the prelude cannot call: V8 shows a value, and the callee that is called by `call` or `apply`.
#[cold]
fn not_a_callback(vm: &mut Vm, function: Value) -> Thrown {
    let name = vm.realm.function(vm.stack.current).name;
    let calls = name.is_some_and(|name| vm.heap.atom_text(name).starts_with("Function_"));
    let callee = match error::calling_op(vm) {
        Some(OpKind::Call(call, _)) if calls => Some(call.callee_span),
        _ => None,
    };
    let what = match callee {
        Some(span) => agentscript_lang::callee_text(vm.realm.script.source(), span),
        None => vm.describe(function),
    };
    vm.type_error(&format!("{what} is not a function"))
}

/// The error for a name that nothing declares.
#[cold]
pub fn undefined_name(vm: &mut Vm, name: &str) -> Thrown {
    let thrown = vm.reference_error(&format!("{name} is not defined"));
    note_missing(vm, thrown, Missing::Name(name.into()))
}

/// The error for an item of a loop that an array pattern cannot take apart.
#[cold]
pub fn not_iterable_item(vm: &mut Vm, item: Value) -> Thrown {
    let thrown = vm.not_iterable(item);
    note_missing(vm, thrown, Missing::Pair)
}

/// Returns the notation of the data in a text.
fn text_of_data(vm: &mut Vm, value: Value) -> Option<Notation> {
    if !value.is(Kind::String) {
        return None;
    }
    let text = vm.short_text(value, MAX_NOTATION_BYTES).ok()?;
    Notation::of(&text)
}

fn note_missing(vm: &mut Vm, thrown: Thrown, missing: Missing) -> Thrown {
    if let Cause::Value(error) = *thrown.0 {
        vm.heap.traces.entry(error.payload()).or_default().missing = Some(missing);
    }
    thrown
}

/// Returns the replacement to write, if it is known and not switched off.
pub(crate) fn hint(vm: &Vm, missing: &Missing) -> Option<String> {
    let hint = any_hint(vm, missing)?;
    agentscript_lang::allowed_hint(&hint, &|name| is_off(vm, name))
}

pub(crate) fn is_off(vm: &Vm, name: &str) -> bool {
    vm.realm.script.disabled.iter().any(|off| off == name)
}

fn any_hint(vm: &Vm, missing: &Missing) -> Option<String> {
    match missing {
        Missing::Hidden(app) => Some(format!(
            "`{app}` is a variable of this script, so that the app '{app}' is hidden; give the variable another name"
        )),
        Missing::Data(notation) => Some(notation.hint().into()),
        Missing::Name(name) if is_own_tool(vm, name) => Some(agentscript_lang::refused::OWN_TOOL.into()),
        Missing::Name(name) => joined_tool(vm, name).or_else(|| table::host(vm.realm.script.linker.dialect(), name)
            .or_else(|| table::global(name).map(Into::into))
            .or_else(|| similar_name(vm, name))
            .or_else(|| similar_app(vm, name))),
        Missing::Property(name) => {
            Some(format!("`{name}` is no function here; read it without parentheses: `.{name}`"))
        }
        Missing::Pair => Some("the items of this loop are no arrays: take one name, `for (const item of …)`, or walk over pairs: `Object.entries(object)`, `array.entries()`".into()),
        Missing::Method(family, name) => method(vm.realm.registry, *family, name),
        Missing::Static(owner, name) => {
            function_of(vm.realm.registry, vm.realm.script.linker.dialect(), *owner, name)
        }
        Missing::Tool(tool) => Some((vm.realm.registry.hooks.missing_tool)(vm, tool)),
    }
}

/// The tool that an app and a name make, joined as some clients list it: `users_list`, `mcp__users__list`.
fn joined_tool(vm: &Vm, name: &str) -> Option<String> {
    if !vm.realm.script.linker.dialect().has_apps() || name.chars().count() > MAX_NAME_CHARS {
        return None;
    }
    let name = name.strip_prefix("mcp__").unwrap_or(name);
    let parts = name.match_indices('_').map(|(at, _)| (&name[..at], name[at..].trim_start_matches('_')));
    let mut tools = parts.filter(|(app, tool)| vm.host.tools.member(app, tool).is_some());
    tools.next().map(|(app, tool)| format!("write `{app}.{tool}(…)`"))
}

/// Whether a name is an app of the host's own tools, or one of them.
fn is_own_tool(vm: &Vm, name: &str) -> bool {
    let is_own = |app: &String| app == name;
    vm.realm.script.linker.dialect().has_apps()
        && (vm.host.tools.is_reserved(name) || vm.host.tools.reserved_apps().iter().any(is_own))
}

/// Returns a hint for an error of which only the message and the line say what is meant.
pub(crate) fn hint_of_message(vm: &Vm, message: &str, line: &str) -> Option<String> {
    if message.contains("[object Obj") && message.ends_with("is not valid JSON") {
        return Some("the value is data already; leave out `JSON.parse`".into());
    }
    if message == "Assignment to constant variable." {
        return Some("declare the variable with `let`".into());
    }
    if message.starts_with("callTool expects the name of a tool") {
        return Some("write `await callTool('app:tool', input)`, or `await app.tool(input)`".into());
    }
    if let Some((tool, _)) = message.strip_prefix("The input of tool '").and_then(|rest| rest.split_once('\'')) {
        return named_arguments(vm, tool);
    }
    let read = message.strip_prefix("Cannot read properties of undefined (reading '")?.strip_suffix("')")?;
    ["content", "structuredContent"].into_iter().find_map(|member| {
        let (_, rest) = line.split_once(&format!(".{member}"))?;
        let rest = rest.trim_start_matches(['?', '.', '[', '\'', '"']);
        rest.starts_with(read)
            .then(|| format!("results of tools are data already; use the value itself, without `.{member}`"))
    })
}

/// How the input of a tool is written, with the names of its first arguments.
fn named_arguments(vm: &Vm, tool: &str) -> Option<String> {
    if !vm.realm.script.linker.dialect().has_apps() {
        return None;
    }
    if vm.host.tools.is_app(tool) {
        return Some(format!("app and tool are one name: `callTool('{tool}:…', input)`"));
    }
    let known: serde_json::Value = serde_json::from_str(&vm.host.tools.describe(tool)?).ok()?;
    let (schema, name) = (known.get("inputSchema")?, known.get("name")?.as_str()?);
    let required = schema.get("required").and_then(|names| names.as_array());
    let required = required.into_iter().flatten().filter_map(|name| name.as_str());
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    let optional = properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str);
    let mut names: Vec<&str> = required.take(MAX_ARGUMENTS).collect();
    if names.is_empty() {
        names.extend(optional.take(1));
    }
    names.retain(|name| is_identifier(name.as_bytes()) && name.len() <= MAX_NAME_CHARS);
    let arguments: Vec<String> = names.iter().map(|name| format!("{name}: …")).collect();
    Some(match arguments.is_empty() {
        true => format!("write `callTool('{name}', {{}})`"),
        false => format!("name the arguments: `callTool('{name}', {{ {} }})`", arguments.join(", ")),
    })
}

/// An app with similar spelling.
fn similar_app(vm: &Vm, name: &str) -> Option<String> {
    let has_apps = vm.realm.script.linker.dialect().has_apps();
    vm.host.tools.similar_app(name).filter(|_| has_apps).map(|app| did_you_mean(&app))
}

/// A global or a name of the script with similar spelling.
fn similar_name(vm: &Vm, name: &str) -> Option<String> {
    let mut names = agentscript_lang::names(vm.realm.script.source(), FENCE_TAGS);
    names.retain(|own| *own != name);
    names.truncate(MAX_NAMES);
    names.extend(vm.realm.registry.globals().map(|(global, _)| global).filter(|name| !is_off(vm, name)));
    names.extend(vm.realm.script.linker.names().filter(|name| !is_off(vm, name)));
    nearest(name, names.into_iter()).map(did_you_mean)
}

impl Notation {
    /// Tells the notation by the beginning of a text.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim_start();
        let inner = text.strip_prefix(['{', '[', '(']).map(|inner| inner.trim_start_matches(['{', '[', '(', ' ']));
        match inner {
            Some(inner)
                if inner.starts_with('\'') || ["None", "True", "False"].iter().any(|word| inner.starts_with(word)) =>
            {
                Some(Self::Python)
            }
            Some(_) if text.contains(": None") || text.contains("': ") => Some(Self::Python),
            Some(inner)
                if text.starts_with(['{', '['])
                    && inner.starts_with(|c: char| "\"}]-tfn".contains(c) || c.is_ascii_digit()) =>
            {
                Some(Self::Json)
            }
            Some(_) => None,
            None if text.starts_with("\"{\\\"") || text.starts_with("\"[") => Some(Self::EscapedJson),
            None => None,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Json => "this is a text in JSON; read it with `JSON.parse(text)`",
            Self::EscapedJson => "this is JSON within JSON; read it with `JSON.parse(JSON.parse(text))`",
            Self::Python => "this is a text in Python's notation; read it with `parseText(text).data`",
        }
    }
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// What to call instead of a method that values of a family do not have.
fn method(registry: &Registry, family: Family, name: &str) -> Option<String> {
    if let Some(hint) = table::method(family, name) {
        return Some(hint.into());
    }
    let has = |family| registry.method_names(family).any(|method| method == name);
    let is_one_of = |families: &[Family]| families.contains(&family);
    if family == Family::Promise {
        return Some(format!("this is a promise; await it first: `(await value).{name}(…)`"));
    }
    if has(Family::Array) {
        if family == Family::String {
            return Some(format!(
                "this is a text; `parseText(text).data` reads rows of CSV, tables and JSON lines, `[...value].{name}(…)` takes characters"
            ));
        }
        if family.is_iterator() || is_one_of(&[Family::Map, Family::Set, Family::Uint8Array]) {
            return Some(format!("only arrays have it; write `[...value].{name}(…)`"));
        }
        if family == Family::Object {
            let values = format!("`Object.values(object).{name}(…)`, `Object.entries(object)`");
            return Some(format!("this is an object; use {values} or the property that holds an array"));
        }
    }
    if family == Family::ArrayBuffer && has(Family::Uint8Array) {
        return Some("make a view of it: `const bytes = new Uint8Array(buffer)`".into());
    }
    if has(Family::String) {
        if is_one_of(&[Family::Number, Family::Boolean, Family::BigInt]) {
            return Some(format!("only strings have it; write `String(value).{name}(…)`"));
        }
        if family == Family::Array {
            return Some(format!("only strings have it; call it on the items: `array.map((item) => item.{name}(…))`"));
        }
        if family == Family::Object {
            return Some("only strings have it; call it on the property that holds one".into());
        }
    }
    if family == Family::String && has(Family::Number) {
        return Some(format!("only numbers have it; write `Number(text).{name}(…)`"));
    }
    nearest(name, registry.method_names(family)).map(did_you_mean)
}

/// What to call instead of a function that a built-in object does not have.
fn function_of(registry: &Registry, dialect: Dialect, owner: u32, name: &str) -> Option<String> {
    let object = registry.natives[owner as usize].name;
    let known = table::function(object, name).map(Into::into);
    if let Some(hint) = known.or_else(|| table::host_function(dialect, object, name)) {
        return Some(hint);
    }
    let names = registry.property_names(owner).map(|atom| registry.names.text(atom));
    nearest(name, names).map(|name| did_you_mean(&format!("{object}.{name}")))
}

/// The name nearest to another one by edit distance, if it is near enough.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > MAX_NAME_CHARS {
        return None;
    }
    let lower = name.to_lowercase();
    let allowed = match length {
        0..=2 => 0,
        3..=4 => 1,
        _ => 2,
    };
    candidates
        .filter(|candidate| candidate.len() <= MAX_NAME_CHARS && candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(&lower, candidate), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

fn distance(lower: &str, candidate: &str) -> usize {
    strsim::damerau_levenshtein(lower, &candidate.to_lowercase())
}

#[cfg(test)]
mod tests;

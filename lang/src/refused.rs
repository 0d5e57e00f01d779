//! What JavaScript has and AgentScript refuses: one row each, with what to write instead. What a host has
//! instead is added by [`Options`](crate::Options).
//!
//! The tables say what is refused. The resolver decides where: a variable of the script may be called
//! `process`, and any property may be called `class`.

use crate::diagnostic::{Diagnostic, Refusal};
use crate::span::Span;
use hashbrown::HashMap;
use std::sync::LazyLock;

/// A refused name or construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The word, or the dotted name of a static method.
    pub name: &'static str,
    /// What kind of thing it is.
    pub refusal: Refusal,
    /// What to write instead.
    pub hint: &'static str,
}

/// A built-in of the language that a build of the host does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name of a global, or of a property that is read.
    pub name: &'static str,
    /// [`Refusal::DisallowedProperty`] for a property, any other for a global.
    pub refusal: Refusal,
    /// The feature of the host's crate that has it.
    pub feature: &'static str,
    /// What to write instead.
    pub hint: &'static str,
}

impl Missing {
    /// The diagnostic for a use of it.
    #[must_use]
    pub fn at(&self, span: Span) -> Diagnostic {
        let Self { name, feature, .. } = self;
        let message = format!("'{name}' is not available: this build of AgentScript lacks the feature `{feature}`");
        Diagnostic::refused(self.refusal, message, span).with_hint(self.hint)
    }
}

impl Refused {
    /// The diagnostic for a use of it.
    #[must_use]
    pub fn at(&self, span: Span) -> Diagnostic {
        let what = match self.refusal {
            Refusal::DisallowedSyntax => "",
            Refusal::DisallowedProperty => "Property ",
            Refusal::IllegalBuiltinAccess | Refusal::DisallowedGlobal => "Identifier ",
        };
        Diagnostic::refused(self.refusal, format!("{what}'{}' is not allowed in AgentScript", self.name), span)
            .with_hint(self.hint)
    }
}

/// The row of a construct that begins with this word.
#[must_use]
pub fn syntax(word: &str) -> Option<&'static Refused> {
    find(SYNTAX, word)
}

/// The row of a name that is refused where it is free, or `this` or `super`.
#[must_use]
pub fn name(name: &str) -> Option<&'static Refused> {
    match name {
        "this" | "super" => syntax(name),
        _ => ROWS.get(name).copied(),
    }
}

/// Whether a name is refused even where the script declares it.
#[must_use]
pub fn is_refused_everywhere(name: &str) -> bool {
    matches!(name, "eval" | "arguments" | "this" | "super")
}

/// The row of a property that is refused on any object.
#[must_use]
pub fn property(name: &str) -> Option<&'static Refused> {
    property_of(name.as_bytes())
}

/// The same for a text that may hold lone surrogates.
pub(crate) fn property_of(name: &[u8]) -> Option<&'static Refused> {
    PROPERTIES.iter().find(|row| row.name.as_bytes() == name)
}

/// The row of a static method of a global object: `Object.defineProperty`.
#[must_use]
pub fn static_method(object: &str, method: &str) -> Option<&'static Refused> {
    static_method_of(object.as_bytes(), method.as_bytes())
}

/// The same for texts that may hold lone surrogates.
pub(crate) fn static_method_of(object: &[u8], method: &[u8]) -> Option<&'static Refused> {
    STATIC_METHODS.iter().find(|row| {
        let name = row.name.as_bytes();
        name.get(object.len()) == Some(&b'.') && name.starts_with(object) && name[object.len() + 1..] == *method
    })
}

/// The names of all globals that are refused.
pub fn globals() -> impl Iterator<Item = &'static str> {
    GLOBALS.iter().map(|row| row.name)
}

/// The diagnostic for a free name that the options switch off.
#[must_use]
pub fn disabled(name: &str, refusal: Refusal, span: Span) -> Diagnostic {
    Diagnostic::refused(refusal, format!("Identifier '{name}' is not allowed in AgentScript"), span)
        .with_hint("it is switched off by the policy of this run")
}

fn find(table: &'static [Refused], name: &str) -> Option<&'static Refused> {
    table.iter().find(|row| row.name == name)
}

/// The rows of [`GLOBALS`] by their names: every free name of a script is looked up.
static ROWS: LazyLock<HashMap<&'static str, &'static Refused>> =
    LazyLock::new(|| GLOBALS.iter().rev().map(|row| (row.name, row)).collect());

macro_rules! table {
    ($(#[$doc:meta])* $table:ident: $($refusal:ident { $($($name:literal)|+ => $hint:literal,)+ })+) => {
        $(#[$doc])*
        pub const $table: &[Refused] =
            &[$($($(Refused { name: $name, refusal: Refusal::$refusal, hint: $hint },)+)+)+];
    };
}

table! {
    /// Constructs, by the word or the sign they are known by.
    SYNTAX: DisallowedSyntax {
        "class" => "write a function that returns an object: `const makeUser = (name) => ({ name, greet: () => name })`",
        "this" => "use a variable or a parameter; a method uses the variable that holds its object: `counter.n += 1`",
        "super" => "there are no classes; call the other function by its name",
        "new.target" => "there are no constructors of your own; write a function that returns an object",
        "getter" => "write a method, `name() { return … }`, or compute the value beforehand",
        "setter" => "write a method, `setName(value) { … }`, or assign the property",
        "with" => "name the object: `object.property`",
        "debugger" => "use `console.log(…)` to look at values",
        "import" => "there are no modules; leave it out: built-ins are there",
        "export" => "there are no modules; leave the word out, and give the result back with `return`",
        "enum" => "write a constant object: `const Color = {Red: 'red', Green: 'green'}`",
        "namespace" => "write a constant object: `const Names = {one: 1, two(x) { return x; }}`",
        "private name" => "there are no classes; keep the value in a variable of an enclosing function",
        "decorator" => "call the function: `const decorated = decorate(original)`",
    }
}

table! {
    /// Globals.
    GLOBALS:
    IllegalBuiltinAccess {
        "eval" => "text cannot be run as code; use `JSON.parse(text)` for data",
        "Function" | "AsyncFunction" | "GeneratorFunction" | "AsyncGeneratorFunction" =>
            "text cannot be run as code; write the function: `(a, b) => a + b`",
    }
    DisallowedGlobal {
        "require" => "there are no modules; built-ins are there without it",
        "module" | "exports" => "there are no modules; give the result back with `return`",
        "process" | "Deno" | "Bun" => "scripts see nothing of the host",
        "global" | "globalThis" | "window" | "self" | "frames" | "document" =>
            "there is no global object; name what you need directly, such as `Math` or `JSON`",
        "__dirname" | "__filename" => "scripts have no files",
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => "scripts have no network",
        "Response" => "`await fetch(url)` gives a response where a script has `fetch`; return plain data",
        "Request" => "pass the address and the options to `fetch(url, options)` where a script has it",
        "setImmediate" | "clearImmediate" => "use `setTimeout(callback)` and `clearTimeout(timeout)`",
        "Proxy" => "write a function that computes the value, or a plain object",
        "Reflect" => "use `Object.keys(o)`, `key in o`, `o[key]` or `delete o[key]`",
        "WebAssembly" => "write the computation in AgentScript",
        "Worker" => "there are no threads",
        "SharedArrayBuffer" | "Atomics" => "there are no threads; use a `Uint8Array`, an array or a `Map`",
        "WeakRef" | "FinalizationRegistry" => "keep the value itself in a variable; memory is freed when the run ends",
        "WeakMap" => "use a `Map`",
        "WeakSet" => "use a `Set`",
        "Symbol" => "`Symbol.iterator` and `Symbol.asyncIterator` are keys and nothing else: `{ *[Symbol.iterator]() { yield 1; } }`, `x[Symbol.iterator]()`; use a string for other keys",
        "Buffer" => "use a `Uint8Array`: `Uint8Array.fromBase64(text)`, `bytes.toBase64()`, `new TextDecoder().decode(bytes)`",
        "Int8Array" | "Uint8ClampedArray" | "Int16Array" | "Uint16Array" | "Int32Array" | "Uint32Array" | "Float32Array"
        | "Float64Array" | "BigInt64Array" | "BigUint64Array" =>
            "use a `Uint8Array` for bytes, and an array for other numbers: `new Uint8Array(n)`, `new Array(n).fill(0)`",
        "DataView" =>
            "read numbers from a `Uint8Array` by arithmetic: `bytes[i] | bytes[i + 1] << 8` is little-endian, `bytes[i] << 8 | bytes[i + 1]` big-endian",
        "arguments" => "use a rest parameter: `(...values) => …`",
    }
}

table! {
    /// Properties that lead to prototypes and constructors.
    PROPERTIES: DisallowedProperty {
        "__proto__" | "prototype" => "there are no prototypes; copy what you need: `{...object}`",
        "constructor" => "use `Array.isArray(x)`, `typeof x` or `x instanceof Date`",
        "__defineGetter__" | "__defineSetter__" | "__lookupGetter__" | "__lookupSetter__" =>
            "there are no getters and setters; use a method or a plain property",
    }
}

table! {
    /// Static methods for meta-programming.
    STATIC_METHODS: DisallowedProperty {
        "Object.defineProperty" => "assign the property: `object.name = value`",
        "Object.defineProperties" => "use `Object.assign(object, {…})`",
        "Object.getPrototypeOf" | "Object.setPrototypeOf" => "there are no prototypes; use plain objects and functions",
        "Object.getOwnPropertyDescriptor" | "Object.getOwnPropertyDescriptors" =>
            "use `Object.entries(object)` or `Object.hasOwn(object, key)`",
    }
}

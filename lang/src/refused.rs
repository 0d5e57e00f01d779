//! Constructs of JavaScript that AgentScript refuses: one row each, with a replacement. [`Options`](crate::Options)
//! adds the replacements of a host.
//!
//! The tables say what is refused. The resolver decides where: a variable of the script may be called
//! `process`, and any property may be called `class`.

use crate::diagnostic::{Diagnostic, Refusal};
use crate::span::Span;
use hashbrown::HashMap;
use std::sync::LazyLock;

/// The hint for a script that calls a tool of the server itself.
pub const OWN_TOOL: &str = "search for tools before the script; in it, `getTool(name)` describes a tool";

/// A refused name or construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The word, or the dotted name of a static method.
    pub name: &'static str,
    /// The kind of the refusal.
    pub refusal: Refusal,
    /// The remedy.
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
    /// The remedy.
    pub hint: &'static str,
}

impl Missing {
    /// Returns the diagnostic for a use of the name.
    #[must_use]
    pub fn at(&self, span: Span) -> Diagnostic {
        let Self { name, feature, .. } = self;
        let message = format!("'{name}' is not available: this build of AgentScript lacks the feature `{feature}`");
        Diagnostic::refused(self.refusal, message, span).with_hint(self.hint)
    }
}

impl Refused {
    /// Returns the owner and the name of a property: `Object` and `defineProperty`.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &'static str) {
        self.name.rsplit_once('.').unwrap_or(("", self.name))
    }

    /// Returns the diagnostic for a use of the property.
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

/// Returns the row of a construct that begins with this word.
#[must_use]
pub fn syntax(word: &str) -> Option<&'static Refused> {
    find(SYNTAX, word)
}

/// Returns the row of a name that is refused where it is free, or `this` or `super`.
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

/// Returns the row of a property that is refused on any object.
#[must_use]
pub fn property(name: &str) -> Option<&'static Refused> {
    property_of(name.as_bytes())
}

/// Returns the row of a property as [`property`] does, for a text that may hold lone surrogates.
pub(crate) fn property_of(name: &[u8]) -> Option<&'static Refused> {
    PROPERTIES.iter().find(|row| row.name.as_bytes() == name)
}

/// Returns the row of a static property of a built-in object: `defineProperty` of `Object`, `sign` of `crypto.subtle`.
#[must_use]
pub fn static_property(object: &str, name: &str) -> Option<&'static Refused> {
    static_property_of(object.as_bytes(), name.as_bytes())
}

/// Returns the row of a static property as [`static_property`] does, for texts that may hold lone surrogates.
pub(crate) fn static_property_of(object: &[u8], name: &[u8]) -> Option<&'static Refused> {
    let rows = STATIC_ROWS.get(name)?;
    rows.iter().copied().find(|row| row.parts().0.as_bytes() == object)
}

/// Returns the names of all globals that are refused.
pub fn globals() -> impl Iterator<Item = &'static str> {
    GLOBALS.iter().map(|row| row.name)
}

/// Returns the diagnostic for a free name that the options switch off.
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

/// The rows of [`STATIC_PROPERTIES`] by the names of the properties: every property of a global is looked up.
static STATIC_ROWS: LazyLock<HashMap<&'static [u8], Vec<&'static Refused>>> = LazyLock::new(|| {
    let mut rows: HashMap<_, Vec<_>> = HashMap::new();
    for row in STATIC_PROPERTIES {
        rows.entry(row.parts().1.as_bytes()).or_default().push(row);
    }
    rows
});

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
        "constructor" | "hasOwnProperty" | "isPrototypeOf" | "propertyIsEnumerable" | "toLocaleString" | "toString"
        | "valueOf" | "__defineGetter__" | "__defineSetter__" | "__lookupGetter__" | "__lookupSetter__" | "__proto__" =>
            "there is no global object that has it; call it on a value, such as `String(value)` or `value.toString()`",
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
        "Blob" | "File" => "use a `Uint8Array`: `new TextEncoder().encode(text)`, `new TextDecoder().decode(bytes)`",
        "FormData" => "use a plain object or `URLSearchParams`: `new URLSearchParams({ name: value }).toString()`",
        "ReadableStream" | "ReadableStreamDefaultReader" | "ReadableStreamBYOBReader" | "ReadableStreamBYOBRequest"
        | "ReadableByteStreamController" | "ReadableStreamDefaultController" | "WritableStream"
        | "WritableStreamDefaultController" | "WritableStreamDefaultWriter" | "TransformStream"
        | "TransformStreamDefaultController" | "ByteLengthQueuingStrategy" | "CountQueuingStrategy" =>
            "write an async generator: `async function* parts() { yield part; }`, `for await (const part of parts()) {}`",
        "TextEncoderStream" => "use `new TextEncoder().encode(text)`",
        "TextDecoderStream" => "use `new TextDecoder().decode(bytes, { stream: true })`",
        "CompressionStream" | "DecompressionStream" => "let a tool compress or decompress",
        "MessageChannel" | "MessagePort" | "BroadcastChannel" | "MessageEvent" | "CloseEvent" =>
            "there are no other threads; call the function, or use an array as a queue",
        "Event" | "CustomEvent" | "EventTarget" =>
            "keep the listeners in a list: `listeners.forEach((listener) => listener(value))`; an `AbortSignal` has events",
        "Iterator" => "make an array of it: `[...iterable].map(…)`; write your own as a generator: `function* ids() { yield 1; }`",
        "navigator" | "Navigator" => "scripts see nothing of the host",
        "Performance" | "PerformanceEntry" | "PerformanceMark" | "PerformanceMeasure" | "PerformanceObserver"
        | "PerformanceObserverEntryList" | "PerformanceResourceTiming" =>
            "measure with `performance.now()`, once before and once after",
        "Crypto" | "CryptoKey" | "SubtleCrypto" => "use `crypto.randomUUID()` or `crypto.subtle.digest('SHA-256', bytes)`",
        "URLPattern" => "take the parts of a `URL` apart: `new URL(text).pathname.split('/')`, or use a regular expression",
        "DisposableStack" | "AsyncDisposableStack" | "SuppressedError" => "use `try { … } finally { … }`",
        "Symbol" => "`Symbol.iterator` and `Symbol.asyncIterator` are keys and nothing else: `{ *[Symbol.iterator]() { yield 1; } }`, `x[Symbol.iterator]()`; use a string for other keys",
        "Buffer" => "use a `Uint8Array`: `Uint8Array.fromBase64(text)`, `bytes.toBase64()`, `new TextDecoder().decode(bytes)`",
        "Int8Array" | "Uint8ClampedArray" | "Int16Array" | "Uint16Array" | "Int32Array" | "Uint32Array" | "Float32Array"
        | "Float64Array" | "Float16Array" | "BigInt64Array" | "BigUint64Array" =>
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
    /// Properties of built-in objects: those for meta-programming, and those that are not there. A run that reaches one by
    /// another way, such as `const {rawJSON} = JSON`, ends.
    STATIC_PROPERTIES: DisallowedProperty {
        "Object.defineProperty" => "assign the property: `object.name = value`",
        "Object.defineProperties" => "use `Object.assign(object, {…})`",
        "Object.getPrototypeOf" | "Object.setPrototypeOf" => "there are no prototypes; use plain objects and functions",
        "Object.getOwnPropertyDescriptor" | "Object.getOwnPropertyDescriptors" =>
            "use `Object.entries(object)` or `Object.hasOwn(object, key)`",
        "Error.stackTraceLimit" => "leave it out: a stack has its 10 innermost frames",
        "Error.prepareStackTrace" => "leave it out; `error.stack` is a text, a frame a line",
        "RegExp.$1" | "RegExp.$2" | "RegExp.$3" | "RegExp.$4" | "RegExp.$5" | "RegExp.$6" | "RegExp.$7" | "RegExp.$8"
        | "RegExp.$9" | "RegExp.$+" | "RegExp.lastParen" =>
            "use the groups of the match: `const [whole, first, second] = text.match(regexp) ?? []`",
        "RegExp.$&" | "RegExp.lastMatch" => "use the match: `text.match(regexp)?.[0]`",
        "RegExp.$_" | "RegExp.input" => "use the text itself",
        "RegExp.$`" | "RegExp.leftContext" => "use the index of the match: `text.slice(0, match.index)`",
        "RegExp.$'" | "RegExp.rightContext" => "use the index of the match: `text.slice(match.index + match[0].length)`",
        "JSON.rawJSON" | "JSON.isRawJSON" => "give large numbers as strings: `JSON.stringify({ id: String(id) })`",
        "Intl.Locale" => "use tags as strings: `'de-CH'`; `Intl.getCanonicalLocales(tag)` checks one",
        "Intl.DurationFormat" =>
            "format each part with `new Intl.NumberFormat('en', { style: 'unit', unit: 'hour' })`; join them with `new Intl.ListFormat('en', { type: 'unit' })`",
        "URL.createObjectURL" | "URL.revokeObjectURL" =>
            "there are no blobs; a data URL holds bytes: `'data:text/plain;base64,' + bytes.toBase64()`",
        "console.Console" | "console.context" | "console.createTask" => "there is one console: `console.log(…)`",
        "console._stdout" | "console._stderr" | "console._stdoutErrorHandler" | "console._stderrErrorHandler"
        | "console._ignoreErrors" | "console._times" => "use `console.log(…)` and `console.error(…)`",
        "performance.timeOrigin" => "use `Date.now()` for the time of day, and `performance.now()` for durations",
        "performance.mark" | "performance.measure" | "performance.clearMarks" | "performance.clearMeasures"
        | "performance.getEntries" | "performance.getEntriesByName" | "performance.getEntriesByType" =>
            "measure with `performance.now()`, once before and once after, or with `console.time(label)`",
        "performance.toJSON" | "performance.nodeTiming" | "performance.eventLoopUtilization" | "performance.timerify"
        | "performance.clearResourceTimings" | "performance.setResourceTimingBufferSize"
        | "performance.markResourceTiming" | "performance.onresourcetimingbufferfull" | "performance.addEventListener"
        | "performance.removeEventListener" | "performance.dispatchEvent" =>
            "of `performance` there is `performance.now()` alone",
        "crypto.subtle.encrypt" | "crypto.subtle.decrypt" | "crypto.subtle.sign" | "crypto.subtle.verify"
        | "crypto.subtle.generateKey" | "crypto.subtle.deriveKey" | "crypto.subtle.deriveBits"
        | "crypto.subtle.importKey" | "crypto.subtle.exportKey" | "crypto.subtle.wrapKey" | "crypto.subtle.unwrapKey"
        | "crypto.subtle.getPublicKey" | "crypto.subtle.encapsulateBits" | "crypto.subtle.encapsulateKey"
        | "crypto.subtle.decapsulateBits" | "crypto.subtle.decapsulateKey" | "SubtleCrypto.supports" =>
            "scripts hold no keys; let a tool encrypt or sign, and use `crypto.subtle.digest('SHA-256', bytes)` for digests",
    }
}

table! {
    /// Properties that values of Node have and those of scripts do not. A run that reads one ends.
    MEMBERS: DisallowedProperty {
        "RegExp.prototype.compile" => "make a new one: `new RegExp(source, flags)`",
        "Function.prototype.arguments" | "Function.prototype.caller" => "use a rest parameter: `(...values) => …`",
        "AbortSignal.prototype.dispatchEvent" => "abort it by its controller: `controller.abort(reason)`",
        "DOMException.prototype.INDEX_SIZE_ERR" | "DOMException.prototype.DOMSTRING_SIZE_ERR"
        | "DOMException.prototype.HIERARCHY_REQUEST_ERR" | "DOMException.prototype.WRONG_DOCUMENT_ERR"
        | "DOMException.prototype.INVALID_CHARACTER_ERR" | "DOMException.prototype.NO_DATA_ALLOWED_ERR"
        | "DOMException.prototype.NO_MODIFICATION_ALLOWED_ERR" | "DOMException.prototype.NOT_FOUND_ERR"
        | "DOMException.prototype.NOT_SUPPORTED_ERR" | "DOMException.prototype.INUSE_ATTRIBUTE_ERR"
        | "DOMException.prototype.INVALID_STATE_ERR" | "DOMException.prototype.SYNTAX_ERR"
        | "DOMException.prototype.INVALID_MODIFICATION_ERR" | "DOMException.prototype.NAMESPACE_ERR"
        | "DOMException.prototype.INVALID_ACCESS_ERR" | "DOMException.prototype.VALIDATION_ERR"
        | "DOMException.prototype.TYPE_MISMATCH_ERR" | "DOMException.prototype.SECURITY_ERR"
        | "DOMException.prototype.NETWORK_ERR" | "DOMException.prototype.ABORT_ERR"
        | "DOMException.prototype.URL_MISMATCH_ERR" | "DOMException.prototype.QUOTA_EXCEEDED_ERR"
        | "DOMException.prototype.TIMEOUT_ERR" | "DOMException.prototype.INVALID_NODE_TYPE_ERR"
        | "DOMException.prototype.DATA_CLONE_ERR" =>
            "the numbers are those of the constructor: `DOMException.ABORT_ERR`; compare `error.name` with a text",
    }
}

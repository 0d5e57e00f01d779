//! Values as `util.inspect` of Node prints them.
//!
//! Objects are shown to a depth, long arrays and strings are cut, and short things share a line. All follows the rules
//! of Node 20 with its default options. Printing runs no function of the script.

mod error;
mod layout;
mod text;
mod url;

pub use crate::text::quote::is_identifier;
pub use text::width;

use super::registry::registry;
use crate::eval::callable;
use crate::eval::json;
use crate::eval::property::{self, PropertyKey};
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::object::NULL_PROTOTYPE;
use crate::heap::promise::State;
use crate::heap::{Entry, Yields, block};
use crate::interface::error_code::ErrorCode;
use crate::meter::Charge;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::atom::known;
use crate::value::family::Family;
use crate::value::numeric::number_text;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// How a value is printed.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Levels of nested objects that are shown.
    pub depth: usize,
    /// Whether properties that are not enumerable are shown.
    pub hidden: bool,
    /// Items of a collection that are shown.
    pub items: usize,
    /// Columns beyond which a line is broken.
    pub columns: usize,
    /// Bytes of text after which the run ends, as it does when it logs too much.
    pub limit: usize,
}

/// Most levels, whatever the options.
const DEEPEST: usize = 100;
/// UTF-16 code units of a string that are shown.
const MAX_STRING: usize = 10_000;

impl Default for Options {
    fn default() -> Self {
        Self { depth: 2, hidden: false, items: 100, columns: 80, limit: usize::MAX }
    }
}

/// `util.inspect(value, options)`
pub fn inspect(vm: &mut Vm, value: Value, options: Options) -> Result<String> {
    let options = Options { depth: options.depth.min(DEEPEST), ..options };
    let (seen, circular) = (Vec::new(), Vec::new()); // bounded: by DEEPEST
    Inspector { vm, options, seen, circular, indent: 0, deepest: 0, printed: 0 }.value(value, 0)
}

struct Inspector<'a> {
    vm: &'a mut Vm,
    options: Options,
    /// The objects around the present one.
    seen: Vec<Value>,
    /// Objects with circular references.
    circular: Vec<Value>,
    /// Columns that lines are indented by.
    indent: usize,
    /// The level of the object that was printed last.
    deepest: usize,
    /// Bytes of the text of primitives so far.
    printed: usize,
}

/// The outline of an object: everything but its parts.
struct Outline {
    /// The text before the brace.
    base: String,
    open: String,
    close: &'static str,
    array: bool,
    parts: Parts,
    /// What is printed instead of an object that is too deep.
    label: String,
    /// What is printed where there are no parts and no properties.
    empty: String,
}

impl Outline {
    /// The outline of an object with parts in braces.
    fn plain(label: &str, open: String, parts: Parts) -> Self {
        let (empty, label) = (brief!("{open}}}"), brief!("[{label}]"));
        Self { base: String::default(), empty, open, close: "}", array: false, parts, label }
    }

    /// The outline of an object with a text of its own, or none.
    fn with_base(base: String, open: String, label: &str) -> Self {
        let plain = Self::plain(label, open, Parts::None);
        if base.is_empty() { plain } else { Self { empty: base.clone(), base, ..plain } }
    }
}

enum Parts {
    None,
    Items,
    Set,
    Map,
    Promise,
    Iterator,
    Bytes,
    Buffer,
}

/// A property that is shown.
struct Property {
    key: PropertyKey,
    value: Value,
    enumerable: bool,
}

/// The printed parts of an object, counted.
#[derive(Default)]
struct Output {
    parts: Buffer<String>,
    texts: Hold,
}

impl Output {
    fn push(&mut self, vm: &Vm, text: String) -> Result<()> {
        self.texts.grow(vm, block(text.len()))?;
        self.parts.push(vm, text)
    }
}

impl Inspector<'_> {
    fn value(&mut self, value: Value, depth: usize) -> Result<String> {
        if !value.is_object() {
            return self.primitive(value);
        }
        if self.seen.contains(&value) {
            let index = self.circular.iter().position(|&known| known == value).unwrap_or_else(|| {
                self.circular.push(value);
                self.circular.len() - 1
            });
            return self.print(brief!("[Circular *{}]", index + 1));
        }
        self.object(value, depth)
    }

    fn primitive(&mut self, value: Value) -> Result<String> {
        let text = match value.kind() {
            Kind::String => self.string(value)?,
            Kind::Number if value.as_number() == 0.0 && value.as_number().is_sign_negative() => "-0".into(),
            Kind::Number => number_text(value.as_number()),
            Kind::BigInt => {
                let digits = self.vm.to_string(value)?;
                let charge = self.check(self.vm.heap.str(digits).bytes as usize)?;
                charge.text(format_args!("{}n", self.vm.heap.read_text(digits, charge)))
            }
            Kind::Null => "null".into(),
            Kind::Boolean => (if value == Value::TRUE { "true" } else { "false" }).into(),
            _ => "undefined".into(),
        };
        self.print(text)
    }

    /// Account for text that is printed.
    fn print(&mut self, text: String) -> Result<String> {
        self.printed += text.len();
        self.vm.work(1 + text.len() / 16)?;
        if self.printed > self.options.limit {
            return Err(too_much(self.options.limit));
        }
        Ok(text)
    }

    /// An error where so many bytes are more than may be printed.
    fn check(&mut self, bytes: usize) -> Result<Charge> {
        if self.printed.saturating_add(bytes) > self.options.limit {
            return Err(too_much(self.options.limit));
        }
        self.vm.reserve(bytes.saturating_mul(8))?;
        self.vm.work(1 + bytes / 16)
    }

    /// Text whose further lines are indented as the present line is.
    fn indented(&mut self, text: String) -> Result<String> {
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        if self.indent == 0 || lines == 0 {
            return Ok(text);
        }
        let charge = self.check(text.len() + lines * self.indent)?;
        Ok(text.replace('\n', &charge.text(format_args!("\n{}", " ".repeat(self.indent)))))
    }

    /// The part of a long string that is shown; only that much is read.
    fn beginning(&mut self, string: Value, charge: Charge) -> Value {
        // No code unit takes more than three bytes.
        let bytes = self.vm.heap.read_bytes(string, charge);
        let mut end = bytes.len().min(3 * MAX_STRING + 3);
        while end < bytes.len() && bytes[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        let units = crate::text::wtf8::to_utf16(&bytes[..end]);
        self.vm.heap.new_utf16(&units[..MAX_STRING])
    }

    fn string(&mut self, string: Value) -> Result<String> {
        let charge = self.vm.heap.charge_bytes((self.vm.heap.str(string).bytes as usize).min(3 * MAX_STRING))?;
        let length = self.vm.heap.str(string).units as usize;
        let shown = if length > MAX_STRING { self.beginning(string, charge) } else { string };
        let bytes = self.vm.heap.read_bytes(shown, charge);
        let length = length.min(MAX_STRING);
        let mut out = if length > 16 && length + self.indent + 4 > self.options.columns {
            let lines = bytes.split_inclusive(|&byte| byte == b'\n').map(text::quoted);
            let line_end = charge.text(format_args!(" +\n{}", " ".repeat(self.indent + 2)));
            lines.reduce(|all, line| all + &line_end + &line).unwrap_or_default()
        } else {
            text::quoted(bytes)
        };
        match self.vm.heap.str(string).units as usize - length {
            0 => {}
            1 => out.push_str("... 1 more character"),
            left => out.extend(["... ", &left.to_string(), " more characters"]),
        }
        Ok(out)
    }

    fn object(&mut self, object: Value, depth: usize) -> Result<String> {
        if let Some(text) = self.custom(object, depth)? {
            return Ok(text);
        }
        let (outline, properties, _hold) = self.outline(object)?;
        if properties.is_empty() && self.is_bare(object, &outline) {
            return self.print(outline.empty);
        }
        if depth > self.options.depth {
            return self.print(outline.label);
        }
        self.seen.push(object);
        self.deepest = depth + 1;
        let mut output = self.parts(object, &outline.parts, depth + 1)?;
        for property in &properties {
            let text = self.property(property, depth + 1)?;
            output.push(self.vm, text)?;
        }
        self.seen.pop();
        let mut base = outline.base;
        if let Some(index) = self.circular.iter().position(|&known| known == object) {
            let space = if base.is_empty() { "" } else { " " };
            base = brief!("<ref *{}>{space}", index + 1) + &base;
        }
        let items = outline.array.then_some(object);
        self.joined(output, &base, (&outline.open, outline.close), items, depth + 1)
    }

    /// Whether an object without properties is printed in its short form.
    fn is_bare(&self, object: Value, outline: &Outline) -> bool {
        match outline.parts {
            Parts::None => true,
            Parts::Items => self.vm.heap.length(object) == 0,
            Parts::Bytes => self.vm.heap.view_length(object) == 0 && !self.options.hidden,
            Parts::Set | Parts::Map => self.vm.heap.maps[object.index()].len() == 0,
            Parts::Promise | Parts::Iterator | Parts::Buffer => false,
        }
    }

    /// The outline of an object, its properties, and what counts them.
    fn outline(&mut self, object: Value) -> Result<(Outline, Vec<Property>, Hold)> {
        let (mut properties, hold) = self.properties(object)?;
        let plain = Outline::plain;
        let size = |vm: &Vm| vm.heap.maps[object.index()].len();
        let outline = match object.kind() {
            Kind::Array => Outline {
                open: "[".into(),
                close: "]",
                array: true,
                empty: "[]".into(),
                ..plain("Array", String::default(), Parts::Items)
            },
            Kind::Map => plain("Map", brief!("Map({}) {{", size(self.vm)), Parts::Map),
            Kind::Set => plain("Set", brief!("Set({}) {{", size(self.vm)), Parts::Set),
            Kind::Promise => {
                unawaited::note_use(self.vm, object, PromiseUse::Log, None);
                plain("Promise", "Promise {".into(), Parts::Promise)
            }
            Kind::Iterator => {
                let iterator = &self.vm.heap.iterators[object.index()];
                let name = super::iterator::tag(iterator.family);
                // Iterators over pairs have a different name only when printed.
                let tag = match (iterator.family, iterator.yields) {
                    (Family::MapIterator, Yields::Entries) => "Map Entries",
                    (Family::SetIterator, Yields::Entries) => "Set Entries",
                    _ => name,
                };
                let label = brief!("Object [{name}]");
                if matches!(iterator.family, Family::MapIterator | Family::SetIterator) {
                    plain(&label, brief!("[{tag}] {{"), Parts::Iterator)
                } else {
                    plain(&label, brief!("{label} {{"), Parts::None)
                }
            }
            Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => {
                self.callable(object)?
            }
            Kind::InternalSlots => self.internal_slots_of(object)?,
            Kind::Uint8Array => {
                let length = self.vm.heap.view_length(object);
                let open = brief!("Uint8Array({length}) [");
                let empty = brief!("{open}]");
                Outline { close: "]", array: true, empty, ..plain("Uint8Array", open, Parts::Bytes) }
            }
            Kind::ArrayBuffer => plain("ArrayBuffer", "ArrayBuffer {".into(), Parts::Buffer),
            Kind::Object if self.vm.heap.class(object).is_error() => {
                let base = self.error(object, &mut properties)?;
                let label = self.vm.heap.class(object).name();
                Outline { empty: base.clone(), base, ..plain(label, "{".into(), Parts::None) }
            }
            Kind::Object if self.vm.heap.flags(object) & NULL_PROTOTYPE != 0 => {
                let label = "Object: null prototype";
                plain(label, brief!("[{label}] {{"), Parts::None)
            }
            _ => plain("Object", "{".into(), Parts::None),
        };
        Ok((outline, properties, hold))
    }

    fn internal_slots_of(&mut self, object: Value) -> Result<Outline> {
        let heap = &self.vm.heap;
        let (family, class, tag) = (self.vm.family(object), heap.slots_class(object), heap.slots_tag(object));
        let (base, open) = match family {
            Family::Date => (self.vm.heap.slots(object).map_or(String::default(), super::date::inspected), "{".into()),
            Family::AbortSignal | Family::AbortController | Family::AbortEvent => {
                (self.indented(super::abort::inspected(self.vm, object))?, "{".into())
            }
            Family::RegExp => (super::regexp::literal_text(self.vm, object)?, "{".into()),
            Family::Segments => (String::default(), "{".into()),
            _ if tag == class || family == Family::Timeout => (String::default(), brief!("{class} {{")),
            _ => (String::default(), brief!("{class} [{tag}] {{")),
        };
        Ok(Outline::with_base(base, open, class))
    }

    fn callable(&mut self, callable: Value) -> Result<Outline> {
        let name = match callable.kind() {
            Kind::Native if self.vm.type_of(callable) != "function" => None,
            Kind::Tool => Some(callable::name(self.vm, callable)),
            _ => {
                let name = self.vm.get(callable, known::NAME)?;
                let name = self.vm.to_string(name)?;
                self.check(self.vm.heap.str(name).bytes as usize)?;
                Some(self.vm.heap.charged_string(name)?)
            }
        };
        let Some(name) = name else {
            let open = match registry().natives[callable.index()].tag() {
                class @ ("Crypto" | "SubtleCrypto") => brief!("{class} {{"),
                name => brief!("Object [{name}] {{"),
            };
            return Ok(Outline::with_base(String::default(), open, "Object"));
        };
        let class = callable::class(self.vm, callable);
        let base = if name.is_empty() { brief!("[{class} (anonymous)]") } else { brief!("[{class}: ") + &name + "]" };
        Ok(Outline::with_base(base, "{".into(), class))
    }

    /// The properties that are shown, except items of arrays, and what counts them.
    fn properties(&mut self, object: Value) -> Result<(Vec<Property>, Hold)> {
        let shown = |(key, value)| Property { key, value, enumerable: true };
        let mut hold = Hold::NONE;
        let mut properties: Vec<Property> = if object.is(Kind::Array) {
            let named = self.vm.heap.extras.get(&object).map(|&extra| Value::handle(Kind::Object, extra));
            let entries = named.map_or_else(|| Ok(Buffer::new()), |named| json::charged_properties(self.vm, named))?;
            let charge = self.vm.work(entries.len() / 8)?;
            hold.grow(self.vm, entries.len() * size_of::<Property>())?;
            // The raw texts of a tagged template are not enumerable.
            let is_template = self.vm.realm.templates.contains(&object);
            let entries = entries.into_iter().filter(|&(name, _)| name != known::RAW || !is_template);
            charge.list(entries.map(|(name, value)| shown((PropertyKey::Name(name), value))))
        } else if object.is(Kind::Uint8Array) {
            let named = self.vm.heap.extras.get(&object).map(|&extra| Value::handle(Kind::Object, extra));
            let entries = named.map_or_else(|| Ok(Buffer::new()), |named| json::charged_properties(self.vm, named))?;
            let charge = self.vm.work(entries.len() / 8)?;
            hold.grow(self.vm, entries.len() * size_of::<Property>())?;
            charge.list(entries.into_iter().map(|(name, value)| shown((PropertyKey::Name(name), value))))
        } else {
            let entries = json::enumerable_entries(self.vm, object)?;
            let charge = self.vm.work(entries.len())?;
            hold.grow(self.vm, entries.len() * size_of::<Property>())?;
            let symbols =
                property::own_symbols(self.vm, object)?.map(|(symbol, value)| (PropertyKey::Name(symbol), value));
            charge.list(entries.into_iter().chain(symbols).map(shown))
        };
        let counts = matches!(object.kind(), Kind::Array | Kind::Function | Kind::Native | Kind::NativeClosure);
        if self.options.hidden && self.vm.heap.regexp(object).is_some() {
            let key = PropertyKey::Name(known::LAST_INDEX);
            let value = self.vm.own_property(object, key)?;
            properties.splice(0..0, value.map(|value| Property { key, value, enumerable: false }));
        }
        if self.options.hidden && counts {
            let names = if object.is(Kind::Array) { &[known::LENGTH][..] } else { &[known::LENGTH, known::NAME] };
            let mut hidden = [None, None];
            for (slot, key) in hidden.iter_mut().zip(names.iter().copied().map(PropertyKey::Name)) {
                *slot = self.vm.own_property(object, key)?.map(|value| Property { key, value, enumerable: false });
            }
            properties.splice(0..0, hidden.into_iter().flatten());
        }
        Ok((properties, hold))
    }

    fn property(&mut self, property: &Property, depth: usize) -> Result<String> {
        self.indent += 2;
        let value = self.value(property.value, depth)?;
        self.indent -= 2;
        let atom = self.vm.key_atom(property.key);
        let charge = self.check(self.vm.heap.atoms.text(atom).len())?;
        let key = self.vm.heap.atoms.text(atom);
        let name = if atom == known::PROTO {
            "['__proto__']".into()
        } else if !property.enumerable || atom.is_symbol() {
            brief!("[{}]", self.vm.heap.atom_text(atom))
        } else if is_identifier(key) {
            charge.text(format_args!("{}", crate::text::wtf8::lossy(key)))
        } else {
            text::quoted(key)
        };
        let name = self.print(name)?;
        Ok(name + ": " + &value)
    }

    fn parts(&mut self, object: Value, parts: &Parts, depth: usize) -> Result<Output> {
        let mut output = Output::default();
        match parts {
            Parts::None => return Ok(output),
            Parts::Items => return self.items(object, depth),
            Parts::Bytes => return self.bytes(object, depth),
            Parts::Buffer => return self.buffer(object, true),
            Parts::Set | Parts::Map | Parts::Promise | Parts::Iterator => self.indent += 2,
        }
        match parts {
            Parts::None | Parts::Items | Parts::Bytes | Parts::Buffer => {}
            Parts::Set | Parts::Map => {
                let data = &self.vm.heap.maps[object.index()];
                self.vm.work(data.entry_count() / 8)?;
                let data = &self.vm.heap.maps[object.index()];
                let mut entries = Buffer::new();
                entries.extend(self.vm, data.entries().take(self.options.items))?;
                for (key, value) in entries {
                    let mut text = self.value(key, depth)?;
                    if matches!(parts, Parts::Map) {
                        text.push_str(" => ");
                        text.push_str(&self.value(value, depth)?);
                    }
                    output.push(self.vm, text)?;
                }
                self.push_more_items(self.vm.heap.maps[object.index()].len(), &mut output)?;
            }
            Parts::Promise => {
                let promise = &self.vm.heap.promises[object.index()];
                let (state, value) = (promise.state, promise.value);
                let text = match state {
                    State::Pending => "<pending>".into(),
                    State::Fulfilled => self.value(value, depth)?,
                    State::Rejected => String::from("<rejected> ") + &self.value(value, depth)?,
                };
                output.push(self.vm, text)?;
            }
            Parts::Iterator => self.remaining(object, depth, &mut output)?,
        }
        self.indent -= 2;
        Ok(output)
    }

    /// The items of an array, runs of holes as one.
    fn items(&mut self, array: Value, depth: usize) -> Result<Output> {
        let length = self.vm.heap.length(array);
        let shown = length.min(self.options.items);
        let (mut output, mut at) = (Output::default(), 0);
        let mut charge = self.vm.work(1)?;
        while at < length && output.parts.len() < shown {
            let holes = self.holes(array, at, charge);
            if holes > 0 {
                charge = self.vm.work(if self.vm.heap.is_sparse(array) { 1 } else { holes / 16 })?;
                let text = brief!("<{holes} empty item{}>", if holes > 1 { "s" } else { "" });
                output.push(self.vm, text)?;
                at += holes;
                continue;
            }
            let Some(item) = self.vm.heap.at(array, at) else { break };
            self.indent += 2;
            let text = self.value(item, depth)?;
            output.push(self.vm, text)?;
            self.indent -= 2;
            at += 1;
        }
        if at < length {
            output.push(self.vm, more(length - at))?;
        }
        Ok(output)
    }

    /// How many holes an array has from an index on.
    fn holes(&self, array: Value, at: usize, charge: Charge) -> usize {
        let heap = &self.vm.heap;
        if heap.is_sparse(array) {
            return heap.first_sparse(array, at..usize::MAX).map_or(heap.length(array), |index| index as usize) - at;
        }
        let items = &heap.read_items(array, charge)[at..];
        items.iter().take_while(|&&item| item == Value::HOLE).count()
    }

    /// The bytes of a view; those of its properties that are not enumerable where they are asked for.
    fn bytes(&mut self, view: Value, depth: usize) -> Result<Output> {
        let length = self.vm.heap.view_length(view);
        let mut output = Output::default();
        for index in 0..length.min(self.options.items) {
            let byte = self.vm.heap.view_byte(view, index).unwrap_or(0);
            let text = self.print(number_text(f64::from(byte)))?;
            output.push(self.vm, text)?;
        }
        self.push_more_items(length, &mut output)?;
        if self.options.hidden {
            let start = self.vm.heap.view_range(view).map_or(0, |range| range.start);
            let numbers = [("BYTES_PER_ELEMENT", 1), ("length", length), ("byteLength", length), ("byteOffset", start)];
            for (name, number) in numbers {
                output.push(self.vm, brief!("[{name}]: {number}"))?;
            }
            self.indent += 2;
            let buffer = self.buffer(self.vm.heap.buffer_of(view), false)?;
            self.deepest = depth + 1;
            let text = self.joined(buffer, "", ("ArrayBuffer {", "}"), None, depth + 1)?;
            self.indent -= 2;
            output.push(self.vm, brief!("[buffer]: {text}"))?;
        }
        Ok(output)
    }

    /// The parts of a buffer: with its bytes, or only their number.
    fn buffer(&mut self, buffer: Value, shows_bytes: bool) -> Result<Output> {
        let data = &self.vm.heap.byte_buffers[buffer.index()];
        let (length, is_detached) = (data.bytes.len(), data.detached);
        let mut output = Output::default();
        if is_detached {
            output.push(self.vm, "(detached)".into())?;
        } else if shows_bytes {
            let shown = length.min(self.options.items);
            let charge = self.vm.heap.charge_bytes(shown)?;
            let shown = &self.vm.heap.read_view(buffer, charge)[..shown];
            let mut text = String::from("[Uint8Contents]:");
            for (index, byte) in shown.iter().enumerate() {
                text.push_str(&brief!("{}{byte:02x}", if index == 0 { " <" } else { " " }));
            }
            if shown.is_empty() {
                text.push_str(" <");
            }
            if let Some(left @ 1..) = length.checked_sub(self.options.items) {
                let s = if left > 1 { "s" } else { "" };
                text.push_str(&brief!(" ... {left} more byte{s}"));
            }
            text.push('>');
            let text = self.print(text)?;
            output.push(self.vm, text)?;
        }
        output.push(self.vm, brief!("byteLength: {length}"))?;
        Ok(output)
    }

    /// The remaining items of an iterator of a `Map` or `Set`.
    fn remaining(&mut self, iterator: Value, depth: usize, output: &mut Output) -> Result<()> {
        let crate::heap::Iterator { source, yields, mut position, .. } = self.vm.heap.iterators[iterator.index()];
        if source.is_undefined() {
            return Ok(());
        }
        self.vm.work(self.vm.heap.maps[source.index()].entry_count() / 8)?;
        let mut count = 0;
        while let Some(Entry { key, value, behind, .. }) = self.vm.heap.maps[source.index()].entry_from(position) {
            position = behind;
            count += 1;
            if count > self.options.items {
                continue;
            }
            let value = if source.is(Kind::Set) { key } else { value };
            let text = match yields {
                Yields::Keys | Yields::ForIn => self.value(key, depth)?,
                Yields::Values | Yields::Matches | Yields::Script | Yields::Generator => self.value(value, depth)?,
                Yields::Entries => {
                    let mut pair = Output::default();
                    for part in [key, value] {
                        let text = self.value(part, depth)?;
                        pair.push(self.vm, text)?;
                    }
                    self.joined(pair, "", ("[", "]"), None, depth)?
                }
            };
            output.push(self.vm, text)?;
        }
        self.push_more_items(count, output)
    }

    /// Say how many of `length` parts are not shown.
    fn push_more_items(&self, length: usize, output: &mut Output) -> Result<()> {
        match length.checked_sub(self.options.items) {
            None | Some(0) => Ok(()),
            Some(left) => output.push(self.vm, more(left)),
        }
    }
}

fn more(count: usize) -> String {
    brief!("... {count} more item{}", if count > 1 { "s" } else { "" })
}

/// The end of the run that printed too much.
#[cold]
pub fn too_much(limit: usize) -> Thrown {
    let message = brief!("The script exceeded its console limit of {limit} bytes; log less");
    Thrown::limit(ErrorCode::ConsoleLimit, message)
}

//! Property names as numbers.
//!
//! Names of built-ins have the same number in every run; behind them come the texts of the script,
//! then whatever a run makes. A symbol is an identity: two texts are equal exactly if their symbols
//! are.

use crate::builtins::registry::registry;
use crate::outcome::{MOST_MESSAGE, shown_bytes};
use crate::value::Value;
use crate::vm::Vm;
use agentscript_lang::program::Texts;
use hashbrown::DefaultHashBuilder;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A property name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(pub u32);

macro_rules! known {
    ($($name:ident = $text:literal),+ $(,)?) => {
        /// Names that the interpreter itself uses, by their fixed numbers.
        pub mod known {
            use super::Sym;
            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "the constants below are the interface")]
            enum Number { $($name),+ }
            $(#[doc = concat!("`", $text, "`")] pub const $name: Sym = Sym(Number::$name as u32);)+
            /// The texts, in the order of the numbers.
            pub const TEXTS: &[&str] = &[$($text),+];
        }
    };
}

known! {
    EMPTY = "", LENGTH = "length", NAME = "name", MESSAGE = "message", STACK = "stack", CAUSE = "cause", ERRORS = "errors",
    CODE = "code", TOOL_NAME = "toolName", DETAILS = "details", THEN = "then", TO_STRING = "toString",
    VALUE_OF = "valueOf", TO_JSON = "toJSON", VALUE = "value", DONE = "done", RAW = "raw", JOIN = "join",
    PROTO = "__proto__", CONSTRUCTOR = "constructor", PROTOTYPE = "prototype", SUCCESS = "success", OK = "ok", RESULT = "result", DATA = "data",
    ERROR = "error", STATUS = "status", REASON = "reason",
    THROW_ON_ERROR = "throwOnError", TIMEOUT_MS = "timeoutMs", SIZE = "size", UNDEFINED = "undefined",
    NULL = "null", TRUE = "true", FALSE = "false", DEFINE_GETTER = "__defineGetter__", DEFINE_SETTER = "__defineSetter__",
    LOOKUP_GETTER = "__lookupGetter__", LOOKUP_SETTER = "__lookupSetter__",
    INDEX = "index", INPUT = "input", GROUPS = "groups", INDICES = "indices", LAST_INDEX = "lastIndex",
    PUSH = "push",
}

/// The texts of one compiled script, or of the prelude, and their symbols; shared by all its runs.
#[derive(Debug, Default)]
pub struct ProgramTexts {
    /// All texts behind each other, in WTF-8.
    pub bytes: Arc<[u8]>,
    /// Where each text that is not a fixed name stands: begin and length. Its symbol is `first` plus
    /// its index here.
    pub ranges: Vec<(u32, u32)>,
    /// The first symbol.
    first: u32,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl ProgramTexts {
    /// The symbols of the texts of a program, in their order. `fixed` are the texts of the prelude,
    /// unless it is these that are numbered.
    pub fn new(texts: &Texts, fixed: Option<&Self>) -> (Self, Vec<Sym>) {
        let mut bytes = Vec::with_capacity(texts.total());
        let registry = registry();
        let first = registry.names.len() + fixed.map_or(0, |fixed| fixed.ranges.len());
        let count = texts.iter().len();
        let mut this = Self {
            first: first as u32,
            ranges: Vec::with_capacity(count),
            table: HashTable::with_capacity(count),
            ..Self::default()
        };
        let symbols = texts
            .iter()
            .map(|text| {
                let known = registry.symbol(text).or_else(|| fixed.and_then(|fixed| fixed.find(text)));
                if let Some(symbol) = known {
                    return symbol;
                }
                let index = this.ranges.len() as u32;
                this.ranges.push((bytes.len() as u32, text.len() as u32));
                bytes.extend_from_slice(text);
                let Self { table, hasher, ranges, .. } = &mut this;
                let hash = hasher.hash_one(text);
                table.insert_unique(hash, index, |&other| {
                    let (start, length) = ranges[other as usize];
                    hasher.hash_one(&bytes[start as usize..][..length as usize])
                });
                Sym(this.first + index)
            })
            .collect();
        this.bytes = bytes.into();
        (this, symbols)
    }

    /// The text of a symbol that is one of these.
    pub fn text(&self, symbol: Sym) -> &[u8] {
        let (start, length) = self.ranges[(symbol.0 - self.first) as usize];
        &self.bytes[start as usize..][..length as usize]
    }

    fn find(&self, text: &[u8]) -> Option<Sym> {
        let hash = self.hasher.hash_one(text);
        let index = self.table.find(hash, |&index| self.text(Sym(self.first + index)) == text)?;
        Some(Sym(self.first + index))
    }

    fn end(&self) -> u32 {
        self.first + self.ranges.len() as u32
    }
}

/// The symbols of a run: fixed names, texts of the prelude, texts of the script, then those it makes.
#[derive(Debug)]
pub struct Symbols {
    prelude: &'static ProgramTexts,
    program: Arc<ProgramTexts>,
    /// Texts that the run has made.
    made: Vec<Box<[u8]>>,
    /// The symbols that the run has asked for by their text.
    table: HashTable<Sym>,
    hasher: DefaultHashBuilder,
    /// The symbols of small indices, as far as they were asked for.
    indices: Vec<Option<Sym>>,
    /// Strings that were property names lately.
    recent: [(Value, Sym); RECENT],
}

/// How many strings are remembered with their symbols.
const RECENT: usize = 8;

/// Texts that a run asks for which reads some data.
const USUAL: usize = 14;

/// Indices whose symbols are remembered.
const SMALL_INDICES: usize = 256;

impl Symbols {
    /// The symbols of a run of a program.
    pub fn new(program: Arc<ProgramTexts>) -> Self {
        let prelude = &crate::prelude::code().texts;
        let (made, indices) = (Vec::new(), Vec::new());
        let recent = [(Value::UNDEFINED, known::EMPTY); RECENT];
        Self { prelude, program, made, table: HashTable::new(), hasher: DefaultHashBuilder::default(), indices, recent }
    }

    /// The text of a symbol, in WTF-8.
    pub fn text(&self, symbol: Sym) -> &[u8] {
        if symbol.0 < self.prelude.first {
            registry().names[symbol.0 as usize].as_bytes()
        } else if symbol.0 < self.program.first {
            self.prelude.text(symbol)
        } else if symbol.0 < self.program.end() {
            self.program.text(symbol)
        } else {
            &self.made[(symbol.0 - self.program.end()) as usize]
        }
    }

    /// Whether a name is in the script, or one of a built-in.
    pub fn is_mentioned(&self, symbol: Sym) -> bool {
        symbol.0 < self.program.end()
    }

    /// The symbol of a text, if there is one.
    pub fn find(&self, text: &[u8]) -> Option<Sym> {
        let known = self.find_fixed(text);
        if known.is_some() {
            return known;
        }
        self.table.find(self.hasher.hash_one(text), |&symbol| self.text(symbol) == text).copied()
    }

    fn find_fixed(&self, text: &[u8]) -> Option<Sym> {
        registry().symbol(text).or_else(|| self.program.find(text)).or_else(|| self.prelude.find(text))
    }

    /// The symbol of a text and how many bytes it took to make or to remember it.
    pub fn intern(&mut self, text: &[u8]) -> (Sym, usize) {
        let hash = self.hasher.hash_one(text);
        if let Some(&symbol) = self.table.find(hash, |&symbol| self.text(symbol) == text) {
            return (symbol, 0);
        }
        let (symbol, bytes) = match self.find_fixed(text) {
            Some(symbol) => (symbol, 8),
            None => {
                self.made.push(text.into());
                (Sym(self.program.end() + self.made.len() as u32 - 1), text.len() + 40)
            }
        };
        let mut table = std::mem::take(&mut self.table);
        if table.capacity() == 0 {
            table.reserve(USUAL, |_| 0);
        }
        table.insert_unique(hash, symbol, |&other| self.hasher.hash_one(self.text(other)));
        self.table = table;
        (symbol, bytes)
    }

    /// The symbol of a string, if it was asked for lately.
    #[inline(always)]
    pub fn recent(&self, string: Value) -> Option<Sym> {
        let (handle, symbol) = self.recent[string.index() % RECENT];
        (handle == string).then_some(symbol)
    }

    /// Remember the symbol of a string.
    pub fn remember(&mut self, string: Value, symbol: Sym) {
        self.recent[string.index() % RECENT] = (string, symbol);
    }

    /// Garbage is collected: handles of strings may come to mean others.
    pub fn forget(&mut self) {
        self.recent = [(Value::UNDEFINED, known::EMPTY); RECENT];
    }

    /// The symbol of an index as a name, if there is one.
    #[inline]
    pub fn find_index(&mut self, index: u32) -> Option<Sym> {
        match self.indices.get(index as usize) {
            Some(&Some(symbol)) => Some(symbol),
            _ => {
                let symbol = self.find(digits(index, &mut [0; 10]))?;
                self.remember_index(index, symbol);
                Some(symbol)
            }
        }
    }

    /// The symbol of an index as a name and how many bytes it took to make it.
    pub fn intern_index(&mut self, index: u32) -> (Sym, usize) {
        match self.find_index(index) {
            Some(symbol) => (symbol, 0),
            None => {
                let (symbol, bytes) = self.intern(digits(index, &mut [0; 10]));
                self.remember_index(index, symbol);
                (symbol, bytes)
            }
        }
    }

    fn remember_index(&mut self, index: u32, symbol: Sym) {
        let index = index as usize;
        if index < SMALL_INDICES {
            if self.indices.len() <= index {
                self.indices.resize((index + 1).next_power_of_two(), None);
            }
            self.indices[index] = Some(symbol);
        }
    }

    /// The number that a property name stands for as an index, if it is written as one: `"12"`.
    pub fn index(&self, symbol: Sym) -> Option<u32> {
        array_index(self.text(symbol))
    }

    /// Where the text of a symbol of the script stands among its texts.
    pub fn program_range(&self, symbol: Sym) -> Option<(u32, u32)> {
        let range = self.program.first..self.program.end();
        range.contains(&symbol.0).then(|| self.program.ranges[(symbol.0 - self.program.first) as usize])
    }
}

impl Vm {
    /// The string of a symbol.
    #[inline]
    pub fn symbol_string(&mut self, symbol: Sym) -> Value {
        match self.atom_strings.get(symbol) {
            Some(string) => string,
            None => self.make_symbol_string(symbol),
        }
    }

    #[cold]
    fn make_symbol_string(&mut self, symbol: Sym) -> Value {
        let index = symbol.0 as usize;
        let registry = registry();
        let string = if let Some(&(start, length)) = registry.ranges.get(index) {
            self.heap.builtin_string(start, length)
        } else if let Some((start, length)) = self.atoms.program_range(symbol) {
            self.heap.program_string(start, length)
        } else {
            let text = self.atoms.text(symbol);
            self.heap.new_string(text)
        };
        let bytes = self.atom_strings.set(symbol, string);
        self.heap.meter.keep_bytes(bytes);
        string
    }

    /// The symbol of a string.
    #[inline]
    pub fn intern(&mut self, string: Value) -> Sym {
        let (symbol, bytes) = self.atoms.intern(self.heap.bytes(string));
        if bytes > 0 {
            self.heap.meter.keep_bytes(bytes);
        }
        symbol
    }

    /// The symbol of a text.
    pub fn intern_text(&mut self, text: &str) -> Sym {
        let (symbol, bytes) = self.atoms.intern(text.as_bytes());
        if bytes > 0 {
            self.heap.meter.keep_bytes(bytes);
        }
        symbol
    }

    /// A new string of a text.
    pub fn string(&mut self, text: &str) -> Value {
        self.heap.new_string(text.as_bytes())
    }

    /// The text of a symbol, for messages: a long one is cut.
    pub fn symbol_text(&self, symbol: Sym) -> String {
        shown_bytes(self.atoms.text(symbol), MOST_MESSAGE)
    }
}

/// The decimal digits of an index.
fn digits(index: u32, buffer: &mut [u8; 10]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = index;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &buffer[at..];
        }
    }
}

/// The strings of symbols, as far as a run has asked for them. In pages: a script uses few of the
/// many names of built-ins, whose numbers come first.
#[derive(Debug, Default)]
pub struct SymbolStrings {
    pages: Vec<Option<Box<[Value; PAGE]>>>,
}

const PAGE: usize = 32;
/// Pages that a script soon needs behind the first one.
const SPARE_PAGES: usize = 4;

impl SymbolStrings {
    /// The string of a symbol, where it was set.
    #[inline(always)]
    pub fn get(&self, symbol: Sym) -> Option<Value> {
        let page = self.pages.get(symbol.0 as usize / PAGE)?.as_deref()?;
        Some(page[symbol.0 as usize % PAGE]).filter(|string| string.is_string())
    }

    /// Set the string of a symbol; how many bytes that took.
    pub fn set(&mut self, symbol: Sym, string: Value) -> usize {
        let (number, index) = (symbol.0 as usize / PAGE, symbol.0 as usize % PAGE);
        let before = self.cost();
        if self.pages.len() <= number {
            // Hardly more at first: names of built-ins come far before those of the script, and few scripts have many.
            self.pages.reserve_exact((number + 1 + SPARE_PAGES - self.pages.len()).max(self.pages.len() / 2));
            self.pages.resize_with(number + 1, || None);
        }
        let page = &mut self.pages[number];
        let fresh = if page.is_none() { PAGE * 8 } else { 0 };
        page.get_or_insert_with(|| Box::new([Value::UNDEFINED; PAGE]))[index] = string;
        self.cost() - before + fresh
    }

    fn cost(&self) -> usize {
        self.pages.capacity() * 8
    }

    /// All values; `undefined` where a string was not set.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.pages.iter().flatten().flat_map(|page| page.iter().copied())
    }
}

/// The array index that a text is the canonical form of: 0 to 2³²−2.
pub fn array_index(text: &[u8]) -> Option<u32> {
    match text {
        [b'0'] => Some(0),
        [b'1'..=b'9', rest @ ..] if rest.len() < 10 && rest.iter().all(u8::is_ascii_digit) => {
            let number = text.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
            u32::try_from(number).ok().filter(|&index| index != u32::MAX)
        }
        _ => None,
    }
}

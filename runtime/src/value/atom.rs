//! Property names as numbers: atoms, as in V8, SpiderMonkey and QuickJS.
//!
//! Names of built-ins have the same number in every run. The texts of the script follow, then names that a run makes.
//! Two texts are equal exactly if their atoms are.

use hashbrown::DefaultHashBuilder;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// The hash of a text in all tables of atoms: a text that is looked up in one after the other is hashed once. It is that
/// of the bytes without their number: no key consists of several texts.
#[inline]
pub fn hash(text: &[u8]) -> u64 {
    static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    let mut hasher = HASHER.build_hasher();
    hasher.write(text);
    hasher.finish()
}

/// A property name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(pub u32);

macro_rules! known {
    ($($name:ident = $text:literal),+ $(,)?) => {
        /// Names that the interpreter itself uses, by their fixed numbers.
        pub mod known {
            use super::Atom;
            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "the constants below are the interface")]
            enum Number { $($name),+ }
            $(#[doc = concat!("`", $text, "`")] pub const $name: Atom = Atom(Number::$name as u32);)+
            /// Their texts, in the order of the numbers.
            pub const TEXTS: &[&str] = &[$($text),+];
        }
    };
}

known! {
    EMPTY = "", LENGTH = "length", NAME = "name", MESSAGE = "message", STACK = "stack", CAUSE = "cause", ERRORS = "errors",
    CODE = "code", TOOL_NAME = "toolName", DETAILS = "details", THEN = "then", TO_STRING = "toString",
    VALUE_OF = "valueOf", TO_JSON = "toJSON", VALUE = "value", DONE = "done", RAW = "raw", JOIN = "join", EXEC = "exec",
    PROTO = "__proto__", CONSTRUCTOR = "constructor", PROTOTYPE = "prototype", SUCCESS = "success", OK = "ok", RESULT = "result", DATA = "data",
    ERROR = "error", STATUS = "status", REASON = "reason",
    THROW_ON_ERROR = "throwOnError", TIMEOUT_MS = "timeoutMs", SIZE = "size", UNDEFINED = "undefined",
    NULL = "null", TRUE = "true", FALSE = "false", DEFINE_GETTER = "__defineGetter__", DEFINE_SETTER = "__defineSetter__",
    LOOKUP_GETTER = "__lookupGetter__", LOOKUP_SETTER = "__lookupSetter__",
    INDEX = "index", INPUT = "input", GROUPS = "groups", INDICES = "indices", LAST_INDEX = "lastIndex",
    PUSH = "push", CATCH = "catch", FINALLY = "finally", NEXT = "next", RETURN = "return", THROW = "throw",
    SYMBOL_ITERATOR = "Symbol(Symbol.iterator)", SYMBOL_ASYNC_ITERATOR = "Symbol(Symbol.asyncIterator)",
}

impl Atom {
    /// Whether it is the key `Symbol.iterator` or `Symbol.asyncIterator`, which no string is.
    #[inline(always)]
    pub fn is_symbol(self) -> bool {
        matches!(self, known::SYMBOL_ITERATOR | known::SYMBOL_ASYNC_ITERATOR)
    }
}

/// The texts by which programs name the keys that are symbols.
pub const SYMBOLS: [(Atom, &[u8]); 2] = [
    (known::SYMBOL_ITERATOR, agentscript_lang::program::SYMBOL_ITERATOR),
    (known::SYMBOL_ASYNC_ITERATOR, agentscript_lang::program::SYMBOL_ASYNC_ITERATOR),
];

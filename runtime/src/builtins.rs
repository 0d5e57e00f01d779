//! Built-in functions: one file a type, each with its tables on top and its functions below in the
//! same order.
//!
//! To add one, add a row and a function. A function that calls functions of the script is a row with [`Body::Prelude`]
//! and a function of that name in `prelude/`. Written in the language itself, it suspends, is charged and recurses like
//! any script.

pub mod abort;
pub mod array;
pub mod bigint;
pub mod boolean;
pub mod bytes;
pub mod collections;
pub mod console;
pub mod crypto;
pub mod date;
pub mod dom_exception;
pub mod encoding;
pub mod error;
pub mod escape;
pub mod function;
pub mod generator;
pub mod global;
pub mod headers;
mod hooks;
pub mod inspect;
#[cfg(feature = "intl")]
pub mod intl;
#[cfg(not(feature = "intl"))]
#[path = "builtins/without_intl.rs"]
pub mod intl;
pub mod iterator;
pub mod json;
pub mod listing;
pub mod math;
pub mod number;
pub mod object;
pub mod promise;
pub mod regexp;
pub mod registry;
pub mod response;
pub mod string;
pub mod timer;
pub mod tool;
pub mod uri;
pub mod url;

pub use crate::eval::native::{Body, ClosureFn, Global, NativeFn, Row};
pub use crate::eval::native::{arg, either, getter, iterating, native, prelude};

#[cfg(feature = "intl")]
macro_rules! intl_prelude {
    () => {
        include_str!("builtins/prelude/intl.js")
    };
}
#[cfg(not(feature = "intl"))]
macro_rules! intl_prelude {
    () => {
        ""
    };
}

/// The prelude: built-ins written in the language itself.
pub const PRELUDE: &str = concat!(
    include_str!("builtins/prelude/array.js"),
    include_str!("builtins/prelude/bytes.js"),
    include_str!("builtins/prelude/collections.js"),
    include_str!("builtins/prelude/fetch.js"),
    intl_prelude!(),
    include_str!("builtins/prelude/iterable.js"),
    include_str!("builtins/prelude/json.js"),
    include_str!("builtins/prelude/object.js"),
    include_str!("builtins/prelude/promise.js"),
    include_str!("builtins/prelude/string.js"),
    include_str!("builtins/prelude/timer.js"),
    include_str!("builtins/prelude/tool.js"),
    include_str!("builtins/prelude/url.js"),
);

//! The tables of all built-ins, and the registry and the prelude of this process that are made of them.
//!
//! Bounded by the tables of built-ins, which are read once for the process

use super::*;
use crate::eval::prelude::Prelude;
use crate::eval::registry::{Registry, Tables};
use crate::value::atom::{Atom, known};
use crate::value::family::Family;
use std::sync::LazyLock;

/// Aliases: methods with two names, of which the second is the function's own.
const ALIASES: &[(Family, &str, &str)] = &[
    (Family::Date, "toGMTString", "toUTCString"),
    (Family::Set, "keys", "values"),
    (Family::String, "trimLeft", "trimStart"),
    (Family::String, "trimRight", "trimEnd"),
];

/// The methods that are also `[Symbol.iterator]`.
const ITERATORS: &[(Family, Atom, &str)] = &[
    (Family::Array, known::SYMBOL_ITERATOR, "values"),
    (Family::Map, known::SYMBOL_ITERATOR, "entries"),
    (Family::Set, known::SYMBOL_ITERATOR, "values"),
    (Family::Uint8Array, known::SYMBOL_ITERATOR, "values"),
    (Family::Params, known::SYMBOL_ITERATOR, "entries"),
    (Family::Headers, known::SYMBOL_ITERATOR, "entries"),
];

/// The registry of this process.
#[inline]
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(&tables()));
    &REGISTRY
}

/// The compiled prelude of this process.
#[inline]
pub fn compiled_prelude() -> &'static Prelude {
    static PRELUDE_CODE: LazyLock<Prelude> = LazyLock::new(|| Prelude::new(registry(), PRELUDE));
    &PRELUDE_CODE
}

fn tables() -> Tables {
    let mut methods: Vec<(Family, &'static [Row])> = vec![
        (Family::Object, object::METHODS),
        (Family::Array, array::METHODS),
        (Family::Function, function::METHODS),
        (Family::String, string::METHODS),
        (Family::String, string::html::METHODS),
        (Family::Number, number::METHODS),
        (Family::Boolean, boolean::METHODS),
        (Family::BigInt, bigint::METHODS),
        (Family::Error, error::METHODS),
        (Family::DomException, dom_exception::METHODS),
        (Family::Map, collections::MAP_METHODS),
        (Family::Set, collections::SET_METHODS),
        (Family::Promise, promise::METHODS),
        (Family::ArrayBuffer, bytes::array_buffer::BUFFER_METHODS),
        (Family::Uint8Array, bytes::VIEW_METHODS),
        (Family::TextEncoder, encoding::ENCODER_METHODS),
        (Family::TextDecoder, encoding::DECODER_METHODS),
        (Family::Date, date::METHODS),
        (Family::RegExp, regexp::METHODS),
        (Family::Url, url::METHODS),
        (Family::Params, url::params::METHODS),
        (Family::Timeout, timer::METHODS),
        (Family::AbortController, abort::CONTROLLER_METHODS),
        (Family::AbortSignal, abort::SIGNAL_METHODS),
        (Family::AbortEvent, abort::EVENT_METHODS),
        (Family::Headers, headers::METHODS),
        (Family::Response, response::METHODS),
        (Family::Generator, generator::METHODS),
        (Family::AsyncGenerator, generator::ASYNC_METHODS),
    ];
    methods.extend(iterator::METHODS);
    methods.extend(intl::METHODS);
    let mut members = vec![("crypto", "subtle", crypto::SUBTLE)];
    members.extend(intl::CONSTRUCTORS.iter().map(|constructor| ("Intl", constructor.name, *constructor)));
    Tables {
        globals: vec![
            object::GLOBALS,
            array::GLOBALS,
            function::GLOBALS,
            string::GLOBALS,
            number::GLOBALS,
            boolean::GLOBALS,
            bigint::GLOBALS,
            math::GLOBALS,
            json::GLOBALS,
            collections::GLOBALS,
            error::GLOBALS,
            dom_exception::GLOBALS,
            promise::GLOBALS,
            date::GLOBALS,
            regexp::GLOBALS,
            intl::GLOBALS,
            url::GLOBALS,
            url::params::GLOBALS,
            bytes::GLOBALS,
            encoding::GLOBALS,
            crypto::GLOBALS,
            uri::GLOBALS,
            escape::GLOBALS,
            console::GLOBALS,
            global::GLOBALS,
            timer::GLOBALS,
            abort::GLOBALS,
            headers::GLOBALS,
            tool::fetch::GLOBALS,
        ],
        members,
        host_functions: tool::FUNCTIONS,
        methods,
        localized: intl::LOCALIZED,
        aliases: ALIASES,
        symbols: ITERATORS,
        symbol_methods: iterator::SYMBOL_METHODS,
        intrinsics: vec![
            iterator::INTRINSICS,
            array::INTRINSICS,
            bytes::INTRINSICS,
            crypto::INTRINSICS,
            collections::INTRINSICS,
            error::INTRINSICS,
            intl::INTRINSICS,
            json::INTRINSICS,
            object::INTRINSICS,
            promise::INTRINSICS,
            regexp::INTRINSICS,
            string::INTRINSICS,
            timer::INTRINSICS,
            abort::INTRINSICS,
            tool::INTRINSICS,
            tool::fetch::INTRINSICS,
            headers::INTRINSICS,
            response::INTRINSICS,
            url::params::INTRINSICS,
        ],
        hooks: hooks::HOOKS,
    }
}

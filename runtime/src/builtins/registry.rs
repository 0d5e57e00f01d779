//! The registry of all built-ins by name and number: created once per process, shared by all runs.
//!
//! bounded: by the tables of built-ins, which are read once for the process

use super::family::{FAMILIES, Family};
use super::{Body, DirectFn, Global, NativeFn, Row, crypto};
use crate::atom::{self, Atom, SYMBOLS, known};
use crate::dialect::Dialect;
use agentscript_lang::refused::{self, Refused};
use hashbrown::{HashMap, HashTable};
use std::sync::{Arc, LazyLock};

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

/// A built-in function or namespace.
pub struct Native {
    /// Its name.
    pub name: &'static str,
    /// The `length` of the function object.
    pub length: u8,
    /// What a call does.
    pub call: Body,
    /// What `new` does.
    pub construct: Option<Body>,
    /// The fast path that is tried before a function of the prelude is called.
    pub direct: Option<DirectFn>,
}

impl Native {
    /// Whether it can be called.
    pub fn is_function(&self) -> bool {
        !matches!(self.call, Body::Namespace)
    }

    /// The tag of a namespace, which is the name of its class where it has one.
    pub fn tag(&self) -> &'static str {
        match self.name {
            "crypto" => "Crypto",
            "performance" => "Performance",
            name => name,
        }
    }
}

/// A static property of a built-in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Static {
    /// A function, by number.
    Native(u32),
    /// A number.
    Number(f64),
}

/// All built-ins.
pub struct Registry {
    /// The texts of the fixed atoms.
    pub names: Vec<&'static str>,
    /// The same, concatenated.
    pub text: Arc<[u8]>,
    /// The range of each name in it.
    pub ranges: Vec<(u32, u32)>,
    /// Functions and namespaces by number.
    pub natives: Vec<Native>,
    atoms: HashTable<(&'static [u8], Atom)>,
    /// For each fixed atom and family, the number of the method plus one.
    methods: Vec<[u16; FAMILIES]>,
    /// The same for methods that are functions of Rust, those of `Object.prototype` included in every family.
    functions: Vec<[Option<NativeFn>; FAMILIES]>,
    statics: HashMap<(u32, Atom), Static>,
    static_names: HashMap<u32, Vec<Atom>>,
    globals: HashMap<&'static str, u32>,
    /// For each fixed atom, [`Self::is_plain_method`] without and with iterables, and the number of the global plus one.
    plain: Vec<[bool; 2]>,
    global_numbers: Vec<u32>,
    /// The families in the order of [`Family`], with the names of their constructors.
    families: Vec<(&'static str, Family)>,
    /// The functions of hosts, by dialect: [`Linker`](crate::linker::Linker) gives them to scripts.
    pub host_functions: Vec<(Dialect, u32)>,
    /// Functions that only the prelude can call.
    intrinsics: HashMap<&'static str, u32>,
    /// The properties of built-ins that the language refuses, by the numbers of the built-ins.
    refused_statics: HashMap<(u32, Atom), &'static Refused>,
    /// The properties of values that the language refuses, by the families of the values.
    refused_members: HashMap<(Family, Atom), &'static Refused>,
}

/// The registry of this process.
#[inline]
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);
    &REGISTRY
}

impl Registry {
    fn new() -> Self {
        let mut this = Self {
            names: Vec::new(),
            text: Arc::default(),
            ranges: Vec::new(),
            natives: Vec::new(),
            atoms: HashTable::new(),
            methods: Vec::new(),
            functions: Vec::new(),
            statics: HashMap::new(),
            static_names: HashMap::new(),
            globals: HashMap::new(),
            plain: Vec::new(),
            global_numbers: Vec::new(),
            families: Vec::new(),
            host_functions: Vec::new(),
            intrinsics: HashMap::new(),
            refused_statics: HashMap::new(),
            refused_members: HashMap::new(),
        };
        for text in known::TEXTS {
            this.name(text);
        }
        // No string is one of these keys, only what programs name them by.
        for (symbol, text) in SYMBOLS {
            this.atoms.retain(|&mut (_, atom)| atom != symbol);
            this.atoms.insert_unique(atom::hash(text), (text, symbol), |(text, _)| atom::hash(text));
        }
        use super::*;
        let globals: &[&[Global]] = &[
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
        ];
        for global in globals.iter().copied().flatten() {
            let number = this.constructor(global);
            this.globals.insert(global.name, number);
        }
        for &(dialect, rows) in tool::FUNCTIONS {
            for row in rows {
                let number = this.row(row);
                this.host_functions.push((dialect, number));
            }
        }
        if let Some(&namespace) = this.globals.get("Intl") {
            for constructor in intl::CONSTRUCTORS {
                let number = this.constructor(constructor);
                this.static_property(namespace, constructor.name, Static::Native(number));
            }
        }
        let crypto = this.globals["crypto"];
        let subtle = this.constructor(&crypto::SUBTLE);
        this.static_property(crypto, "subtle", Static::Native(subtle));
        let methods: &[(Family, &[Row])] = &[
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
        for &(family, rows) in methods.iter().chain(iterator::METHODS).chain(intl::METHODS) {
            this.families.push((family.name(), family));
            this.family(family, rows);
        }
        for &(family, rows) in intl::LOCALIZED {
            this.family(family, rows);
        }
        for &(family, name, other) in ALIASES {
            let (name, other) = (this.name(name), this.name(other));
            this.methods[name.0 as usize][family as usize] = this.methods[other.0 as usize][family as usize];
        }
        for &(family, symbol, other) in ITERATORS {
            let other = this.name(other);
            this.methods[symbol.0 as usize][family as usize] = this.methods[other.0 as usize][family as usize];
        }
        for (families, symbol, row) in iterator::SYMBOL_METHODS {
            let number = this.row(row) as u16 + 1;
            families.iter().for_each(|&family| this.methods[symbol.0 as usize][family as usize] = number);
        }
        let intrinsics: &[&[Row]] = &[
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
        ];
        for row in intrinsics.iter().copied().flatten() {
            let number = this.row(row);
            let before = this.intrinsics.insert(row.name, number);
            debug_assert!(before.is_none(), "two intrinsics are called {}", row.name);
        }
        this.refuse();
        this.functions = this
            .methods
            .iter()
            .map(|row| {
                row.map(|number| match (number, row[Family::Object as usize]) {
                    (0, 0) => None,
                    (0, number) | (number, _) => match this.natives[usize::from(number) - 1].call {
                        Body::Native(function) => Some(function),
                        Body::Iterating(..)
                        | Body::Prelude(_)
                        | Body::Accessor { .. }
                        | Body::Resume(..)
                        | Body::Namespace => None,
                    },
                })
            })
            .collect();
        let mut text = Vec::new();
        for name in &this.names {
            this.ranges.push((text.len() as u32, name.len() as u32));
            text.extend_from_slice(name.as_bytes());
        }
        this.text = text.into();
        this.plain = (0..this.methods.len())
            .map(|atom| [false, true].map(|iterables| this.has_plain_method(atom, iterables)))
            .collect();
        this.global_numbers = vec![0; this.names.len()];
        for (&name, &number) in &this.globals {
            if let Some(atom) = this.atom(name.as_bytes()) {
                this.global_numbers[atom.0 as usize] = number + 1;
            }
        }
        this
    }

    /// Note what the language refuses of built-ins.
    fn refuse(&mut self) {
        for row in refused::STATIC_PROPERTIES {
            let (owner, name) = row.parts();
            let owner = if owner == crypto::SUBTLE.name { "crypto.subtle" } else { owner };
            // A build may lack the owner.
            let Some(owner) = self.path(owner) else { continue };
            let name = self.name(name);
            self.refused_statics.insert((owner, name), row);
        }
        for row in refused::MEMBERS {
            let (owner, name) = row.parts();
            let owner = owner.trim_end_matches(".prototype");
            let Some(&(_, family)) = self.families.iter().find(|(family, _)| *family == owner) else { continue };
            let name = self.name(name);
            self.refused_members.insert((family, name), row);
        }
    }

    fn name(&mut self, text: &'static str) -> Atom {
        let hash = atom::hash(text.as_bytes());
        if let Some(known) = self.hashed_atom(hash, text.as_bytes()) {
            return known;
        }
        let new = Atom(self.names.len() as u32);
        self.names.push(text);
        self.methods.push([0; FAMILIES]);
        self.atoms.insert_unique(hash, (text.as_bytes(), new), |(text, _)| atom::hash(text));
        new
    }

    /// The number of a built-in: the same for two rows of one name and one function, as
    /// `parseInt === Number.parseInt` is true.
    fn add(&mut self, name: &'static str, length: u8, call: Body, construct: Option<Body>) -> u32 {
        if let (Body::Native(function), None) = (call, construct) {
            let is_same = |native: &Native| {
                native.name == name
                    && matches!(native.call, Body::Native(other) if std::ptr::fn_addr_eq(other, function))
            };
            if let Some(number) = self.natives.iter().position(is_same) {
                return number as u32;
            }
        }
        self.name(name);
        self.natives.push(Native { name, length, call, construct, direct: None });
        (self.natives.len() - 1) as u32
    }

    /// The methods of a family.
    fn family(&mut self, family: Family, rows: &[Row]) {
        for row in rows {
            let number = self.row(row) as u16 + 1;
            let atom = self.name(row.name);
            self.methods[atom.0 as usize][family as usize] = number;
        }
    }

    fn row(&mut self, row: &Row) -> u32 {
        let number = self.add(row.name, row.length, row.body, None);
        self.natives[number as usize].direct = row.direct;
        number
    }

    /// A global, or a constructor of a namespace, with its static properties.
    fn constructor(&mut self, global: &Global) -> u32 {
        let number = self.add(global.name, global.length, global.call, global.construct);
        for row in global.functions {
            let function = self.row(row);
            self.static_property(number, row.name, Static::Native(function));
        }
        for &(name, value) in global.numbers {
            self.static_property(number, name, Static::Number(value));
        }
        number
    }

    fn static_property(&mut self, owner: u32, name: &'static str, property: Static) {
        let atom = self.name(name);
        self.statics.insert((owner, atom), property);
        self.static_names.entry(owner).or_default().push(atom);
    }

    /// The fixed atom of a text.
    #[inline]
    pub fn atom(&self, text: &[u8]) -> Option<Atom> {
        self.hashed_atom(atom::hash(text), text)
    }

    /// The same where its [`atom::hash`] is known.
    #[inline]
    pub fn hashed_atom(&self, hash: u64, text: &[u8]) -> Option<Atom> {
        self.atoms.find(hash, |&(known, _)| known == text).map(|&(_, atom)| atom)
    }

    /// The method of that name of a family, or of `Object.prototype`.
    #[inline]
    pub fn method(&self, family: Family, name: Atom) -> Option<u32> {
        let row = self.methods.get(name.0 as usize)?;
        let number = match row[family as usize] {
            0 => row[Family::Object as usize],
            number => number,
        };
        number.checked_sub(1).map(u32::from)
    }

    /// The same, where it is a function of Rust.
    #[inline]
    pub fn function(&self, family: Family, name: Atom) -> Option<NativeFn> {
        self.functions.get(name.0 as usize)?[family as usize]
    }

    /// Whether a family has a method of that name that is not the one of `Object.prototype`.
    pub fn has_own_method(&self, family: Family, name: Atom) -> bool {
        self.methods.get(name.0 as usize).is_some_and(|row| row[family as usize] != 0)
    }

    /// The setter of an accessor of a family: `None` where there is no such accessor, `Some(None)` where it is
    /// read-only.
    pub fn setter(&self, family: Family, name: Atom) -> Option<Option<NativeFn>> {
        match self.natives[self.method(family, name)? as usize].call {
            Body::Accessor { set, .. } => Some(set),
            _ => None,
        }
    }

    /// Whether some family has a method of that name, and none of these methods runs functions of a script, which may
    /// have iterables of its own or not.
    #[inline]
    pub fn is_plain_method(&self, name: Atom, iterables: bool) -> bool {
        self.plain.get(name.0 as usize).is_some_and(|plain| plain[usize::from(iterables)])
    }

    fn has_plain_method(&self, atom: usize, iterables: bool) -> bool {
        let mut found = false;
        for number in self.methods[atom].into_iter().filter(|&number| number != 0) {
            let call = self.natives[usize::from(number) - 1].call;
            // Only generators have these.
            if matches!(call, Body::Resume(..)) && !iterables {
                continue;
            }
            found = true;
            if call.as_native(iterables).is_none() {
                return false;
            }
        }
        found
    }

    /// A static property.
    pub fn property(&self, owner: u32, name: Atom) -> Option<Static> {
        self.statics.get(&(owner, name)).copied()
    }

    /// The refusal of a property of a built-in, if the language refuses it.
    pub fn refused_static(&self, owner: u32, name: Atom) -> Option<&'static Refused> {
        self.refused_statics.get(&(owner, name)).copied()
    }

    /// The refusal of a property of the values of a family, if the language refuses it.
    pub fn refused_member(&self, family: Family, name: Atom) -> Option<&'static Refused> {
        self.refused_members.get(&(family, name)).copied()
    }

    /// The names of the static properties.
    pub fn property_names(&self, owner: u32) -> impl Iterator<Item = Atom> + '_ {
        self.static_names.get(&owner).into_iter().flatten().copied()
    }

    /// The names of the methods of a family, those of `Object.prototype` not among them.
    pub fn method_names(&self, family: Family) -> impl Iterator<Item = &'static str> + '_ {
        let rows = self.methods.iter().zip(&self.names);
        rows.filter(move |(row, name)| row[family as usize] != 0 && !name.starts_with("Symbol(")).map(|(_, &name)| name)
    }

    /// The names of the methods and computed properties of what a global makes, in alphabetical order.
    pub fn methods_of(&self, global: &str) -> impl Iterator<Item = Atom> {
        let family = self.families.iter().find(|(name, _)| *name == global).map(|&(_, family)| family);
        let has = |row: &[u16; FAMILIES]| family.is_some_and(|family| row[family as usize] != 0);
        let rows = self.methods.iter().enumerate().filter(|(index, row)| has(row) && !Atom(*index as u32).is_symbol());
        let mut atoms: Vec<Atom> = rows.map(|(index, _)| Atom(index as u32)).collect();
        atoms.sort_by_key(|atom| self.names[atom.0 as usize]);
        atoms.into_iter()
    }

    /// The methods and computed properties of all families, those of `Object.prototype` once.
    pub fn family_methods(&self) -> impl Iterator<Item = (Family, &'static str, Body)> + '_ {
        let mut families: Vec<Family> = self.families.iter().map(|&(_, family)| family).collect();
        families.dedup();
        families.into_iter().flat_map(move |family| {
            let rows = self.methods.iter().zip(&self.names);
            rows.filter_map(move |(row, &name)| {
                let number = row[family as usize].checked_sub(1)?;
                Some((family, name, self.natives[usize::from(number)].call))
            })
        })
    }

    /// All globals of the language with their numbers.
    pub fn globals(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.globals.iter().map(|(&name, &number)| (name, number))
    }

    /// The global of the language of that name.
    pub fn global(&self, name: &str) -> Option<u32> {
        self.global_of(self.atom(name.as_bytes())?)
    }

    /// The number of a global by the atom of its name.
    #[inline]
    pub fn global_of(&self, name: Atom) -> Option<u32> {
        self.global_numbers.get(name.0 as usize)?.checked_sub(1)
    }

    /// The global of a name, or what a dotted name such as `Intl.DateTimeFormat` leads to.
    pub fn path(&self, name: &str) -> Option<u32> {
        let mut names = name.split('.');
        let first = *self.globals.get(names.next()?)?;
        names.try_fold(first, |owner, name| match self.property(owner, self.atom(name.as_bytes())?)? {
            Static::Native(native) => Some(native),
            Static::Number(_) => None,
        })
    }

    /// The function of that name that only the prelude can call.
    pub fn intrinsic(&self, name: &str) -> Option<u32> {
        self.intrinsics.get(name).copied()
    }
}

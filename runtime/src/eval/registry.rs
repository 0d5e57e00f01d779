//! The registry of all built-ins by name and number: created once per process, shared by all runs.
//!
//! Bounded by the tables of built-ins, which are read once for the process

use super::native::{Body, DirectFn, Global, NativeFn, Row};
use crate::eval::activation::Called;
use crate::eval::vm::Vm;
use crate::heap::Yields;
use crate::heap::atoms::FixedNames;
use crate::heap::frame::After;
use crate::interface::dialect::Dialect;
use crate::value::Value;
use crate::value::atom::Atom;
use crate::value::family::{FAMILIES, Family};
use crate::value::thrown::Result;
use agentscript_lang::refused::{self, Refused};
use hashbrown::HashMap;

/// A built-in function or namespace.
pub struct Native {
    /// Its name.
    pub name: &'static str,
    /// The `length` of the function object.
    pub length: u8,
    /// The effect of a call.
    pub call: Body,
    /// The effect of `new`; absent if it is refused.
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
    /// Operations that the evaluator needs.
    pub hooks: Hooks,
    /// The fixed atoms.
    pub names: FixedNames,
    /// Functions and namespaces by number.
    pub natives: Vec<Native>,
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

/// An operation that returns the next item of an iterator and the position behind it.
pub type NextItem = fn(&mut Vm, Value, Yields, usize) -> Result<Option<(Value, usize)>>;

/// Operations of built-ins that the evaluator needs and does not know.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Returns the next item of an iterator over an object of a built-in, and the position behind it.
    pub next_item: NextItem,
    /// Makes an iterator over a `Uint8Array`.
    pub iterate_bytes: fn(&mut Vm, Value) -> Result,
    /// Returns the methods whose names `for…in` gives of an object beside its own keys.
    pub inherited_names: fn(&Vm, Value) -> &'static [Row],
    /// Prints a value as `util.inspect` of Node, in at most so many bytes.
    pub inspect: fn(&mut Vm, Value, usize) -> Result<String>,
    /// Returns the input of the run.
    pub input: fn(&mut Vm) -> Result,
    /// Returns a tool of an app as a function.
    pub tool_member: fn(&mut Vm, Value, Atom) -> Result,
    /// Names the tool to call instead of one that an app does not have.
    pub missing_tool: fn(&Vm, &str) -> String,
    /// Calls a tool that is a value.
    pub call_tool: fn(&mut Vm, Value, &[Value]) -> Result,
    /// Calls a function of the host.
    pub call_host_function: fn(&mut Vm, Value, &[Value], After) -> Result<Called>,
}

/// The tables of all built-ins, from which a [`Registry`] is made.
pub struct Tables {
    /// The globals.
    pub globals: Vec<&'static [Global]>,
    /// Constructors and namespaces that are properties of a global: its name, the name of the property, the row.
    pub members: Vec<(&'static str, &'static str, Global)>,
    /// The functions of hosts, by dialect.
    pub host_functions: &'static [(Dialect, &'static [Row])],
    /// The methods of families.
    pub methods: Vec<(Family, &'static [Row])>,
    /// Methods that replace some of these.
    pub localized: &'static [(Family, &'static [Row])],
    /// Methods with two names, of which the second is the function's own.
    pub aliases: &'static [(Family, &'static str, &'static str)],
    /// Methods that also have a symbol as their name.
    pub symbols: &'static [(Family, Atom, &'static str)],
    /// Methods whose only name is a symbol.
    pub symbol_methods: &'static [(&'static [Family], Atom, &'static Row)],
    /// Functions that only the prelude can call.
    pub intrinsics: Vec<&'static [Row]>,
    /// Operations that the evaluator needs.
    pub hooks: Hooks,
}

impl Registry {
    /// Makes the registry of tables.
    pub fn new(tables: &Tables) -> Self {
        let mut this = Self {
            hooks: tables.hooks,
            names: FixedNames::new(),
            natives: Vec::new(),
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
        this.methods.resize(this.names.len(), [0; FAMILIES]);
        for global in tables.globals.iter().copied().flatten() {
            let number = this.constructor(global);
            this.globals.insert(global.name, number);
        }
        for &(dialect, rows) in tables.host_functions {
            for row in rows {
                let number = this.row(row);
                this.host_functions.push((dialect, number));
            }
        }
        for (owner, name, global) in &tables.members {
            let number = this.constructor(global);
            if let Some(&owner) = this.globals.get(owner) {
                this.static_property(owner, name, Static::Native(number));
            }
        }
        for &(family, rows) in &tables.methods {
            this.families.push((family.name(), family));
            this.family(family, rows);
        }
        for &(family, rows) in tables.localized {
            this.family(family, rows);
        }
        for &(family, name, other) in tables.aliases {
            let (name, other) = (this.name(name), this.name(other));
            this.methods[name.0 as usize][family as usize] = this.methods[other.0 as usize][family as usize];
        }
        for &(family, symbol, other) in tables.symbols {
            let other = this.name(other);
            this.methods[symbol.0 as usize][family as usize] = this.methods[other.0 as usize][family as usize];
        }
        for (families, symbol, row) in tables.symbol_methods {
            let number = this.row(row) as u16 + 1;
            families.iter().for_each(|&family| this.methods[symbol.0 as usize][family as usize] = number);
        }
        for row in tables.intrinsics.iter().copied().flatten() {
            let number = this.row(row);
            let before = this.intrinsics.insert(row.name, number);
            debug_assert!(before.is_none(), "two intrinsics are called {}", row.name);
        }
        this.refuse(tables);
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
        this.names.complete();
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
    fn refuse(&mut self, tables: &Tables) {
        for row in refused::STATIC_PROPERTIES {
            let (owner, name) = row.parts();
            let member = tables.members.iter().find(|(_, _, global)| global.name == owner);
            let member = member.and_then(|(of, name, _)| self.path(&format!("{of}.{name}")));
            // A build may lack the owner.
            let Some(owner) = member.or_else(|| self.path(owner)) else { continue };
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
        let atom = self.names.add(text);
        self.methods.resize(self.names.len(), [0; FAMILIES]);
        atom
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
        self.names.atom(text)
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
        let rows = self.methods.iter().zip(self.names.iter());
        rows.filter(move |(row, name)| row[family as usize] != 0 && !name.starts_with("Symbol(")).map(|(_, name)| name)
    }

    /// The names of the methods and computed properties of what a global makes, in alphabetical order.
    pub fn methods_of(&self, global: &str) -> impl Iterator<Item = Atom> {
        let family = self.families.iter().find(|(name, _)| *name == global).map(|&(_, family)| family);
        let has = |row: &[u16; FAMILIES]| family.is_some_and(|family| row[family as usize] != 0);
        let rows = self.methods.iter().enumerate().filter(|(index, row)| has(row) && !Atom(*index as u32).is_symbol());
        let mut atoms: Vec<Atom> = rows.map(|(index, _)| Atom(index as u32)).collect();
        atoms.sort_by_key(|&atom| self.names.text(atom));
        atoms.into_iter()
    }

    /// The methods and computed properties of all families, those of `Object.prototype` once.
    pub fn family_methods(&self) -> impl Iterator<Item = (Family, &'static str, Body)> + '_ {
        let mut families: Vec<Family> = self.families.iter().map(|&(_, family)| family).collect();
        families.dedup();
        families.into_iter().flat_map(move |family| {
            let rows = self.methods.iter().zip(self.names.iter());
            rows.filter_map(move |(row, name)| {
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

//! A value of the language in eight bytes.
//!
//! NaN boxing: numbers are doubles, and everything else is encoded as NaNs that arithmetic never produces. They have
//! sixteen bits of tag, sixteen of kind, thirty-two of payload. The kind of a value is known without a heap access, and
//! a
//! value owns nothing.

pub mod atom;
pub mod family;
pub mod fdlibm;
pub mod numeric;
pub mod random;
pub mod thrown;

use std::fmt;

/// A value: a number, or a tag with a handle into the [`Heap`](crate::heap::Heap) of its run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

/// The kind of a value. [`Value::index`] is the index of a handle into the slab of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// A double.
    Number,
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true`, `false`
    Boolean,
    /// A string.
    String,
    /// A plain object or an error.
    Object,
    /// An array.
    Array,
    /// A function of a script or of the prelude.
    Function,
    /// A built-in function, constructor or namespace: a number in the registry.
    Native,
    /// A built-in function with captured values, such as the resolving functions of a promise.
    NativeClosure,
    /// A `Map`.
    Map,
    /// A `Set`.
    Set,
    /// A promise.
    Promise,
    /// An iterator of a built-in collection.
    Iterator,
    /// A built-in object with internal slots, such as a date.
    InternalSlots,
    /// An `ArrayBuffer`.
    ArrayBuffer,
    /// A `Uint8Array`.
    Uint8Array,
    /// A BigInt.
    BigInt,
    /// The namespace of an app's tools: an atom.
    App,
    /// A tool as a function: a string handle of its full name.
    Tool,
    /// A function that an embedder has added: a number in the linker of the script.
    HostFunction,
    /// Unread JSON text of the host: a string handle. Only properties of objects hold it, and reading one parses it
    /// first; never seen by a script.
    Unread,
    /// A cell of a captured variable; never seen by a script.
    Cell,
    /// A hole of an array, or an uninitialized binding; never seen by a script.
    Empty,
}

const TAG: u64 = 0xFFF9 << 48;

#[inline(always)]
const fn special(payload: u64) -> u64 {
    TAG | payload
}

#[inline(always)]
const fn tag_of(kind: Kind) -> u64 {
    match kind {
        Kind::String => 0xFFFA << 48,
        Kind::Object => 0xFFFB << 48,
        Kind::Array => 0xFFFC << 48,
        Kind::Function => 0xFFFD << 48,
        Kind::Cell => 0xFFFE << 48,
        _ => 0xFFFF << 48 | (kind as u64) << 32,
    }
}

/// The kinds of the last tag, by the number in bits 32 to 47.
const OTHERS: &[Kind] = &[
    Kind::Native,
    Kind::NativeClosure,
    Kind::Map,
    Kind::Set,
    Kind::Promise,
    Kind::Iterator,
    Kind::InternalSlots,
    Kind::ArrayBuffer,
    Kind::Uint8Array,
    Kind::BigInt,
    Kind::App,
    Kind::Tool,
    Kind::HostFunction,
    Kind::Unread,
    Kind::Cell,
];

impl Value {
    /// `undefined`
    pub const UNDEFINED: Self = Self(special(1));
    /// `null`
    pub const NULL: Self = Self(special(2));
    /// `false`
    pub const FALSE: Self = Self(special(4));
    /// `true`
    pub const TRUE: Self = Self(special(5));
    /// A hole of an array.
    pub const HOLE: Self = Self(special(8));
    /// A binding before its declaration has run.
    pub const UNINITIALIZED: Self = Self(special(9));
    /// The number 0.
    pub const ZERO: Self = Self(0);
    /// The one NaN.
    pub const NAN: Self = Self(0x7FF8 << 48);

    /// A number. NaNs from outside arithmetic go through [`Value::foreign_number`].
    #[inline(always)]
    pub const fn number(number: f64) -> Self {
        debug_assert!(number.to_bits() < TAG, "a NaN that arithmetic does not make");
        Self(number.to_bits())
    }

    /// A number from data, whose NaN may have any payload.
    pub fn foreign_number(number: f64) -> Self {
        if number.is_nan() { Self::NAN } else { Self(number.to_bits()) }
    }

    /// `true` or `false`
    #[inline(always)]
    pub fn bool(value: bool) -> Self {
        Self(Self::FALSE.0 | u64::from(value))
    }

    /// A handle.
    #[inline(always)]
    pub fn handle(kind: Kind, index: u32) -> Self {
        Self(tag_of(kind) | u64::from(index))
    }

    /// Whether it is a number.
    #[inline(always)]
    pub fn is_number(self) -> bool {
        self.0 < TAG
    }

    /// The number, where it is one; else a NaN with the bits of the value.
    #[inline(always)]
    pub fn as_number(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Whether it is of that kind, which must be one that has handles.
    #[inline(always)]
    pub fn is(self, kind: Kind) -> bool {
        self.0 >> 32 == tag_of(kind) >> 32
    }

    /// The index of a handle.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as u32 as usize
    }

    /// The payload of a handle.
    #[inline(always)]
    pub fn payload(self) -> u32 {
        self.0 as u32
    }

    /// All bits: the identity of all values except numbers, strings and BigInts.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// `true` or `false`
    #[inline(always)]
    pub fn is_bool(self) -> bool {
        self.0 | 1 == Self::TRUE.0
    }

    /// `undefined` or `null`
    #[inline(always)]
    pub fn is_nullish(self) -> bool {
        self == Self::UNDEFINED || self == Self::NULL
    }

    /// `undefined`
    #[inline(always)]
    pub fn is_undefined(self) -> bool {
        self == Self::UNDEFINED
    }

    /// Whether it is a string.
    #[inline(always)]
    pub fn is_string(self) -> bool {
        self.is(Kind::String)
    }

    /// Whether `typeof` says `function`.
    pub fn is_callable(self) -> bool {
        matches!(self.kind(), Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction)
    }

    /// Whether it is an object in the sense of the specification: anything but a primitive.
    #[inline]
    pub fn is_object(self) -> bool {
        match self.0 >> 48 {
            0xFFFB..=0xFFFD => true,
            0xFFFF => !self.is(Kind::BigInt),
            _ => false,
        }
    }

    /// What it is.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.0 >> 48 {
            0xFFF9 => match self {
                Self::UNDEFINED => Kind::Undefined,
                Self::NULL => Kind::Null,
                Self::FALSE | Self::TRUE => Kind::Boolean,
                _ => Kind::Empty,
            },
            0xFFFA => Kind::String,
            0xFFFB => Kind::Object,
            0xFFFC => Kind::Array,
            0xFFFD => Kind::Function,
            0xFFFE => Kind::Cell,
            0xFFFF => {
                let number = (self.0 >> 32) as u16;
                OTHERS[usize::from(number.saturating_sub(Kind::Native as u16)).min(OTHERS.len() - 1)]
            }
            _ => Kind::Number,
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Number => write!(f, "{}", self.as_number()),
            Kind::Boolean => write!(f, "{}", *self == Self::TRUE),
            kind @ (Kind::Undefined | Kind::Null | Kind::Empty) => write!(f, "{kind:?}"),
            kind => write!(f, "{kind:?}#{}", self.payload()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_again() {
        for kind in OTHERS.iter().copied().chain([Kind::String, Kind::Object, Kind::Array, Kind::Function]) {
            let value = Value::handle(kind, 7);
            assert_eq!((value.kind(), value.payload()), (kind, 7));
            assert!(value.is(kind) && !value.is_number());
        }
        for (value, kind) in [
            (Value::UNDEFINED, Kind::Undefined),
            (Value::NULL, Kind::Null),
            (Value::TRUE, Kind::Boolean),
            (Value::HOLE, Kind::Empty),
            (Value::number(-0.0), Kind::Number),
            (Value::NAN, Kind::Number),
            (Value::number(f64::NEG_INFINITY), Kind::Number),
        ] {
            assert_eq!(value.kind(), kind);
        }
    }
}

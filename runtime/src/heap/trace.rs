//! Where errors were made, and what their hints need.

use super::frame::FunctionRef;
use super::{block, hash_cost};
use crate::value::family::Family;

/// Where an error was made.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The innermost frame first: function and offset in its source.
    pub frames: Vec<(FunctionRef, u32)>,
    /// The nesting of implicit calls in which the error was made. The offset of an enclosing operation is known when
    /// the error reaches it; its frames are appended then.
    pub open: Option<u32>,
    /// The tool call whose failure this error is.
    pub call: Option<Box<Failed>>,
    /// The name that was not found, for hints.
    pub missing: Option<Missing>,
}

/// A name or thing of the script that does not exist.
#[derive(Clone, Debug)]
pub enum Missing {
    /// A name that nothing declares.
    Name(Box<str>),
    /// A method of values of a family.
    Method(Family, Box<str>),
    /// A function of a built-in object, by its number: `Math.sum`.
    Static(u32, Box<str>),
    /// A property that is no function.
    Property(Box<str>),
    /// A tool of an app, by its full name.
    Tool(Box<str>),
    /// An array, where a loop takes each item for one.
    Pair,
    /// An app, whose name a variable has.
    Hidden(Box<str>),
    /// Data, which a text only holds.
    Data(Notation),
}

impl Missing {
    /// The text that it holds.
    fn text(&self) -> &str {
        match self {
            Self::Name(text) | Self::Method(_, text) | Self::Static(_, text) => text,
            Self::Property(text) | Self::Tool(text) | Self::Hidden(text) => text,
            Self::Pair | Self::Data(_) => "",
        }
    }
}

impl Trace {
    /// Bytes it takes.
    pub fn cost(&self) -> usize {
        let call = self.call.as_ref().map_or(0, |call| 96 + block(call.tool.len()) + block(call.input.len()));
        let missing = self.missing.as_ref().map_or(0, |missing| block(missing.text().len()));
        let frames = block(self.frames.capacity() * size_of::<(FunctionRef, u32)>());
        hash_cost::<(u32, Box<Self>)>() + block(size_of::<Self>()) + frames + call + missing
    }
}

/// A failed tool call, for the outcome of the run.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The name of the tool.
    pub tool: String,
    /// The input, as JSON.
    pub input: Box<str>,
}

/// The notation of data in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `{"a": null}`.
    Json,
    /// `"{\"a\": null}"`: JSON in a text of JSON.
    EscapedJson,
    /// `{'a': None}`.
    Python,
}

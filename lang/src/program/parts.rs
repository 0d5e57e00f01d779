//! The direct parts of an expression, in the order of their evaluation.

use super::{Callee, Element, Expr, ExprKind, Property};

impl Expr<'_> {
    /// Calls `visit` for each direct part, without going into functions.
    pub fn parts<'e>(&'e self, visit: &mut dyn FnMut(&'e Self)) {
        self.kind.parts(visit);
    }
}

impl<'p> ExprKind<'p> {
    /// Calls `visit` for each direct part, without going into functions.
    // Little of it is left where the kind is known. Without optimisation the callers, which recur, would have larger frames.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn parts<'e>(&'e self, mut visit: impl FnMut(&'e Expr<'p>)) {
        match self {
            Self::Undefined
            | Self::Null
            | Self::Bool(_)
            | Self::Number(_)
            | Self::String(_)
            | Self::BigInt(_)
            | Self::Regex(..)
            | Self::TemplateObject(_)
            | Self::Function(_)
            | Self::Read(_)
            | Self::Update { .. }
            | Self::Temp(_)
            | Self::Global(_)
            | Self::TypeofGlobal(_)
            | Self::Uninitialized(_)
            | Self::IteratorNext(_)
            | Self::IteratorRest(_)
            | Self::IteratorClose(_)
            | Self::GeneratorStart => {}
            Self::Sequence(parts) | Self::ObjectRest(_, parts) => {
                parts.iter().for_each(visit);
            }
            Self::Template(_, rest) => rest.iter().for_each(|(hole, _)| visit(hole)),
            Self::Array(elements) => elements.iter().for_each(|element| match element {
                Element::Hole => {}
                Element::Item(value) | Element::Spread(value) => visit(value),
            }),
            Self::Object(_, properties) => properties.iter().for_each(|property| match property {
                Property::Named(_, value) | Property::Spread(value) => visit(value),
                Property::Computed(key, value) => {
                    visit(key);
                    visit(value);
                }
            }),
            Self::Write(_, value)
            | Self::WriteConst(_, value)
            | Self::SetTemp(_, value)
            | Self::WriteGlobal(_, value)
            | Self::Member(value, _)
            | Self::DeleteMember(value, _)
            | Self::Unary(_, value)
            | Self::Await(value)
            | Self::Yield(value)
            | Self::YieldStar(value)
            | Self::RequireObject { value, .. }
            | Self::Iterator(value, _) => visit(value),
            Self::Index(a, b)
            | Self::SetMember(a, _, b)
            | Self::DeleteIndex(a, b)
            | Self::Binary(_, a, b)
            | Self::Logical(_, a, b) => {
                visit(a);
                visit(b);
            }
            Self::SetIndex(a, b, c) | Self::Conditional(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
            Self::Chain(chain) => {
                visit(&chain.first);
                chain.rest.iter().for_each(|(_, operand)| visit(operand));
            }
            Self::Call(call) => {
                match &call.callee {
                    Callee::Value(value) | Callee::Member(value, _) => visit(value),
                    Callee::Index(a, b) | Callee::With { function: a, this: b } => {
                        visit(a);
                        visit(b);
                    }
                }
                call.arguments.iter().for_each(|argument| visit(&argument.value));
            }
            Self::New(new) => {
                new.arguments.iter().for_each(|argument| visit(&argument.value));
            }
        }
    }
}

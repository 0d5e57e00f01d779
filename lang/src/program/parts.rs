//! The direct parts of an expression, in the order of their evaluation.

use super::{Callee, Element, Expr, ExprKind, Property};

impl Expr<'_> {
    /// Calls `visit` for each direct part, without going into functions.
    pub fn parts<'e>(&'e self, visit: &mut dyn FnMut(&'e Self)) {
        match &self.kind {
            ExprKind::Undefined
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::BigInt(_)
            | ExprKind::Regex(..)
            | ExprKind::TemplateObject(_)
            | ExprKind::Function(_)
            | ExprKind::Read(_)
            | ExprKind::Update { .. }
            | ExprKind::Temp(_)
            | ExprKind::Global(_)
            | ExprKind::TypeofGlobal(_)
            | ExprKind::Uninitialized(_)
            | ExprKind::IteratorNext(_)
            | ExprKind::IteratorRest(_)
            | ExprKind::IteratorClose(_)
            | ExprKind::GeneratorStart => {}
            ExprKind::Sequence(parts) | ExprKind::ObjectRest(_, parts) => {
                parts.iter().for_each(visit);
            }
            ExprKind::Template(_, rest) => rest.iter().for_each(|(hole, _)| visit(hole)),
            ExprKind::Array(elements) => elements.iter().for_each(|element| match element {
                Element::Hole => {}
                Element::Item(value) | Element::Spread(value) => visit(value),
            }),
            ExprKind::Object(_, properties) => properties.iter().for_each(|property| match property {
                Property::Named(_, value) | Property::Spread(value) => visit(value),
                Property::Computed(key, value) => {
                    visit(key);
                    visit(value);
                }
            }),
            ExprKind::Write(_, value)
            | ExprKind::WriteConst(_, value)
            | ExprKind::SetTemp(_, value)
            | ExprKind::WriteGlobal(_, value)
            | ExprKind::Member(value, _)
            | ExprKind::DeleteMember(value, _)
            | ExprKind::Unary(_, value)
            | ExprKind::Await(value)
            | ExprKind::Yield(value)
            | ExprKind::YieldStar(value)
            | ExprKind::RequireObject { value, .. }
            | ExprKind::Iterator(value, _) => visit(value),
            ExprKind::Index(a, b)
            | ExprKind::SetMember(a, _, b)
            | ExprKind::DeleteIndex(a, b)
            | ExprKind::Binary(_, a, b)
            | ExprKind::Logical(_, a, b) => {
                visit(a);
                visit(b);
            }
            ExprKind::SetIndex(a, b, c) | ExprKind::Conditional(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
            ExprKind::Chain(chain) => {
                visit(&chain.first);
                chain.rest.iter().for_each(|(_, operand)| visit(operand));
            }
            ExprKind::Call(call) => {
                match &call.callee {
                    Callee::Value(value) | Callee::Member(value, _) => visit(value),
                    Callee::Index(a, b) | Callee::With { function: a, this: b } => {
                        visit(a);
                        visit(b);
                    }
                }
                call.arguments.iter().for_each(|argument| visit(&argument.value));
            }
            ExprKind::New(new) => {
                new.arguments.iter().for_each(|argument| visit(&argument.value));
            }
        }
    }
}

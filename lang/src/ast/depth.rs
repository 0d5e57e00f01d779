//! The height of each part of the tree.

use super::*;

/// Parts of the tree whose height is known.
pub trait Depth {
    /// Returns the height of the tree, without this part itself where it is no [`Node`].
    fn depth(&self) -> u16;
}

impl<T> Depth for Node<T> {
    fn depth(&self) -> u16 {
        self.depth
    }
}

impl<T: Depth + ?Sized> Depth for &T {
    fn depth(&self) -> u16 {
        (**self).depth()
    }
}

impl<T: Depth> Depth for Option<T> {
    fn depth(&self) -> u16 {
        self.as_ref().map_or(0, T::depth)
    }
}

impl<T: Depth> Depth for [T] {
    fn depth(&self) -> u16 {
        self.iter().map(T::depth).max().unwrap_or(0)
    }
}

impl<A: Depth, B: Depth> Depth for (A, B) {
    fn depth(&self) -> u16 {
        self.0.depth().max(self.1.depth())
    }
}

impl Depth for Binary {
    fn depth(&self) -> u16 {
        0
    }
}

/// The greatest depth of some parts.
macro_rules! deepest {
    ($($part:expr),+) => { 0_u16$(.max($part.depth()))+ };
}

impl Depth for StmtKind<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Break(_) | Self::Continue(_) | Self::Empty => 0,
            Self::Block(body) => body.depth(),
            Self::Declare(_, declarators) => declarators.depth(),
            Self::Expr(value) | Self::Throw(value) => value.depth(),
            Self::DoWhile(body, test) => deepest!(body, test),
            Self::While(test, body) => deepest!(test, body),
            Self::For(init, test, update, body) => deepest!(init, test, update, body),
            Self::ForIn(head, object, body) => deepest!(head, object, body),
            Self::ForOf(_, head, items, body) => deepest!(head, items, body),
            Self::Function(function) => function.depth(),
            Self::If(test, yes, no) => deepest!(test, yes, no),
            Self::Labeled(_, body) => body.depth(),
            Self::Return(value) => value.depth(),
            Self::Switch(subject, cases) => deepest!(subject, cases),
            Self::Try(body, catch, finally) => deepest!(body, catch, finally),
        }
    }
}

impl Depth for ExprKind<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::BigInt(_) | Self::Bool(_) | Self::Name(_) | Self::Null | Self::Number(_) => 0,
            Self::Regex(..) | Self::String(_) => 0,
            Self::Array(items) => items.depth(),
            Self::Assign(_, target, value) => deepest!(target, value),
            Self::Await(value) | Self::Paren(value) | Self::Spread(value) | Self::Unary(_, value) => value.depth(),
            Self::Binary(_, left, right) | Self::Index(left, right, _) => deepest!(left, right),
            Self::Chain(first, rest) => deepest!(first, rest),
            Self::Call(callee, arguments, _) | Self::New(callee, arguments) => deepest!(callee, arguments),
            Self::Conditional(test, yes, no) => deepest!(test, yes, no),
            Self::Function(function) => function.depth(),
            Self::Logical(_, operands) | Self::Sequence(operands) | Self::Template(_, operands) => operands.depth(),
            Self::Member(object, _, _) => object.depth(),
            Self::Object(properties) => properties.depth(),
            Self::Tagged(tag, _, holes) => deepest!(tag, holes),
            Self::Update { target, .. } => target.depth(),
            Self::Yield(value) => value.depth(),
            Self::YieldStar(value) => value.depth(),
        }
    }
}

impl Depth for PatternKind<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Array(items) => items.depth(),
            Self::Default(target, value) => deepest!(target, value),
            Self::Member(member) => member.depth(),
            Self::Name(_) => 0,
            Self::Object(properties, rest) => deepest!(properties, rest),
            Self::Rest(target) => target.depth(),
        }
    }
}

impl Depth for Property<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Method(key, function) => deepest!(key, function),
            Self::Shorthand(_, default) => default.depth(),
            Self::Spread(value) => value.depth(),
            Self::Value(key, value) => deepest!(key, value),
        }
    }
}

impl Depth for Key<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Computed(key) => key.depth(),
            Self::Text(..) => 0,
        }
    }
}

impl Depth for Body<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Block(body) => body.depth(),
            Self::Expr(value) => value.depth(),
        }
    }
}

impl Depth for ForHead<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Declare(_, target) | Self::Assign(target) => target.depth(),
        }
    }
}

impl Depth for Function<'_> {
    fn depth(&self) -> u16 {
        deepest!(self.params, self.body)
    }
}

impl Depth for Declarator<'_> {
    fn depth(&self) -> u16 {
        deepest!(self.target, self.init)
    }
}

impl Depth for Case<'_> {
    fn depth(&self) -> u16 {
        deepest!(self.test, self.body)
    }
}

impl Depth for Catch<'_> {
    fn depth(&self) -> u16 {
        deepest!(self.binding, self.body)
    }
}

//! Operators: from the flat lists of the grammar to trees.

use crate::ast::{AssignOp, Binary, Expr, ExprKind, Logical, Node, Unary};
use crate::targets::update_target;
use crate::{Diagnostic, Span};
use std::iter::Peekable;
use std::vec::IntoIter;

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Infix {
    Binary(Binary),
    Logical(Logical),
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prefix {
    Await,
    Unary(Unary),
    /// `++` or `--`
    Update(i8),
}

/// Levels of precedence; a greater one binds tighter.
pub(crate) mod level {
    /// `||` and `??`, which do not mix
    pub(crate) const OR: u8 = 1;
    /// `&&`
    pub(crate) const AND: u8 = 2;
    /// `**`
    pub(crate) const POWER: u8 = 11;
}

impl Infix {
    /// How tight it binds.
    pub(crate) fn level(self) -> u8 {
        match self {
            Self::Logical(Logical::Or | Logical::Coalesce) => level::OR,
            Self::Logical(Logical::And) => level::AND,
            Self::Binary(operator) => match operator {
                Binary::BitOr => 3,
                Binary::BitXor => 4,
                Binary::BitAnd => 5,
                Binary::Equal | Binary::NotEqual | Binary::StrictEqual | Binary::StrictNotEqual => 6,
                Binary::Less
                | Binary::LessEqual
                | Binary::Greater
                | Binary::GreaterEqual
                | Binary::In
                | Binary::Instanceof => 7,
                Binary::ShiftLeft | Binary::ShiftRight | Binary::ShiftRightUnsigned => 8,
                Binary::Add | Binary::Subtract => 9,
                Binary::Multiply | Binary::Divide | Binary::Remainder => 10,
                Binary::Power => level::POWER,
            },
        }
    }
}

type Rest<'s> = Peekable<IntoIter<(Infix, Expr<'s>)>>;
type Result<T> = std::result::Result<T, Diagnostic>;

/// The tree of `first operator operand operator operand …`.
pub(crate) fn infix<'s>(first: Expr<'s>, rest: Vec<(Infix, Expr<'s>)>) -> Result<Expr<'s>> {
    climb(first, &mut rest.into_iter().peekable(), level::OR)
}

/// `left` and all operators behind it that bind at least as tight as `least`. Recursion is bounded by
/// the number of levels.
fn climb<'s>(mut left: Expr<'s>, rest: &mut Rest<'s>, least: u8) -> Result<Expr<'s>> {
    while let Some(level) = rest.peek().map(|(operator, _)| operator.level()).filter(|&level| level >= least) {
        let mut run = Vec::new();
        while let Some((operator, operand)) = rest.next_if(|(operator, _)| operator.level() == level) {
            run.push((operator, climb(operand, rest, level + 1)?));
        }
        left = combine(left, level, run)?;
    }
    Ok(left)
}

/// A run of operators of one level.
fn combine<'s>(first: Expr<'s>, level: u8, run: Vec<(Infix, Expr<'s>)>) -> Result<Expr<'s>> {
    let start = first.span;
    let span = run.last().map_or(start, |(_, last)| start.to(last.span));
    if level == level::POWER {
        return power(first, run);
    }
    let Some(&(operator, _)) = run.first() else { return Ok(first) };
    if let Infix::Logical(operator) = operator {
        return logical(operator, first, run, span);
    }
    let mut chain: Vec<_> = run
        .into_iter()
        .filter_map(|(operator, operand)| match operator {
            Infix::Binary(operator) => Some((operator, operand)),
            Infix::Logical(_) => None,
        })
        .collect();
    match (chain.pop(), chain.is_empty()) {
        (Some((operator, right)), true) => node(ExprKind::Binary(operator, first, right), span),
        (last, _) => {
            chain.extend(last);
            node(ExprKind::Chain(first, chain), span)
        }
    }
}

/// `??` does not mix with `||` and `&&` unless parenthesised.
fn logical<'s>(operator: Logical, first: Expr<'s>, run: Vec<(Infix, Expr<'s>)>, span: Span) -> Result<Expr<'s>> {
    let mut operands = Vec::with_capacity(run.len() + 1);
    operands.push(first);
    for (other, operand) in run {
        if other != Infix::Logical(operator) {
            return Err(mixed(span));
        }
        operands.push(operand);
    }
    let mixes = |operand: &Expr<'_>| matches!(operand.kind, ExprKind::Logical(..));
    if operator == Logical::Coalesce && operands.iter().any(mixes) {
        return Err(mixed(span));
    }
    node(ExprKind::Logical(operator, operands), span)
}

fn mixed(span: Span) -> Diagnostic {
    Diagnostic::syntax("`??` cannot be mixed with `||` or `&&`", span).with_hint("put one of them in parentheses")
}

/// `a ** b ** c` is `a ** (b ** c)`.
fn power<'s>(first: Expr<'s>, run: Vec<(Infix, Expr<'s>)>) -> Result<Expr<'s>> {
    let mut operands = Vec::with_capacity(run.len() + 1);
    operands.push(first);
    operands.extend(run.into_iter().map(|(_, operand)| operand));
    let Some(mut right) = operands.pop() else {
        return Err(Diagnostic::syntax("expected an operand", Span::default()));
    };
    while let Some(left) = operands.pop() {
        if matches!(left.kind, ExprKind::Unary(..) | ExprKind::Await(_)) {
            return Err(Diagnostic::syntax("a prefix operator cannot stand before the base of `**`", left.span)
                .with_hint("put the base in parentheses: `(-x) ** 2` or `-(x ** 2)`"));
        }
        let span = left.span.to(right.span);
        right = node(ExprKind::Binary(Binary::Power, left, right), span)?;
    }
    Ok(right)
}

/// The tree of `operator operator … operand`.
pub(crate) fn prefix<'s>(operators: Vec<(u32, Prefix)>, mut operand: Expr<'s>) -> Result<Expr<'s>> {
    for (start, operator) in operators.into_iter().rev() {
        let span = Span::new(start, operand.span.end);
        let kind = match operator {
            Prefix::Await => ExprKind::Await(operand),
            Prefix::Unary(operator) => ExprKind::Unary(operator, operand),
            Prefix::Update(delta) => ExprKind::Update { delta, prefix: true, target: update_target(operand)? },
        };
        operand = node(kind, span)?;
    }
    Ok(operand)
}

fn node(kind: ExprKind<'_>, span: Span) -> Result<Expr<'_>> {
    Ok(Box::new(Node::new(kind, span)?))
}

/// What `+=` and the like stand for.
pub(crate) fn assign_operator(text: &str) -> AssignOp {
    AssignOp::Binary(match text {
        "&&=" => return AssignOp::Logical(Logical::And),
        "||=" => return AssignOp::Logical(Logical::Or),
        "??=" => return AssignOp::Logical(Logical::Coalesce),
        "+=" => Binary::Add,
        "-=" => Binary::Subtract,
        "*=" => Binary::Multiply,
        "/=" => Binary::Divide,
        "%=" => Binary::Remainder,
        "**=" => Binary::Power,
        "&=" => Binary::BitAnd,
        "|=" => Binary::BitOr,
        "^=" => Binary::BitXor,
        "<<=" => Binary::ShiftLeft,
        ">>=" => Binary::ShiftRight,
        ">>>=" => Binary::ShiftRightUnsigned,
        _ => return AssignOp::Plain,
    })
}

//! Operators: from the flat lists of the grammar to trees.

use crate::ast::{Arena, AssignOp, Binary, Expr, ExprKind, List, Logical, Unary};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use crate::targets::{Covers, node, update_target};

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
    /// Returns the level of precedence.
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

/// Operators with the operands behind them.
pub(crate) type Rest<'s> = List<'s, (Infix, Expr<'s>)>;

/// `left operator right`
pub(crate) fn single<'s>(
    arena: &'s Arena,
    covers: &Covers<'_>,
    left: Expr<'s>,
    operator: Infix,
    right: Expr<'s>,
) -> Result<Expr<'s>> {
    match operator {
        Infix::Binary(operator) if operator != Binary::Power => {
            Ok(node(arena, covers, ExprKind::Binary(operator, left, right), left.span.to(right.span)))
        }
        _ => infix(arena, covers, left, arena.one((operator, right))),
    }
}

/// Returns the tree of `first operator operand operator operand …`.
pub(crate) fn infix<'s>(arena: &'s Arena, covers: &Covers<'_>, first: Expr<'s>, rest: Rest<'s>) -> Result<Expr<'s>> {
    Climber { arena, covers, rest: arena.slice(rest) }.climb(first, level::OR)
}

/// Climbs the levels of precedence.
struct Climber<'s, 'c> {
    arena: &'s Arena,
    covers: &'c Covers<'c>,
    /// Operators and operands that are still to be read.
    rest: &'s [(Infix, Expr<'s>)],
}

impl<'s> Climber<'s, '_> {
    /// `left` and all operators behind it that bind at least as tight as `least`. Recursion is bounded
    /// by the number of levels.
    fn climb(&mut self, mut left: Expr<'s>, least: u8) -> Result<Expr<'s>> {
        while let Some(level) = self.level().filter(|&level| level >= least) {
            let mut run = List::new();
            while let Some((&(operator, operand), rest)) = self.rest.split_first()
                && operator.level() == level
            {
                self.rest = rest;
                run = self.arena.push(run, (operator, self.climb(operand, level + 1)?));
            }
            left = self.combine(left, level, self.arena.slice(run))?;
        }
        Ok(left)
    }

    /// Returns the level of the operator that comes next.
    fn level(&self) -> Option<u8> {
        self.rest.first().map(|(operator, _)| operator.level())
    }

    /// Folds a run of operators of one level.
    fn combine(&self, first: Expr<'s>, level: u8, run: &'s [(Infix, Expr<'s>)]) -> Result<Expr<'s>> {
        let [(operator, second), more @ ..] = run else { return Ok(first) };
        let span = first.span.to(more.last().map_or(second.span, |(_, last)| last.span));
        let kind = match operator {
            _ if level == level::POWER => return self.power(first, run),
            Infix::Logical(operator) => ExprKind::Logical(*operator, self.logical(*operator, first, run, span)?),
            Infix::Binary(operator) if more.is_empty() => ExprKind::Binary(*operator, first, second),
            Infix::Binary(_) => {
                let mut chain = List::new();
                for &(operator, operand) in run {
                    if let Infix::Binary(operator) = operator {
                        chain = self.arena.push(chain, (operator, operand));
                    }
                }
                ExprKind::Chain(first, self.arena.slice(chain))
            }
        };
        Ok(node(self.arena, self.covers, kind, span))
    }

    /// Returns the operands; `??` does not mix with `||` and `&&` unless parenthesised.
    fn logical(
        &self,
        operator: Logical,
        first: Expr<'s>,
        run: &[(Infix, Expr<'s>)],
        span: Span,
    ) -> Result<&'s [Expr<'s>]> {
        let mut operands = self.arena.one(first);
        for &(other, operand) in run {
            if other != Infix::Logical(operator) {
                return Err(mixed(span));
            }
            operands = self.arena.push(operands, operand);
        }
        let operands = self.arena.slice(operands);
        let mixes = |operand: &Expr<'_>| matches!(operand.kind, ExprKind::Logical(..));
        if operator == Logical::Coalesce && operands.iter().any(mixes) {
            return Err(mixed(span));
        }
        Ok(operands)
    }

    /// `a ** b ** c` is `a ** (b ** c)`.
    fn power(&self, first: Expr<'s>, run: &[(Infix, Expr<'s>)]) -> Result<Expr<'s>> {
        let Some((&(_, mut right), before)) = run.split_last() else { return Ok(first) };
        let lefts = before.iter().rev().map(|&(_, operand)| operand);
        for left in lefts.chain([first]) {
            if matches!(left.kind, ExprKind::Unary(..) | ExprKind::Await(_)) {
                let message = "a prefix operator cannot stand before the base of `**`";
                let hint = "put the base in parentheses: `(-x) ** 2` or `-(x ** 2)`";
                return Err(Diagnostic::syntax(message, left.span).with_hint(hint).into());
            }
            let span = left.span.to(right.span);
            right = node(self.arena, self.covers, ExprKind::Binary(Binary::Power, left, right), span);
        }
        Ok(right)
    }
}

fn mixed(span: Span) -> Box<Diagnostic> {
    let message = "`??` cannot be mixed with `||` or `&&`";
    Diagnostic::syntax(message, span).with_hint("put one of them in parentheses").into()
}

/// Returns the tree of `operator operator … operand`.
pub(crate) fn prefix<'s>(
    arena: &'s Arena,
    covers: &Covers<'_>,
    operators: List<'s, (u32, Prefix)>,
    mut operand: Expr<'s>,
) -> Result<Expr<'s>> {
    for &(start, operator) in arena.slice(operators).iter().rev() {
        let span = Span::new(start, operand.span.end);
        let kind = match operator {
            Prefix::Await => ExprKind::Await(operand),
            Prefix::Unary(operator) => ExprKind::Unary(operator, operand),
            Prefix::Update(delta) => {
                ExprKind::Update { delta, prefix: true, target: update_target(arena, covers, operand)? }
            }
        };
        operand = node(arena, covers, kind, span);
    }
    Ok(operand)
}

/// Returns the operator that `+=` and the like stand for.
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

//! What is called, in the words of V8: the `x.y` of `x.y is not a function`.

use crate::ast::{Expr, ExprKind, Pattern, PatternKind, Property, StmtKind};
use crate::cook::number_text;
use crate::print::{binary, logical, unary};
use crate::targets::in_optional_chain;
use crate::{Language, Span, parse};

const UNKNOWN: &str = "(intermediate value)";

/// The callee at `span` as V8 names it in messages.
#[must_use]
pub fn callee_text(source: &str, span: Span) -> String {
    with_expression(source, span, printed).unwrap_or_else(|| UNKNOWN.into())
}

/// The value at `span` as V8 names it in messages: other than a callee, an optional chain has no name.
#[must_use]
pub fn value_text(source: &str, span: Span) -> String {
    with_expression(source, span, named).unwrap_or_else(|| UNKNOWN.into())
}

/// Who wants the items of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// `for (… of value)`
    Loop,
    /// `[...value]`
    Spread,
    /// `const […] = value`
    Pattern,
}

/// The value at `span` as V8 names it where it is not iterable; nothing where V8 describes the value
/// instead, because it does not find the expression.
#[must_use]
pub fn iterable_text(source: &str, span: Span, walk: Walk) -> Option<String> {
    with_expression(source, span, |value| {
        let mut inner = value;
        while let ExprKind::Paren(next) = &inner.kind {
            inner = next;
        }
        let is_found = match walk {
            Walk::Loop => !in_optional_chain(inner) && !matches!(inner.kind, ExprKind::Conditional(..)),
            Walk::Spread => true,
            Walk::Pattern => is_found_by_pattern(value),
        };
        is_found.then(|| match &inner.kind {
            ExprKind::Call(callee, ..) if !in_optional_chain(inner) => {
                format!("{} is not a function or its return value", printed(callee))
            }
            _ => named(inner),
        })
    })
    .flatten()
}

fn is_found_by_pattern(value: &Expr<'_>) -> bool {
    match &value.kind {
        ExprKind::Call(callee, _, false) => matches!(callee.kind, ExprKind::Name(_)),
        ExprKind::Name(_)
        | ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::BigInt(_)
        | ExprKind::Object(_)
        | ExprKind::Function(_)
        | ExprKind::New(..)
        | ExprKind::Await(_)
        | ExprKind::Unary(..) => true,
        _ => false,
    }
}

fn with_expression<T>(source: &str, span: Span, then: impl FnOnce(&Expr<'_>) -> T) -> Option<T> {
    let text = format!("({})", span.text(source));
    let script =
        parse::parse(&text, Language::JavaScript).or_else(|_| parse::parse(&text, Language::TypeScript)).ok()?;
    let [statement] = &*script.body else { return None };
    let StmtKind::Expr(wrapped) = &statement.kind else { return None };
    let ExprKind::Paren(value) = &wrapped.kind else { return None };
    Some(then(value))
}

fn named(value: &Expr<'_>) -> String {
    if in_optional_chain(value) { UNKNOWN.into() } else { printed(value) }
}

fn printed(expr: &Expr<'_>) -> String {
    let mut out = String::new();
    print(expr, &mut out);
    if out.is_empty() { UNKNOWN.into() } else { out }
}

fn print(expr: &Expr<'_>, out: &mut String) {
    match &expr.kind {
        ExprKind::Name(name) => out.push_str(name),
        ExprKind::Null => out.push_str("null"),
        ExprKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        ExprKind::Number(value) => out.push_str(&number_text(*value)),
        ExprKind::String(value) => quote(value, out),
        ExprKind::Regex(pattern, flags) => out.push_str(&format!("/{pattern}/{flags}")),
        ExprKind::Template(texts, holes) => match (&**texts, holes.is_empty()) {
            ([text], true) => quote(text, out),
            _ => holes.iter().for_each(|hole| print(hole, out)),
        },
        ExprKind::BigInt(_) | ExprKind::Function(_) | ExprKind::New(..) | ExprKind::Await(_) => out.push_str(UNKNOWN),
        ExprKind::Array(items) => array(items, out),
        ExprKind::Object(properties) => object(properties, out),
        ExprKind::Spread(value) => {
            out.push_str("(...");
            print(value, out);
            out.push(')');
        }
        ExprKind::Member(object, name, optional) => {
            print(object, out);
            out.push_str(if *optional { "?." } else { "." });
            out.push_str(&name.kind);
        }
        ExprKind::Index(object, index, optional) => {
            print(object, out);
            if let Some(name) = constant(index) {
                out.push_str(if *optional { "?." } else { "." });
                out.push_str(&String::from_utf8_lossy(name));
            } else {
                out.push_str(if *optional { "?.[" } else { "[" });
                print(index, out);
                out.push(']');
            }
        }
        ExprKind::Call(callee, _, _) | ExprKind::Tagged(callee, _, _) => {
            print(callee, out);
            out.push_str("(...)");
        }
        ExprKind::Paren(inner) if in_optional_chain(inner) => out.push_str(UNKNOWN),
        ExprKind::Paren(inner) => print(inner, out),
        ExprKind::Conditional(..) => (0..3).for_each(|_| out.push_str(UNKNOWN)),
        ExprKind::Assign(_, target, _) => pattern(target, out),
        ExprKind::Unary(operator, operand) => prefix(unary(*operator), operand, out),
        ExprKind::Update { delta, prefix, target } => {
            let sign = if *delta > 0 { "++" } else { "--" };
            let (before, after) = if *prefix { (sign, "") } else { ("", sign) };
            out.push('(');
            out.push_str(before);
            pattern(target, out);
            out.push_str(after);
            out.push(')');
        }
        ExprKind::Binary(operator, left, right) => infix(&[left, right], binary(*operator), out),
        ExprKind::Chain(first, rest) => {
            // V8 keeps a run of one operator together and nests all others.
            let switches = rest.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
            (0..=switches).for_each(|_| out.push('('));
            print(first, out);
            for (index, (operator, operand)) in rest.iter().enumerate() {
                if index > 0 && rest[index - 1].0 != *operator {
                    out.push(')');
                }
                out.push_str(&format!(" {} ", binary(*operator)));
                print(operand, out);
            }
            out.push(')');
        }
        ExprKind::Logical(operator, operands) => infix(&operands.iter().collect::<Vec<_>>(), logical(*operator), out),
        ExprKind::Sequence(operands) => infix(&operands.iter().collect::<Vec<_>>(), ",", out),
    }
}

fn infix(operands: &[&Expr<'_>], operator: &str, out: &mut String) {
    out.push('(');
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            out.push_str(&format!(" {operator} "));
        }
        print(operand, out);
    }
    out.push(')');
}

fn prefix(sign: &str, operand: &Expr<'_>, out: &mut String) {
    // V8 folds the sign into a number.
    if sign == "-" && matches!(operand.kind, ExprKind::Number(_)) {
        out.push('-');
        return print(operand, out);
    }
    out.push('(');
    out.push_str(sign);
    if sign.len() > 1 {
        out.push(' ');
    }
    print(operand, out);
    out.push(')');
}

fn array(items: &[Option<Expr<'_>>], out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if let Some(item) = item {
            print(item, out);
        }
    }
    out.push(']');
}

/// V8 does not look into the values.
fn object(properties: &[Property<'_>], out: &mut String) {
    out.push('{');
    properties.iter().for_each(|_| out.push_str(UNKNOWN));
    out.push('}');
}

fn pattern(target: &Pattern<'_>, out: &mut String) {
    match &target.kind {
        PatternKind::Name(name) => out.push_str(name),
        PatternKind::Member(member) => print(member, out),
        PatternKind::Array(_) | PatternKind::Object(..) | PatternKind::Default(..) | PatternKind::Rest(_) => {
            out.push_str(UNKNOWN);
        }
    }
}

/// The text of a constant key.
fn constant<'a>(index: &'a Expr<'_>) -> Option<&'a [u8]> {
    match &index.kind {
        ExprKind::String(name) => Some(name),
        ExprKind::Template(texts, _) => match &**texts {
            [name] => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn quote(value: &[u8], out: &mut String) {
    out.push('"');
    out.push_str(&String::from_utf8_lossy(value));
    out.push('"');
}

//! The text of an expression as V8 prints it in messages: the `x.y` of `x.y is not a function`.

use crate::ast::{Arena, Binary, Expr, ExprKind, Pattern, PatternKind, StmtKind, in_optional_chain};
use crate::cook::number_text;
use crate::options::Language;
use crate::parse;
use crate::span::Span;

const UNKNOWN: &str = "(intermediate value)";

/// Returns the callee at `span` as V8 names it in messages.
#[must_use]
pub fn callee_text(source: &str, span: Span) -> String {
    with_expression(source, span, printed).unwrap_or_else(|| UNKNOWN.into())
}

/// Returns the value at `span` as V8 names it in messages. Unlike a callee, an optional chain has no name.
#[must_use]
pub fn value_text(source: &str, span: Span) -> String {
    with_expression(source, span, named).unwrap_or_else(|| UNKNOWN.into())
}

/// Returns the callee at `span` as V8 names it where its result is iterated over at once.
#[must_use]
pub fn iterated_callee_text(source: &str, span: Span) -> String {
    with_expression(source, span, |callee| words(callee, true)).unwrap_or_else(|| UNKNOWN.into())
}

/// The construct that iterates over a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// `for (… of value)`
    Loop,
    /// `[...value]`
    Spread,
    /// `const […] = value`
    Pattern,
}

/// Returns the value at `span` as V8 names it where it is not iterable; nothing where V8 describes the value
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
            ExprKind::Call(callee, ..) | ExprKind::New(callee, _) if !in_optional_chain(inner) => {
                format!("{} is not a function or its return value", words(callee, true))
            }
            _ if in_optional_chain(inner) => UNKNOWN.into(),
            _ => words(inner, true),
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
        | ExprKind::Yield(_)
        | ExprKind::YieldStar(_)
        | ExprKind::Unary(..) => true,
        _ => false,
    }
}

fn with_expression<T>(source: &str, span: Span, then: impl FnOnce(&Expr<'_>) -> T) -> Option<T> {
    let text = format!("({})", span.text(source));
    let arena = Arena::new();
    let parse = |language| parse::parse(&arena, &text, language);
    let script = parse(Language::JavaScript).or_else(|_| parse(Language::TypeScript)).ok()?;
    let [statement] = script.body else { return None };
    let StmtKind::Expr(wrapped) = statement.kind else { return None };
    let ExprKind::Paren(value) = wrapped.kind else { return None };
    Some(then(&value))
}

fn named(value: &Expr<'_>) -> String {
    if in_optional_chain(value) { UNKNOWN.into() } else { printed(value) }
}

fn printed(expr: &Expr<'_>) -> String {
    words(expr, false)
}

/// The text printed so far.
struct Words {
    text: String,
    /// Whether the message is about a value that is not iterable: a call is then named by its callee.
    is_iterable: bool,
}

impl Words {
    fn push(&mut self, letter: char) {
        self.text.push(letter);
    }

    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

fn words(expr: &Expr<'_>, is_iterable: bool) -> String {
    let mut out = Words { text: String::new(), is_iterable };
    print(expr, &mut out);
    if out.text.is_empty() { UNKNOWN.into() } else { out.text }
}

/// Writes an operand. An optional chain is not printed.
fn part(expr: &Expr<'_>, out: &mut Words) {
    if in_optional_chain(expr) { out.push_str(UNKNOWN) } else { print(expr, out) }
}

fn print(expr: &Expr<'_>, out: &mut Words) {
    if let Some(number) = folded(expr) {
        return out.push_str(&number_text(number));
    }
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
        ExprKind::New(callee, _) if out.is_iterable => print(callee, out),
        ExprKind::BigInt(_) | ExprKind::Function(_) | ExprKind::New(..) | ExprKind::Await(_) => out.push_str(UNKNOWN),
        ExprKind::Yield(_) | ExprKind::YieldStar(_) => out.push_str(UNKNOWN),
        ExprKind::Array(items) => array(items, part, out),
        ExprKind::Object(properties) => object(properties.len(), out),
        ExprKind::Spread(value) => {
            out.push_str("(...");
            print(value, out);
            out.push(')');
        }
        ExprKind::Member(object, name, optional) => {
            print(object, out);
            out.push_str(if *optional { "?." } else { "." });
            out.push_str(name.text);
        }
        ExprKind::Index(object, index, optional) => {
            print(object, out);
            if let Some(name) = constant(index) {
                out.push_str(if *optional { "?." } else { "." });
                out.push_str(&lossy(name));
            } else {
                out.push_str(if *optional { "?.[" } else { "[" });
                part(index, out);
                out.push(']');
            }
        }
        ExprKind::Call(callee, _, _) | ExprKind::Tagged(callee, _, _) => {
            print(callee, out);
            if !out.is_iterable {
                out.push_str("(...)");
            }
        }
        ExprKind::Paren(inner) if in_optional_chain(inner) => out.push_str(UNKNOWN),
        ExprKind::Paren(inner) => print(inner, out),
        ExprKind::Conditional(..) => (0..3).for_each(|_| out.push_str(UNKNOWN)),
        ExprKind::Assign(_, target, _) => pattern(target, out),
        ExprKind::Unary(operator, operand) => prefix(operator.sign(), operand, out),
        ExprKind::Update { delta, prefix, target } => {
            let sign = if *delta > 0 { "++" } else { "--" };
            let (before, after) = if *prefix { (sign, "") } else { ("", sign) };
            out.push('(');
            out.push_str(before);
            pattern(target, out);
            out.push_str(after);
            out.push(')');
        }
        // V8 reads `a !== b` as `!(a === b)`.
        ExprKind::Binary(operator @ (Binary::NotEqual | Binary::StrictNotEqual), left, right) => {
            out.push_str("(!");
            infix(&[left, right], if *operator == Binary::NotEqual { "==" } else { "===" }, out);
            out.push(')');
        }
        ExprKind::Binary(operator, left, right) => {
            let mut operands = Vec::new();
            flatten(left, *operator, &mut operands);
            operands.push(right);
            infix(&operands, operator.sign(), out);
        }
        ExprKind::Chain(first, rest) => {
            // V8 folds leading constants, flattens a run of one operator and nests all others.
            let (number, count) = folded_chain(first, rest);
            let rest = &rest[count..];
            let switches = rest.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
            (0..=switches).for_each(|_| out.push('('));
            match number {
                Some(number) => out.push_str(&number_text(number)),
                None => match rest.first() {
                    Some((operator, _)) => run(first, *operator, out),
                    None => part(first, out),
                },
            }
            for (index, (operator, operand)) in rest.iter().enumerate() {
                if index > 0 && rest[index - 1].0 != *operator {
                    out.push(')');
                }
                out.push_str(&format!(" {} ", operator.sign()));
                part(operand, out);
            }
            out.push(')');
        }
        ExprKind::Logical(operator, operands) => infix(&operands.iter().collect::<Vec<_>>(), operator.sign(), out),
        ExprKind::Sequence(operands) => infix(&operands.iter().collect::<Vec<_>>(), ",", out),
    }
}

/// Adds the operands of a run of one operator, with or without parentheses around the first ones: V8 drops these.
fn flatten<'e, 's>(expr: &'e Expr<'s>, operator: Binary, out: &mut Vec<&'e Expr<'s>>) {
    match &expr.kind {
        ExprKind::Paren(inner) if folded(inner).is_none() => match &inner.kind {
            ExprKind::Binary(same, ..) if *same == operator && is_collapsed(operator) => flatten(inner, operator, out),
            ExprKind::Chain(_, rest) if rest.iter().all(|(same, _)| *same == operator) => flatten(inner, operator, out),
            _ => out.push(expr),
        },
        ExprKind::Binary(same, left, right)
            if *same == operator && is_collapsed(operator) && folded(expr).is_none() =>
        {
            flatten(left, operator, out);
            out.push(right);
        }
        ExprKind::Chain(first, rest) if rest.iter().all(|(same, _)| *same == operator) && folded(expr).is_none() => {
            let (number, count) = folded_chain(first, rest);
            if number.is_some() && count > 0 {
                return out.push(expr);
            }
            flatten(first, operator, out);
            out.extend(rest.iter().map(|(_, operand)| operand));
        }
        _ => out.push(expr),
    }
}

/// Whether V8 flattens a run of this operator: arithmetic except `**`.
fn is_collapsed(operator: Binary) -> bool {
    matches!(operator.sign(), "+" | "-" | "*" | "/" | "%" | "|" | "&" | "^" | "<<" | ">>" | ">>>")
}

/// Writes the first operand of a chain, without the parentheses around a run of the same operator.
fn run(first: &Expr<'_>, operator: Binary, out: &mut Words) {
    let mut operands = Vec::new();
    flatten(first, operator, &mut operands);
    for (index, operand) in operands.into_iter().enumerate() {
        if index > 0 {
            out.push_str(&format!(" {} ", operator.sign()));
        }
        part(operand, out);
    }
}

fn infix(operands: &[&Expr<'_>], operator: &str, out: &mut Words) {
    out.push('(');
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            out.push_str(&format!(" {operator} "));
        }
        part(operand, out);
    }
    out.push(')');
}

fn prefix(sign: &str, operand: &Expr<'_>, out: &mut Words) {
    if sign == "!"
        && let Some(truth) = constant_truth(operand)
    {
        return out.push_str(if truth { "false" } else { "true" });
    }
    out.push('(');
    out.push_str(sign);
    if sign.len() > 1 {
        out.push(' ');
    }
    part(operand, out);
    out.push(')');
}

fn array<T>(items: &[Option<T>], print_item: fn(&T, &mut Words), out: &mut Words) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match item {
            Some(item) => print_item(item, out),
            None => out.push_str(UNKNOWN),
        }
    }
    out.push(']');
}

/// V8 prints no values of properties.
fn object(properties: usize, out: &mut Words) {
    out.push('{');
    (0..properties).for_each(|_| out.push_str(UNKNOWN));
    out.push('}');
}

fn pattern(target: &Pattern<'_>, out: &mut Words) {
    match &target.kind {
        PatternKind::Name(name) => out.push_str(name),
        PatternKind::Member(member) => print(member, out),
        PatternKind::Array(items) => array(items, pattern, out),
        PatternKind::Default(target, _) => pattern(target, out),
        PatternKind::Rest(target) => {
            out.push_str("(...");
            pattern(target, out);
            out.push(')');
        }
        PatternKind::Object(properties, rest) => object(properties.len() + usize::from(rest.is_some()), out),
    }
}

/// Returns the text of a constant key.
fn constant<'a>(index: &'a Expr<'_>) -> Option<&'a [u8]> {
    match &index.kind {
        ExprKind::String(name) => Some(name),
        ExprKind::Template([name], _) => Some(name),
        _ => None,
    }
}

fn quote(value: &[u8], out: &mut Words) {
    out.push('"');
    out.push_str(&lossy(value));
    out.push('"');
}

/// Returns the text with each lone surrogate as one replacement character.
fn lossy(text: &[u8]) -> String {
    let mut out = String::new();
    for chunk in text.utf8_chunks() {
        out.push_str(chunk.valid());
        // A lone surrogate begins with this byte; its other two bytes are chunks of their own.
        if chunk.invalid().first() == Some(&0xED) {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
    out
}

/// Returns the number to which V8 folds a constant expression.
fn folded(expr: &Expr<'_>) -> Option<f64> {
    match &expr.kind {
        ExprKind::Number(number) => Some(*number),
        ExprKind::Paren(inner) => folded(inner),
        ExprKind::Unary(operator, operand) => match (operator.sign(), folded(operand)?) {
            ("-", number) => Some(-number),
            ("+", number) => Some(number),
            ("~", number) => Some(f64::from(!int32(number))),
            _ => None,
        },
        ExprKind::Binary(operator, left, right) => arithmetic(operator.sign(), folded(left)?, folded(right)?),
        ExprKind::Chain(first, rest) => {
            let (number, count) = folded_chain(first, rest);
            number.filter(|_| count == rest.len())
        }
        _ => None,
    }
}

/// Returns the number to which V8 folds the beginning of a chain, and how many operators are in it.
fn folded_chain(first: &Expr<'_>, rest: &[(Binary, Expr<'_>)]) -> (Option<f64>, usize) {
    let mut number = folded(first);
    for (count, (operator, operand)) in rest.iter().enumerate() {
        let next = number.zip(folded(operand)).and_then(|(left, right)| arithmetic(operator.sign(), left, right));
        if next.is_none() {
            return (number, count);
        }
        number = next;
    }
    (number, rest.len())
}

fn arithmetic(operator: &str, left: f64, right: f64) -> Option<f64> {
    let shift = int32(right) & 31;
    Some(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "%" => left % right,
        "**" => left.powf(right),
        "|" => f64::from(int32(left) | int32(right)),
        "&" => f64::from(int32(left) & int32(right)),
        "^" => f64::from(int32(left) ^ int32(right)),
        "<<" => f64::from(int32(left) << shift),
        ">>" => f64::from(int32(left) >> shift),
        ">>>" => f64::from(int32(left).cast_unsigned() >> shift),
        _ => return None,
    })
}

/// `ToInt32`
fn int32(number: f64) -> i32 {
    if !number.is_finite() {
        return 0;
    }
    let wrapped = number.trunc().rem_euclid(4_294_967_296.0);
    (wrapped as u32).cast_signed()
}

/// Whether a constant is truthy.
fn constant_truth(expr: &Expr<'_>) -> Option<bool> {
    if let Some(number) = folded(expr) {
        return Some(number != 0.0 && !number.is_nan());
    }
    match &expr.kind {
        ExprKind::Paren(inner) => constant_truth(inner),
        ExprKind::Bool(value) => Some(*value),
        ExprKind::Null => Some(false),
        ExprKind::String(text) => Some(!text.is_empty()),
        _ => None,
    }
}

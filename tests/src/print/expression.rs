//! Prints expressions.

use super::{Printer, text};
use agentscript_lang::ast::{AssignOp, Expr, ExprKind, Property};

impl Printer {
    pub(super) fn expr(&mut self, expr: &Expr<'_>) {
        match &expr.kind {
            ExprKind::Array(items) => {
                self.put("[");
                self.list(items, |printer, item| item.iter().for_each(|item| printer.expr(item)));
                self.put(if matches!(items.last(), Some(None)) { ",]" } else { "]" });
            }
            ExprKind::Assign(operator, target, value) => {
                self.pattern(target);
                self.put(&format!(" {} ", assign(*operator)));
                self.expr(value);
            }
            ExprKind::Await(value) => self.prefixed("await", value),
            ExprKind::BigInt(digits) => self.put(&format!("{digits}n")),
            ExprKind::Binary(operator, left, right) => {
                self.expr(left);
                self.operand(operator.sign(), right);
            }
            ExprKind::Chain(first, rest) => {
                self.expr(first);
                for (operator, operand) in *rest {
                    self.operand(operator.sign(), operand);
                }
            }
            ExprKind::Bool(value) => self.put(if *value { "true" } else { "false" }),
            ExprKind::Call(callee, arguments, optional) => {
                self.expr(callee);
                self.put(if *optional { "?.(" } else { "(" });
                self.list(arguments, Self::expr);
                self.put(")");
            }
            ExprKind::Conditional(test, yes, no) => {
                self.expr(test);
                self.operand("?", yes);
                self.operand(":", no);
            }
            ExprKind::Function(function) => self.function(function),
            ExprKind::Index(object, index, optional) => {
                self.expr(object);
                self.put(if *optional { "?.[" } else { "[" });
                self.expr(index);
                self.put("]");
            }
            ExprKind::Logical(operator, operands) => {
                for (index, operand) in operands.iter().enumerate() {
                    match index {
                        0 => self.expr(operand),
                        _ => self.operand(operator.sign(), operand),
                    }
                }
            }
            ExprKind::Member(object, name, optional) => {
                let at = self.out.len();
                self.expr(object);
                // In `5.a` the point would belong to the number.
                let bare = self.out[at..].bytes().all(|byte| byte.is_ascii_digit());
                self.put(match optional {
                    true => "?.",
                    false if bare => "..",
                    false => ".",
                });
                self.put(name.text);
            }
            ExprKind::Name(name) => self.put(name),
            ExprKind::New(callee, arguments) => {
                self.prefixed("new", callee);
                self.put("(");
                self.list(arguments, Self::expr);
                self.put(")");
            }
            ExprKind::Null => self.put("null"),
            ExprKind::Number(value) => self.number(*value),
            ExprKind::Object(properties) => {
                self.put("{");
                self.list(properties, Self::property);
                self.put("}");
            }
            ExprKind::Paren(inner) => {
                self.put("(");
                self.expr(inner);
                self.put(")");
            }
            ExprKind::Regex(pattern, flags) => self.put(&format!("/{pattern}/{flags}")),
            ExprKind::Sequence(items) => self.list(items, Self::expr),
            ExprKind::Spread(value) => self.prefixed("...", value),
            ExprKind::String(value) => self.put(&text::quoted(value)),
            ExprKind::Tagged(tag, quasis, holes) => {
                self.expr(tag);
                let raw = quasis.iter().map(|quasi| String::from_utf8_lossy(quasi.raw).into_owned());
                self.template(raw, holes);
            }
            ExprKind::Template(texts, holes) => self.template(texts.iter().map(|part| text::template(part)), holes),
            ExprKind::Unary(operator, operand) => self.prefixed(operator.sign(), operand),
            ExprKind::Update { delta, prefix, target } => {
                let symbol = if *delta > 0 { "++" } else { "--" };
                if *prefix {
                    self.put(symbol);
                }
                self.pattern(target);
                if !prefix {
                    self.put(symbol);
                }
            }
            ExprKind::Yield(None) => self.put("yield"),
            ExprKind::Yield(Some(value)) => self.prefixed("yield", value),
            ExprKind::YieldStar(value) => self.prefixed("yield*", value),
        }
    }

    fn operand(&mut self, operator: &str, operand: &Expr<'_>) {
        self.put(" ");
        self.put(operator);
        self.put(" ");
        self.expr(operand);
    }

    /// Prints a unary operator and its operand, with a space if they would form another token.
    fn prefixed(&mut self, operator: &str, operand: &Expr<'_>) {
        self.put(operator);
        let at = self.out.len();
        self.expr(operand);
        let (before, after) = (operator.chars().last(), self.out[at..].chars().next());
        let touches = match (before, after) {
            (Some('+'), Some('+')) | (Some('-'), Some('-')) => true,
            (Some(before), _) => before.is_alphabetic(),
            (None, _) => false,
        };
        if touches {
            self.out.insert(at, ' ');
        }
    }

    fn number(&mut self, value: f64) {
        match value {
            _ if value.is_infinite() => self.put("1e999"),
            // An integer has no decimal point, and a long number an exponent.
            _ if value.fract() == 0.0 && value.abs() < 1e21 => self.put(&format!("{value}")),
            _ => self.put(&format!("{value:?}")),
        }
    }

    fn template(&mut self, texts: impl Iterator<Item = String>, holes: &[Expr<'_>]) {
        let mut holes = holes.iter();
        self.put("`");
        for text in texts {
            self.put(&text);
            if let Some(hole) = holes.next() {
                self.put("${");
                self.expr(hole);
                self.put("}");
            }
        }
        self.put("`");
    }

    fn property(&mut self, property: &Property<'_>) {
        match property {
            Property::Method(key, function) => {
                if function.is_async {
                    self.put("async ");
                }
                if function.is_generator {
                    self.put("*");
                }
                self.key(key);
                self.signature(function);
            }
            Property::Shorthand(name, default) => {
                self.put(name.text);
                if let Some(default) = default {
                    self.operand("=", default);
                }
            }
            Property::Spread(value) => self.prefixed("...", value),
            Property::Value(key, value) => {
                self.key(key);
                self.put(": ");
                self.expr(value);
            }
        }
    }
}

fn assign(operator: AssignOp) -> String {
    match operator {
        AssignOp::Plain => "=".into(),
        AssignOp::Binary(operator) => format!("{}=", operator.sign()),
        AssignOp::Logical(operator) => format!("{}=", operator.sign()),
    }
}

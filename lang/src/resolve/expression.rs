//! Expressions: operators, literals, calls and optional chains.
//!
//! Each kind has its own function, so that the frame of the recursion stays small.

use super::target::duplicate;
use super::{Resolver, count, expr};
use crate::ast::{self, ExprKind as E, Key, Property as P, Text};
use crate::diagnostic::Diagnostic;
use crate::program::*;
use crate::regexp;
use crate::span::Span;

type Ast<'s> = ast::Node<E<'s>>;

impl<'p> Resolver<'_, 'p> {
    /// Resolves an expression whose value is used.
    pub(super) fn expression(&mut self, e: &Ast<'_>) -> Expr<'p> {
        let span = e.span;
        let kind = match &e.kind {
            E::Array(items) => return self.array(items, span),
            E::Assign(operator, target, value) => return self.assign(*operator, target, value, span, true),
            E::Await(value) => self.wait(value, span),
            E::BigInt(digits) => ExprKind::BigInt(self.texts.intern(digits.as_bytes())),
            E::Binary(operator, left, right) => self.binary(*operator, left, right),
            E::Bool(value) => return expr(ExprKind::Bool(*value), span),
            E::Call(..) | E::Index(..) | E::Member(..) | E::Tagged(..) => return self.chain(e, ExprKind::Undefined),
            E::Chain(first, rest) => self.operators(first, rest),
            E::Conditional(test, yes, no) => self.conditional(test, yes, no),
            E::Function(function) => return expr(ExprKind::Function(self.function(function, None)), span),
            E::Logical(operator, operands) => return self.logical(*operator, operands),
            E::Name(name) => return self.read(name, span),
            E::New(callee, arguments) => {
                let names = self.constructor(callee, span);
                let arguments = self.arguments(arguments);
                self.new_of(names, arguments)
            }
            E::Null => return expr(ExprKind::Null, span),
            E::Number(value) => return expr(ExprKind::Number(*value), span),
            E::Object(properties) => self.object(properties),
            E::Paren(inner) => return self.expression(inner),
            E::Regex(pattern, flags) => self.regex(pattern, flags, span),
            E::Sequence(items) => ExprKind::Sequence(self.expressions(items)),
            // The grammar has it in lists only, which look for it.
            E::Spread(value) => return self.expression(value),
            E::String(text) => return expr(ExprKind::String(self.texts.intern(text)), span),
            E::Template(texts, holes) => self.template(texts, holes),
            E::Unary(ast::Unary::Delete, operand) => return self.delete(operand, span),
            E::Unary(operator, operand) => self.unary(*operator, operand),
            E::Update { delta, prefix, target } => return self.update_target(target, *delta, *prefix, span),
            E::Yield(value) => self.yielding(value.as_deref(), span),
            E::YieldStar(items) => {
                self.check_yield(span);
                ExprKind::YieldStar(self.operand(items))
            }
        };
        expr(kind, span)
    }

    /// `/pattern/flags`
    fn regex(&mut self, pattern: &str, flags: &str, span: Span) -> ExprKind<'p> {
        let text = self.texts.intern(pattern.as_bytes());
        let Some(flags) = regexp::Flags::parse(flags.as_bytes()) else {
            self.error(Diagnostic::syntax("Invalid regular expression flags", span));
            return ExprKind::Regex(text, 0);
        };
        if let Some(&known) = self.known_patterns.get(&(text, flags)) {
            return ExprKind::Regex(text, known);
        }
        // The program is made when the literal is first evaluated, at the cost of the run.
        let units: Vec<u16> = pattern.encode_utf16().collect();
        if let Err(error) = regexp::validate(&units, flags) {
            let message = regexp::message(&abbreviated(pattern), flags, error);
            self.error(Diagnostic::syntax(message, span));
        }
        let number = count(self.patterns.len());
        self.patterns.push(flags);
        self.known_patterns.insert((text, flags), number);
        ExprKind::Regex(text, number)
    }

    /// Resolves an expression whose value is not used.
    pub(super) fn effect(&mut self, e: &Ast<'_>) -> Expr<'p> {
        match &e.kind {
            E::Assign(operator, target, value) => self.assign(*operator, target, value, e.span, false),
            E::Update { delta, target, .. } => self.update_target(target, *delta, true, e.span),
            E::Paren(inner) => self.effect(inner),
            E::Sequence(items) => {
                expr(ExprKind::Sequence(self.arena.collect(items.iter().map(|item| self.effect(item)))), e.span)
            }
            _ => self.expression(e),
        }
    }

    /// Resolves an expression that gives its name to an anonymous function.
    pub(super) fn named(&mut self, e: &Ast<'_>, name: TextId) -> Expr<'p> {
        match &e.kind {
            E::Function(function) => expr(ExprKind::Function(self.function(function, Some(name))), e.span),
            E::Paren(inner) => self.named(inner, name),
            _ => self.expression(e),
        }
    }

    fn expressions(&mut self, items: &[ast::Expr<'_>]) -> &'p [Expr<'p>] {
        self.arena.collect(items.iter().map(|item| self.expression(item)))
    }

    /// Resolves an expression that is a part of another one.
    fn operand(&mut self, e: &Ast<'_>) -> &'p Expr<'p> {
        self.arena.alloc(self.expression(e))
    }

    fn wait(&mut self, value: &Ast<'_>, span: Span) -> ExprKind<'p> {
        self.check_await(span);
        ExprKind::Await(self.operand(value))
    }

    /// `await` stands only in the body of async functions.
    pub(super) fn check_await(&mut self, span: Span) {
        if self.current.in_parameters {
            self.error(Diagnostic::syntax("Illegal await-expression in formal parameters of async function", span));
        } else if !self.current.is_async {
            let message = "await is only valid in async functions and the top level bodies of modules";
            let hint = "write `async` before the function that contains it: `async () => …`, `async function …`";
            self.error(Diagnostic::syntax(message, span).with_hint(hint));
        }
    }

    fn yielding(&mut self, value: Option<&Ast<'_>>, span: Span) -> ExprKind<'p> {
        self.check_yield(span);
        ExprKind::Yield(match value {
            Some(value) => self.operand(value),
            None => self.arena.alloc(expr(ExprKind::Undefined, span)),
        })
    }

    /// `yield` stands only in the body of generators.
    fn check_yield(&mut self, span: Span) {
        let keyword = Span::new(span.start, span.start + 5);
        if self.current.is_generator && self.current.in_parameters {
            self.error(Diagnostic::syntax("Yield expression not allowed in formal parameter", span));
        } else if !self.current.is_generator {
            let hint = if self.in_generator {
                "`yield` stands in the generator itself, not in a function inside it; replace the callback by a loop: \
                 `for (const item of items) yield item`"
            } else {
                "write `*` behind the `function` that contains it: `function* pages() { yield 1 }`; an arrow function \
                 cannot be a generator"
            };
            self.error(Diagnostic::syntax("Unexpected strict mode reserved word", keyword).with_hint(hint));
        }
    }

    fn binary(&mut self, operator: Binary, left: &Ast<'_>, right: &Ast<'_>) -> ExprKind<'p> {
        if operator == Binary::In
            && let Some(symbol) = self.symbol_key(left)
        {
            let left = self.arena.alloc(expr(ExprKind::String(symbol), left.span));
            return ExprKind::Binary(operator, left, self.operand(right));
        }
        let left = self.operand(left);
        ExprKind::Binary(operator, left, self.operand(right))
    }

    fn operators(&mut self, first: &Ast<'_>, rest: &[(Binary, ast::Expr<'_>)]) -> ExprKind<'p> {
        let arena = self.arena;
        let first = self.expression(first);
        let rest = rest.iter().map(|(operator, operand)| (*operator, self.expression(operand)));
        let rest = arena.collect(rest);
        ExprKind::Chain(arena.alloc(Chain { first, rest }))
    }

    fn conditional(&mut self, test: &Ast<'_>, yes: &Ast<'_>, no: &Ast<'_>) -> ExprKind<'p> {
        let test = self.operand(test);
        let yes = self.operand(yes);
        ExprKind::Conditional(test, yes, self.operand(no))
    }

    /// These operators are associative, so that many operands make a balanced tree.
    fn logical(&mut self, operator: Logical, operands: &[ast::Expr<'_>]) -> Expr<'p> {
        match operands {
            [] => expr(ExprKind::Undefined, Span::default()),
            [one] => self.expression(one),
            _ => {
                let (left, right) = operands.split_at(operands.len() / 2);
                let left = self.logical(operator, left);
                let right = self.logical(operator, right);
                let span = left.span.to(right.span);
                expr(ExprKind::Logical(operator, self.arena.alloc(left), self.arena.alloc(right)), span)
            }
        }
    }

    fn unary(&mut self, operator: ast::Unary, operand: &Ast<'_>) -> ExprKind<'p> {
        let operator = match operator {
            ast::Unary::BitNot => Unary::BitNot,
            ast::Unary::Minus => Unary::Minus,
            ast::Unary::Not => Unary::Not,
            ast::Unary::Plus => Unary::Plus,
            ast::Unary::Typeof => Unary::Typeof,
            ast::Unary::Void | ast::Unary::Delete => Unary::Void,
        };
        let operand = self.expression(operand);
        match (operator, &operand.kind) {
            (Unary::Minus, ExprKind::Number(value)) => ExprKind::Number(-value),
            (Unary::Typeof, ExprKind::Global(name)) => ExprKind::TypeofGlobal(*name),
            _ => ExprKind::Unary(operator, self.arena.alloc(operand)),
        }
    }

    fn delete(&mut self, operand: &Ast<'_>, span: Span) -> Expr<'p> {
        let mut inner = operand;
        while let E::Paren(next) = &inner.kind {
            inner = next;
        }
        if let E::Name(name) = inner.kind
            && name != "this"
        {
            let message = "Delete of an unqualified identifier in strict mode.";
            self.error(Diagnostic::syntax(message, inner.span));
        }
        let mut guards = Vec::new();
        let value = self.link(inner, &mut guards);
        let kind = match value.kind {
            ExprKind::Member(object, name) => ExprKind::DeleteMember(object, name),
            ExprKind::Index(object, key) => ExprKind::DeleteIndex(object, key),
            _ => ExprKind::Sequence(self.arena.copy(&[value, expr(ExprKind::Bool(true), span)])),
        };
        self.guarded(&guards, expr(kind, span), ExprKind::Bool(true))
    }

    // ---- Literals ------------------------------------------------------------------------------

    /// Notes a call whose result is iterated over.
    pub(super) fn note_iterated(&mut self, value: &Expr<'p>) {
        if let ExprKind::Call(call) = &value.kind {
            self.iterated.push(call.callee_span);
        }
    }

    fn array(&mut self, items: &[Option<ast::Expr<'_>>], span: Span) -> Expr<'p> {
        let arena = self.arena;
        let mut spreads = false;
        let elements = items.iter().map(|item| match item {
            None => Element::Hole,
            Some(item) => match &item.kind {
                E::Spread(value) => {
                    let value = self.expression(value);
                    self.note_iterated(&value);
                    spreads = true;
                    Element::Spread(value)
                }
                _ => Element::Item(self.expression(item)),
            },
        });
        let array = ExprKind::Array(arena.collect(elements));
        if spreads { self.iteration(array, span) } else { expr(array, span) }
    }

    fn object(&mut self, properties: &[P<'_>]) -> ExprKind<'p> {
        let site = self.object_sites;
        self.object_sites += 1;
        let mark = self.holders.literal();
        // Behind a spread at the beginning, a name and a computed key that is constant have different places among the keys.
        let keeps_computed = matches!(properties, [P::Spread(_), ..]);
        let properties = self.arena.collect(properties.iter().map(|property| {
            let resolved = self.property(property);
            match (property, resolved) {
                (P::Method(Key::Computed(key), _) | P::Value(Key::Computed(key), _), Property::Named(name, value))
                    if keeps_computed =>
                {
                    Property::Computed(expr(ExprKind::String(name), key.span), value)
                }
                (_, resolved) => resolved,
            }
        }));
        self.holders.end(mark);
        ExprKind::Object(site, properties)
    }

    fn property(&mut self, property: &P<'_>) -> Property<'p> {
        match property {
            P::Method(key, function) => match self.key(key) {
                Ok(name) => {
                    self.texts.facts(name).written = true;
                    let own = self.function_name(name);
                    let id = self.function(function, Some(own));
                    Property::Named(name, expr(ExprKind::Function(id), function.span))
                }
                Err(key) => {
                    let id = self.function(function, None);
                    Property::Computed(key, expr(ExprKind::Function(id), function.span))
                }
            },
            P::Shorthand(name, _) => {
                let key = self.property_name(name.text.as_bytes(), name.span);
                let value = self.read(name.text, name.span);
                self.note_written(key, &value);
                Property::Named(key, value)
            }
            P::Spread(value) => Property::Spread(self.expression(value)),
            P::Value(key, value) => match self.key(key) {
                Ok(name) => {
                    let own = self.function_name(name);
                    let mark = matches!(value.kind, E::Object(_)).then(|| self.holders.property(name));
                    let value = self.named(value, own);
                    if let Some(mark) = mark {
                        self.holders.end(mark);
                    }
                    self.note_written(name, &value);
                    Property::Named(name, value)
                }
                Err(key) => Property::Computed(key, self.expression(value)),
            },
        }
    }

    /// Resolves a key: a name, or an expression where it is not known.
    fn key(&mut self, key: &Key<'_>) -> Result<TextId, Expr<'p>> {
        match key {
            Key::Text(text, span) => Ok(self.property_name(text, *span)),
            Key::Computed(key) => match self.constant_key(key) {
                Some(name) => Ok(name),
                None => Err(self.expression(key)),
            },
        }
    }

    /// Notes that the script stores a property, unless the value cannot be a function.
    pub(super) fn note_written(&mut self, name: TextId, value: &Expr<'p>) {
        if may_be_function(value) {
            self.texts.facts(name).written = true;
        }
    }

    fn template(&mut self, texts: &[Text<'_>], holes: &[ast::Expr<'_>]) -> ExprKind<'p> {
        let Some((head, tails)) = texts.split_first() else { return ExprKind::Undefined };
        let head = self.texts.intern(head);
        if tails.is_empty() {
            return ExprKind::String(head);
        }
        let arena = self.arena;
        let part = |(hole, tail): (&ast::Expr<'_>, &Text<'_>)| (self.expression(hole), self.texts.intern(tail));
        ExprKind::Template(head, arena.collect(holes.iter().zip(tails).map(part)))
    }

    // ---- Chains of members and calls -------------------------------------------------------------

    /// Resolves an optional chain: `short` is its value where a link with `?.` is `null` or `undefined`.
    fn chain(&mut self, e: &Ast<'_>, short: ExprKind<'p>) -> Expr<'p> {
        let mut guards = Vec::new();
        let value = self.link(e, &mut guards);
        self.guarded(&guards, value, short)
    }

    /// Resolves a link of a chain. Each guard is a test that ends the chain.
    fn link(&mut self, e: &Ast<'_>, guards: &mut Vec<Expr<'p>>) -> Expr<'p> {
        match &e.kind {
            E::Member(object, name, optional) => self.member(object, name, *optional, e.span, guards),
            E::Index(object, key, optional) => self.index(object, key, *optional, e.span, guards),
            E::Call(callee, arguments, optional) => self.call(callee, arguments, *optional, e.span, guards),
            E::Tagged(tag, quasis, holes) => self.tagged(tag, quasis, holes, e.span, guards),
            _ => self.expression(e),
        }
    }

    fn link_object(&mut self, object: &Ast<'_>, optional: bool, guards: &mut Vec<Expr<'p>>) -> Expr<'p> {
        let object = self.app(object).unwrap_or_else(|| self.link(object, guards));
        if optional { self.guard(object, guards) } else { object }
    }

    /// Ends the chain where the value is `null` or `undefined`; returns the value again.
    fn guard(&mut self, value: Expr<'p>, guards: &mut Vec<Expr<'p>>) -> Expr<'p> {
        let span = value.span;
        let (first, again) = duplicate(self, value);
        let test =
            ExprKind::Binary(Binary::Equal, self.arena.alloc(first), self.arena.alloc(expr(ExprKind::Null, span)));
        guards.push(expr(test, span));
        again
    }

    fn member(
        &mut self,
        object: &Ast<'_>,
        name: &ast::Name<'_>,
        optional: bool,
        span: Span,
        guards: &mut Vec<Expr<'p>>,
    ) -> Expr<'p> {
        if is_this(object) {
            self.member_of_this = Some(name.text.to_owned());
        }
        let object = self.link_object(object, optional, guards);
        self.member_of_this = None;
        let key = self.property_name(name.text.as_bytes(), name.span);
        self.check_static(&object, key, span, None);
        expr(ExprKind::Member(self.arena.alloc(object), key), span)
    }

    fn index(
        &mut self,
        object: &Ast<'_>,
        key: &Ast<'_>,
        optional: bool,
        span: Span,
        guards: &mut Vec<Expr<'p>>,
    ) -> Expr<'p> {
        let object = self.link_object(object, optional, guards);
        let kind = match self.constant_key(key) {
            Some(key) => {
                self.check_static(&object, key, span, None);
                self.constant_index(object, key, span)
            }
            None => ExprKind::Index(self.arena.alloc(object), self.operand(key)),
        };
        expr(kind, span)
    }

    fn call(
        &mut self,
        callee: &Ast<'_>,
        arguments: &[ast::Expr<'_>],
        optional: bool,
        span: Span,
        guards: &mut Vec<Expr<'p>>,
    ) -> Expr<'p> {
        let callee_span = callee.span;
        let callee = self.callee(callee, Some(arguments), optional, guards);
        if let Callee::Value(Expr { kind: ExprKind::Global(name), .. }) = callee {
            self.check_own_tool(name, arguments);
        }
        let arguments = self.arguments(arguments);
        self.call_of(callee, arguments, callee_span, span)
    }

    fn tagged(
        &mut self,
        tag: &Ast<'_>,
        quasis: &[ast::Quasi<'_>],
        holes: &[ast::Expr<'_>],
        span: Span,
        guards: &mut Vec<Expr<'p>>,
    ) -> Expr<'p> {
        let callee_span = tag.span;
        let callee = self.callee(tag, None, false, guards);
        let site = count(self.templates.len());
        let cooked = quasis.iter().map(|quasi| quasi.cooked.as_ref().map(|text| self.texts.intern(text))).collect();
        let raw = quasis.iter().map(|quasi| self.texts.intern(quasi.raw)).collect();
        self.templates.push(TemplateSite { cooked, raw });
        let mut arguments = Vec::with_capacity(holes.len() + 1);
        arguments.push(Argument { value: expr(ExprKind::TemplateObject(site), span), spread: false });
        arguments.extend(holes.iter().map(|hole| Argument { value: self.expression(hole), spread: false }));
        let arguments = self.arena.copy(&arguments);
        self.call_of(callee, arguments, callee_span, span)
    }

    /// Resolves a callee, with its receiver.
    fn callee(
        &mut self,
        callee: &Ast<'_>,
        arguments: Option<&[ast::Expr<'_>]>,
        optional: bool,
        guards: &mut Vec<Expr<'p>>,
    ) -> Callee<'p> {
        match &callee.kind {
            E::Member(object, name, optional_member) => {
                if is_this(object) {
                    self.member_of_this = Some(name.text.to_owned());
                }
                let object = self.link_object(object, *optional_member, guards);
                self.member_of_this = None;
                let key = self.property_name(name.text.as_bytes(), name.span);
                self.check_static(&object, key, callee.span, arguments);
                self.method(ExprKind::Member(self.arena.alloc(object), key), callee.span, optional, guards)
            }
            E::Index(object, key, optional_member) => {
                let object = self.link_object(object, *optional_member, guards);
                let kind = match self.constant_key(key) {
                    Some(key) => {
                        self.check_static(&object, key, callee.span, arguments);
                        self.constant_index(object, key, callee.span)
                    }
                    None => ExprKind::Index(self.arena.alloc(object), self.operand(key)),
                };
                self.method(kind, callee.span, optional, guards)
            }
            E::Paren(inner) => self.parenthesised(inner, arguments, optional, guards),
            _ => {
                let function = self.link(callee, guards);
                Callee::Value(if optional { self.guard(function, guards) } else { function })
            }
        }
    }

    /// `object.name(…)` and, where `optional`, `object.name?.(…)`.
    fn method(&mut self, member: ExprKind<'p>, span: Span, optional: bool, guards: &mut Vec<Expr<'p>>) -> Callee<'p> {
        match member {
            ExprKind::Member(object, name) if !optional => Callee::Member(*object, name),
            ExprKind::Index(object, key) if !optional => Callee::Index(*object, *key),
            ExprKind::Member(object, name) => {
                let (object, this) = duplicate(self, *object);
                let function = expr(ExprKind::Member(self.arena.alloc(object), name), span);
                Callee::With { function: self.guard(function, guards), this }
            }
            ExprKind::Index(object, key) => {
                // The key may change the variable that holds the object.
                let (object, this) = self.duplicate_across_calls(*object);
                let function = expr(ExprKind::Index(self.arena.alloc(object), key), span);
                Callee::With { function: self.guard(function, guards), this }
            }
            other => Callee::Value(expr(other, span)),
        }
    }

    /// `(object?.name)(…)`: the parentheses end the chain but keep the receiver.
    fn parenthesised(
        &mut self,
        inner: &Ast<'_>,
        arguments: Option<&[ast::Expr<'_>]>,
        optional: bool,
        guards: &mut Vec<Expr<'p>>,
    ) -> Callee<'p> {
        let mut own = Vec::new();
        let callee = self.callee(inner, arguments, optional, &mut own);
        if own.is_empty() {
            return callee;
        }
        if optional {
            // `(a?.b)?.()`: both ends of the chain give `undefined`.
            guards.append(&mut own);
            return callee;
        }
        let span = inner.span;
        match callee {
            Callee::Member(object, name) => {
                let (object, this) = self.duplicate_across_calls(object);
                let function = expr(ExprKind::Member(self.arena.alloc(object), name), span);
                Callee::With { function: self.guarded(&own, function, ExprKind::Undefined), this }
            }
            Callee::Index(object, key) => {
                let (object, this) = self.duplicate_across_calls(object);
                let function = expr(ExprKind::Index(self.arena.alloc(object), self.arena.alloc(key)), span);
                Callee::With { function: self.guarded(&own, function, ExprKind::Undefined), this }
            }
            Callee::Value(function) => Callee::Value(self.guarded(&own, function, ExprKind::Undefined)),
            Callee::With { function, this } => {
                Callee::With { function: self.guarded(&own, function, ExprKind::Undefined), this }
            }
        }
    }

    /// Returns the value behind its guards: `short` where one of them ends the chain.
    fn guarded(&self, guards: &[Expr<'p>], value: Expr<'p>, short: ExprKind<'p>) -> Expr<'p> {
        let span = value.span;
        guards.iter().rev().fold(value, |value, &guard| {
            let [guard, short, value] = [guard, expr(short, span), value].map(|part| self.arena.alloc(part));
            expr(ExprKind::Conditional(guard, short, value), span)
        })
    }

    fn arguments(&mut self, arguments: &[ast::Expr<'_>]) -> &'p [Argument<'p>] {
        let arena = self.arena;
        let argument = |argument: &ast::Expr<'_>| match &argument.kind {
            E::Spread(value) => Argument { value: self.expression(value), spread: true },
            _ => Argument { value: self.expression(argument), spread: false },
        };
        arena.collect(arguments.iter().map(argument))
    }
}

fn is_this(object: &Ast<'_>) -> bool {
    matches!(object.kind, E::Name("this"))
}

/// Whether a value may be a function, as far as its form tells.
fn may_be_function(value: &Expr<'_>) -> bool {
    match &value.kind {
        ExprKind::Undefined
        | ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::String(_)
        | ExprKind::BigInt(_)
        | ExprKind::Regex(..)
        | ExprKind::Template(..)
        | ExprKind::TemplateObject(_)
        | ExprKind::Array(_)
        | ExprKind::Object(..)
        | ExprKind::Update { .. }
        | ExprKind::TypeofGlobal(_)
        | ExprKind::DeleteMember(..)
        | ExprKind::DeleteIndex(..)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Chain(..)
        | ExprKind::New(..)
        | ExprKind::ObjectRest(..)
        | ExprKind::Iterator(..)
        | ExprKind::IteratorRest(_)
        | ExprKind::IteratorClose(_)
        | ExprKind::GeneratorStart
        | ExprKind::Uninitialized(_) => false,
        ExprKind::Conditional(_, yes, no) => may_be_function(yes) || may_be_function(no),
        ExprKind::Logical(_, left, right) => may_be_function(left) || may_be_function(right),
        ExprKind::Sequence(items) => items.last().is_some_and(may_be_function),
        // Values that other code has made.
        _ => true,
    }
}

/// Returns a pattern, abbreviated for messages.
fn abbreviated(pattern: &str) -> std::borrow::Cow<'_, str> {
    const MAX_BYTES: usize = 1000;
    match pattern.char_indices().nth(MAX_BYTES) {
        Some((end, _)) => format!("{}…", &pattern[..end]).into(),
        None => pattern.into(),
    }
}

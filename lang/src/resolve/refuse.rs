//! Refusals that the grammar cannot see: names, properties, constructors, loops.

use super::{Resolver, count, expr};
use crate::ast::{self, ExprKind as E};
use crate::diagnostic::{Code, Diagnostic, Refusal};
use crate::options::Loops;
use crate::program::*;
use crate::refused::{self, Refused};
use crate::span::Span;
use std::borrow::Cow;

type Ast<'s> = ast::Node<E<'s>>;

/// Constructors that `new` works on.
const CONSTRUCTORS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "DOMException",
    "Date",
    "Error",
    "EvalError",
    "Headers",
    "Intl.Collator",
    "Intl.DateTimeFormat",
    "Intl.DisplayNames",
    "Intl.ListFormat",
    "Intl.NumberFormat",
    "Intl.PluralRules",
    "Intl.RelativeTimeFormat",
    "Intl.Segmenter",
    "Map",
    "Object",
    "Promise",
    "RangeError",
    "ReferenceError",
    "RegExp",
    "Set",
    "SyntaxError",
    "TextDecoder",
    "TextEncoder",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint8Array",
];

/// The forms of loops, as messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loop {
    For,
    EndlessFor,
    ForIn,
    ForOf,
    ForAwait,
    While,
    DoWhile,
}

impl Loop {
    fn name(self) -> &'static str {
        match self {
            Self::For => "for",
            Self::EndlessFor => "endless for",
            Self::ForIn => "for-in",
            Self::ForOf => "for-of",
            Self::ForAwait => "for-await",
            Self::While => "while",
            Self::DoWhile => "do-while",
        }
    }

    fn is_bounded(self) -> bool {
        !matches!(self, Self::EndlessFor | Self::While | Self::DoWhile)
    }
}

/// The holders of the object literals around the position of the walk: a variable and its properties, as hints on `this`
/// name it.
#[derive(Default)]
pub(super) struct Holders {
    names: Vec<TextId>,
    /// Where the path of the present literal begins.
    start: usize,
    /// Whether the next literal is held by the last of the names.
    held: bool,
}

impl Holders {
    /// Begins a variable that is assigned the literal that comes next; returns the mark for [`Self::end`].
    pub(super) fn variable(&mut self, name: TextId) -> (usize, usize) {
        let mark = (self.start, self.names.len());
        self.start = self.names.len();
        self.names.push(name);
        self.held = true;
        mark
    }

    /// Begins a property of the present literal whose value is the literal that comes next.
    pub(super) fn property(&mut self, name: TextId) -> (usize, usize) {
        let mark = (self.start, self.names.len());
        if self.start < self.names.len() {
            self.names.push(name);
            self.held = true;
        }
        mark
    }

    /// Begins a literal.
    pub(super) fn literal(&mut self) -> (usize, usize) {
        let mark = (self.start, self.names.len());
        if !std::mem::take(&mut self.held) {
            self.start = self.names.len();
        }
        mark
    }

    /// Ends what began with a mark.
    pub(super) fn end(&mut self, (start, length): (usize, usize)) {
        self.start = start;
        self.names.truncate(length);
        self.held = false;
    }

    fn path(&self) -> &[TextId] {
        self.names.get(self.start..).unwrap_or(&[])
    }
}

impl<'p> Resolver<'_, 'p> {
    // ---- Names ---------------------------------------------------------------------------------

    /// Checks a free name, and notes it; false where it is refused.
    pub(super) fn check_free_name(&mut self, name: &str, id: TextId, span: Span) -> bool {
        let facts = self.texts.facts(id);
        let known = facts.refused_name;
        if known.is_none() {
            facts.free = Some(count(self.free.len()));
            self.free.push((id, span));
        } else if let Some((_, first)) = facts.free.and_then(|free| self.free.get_mut(free as usize))
            && span.start < first.start
        {
            // Functions are walked at the head of their block, before what stands before them.
            *first = span;
        }
        if known == Some(false) {
            return true;
        }
        let row = refused::name(name).filter(|_| !(self.options.provided)(name));
        let disabled = self.options.disabled.iter().find(|(disabled, _)| disabled == name);
        let missing = self.options.missing.iter().find(|m| m.name == name && m.refusal != Refusal::DisallowedProperty);
        let is_refused = row.is_some() || disabled.is_some() || missing.is_some();
        self.texts.facts(id).refused_name = Some(is_refused);
        if let Some(row) = row {
            let refusal = row.at(span);
            let hint = (name == "this").then(|| self.instead_of_this()).flatten();
            self.refuse(match hint {
                Some(hint) => refusal.with_hint(hint),
                None => refusal,
            });
        } else if let Some((_, refusal)) = disabled {
            self.refuse(refused::disabled(name, *refusal, span));
        } else if let Some(missing) = missing {
            self.refuse(missing.at(span));
        }
        !is_refused
    }

    /// Returns a free name that the language refuses and that is an app of the host, whose member is read.
    pub(super) fn app(&mut self, object: &Ast<'_>) -> Option<Expr<'p>> {
        let E::Name(name) = object.kind else { return None };
        // `Symbol` is refused but for two of its properties.
        let is_off = |name: &str| self.options.disabled.iter().any(|(off, _)| off == name);
        if !(self.options.apps)(name)
            || (self.options.provided)(name)
            || matches!(name, "Symbol" | "this" | "super")
            || is_off(name)
        {
            return None;
        }
        refused::name(name)?;
        let id = self.texts.intern(name.as_bytes());
        self.texts.facts(id).binding.is_none().then_some(expr(ExprKind::Global(id), object.span))
    }

    /// Returns the hint for `this` or `this.name` here.
    fn instead_of_this(&self) -> Option<String> {
        let member = self.member_of_this.as_ref().map(|name| format!(".{name}")).unwrap_or_default();
        let path = self.holders.path().iter().map(|&name| self.texts.lossy(name));
        let path = path.collect::<Vec<_>>().join(".");
        Some(match Some(path).filter(|path| !path.is_empty()) {
            Some(holder) => {
                format!(
                    "a method uses the variable that holds its object: `{holder}{member}` instead of `this{member}`"
                )
            }
            None if member.is_empty() => return None,
            None => format!(
                "give the object a name and use that: `const self = {{ … }};`, `self{member}` instead of `this{member}`, `return self;`"
            ),
        })
    }

    /// Checks an assignment to a free name.
    pub(super) fn check_global_write(&mut self, name: &str, span: Span) {
        if (self.options.globals)(name) {
            let message = format!("Assignment to '{name}' is not allowed in AgentScript: built-ins are read-only");
            let hint = "declare a variable of your own under another name";
            self.refuse(Diagnostic::refused(Refusal::DisallowedGlobal, message, span).with_hint(hint));
        }
    }

    // ---- Properties ----------------------------------------------------------------------------

    /// Checks a property name, and returns its number.
    pub(super) fn property_name(&mut self, name: &[u8], span: Span) -> TextId {
        let id = self.texts.intern(name);
        let facts = self.texts.facts(id);
        if facts.refused_property == Some(false) {
            return id;
        }
        let row = refused::property_of(name);
        facts.refused_property = Some(row.is_some());
        if let Some(row) = row {
            self.refuse(row.at(span));
        }
        id
    }

    /// Returns the key of `[key]` where it is known, checked.
    pub(super) fn constant_key(&mut self, key: &Ast<'_>) -> Option<TextId> {
        if let Some(symbol) = self.symbol_key(key) {
            return Some(symbol);
        }
        let text = constant_text(key)?;
        Some(self.property_name(&text, key.span))
    }

    /// `Symbol.iterator` and `Symbol.asyncIterator` as a key: a text that no string of a script can be.
    pub(super) fn symbol_key(&mut self, key: &Ast<'_>) -> Option<TextId> {
        let mut key = key;
        while let E::Paren(inner) = &key.kind {
            key = inner;
        }
        let E::Member(object, name, false) = &key.kind else { return None };
        if !matches!(object.kind, E::Name("Symbol")) {
            return None;
        }
        let symbol = match name.text {
            "iterator" => SYMBOL_ITERATOR,
            "asyncIterator" => SYMBOL_ASYNC_ITERATOR,
            _ => return None,
        };
        let global = self.texts.intern(b"Symbol");
        if self.texts.facts(global).binding.is_some() {
            return None;
        }
        self.iterables = true;
        Some(self.texts.intern(symbol))
    }

    /// Returns the name of a function that is a property of this name.
    pub(super) fn function_name(&mut self, property: TextId) -> TextId {
        match self.texts.get(property) {
            SYMBOL_ITERATOR => self.texts.intern(b"[Symbol.iterator]"),
            SYMBOL_ASYNC_ITERATOR => self.texts.intern(b"[Symbol.asyncIterator]"),
            _ => property,
        }
    }

    /// Checks `object.name` where the object may be a built-in, and its arguments where it is called.
    pub(super) fn check_static(
        &mut self,
        object: &Expr<'p>,
        name: TextId,
        span: Span,
        arguments: Option<&[ast::Expr<'_>]>,
    ) {
        let missing = self.options.missing.iter().find(|missing| {
            missing.refusal == Refusal::DisallowedProperty && missing.name.as_bytes() == self.texts.get(name)
        });
        if let Some(missing) = missing {
            return self.refuse(missing.at(span));
        }
        let (object, name) = match object.kind {
            ExprKind::Global(object) => (self.texts.get(object), self.texts.get(name)),
            ExprKind::Member(Expr { kind: ExprKind::Global(namespace), .. }, object) => {
                let namespace = self.texts.get(*namespace);
                if matches!(namespace, b"crypto" | b"Intl") {
                    let path = [namespace, self.texts.get(object)].join(&b'.');
                    let row = refused::static_property_of(&path, self.texts.get(name));
                    row.into_iter().for_each(|row| self.refuse(row.at(span)));
                }
                return;
            }
            _ => return,
        };
        if let Some(row) = refused::static_property_of(object, name) {
            self.refuse(row.at(span));
        } else if object == b"Object" && name == b"create" && !arguments.is_some_and(creates_without_prototype) {
            const CREATE: Refused = Refused {
                name: "Object.create",
                refusal: Refusal::DisallowedProperty,
                hint: "there are no prototypes; use `{...object}`, or `Object.create(null)` for an empty object",
            };
            self.refuse(CREATE.at(span));
        }
    }

    // ---- Constructors --------------------------------------------------------------------------

    /// Resolves the names of a constructor, which must be a built-in one.
    pub(super) fn constructor(&mut self, callee: &Ast<'_>, span: Span) -> &'p [TextId] {
        let refusals = self.refusals.len();
        let value = self.expression(callee);
        let mut names = Vec::new();
        let is_global = dotted(&value, &mut names);
        let names = self.arena.copy(&names);
        if self.refusals.len() > refusals {
            return names;
        }
        let name = self.dotted_name(names);
        if is_global && CONSTRUCTORS.contains(&&*name) {
            return names;
        }
        let (what, hint) = if is_global && (self.options.globals)(&name) {
            (name.clone(), format!("call it without `new`: `{name}(…)`"))
        } else if let E::Name(own) = &callee.kind {
            let hint = format!("call it without `new` and let it return an object: `{own}(…)`");
            (own.to_string(), if is_global { format!("there is no constructor of this name; {hint}") } else { hint })
        } else {
            let hint = "call a function that returns an object";
            ("an expression".to_owned(), hint.to_owned())
        };
        let message = format!("`new` on {what} is not allowed in AgentScript: it works on built-in constructors only");
        self.refuse(Diagnostic::refused(Refusal::DisallowedSyntax, message, span).with_hint(hint));
        names
    }

    fn dotted_name(&self, names: &[TextId]) -> String {
        match names {
            [name] => self.texts.lossy(*name),
            _ => names.iter().map(|&name| self.texts.lossy(name)).collect::<Vec<_>>().join("."),
        }
    }

    // ---- Tools of the host itself ---------------------------------------------------------------

    /// Refuses a call of a tool of the host itself by a constant name; a computed one ends the run.
    pub(super) fn check_own_tool(&mut self, function: TextId, arguments: &[ast::Expr<'_>]) {
        let Some(first) = arguments.first() else { return };
        let texts: Vec<Cow<'_, [u8]>> =
            arguments.iter().map_while(|argument| constant_text(argument)).take(2).collect();
        if texts.is_empty() {
            return;
        }
        let Some(tool) = (self.options.own_tool)(self.name(function), &texts) else { return };
        self.refuse(Diagnostic {
            code: Code::SelfReferenceBlocked,
            refusal: Some(Refusal::IllegalBuiltinAccess),
            message: format!("Tool '{tool}' cannot be called from a script").into(),
            span: first.span,
            hint: Some(refused::OWN_TOOL.into()),
        });
    }

    // ---- Loops ---------------------------------------------------------------------------------

    /// Checks that the policy allows a loop.
    pub(super) fn check_loop(&mut self, form: Loop, span: Span) {
        let hint = match self.options.loops {
            Loops::All => return,
            Loops::Bounded if form.is_bounded() => return,
            Loops::Bounded => "use `for (const item of items)`, a `for` with a test, or array methods such as `map`",
            Loops::None => "use array methods such as `map`, `filter`, `reduce` or `forEach`",
        };
        self.refuse(Diagnostic {
            code: Code::LoopNotAllowed,
            refusal: Some(Refusal::DisallowedSyntax),
            message: format!("{} loops are not allowed by this policy", form.name()).into(),
            span,
            hint: Some(hint.into()),
        });
    }
}

/// Collects the names of `a.b.c`; returns whether `a` is a free name.
fn dotted(value: &Expr<'_>, names: &mut Vec<TextId>) -> bool {
    match &value.kind {
        ExprKind::Global(name) => {
            names.push(*name);
            true
        }
        ExprKind::Member(object, name) if dotted(object, names) => {
            names.push(*name);
            true
        }
        _ => false,
    }
}

/// `Object.create(null)`
fn creates_without_prototype(arguments: &[ast::Expr<'_>]) -> bool {
    let Some(mut first) = arguments.first() else { return false };
    while let E::Paren(inner) = &first.kind {
        first = inner;
    }
    arguments.len() == 1 && matches!(first.kind, E::Null)
}

/// Returns the text of an expression of string literals only.
fn constant_text<'e>(e: &'e Ast<'_>) -> Option<Cow<'e, [u8]>> {
    match &e.kind {
        E::String(text) => Some(Cow::Borrowed(text)),
        E::Template(texts, []) => texts.first().map(|text| Cow::Borrowed(&**text)),
        E::Paren(inner) => constant_text(inner),
        E::Binary(Binary::Add, left, right) => {
            let mut text = constant_text(left)?.into_owned();
            text.extend_from_slice(&constant_text(right)?);
            Some(Cow::Owned(text))
        }
        E::Chain(first, rest) => {
            let mut text = constant_text(first)?.into_owned();
            for (operator, operand) in *rest {
                if *operator != Binary::Add {
                    return None;
                }
                text.extend_from_slice(&constant_text(operand)?);
            }
            Some(Cow::Owned(text))
        }
        _ => None,
    }
}

//! Hints for what a script writes with classes, receivers and accessors: the rewriting of the very code at hand.
//!
//! A hint is read by people and models. It is found by looking at the text behind the place of a refusal, which need
//! not be complete. Where nothing better is found, the hint of the table stays.

use crate::diagnostic::{Diagnostic, Refusal};
use crate::token::{Token, template_text};
use logos::Logos;

/// Most members of a class that a hint shows.
const MAX_MEMBERS: usize = 4;

/// Longest text that is copied into a hint, in bytes.
const MAX_TEXT: usize = 60;

/// Most tokens that are read for a hint.
const MAX_TOKENS: usize = 4000;

/// Returns the rewriting for the code that a diagnostic refuses, if there is one.
pub(crate) fn rewriting(diagnostic: &Diagnostic, source: &str) -> Option<String> {
    let refusal = diagnostic.refusal?;
    let refused = diagnostic.span.text(source);
    let rest = source.get(diagnostic.span.end as usize..)?;
    match (refusal, refused) {
        (Refusal::DisallowedSyntax, "class") => class(rest),
        (Refusal::DisallowedSyntax, "get" | "set") => accessor(refused, rest),
        (Refusal::DisallowedProperty, "prototype") => prototype(source.get(..diagnostic.span.start as usize)?, rest),
        (Refusal::DisallowedGlobal, "Proxy") => proxy(rest),
        // A function of the script.
        (Refusal::DisallowedSyntax, text)
            if diagnostic.hint.as_ref().is_some_and(|hint| hint.starts_with("call it without `new` and let it")) =>
        {
            construction(text)
        }
        _ => None,
    }
}

/// The tokens of a text, as far as they are tokens; a template is one of them.
struct Reader<'s> {
    raw: logos::Lexer<'s, Token>,
    left: usize,
}

impl<'s> Reader<'s> {
    fn new(text: &'s str) -> Self {
        Self { raw: Token::lexer(text), left: MAX_TOKENS }
    }

    /// Returns the next token with its text.
    fn next(&mut self) -> Option<(Token, &'s str)> {
        self.left = self.left.checked_sub(1)?;
        let token = self.raw.next()?.ok()?;
        let text = self.raw.slice();
        if token == Token::Backtick {
            self.template()?;
        }
        Some((token, text))
    }

    /// Skips the rest of a template.
    fn template(&mut self) -> Option<()> {
        loop {
            let (length, hole) = template_text(self.raw.remainder())?;
            self.raw.bump(length);
            if !hole {
                return Some(());
            }
            self.balanced()?;
        }
    }

    /// Skips up to and including the bracket that closes an open one; returns what is inside.
    fn balanced(&mut self) -> Option<&'s str> {
        let (source, start) = (self.raw.source(), self.raw.span().end);
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()?.0 {
                Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
                Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
                _ => {}
            }
        }
        source.get(start..self.raw.span().start)
    }
}

/// Returns a text on one line, if it is short.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > MAX_TEXT { "…".into() } else { line }
}

/// Returns the parameters of a function without TypeScript's modifiers and types, if they are simple.
fn parameters(text: &str) -> String {
    let (mut depth, mut start) = (0_usize, 0);
    let mut names: Vec<&str> = Vec::new();
    for (at, letter) in text.char_indices().chain([(text.len(), ',')]) {
        match letter {
            '{' | '[' | '(' => return short(text),
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let part = text.get(start..at).unwrap_or("");
                let name = part.split([':', '=']).next().unwrap_or("").trim();
                names.push(name.rsplit(' ').next().unwrap_or("").trim_end_matches('?'));
                start = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    short(&names.join(", "))
}

/// Returns a name with its first letter as a capital.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `class Name { … }`, whose `class` has been read: a function named after it.
fn class(rest: &str) -> Option<String> {
    let mut reader = Reader::new(rest);
    let mut name = None;
    let mut base = None;
    loop {
        match reader.next()? {
            (Token::LBrace, _) => break,
            (Token::Ident, word) if name.is_none() && base.is_none() => name = Some(word),
            (Token::Extends, _) => base = Some(""),
            (Token::Ident, word) if base == Some("") => base = Some(word),
            _ => {}
        }
    }
    let (constructor, members) = members(&mut reader).unwrap_or_default();
    let name = name.unwrap_or("Thing");
    let make = format!("make{}", capital(name));
    let mut parts: Vec<String> =
        base.filter(|base| !base.is_empty()).map(|base| format!("...make{}(…)", capital(base))).into_iter().collect();
    parts.extend(members);
    let object = if parts.is_empty() { "{ … }".into() } else { format!("{{ {} }}", parts.join(", ")) };
    let state = "its fields become variables of the function";
    Some(format!(
        "write a function that returns an object: `function {make}({constructor}) {{ return {object}; }}`; {state}, and `{make}(…)` takes the place of `new {name}(…)`"
    ))
}

/// Returns the parameters of the constructor of a class, and its methods.
fn members(reader: &mut Reader<'_>) -> Option<(String, Vec<String>)> {
    let mut constructor = String::new();
    let mut members: Vec<String> = Vec::new();
    let (mut prefix, mut key) = (String::new(), None);
    loop {
        let (token, text) = reader.next()?;
        match token {
            Token::RBrace => break,
            Token::AsyncWord => prefix = "async ".into(),
            Token::Star => prefix.push('*'),
            Token::LParen if key.is_some() => {
                let inside = parameters(reader.balanced()?);
                // The body, behind a type if there is one.
                while reader.next()?.0 != Token::LBrace {}
                reader.balanced()?;
                match key.take() {
                    Some("constructor") => constructor = inside,
                    Some(name) if members.len() < MAX_MEMBERS => {
                        members.push(format!("{prefix}{name}({inside}) {{ … }}"))
                    }
                    Some(_) if members.len() == MAX_MEMBERS => members.push("…".into()),
                    _ => {}
                }
                prefix.clear();
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                reader.balanced()?;
            }
            Token::Ident => key = Some(text),
            Token::Reserved if text.starts_with('#') => key = Some(text.trim_start_matches('#')),
            Token::Semicolon => key = None,
            // The value of a field.
            Token::Assign => key = None,
            _ if text.starts_with(|c: char| c.is_alphabetic()) && !token.is_reserved() => key = Some(text),
            _ => {}
        }
    }
    Some((constructor, members))
}

/// `get name() { … }` or `set name(value) { … }`, whose first word has been read: a method.
fn accessor(word: &str, rest: &str) -> Option<String> {
    let mut reader = Reader::new(rest);
    let (token, text) = reader.next()?;
    let key = match token {
        Token::LBracket => format!("[{}]", short(reader.balanced()?)),
        _ => text.to_owned(),
    };
    if reader.next()?.0 != Token::LParen {
        return None;
    }
    let inside = parameters(reader.balanced()?);
    let is_name = key.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    Some(match word {
        "get" if is_name => {
            format!(
                "write a method, `{key}() {{ … }}`, and call it: `object.{key}()`; or compute the value beforehand: `{key}: …`"
            )
        }
        "get" => format!("write a method, `{key}() {{ … }}`, and call it; or compute the value beforehand"),
        _ if is_name => {
            let name = capital(&key);
            format!("write a method, `set{name}({inside}) {{ … }}`, and call it: `object.set{name}(…)`")
        }
        _ => format!("write a method, `set({inside}) {{ … }}`, or assign the property"),
    })
}

/// `Name.prototype.method = function …`: the method belongs into the object that the function returns.
fn prototype(before: &str, rest: &str) -> Option<String> {
    let owner = before.strip_suffix('.')?;
    let start = owner
        .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')))
        .map_or(0, |at| at + owner.get(at..).and_then(|text| text.chars().next()).map_or(1, char::len_utf8));
    let owner = owner.get(start..).filter(|owner| !owner.is_empty())?;
    let mut reader = Reader::new(rest);
    if reader.next()?.0 != Token::Dot {
        return None;
    }
    let (_, method) = reader.next()?;
    if matches!(owner, "Array" | "Object" | "String" | "Map" | "Set" | "Function" | "Promise" | "Number") {
        return Some(match reader.next().map(|(token, _)| token) {
            Some(Token::Assign) => format!("write a function: `const {method} = (value) => …`"),
            _ => format!("call the method on the value: `value.{method}(…)`"),
        });
    }
    Some(format!("put the method into the object that `{owner}` returns: `return {{ {method}() {{ … }} }};`"))
}

/// `new Proxy(target, …)`, whose `Proxy` has been read.
fn proxy(rest: &str) -> Option<String> {
    let mut reader = Reader::new(rest);
    if reader.next()?.0 != Token::LParen {
        return None;
    }
    match (reader.next()?, reader.next()?.0) {
        ((Token::Ident, target), Token::Comma) => Some(format!(
            "write a function that computes the value: `const read = (name) => {target}[name] ?? …`, and call `read('name')`"
        )),
        _ => None,
    }
}

/// `new name(arguments)` of a function of the script.
fn construction(text: &str) -> Option<String> {
    let mut reader = Reader::new(text);
    let ((Token::New, _), (Token::Ident, name)) = (reader.next()?, reader.next()?) else { return None };
    let call = match reader.next().map(|(token, _)| token) {
        None => format!("{name}()"),
        Some(Token::LParen) => format!("{name}({})", short(reader.balanced()?)),
        Some(_) => return None,
    };
    Some(format!(
        "call it without `new` and let it return an object: `{call}`, where `{name}` ends in `return {{ … }}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    fn hint(source: &str, word: &str, refusal: Refusal) -> Option<String> {
        let start = source.find(word).expect("it is there");
        let span = Span::from(start..start + word.len());
        rewriting(&Diagnostic::refused(refusal, "refused", span), source)
    }

    #[test]
    fn a_class_becomes_a_function_named_after_it() {
        let hint = |source: &str| hint(source, "class", Refusal::DisallowedSyntax).unwrap_or_default();
        let counter = hint(
            "class Counter { #n = 0; constructor(start) { this.n = `${start}}`; } increment(by = 1) { this.n += by; } async *all() {} }",
        );
        assert!(
            counter.contains("function makeCounter(start) { return { increment(by) { … }, async *all() { … } }; }"),
            "{counter}"
        );
        assert!(counter.contains("`makeCounter(…)` takes the place of `new Counter(…)`"), "{counter}");
        let child = hint("class B extends A { static x = { a: 1 }; greet() { return 1 } }");
        assert!(child.contains("function makeB() { return { ...makeA(…), greet() { … } }; }"), "{child}");
        assert!(hint("class Broken {").contains("function makeBroken() { return { … }; }"));
        assert!(hint("const T = class { m() {} }").contains("makeThing"));
        assert!(hint("class Typed { constructor(private a: string, b?: number) {} get(x: Map<string, number>): string { return ''; } }")
            .contains("makeTyped(a, b) { return { get(x) { … } }; }"));
    }

    #[test]
    fn an_accessor_becomes_a_method() {
        let hint = |source: &str, word| hint(source, word, Refusal::DisallowedSyntax).unwrap_or_default();
        assert!(
            hint("({ get total() { return 1 } })", "get").contains("`total() { … }`, and call it: `object.total()`")
        );
        assert!(hint("({ set total(value) { } })", "set").contains("`setTotal(value) { … }`"));
        assert!(hint("({ get ['a' + b]() { return 1 } })", "get").contains("`['a' + b]() { … }`"));
    }

    #[test]
    fn a_prototype_becomes_an_object() {
        let hint = |source: &str| hint(source, "prototype", Refusal::DisallowedProperty).unwrap_or_default();
        assert!(
            hint("Counter.prototype.inc = function () {}")
                .contains("object that `Counter` returns: `return { inc() { … } };`")
        );
        assert!(hint("Array.prototype.slice.call(x)").contains("`value.slice(…)`"));
        assert!(hint("String.prototype.twice = 1").contains("`const twice = (value) => …`"));
        assert_eq!(hint("x['prototype']"), "");
    }

    #[test]
    fn a_proxy_becomes_a_function() {
        let proxy = hint("new Proxy(user, { get() {} })", "Proxy", Refusal::DisallowedGlobal).unwrap_or_default();
        assert!(proxy.contains("`const read = (name) => user[name] ?? …`"), "{proxy}");
    }
}

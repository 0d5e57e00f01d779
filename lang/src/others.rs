//! The other refusals of a script that does not parse because of one.
//!
//! The parser stops at the first construct that AgentScript does not have. A reader who repairs a script wants to know
//! all of them. So the rest is looked for in its tokens, without a syntax tree. Where tokens do not tell whether
//! something is
//! refused, such as a name that may be a variable of the script, it is left out. It is reported once the script parses.

use crate::diagnostic::Diagnostic;
use crate::options::Options;
use crate::refused;
use crate::span::Span;
use crate::token::{Token, regex_text, template_text};
use hashbrown::HashSet;
use logos::{Lexer, Logos};

/// Most refusals that are reported.
const MAX_DIAGNOSTICS: usize = 50;

/// Returns the refusal with which a parse ended and the others of the code, in the order of the source. An error that is no
/// refusal stands alone.
pub(crate) fn refusals(first: Diagnostic, source: &str, code: Span, options: &Options<'_>) -> Vec<Diagnostic> {
    if first.refusal.is_none() {
        return vec![first];
    }
    let tokens = tokens(code.text(source), code.start);
    let mut scan = Scan { source, tokens: &tokens, options, declared: HashSet::new(), found: vec![first] };
    scan.declarations();
    scan.run();
    let mut found = scan.found;
    found.sort_by_key(|diagnostic| diagnostic.span.start);
    found
}

/// Returns the tokens of a text up to the first that is none, without the text of templates and regular expressions.
fn tokens(text: &str, start: u32) -> Vec<(Token, Span)> {
    let mut raw = Token::lexer(text);
    let mut tokens: Vec<(Token, Span)> = Vec::new();
    // For each `${` that is open, how many braces are open in it.
    let mut holes: Vec<u32> = Vec::new();
    while let Some(token) = raw.next() {
        let Ok(mut token) = token else { break };
        let span = Span::from(raw.span());
        match (token, holes.last_mut()) {
            (Token::Backtick, _) => match skip_template(&mut raw) {
                Some(true) => holes.push(0),
                Some(false) => token = Token::Template,
                None => break,
            },
            (Token::LBrace, Some(open)) => *open += 1,
            (Token::RBrace, Some(0)) => match skip_template(&mut raw) {
                Some(true) => {}
                Some(false) => {
                    holes.pop();
                    token = Token::Template;
                }
                None => break,
            },
            (Token::RBrace, Some(open)) => *open -= 1,
            (Token::Slash | Token::SlashAssign, _) if !ends_operand(tokens.last().map(|(last, _)| *last)) => {
                let from = raw.span().start + 1;
                let Some(length) = regex_text(text.get(from..).unwrap_or_default()) else { break };
                raw.bump((from + length).saturating_sub(raw.span().end));
                token = Token::Regex;
            }
            _ => {}
        }
        tokens.push((token, Span::new(start + span.start, start + span.end)));
    }
    tokens
}

/// Skips the text of a template; true where a hole begins, false at its end.
fn skip_template(raw: &mut Lexer<'_, Token>) -> Option<bool> {
    let (length, hole) = template_text(raw.remainder())?;
    raw.bump(length);
    Some(hole)
}

/// Whether a slash behind a token divides.
fn ends_operand(token: Option<Token>) -> bool {
    use Token as T;
    let is_operand = |token: Token| {
        token.is_contextual()
            || matches!(
                token,
                T::Ident | T::Number | T::BigInt | T::String | T::Template | T::Regex | T::This | T::Super | T::RParen
            )
            || matches!(token, T::RBracket | T::True | T::False | T::Null)
    };
    token.is_some_and(is_operand)
}

struct Scan<'t, 's> {
    source: &'s str,
    tokens: &'t [(Token, Span)],
    options: &'t Options<'t>,
    /// Names that may be variables of the script.
    declared: HashSet<&'s str>,
    found: Vec<Diagnostic>,
}

impl<'s> Scan<'_, 's> {
    fn at(&self, index: Option<usize>) -> Option<Token> {
        self.tokens.get(index?).map(|(token, _)| *token)
    }

    fn before(&self, index: usize) -> Option<Token> {
        self.at(index.checked_sub(1))
    }

    fn after(&self, index: usize) -> Option<Token> {
        self.at(Some(index + 1))
    }

    fn text(&self, index: usize) -> &'s str {
        self.tokens.get(index).map_or("", |(_, span)| span.text(self.source))
    }

    /// Collects the names that stand where a declaration, a pattern or a parameter may stand.
    fn declarations(&mut self) {
        use Token as T;
        for (index, (token, span)) in self.tokens.iter().enumerate() {
            if *token != T::Ident {
                continue;
            }
            let (before, after) = (self.before(index), self.after(index));
            let is_declared = after == Some(T::Arrow)
                || matches!(before, Some(T::Const | T::Let | T::Var | T::Function | T::Star | T::Class))
                || matches!(
                    (before, after),
                    (
                        Some(T::LBrace | T::LBracket | T::LParen | T::Comma | T::Colon | T::Ellipsis),
                        Some(T::Comma | T::RBrace | T::RBracket | T::RParen | T::Assign),
                    )
                );
            if is_declared {
                self.declared.insert(span.text(self.source));
            }
        }
    }

    fn run(&mut self) {
        use Token as T;
        // How many braces are open in the body of the outermost class; absent outside.
        let mut class: Option<usize> = None;
        let mut is_head = false;
        for (index, &(token, span)) in self.tokens.iter().enumerate() {
            if self.found.len() >= MAX_DIAGNOSTICS {
                return;
            }
            match (token, &mut class) {
                (T::LBrace, None) if is_head => (class, is_head) = (Some(1), false),
                (T::LBrace, Some(open)) => *open += 1,
                (T::RBrace, Some(1)) => class = None,
                (T::RBrace, Some(open)) => *open -= 1,
                _ => {}
            }
            if matches!(self.before(index), Some(T::Dot | T::QuestionDot)) {
                self.property(index, token, span, class.is_some());
                continue;
            }
            match token {
                word if word.is_reserved() && !self.is_key(index) => {
                    is_head |= word == T::Class && class.is_none();
                    self.word(index, span, class.is_some());
                }
                T::Ident if class.is_none() && self.is_accessor(index) => {
                    let row = refused::syntax(if self.text(index) == "get" { "getter" } else { "setter" });
                    self.add(row.map(|row| row.at(span)));
                }
                T::Ident if !self.is_key(index) => self.name(index, span),
                T::Dot if self.before(index) == Some(T::New) => {
                    self.add(refused::syntax("new.target").map(|row| row.at(span)));
                }
                _ => {}
            }
        }
    }

    /// Whether the word at an index may be the key of an object, or the name of a method.
    fn is_key(&self, index: usize) -> bool {
        use Token as T;
        matches!(self.before(index), Some(T::LBrace | T::Comma))
            && matches!(self.after(index), Some(T::Colon | T::LParen | T::Comma | T::RBrace))
    }

    fn is_accessor(&self, index: usize) -> bool {
        use Token as T;
        matches!(self.text(index), "get" | "set")
            && matches!(self.before(index), Some(T::LBrace | T::Comma))
            && self.after(index).is_some_and(|token| matches!(token, T::Ident | T::String) || token.is_contextual())
            && self.at(Some(index + 2)) == Some(T::LParen)
    }

    fn word(&mut self, index: usize, span: Span, in_class: bool) {
        use Token as T;
        let word = self.text(index);
        let row = match word {
            // Whoever writes the class as a function writes these in another way.
            "this" | "super" if in_class => None,
            "this" | "super" => refused::name(word),
            // Some forms are accepted.
            "export" => None,
            "import" if matches!(self.after(index), Some(T::Type)) => None,
            "with" if self.after(index) != Some(T::LParen) => None,
            "@" => refused::syntax("decorator").filter(|_| !in_class),
            _ if word.starts_with('#') => refused::syntax("private name").filter(|_| !in_class),
            _ => refused::syntax(word),
        };
        self.add(row.map(|row| row.at(span)));
    }

    fn name(&mut self, index: usize, span: Span) {
        use Token as T;
        let name = self.text(index);
        let is_member = matches!(self.after(index), Some(T::Dot | T::QuestionDot | T::LBracket));
        if self.declared.contains(name) && !refused::is_refused_everywhere(name) {
            return;
        }
        match refused::name(name) {
            Some(_) if is_member && (self.options.apps)(name) => {}
            Some(_) if name == "Symbol" && is_member => {}
            Some(_) if (self.options.provided)(name) => {}
            Some(row) => self.add(Some(row.at(span))),
            None => {
                let off = self.options.disabled.iter().find(|(disabled, _)| disabled == name);
                self.add(off.map(|(_, refusal)| refused::disabled(name, *refusal, span)));
            }
        }
    }

    /// `object.name`
    fn property(&mut self, index: usize, token: Token, span: Span, in_class: bool) {
        if token != Token::Ident {
            return;
        }
        let name = self.text(index);
        let object = match index.checked_sub(2) {
            Some(at) if self.at(Some(at)) == Some(Token::Ident) && !self.declared.contains(self.text(at)) => {
                refused::static_property(self.text(at), name)
            }
            _ => None,
        };
        let owner = self.tokens.get(index.saturating_sub(2)).map_or(span, |(_, owner)| *owner);
        match object {
            Some(row) => self.add(Some(row.at(owner.to(span)))),
            // A class has these by itself.
            None if !in_class => self.add(refused::property(name).map(|row| row.at(span))),
            None => {}
        }
    }

    fn add(&mut self, diagnostic: Option<Diagnostic>) {
        self.found.extend(diagnostic.filter(|new| self.found[0].span.start != new.span.start));
    }
}

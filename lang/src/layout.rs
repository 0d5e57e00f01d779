//! The adaptor between the lexer and the grammar: everything about JavaScript that is not LR(1).
//!
//! One pass from left to right, without lookahead and without a symbol table. The state is the
//! stack of open brackets and the [`Position`] after the last token; both together answer every
//! context question the language asks:
//!
//! | question                             | answered by                                          |
//! |--------------------------------------|------------------------------------------------------|
//! | `/`: division or regex?              | division exactly if an operand just ended            |
//! | `{`: block or object?                | object exactly if an operand is expected             |
//! | `(`: group or arrow parameters?      | `=>` re-labels the parenthesis it finds behind it    |
//! | `(`: a call or arguments of `new`?   | the innermost `new` that has no arguments yet        |
//! | `function`: declaration or operand?  | declaration exactly at the start of a statement      |
//! | `in`: operator or loop?              | loop exactly in a `for` head before `;`, `of`, `in`  |
//! | `}` in a template: text or bracket?  | the bracket on top of the stack                      |
//! | newline: does a statement end?       | an operand ended and the next token cannot go on     |
//! | `yield`: has it an operand?          | unless the next token or a line break ends it        |
//! | `:`: what does it belong to?         | an open `?`, key, `case` or label, otherwise a type  |
//!
//! The last row is how TypeScript annotations are erased: a colon that belongs to nothing else begins a type,
//! and [`erase`](crate::erase) skips it. In JavaScript it goes to the grammar, which refuses it.

mod bindings;
mod brackets;
mod functions;
mod scan;
mod types;
mod words;

use crate::diagnostic::{Diagnostic, Result};
use crate::erase::Eraser;
use crate::options::Language;
use crate::span::Span;
use crate::token::{Token, Trivia};
use logos::Logos;
use types::{Doubtful, Generic, Types};

pub(crate) type Spanned = (u32, Token, u32);

/// Returns the tokens of the part of `text` that is code as the grammar expects them.
pub(crate) fn tokens(text: &str, code: Span, language: Language) -> Result<Vec<Spanned>> {
    let layout = laid_out(text, code, language)?;
    if layout.has_trivia || !layout.parentheses.is_empty() {
        return Ok(with_parentheses(layout.out, layout.parentheses));
    }
    Ok(layout.out)
}

/// Returns the declarations of types at the top level of a source in TypeScript: interfaces, aliases, also with `export` or
/// `declare` before them, and others that the layout erases.
///
/// # Errors
/// A token or a bracket is wrong.
pub fn type_declarations(source: &str) -> std::result::Result<Vec<Span>, Diagnostic> {
    let layout = laid_out(source, Span::from(0..source.len()), Language::TypeScript).map_err(|error| *error)?;
    Ok(layout.type_declarations)
}

fn laid_out(text: &str, code: Span, language: Language) -> Result<Layout<'_>> {
    let source = text.get(..code.end as usize).unwrap_or(text);
    let mut raw = Token::lexer(source);
    raw.bump(code.start as usize);
    let rest = raw.remainder();
    let line = rest.strip_prefix('\u{feff}').unwrap_or(rest);
    if line.starts_with("#!") {
        let end = line.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(line.len());
        raw.bump(rest.len() - line.len() + end);
    }
    let mut layout = Layout {
        source,
        typescript: language == Language::TypeScript,
        raw,
        // As many as a usual source has; one of brackets alone has more.
        out: Vec::with_capacity(source.len() * 2 / 5 + 8),
        // A short source often needs none.
        frames: Vec::with_capacity(if source.len() > 64 { 8 } else { 0 }),
        frame: Frame::new(Kind::Block, 0),
        position: Position::Start,
        head: None,
        closed: 0,
        ended: Ended::Operand,
        annotation: None,
        generic: Generic::None,
        opening: Generic::None,
        eraser: Eraser::new(source),
        parentheses: Vec::new(),
        doubtful: Vec::new(),
        has_trivia: false,
        type_declarations: Vec::new(),
    };
    layout.run()?;
    Ok(layout)
}

/// Returns the tokens with a `(` of no width before those at these indices, and without those that are trivia.
fn with_parentheses(tokens: Vec<Spanned>, mut indices: Vec<usize>) -> Vec<Spanned> {
    indices.sort_unstable();
    let mut indices = indices.into_iter().peekable();
    let mut out = Vec::with_capacity(tokens.len() + indices.len());
    for (index, (start, token, end)) in tokens.into_iter().enumerate() {
        while indices.next_if_eq(&index).is_some() {
            out.push((start, Token::LParen, start));
        }
        if token != Token::Trivia {
            out.push((start, token, end));
        }
    }
    out
}

/// The part of the grammar that may come next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Position {
    /// A statement.
    Start,
    /// An operand or a prefix operator.
    Operand,
    /// The name of a property, behind `.` and `?.`; where none comes, it is as [`Self::Operand`].
    Name,
    /// The rest of a statement that a line break ends at once: `return`, `throw`, `break`, `continue`.
    Restricted,
    /// An operator or the end of the statement: an operand just ended.
    After,
    /// The end of a `do` loop, whose semicolon may be missing anywhere.
    DoWhile,
    /// The body of a function declaration or of `switch`: a block that ends its statement.
    Body,
    /// The body of a function expression: a block that ends an operand.
    ExprBody,
}

/// The operand that just ended, as far as the end of its statement depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ended {
    Operand,
    /// `x++`: a bracket on the next line does not go on.
    Closed,
    /// `!` or type arguments were erased behind it: it is no name any more.
    Asserted,
    /// It is an assertion of a type: no bracket goes on with it.
    Cast,
    /// The type of a variable was erased behind it.
    Annotated,
    /// It was an arrow function with a block, or a `yield` without an operand: no operator can follow.
    Whole,
}

/// The innermost open bracket.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    /// Index of the opening token in the output.
    open: usize,
    /// Index in the output of the first token of the current statement.
    statement: usize,
    /// How many `?` have no `:` yet.
    ternaries: u32,
    /// How many `new` have no arguments yet.
    news: u32,
    /// Whether the `:` of the current object key or `case` has been seen or is not due.
    keyed: bool,
    /// Whether `in` is an operator in this `for` head: after its `;`, `of` or `in`.
    headed: bool,
    /// How many `do` have no `while` yet.
    loops: u32,
    types: Types,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// `{` statements `}`
    Block,
    /// `{` statements `}` of a function expression
    ExprBody,
    Object,
    /// `(`, with the position after the closing `)`
    Paren(Position),
    /// `(` of `for`
    ForHead,
    Bracket,
    /// `${`
    Hole,
}

impl Frame {
    fn new(kind: Kind, open: usize) -> Self {
        Self {
            kind,
            open,
            statement: 0,
            ternaries: 0,
            news: 0,
            keyed: kind != Kind::Object,
            headed: false,
            loops: 0,
            types: Types::default(),
        }
    }

    fn holds_statements(&self) -> bool {
        matches!(self.kind, Kind::Block | Kind::ExprBody)
    }
}

struct Layout<'s> {
    source: &'s str,
    typescript: bool,
    raw: logos::Lexer<'s, Token>,
    out: Vec<Spanned>,
    frames: Vec<Frame>,
    frame: Frame,
    position: Position,
    /// The keyword whose parenthesised head comes next.
    head: Option<Token>,
    /// Index in the output of the bracket that was closed last.
    closed: usize,
    ended: Ended,
    /// A type that was erased in the parentheses just closed: an error unless `=>` follows.
    annotation: Option<Span>,
    /// The kind of token before the parentheses just closed.
    generic: Generic,
    /// The kind of token before the parenthesis that comes next.
    opening: Generic,
    eraser: Eraser<'s>,
    /// Before which tokens of the output a `(` of no width belongs.
    parentheses: Vec<usize>,
    doubtful: Vec<Doubtful>,
    /// Whether tokens of the output became none.
    has_trivia: bool,
    /// The declarations of types at the top level.
    type_declarations: Vec<Span>,
}

impl<'s> Layout<'s> {
    fn run(&mut self) -> Result<()> {
        while let Some(token) = self.raw.next() {
            let span = self.raw.span().into();
            let Trivia { newline } = std::mem::take(&mut self.raw.extras);
            let Ok(token) = token else { return Err(Box::new(self.unknown(span))) };
            self.token(token, span, newline)?;
        }
        if self.is_typescript() {
            self.settle(Token::Semicolon, Span::default(), true)?;
        }
        if !self.frames.is_empty() {
            let (start, _, end) = self.out[self.frame.open];
            return Err(Box::new(Diagnostic::syntax("this bracket is never closed", start..end)));
        }
        if self.position == Position::After {
            self.finish_new();
        }
        let end = u32::try_from(self.source.len()).unwrap_or(u32::MAX);
        if matches!(self.position, Position::After | Position::Restricted | Position::DoWhile) {
            self.out.push((end, Token::Semicolon, end));
        }
        Ok(())
    }

    fn token(&mut self, mut token: Token, span: Span, newline: bool) -> Result<()> {
        use Position::*;
        use Token as T;

        if !self.is_plain(token, newline) {
            match self.in_context(token, span, newline)? {
                Some(left) => token = left,
                None => return Ok(()),
            }
        }
        match token {
            T::Ident if self.position != Start => self.operand(token, span),
            T::OfWord if self.frame.kind == Kind::ForHead && self.position == After && !self.frame.headed => {
                // `for (async of` would begin an arrow function, and does where `=>` follows.
                let before = self.out.len().checked_sub(3).map(|index| self.out[index].1);
                if self.is_word_before("async") && before == Some(T::For) {
                    if self.raw.clone().next() != Some(Ok(T::Arrow)) {
                        return Err(Box::new(words::reserved("async", span)));
                    }
                    self.operand(T::Ident, span);
                } else {
                    self.frame.headed = true;
                    self.emit(T::Of, span);
                    self.position = Operand;
                }
            }
            T::Interface => return Err(Box::new(words::reserved("interface", span))),
            T::This | T::Super => self.operand(T::Ident, span),
            T::Export if self.position == Start && self.frames.is_empty() => self.export(span)?,
            T::Ident if words::is_declaration(self.slice(span), &self.raw) => {
                return Err(Box::new(words::refuse(self.slice(span), span)));
            }
            token if token.is_contextual() => self.operand(T::Ident, span),
            token if token.is_reserved() => return Err(Box::new(words::refuse(self.slice(span), span))),
            T::In
                if self.frame.kind == Kind::ForHead
                    && self.position == After
                    && !self.frame.headed
                    && self.frame.ternaries == 0 =>
            {
                self.frame.headed = true;
                self.emit(T::ForIn, span);
                self.position = Operand;
            }

            T::Slash | T::SlashAssign if self.position != After => self.regex(span)?,
            T::SlashAssign => {
                self.emit(T::CompoundAssign, span);
                self.position = Operand;
            }
            T::Less if self.raw.remainder().starts_with("!--") => {
                return Err(Box::new(
                    Diagnostic::syntax("HTML comments are not supported", span).with_hint("write `// …`"),
                ));
            }
            T::QuestionDot if self.raw.remainder().starts_with(|c: char| c.is_ascii_digit()) => {
                self.rewind(span.start + 1);
                self.question(Span::new(span.start, span.start + 1));
            }
            T::Question => self.question(span),
            T::Colon => self.colon(span)?,
            T::Arrow => self.arrow(span, newline)?,
            T::Number | T::BigInt => {
                self.number_end(span)?;
                self.operand(token, span);
            }

            T::LParen => self.open_paren(span)?,
            T::LBracket => self.open(T::LBracket, Kind::Bracket, Operand, span)?,
            T::LBrace => self.open_brace(span)?,
            T::RParen => self.close_paren(span)?,
            T::RBracket => self.close(T::RBracket, After, span)?,
            T::RBrace => self.close_brace(span)?,
            T::Backtick => self.template(span.start + 1, true, span)?,

            T::Dot if self.last() == Some(T::New) => return Err(Box::new(words::refuse("new.target", span))),
            T::Star if self.generates() => self.generator(span),
            T::Yield => self.yielding(span)?,
            T::Comma => {
                self.frame.keyed &= self.frame.kind != Kind::Object;
                self.emit(token, span);
                self.position = Operand;
            }
            T::Ellipsis | T::Assign => {
                self.frame.keyed |= self.frame.kind == Kind::Object;
                self.emit(token, span);
                self.position = Operand;
            }
            T::Increment | T::Decrement => {
                self.emit(token, span);
                match self.position {
                    After => self.ended = Ended::Closed,
                    _ => self.position = Operand,
                }
            }
            T::Semicolon => {
                self.emit(token, span);
                self.frame.headed = true;
                self.position = if self.frame.holds_statements() { Start } else { Operand };
            }
            T::Function => self.function(span, newline),
            T::New => {
                self.emit(token, span);
                self.frame.news += 1;
                self.position = Operand;
            }
            T::While if self.frame.loops > 0 && matches!(self.last(), Some(T::Semicolon | T::RBrace)) => {
                self.frame.loops -= 1;
                self.emit(token, span);
                self.head = Some(T::Do);
                self.position = Operand;
            }
            T::If | T::For | T::While | T::Switch | T::Catch => {
                self.emit(token, span);
                self.head = Some(token);
                self.position = if token == T::Catch { Start } else { Operand };
            }
            T::Case | T::Default => {
                self.frame.keyed = false;
                self.emit(token, span);
                self.position = Operand;
            }
            T::Else | T::Do | T::Try | T::Finally => {
                self.frame.loops += u32::from(token == T::Do);
                self.emit(token, span);
                self.position = Start;
            }
            T::Return | T::Throw | T::Break | T::Continue => {
                self.emit(token, span);
                self.position = Restricted;
            }
            T::Dot | T::QuestionDot => {
                self.emit(token, span);
                self.position = Name;
            }
            token if token.is_operand() => self.operand(token, span),
            token => {
                self.emit(token, span);
                self.position = Operand;
            }
        }
        Ok(())
    }

    /// Whether a token is only what it is: no rule of [`Self::in_context`] can apply to it.
    fn is_plain(&self, token: Token, newline: bool) -> bool {
        let follows = match self.position {
            Position::Name => token == Token::Ident,
            Position::DoWhile => false,
            // A line break may end a statement here.
            Position::After | Position::Restricted if newline => false,
            _ => !matches!(token, Token::RBrace | Token::EscapedIdent),
        };
        // Only types have annotations.
        follows && !self.is_typescript() && self.frame.news == 0 && !self.key_due()
    }

    /// Reads a token as the tokens before it, or a line break, make it: a name, the end of a statement, a type.
    /// Nothing where that is all.
    fn in_context(&mut self, mut token: Token, span: Span, newline: bool) -> Result<Option<Token>> {
        use Token as T;
        if token == T::EscapedIdent {
            token = self.unescaped(self.slice(span), span)?;
        }
        self.modifier(token, span, newline)?;
        if let Some(name) = self.property_name(token, span) {
            self.operand(name, span);
            return Ok(None);
        }
        if self.is_typescript() && self.erased(token, span, newline)? {
            return Ok(None);
        }
        if self.frame.news > 0 && self.position == Position::After && !token.continues_callee() {
            self.finish_new();
        }
        self.end_statement(token, span, newline);
        if self.is_typescript() {
            self.note(token);
        }
        Ok(Some(token))
    }

    /// Whether types are erased. Without the feature this is a constant, and the code that erases them is left out.
    fn is_typescript(&self) -> bool {
        cfg!(feature = "typescript") && self.typescript
    }

    /// Whether a statement begins here, also where a line break ends the one before.
    fn at_start(&self, newline: bool) -> bool {
        match self.position {
            Position::Start => true,
            Position::DoWhile => true,
            Position::After | Position::Restricted => newline && self.frame.holds_statements(),
            _ => false,
        }
    }

    /// Inserts the semicolon that a line break, `}` or the end of the source stands for.
    fn end_statement(&mut self, next: Token, span: Span, newline: bool) {
        use Token as T;
        let ends = match self.position {
            Position::After if next == T::RBrace => true,
            Position::After if newline => match self.ended {
                Ended::Operand if self.ends_binding() => {
                    !matches!(next, T::Comma | T::Semicolon | T::Assign | T::Colon)
                }
                Ended::Operand | Ended::Asserted => !next.continues_expression(),
                Ended::Closed | Ended::Cast => !next.continues_expression() || next.opens(),
                Ended::Annotated => !matches!(next, T::Assign | T::Comma | T::Semicolon),
                Ended::Whole => !matches!(next, T::Comma | T::Semicolon | T::Colon | T::RParen | T::RBracket),
            },
            Position::Restricted => next == T::RBrace || newline && next != T::Semicolon,
            Position::DoWhile => next != T::Semicolon,
            _ => false,
        };
        if ends && self.frame.holds_statements() {
            let at = self.out.last().map_or(span.start, |&(_, _, end)| end);
            self.out.push((at, T::Semicolon, at));
            self.position = Position::Start;
        }
    }

    /// Whether a name just ended that no operator follows: that of a declaration, or of a label behind `break` or `continue`.
    fn ends_binding(&self) -> bool {
        use Token as T;
        let before = self.out.len().checked_sub(2).and_then(|before| self.out.get(before));
        let declares = || matches!(self.out.get(self.frame.statement), Some((_, T::Const | T::Let | T::Var, _)));
        self.last() == Some(T::Ident)
            && match before {
                Some((_, T::Const | T::Let | T::Var | T::Break | T::Continue, _)) => true,
                Some((_, T::Comma, _)) => declares(),
                _ => false,
            }
    }

    fn operand(&mut self, token: Token, span: Span) {
        self.emit(token, span);
        self.position = Position::After;
    }

    /// Adds the empty arguments of a `new` without any.
    fn finish_new(&mut self) {
        let at = self.out.last().map_or(0, |&(_, _, end)| end);
        for _ in 0..std::mem::take(&mut self.frame.news) {
            self.closed = self.out.len();
            self.out.push((at, Token::NewParen, at));
            self.out.push((at, Token::RParen, at));
        }
    }

    fn question(&mut self, span: Span) {
        self.emit(Token::Question, span);
        self.frame.ternaries += 1;
        self.position = Position::Operand;
    }

    fn colon(&mut self, span: Span) -> Result<()> {
        if self.is_typescript() && self.type_colon(span)? {
            return Ok(());
        }
        if self.is_typescript() && (self.frame.ternaries > 0 || self.frame.keyed) {
            self.retype();
        }
        let labels = self.ended == Ended::Operand
            && self.frame.statement + 1 == self.out.len()
            && self.last() == Some(Token::Ident);
        if self.frame.ternaries > 0 {
            self.frame.ternaries -= 1;
            self.position = Position::Operand;
        } else if !self.frame.keyed && (self.frame.kind != Kind::Object || self.last() != Some(Token::RParen)) {
            self.frame.keyed = true;
            self.position = if self.frame.kind == Kind::Object { Position::Operand } else { Position::Start };
        } else if labels && self.frame.holds_statements() {
            self.position = Position::Start;
        } else if self.ended == Ended::Asserted {
            return Err(Box::new(Diagnostic::syntax(
                "expected an operator or the end of the statement, found `:`",
                span,
            )));
        }
        if self.is_typescript() {
            // `c ? <T>(x) : y`
            self.generic = self.generic.unless_assertion();
            self.justify()?;
        }
        self.emit_inside(Token::Colon, span);
        Ok(())
    }

    /// Continues lexing at `offset`, in the middle of the token just read.
    fn rewind(&mut self, offset: u32) {
        self.raw = Token::lexer(self.source);
        self.raw.bump(offset as usize);
    }

    fn emit(&mut self, token: Token, span: Span) {
        if self.position == Position::Start {
            self.frame.statement = self.out.len();
        }
        self.emit_inside(token, span);
    }

    fn emit_inside(&mut self, token: Token, span: Span) {
        self.ended = Ended::Operand;
        self.out.push((span.start, token, span.end));
    }

    fn last(&self) -> Option<Token> {
        self.out.last().map(|&(_, token, _)| token)
    }

    /// Whether a token is a name with this text.
    fn is_word(&self, (start, token, end): Spanned, word: &str) -> bool {
        token == Token::Ident && self.slice(Span::new(start, end)) == word
    }

    /// Whether the last token is a name with this text.
    fn is_word_before(&self, word: &str) -> bool {
        self.out.last().is_some_and(|&token| self.is_word(token, word))
    }

    fn slice(&self, span: Span) -> &'s str {
        span.text(self.source)
    }
}

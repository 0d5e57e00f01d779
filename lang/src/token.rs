//! The terminals of AgentScript, as [`logos`] sees them.
//!
//! A token is its kind only: its text is the source at its span, which the parser moves anyway. Decoding it can fail and
//! belongs to the grammar actions, where there is a span to report it at. The variants of the second group
//! are never produced by logos; [`crate::layout`] derives them from context so that the grammar
//! stays LR(1).

use logos::{Lexer, Logos, Skip};

/// Line breaks that were skipped since the last token.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trivia {
    /// Whether there was a line break.
    pub(crate) newline: bool,
}

fn newline(lexer: &mut Lexer<'_, Token>) -> Skip {
    lexer.extras.newline = true;
    Skip
}

fn block_comment(lexer: &mut Lexer<'_, Token>) -> Skip {
    lexer.extras.newline |= lexer.slice().contains(['\n', '\r', '\u{2028}', '\u{2029}']);
    Skip
}

/// A terminal.
#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(extras = Trivia)]
#[logos(skip r"[ \t\v\f\u{feff}\p{Zs}]+")]
#[logos(skip(r"//[^\n\r\u{2028}\u{2029}]*", allow_greedy = true))]
pub(crate) enum Token {
    #[regex(r"\r?\n|\r|[\u{2028}\u{2029}]", newline)]
    #[regex(r"/\*[^*]*\*+([^/*][^*]*\*+)*/", block_comment)]
    Trivia,

    #[regex(r"[\p{ID_Start}$_][\p{ID_Continue}$\u{200c}\u{200d}]*")]
    Ident,
    /// A name with `\u` escapes; `layout` checks it and makes it an [`Token::Ident`].
    #[regex(r"([\p{ID_Start}$_]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})([\p{ID_Continue}$\u{200c}\u{200d}]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]+\})*", priority = 1)]
    EscapedIdent,
    #[regex(r"(0|[1-9](_?[0-9])*)(\.([0-9](_?[0-9])*)?)?([eE][+-]?[0-9](_?[0-9])*)?")]
    #[regex(r"\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?")]
    #[regex(r"0[xX][0-9a-fA-F](_?[0-9a-fA-F])*|0[oO][0-7](_?[0-7])*|0[bB][01](_?[01])*")]
    Number,
    #[regex(r"(0|[1-9](_?[0-9])*|0[xX][0-9a-fA-F](_?[0-9a-fA-F])*|0[oO][0-7](_?[0-7])*|0[bB][01](_?[01])*)n")]
    BigInt,
    #[regex(r#""([^"\\\n\r]|\\[^\r]|\\\r\n?)*""#)]
    #[regex(r"'([^'\\\n\r]|\\[^\r]|\\\r\n?)*'")]
    String,
    #[token("`")]
    Backtick,

    #[token("async")]
    AsyncWord,
    #[token("as")]
    As,
    #[token("of")]
    OfWord,
    #[token("satisfies")]
    Satisfies,
    #[token("type")]
    Type,
    #[token("interface")]
    Interface,

    #[token("class")]
    Class,
    #[token("enum")]
    Enum,
    #[token("export")]
    Export,
    #[token("extends")]
    Extends,
    #[token("import")]
    Import,
    #[token("super")]
    Super,
    #[token("this")]
    This,
    /// Other reserved words without a meaning in AgentScript.
    #[regex("debugger|with")]
    #[regex("implements|package|private|protected|public|static")]
    #[regex(r"#[\p{ID_Start}$_][\p{ID_Continue}$\u{200c}\u{200d}]*")]
    #[token("@")]
    Reserved,

    #[token("await")]
    Await,
    #[token("break")]
    Break,
    #[token("case")]
    Case,
    #[token("catch")]
    Catch,
    #[token("const")]
    Const,
    #[token("continue")]
    Continue,
    #[token("default")]
    Default,
    #[token("delete")]
    Delete,
    #[token("do")]
    Do,
    #[token("else")]
    Else,
    #[token("false")]
    False,
    #[token("finally")]
    Finally,
    #[token("for")]
    For,
    #[token("function")]
    Function,
    #[token("if")]
    If,
    #[token("in")]
    In,
    #[token("instanceof")]
    Instanceof,
    #[token("let")]
    Let,
    #[token("new")]
    New,
    #[token("null")]
    Null,
    #[token("return")]
    Return,
    #[token("switch")]
    Switch,
    #[token("throw")]
    Throw,
    #[token("true")]
    True,
    #[token("try")]
    Try,
    #[token("typeof")]
    Typeof,
    #[token("var")]
    Var,
    #[token("void")]
    Void,
    #[token("while")]
    While,
    #[token("yield")]
    Yield,

    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token(".")]
    Dot,
    #[token("?.")]
    QuestionDot,
    #[token("...")]
    Ellipsis,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("?")]
    Question,
    #[token("=>")]
    Arrow,

    #[token("=")]
    Assign,
    #[regex(r"(\+|-|\*\*|\*|%|<<|>>>|>>|&&|\|\||\?\?|&|\||\^)=")]
    CompoundAssign,
    /// `/=`, or the beginning of a regular expression.
    #[token("/=")]
    SlashAssign,
    #[token("++")]
    Increment,
    #[token("--")]
    Decrement,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("**")]
    StarStar,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEqual,
    #[token("==")]
    Equal,
    #[token("!=")]
    NotEqual,
    #[token("===")]
    StrictEqual,
    #[token("!==")]
    StrictNotEqual,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token(">>>")]
    ShiftRightUnsigned,
    #[token("&")]
    Ampersand,
    #[token("|")]
    Pipe,
    #[token("^")]
    Caret,
    #[token("~")]
    Tilde,
    #[token("!")]
    Bang,
    #[token("&&")]
    And,
    #[token("||")]
    Or,
    #[token("??")]
    Coalesce,

    // Derived from context by `layout`, never by logos.
    /// `(` that opens the parameters of an arrow function.
    ArrowParen,
    /// `(` that opens the arguments of `new`; where a script leaves them out, `layout` adds `()`.
    NewParen,
    /// `{` that opens an object literal or an object pattern.
    ObjectBrace,
    /// `function` where an expression is expected.
    FunctionExpr,
    /// `async` that modifies a function.
    Async,
    /// `function*`
    Generator,
    /// `function*` where an expression is expected.
    GeneratorExpr,
    /// `*` before the key of a method.
    MethodStar,
    /// `yield*`
    YieldStar,
    /// `yield` without an operand.
    YieldNothing,
    /// `of` in a `for` head.
    Of,
    /// `in` in a `for` head.
    ForIn,
    /// `export default`
    ExportDefault,
    /// A reserved word as the name of a property.
    Keyword,
    /// `/pattern/flags`
    Regex,
    /// `` `text` ``
    Template,
    /// `` `text${ ``
    TemplateHead,
    /// `}text${`
    TemplateMiddle,
    /// `` }text` ``
    TemplateTail,
}

impl Token {
    /// Whether this token is a word that has a meaning in some places only, and is a name elsewhere.
    pub(crate) fn is_contextual(self) -> bool {
        matches!(self, Self::AsyncWord | Self::As | Self::OfWord | Self::Satisfies | Self::Type | Self::Interface)
    }

    /// Whether this token is a reserved word without a meaning in AgentScript.
    pub(crate) fn is_reserved(self) -> bool {
        use Token::*;
        matches!(self, Class | Enum | Export | Extends | Import | Super | This | Reserved)
    }

    /// Whether this token is an operand by itself.
    pub(crate) fn is_operand(self) -> bool {
        matches!(
            self,
            Self::Ident
                | Self::Keyword
                | Self::Number
                | Self::BigInt
                | Self::String
                | Self::True
                | Self::False
                | Self::Null
        )
    }

    /// Whether this token, at the beginning of a line, continues the expression on the line before.
    ///
    /// The absence of `++` and `--` here is the restricted production of the specification.
    pub(crate) fn continues_expression(self) -> bool {
        use Token::*;
        matches!(
            self,
            LParen
                | LBracket
                | Dot
                | QuestionDot
                | Comma
                | Colon
                | Question
                | Arrow
                | Assign
                | CompoundAssign
                | SlashAssign
                | Plus
                | Minus
                | Star
                | StarStar
                | Slash
                | Percent
                | Less
                | LessEqual
                | Greater
                | GreaterEqual
                | Equal
                | NotEqual
                | StrictEqual
                | StrictNotEqual
                | ShiftLeft
                | ShiftRight
                | ShiftRightUnsigned
                | Ampersand
                | Pipe
                | Caret
                | And
                | Or
                | Coalesce
                | In
                | Instanceof
                | Backtick
                | Semicolon
                | RParen
                | RBracket
        )
    }

    /// Whether `new callee` may go on with this token.
    pub(crate) fn continues_callee(self) -> bool {
        matches!(self, Self::Dot | Self::QuestionDot | Self::LBracket | Self::LParen | Self::Backtick)
    }

    /// Whether this token opens a bracket.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Self::LParen | Self::LBracket | Self::Backtick)
    }
}

/// The text of a template literal up to the next `${` or the closing backtick.
#[derive(Logos, Clone, Copy, Debug, PartialEq)]
enum Chunk {
    #[regex(r"[^`\\$]+")]
    #[regex(r"\\[\s\S]")]
    #[token("$")]
    Text,
    #[token("${")]
    Hole,
    #[token("`")]
    End,
}

/// A regular expression literal, without its opening slash. `]` does not nest, not even with `v`.
#[derive(Logos, Clone, Copy, Debug, PartialEq)]
enum Pattern {
    #[regex(r"([^/\\\[\n\r\u{2028}\u{2029}*]|\\[^\n\r\u{2028}\u{2029}]|\[([^\]\\\n\r\u{2028}\u{2029}]|\\[^\n\r\u{2028}\u{2029}])*\])([^/\\\[\n\r\u{2028}\u{2029}]|\\[^\n\r\u{2028}\u{2029}]|\[([^\]\\\n\r\u{2028}\u{2029}]|\\[^\n\r\u{2028}\u{2029}])*\])*/")]
    Body,
}

/// Returns the length of the text of a template up to its end or the next hole, with the end or the beginning of the hole, and
/// whether it is a hole. Nothing where the template is never closed.
pub(crate) fn template_text(rest: &str) -> Option<(usize, bool)> {
    let mut chunk = Chunk::lexer(rest);
    let hole = loop {
        match chunk.next()?.ok()? {
            Chunk::Text => {}
            Chunk::Hole => break true,
            Chunk::End => break false,
        }
    };
    Some((chunk.span().end, hole))
}

/// Returns the length of a regular expression behind its first slash, with its flags. Nothing where it is never closed.
pub(crate) fn regex_text(rest: &str) -> Option<usize> {
    let mut pattern = Pattern::lexer(rest);
    pattern.next()?.ok()?;
    let body = pattern.span().end;
    let flags = rest[body..].find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '\\')));
    Some(flags.map_or(rest.len(), |length| body + length))
}

//! The tokens of a source in TypeScript, as far as its types need them. Strings, templates, comments and regular
//! expressions are one token, or none.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Name,
    /// A number.
    Number,
    /// A text in quotes.
    Text,
    /// `{`, `=>` and the like.
    Sign,
    /// A template or a regular expression.
    Other,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub struct Token<'s> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'s str,
    /// Where it begins.
    pub start: usize,
    /// The text of the comment `/** … */` in front of it.
    pub doc: Option<&'s str>,
}

impl Token<'_> {
    /// Whether it is this sign.
    pub fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

/// Returns the tokens of a source, to its end or to what is no token.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let (mut at, mut doc) = (0, None);
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if c.is_whitespace() || c == '\u{feff}' {
            at += c.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").unwrap_or(comment.len());
            doc = comment[..end].strip_prefix('*').or(doc);
            at = (at + 2 + end + 2).min(source.len());
            continue;
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (kind, length) = match c {
            '"' | '\'' => (Kind::Text, quoted(rest, c)),
            '`' => (Kind::Other, template(rest)),
            '/' if begins_expression(tokens.last()) => (Kind::Other, regular_expression(rest)),
            '0'..='9' => {
                let is_part = |c: char| is_name(c) || c == '.';
                (Kind::Number, rest.find(|c| !is_part(c)).unwrap_or(rest.len()))
            }
            c if is_name(c) => (Kind::Name, rest.find(|c| !is_name(c)).unwrap_or(rest.len())),
            _ if rest.starts_with("=>") => (Kind::Sign, 2),
            c => (Kind::Sign, c.len_utf8()),
        };
        tokens.push(Token { kind, text: &rest[..length], start: at, doc: doc.take() });
        at += length;
    }
    tokens
}

/// Whether an expression can begin behind a token, so that `/` begins a regular expression.
fn begins_expression(before: Option<&Token<'_>>) -> bool {
    match before {
        None => true,
        Some(token) => match token.kind {
            Kind::Sign => !matches!(token.text, ")" | "]" | "}"),
            Kind::Name => {
                matches!(token.text, "return" | "typeof" | "case" | "in" | "of" | "delete" | "void" | "await")
            }
            Kind::Number | Kind::Text | Kind::Other => false,
        },
    }
}

/// Returns the length of a text in quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => return at,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a template, with the expressions in it and the templates in these.
fn template(rest: &str) -> usize {
    // For each template that is open, the braces that are open in its expression; `None`: in its text.
    let mut open: Vec<Option<usize>> = vec![None];
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match (c, open.last_mut()) {
            (_, None) => return at,
            ('\\', _) => drop(chars.next()),
            ('$', Some(braces @ None)) if chars.next_if(|(_, next)| *next == '{').is_some() => *braces = Some(0),
            ('`', Some(None)) => {
                open.pop();
                if open.is_empty() {
                    return at + 1;
                }
            }
            ('`', Some(Some(_))) => open.push(None),
            ('{', Some(Some(braces))) => *braces += 1,
            ('}', Some(braces @ Some(0))) => *braces = None,
            ('}', Some(Some(braces))) => *braces -= 1,
            ('"' | '\'', Some(Some(_))) => {
                let length = quoted(&rest[at..], c);
                while chars.next_if(|(next, _)| *next < at + length).is_some() {}
            }
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a regular expression without its flags, which are a name of their own.
fn regular_expression(rest: &str) -> usize {
    let mut is_class = false;
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => return at,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

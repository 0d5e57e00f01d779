//! The commonest tokens, read by tables of bytes: two thirds of those of a script. The lexer would do the same with them, but
//! goes from state to state by jumps that are often predicted wrongly.

use crate::span::Span;
use crate::token::{Token, may_be_keyword};
use logos::Lexer;

/// The token that a byte begins, if no other token begins with it: a punctuator, or a name.
static FIRST: [Option<Token>; 256] = {
    let mut first = [None; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        first[byte as usize] = match byte {
            b'(' => Some(Token::LParen),
            b')' => Some(Token::RParen),
            b'[' => Some(Token::LBracket),
            b']' => Some(Token::RBracket),
            b'{' => Some(Token::LBrace),
            b'}' => Some(Token::RBrace),
            b',' => Some(Token::Comma),
            b';' => Some(Token::Semicolon),
            b':' => Some(Token::Colon),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' => Some(Token::Ident),
            _ => None,
        };
        byte += 1;
    }
    first
};

/// How a byte goes on with a name.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// It belongs to it.
    Part,
    /// It may belong to it: it is a part of another character, or of an escape.
    Unknown,
    End,
}

static NEXT: [Next; 256] = {
    let mut next = [Next::Unknown; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        next[byte as usize] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' => Next::Part,
            b'\\' => Next::Unknown,
            _ => Next::End,
        };
        byte += 1;
    }
    next
};

/// Reads blanks, and the token behind them if it is a common one.
#[inline(always)]
pub(super) fn token(lexer: &mut Lexer<'_, Token>) -> Option<(Token, Span)> {
    let bytes = lexer.source().as_bytes();
    let from = lexer.span().end;
    let mut start = from;
    loop {
        while bytes.get(start) == Some(&b' ') {
            start += 1;
        }
        if bytes.get(start) != Some(&b'\n') {
            break;
        }
        lexer.extras.newline = true;
        start += 1;
    }
    let token = bytes.get(start).and_then(|&byte| FIRST[byte as usize]);
    let end = match token {
        Some(Token::Ident) => name_end(bytes, start),
        Some(_) => Some(start + 1),
        None => None,
    };
    let read = end.unwrap_or(start);
    if read > from {
        lexer.bump(read - from);
    }
    Some((token?, Span::from(start..end?)))
}

/// The end of the name that begins here, unless it has other characters than those of ASCII or may be a keyword.
#[inline(always)]
fn name_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut end = start + 1;
    let next = loop {
        match bytes.get(end).map_or(Next::End, |&byte| NEXT[byte as usize]) {
            Next::Part => end += 1,
            next => break next,
        }
    };
    (next == Next::End && !may_be_keyword(&bytes[start..end])).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use logos::Logos;

    /// Tokens with their spans and the line breaks before them, up to one that needs a context or is none.
    fn tokens(source: &str, quick: bool) -> Vec<(Option<Token>, Span, bool)> {
        let mut lexer = Token::lexer(source);
        let mut tokens = Vec::new();
        loop {
            let (token, span) = match if quick { token(&mut lexer) } else { None } {
                Some((token, span)) => (Some(token), span),
                None => match lexer.next() {
                    Some(token) => (token.ok(), lexer.span().into()),
                    None => return tokens,
                },
            };
            tokens.push((token, span, std::mem::take(&mut lexer.extras).newline));
        }
    }

    #[test]
    fn it_reads_what_the_lexer_reads() {
        let words = [
            "",
            "a",
            "$",
            "_",
            "a1",
            "as",
            "asy",
            "async",
            "clas",
            "class",
            "classy",
            "é",
            "aé",
            "a\\u0041",
            "a\u{200d}",
            "instanceof",
            "instanceofinstanceof",
            "Constant",
            "const",
            "null0",
            "x".repeat(70).as_str(),
            "1",
            "\"s\"",
        ]
        .map(String::from);
        for first in &words {
            for byte in 0..=127u8 {
                for second in &words {
                    let source = format!(" \n{first}{}{second} ; {second}\n", char::from(byte));
                    assert_eq!(tokens(&source, true), tokens(&source, false), "{source:?}");
                }
            }
        }
    }

    #[test]
    fn keywords_are_left_to_the_lexer() {
        let source = include_str!("../token.rs");
        let texts =
            source.split("#[").filter_map(|part| part.strip_prefix("token(\"").or(part.strip_prefix("regex(\"")));
        let words: Vec<&str> = texts
            .flat_map(|text| text.split('"').next().unwrap_or_default().split('|'))
            .filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
            .collect();
        assert!(words.len() > 50, "{words:?}");
        for word in words {
            assert!(may_be_keyword(word.as_bytes()), "{word}");
            assert!(tokens(word, true).iter().all(|&(token, ..)| token != Some(Token::Ident)), "{word}");
        }
        assert!(!may_be_keyword(b"item") && !may_be_keyword(&[b'a'; 70]));
    }
}

//! Where the code stands in a text that somebody sent as a script.
//!
//! Models send code in the shape of an answer: in a Markdown fence, or with a sentence before it. A
//! fence that the text begins with is taken off at once, because no JavaScript begins so. A fence
//! further down only counts where the text as a whole does not parse, and where it is the only one.
//! Nothing is cut out of the text: all places stay those of what was sent.

use crate::{Diagnostic, Language, Span};

/// A block of code in a fence.
struct Block {
    /// The line that opens it.
    fence: Span,
    code: Span,
    tag: Tag,
}

/// What the fence says of the language.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tag {
    Script(Language),
    None,
    Other,
}

/// The part of a text that is code, before anything has been parsed, and its language where a fence names it.
///
/// # Errors
/// If the text begins with one of several blocks of code.
pub(crate) fn code(text: &str) -> Result<(Span, Option<Language>), Diagnostic> {
    let whole = Span::from(0..text.len());
    if !text.trim_start_matches(is_blank).starts_with("```") {
        return Ok((whole, None));
    }
    let blocks = blocks(text);
    match only(&blocks) {
        Some(block) => Ok(found(block)),
        None if blocks.len() > 1 => {
            Err(Diagnostic::syntax("expected one script, found a second block of code", blocks[1].fence)
                .with_hint("send one script, without text around it"))
        }
        None => Ok((whole, None)),
    }
}

/// The block of code in a text that does not parse as a whole, if there is exactly one.
pub(crate) fn fenced(text: &str) -> Option<(Span, Option<Language>)> {
    only(&blocks(text)).map(found)
}

fn found(block: &Block) -> (Span, Option<Language>) {
    let language = match block.tag {
        // JavaScript is tried first in any case, and much that is called JavaScript has types.
        Tag::Script(Language::TypeScript) => Some(Language::TypeScript),
        Tag::Script(Language::JavaScript) | Tag::None | Tag::Other => None,
    };
    (block.code, language)
}

/// The one block that can be meant: the only one with a tag of the language, or the only one at all.
fn only(blocks: &[Block]) -> Option<&Block> {
    let mut scripts = blocks.iter().filter(|block| matches!(block.tag, Tag::Script(_)));
    match (scripts.next(), scripts.next(), blocks) {
        (Some(block), None, _) => Some(block),
        (None, _, [block]) if block.tag == Tag::None => Some(block),
        _ => None,
    }
}

/// All fenced blocks. The last one may lack its end, as in an answer that was cut off.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = Span::from(start..start + line.trim_end().len());
        start += line.len();
        let content = line.trim_matches(is_blank);
        let info = content.trim_start_matches('`');
        let ticks = content.len() - info.len();
        match &mut open {
            None if ticks >= 3 && !info.contains('`') => {
                let code = Span::from(start..start);
                open = Some((ticks, Block { fence: span, code, tag: tag(info) }));
            }
            Some((opened, block)) => {
                if ticks >= *opened && info.is_empty() {
                    blocks.extend(open.take().map(|(_, block)| block));
                } else {
                    block.code.end = Span::from(0..start).end;
                }
            }
            None => {}
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks
}

fn tag(info: &str) -> Tag {
    let word = info.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
    match word.to_ascii_lowercase().as_str() {
        "" => Tag::None,
        "js" | "javascript" | "mjs" | "cjs" | "jsx" | "node" | "agentscript" | "codecall" => {
            Tag::Script(Language::JavaScript)
        }
        "ts" | "typescript" | "mts" | "tsx" => Tag::Script(Language::TypeScript),
        _ => Tag::Other,
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

//! Where the code stands in a text that somebody sent as a script: the fenced code blocks of Markdown.
//!
//! Models send code in the shape of an answer: in a fenced block, or with a sentence before it. A text that
//! begins with a fence is the code in it, because no JavaScript begins so. A fence further down only counts
//! where the text as a whole does not parse, and where it is the only one. Nothing is cut out of the text:
//! all spans are those of the text that was sent.

use crate::diagnostic::Diagnostic;
use crate::options::Language;
use crate::span::Span;

/// A part of a text that may be the script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    pub(crate) span: Span,
    /// Its language, where a fence names it.
    pub(crate) language: Option<Language>,
}

/// The parts of a text that may be the script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    pub(crate) first: Code,
    /// The script where the first one does not parse.
    pub(crate) second: Option<Code>,
}

/// The language that the info string of a fence names.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tag {
    Script(Language),
    None,
    Other,
}

/// A fenced code block.
struct Block {
    /// The line that opens it.
    fence: Span,
    code: Span,
    tag: Tag,
}

impl Block {
    fn code(&self) -> Code {
        let language = match self.tag {
            // JavaScript is tried first in any case, and much that is called JavaScript has types.
            Tag::Script(Language::TypeScript) => Some(Language::TypeScript),
            Tag::Script(Language::JavaScript) | Tag::None | Tag::Other => None,
        };
        Code { span: self.code, language }
    }
}

/// Returns the parts of a text that may be the script. `tags` are words of fences that name JavaScript too.
///
/// # Errors
/// If the text begins with one of several blocks of code.
pub(crate) fn candidates(text: &str, tags: &[&str]) -> Result<Candidates, Diagnostic> {
    let whole = Code { span: Span::from(0..text.len()), language: None };
    let blocks = if has_fence(text) { blocks(text, tags) } else { Vec::new() };
    let block = only(&blocks).map(Block::code);
    if !text.trim_start_matches(is_blank).starts_with("```") {
        return Ok(Candidates { first: whole, second: block });
    }
    match (block, &*blocks) {
        (Some(block), _) => Ok(Candidates { first: block, second: None }),
        (None, [_, second, ..]) => {
            Err(Diagnostic::syntax("expected one script, found a second block of code", second.fence)
                .with_hint("send one script, without text around it"))
        }
        (None, _) => Ok(Candidates { first: whole, second: None }),
    }
}

/// Whether the text has three backticks in a row.
fn has_fence(text: &str) -> bool {
    // Most scripts have none or a few, and a search for one byte is the fastest there is.
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'`', bytes).any(|at| bytes[at..].starts_with(b"```"))
}

/// Returns the one block that can be meant: the only one with a tag of the language, or the only one at all.
fn only(blocks: &[Block]) -> Option<&Block> {
    let mut scripts = blocks.iter().filter(|block| matches!(block.tag, Tag::Script(_)));
    match (scripts.next(), scripts.next(), blocks) {
        (Some(block), None, _) => Some(block),
        (None, _, [block]) if block.tag == Tag::None => Some(block),
        _ => None,
    }
}

/// Returns all fenced blocks. The last one may lack its end, as in an answer that was cut off.
fn blocks(text: &str, tags: &[&str]) -> Vec<Block> {
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
                open = Some((ticks, Block { fence: span, code, tag: tag(info, tags) }));
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

fn tag(info: &str, tags: &[&str]) -> Tag {
    let word = info.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
    match word.to_ascii_lowercase().as_str() {
        "" => Tag::None,
        "js" | "javascript" | "mjs" | "cjs" | "jsx" | "node" | "agentscript" => Tag::Script(Language::JavaScript),
        "ts" | "typescript" | "mts" | "tsx" => Tag::Script(Language::TypeScript),
        word if tags.contains(&word) => Tag::Script(Language::JavaScript),
        _ => Tag::Other,
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

//! The one arrow of the crate: from text to a program.

use crate::ast::{Arena, Script};
use crate::program::Program;
use crate::{Code, Diagnostic, Failure, Language, Options, Span, parse, resolve, shape};

/// Compiles a script.
pub fn compile(source: &str, options: &Options<'_>) -> Result<Program, Failure> {
    if source.len() > options.max_bytes {
        return Err(failure(too_large(source.len(), options.max_bytes)));
    }
    let arena = Arena::for_source(source.len());
    let script = parse_as(&arena, source, options.language).map_err(failure)?;
    resolve::resolve(&script, options)
}

/// Parses the code in a text in the given language, or in the first one that fits.
fn parse_as<'s>(arena: &'s Arena, source: &'s str, language: Option<Language>) -> Result<Script<'s>, Diagnostic> {
    let (code, named) = shape::code(source)?;
    let is_whole = code == Span::from(0..source.len());
    parse_part(arena, source, code, language.or(named)).or_else(|error| {
        match shape::fenced(source).filter(|_| is_whole) {
            Some((code, named)) => parse_part(arena, source, code, language.or(named)),
            None => Err(error),
        }
    })
}

fn parse_part<'s>(
    arena: &'s Arena,
    source: &'s str,
    code: Span,
    language: Option<Language>,
) -> Result<Script<'s>, Diagnostic> {
    match language {
        Some(language) => parse::parse_part(arena, source, code, language),
        // Where neither fits, the one that came further is what the script is meant to be.
        None => parse::parse_part(arena, source, code, Language::JavaScript).or_else(|javascript| {
            parse::parse_part(arena, source, code, Language::TypeScript).map_err(|typescript| {
                if typescript.span.start > javascript.span.start { typescript } else { javascript }
            })
        }),
    }
}

fn too_large(len: usize, max: usize) -> Diagnostic {
    Diagnostic {
        code: Code::ScriptTooLarge,
        refusal: None,
        message: format!("the script has {len} bytes; at most {max} are allowed").into(),
        span: Span::default(),
        hint: Some("do less in one script, or pass large data as input".into()),
    }
}

fn failure(diagnostic: Diagnostic) -> Failure {
    Failure { diagnostics: vec![diagnostic] }
}

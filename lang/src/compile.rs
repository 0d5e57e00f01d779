//! The one arrow of the crate: from text to a program.

use crate::ast::Arena;
use crate::program::Program;
use crate::{Code, Diagnostic, Failure, Language, Options, Span, parse, resolve, shape};

/// Compiles a script.
pub fn compile(source: &str, options: &Options<'_>) -> Result<Program, Failure> {
    if source.len() > options.max_bytes {
        return Err(failure(too_large(source.len(), options.max_bytes)));
    }
    let (code, named) = shape::code(source).map_err(failure)?;
    let error = match compile_part(source, (code, options.language.or(named)), options) {
        Ok(compiled) => return compiled,
        Err(error) => error,
    };
    // A text that is no script may hold one.
    let is_whole = code == Span::from(0..source.len());
    match shape::fenced(source).filter(|_| is_whole) {
        Some((code, named)) => compile_part(source, (code, options.language.or(named)), options)
            .unwrap_or_else(|error| Err(failure(error))),
        None => Err(failure(error)),
    }
}

/// Compiles the code in a text in the given language, or in the first one that fits; an error where it does not parse.
/// What an attempt has made is freed before the next one.
fn compile_part(
    source: &str,
    (code, language): (Span, Option<Language>),
    options: &Options<'_>,
) -> Result<Result<Program, Failure>, Diagnostic> {
    let attempt = |language: Language| {
        let arena = Arena::for_source(source.len());
        parse::parse_part(&arena, source, code, language).map(|script| resolve::resolve(&script, options))
    };
    match language {
        Some(language) => attempt(language),
        // Where neither fits, the one that came further is what the script is meant to be.
        None => attempt(Language::JavaScript).or_else(|javascript| {
            attempt(Language::TypeScript).map_err(|typescript| {
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

//! The one arrow of the crate: from text to a program.

use crate::ast::Arena;
use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::fence::{self, Candidates};
use crate::hint::allowed_hint;
use crate::options::{Language, Options};
use crate::program::Program;
use crate::span::Span;
use crate::{others, parse, resolve, rewrite};

/// Compiles a script; the program is in the arena.
pub fn compile<'p>(arena: &'p Arena, source: &str, options: &Options<'_>) -> Result<Program<'p>, Failure> {
    compile_text(arena, source, options).map_err(|mut failure| {
        for diagnostic in &mut failure.diagnostics {
            if let Some(hint) = rewrite::rewriting(diagnostic, source) {
                diagnostic.hint = Some(hint.into());
            }
            add_alternative(diagnostic, source, options);
            if !options.disabled.is_empty() {
                let is_off = |name: &str| options.disabled.iter().any(|(off, _)| off == name);
                diagnostic.hint = diagnostic.hint.take().and_then(|hint| allowed_hint(&hint, &is_off)).map(Into::into);
            }
        }
        failure
    })
}

fn compile_text<'p>(arena: &'p Arena, source: &str, options: &Options<'_>) -> Result<Program<'p>, Failure> {
    if source.len() > options.max_bytes {
        return Err(failure(too_large(source.len(), options.max_bytes)));
    }
    let Candidates { first, second } = fence::candidates(source, options.fence_tags).map_err(failure)?;
    let (compiled, code) = match (compile_part(arena, source, first, options), second) {
        // A text that is no script may contain one.
        (Err(_), Some(second)) => (compile_part(arena, source, second, options), second),
        (compiled, _) => (compiled, first),
    };
    compiled.unwrap_or_else(|error| Err(Failure { diagnostics: others::refusals(error, source, code.span, options) }))
}

/// Compiles a part of a text in its language, or in the first one in which it parses; an error where it parses in
/// none.
fn compile_part<'p>(
    arena: &'p Arena,
    source: &str,
    code: fence::Code,
    options: &Options<'_>,
) -> Result<Result<Program<'p>, Failure>, Diagnostic> {
    let attempt = |language: Language| {
        let tree = Arena::for_source(source.len());
        let script = parse::parse_part(&tree, source, code.span, language)?;
        Ok(resolve::resolve(&script, options, arena))
    };
    let language = options.language.or(code.language);
    if !cfg!(feature = "typescript") {
        // A script without types is JavaScript too.
        return attempt(Language::JavaScript).map_err(|error| match language {
            Some(Language::JavaScript) => error,
            Some(Language::TypeScript) | None => without_types(error, source),
        });
    }
    match language {
        Some(language) => attempt(language),
        // Where it parses in neither, the error further down tells which one is meant.
        None => attempt(Language::JavaScript).or_else(|javascript| {
            attempt(Language::TypeScript).map_err(|typescript| {
                if typescript.span.start > javascript.span.start { typescript } else { javascript }
            })
        }),
    }
}

/// Returns a syntax error of a build that cannot erase types, with a hint where it may be about one.
fn without_types(error: Diagnostic, source: &str) -> Diagnostic {
    const WORDS: &[&str] = &[":", "<", "as", "declare", "enum", "interface", "satisfies", "type"];
    let before = source.get(..error.span.start as usize).unwrap_or_default();
    let at = error.span.text(source);
    let is_type = |text: &str| WORDS.contains(&text) || text.starts_with([':', '<']);
    let last = before.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    if error.refusal.is_some() || !(is_type(at) || is_type(last)) {
        return error;
    }
    error.with_hint(
        "write it without types: this build of AgentScript lacks the feature `typescript`, which erases those of TypeScript",
    )
}

/// Adds to the hint of a refusal what the host has instead. A name that is written with escapes gets none.
fn add_alternative(diagnostic: &mut Diagnostic, source: &str, options: &Options<'_>) {
    if diagnostic.refusal.is_some()
        && let Some(alternative) = (options.alternative)(diagnostic.span.text(source))
        && let Some(hint) = &mut diagnostic.hint
    {
        *hint = format!("{hint}; {alternative}").into();
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

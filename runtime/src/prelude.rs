//! The prelude: built-ins written in the language itself, compiled once per process.

use crate::build::{Origin, build};
use crate::builtins::registry::{Registry, registry};
use crate::builtins::{Body, PRELUDE};
use crate::code::{Code, Function, FunctionRef};
use agentscript_lang::ast::Arena;
use agentscript_lang::{Language, Loops, Options, PlainCall};
use hashbrown::HashMap;
use std::sync::LazyLock;

struct Prelude {
    code: Code,
    /// For each built-in the functions that implement its call and its construction.
    functions: Vec<[Option<FunctionRef>; 2]>,
}

static PRELUDE_CODE: LazyLock<Prelude> = LazyLock::new(|| {
    let registry = registry();
    let code = compile();
    let by_name: HashMap<String, u32> = code
        .functions
        .iter()
        .enumerate()
        .filter_map(|(index, function)| {
            let name = registry_text(&code, function.name?);
            Some((name, index as u32))
        })
        .collect();
    let function = |body: Option<Body>| match body {
        Some(Body::Prelude(name) | Body::Iterating(_, name)) => {
            by_name.get(name).map(|&index| FunctionRef::prelude(index))
        }
        _ => None,
    };
    let functions =
        registry.natives.iter().map(|native| [function(Some(native.call)), function(native.construct)]).collect();
    Prelude { code, functions }
});

fn compile() -> Code {
    let registry = registry();
    let options = Options {
        language: Some(Language::JavaScript),
        loops: Loops::All,
        max_bytes: usize::MAX,
        disabled: &[],
        missing: &[],
        fence_tags: &[],
        calls_result: false,
        alternative: &|_| None,
        apps: &|_| false,
        provided: &|_| false,
        own_tool: &|_, _| None,
        globals: &|name| registry.global(name).is_some(),
        plain_call: &|call, iterables| match call {
            PlainCall::Global(name) if is_plain_intrinsic(registry, name) => true,
            call => plain_call(registry, call, iterables),
        },
    };
    // The text is part of the crate, and a test compiles it.
    match agentscript_lang::compile(&Arena::for_source(PRELUDE.len()), PRELUDE, &options) {
        Ok(program) => build(&program, Origin::Prelude),
        Err(failure) => panic!("the prelude does not compile: {:?}", failure.diagnostics.first()),
    }
}

fn registry_text(code: &Code, atom: crate::atom::Atom) -> String {
    let text = match registry().names.get(atom.0 as usize) {
        Some(name) => name.as_bytes(),
        None => code.texts.text(atom),
    };
    String::from_utf8_lossy(text).into_owned()
}

/// The code of the prelude.
pub fn code() -> &'static Code {
    &PRELUDE_CODE.code
}

/// A function of the prelude.
pub fn function(code: FunctionRef) -> &'static Function {
    &self::code().functions[code.index()]
}

/// The function of the prelude that implements a built-in.
#[inline]
pub fn for_native(native: u32, construct: bool) -> Option<FunctionRef> {
    PRELUDE_CODE.functions.get(native as usize)?[usize::from(construct)]
}

/// Whether a call never runs a function of the script, which may have iterables of its own or not.
pub fn plain_call(registry: &Registry, call: PlainCall<'_>, iterables: bool) -> bool {
    let native = match call {
        PlainCall::Global(name) => registry.global(name),
        PlainCall::Static(owner, name) => {
            let atom = registry.atom(name.as_bytes());
            match registry.global(owner).zip(atom).and_then(|(owner, atom)| registry.property(owner, atom)) {
                Some(crate::builtins::registry::Static::Native(native)) => Some(native),
                Some(crate::builtins::registry::Static::Number(_)) | None => None,
            }
        }
        PlainCall::Method(name) => {
            return registry.atom(name.as_bytes()).is_some_and(|name| registry.is_plain_method(name, iterables));
        }
        PlainCall::New(name) => {
            let construct = registry.global(name).and_then(|native| registry.natives[native as usize].construct);
            return construct.is_none_or(|body| {
                !matches!(body, Body::Prelude(_) | Body::Iterating(..)) || body.as_native(iterables).is_some()
            });
        }
    };
    native.is_some_and(|native| registry.natives[native as usize].call.as_native(iterables).is_some())
}

fn is_plain_intrinsic(registry: &Registry, name: &str) -> bool {
    registry.intrinsic(name).is_some_and(|native| matches!(registry.natives[native as usize].call, Body::Native(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prelude_row_has_its_function() {
        for (number, native) in registry().natives.iter().enumerate() {
            for (body, construct) in [(Some(native.call), false), (native.construct, true)] {
                if let Some(Body::Prelude(name) | Body::Iterating(_, name)) = body {
                    assert!(
                        for_native(number as u32, construct).is_some(),
                        "{} needs {name} in the prelude",
                        native.name
                    );
                }
            }
        }
    }
}

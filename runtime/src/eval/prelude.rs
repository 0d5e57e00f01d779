//! The prelude: built-ins written in the language itself, compiled once per process.

use crate::eval::build::{Origin, build};
use crate::eval::code::{Code, Function};
use crate::eval::native::Body;
use crate::eval::registry::{Registry, Static};
use crate::heap::frame::FunctionRef;
use agentscript_lang::ast::Arena;
use agentscript_lang::{Language, Loops, Options, PlainCall};
use hashbrown::HashMap;

/// The compiled prelude.
pub struct Prelude {
    /// Its code.
    pub code: Code,
    /// For each built-in the functions that implement its call and its construction.
    functions: Vec<[Option<FunctionRef>; 2]>,
}

impl Prelude {
    /// Compiles the text of the prelude.
    pub fn new(registry: &'static Registry, text: &str) -> Self {
        let code = compile(registry, text);
        let name = |function: &Function| {
            let atom = function.name?;
            let text =
                if registry.names.has(atom) { registry.names.text(atom).as_bytes() } else { code.texts.text(atom) };
            Some(String::from_utf8_lossy(text).into_owned())
        };
        let functions = code.functions.iter().enumerate();
        let by_name: HashMap<String, u32> =
            functions.filter_map(|(index, function)| Some((name(function)?, index as u32))).collect();
        let function = |body: Option<Body>| match body {
            Some(Body::Prelude(name) | Body::Iterating(_, name)) => {
                by_name.get(name).map(|&index| FunctionRef::prelude(index))
            }
            _ => None,
        };
        let functions =
            registry.natives.iter().map(|native| [function(Some(native.call)), function(native.construct)]).collect();
        Self { code, functions }
    }

    /// Returns the function of the prelude that implements a built-in.
    #[inline]
    pub fn for_native(&self, native: u32, construct: bool) -> Option<FunctionRef> {
        self.functions.get(native as usize)?[usize::from(construct)]
    }
}

fn compile(registry: &'static Registry, text: &str) -> Code {
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
    match agentscript_lang::compile(&Arena::for_source(text.len()), text, &options) {
        Ok(program) => build(&program, registry, Origin::Prelude),
        Err(failure) => panic!("the prelude does not compile: {:?}", failure.diagnostics.first()),
    }
}

/// Whether a call never runs a function of the script, which may have iterables of its own or not.
pub fn plain_call(registry: &Registry, call: PlainCall<'_>, iterables: bool) -> bool {
    let native = match call {
        PlainCall::Global(name) => registry.global(name),
        PlainCall::Static(owner, name) => {
            let atom = registry.atom(name.as_bytes());
            match registry.global(owner).zip(atom).and_then(|(owner, atom)| registry.property(owner, atom)) {
                Some(Static::Native(native)) => Some(native),
                Some(Static::Number(_)) | None => None,
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
    use crate::builtins::registry::registry;

    #[test]
    fn every_prelude_row_has_its_function() {
        for (number, native) in registry().natives.iter().enumerate() {
            for (body, construct) in [(Some(native.call), false), (native.construct, true)] {
                if let Some(Body::Prelude(name) | Body::Iterating(_, name)) = body {
                    assert!(
                        crate::builtins::registry::compiled_prelude().for_native(number as u32, construct).is_some(),
                        "{} needs {name} in the prelude",
                        native.name
                    );
                }
            }
        }
    }
}

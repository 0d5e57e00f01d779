//! The parts of a script that a run has once: the realm of ECMAScript, as far as it is not fixed.

use crate::eval::code::{Code, Function};
use crate::eval::execute::function_of;
use crate::eval::regexp_literal::Cache;
use crate::eval::registry::Registry;
use crate::eval::script::Script;
use crate::heap::frame::{Frame, FunctionRef};
use crate::regexp::Program;
use crate::value::Value;
use agentscript_lang::{Location, Span};
use hashbrown::HashMap;
use std::sync::Arc;

/// The code of a run, and the values that belong to parts of it.
pub struct Realm {
    /// The script.
    pub script: Arc<Script>,
    /// Further references to it that are counted already: see [`Realm::borrow_script`].
    borrowed: Vec<Arc<Script>>,
    /// The built-ins that are written in the language.
    pub prelude: &'static Code,
    /// All built-ins.
    pub registry: &'static Registry,
    /// Bindings of the main function that inner functions use.
    pub globals: Vec<Value>,
    /// Template objects of tagged templates.
    pub templates: Vec<Value>,
    /// Programs of the regular expression literals that were evaluated, by their number.
    pub regexp_literals: Vec<Option<Arc<Program>>>,
    /// Regular expressions that were made from text.
    pub regexp_cache: Cache,
    /// Shapes of object literals; 0: not known yet.
    pub literal_shapes: Vec<u32>,
    /// Function objects of the prelude, by index.
    pub prelude_closures: HashMap<FunctionRef, Value>,
    /// The input of the run, once it was read.
    pub input: Option<Value>,
}

impl Realm {
    /// The realm of a run that has not begun.
    pub fn new(script: Arc<Script>) -> Self {
        let code = &script.code;
        Self {
            prelude: &script.prelude.code,
            registry: script.registry,
            globals: vec![Value::UNDEFINED; code.globals.len()],
            templates: Vec::new(),
            regexp_literals: Vec::new(),
            regexp_cache: Cache::default(),
            literal_shapes: vec![0; code.object_sites as usize],
            prelude_closures: HashMap::new(),
            input: None,
            script,
            borrowed: Vec::new(),
        }
    }

    /// The script, to look into while the rest of the run changes; it is given back by [`Realm::return_script`]. To
    /// count references for every call would cost more than the call.
    #[inline]
    pub fn borrow_script(&mut self) -> Arc<Script> {
        self.borrowed.pop().unwrap_or_else(|| Arc::clone(&self.script))
    }

    /// The script is not looked into any more.
    #[inline]
    pub fn return_script(&mut self, script: Arc<Script>) {
        self.borrowed.push(script);
    }

    /// The compiled function that a reference stands for.
    pub fn function(&self, code: FunctionRef) -> &Function {
        function_of(&self.script.code, self.prelude, code)
    }

    /// The source offset of a waiting frame.
    pub fn offset_of<S>(&self, frame: &Frame<S>) -> u32 {
        let function = self.function(frame.code);
        let pc = frame.pc.saturating_sub(1) as usize;
        function.ops.get(pc).map_or(function.span.start, |op| op.at)
    }

    /// Line and column of an offset in the script; `None` for the prelude.
    pub fn location(&self, code: FunctionRef, offset: u32) -> Option<Location> {
        (!code.is_prelude()).then(|| Location::of(self.script.source(), offset))
    }

    /// The message for a callee that is no function.
    pub fn not_a_function_text(&self, callee: Span) -> String {
        if self.script.code.iterated.contains(&callee) {
            let text = agentscript_lang::iterated_callee_text(self.script.source(), callee);
            format!("{text} is not a function or its return value is not iterable")
        } else {
            format!("{} is not a function", self.callee_text(callee))
        }
    }

    /// The text of a callee as V8 prints it in messages.
    pub fn callee_text(&self, span: Span) -> String {
        agentscript_lang::callee_text(self.script.source(), span)
    }

    /// The values that are needed.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let values = self.globals.iter().chain(&self.templates).chain(self.prelude_closures.values());
        values.copied().chain(self.input)
    }
}

//! A program as short text, for tests.
//!
//! Places: `x$3` slot, `x@3` cell, `x#0` global slot; `!` behind it: checked. `%3` is a temporary. `~`
//! before an expression or statement: it splits.

use crate::program::*;
use std::fmt::Write;

pub(super) fn dump(program: &Program<'_>) -> String {
    let mut out = String::new();
    for (id, function) in program.functions.iter().enumerate() {
        let mut dumper = Dumper { program, function: FunctionId(id as u32), out: &mut out };
        dumper.function(id, function);
    }
    out.trim_end().to_owned()
}

struct Dumper<'a> {
    program: &'a Program<'a>,
    function: FunctionId,
    out: &'a mut String,
}

impl Dumper<'_> {
    fn function(&mut self, id: usize, function: &Function<'_>) {
        let name = function.name.map(|name| self.text(name)).unwrap_or_default();
        if id > 0 {
            let asyncness = if function.is_async { "async " } else { "" };
            let star = if function.is_generator { "*" } else { "" };
            let _ = write!(self.out, "f{id} {asyncness}{star}{name}({})", function.parameters);
            if function.length != function.parameters {
                let _ = write!(self.out, " length {}", function.length);
            }
            if let Some(rest) = function.rest {
                let _ = write!(self.out, " rest %{}", rest.0);
            }
            if !function.captures.is_empty() {
                let _ = write!(self.out, " captures {}", slots(function.captures));
            }
            if let Some(itself) = function.itself {
                let _ = write!(self.out, " itself ${}", itself.0);
            }
            if !function.boxed.is_empty() {
                let _ = write!(self.out, " boxed {}", slots(function.boxed));
            }
            self.out.push_str(": ");
        }
        self.statements(function.body);
        self.out.push('\n');
    }

    fn text(&self, id: TextId) -> String {
        String::from_utf8_lossy(self.program.text(id)).into_owned()
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn place(&mut self, reference: Reference) {
        let _ = match self.program.place(self.function, reference) {
            Place::Slot(slot) => write!(self.out, "${}", slot.0),
            Place::Cell(slot) => write!(self.out, "@{}", slot.0),
            Place::Global(id) => write!(self.out, "#{id}"),
        };
    }

    fn variable(&mut self, variable: Variable) {
        let name = self.text(variable.name);
        self.put(&name);
        self.place(variable.reference);
        if self.program.is_checked(&variable) {
            self.put("!");
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for (index, statement) in statements.iter().enumerate() {
            if index > 0 {
                self.put("; ");
            }
            self.statement(statement);
        }
    }

    fn block(&mut self, statements: &[Stmt<'_>]) {
        self.put("{");
        self.statements(statements);
        self.put("}");
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match &statement.kind {
            StmtKind::Enter(place, initial) => {
                self.put("enter ");
                self.place(*place);
                if *initial == Initial::Undefined {
                    self.put(" undefined");
                }
            }
            StmtKind::Init(place, value) => {
                self.put("init ");
                self.place(*place);
                self.put(" ");
                self.expr(value);
            }
            StmtKind::Expr(value) => self.expr(value),
            StmtKind::Block(body) => self.block(body),
            StmtKind::If(test, yes, no) => {
                self.put("if ");
                self.expr(test);
                self.put(" ");
                self.statement(yes);
                if let Some(no) = no {
                    self.put(" else ");
                    self.statement(no);
                }
            }
            StmtKind::For(each) => {
                let ForLoop { label, test, update, body, fresh } = &**each;
                let _ = write!(self.out, "for:{} ", label.0);
                if !fresh.is_empty() {
                    let _ = write!(self.out, "fresh {} ", slots(fresh));
                }
                self.optional(test.as_ref());
                self.put("; ");
                self.optional(update.as_ref());
                self.put(" ");
                self.statement(body);
            }
            StmtKind::DoWhile { label, body, test } => {
                let _ = write!(self.out, "do:{} ", label.0);
                self.statement(body);
                self.put(" ");
                self.expr(test);
            }
            StmtKind::ForEach(each) => {
                let EachLoop { label, kind, iterable, iterator, item, body } = &**each;
                let _ = write!(self.out, "{kind:?}:{} %{} %{} ", label.0, iterator.0, item.0);
                self.expr(iterable);
                self.put(" ");
                self.statement(body);
            }
            StmtKind::Switch(switch) => {
                let Switch { label, subject, slot, cases } = *switch;
                let _ = write!(self.out, "switch:{} %{} ", label.0, slot.0);
                self.expr(subject);
                for case in *cases {
                    self.put(" case ");
                    self.optional(case.test.as_ref());
                    self.block(case.body);
                }
            }
            StmtKind::Try(attempt) => {
                let Try { body, catch, finally, .. } = &**attempt;
                self.put("try ");
                self.block(body);
                if let Some((slot, handler)) = catch {
                    let _ = write!(self.out, " catch %{} ", slot.0);
                    self.block(handler);
                }
                if let Some(finally) = finally {
                    self.put(" finally ");
                    self.block(finally);
                }
            }
            StmtKind::Labeled(label, body) => {
                let _ = write!(self.out, "label:{} ", label.0);
                self.statement(body);
            }
            StmtKind::Break(label) => {
                let _ = write!(self.out, "break:{}", label.0);
            }
            StmtKind::Continue(label) => {
                let _ = write!(self.out, "continue:{}", label.0);
            }
            StmtKind::Return(value) => {
                self.put("return ");
                self.optional(value.as_ref());
            }
            StmtKind::Throw(value) => {
                self.put("throw ");
                self.expr(value);
            }
        }
    }

    fn optional(&mut self, value: Option<&Expr>) {
        match value {
            Some(value) => self.expr(value),
            None => self.put("-"),
        }
    }

    fn list<'e, 'p: 'e>(&mut self, values: impl IntoIterator<Item = &'e Expr<'p>>) {
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.expr(value);
        }
    }

    /// `(head a b …)`
    fn form(&mut self, head: &str, parts: &[&Expr]) {
        self.put("(");
        self.put(head);
        for part in parts {
            self.put(" ");
            self.expr(part);
        }
        self.put(")");
    }

    fn expr(&mut self, e: &Expr<'_>) {
        if e.splits {
            self.put("~");
        }
        match &e.kind {
            ExprKind::Undefined => self.put("undefined"),
            ExprKind::Null => self.put("null"),
            ExprKind::Bool(value) => self.put(&value.to_string()),
            ExprKind::Number(value) => self.put(&value.to_string()),
            ExprKind::String(text) => {
                let text = self.text(*text);
                let _ = write!(self.out, "'{text}'");
            }
            ExprKind::Regex(pattern, flags) => {
                let pattern = self.text(*pattern);
                let flags = self.program.patterns[*flags as usize];
                let _ = write!(self.out, "/{pattern}/{flags}");
            }
            ExprKind::BigInt(digits) => {
                let digits = self.text(*digits);
                let _ = write!(self.out, "{digits}n");
            }
            ExprKind::Template(head, rest) => {
                let tails = rest.iter().map(|(_, text)| text);
                let texts = std::iter::once(head).chain(tails).map(|&text| self.text(text)).collect::<Vec<_>>();
                let _ = write!(self.out, "`{}`[", texts.join("${}"));
                self.list(rest.iter().map(|(hole, _)| hole));
                self.put("]");
            }
            ExprKind::TemplateObject(site) => {
                let _ = write!(self.out, "template:{site}");
            }
            ExprKind::Array(elements) => self.array(elements),
            ExprKind::Object(_, properties) => self.object(properties),
            ExprKind::Function(id) => {
                let _ = write!(self.out, "f{}", id.0);
            }
            ExprKind::Read(variable) => self.variable(*variable),
            ExprKind::Write(variable, value) | ExprKind::WriteConst(variable, value) => {
                self.put("(");
                self.variable(*variable);
                self.put(if matches!(e.kind, ExprKind::Write(..)) { " = " } else { " =const " });
                self.expr(value);
                self.put(")");
            }
            ExprKind::Update { variable, delta, prefix } => {
                let _ = write!(self.out, "({}{delta:+} ", if *prefix { "" } else { "post" });
                self.variable(*variable);
                self.put(")");
            }
            ExprKind::Temp(slot) => {
                let _ = write!(self.out, "%{}", slot.0);
            }
            ExprKind::SetTemp(slot, value) => self.form(&format!("%{} =", slot.0), &[value]),
            ExprKind::Global(name) => {
                let name = self.text(*name);
                self.put(&name);
            }
            ExprKind::TypeofGlobal(name) => {
                let name = self.text(*name);
                let _ = write!(self.out, "(typeof {name})");
            }
            ExprKind::WriteGlobal(name, value) => {
                let name = self.text(*name);
                self.form(&format!("{name} =global"), &[value]);
            }
            ExprKind::Uninitialized(name) => {
                let name = self.text(*name);
                let _ = write!(self.out, "{name}!!");
            }
            ExprKind::Member(object, name) => {
                self.expr(object);
                let name = self.text(*name);
                let _ = write!(self.out, ".{name}");
            }
            ExprKind::Index(object, key) => {
                self.expr(object);
                self.put("[");
                self.expr(key);
                self.put("]");
            }
            ExprKind::SetMember(object, name, value) => {
                let name = self.text(*name);
                self.form(&format!("set.{name}"), &[object, value]);
            }
            ExprKind::SetIndex(object, key, value) => self.form("set", &[object, key, value]),
            ExprKind::DeleteMember(object, name) => {
                let name = self.text(*name);
                self.form(&format!("delete.{name}"), &[object]);
            }
            ExprKind::DeleteIndex(object, key) => self.form("delete", &[object, key]),
            ExprKind::Unary(operator, value) => self.form(&format!("{operator:?}"), &[value]),
            ExprKind::Binary(operator, left, right) => self.form(&format!("{operator:?}"), &[left, right]),
            ExprKind::Chain(chain) => {
                self.put("(");
                self.expr(&chain.first);
                for (operator, operand) in chain.rest {
                    let _ = write!(self.out, " {operator:?} ");
                    self.expr(operand);
                }
                self.put(")");
            }
            ExprKind::Logical(operator, left, right) => self.form(&format!("{operator:?}"), &[left, right]),
            ExprKind::Conditional(test, yes, no) => self.form("?", &[test, yes, no]),
            ExprKind::Sequence(items) => {
                self.put("(");
                self.list(*items);
                self.put(")");
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::New(new) => {
                let names = new.names.iter().map(|&name| self.text(name)).collect::<Vec<_>>().join(".");
                let _ = write!(self.out, "new {names}");
                self.arguments(new.arguments);
            }
            ExprKind::Await(value) => self.form("await", &[value]),
            ExprKind::RequireObject { value, first, .. } => {
                let first = first.map_or("-".to_owned(), |first| self.text(first));
                self.form(&format!("object:{first}"), &[value]);
            }
            ExprKind::ObjectRest(slot, keys) => {
                let _ = write!(self.out, "(rest %{} [", slot.0);
                self.list(*keys);
                self.put("])");
            }
            ExprKind::Iterator(value, _) => self.form("iterator", &[value]),
            ExprKind::IteratorNext(slot) => {
                let _ = write!(self.out, "next:%{}", slot.0);
            }
            ExprKind::IteratorRest(slot) => {
                let _ = write!(self.out, "rest:%{}", slot.0);
            }
            ExprKind::IteratorClose(slot) => {
                let _ = write!(self.out, "close:%{}", slot.0);
            }
            ExprKind::Yield(value) => self.form("yield", &[value]),
            ExprKind::YieldStar(value) => self.form("yield*", &[value]),
            ExprKind::GeneratorStart => self.put("start"),
        }
    }

    fn array(&mut self, elements: &[Element]) {
        self.put("[");
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            match element {
                Element::Hole => {}
                Element::Item(value) => self.expr(value),
                Element::Spread(value) => {
                    self.put("...");
                    self.expr(value);
                }
            }
        }
        self.put("]");
    }

    fn object(&mut self, properties: &[Property]) {
        self.put("{");
        for (index, property) in properties.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            match property {
                Property::Named(name, value) => {
                    let name = self.text(*name);
                    let _ = write!(self.out, "{name}: ");
                    self.expr(value);
                }
                Property::Computed(key, value) => {
                    self.put("[");
                    self.expr(key);
                    self.put("]: ");
                    self.expr(value);
                }
                Property::Spread(value) => {
                    self.put("...");
                    self.expr(value);
                }
            }
        }
        self.put("}");
    }

    fn call(&mut self, call: &Call) {
        match &call.callee {
            Callee::Value(value) => self.expr(value),
            Callee::Member(object, name) => {
                self.expr(object);
                let name = self.text(*name);
                let _ = write!(self.out, ".{name}");
            }
            Callee::Index(object, key) => {
                self.expr(object);
                self.put("[");
                self.expr(key);
                self.put("]");
            }
            Callee::With { function, this } => self.form("with", &[this, function]),
        }
        self.arguments(call.arguments);
    }

    fn arguments(&mut self, arguments: &[Argument<'_>]) {
        self.put("(");
        for (index, argument) in arguments.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            self.put(if argument.spread { "..." } else { "" });
            self.expr(&argument.value);
        }
        self.put(")");
    }
}

fn slots(slots: &[Slot]) -> String {
    slots.iter().map(|slot| format!("${}", slot.0)).collect::<Vec<_>>().join(",")
}

//! Prints syntax trees as JavaScript.
//!
//! Parsing the printed text results in the same tree, except for positions, for every tree that the parser creates. The
//! parentheses are its `Paren` nodes, and no others are added. Types are omitted.

mod expression;
mod pattern;
mod text;

use agentscript_lang::ast::{
    Body, Case, Catch, Declarator, Declares, Expr, ForHead, Function, Name, PatternKind, Script, Stmt, StmtKind,
};

/// Prints a script, with one statement per line.
#[must_use]
pub fn print(script: &Script<'_>) -> String {
    let mut printer = Printer { out: String::new(), indent: 0 };
    for (index, statement) in script.body.iter().enumerate() {
        if script.entry == Some(index) {
            printer.put("export default ");
        }
        printer.statement(statement);
        printer.out.push('\n');
    }
    printer.out
}

struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn list<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            print(self, item);
        }
    }

    fn block(&mut self, body: &[Stmt<'_>]) {
        self.put("{");
        self.statements(body);
        self.line();
        self.put("}");
    }

    fn statements(&mut self, body: &[Stmt<'_>]) {
        self.indent += 1;
        for statement in body {
            self.line();
            self.statement(statement);
        }
        self.indent -= 1;
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match &statement.kind {
            StmtKind::Block(body) => self.block(body),
            StmtKind::Break(label) => self.jump("break", label.as_ref()),
            StmtKind::Continue(label) => self.jump("continue", label.as_ref()),
            StmtKind::Declare(declares, declarators) => {
                self.declaration(*declares, declarators);
                self.put(";");
            }
            StmtKind::DoWhile(body, test) => {
                self.put("do ");
                self.statement(body);
                self.put(" while (");
                self.expr(test);
                self.put(");");
            }
            StmtKind::Empty => self.put(";"),
            StmtKind::Expr(value) => {
                self.expr(value);
                self.put(";");
            }
            StmtKind::For(init, test, update, body) => {
                self.put("for (");
                match init {
                    Some(init) => self.statement(init),
                    None => self.put(";"),
                }
                for (part, end) in [(test, ";"), (update, ") ")] {
                    if let Some(part) = part {
                        self.put(" ");
                        self.expr(part);
                    }
                    self.put(end);
                }
                self.statement(body);
            }
            StmtKind::ForIn(head, object, body) => self.each("for (", head, " in ", object, body),
            StmtKind::ForOf(true, head, items, body) => self.each("for await (", head, " of ", items, body),
            StmtKind::ForOf(false, head, items, body) => self.each("for (", head, " of ", items, body),
            StmtKind::Function(function) => self.function(function),
            StmtKind::If(test, yes, no) => {
                self.head("if", test);
                self.statement(yes);
                if let Some(no) = no {
                    self.put(" else ");
                    self.statement(no);
                }
            }
            StmtKind::Labeled(label, body) => {
                self.put(label.text);
                self.put(": ");
                self.statement(body);
            }
            StmtKind::Return(value) => {
                self.put("return");
                if let Some(value) = value {
                    self.put(" ");
                    self.expr(value);
                }
                self.put(";");
            }
            StmtKind::Switch(subject, cases) => self.switch(subject, cases),
            StmtKind::Throw(value) => {
                self.put("throw ");
                self.expr(value);
                self.put(";");
            }
            StmtKind::Try(body, catch, finally) => self.attempt(body, catch.as_ref(), finally.as_deref()),
            StmtKind::While(test, body) => {
                self.head("while", test);
                self.statement(body);
            }
        }
    }

    fn head(&mut self, keyword: &str, test: &Expr<'_>) {
        self.put(keyword);
        self.put(" (");
        self.expr(test);
        self.put(") ");
    }

    fn jump(&mut self, keyword: &str, label: Option<&Name<'_>>) {
        self.put(keyword);
        if let Some(label) = label {
            self.put(" ");
            self.put(label.text);
        }
        self.put(";");
    }

    fn declaration(&mut self, declares: Declares, declarators: &[Declarator<'_>]) {
        self.put(keyword(declares));
        self.list(declarators, |printer, Declarator { target, init }| {
            printer.pattern(target);
            if let Some(init) = init {
                printer.put(" = ");
                printer.expr(init);
            }
        });
    }

    fn each(&mut self, keyword_: &str, head: &ForHead<'_>, word: &str, items: &Expr<'_>, body: &Stmt<'_>) {
        self.put(keyword_);
        match head {
            ForHead::Declare(declares, target) => {
                self.put(keyword(*declares));
                self.pattern(target);
            }
            // `for (async of` is a syntax error.
            ForHead::Assign(target) if matches!(&target.kind, PatternKind::Name(name) if *name == "async") => {
                self.put("(async)");
            }
            ForHead::Assign(target) => self.pattern(target),
        }
        self.put(word);
        self.expr(items);
        self.put(") ");
        self.statement(body);
    }

    fn switch(&mut self, subject: &Expr<'_>, cases: &[Case<'_>]) {
        self.head("switch", subject);
        self.put("{");
        for Case { test, body } in cases {
            self.line();
            match test {
                Some(test) => {
                    self.put("case ");
                    self.expr(test);
                }
                None => self.put("default"),
            }
            self.put(":");
            self.statements(body);
        }
        self.line();
        self.put("}");
    }

    fn attempt(&mut self, body: &[Stmt<'_>], catch: Option<&Catch<'_>>, finally: Option<&[Stmt<'_>]>) {
        self.put("try ");
        self.block(body);
        if let Some(Catch { binding, body }) = catch {
            self.put(" catch ");
            if let Some(binding) = binding {
                self.put("(");
                self.pattern(binding);
                self.put(") ");
            }
            self.block(body);
        }
        if let Some(body) = finally {
            self.put(" finally ");
            self.block(body);
        }
    }

    /// Prints a function that is not a method.
    fn function(&mut self, function: &Function<'_>) {
        if function.is_async {
            self.put("async ");
        }
        if !function.is_arrow {
            self.put(if function.is_generator { "function* " } else { "function " });
            if let Some(name) = &function.name {
                self.put(name.text);
            }
        }
        self.signature(function);
    }

    /// Prints the parameters and the body.
    fn signature(&mut self, function: &Function<'_>) {
        self.put("(");
        self.list(function.params, Self::pattern);
        self.put(if function.is_arrow { ") => " } else { ") " });
        match &function.body {
            Body::Block(body) => self.block(body),
            Body::Expr(value) => self.expr(value),
        }
    }
}

fn keyword(declares: Declares) -> &'static str {
    match declares {
        Declares::Const => "const ",
        Declares::Let => "let ",
        Declares::Var => "var ",
    }
}

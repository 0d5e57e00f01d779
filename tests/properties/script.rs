//! Random scripts: valid AgentScript that mostly runs without errors, generated from a list of choices.
//!
//! The same choices always generate the same script, and fewer and smaller choices a simpler one, so that proptest and
//! libFuzzer can shrink it. Names are declared before they are used, loops and recursion are short, and nothing depends on
//! the time of day. Types are guessed, so a script may still throw.

mod expression;
mod template;

/// The kind of value that a variable has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    List,
    Object,
    /// A `Uint8Array`.
    Bytes,
    /// A function from a number to a number.
    Function,
    /// An async function from a number to a number.
    Async,
    /// A generator of numbers, or an object whose `[Symbol.iterator]` is one, made from a number.
    Generator,
    /// An async generator of numbers made from a number.
    AsyncGenerator,
}

struct Variable {
    name: String,
    kind: Kind,
    constant: bool,
}

/// The context of the statement that is generated.
#[derive(Clone, Default)]
struct Around {
    is_async: bool,
    is_function: bool,
    is_generator: bool,
    in_loop: bool,
    labels: Vec<String>,
    /// The enclosing recursive function and its parameter.
    recursion: Option<(String, String)>,
}

struct Writer<'a> {
    choices: std::slice::Iter<'a, u8>,
    variables: Vec<Variable>,
    names: usize,
    depth: usize,
    around: Around,
}

/// Maximum nesting of expressions and statements.
const MAX_DEPTH: usize = 5;

/// A function that adds a reaction to promises.
const KEPT: &str = "const kept = (...all) => all.map((one) => { one?.then?.(() => {}, () => {}); return one; });";

/// Generates the script of these choices.
pub fn script(choices: &[u8]) -> String {
    let around = Around { is_async: true, ..Around::default() };
    let mut writer = Writer { choices: choices.iter(), variables: Vec::new(), names: 0, depth: 0, around };
    // In Node nothing cancels what has lost a `race`. Another reaction makes the run wait for it.
    let mut lines = vec![KEPT.to_owned()];
    while writer.choices.len() > 0 {
        lines.push(writer.statement());
    }
    lines.push(writer.result());
    lines.join("\n")
}

impl Writer<'_> {
    fn byte(&mut self) -> usize {
        self.choices.next().copied().unwrap_or(0).into()
    }

    /// Returns one of the options.
    fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.byte() % options.len()]
    }

    /// Returns the number of a form out of `all`. The first `leaves` forms are not nested; at the maximum depth, one of them
    /// is returned.
    fn form(&mut self, leaves: usize, all: usize) -> usize {
        let forms = if self.depth > MAX_DEPTH { leaves } else { all };
        self.byte() % forms
    }

    fn nested<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        let text = write(self);
        self.depth -= 1;
        text
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn declare(&mut self, name: &str, kind: Kind, constant: bool) {
        self.variables.push(Variable { name: name.into(), kind, constant });
    }

    /// Returns the name of a variable in scope.
    fn variable(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<String> {
        let at = self.byte();
        let found: Vec<&Variable> = self.variables.iter().filter(|variable| fits(variable)).collect();
        (!found.is_empty()).then(|| found[found.len() - 1 - at % found.len()].name.clone())
    }

    fn named(&mut self, kind: Kind) -> Option<String> {
        self.variable(|variable| variable.kind == kind)
    }

    fn assignable(&mut self, kind: Kind) -> Option<String> {
        self.variable(|variable| variable.kind == kind && !variable.constant)
    }

    /// Generates text with a scope of its own.
    fn scoped(&mut self, write: impl FnOnce(&mut Self) -> String) -> String {
        let count = self.variables.len();
        let text = self.nested(write);
        self.variables.truncate(count);
        text
    }

    /// Generates text inside a function whose parameters are numbers.
    fn inside(&mut self, around: Around, parameters: &[&str], write: impl FnOnce(&mut Self) -> String) -> String {
        self.scoped(|writer| {
            let outside = std::mem::replace(&mut writer.around, Around { is_function: true, ..around });
            parameters.iter().for_each(|name| writer.declare(name, Kind::Number, false));
            let text = write(writer);
            writer.around = outside;
            text
        })
    }

    fn function_body(&mut self, around: Around, parameters: &[&str]) -> String {
        self.inside(around, parameters, |writer| writer.statements() + &writer.returned())
    }

    /// Generates the body of an arrow function that is an expression.
    fn callback(&mut self, around: Around, parameters: &[&str]) -> String {
        self.inside(around, parameters, Self::number)
    }

    fn returned(&mut self) -> String {
        match self.around.recursion.clone() {
            Some((function, parameter)) => {
                let wait = if self.around.is_async { "await " } else { "" };
                format!("return {wait}{function}({parameter} - 1) + {};\n", self.number_operand())
            }
            None => format!("return {};\n", self.number()),
        }
    }

    fn statements(&mut self) -> String {
        let count = self.byte() % 4;
        (0..count).map(|_| self.statement() + "\n").collect()
    }

    fn block(&mut self) -> String {
        self.scoped(|writer| format!("{{\n{}}}", writer.statements()))
    }

    /// Generates the body of a loop.
    fn body(&mut self) -> String {
        let outside = std::mem::replace(&mut self.around.in_loop, true);
        let body = self.block();
        self.around.in_loop = outside;
        body
    }

    fn statement(&mut self) -> String {
        match self.form(8, 46) {
            0 => format!("console.log({});", self.any()),
            1 | 2 => self.declaration(),
            3 => self.assignment(),
            4 => self.jump(),
            5 => self.destructuring(),
            6 => self.throw(),
            7 => self.pick(&[";", "// nothing", "/* no\nthing */", "'text';", "undefined"]).into(),
            8 | 9 => format!("if ({}) {}{}", self.condition(), self.block(), self.alternative()),
            10 => self.counted(),
            11 | 12 => self.each(),
            13 => self.while_loop(),
            14 => self.labelled(),
            15 => self.switch(),
            16 | 17 => self.attempt(),
            18 => self.block(),
            19 | 20 => self.function(),
            21 => self.arrow(),
            22 => self.closures(),
            23 | 24 => self.waiting(),
            25 => self.object_use(),
            26..=28 if self.around.is_async => self.odd_waiting(),
            36 | 37 => self.generator(),
            38..=40 => self.iteration(),
            41..=43 if self.around.is_generator => self.yielding(),
            44 | 45 => self.started(),
            _ => self.odd_statement(),
        }
    }

    fn result(&mut self) -> String {
        let values: Vec<String> = self
            .variables
            .iter()
            .filter(|variable| matches!(variable.kind, Kind::Number | Kind::Text | Kind::List | Kind::Object))
            .map(|variable| variable.name.clone())
            .collect();
        match self.byte() % 3 {
            0 => format!("return [{}];", values.join(", ")),
            1 => format!("return {{{}}}", values.join(", ")),
            _ => format!(";[{}, {}]", self.any(), values.join(", ")),
        }
    }

    fn end(&mut self) -> &'static str {
        self.pick(&[";", "", " // end", ";;"])
    }

    fn declaration(&mut self) -> String {
        let keyword = self.pick(&["let", "const", "var"]);
        let kind = self.pick(&[Kind::Number, Kind::Text, Kind::List, Kind::Object, Kind::Bytes]);
        let value = self.expression(kind);
        let name = self.fresh("v");
        self.declare(&name, kind, keyword == "const");
        format!("{keyword} {name} = {value}{}", self.end())
    }

    fn assignment(&mut self) -> String {
        let kind = self.pick(&[Kind::Number, Kind::Text, Kind::List, Kind::Object, Kind::Bytes]);
        let Some(name) = self.assignable(kind) else { return self.declaration() };
        match kind {
            Kind::Number => {
                let operator = self.pick(&["=", "+=", "-=", "*=", "%=", "|=", "&&=", "||=", "??=", "<<=", "**="]);
                format!("{name} {operator} {}{}", self.number(), self.end())
            }
            Kind::Text => format!("{name} = ({} + {name}).slice(0, 20)", self.text()),
            Kind::List => match self.byte() % 4 {
                0 => format!("{name}.push({})", self.any()),
                1 => format!("{name}[{}] = {}", self.pick(&["0", "1", "2"]), self.any()),
                2 => format!("{name} = [...{name}, {}].slice(-5)", self.number()),
                _ => format!("{name}.length = Math.min({name}.length, {})", self.byte() % 4),
            },
            Kind::Bytes => match self.byte() % 5 {
                0 => format!("{name}[{}] {} {}", self.number(), self.pick(&["=", "+=", "??="]), self.number()),
                1 => format!("{name}.set({}, {})", self.list(), self.byte() % 3),
                2 => format!("{name}[{}]++", self.byte() % 3),
                3 => format!("{name}.{}", self.pick(&["fill(7, 1)", "reverse()", "copyWithin(0, 1)", "sort()"])),
                _ => format!("{name} = {}", self.bytes()),
            },
            _ => format!("{name}{} = {}", self.member(), self.any()),
        }
    }

    /// Generates the end of a property access.
    fn member(&mut self) -> String {
        match self.byte() % 3 {
            0 => self.pick(&[".a", ".b", ".c"]).into(),
            1 => self.pick(&["['a']", "[\"b\"]", "[`c`]", "[0]"]).into(),
            _ => format!("[{}]", self.text()),
        }
    }

    fn jump(&mut self) -> String {
        let named = self.byte() % 2 == 1;
        let label = self.around.labels.last().filter(|_| named).map_or_else(String::new, |label| format!(" {label}"));
        match self.byte() % 4 {
            0 | 1 if self.around.in_loop => format!("if ({}) continue{label};", self.condition()),
            2 if self.around.in_loop => format!("if ({}) break{label};", self.condition()),
            3 if self.around.is_function => format!("if ({}) return {};", self.condition(), self.number()),
            _ => format!("console.log({}, {})", self.text(), self.any()),
        }
    }

    fn destructuring(&mut self) -> String {
        let (a, b) = (self.fresh("d"), self.fresh("d"));
        let pattern = match self.byte() % 6 {
            0 => format!("[{a}, {b} = {}] = {}", self.number(), self.list()),
            1 => format!("[, {a}, ...{b}] = {}", self.list()),
            2 => format!("{{a: {a}, b: {b} = {}}} = {}", self.number(), self.object()),
            3 => format!("{{a: {a}, ...{b}}} = {}", self.object()),
            4 => format!("{{[{}]: {a} = {}, b: [{b}] = []}} = {{a: 1}}", self.key(), self.number()),
            _ => {
                if let (Some(a), Some(b)) = (self.assignable(Kind::Number), self.assignable(Kind::Number)) {
                    return format!(";[{a}, {b}] = [{b}, {a}]{}", self.end());
                }
                format!("{a} = {}, {b} = {}", self.number(), self.number())
            }
        };
        let is_rest = pattern.contains("...");
        self.declare(&a, Kind::Number, true);
        if !is_rest {
            self.declare(&b, Kind::Number, true);
        }
        format!("const {pattern};")
    }

    /// Generates a computed key that does not throw, because V8's message for such an error does not show the expression.
    fn key(&mut self) -> String {
        self.named(Kind::Text).unwrap_or_else(|| self.pick(&["'a'", "`b`", "'b c'", "'1'"]).into())
    }

    fn throw(&mut self) -> String {
        let thrown = match self.byte() % 4 {
            0 => format!("new Error({})", self.text()),
            1 => format!("new TypeError({}, {{cause: {}}})", self.text(), self.any()),
            2 => "null.a".into(),
            _ => self.any(),
        };
        format!("if ({}) throw {thrown};", self.condition())
    }

    fn alternative(&mut self) -> String {
        match self.byte() % 4 {
            0 | 1 => String::new(),
            2 => format!(" else {}", self.block()),
            _ => format!(" else if ({}) {}", self.condition(), self.block()),
        }
    }

    fn counted(&mut self) -> String {
        let (name, turns) = (self.fresh("i"), self.byte() % 5);
        self.scoped(|writer| {
            let keyword = writer.pick(&["let", "var"]);
            let end = match writer.byte() % 3 {
                0 => format!("; {name} < {turns}; {name}++"),
                1 => format!("; {name} < {turns}; {name} += 1"),
                _ => format!(", end{name} = {turns}; {name} < end{name}; ++{name}"),
            };
            // A body that changes the counter could make the loop endless.
            writer.declare(&name, Kind::Number, true);
            format!("for ({keyword} {name} = 0{end}) {}", writer.body())
        })
    }

    fn each(&mut self) -> String {
        let name = self.fresh("x");
        let wait = if self.around.is_async { self.pick(&["", "", " await"]) } else { "" };
        let (head, items) = match self.byte() % 6 {
            5 => (format!("const {name}"), format!("{}.slice(0, 9)", self.bytes())),
            0 | 1 => (format!("const {name}"), format!("{}.slice(0, 9)", self.list())),
            2 => (format!("const [{name}, value]"), format!("Object.entries({})", self.object())),
            3 => (format!("let {{a: {name} = {}}}", self.number()), format!("[{}, {}]", self.object(), self.object())),
            _ => {
                let object = self.object();
                return self.scoped(|writer| {
                    writer.declare(&name, Kind::Text, true);
                    format!("for (const {name} in {object}) {}", writer.body())
                });
            }
        };
        self.scoped(|writer| {
            writer.declare(&name, Kind::Number, true);
            format!("for{wait} ({head} of {items}) {}", writer.body())
        })
    }

    fn while_loop(&mut self) -> String {
        let (name, turns) = (self.fresh("w"), self.byte() % 5);
        match self.byte() % 2 {
            0 => format!("let {name} = 0; while ({name}++ < {turns}) {}", self.body()),
            _ => format!("let {name} = 0; do {} while (++{name} < {turns});", self.body()),
        }
    }

    fn labelled(&mut self) -> String {
        let label = self.fresh("outer");
        self.around.labels.push(label.clone());
        let text = self.nested(|writer| if writer.byte() % 2 == 0 { writer.counted() } else { writer.each() });
        self.around.labels.pop();
        format!("{label}: {text}")
    }

    fn switch(&mut self) -> String {
        let subject = self.number();
        let outside = std::mem::replace(&mut self.around.in_loop, false);
        let labels = std::mem::take(&mut self.around.labels);
        let mut text = format!("switch ({subject}) {{\n");
        for _ in 0..self.byte() % 4 {
            let end = self.pick(&["break;", ""]);
            text += &self.scoped(|writer| format!("case {}: {{\n{}}} {end}\n", writer.number(), writer.statements()));
        }
        text += &format!("default: {}\n}}", self.block());
        (self.around.in_loop, self.around.labels) = (outside, labels);
        text
    }

    fn attempt(&mut self) -> String {
        let body = self.block();
        let error = self.fresh("e");
        match self.byte() % 5 {
            0 => format!("try {body} catch {}", self.block()),
            1 | 2 => format!("try {body} catch ({error}) {{ console.log({error}?.message, {error}); }}"),
            3 => format!(
                "try {body} catch (e) {{ const {{message}} = e ?? {{}}; console.log(message) }} finally {}",
                self.block()
            ),
            _ => format!("try {body} finally {}", self.block()),
        }
    }

    fn function(&mut self) -> String {
        let (name, parameter) = (self.fresh("f"), self.fresh("n"));
        let is_async = self.byte() % 3 == 2;
        let recursive = self.byte() % 3 == 2;
        let around =
            Around { is_async, recursion: recursive.then(|| (name.clone(), parameter.clone())), ..Around::default() };
        let (keyword, default) =
            (if is_async { "async function" } else { "function" }, self.pick(&["", " = 2", " = 0"]));
        let guard = if recursive {
            format!("if (!({parameter} > 0 && {parameter} < 6)) return {parameter};\n")
        } else {
            String::new()
        };
        let body = self.function_body(around, &[&parameter]);
        self.declare(&name, if is_async { Kind::Async } else { Kind::Function }, true);
        format!("{keyword} {name}({parameter}{default}, ...others) {{\n{guard}{body}}}")
    }

    /// Generates a function that makes something to iterate over.
    fn generator(&mut self) -> String {
        let (name, parameter) = (self.fresh("y"), self.fresh("n"));
        let is_async = self.byte() % 4 == 3;
        let around = Around { is_async, is_generator: true, ..Around::default() };
        let body = self.inside(around, &[&parameter], |writer| {
            let mut body = writer.statements();
            for _ in 0..1 + writer.byte() % 3 {
                body += &writer.yielding();
                body.push('\n');
            }
            if writer.byte() % 3 == 0 {
                let cleanup = format!("console.log('{parameter} ends', {});", writer.number());
                body = format!("try {{\n{body}}} finally {{ {cleanup} }}\n");
            }
            body + &writer.returned()
        });
        self.declare(&name, if is_async { Kind::AsyncGenerator } else { Kind::Generator }, true);
        match (is_async, self.byte() % 4) {
            (true, 0) => {
                format!("const {name} = (n) => ({{ async *[Symbol.asyncIterator]({parameter} = n) {{\n{body}}} }});")
            }
            (true, _) => format!("async function* {name}({parameter}) {{\n{body}}}"),
            (false, 0) => format!("const {name} = (n) => ({{ *[Symbol.iterator]({parameter} = n) {{\n{body}}} }});"),
            (false, 1) => format!("const {name} = function* ({parameter}, [other] = [{parameter}]) {{\n{body}}};"),
            (false, 2) => format!("const {{ {name} }} = {{ *{name}({parameter} = 1) {{\n{body}}} }};"),
            (false, _) => format!("function* {name}({parameter}) {{\n{body}}}"),
        }
    }

    /// Generates something to iterate over synchronously, of few numbers.
    fn iterable(&mut self) -> String {
        match self.named(Kind::Generator) {
            Some(name) => format!("{name}({})", self.number()),
            None => format!("{}.slice(0, 9)", self.list()),
        }
    }

    /// Generates a `yield` as a statement.
    fn yielding(&mut self) -> String {
        let name = self.fresh("s");
        let text = match self.byte() % 8 {
            0 | 1 => return format!("yield {};", self.number()),
            2 => format!("const {name} = yield {};", self.number()),
            3 => return format!("yield* {};", self.iterable()),
            4 => format!("const {name} = (yield* {}) ?? ({});", self.iterable(), self.number()),
            5 => format!("const [{name} = yield {}] = {};", self.number(), self.iterable()),
            6 => format!("const {name} = Math.max(yield, ...{}, yield {});", self.iterable(), self.number()),
            _ => return format!("if ({}) return yield {};", self.condition(), self.number()),
        };
        self.declare(&name, Kind::Number, true);
        text
    }

    /// Generates a use of something to iterate over.
    fn iteration(&mut self) -> String {
        if let (true, 0, Some(name)) = (self.around.is_async, self.byte() % 3, self.named(Kind::AsyncGenerator)) {
            let item = self.fresh("x");
            let items = format!("{name}({})", self.number());
            return self.scoped(|writer| {
                writer.declare(&item, Kind::Number, true);
                format!("for await (const {item} of {items}) {}", writer.body())
            });
        }
        let items = self.iterable();
        let (a, b) = (self.fresh("d"), self.fresh("d"));
        match self.byte() % 8 {
            0 | 1 => self.scoped(|writer| {
                writer.declare(&a, Kind::Number, true);
                format!("for (const {a} of {items}) {}", writer.body())
            }),
            2 => {
                self.declare(&a, Kind::Number, true);
                format!("const [{a}, {b} = {}] = {items};", self.number())
            }
            3 => {
                self.declare(&b, Kind::List, true);
                format!("const [{a}, ...{b}] = {items};")
            }
            4 => {
                self.declare(&a, Kind::List, true);
                format!("const {a} = [{}, ...{items}, {}];", self.number(), self.number())
            }
            5 => {
                format!("console.log(Math.max(...{items}), new Set({items}).size, Array.from({items}, (x) => {}));", {
                    let around = Around::default();
                    self.callback(around, &["x"])
                })
            }
            6 => format!(
                "const {a} = {items}[Symbol.iterator](); console.log({a}.next({}), {a}.return?.({}), {a}.next());",
                self.number(),
                self.number()
            ),
            _ => format!(
                "const {a} = {items}[Symbol.iterator](); try {{ console.log({a}.next(), {a}.throw?.({})); }} catch ({b}) {{ console.log({b}, {a}.next()); }}",
                self.number()
            ),
        }
    }

    fn arrow(&mut self) -> String {
        let (name, parameter) = (self.fresh("g"), self.fresh("n"));
        let is_async = self.byte() % 2 == 1;
        let around = Around { is_async, ..Around::default() };
        let body = match self.byte() % 2 {
            0 => format!("{{\n{}}}", self.function_body(around, &[&parameter])),
            _ => self.callback(around, &[&parameter]),
        };
        self.declare(&name, if is_async { Kind::Async } else { Kind::Function }, true);
        let head = match (is_async, self.byte() % 2) {
            (true, 0) => format!("async {parameter} =>"),
            (true, _) => format!("async ({parameter}) =>"),
            (false, 0) => format!("{parameter} =>"),
            (false, _) => format!("({parameter} = 1) =>"),
        };
        format!("const {name} = {head} {body};")
    }

    /// Generates functions that capture the variables of a loop.
    fn closures(&mut self) -> String {
        let (list, item) = (self.fresh("fns"), self.fresh("c"));
        let keyword = self.pick(&["let", "var"]);
        let body = self.scoped(|writer| {
            writer.declare(&item, Kind::Number, false);
            writer.callback(Around::default(), &[])
        });
        format!(
            "const {list} = []; for ({keyword} {item} = 0; {item} < 3; {item}++) {list}.push(() => {body});\n\
             console.log({list}.map((f) => f()));"
        )
    }

    fn waiting(&mut self) -> String {
        if !self.around.is_async {
            return self.declaration();
        }
        let name = self.fresh("p");
        let text = match self.byte() % 3 {
            0 => format!("const {name} = await {};", self.promise()),
            1 => {
                return format!(
                    ";{}.then((value) => console.log('then', value), (error) => console.log(error));",
                    self.promise()
                );
            }
            _ => return format!("console.log(await Promise.allSettled([{}, {}]));", self.promise(), self.promise()),
        };
        self.declare(&name, Kind::Number, true);
        text
    }

    /// Generates what goes on by itself: a timer, or an async function that nobody awaits.
    fn started(&mut self) -> String {
        let around = Around { is_async: true, ..Around::default() };
        match self.byte() % 4 {
            0 => {
                let (value, ms) = (self.callback(Around::default(), &[]), self.pick(&["", ", 0", ", 5", ", 60"]));
                format!("setTimeout(() => console.log('timer', {value}){ms});")
            }
            1 => {
                let (name, body) = (self.fresh("timer"), self.function_body(Around::default(), &[]));
                format!(
                    "const {name} = setInterval(() => {{ clearInterval({name});\n{body} }}, {});",
                    self.pick(&["5", "40"])
                )
            }
            2 => format!(
                ";(async () => {{\n{}}})().catch((error) => console.log(error));",
                self.function_body(around, &[])
            ),
            _ => format!("queueMicrotask(() => console.log('microtask', {}));", self.callback(Around::default(), &[])),
        }
    }

    fn object_use(&mut self) -> String {
        let Some(name) = self.named(Kind::Object) else { return self.declaration() };
        match self.byte() % 4 {
            0 => format!("delete {name}{};", self.member()),
            1 => format!(
                "console.log({name}?.{}?.[{}], {name}.a?.(), 'a' in {name});",
                self.pick(&["a", "b", "c"]),
                self.number()
            ),
            2 => format!("{name}{} ??= {};", self.member(), self.any()),
            _ => format!(";({{a: {name}.b, ...{name}.c}} = {});", self.object()),
        }
    }
}

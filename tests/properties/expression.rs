//! Random expressions.
//!
//! Functions that end in `operand` return expressions that can be operands of any operator; the others return expressions
//! that can be arguments.

use super::{Around, Kind, Writer};

impl Writer<'_> {
    pub(super) fn expression(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Number | Kind::Function | Kind::Async | Kind::Generator | Kind::AsyncGenerator => self.number(),
            Kind::Text => self.text(),
            Kind::List => self.list(),
            Kind::Object => self.object(),
            Kind::Bytes => self.bytes(),
        }
    }

    pub(super) fn any(&mut self) -> String {
        match self.form(4, 12) {
            11 => self.bytes(),
            0 => self.number(),
            1 => self.text(),
            2 => self.pick(&["null", "undefined", "true", "NaN", "-0", "10n", "{}", "[[1, [2]]]"]).into(),
            3 => self.pick(&["[, 1]", "new Map([[1, {a: 2}]])", "new Set('ab')", "() => 1"]).into(),
            4 => self.list(),
            5 => self.object(),
            6 => self.condition(),
            7 => format!("[{}, {}]", self.any(), self.any()),
            8 | 9 => self.odd_call(),
            _ => format!("{{x: {}}}", self.any()),
        }
    }

    pub(super) fn number(&mut self) -> String {
        self.nested(|writer| match writer.form(3, 9) {
            0..=2 => writer.number_operand(),
            3 | 4 => writer.arithmetic(),
            5 => format!("{} ? {} : {}", writer.condition_operand(), writer.number(), writer.number()),
            6 => {
                let operator = writer.pick(&["||", "&&", "??"]);
                format!("{} {operator} {}", writer.number_operand(), writer.number_operand())
            }
            7 => match writer.assignable(Kind::Number) {
                Some(name) => format!("{name} {} {}", writer.pick(&["=", "+=", "-=", "??="]), writer.number()),
                None => writer.literal(),
            },
            _ => format!("({}, {})", writer.number(), writer.number()),
        })
    }

    fn arithmetic(&mut self) -> String {
        let mut text = self.number_operand();
        for _ in 0..=self.byte() % 3 {
            let operator = self.pick(&["+", "-", "*", "%", "/", "&", "|", "^", "<<", ">>", ">>>"]);
            text += &format!(" {operator} {}", self.number_operand());
        }
        text
    }

    fn literal(&mut self) -> String {
        match self.byte() % 4 {
            0..=2 => (self.byte() % 10).to_string(),
            _ => self.pick(&["0x1F", "1_000", "1.5e3", ".5", "5.", "0b101", "0o17", "1e21", "1e-7", "0.1"]).into(),
        }
    }

    pub(super) fn number_operand(&mut self) -> String {
        self.nested(|writer| match writer.form(4, 19) {
            16 => format!("{}.length", writer.bytes()),
            17 => format!("{}[{}]", writer.bytes(), writer.number()),
            18 => {
                let method = writer.pick(&["at", "indexOf", "lastIndexOf"]);
                format!("{}.{method}({})", writer.bytes(), writer.number())
            }
            0 => writer.literal(),
            1..=3 => writer.named(Kind::Number).unwrap_or_else(|| writer.literal()),
            4 => format!("({})", writer.number()),
            5 => writer.call(),
            6 => format!("{}.length", writer.list()),
            7 => format!("{}.length", writer.text()),
            8 => {
                let body = writer.callback(Around::default(), &["sum", "item"]);
                format!("{}.reduce((sum, item) => {body}, 0)", writer.list())
            }
            9 => format!("Math.{}(...{})", writer.pick(&["max", "min", "hypot"]), writer.list()),
            10 => format!("(() => {})()", writer.callback(Around::default(), &[])),
            11 => format!("{}?.{}", writer.object_operand(), writer.pick(&["a", "b", "c"])),
            12 => format!("{}{}", writer.pick(&["- ", "+ ", "~", "- + ", "+!", "void "]), writer.number_operand()),
            13 => match writer.assignable(Kind::Number) {
                Some(name) => writer.pick(&["++x", "x++", "--x", "x--"]).replace('x', &name),
                None => writer.literal(),
            },
            14 => format!("Number.parseFloat({})", writer.text()),
            _ => writer.wait(),
        })
    }

    fn call(&mut self) -> String {
        let Some(name) = self.named(Kind::Function) else { return self.literal() };
        match self.byte() % 4 {
            0 | 1 => format!("{name}({})", self.number()),
            2 => format!("{name}({}, ...{})", self.number(), self.list()),
            _ => format!("{name}?.({})", self.number()),
        }
    }

    fn wait(&mut self) -> String {
        if !self.around.is_async {
            return self.literal();
        }
        match self.byte() % 3 {
            0 => format!("(await ({}))", self.number()),
            1 => format!("(await {})", self.promise()),
            _ => match self.named(Kind::Async) {
                Some(name) => format!("await {name}({})", self.number()),
                None => self.literal(),
            },
        }
    }

    pub(super) fn condition(&mut self) -> String {
        self.nested(|writer| match writer.form(2, 10) {
            0 => writer.pick(&["true", "false"]).into(),
            1 | 2 => {
                let operator = writer.pick(&["<", ">", "<=", ">=", "==", "!=", "===", "!=="]);
                format!("{} {operator} {}", writer.number_operand(), writer.number_operand())
            }
            3 => format!(
                "{} && {} || {}",
                writer.condition_operand(),
                writer.condition_operand(),
                writer.condition_operand()
            ),
            4 => format!("{} in {}", writer.text(), writer.object_operand()),
            5 => format!("{} instanceof {}", writer.list(), writer.pick(&["Array", "Object", "Map"])),
            6 => format!("typeof {} === {}", writer.number_operand(), writer.text()),
            7 => {
                let body = writer.callback(Around::default(), &["item"]);
                format!("{}.{}((item) => {body})", writer.list(), writer.pick(&["some", "every"]))
            }
            8 => format!("{}.includes({})", writer.text(), writer.text()),
            _ => format!("!{}", writer.number_operand()),
        })
    }

    fn condition_operand(&mut self) -> String {
        format!("({})", self.condition())
    }

    pub(super) fn text(&mut self) -> String {
        self.nested(|writer| match writer.form(3, 16) {
            14 => format!("new TextDecoder({}).decode({})", writer.pick(&["", "'utf-16le'"]), writer.bytes()),
            15 => format!("{}.{}", writer.bytes(), writer.pick(&["join('-')", "toString()", "toLocaleString()"])),
            0 => writer.pick(&["'a'", "'b'", "\"c\"", "'length'", "''", "'it\\'s'", "`x`"]).into(),
            1 => writer
                .pick(&["'\\u{1F600}é'", "'\\x41\\n'", "'a b c'", "'\\ud83d'", "`line\n${1}\\``", "String.raw`\\n`"])
                .into(),
            2 => writer.named(Kind::Text).unwrap_or_else(|| "'t'".into()),
            3 => format!("`<${{{}}}|${{{}}}>`", writer.number(), writer.text()),
            4 => format!("({} + {})", writer.text(), writer.number_operand()),
            5 => format!("String({})", writer.any()),
            6 => format!("(typeof {})", writer.number_operand()),
            7 => format!("{}.join({})", writer.list(), writer.text()),
            8 => format!("(JSON.stringify({}) ?? '')", writer.any()),
            9 => format!(
                "{}.{}",
                writer.text(),
                writer.pick(&["trim()", "toUpperCase()", "slice(-3)", "padStart(5, '.')", "at(0)", "repeat(2)"])
            ),
            10 => {
                let body = writer.callback(Around::default(), &["match"]);
                format!("{}.replaceAll('a', (match) => {body})", writer.text())
            }
            11 => format!("{}.replaceAll({}, {})", writer.text(), writer.text(), writer.text()),
            12 => format!("{}[{}]", writer.text(), writer.number()),
            _ => format!("String({}n ** 2n)", writer.byte()),
        })
    }

    pub(super) fn list(&mut self) -> String {
        self.nested(|writer| match writer.form(3, 19) {
            18 => format!("{}{}]", writer.pick(&["[...", "[0, ..."]), writer.bytes()),
            0 => writer.pick(&["[]", "[1, 2, 3]", "[3, 1, 2]", "['b', 'a']"]).into(),
            1 | 2 => writer.named(Kind::List).unwrap_or_else(|| "[0, 1]".into()),
            3 => format!("[{}, {}]", writer.number(), writer.any()),
            4 => format!("[...{}, {}, ...{}]", writer.list(), writer.number(), writer.text()),
            5 | 6 => {
                let body = writer.callback(Around::default(), &["item", "index"]);
                let method = writer.pick(&["map", "filter", "flatMap"]);
                format!("[...{}].{method}((item, index) => {body})", writer.list())
            }
            7 => format!("{}.slice({}, {})", writer.list(), writer.byte() % 3, writer.number()),
            8 => {
                let body = writer.callback(Around::default(), &["a", "b"]);
                format!("{}.toSorted((a, b) => {body})", writer.list())
            }
            9 => format!("Object.{}({})", writer.pick(&["keys", "values", "entries"]), writer.object()),
            10 => {
                let body = writer.callback(Around::default(), &["index"]);
                format!("Array.from({{length: {}}}, (_, index) => {body})", writer.byte() % 5)
            }
            11 => format!("{}.split({})", writer.text(), writer.text()),
            12 => format!("[...new Set({})]", writer.list()),
            13 => format!("{}.toReversed().flat()", writer.list()),
            _ => format!("[...new Map(Object.entries({})).keys()]", writer.object()),
        })
    }

    pub(super) fn object(&mut self) -> String {
        self.nested(|writer| match writer.form(2, 9) {
            0 => writer.pick(&["{}", "{a: 1}", "{a: 1, b: 'x', 1: 2}", "{a: [1], c: {d: null}}"]).into(),
            1 => writer.named(Kind::Object).unwrap_or_else(|| "{b: 2}".into()),
            2 => format!("{{a: {}, ...{}, [{}]: {}}}", writer.any(), writer.object(), writer.key(), writer.number()),
            3 => {
                let body = writer.callback(Around::default(), &["n"]);
                format!("{{a(n) {{ return {body}; }}, 'b c': {}, c: (x) => x}}", writer.number())
            }
            4 => format!("structuredClone({})", writer.pick(&["{a: [1, {b: 2}]}", "{c: new Map([[1, 2]])}", "{}"])),
            5 => format!("Object.assign({{}}, {}, {})", writer.object(), writer.object()),
            6 => format!("JSON.parse(JSON.stringify({}))", writer.object()),
            7 => {
                let body = writer.callback(Around::default(), &["key"]);
                format!("Object.fromEntries({}.map((key) => [key, {body}]))", writer.list())
            }
            _ => format!("Object.fromEntries([['z', 1], [{}, {}]])", writer.text(), writer.list()),
        })
    }

    /// Generates a `Uint8Array`.
    pub(super) fn bytes(&mut self) -> String {
        self.nested(|writer| match writer.form(3, 14) {
            0 => writer.pick(&["new Uint8Array([1, 2, 3])", "new Uint8Array(4)", "Uint8Array.of(7, 300, -1)"]).into(),
            1 | 2 => writer.named(Kind::Bytes).unwrap_or_else(|| "new Uint8Array([0, 200])".into()),
            3 => format!("new Uint8Array({})", writer.list()),
            4 => format!("new TextEncoder().encode({})", writer.text()),
            5 => {
                let method = writer.pick(&["slice", "subarray"]);
                format!("{}.{method}({}, {})", writer.bytes(), writer.byte() % 3, writer.number())
            }
            6 | 7 => {
                let body = writer.callback(Around::default(), &["item", "index"]);
                format!("{}.{}((item, index) => {body})", writer.bytes(), writer.pick(&["map", "filter"]))
            }
            8 => {
                let body = writer.callback(Around::default(), &["item"]);
                format!("Uint8Array.from({}, (item) => {body})", writer.list())
            }
            9 => {
                let body = writer.callback(Around::default(), &["a", "b"]);
                format!("{}.toSorted((a, b) => {body})", writer.bytes())
            }
            10 => format!("{}.with({}, {})", writer.bytes(), writer.byte() % 2, writer.number()),
            11 => format!("structuredClone({})", writer.bytes()),
            12 => format!("new Uint8Array({}.buffer)", writer.bytes()),
            _ => {
                format!("{}.{}", writer.bytes(), writer.pick(&["toReversed()", "toSorted()", "fill(9, 1)", "slice()"]))
            }
        })
    }

    fn object_operand(&mut self) -> String {
        format!("({})", self.object())
    }

    pub(super) fn promise(&mut self) -> String {
        self.nested(|writer| match writer.form(3, 15) {
            0 => format!("Promise.resolve({})", writer.number()),
            1 => "callTool('items:get', {id: 1})".into(),
            2 => writer
                .pick(&["callTool('slow', {})", "callTool('slower', {}, {timeoutMs: 500})", "items.list({})"])
                .into(),
            3 => writer
                .pick(&[
                    "callTool('fail', {}).catch((error) => error.code)",
                    "callTool('missing', {a: 1}, {throwOnError: false})",
                ])
                .into(),
            4 => format!("Promise.reject(new Error({}))", writer.text()),
            5 => match writer.named(Kind::Async) {
                Some(name) => format!("{name}({})", writer.number()),
                None => "(async () => 1)()".into(),
            },
            6 => format!("{}.then((value) => {})", writer.promise(), writer.callback(Around::default(), &["value"])),
            7 => format!("{}.catch((error) => error.message).finally(() => console.log('finally'))", writer.promise()),
            8 | 9 => {
                let method = writer.pick(&["all", "allSettled", "race", "any"]);
                format!("Promise.{method}(kept({}, {}))", writer.promise(), writer.promise())
            }
            10 => {
                let value = writer.inside(Around::default(), &[], Self::promise);
                format!("new Promise((resolve, reject) => {{ resolve({value}); reject(0); }})")
            }
            11 | 12 => {
                let around = Around { is_async: true, ..Around::default() };
                let body = writer.callback(around, &["item"]);
                format!("Promise.all(kept(...{}.map(async (item) => {body})))", writer.list())
            }
            13 => {
                let around = Around { is_async: true, ..Around::default() };
                format!("(async () => {{\n{}}})()", writer.function_body(around, &[]))
            }
            15 => format!("sleep({})", writer.pick(&["1", "5", "20", "60", "120"])),
            16 => {
                let (delay, value) = (writer.pick(&["0", "5", "50", "70"]), writer.number());
                format!("new Promise((resolve) => setTimeout(resolve, {delay}, {value}))")
            }
            17 => {
                let (tool, ms) = (writer.pick(&["slow", "slower"]), writer.pick(&["20", "70", "150"]));
                format!(
                    "callTool('{tool}', {{}}, {{ signal: AbortSignal.timeout({ms}) }}).catch((error) => error.name)"
                )
            }
            _ => {
                let around = Around { is_async: true, ..Around::default() };
                let (first, second) =
                    (writer.inside(Around::default(), &[], Self::promise), writer.callback(around, &[]));
                format!("parallel([() => {first}, async () => {second}])")
            }
        })
    }
}

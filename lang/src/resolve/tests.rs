//! Tests of the resolver, through real source text.

use super::dump::dump;
use crate::ast::Arena;
use crate::{Failure, Loops, Options, PlainCall, Refusal, compile};

const BUILT_INS: &[&str] =
    &["Array", "Boolean", "Date", "JSON", "Map", "Math", "Number", "Object", "Promise", "String", "Symbol", "console"];

fn plain(call: PlainCall<'_>, _: bool) -> bool {
    match call {
        PlainCall::Global(name) => name == "Number",
        PlainCall::Static(object, _) => matches!(object, "Math" | "String" | "Object"),
        PlainCall::Method(name) => matches!(name, "slice" | "push" | "toFixed"),
        PlainCall::New(name) => name == "Map",
    }
}

fn options<'a>() -> Options<'a> {
    Options {
        language: None,
        loops: Loops::All,
        max_bytes: 1 << 20,
        disabled: &[],
        missing: &[],
        fence_tags: &["shop"],
        calls_result: true,
        apps: &|name| name == "Deno",
        provided: &|_| false,
        own_tool: &|_, _| None,
        alternative: &|refused| (refused == "fetch").then(|| "call `ask`".into()),
        globals: &|name| BUILT_INS.contains(&name),
        plain_call: &plain,
    }
}

fn dumped(source: &str) -> String {
    match compile(&Arena::new(), source, &options()) {
        Ok(program) => dump(&program),
        Err(failure) => format!("{failure:?}"),
    }
}

/// Returns the faults of a script: each message with the text it is about.
fn wrong(source: &str, options: &Options<'_>) -> String {
    match compile(&Arena::new(), source, options) {
        Ok(_) => "nothing".to_owned(),
        Err(Failure { diagnostics }) => diagnostics
            .iter()
            .map(|diagnostic| format!("{} <{}>", diagnostic.message, diagnostic.span.text(source)))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[track_caller]
fn gives(source: &str, expected: &str) {
    assert_eq!(dumped(source), expected, "\n{source}");
}

#[track_caller]
fn refuses(source: &str, expected: &str) {
    assert_eq!(wrong(source, &options()), expected, "\n{source}");
}

#[test]
fn variables() {
    gives("const a = 1; let b = a; b += 2; return b;", "init $0 1; init $1 a$0; (b$1 = (Add b$1 2)); return b$1");
    gives(
        "const x = 1; const f = () => x; return f();",
        "init #0 1; init $1 f1; return ~f$1()
f1 f(0): return x#0",
    );
    gives(
        "x; let x = 1; typeof x; typeof u; x = x + undefined; -1; -x; NaN",
        "enter $0; x$0!; init $0 1; (Typeof x$0); (typeof u); (x$0 = (Add x$0 undefined)); -1; (Minus x$0); return NaN",
    );
    gives(
        "var a; var b = 1; const f = () => a + b; { var c = 2 } c;",
        "enter $3 undefined; enter #0 undefined; init #1 1; init $0 f1; init $3 2; return c$3
f1 f(0): return (Add a#0 b#1)",
    );
    gives(
        "const c = 1; c = 2; c++; c += 1; c ??= 2; u = 1; u++;",
        "init $0 1; (c$0 =const 2); (c$0 =const (ToNumeric c$0)); (c$0 =const (Add c$0 1)); (Coalesce c$0 (c$0 =const 2)); (u =global 1); return (u =global (Increment (ToNumeric u)))",
    );
}

#[test]
fn functions_hoisted_before_variables() {
    gives(
        "function f() { return y } let y = 2; return f();",
        "init $0 f1; init #0 2; return ~f$0()
f1 f(0): return y#0",
    );
    gives(
        "f(); function f() { return y } let y = 2;",
        "enter #0; init $0 f1; (%2 = undefined); ~(%2 = ~f$0()); init #0 2; return %2
f1 f(0): return y#0!",
    );
    gives(
        "{ const g = f; const y = 2; function f() { return y } g() }",
        "enter @1; init $2 f1; init $0 f$2; init @1 2; return ~g$0()
f1 f(0) captures $1: return y@0!",
    );
}

#[test]
fn captures() {
    gives(
        "const g = (xs) => { let n = 0; const k = 2; for (const x of xs) { h(() => x + k, () => n++) } return n };",
        "init $0 f1
f1 g(1): enter @1; init @1 0; init $2 2; Of:0 %3 %4 xs$0 ~h(f2, f3); return n@1
f2 (0) captures $4,$2: return (Add x$0 k$1)
f3 (0) captures $1: return (post+1 n@0)",
    );
    gives(
        "const g = () => { const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); return fs };",
        "init $0 f1
f1 g(0): init $0 []; enter @1; init @1 0; for:0 fresh $1 (Less i@1 3); (+1 i@1) fs$0.push(f2); return fs$0
f2 (0) captures $1: return i@0",
    );
    gives(
        "const g = () => { for (let i = 0, f = () => i; i < 3; i++) f(); };",
        "init $0 f1
f1 g(0): enter @0; init @0 0; init $1 f2; (%2 = i@0); enter @0; init @0 %2; for:0 fresh $0 (Less i@0 3); (+1 i@0) ~f$1()
f2 f(0) captures $0: return i@0",
    );
    gives(
        "const g = (a, b) => { b = 1; return () => () => a + b };",
        "init $0 f1
f1 g(2) boxed $1: (b@1 = 1); return f2
f2 (0) captures $0,$1: return f3
f3 (0) captures $0,$1: return (Add a$0 b@1)",
    );
    gives(
        "const g = () => { function a() { return b() } function b() { return a() } return a };",
        "init $0 f1
f1 g(0): enter @1 undefined; init $0 f2; init @1 f3; return a$0
f2 a(0) captures $1: return ~b@0()
f3 b(0) captures $0: return ~a$0()",
    );
    gives(
        "const g = () => { const rec = (n) => n ? rec(n - 1) : 0; return rec };",
        "init $0 f1
f1 g(0): enter @0; init @0 f2; return rec@0
f2 rec(1) captures $0: return ~(? n$0 ~rec@1((Subtract n$0 1)) 0)",
    );
    gives(
        "const f = (a) => { var x = a; var y; if (a) { var z = 1 } return [() => x, () => y, () => z] };",
        "init $0 f1
f1 f(1): enter @3 undefined; enter @2 undefined; init $1 a$0; if a$0 init @3 1; return [f2, f3, f4]
f2 (0) captures $1: return x$0
f3 (0) captures $2: return y@0
f4 (0) captures $3: return z@0",
    );
    gives(
        "for (let x of xs) { f(() => x = 1) } return 0",
        "Of:0 %0 %2 xs {enter @1; init @1 %2; ~f(f1)}; return 0
f1 (0) captures $1: return (x@0 = 1)",
    );
}

#[test]
fn function_names() {
    gives(
        "const f = function g() { return g }; const h = function k() { k = 1 };",
        "init $0 f1; init $1 f2
f1 g(0) itself $0: return g$0
f2 k(0) itself $0: (k$0 =const 1)",
    );
    gives(
        "let f; f = () => {}; f ??= async () => {}; const {g = () => 1} = {h: () => 2, async k() {}, [f]: () => 3};",
        "(%2 = undefined); init $0 undefined; (f$0 = f1); (%2 = (Coalesce f$0 (f$0 = f2))); (%3 = (object:g {h: f3, k: f4, [f$0]: f5})); init $1 (? (StrictEqual (%4 = %3.g) undefined) f6 %4); return %2
f1 f(0): 
f2 async f(0): 
f3 h(0): return 2
f4 async k(0): 
f5 (0): return 3
f6 g(0): return 1",
    );
}

#[test]
fn destructuring() {
    gives(
        "const {a, b: {c = 5}, ...rest} = input; let [p, , q = 1, ...r] = a;",
        "(%6 = (object:a input)); init $0 %6.a; (%7 = (object:c %6.b)); init $1 (? (StrictEqual (%8 = %7.c) undefined) 5 %8); init $2 (rest %6 ['a', 'b']); (%9 = (iterator a$0)); init $3 next:%9; next:%9; init $4 (? (StrictEqual (%10 = next:%9) undefined) 1 %10); init $5 rest:%9",
    );
    gives(
        "[a.x, a[k()]] = v; let z, w; ({z, w = 2, ['k' + z]: a.b} = v); return ([z, w] = [w, z]);",
        "~((%2 = (iterator v)), (set.x a next:%2), ~(set a ~k() next:%2)); init $0 undefined; init $1 undefined; ((%3 = (object:z v)), (z$0 = %3.z), (w$1 = (? (StrictEqual (%4 = %3.w) undefined) 2 %4)), (%5 = (ToPropertyKey (Add 'k' z$0))), (set.b a %3[%5])); return ((%6 = [w$1, z$0]), (%7 = (iterator %6)), (z$0 = next:%7), (w$1 = next:%7), %6)",
    );
    gives(
        "const {[f()]: a, 0: b, ...c} = d;",
        "(%3 = (object:- d)); ~(%4 = ~(ToPropertyKey ~f())); init $0 %3[%4]; init $1 %3[0]; init $2 (rest %3 [%4, '0'])",
    );
    gives(
        "for (let [a, b] = [1, 2]; a < b; a++) {} for (x.y of z) {} for ({a} of z); for (var q of z) q; return 0",
        "enter $0 undefined; (%3 = (iterator [1, 2])); init $1 next:%3; init $2 next:%3; for:0 (Less a$1 b$2); (+1 a$1) {}; Of:1 %4 %5 z (set.y x %5); Of:2 %6 %7 z {(object:a %7); (a =global %7.a)}; Of:3 %8 %9 z {init $0 %9; q$0}; return 0",
    );
    gives(
        "for (const x of x) {} for (const [k, v] of o) k; return 0",
        "Of:0 %0 %1 x!! {}; Of:1 %2 %3 o {(%6 = (iterator %3)); init $4 next:%6; init $5 next:%6; k$4}; return 0",
    );
}

#[test]
fn parameters() {
    gives(
        "function f(a, b = a, {c, d} = {}, ...r) { var a; return c }",
        "init $0 f1
f1 f(3) length 1 rest %7: if (StrictEqual b$1 undefined) init $1 a$0; (%6 = (object:c (? (StrictEqual %2 undefined) {} %2))); init $3 %6.c; init $4 %6.d; init $5 %7; init $8 a$0; return c$3",
    );
    gives(
        "function f(a = () => b, b = 1) { var a = 2; return a }",
        "init $0 f1
f1 f(2) length 0: enter @2; if (StrictEqual a$0 undefined) init $0 f2; init @2 (? (StrictEqual %1 undefined) 1 %1); init $3 a$0; init $3 2; return a$3
f2 a(0) captures $2: return b@0!",
    );
    gives(
        "function f(a = b, b) {} ",
        "init $0 f1
f1 f(2) length 0: if (StrictEqual a$0 undefined) init $0 b!!",
    );
    gives(
        "const f = ([a, b]) => a + b; xs.map(({id}) => id);",
        "init $0 f1; return ~xs.map(f2)
f1 f(1): (%3 = (iterator %0)); init $1 next:%3; init $2 next:%3; return (Add a$1 b$2)
f2 (1): (object:id %0); init $1 %0.id; return id$1",
    );
    gives(
        "const f = ({a = 1, b: [c] = []} = {}) => a;",
        "init $0 f1
f1 f(1) length 0: (%3 = (object:a (? (StrictEqual %0 undefined) {} %0))); init $1 (? (StrictEqual (%4 = %3.a) undefined) 1 %4); (%6 = (iterator (? (StrictEqual (%5 = %3.b) undefined) [] %5))); init $2 next:%6; return a$1",
    );
    gives(
        "function f(a) { function a() {} return a }",
        "init $0 f1
f1 f(1): init $1 f2; return a$1
f2 a(0):",
    );
}

#[test]
fn chains() {
    gives(
        "a?.b.c(d)?.e; const o = q; o.p?.(); o?.p(); (o?.p)(); delete o?.p; o?.[i]; f?.(1); (a?.b).c",
        "~(? (Equal a null) undefined ~(? ~(Equal ~(%1 = ~a.b.c(d)) null) undefined %1.e)); init $0 q; ~(? (Equal (%2 = o$0.p) null) undefined ~(with o$0 %2)()); ~(? (Equal o$0 null) undefined ~o$0.p()); ~(with o$0 (? (Equal o$0 null) undefined o$0.p))(); (? (Equal o$0 null) true (delete.p o$0)); (? (Equal o$0 null) undefined o$0[i]); ~(? (Equal f null) undefined ~f(1)); return (? (Equal a null) undefined a.b).c",
    );
    gives(
        "o[k()]?.(); f().g?.(); (a?.b)?.()",
        "~(? ~(Equal ~(%1 = ~(%0 = o)[~k()]) null) undefined ~(with %0 %1)()); ~(? ~(Equal ~(%3 = ~~(%2 = ~f()).g) null) undefined ~(with %2 %3)()); return ~(? (Equal a null) undefined ~(? (Equal (%4 = a.b) null) undefined ~(with a %4)()))",
    );
}

#[test]
fn assignments() {
    gives(
        "o.p += 1; o.p++; const v = o[k]++; o[i] ||= 2; o[i][j] -= 3; f().p ??= () => {}; let n; n ??= () => 1; ++o.p; o['p']; o['0']; o[`q`]",
        "(set.p o (Add o.p 1)); (set.p o (Increment (ToNumeric o.p))); init $0 ((set o (%2 = k) (Increment (%3 = (ToNumeric o[%2])))), %3); (Or o[(%4 = i)] (set o %4 2)); (set (%5 = o[i]) (%6 = j) (Subtract %5[%6] 3)); ~(Coalesce ~~(%7 = ~f()).p (set.p %7 f1)); init $1 undefined; (Coalesce n$1 (n$1 = f2)); (set.p o (Increment (ToNumeric o.p))); o.p; o[0]; return o.q
f1 (0): 
f2 n(0): return 1",
    );
    gives(
        "let o, i; o[i = 1] += 2; o[f()]++; o[`${i}`] *= 2;",
        "init $0 undefined; init $1 undefined; (set (%2 = o$0) (%3 = (i$1 = 1)) (Add %2[%3] 2)); ~(set (%4 = o$0) ~(%5 = ~f()) (Increment (ToNumeric %4[%5]))); return (set (%6 = o$0) (%7 = `${}`[i$1]) (Multiply %6[%7] 2))",
    );
}

#[test]
fn operators() {
    gives(
        "a && b && c && d; a - b - c; (1, 2, x++); let y; y++;",
        "(And (And a b) (And c d)); (a Subtract b Subtract c); (1, 2, (x =global (Increment (ToNumeric x)))); init $0 undefined; return (post+1 y$0)",
    );
    gives(
        r"String.raw`a${b}\n`; tag`x`; o.t`y`",
        r"String.raw(template:0, b); ~tag(template:1); return ~o.t(template:2)",
    );
}

#[test]
fn statements() {
    gives(
        "switch (x) { case 1: let a = 1; a; break; default: a; function g() {} g() } return 0",
        "enter $1; init $2 f1; switch:0 %0 x case 1{init $1 1; a$1; break:0} case -{a$1!; ~g$2()}; return 0
f1 g(0):",
    );
    gives(
        "try { f() } catch (e) { g(() => e); e = 2 } finally { h() }",
        "try {return ~f()} catch %1 {enter @0; init @0 %1; ~g(f1); return (e@0 = 2)} finally {~h()}
f1 (0) captures $0: return e@0",
    );
    gives(
        "outer: for (const a in o) { for (;;) { continue outer; break } } lbl: { break lbl; } return 0",
        "In:0 %0 %1 o for:1 -; - {continue:0; break:1}; label:2 break:2; return 0",
    );
    gives(
        "do { continue } while (x); while (y) break; if (x) ; else y;",
        "do:0 continue:0 x; for:1 y; - break:1; if x {} else return y",
    );
    gives(
        "const f = async () => { for await (const x of y) {} };",
        "init $0 f1
f1 async f(0): AwaitOf:0 %0 %1 y {}",
    );
}

#[test]
fn results() {
    gives("try { f() } catch { 1 }", "try {return ~f()} catch %0 {return 1}");
    gives(
        "async function main() { return 1 }",
        "init $0 f1; return ~main$0()
f1 async main(0): return 1",
    );
    gives(
        "const main = async () => { await main2() }; 5;",
        "init $0 f1; 5; return ~main$0()
f1 async main(0): ~(await ~main2())",
    );
    gives(
        "function main() {} main();",
        "init $0 f1; return ~main$0()
f1 main(0):",
    );
    gives("1; const x = 2;", "(%1 = undefined); (%1 = 1); init $0 2; return %1");
    gives(
        "if (a) { 1 } else { 2; let y = 3; }",
        "if a return 1 else {(%1 = undefined); (%1 = 2); init $0 3; return %1}",
    );
    gives(
        "let s = 0; for (const x of xs) s += x;",
        "init $0 0; (%1 = undefined); Of:0 %2 %3 xs (%1 = (s$0 = (Add s$0 x$3))); return %1",
    );
    gives(
        "1; {} ; function f() {}",
        "init $0 f1; (%1 = undefined); (%1 = 1); return %1
f1 f(0):",
    );
    gives(
        "for (x = 1;;) { if (a) b; else break }",
        "(%0 = undefined); (x =global 1); for:0 -; - {(%0 = undefined); if a (%0 = b) else break:0}; return %0",
    );
    gives("1; if (a) return 2;", "1; if a return 2");
}

#[test]
fn splits() {
    gives(
        "const o = { slice: f, n: 1, m() {}, async am() {}, [k]: 2, 'a b': 3, 1: 2, ...z, a }; o.slice(); o.push(1); o.n(); Math.max(1); new Map(); await x;",
        "init $0 {slice: f, n: 1, m: f1, am: f2, [k]: 2, a b: 3, 1: 2, ...z, a: a}; ~o$0.slice(); o$0.push(1); ~o$0.n(); Math.max(1); new Map(); return ~(await x)
f1 m(0): 
f2 async am(0):",
    );
    gives(
        "o.toFixed = 1; o.push = f; x.toFixed(); x.push(); Number(f()); new Set([await 1]); o[k]()",
        "(set.toFixed o 1); (set.push o f); ~x.toFixed(); ~x.push(); ~Number(~f()); ~new Set(~[~(await 1)]); return ~o[k]()",
    );
}

#[test]
fn early_errors_are_those_of_strict_javascript() {
    let again = |name: &str| format!("Identifier '{name}' has already been declared <{name}>");
    for source in [
        "let x; let x;",
        "let x; var x;",
        "var x; let x;",
        "{ function x() {} function x() {} }",
        "function x() {} let x;",
        "{ let x; { var x; } }",
        "{ var x; } let x;",
        "try {} catch (x) { let x; }",
        "try {} catch ({x}) { var x; }",
        "try {} catch ([x, x]) { }",
        "(x) => { let x; }",
        "({x}) => { const x = 1; }",
        "for (let x of y) { var x; }",
        "for (const [x, x] of y) {}",
        "switch (1) { case 1: let x; case 2: var x; }",
    ] {
        refuses(source, &again("x"));
    }
    for source in [
        "var x; var x;",
        "function x() {} function x() {}",
        "function x() {} var x;",
        "try {} catch (x) { var x; }",
        "(x) => { var x; }",
        "(x) => { function x() {} }",
        "for (let x of y) { let x; }",
        "a: ; a: ;",
        "a: b: while (1) { continue a; continue b; break a; }",
        "(function x() { let x; })",
        "delete (x.y); delete 1;",
        "(x) => { for (const x of []) { var y; } }",
    ] {
        refuses(source, "nothing");
    }
    refuses("(a, {a}) => 1", "Duplicate parameter name not allowed in this context <a>");
    refuses("break;", "Illegal break statement <break;>");
    refuses("() => { continue }", "Illegal continue statement: no surrounding iteration statement <continue>");
    refuses("while (1) { () => { break; } }", "Illegal break statement <break;>");
    refuses("a: { continue a; }", "Illegal continue statement: 'a' does not denote an iteration statement <a>");
    refuses("a: { a: ; }", "Label 'a' has already been declared <a>");
    refuses("while (1) { break b; }", "Undefined label 'b' <b>");
    refuses("delete ((x));", "Delete of an unqualified identifier in strict mode. <x>");
    let wait = "await is only valid in async functions and the top level bodies of modules <await 1>";
    refuses("function f() { await 1 }", wait);
    refuses("async (x = await 1) => 1", "Illegal await-expression in formal parameters of async function <await 1>");
    for source in [
        "yield 1",
        "function f() { yield 1 }",
        "function* f() { [].map((x) => yield 1) }",
        "function* f() { function g() { yield 1 } }",
        "function* f() { (x = yield 1) => x }",
        "async (x) => { yield 1 }",
        "x = { f() { yield* 1 } }",
    ] {
        refuses(source, "Unexpected strict mode reserved word <yield>");
    }
    refuses("function* f(a = yield 1) {}", "Yield expression not allowed in formal parameter <yield 1>");
    refuses("async function* f({ [yield]: a }) {}", "Yield expression not allowed in formal parameter <yield>");
    refuses("function* f() { await 1 }", wait);
    refuses(
        "async function* f(a = await 1) {}",
        "Illegal await-expression in formal parameters of async function <await 1>",
    );
    refuses("function* f(a, a) {}", "Duplicate parameter name not allowed in this context <a>");
    refuses("function* f() {} function* f() {} const g = function* f() { yield f; };", "nothing");
    refuses("{ function* x() {} function x() {} }", &again("x"));
}

#[test]
fn refused_names() {
    refuses(
        "eval('1'); const p = process.env; function f() { return fetch(1) } const g = (arguments) => typeof window;",
        "Identifier 'eval' is not allowed in AgentScript <eval>\n\
         Identifier 'process' is not allowed in AgentScript <process>\n\
         Identifier 'fetch' is not allowed in AgentScript <fetch>\n\
         Identifier 'arguments' is not allowed in AgentScript <arguments>\n\
         Identifier 'window' is not allowed in AgentScript <window>",
    );
    refuses("const process = {}; process.env; row.process; ({fetch() {}}).fetch(); (module) => module", "nothing");
    refuses("process += 1", "Identifier 'process' is not allowed in AgentScript <process>");
    refuses("this.x", "'this' is not allowed in AgentScript <this>");
    refuses(
        "Math = 1; Date++; ({Map} = a); foo = 1",
        "Assignment to 'Math' is not allowed in AgentScript: built-ins are read-only <Math>\n\
         Assignment to 'Date' is not allowed in AgentScript: built-ins are read-only <Date>\n\
         Assignment to 'Map' is not allowed in AgentScript: built-ins are read-only <Map>",
    );
    let disabled = [("JSON".to_owned(), Refusal::DisallowedGlobal)];
    let options = Options { disabled: &disabled, ..options() };
    assert_eq!(wrong("JSON.parse('1')", &options), "Identifier 'JSON' is not allowed in AgentScript <JSON>");
}

#[test]
fn refused_properties() {
    for (source, name, place) in [
        ("x.constructor", "constructor", "constructor"),
        ("x?.__defineGetter__", "__defineGetter__", "__defineGetter__"),
        ("x['__proto__'] = 1", "__proto__", "'__proto__'"),
        ("x['__pro' + 'to__']", "__proto__", "'__pro' + 'to__'"),
        ("x['con' + ('str' + `uctor`)]", "constructor", "'con' + ('str' + `uctor`)"),
        ("x[`prototype`]()", "prototype", "`prototype`"),
        ("({__proto__: 1})", "__proto__", "__proto__"),
        ("({constructor() {}})", "constructor", "constructor"),
        ("({['prototype']: 1})", "prototype", "'prototype'"),
        ("const {constructor} = x", "constructor", "constructor"),
        ("({prototype: x.y} = z)", "prototype", "prototype"),
        ("Object.defineProperty(a, 'b', {})", "Object.defineProperty", "Object.defineProperty"),
        ("Object['getPrototypeOf'](a)", "Object.getPrototypeOf", "Object['getPrototypeOf']"),
        ("Object.create(x)", "Object.create", "Object.create"),
        ("const c = Object.create", "Object.create", "Object.create"),
    ] {
        refuses(source, &format!("Property '{name}' is not allowed in AgentScript <{place}>"));
    }
    refuses("Object.create(null); const Object2 = {create: 1}; Object2.create(1); x[k]; x['const' + y]", "nothing");
}

#[test]
fn refused_constructors() {
    refuses("new Date(); new Map(); new Intl.NumberFormat('en')", "nothing");
    for (source, what) in [
        ("new Foo(1)", "Foo"),
        ("new Number(1)", "Number"),
        ("new (x())()", "an expression"),
        ("new a.b()", "an expression"),
    ] {
        let message = "is not allowed in AgentScript: it works on built-in constructors only";
        refuses(source, &format!("`new` on {what} {message} <{source}>"));
    }
    refuses("new WeakMap()", "Identifier 'WeakMap' is not allowed in AgentScript <WeakMap>");
}

#[test]
fn loops_follow_the_policy() {
    let source =
        "while (1) ; do ; while (1); for (;;) ; for (;a;) ; for (x of y) ; for (x in y) ; for await (x of y) ;";
    let forms = |loops| {
        wrong(source, &Options { loops, ..options() })
            .lines()
            .map(|line| line.split(" loops are").next().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(forms(Loops::All), ["nothing"]);
    assert_eq!(forms(Loops::Bounded), ["while", "do-while", "endless for"]);
    assert_eq!(forms(Loops::None), ["while", "do-while", "endless for", "for", "for-of", "for-in", "for-await"]);
}

#[test]
fn at_most_fifty_refusals_are_reported() {
    let source = "eval; ".repeat(80);
    assert_eq!(wrong(&source, &options()).lines().count(), 50);
}

#[test]
fn large_scripts_are_refused() {
    let options = Options { max_bytes: 10, ..options() };
    assert_eq!(wrong("1 + 2 + 3 + 4", &options), "the script has 13 bytes; at most 10 are allowed <>");
}

#[test]
fn free_names_come_in_order_of_the_source() {
    let arena = Arena::new();
    let program = compile(&arena, "b; function f() { return a + b } c; a;", &options()).expect("it compiles");
    let names = program.free.iter().map(|&(name, _)| program.text(name)).collect::<Vec<_>>();
    assert_eq!(names, [b"b", b"a", b"c"]);
}

/// The deepest scripts that the parser lets pass must not exhaust a small stack.
#[test]
fn deep_scripts_fit_a_small_stack() {
    let forms: &[(&str, &str, &str)] = &[
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("f(", "1", ")"),
        ("f?.(", "1", ")"),
        ("({a: ", "1", "})"),
        ("() => ", "1", ""),
        ("async (a = 1, {b}) => ", "1", ""),
        ("(function () { return ", "1", " })"),
        ("`a${", "1", "}`"),
        ("t`a${", "1", "}`"),
        ("!", "1", ""),
        ("a ? b : ", "1", ""),
        ("a = ", "1", ""),
        ("a.b ??= ", "1", ""),
        ("a[b] += ", "1", ""),
        ("[a = ", "b", "] = b"),
        ("", "a", ".b"),
        ("", "a", "?.b"),
        ("", "a", "?.[b]?.()"),
        ("{", "1", "}"),
        ("if (a) ", "1", ""),
        ("if (a) { let a; ", "1", "}"),
        ("for (let a of b) ", "1", ""),
        ("for (let a = 1; a; ) { f(() => a); ", "1", "}"),
        ("switch (a) { case 1: let a; ", "1", "}"),
        ("try { ", "1", "} catch ({a}) {} finally {}"),
        ("function f(a = 1) { let b; ", "f;", "}"),
        ("x: { () => { ", "1", "} }"),
        ("a ** ", "1", ""),
        ("1 + (2, ", "1", ")"),
    ];
    for (open, middle, close) in forms {
        let script = |n: usize| format!("{}{middle}{}", open.repeat(n), close.repeat(n));
        let parses = |n: usize| crate::parse::parse(&Arena::new(), &script(n), crate::Language::JavaScript).is_ok();
        let deepest = (1..300).rev().find(|&n| parses(n)).unwrap_or(0);
        assert!(deepest > 50, "{open}{middle}{close}: {deepest}");
        let source = script(deepest);
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let compiled =
            thread.spawn(move || compile(&Arena::new(), &source, &options()).map(|program| dump(&program).len()));
        let compiled = compiled.expect("a thread").join().expect("no overflow");
        assert!(compiled.is_ok(), "{open}{middle}{close}: {compiled:?}");
    }
    let long = ["a"; 20_000].join(" && ");
    assert!(compile(&Arena::new(), &long, &options()).is_ok());
}

#[test]
fn fences_and_alternatives_are_those_of_the_host() {
    let hint = |source: &str| {
        let failure = compile(&Arena::new(), source, &options()).expect_err("it is refused");
        failure.diagnostics[0].hint.clone().unwrap_or_default().into_owned()
    };
    assert_eq!(hint("fetch('a')"), "scripts have no network; call `ask`");
    assert_eq!(hint("WebSocket('a')"), "scripts have no network");
    let in_fence = |tag: &str| wrong(&format!("Here it is:\n```{tag}\n1 + 1\n```\n"), &options());
    assert_eq!((in_fence("js").as_str(), in_fence("Shop").as_str()), ("nothing", "nothing"));
    assert!(in_fence("python").starts_with("expected"), "{}", in_fence("python"));
}

#[test]
fn members_of_an_app_with_a_refused_name_are_read() {
    let refused = |source: &str| wrong(source, &options());
    for fine in ["Deno.run({})", "Deno?.run({})", "Deno['run']({})", "const f = Deno.run; f({})"] {
        assert_eq!(refused(fine), "nothing", "{fine}");
    }
    for wrong in ["Deno", "Deno({})", "const p = Deno", "typeof Deno", "Deno = 1", "Deno.constructor"] {
        assert!(refused(wrong).contains("is not allowed"), "{wrong}: {}", refused(wrong));
    }
    assert!(refused("fetch.get('a')").contains("'fetch' is not allowed"));
}

/// A refusal that stops the parser does not hide the rest.
#[test]
fn all_refusals_of_a_script_are_reported() {
    let all = |source: &str| {
        let failure = compile(&Arena::new(), source, &options()).expect_err("it is refused");
        let words = failure.diagnostics.iter().map(|diagnostic| diagnostic.span.text(source));
        words.collect::<Vec<_>>().join(" ")
    };
    for (source, expected) in [
        ("class A { get x() { return this.y } }\neval('1'); require('fs')", "class eval require"),
        ("eval('1'); class A {}", "eval class"),
        ("import fs from 'fs'; const x = { get a() { return 1 } }; debugger", "import get debugger"),
        ("class A { constructor() { super(); this.#x = eval('1') } }; this.x", "class eval this"),
        (
            "debugger; `a ${process.env} process.x ${`${eval}`} class`; /class eval/.test(window.x)",
            "debugger process eval window",
        ),
        ("with (a) { Object.defineProperty(a, 'b', {}) } f.constructor", "with Object.defineProperty constructor"),
        ("debugger; const { window } = f(); window.x; const require = 1; require(1)", "debugger"),
        ("debugger; f({ class: 1, eval: 2, process() {} }, a.window, a?.class)", "debugger"),
        ("debugger; new Proxy(a, b); function f() { return new.target }", "debugger Proxy ."),
        ("debugger; a = 'unclosed; eval(1)", "debugger"),
        ("const a = 1; const a = 2; eval(1)", "a"),
    ] {
        assert_eq!(all(source), expected, "{source}");
    }
    assert_eq!(all(&"class A {} ".repeat(500)).split(' ').count(), 50);
}

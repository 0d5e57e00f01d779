//! Accepted syntax, and the words for refused syntax.

use super::parse;
use crate::ast::{Arena, MAX_DEPTH};
use crate::{Code, Diagnostic, Language, callee_text};

/// One script a paragraph, agreed with Node.
const ACCEPTED: &str = include_str!("../../tests/syntax/accepted.txt");
const REJECTED: &str = include_str!("../../tests/syntax/rejected.txt");

fn scripts(file: &str) -> impl Iterator<Item = &str> {
    file.trim_end_matches('\n').split("\n---\n")
}

fn error(source: &str, language: Language) -> Option<Diagnostic> {
    parse(&Arena::new(), source, language).err()
}

/// The tree as text, without spans.
fn tree(source: &str, language: Language) -> Result<String, Diagnostic> {
    let text = format!("{:?}", parse(&Arena::new(), source, language)?);
    let mut parts = text.split("Span {");
    let mut out = parts.next().unwrap_or("").to_owned();
    out.extend(parts.filter_map(|part| part.split_once('}')).map(|(_, rest)| rest));
    Ok(out)
}

#[test]
fn scripts_are_accepted() {
    for source in scripts(ACCEPTED) {
        assert_eq!(error(source, Language::JavaScript), None, "{source:?}");
    }
}

#[test]
fn typescript_accepts_javascript() {
    for source in scripts(ACCEPTED).filter(|source| *source != "a < b > c") {
        assert!(error(source, Language::TypeScript).is_none(), "{source:?}");
    }
}

#[test]
fn syntax_errors_are_rejected() {
    for source in scripts(REJECTED) {
        let code = error(source, Language::JavaScript).map(|error| error.code);
        assert_eq!(code, Some(Code::SyntaxError), "{source:?}");
    }
}

#[test]
fn messages() {
    for (source, expected) in [
        ("f(a b)", "expected an operator, `)` or `,`, found `b`"),
        ("let = 1", "expected a variable name or a pattern, found `=`"),
        ("f(", "this bracket is never closed"),
        ("f(]", "expected `)`, found `]`"),
        (")", "this bracket closes nothing"),
        ("x = 'a", "this string is never closed"),
        ("x = `a", "this template is never closed"),
        ("x = /a", "this regular expression is never closed"),
        ("/* a", "this comment is never closed"),
        ("017", "numbers do not begin with `0`"),
        ("3in x", "invalid number `3in`"),
        ("'\\01'", "octal escapes are not allowed; write `\\x00` to `\\xFF`"),
        ("a ?? b || c", "`??` cannot be mixed with `||` or `&&`"),
        ("-x ** 2", "a prefix operator cannot stand before the base of `**`"),
        ("a?.b = 1", "cannot assign through `?.`"),
        ("1 = a", "cannot assign to this"),
        ("x = {a = 1}", "expected `:`, found `=`"),
        ("const a", "a `const` needs a value: `= …`"),
        ("let a: number", "expected `,`, the end of the statement or `=`, found `:`"),
        ("cl\\u0061ss", "the keyword `class` must not contain escapes"),
        ("/a/gg", "invalid regular expression flags `gg`"),
        ("class A {}", "'class' is not allowed in AgentScript"),
        ("x = {get a() {}}", "'getter' is not allowed in AgentScript"),
        ("1 + yield", "expected an expression, found `yield`"),
        ("a yield b", "expected an operator, found `yield`"),
        ("const yield = 1", "expected a variable name or a pattern, found `yield`"),
        ("yi\\u0065ld = 1", "the keyword `yield` must not contain escapes"),
        ("new.target", "'new.target' is not allowed in AgentScript"),
        ("o.#a", "'private name' is not allowed in AgentScript"),
        ("@a f()", "'decorator' is not allowed in AgentScript"),
        ("import a from 'b'", "'import' is not allowed in AgentScript"),
    ] {
        let found = error(source, Language::JavaScript);
        assert_eq!(found.as_ref().map(|error| &*error.message), Some(expected), "{source:?}");
    }
}

#[test]
fn types_are_erased() {
    for (source, expected) in [
        ("const f = (a: number, b?: string): A<B> => a as C", "const f = (a, b) => (a)"),
        ("interface A { a: B }\ntype C = D | E\nlet x!: F = y!.z", ";; let x = y.z"),
        ("import type { A } from 'a'\nf<A, B<C>>(x satisfies D)", "; f((x))"),
        ("try {} catch (e: unknown) {}", "try {} catch (e) {}"),
        ("for (const x: A of xs as B[]) {}", "for (const x of (xs)) {}"),
        ("x = y as Z\n(a)", "x = (y); (a)"),
        ("x = a + b as T * c", "x = (a + b) * c"),
        ("x = -<T>a.b * c", "x = -(a.b) * c"),
        ("c ? (a) : b => d", "c ? (a) : b => d"),
        ("c ? (a) : b => d : e", "c ? (a) => d : e"),
        ("c ? (a) : b => (d) : e => f", "c ? (a) => (d) : e => f"),
        ("c ? (a): B => (d): E => f : g", "c ? (a) => (d) => f : g"),
        ("x ? c ? f(a) : b => d : e", "x ? c ? f(a) : b => d : e"),
        ("<T>(a)", "((a))"),
        ("<T>(a) => b", "(a) => b"),
        ("a < b > (c)", "a(c)"),
        ("a < b > c", "a < b > c"),
        ("function f(a: A): B\nfunction f(a) {}", "function f(a) {}"),
        ("new Map<string, number[]>()", "new Map()"),
    ] {
        assert_eq!(tree(source, Language::TypeScript), tree(expected, Language::JavaScript), "{source:?}");
    }
}

#[test]
fn types_are_read_in_linear_time() {
    for part in [
        "a<",
        "a<b,",
        "a<b|",
        "f(a < b.c, ",
        "a<{b:",
        "a<[",
        "a<`${",
        "c ? (a) : b => ",
        "c?(a):(b)=>",
        "<T>",
        "A extends B ? C : ",
    ] {
        for source in [part.repeat(20_000), format!("type A = {}", part.repeat(20_000))] {
            let message =
                error(&source, Language::TypeScript).map(|error| error.message.into_owned()).unwrap_or_default();
            assert_ne!(message, "the types of this script are too complex", "{part}");
        }
    }
}

#[test]
fn depth_is_bounded() {
    const TIMES: usize = 20_000;
    let openings = [
        "(",
        "[",
        "{",
        "!",
        "- ",
        "await ",
        "new ",
        "()=>",
        "a?b:a?",
        "x=",
        "`${",
        "({a:",
        "f(",
        "a[",
        "for(;;)",
        "a:",
        "do ",
        "function f(){",
        "({a(){",
        "({[",
        "a**",
        "(a=",
        "[[a]=",
        "if(a){}else ",
        "try{",
        "switch(a){case ",
        "x as (",
        "x as {a:",
        "x as [",
        "declare namespace A {",
        "declare enum A {a=(",
        "a as `${",
        "type A = <T extends ",
        "type A = ({a: ",
    ];
    let repeated = openings.iter().flat_map(|opening| ["", "a"].map(|tail| format!("{}{tail}", opening.repeat(TIMES))));
    let closed =
        [("(", "a", ")"), ("{", "", "}"), ("({a:", "b", "})"), ("`${", "a", "}`"), ("", "a", ".b"), ("", "a", "()")]
            .map(|(open, middle, close)| format!("{}{middle}{}", open.repeat(TIMES), close.repeat(TIMES)));
    for source in repeated.chain(closed) {
        for language in [Language::JavaScript, Language::TypeScript] {
            assert!(error(&source, language).is_some(), "{}", &source[..20]);
        }
    }
}

/// The parser makes the statement behind the last token.
#[test]
fn the_last_node_may_be_too_high() {
    let members = |count: usize| error(&format!("a{}", ".b".repeat(count)), Language::JavaScript);
    let most = usize::from(MAX_DEPTH) - 2;
    assert_eq!(members(most), None);
    assert_eq!(members(most + 1).map(|error| error.message.into_owned()), Some("this is nested too deeply".into()));
}

#[test]
fn long_is_not_deep() {
    let times = |part: &str| part.repeat(20_000);
    for source in [
        format!("x = 1{}", times(" + 1 - 2 * 3")),
        format!("x = a{}", times(" || b && c")),
        times("f(a);\n"),
        times("// comment\n"),
        format!("x = [{}]", times("1, ")),
        format!("x = '{}'", times("\\n\\u0061")),
        format!("x = `{}`", times("${a} b")),
    ] {
        assert_eq!(error(&source, Language::JavaScript), None);
    }
}

#[test]
fn callees_are_named_as_v8_does() {
    for (callee, expected) in [
        ("foo", "foo"),
        ("obj.a.b", "obj.a.b"),
        ("foo(1).bar", "foo(...).bar"),
        ("a.b(1).c(2).d", "a.b(...).c(...).d"),
        ("obj[key]", "obj[key]"),
        ("obj['a']", "obj.a"),
        ("obj[f(1)]", "obj[f(...)]"),
        ("obj[key + 1]", "obj[(key + 1)]"),
        ("obj?.a", "obj?.a"),
        ("(obj?.a)", "(intermediate value)"),
        ("(() => 1).a", "(intermediate value).a"),
        ("(a, obj.b)", "(a , obj.b)"),
        ("(a + b + c)", "(a + b + c)"),
        ("(typeof a)", "(typeof a)"),
        ("'a'.x", "\"a\".x"),
        ("new X().y", "(intermediate value).y"),
        ("foo`a`", "foo(...)"),
        ("[1, 2]", "[1,2]"),
        ("a[-1]", "a[-1]"),
    ] {
        let end = u32::try_from(callee.len()).unwrap_or(0);
        assert_eq!(callee_text(callee, crate::Span::new(0, end)), expected);
    }
}

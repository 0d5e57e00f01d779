//! Generates the parser from `src/grammar.lalrpop`.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() {
    lalrpop::Configuration::new()
        .use_cargo_dir_conventions()
        .emit_rerun_directives(true)
        // What a build before has written is changed.
        .force_build(true)
        .process()
        .expect("the grammar is LR(1)");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    adapt(&Path::new(&folder).join("grammar.rs")).expect("the parser has been written");
}

/// Changes the generated parser. Its functions of reductions stay out of the one that selects among them: inlined there,
/// all of them share one frame of several KiB on the stack, whose pages each reduction touches. They get tables for our
/// own loop, [`drive`](../src/parse/drive.rs), which the parser gets as its entry.
fn adapt(parser: &Path) -> io::Result<()> {
    const CHANGES: [(&str, &str); 3] = [
        ("\n    fn __reduce", "\n    #[inline(never)]\n    fn __reduce"),
        ("\n    fn __token_to_integer<", "\n    #[inline(always)]\n    fn __token_to_integer<"),
        (
            "\n    impl<'s, 'c> __state_machine::ParserDefinition for",
            "\n@TABLES@    impl<'s, 'c> __state_machine::ParserDefinition for",
        ),
    ];
    let text = fs::read_to_string(parser)?;
    let tables = tables(&text);
    let changed = CHANGES.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the parser contains {from:?}");
        text.replace(from, to)
    });
    let entry = "pub(crate) use self::__parse__Script::parse_script;\n";
    fs::write(parser, changed.replace("@TABLES@", &tables) + entry)
}

/// The tables of reductions: their functions, and the nonterminals of those that only rename their symbol.
fn tables(parser: &str) -> String {
    let actions = actions(parser);
    let (mut functions, mut units) = (String::new(), String::new());
    let mut count = 0;
    // Behind each head of a function: the production as a comment, the call of the action, what is reduced to what.
    for part in parser.split("\n    fn __reduce").skip(1).filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    {
        let body = &part[..part.find("\n    }").expect("a function ends")];
        let number = between(body, "", "<");
        assert_eq!(number, count.to_string(), "the reductions are numbered");
        count += 1;
        let action = between(body, "ActionFn(", ")");
        let (symbols, nonterminal) = body
            .trim_end()
            .rsplit_once('\n')
            .map(|(_, last)| between(last, "(", ")"))
            .and_then(|pair| pair.split_once(", "))
            .expect("a pair");
        let is_unit = symbols == "1" && is_identity(action, &actions);
        write!(functions, "__reduce{number}, ").expect("text");
        write!(units, "{}, ", if is_unit { nonterminal } else { "-1" }).expect("text");
    }
    assert!(units.split(", ").any(|nonterminal| nonterminal != "-1"), "some productions only rename their symbol");
    format!(
        "    type __Reduction = for<'s, 'c, 'a, 'b> fn(&'s Arena, &'c targets::Covers<'s>, Option<&'a u32>, \
         &'b mut alloc::vec::Vec<(u32, __Symbol<'s>, u32)>, core::marker::PhantomData<(&'s (), &'c ())>) -> (usize, usize);
    static __REDUCTIONS: [__Reduction; {count}] = [{functions}];
    static __UNITS: [i16; {count}] = [{units}];
    impl<'s, 'c> crate::parse::drive::Reductions for __StateMachine<'s, 'c> {{
        #[inline(always)]
        fn unit(&self, reduction: usize) -> Option<usize> {{
            __UNITS.get(reduction).and_then(|&nonterminal| usize::try_from(nonterminal).ok())
        }}
        #[inline(always)]
        fn has_failed(&self) -> bool {{
            self.covers.has_failed()
        }}
        #[inline(always)]
        fn apply(&self, reduction: usize, start: Option<&u32>, symbols: &mut alloc::vec::Vec<(u32, __Symbol<'s>, u32)>) -> Option<(usize, usize)> {{
            let apply = __REDUCTIONS.get(reduction)?;
            Some(apply(self.arena, self.covers, start, symbols, core::marker::PhantomData))
        }}
    }}
    pub(crate) fn parse_script<'s, 'c>(
        arena: &'s Arena,
        covers: &'c targets::Covers<'s>,
        tokens: impl Iterator<Item = (u32, Token, u32)>,
    ) -> Result<&'s [Stmt<'s>], __lalrpop_util::ParseError<u32, Token, Infallible>> {{
        crate::parse::drive::drive(__StateMachine {{ arena, covers, __phantom: core::marker::PhantomData }}, tokens)
    }}
"
    )
}

/// The functions of actions, by their number, behind the name.
fn actions(parser: &str) -> HashMap<&str, &str> {
    let functions = parser.split("\nfn __action").skip(1);
    functions
        .map(|function| (between(function, "", "<"), &function[..function.find("\n}\n").expect("an end")]))
        .collect()
}

/// Whether an action with one symbol gives what it gets: it is its parameter, or what such actions make of it.
fn is_identity(action: &str, actions: &HashMap<&str, &str>) -> bool {
    let Some((_, body)) = actions.get(action).and_then(|function| function.split_once("\n{\n")) else { return false };
    let mut called = body.split("__action").skip(1).map(|call| between(call, "", "(")).peekable();
    if called.peek().is_none() { body.trim() == "__0" } else { called.all(|action| is_identity(action, actions)) }
}

/// The text behind the first `from`, up to the next `to`.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let start = text.find(from).expect(from) + from.len();
    &text[start..start + text[start..].find(to).expect(to)]
}

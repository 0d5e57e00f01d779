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

/// Changes the generated parser. Its functions of reductions get tables for our own loop,
/// [`drive`](../src/parse/drive.rs), which the parser gets as its entry: the function that selects among them is not needed.
/// The indices of tokens and the states behind reductions are tables too: the jumps to the arms of a `match` are often
/// predicted wrongly.
fn adapt(parser: &Path) -> io::Result<()> {
    const DEFINITION: &str = "\n    impl<'s, 'c> __state_machine::ParserDefinition for";
    let text = fs::read_to_string(parser)?;
    assert!(text.contains(DEFINITION), "the parser contains {DEFINITION:?}");
    let changed = text.replace(DEFINITION, &format!("\n{}{DEFINITION}", tables(&text)));
    let changed = replace_function(&changed, "__goto(", gotos);
    let changed = replace_function(&changed, "__token_to_integer<", terminals);
    let entry = "pub(crate) use self::__parse__Script::parse_script;\n";
    fs::write(parser, changed + entry)
}

/// Replaces a function by what is made of its text.
fn replace_function(parser: &str, name: &str, replacement: fn(&str) -> String) -> String {
    let head = format!("\n    fn {name}");
    let function = between(parser, &head, "\n    }\n");
    parser.replace(&format!("{head}{function}\n    }}\n"), &format!("\n{}", replacement(function)))
}

/// The function that gives the index of a token, from its `match`.
fn terminals(function: &str) -> String {
    let mut indices = String::new();
    for arm in function.lines().filter(|line| line.trim_start().starts_with("Token::")) {
        let (token, index) = (between(arm, "Token::", " "), between(arm, "Some(", ")"));
        writeln!(indices, "            indices[Token::{token} as usize] = {index};").expect("text");
    }
    assert!(!indices.is_empty(), "tokens have indices");
    format!(
        "    #[inline(always)]
    fn __token_to_integer(token: &Token, _: core::marker::PhantomData<(&(), &())>) -> Option<usize> {{
        const NONE: u8 = u8::MAX;
        static INDICES: [u8; 256] = {{
            let mut indices = [NONE; 256];
{indices}            indices
        }};
        INDICES.get(*token as usize).map(|&index| usize::from(index)).filter(|&index| index != usize::from(NONE))
    }}
"
    )
}

/// The function that gives the state behind a reduction, from its `match` of nonterminals and states. Each nonterminal has
/// a default and a row of the other states. The rows share one table, each from an offset on where it meets no other.
fn gotos(function: &str) -> String {
    let mut rows: Vec<Goto> = Vec::new();
    for line in function.lines().map(str::trim).filter(|line| line.contains(" => ")) {
        let (pattern, target) = line.split_once(" => ").expect("an arm");
        match (target.trim_end_matches(','), rows.last_mut()) {
            ("match state {", _) => {
                rows.push(Goto { nonterminal: number(pattern), default: 0, states: Vec::new(), is_open: true })
            }
            (target, Some(row)) if row.is_open && pattern == "_" => {
                (row.default, row.is_open) = (number(target), false)
            }
            (target, Some(row)) if row.is_open => {
                for range in pattern.split(" | ") {
                    let (first, last) = range.split_once("..=").unwrap_or((range, range));
                    row.states.extend((number(first)..=number(last)).map(|state| (state, number(target))));
                }
            }
            // There are no other nonterminals.
            _ if pattern == "_" => {}
            (target, _) => {
                rows.push(Goto {
                    nonterminal: number(pattern),
                    default: number(target),
                    states: Vec::new(),
                    is_open: false,
                });
            }
        }
    }
    let count = rows.iter().map(|row| row.nonterminal + 1).max().expect("nonterminals");
    let mut heads = vec![(0, 0); count];
    let mut table: Vec<Option<(usize, usize)>> = Vec::new();
    // The longest first: short ones fit between its states.
    rows.sort_by_key(|row| std::cmp::Reverse(row.states.len()));
    for Goto { nonterminal, default, states, .. } in rows {
        let is_free = |at: usize| table.get(at).is_none_or(Option::is_none);
        let offset = (0..).find(|offset| states.iter().all(|(state, _)| is_free(offset + state))).expect("an offset");
        for (state, target) in states {
            table.resize(table.len().max(offset + state + 1), None);
            table[offset + state] = Some((nonterminal, target));
        }
        heads[nonterminal] = (offset, default);
    }
    let table: Vec<_> = table.into_iter().map(|entry| entry.unwrap_or((count, 0))).collect();
    format!(
        "    #[inline(always)]
    fn __goto(state: i16, nonterminal: usize) -> i16 {{
        static HEADS: [(u16, i16); {count}] = {heads:?};
        static TABLE: [(u8, i16); {}] = {table:?};
        let (offset, default) = HEADS[nonterminal];
        match TABLE.get(offset as usize + state as usize) {{
            Some(&(of, target)) if usize::from(of) == nonterminal => target,
            _ => default,
        }}
    }}
",
        table.len()
    )
}

/// The states behind the reductions to a nonterminal, by the state before.
struct Goto {
    nonterminal: usize,
    default: usize,
    states: Vec<(usize, usize)>,
    /// Whether the default is still to come.
    is_open: bool,
}

fn number(text: &str) -> usize {
    text.parse().expect(text)
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
    // The reduction of the whole text.
    let whole = between(parser, "// __Script = Script => ActionFn(", "return");
    let (accept, pop) = (between(whole, "", ")"), between(whole, "let __sym0 = ", "("));
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
        fn accept(&self, symbols: &mut alloc::vec::Vec<(u32, __Symbol<'s>, u32)>) -> &'s [Stmt<'s>] {{
            super::__action{accept}(self.arena, self.covers, {pop}(symbols))
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

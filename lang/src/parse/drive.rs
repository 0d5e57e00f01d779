//! The loop of the LR(1) parser: that of `lalrpop_util` without its recovery from errors, with stacks whose memory is used
//! again. A reduction that only gives its symbol another name, as `Assign = Postfix`, changes nothing but the state.

use crate::spare;
use lalrpop_util::ParseError;
use lalrpop_util::state_machine::{ParseResult, ParserDefinition, SymbolTriple, TokenTriple};
use std::cell::Cell;

/// The size of a symbol with its offsets, in words. Where it is another one, the memory is allocated anew.
const SYMBOL_WORDS: usize = 5;

thread_local! {
    static STATES: Cell<Vec<i16>> = const { Cell::new(Vec::new()) };
    static SYMBOLS: Cell<Vec<[u64; SYMBOL_WORDS]>> = const { Cell::new(Vec::new()) };
}

/// The tables of a grammar, and its reductions by their numbers. An action is a state to shift to, plus one, or a reduction,
/// minus one and negated, or an error: 0.
pub(super) trait Reductions:
    ParserDefinition<
        StateIndex = i16,
        Action = i16,
        ReduceIndex = i16,
        NonterminalIndex = usize,
        Token: Copy,
        Location = u32,
    >
{
    /// The nonterminal that a reduction gives its only symbol, if it does nothing else.
    fn unit(&self, reduction: usize) -> Option<usize>;

    /// Whether a reduction has noted an error, which ends the text.
    fn has_failed(&self) -> bool;

    /// Reduces symbols; gives how many, and to which nonterminal. Nothing where the reduction is that of the whole text.
    fn apply(
        &self,
        reduction: usize,
        start: Option<&u32>,
        symbols: &mut Vec<SymbolTriple<Self>>,
    ) -> Option<(usize, usize)>;

    /// Reduces the symbol of the whole text. The function of the generated parser that does it selects among all reductions,
    /// which nothing else needs.
    fn accept(&self, symbols: &mut Vec<SymbolTriple<Self>>) -> Self::Success;
}

/// Parses tokens.
pub(super) fn drive<D: Reductions>(definition: D, tokens: impl Iterator<Item = TokenTriple<D>>) -> ParseResult<D> {
    let mut states: Vec<i16> = spare::take(&STATES);
    let mut symbols: Vec<SymbolTriple<D>> = spare::take(&SYMBOLS);
    let parsed = run(&definition, tokens, &mut states, &mut symbols);
    spare::put_back(&STATES, states);
    spare::put_back(&SYMBOLS, symbols);
    parsed
}

#[inline(always)]
fn run<D: Reductions>(
    definition: &D,
    tokens: impl Iterator<Item = TokenTriple<D>>,
    states: &mut Vec<i16>,
    symbols: &mut Vec<SymbolTriple<D>>,
) -> ParseResult<D> {
    let mut state = definition.start_state();
    states.push(state);
    let mut location = definition.start_location();
    for token in tokens {
        if definition.has_failed() {
            break;
        }
        let (start, terminal, end) = token;
        let Some(index) = definition.token_to_index(&terminal) else {
            return Err(ParseError::UnrecognizedToken { token, expected: expected(definition, states) });
        };
        loop {
            let action = definition.action(state, index);
            if action > 0 {
                state = action - 1;
                states.push(state);
                symbols.push((start, definition.token_to_symbol(index, terminal), end));
                break;
            }
            if action == 0 {
                return Err(ParseError::UnrecognizedToken { token, expected: expected(definition, states) });
            }
            match reduce(definition, action, Some(&start), states, symbols) {
                Some(reduced) => state = reduced,
                None => return Err(ParseError::ExtraToken { token }),
            }
        }
        location = end;
    }
    loop {
        let action = definition.eof_action(top(states));
        if action >= 0 {
            return Err(ParseError::UnrecognizedEof { location, expected: expected(definition, states) });
        }
        if reduce(definition, action, None, states, symbols).is_none() {
            return Ok(definition.accept(symbols));
        }
    }
}

/// Reduces symbols; gives the new state, or nothing at the end of the text.
#[inline(always)]
fn reduce<D: Reductions>(
    definition: &D,
    action: i16,
    start: Option<&u32>,
    states: &mut Vec<i16>,
    symbols: &mut Vec<SymbolTriple<D>>,
) -> Option<i16> {
    let reduction = !action as usize;
    if let Some(nonterminal) = definition.unit(reduction)
        && let [.., below, last] = &mut **states
    {
        *last = definition.goto(*below, nonterminal);
        return Some(*last);
    }
    let (count, nonterminal) = definition.apply(reduction, start, symbols)?;
    states.truncate(states.len().saturating_sub(count));
    let state = definition.goto(top(states), nonterminal);
    states.push(state);
    Some(state)
}

/// The state of the parser. There always is one: reductions push one for those they pop.
#[inline(always)]
fn top(states: &[i16]) -> i16 {
    states.last().copied().unwrap_or_default()
}

#[cold]
fn expected<D: Reductions>(definition: &D, states: &[i16]) -> Vec<String> {
    definition.expected_tokens_from_states(states)
}

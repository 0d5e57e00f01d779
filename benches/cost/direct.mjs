// The arms without CodeCall: the tools are listed, or a host defers them behind a search tool of its own.

import { callTokens, Conversation, listTokens, tokens } from './tokens.mjs';

export const ANSWER = 'That is done; the details are as you asked. Is there anything else that I can do for you?';
// The tokens of a host's search tool, and how many schemas a search brings into the context.
const [SEARCH_TOOL, SCHEMAS] = [150, 5];

export const named = (server, tools) => tools.map((tool) => ({ ...tool, name: `${server}__${tool.name}` }));
export const words = (name) => name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[_-]+/g, ' ').toLowerCase();

export function rounds(turn) {
  return Array.from({ length: Math.max(-1, ...turn.waves) + 1 }, (_, wave) => turn.calls.map((_, n) => n).filter((n) => turn.waves[n] === wave));
}

function converse(task, prefix, roundsOf, discover = () => {}) {
  const conversation = new Conversation(prefix + tokens(task.system));
  for (const turn of task.turns) {
    conversation.read(tokens(turn.user));
    discover(conversation, turn);
    for (const mine of roundsOf(turn)) {
      conversation.say(callTokens(mine.map((n) => ({ name: `${turn.calls[n].server}__${turn.calls[n].tool}`, arguments: turn.calls[n].args }))));
      for (const n of mine) conversation.read(tokens(turn.results[n]));
    }
    conversation.say(tokens(task.answer || ANSWER));
  }
  return conversation.sums;
}

// One call a request.
export const one = (task, list) => converse(task, list, (turn) => turn.calls.map((_, n) => [n]));
// As many calls at once as results and effects allow.
export const waves = (task, list) => converse(task, list, rounds);

// As `waves`, but each turn that needs new tools searches first. The search finds them, among others.
export function deferred(task, ranking, byName) {
  const loaded = new Set();
  return converse(task, SEARCH_TOOL, rounds, (conversation, turn) => {
    const fresh = [...new Set(turn.calls.map(({ server, tool }) => `${server}:${tool}`))].filter((name) => !loaded.has(name));
    if (!fresh.length) return;
    const query = fresh.map((name) => words(name.split(':')[1])).join(', ');
    const size = Math.max(SCHEMAS, fresh.length);
    const found = [...new Set([...fresh, ...ranking(query)])].filter((name) => !loaded.has(name)).slice(0, size);
    conversation.say(callTokens([{ name: 'tool_search', arguments: { query } }]));
    conversation.read(listTokens(found.map((name) => ({ ...byName[name], name: name.replace(':', '__') }))));
    for (const name of found) loaded.add(name);
  });
}

// Ranks tools by BM25 over names and descriptions, as hosts do.
export function ranker(byName) {
  const split = (text) => words(text).match(/[a-z0-9]+/g) ?? [];
  const documents = Object.entries(byName).map(([name, tool]) => ({ name, terms: split(`${name} ${tool.description}`) }));
  const average = documents.reduce((sum, { terms }) => sum + terms.length, 0) / documents.length;
  const containing = new Map();
  for (const { terms } of documents) for (const term of new Set(terms)) containing.set(term, (containing.get(term) ?? 0) + 1);
  const score = ({ terms }, query) => query.reduce((sum, term) => {
    const frequency = terms.filter((other) => other === term).length;
    const n = containing.get(term) ?? 0;
    const rarity = Math.log(1 + (documents.length - n + 0.5) / (n + 0.5));
    return sum + (rarity * frequency * 2.2) / (frequency + 1.2 * (0.25 + (0.75 * terms.length) / average));
  }, 0);
  return (query) => {
    const terms = [...new Set(split(query))];
    return documents.map((document) => [score(document, terms), document.name])
      .sort(([a, x], [b, y]) => b - a || (x < y ? -1 : 1)).map(([, name]) => name);
  };
}

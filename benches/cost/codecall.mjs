// The arm with CodeCall: each request is really made, and the texts that the model reads are the program's.

import { ANSWER, rounds, words } from './direct.mjs';
import { described, names } from './program.mjs';
import { needed, script, SPLITS, stages } from './scripts.mjs';
import { callTokens, Conversation, tokens } from './tokens.mjs';

const QUERIES = 10; // of one search

// A conversation with a task. `control` commands the set: {reset}, {turn}, 'check'. `byName`: {app:name: tool} of all servers.
export async function converse(task, model, { control, byName, split = 'real', all = true, failures = [] }) {
  const conversation = new Conversation(model.list + tokens(task.system));
  const apps = [...new Set(Object.keys(byName).map((name) => name.split(':')[0]))];
  const known = described(model.index, apps);
  const searches = [];
  const ask = async (name, args) => {
    conversation.say(callTokens([{ name, arguments: args }]));
    const answer = await model.call(name, args);
    conversation.read(tokens(answer));
    return answer;
  };
  const isKnown = ({ server, tool, args }) => {
    const name = `${server}:${tool}`;
    return known.has(name) && (known.get(name) === true || names(known.get(name), args, byName[name].inputSchema));
  };
  // The names of tools that the model still has to find.
  const unknown = (turn) => [...new Set(turn.calls.filter((call) => !isKnown(call)).map(({ server, tool }) => `${server}:${tool}`))];

  const search = async (wanted, query) => {
    const queries = wanted.slice(0, QUERIES).map(query);
    const answer = await ask('codecall_search', queries.length === 1 && model.takes('codecall_search', 'query') ? { query: queries[0] } : { queries });
    searches.push(tokens(answer));
    for (const [name, params] of described(answer, apps)) known.set(name, params);
    return answer;
  };
  const discover = async (turn) => {
    let missing = unknown(turn);
    if (!missing.length) return;
    let answer = await search(missing, (name) => words(name.split(':')[1]));
    const unseen = (name) => !known.has(name) && !answer.includes(`"${name}"`);
    if (missing.some(unseen)) answer += await search(missing.filter(unseen), (name) => `${words(name.split(':')[1])} ${name.split(':')[0]}`);
    // Names alone, or parameters that a line leaves out.
    missing = unknown(turn);
    if (!missing.length) return;
    await ask('codecall_describe', { toolNames: missing, ...(missing.length > 8 ? { max: missing.length } : {}) });
    for (const name of missing) known.set(name, true);
  };

  // One call, as the program wants it.
  const single = ({ server, tool, args }) => {
    const call = { tool: `${server}:${tool}`, input: args };
    if (model.takes('codecall_execute', 'tool')) return ask('codecall_execute', call);
    return ask('codecall_invoke', call);
  };
  const runScripts = async (turn, t) => {
    const stage = stages(turn, SPLITS[split]);
    for (const now of [...new Set(stage)].sort((a, b) => a - b)) {
      const mine = turn.calls.map((_, n) => n).filter((n) => stage[n] === now);
      const kept = mine.filter((n) => all || needed(task, t, n, stage));
      const text = mine.length > 1 && script(turn, mine, SPLITS[split], kept);
      const answer = text ? await ask('codecall_execute', { script: text }) : await single(turn.calls[mine[0]]);
      if (!answer.includes('"status":"ok"') && !mine.some((n) => turn.errors[n])) failures.push({ task: task.id, script: text || turn.calls[mine[0]], answer });
    }
  };
  const callDirectly = async (turn) => {
    for (const mine of rounds(turn)) {
      const calls = mine.map((n) => ({ name: listedName(model, turn.calls[n]), arguments: turn.calls[n].args }));
      conversation.say(callTokens(calls));
      for (const call of calls) conversation.read(tokens(await model.call(call.name, call.arguments)));
    }
  };

  await control({ reset: task.id });
  for (const [t, turn] of task.turns.entries()) {
    conversation.read(tokens(turn.user));
    await control({ turn: t });
    if (model.direct) await callDirectly(turn);
    else {
      await discover(turn);
      await runScripts(turn, t);
    }
    conversation.say(tokens(task.answer || ANSWER));
  }
  const accepted = await control('check');
  return { ...conversation.sums, accepted, searches };
}

// The name under which the program lists a tool itself: APP_TOOL.
function listedName(model, { server, tool }) {
  const found = [`${server}_${tool}`, `${server}__${tool}`, tool].find((name) => model.has(name));
  if (!found) throw new Error(`${server}:${tool} is not listed: ${model.tools.map(({ name }) => name)}`);
  return found;
}

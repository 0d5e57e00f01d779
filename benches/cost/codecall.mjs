// The arm with CodeCall: each request is really made, and the texts that the model reads are the program's.

import { ANSWER, rounds, words } from './direct.mjs';
import { described, names } from './program.mjs';
import { needed, script, SPLITS, stages } from './scripts.mjs';
import { callTokens, Conversation, tokens } from './tokens.mjs';

const QUERIES = 10; // of one search
const DESCRIBED = 8; // tools, without `max`

// A conversation with a task. `set` makes its calls, see `Calls`; `byName`: {app:name: tool} of all servers. Options: `split` says which
// arguments end a script; `all`, whether scripts return all results, or those that are needed.
export async function converse(task, model, set, byName, { split = 'real', all = true } = {}) {
  const conversation = new Conversation(model.list + tokens(task.system));
  const turns = task.turns.map((turn, t) => requests(task, t, model, split, all));
  const { answers, accepted } = await set.make(task, turns, model);
  const reader = new Reader(model, byName, conversation);
  for (const [t, turn] of task.turns.entries()) {
    conversation.read(tokens(turn.user));
    if (!model.direct) await reader.discover(turn);
    for (const [n, calls] of turns[t].entries()) {
      conversation.say(callTokens(calls));
      for (const answer of answers[t][n]) conversation.read(tokens(answer));
    }
    conversation.say(tokens(task.answer || ANSWER));
  }
  return { ...conversation.sums, accepted, searches: reader.searches };
}

// The requests of a turn, once the tools are known: [[{name, arguments}]].
function requests(task, t, model, split, all) {
  const turn = task.turns[t];
  const stage = stages(turn, SPLITS[split]);
  const order = [...new Set(stage)].sort((a, b) => a - b);
  const parallel = rounds(turn);
  const single = ({ server, tool, args }) => {
    if (model.direct) return { name: listedName(model, server, tool), arguments: args };
    const name = model.takes('codecall_execute', 'tool') ? 'codecall_execute' : 'codecall_invoke';
    return { name, arguments: { tool: `${server}:${tool}`, input: args } };
  };
  if (model.direct && !(model.scripts && order.length < parallel.length)) return parallel.map((mine) => mine.map((n) => single(turn.calls[n])));
  return order.map((now) => {
    const mine = turn.calls.map((_, n) => n).filter((n) => stage[n] === now);
    if (mine.length === 1) return [single(turn.calls[mine[0]])];
    const kept = mine.filter((n) => all || needed(task, t, n, stage));
    return [{ name: 'codecall_execute', arguments: { script: script(turn, mine, SPLITS[split], kept) } }];
  });
}

// The name under which the program lists a tool itself: APP_TOOL.
function listedName(model, server, tool) {
  const found = [`${server}_${tool}`, `${server}__${tool}`, tool].find((name) => model.has(name));
  if (!found) throw new Error(`${server}:${tool} is not listed: ${model.tools.map(({ name }) => name)}`);
  return found;
}

// Makes the calls of tasks on the live objects of a set, and lets its checker judge them. The same requests with a task are made once:
// their answers do not depend on the tools beside those of the task.
export class Calls {
  constructor(control) {
    Object.assign(this, { control, made: new Map(), failures: [] });
  }

  async make(task, turns, model) {
    const key = JSON.stringify([task.id, turns]);
    if (!this.made.has(key)) this.made.set(key, await this.run(task, turns, model));
    return this.made.get(key);
  }

  async run(task, turns, model) {
    await this.control({ reset: task.id });
    const answers = [];
    for (const [t, requests] of turns.entries()) {
      await this.control({ turn: t });
      answers.push([]);
      for (const calls of requests) {
        const texts = [];
        for (const { name, arguments: args } of calls) {
          const text = await model.call(name, args);
          if (args.script && !text.includes('"status":"ok"')) this.failures.push({ task: task.id, script: args.script, answer: text });
          texts.push(text);
        }
        answers[t].push(texts);
      }
    }
    return { answers, accepted: await this.control('check') };
  }
}

// The tools that a model knows, and the requests with which it gets to know others.
class Reader {
  constructor(model, byName, conversation) {
    const apps = [...new Set(Object.keys(byName).map((name) => name.split(':')[0]))];
    Object.assign(this, { model, byName, conversation, apps, searches: [], known: described(model.index, apps) });
  }

  // Searches for the tools of a turn that no line names. Describes those whose line leaves out what the call needs, and ends in `…`.
  async discover(turn) {
    const missing = this.unknown(turn).filter((name) => !this.known.has(name));
    if (missing.length) {
      const answer = await this.search(missing, (name) => words(name.split(':')[1]));
      const unseen = missing.filter((name) => !this.known.has(name) && !answer.includes(`"${name}"`));
      if (unseen.length) await this.search(unseen, (name) => `${words(name.split(':')[1])} ${name.split(':')[0]}`);
    }
    const toolNames = this.unknown(turn);
    if (!toolNames.length) return;
    await this.ask('codecall_describe', { toolNames, ...(toolNames.length > DESCRIBED ? { max: toolNames.length } : {}) });
    for (const name of toolNames) this.known.set(name, { whole: true });
  }

  unknown(turn) {
    const isKnown = ({ server, tool, args }) => {
      const name = `${server}:${tool}`;
      const { whole, parameters } = this.known.get(name) ?? {};
      return whole || (parameters !== undefined && names(parameters, args, this.byName[name].inputSchema));
    };
    return [...new Set(turn.calls.filter((call) => !isKnown(call)).map(({ server, tool }) => `${server}:${tool}`))];
  }

  async search(wanted, query) {
    const queries = wanted.slice(0, QUERIES).map(query);
    const isOne = queries.length === 1 && this.model.takes('codecall_search', 'query');
    const answer = await this.ask('codecall_search', isOne ? { query: queries[0] } : { queries });
    this.searches.push(tokens(answer));
    for (const [name, { parameters }] of described(answer, this.apps)) {
      const before = this.known.get(name);
      this.known.set(name, { ...before, parameters: `${before?.parameters ?? ''} ${parameters}` });
    }
    return answer;
  }

  async ask(name, args) {
    this.conversation.say(callTokens([{ name, arguments: args }]));
    const key = JSON.stringify([name, args]);
    if (!this.model.asked.has(key)) this.model.asked.set(key, await this.model.call(name, args));
    const answer = this.model.asked.get(key);
    this.conversation.read(tokens(answer));
    return answer;
  }
}

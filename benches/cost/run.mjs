// What an agent pays with CodeCall and without it: node benches/cost/run.mjs [--check] [SET…]
//
// Replays the gold calls of public benchmarks and writes docs/reports/cost.md; README.md says how to install them. Results of
// each set are kept in target/cost. Without SET: all sets. With --check, the page is compared instead, and a task that costs
// more than direct calls is a failure.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder, requireFiles, root, start } from '../../tests/node/serve.mjs';
import { converse } from './codecall.mjs';
import { deferred, named, one, ranker, waves } from './direct.mjs';
import { count, fill, lists, serveLists } from './lists.mjs';
import { DEFERS, LISTS, program, session } from './program.mjs';
import { listTokens } from './tokens.mjs';

export const SETS = ['retail', 'airline', 'bfcl', 'agentdojo', 'telecom', 'banking', 'long_context'];
export const SIZES = ['own', 60, 300];
const HERE = fileURLToPath(new URL('.', import.meta.url));
const WORK = join(root, 'target/cost');
const PYTHON = join(HERE, '.venv/bin/python');
// Sets of Python have an order that does not change.
const ENV = { ...process.env, PYTHONHASHSEED: '0' };
const LIMIT = Number(process.env.LIMIT ?? Infinity);

const others = lists(process.env.LIVEMCPBENCH);

// The gold calls of a set with results, once for all runs.
function plan(set) {
  const file = join(WORK, `plan-${set}.json`);
  if (!existsSync(file)) execFileSync(PYTHON, ['plan.py', set, file], { cwd: HERE, env: ENV, stdio: ['ignore', 'inherit', 'inherit'] });
  const { tools, tasks } = JSON.parse(readFileSync(file, 'utf8'));
  return { tools, tasks: tasks.slice(0, LIMIT) };
}

// Negative control: how often a checker notices that one gold call is left out.
function negativeControl(set) {
  const file = join(WORK, `control-${set}.json`);
  if (!existsSync(file)) execFileSync(PYTHON, ['plan.py', set, file, '--control'], { cwd: HERE, env: ENV, stdio: ['ignore', 'inherit', 'inherit'] });
  return JSON.parse(readFileSync(file, 'utf8'));
}

// Tasks with the same servers share a CodeCall.
const groups = (tasks) => Object.values(Object.groupBy?.(tasks, ({ servers }) => servers.join()) ?? grouped(tasks));
function grouped(tasks) {
  const found = {};
  for (const task of tasks) (found[task.servers.join()] ??= []).push(task);
  return found;
}
const named2 = (servers) => Object.fromEntries(Object.entries(servers).flatMap(([server, tools]) => tools.map((tool) => [`${server}:${tool.name}`, tool])));

async function run(set) {
  const { tools, tasks } = plan(set);
  const server = await start(PYTHON, ['server.py', set], { ready: /listening on (\S+)/, cwd: HERE, env: ENV });
  const control = async (command) => (await fetch(`${server.found}/control`, { method: 'POST', body: JSON.stringify(command) })).json();
  const listServer = await serveLists(others);
  const urls = (servers) => Object.fromEntries(Object.entries(servers).map(([name, listed]) => [name, tools[name] ? `${server.found}/${name}/mcp` : listServer.url(name, listed)]));
  const failures = [];
  const rows = [];

  // A home in which all tasks have run: shapes of results are learned, and CodeCall knows which tools are used.
  const warm = await program(urls(tools));
  const learner = await session(warm);
  for (const task of tasks) await converse(task, learner, { control, byName: named2(tools), split: 'pess' });
  await learner.close();
  await warm.stop();

  for (const size of SIZES) {
    for (const members of groups(tasks)) {
      const own = Object.fromEntries(members[0].servers.map((name) => [name, tools[name]]));
      const servers = size === 'own' ? own : fill(own, others, size);
      const byName = named2(servers);
      const ranking = ranker(byName);
      const list = listTokens(Object.entries(servers).flatMap(([name, listed]) => named(name, listed)));
      const mine = members.map((task) => ({
        set, id: task.id, size, tools: count(servers), calls: task.turns.reduce((sum, { calls }) => sum + calls.length, 0),
        lists: { direct: list }, arms: { one: one(task, list), waves: waves(task, list), deferred: deferred(task, ranking, byName) },
      }));
      const measure = async (process, arms, clientName = LISTS) => {
        const model = await session(process, clientName);
        for (const [arm, options] of Object.entries(arms)) {
          for (const [n, task] of members.entries()) {
            mine[n].arms[arm] = await converse(task, model, { control, byName, failures, ...options });
            mine[n].lists[arm] = model.list;
            mine[n].direct = model.direct;
          }
        }
        await model.close();
      };
      const cold = await program(urls(servers));
      await measure(cold, { pess: { split: 'pess' } });
      await cold.stop();
      const normal = await program(urls(servers), { from: warm.home });
      await measure(normal, { codecall: {}, need: { all: false } });
      if (size !== 'own') await measure(normal, { lean: {} }, DEFERS);
      await normal.stop();
      if (size === 300 && process.env.HOT) {
        const hot = await program(urls(servers), { from: warm.home, config: { tools: { indexTokens: 2000 } } });
        await measure(hot, { hot: {} });
        await hot.stop();
      }
      rows.push(...mine);
    }
    console.log(`${set}, ${size} tools: ${rows.filter((row) => row.size === size).length} tasks`);
  }
  await server.stop();
  listServer.close();
  writeFileSync(join(WORK, `result-${set}.json`), JSON.stringify({ set, rows, failures, control: negativeControl(set) }));
  for (const failure of failures.slice(0, 3)) console.log(JSON.stringify(failure).slice(0, 1500));
}

mkdirSync(WORK, { recursive: true });
requireFiles('cost', PYTHON);
const chosen = process.argv.slice(2).filter((word) => SETS.includes(word));
for (const set of chosen.length ? chosen : SETS) await run(set);

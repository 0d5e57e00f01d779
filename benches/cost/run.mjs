// What an agent pays with CodeCall and without it: node benches/cost/run.mjs [--check] [SET…]
//
// Replays the gold calls of public benchmarks and writes docs/reports/cost.md; README.md says how to install them. Results of
// each set are kept in target/cost. Without SET: all sets. With --check, the page is compared instead, and a task that costs
// more than direct calls is a failure.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder, requireFiles, root, start } from '../../tests/node/serve.mjs';
import { Calls, converse } from './codecall.mjs';
import { deferred, named, one, ranker, waves } from './direct.mjs';
import { count, fill, lists, serveLists } from './lists.mjs';
import { DEFERS, LISTS, program, session } from './program.mjs';
import { listTokens } from './tokens.mjs';

const SETS = ['retail', 'airline', 'bfcl', 'agentdojo', 'telecom', 'banking', 'long_context'];
const SIZES = ['own', 60, 300];
const HERE = fileURLToPath(new URL('.', import.meta.url));
const WORK = join(root, 'target/cost');
const PYTHON = join(HERE, '.venv/bin/python');
// Sets of Python have an order that does not change.
const ENV = { ...process.env, PYTHONHASHSEED: '0' };
const LIMIT = Number(process.env.LIMIT ?? Infinity);

const others = lists(process.env.LIVEMCPBENCH);

// What plan.py makes of a set, kept until a file of Python changes.
const sources = ['.', 'sets'].flatMap((folder) => readdirSync(join(HERE, folder)).sort().filter((name) => name.endsWith('.py')).map((name) => join(HERE, folder, name)));
const version = createHash('sha256').update(sources.map((path) => readFileSync(path, 'utf8')).join('')).digest('hex').slice(0, 12);
function planned(set, name, ...options) {
  const file = join(WORK, `${name}-${set}-${version}.json`);
  if (!existsSync(file)) execFileSync(PYTHON, ['plan.py', set, file, ...options], { cwd: HERE, env: ENV, stdio: ['ignore', 'inherit', 'inherit'] });
  return JSON.parse(readFileSync(file, 'utf8'));
}

// Tasks with the same servers share a CodeCall.
function groups(tasks) {
  const found = new Map();
  for (const task of tasks) {
    const key = task.servers.join();
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(task);
  }
  return [...found.values()];
}

const byFullName = (servers) => Object.fromEntries(Object.entries(servers).flatMap(([server, tools]) => tools.map((tool) => [`${server}:${tool.name}`, tool])));

// Names of arms, and options of `converse`.
const NORMAL = { codecall: {}, need: { all: false } };
const LEAN = { lean: {} };
const HOT = { hot: {} };
const COLD = { pess: { split: 'pess' }, cold: {} };
const SMALL_INDEX = { tools: { indexTokens: 2000 } };

// One set: its MCP servers, and the tasks.
class Run {
  constructor(set) {
    Object.assign(this, { set, rows: [] });
    this.calls = new Calls(this.control);
    const { tools, tasks } = planned(set, 'plan');
    Object.assign(this, { tools, tasks: tasks.slice(0, LIMIT) });
  }

  async start() {
    this.server = await start(PYTHON, ['server.py', this.set], { ready: /listening on (\S+)/, cwd: HERE, env: ENV });
    this.lists = await serveLists(others);
    this.warm = await this.warmHome();
  }

  async stop() {
    await this.server.stop();
    this.lists.close();
  }

  control = async (command) => (await fetch(`${this.server.found}/control`, { method: 'POST', body: JSON.stringify(command) })).json();

  urls = (servers) => Object.fromEntries(Object.entries(servers)
    .map(([name, tools]) => [name, this.tools[name] ? `${this.server.found}/${name}/mcp` : this.lists.url(name, tools)]));

  // A home in which all tasks have run: shapes of results are learned, and CodeCall knows which tools are used.
  async warmHome() {
    const process = await program(this.urls(this.tools));
    const model = await session(process);
    for (const task of this.tasks) await converse(task, model, this.calls, byFullName(this.tools), COLD.pess);
    await model.close();
    await process.stop();
    return process.home;
  }

  // Tasks of the same servers, with `size` tools.
  async measure(tasks, size) {
    const own = Object.fromEntries(tasks[0].servers.map((name) => [name, this.tools[name]]));
    const servers = size === 'own' ? own : fill(own, others, size);
    const byName = byFullName(servers);
    const ranking = ranker(byName);
    const list = listTokens(Object.entries(servers).flatMap(([name, tools]) => named(name, tools)));
    const rows = tasks.map((task) => ({
      id: task.id, size, tools: count(servers), lists: { direct: list },
      arms: { one: one(task, list), waves: waves(task, list), deferred: deferred(task, ranking, byName) },
    }));
    const converseAll = async (process, arms, clientName = LISTS) => {
      const model = await session(process, clientName);
      for (const [arm, options] of Object.entries(arms)) {
        for (const [n, task] of tasks.entries()) {
          rows[n].arms[arm] = await converse(task, model, this.calls, byName, options);
          rows[n].lists[arm] = model.list;
          if (arm === 'codecall') rows[n].direct = model.direct;
        }
      }
      await model.close();
    };
    const cold = await program(this.urls(servers));
    await converseAll(cold, COLD);
    await cold.stop();
    const normal = await program(this.urls(servers), { from: this.warm });
    await converseAll(normal, NORMAL);
    if (size !== 'own') await converseAll(normal, LEAN, DEFERS);
    await normal.stop();
    if (size === 300) {
      const hot = await program(this.urls(servers), { from: this.warm, config: SMALL_INDEX });
      await converseAll(hot, HOT);
      await hot.stop();
    }
    this.rows.push(...rows);
  }
}

async function run(set) {
  const measured = new Run(set);
  await measured.start();
  for (const size of SIZES) {
    for (const tasks of groups(measured.tasks)) await measured.measure(tasks, size);
    console.log(`${set}, ${size} tools: ${measured.tasks.length} tasks`);
  }
  await measured.stop();
  const { rows, calls: { failures } } = measured;
  writeFileSync(join(WORK, `result-${set}.json`), JSON.stringify({ rows, failures, control: planned(set, 'control', '--control') }));
  for (const failure of failures.slice(0, 3)) console.log(JSON.stringify(failure).slice(0, 1500));
}

mkdirSync(WORK, { recursive: true });
requireFiles('cost', PYTHON);
const chosen = process.argv.slice(2).filter((word) => SETS.includes(word));
for (const set of chosen.length ? chosen : SETS) await run(set);
await import('./report.mjs');

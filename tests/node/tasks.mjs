// Tasks with real servers, as agents had to solve them before, and as they do now: node tasks.mjs [--check] [NAME]
//
// The agent is played by a script that makes no mistake, but knows only what it has read. A request is a call of a meta-tool, and each is
// really made. Each task is played three times:
//
// - before: without learned shapes, `parseText`, and calls that are made again at rate limits;
// - first: with them, in a store that knows nothing;
// - later: with them, in a store in which each task has been solved once.
//
// The agent searches if the list lacks a signature. It writes its script at once if the list has the type of all results that the script takes
// apart, or `parseText` reads them and the question names the columns. If it does not know a result, it guesses its shape where there is an
// obvious one, and otherwise looks at it first. If a script fails or its answer is wrong, the error says how to go on, or the agent looks.
// The result is docs/reports/tasks.md; --check compares instead of writing. Folders, dates and commits are fixed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { codecall, environment, folder, modules, python, requireFiles, root, start, writePage } from './serve.mjs';
import { TASKS, WORK } from './tasks/set.mjs';

const npm = (name) => join(modules, '@modelcontextprotocol', name, 'dist/index.js');
const pip = (name) => join(python, name);
const sqlite = join(root, 'tests/tasks/.venv/bin/mcp-server-sqlite');
const fastapi = join(root, 'tests/openapi/.venv/bin/python');
requireFiles('tasks', codecall, npm('server-filesystem'), npm('server-memory'), pip('mcp-server-git'), pip('mcp-server-time'), sqlite, fastapi);

const GIT = { GIT_AUTHOR_DATE: '1768478400 +0000', GIT_COMMITTER_DATE: '1768478400 +0000', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
const port = await new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const shop = await start('sh', ['-c', `"${fastapi}" "${join(root, 'tests/tasks/service.py')}" ${port} & trap "kill $!" TERM; until curl -sf localhost:${port}/openapi.json >/dev/null; do sleep 0.1; done; echo ready; wait`], { ready: /(ready)/ });
const SERVERS = {
  files: { command: process.execPath, args: [npm('server-filesystem'), WORK] },
  memory: { command: process.execPath, args: [npm('server-memory')], env: { MEMORY_FILE_PATH: `${WORK}/memory.jsonl` } },
  git: { command: pip('mcp-server-git'), args: ['--repository', `${WORK}/repo`], env: GIT },
  time: { command: pip('mcp-server-time'), args: ['--local-timezone', 'UTC'] },
  sqlite: { command: sqlite, args: ['--db-path', `${WORK}/shop.db`] },
};
const SHOP = { spec: `http://127.0.0.1:${port}/openapi.json`, allowPrivate: ['127.0.0.1'] };

// The folder that the tasks work in, of which each play gets a copy.
const template = folder();
function makeTemplate() {
  const git = (author, ...words) => execFileSync('git', ['-c', `user.name=${author}`, '-c', `user.email=${author.toLowerCase()}@example.com`, ...words], { cwd: `${template}/repo`, env: { ...process.env, ...GIT } });
  mkdirSync(`${template}/repo`);
  git('Ada', 'init', '-q', '-b', 'main');
  ['docs', 'server', 'docs', 'parser', 'docs', 'server'].forEach((area, n) => {
    writeFileSync(`${template}/repo/${area}.txt`, `${area} ${n}\n`);
    git(n % 3 === 2 ? 'Bruno' : 'Ada', 'add', '.');
    git(n % 3 === 2 ? 'Bruno' : 'Ada', 'commit', '-q', '-m', `Change ${area} ${n}`);
  });
  writeFileSync(`${template}/repo/notes.txt`, 'todo\n');
  writeFileSync(`${template}/sales.csv`, 'region,seller,amount\nnorth,"Lee, Ann",1200\nsouth,Bob,300\nnorth,"O""Neil, Pat",700\nsouth,Cara,450\n');
  writeFileSync(`${template}/app.jsonl`, [['api', 'error'], ['web', 'info'], ['api', 'error'], ['web', 'error'], ['db', 'info']].map(([service, level], n) => JSON.stringify({ n, service, level })).join('\n'));
  writeFileSync(`${template}/ROTA.md`, '| Month | Person |\n|:------|-------:|\n| January | Ada |\n| February | Bruno |\n| March | Chen |\n');
  writeFileSync(`${template}/disks.txt`, 'Filesystem     Size  Used  Use%  Mounted\n/dev/sda1       40G   12G   30%  /\n/dev/sda2       20G   19G   95%  /var\n/dev/sdb1      100G   88G   88%  /mnt/old backups\n');
  const lines = [
    ...[['Bruno'], ['Dana']].map(([to]) => ({ type: 'relation', from: 'Ada', to, relationType: 'knows' })),
    ...['Ada', 'Bruno', 'Dana'].map((name) => ({ type: 'entity', name, entityType: 'person', observations: [] })),
  ];
  writeFileSync(`${template}/memory.jsonl`, lines.map((line) => JSON.stringify(line)).join('\n'));
  execFileSync(fastapi, ['-c', `import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, note TEXT)")
db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, cents INTEGER, month TEXT)")
db.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", [(1, "Ada", "Lisbon", "Doesn't call back"), (2, "Bruno", "Porto", 'Said "soon"'), (3, "Chen", "Lisbon", None), (4, "Dana", None, None)])
db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", [(n, n % 4 + 1, 1000 + n * 250, f"2026-0{n % 3 + 1}") for n in range(1, 13)])
db.commit()`, `${template}/shop.db`]);
}
async function setUp() {
  rmSync(WORK, { recursive: true, force: true });
  cpSync(template, WORK, { recursive: true });
  await fetch(`http://127.0.0.1:${port}/calls`, { method: 'DELETE' });
}

// CodeCall with servers, once their tools are known.
async function connect(home, names, features) {
  await setUp();
  const config = {
    front: 'code',
    mcpServers: Object.fromEntries(Object.entries(SERVERS).filter(([name]) => names.includes(name))),
    openapi: names.includes('shop') ? { shop: SHOP } : {},
    ...(features ? {} : { serverCache: { learnResults: false }, rateLimitRetries: 0 }),
  };
  const path = join(home, 'codecall.json');
  writeFileSync(path, JSON.stringify(config));
  const client = new Client({ name: 'tasks', version: '1' }, { capabilities: {} });
  await client.connect(new StdioClientTransport({ command: codecall, args: ['serve', '--config', path], env: environment(home), stderr: 'ignore' }));
  while (true) {
    const found = await client.callTool({ name: 'codecall_search', arguments: { query: 'anything' } });
    if (!/still starting|not connected|does not work/.test(found.content[0].text)) return client;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// Which tools have a line in the list, and whether it says what the result is: a text is known if its form is.
function signatures(description) {
  const known = new Map();
  let app = '';
  for (const line of description.slice(description.indexOf('Tools (')).split('\n').slice(1)) {
    const [, name, type] = line.replace(/ \/\/ .*/, '').match(/^"?([\w-]+)"?\(.*?\)(?:: (.+))?$/) ?? [];
    if (name) known.set(`${app}:${name}`, type !== undefined && !/^(string|unknown)( \/\* seen \*\/)?$/.test(type));
    else app = line.replace(/( \(\d+ of \d+\))?:$/, '');
  }
  return known;
}

// Solves a task and returns the requests that it took, in words.
async function play(client, task, features) {
  await setUp();
  const { tools } = await client.listTools();
  const known = signatures(tools.find(({ name }) => name === 'codecall_execute').description);
  for (const tool of task.reads) assert(known.has(tool), `${task.title}: ${tool} is not in the list`);
  const requests = [];
  const run = async (what, script) => {
    const result = await client.callTool({ name: 'codecall_execute', arguments: { script } });
    const outcome = JSON.parse(result.content[0].text);
    requests.push({ what, script, outcome });
    return outcome;
  };
  const isRight = ({ status, result }) => {
    try {
      assert.deepEqual(status === 'ok' ? result : undefined, task.answer);
      return true;
    } catch {
      return false;
    }
  };
  const script = (features ? task.now : undefined) ?? task.before ?? task.now;
  const isKnown = features ? task.isNamed || task.reads.every((tool) => known.get(tool)) : !task.forms && task.reads.every((tool) => known.get(tool));
  if (!isKnown && task.guess) {
    const outcome = await run('guess', task.guess);
    if (isRight(outcome)) return requests;
    if (!/read it with/.test(outcome.error?.hint ?? '')) assert(task.look, `${task.title}: ${JSON.stringify(outcome)}`);
    if (!/read it with/.test(outcome.error?.hint ?? '')) await run('look', task.look);
  } else if (!isKnown) {
    await run('look', task.look);
  }
  if (task.naive && isKnown && !isRight(await run('script', task.naive))) requests.at(-1).what = 'script, with an answer that is wrong';
  const scripts = [script].flat();
  for (const [n, text] of scripts.entries()) {
    const outcome = await run('script', text);
    if (isRight(outcome)) return requests;
    if (outcome.error?.details?.status === 429 && task.patient) scripts.push(task.patient);
    assert(scripts.length > n + 1, `${task.title}: ${requests.map(({ script, outcome }) => `${script}\n${JSON.stringify(outcome)}`).join('\n')}`);
    if (scripts.length > n + 1 && task.look && !task.patient) requests.at(-1).what = 'script that fails';
  }
  assert.fail(task.title);
}

makeTemplate();
const only = process.argv.slice(2).find((word) => !word.startsWith('--'));
const tasks = TASKS.filter(({ title }) => !only || title.includes(only));
const all = [...Object.keys(SERVERS), 'shop'];
const plays = { before: [], first: [], later: [] };
const old = await connect(folder(), all, false);
for (const task of tasks) plays.before.push(await play(old, task, false));
await old.close();
for (const task of tasks) {
  const client = await connect(folder(), task.servers, true);
  plays.first.push(await play(client, task, true));
  await client.close();
}
const home = folder();
for (const round of ['lesson', 'later']) {
  const client = await connect(home, all, true);
  for (const task of tasks) {
    const requests = await play(client, task, true);
    if (round === 'later') plays.later.push(requests);
  }
  await client.close();
}
await shop.stop();
rmSync(WORK, { recursive: true, force: true });

const count = (requests) => requests.length;
const total = (name) => plays[name].reduce((sum, requests) => sum + count(requests), 0);
const steps = (requests) => requests.map(({ what }) => what).join(', ');
tasks.forEach((task, n) => console.log(`${task.title}: ${['before', 'first', 'later'].map((name) => `${count(plays[name][n])} (${steps(plays[name][n])})`).join(' | ')}`));
const anchor = (title) => title.toLowerCase().replace(/ /g, '-');
const rows = tasks.map((task, n) => `| [${task.title}](#${anchor(task.title)}) | ${task.servers.join(', ')} | ${count(plays.before[n])} | ${count(plays.first[n])} | ${count(plays.later[n])} |`);
const scripts = (requests) => requests.map(({ what, script }) => `*${what}*\n\n\`\`\`js\n${script}\n\`\`\``).join('\n\n');
const sections = tasks.map((task, n) => `## ${task.title}\n\n${task.ask}\n\n### Before: ${task.title.toLowerCase()}\n\n${scripts(plays.before[n])}\n\n### Later: ${task.title.toLowerCase()}\n\n${scripts(plays.later[n])}\n`);
const page = `# Tasks

There are twenty tasks with MCP servers from npm and PyPI (\`server-filesystem\`, \`server-memory\`, \`mcp-server-git\`, \`mcp-server-time\`, \`mcp-server-sqlite\`) and a service with an OpenAPI description. The service has pages, a rate limit, odd money and odd dates. The columns count the requests of an agent to CodeCall:

- **before**: without [learned shapes](../reference/configuration.md#servercache), [\`parseText\`](../reference/language.md#data-in-texts) and [retries at rate limits](../reference/configuration.md#ratelimits);
- **first**: with them, in a store that knows nothing;
- **later**: with them, in a store in which each task has been solved once.

A script plays the agent. It makes no mistake, but knows only what it has read. Every request is really made, and every answer is checked:

- It writes its script at once if the list of tools has the types of the results. It also does if \`parseText\` reads them and the question names the columns.
- Otherwise it guesses an obvious shape, or looks at the results with a script of their own.
- If the script fails, it follows the hint of the error, or looks at the results.

| task | servers | before | first | later |
|---|---|---:|---:|---:|
${rows.join('\n')}
| all | | ${total('before')} | ${total('first')} | ${total('later')} |

This page is written by \`node tests/node/tasks.mjs\`.

${sections.join('\n')}`;
if (!only) writePage('docs/reports/tasks.md', page);

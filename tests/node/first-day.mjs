// The first day with 19 real MCP servers of six clients: node first-day.mjs [RUNS] (needs npx and uvx; the first time it installs their packages)
//
// Every run has a fresh home folder; only the caches of npm and uv stay, so that the time of downloads is not measured. Of several
// runs the one counts whose servers were usable first, because other work of the machine makes a run slower only. The result is docs/reports/first-day.md.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { codecall, environment, modules, python, requireFiles, writePage } from './serve.mjs';

const npm = (name) => join(modules, '@modelcontextprotocol', name, 'dist/index.js');
const pip = (name) => join(python, name);
requireFiles('first day', codecall, npm('server-memory'), pip('mcp-server-time'));

const HOME = join(tmpdir(), 'codecall-first-day');
const CACHES = process.env.FIRST_DAY_CACHES ?? join(tmpdir(), 'codecall-first-day-caches');
const PROJECT = join(HOME, 'project');
const npx = (...args) => ({ command: 'npx', args: ['-y', ...args] });
const uvx = (...args) => ({ command: 'uvx', args });

// The servers by the files of the clients that start them.
const CLIENTS = {
  '.config/Claude/claude_desktop_config.json': ['mcpServers', {
    files: npx('@modelcontextprotocol/server-filesystem', PROJECT),
    memory: npx('@modelcontextprotocol/server-memory'),
    fetch: uvx('mcp-server-fetch'),
    thinking: npx('@modelcontextprotocol/server-sequential-thinking'),
  }],
  '.claude.json': ['mcpServers', {
    git: uvx('mcp-server-git', '--repository', PROJECT),
    github: { ...npx('@modelcontextprotocol/server-github'), env: { GITHUB_PERSONAL_ACCESS_TOKEN: 'not-a-token' } },
    gitlab: { ...npx('@modelcontextprotocol/server-gitlab'), env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'not-a-token' } },
    context7: npx('@upstash/context7-mcp'),
  }],
  '.cursor/mcp.json': ['mcpServers', {
    playwright: npx('@playwright/mcp'),
    everything: npx('@modelcontextprotocol/server-everything'),
    wikipedia: uvx('wikipedia-mcp'),
  }],
  '.config/Code/User/mcp.json': ['servers', {
    devtools: npx('chrome-devtools-mcp'),
    time: uvx('mcp-server-time', '--local-timezone', 'UTC'),
    localtime: { command: pip('mcp-server-time'), args: ['--local-timezone', 'Europe/Vienna'] },
  }],
  '.codeium/windsurf/mcp_config.json': ['mcpServers', {
    notion: { ...npx('@notionhq/notion-mcp-server'), env: { NOTION_TOKEN: 'not-a-token' } },
    search: uvx('duckduckgo-mcp-server'),
    calculator: uvx('mcp-server-calculator'),
  }],
  '.codex/config.toml': ['mcp_servers', {
    arxiv: uvx('arxiv-mcp-server'),
    notes: { command: process.execPath, args: [npm('server-memory')] },
  }],
};
const SERVERS = Object.values(CLIENTS).reduce((all, [, servers]) => all + Object.keys(servers).length, 0);
const LAUNCHED = Object.values(CLIENTS).flatMap(([, servers]) => Object.values(servers)).filter(({ command }) => /^(npx|uvx)$/.test(command)).length;

const SEARCH = 'convert the time between time zones';
const SCRIPT = `const [time, files, status] = await Promise.all([
  callTool('time:get_current_time', { timezone: 'Asia/Tokyo' }),
  callTool('files:list_directory', { path: '${PROJECT}' }),
  callTool('git:git_status', { repo_path: '${PROJECT}' }),
]);
return { timezone: time.timezone, files, status };`;

const env = {
  ...environment(HOME), XDG_CONFIG_HOME: join(HOME, '.config'), XDG_CACHE_HOME: join(CACHES, 'xdg'), npm_config_cache: join(CACHES, 'npm'),
};

function freshHome() {
  rmSync(HOME, { recursive: true, force: true });
  mkdirSync(PROJECT, { recursive: true });
  writeFileSync(join(PROJECT, 'README.md'), '# A project\n');
  execFileSync('git', ['init', '-q', PROJECT]);
  for (const [file, [key, servers]] of Object.entries(CLIENTS)) {
    mkdirSync(dirname(join(HOME, file)), { recursive: true });
    writeFileSync(join(HOME, file), file.endsWith('.toml') ? toml(key, servers) : JSON.stringify({ [key]: servers }, null, 2));
  }
}

const toml = (key, servers) => Object.entries(servers).map(([name, { command, args }]) =>
  `[${key}.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`).join('\n');

const since = (began) => (performance.now() - began) / 1000;

// A command, its output and its time in seconds.
function command(...args) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(codecall, args, { cwd: PROJECT, env, encoding: 'utf8' });
  return { status, stdout, stderr, seconds: since(began) };
}

// `codecall serve`, as a client starts it.
async function session() {
  const began = performance.now();
  const child = spawn(codecall, ['serve'], { cwd: PROJECT, env, stdio: ['pipe', 'pipe', 'ignore'] });
  const answers = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    answers.get(message.id)?.(message);
  });
  let id = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (method, params) => new Promise((resolve) => {
    id += 1;
    answers.set(id, resolve);
    send({ id, method, params });
  });
  await request('initialize', {
    protocolVersion: '2025-06-18', clientInfo: { name: 'first-day', version: '1' }, capabilities: { experimental: { 'codecall/structuredContent': {} } },
  });
  send({ method: 'notifications/initialized' });
  const call = async (name, args) => {
    const began = performance.now();
    const { result } = await request('tools/call', { name, arguments: args });
    return { result: result.structuredContent, seconds: since(began) };
  };
  const close = () => new Promise((resolve) => {
    child.once('exit', resolve);
    child.stdin.end();
  });
  return { call, close, initialized: since(began), began };
}

async function search(server, query = SEARCH) {
  const { result, seconds } = await server.call('codecall_search', { query });
  return { tools: result.tools.map(({ name }) => name), warnings: JSON.stringify(result.warnings ?? []), indexed: result.totalIndexed, seconds };
}

// One day: its times in seconds.
async function day() {
  freshHome();
  const load = loadavg()[0];
  const init = command('init', '--apply', 'all');
  assert.equal(init.status, 0, init.stderr);
  const cold = await session();
  const first = await search(cold);
  const useful = since(cold.began);
  assert(first.tools.some((name) => name.endsWith(':convert_time')), `${first.tools} ${first.warnings}`);
  let last = first;
  while (last.warnings.includes('still starting')) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    last = await search(cold);
  }
  const usable = since(cold.began);
  assert.equal(last.warnings, '[]', 'all servers work');
  const script = await cold.call('codecall_execute', { script: SCRIPT });
  assert.equal(script.result.status, 'ok', JSON.stringify(script.result));
  await cold.close();
  const warm = await session();
  const again = await search(warm);
  const warmUseful = since(warm.began);
  const warmScript = await warm.call('codecall_execute', { script: SCRIPT });
  await warm.close();
  const times = {
    load, init: init.seconds, coldInitialized: cold.initialized, coldSearch: first.seconds, useful, usable, script: script.seconds,
    warmInitialized: warm.initialized, warmSearch: again.seconds, warmUseful, warmScript: warmScript.seconds,
  };
  console.log(Object.entries(times).map(([name, value]) => `${name} ${value.toFixed(3)}`).join(', '));
  return { ...times, init, tools: last.indexed, found: first.tools, answer: warmScript.result };
}

// Text without the paths of this machine.
const plain = (text) => text.replaceAll(HOME, '~').trim();
const seconds = (value) => (value < 0.995 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`);

const runs = [];
for (let n = Number(process.argv[2] ?? 3); n > 0; n -= 1) runs.push(await day());
const best = runs.reduce((best, run) => (run.usable < best.usable ? run : best));
freshHome();
const init = command('init', '--apply', 'all');
const prefetch = command('servers', 'prefetch');
assert.equal(prefetch.status, 0, prefetch.stderr);
console.log(`prefetch ${seconds(prefetch.seconds)}`);

writePage('docs/reports/first-day.md', `# The first day

A machine has six MCP clients (Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Codex), whose files have ${SERVERS} servers. ${LAUNCHED} start by \`npx\` or \`uvx\`, the others by a program. CodeCall takes the place of all of them, by one command. The page has the output
and the times of that day.

The servers are real, and each run has a fresh home folder: no configuration, no store, no lists of tools. The packages are in the caches of npm
and uv. Of ${runs.length} runs on ${cpus().length} processors the best counts, because other work of the machine makes a run slower only. Its load (running processes)
was ${best.load.toFixed(1)} when it began. \`node tests/node/first-day.mjs\` measures and writes this page. CodeCall is a release build, which the
variable \`CODECALL\` names.

| what | time |
|---|---:|
| \`codecall init --apply all\` | ${seconds(best.init.seconds)} |
| first start: the client is connected | ${seconds(best.coldInitialized)} |
| first start: the first search has its answer | ${seconds(best.useful)} |
| first start: all ${SERVERS} servers are usable | ${seconds(best.usable)} |
| first script, calls of three servers that run | ${seconds(best.script)} |
| later start: the client is connected | ${seconds(best.warmInitialized)} |
| later start: the first search | ${seconds(best.warmSearch)} |
| later start: the first script, which starts its three servers | ${seconds(best.warmScript)} |

## Take over the servers

\`\`\`console
$ codecall init --apply all
${plain(init.stdout)}
\`\`\`

Each client now starts CodeCall. \`codecall init --undo all\` gives the clients their own entries back. [clients](../guide/clients/README.md) describes what happens
to each file.

## Install the packages

Optional: the first start of a client does the same, in the background.

\`\`\`console
$ codecall servers prefetch
${plain(prefetch.stderr)}
\`\`\`

It takes ${seconds(prefetch.seconds)} with the packages in the caches. Afterwards every start is a later start.

## The first search

\`\`\`json
{"name": "codecall_search", "arguments": {"query": ${JSON.stringify(SEARCH)}}}
\`\`\`

At the first start no tools are known. The search waits until servers that fit have started, and finds ${best.found.slice(0, 3).map((name) => `\`${name}\``).join(', ')} after
${seconds(best.useful)}; its warnings name the servers that are still starting. When all run, ${best.tools} tools are found. A later start knows them
from the [store](../guide/connections.md#remembered-data), starts no server for a search, and answers in ${seconds(best.warmSearch)}.

## The first script

\`\`\`js
${plain(SCRIPT)}
\`\`\`

\`\`\`json
${plain(JSON.stringify(best.answer.result, null, 2))}
\`\`\`

A later start runs no server until a script calls it: then \`time\`, \`files\` and \`git\` start together, and no others. The script has its result after
${seconds(best.warmScript)}.
`);
rmSync(HOME, { recursive: true, force: true });

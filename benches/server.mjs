// Measures a server as its clients see it: node benches/server.mjs [PROGRAM] [--short]
//
//     cargo build --profile dist && node benches/server.mjs target/dist/codecall
//
// Start with 16 MCP servers, cold and warm; throughput of runs with three instant calls, over stdio and over HTTP; memory of
// waiting runs. It writes docs/reports/performance/server.md; with --short it measures less, and only prints. The client is
// this script, on the same machine: it takes a part of the processors.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

const words = process.argv.slice(2);
const isShort = words.includes('--short');
const named = words.find((word) => !word.startsWith('--'));
if (named) process.env.CODECALL = named;
const { codecall, environment, folder, modules, python, start, writePage } = await import('../tests/node/serve.mjs');

const ms = (time) => (time < 10 ? time.toFixed(1) : time.toFixed(0)) + ' ms';
const seconds = (time) => `${(time / 1e3).toFixed(2)} s`;
const thousands = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',');
const sorted = (list) => [...list].sort((a, b) => a - b);
const quantile = (list, part) => sorted(list)[Math.min(list.length - 1, Math.floor(list.length * part))];

// MCP over standard input and output, as lines of JSON.
class Stdio {
  constructor(args, env) {
    this.began = performance.now();
    this.child = spawn(codecall, ['serve', ...args], { env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.waiting = new Map();
    this.next = 1;
    let rest = '';
    this.child.stdout.setEncoding('utf8').on('data', (chunk) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const message = JSON.parse(line);
        const resolve = this.waiting.get(message.id);
        if (!resolve || message.method) continue;
        this.waiting.delete(message.id);
        resolve(message.result ?? { failed: message.error });
      }
    });
  }

  ask(method, params) {
    const id = this.next;
    this.next += 1;
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  async begin() {
    await this.ask('initialize', { protocolVersion: '2025-11-25', capabilities: { experimental: { 'codecall/structuredContent': {} } }, clientInfo: { name: 'bench', version: '1' } });
    this.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return performance.now() - this.began;
  }

  async call(name, args) {
    const result = await this.ask('tools/call', { name, arguments: args });
    assert(result.content && !result.isError, JSON.stringify(result).slice(0, 500));
    return result.structuredContent ?? JSON.parse(result.content[0].text);
  }

  async end() {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.stdin.end();
    await ended;
  }
}

// Sixteen servers: five of others, in copies, and one that takes a minute to start.
function sixteen(work) {
  const npm = (name) => join(modules, '@modelcontextprotocol', name, 'dist/index.js');
  const kinds = {
    everything: { command: process.execPath, args: [npm('server-everything'), 'stdio'] },
    files: { command: process.execPath, args: [npm('server-filesystem'), work] },
    memory: { command: process.execPath, args: [npm('server-memory')], env: { MEMORY_FILE_PATH: join(work, 'memory.jsonl') } },
    time: { command: join(python, 'mcp-server-time'), args: ['--local-timezone', 'UTC'] },
    git: { command: join(python, 'mcp-server-git'), args: [] },
  };
  const servers = {};
  for (let n = 0; n < 15; n += 1) {
    const name = Object.keys(kinds)[n % 5];
    servers[n < 5 ? name : `${name}${Math.floor(n / 5) + 1}`] = kinds[name];
  }
  servers.slow = { command: '/bin/sh', args: ['-c', 'sleep 60; exec cat'] };
  return servers;
}

async function starts() {
  const rows = [];
  const home = folder();
  const config = join(home, 'codecall.json');
  writeFileSync(config, JSON.stringify({ mcpServers: sixteen(home) }));
  for (const kind of ['cold', 'warm']) {
    const times = [];
    for (let round = 0; round < (isShort || kind === 'cold' ? 1 : 5); round += 1) {
      const server = new Stdio(['--config', config], environment(home));
      const initialized = await server.begin();
      const found = await server.call('codecall_search', { query: 'convert a time to another time zone' });
      const searched = performance.now() - server.began;
      let [known, all] = [found.totalIndexed, undefined];
      // All but the slow one.
      for (;;) {
        const { totalIndexed, warnings = [] } = await server.call('codecall_search', { query: 'read a file' });
        known = totalIndexed;
        all = performance.now() - server.began;
        if (!warnings.some((warning) => /still starting|not connected/.test(warning) && !warning.includes("'slow'"))) break;
        assert(all < 300_000, `servers do not start: ${warnings}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      times.push({ initialized, searched, found: found.totalIndexed, all, known });
      server.child.kill('SIGTERM');
      await new Promise((resolve) => server.child.once('exit', resolve));
    }
    const median = (key) => quantile(times.map((time) => time[key]), 0.5);
    rows.push(`| ${kind} | ${ms(median('initialized'))} | ${median('searched') > 1e3 ? seconds(median('searched')) : ms(median('searched'))} | ${times[0].found} | ${seconds(median('all'))} | ${times[0].known} |`);
    console.log(rows.at(-1));
  }
  return `| start | *initialize* answered | first search answered | in tools | all servers up but the slow one | tools |\n|---|---:|---:|---:|---:|---:|\n${rows.join('\n')}`;
}

const FIXTURE = (delayMs) => JSON.stringify({
  tools: ['one', 'two', 'three'].map((name) => ({ name: `app:${name}`, delayMs, responses: [{ input: null, output: { id: 7, name } }] })),
});
const THREE = { script: 'const a = await app.one({}); const b = await app.two({ id: a.id }); return [a, b, await app.three({ id: b.id })].length' };

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

// Opens a session; the headers of its requests.
async function openSession(url) {
  const send = (message, headers) => fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  const params = { protocolVersion: '2025-11-25', capabilities: { experimental: { 'codecall/structuredContent': {} } }, clientInfo: { name: 'bench', version: '1' } };
  const answer = await send({ id: 0, method: 'initialize', params }, HEADERS);
  await answer.text();
  const own = { 'mcp-protocol-version': '2025-11-25', 'mcp-session-id': answer.headers.get('mcp-session-id') };
  await send({ method: 'notifications/initialized' }, { ...HEADERS, ...own });
  return own;
}

// A request on a connection that stays open, in a session or without one.
function post(agent, url, id, session) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'codecall_execute', arguments: THREE, ...(session ? {} : { _meta: meta }) };
  const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  const own = session ?? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'codecall_execute' };
  const headers = { ...HEADERS, ...own, 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => { text += chunk; });
      response.on('end', () => (text.includes('"result":3') || text.includes('\\"result\\":3') ? resolve() : reject(new Error(text.slice(0, 500)))));
    });
    request.on('error', reject);
    request.end(body);
  });
}

// `clients` clients, each of which sends its next request after the answer to the one before. Returns the times in milliseconds.
async function load(clients, total, request) {
  const times = [];
  let sent = 0;
  const began = performance.now();
  await Promise.all(Array.from({ length: clients }, async () => {
    while (sent < total) {
      sent += 1;
      const at = performance.now();
      await request(sent);
      times.push(performance.now() - at);
    }
  }));
  return { times, seconds: (performance.now() - began) / 1e3 };
}

const WIDE = { http: { maxConnections: 4_000 }, pool: { maxRuns: 10_000, maxQueue: 10_000, queueTimeoutMs: 60_000, maxMemoryBytes: 4_000_000_000 } };

async function throughput() {
  const home = folder();
  const fixture = join(home, 'fixture.json');
  writeFileSync(fixture, FIXTURE(0));
  const config = join(home, 'codecall.json');
  writeFileSync(config, JSON.stringify(WIDE));
  const args = ['--mock-tools', fixture, '--config', config];
  const rows = [];
  for (const clients of [1, 10, 100, 1_000]) {
    const total = isShort ? Math.max(200, clients) : Math.max(5_000, clients * 10);
    const cells = [];
    const stdio = new Stdio(args, environment(home));
    await stdio.begin();
    const server = await start(codecall, ['serve', '--http', '0', ...args], { ready: /listening on (http:\S+)/, env: environment(home) });
    const agent = new http.Agent({ keepAlive: true, maxSockets: clients });
    for (const request of [() => stdio.call('codecall_execute', THREE), (id) => post(agent, `${server.found}/mcp`, id)]) {
      await load(Math.min(clients, 100), Math.min(total, 200), request);
      const measured = await load(clients, total, request);
      cells.push(`${thousands(measured.times.length / measured.seconds)}/s | ${ms(quantile(measured.times, 0.5))} | ${ms(quantile(measured.times, 0.99))}`);
    }
    agent.destroy();
    await server.stop();
    await stdio.end();
    rows.push(`| ${thousands(clients)} | ${cells.join(' | ')} |`);
    console.log(rows.at(-1));
  }
  return `| requests at once | stdio: runs | p50 | p99 | HTTP: runs | p50 | p99 |\n|---:|---:|---:|---:|---:|---:|---:|\n${rows.join('\n')}`;
}

const resident = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

async function waiting() {
  if (!existsSync('/proc/self/status')) return 'Only Linux says how much memory a process has.';
  const home = folder();
  const fixture = join(home, 'fixture.json');
  writeFileSync(fixture, FIXTURE(120_000));
  const rows = [];
  for (const transport of ['stdio', 'HTTP', 'HTTP, in a session']) {
    const limits = { vm: { toolTimeoutMs: 120_000, maxDurationMs: 600_000 }, ...WIDE };
    const config = join(home, 'codecall.json');
    writeFileSync(config, JSON.stringify(limits));
    const args = ['--mock-tools', fixture, '--config', config];
    const server = transport === 'stdio' ? new Stdio(args, environment(home)) : await start(codecall, ['serve', '--http', '0', ...args], { ready: /listening on (http:\S+)/, env: environment(home) });
    if (transport === 'stdio') await server.begin();
    const agent = new http.Agent({ keepAlive: true });
    const session = transport.endsWith('session') ? await openSession(`${server.found}/mcp`) : undefined;
    const send = transport === 'stdio' ? () => server.call('codecall_execute', THREE) : (id) => post(agent, `${server.found}/mcp`, id, session);
    const settle = () => new Promise((resolve) => setTimeout(resolve, 3_000));
    const runs = isShort ? 1_000 : 3_000;
    const sendAll = (from, count) => {
      // They are cut off at the end.
      for (let n = 0; n < count; n += 1) send(from + n).catch(() => {});
    };
    // Threads, tables and buffers that one run needs as much as many.
    sendAll(1, 200);
    await settle();
    const before = resident(server.child.pid);
    sendAll(1_000, runs);
    await settle();
    const after = resident(server.child.pid);
    rows.push(`| ${transport} | ${thousands(runs)} | ${((after - before) / runs / 1024).toFixed(1)} KiB |`);
    console.log(rows.at(-1));
    agent.destroy();
    server.child.kill('SIGKILL');
  }
  return `| transport | runs that wait | memory of each |\n|---|---:|---:|\n${rows.join('\n')}`;
}

let page = `# A server, as its clients see it

Measured on ${availableParallelism()} processors by \`node benches/server.mjs PROGRAM\`. The clients and all MCP servers run on the same machine.
`;
const PARTS = [
  ['start', 'Start with 16 MCP servers', starts, 'Five MCP servers of others, three times, and one that takes a minute to start. Cold: nothing is remembered of an earlier start.'],
  ['throughput', 'Runs with three instant calls', throughput, '`codecall_execute` with three tool calls, one after the other, of tools that answer at once. Over stdio all requests are those of one client; over HTTP each has a connection and no session.'],
  ['waiting', 'Memory of waiting runs', waiting, 'Runs that wait for their first tool: what the resident memory of the server grows by for each. Over HTTP each has a connection of its own. In a session, the response begins at once, and its buffers and the queues of the session are kept.'],
];
const only = words.filter((word) => word.startsWith('--only=')).map((word) => word.slice(7));
for (const [name, title, measure, text] of PARTS) {
  if (only.length && !only.includes(name)) continue;
  console.log(`\n${name}, on ${availableParallelism()} processors`);
  page += `\n## ${title}\n\n${text}\n\n${await measure()}\n`;
}
if (!isShort && !only.length) writePage('docs/reports/performance/server.md', page);
process.exit(process.exitCode ?? 0);

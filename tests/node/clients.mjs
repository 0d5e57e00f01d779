// Clients of others against CodeCall, over stdio and over HTTP: node clients.mjs [--check] [NAME…]
//
// One table of checks for all of them. The result is the matrix in docs/reference/compatibility.md; --check compares instead of
// writing. A check that fails, or a line that an SDK writes to stderr, fails the script.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as V1Stdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as V1Http } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as schemas from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as V2Stdio } from '@modelcontextprotocol/client/stdio';
import { codecall, environment, folder, here, modules, node22, python, requireFiles, serveHttp, writeSection } from './serve.mjs';

const EVERYTHING = join(modules, '@modelcontextprotocol/server-everything/dist/index.js');
const INSPECTOR = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
requireFiles('clients', codecall, EVERYTHING, INSPECTOR, join(python, 'python'));

const META = ['codecall_search', 'codecall_describe', 'codecall_execute', 'codecall_invoke'];
const IDENTITY = { name: 'clients', version: '1' };
const ANSWERS = {
  elicit: { action: 'accept', content: { name: 'Ada', check: true } },
  sample: { role: 'assistant', content: { type: 'text', text: 'a sampled text' }, model: 'none' },
};

// The lines that a client writes to the console or as a warning of the process.
function listenToWarnings() {
  const lines = [];
  const originals = {};
  for (const level of ['warn', 'error']) {
    originals[level] = console[level];
    console[level] = (...words) => lines.push(words.join(' '));
  }
  const warned = (warning) => lines.push(String(warning));
  process.on('warning', warned);
  const stop = () => {
    Object.assign(console, originals);
    process.off('warning', warned);
  };
  return { lines, stop };
}

// A client in this process. `call` returns {structured, text, isError, progress}, or throws an error with a code.
function inProcess(client, transport, connect, callTool, state) {
  const warnings = listenToWarnings();
  // Both SDKs lose a step that comes in one chunk with the response: the steps are counted where they arrive.
  let progress = [];
  transport.onmessage = ({ method, params }) => {
    if (method === 'notifications/progress') progress.push(params.progress);
  };
  return {
    connect: async () => connect(),
    about: async () => ({ name: client.getServerVersion().name, protocol: state.protocol() }),
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    changes: async () => state.changes,
    call: async (name, args, { abortAfter } = {}) => {
      progress = [];
      const options = { onprogress: () => {} };
      if (abortAfter) {
        const abort = new AbortController();
        setTimeout(() => abort.abort('enough'), abortAfter);
        await assert.rejects(callTool({ name, arguments: args }, { signal: abort.signal }));
        return { aborted: true };
      }
      const result = await callTool({ name, arguments: args }, options);
      const texts = (result.content ?? []).filter(({ type }) => type === 'text').map(({ text }) => text);
      return { structured: result.structuredContent, text: texts.join(''), isError: result.isError === true, progress };
    },
    close: async () => {
      await client.close();
      warnings.stop();
      return warnings.lines;
    },
  };
}

function typescript1(target) {
  const state = { changes: 0, protocol: () => transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.() };
  const client = new v1.Client(IDENTITY, { capabilities: { elicitation: {}, sampling: {} } });
  const transport = target.url ? new V1Http(new URL(target.url)) : new V1Stdio({ ...target, stderr: 'ignore' });
  client.setNotificationHandler(schemas.ToolListChangedNotificationSchema, () => { state.changes += 1; });
  client.setRequestHandler(schemas.ElicitRequestSchema, async () => ANSWERS.elicit);
  client.setRequestHandler(schemas.CreateMessageRequestSchema, async () => ANSWERS.sample);
  return inProcess(client, transport, () => client.connect(transport), (call, options) => client.callTool(call, undefined, options), state);
}

const typescript2 = (mode) => (target) => {
  const state = { changes: 0, protocol: () => client.getNegotiatedProtocolVersion() };
  const client = new v2.Client(IDENTITY, {
    capabilities: { elicitation: {}, sampling: {} },
    versionNegotiation: { mode },
    listChanged: { tools: { autoRefresh: false, onChanged: () => { state.changes += 1; } } },
  });
  const transport = target.url ? new v2.StreamableHTTPClientTransport(new URL(target.url)) : new V2Stdio({ ...target, stderr: 'ignore' });
  client.setRequestHandler('elicitation/create', async () => ANSWERS.elicit);
  client.setRequestHandler('sampling/createMessage', async () => ANSWERS.sample);
  return inProcess(client, transport, () => client.connect(transport), (call, options) => client.callTool(call, options), state);
};

const pythonClient = (mode) => (target) => {
  const words = target.url ? [target.url] : [target.command, ...target.args];
  const child = spawn(join(python, 'python'), [join(here, '../python/client.py'), mode, ...words], { env: target.env });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let stderr = '';
  child.stderr.on('data', (chunk) => { stderr += chunk; });
  const ask = async (request) => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await answers.next();
    assert(!done, `the client ended: ${stderr}`);
    const answer = JSON.parse(value);
    if (answer.failed) throw Object.assign(new Error(answer.failed), { code: answer.code });
    return answer;
  };
  return {
    connect: async () => {},
    about: () => ask({ op: 'about' }),
    list: async () => (await ask({ op: 'list' })).names,
    changes: async () => (await ask({ op: 'changes' })).changes,
    call: (name, args, options = {}) => ask({ op: 'call', name, arguments: args, ...options }),
    close: async () => {
      // The SDK warns of what arrives while it closes.
      const lines = ofClient(stderr);
      child.stdin.end();
      await new Promise((resolve) => child.once('exit', resolve));
      return lines;
    },
  };
};

// Each request is a process of its own.
function inspector(target) {
  const lines = [];
  const run = async (...words) => {
    // Words such as --config would be its own.
    const { CODECALL_CONFIG, HOME } = { CODECALL_CONFIG: target.args?.[2], HOME: target.env?.HOME };
    const variables = ['-e', `CODECALL_CONFIG=${CODECALL_CONFIG}`, '-e', `HOME=${HOME}`, '-e', `XDG_CACHE_HOME=${HOME}`];
    const server = target.url ? ['--transport', 'http', '--server-url', target.url] : variables;
    const command = target.url ? [] : ['--', target.command, 'serve', ...target.args.slice(3)];
    const child = spawn(node22, [INSPECTOR, '--cli', ...server, ...words, ...command], { env: target.env ?? process.env });
    child.stdin.end();
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => { stdout += chunk; });
    child.stderr.on('data', (chunk) => { stderr += chunk; });
    const code = await new Promise((resolve) => child.once('exit', resolve));
    return { code, stdout, stderr };
  };
  return {
    lacks: ['about', 'progress', 'cancel', 'changes', 'elicitation', 'sampling'],
    connect: async () => {},
    list: async () => {
      const { code, stdout, stderr } = await run('--method', 'tools/list', '--strict');
      assert.equal(code, 0, stderr);
      lines.push(...ofClient(stderr));
      return JSON.parse(stdout).tools.map(({ name }) => name);
    },
    call: async (name, args) => {
      const pairs = Object.entries(args).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
      const { stdout, stderr } = await run('--method', 'tools/call', '--tool-name', name, ...pairs.flatMap((pair) => ['--tool-arg', pair]));
      if (!stdout.trim()) throw Object.assign(new Error(stderr), { code: /-32602/.test(stderr) ? -32602 : undefined });
      const result = JSON.parse(stdout);
      return { structured: result.structuredContent, text: result.content.map(({ text }) => text ?? '').join(''), isError: result.isError === true };
    },
    close: async () => lines,
  };
}

const CLIENTS = [
  ['TypeScript SDK 1', '@modelcontextprotocol/sdk', typescript1],
  ['TypeScript SDK 2, `legacy`', '@modelcontextprotocol/client', typescript2('legacy')],
  ['TypeScript SDK 2, `auto`', '@modelcontextprotocol/client', typescript2('auto')],
  ['Python SDK, `legacy`', 'mcp', pythonClient('legacy')],
  ['Python SDK, `auto`', 'mcp', pythonClient('auto')],
  ['Inspector CLI', '@modelcontextprotocol/inspector', inspector],
];

// The lines of a client; those of CodeCall come from the same place over stdio.
const ofClient = (stderr) => stderr.split('\n').filter((line) => line && !line.startsWith('codecall: '));

// What the text of an answer says, which is what its structured content says where there is one.
function content({ structured, text }) {
  if (structured !== undefined && structured !== null && text) {
    try {
      assert.deepEqual(JSON.parse(text), structured);
    } catch (error) {
      if (error instanceof SyntaxError) return structured;
      throw error;
    }
  }
  return structured ?? JSON.parse(text);
}

const USERS = `const names = [];
  for (const id of ['usr_001', 'usr_002', 'usr_003']) names.push((await users.get({ id })).name);
  return names;`;
const REPORT = "return await callTool('billing:report', { from: '2026-01' })";

const until = async (what, condition) => {
  for (const began = Date.now(); !(await condition()); await new Promise((resolve) => setTimeout(resolve, 100))) {
    assert(Date.now() - began < 20_000, `${what} does not come`);
  }
};

// [name, what a client needs for it, the check, the configuration]; without one it is `code`.
const CHECKS = [
  ['connects', 'about', async (client) => {
    const { name, protocol } = await client.about();
    assert.equal(name, 'codecall');
    return protocol;
  }],
  ['lists the tools', null, async (client) => assert.deepEqual(await client.list(), META)],
  ['search', null, async (client) => {
    const found = await client.call('codecall_search', { query: 'refund an invoice' });
    assert.match(found.text, /^billing:\nrefund\(\{invoiceId: string/);
  }],
  ['describe', null, async (client) => {
    const described = await client.call('codecall_describe', { toolNames: ['users:get'] });
    assert.match(described.text, /callTool\("users:get", input: \{/);
  }],
  ['execute', null, async (client) => assert.equal(content(await client.call('codecall_execute', { script: USERS })).result.length, 3)],
  ['invoke', null, async (client) => {
    const got = content(await client.call('codecall_invoke', { tool: 'users:get', input: { id: 'usr_001' } }));
    assert.deepEqual([got.status, got.result.id], ['ok', 'usr_001']);
  }],
  ['one call by execute', null, async (client) => {
    const got = content(await client.call('codecall_execute', { tool: 'users:get', input: { id: 'usr_001' } }));
    assert.deepEqual([got.status, got.result.id], ['ok', 'usr_001']);
  }],
  ['progress, complete and in order', 'progress', async (client) => {
    const ran = await client.call('codecall_execute', { script: USERS });
    assert.deepEqual(ran.progress, [1, 2, 3, 4, 5, 6]);
  }],
  ['cancellation', 'cancel', async (client) => {
    const began = Date.now();
    assert.equal((await client.call('codecall_execute', { script: REPORT }, { abortAfter: 200 })).aborted, true);
    assert(Date.now() - began < 1_500, 'it is not cancelled at once');
    assert.equal(content(await client.call('codecall_execute', { script: 'return 1' })).result, 1);
  }],
  ['errors of a tool', null, async (client) => {
    const failed = await client.call('codecall_invoke', { tool: 'users:get', input: { id: 'nobody' } });
    assert.deepEqual([failed.isError, content(failed).error.code], [true, 'NOT_FOUND']);
  }],
  ['errors of a script', null, async (client) => {
    const failed = await client.call('codecall_execute', { script: 'return null.name' });
    assert.deepEqual([failed.isError, content(failed).status], [true, 'runtime_error']);
  }],
  ['an unknown tool', null, async (client) => {
    await assert.rejects(client.call('users:get', {}), (error) => error.code === -32602 || /Unknown tool|not found/i.test(error.message));
  }],
  ['`list_changed`', 'changes', async (client, { change }) => {
    assert.equal(await client.changes(), 0);
    change();
    await until('list_changed', async () => (await client.changes()) > 0);
    assert((await client.list()).length > META.length);
  }],
  ['`front = "direct"`', null, async (client) => {
    const names = await client.list();
    assert(names.includes('users_get') && !names.includes('codecall_execute'), names.join());
    assert.equal((await client.call('users_get', { id: 'usr_001' })).structured.id, 'usr_001');
  }, 'direct'],
  ['`front = "bridge"`', null, async (client) => {
    const names = await client.list();
    assert.deepEqual([names[0], names.includes('users_get'), names.includes('codecall_execute')], ['codecall_search', true, false]);
    assert.match((await client.call('codecall_search', { query: 'refund an invoice' })).text, /billing_refund/);
    assert.equal((await client.call('users_get', { id: 'usr_001' })).structured.id, 'usr_001');
  }, 'bridge'],
  ['elicitation from a script', 'elicitation', async (client) => {
    const script = "return await callTool('everything:trigger-elicitation-request', {})";
    const ran = content(await client.call('codecall_execute', { script }));
    assert.equal(ran.status, 'ok', JSON.stringify(ran));
    assert.match(JSON.stringify(ran.result), /Ada/);
  }, 'everything'],
  ['sampling from a script', 'sampling', async (client) => {
    const script = "return await callTool('everything:trigger-sampling-request', { prompt: 'Say something', maxTokens: 20 })";
    const ran = content(await client.call('codecall_execute', { script }));
    assert.equal(ran.status, 'ok', JSON.stringify(ran));
    assert.match(JSON.stringify(ran.result), /a sampled text/);
  }, 'everything'],
];

// The configurations that checks need.
const CONFIGS = {
  code: {},
  direct: { front: 'direct' },
  bridge: { front: 'bridge' },
  everything: { mcpServers: { everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] } } },
};

// Starts CodeCall for one client.
async function setUp(transport, config, args) {
  const home = folder();
  const path = join(home, 'codecall.json');
  const write = (value) => writeFileSync(path, JSON.stringify(value));
  write(config);
  const change = () => write({ ...config, expose: 'direct' });
  if (transport === 'HTTP') {
    const server = await serveHttp(config, { home, args });
    return { target: { url: server.url }, change, end: () => server.stop() };
  }
  const target = { command: codecall, args: ['serve', '--config', path, ...args], env: environment(home) };
  return { target, change, end: async () => {} };
}

const only = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const rows = CHECKS.map(([name]) => [name]);
const warned = ['no warning of the client'];
let problems = 0;
for (const [name, , create] of CLIENTS) {
  if (only.length && !only.some((word) => name.includes(word))) continue;
  for (const transport of ['stdio', 'HTTP']) {
    const lines = [];
    for (const [needs, config] of Object.entries(CONFIGS)) {
      const checks = CHECKS.map((check, row) => [...check.slice(0, 3), check[3], row]).filter((check) => (check[3] ?? 'code') === needs);
      const server = await setUp(transport, config, needs === 'everything' ? [] : ['--demo']);
      const client = create(server.target);
      try {
        await client.connect();
        for (const [what, need, check, , row] of checks) {
          let cell = '–';
          if (!client.lacks?.includes(need)) {
            try {
              cell = (await check(client, server)) ?? 'yes';
            } catch (error) {
              cell = '**no**';
              problems += 1;
              console.log(`FAILED: ${name} over ${transport}: ${what}: ${String(error.message ?? error).slice(0, 600)}`);
            }
          }
          rows[row].push(cell);
        }
      } finally {
        const said = await client.close();
        // The Inspector comments on schemas of tools that are listed as they are.
        if (needs !== 'direct' && needs !== 'bridge') lines.push(...said);
        await server.end();
      }
    }
    if (lines.length) {
      problems += 1;
      console.log(`FAILED: ${name} over ${transport}: it warns: ${lines.join('\n    ')}`);
    }
    warned.push(lines.length ? '**no**' : 'yes');
    console.log(`${name} over ${transport}: done`);
  }
}
rows.push(warned);
const heads = CLIENTS.flatMap(([name]) => [`${name}: stdio`, 'HTTP']);
const table = [['', ...heads], ['---', ...heads.map(() => '---')], ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
if (!only.length) writeSection('docs/reference/compatibility.md', 'clients', table);
else console.log(table);
console.log(`${rows.length * heads.length} cells, ${problems} problems`);
process.exit(problems || process.exitCode ? 1 : 0);

// The program on Windows, on that system or under Wine: how it finds, starts and ends the processes of MCP servers.
//
//     CODECALL=target/…/codecall.exe node tests/node/windows.mjs
//
// Wine needs `bcryptprimitives.dll`, which Rust's library takes random numbers from; Wine 8.0 does not have it.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { folder, requireFiles, start } from './serve.mjs';

const program = resolve(process.env.CODECALL ?? 'codecall.exe');
const isWindows = process.platform === 'win32';
requireFiles('the program for Windows', program);
if (!isWindows && spawnSync('wine', ['--version']).error) {
  console.log('!!! SKIPPED: the program for Windows: wine is not there');
  process.exit(process.env.CI ? 1 : 0);
}

const home = folder();
const bin = join(home, 'bin');
mkdirSync(bin);
const native = (path) => (isWindows ? path : `Z:${path.replaceAll('/', '\\')}`);
const env = { ...process.env, WINEDEBUG: '-all', WINEPATH: native(bin), APPDATA: native(home), LOCALAPPDATA: native(home) };
if (isWindows) env.PATH = `${bin}${delimiter}${process.env.PATH}`;
const command = (args) => (isWindows ? [program, args] : ['wine', [program, ...args]]);

function run(...args) {
  const { status, stdout, stderr } = spawnSync(...command(args), { env, encoding: 'utf8', timeout: 120_000 });
  assert.equal(status, 0, `${args.join(' ')} ends with ${status}: ${stdout}${stderr}`);
  return stdout;
}

function configure(servers) {
  const path = join(home, `codecall-${Object.keys(servers).join('-')}.json`);
  writeFileSync(path, JSON.stringify({ mcpServers: servers }));
  return native(path);
}

const batch = (name, ...lines) => writeFileSync(join(bin, `${name}.cmd`), ['@echo off', ...lines, ''].join('\r\n'));

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

const answers = (port) => new Promise((done) => {
  const socket = createConnection(port, '127.0.0.1');
  socket.once('connect', () => { socket.destroy(); done(true); }).once('error', () => done(false));
});

const later = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, check) {
  for (const began = Date.now(); !(await check()); await later(100)) {
    assert(Date.now() - began < 30_000, what);
  }
}

const own = `"${native(program)}"`;
// As npm installs commands: a file that Windows itself finds only with its extension.
batch('shop', `${own} serve --demo %*`);
// A server with a process of its own that outlives its input.
const port = await freePort();
batch('stubborn', `start /b "" ${own} serve --http ${port} --demo <nul >nul 2>nul`, `${own} serve --demo`);

const CASES = {
  'a script of the demo'() {
    const script = join(home, 'sum.js');
    writeFileSync(script, 'const list = await users.list({ limit: 3 });\r\nreturn [1, 2, 3].reduce((a, b) => a + b) + typeof list;\r\n');
    assert.equal(JSON.parse(run('run', '--demo', native(script))).result, '6object');
  },

  'a server by its path, and one by the name of a batch file'() {
    const config = configure({ path: { command: native(program), args: ['serve', '--demo'] }, shop: { command: 'shop' } });
    const tools = run('tools', '--config', config);
    for (const tool of ['path:codecall_execute', 'shop:codecall_execute']) assert(tools.includes(tool), tools);
    const script = join(home, 'both.js');
    writeFileSync(script, "const each = ['path', 'shop'].map((app) => callTool(`${app}:codecall_execute`, { script: 'return 2' }));\nreturn (await Promise.all(each)).map((one) => one.result);");
    assert.deepEqual(JSON.parse(run('run', '--config', config, native(script))).result, [2, 2]);
  },

  async 'a client over standard input and output'() {
    const child = spawn(...command(['serve', '--demo']), { env, stdio: ['pipe', 'pipe', 'ignore'] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const ask = async (id, method, params) => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\r\n`);
      for (;;) {
        const message = JSON.parse((await lines.next()).value);
        if (message.id === id) return message.result;
      }
    };
    const { serverInfo } = await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
    assert.equal(serverInfo.name, 'codecall');
    child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    const { content } = await ask(2, 'tools/call', { name: 'codecall_execute', arguments: { script: 'return 6 * 7' } });
    assert.equal(JSON.parse(content[0].text).result, 42);
    child.stdin.end();
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  },

  async 'a command leaves no process behind'() {
    run('tools', '--refresh', '--config', configure({ stubborn: { command: 'stubborn' } }));
    // A process that goes on may not listen yet.
    await later(3_000);
    await until('the process that its server has started goes on', async () => !(await answers(port)));
  },

  async 'a killed server leaves no process behind'() {
    const config = configure({ stubborn: { command: 'stubborn' } });
    const [file, args] = command(['serve', '--http', '0', '--config', config]);
    const server = await start(file, args, { ready: /(listening on) http/, env });
    await until('the server has not started its process', () => answers(port));
    await server.stop('SIGKILL');
    await until('the process that its server has started goes on', async () => !(await answers(port)));
  },
};

for (const [name, test] of Object.entries(CASES)) {
  await test();
  console.log(`ok: ${name}`);
}

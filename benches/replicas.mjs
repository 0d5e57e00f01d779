// Measures replicas behind a balancer: node benches/replicas.mjs PROGRAM POSTGRES [--short]
//
//     cargo build --profile dist --features postgres
//     node benches/replicas.mjs target/dist/codecall postgres://user@127.0.0.1:5432/name
//
// Throughput and latency of runs with three instant calls, for 1, 2 and 4 replicas behind haproxy, round robin, with clients of
// both lifecycles. The database is one of its own. The program must be built with Postgres. The client is this script, on the same machine: it takes a part of
// the processors.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

const [program, database] = process.argv.slice(2);
assert(program && database, 'give the program and the address of the database');
process.env.CODECALL = program;
const { codecall, environment, folder, start } = await import('../tests/node/serve.mjs');

const CLIENTS = 64;
const SECONDS = process.argv.includes('--short') ? 2 : 15;
const SCRIPT = "let n = 0; for (const id of ['usr_001', 'usr_002', 'usr_003']) n += (await users.get({ id })).name.length; return n";
const VERSION = { legacy: '2025-11-25', modern: '2026-07-28' };
// The same in each run, so that the database can be used again.
const MASTER_KEY = Buffer.alloc(32, 'bench').toString('base64');
const agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

function post(url, headers, message) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
  return new Promise((resolve, reject) => {
    const request = http.request(url, {
      agent, method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => { text += chunk; });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

// Returns a function that makes one call, with a session of its own in the older lifecycle.
async function client(url, lifecycle) {
  const clientInfo = { name: 'bench', version: '1' };
  const headers = { 'mcp-protocol-version': VERSION[lifecycle] };
  const params = { name: 'codecall_execute', arguments: { script: SCRIPT } };
  if (lifecycle === 'legacy') {
    const opened = await post(url, {}, { method: 'initialize', params: { protocolVersion: VERSION.legacy, capabilities: {}, clientInfo } });
    headers['mcp-session-id'] = opened.headers['mcp-session-id'];
  } else {
    Object.assign(headers, { 'mcp-method': 'tools/call', 'mcp-name': params.name });
    const meta = (name) => `io.modelcontextprotocol/${name}`;
    params._meta = { [meta('protocolVersion')]: VERSION.modern, [meta('clientInfo')]: clientInfo, [meta('clientCapabilities')]: {} };
  }
  return async () => {
    const { status, text } = await post(url, headers, { method: 'tools/call', params });
    assert(status === 200 && text.includes('\\"status\\":\\"ok\\"'), `${status} ${text}`);
  };
}

async function drive(url, lifecycle) {
  const calls = await Promise.all(Array.from({ length: CLIENTS }, () => client(url, lifecycle)));
  // Each session is opened at each replica first.
  for (let round = 0; round < 8; round++) await Promise.all(calls.map((call) => call()));
  const times = [];
  const end = performance.now() + SECONDS * 1e3;
  await Promise.all(calls.map(async (call) => {
    while (performance.now() < end) {
      const began = performance.now();
      await call();
      times.push(performance.now() - began);
    }
  }));
  times.sort((a, b) => a - b);
  const at = (part) => times[Math.floor(times.length * part)].toFixed(1);
  return `${Math.round(times.length / SECONDS)} runs/s, ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

const home = folder();
const config = join(home, 'codecall.json');
writeFileSync(config, JSON.stringify({ store: { url: database }, stateDir: home, history: { record: 'off' } }));
for (const count of [1, 2, 4]) {
  const replicas = [];
  for (let at = 0; at < count; at++) {
    const args = ['serve', '--http', '0', '--demo', '--config', config];
    replicas.push(await start(codecall, args, { ready: /listening on http:\/\/(\S+)/, env: { ...environment(home), CODECALL_MASTER_KEY: MASTER_KEY } }));
  }
  const port = await freePort();
  const servers = replicas.map(({ found }, at) => `  server s${at} ${found}`).join('\n');
  const balancer = join(home, 'haproxy.cfg');
  writeFileSync(balancer, `global
  maxconn 4000
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
frontend front
  bind 127.0.0.1:${port}
  default_backend servers
backend servers
  balance roundrobin
${servers}
`);
  const proxy = await start('haproxy', ['-d', '-db', '-V', '-f', balancer], { ready: /(started|Using|Available)/i });
  const url = `http://127.0.0.1:${port}/mcp`;
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  for (const lifecycle of ['legacy', 'modern']) console.log(`${count} replicas, ${lifecycle}: ${await drive(url, lifecycle)}`);
  await proxy.stop('SIGKILL');
  for (const { stop } of replicas) await stop();
}
agent.destroy();

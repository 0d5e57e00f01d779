// The TypeScript SDK as a client: node typescript.mjs PROGRAM|URL

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../../tests/node/', import.meta.url));
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

const server = process.argv[2];
const client = new Client({ name: 'typescript', version: '1' }, { capabilities: {} });
await client.connect(
  server.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(server))
    : new StdioClientTransport({ command: server, args: ['serve', '--demo'] }),
);
assert.equal(client.getServerVersion().name, 'codecall');

const { tools } = await client.listTools();
assert.deepEqual(tools.map(({ name }) => name), ['codecall_search', 'codecall_describe', 'codecall_execute', 'codecall_invoke']);

const call = (name, args, ...more) => client.callTool({ name, arguments: args }, undefined, ...more);
const data = (result) => {
  assert.equal(result.structuredContent, undefined, 'each answer is sent once');
  return JSON.parse(result.content[0].text);
};
const found = await call('codecall_search', { query: 'refund an invoice' });
assert.match(found.content[0].text, /^billing:\nrefund\(\{invoiceId: string/);

const steps = [];
const script = `
  const names = [];
  for (const id of ['usr_001', 'usr_002']) names.push((await users.get({ id })).name);
  await callTool('billing:report', { from: '2026-01' });
  return names;`;
const ran = await call('codecall_execute', { script }, { onprogress: ({ progress }) => steps.push(progress) });
assert.equal(data(ran).result.length, 2);
// This client drops what comes in one piece with the answer, so the last step may be missing.
assert.deepEqual(steps.slice(0, 5), [1, 2, 3, 4, 5]);

const failed = await call('codecall_invoke', { tool: 'users:get', input: { id: 'nobody' } });
assert.equal(failed.isError, true);
assert.equal(data(failed).error.code, 'NOT_FOUND');
await assert.rejects(call('users:get', {}), { code: -32602 });

const abort = new AbortController();
setTimeout(() => abort.abort('enough'), 200);
const slow = { script: "return await callTool('billing:report', { from: '2026-01' })" };
await assert.rejects(call('codecall_execute', slow, { signal: abort.signal }));
assert.equal(data(await call('codecall_execute', { script: 'return 1' })).result, 1);

await client.close();
console.log('ok');

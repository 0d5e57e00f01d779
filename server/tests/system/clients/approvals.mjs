// The TypeScript SDK as a client whose person approves calls: node approvals.mjs PROGRAM CONFIG

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../../tests/node/', import.meta.url));
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const types = require('@modelcontextprotocol/sdk/types.js');

const [program, config] = process.argv.slice(2);
const connect = async (capabilities) => {
  const client = new Client({ name: 'typescript', version: '1' }, { capabilities });
  await client.connect(new StdioClientTransport({ command: program, args: ['serve', '--config', config] }));
  // Its answers are validated against the output schemas from now on.
  await client.listTools();
  return client;
};
const execute = async (client, args) =>
  JSON.parse((await client.callTool({ name: 'codecall_execute', arguments: args })).content[0].text);

const able = await connect({ elicitation: { form: {} } });
able.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
  assert.deepEqual(params.requestedSchema.required, ['decision']);
  return { action: 'accept', content: { decision: 'allow' } };
});
assert.deepEqual((await execute(able, { script: 'return await bank.transfer({ amount: 1 })' })).result, { amount: 1 });
await able.close();

const unable = await connect({});
const waiting = await execute(unable, { script: 'return await bank.transfer({ amount: 2 })' });
assert.equal(waiting.status, 'waiting');
assert.match(waiting.note, /codecall approve/);
execFileSync(program, ['approve', waiting.approvals[0].id, '--config', config]);
assert.deepEqual((await execute(unable, { handle: waiting.handle })).result, { amount: 2 });
await unable.close();
console.log('ok');

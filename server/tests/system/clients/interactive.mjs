// The TypeScript SDK as a client that answers: node interactive.mjs PROGRAM CONFIG, or node interactive.mjs URL

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../../tests/node/', import.meta.url));
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const types = require('@modelcontextprotocol/sdk/types.js');

const [server, config] = process.argv.slice(2);
const connect = async (capabilities) => {
  const client = new Client({ name: 'typescript', version: '1' }, { capabilities });
  await client.connect(
    server.startsWith('http')
      ? new StreamableHTTPClientTransport(new URL(server))
      : new StdioClientTransport({ command: server, args: ['serve', '--config', config] }),
  );
  return client;
};
const execute = async (client, script) =>
  JSON.parse((await client.callTool({ name: 'codecall_execute', arguments: { script } })).content[0].text);

const asked = [];
const able = await connect({ elicitation: { form: {} }, sampling: {}, roots: {} });
able.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
  asked.push(params.message);
  return { action: 'accept', content: { name: 'Ada' } };
});
able.setRequestHandler(types.CreateMessageRequestSchema, () => (
  { role: 'assistant', content: { type: 'text', text: 'forty-two' }, model: 'm' }
));
able.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///work' }] }));
for (const app of ['legacy', 'modern']) {
  const answer = await execute(able, `return [await ${app}.greet({}), await ${app}.think({}), await ${app}.where({})]`);
  assert.deepEqual(answer.result, ['accept Ada', 'forty-two', 'file:///work'], app);
  assert.deepEqual(asked.splice(0), [`[${app}] Your name?`]);
  // This client has declared forms only.
  const page = await execute(able, `return await ${app}.sign_in({})`);
  assert.equal(page.error.code, 'INPUT_REQUIRED');
  assert.match(page.error.message, /asks a person to open https:\/\/example.com\/login\?state=1 .*'elicitation.url'$/);
}
const unable = await connect({});
for (const app of ['legacy', 'modern']) {
  assert.equal((await execute(unable, `return await ${app}.greet({})`)).error.code, 'INPUT_REQUIRED');
}
await able.close();
await unable.close();
console.log('ok');

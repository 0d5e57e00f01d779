// Many clients of the TypeScript SDKs: node many.mjs URL v1|v2-legacy|v2-auto CLIENTS ROUNDS
//
// Each client calls a tool with a name of its own in each round, one call after the other, with the client and the session
// that it has begun with. A line of the output is what has become of a call.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../../../../tests/node/', import.meta.url));
const v1 = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const v2 = require('@modelcontextprotocol/client');

const [url, kind, clients, rounds] = process.argv.slice(2);
const identity = { name: 'many', version: '1' };

async function connect() {
  if (kind === 'v1') {
    const client = new v1.Client(identity, { capabilities: {} });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return (call) => client.callTool(call, undefined, { timeout: 30_000 });
  }
  const client = new v2.Client(identity, { capabilities: {}, versionNegotiation: { mode: kind.slice(3) } });
  await client.connect(new v2.StreamableHTTPClientTransport(new URL(url)));
  return (call) => client.callTool(call, { timeout: 30_000 });
}

async function drive(number) {
  let call;
  // The server that is killed may have the first request.
  for (let attempt = 0; !call; attempt++) {
    try {
      call = await connect();
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
  for (let round = 0; round < rounds; round++) {
    const name = `${kind} ${number}.${round}`;
    const script = `return (await ledger.add({ name: ${JSON.stringify(name)} })).name`;
    let line;
    try {
      const { content } = await call({ name: 'codecall_execute', arguments: { script } });
      const answer = JSON.parse(content[0].text);
      if (answer.status === 'ok') line = answer.result === name ? { ok: true } : { wrong: answer.result };
      else line = { failed: JSON.stringify(answer), mayHaveRun: answer.error?.toolCalls !== 0 };
    } catch (error) {
      line = { failed: [error, error.code, error.cause].filter(Boolean).join(', '), mayHaveRun: error.data?.mayHaveRun };
    }
    process.stdout.write(`${JSON.stringify({ name, ...line })}\n`);
  }
}

await Promise.all(Array.from({ length: Number(clients) }, (_, number) => drive(number)));
// Streams and timers of the clients end with the process.
process.stdout.write('', () => process.exit(0));

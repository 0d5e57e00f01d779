// An MCP server of the TypeScript SDK that takes its time to start: node slow_server.mjs LOG
//
// It reads its input after START_AFTER milliseconds. LOG gets a line for each start, and one for each message.

import { createRequire } from 'node:module';
import { appendFileSync } from 'node:fs';

const require = createRequire(new URL('../../../../tests/node/', import.meta.url));
const { McpServer } = require('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');

const log = (line) => appendFileSync(process.argv[2], `${line}\n`);
log('start');
// As an installer does, it ends with its input.
process.stdin.on('end', () => process.exit(0));
await new Promise((resolve) => setTimeout(resolve, Number(process.env.START_AFTER)));

const server = new McpServer({ name: 'slow', version: '1' });
server.registerTool('knit', { description: 'Knit a woollen scarf' }, async () => ({ content: [{ type: 'text', text: 'a scarf' }] }));
const transport = new StdioServerTransport();
await server.connect(transport);
const receive = transport.onmessage;
transport.onmessage = (message, ...more) => {
  log(message.method);
  receive(message, ...more);
};

// Lists of tools of real servers, which stand beside the tools of a task. Nothing calls them.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { root } from '../../tests/node/serve.mjs';

const FOLDER = join(root, 'server/tests/search/tools');

const cleaned = (tools) => tools.map((tool) => ({
  name: tool.name, description: tool.description ?? '', inputSchema: tool.inputSchema ?? tool.input_schema ?? { type: 'object' },
}));

// {server: tools}. `more` is the tools.json of LiveMCPBench (github.com/icip-cas/LiveMCPBench, tools/LiveMCPTool), if it is there.
export function lists(more) {
  const found = {};
  for (const file of readdirSync(FOLDER).sort()) {
    const parsed = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
    found[basename(file, '.json')] = cleaned(parsed.tools ?? parsed);
  }
  if (more && existsSync(more)) {
    for (const entry of JSON.parse(readFileSync(more, 'utf8'))) {
      for (const [name, { tools }] of Object.entries(entry.tools)) if (tools?.length) found[`live-${name}`] = cleaned(tools);
    }
  }
  return found;
}

export const count = (servers) => Object.values(servers).reduce((sum, tools) => sum + tools.length, 0);

// Adds whole servers until there are `size` tools; the last one is cut.
export function fill(own, others, size) {
  const mixed = { ...own };
  for (const [name, tools] of Object.entries(others)) {
    const missing = size - count(mixed);
    if (missing <= 0) break;
    mixed[name] ??= tools.slice(0, missing);
  }
  return mixed;
}

// One HTTP server for all lists: a minimal MCP endpoint at /NAME/COUNT, with so many of its tools.
export async function serveLists(servers) {
  const answers = {
    initialize: (name) => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name, version: '1' } }),
    'tools/list': (name, size) => ({ tools: servers[name].slice(0, size) }),
    ping: () => ({}),
  };
  const http = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    const [, name, size] = request.url.split('/').map(decodeURIComponent);
    const answer = answers[method] ? { result: answers[method](name, Number(size)) } : { error: { code: -32601, message: 'unknown method' } };
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  await new Promise((resolve) => { http.listen(0, '127.0.0.1', resolve); });
  const url = (name, tools) => `http://127.0.0.1:${http.address().port}/${encodeURIComponent(name)}/${tools.length}`;
  return { url, close: () => http.close() };
}

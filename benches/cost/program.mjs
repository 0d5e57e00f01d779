// CodeCall as a child process, and a model's view of it through the SDK's client: what is listed, what answers say.

import { cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { folder, here, serveHttp } from '../../tests/node/serve.mjs';
import { listTokens, tokens } from './tokens.mjs';

const require = createRequire(join(here, 'package.json'));
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

// Names of clients: one that lists all tools to its model, and one that defers them.
export const LISTS = 'cost';
export const DEFERS = 'claude-ai';

// Starts CodeCall in front of servers {name: url}. `from`: a home to begin with, of which it gets a copy.
export async function program(upstreams, { from, config = {} } = {}) {
  const home = folder();
  if (from) cpSync(from, home, { recursive: true });
  const mcpServers = Object.fromEntries(Object.entries(upstreams).map(([name, url]) => [name, { url }]));
  return serveHttp({ mcpServers, ...config }, { home });
}

// A connected client.
export async function session({ url }, clientName = LISTS) {
  const client = new Client({ name: clientName, version: '1' }, { capabilities: {} });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const instructions = client.getInstructions() ?? '';
  const execute = byName.get('codecall_execute');
  return {
    tools,
    has: (name) => byName.has(name),
    takes: (name, argument) => argument in (byName.get(name)?.inputSchema.properties ?? {}),
    // The tools of the servers are listed themselves, maybe with codecall_execute.
    direct: tools.some(({ name }) => !name.startsWith('codecall_')),
    scripts: Boolean(execute),
    index: execute?.description ?? '',
    // Answers about tools, which do not change in a session.
    asked: new Map(),
    list: listTokens(tools) + tokens(instructions),
    async call(name, args) {
      const { content } = await client.callTool({ name, arguments: args });
      return content.filter(({ type }) => type === 'text').map(({ text }) => text).join('\n');
    },
    close: () => client.close(),
  };
}

// The tools that a text describes, in lines `name(params): result // sentence` below lines `app:` or `app (n of m):`.
export function described(text, apps) {
  const found = new Map();
  let app;
  for (const line of text.split('\n')) {
    const heading = /^(.+?)(?: \(\d+ of \d+\))?:$/.exec(line);
    const tool = /^"?([^\s("]+)"?\((.*)$/.exec(line);
    if (heading && apps.includes(heading[1])) app = heading[1];
    else if (tool && app) found.set(`${app}:${tool[1]}`, { line, parameters: parameters(tool[2]) });
  }
  return found;
}

// The text up to the parenthesis that closes the parameters.
function parameters(text) {
  let depth = 0;
  for (const [n, character] of [...text].entries()) {
    if ('([{'.includes(character)) depth += 1;
    if (')]}'.includes(character) && (depth -= 1) < 0) return text.slice(0, n);
  }
  return text;
}

// Whether parameters name all arguments of a call, at all depths at which the schema names them.
export function names(params, args, schema) {
  return argumentNames(args, schema, schema.$defs ?? schema.definitions ?? {})
    .every((name) => new RegExp(`(?<![\\w$])"?${name.replace(/[^\w]/g, '\\$&')}"?\\??:`).test(params));
}

function argumentNames(value, schema, definitions) {
  if (!schema || typeof schema !== 'object' || !value || typeof value !== 'object') return [];
  if (schema.$ref) return argumentNames(value, definitions[schema.$ref.split('/').pop()], definitions);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) {
    const names = choices.map((choice) => argumentNames(value, choice, definitions));
    return names.reduce((best, other) => (other.length > best.length ? other : best), []);
  }
  if (Array.isArray(value)) return value.flatMap((item) => argumentNames(item, schema.items, definitions));
  return Object.entries(value).flatMap(([name, member]) => (schema.properties?.[name] ? [name, ...argumentNames(member, schema.properties[name], definitions)] : []));
}

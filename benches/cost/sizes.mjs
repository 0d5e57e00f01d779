// Tokens of CodeCall's lists, search answers and signatures with the tools of real servers: node benches/cost/sizes.mjs
//
// LIVEMCPBENCH names the tools.json of LiveMCPBench, whose 527 tools the larger sizes need. The result is in target/cost, for
// report.mjs.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { requireFiles, root } from '../../tests/node/serve.mjs';
import { named, words } from './direct.mjs';
import { count, fill, lists, serveLists } from './lists.mjs';
import { DEFERS, described, program, session } from './program.mjs';
import { listTokens, tokens } from './tokens.mjs';

requireFiles('sizes', process.env.LIVEMCPBENCH ?? 'LIVEMCPBENCH');
const SIZES = [12, 60, 219, 818];
const [PROBES, SCHEMAS] = [60, 500];
const all = lists(process.env.LIVEMCPBENCH);
const listServer = await serveLists(all);
const urls = (servers) => Object.fromEntries(Object.entries(servers).map(([name, tools]) => [name, listServer.url(name, tools)]));
const toolsOf = (servers) => Object.entries(servers).flatMap(([server, tools]) => tools.map((tool) => ({ server, ...tool })));

const quantile = (list, part) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(part * list.length))];
const spread = (list) => `${quantile(list, 0.5)}/${quantile(list, 0.95)}`;
const firstSentence = (text) => text.replace(/\s+/g, ' ').trim().split(/(?<=[.!?])\s/)[0].slice(0, 80);

async function listed(servers, config, clientName) {
  const process = await program(urls(servers), { config });
  const model = await session(process, clientName);
  await model.close();
  await process.stop();
  return model;
}

// Queries as a model writes them: a sentence for one tool, the words of three names.
async function searches(servers) {
  const process = await program(urls(servers), { config: { front: { default: 'code' } } });
  const model = await session(process);
  const tools = toolsOf(servers);
  const step = Math.max(1, Math.floor(tools.length / PROBES));
  const probes = tools.filter((_, n) => n % step === 0).slice(0, PROBES);
  const search = async (args) => tokens(await model.call('codecall_search', args));
  const [one, three] = [[], []];
  for (const [n, { name, description }] of probes.entries()) {
    one.push(await search({ query: firstSentence(description) || words(name) }));
    three.push(await search({ queries: [0, 7, 19].map((other) => words(probes[(n + other) % probes.length].name)) }));
  }
  await model.close();
  await process.stop();
  return [spread(one), spread(three)];
}

const rows = [];
for (const size of SIZES) {
  const servers = fill({}, all, size);
  const direct = listTokens(Object.entries(servers).flatMap(([name, tools]) => named(name, tools)));
  const models = [
    await listed(servers, { front: { default: 'code' } }),
    await listed(servers, { front: { default: 'code' }, tools: { indexTokens: 2000 } }),
    await listed(servers, { front: { default: 'code' }, tools: { indexTokens: 0 } }),
    await listed(servers, {}, DEFERS),
  ];
  rows.push([count(servers), Object.keys(servers).length, direct, ...models.map(({ list }) => list), ...await searches(servers)]);
  console.log(rows.at(-1).join(' '));
}

// The lines of an index that holds all tools.
const withParameters = toolsOf(all).filter(({ inputSchema }) => Object.keys(inputSchema.properties ?? {}).length).slice(0, SCHEMAS);
const withoutDescriptions = (schema) => {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions);
  if (!schema || typeof schema !== 'object') return schema;
  return Object.fromEntries(Object.entries(schema).filter(([key, value]) => !['title', '$schema'].includes(key) && !(key === 'description' && typeof value === 'string'))
    .map(([key, value]) => [key, withoutDescriptions(value)]));
};
const measured = (texts) => [texts.reduce((sum, text) => sum + tokens(text), 0), ...[0.5, 0.95].map((part) => quantile(texts.map(tokens), part))];
const { index } = await listed(all, { front: { default: 'code' }, tools: { indexTokens: 100_000 } });
const lines = described(index, Object.keys(all));
const mine = withParameters.map(({ server, name }) => lines.get(`${server}:${name}`)?.line).filter(Boolean);
const signatures = [
  ['JSON Schema, as a client lists it', ...measured(withParameters.map(({ name, description, inputSchema }) => JSON.stringify({ name, description, input_schema: inputSchema })))],
  ['JSON Schema without descriptions', ...measured(withParameters.map(({ name, inputSchema }) => JSON.stringify({ name, input_schema: withoutDescriptions(inputSchema) })))],
  [`line of the index (${mine.length} tools)`, ...measured(mine)],
];
listServer.close();
mkdirSync(join(root, 'target/cost'), { recursive: true });
writeFileSync(join(root, 'target/cost/sizes.json'), JSON.stringify({ servers: Object.keys(all).length, lists: rows, signatures: { tools: withParameters.length, rows: signatures } }));
for (const row of signatures) console.log(row.join(' '));

// The conformance suite of MCP, with CodeCall as the client: node conformance-client.mjs [--check] [SCENARIO…]
//
// The suite is the server and the authorization server of each scenario; conformance/client.mjs is the client. The result is
// docs/reports/client-conformance.md; --check compares instead of writing.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { codecall, folder, here, modules, node22, requireFiles, writePage } from './serve.mjs';

const SUITE = join(modules, 'conformance-next');
const REVISION = '2026-07-28';
requireFiles('conformance as a client', codecall, node22, SUITE);

// Scenarios that fail, and why. One that passes must not be here.
const KNOWN = {
  'auth/dpop': 'Tokens bound to a key (DPoP) are not requested.',
  'auth/dpop-nonce': 'Tokens bound to a key (DPoP) are not requested.',
};

// `client` and `not_scored` of the requirements.
function required() {
  const text = readFileSync(join(SUITE, 'requirements', `${REVISION}.yaml`), 'utf8');
  const section = (name) => new RegExp(`^${name}:\\n((?: .*\\n|\\n)*)`, 'm').exec(text)[1];
  const scored = [...section('client').matchAll(/^ +- (\S+)$/gm)].map(([, name]) => ({ name, kind: 'required' }));
  const others = [...section('not_scored').matchAll(/scenario: (\S+)\n +leg: client\n +reason: (\S+)/g)];
  return [...scored, ...others.map(([, name, kind]) => ({ name, kind }))];
}

// Returns the checks of a scenario.
async function run(name) {
  const results = folder();
  const client = `${node22} ${join(here, 'conformance/client.mjs')}`;
  const words = ['client', '--command', client, '--scenario', name, '--spec-version', REVISION, '--force', '--timeout', '120000', '-o', results];
  const child = spawn(node22, [join(SUITE, 'dist/index.js'), ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => { output += chunk; });
  child.stderr.on('data', (chunk) => { output += chunk; });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  const path = readdirSync(results, { recursive: true }).find((file) => file.endsWith('checks.json'));
  if (!path) throw new Error(`${name} did not run: ${output}`);
  return { code, output, checks: JSON.parse(readFileSync(join(results, path), 'utf8')) };
}

const only = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const scenarios = required().filter(({ name }) => only.length === 0 || only.includes(name));
const waiting = [...scenarios];
await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, async () => {
  for (let scenario = waiting.shift(); scenario; scenario = waiting.shift()) Object.assign(scenario, await run(scenario.name));
}));

let problems = 0;
let rows = '';
for (const scenario of scenarios) {
  const { name, kind, checks, code, output } = scenario;
  const of = (status) => checks.filter((check) => check.status === status);
  // A check is made at each request: how many are made depends on the time.
  const names = (list) => new Set(list.map(({ id }) => id));
  const failed = names(of('FAILURE')).size;
  const passed = names([...of('SUCCESS'), ...of('FAILURE')]).size - failed;
  scenario.passes = code === 0 && failed === 0;
  if (scenario.passes === name in KNOWN) {
    problems += 1;
    console.error(`FAILED: ${name}: ${scenario.passes ? 'passes, and is listed as a failure' : `status ${code}`}`);
    for (const { id, errorMessage, description } of of('FAILURE')) console.error(`    ${id}: ${errorMessage ?? description}`);
    if (process.argv.includes('--verbose')) console.error(output);
  }
  for (const { id, errorMessage, description } of of('WARNING')) console.error(`warning: ${name}: ${id}: ${errorMessage ?? description}`);
  rows += `| ${name} | ${kind} | ${passed} of ${passed + failed} | ${KNOWN[name] ?? ''} |\n`;
}
const count = (list) => `${list.filter(({ passes }) => passes).length} of ${list.length}`;
const scored = scenarios.filter(({ kind }) => kind === 'required');
const others = scenarios.filter(({ kind }) => kind !== 'required');
const { version } = JSON.parse(readFileSync(join(SUITE, 'package.json'), 'utf8'));
console.log(`${version}, as a client, requirements of ${REVISION}: ${count(scored)} scored, ${count(others)} others`);

if (only.length === 0) {
  writePage('docs/reports/client-conformance.md', `# Conformance as a client

The [conformance suite of MCP](https://github.com/modelcontextprotocol/conformance) also tests clients: it is the server and the
authorization server, and looks at each request. CodeCall ${'(`codecall serve` and `codecall auth login`)'} is the client of all
scenarios that the revision ${REVISION} requires, and of the extensions that the suite has. \`tests/node/conformance/client.mjs\` is the
person: it logs in, and calls all that the server lists.

**${count(scored)} required scenarios pass, and ${count(others)} that the suite runs without a score** (version ${version}). \`.ci/run\` fails
if one more fails, or if one passes that this page lists as a failure.

This page is written by \`node tests/node/conformance-client.mjs\`.

| scenario | kind | checks that pass | why not all |
|---|---|---:|---|
${rows}`);
}
if (problems > 0) process.exitCode = 1;

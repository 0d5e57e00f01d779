// The conformance suite of MCP, through CodeCall: node conformance.mjs [--check] [--verbose] [SCENARIO]
//
// It runs against a server that has everything the suite calls (tests/src/bin/conformance-server), and against CodeCall in
// front of it with `expose = "direct"`. A scenario that passes on the server alone must pass through CodeCall. The result is
// docs/reports/conformance.md; --check compares instead of writing.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codecall, fixture, folder, modules, node22, requireFiles, serveHttp, start, writePage } from './serve.mjs';

const STABLE = join(modules, '@modelcontextprotocol/conformance');
const NEXT = join(modules, 'conformance-next');
requireFiles('conformance', codecall, fixture, node22, STABLE, NEXT);

const version = (package_) => JSON.parse(readFileSync(join(package_, 'package.json'))).version;

const only = process.argv.slice(2).filter((word) => !word.startsWith('--'));

// Until 2025-11-25 servers speak with sessions only, so the server behind CodeCall does, too.
const SUITES = [
  { title: 'the active scenarios', package: STABLE, args: ['--suite', 'active'], latest: '2025-11-25' },
  { title: 'requirements of 2025-11-25', package: NEXT, args: ['--requirements', '2025-11-25'], latest: '2025-11-25' },
  { title: 'requirements of 2026-07-28', package: NEXT, args: ['--requirements', '2026-07-28'], latest: '2026-07-28' },
];

// Returns the checks of each scenario.
async function run(suite, url) {
  const results = folder();
  const words = [join(suite.package, 'dist/index.js'), 'server', '--url', url, ...suite.args, '-o', results];
  const child = spawn(node22, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => { output += chunk; });
  child.stderr.on('data', (chunk) => { output += chunk; });
  await new Promise((resolve) => child.once('exit', resolve));
  const scenarios = new Map();
  for (const entry of readdirSync(results)) {
    // `server-NAME-2026-11-23T18-20-00-000Z`
    const name = entry.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
    const checks = join(results, entry, 'checks.json');
    if (existsSync(checks)) scenarios.set(name, JSON.parse(readFileSync(checks)));
  }
  if (scenarios.size === 0 && only.length === 0) throw new Error(`the suite did not run: ${output}`);
  return scenarios;
}

// Scenarios that differ on purpose, and why. They are optional extensions, which the suite does not score.
const KNOWN = [[/^tasks-required-task-error$/, 'CodeCall tells each server that its client knows tasks, and waits for the task itself if its own client does not. So such a client gets the result, not an error.']];
const known = (name) => KNOWN.find(([pattern]) => pattern.test(name))?.[1];

const failed = (checks) => checks.filter(({ status }) => status === 'FAILURE');
const passed = (checks) => checks.filter(({ status }) => status === 'SUCCESS');
const counts = (checks) => `${passed(checks).length} of ${passed(checks).length + failed(checks).length}`;

let problems = 0;
let page = `# Conformance

The [conformance suite of MCP](https://github.com/modelcontextprotocol/conformance) calls tools, prompts and resources with names that
it prescribes. The tests have a server with all of them (\`tests/src/bin/conformance-server\`). The suite is run against this server alone,
and against CodeCall in front of it, with the default configuration and \`expose = "direct"\`. Each figure is the number of checks
that passed. **A check that passes on the server alone must pass through CodeCall**; \`.ci/run\` fails otherwise.

This page is written by \`node tests/node/conformance.mjs\`.
`;

for (const suite of SUITES) {
  if (only.length) suite.args = ['--scenario', only[0], '--spec-version', suite.latest];
  const server = await start(fixture, [suite.latest], { ready: /^(http:\S+)\n/ });
  const alone = await run(suite, server.found);
  const ours = await serveHttp({ mcpServers: { conformance: { url: server.found } }, expose: 'direct' });
  const through = await run(suite, ours.url);
  const log = await ours.stop();
  await server.stop();
  let rows = '';
  const sum = { alone: [], through: [] };
  const differing = new Set();
  for (const [name, checks] of [...alone].sort(([a], [b]) => a.localeCompare(b))) {
    const other = through.get(name) ?? [];
    sum.alone.push(...checks);
    sum.through.push(...other);
    const before = new Set(failed(checks).map(({ id }) => id));
    const worse = failed(other).filter(({ id }) => !before.has(id));
    const isWorse = worse.length > 0 || passed(other).length < passed(checks).length;
    if (isWorse && known(name)) {
      differing.add(known(name));
    } else if (isWorse) {
      problems += 1;
      console.error(`FAILED: ${suite.title}: ${name}: ${counts(checks)} alone, ${counts(other)} through CodeCall`);
      for (const { id, errorMessage } of worse) console.error(`    ${id}: ${errorMessage}`);
      const good = new Set(passed(other).concat(worse).map(({ id }) => id));
      for (const { id } of passed(checks)) {
        if (!good.has(id)) console.error(`    ${id}: ${other.find((check) => check.id === id)?.status ?? 'not reached'}`);
      }
    }
    if (process.argv.includes('--verbose')) {
      for (const { id, errorMessage } of failed(checks)) console.error(`    alone: ${name}: ${id}: ${errorMessage}`);
    }
    rows += `| ${name} | ${counts(checks)} | ${counts(other)}${isWorse ? (known(name) ? ' ¹' : ' **worse**') : ''} |\n`;
  }
  const all = (checks) => `**${counts(checks)}**`;
  page += `\n## ${version(suite.package)}: ${suite.title}\n\n| scenario | the server alone | through CodeCall |\n|---|---:|---:|\n${rows}`;
  page += `| all | ${all(sum.alone)} | ${all(sum.through)} |\n`;
  for (const reason of differing) page += `\n¹ An extension, which the suite does not score. ${reason}\n`;
  console.log(`${version(suite.package)}, ${suite.title}: alone ${counts(sum.alone)}, through CodeCall ${counts(sum.through)}`);
  if (process.argv.includes('--verbose')) console.error(log);
}

if (only.length === 0) writePage('docs/reports/conformance.md', page);
if (problems > 0) process.exitCode = 1;

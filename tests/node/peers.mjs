#!/usr/bin/env node
// Runs the test suites of other engines, and compares each program that AgentScript accepts with Node.
//   node tests/node/peers.mjs [SUITE=FOLDER]... [--only TEXT] [--show COUNT] [--write FILE] -- COMMAND…
// SUITE is a name in `peers/suites.mjs`, FOLDER a checkout of its repository. COMMAND reads lines `{"script"}` and answers
// each with a line, its outcome, such as `target/debug/batch` (`cargo build -p codecall-tests --bin batch`). What tests
// assert is logged, not judged: Node is the judge. The statements that AgentScript refuses are left out of a program.
// Lines that differ between two runs of Node are not compared.
// Prints the counts of each suite, the differences by reason (`peers/reasons.mjs`), and COUNT of those without one; FILE
// gets all of them, a line of JSON each. The exit code is 1 if there is a difference without a reason.
import { appendFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { difference, differences, steady } from './peers/compare.mjs';
import { accepted } from './peers/accepted.mjs';
import { LineServer } from './peers/line-server.mjs';
import { reasonOf } from './peers/reasons.mjs';
import { programsOf, SUITES } from './peers/suites.mjs';

const LIMIT_MS = 20_000;
const AT_ONCE = 2;

const split = process.argv.indexOf('--');
const given = process.argv.slice(2, split < 0 ? undefined : split);
const command = split < 0 ? [] : process.argv.slice(split + 1);
const option = (name, otherwise) => (given.includes(name) ? given[given.indexOf(name) + 1] : otherwise);
const [only, show, write] = [option('--only', ''), Number(option('--show', 20)), option('--write')];
const folders = given.filter((one) => /^\w+=/.test(one)).map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]);
const unknown = folders.find(([name]) => !Object.hasOwn(SUITES, name));

if (folders.length === 0) console.log(`SKIPPED: no SUITE=FOLDER is given, a checkout of ${Object.keys(SUITES).join(', ')}`);
else if (unknown || command.length === 0) fail(unknown ? `There is no suite '${unknown[0]}'` : 'A command is needed: -- target/debug/batch');
else await main();

function fail(message) {
  console.error(message);
  process.exitCode = 2;
}

async function main() {
  const reasons = new Map();
  const found = [];
  const seen = new Set();
  if (write) writeFileSync(write, '');
  for (const [name, folder] of folders) {
    const programs = programsOf(name, folder).filter((one) => one.place.includes(only));
    const counts = { programs: programs.length, compared: 0, whole: 0, refused: 0, limits: 0, 'no JavaScript': 0, same: 0, explained: 0, unexplained: 0 };
    const fresh = programs.filter((one) => !seen.has(one.text) && seen.add(one.text));
    counts['found before'] = programs.length - fresh.length;
    await inParallel(fresh, AT_ONCE, () => workers(command), async (program, { ours, node }) => {
      const one = await accepted(program, (script) => ours.ask({ script }));
      if (!one.script) { counts[one.why] += 1; return; }
      counts.compared += 1;
      if (one.dropped === 0) counts.whole += 1;
      const plain = await differ(one, node);
      if (plain.length === 0) { counts.same += 1; return; }
      const labelled = await accepted(program, (script) => ours.ask({ script }), true);
      const known = labelled.script ? await differ(labelled, node) : [];
      const problems = known.length > 0 ? known : plain;
      const reasonFor = (problem) => reasonOf({ ...problem, ...one, place: program.place });
      // A difference without a reason counts, else the first one.
      const problem = problems.find((one) => !reasonFor(one)) ?? problems[0];
      const reason = reasonFor(problem);
      if (reason) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      counts[reason ? 'explained' : 'unexplained'] += 1;
      const entry = { suite: name, place: program.place, reason, ...problem, script: one.script };
      found.push(entry);
      if (write) appendFileSync(write, `${JSON.stringify(entry)}\n`);
    });
    console.log(`${name}: ${Object.entries(counts).filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`).join(', ')}`);
  }
  for (const [reason, count] of [...reasons].sort(([, a], [, b]) => b - a)) console.log(`explained ${count} times: ${reason}`);
  const left = found.filter(({ reason }) => !reason);
  for (const { suite, place, before, node, here } of left.slice(0, show)) console.log(`${suite} ${place}\n  after ${before}\n  node ${node}\n  here ${here}`);
  console.log(`${left.length} differences without a reason`);
  process.exitCode = left.length > 0 ? 1 : 0;
}

/** The differences of an outcome from Node's, also from those of two processes in which no other program has left traces. */
async function differ({ script, outcome }, node) {
  if (!difference(outcome, await node.ask({ script }))) return [];
  const answers = [];
  for (let run = 0; run < 2; run += 1) {
    node.close();
    answers.push(await node.ask({ script }));
  }
  return differences(...steady(outcome, ...answers));
}

function workers(program) {
  const judge = join(dirname(fileURLToPath(import.meta.url)), 'peers', 'judge.mjs');
  const node = new LineServer([process.execPath, '--no-warnings', '--max-old-space-size=1024', judge], LIMIT_MS);
  return { ours: new LineServer(program, 3 * LIMIT_MS), node };
}

/** Does the work for all items, some at once, each with resources of its own. */
async function inParallel(items, width, open, work) {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, async () => {
    const resources = open();
    while (next < items.length) {
      next += 1;
      await work(items[next - 1], resources);
    }
    Object.values(resources).forEach((one) => one.close());
  }));
}

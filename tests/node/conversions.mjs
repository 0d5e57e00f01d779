#!/usr/bin/env node
// Compares with Node in which order, how often and with what effect built-ins convert their arguments and receivers.
//   node tests/node/conversions.mjs COUNT [SEED] [--only TEXT] -- COMMAND…
//   COUNT:   the number of random calls of each built-in
//   TEXT:    only calls of built-ins whose name contains it
//   COMMAND: runs a file and prints its outcome as JSON (`target/debug/codecall run --preset experimental`)
// Arguments, receivers, items and options are objects whose conversions are logged, and change the receiver or throw.
// Callbacks, iterators, comparators, `toJSON` and the like do the same. Each call is compared with its log, its result
// or error, and the receiver after it. Prints differences that `conversions/differences.mjs` does not explain.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call, targets } from './conversions/calls.mjs';
import { explained } from './conversions/differences.mjs';
import { HELPERS } from './conversions/helpers.mjs';
import { seed } from './locales/random.mjs';

process.env.TZ = 'UTC';
process.on('unhandledRejection', () => {}); // calls may leave promises behind
const split = process.argv.indexOf('--');
const [count = '5', firstSeed = '1', ...rest] = process.argv.slice(2, split < 0 ? undefined : split);
const command = split < 0 ? ['target/debug/codecall', 'run', '--preset', 'experimental'] : process.argv.slice(split + 1);
const only = rest[0] === '--only' ? rest[1] : '';
const BATCH = 100;
const SHOWN = 60;
const AsyncFunction = (async () => {}).constructor;
const folder = mkdtempSync(join(tmpdir(), 'conversions-'));
let files = 0;

const scriptOf = (cases) => `${HELPERS}
return await outcomes([
${cases.map((one) => one.source).join(',\n')}
]);`;

/** The outcome of a script here, also of one that fails. */
function outcomeOf(script) {
  const file = join(folder, `${(files += 1)}.js`);
  writeFileSync(file, script);
  const { stdout } = spawnSync(command[0], [...command.slice(1), file], { maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(stdout.toString());
}

/** The outcomes of cases here; of a batch that fails as a whole each by itself. */
function run(cases) {
  const outcome = outcomeOf(scriptOf(cases));
  if (Array.isArray(outcome.result)) return outcome.result;
  if (cases.length === 1) return [`${outcome.status}: ${outcome.error?.message}`];
  const middle = cases.length >> 1;
  return [...run(cases.slice(0, middle)), ...run(cases.slice(middle))];
}

/** Those built-ins that are here, too; a script that names another one may be refused. */
function there(targets) {
  const outcome = outcomeOf(`return [${targets.map(({ exists }) => `() => ${exists}`).join(',\n')}].map((exists) => { try { return exists(); } catch { return false; } });`);
  if (outcome.result) return targets.filter((_, index) => outcome.result[index]);
  if (targets.length === 1) return [];
  const middle = targets.length >> 1;
  return [...there(targets.slice(0, middle)), ...there(targets.slice(middle))];
}

seed(Number(firstSeed));
// Of what Node has: what there is here, too.
const all = targets();
const present = there(all).filter(({ name }) => name.includes(only));
const cases = present.flatMap((target) => Array.from({ length: Number(count) }, () => ({ name: target.name, source: call(target) })));

let different = 0;
const [known, byName] = [new Map(), new Map()];
for (let from = 0; from < cases.length; from += BATCH) {
  const batch = cases.slice(from, from + BATCH);
  const wanted = await new AsyncFunction(`'use strict';${scriptOf(batch)}`)();
  const got = run(batch);
  batch.forEach(({ name, source }, index) => {
    const [here, node] = [got[index], wanted[index].toWellFormed()];
    if (here === node) return;
    const reason = explained(name, node, here, source);
    if (reason) {
      known.set(reason, (known.get(reason) ?? 0) + 1);
      return;
    }
    different += 1;
    byName.set(name, (byName.get(name) ?? 0) + 1);
    if (different <= SHOWN && byName.get(name) <= 3) console.log(`${name}\n  ${source}\n  node ${node}\n  here ${here}`);
  });
}
rmSync(folder, { recursive: true });
for (const [reason, times] of known) console.log(`explained ${times} times: ${reason}`);
for (const [name, times] of byName) console.log(`${name}: ${times}`);
console.log(`${cases.length} calls of ${present.length} built-ins, ${different} that differ`);
process.exitCode = different > 0 ? 1 : 0;

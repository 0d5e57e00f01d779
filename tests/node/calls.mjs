#!/usr/bin/env node
// Compares built-ins with Node on random calls. `calls.mjs FAMILY [COUNT] [SEED] -- COMMAND...`
//   FAMILY: a file in `families/`, which generates random expressions
//   COMMAND: runs the script in the file of its last argument and prints the outcome as JSON, such as
//   `target/debug/codecall run --preset experimental`
// Evaluates every expression with both and prints those that differ. The exit code is 1 if there are any.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './sandbox.mjs';

process.env.TZ = 'UTC';
const [family, count = '10000', seed = '1'] = process.argv.slice(2, process.argv.indexOf('--'));
const command = process.argv.slice(process.argv.indexOf('--') + 1);
const { expression } = await import(`./families/${family}.mjs`);
const BATCH = 400;
const SHOWN = 40;

const PROLOGUE = `
const show = (value, depth = 0) => {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return value + 'n';
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'function') return 'function ' + value.name;
  if (value === null || typeof value !== 'object') return String(value);
  if (depth > 4) return '...';
  if (Array.isArray(value)) return '[' + Array.from(value, (item, i) => (i in value ? show(item, depth + 1) : 'hole')).join() + ']' + (value.length > 1000 ? value.length : '');
  if (value instanceof Map) return 'Map' + show([...value], depth + 1);
  if (value instanceof Set) return 'Set' + show([...value], depth + 1);
  if (value instanceof Error) return 'Error ' + value;
  return '{' + Object.entries(value).map(([key, item]) => key + ':' + show(item, depth + 1)).join() + '}';
};
const out = [];
const check = (run) => { try { out.push(show(run())); } catch (error) { out.push('throws ' + error); } };
`;

const random = generator(Number(seed));
const tools = {
  random,
  below: (limit) => Math.floor(random() * limit),
  pick: (list) => list[Math.floor(random() * list.length)],
};
const folder = mkdtempSync(join(tmpdir(), 'calls-'));
let [differences, done] = [0, 0];
for (; done < Number(count); done += BATCH) {
  const expressions = Array.from({ length: BATCH }, () => expression(tools));
  const script = `${PROLOGUE}${expressions.map((text) => `check(() => ${text});`).join('\n')}\nreturn out;`;
  const file = join(folder, 'script.js');
  writeFileSync(file, script);
  const expected = JSON.parse((await runScript(script)).outcome.text);
  const outcome = JSON.parse(run(file));
  if (outcome.status !== 'ok') {
    const line = (outcome.error.location?.line ?? 0) - PROLOGUE.split('\n').length;
    console.log(`${expressions[line]}\n  ${JSON.stringify(outcome.error).slice(0, 300)}`);
    differences += 1;
    continue;
  }
  expressions.forEach((text, i) => {
    // Messages of errors contain no lone surrogates.
    if (outcome.result[i].toWellFormed() === expected[i].toWellFormed()) return;
    differences += 1;
    if (differences <= SHOWN) console.log(`${text}\n  Node ${expected[i]}\n  ours ${outcome.result[i]}`);
  });
}
rmSync(folder, { recursive: true });
console.log(`${done} expressions, ${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;

function run(file) {
  try {
    return execFileSync(command[0], [...command.slice(1), file], { encoding: 'utf8', maxBuffer: 1 << 28 });
  } catch (error) {
    return error.stdout || JSON.stringify({ status: 'failed', error: String(error) });
  }
}

/** Returns a generator of numbers in [0, 1): mulberry32. */
function generator(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

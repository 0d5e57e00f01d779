#!/usr/bin/env node
// Compares random programs with types, and mutants of them, with the TypeScript compiler and Node.
//   node tests/node/typescript.mjs COUNT [SEED] -- PROGRAM
// COUNT is the number of programs; each has two mutants. PROGRAM has the commands `check` and `run` of `codecall`, such as
//   target/debug/codecall
// Both sides must accept the same programs, and what is accepted must give the same result here as the output of the
// compiler on Node. Prints at most 40 differences. The exit code is 1 if there are any.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seed } from './locales/random.mjs';
import { mutant } from './typescript/mutants.mjs';
import { wanted } from './typescript/oracle.mjs';
import { PRELUDE, program } from './typescript/programs.mjs';

process.on('unhandledRejection', () => {}); // mutants may leave promises behind

const split = process.argv.indexOf('--');
const [count, start = '1'] = process.argv.slice(2, split);
const [command] = process.argv.slice(split + 1);
const BATCH = 100;
const POLICY = ['--preset', 'experimental'];
const folder = mkdtempSync(join(tmpdir(), 'typescript-'));
const AsyncFunction = (async () => {}).constructor;
const counts = {};
let differences = 0;

// Results tell programs apart, and not engines: an error is its name, a function is its kind. So is the text of a function, which has
// types here and the layout of the compiler there.
const RUN = `const run = async (program) => {
  const seen = (key, value) => typeof value === 'function' || typeof value === 'string' && /=>|function/.test(value) ? 'function' : typeof value === 'bigint' ? value + 'n' : value === undefined ? 'undefined' : Object.is(value, -0) ? '-0' : typeof value === 'number' && !isFinite(value) ? String(value) : value;
  try { return JSON.stringify(await program(), seen); } catch (error) { return 'throws ' + error.name; }
};
const results = [];
`;
const script = (programs) => `${RUN}${programs.map((one) => `results.push(await run(async () => { ${PRELUDE}\n${one}\n}));`).join('\n')}\nreturn results;`;

function add(kind) {
  counts[kind] = (counts[kind] ?? 0) + 1;
}

function differ(text, wants, has) {
  differences += 1;
  if (differences <= 40) console.log(`${text}\n  wanted ${wants}\n  here ${has}\n`);
}

/** The first diagnostic of each program, or nothing where it is accepted. */
function check(programs) {
  const files = programs.map((text, index) => {
    const file = join(folder, `${index}.ts`);
    writeFileSync(file, `${PRELUDE}\n${text}`);
    return file;
  });
  const { stdout, stderr } = spawnSync(command, ['check', '--json', '--language', 'typescript', ...POLICY, ...files], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const lines = stdout.trim().split('\n').map((line) => JSON.parse(line));
  if (lines.length !== files.length) throw new Error(`check ended early: ${stderr.slice(-500)}`);
  return lines.map(({ diagnostics }) => diagnostics[0]);
}

/** Results here; nothing for a program that leaves a rejected promise behind, which ends a run. */
function results(programs) {
  const file = join(folder, 'all.ts');
  writeFileSync(file, script(programs));
  const { stdout } = spawnSync(command, ['run', file, ...POLICY], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const outcome = JSON.parse(stdout);
  if (outcome.result) return outcome.result;
  return programs.length === 1 ? [outcome.error.unhandled ? undefined : JSON.stringify(outcome.error)] : programs.flatMap((one) => results([one]));
}

/** Compares programs that are accepted on both sides. */
async function compare(accepted) {
  if (accepted.length === 0) return;
  const expected = await new AsyncFunction(`"use strict";${script(accepted.map(({ code }) => code))}`)();
  const got = results(accepted.map(({ text }) => text));
  accepted.forEach(({ text, code }, index) => {
    if (got[index] === undefined) add('promise rejected and left behind');
    else if (expected[index] === got[index]) add('same result');
    else differ(`${text}\n  as ${code.trim()}`, expected[index], got[index]);
  });
}

for (let batch = 0; batch * BATCH < Number(count); batch += 1) {
  seed((Number(start) + batch) * 1000003);
  const texts = Array.from({ length: BATCH }, program).flatMap((text) => [text, mutant(text), mutant(text)]);
  const diagnostics = check(texts);
  const accepted = [];
  texts.forEach((text, index) => {
    const diagnostic = diagnostics[index];
    const { want, why, code } = wanted(text);
    if (diagnostic && diagnostic.code !== 'SYNTAX_ERROR') return add('construct that the language refuses');
    // Node finds these out when it runs them.
    if (/^cannot assign/.test(diagnostic?.message)) return add('assignment to what is no variable');
    if (want === 'accept' && diagnostic) return differ(text, 'no error', diagnostic.message);
    if (want === 'refuse' && !diagnostic) return differ(text, why, 'accepted');
    if (diagnostic) return add(want === 'refuse' ? 'same refusal' : 'refused behind the parser of TypeScript');
    if (code === undefined) return add('refused by TypeScript, but JavaScript');
    accepted.push({ text, code });
  });
  await compare(accepted);
}
rmSync(folder, { recursive: true });
for (const [kind, times] of Object.entries(counts)) console.log(`${times} times: ${kind}`);
console.log(`${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;

#!/usr/bin/env node
// Runs corpus files on Node. `run.mjs [--update | --check] [FILE | FOLDER]...`
//   without a flag: prints a line of JSON for each case, `{file, name, logs, outcome}`
//   --update: rewrites the expectations in the files, except for cases that Node cannot run
//   --check:  compares the results with the expectations in the files; the exit code is 1 if any differ
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { corpusFiles, readCorpus, writeCorpus } from './corpus.mjs';
import { parseScript, refusals } from './parse.mjs';
import { runScript } from './sandbox.mjs';
import { canErase, codeOf } from './shape.mjs';

process.env.TZ = 'UTC';
process.on('unhandledRejection', () => {}); // scripts may leave promises behind

const root = join(dirname(fileURLToPath(import.meta.url)), '..', 'corpus');
const flags = process.argv.slice(2).filter((arg) => arg.startsWith('--'));
const paths = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));
const [update, check] = [flags.includes('--update'), flags.includes('--check')];
let cases = 0;
let skipped = 0;
const problems = [];

for (const path of corpusFiles(paths.length > 0 ? paths : [root])) {
  const file = readCorpus(path);
  for (const one of file.cases) {
    cases += 1;
    const where = `${relative(root, path)}: ${one.name}`;
    if ('no-node' in one.headers) {
      if (!one.outcome) problems.push(`${where}\n  has no expectation`);
      continue;
    }
    const shape = codeOf(one.script, one.headers.language);
    if (!canErase && !shape && !one.outcome?.text.startsWith('syntax_error')) {
      skipped += 1;
      continue;
    }
    const tree = parseScript(shape?.code ?? '');
    const refused = tree ? refusals(tree) : [];
    if (refused.length > 0) problems.push(`${where}\n  AgentScript refuses ${refused.join(', ')}`);
    const got = await runScript(one.script, inputs(one, dirname(path)));
    if (got.outcome.text === 'stuck') problems.push(`${where}\n  never ends`);
    if (update) keep(one, got);
    else if (check) compare(one, got, where);
    else console.log(JSON.stringify({ file: relative(root, path), name: one.name, ...got }));
  }
  const text = writeCorpus(file);
  if (update) writeFileSync(path, text);
  else if (check && text !== readFileSync(path, 'utf8')) problems.push(`${relative(root, path)}\n  is not in normal form: --update writes it`);
}
for (const problem of problems) console.error(problem);
if (update || check) console.log(`${cases} cases, ${problems.length} problems${skipped ? `, ${skipped} skipped: types need \`npm ci --prefix tests/node\`` : ''}`);
process.exitCode = problems.length > 0 ? 1 : 0;

function inputs({ headers }, folder) {
  return {
    tools: headers.tools ? JSON.parse(readFileSync(join(folder, headers.tools), 'utf8')).tools : [],
    context: headers.context ? JSON.parse(headers.context) : {},
    language: headers.language,
    dialect: headers.dialect,
  };
}

function keep(one, got) {
  if ('differs' in one.headers) return;
  one.logs = got.logs;
  one.outcome = got.outcome;
}

function compare(one, got, where) {
  const same = JSON.stringify([one.logs, one.outcome]) === JSON.stringify([got.logs, got.outcome]);
  if ('differs' in one.headers) {
    if (same) problems.push(`${where}\n  is marked @differs, but Node gives the same`);
  } else if (!same) {
    problems.push(`${where}\n  expected ${JSON.stringify([one.logs, one.outcome])}\n  Node has ${JSON.stringify([got.logs, got.outcome])}`);
  }
}

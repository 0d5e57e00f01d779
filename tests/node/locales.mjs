#!/usr/bin/env node
// Compares what depends on dates and locales with Node: random calls in random locales.
//   node tests/node/locales.mjs KIND COUNT [SEED] -- COMMAND…
// KIND is `all`, or a kind of call: `date`, `dateRange`, `zone`, `dateParse`, `dateMethods`, `collation`, `case`, `resolve`,
// `number`, `numberRange`, `plural`, `list`, `relative`, `names`, `segment`, `tag`. COMMAND reads a script from standard input and writes its outcome as JSON, such as
//   target/release/codecall run - --preset experimental
// Prints at most 40 differences that `locales/differences.mjs` does not explain. The exit code is 1 if there are any.
import { spawnSync } from 'node:child_process';
import collation from './locales/collation.mjs';
import dates from './locales/dates.mjs';
import { explained } from './locales/differences.mjs';
import moments from './locales/moments.mjs';
import numbers from './locales/numbers.mjs';
import { pick, seed } from './locales/random.mjs';
import requests from './locales/requests.mjs';

process.env.TZ = 'UTC';
const split = process.argv.indexOf('--');
const [kind, count, start = '1'] = process.argv.slice(2, split);
const [command, ...commandArguments] = process.argv.slice(split + 1);
const makers = { ...dates, ...moments, ...collation, ...numbers, ...requests };
const kinds = kind === 'all' ? Object.keys(makers) : [kind];
seed(Number(start));

const BATCH = 1000;
const shown = (text) => String(text).replace(/[\u00a0\u202f\u2009\u200e\u200f\u061c\u2068\u2069\ufeff\u200b-\u200d]/g, (mark) => `[${mark.charCodeAt(0).toString(16)}]`);
let differences = 0;
const known = new Map();
for (let done = 0; done < Number(count); done += BATCH) {
  const cases = Array.from({ length: Math.min(BATCH, Number(count) - done) }, () => makers[pick(kinds)]());
  const script = `const f = (l, o) => new Intl.DateTimeFormat(l, o);
const t = (g) => { try { return JSON.stringify(g()) ?? 'undefined'; } catch (e) { return e.name + ': ' + e.message; } };
const out = [];
${cases.map((one) => `out.push(t(() => ${one}));`).join('\n')}
return out;`;
  const expected = new Function(`'use strict'; ${script}`)();
  const ran = spawnSync(command, commandArguments, { input: script, encoding: 'utf8', maxBuffer: 1 << 28 });
  let got;
  try {
    got = JSON.parse(ran.stdout).result;
  } catch {
    got = undefined;
  }
  if (!got) {
    console.log(ran.stdout.slice(0, 500), ran.stderr.slice(0, 500));
    process.exit(1);
  }
  expected.forEach((text, index) => {
    if (text === got[index]) return;
    const reason = explained(cases[index], text, got[index]);
    if (reason) {
      known.set(reason, (known.get(reason) ?? 0) + 1);
      return;
    }
    differences += 1;
    if (differences <= 40) console.log(`${cases[index]}\n  node ${shown(text)}\n  here ${shown(got[index])}`);
  });
}
for (const [reason, times] of known) console.log(`explained ${times} times: ${reason}`);
console.log(`${count} cases, ${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;

#!/usr/bin/env node
// Compares dates with Node: random texts for `Date.parse`, random calls of methods, random formats.
//   node tests/node/dates.mjs (parse | methods | format | range) COUNT [SEED] -- COMMAND…
// COMMAND reads a script from standard input and writes its outcome as JSON, such as
//   target/release/codecall run - --preset experimental
// Prints at most 40 differences. The exit code is 1 if there are any.
import { spawnSync } from 'node:child_process';

process.env.TZ = 'UTC';
const split = process.argv.indexOf('--');
const [mode, count, seed = '1'] = process.argv.slice(2, split);
const [command, ...commandArguments] = process.argv.slice(split + 1);

let state = Number(seed) >>> 0;
const random = (below) => {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
};
const pick = (list) => list[random(list.length)];
const maybe = (chance, text) => (random(100) < chance ? text() : '');
const number = () => pick([random(10), random(13), random(32), random(60), random(100), 1900 + random(200), random(3000), random(1e6), random(4e9)]);
const padded = () => String(number()).padStart(pick([1, 2, 2, 2, 3, 4, 6]), '0');
const time = () => pick([random(2e9) * 1000 + random(1000), -random(4e9) * 1000, random(4e9) * 1e6, -random(4e9) * 1e6, random(4e9) * 2000, Date.UTC(2024, random(12), random(28), random(24), random(60), random(60))]);

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec January february MARCH sept december Marz juni'.split(' ');
const days = 'Mon Tue Wednesday thu Fri, Sat Sunday, Foo'.split(' ');
const zones = 'Z GMT UTC UT EST EDT CST CDT MST MDT PST PDT z gmt+1 GMT+0200 GMT-08:00 +05:30 +0100 -8 UTC+3 CET +12345 EEST'.split(' ');
const clocks = () => `${random(26)}:${String(random(62)).padStart(2, '0')}${maybe(50, () => `:${String(random(62)).padStart(2, '0')}${maybe(20, () => `.${padded()}`)}`)}`;
const templates = [
  () => new Date(time()).toISOString(),
  () => new Date(time()).toString(),
  () => new Date(time()).toUTCString(),
  () => new Date(time()).toLocaleString(),
  () => new Date(time()).toISOString().slice(0, random(25)),
  () => `${padded()}-${padded()}-${padded()}${maybe(60, () => pick(['T', ' ', 't']) + clocks() + maybe(50, () => pick(zones)))}`,
  () => `${pick(['+', '-'])}${padded().padStart(6, '0')}-${String(random(14)).padStart(2, '0')}-${String(random(33)).padStart(2, '0')}${maybe(40, () => `T${clocks()}Z`)}`,
  () => `${maybe(50, () => `${pick(days)} `)}${pick(months)} ${random(33)}${pick([' ', ', ', '  '])}${number()}${maybe(60, () => ` ${clocks()}${maybe(40, () => pick([' AM', ' PM', 'pm', ' am']))}${maybe(40, () => ` ${pick(zones)}`)}`)}${maybe(20, () => ' (note)')}`,
  () => `${maybe(50, () => `${pick(days)} `)}${random(33)}${pick([' ', '-', '. '])}${pick(months)}${pick([' ', '-', ', '])}${number()}${maybe(60, () => ` ${clocks()} ${pick(zones)}`)}`,
  () => `${number()}${pick(['/', '.', '-', ' '])}${number()}${pick(['/', '.', '-', ' '])}${number()}${maybe(60, () => ` ${clocks()}`)}`,
  () => `${number()}/${number()}${maybe(50, () => ` ${clocks()} ${pick(zones)}`)}`,
  () => `${pick(months)} ${number()}`,
  () => Array.from({ length: 1 + random(8) }, () => pick([padded(), pick(months), pick(days), pick(zones), clocks(), ':', '-', '+', '/', '.', ' ', ', ', '(', ')', 'T', 'at', 'of', 'th', 'é', '\u00a0'])).join(pick(['', ' ', ' '])),
];
const alphabet = '0123456789:-+./,() TZapmAMjanfeb\u00a0é';
const mutated = (text) => {
  let out = text;
  for (let times = random(3); times > 0; times -= 1) {
    const at = random(out.length + 1);
    out = out.slice(0, at) + pick(['', '', pick(alphabet), pick(alphabet)]) + out.slice(at + random(2));
  }
  return out;
};

const getters = Object.getOwnPropertyNames(Date.prototype).filter((name) => /^(get|to)/.test(name) && !/Locale/.test(name));
const setters = Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith('set'));
const argument = () => pick([() => String(number()), () => String(-number()), () => `${number()}.5`, () => 'NaN', () => 'undefined', () => 'null', () => `'${number()}'`, () => 'true', () => '1e9', () => 'Infinity', () => '-0', () => "'x'", () => '{}', () => '[]', () => String(random(24)), () => String(random(12)), () => String(2000 + random(99))])();
const list = () => Array.from({ length: pick([0, 1, 1, 1, 2, 3, 4, 7]) }, argument).join(', ');
const start = () => pick([() => String(time()), () => String(time()), () => 'NaN', () => `${argument()}, ${list()}`, argument])();
const methodCase = () => `(() => { const d = new Date(${start()}); const a = ${random(2) ? `d.${pick(setters)}(${list()})` : `Date.UTC(${list()})`}; return [a, +d, d.${pick(getters)}()]; })()`;

const texts = ['narrow', 'short', 'long'];
const twoDigits = ['numeric', '2-digit'];
const options = {
  weekday: texts, era: texts, year: twoDigits, month: [...twoDigits, ...texts], day: twoDigits, dayPeriod: texts, hour: twoDigits, minute: twoDigits, second: twoDigits,
  fractionalSecondDigits: [1, 2, 3], timeZoneName: ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric'],
};
// Zones whose rules differ between the two databases, because one is newer.
const unequal = /Edmonton|Winnipeg|Inuvik|Yellowknife|Regina|Rainy|Resolute|Rankin|Casablanca|Aaiun|Vancouver|Cambridge/;
const allZones = [...Intl.supportedValuesOf('timeZone').filter((zone) => !unequal.test(zone)), 'Asia/Kolkata', 'EST', 'US/Pacific', 'GMT', 'Etc/GMT+5', 'Europe/Kyiv', 'utc'];
const formatOptions = () => {
  const out = {};
  if (random(4) === 0) {
    if (random(3)) out.dateStyle = pick(['full', 'long', 'medium', 'short']);
    if (random(3)) out.timeStyle = pick(['full', 'long', 'medium', 'short']);
  } else {
    const chance = pick([20, 40, 60]);
    for (const [name, values] of Object.entries(options)) if (random(100) < (name === 'dayPeriod' || name === 'era' || name === 'fractionalSecondDigits' ? chance / 4 : chance)) out[name] = pick(values);
  }
  if (random(4) === 0) out.hourCycle = pick(['h11', 'h12', 'h23', 'h24']);
  if (random(4) === 0) out.hour12 = pick([true, false]);
  if (random(2)) out.timeZone = pick(allZones);
  return JSON.stringify(out);
};
const moment = () => pick([() => Date.UTC(1970 + random(68), random(12), random(31), random(24), random(60), random(60), random(1000)), () => Date.UTC(2020 + random(10), random(12), random(31), random(24), pick([0, 30])), time])();
const formatCase = () => pick([
  () => `f('en-US', ${formatOptions()}).format(${moment()})`,
  () => `f('en-US', ${formatOptions()}).formatToParts(${moment()}).map((p) => p.type + ':' + p.value).join('|')`,
  () => `f('en-US', ${formatOptions()}).resolvedOptions()`,
  () => `new Date(${moment()}).${pick(['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'])}('en-US', ${formatOptions()})`,
])();
const rangeCase = () => {
  const from = moment();
  const to = from + pick([1, 1000, 6e4, 36e5, 432e5, 864e5, 864e6, 3e9, 3e10, 1e11]) * random(30);
  return `f('en-US', ${formatOptions()}).${pick(['formatRange', 'formatRangeToParts'])}(${from}, ${to})`;
};

const makers = { parse: () => `Date.parse(${JSON.stringify(mutated(pick(templates)()))})`, methods: methodCase, format: formatCase, range: rangeCase };
const BATCH = 2000;
const shown = (text) => text.replace(/\u202f/g, '[NNBSP]').replace(/\u2009/g, '[THIN]');
let differences = 0;
for (let done = 0; done < Number(count); done += BATCH) {
  const cases = Array.from({ length: Math.min(BATCH, Number(count) - done) }, makers[mode]);
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
    differences += 1;
    if (differences <= 40) console.log(`${cases[index]}\n  node ${shown(text)}\n  here ${shown(got[index])}`);
  });
}
console.log(`${count} cases, ${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;

#!/usr/bin/env node
// Writes runtime/intl/src/data/zones.txt: Node's names of time zones, by zone, time and offset.
//   node tests/node/zones.mjs ALIASES > runtime/intl/src/data/zones.txt
// ALIASES is a file with a line for each name of a zone in the database of the interpreter.
// A line of the result has one of these forms:
//   =LONG;SHORT                              a pair of names; pairs are numbered from 0
//   ALIAS>ZONE                               another name of a zone
//   ZONE|FROM,OFFSET=PAIR,…|…                names of a zone: from a minute on, by offset in minutes
//   ZONE~FROM,PAIR~…                         the generic names of a zone, from a minute on
import { readFileSync } from 'node:fs';

const MINUTE = 60_000;
const STEP = 15 * 24 * 60;
const [FIRST, LAST] = [Date.UTC(1880, 0, 1) / MINUTE, Date.UTC(2038, 0, 1) / MINUTE];
const pairs = new Map();
const zoneLines = [];
// Names that only ICU has, of zones that have another one.
const OF_ICU = 'ACT AET AGT ART AST BET BST CAT CNT CST CTT Canada/East-Saskatchewan EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST US/Pacific-New VST'.split(' ');
const aliases = [...readFileSync(process.argv[2], 'utf8').split('\n').filter(Boolean), ...OF_ICU];
const canonical = new Map(aliases.flatMap((name) => {
  try {
    return [[name, new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone]];
  } catch {
    return [];
  }
}));
const zones = new Set([...canonical.values(), ...Intl.supportedValuesOf('timeZone')]);

const namer = (zone, style) => {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, hour: 'numeric', timeZoneName: style });
  return (minute) => format.formatToParts(minute * MINUTE).at(-1).value;
};
const named = (text) => (/^GMT[+-]\d/.test(text) ? '' : text);
const pairOf = (long, short) => {
  const key = `${named(long)};${named(short)}`;
  if (key === ';') return -1;
  if (!pairs.has(key)) pairs.set(key, pairs.size);
  return pairs.get(key);
};
const minutes = (offset) => {
  const found = /([+-])(\d+)(?::(\d+))?(?::(\d+))?/.exec(offset);
  if (!found) return 0;
  return found[4] ? NaN : (found[1] === '-' ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3] ?? 0));
};

/** Calls `visit(minute, state)` for each change of the state, which is a string. */
function changes(state, visit) {
  let before = state(FIRST);
  visit(-Infinity, before);
  for (let at = FIRST + STEP; at < LAST; at += STEP) {
    const now = state(at);
    if (now === before) continue;
    let [low, high] = [at - STEP, at];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (state(middle) === before) low = middle;
      else high = middle;
    }
    visit(high, state(high));
    if (state(high) !== now) visit(at, now);
    before = now;
  }
}

for (const zone of [...zones].sort()) {
  const [long, short, offset, longGeneric, shortGeneric] = ['long', 'short', 'longOffset', 'longGeneric', 'shortGeneric'].map((style) => namer(zone, style));
  const periods = [];
  changes((at) => `${offset(at)};${pairOf(long(at), short(at))}`, (from, state) => {
    const [text, pair] = state.split(';');
    const [at, number] = [minutes(text), Number(pair)];
    if (Number.isNaN(at)) return;
    const last = periods.at(-1);
    if (last && (!last.names.has(at) || last.names.get(at) === number)) last.names.set(at, number);
    else periods.push({ from: periods.length === 0 ? -Infinity : from, names: new Map([[at, number]]) });
  });
  const shown = periods.map(({ from, names }) => [Number.isFinite(from) ? from : '', ...[...names].filter(([, pair]) => pair >= 0).map(([at, pair]) => `${at}=${pair}`)].join(','));
  zoneLines.push(`${zone}|${shown.join('|')}`);
  const generic = [];
  changes((at) => String(pairOf(longGeneric(at), shortGeneric(at))), (from, state) => {
    if (generic.at(-1)?.[1] !== state) generic.push([Number.isFinite(from) ? from : '', state]);
  });
  zoneLines.push(`${zone}~${generic.map((one) => one.join(',')).join('~')}`);
}
for (const pair of pairs.keys()) console.log(`=${pair}`);
for (const [alias, zone] of canonical) if (alias !== zone) console.log(`${alias}>${zone}`);
for (const line of zoneLines) console.log(line);

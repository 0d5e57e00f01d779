#!/usr/bin/env node
// Compares every global of the Node that runs it, their properties, and those of the values they make, with AgentScript.
// `globals.mjs [--only TEXT] [COMMAND...]`
//   --only:  only paths that contain a text
//   COMMAND: runs files and prints a line of JSON for each (`target/debug/codecall run --preset experimental`)
// A path is there and the same, or refused with a hint. Whatever else it is, is a difference.
// Run it with several versions of Node: AgentScript has what the newest one has.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './sandbox.mjs';

process.env.TZ = 'UTC';
process.on('unhandledRejection', () => {});
const given = process.argv.slice(2);
const only = given[0] === '--only' ? given.splice(0, 2)[1] : '';
const command = given.length > 0 ? given : ['target/debug/codecall', 'run', '--preset', 'experimental'];
const BATCH = 200;

/** Values whose properties are compared, beside those of their prototypes. */
const VALUES = {
  Object: '({ a: 1 })', Function: '((a, b) => 1)', Array: '[1, 2]', Number: '(1.5)', Boolean: 'true', String: "'ab'", BigInt: '12n', Date: 'new Date(0)', RegExp: '/a(b)?/g',
  Promise: 'Promise.resolve(1)', Error: "new Error('m')", AggregateError: "new AggregateError([1], 'm')", Map: 'new Map([[1, 2]])', Set: 'new Set([1])', ArrayBuffer: 'new ArrayBuffer(8)',
  Uint8Array: 'new Uint8Array([1, 2])', URL: "new URL('http://a.b/c?d=e#f')", URLSearchParams: "new URLSearchParams('a=b')", TextEncoder: 'new TextEncoder()', TextDecoder: 'new TextDecoder()',
  AbortController: 'new AbortController()', AbortSignal: 'new AbortController().signal', Event: "new Event('a')", CustomEvent: "new CustomEvent('a', { detail: 1 })", EventTarget: 'new EventTarget()',
  DOMException: "new DOMException('m', 'AbortError')", Headers: "new Headers({ a: 'b' })", Timeout: 'setTimeout(() => {}, 1)', Generator: '(function* () { yield 1; })()', AsyncGenerator: '(async function* () { yield 1; })()',
  'Array Iterator': '[1].values()', 'Map Iterator': 'new Map().keys()', 'Set Iterator': 'new Set().values()', 'String Iterator': "'a'[Symbol.iterator]()", 'RegExp String Iterator': "'a'.matchAll(/a/g)", Match: "/a/.exec('a')",
  'Intl.Collator': 'new Intl.Collator()', 'Intl.DateTimeFormat': 'new Intl.DateTimeFormat()', 'Intl.DisplayNames': "new Intl.DisplayNames('en', { type: 'region' })", 'Intl.ListFormat': 'new Intl.ListFormat()',
  'Intl.NumberFormat': 'new Intl.NumberFormat()', 'Intl.PluralRules': 'new Intl.PluralRules()', 'Intl.RelativeTimeFormat': 'new Intl.RelativeTimeFormat()', 'Intl.Segmenter': 'new Intl.Segmenter()',
  Segments: "new Intl.Segmenter().segment('ab')", Mark: "performance.mark('a')", Measure: "performance.measure('a')",
};
/** Properties that are compared in no way: the time, chance, what depends on the machine, and Node's own inner ones. */
const UNEQUAL = /^(Math\.random|Date|Date\.now|performance|performance\.now|console|crypto|crypto\.(randomUUID|getRandomValues))$|^<\w+>\.stack$/;
/** Functions that are not called: a timer that repeats never ends, `Object(1)` would be a wrapper object. */
const NOT_CALLED = /^(setInterval|Object|Object\.(assign|create)|Error\.captureStackTrace)$/;
/** Messages are those of Node 20; of a newer one, only what it has in addition is called. */
const isNewer = Number(process.versions.node.split('.')[0]) > 20;
const NEW = /^(Promise\.try|RegExp\.escape|Error\.isError|Math\.f16round)$/;
/** What differs for a known reason: from a newer Node, whose words are not those of Node 20, or as docs/reference/language.md says. */
const KNOWN = isNewer ? /^(structuredClone(\.length)?|<Uint8Array>\.buffer|Promise\.try\(.*)$/ : /^Math\.cosh/;
/** The methods of iterators, which Node 20 has not either. A call of one fails with a hint. */
const HELPERS = /(Iterator|Generator|Helper)>\.\w+$/;
const ARGUMENTS = ['', '1', "'a'", "'a', 1", '[1, 2]', '{ a: 1 }', '(x) => x', 'null, null', "[3, 'b'], (x) => x"];

/** The keys of a value and of its prototypes; those of `Object.prototype` are compared once. */
function keysOf(value, { all = false } = {}) {
  const keys = new Set();
  for (let at = Object(value); at !== null && (all || at !== Object.prototype); at = Object.getPrototypeOf(at)) Reflect.ownKeys(at).forEach((key) => keys.add(key));
  return [...keys];
}

/** Paths as scripts write them: `[value, key]`, where the value is an expression. */
function paths() {
  const all = [];
  const member = (owner, value, key) => {
    if (typeof key === 'symbol') {
      const known = Object.getOwnPropertyNames(Symbol).find((name) => Symbol[name] === key);
      // No script can name another symbol.
      return known && all.push([`${owner}[Symbol.${known}]`, value, `[Symbol.${known}]`]);
    }
    if (/^\d+$/.test(key)) return undefined;
    return all.push([`${owner}.${key}`, value, /^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`]);
  };
  const globals = Reflect.ownKeys(globalThis).filter((key) => typeof key === 'string' && Object.hasOwn(globalThis, key));
  for (const name of new Set([...globals, 'Intl', 'require', 'module', 'exports', '__dirname', '__filename', ...(globalThis.Iterator ? [] : ['Iterator'])])) {
    all.push([name, name, '']);
    const value = globalThis[name];
    if (value === null || !['object', 'function'].includes(typeof value) || ['globalThis', 'global', 'process'].includes(name)) continue;
    for (const key of typeof value === 'function' ? Reflect.ownKeys(value) : keysOf(value)) {
      member(name, name, key);
      if (name === 'Intl' && typeof value[key] === 'function') for (const inner of Reflect.ownKeys(value[key])) member(`Intl.${key}`, `Intl.${key}`, inner);
    }
  }
  for (const key of keysOf(crypto.subtle)) member('crypto.subtle', 'crypto.subtle', key);
  for (const [name, expression] of Object.entries(VALUES)) {
    let value;
    try {
      value = new Function(`return ${expression}`)();
    } catch {
      continue; // this Node has none
    }
    for (const key of keysOf(value, { all: name === 'Object' })) member(`<${name}>`, expression, key);
  }
  return all.filter(([path]) => path.includes(only));
}

/** A script that describes what a path leads to, and one that calls it. */
function scripts([path, value, access]) {
  const head = access === '' ? `const f = ${value};` : `const v = ${value}; const f = v${access};`;
  const describe = `${head} const t = typeof f; console.log(t${access && `, ${access[0] === '.' ? `'${access.slice(1)}'` : access.slice(1, -1)} in Object(v)`.replace(/in Object\(v\)/, 'in v')}); if (t === 'function') console.log(f.length, f.name); else if (!${UNEQUAL.test(path)}) console.log(f);`;
  const scripts = [/^\(1|^true|^'ab|^12n|String'/.test(value) || access === '' ? describe.replace(/, [^,]* in v\)/, ')') : describe];
  return scripts.map((script) => script + ' return 1;');
}

/** A script that calls what a path leads to with several arguments. */
function calls([path, value, access]) {
  if (UNEQUAL.test(path) || NOT_CALLED.test(path) || (isNewer && !NEW.test(path))) return null;
  const one = (args) => `try { const v = ${value}; let r = v${access}(${args}); if (r instanceof Promise) r = await r; console.log(r); } catch (e) { console.log(String(e)); }`;
  return ARGUMENTS.map(one).join('\n') + '\nreturn 1;';
}

const folder = mkdtempSync(join(tmpdir(), 'globals-'));
function runAll(scripts) {
  const files = scripts.map((script, index) => {
    const file = join(folder, `${index}.js`);
    writeFileSync(file, script);
    return file;
  });
  const outcomes = [];
  for (let from = 0; from < files.length; from += BATCH) {
    const batch = files.slice(from, from + BATCH);
    let text;
    try {
      text = execFileSync(command[0], [...command.slice(1), ...batch, ...(batch.length === 1 ? batch : [])], { maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'inherit'] }).toString();
    } catch (error) {
      text = error.stdout.toString(); // the exit code says that one of them has failed
    }
    outcomes.push(...text.trim().split('\n').slice(0, batch.length).map((line) => JSON.parse(line)));
  }
  return outcomes;
}

const counts = { same: 0, refused: 0, calls: 0 };
const differences = [];
const all = paths();
const described = all.map((path) => scripts(path)[0]);
const callable = [];
for (const [index, outcome] of runAll(described).entries()) {
  const [path] = all[index];
  if (outcome.status === 'illegal_access') {
    const hints = [outcome.error.hint, ...(outcome.error.issues ?? []).map(({ hint }) => hint)].filter(Boolean);
    if (hints.length > 0) counts.refused += 1;
    else differences.push(`${path}: refused without a hint: ${outcome.error.message}`);
    continue;
  }
  const wanted = await runScript(described[index], { returns: true });
  const got = outcome.status === 'ok' ? outcome.logs ?? [] : [`${outcome.error.name}: ${outcome.error.message}${outcome.error.hint ? ` (${outcome.error.hint})` : ''}`];
  const there = wanted.outcome.kind === 'result' ? wanted.logs : [wanted.outcome.text];
  if (JSON.stringify(got) === JSON.stringify(there)) {
    counts.same += 1;
    if (there[0]?.startsWith('function')) callable.push(all[index]);
  } else if (HELPERS.test(path) && runAll([`const v = ${all[index][1]}; v${all[index][2]}(1);`])[0].error?.hint) {
    counts.refused += 1;
  } else if (!KNOWN.test(path)) {
    differences.push(`${path}\n  node ${there.join(' | ')}\n  here ${got.join(' | ')}`);
  }
}
const called = callable.filter((path) => calls(path) !== null);
for (const [index, outcome] of runAll(called.map(calls)).entries()) {
  const wanted = await runScript(calls(called[index]), { returns: true });
  counts.calls += ARGUMENTS.length;
  const got = outcome.logs ?? [];
  wanted.logs.forEach((line, at) => {
    const call = `${called[index][0]}(${ARGUMENTS[at] ?? ''})`;
    if (line !== got[at] && !KNOWN.test(call)) differences.push(`${call}\n  node ${line}\n  here ${got[at] ?? JSON.stringify(outcome.error)}`);
  });
}
rmSync(folder, { recursive: true });
differences.forEach((difference) => console.log(difference));
console.log(`${all.length} paths: ${counts.same} the same, ${counts.refused} refused with a hint; ${counts.calls} calls; ${differences.length} differences`);
process.exitCode = differences.length > 0 ? 1 : 0;
process.exit();

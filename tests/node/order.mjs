#!/usr/bin/env node
// Compares the order of evaluation with Node: random expressions and statements whose operands log, change the values of other operands,
// suspend and throw. `order.mjs [CASES] [SEED] [COMMAND...]`
//   CASES:   the number of programs (20000)
//   SEED:    the first seed (1); each batch has the next one
//   COMMAND: runs a file and prints its outcome as JSON (`target/debug/codecall run --preset experimental`)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [count = '20000', firstSeed = '1', ...given] = process.argv.slice(2);
const command = given.length > 0 ? given : ['target/debug/codecall', 'run', '--preset', 'experimental'];
const BATCH = 200;
const AsyncFunction = (async () => {}).constructor;

function generator(seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(random() * n);
  const pick = (list) => list[below(list.length)];
  // The way in which operands of this case suspend; `yield` needs a generator.
  let mode = 'plain';
  let effects = 0;

  // An operand with effects; `value` is what it gives.
  function effect(value) {
    const number = effects++;
    const call = `fx(${number}, ${value})`;
    const r = random();
    if (r < 0.12) return `(s.${pick(['a', 'b', 'z'])} = ${value})`;
    if (r < 0.2) return `(n += ${1 + below(3)}, ${value})`;
    if (r < 0.26) return `(k = ${pick(['"a"', '"c"', 'key'])}, ${value})`;
    if (r < 0.3) return `([f, t.m] = [g, t.other], ${value})`;
    if (r < 0.34) return `([s, list] = [{ b: 5, y: 6 }, [7]], ${value})`;
    if (mode === 'plain' || r < 0.4) return call;
    if (mode === 'callback') return `[0].map(() => ${call})[0]`;
    if (mode === 'script') return `through(() => ${call})`;
    if (mode === 'await') return pick([`(await ${call})`, `(await later(${number}, ${value}))`]);
    return pick([`(yield ${call})`, `(yield* inner(${number}, ${value}))`]);
  }
  const leaf = () => pick(['n', 's', 'list', 'k', 's.a', 'list[0]', '1', '"t"', 'num', 's.b', 'list.length', 'null']);
  const key = () => pick(['k', 'key', '"a"', '"w"', 'num', '0', 'n']);
  const target = () => pick(['n', 's.a', 's[k]', 's[key]', 's[num]', 'list[0]', 'list[n]', 's.z', 's.deep.d', 's["w"]', 'k']);
  const compound = ['+=', '-=', '*=', '??=', '||=', '&&=', '**='];

  function list(depth) {
    const pieces = Array.from({ length: 1 + below(3) }, () => {
      const r = random();
      if (r < 0.1) return '';
      return r < 0.5 ? `...${iterable(depth)}` : any(depth);
    });
    return pieces.join(', ');
  }
  function iterable(depth) {
    const r = random();
    if (r < 0.5) return 'list';
    if (r < 0.6) return effect('list');
    if (r < 0.7) return effect('[8, 9]');
    if (r < 0.8) return 'new Set(list)';
    if (r < 0.85) return 'walk';
    if (r < 0.9) return effect('null');
    return `[${list(depth - 1)}]`;
  }
  function property(depth) {
    const r = random();
    if (r < 0.3) return `...${random() < 0.6 ? 's' : any(depth - 1)}`;
    if (r < 0.55) return `[${random() < 0.5 ? key() : effect(key())}]: ${any(depth - 1)}`;
    if (r < 0.6) return `[${key()}]() { return 1; }`;
    if (r < 0.65) return `[${key()}]: () => 2`;
    return `${pick(['a', 'b', 'q', '0', '"x y"'])}: ${any(depth - 1)}`;
  }
  function any(depth) {
    if (depth <= 0 || random() < 0.15) return random() < 0.55 ? effect(leaf()) : leaf();
    const next = () => any(depth - 1);
    const forms = [
      () => `{${Array.from({ length: 1 + below(4) }, () => property(depth)).join(', ')}}`,
      () => `{${Array.from({ length: 1 + below(4) }, () => property(depth)).join(', ')}}`,
      () => `[${list(depth - 1)}]`,
      () => `f(${list(depth - 1).replace(/^, |, (?=,)|, $/g, '')})`.replace(/\(, |, , |, \)/g, (m) => (m[0] === '(' ? '(' : m.at(-1) === ')' ? ')' : ', ')),
      () => `t.m(${next()}, ${next()})`,
      () => `t[${random() < 0.5 ? '"m"' : effect('"m"')}](${next()}, ${next()})`,
      () => `f(${next()}, ${next()})`,
      () => `${next()} ${pick(['+', '-', '*', '<', '>=', '==', '===', '!=', '**', '|', '>>>', '%'])} ${next()}`,
      () => `${next()} ${pick(['+', '-', '*'])} ${next()} ${pick(['+', '-', '*'])} ${next()}`,
      () => `${next()} ${pick(['&&', '||'])} ${next()}`,
      () => `${next()} ?? ${next()}`,
      () => `${next()} ? ${next()} : ${next()}`,
      () => `\`${pick(['', '-'])}\${${next()}}${pick(['', ','])}\${${next()}}\``,
      () => `tag\`x\${${next()}}y\${${next()}}\``,
      () => `${target()} = ${next()}`,
      () => `${target()} ${pick(compound)} ${next()}`,
      () => `s[${random() < 0.5 ? key() : effect(key())}] ${pick(['=', ...compound])} ${next()}`,
      () => `${target()}${pick(['++', '--'])}`,
      () => `${pick(['++', '--'])}${target()}`,
      () => `s[${effect(key())}]${pick(['++', '--'])}`,
      () => `s?.[${effect(key())}]`,
      () => `s.deep?.d`,
      () => `list.concat(${next()}, ${next()})`,
      () => `list.${pick(['slice', 'at', 'indexOf', 'includes', 'push', 'unshift', 'with', 'fill'])}(${next()}, ${next()})`,
      () => `Math.max(${next()}, ${next()})`,
      () => `String(${next()})`,
      () => `new Map([[${next()}, ${next()}]])`,
      () => `[${target()}, ${target()}] = [${next()}, ${next()}]`,
      () => `[${target()} = ${next()}, ...list] = ${iterable(depth)}`,
      () => `{ a: ${target()}, [${random() < 0.5 ? key() : effect(key())}]: ${target()} = ${next()}, ...rest } = ${random() < 0.6 ? 's' : effect('s')}`,
      () => `${next()}, ${next()}`,
      () => `[s[${effect(key())}], { a: s[${effect(key())}] = ${next()} } = ${effect('{ a: 3 }')}, ...rest] = ${iterable(depth)}`,
      () => `[s[${key()}] = ${next()}, , k = ${next()}] = ${iterable(depth)}`,
      () => `s[${effect(key())}] = s[${effect(key())}] = ${next()}`,
      () => `t?.[${effect('"m"')}]?.(${next()}, ...list, ${next()})`,
      () => `t.none?.(${next()})`,
      () => `${effect('t')}?.m(${next()})`,
      () => `${effect('null')}?.m(${next()})`,
      () => `(${effect('f')})(${next()}, ${next()})`,
      () => `f.call(${next()}, ${next()}, ${next()})`,
      () => `f.apply(${next()}, ${random() < 0.7 ? 'list' : effect('list')})`,
      () => `new Set([${list(depth - 1)}])`,
      () => `Array.of(${next()}, ${next()}, ...list)`,
      () => `JSON.stringify([${next()}, ${next()}])`,
      () => `(${next()}, s).deep.d`,
      () => `list[${effect('0')}][${next()}]`,
      () => `tag\`\${${next()}}\${{ ...s, [${key()}]: ${next()} }}\``,
      () => `t[${effect('"tag"')}]\`a\${${next()}}\``,
      () => `Promise.resolve === ${next()}`,
      () => `!${next()} === -${next()}`,
      () => `void ${next()}`,
      () => `{ m() { return 1; }, async [${key()}]() {}, ...${next()}, f, ...f }`,
      () => `[...${effect('"ab"')}, ...${next()} ? list : [], ${next()}]`,
      () => `typeof ${next()}`,
      () => `delete s[${random() < 0.5 ? key() : effect(key())}]`,
      () => `${key()} in ${random() < 0.7 ? 's' : effect('s')}`,
      () => `(({ a: p = ${next()}, ...q }, r = ${next()}) => [p, q, r])(${random() < 0.7 ? 's' : effect('s')})`,
    ];
    return `(${pick(forms)()})`;
  }
  // Statements whose parts are operands; each leaves its value in `result`.
  const statements = [
    () => `result = ${any(3)};`,
    () => `result = ${any(3)};`,
    () => `result = ${any(3)};`,
    () => `result = []; for (s[${effect(key())}] of ${iterable(2)}) { result.push(${any(1)}); if (result.length > 3) break; }`,
    () => `result = []; for (const [p = ${any(1)}, q = ${any(1)}] of [[${any(1)}], [, ${any(1)}]]) result.push(p, q);`,
    () => `result = []; for (const { a = ${any(1)}, [${effect(key())}]: q = ${any(1)}, ...left } of [s, { ...s, a: undefined }]) result.push(a, q, left);`,
    () => `result = []; for (let i = ${any(1)}, turns = 0; turns < 3; turns++, i = ${any(1)}) result.push(i);`,
    () => `result = []; for (const name in ${random() < 0.5 ? 's' : effect('s')}) { result.push(name, ${any(1)}); if (result.length > 9) break; }`,
    () => `switch (${any(1)}) { case ${any(1)}: result = 'first'; case ${any(1)}: result += 'second'; break; default: result = 'none'; }`,
    () => `const { a: p = ${any(2)}, [${effect(key())}]: q = ${any(1)}, ...left } = ${random() < 0.6 ? 's' : effect('s')}; result = [p, q, left];`,
    () => `const [p = ${any(1)}, { w: q } = ${any(1)}, ...left] = ${iterable(2)}; result = [p, q, left];`,
    () => `if (${any(2)}) result = ${any(2)}; else result = ${any(2)};`,
    () => `try { result = ${any(2)}; } catch (error) { result = [String(error), ${any(1)}]; } finally { ${any(1)}; }`,
    () => `result = 0; while (result < 3) result += ${effect('1')} + 1;`,
    () => `result = ((p = ${any(1)}) => [p, ${mode === 'await' || mode === 'yield' ? 'n' : any(1)}])();`,
    () => `throw [${any(1)}, ${any(1)}];`,
  ];

  return () => {
    mode = pick(['plain', 'callback', 'script', 'await', 'await', 'yield', 'yield']);
    effects = 0;
    const statement = pick(statements)();
    const throws = random() < 0.15 ? below(Math.max(effects, 1)) : -1;
    return { mode, statement, throws };
  };
}

const program = ({ mode, statement, throws }) => {
  const body = `let result; try { ${statement} } catch (error) { result = [result, Array.isArray(error) ? error : String(error)]; } return [result, s, n, k, list, rest];`;
  const run = mode === 'yield'
    ? `const machine = (function* () { ${body} })(); let step = machine.next(); while (!step.done) step = machine.next(step.value); return step.value;`
    : body;
  return `cases.push(async () => {
    let n = 1, k = 'a', list = [1, 2, 3], s = { a: 1, b: 2, w: 3, deep: { d: 1 } }, rest;
    const log = [];
    const key = { toString() { log.push('key' + n); n += 1; s.fromKey = n; return 'w'; } };
    const num = { valueOf() { log.push('num' + n); n += 1; list.push(n); return n; }, toString() { log.push('str'); return 'v'; } };
    const g = (...all) => ['g', all.length, ...all];
    let f = (...all) => ['f', all.length, ...all];
    const t = { tag: (texts, ...all) => ['t.tag', ...texts, ...all], m(...all) { return ['m', ...all]; }, other(...all) { return ['other', ...all]; } };
    const tag = (texts, ...all) => ['tag', texts.join('|'), ...all];
    const walk = { [Symbol.iterator]() { let turn = 0; log.push('iterator'); return { next() { log.push('next'); turn += 1; n += 1; return { value: turn, done: turn > 2 }; }, return() { log.push('return'); return {}; } }; } };
    const fx = (number, value) => {
      log.push('fx' + number);
      n += 1; k = 'b'; s.a = number + 10; s['x' + number] = number; delete s.b; list[0] = number + 10; list.push(number); t.m = t.other; f = g;
      if (number === ${throws}) throw new Error('thrown');
      return value;
    };
    const through = (make) => make();
    const later = async (number, value) => { await null; return fx(number, value); };
    function* inner(number, value) { yield 1; return fx(number, value); }
    const value = await (async () => { ${run} })();
    return [value, log];
  });`;
};

/** What both engines give for a list of programs: a line of JSON for each. */
const script = (cases) => `const cases = [];
${cases.map(program).join('\n')}
const out = [];
for (const one of cases) {
  let line;
  try { line = JSON.stringify(await one(), (key, value) => typeof value === 'function' ? 'function ' + value.name : value instanceof Map ? [...value] : value instanceof Set ? [...value] : value === undefined ? 'undefined' : Number.isNaN(value) ? 'NaN' : value === Infinity ? 'Infinity' : value); } catch (error) { line = String(error); }
  out.push(line);
}
return out;`;

const folder = mkdtempSync(join(tmpdir(), 'order-'));
let done = 0;
let different = 0;
for (let seed = Number(firstSeed); done < Number(count); seed += 1) {
  const next = generator(seed);
  const cases = [];
  while (cases.length < BATCH) {
    const one = next();
    try {
      new AsyncFunction(`'use strict'; const cases = []; ${program(one)}`);
      cases.push(one);
    } catch {
      // An operand may be no target of an assignment, and an arrow function may contain `await` or `yield`.
    }
  }
  const text = script(cases);
  const wanted = await new AsyncFunction(`'use strict';${text}`)();
  const file = join(folder, `${seed}.js`);
  writeFileSync(file, text);
  const outcome = JSON.parse(execFileSync(command[0], [...command.slice(1), file], { maxBuffer: 1 << 30 }).toString());
  const got = outcome.result ?? [JSON.stringify(outcome.error)];
  wanted.forEach((line, index) => {
    if (line === got[index]) return;
    different += 1;
    if (different > 40) return;
    const { mode, statement, throws } = cases[index];
    console.log(`${mode}${throws >= 0 ? `, ${throws} throws` : ''}: ${statement} (seed ${seed})\n  node ${line}\n  here ${got[index]}`);
  });
  done += cases.length;
}
rmSync(folder, { recursive: true });
console.log(`${done} cases, ${different} problems`);
process.exitCode = different > 0 ? 1 : 0;

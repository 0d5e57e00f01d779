#!/usr/bin/env node
// Writes random values, and how Node logs them, as a corpus file to stdout: `inspect.mjs [COUNT] [SEED]`. Run by hand:
//   node tests/node/inspect.mjs 20000 1 > tests/corpus/random.txt
//   CASE=random.txt cargo test -p codecall-tests --test corpus -- --exact corpus; rm tests/corpus/random.txt
import { writeCorpus } from './corpus.mjs';
import { runScript } from './sandbox.mjs';

const [count = '20000', seed = '1'] = process.argv.slice(2);
let state = Number(seed) >>> 0;

function random(below) {
  state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
  let x = state;
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d) >>> 0;
  return ((x ^ (x >>> 13)) >>> 0) % below;
}
const pick = (items) => items[random(items.length)];
const chance = (of) => random(of) === 0;

const WORDS = ['a', 'id', 'name', 'items', 'value', 'x1', 'some key', 'with-dash', '0', '12', "it's", 'quote"', 'größe', 'ключ', 'emoji😀', '', '_p', '$d', 'veryLongPropertyNameThatTakesSpace', 'new\nline', 'back`tick'];
const TEXTS = ['', 'x', 'hello', "it's", 'say "hi"', `both ' and "`, `all ' " \``, 'line\nbreak', 'tab\there', 'back\\slash', '\u0007bell', '\x1b[31m', 'ünï', '漢字テスト', '😀🎉', '\u200b', '\ud800', 'e\u0301', '\x7f', '\u2028', '$'.repeat(3), '${x}'];

function text() {
  const base = pick(TEXTS);
  if (chance(6)) return base + 'lorem ipsum dolor '.repeat(random(9));
  if (chance(12)) return `${'word '.repeat(random(30))}\n${'more '.repeat(random(20))}`;
  return chance(3) ? base + pick(TEXTS) : base;
}
const number = () => pick(['0', '-0', '1', '-1', '42', '3.14', '1e21', '1e-7', 'NaN', 'Infinity', '-Infinity', String(random(1000000)), String(random(1000) / 8), '123456789012']);
const literal = (value) => JSON.stringify(value).replace(/[\u2028\n]/g, (c) => (c === '\n' ? '\\n' : '\\u2028'));
const primitive = () => pick([number, number, () => literal(text()), () => literal(text()), () => 'true', () => 'false', () => 'null', () => 'undefined', () => `${random(1e9)}n`])();

function list(make, most) {
  return Array.from({ length: random(most + 1) }, make);
}

function array(depth) {
  const kind = random(8);
  if (kind === 0) return `[${list(number, 40)}]`;
  if (kind === 1) return `[${list(() => literal(text()), 14)}]`;
  if (kind === 2) return `[${list(() => (chance(4) ? '' : value(depth + 2)), 9).join(',')},1]`;
  if (kind === 3) return `Array.from({length:${random(130)}}, (_, i) => ${pick(['i', 'i * 1.5', "'n' + i", 'i % 3 === 0', '-i', "'x'.repeat(i % 9)", '{ i }', '[i, i * 2]', 'i > 50 ? i * 1e6 : i'])})`;
  if (kind === 4) return `Object.assign([${list(() => value(depth + 1), 5)}], {${property(depth)}})`;
  if (kind === 5) return `[${list(() => `{ ${list(() => property(depth + 2), 3).join(', ')} }`, 8)}]`;
  return `[${list(() => value(depth + 1), 8)}]`;
}

const property = (depth) => `[${literal(chance(12) ? text() : pick(WORDS))}]: ${value(depth + 1)}`;
const object = (depth) => `{ ${list(() => property(depth), chance(6) ? 30 : 6).join(', ')} }`;
const error = (depth) => {
  const type = pick(['Error', 'TypeError', 'RangeError', 'SyntaxError']);
  const cause = chance(3) ? `, { cause: ${value(depth + 1)} }` : '';
  const made = `new ${type}(${literal(chance(4) ? text() : pick(['boom', 'not found', '', 'two\nlines']))}${cause})`;
  if (chance(8)) return `new AggregateError([${list(() => error(depth + 1), 2)}], 'many')`;
  return chance(3) ? `Object.assign(${made}, { ${list(() => property(depth + 1), 3).join(', ')}${chance(6) ? ", name: 'Custom'" : ''} })` : made;
};
const call = () => pick(['function f() {}', 'function () {}', '() => {}', 'async () => {}', 'async function g() {}', 'Math.max', 'Object.assign(() => 1, { a: 1 })', 'Math', 'JSON', 'Array', '({ m() {} }).m']);

function value(depth) {
  if (depth > 5 || chance(3)) return primitive();
  return pick([
    () => array(depth), () => array(depth), () => object(depth), () => object(depth), () => object(depth),
    () => `new Map([${list(() => `[${value(depth + 1)}, ${value(depth + 1)}]`, 5)}])`,
    () => `new Set([${list(() => value(depth + 1), 7)}])`,
    () => `(${call()})`,
    () => error(depth),
    () => `Object.assign(Object.create(null), ${object(depth)})`,
    () => `((o) => { o.self = o; o.list = [o, { o }]; return o; })(${object(depth + 1)})`,
    () => `Promise.resolve(${value(depth + 1)})`,
    () => `new Map([[1, ${value(depth + 1)}]]).${pick(['keys', 'values', 'entries'])}()`,
    () => '[1].values()',
    () => `Object.freeze(${object(depth)})`,
  ])();
}

const FORMATS = ['%s', '%d', '%i', '%f', '%j', '%O', '%c', '%%', '%x', '%', 'text', ' ', '100%', '%s%s', '%d items'];
function entry() {
  if (chance(3)) return `${literal(list(() => pick(FORMATS), 4).join(pick(['', ' ', ', '])))}${list(() => `, ${value(3)}`, 4).join('')}`;
  if (chance(20)) return `'%o', ${pick([() => `[${list(primitive, 9)}]`, () => `{ a: ${primitive()}, b: [${list(primitive, 4)}] }`])()}`;
  return [value(0), ...(chance(4) ? [value(1)] : [])].join(', ');
}

process.env.TZ = 'UTC';
process.on('unhandledRejection', () => {});
const cases = [];
for (let number = 0; number < Number(count); number += 1) {
  const script = `console.log(${entry()});`;
  const { logs, outcome } = await runScript(script);
  cases.push({ name: `value ${number}`, headers: {}, script, logs, outcome });
}
process.stdout.write(writeCorpus({ prelude: `# Seed ${seed}`, cases }));
process.exit();

// The built-ins, by reflection on Node, and random calls of them.
import { pick, random } from '../locales/random.mjs';

/** Names that AgentScript refuses, that depend on time or chance, or that wait. */
const SKIPPED = new Set([
  'constructor', 'prototype', '__proto__', '__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__', 'caller', 'arguments', 'length', 'name',
  'now', 'random', 'randomUUID', 'getRandomValues', 'timeout', 'defineProperty', 'defineProperties', 'getPrototypeOf', 'setPrototypeOf', 'getOwnPropertyDescriptor',
  'getOwnPropertyDescriptors', 'getOwnPropertySymbols', 'captureStackTrace', 'prepareStackTrace', 'bind', 'create',
]);

/** Values by family: how one is made, and how it is changed. */
const ARRAYS = {
  receivers: ['[1, 2, 3]', '[1, 2, 3]', '[3, 1, 2, 10, 5]', '[1, , 3]', "['b', 'a', 'c', 'a']", '[[1, [2]], [3], 4]', '[]', '[undefined, null, 1]', 'Object.freeze([1, 2, 3])', 'Object.seal([1, 2, 3])',
    "[both('i', 3), both('j', 1), both('k', 2)]", "[1, lone('i', 'toString', 'x'), 3]", '(() => { const a = [1, 2]; a[5000] = 3; return a; })()', '(() => { const a = [1, 2]; a.push(a); return a; })()',
    "[both('i', 1), wrong('w', 7)]", "[{ toLocaleString: 7 }, 2]", "[{ toLocaleString() { note('local'); return 'L'; } }, 2]", '[0, 1, 2, 3, 4, 5, 6, 7]'],
  generic: ["{ length: both('length', 2), 0: 'x', 1: 'y', 2: 'z' }", "{ length: 3, 0: 'x', 2: 'z' }", "{ length: both('length', 'q') }", "'abc'", 'undefined', 'null', '5', "{ length: lone('length', 'toString', '2'), 0: both('i', 1), 1: 5 }",
    'Object.freeze({ length: 2, 0: 1, 1: 2 })', '{}', '{ length: -1 }', 'new Uint8Array([4, 5, 6])', 'new Map([[1, 2]])'],
  changes: ['r.length = 0', 'r.length = 0', 'r.length = 1', 'r.push(9)', 'r.push(9)', 'r.pop()', 'r.shift()', 'r.unshift(8)', 'delete r[1]', 'r[7] = 7', 'Object.freeze(r)', 'r.reverse()', "r[0] = 'z'", 'r[1] = undefined',
    "throw new Error('stop')", 'throw 1', 'r.length = 5', 'r[6000] = 1', 'Object.preventExtensions(r)', 'r.length = 2', "r[2] = both('n', 4)", ''],
};
const SOME = ["throw new Error('stop')", 'throw 1', '', ''];
const VIEWS = {
  receivers: ['new Uint8Array([1, 2, 3, 4])', 'new Uint8Array([5, 1, 4])', 'new Uint8Array(0)', 'new Uint8Array(new ArrayBuffer(6, { maxByteLength: 20 })).fill(7)', 'new Uint8Array(new ArrayBuffer(8, { maxByteLength: 20 }), 2)',
    'new Uint8Array(new ArrayBuffer(8, { maxByteLength: 20 }), 2, 4)'],
  generic: ['[1, 2]', '{ length: 1 }', 'undefined', "'ab'", '5'],
  changes: ['r[0] = 9', 'r[1] = 200', 'r.fill(6)', 'r.reverse()', 'r.buffer.resize(3)', 'r.buffer.resize(0)', 'r.buffer.resize(12)', 'r.buffer.resize(4)', ...SOME, 'structuredClone(r.buffer, { transfer: [r.buffer] })'],
};
const texts = (...more) => ["'abcabc'", "'a-b-c'", "''", "'x\\u{1f600}y'", "' aB '", ...more];
const THING = ['undefined', 'null', '5', "both('r', 12)", "both('r', 3, 'abc')", "lone('r', 'valueOf', 'abcb')", "wrong('r', 1)", "[1, 'b']", 'true', '{}', '3n', "both('r', { })"];
const FAMILIES = [
  ['Array', ARRAYS],
  ['Uint8Array', VIEWS],
  ['ArrayBuffer', { receivers: ['new ArrayBuffer(6)', 'new ArrayBuffer(6, { maxByteLength: 12 })'], generic: ['{}', 'undefined', 'new Uint8Array(2)'], changes: ['r.resize(2)', 'r.resize(10)', 'structuredClone(r, { transfer: [r] })', ...SOME] }],
  ['String', { receivers: texts("'abcabc'", "'1,2,3'"), generic: THING, changes: SOME }],
  ['Number', { receivers: ['1234.5678', '-0', '255', 'NaN', '1e21', '0.000001'], generic: ["'5'", '{}', 'undefined', "both('r', 1)"], changes: SOME }],
  ['Boolean', { receivers: ['true'], generic: ['1', "both('r', 1)"], changes: SOME }],
  ['BigInt', { receivers: ['255n', '-7n'], generic: ['1', "both('r', 1)"], changes: SOME }],
  ['Function', { receivers: ["callback('r', (x) => x)", 'Math.max'], generic: ['1', '{}'], changes: SOME }],
  ['Object', { receivers: ['{ a: 1, b: 2 }', '[1, 2]', "'ab'", "both('r', 1)", "lone('r', 'toString', 'x')"], generic: ['undefined', 'null', '5', 'new Map()'], changes: ['delete r.a', 'r.c = 3', 'Object.freeze(r)', ...SOME] }],
  ['Map', { receivers: ["new Map([[1, 'a'], [2, 'b'], [3, 'c']])", 'new Map()'], generic: ['new Set([1])', '{}', 'undefined', '[]'], changes: ['r.clear()', 'r.delete(2)', "r.set(9, 'z')", 'r.delete(1); r.set(1, 0)', "r.set(2, 'x')", ...SOME] }],
  ['Set', { receivers: ['new Set([1, 2, 3])', 'new Set([1, 2, 3, 4, 5])', 'new Set()'], generic: ['new Map([[1, 1]])', '{}', 'undefined', '[]'], changes: ['r.clear()', 'r.delete(2)', 'r.add(9)', 'r.delete(1); r.add(1)', ...SOME] }],
  ['Error', { receivers: ["new Error('m')", "Object.assign(new TypeError('m'), { name: both('n', 1), message: both('g', 2) })"], generic: ["{ name: both('n', 1), message: both('g', 2) }", '5', 'undefined', "{ name: '', message: 'q' }", '{}'], changes: SOME }],
  ['Date', { receivers: ['new Date(0)', 'new Date(1e12)', 'new Date(NaN)', 'new Date(2020, 1, 29, 12, 30, 15, 500)'], generic: ['{}', '5', 'undefined', '{ toISOString() { return 1; }, valueOf() { return 1; } }'], changes: ['r.setTime(86400000)', 'r.setTime(NaN)', 'r.setFullYear(2001)', ...SOME] }],
  ['RegExp', { receivers: ['/b/', '/b/g', '/b/y', '/(?:)/g', '/a|c/gd', "/(?<x>[a-c])/gu", "Object.assign(/b/g, { lastIndex: both('last', 2) })", "Object.assign(/b/, { lastIndex: both('last', 2) })", "Object.assign(/b/y, { lastIndex: lone('last', 'toString', '1') })",
    "Object.assign(/b/g, { exec: callback('exec', () => null) })", "Object.assign(/b/, { exec: callback('exec', (s) => ({ 0: both('m', 1), index: both('at', 1), length: both('n', 1) })) })", "Object.assign(/b/, { exec: callback('exec', () => 5) })",
    'Object.assign(/b/, { exec: 7 })', 'Object.freeze(/b/g)'],
    generic: ['{}', "{ source: both('s', 1), flags: both('f', 2) }", "'b'", 'undefined', "{ exec: callback('exec', () => null) }"], changes: ['r.lastIndex = 2', 'r.lastIndex = 0', "r.lastIndex = both('again', 1)", 'Object.freeze(r)', ...SOME] }],
  ['Promise', { receivers: ['Promise.resolve(1)', 'Promise.reject(2)', "Object.assign(Promise.resolve(1), { then: callback('own', (f) => { f(7); return 5; }) })", "Object.assign(Promise.resolve(1), { then: 5 })"], generic: ["thenable('r', 1)", '{}', '5', 'undefined'], changes: SOME }],
  ['URL', { receivers: ["new URL('http://a:80/b?c=d#e')"], generic: ['{}', 'undefined'], changes: ["r.search = '?x=1'", ...SOME] }],
  ['URLSearchParams', { receivers: ["new URLSearchParams('a=1&b=2&a=3')"], generic: ['{}', 'undefined'], changes: ["r.delete('a')", "r.append('c', '3')", 'r.sort()', ...SOME] }],
  ['TextEncoder', { receivers: ['new TextEncoder()'], generic: ['{}'], changes: SOME }],
  ['TextDecoder', { receivers: ['new TextDecoder()'], generic: ['{}'], changes: SOME }],
  ['Headers', { receivers: ["new Headers({ a: '1' })"], generic: ['{}'], changes: ["r.set('a', '2')", "r.append('b', '3')", "r.delete('a')", ...SOME] }],
  ['AbortController', { receivers: ['new AbortController()'], generic: ['{}'], changes: ['r.abort(1)', ...SOME] }],
  ...['Collator', 'NumberFormat', 'DateTimeFormat', 'PluralRules', 'ListFormat', 'RelativeTimeFormat', 'Segmenter'].map((name) => [`Intl.${name}`, { receivers: [`new Intl.${name}('en')`], generic: ['{}', 'undefined'], changes: SOME }]),
  ['Intl.DisplayNames', { receivers: ["new Intl.DisplayNames('en', { type: 'region' })"], generic: ['{}', 'undefined'], changes: SOME }],
  ['MapIterator', { sample: 'new Map().keys()', receivers: ["new Map([[1, 'a'], [2, 'b']]).entries()", 'used(new Map([[1, 2]]).values())'], generic: ['{}', 'new Set().values()', 'undefined'], changes: SOME }],
  ['SetIterator', { sample: 'new Set().keys()', receivers: ['new Set([1, 2]).values()', 'used(new Set([1]).entries())'], generic: ['{}', 'new Map().values()'], changes: SOME }],
  ['ArrayIterator', { sample: '[].keys()', receivers: ['[1, 2].values()', 'used([1].entries())', 'new Uint8Array(2).values()', "[].values.call({ length: both('length', 1), 0: 5 })"], generic: ['{}', 'new Map().values()'], changes: SOME }],
  ['StringIterator', { sample: "''[Symbol.iterator]()", receivers: ["'ab'[Symbol.iterator]()", "used('a'[Symbol.iterator]())"], generic: ['{}', '[].values()'], changes: SOME }],
  ['MatchIterator', { sample: "'a'.matchAll(/a/g)", receivers: ["'abab'.matchAll(/a/g)", "used('a'.matchAll(/a/g))"], generic: ['{}', '[].values()'], changes: SOME }],
];
const OWNERS = ['Object', 'Array', 'String', 'Number', 'BigInt', 'Math', 'JSON', 'Date', 'Promise', 'Map', 'Uint8Array', 'ArrayBuffer', 'Intl', 'URL', 'AbortSignal', 'RegExp', 'Error', 'Boolean', 'Set', 'console',
  'Intl.Collator', 'Intl.NumberFormat', 'Intl.DateTimeFormat', 'Intl.PluralRules', 'Intl.ListFormat', 'Intl.RelativeTimeFormat', 'Intl.Segmenter', 'Intl.DisplayNames'];
const GLOBALS = ['parseInt', 'parseFloat', 'isNaN', 'isFinite', 'encodeURIComponent', 'encodeURI', 'decodeURIComponent', 'decodeURI', 'structuredClone', 'atob', 'btoa', 'escape', 'unescape', 'String', 'Number', 'Boolean', 'BigInt', 'Array', 'Object', 'RegExp', 'Error', 'TypeError',
  'AggregateError', 'queueMicrotask', 'clearTimeout'];
const CLASSES = ['Map', 'Set', 'Array', 'Date', 'RegExp', 'Error', 'RangeError', 'AggregateError', 'Promise', 'URL', 'URLSearchParams', 'Uint8Array', 'ArrayBuffer', 'TextDecoder', 'Headers', 'Object', 'AbortController',
  'Intl.Collator', 'Intl.NumberFormat', 'Intl.DateTimeFormat', 'Intl.PluralRules', 'Intl.ListFormat', 'Intl.RelativeTimeFormat', 'Intl.Segmenter', 'Intl.DisplayNames'];

const valueAt = (path) => path.split('.').reduce((value, name) => value?.[name], globalThis);
const isName = (name) => typeof name === 'string' && /^\w+$/.test(name) && !SKIPPED.has(name);
// Of these Node prints what it is asked to, or waits.
const isQuiet = (owner, name) => owner !== 'console' && !(owner === 'AbortSignal' && name === 'timeout');

function named(object) {
  const all = Object.entries(Object.getOwnPropertyDescriptors(object)).filter(([name]) => isName(name));
  return { functions: all.filter(([, one]) => typeof one.value === 'function').map(([name]) => name), setters: all.filter(([, one]) => one.set).map(([name]) => name) };
}

/** All built-ins: `{name, exists, call}`; `exists` is an expression that is true where AgentScript has it. */
export function targets() {
  const all = [];
  for (const [owner, family] of FAMILIES) {
    const sample = family.sample ?? family.receivers[0];
    const prototype = family.sample ? Object.getPrototypeOf(new Function(`return ${sample}`)()) : valueAt(owner).prototype;
    const prototypes = owner === 'Uint8Array' ? [prototype, Object.getPrototypeOf(prototype)] : [prototype];
    for (const { functions, setters } of prototypes.map(named)) {
      for (const method of functions) all.push({ name: `${owner}#${method}`, exists: `typeof (${sampleOf(owner, family)}).${method} === 'function'`, family, owner, method });
      for (const setter of setters) all.push({ name: `${owner}#${setter}=`, exists: `'${setter}' in (${sampleOf(owner, family)})`, family, owner, setter });
    }
  }
  for (const setter of ['length', '0', "'1'", 'x']) all.push({ name: `Array#${setter}=`, exists: 'true', family: ARRAYS, owner: 'Array', setter });
  for (const setter of ['0', '9']) all.push({ name: `Uint8Array#${setter}=`, exists: 'true', family: VIEWS, owner: 'Uint8Array', setter });
  for (const owner of OWNERS) {
    if (owner === 'console') continue;
    for (const method of named(valueAt(owner)).functions) all.push({ name: `${owner}.${method}`, exists: `typeof ${owner}.${method} === 'function'`, function: `${owner}.${method}`, owner, method });
  }
  for (const name of GLOBALS) all.push({ name, exists: `typeof ${name} === 'function'`, function: name, owner: '', method: name });
  for (const name of CLASSES) all.push({ name: `new ${name}`, exists: `typeof ${name} === 'function'`, function: `new ${name}`, owner: '', method: name });
  return all.filter(({ owner, method }) => isQuiet(owner, method));
}

const sampleOf = (owner, family) => family.sample ?? (owner === 'Function' ? 'Math.max' : owner === 'Uint8Array' ? 'new Uint8Array(1)' : family.receivers[0]);

// Arguments.
let number = 0;
const name = () => `${'abcdefgh'[number++ % 8]}`;
const NUMBERS = ['0', '1', '1', '2', '2', '3', '-1', '-2', '5', 'NaN', 'Infinity', '1.7', '-0', '4294967296', "'1'", '2n'];
const TEXTS = ["'a'", "'b'", "'x'", "''", "'NFD'", "'en'", "'de'", "'c=1'", "'number'", "'-'", "'2'", "'12:30'", "'2020-01-02'"];
const plain = () => pick(['undefined', 'null', 'true', ...NUMBERS, ...TEXTS, '[1, 2]', '{}', '{ a: 1 }', '[[1, 2], [3, 4]]', 'new Set([1, 2])', 'new Map([[1, 2]])', '/b/g', '/b/', 'new Date(0)', '3n', 'new Uint8Array([1, 2])', 'new ArrayBuffer(3)', 'r']);
const result = () => pick(['() => true', '() => false', '(x) => x', '(x, y) => y', '() => undefined', '() => 1', '() => -1', "() => both('q', 1)", "() => lone('q', 'toString', 'x')", '(x, y) => x < y ? -1 : 1', '() => [1, 2]', '() => 2n', "() => wrong('q', 1)"]);
const callbackOf = () => `callback('${name()}', ${result()})`;
function probe() {
  const kind = random(10);
  if (kind < 6) return `both('${name()}', ${pick(NUMBERS)}${random(3) === 0 ? `, ${pick(TEXTS)}` : ''})`;
  if (kind < 8) return `lone('${name()}', '${pick(['valueOf', 'toString'])}', ${pick([...NUMBERS, ...TEXTS, 'undefined', 'null', '{}'])})`;
  return pick([`wrong('${name()}', 1)`, `json('${name()}', ${pick([...NUMBERS, '{}', '[1]'])})`, `thenable('${name()}', ${pick(NUMBERS)})`]);
}
const item = () => (random(2) === 0 ? probe() : plain());
function structure() {
  const kind = random(9);
  if (kind < 3) return `iterable('${name()}', [${[item(), item(), random(2) ? `[${item()}, ${item()}]` : item()].join(', ')}])`;
  if (kind < 4) return `iterable('${name()}', [[${item()}, ${item()}], [${item()}, ${item()}]])`;
  if (kind < 5) return `setLike('${name()}', ${pick(["both('size', 2)", '2', '5', '0', "lone('size', 'toString', '3')", 'NaN', '-1', 'Infinity', 'undefined'])}, [1, 2, 9])`;
  if (kind < 6) return `{ length: both('length', ${pick(['2', '1', '0', "'x'", '-1'])}), 0: ${item()}, 1: ${item()} }`;
  if (kind < 7) return `[${item()}, ${item()}]`;
  if (kind < 8) return `[[${item()}, ${item()}]]`;
  return `{ a: ${item()}, b: [${item()}], raw: [${item()}, ${item()}] }`;
}

const OPTIONS = {
  NumberFormat: { localeMatcher: ["'lookup'"], numberingSystem: ["'latn'", "'LATN'", "'arab'", "'x'"], style: ["'percent'", "'currency'", "'unit'"], currency: ["'usd'", "'EUR'", "'x'"], currencyDisplay: ["'name'"], currencySign: ["'accounting'"], unit: ["'meter'", "'x'"], unitDisplay: ["'long'"],
    notation: ["'compact'", "'scientific'"], minimumIntegerDigits: ['2'], minimumFractionDigits: ['1', '30'], maximumFractionDigits: ['3'], minimumSignificantDigits: ['2'], maximumSignificantDigits: ['4'], roundingIncrement: ['5'], roundingMode: ["'floor'"], roundingPriority: ["'morePrecision'"],
    trailingZeroDisplay: ["'stripIfInteger'"], compactDisplay: ["'long'"], useGrouping: ["'min2'", 'false', "'true'", "''"], signDisplay: ["'always'"] },
  DateTimeFormat: { localeMatcher: ["'lookup'"], calendar: ["'gregory'", "'BUDDHIST'", "'x'"], numberingSystem: ["'latn'", "'Arab'"], hour12: ['true', "''"], hourCycle: ["'h23'"], timeZone: ["'UTC'", "'utc'", "'Asia/Tokyo'", "'x'"], weekday: ["'long'"], era: ["'short'"], year: ["'numeric'"], month: ["'long'"],
    day: ["'2-digit'"], dayPeriod: ["'short'"], hour: ["'numeric'"], minute: ["'numeric'"], second: ["'numeric'"], fractionalSecondDigits: ['2', '4'], timeZoneName: ["'short'"], formatMatcher: ["'basic'"], dateStyle: ["'long'"], timeStyle: ["'short'"] },
  Collator: { usage: ["'search'"], localeMatcher: ["'lookup'"], collation: ["'phonebk'", "'PHONEBK'", "'x'"], numeric: ['true', "''"], caseFirst: ["'upper'"], sensitivity: ["'base'"], ignorePunctuation: ['true'] },
  PluralRules: { localeMatcher: ["'lookup'"], type: ["'ordinal'"], minimumIntegerDigits: ['2'], minimumFractionDigits: ['1'], maximumFractionDigits: ['3'], minimumSignificantDigits: ['2'], maximumSignificantDigits: ['4'], roundingIncrement: ['5'], roundingMode: ["'floor'"], roundingPriority: ["'morePrecision'"], trailingZeroDisplay: ["'auto'"] },
  ListFormat: { localeMatcher: ["'lookup'"], type: ["'unit'"], style: ["'narrow'"] },
  RelativeTimeFormat: { localeMatcher: ["'lookup'"], numberingSystem: ["'latn'", "'ARAB'", "'x'"], style: ["'narrow'"], numeric: ["'auto'"] },
  Segmenter: { localeMatcher: ["'lookup'"], granularity: ["'word'"] },
  DisplayNames: { localeMatcher: ["'lookup'"], style: ["'short'"], type: ["'region'", "'language'"], fallback: ["'none'"], languageDisplay: ["'standard'"] },
  Error: { cause: ['1', "'c'"] },
  URL: {}, TextDecoder: { fatal: ['true'], ignoreBOM: ["''"] }, ArrayBuffer: { maxByteLength: ['3', '20'] }, structuredClone: { transfer: ['[]'] },
  toBase64: { alphabet: ["'base64url'"], omitPadding: ["''"] }, fromBase64: { alphabet: ["'base64url'"], lastChunkHandling: ["'strict'"] },
};
Object.assign(OPTIONS, { RangeError: OPTIONS.Error, TypeError: OPTIONS.Error, AggregateError: OPTIONS.Error, setFromBase64: OPTIONS.fromBase64 });

function options({ owner, method }) {
  const table = OPTIONS[method?.replace('Intl.', '')] ?? (owner === 'Date' || owner === 'DateTimeFormat' ? OPTIONS.DateTimeFormat : owner === 'Number' || owner === 'BigInt' || owner === 'Array' ? OPTIONS.NumberFormat : method === 'localeCompare' ? OPTIONS.Collator : OPTIONS.ListFormat);
  const chosen = Object.entries(table).filter(() => random(3) === 0);
  const value = (key, values) => {
    const one = pick(values);
    if (random(12) === 0) return probe();
    return random(3) === 0 ? one : /^'/.test(one) ? `lone('${key}', 'toString', ${one})` : `both('${key}', ${one})`;
  };
  return `{ ${chosen.map(([key, values]) => `${key}: ${value(key, values)}`).join(', ')} }`;
}

function argument(target, index) {
  const { method = '', owner = '' } = target;
  const isLocal = /^Intl|ocale/.test(method) || /^Intl/.test(owner) || method in OPTIONS;
  if (isLocal && index > 0 && random(2) === 0 || method in OPTIONS && random(3) === 0) return options(target);
  if (isLocal && random(3) === 0) return pick(["'en'", "'de'", "['de', 'en']", "both('l', 1, 'de')", "[both('l', 1, 'de'), 'en']", "{ length: both('length', 1), 0: both('l', 1, 'de') }", '[]', "'xx-'"]);
  if (/^(toFixed|toPrecision|toExponential|toString|at|with|slice|splice)$/.test(method) && random(2) === 0) return `both('${name()}', ${pick(NUMBERS)})`;
  const kind = random(20);
  if (kind < 9) return probe();
  if (kind < 13) return plain();
  if (kind < 17) return random(2) === 0 || owner === 'Array' || owner === 'Uint8Array' ? callbackOf() : probe();
  return structure();
}

/** A random call of a built-in: the source of a case. */
export function call(target) {
  number = 0;
  const { family, owner, method, setter } = target;
  // Without an argument a date is that of now.
  const count = Math.max(pick([0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4]), target.function === 'new Date' ? 1 : 0);
  const list = Array.from({ length: count }, (_, index) => argument(target, index)).join(', ');
  const from = (receiver) => `const r = on(${receiver}, () => { ${pick(family?.changes ?? ARRAYS.changes)}; });`;
  if (!family) return `(on) => { ${from(pick(ARRAYS.receivers))} return ${target.function}(${list}); }`;
  const sample = sampleOf(owner, family);
  if (setter) return `(on) => { ${from(pick(family.receivers))} ${/^\w+$/.test(setter) && Number.isNaN(Number(setter)) ? `r.${setter}` : `r[${setter}]`} = ${random(4) ? probe() : plain()}; return 0; }`;
  if (random(8) === 0) return `(on) => { ${from(pick(family.generic))} return (${sample}).${method}.call(r${list ? `, ${list}` : ''}); }`;
  return `(on) => { ${from(pick(family.receivers))} return r.${method}(${list}); }`;
}

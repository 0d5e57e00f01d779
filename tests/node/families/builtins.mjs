// Random methods on random receivers with random arguments.
const VALUES = ['undefined', 'null', 'true', 'false', '0', '-0', '1', '-1', '2', '3', '10', '1.5', '-1.5', 'NaN', 'Infinity', '-Infinity', '1e21', '4294967295', '4294967296', '9007199254740993',
  '1e-7', "''", "'a'", "'abc'", "'2'", "' 12 '", "'1e3'", "'0x1f'", "'é'", "'\u{1f600}x'", "'\\ud800'", "'ß'", "'NFC'", "'NFKD'", '0n', '5n', '-7n', '12345678901234567890n', '[]', '[1]', '[1, 2]', "['a', 'b']",
  '[[1, 2], [3]]', '[3, 1, 2]', '[,1]', '{}', '{ a: 1 }', '{ length: 2, 0: 7, 1: 8 }', '{ valueOf() { return 2; } }', "{ toString() { return 'b'; } }", 'Object.create(null)', 'new Map([[1, 2]])', 'new Set([1, 2])',
  '((x) => x)', '((a, b) => a - b)', '(() => true)', '((x) => [x, x])', 'Math.max', 'new Date(0)', "new Error('e')"];
const ARRAYS = ['[]', '[1, 2, 3]', '[3, 1, 2, 10]', "['b', 'a', 'C']", '[1, , 3]', '[[1, [2, [3]]], 4]', '[NaN, 0, -0]', '[undefined, null]', "[1, 'a', {}, []]", '[5n, 3, 4n]'];
const STRINGS = ["''", "'abc'", "'abcabc'", "' a b '", "'\u{1f600}x\u{1f600}'", "'\\ud800a'", "'e\u0301'", "'\u00e9'", "'ABC\u00df'", "'a,b,,c'", "'12.5px'", "'\u0130i'", "'$&$1'"];
const NUMBERS = ['0', '-0', '1', '-1.5', '123.456', '1e21', '1e-7', '5e-324', '1.7976931348623157e308', 'NaN', 'Infinity', '0.000001', '255', '-255.5', '1.005', '123456789.987654321'];
const OBJECTS = ['{}', '{ a: 1, b: [2] }', '{ 2: 1, 1: 2, x: 3 }', '[1, 2]', "'ab'", 'Object.freeze({ a: 1 })'];
const SKIP = new Set(['constructor', 'length', 'name', 'prototype', '__proto__', '__defineGetter__', '__defineSetter__', '__lookupGetter__', '__lookupSetter__', 'caller', 'arguments',
  'match', 'matchAll', 'search', 'random', 'now', 'then', 'catch', 'finally', 'description']);
const REFUSED = new Set(['getOwnPropertyDescriptor', 'getOwnPropertyDescriptors', 'getOwnPropertySymbols', 'defineProperty', 'defineProperties', 'getPrototypeOf', 'setPrototypeOf', 'create',
  'captureStackTrace', 'fromAsync', 'parse', 'UTC', 'prepareStackTrace']);
const names = (object) => Object.getOwnPropertyNames(object).filter((name) => !SKIP.has(name) && typeof Object.getOwnPropertyDescriptor(object, name).value === 'function');
const KINDS = [
  [ARRAYS, names(Array.prototype)], [ARRAYS, names(Array.prototype)], [STRINGS, names(String.prototype)], [STRINGS, names(String.prototype)], [NUMBERS, names(Number.prototype)], [['true', 'false'], names(Boolean.prototype)],
  [['0n', '255n', '-123456789012345678901n'], names(BigInt.prototype)], [['new Map()', "new Map([[1, 'a'], ['b', {}]])"], names(Map.prototype)], [['new Set()', "new Set([1, 'a', NaN])"], names(Set.prototype)],
  [OBJECTS, names(Object.prototype)], [["new Error('m')", "new TypeError('m', { cause: 1 })"], names(Error.prototype)],
];
const STATICS = ['Object', 'Array', 'String', 'Number', 'BigInt', 'Math', 'Math', 'JSON', 'Boolean', 'Map'];
const GLOBALS = ['parseInt', 'parseFloat', 'isNaN', 'isFinite', 'encodeURIComponent', 'encodeURI', 'decodeURIComponent', 'decodeURI', 'structuredClone', 'atob', 'btoa', 'String', 'Number', 'Boolean', 'BigInt', 'Array',
  'new Array', 'new Map', 'new Set', 'new Error', 'Error', 'new URLSearchParams'];

export function expression({ random, below, pick }) {
  const count = () => [0, 1, 1, 1, 2, 2, 2, 3, 4][below(9)];
  const list = () => Array.from({ length: count() }, () => pick(VALUES)).join(', ');
  const choice = random();
  if (choice < 0.15) return `${pick(GLOBALS)}(${list()})`;
  if (choice < 0.4) {
    const owner = pick(STATICS);
    const method = pick(names(globalThis[owner]).filter((name) => !REFUSED.has(name) || (owner === 'JSON' && name === 'parse')));
    // There are no wrapper objects.
    if (owner === 'Object' && (method === undefined || method === 'assign')) return `Object.assign({ a: 1 }, ${list()})`;
    return method === undefined ? `${owner}(${list()})` : `${owner}.${method}(${list()})`;
  }
  if (choice < 0.5) {
    const operator = pick(['+', '-', '*', '/', '%', '**', '<<', '>>', '>>>', '&', '|', '^', '==', '===', '<', '<=', 'in', 'instanceof']);
    return `(${pick(VALUES)}) ${operator} (${pick(VALUES)})`.replace(/^\((-\S+)\) \*\*/, '($1) **');
  }
  const [receivers, methods] = pick(KINDS);
  const method = pick(methods);
  // The receiver after the call is compared too.
  return `((r) => [r.${method}(${list()}), r])(${random() < 0.95 ? pick(receivers) : pick(VALUES)})`;
}

// The beginning of the scripts of both engines: values whose conversions are logged, and functions that show results.
export const HELPERS = `const hasOwn = (value, key) => Object.hasOwn(value, key);
let log = [];
let names = new Map();
let left = 0;
let change = () => {};
const note = (text) => { if (log.length < 80) log.push(text); };
// The first conversions change the receiver; then no more, so that every loop ends.
const touch = () => { if (left > 0) { left--; change(); } };
const named = (name, value) => { names.set(value, name); return value; };
const show = (value, depth = 3) => {
  if (typeof value === 'string') return JSON.stringify(value.length > 300 ? value.slice(0, 300) + '…' : value);
  if (typeof value === 'bigint') return value + 'n';
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return Object.is(value, -0) ? '-0' : String(value);
  if (names.has(value)) return '<' + names.get(value) + '>';
  if (typeof value === 'function') return 'function';
  const tag = Object.hasOwn(value, 'toString') ? 'own' : ({}).toString.call(value).slice(8, -1);
  if (depth === 0) return tag;
  const inner = (item) => show(item, depth - 1);
  if (Array.isArray(value)) {
    const items = [];
    for (let i = 0; i < value.length && i < 12; i++) items.push(hasOwn(value, i) ? inner(value[i]) : '');
    const rest = Object.keys(value).filter((key) => !(Number(key) < 12)).slice(0, 6).map((key) => key + ':' + inner(value[key]));
    return '[' + value.length + '|' + items.join(',') + (rest.length > 0 ? ';' + rest.join(',') : '') + (Object.isFrozen(value) ? '!' : '') + ']';
  }
  if (value instanceof Map) return 'Map{' + [...value].map(([key, item]) => inner(key) + '=>' + inner(item)) + '}';
  if (value instanceof Set) return 'Set{' + [...value].map(inner) + '}';
  if (value instanceof Uint8Array) return 'Uint8Array{' + (value.length > 0 ? Array.from(value) : '') + '}';
  if (value instanceof ArrayBuffer) return 'ArrayBuffer{' + value.byteLength + '}';
  if (value instanceof Date) return 'Date{' + value.getTime() + '}';
  if (value instanceof RegExp) return 'RegExp{' + value.source + ' ' + value.flags + ' ' + inner(value.lastIndex) + '}';
  if (value instanceof Error) return thrown(value);
  if (value instanceof URL) return 'URL{' + value.href + '}';
  if (value instanceof URLSearchParams) return 'Params{' + JSON.stringify([...value]) + '}';
  if (/Iterator|Generator/.test(tag)) { const next = () => { const step = value.next(); return inner(step.value) + (step.done ? '.' : ''); }; return tag + '{' + [next(), next(), next()] + '}'; }
  return tag + '{' + Object.keys(value).slice(0, 30).map((key) => key + ':' + inner(value[key])) + '}';
};
const thrown = (error) => error instanceof Error ? error.name + ': ' + error.message + ('cause' in error ? ' (' + show(error.cause, 1) + ')' : '') : 'thrown ' + show(error, 1);
// An object with a number and a text.
const both = (name, number, text = String(number)) => named(name, {
  valueOf() { note(name + '.valueOf'); touch(); return number; },
  toString() { note(name + '.toString'); touch(); return text; },
});
// An object with one of them only, the other gives an object.
const lone = (name, method, value) => named(name, {
  valueOf() { note(name + '.valueOf'); return method === 'valueOf' ? (touch(), value) : {}; },
  toString() { note(name + '.toString'); return method === 'toString' ? (touch(), value) : []; },
});
const wrong = (name, value) => named(name, { valueOf: value, toString: value });
const callback = (name, result) => named(name, (...args) => {
  note(name + '(' + args.map((arg) => show(arg, 1)) + ')');
  touch();
  return result(...args);
});
const iterable = (name, items, ...rest) => named(name, {
  [Symbol.iterator]() {
    note(name + '[iterator]');
    let i = 0;
    return {
      next() { note(name + '.next'); touch(); return i < items.length ? { value: items[i++], done: false } : { value: undefined, done: true }; },
      return(value) { note(name + '.return'); return { value, done: true }; },
    };
  },
});
const setLike = (name, size, items) => named(name, {
  size,
  has(item) { note(name + '.has(' + show(item, 1) + ')'); touch(); return items.includes(item); },
  keys() { note(name + '.keys'); touch(); return items.values(); },
});
const json = (name, value) => named(name, { toJSON(key) { note(name + '.toJSON(' + show(key) + ')'); touch(); return value; } });
const thenable = (name, value) => named(name, { then(resolve) { note(name + '.then'); touch(); resolve(value); } });
// An iterator after all of its items.
const used = (iterator) => { let i = 0; for (const item of iterator) if (++i > 20) break; return iterator; };
// Of a promise that stays pending.
const turns = async (n) => { while (n-- > 0) await undefined; return 'pending'; };
const outcomes = async (cases) => {
  const out = [];
  for (const one of cases) {
    [log, names, left, change] = [[], new Map(), 3, () => {}];
    let shown;
    let receiver = {};
    try {
      let result = one((r, mutate) => { receiver = r; change = mutate; return r; });
      if (result instanceof Promise) result = { awaited: await Promise.race([result, turns(60)]) };
      shown = show(result);
    } catch (error) {
      shown = thrown(error);
    }
    change = () => {};
    out.push(shown + ' of ' + show(receiver) + ' log ' + log.join(' '));
  }
  return out.map((text) => text.toWellFormed());
};`;

// Random types of TypeScript, as text. They need not mean anything: types are only erased.
import { pick, random } from '../locales/random.mjs';

const NAMES = ['string', 'number', 'boolean', 'any', 'unknown', 'T', 'U', 'Foo', 'Bar', 'undefined', 'never', 'void', 'null', 'object'];
const chance = (percent) => random(100) < percent;
const list = (most, item, separator = ', ') => Array.from({ length: random(most + 1) }, item).join(separator);
const some = (most, item, separator = ', ') => Array.from({ length: 1 + random(most) }, item).join(separator);
const maybe = (percent, text) => (chance(percent) ? text : '');

const key = () => pick(['a', 'b', 'readonly', 'get', 'set', 'type', 'new', 'as', 'is', 'async', "'k'", '1', '[Symbol.iterator]', "['x']", 'if', 'default']);
const parameter = (depth) => `${pick(['p', 'q', 'r', 'as', 'type', '{ a, b: c }', '[d, , e]'])}${maybe(20, '?')}${maybe(70, `: ${type(depth)}`)}`;
const names = (depth) => {
  const all = Array.from({ length: random(3) }, (_, index) => parameter(depth).replace(/^\w+/, (name) => `${name}${index}`));
  if (chance(15)) all.push(`...rest: ${type(depth)}[]`);
  if (chance(8)) all.unshift(`this: ${type(depth)}`);
  return all.join(', ');
};

function member(depth) {
  const kind = random(10);
  if (kind < 5) return `${maybe(15, 'readonly ')}${key()}${maybe(25, '?')}${maybe(90, `: ${type(depth)}`)}`;
  if (kind < 7) return `${key()}${maybe(10, '?')}${maybe(20, typeParameters(depth))}(${names(depth)})${maybe(80, `: ${result(depth)}`)}`;
  if (kind === 7) return `[${pick(['k', 'key', 'readonly'])}: ${pick(['string', 'number', 'symbol'])}]: ${type(depth)}`;
  if (kind === 8) return `${maybe(30, 'new ')}${maybe(20, typeParameters(depth))}(${names(depth)}): ${type(depth)}`;
  return chance(50) ? `get ${key()}(): ${type(depth)}` : `set ${key()}(value: ${type(depth)})`;
}

/** The members of an interface or an object type, in braces. */
export function members(depth) {
  const separator = pick(['; ', ', ', '\n']);
  return `{ ${list(3, () => member(depth), separator)}${maybe(30, separator)} }`;
}

const mapped = (depth) => `{ ${pick(['', '', 'readonly ', '-readonly ', '+readonly '])}[K in ${pick(['keyof T', "'a' | 'b'", type(depth)])}${maybe(20, ` as ${type(depth)}`)}]${pick(['', '?', '-?', '+?'])}: ${type(depth)}${maybe(30, ';')} }`;

function element(depth, index) {
  if (chance(25)) return `${pick(['x', 'y', 'new', 'type', 'function'])}${index}`.replace(/(new|type|function)\d/, '$1') + `${maybe(30, '?')}: ${type(depth)}`;
  if (chance(15)) return `...${type(depth)}[]`;
  return chance(15) ? `${pick(NAMES)}?` : type(depth);
}

/** `<T, const U extends V = W>` */
export const typeParameters = (depth) => `<${some(2, () => `${pick(['T', 'U', 'V', 'K'])}${maybe(30, ` extends ${type(depth)}`)}${maybe(15, ` = ${type(depth)}`)}`)}${maybe(10, ',')}>`;

/** `<A, B>` */
export const typeArguments = (depth) => `<${some(2, () => type(depth))}>`;

/** A result type of a function. */
export const result = (depth) => (chance(8) ? pick(['p is ', 'asserts p is ']) + type(depth) : chance(3) ? 'asserts p' : type(depth));

/** A type. */
export function type(depth) {
  if (depth <= 0 || chance(25)) return pick(NAMES);
  const next = depth - 1;
  switch (random(22)) {
    case 0: return `${type(next)}[]`.replace(/^(.*(?:=>|[|&?:]|extends|keyof|infer|readonly).*)\[\]$/s, '($1)[]');
    case 1: return some(3, () => operand(next), ' | ');
    case 2: return some(3, () => operand(next), ' & ');
    case 3: return `${pick(['| ', '& '])}${operand(next)}`;
    case 4: return `${pick(['Map', 'Array', 'Promise', 'A.B.C', 'Record'])}${typeArguments(next)}`;
    case 5: return members(next);
    case 6: return mapped(next);
    case 7: return `[${Array.from({ length: random(4) }, (_, index) => element(next, index)).join(', ')}]`;
    case 8: return `${maybe(10, typeParameters(next))}(${names(next)}) => ${result(next)}`;
    case 9: return `${maybe(40, 'abstract ')}new (${names(next)}) => ${type(next)}`;
    case 10: return `${operand(next)} extends ${operand(next)} ? ${type(next)} : ${type(next)}`;
    case 11: return `T extends (infer ${pick(['U', 'V'])}${maybe(40, ` extends ${operand(next)}`)})[] ? ${type(next)} : never`;
    case 12: return `${operand(next)}[${pick(["'a'", 'number', type(next)])}]`;
    case 13: return `keyof ${operand(next)}`;
    case 14: return `typeof ${pick(['n', 'o.p', 'n', 'Math'])}${maybe(15, typeArguments(next))}`;
    case 15: return pick(["'s'", '"t"', '1', '-1', '2n', 'true', 'false', '`x`']);
    case 16: return `\`a\${${type(next)}}b\${${pick(NAMES)}}\``;
    case 17: return `readonly ${pick(NAMES)}[]`;
    case 18: return `(${type(next)})`;
    case 19: return `import('m')${maybe(60, '.X')}${maybe(30, typeArguments(next))}`;
    case 20: return 'unique symbol';
    default: return pick(NAMES);
  }
}

/** A type that an operator may stand beside. */
const operand = (depth) => {
  const text = type(depth);
  return /^\w+$/.test(text) ? text : `(${text})`;
};

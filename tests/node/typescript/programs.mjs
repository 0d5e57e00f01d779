// Random programs with types at random places. They end, and depend on nothing.
import { pick, random } from '../locales/random.mjs';
import { members, result, type, typeArguments, typeParameters } from './types.mjs';

const chance = (percent) => random(100) < percent;
const maybe = (percent, make) => (chance(percent) ? make() : '');
const many = (most, make) => Array.from({ length: random(most + 1) }, (_, index) => make(index));
const small = () => type(random(3));
const annotation = (percent = 60) => maybe(percent, () => `: ${small()}`);
const numbers = ['a', 'b', 'c'];
let names = 0;
// Whether `await` may stand here.
let awaits = true;

/** `(x: T, y?: U)`, with a result type. */
function parameters() {
  const all = many(2, (index) => {
    if (chance(10)) return `{ p: p${index} }${annotation()} = { p: ${random(9)} }`;
    if (chance(8)) return `[e${index}]${annotation()} = [${random(9)}]`;
    return `x${index}${chance(15) ? `?${annotation()}` : `${annotation()}${maybe(20, () => ` = ${expression(1)}`)}`}`;
  });
  if (chance(10)) all.push(`...rest${annotation()}`);
  return `(${all.join(', ')})${maybe(45, () => `: ${result(random(2))}`)}`;
}

/** Makes the body of a function. */
function inside(isAsync, make) {
  const outer = awaits;
  awaits = isAsync;
  const made = make();
  awaits = outer;
  return made;
}

function arrow(depth) {
  const isAsync = chance(15);
  const head = `${isAsync ? 'async ' : ''}${maybe(20, () => typeParameters(1))}${inside(false, parameters)}`;
  return `${head} => ${inside(isAsync, () => arrowBody(depth))}`;
}

function arrowBody(depth) {
  const body = chance(70) ? expression(depth) : `{ ${maybe(30, () => declaration(1))} return ${expression(depth)}; }`;
  return body.startsWith('{ ') && !/^\{ .*return/s.test(body) ? `(${body})` : body;
}

/** The parameters and the body of a function. */
const plain = (depth) => inside(false, () => `${parameters()} { return ${expression(depth)}; }`);

const call = (depth) => `${pick(['f', 'g', 'o.m', 'id'])}${maybe(35, () => typeArguments(random(2)))}(${many(2, () => expression(depth)).join(', ')})`;

/** An operand. */
function operand(depth) {
  if (depth <= 0) return pick([...numbers, 'n', String(random(20)), "'s'", 's', 'null', 'true', 'o.p', 'list[0]', 'o', 'list']);
  const next = depth - 1;
  switch (random(19)) {
    case 0: return `(${expression(next)})`;
    case 1: return `${pick(['o', 'list', 's', 'n', 'o.p', 'list[1]', 'f(1)'])}!`;
    case 2: return `o${pick(['!', '', '?'])}.p`;
    case 3: return call(next);
    case 4: return `[${many(3, () => expression(next)).join(', ')}]`;
    case 5: return `{ k: ${expression(next)}, [${operand(0)}]: ${expression(next)}, m${maybe(30, () => typeParameters(1))}${plain(next)} }`;
    case 6: return `(${arrow(next)})(${many(2, () => expression(next)).join(', ')})`;
    case 7: return `new Map${maybe(70, () => typeArguments(1))}(${maybe(40, () => '[]')})`;
    case 8: return `\`t\${${expression(next)}}\``;
    case 9: return `(<${small()}>${operand(0)})`;
    case 10: return `(${operand(next)} ${pick(['as', 'satisfies'])} ${small()})`;
    case 11: return `(function${maybe(40, () => ' h')}${maybe(20, () => typeParameters(1))}${plain(next)})(${expression(next)})`;
    case 12: return `list.map${maybe(30, () => typeArguments(1))}(${arrow(next)}).length`;
    case 13: return `tag${maybe(50, () => typeArguments(1))}\`u\${${expression(next)}}v\``;
    case 14: return `o?.m?.${maybe(40, () => typeArguments(1))}(${expression(next)})`;
    case 15: return awaits ? `(await ${operand(next)})` : operand(next);
    case 16: return `${pick(['-', '!', 'typeof ', '+', '~', 'void '])}${operand(next)}`;
    case 17: return `(${pick(['<T,>', '<T extends U>', '<const T,>', '<T>'])}(x${annotation()}) => x)(${expression(next)})`;
    default: return pick(numbers);
  }
}

/** An expression. Most begin neither with a brace nor with `function`. */
export function expression(depth) {
  if (depth <= 0) return operand(0);
  const next = depth - 1;
  switch (random(14)) {
    case 0: case 1: return `${operand(next)} ${pick(['+', '-', '*', '<', '>', '<=', '>=', '===', '!==', '&&', '||', '&', '|', '>>', '%'])} ${operand(next)}`;
    case 2: return `${operand(next)} as ${type(random(3))} ${pick(['<', '>', '+', '*', '===', '&&', '||', '-'])} ${operand(next)}`;
    case 3: return `${operand(next)} ${pick(['+', '<', '==', '*'])} ${operand(next)} ${pick(['as', 'satisfies'])} ${small()} ${pick(['+', '<', '==', '*'])} ${operand(next)}`;
    case 4: return `${operand(next)} as ${pick(['const', small(), `unknown as ${small()}`])}`;
    case 5: return `${operand(next)} < ${operand(0)} ? ${expression(next)} : ${operand(next)} > (${operand(next)}) ? ${expression(next)} : ${expression(next)}`;
    case 6: return `${operand(next)} ? (${arrow(next)})(${operand(0)}) : ${expression(next)}`;
    case 7: return `(${operand(next)} ? ${arrow(next)} : ${chance(50) ? arrow(next) : operand(0)})`;
    case 8: return `(${operand(0)} ? (b) : ${pick(['c', 'T', '(d)', '(d: T)', 'c[]'])} => ${operand(0)}${maybe(60, () => ` : ${operand(0)}`)})`;
    case 9: return `[${pick(numbers)} < ${pick(numbers)}, ${pick(numbers)} > ${pick(['', '('])}${pick(numbers)}]`.replace(/\((\w)\]/, '($1)]');
    case 10: return `({ l: a < ${pick(['b', '3', 'o.p'])}, h: b > (${operand(0)}) }).l`;
    case 11: return assignment(next);
    default: return operand(depth);
  }
}

function assignment(depth) {
  const value = expression(depth);
  return pick([
    `(${pick(['n', 'o.q', '(n as any)', 'n!', 'o!.q', '(<T>n)'])} = ${value})`,
    `([${pick(['n', 'n as T', 'o.q!', '<T>n'])}] = [${value}])`,
    `({ k: ${pick(['n', 'n as T', 'n!'])} } = { k: ${value} })`,
  ]);
}

function declaration(depth) {
  names += 1;
  const name = `v${names}`;
  switch (random(12)) {
    case 0: return `type ${pick(['A', 'B', 'type'])}${names}${maybe(30, () => typeParameters(1))} = ${type(3)}${pick([';', '\n'])}`;
    case 1: return `interface I${names}${maybe(30, () => typeParameters(1))}${maybe(30, () => ` extends B${maybe(50, () => typeArguments(1))}, C.D`)} ${members(2)}`;
    case 2: return `let ${name}!: ${small()}; ${name} = ${expression(depth)};`;
    case 3: return `const { p: ${name}, ...r${names} }${annotation()} = ${pick(['o', '{ p: 1 }', 'o as any'])};`;
    case 4: return `const [${name}, w${names} = 1]${annotation()} = ${pick(['list', '[1]', 'list!'])};`;
    case 5: return `declare ${pick([`const ${name}: ${small()}`, `function ${name}${parameters().replace(/ = [^,)]*/g, '')}`, `let ${name}`, `class ${name} { x: ${small()}; m(): void; }`, `enum ${name} { A = 1, B }`, `type ${name} = ${small()}`])}${pick([';', '\n'])}`;
    case 6: case 7: return `function ${name}${maybe(40, () => typeParameters(1))}${plain(depth)}`;
    case 8: return `function ${name}(x: ${small()}): ${small()}${pick([';', '\n'])}${maybe(40, () => `function ${name}(): ${small()};`)} function ${name}(x${annotation()}) { return ${inside(false, () => expression(depth))}; }`;
    default: return `${pick(['const', 'let', 'var'])} ${name}${annotation()} = ${expression(depth)}${maybe(25, () => `, u${names}${annotation()} = ${expression(depth)}`)}${pick([';', ';', '\n'])}`;
  }
}

function statement(depth) {
  if (depth <= 0 || chance(50)) return declaration(2);
  const next = depth - 1;
  switch (random(9)) {
    case 0: return `if (${expression(2)}) { ${statement(next)} }${maybe(40, () => ` else { ${statement(next)} }`)}`;
    case 1: return `for (const e${annotation(30)} of ${pick(['list', 'list as T[]', '[1, 2]', 'list!', '<any>list'])}) { out.push(e); ${statement(next)} }`;
    case 2: return `try { ${statement(next)} } catch (e${annotation()}) { out.push(e.name); }`;
    case 3: return `switch (${expression(1)}) { case ${operand(1)}: ${statement(next)} case a as T: break; default: ${statement(next)} }`;
    case 4: return `label: { ${statement(next)} break label; }`;
    case 5: return `out.push(${expression(3)})${pick([';', '\n'])}`;
    case 6: return `n ${pick(['=', '+=', '??='])} ${expression(3)};`;
    case 7: return `out.push(${arrow(2)});`;
    default: return `{ ${statement(next)} }`;
  }
}

/** What all programs can use. */
export const PRELUDE = `let n = 4; const a = 1, b = 2, c = 3, s = 'text', list = [3, 1, 2], out = [];
const o = { p: 5, q: 6, m: (x) => x };
const f = (x) => x, g = (x, y) => [x, y], id = (x) => x, tag = (t, ...v) => t.raw.join('|') + v.length;`;

/** A program: the body of an async function. */
export function program() {
  names = 0;
  awaits = true;
  const statements = Array.from({ length: 1 + random(3) }, () => statement(2));
  return `${statements.join(' ')} return [out, n, ${expression(3)}];`;
}

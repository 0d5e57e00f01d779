// Parses scripts with the parser that Node contains: to find the result of a script, and to check that a case for Node
// is AgentScript. The check helps authors of cases; it does not define the language.
const source = process.binding('natives')['internal/deps/acorn/acorn/dist/acorn'];
const acorn = {};
new Function('exports', 'module', source)(acorn, { exports: acorn });

const NEWABLE = `Intl.Collator Intl.DateTimeFormat Intl.DisplayNames Intl.ListFormat Intl.NumberFormat Intl.PluralRules Intl.RelativeTimeFormat Intl.Segmenter Date Map Set Array Object RegExp Promise Error TypeError RangeError SyntaxError ReferenceError EvalError Headers
  URIError AggregateError URL URLSearchParams ArrayBuffer Uint8Array TextEncoder TextDecoder AbortController AbortSignal DOMException`.split(/\s+/);
const REFUSED_KEYS = `__proto__ constructor prototype __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__`.split(' ');
const REFUSED_NODES = {
  ClassDeclaration: 'class', ClassExpression: 'class', ThisExpression: 'this', Super: 'super', MetaProperty: 'new.target',
  WithStatement: 'with', DebuggerStatement: 'debugger', ImportExpression: 'import',
};

const dotted = (callee) => (callee.type === 'MemberExpression' && !callee.computed ? `${callee.object.name}.${callee.property.name}` : callee.name);

/** Returns the tree of a script; null if it is not JavaScript. */
export function parseScript(script) {
  try {
    return acorn.parse(script, {
      ecmaVersion: 2024, sourceType: 'script', allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true,
    });
  } catch {
    return null;
  }
}

/** Returns the tree of a module; null if it is not one. */
export function parseModule(script) {
  try {
    return acorn.parse(script, { ecmaVersion: 2024, sourceType: 'module', allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true });
  } catch {
    return null;
  }
}

/** Adds the implied `return` at the end of a script: of `main()`, or of the last expression, which is called if it is a function. */
export function withImpliedReturn(script, tree, exported = null) {
  if (hasReturn(tree)) return script;
  const entry = exported ?? 'main';
  const declared = tree.body.some((node) => node.type === 'FunctionDeclaration' ? node.id.name === entry : node.declarations?.some(({ id, init }) => id.name === entry && isFunction(init)));
  if (declared && count(tree, (node) => node.type === 'Identifier' && node.name === entry) === 1) return `${script}\nreturn ${entry}();`;
  // The completion value of the script, which `eval` gives where nothing is awaited.
  const called = tree.body.findLast((node) => !/Declaration|Empty/.test(node.type));
  if (!isFunction(called?.expression) && !hasAwait(tree) && isStrict(script)) return `return eval(${JSON.stringify(script)});`;
  const last = tree.body.findLast((node) => node.type === 'ExpressionStatement');
  if (!last) return script;
  const { start, end } = last.expression;
  const isLast = tree.body.slice(tree.body.indexOf(last) + 1).every((node) => /Declaration|Empty/.test(node.type));
  return `let $last;${script.slice(0, last.start)}$last = (${script.slice(start, end)});${script.slice(last.end)}\nreturn $last${isLast && isFunction(last.expression) ? '()' : ''};`;
}

const AsyncFunction = (async () => {}).constructor;

function isFunction(node) {
  return /^(Arrow)?FunctionExpression$/.test(node?.type);
}

/** Returns the names of constructs that AgentScript refuses. */
export function refusals(tree) {
  const found = [];
  const keys = new Set();
  visit(tree, (node) => {
    // `Symbol.iterator` is a key only.
    const symbol = node.type === 'MemberExpression' || node.type === 'Property' ? node.computed && (node.property ?? node.key) : node.operator === 'in' && node.left;
    if (symbol && /^Symbol\.(asyncI|i)terator$/.test(dotted(symbol))) keys.add(symbol.object);
    if (keys.has(node)) return;
    if (REFUSED_NODES[node.type]) found.push(REFUSED_NODES[node.type]);
    if (node.type === 'Property' && node.kind !== 'init') found.push(node.kind);
    if (node.type === 'Identifier' && ['eval', 'arguments', 'Symbol', 'globalThis', 'Function', 'setImmediate', 'WeakMap'].includes(node.name)) found.push(node.name);
    if (node.type === 'NewExpression' && !NEWABLE.includes(dotted(node.callee))) found.push('new');
    const key = node.type === 'MemberExpression' ? node.property : node.type === 'Property' ? node.key : null;
    if (key && !(node.computed && key.type === 'Identifier') && REFUSED_KEYS.includes(key.name ?? key.value)) found.push(key.name ?? key.value);
  });
  return found;
}

function hasReturn(node) {
  if (!node || typeof node !== 'object') return false;
  if (Array.isArray(node)) return node.some(hasReturn);
  if (/Function/.test(node.type)) return false;
  return node.type === 'ReturnStatement' || Object.values(node).some(hasReturn);
}

/** Whether a script can be strict mode code. */
function isStrict(script) {
  try {
    new AsyncFunction(`"use strict";\n${script}\n`);
    return true;
  } catch {
    return false;
  }
}

function hasAwait(node) {
  if (!node || typeof node !== 'object') return false;
  if (Array.isArray(node)) return node.some(hasAwait);
  if (/Function/.test(node.type)) return false;
  return node.type === 'AwaitExpression' || node.await === true || Object.values(node).some(hasAwait);
}

function count(tree, holds) {
  let n = 0;
  visit(tree, (node) => { if (holds(node)) n += 1; });
  return n;
}

function visit(node, see) {
  if (!node || typeof node !== 'object' || node instanceof RegExp) return;
  if (Array.isArray(node)) return node.forEach((child) => visit(child, see));
  if (node.type) see(node);
  for (const child of Object.values(node)) visit(child, see);
}

// Makes a program of another engine one that AgentScript accepts: adds the functions of the harness, declares the names that
// sloppy code only assigns, lets it go on after an exception, and leaves out the statements that are refused.
import { readFileSync } from 'node:fs';
import { parseModule, parseScript } from '../parse.mjs';
import { LABEL } from './compare.mjs';

const ROUNDS = 12;
// Functions of harnesses that evaluate their first argument.
const TAKES_CODE = /^(shouldBe\w*|should(Not)?Throw|shouldEvaluateTo|assertThrows|assertDoesNotThrow|assertThrowsInstanceOf|assert_throws)$/;
const AsyncFunction = (async () => {}).constructor;
const HARNESS = pieces(readFileSync(new URL('harness.js', import.meta.url), 'utf8'));

// With `keeps` a program does not go on after an exception, and its value is compared, too.
/** Returns `{script, outcome, dropped}`: what the command accepts, its outcome, and how many statements are left out; else `{why}`. */
export async function accepted({ text, keeps = false }, ask, labels = false) {
  const plain = script(text);
  if (plain === null) return asItIs(text, ask);
  let code = withHarness(keeps ? declared(plain) : `${goingOn(declared(unquoted(plain)), labels)}\nreturn;`);
  let dropped = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const outcome = await ask(code);
    if (!outcome) return { why: 'limits' };
    const { status, error } = outcome;
    if (/TIMEOUT|_LIMIT$|TOO_LARGE|TOO_DEEP/.test(error?.code)) return { why: 'limits' };
    const isRefused = status === 'illegal_access' || error?.code === 'VALIDATION_ERROR' || (status === 'syntax_error' && !isStrict(code));
    if (!isRefused) return { script: code, outcome, dropped };
    const places = (error.issues ?? [error]).map(({ location }) => location).filter(Boolean);
    const less = without(code, places);
    if (less === null) return { why: 'refused' };
    dropped += less.count;
    code = less.code;
  }
  return { why: 'refused' };
}

/** A text that is not JavaScript, also not for a parser that is newer than the one of the sandbox: what AgentScript accepts nevertheless is a difference. */
async function asItIs(text, ask) {
  if (isStrict(text)) return { why: 'no JavaScript' };
  const outcome = await ask(text);
  if (!outcome || outcome.status === 'syntax_error' || outcome.status === 'illegal_access') return { why: 'no JavaScript' };
  return { script: text, outcome, dropped: 0 };
}

function isStrict(code) {
  try {
    new AsyncFunction(`"use strict";\n${code}\n`);
    return true;
  } catch {
    return false;
  }
}

/** The text as a script; imports and the word `export` are left out. */
function script(text) {
  if (parseScript(text)) return text;
  const tree = parseModule(text);
  if (!tree) return null;
  const edits = tree.body.flatMap((node) => {
    if (node.type === 'ImportDeclaration' || node.type === 'ExportAllDeclaration') return [[node.start, node.end, '']];
    if (!node.type.startsWith('Export')) return [];
    return [[node.start, node.declaration?.start ?? node.end, '']];
  });
  const plain = edited(text, edits);
  return parseScript(plain) ? plain : null;
}

function edited(text, edits) {
  let [out, at] = ['', 0];
  for (const [start, end, replacement] of edits.sort(([a], [b]) => a - b)) {
    if (start < at) continue;
    out += text.slice(at, start) + replacement;
    at = end;
  }
  return out + text.slice(at);
}

/** Assertions about code in a string get a function in place of it. */
function unquoted(text) {
  const edits = [];
  visit(parseScript(text), ({ type, callee, arguments: [code] = [] }) => {
    if (type !== 'CallExpression' || !TAKES_CODE.test(callee.name) || typeof code?.value !== 'string') return;
    const tree = parseScript(code.value);
    if (!tree) return;
    const isExpression = tree.body.length === 1 && tree.body[0].type === 'ExpressionStatement';
    const body = isExpression ? `(${code.value.slice(tree.body[0].expression.start, tree.body[0].expression.end)})` : `{ ${code.value}\n}`;
    edits.push([code.start, code.end, `() => ${body}`]);
  });
  const plain = edited(text, edits);
  return parseScript(plain) ? plain : text;
}

/** Declares what is assigned and not declared, as in sloppy mode. */
function declared(text) {
  const [names, assigned] = [new Set(), new Set()];
  const bind = (node, into) => {
    if (!node) return;
    if (node.type === 'Identifier') into.add(node.name);
    else if (node.type === 'ObjectPattern') node.properties.forEach((one) => bind(one.value ?? one.argument, into));
    else if (node.type === 'ArrayPattern') node.elements.forEach((one) => bind(one, into));
    else bind(node.left ?? node.argument, into);
  };
  visit(parseScript(text), (node) => {
    if (/Function|^Class/.test(node.type)) [node.id, ...(node.params ?? [])].forEach((one) => bind(one, names));
    if (node.type === 'VariableDeclarator') bind(node.id, names);
    if (node.type === 'CatchClause') bind(node.param, names);
    if (node.type === 'AssignmentExpression') bind(node.left, assigned);
    if (node.type === 'UpdateExpression') bind(node.argument, assigned);
    if (/^For(In|Of)/.test(node.type) && node.left.type !== 'VariableDeclaration') bind(node.left, assigned);
  });
  const missing = [...assigned].filter((name) => !names.has(name) && !(name in globalThis) && !HARNESS.byName.has(name) && !/^(eval|arguments)$/.test(name));
  const head = /^#!.*\n/.exec(text)?.[0] ?? '';
  return missing.length > 0 ? `${head}var ${missing.join(', ')};\n${text.slice(head.length)}` : text;
}

/** Logs the exceptions of the statements of the program, and of calls of the harness anywhere, and goes on. Labels log the statements too. */
function goingOn(text, labels) {
  const starts = [];
  const ends = [];
  const tree = parseScript(text);
  const label = (node) => (labels ? `console.log(${JSON.stringify(LABEL + text.slice(node.start, node.end).slice(0, 200))}); ` : '');
  const guard = (node) => { const { start, end } = node; starts.push([start, `try { ${label(node)}`]); ends.push([end, ' } catch ($error) { console.log("caught", $error); }']); };
  const top = new Set(tree.body);
  visit(tree, (node) => {
    if (node.directive !== undefined) return;
    if (node.type === 'ExpressionStatement' && (top.has(node) || isOfHarness(node.expression))) guard(node);
    else if (top.has(node) && /^(If|For|ForIn|ForOf|While|DoWhile|Switch|Labeled|Throw)Statement$/.test(node.type)) guard(node);
  });
  const inserts = [...starts.map(([at, what]) => [at, 1, what]), ...ends.map(([at, what]) => [at, 0, what])].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const guarded = inserts.reduceRight((out, [at, , what]) => out.slice(0, at) + what + out.slice(at), text);
  // A semicolon that is inserted at a line break can be missing before the guard of the next statement.
  return parseScript(guarded) ? guarded : text;
}

function isOfHarness({ type, callee }) {
  if (type !== 'CallExpression') return false;
  const root = callee.type === 'MemberExpression' ? callee.object : callee;
  return root.type === 'Identifier' && (HARNESS.byName.has(root.name) || root.name === 'console');
}

/** Leaves out the innermost statements at some places; null if there is none. */
function without(code, places) {
  const tree = parseScript(code);
  const starts = [0];
  for (const { index } of code.matchAll(/\r\n|[\n\r\u2028\u2029]/g)) starts.push(index);
  const lines = [0, ...[...code.matchAll(/\r\n|[\n\r\u2028\u2029]/g)].map((match) => match.index + match[0].length)];
  const offsets = places.map(({ line, column }) => (lines[line - 1] ?? 0) + column - 1);
  const found = new Map();
  const look = (node, isStatement) => {
    if (!node || typeof node !== 'object' || node instanceof RegExp) return;
    if (isStatement && /(Statement|Declaration)$/.test(node.type)) offsets.forEach((offset, index) => { if (node.start <= offset && offset < node.end) found.set(index, node); });
    for (const [key, child] of Object.entries(node)) {
      const holds = /^(body|consequent|alternate)$/.test(key);
      if (Array.isArray(child)) child.forEach((one) => look(one, holds));
      else if (child?.type) look(child, holds && child.type !== 'BlockStatement');
    }
  };
  look(tree, false);
  const nodes = new Set(found.values());
  if (nodes.size === 0) return null;
  // Of a statement within another that is left out too, only the outer one counts.
  return { code: edited(code, [...nodes].map(({ start, end }) => [start, end, ';'])), count: nodes.size };
}

/** Takes a harness apart into its top-level statements, with the names that each declares and uses. */
function pieces(text) {
  const all = parseScript(text).body.map((node) => {
    const owner = node.expression?.left?.object?.name;
    const names = owner ? [] : node.id ? [node.id.name] : node.declarations.map(({ id }) => id.name);
    return { text: text.slice(node.start, node.end), names, owner, uses: words(text.slice(node.start, node.end)) };
  });
  const byName = new Map();
  for (const piece of all) for (const name of piece.owner ? [piece.owner] : piece.names) byName.set(name, [...(byName.get(name) ?? []), piece]);
  return { all, byName };
}

function words(text) {
  return new Set(text.match(/[A-Za-z_$][\w$]*/g));
}

function withHarness(text) {
  const own = new Set();
  for (const node of parseScript(text).body) {
    if (node.id) own.add(node.id.name);
    else node.declarations?.forEach(({ id }) => { if (id.name) own.add(id.name); });
  }
  const chosen = new Set();
  // A name that has methods, which the harness does not give it, is a variable that the test's host declares.
  const isNamespace = (name) => HARNESS.byName.get(name)?.length === 1 && HARNESS.byName.get(name)[0].text.startsWith('function') && new RegExp(`(?<![.\\w$])${name.replaceAll('$', '\\$')}\\.`).test(text);
  const add = (names) => {
    for (const name of names) {
      if (own.has(name) || isNamespace(name)) continue;
      for (const piece of HARNESS.byName.get(name) ?? []) {
        if (chosen.has(piece)) continue;
        chosen.add(piece);
        add(piece.uses);
      }
    }
  };
  add(words(text));
  const head = /^#!.*\n/.exec(text)?.[0] ?? '';
  return HARNESS.all.filter((piece) => chosen.has(piece)).map((piece) => `${piece.text}\n`).join('') + text.slice(head.length);
}

function visit(node, see) {
  if (!node || typeof node !== 'object' || node instanceof RegExp) return;
  if (Array.isArray(node)) return node.forEach((child) => visit(child, see));
  if (node.type) see(node);
  for (const child of Object.values(node)) visit(child, see);
}

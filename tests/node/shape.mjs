// Converts the forms in which models send code to JavaScript, as the language does: Markdown fences, default exports,
// types.
import { parseModule, parseScript } from './parse.mjs';

const amaro = await import('amaro').catch(() => null);

/** Whether types can be erased, which needs the packages of `tests/node`. */
export const canErase = amaro !== null;

/** Returns `{code, entry}`: the JavaScript in a text, and the name of the function that it exports, or null. */
export function codeOf(text, language) {
  const whole = /^[\s\ufeff]*```/.test(text) ? null : scriptOf(text, language);
  if (whole) return whole;
  const block = onlyBlock(text);
  return block === null ? null : scriptOf(block, language);
}

function onlyBlock(text) {
  const blocks = [...text.matchAll(/^[ \t\ufeff]*(`{3,})[ \t]*(\w*)[^`\n]*\n([\s\S]*?)(?:^[ \t]*\1[ \t]*$|$(?![\s\S]))/gm)];
  const scripts = blocks.filter(([, , tag]) => /^(js|javascript|mjs|jsx|ts|typescript|mts|tsx)$/i.test(tag));
  if (scripts.length === 1) return scripts[0][3];
  return scripts.length === 0 && blocks.length === 1 && blocks[0][2] === '' ? blocks[0][3] : null;
}

function scriptOf(text, language) {
  const plain = text.replace(/^\ufeff/, '').replace(/^#!/, '//');
  return (language === 'typescript' ? null : exported(plain)) ?? exported(erased(plain));
}

/** Removes types from a text, which is parsed as the body of a function if it has a `return`. */
function erased(text) {
  const head = 'async function $() {\n';
  const inside = () => strip(`${head}${text}\n}`)?.slice(head.length, -2) ?? null;
  return strip(text) ?? inside();
}

function strip(text) {
  try {
    return amaro ? amaro.transformSync(text, { mode: 'strip-only' }).code : null;
  } catch {
    return null;
  }
}

function exported(text) {
  if (text === null) return null;
  if (parseScript(text)) return { code: text, entry: null };
  const node = parseModule(text)?.body.find(({ type, declaration }) => type === 'ExportDefaultDeclaration' || (type === 'ExportNamedDeclaration' && declaration?.id?.name === 'main'));
  if (!node) return parseModule(text)?.body.every(({ type, specifiers }) => type !== 'ImportDeclaration' && !specifiers?.length) ? { code: text.replace(/^export \{\};?/m, ''), entry: null } : null;
  const { start, end, declaration } = node;
  const [before, inner, after] = [text.slice(0, start), text.slice(declaration.start, declaration.end), text.slice(end)];
  if (declaration.type === 'FunctionDeclaration' && declaration.id) return { code: `${before}${inner}${after}`, entry: declaration.id.name };
  if (declaration.type === 'Identifier' && functionOf(parseModule(text), declaration.name)) return { code: `${before}${after}`, entry: declaration.name };
  return { code: `${before}(${inner});${after}`, entry: null };
}

function functionOf(tree, name) {
  return tree.body.some((node) => (node.type === 'FunctionDeclaration' ? node.id.name === name : node.declarations?.some(({ id, init }) => id.name === name && /Function/.test(init?.type))));
}

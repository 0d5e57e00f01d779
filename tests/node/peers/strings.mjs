// Finds the scripts in the strings of programs in other languages.
import { parseScript } from '../parse.mjs';

const ESCAPES = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', v: '\v', 0: '\0', a: '\u0007' };
const escaped = (text) => text.replace(/\\(?:u\{([0-9a-f]+)\}|u([0-9a-f]{4})|x([0-9a-f]{2})|(\r?\n\s*)|([\s\S]))/gi, (_, braced, four, two, line, one) => {
  if (line) return '';
  return one ? (ESCAPES[one] ?? one) : String.fromCodePoint(Number.parseInt(braced ?? four ?? two, 16));
});

// For each language what holds text, as the longest first: comments, which are left out, and strings with their contents.
const LANGUAGES = {
  go: [[/\/\/.*|\/\*[\s\S]*?\*\//y, null], [/`([^`]*)`/y, (text) => text], [/"((?:[^"\\\n]|\\.)*)"/y, escaped], [/'(?:[^'\\]|\\.)+'/y, null]],
  rust: [[/\/\/.*|\/\*[\s\S]*?\*\//y, null], [/b?r(#*)"([\s\S]*?)"\1(?!#)/y, (_, text) => text], [/"((?:[^"\\]|\\[\s\S])*)"/y, escaped], [/'(?:[^'\\\n]|\\.[^']*)'/y, null]],
  csharp: [[/\/\/.*|\/\*[\s\S]*?\*\//y, null], [/"""+\r?\n?([\s\S]*?)"""+/y, (text) => text], [/@"((?:[^"]|"")*)"/y, (text) => text.replaceAll('""', '"')], [/\$+@?"(?:[^"\\]|\\.)*"/y, null], [/"((?:[^"\\\n]|\\.)*)"/y, escaped], [/'(?:[^'\\\n]|\\.)+'/y, null]],
  javascript: [[/\/\/.*|\/\*[\s\S]*?\*\//y, null], [/`((?:[^`\\$]|\\[\s\S]|\$(?!\{))*)`/y, escaped], [/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y, null]],
};

/** Returns the scripts: each string that can be one, and those of a test together. `test` is how a test begins. */
export function scriptsIn(text, language, test) {
  const starts = [...text.matchAll(new RegExp(test, `${test.flags.replace('g', '')}g`))].map(({ index }) => index);
  const groups = new Map();
  for (const { at, value } of stringsIn(text, LANGUAGES[language])) {
    const group = starts.findLastIndex((start) => start <= at);
    groups.set(group, [...(groups.get(group) ?? []), value]);
  }
  return [...groups.values()].flatMap((all) => {
    const scripts = all.filter(isScript);
    return scripts.length > 1 ? [...scripts, scripts.map(statement).join('\n')] : scripts;
  });
}

function stringsIn(text, forms) {
  const found = [];
  const begins = /["'`@$/]|\bb?r#*"/g;
  for (let match; (match = begins.exec(text));) {
    for (const [form, valueOf] of forms) {
      form.lastIndex = match.index;
      const whole = form.exec(text);
      if (!whole) continue;
      if (valueOf) found.push({ at: match.index, value: valueOf(...whole.slice(1)) });
      begins.lastIndex = match.index + Math.max(whole[0].length, 1);
      break;
    }
  }
  return found;
}

/** A word, a number and a sentence are no scripts that say anything. */
function isScript(text) {
  if (!/[([{=+*/<>`?]/.test(text)) return false;
  const tree = parseScript(text);
  return tree !== null && tree.body.some(({ type, expression }) => type !== 'EmptyStatement' && !/^(Identifier|Literal)$/.test(expression?.type));
}

/** An expression is logged; a statement stays as it is. */
function statement(text) {
  const [one, ...more] = parseScript(text).body;
  if (more.length > 0 || one.type !== 'ExpressionStatement') return text;
  return `try { console.log(${text.slice(one.expression.start, one.expression.end)}); } catch ($error) { console.log($error); }`;
}

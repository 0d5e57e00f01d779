#!/usr/bin/env node
// Compares random regular expressions on random texts with Node. `regexp.mjs [PAIRS] [SEED] [COMMAND...]`
//   PAIRS:   the number of pairs of a pattern and a text (50000)
//   SEED:    the first seed (1); each batch has the next one
//   COMMAND: runs a file and prints its outcome as JSON (`target/debug/codecall run --preset experimental`)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

// The compiled code of V8 11 loses matches and ends the process, with back-references of Unicode patterns.
setFlagsFromString('--regexp-interpret-all');

const [pairs = '50000', firstSeed = '1', ...given] = process.argv.slice(2);
const command = given.length > 0 ? given : ['target/debug/codecall', 'run', '--preset', 'experimental'];
const TEXTS = 5;
const BATCH = 400;

function generator(seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(random() * n);
  const pick = (list) => list[below(list.length)];
  const characters = ['a', 'b', 'A', 'B', 'c', '1', '_', ' ', '\n', 'k', 's', 'é', 'É', 'ß', 'ſ', 'K', 'σ', 'ς', 'Σ', '😀', '\ud83d', '\ude00', '𐐀', '𐐨', 'ǆ', 'ǅ', 'İ', 'i', 'ı', '-', '\u2028', 'ẞ', 'µ', 'μ'];
  const plain = ['a', 'b', 'c', 'a', 'b', 'A', 'B', '1', '_', ' '];
  // Pairs of surrogates, and their halves alone.
  const halves = ['\ud834', '\udc00', '\ud834\udc00', '\ud834', '\udc00', '\ud83d\ude00', '\ud801\udc00', '\ud801\udc28', 'a', 'x'];
  let splits = false;
  const character = () => (splits && random() < 0.9 ? pick(halves) : random() < 0.8 ? pick(plain) : pick(characters));
  const escapes = ['\\d', '\\D', '\\w', '\\W', '\\s', '\\S'];
  const properties = ['\\p{L}', '\\P{L}', '\\p{Lu}', '\\P{Lu}', '\\p{Script=Greek}', '\\p{Emoji}', '\\p{ASCII}', '\\p{Ll}', '\\P{Ll}', '\\p{Any}', '\\p{Cs}', '\\p{Uppercase}', '\\P{Lowercase}', '\\p{scx=Latn}'];
  const odd = ['\\x61', '\\u0061', '\\u{61}', '\\u{1F600}', '\\ud83d\\ude00', '\\cA', '\\c', '\\0', '\\01', '\\8', '\\a', '\\-', '\\/', '\\k', '\\u{', '{', '}', ']', '\\xg', '\\b', '\\B'];
  const quantifiers = ['*', '+', '?', '*?', '+?', '??', '{2}', '{1,2}', '{0,2}?', '{2,}', '{1,}?', '{0,1}', '{3,5}'];
  const wrong = ['{0}', '{,2}', '{2,1}', '{', '**'];
  const one = (flags) => (/[uv]/.test(flags) && random() < 0.3 ? pick(properties) : pick(escapes));

  function classItem(flags) {
    const r = random();
    if (r < 0.5) return character().replace(/[\]\\^-]/, '\\$&');
    if (r < 0.7) return `${pick(['a', 'A', '0', 'b', '\\x41'])}-${pick(['c', 'z', 'Z', '9', 'b', 'é'])}`;
    if (r < 0.9) return one(flags);
    return random() < (/[uv]/.test(flags) ? 0.05 : 0.5) ? pick([...odd, '-', '^', '\\b', '\\B', '.', '(', '|']) : character().replace(/[\]\\^-]/, '\\$&');
  }
  function set(flags, depth) {
    if (flags.includes('v') && random() < 0.5) {
      const operand = () => {
        const r = random();
        if (r < 0.3) return pick(['a', 'b', 'A', 'k', 'é', 'σ']);
        if (r < 0.5 && depth > 0) return set(flags, depth - 1);
        if (r < 0.65) return `\\q{${pick(['ab', 'a|bc', 'abc|a|', 'B', 'AB|é', ''])}}`;
        return one(flags);
      };
      const operator = pick(['', '', '--', '&&']);
      const items = Array.from({ length: 1 + below(3) }, operand);
      return `[${random() < 0.25 ? '^' : ''}${items.join(operator)}]`;
    }
    const items = Array.from({ length: below(4) }, () => classItem(flags));
    // Node 20 does not repeat `[^]` with the flag `v`.
    if (flags.includes('v') && items.join('') === '') return '.';
    return `[${random() < 0.25 ? '^' : ''}${items.join('')}]`;
  }
  function term(flags, depth, state) {
    const r = random();
    if (depth > 0 && r < 0.28) {
      const kind = random();
      let open = '(?:';
      if (kind < 0.5) {
        state.groups += 1;
        open = '(';
        if (random() < (splits ? 0.5 : 0.15)) {
          state.named.push(state.groups);
          open = `(?<n${random() < 0.98 ? state.groups : 1}>`;
        }
      } else if (kind < 0.75) open = pick(['(?=', '(?!', '(?<=', '(?<!']);
      return `${open}${disjunction(flags, depth - 1, state)})`;
    }
    if (r < 0.38) return set(flags, 2);
    if (r < 0.44) return one(flags);
    if (r < 0.49) return '.';
    if (r < 0.54) return pick(['^', '$', '\\b', '\\B']);
    if (splits && state.named.length > 0 && r < 0.57) return `\\k<n${pick(state.named)}>`;
    if (splits && r > 0.95) return pick(['\\ud834', '\\udc00', '\\u{1d000}', '\\ud834\\udc00', '[\ud834\udc00]', '[^\ud834]', '[\ud834-\udfff]']);
    if (r < 0.6) return state.groups > 0 || random() < 0.1 ? `\\${1 + below(Math.max(state.groups, 1))}` : random() < 0.1 ? `\\k<n${1 + below(2)}>` : '.';
    if (r < 0.64) return random() < (/[uv]/.test(flags) ? 0.05 : 0.5) ? pick(odd) : character();
    return character();
  }
  function alternative(flags, depth, state) {
    let text = '';
    for (let n = below(4) + (depth > 1 ? 1 : 0); n > 0; n -= 1) {
      const part = term(flags, depth, state);
      text += part;
      if (random() < 0.4 && !/[$^]$|\\[bB]$|^\(\?<?[=!]/.test(part) || random() < 0.01) text += random() < 0.01 ? pick(wrong) : pick(quantifiers);
    }
    return text;
  }
  function disjunction(flags, depth, state) {
    let text = alternative(flags, depth, state);
    while (random() < 0.25) text += `|${alternative(flags, depth, state)}`;
    return text;
  }
  function pattern() {
    let flags = '';
    for (const flag of 'dgimsy') if (random() < 0.25) flags += flag;
    flags += pick(['', '', '', 'u', 'u', 'v']);
    splits = random() < 0.3;
    return [disjunction(flags, 3, { groups: 0, named: [] }), flags];
  }
  const text = () => Array.from({ length: below(12) }, character).join('');
  return { pattern, text };
}

// The script that both engines run; it logs a line for each pattern.
const body = `
const show = (found) => found === null ? null : [found.index, [...found].map((x) => x === undefined ? 0 : x), found.groups ? Object.entries(found.groups) : 0, found.indices ? found.indices.map((x) => x ?? 0) : 0];
const out = [];
for (const [pattern, flags, texts] of cases) {
  let line;
  try {
    const regexp = new RegExp(pattern, flags);
    line = [regexp.source, regexp.flags];
    for (const text of texts) {
      regexp.lastIndex = 0;
      const found = [];
      for (let i = 0; i < 3; i++) {
        found.push(show(regexp.exec(text)), regexp.lastIndex);
        if (found.at(-2) === null || !(regexp.global || regexp.sticky)) break;
        if (found.at(-2)[1][0] === '') regexp.lastIndex++;
      }
      found.push(text.replace(regexp, '<$1$&>'), text.search(regexp));
      // With \`v\` and \`y\`, V8 splits within surrogate pairs.
      if (!(regexp.sticky && regexp.unicodeSets)) found.push(text.split(regexp));
      // From within the text, where a position may split a pair. There V8 11 begins behind it if the pattern has letters only.
      const isPlain = /^[^\\\\^$.*+?()[\\]{}|]+$/.test(pattern);
      for (const start of isPlain && text.length !== [...text].length ? [] : [1, 2, 3]) {
        regexp.lastIndex = start;
        found.push(show(regexp.exec(text)), regexp.lastIndex);
      }
      regexp.lastIndex = isPlain ? 0 : 1;
      found.push(regexp.test(text), regexp.lastIndex, text.match(regexp));
      if (regexp.global) found.push([...text.matchAll(regexp)].map(show), text.replaceAll(regexp, '[$\`]'));
      line.push(found);
    }
  } catch (error) {
    // Messages show a lone surrogate as U+FFFD.
    line = [String(error).toWellFormed()];
  }
  out.push(JSON.stringify(line));
}
return out;`;

const folder = mkdtempSync(join(tmpdir(), 'regexp-'));
let done = 0;
let different = 0;
for (let seed = Number(firstSeed); done < Number(pairs); seed += 1) {
  const { pattern, text } = generator(seed);
  const cases = Array.from({ length: BATCH }, () => [...pattern(), Array.from({ length: TEXTS }, text)]);
  const script = `const cases = ${JSON.stringify(cases).replaceAll('\u2028', '\\u2028')};${body}`;
  const wanted = new Function(`'use strict';${script}`)();
  const file = join(folder, `${seed}.js`);
  writeFileSync(file, script);
  const outcome = JSON.parse(execFileSync(command[0], [...command.slice(1), file], { maxBuffer: 1 << 30 }).toString());
  const got = outcome.result ?? [JSON.stringify(outcome.error)];
  wanted.forEach((line, index) => {
    if (line === got[index]) return;
    different += 1;
    if (different > 40) return;
    console.log(`/${cases[index][0]}/${cases[index][1]} (seed ${seed})`);
    const [here, there] = [got[index], line].map((side) => JSON.parse(side ?? '[]'));
    const at = there.findIndex((part, i) => JSON.stringify(part) !== JSON.stringify(here[i]));
    if (at >= 2) console.log(`  text ${JSON.stringify(cases[index][2][at - 2])}`);
    console.log(`  node ${JSON.stringify(there[at])}\n  here ${JSON.stringify(here[at] ?? here)}`);
  });
  done += BATCH * TEXTS;
}
rmSync(folder, { recursive: true });
console.log(`${done} pairs, ${different} patterns that differ`);
process.exitCode = different > 0 ? 1 : 0;

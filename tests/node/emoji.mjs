#!/usr/bin/env node
// Writes the sequences of emoji that no property of characters tells, `lang/src/regexp/emoji.txt`. By hand:
//   npm pack regenerate-unicode-properties regenerate   # into one `node_modules`
//   node tests/node/emoji.mjs NODE_MODULES > lang/src/regexp/emoji.txt
// The first line has the flags, two letters each. The others are sequences with U+200D: `x` and `y` are tones of
// skin, `z` is another one than `x`. Each sequence must be one in Node, too.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const require = createRequire(join(resolve(process.argv[2]), '..', '_'));
const stringsOf = (name) => require(`regenerate-unicode-properties/Property_of_Strings/${name}.js`).strings;
const check = (name) => {
  const pattern = new RegExp(`^\\p{${name}}$`, 'v');
  const strings = stringsOf(name).filter((text) => pattern.test(text));
  if (strings.length !== stringsOf(name).length) console.error(`${name}: Node does not know ${stringsOf(name).length - strings.length}`);
  return strings;
};

const letter = (point) => String.fromCharCode(point - 0x1f1e6 + 65);
const flags = check('RGI_Emoji_Flag_Sequence').map((text) => [...text].map((one) => letter(one.codePointAt(0))).join(''));

const TONE = /[\u{1f3fb}-\u{1f3ff}]/gu;
const groups = new Map();
for (const text of check('RGI_Emoji_ZWJ_Sequence')) {
  const shape = text.replace(TONE, 'x');
  groups.set(shape, [...(groups.get(shape) ?? []), text]);
}
const lines = [...groups].map(([text, all]) => {
  const tones = text.split('x').length - 1;
  const second = (mark) => text.replace(/x(?!.*x)/u, mark);
  const kinds = { '0 1': text, '1 5': text, '2 25': second('y'), '2 20': second('z') };
  const line = kinds[`${tones} ${all.length}`];
  if (!line) throw new Error(`${text}: ${all.length} sequences with ${tones} tones`);
  return line;
});
process.stdout.write(`${flags.sort().join('')}\n${lines.sort().join('\n')}\n`);

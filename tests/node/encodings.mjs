#!/usr/bin/env node
// Compares `TextDecoder` with that of the Node that runs this: each label with all bytes, all pairs of bytes, and random bytes.
// `encodings.mjs [--some] [TEXTS] [SEED] [COMMAND...]`
//   --some:  only pairs whose bytes begin, end or change characters
//   TEXTS:   the number of random texts of each encoding (2000)
//   SEED:    the seed (1)
//   COMMAND: runs a file and prints its outcome as JSON (`target/debug/codecall run --preset experimental`)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const words = process.argv.slice(2);
const isSome = words[0] === '--some' && words.splice(0, 1).length > 0;
const [texts = '2000', seed = '1', ...given] = words;
const command = given.length > 0 ? given : ['target/debug/codecall', 'run', '--preset', 'experimental'];

// One label of each encoding; `windows-1252` is not here, as Node 20 decodes it as ISO 8859-1 where errors are replaced.
const ENCODINGS = 'utf-8 utf-16le utf-16be ibm866 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-8-i iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 koi8-r koi8-u macintosh windows-874 windows-1250 windows-1251 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 x-mac-cyrillic gbk gb18030 big5 euc-jp iso-2022-jp shift_jis euc-kr'.split(' ');
const WIDE = /^(utf|gb|big5|euc|iso-2022|shift)/;
// Labels of the standard and others, in all spellings.
const LABELS = [...ENCODINGS, ...'866 5601 ansi_x3.4-1968 arabic ascii asmo-708 big5-hkscs chinese cn-big5 cp1250 cp1252 cp819 cp866 csbig5 cseuckr cseucpkdfmtjapanese csgb2312 csisolatin1 csisolatin9 cskoi8r csksc56011987 csmacintosh csshiftjis csunicode cyrillic dos-874 ecma-118 elot_928 gb2312 gb_2312-80 greek greek8 hebrew hz-gb-2312 iso-10646-ucs-2 iso-2022-cn iso-2022-kr iso-8859-1 iso-8859-6-e iso-8859-9 iso-8859-11 iso-8859-16 iso-ir-100 iso8859-15 iso_8859-1:1987 koi koi8 koi8_r korean ks_c_5601-1987 ksc5601 l1 l9 latin1 latin9 logical mac ms932 ms_kanji replacement shift-jis sjis sun_eu_greek tis-620 ucs-2 unicode unicode-1-1-utf-8 unicode11utf8 unicode20utf8 unicodefeff unicodefffe us-ascii utf-16 utf-32 utf-7 utf8 visual windows-31j windows-949 windows-1252 x-cp1251 x-euc-jp x-gbk x-mac-roman x-mac-ukrainian x-sjis x-unicode20utf8 x-user-defined x-x-big5 nope'.split(' '), '', ' utf-8\t', '\u00a0utf-8', 'UTF-8\n', 'Latin1', 'utf-8\0'];
// Bytes that begin, end or change characters in some encoding.
const BYTES = [0x00, 0x0e, 0x0f, 0x1a, 0x1b, 0x24, 0x28, 0x30, 0x39, 0x40, 0x41, 0x42, 0x49, 0x4a, 0x5c, 0x7e, 0x7f, 0x80, 0x81, 0x82, 0x84, 0x8e, 0x8f, 0xa0, 0xa1, 0xa2, 0xb0, 0xbb, 0xbf, 0xc9, 0xd8, 0xdc, 0xdf, 0xe0, 0xe3, 0xe4, 0xe5, 0xed, 0xef, 0xf0, 0xf4, 0xfc, 0xfd, 0xfe, 0xff];

let state = Number(seed);
const below = (n) => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >> 8) % n;
};
const random = () => Array.from({ length: 1 + below(7) }, () => (below(6) === 0 ? below(256) : BYTES[below(BYTES.length)]));

// The second bytes of pairs; pairs of some bytes have those as first ones, too.
const SECONDS = isSome ? BYTES : Array.from({ length: 256 }, (_, byte) => byte);
const sequences = (isWide, seconds) => Array.from({ length: 256 }, (_, first) => [[first], ...(isWide && (seconds.length === 256 || seconds.includes(first)) ? seconds : []).map((second) => [first, second])]).flat();

// The script that both engines run; it gives a line for each case.
const body = `
const codes = (text) => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i).toString(16)).join(' ');
const attempt = (f) => { try { return f(); } catch (error) { return [error.name, error.code, error.message].join(': '); } };
const decode = (label, bytes, streams) => {
  // ICU takes an escape that does not end for one malformed character.
  if (label === 'iso-2022-jp' && bytes.slice(-3).includes(0x1b)) return '';
  const decoder = new TextDecoder(label);
  const whole = codes(decoder.decode(new Uint8Array(bytes)));
  const parts = [whole, attempt(() => codes(new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes))))];
  for (let at = 1; streams && at < bytes.length; at += 1) {
    // Node 20 has too little room for what follows a malformed character of the piece before, and throws.
    try {
      parts.push(codes(decoder.decode(new Uint8Array(bytes.slice(0, at)), { stream: true }) + decoder.decode(new Uint8Array(bytes.slice(at)))));
    } catch {
      parts.push(whole);
    }
  }
  return parts.join(' | ');
};
const lines = labels.map((label) => attempt(() => new TextDecoder(label).encoding));
for (const [label, isWide, texts] of encodings) {
  for (const bytes of sequences(isWide, seconds)) lines.push(decode(label, bytes));
  for (const text of texts) lines.push(decode(label, text, true));
}
return lines;`;

const folder = mkdtempSync(join(tmpdir(), 'encodings-'));
let done = 0;
let different = 0;
for (const encoding of [undefined, ...ENCODINGS]) {
  const encodings = encoding === undefined ? [] : [[encoding, WIDE.test(encoding), Array.from({ length: Number(texts) }, random)]];
  const script = `const labels = ${JSON.stringify(encoding === undefined ? LABELS : [])}; const encodings = ${JSON.stringify(encodings)}; const seconds = ${JSON.stringify(SECONDS)}; const sequences = ${sequences};${body}`;
  const wanted = new Function(`'use strict';${script}`)();
  const file = join(folder, 'cases.js');
  writeFileSync(file, script);
  const outcome = JSON.parse(execFileSync(command[0], [...command.slice(1), file], { maxBuffer: 1 << 30 }).toString());
  const got = outcome.result ?? [JSON.stringify(outcome.error)];
  wanted.forEach((line, index) => {
    if (line === got[index]) return;
    different += 1;
    if (different > 40) return;
    const [, isWide, random] = encodings[0] ?? [];
    const bytes = [...sequences(isWide, SECONDS), ...(random ?? [])][index];
    console.log(`${encoding ?? JSON.stringify(LABELS[index])} ${encoding === undefined ? '' : bytes.map((byte) => byte.toString(16))}\n  node ${line}\n  here ${got[index]}`);
  });
  done += wanted.length;
}
rmSync(folder, { recursive: true });
console.log(`${done} texts, ${different} differ`);
process.exitCode = different > 0 ? 1 : 0;

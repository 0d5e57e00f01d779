// Writes packs: the files in runtime/intl/src/data with texts by locale and key. `pack.rs` reads them and
// describes their format.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { LOCALES, OUT, parent } from './cldr.mjs';

/** Writes a pack; `texts(locale)` gives an object or an iterable of pairs of key and text, with all inherited ones. */
export function writePack(file, texts, locales = LOCALES) {
  const all = new Map(locales.map((tag) => {
    const given = texts(tag) ?? {};
    const pairs = Symbol.iterator in given ? [...given] : Object.entries(given);
    return [tag, new Map(pairs.filter(([, text]) => text !== undefined).map(([key, text]) => [key, String(text)]))];
  }));
  const keys = [...new Set([...all.values()].flatMap((own) => [...own.keys()]))].sort(byBytes);
  const numbers = new Map(keys.map((key, index) => [key, index]));
  const languages = new Map();
  for (const tag of [...all.keys()].sort(byBytes)) {
    const language = tag.split('-')[0];
    languages.set(language, [...(languages.get(language) ?? []), tag]);
  }
  const chunks = [...languages].sort(([a], [b]) => byBytes(a, b)).map(([language, tags]) => [language, chunk(tags, all, keys, numbers)]);
  const table = new Writer();
  table.number(keys.length);
  for (const key of keys) table.text(key);
  const packed = [{ language: '', dictionary: '', size: table.size, bytes: deflate(table.done()) }, ...deflated(chunks)];
  const out = new Writer();
  out.number(packed.length);
  for (const { language, dictionary, size, bytes } of packed) {
    out.text(language);
    out.text(dictionary);
    out.number(size);
    out.number(bytes.length);
  }
  for (const { bytes } of packed) out.bytes(bytes);
  mkdirSync(OUT, { recursive: true });
  writeFileSync(join(OUT, file), out.done());
  const raw = packed.reduce((sum, { size }) => sum + size, 0);
  console.log(`${file}: ${all.size} locales, ${keys.length} keys, ${raw} bytes, packed ${out.size}`);
}

/** The locales of a language, each with what differs from the one that it inherits from. */
function chunk(tags, all, keys, numbers) {
  const out = new Writer();
  out.number(tags.length);
  for (const tag of tags) {
    let above = parent(tag);
    while (above !== undefined && !all.has(above)) above = parent(above);
    const [own, inherited] = [all.get(tag), all.get(above) ?? new Map()];
    const entries = keys.filter((key) => own.get(key) !== inherited.get(key)).map((key) => [numbers.get(key), Buffer.from(own.get(key) ?? '')]);
    out.text(tag);
    out.text(above ?? '');
    out.number(entries.length);
    // Differences and lengths apart: that compresses better.
    entries.forEach(([key], at) => out.number(key - (at ? entries[at - 1][0] : 0)));
    for (const [, text] of entries) out.number(text.length);
    for (const [, text] of entries) out.bytes(text);
  }
  return out.done();
}

const deflate = (bytes, dictionary) => deflateRawSync(bytes, { level: 9, memLevel: 9, dictionary });

/** How many dictionaries are unpacked before a chunk, at most. */
const MAX_DEPTH = 4;
/** Bytes of the smallest chunk that is a dictionary, and of the smallest that has one. */
const DICTIONARY = 200;
const CHUNK = 40;

/**
 * Chunks, deflated, with the names of their preset dictionaries: other chunks, those that make them smallest. The pairs that
 * gain most are taken first, as long as they form no circle and no chain that is too long.
 */
function deflated(chunks) {
  const best = new Map(chunks.map(([language, bytes]) => [language, { language, dictionary: '', size: bytes.length, bytes: deflate(bytes) }]));
  const pairs = [];
  for (const [language, bytes] of chunks) {
    if (bytes.length < CHUNK) continue;
    for (const [dictionary, preset] of chunks) {
      if (dictionary === language || preset.length < DICTIONARY) continue;
      const gain = best.get(language).bytes.length - deflate(bytes, preset).length;
      if (gain > 0) pairs.push({ language, dictionary, gain });
    }
  }
  pairs.sort((a, b) => b.gain - a.gain);
  const content = new Map(chunks);
  const users = (name) => [...best.values()].filter(({ dictionary }) => dictionary === name);
  const below = (name) => Math.max(0, ...users(name).map(({ language }) => 1 + below(language)));
  for (const { language, dictionary } of pairs) {
    const one = best.get(language);
    if (one.dictionary) continue;
    const chain = [dictionary];
    while (best.get(chain.at(-1)).dictionary) chain.push(best.get(chain.at(-1)).dictionary);
    if (chain.includes(language) || chain.length + below(language) > MAX_DEPTH) continue;
    Object.assign(one, { dictionary, bytes: deflate(content.get(language), content.get(dictionary)) });
  }
  return chunks.map(([language]) => best.get(language));
}

const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

class Writer {
  #parts = [];
  size = 0;
  bytes(bytes) {
    this.#parts.push(bytes);
    this.size += bytes.length;
  }
  /** Seven bits a byte, the low ones first; all bytes but the last have the eighth. */
  number(value) {
    const bytes = [];
    for (let rest = value; bytes.length === 0 || rest > 0; rest >>>= 7) bytes.push(rest > 127 ? (rest & 127) | 128 : rest);
    this.bytes(Buffer.from(bytes));
  }
  text(text) {
    const bytes = Buffer.from(text);
    this.number(bytes.length);
    this.bytes(bytes);
  }
  done() {
    return Buffer.concat(this.#parts);
  }
}

// Writes packs: the files in runtime/src/builtins/intl/data that `data.rs` reads. A pack has texts by locale and key; a
// locale has only those that its parent does not have. Numbers are little-endian.
//   header    "PACK", then u32: locales, keys, texts, entries
//   locales   by name: u32 text of the name, u32 first entry, u32 number of the parent (itself: none)
//   keys      in order: u32 text of the key
//   entries   of a locale by key: key (2 bytes), text (3 bytes)
//   texts     where each one begins, and the end of the last one (3 bytes); then the texts in UTF-8
// Of entries and starts all first bytes come first, then all second ones, and so on: that is compressed to half the size.
// A large one is compressed as a whole (zlib).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';

const require = createRequire(import.meta.url);
export const OUT = join(import.meta.dirname, '../../../runtime/src/builtins/intl/data');

/** A file of the package: `cldr('core', 'supplemental/aliases.json')`. */
export const cldr = (name, path) => JSON.parse(readFileSync(join(dirname(require.resolve(`cldr-${name}/package.json`)), path), 'utf8'));
export const supplemental = (name) => cldr('core', `supplemental/${name}.json`).supplemental;
/** A file of a locale, below `main.LOCALE`; undefined where there is none. */
export const main = (name, locale, file) => {
  try {
    return cldr(name, `main/${locale}/${file}.json`).main[locale];
  } catch {
    return undefined;
  }
};

const parents = supplemental('parentLocales').parentLocales.parentLocale;
/** The locales of CLDR's files; `und` is the root. */
export const FILES = cldr('core', 'availableLocales.json').availableLocales.full;
const files = new Set(FILES);

/** The parent of a locale that has a file; undefined for the root. */
export function parent(locale) {
  if (locale === 'und') return undefined;
  const given = parents[locale];
  if (given) return given === 'root' ? 'und' : given;
  const cut = locale.slice(0, Math.max(0, locale.lastIndexOf('-')));
  if (!cut) return 'und';
  return files.has(cut) ? cut : parent(cut);
}

/** Whether Node has this locale. */
export const inNode = (tag) => {
  try {
    return new Intl.DateTimeFormat(tag).resolvedOptions().locale === tag;
  } catch {
    return false;
  }
};
/** The locales of CLDR's files that Node has, and the root. */
export const LOCALES = FILES.filter((tag) => tag === 'und' || inNode(tag));

const GONE = '\u0000';

/** Writes a pack; `texts(locale)` gives an object or an iterable of pairs of key and text, with all inherited ones. */
export function writePack(file, texts, { locales = LOCALES, compress = false } = {}) {
  const names = [...locales].sort((a, b) => (a < b ? -1 : 1));
  const all = new Map(names.map((name) => {
    const given = texts(name) ?? {};
    const pairs = Symbol.iterator in given ? [...given] : Object.entries(given);
    return [name, new Map(pairs.filter(([, text]) => text !== undefined).map(([key, text]) => [key, String(text)]))];
  }));
  const strings = new Map();
  const number = (text) => {
    if (!strings.has(text)) strings.set(text, strings.size);
    return strings.get(text);
  };
  const byText = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  const keys = [...new Set([...all.values()].flatMap((own) => [...own.keys()]))].sort(byText);
  const keyNumbers = new Map(keys.map((key, index) => [key, index]));
  if (keys.length > 0xffff) throw new Error('too many keys');
  const known = (name) => {
    let at = parent(name);
    while (at !== undefined && !all.has(at)) at = parent(at);
    return at;
  };
  const localeRows = [];
  const entries = [];
  for (const name of names) {
    const above = known(name);
    localeRows.push([number(name), entries.length, above === undefined ? names.indexOf(name) : names.indexOf(above)]);
    const own = all.get(name);
    const inherited = above === undefined ? new Map() : all.get(above);
    const changed = [...new Set([...own.keys(), ...inherited.keys()])].filter((key) => own.get(key) !== inherited.get(key));
    for (const key of changed.sort(byText)) entries.push([keyNumbers.get(key), number(own.get(key) ?? GONE)]);
  }
  const keyRows = keys.map(number);
  const u32 = (value) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const bodies = [...strings.keys()].map((text) => Buffer.from(text));
  let size = 0;
  const starts = [...bodies.map((body) => (size += body.length) - body.length), size];
  if (size > 0xffffff) throw new Error('too many texts');
  const column = (numbers, byte) => Buffer.from(numbers.map((number) => (number >> (8 * byte)) & 255));
  const plain = Buffer.concat([
    Buffer.from('PACK'), ...[names.length, keys.length, strings.size, entries.length].map(u32),
    ...localeRows.flat().map(u32), ...keyRows.map(u32),
    ...[0, 1].map((byte) => column(entries.map(([key]) => key), byte)),
    ...[0, 1, 2].map((byte) => column(entries.map(([, text]) => text), byte)),
    ...[0, 1, 2].map((byte) => column(starts, byte)), ...bodies,
  ]);
  const bytes = compress ? deflateSync(plain, { level: 9 }) : plain;
  mkdirSync(OUT, { recursive: true });
  writeFileSync(join(OUT, file), bytes);
  console.log(`${file}: ${bytes.length} bytes (${plain.length}), ${names.length} locales, ${keys.length} keys, ${entries.length} entries, ${strings.size} texts of ${size} bytes`);
}

// The files of CLDR, from its packages, and the locales that are taken from them.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
export const OUT = join(import.meta.dirname, '../../../runtime/intl/src/data');

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

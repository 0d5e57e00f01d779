#!/usr/bin/env node
// Writes runtime/intl/src/data/locales.txt: the locales that Node has, one a line:
// (and digits.txt, below)
//   TAG DATA CALENDAR NUMBERING HOURCYCLE COLLATIONS
// DATA is the locale of the packs with its data. CALENDAR, NUMBERING and HOURCYCLE are its defaults.
// COLLATIONS are what `co` may be, `=` for nothing, `-` for a locale that `Intl.Collator` does not have;
// `collator` follows for one that only it has.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FILES, LOCALES, OUT, cldr, inNode } from './cldr.mjs';

const isOwn = (tag) => new Intl.Collator(tag).resolvedOptions().locale === tag;
const defaults = cldr('core', 'defaultContent.json').defaultContent;
// CLDR takes `no-NO` for another name of `nb-NO`; ICU has both.
const all = [...new Set([...FILES, ...defaults, 'no-NO'])].filter((tag) => tag !== 'und');
const known = new Set(LOCALES);
const withoutScript = all.filter((tag) => /-[A-Z][a-z]{3}-/.test(tag)).map((tag) => tag.replace(/-[A-Z][a-z]{3}/, ''));
const tags = [...new Set([...all, ...withoutScript])].filter((tag) => inNode(tag) || isOwn(tag)).sort((a, b) => (a < b ? -1 : 1));

function data(tag) {
  const full = new Intl.Locale(tag).maximize();
  const [language, script, region] = [full.language, full.script, full.region];
  // A file of its own, or the one of the same script.
  const isDefault = new Intl.Locale(language).maximize().script === script;
  const candidates = [tag, `${language}-${script}-${region}`, ...(isDefault ? [`${language}-${region}`] : []), `${language}-${script}`, language];
  return candidates.find((candidate) => known.has(candidate)) ?? 'und';
}

const collations = (tag) => Intl.supportedValuesOf('collation').filter((name) => new Intl.Collator(`${tag}-u-co-${name}`).resolvedOptions().collation === name).join(',') || '=';

const lines = tags.map((tag) => {
  const { calendar, numberingSystem, hourCycle } = new Intl.DateTimeFormat(tag, { hour: 'numeric' }).resolvedOptions();
  return [tag, data(tag), calendar, numberingSystem, hourCycle, isOwn(tag) ? collations(tag) : '-', ...(inNode(tag) ? [] : ['collator'])].join(' ');
});
writeFileSync(join(OUT, 'locales.txt'), `${lines.join('\n')}\n`);
console.log(`locales.txt: ${lines.length} locales`);

// The digits of the numbering systems, a line each: NAME DIGITS.
const systems = Object.entries(cldr('core', 'supplemental/numberingSystems.json').supplemental.numberingSystems);
const inIcu = new Set(Intl.supportedValuesOf('numberingSystem'));
const digits = systems.filter(([name, { _digits }]) => _digits && inIcu.has(name)).map(([name, { _digits }]) => `${name} ${_digits}`);
writeFileSync(join(OUT, 'digits.txt'), `${digits.join('\n')}\n`);
console.log(`digits.txt: ${digits.length} numbering systems of ${inIcu.size}`);

#!/usr/bin/env node
// Writes runtime/intl/src/data/zones.bin: names of time zones, by their names in English, as zones.txt has
// them. Keys:
//   long/NAME, short/NAME      the names that are NAME in English
//   city/ZONE, region/REGION   what stands in the name of a place's time
//   gmt, zero, hours, region, fallback   formats
//   place/ZONE                 in the root: the key of the place of a zone
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OUT, main, supplemental } from './cldr.mjs';
import { writePack } from './pack.mjs';

const TYPES = ['standard', 'daylight', 'generic'];
const lines = readFileSync(join(OUT, 'zones.txt'), 'utf8').split('\n');
const wanted = new Set(lines.filter((line) => line.startsWith('=')).map((line) => line.slice(1).split(';')[0].replace(/ \(.*\)$/, '')).filter(Boolean));
const zones = [...new Set(lines.filter((line) => /^[^=|~>]+\|/.test(line)).map((line) => line.split('|')[0]))];

const at = (object, path) => path.reduce((value, key) => value?.[key], object);
const english = main('dates-full', 'en', 'timeZoneNames').dates.timeZoneNames;
const sources = new Map();
for (const [metazone, names] of Object.entries(english.metazone)) for (const type of TYPES) if (wanted.has(names.long?.[type]) && !sources.has(names.long[type])) sources.set(names.long[type], ['metazone', metazone, type]);
for (const zone of [...zones, 'Etc/UTC']) for (const type of TYPES) {
  const name = at(english.zone, [...zone.split('/'), 'long', type]);
  if (wanted.has(name)) sources.set(name, ['zone', zone, type]);
}

const single = new Map();
const territories = Object.keys(main('localenames-full', 'en', 'territories').localeDisplayNames.territories).filter((code) => /^[A-Z]{2}$/.test(code));
const primary = supplemental('primaryZones')?.primaryZones ?? {};
for (const code of territories) {
  const own = new Intl.Locale(`und-${code}`).timeZones ?? [];
  if (own.length === 1) single.set(own[0], code);
  if (primary[code]) single.set(primary[code], code);
}

function* texts(locale) {
  const data = main('dates-full', locale, 'timeZoneNames')?.dates.timeZoneNames;
  if (!data) return;
  for (const [name, [kind, id, type]] of sources) {
    const own = kind === 'zone' ? at(data.zone, id.split('/')) : data.metazone?.[id];
    for (const width of ['long', 'short']) {
      const text = own?.[width]?.[type];
      if (text && text !== '∅∅∅') yield [`${width}/${name}`, text];
    }
  }
  const names = main('localenames-full', locale, 'territories')?.localeDisplayNames.territories ?? {};
  for (const zone of zones) {
    const code = single.get(zone);
    if (code) yield [`region/${code}`, names[`${code}-alt-variant-zone`] ?? names[code] ?? code];
    else {
      const city = at(data.zone, zone.split('/'))?.exemplarCity;
      if (city) yield [`city/${zone}`, city];
    }
  }
  yield ['gmt', data.gmtFormat];
  yield ['zero', data.gmtZeroFormat];
  yield ['hours', data.hourFormat];
  yield ['region', data.regionFormat];
  yield ['fallback', data.fallbackFormat];
  if (locale === 'und') for (const zone of zones) yield [`place/${zone}`, single.has(zone) ? `region/${single.get(zone)}` : `city/${zone}`];
}

// What the root alone has is inherited.
const root = new Map(texts('und'));
writePack('zones.bin', (locale) => {
  const own = new Map(texts(locale));
  for (const [key, text] of root) if (key.startsWith('place/')) own.set(key, text);
  return own;
});
console.log(`without a source: ${[...wanted].filter((name) => !sources.has(name)).length} of ${wanted.size}`);

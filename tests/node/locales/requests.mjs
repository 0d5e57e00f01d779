// Random values of the argument `locales`, well-formed or not, given to all functions that take one; and keywords as options.
import { pick, random } from './random.mjs';
import { LOCALES, maybe } from './tags.mjs';

const LANGUAGES = ['en', 'de', 'zh', 'sr', 'pt', 'ar', 'es', 'th', 'fa', 'EN', 'De', 'iw', 'in', 'ji', 'mo', 'sh', 'no', 'tl', 'cmn', 'yue', 'gsw', 'eng', 'deu', 'ger', 'und', 'mul', 'root', 'xx', 'zzz', 'qaa', 'sgn', 'hak', 'aaa', 'jw', 'default', 'english', 'German', 'foobar', 'Klingon', 'abcde', 'abcdefgh',
  'DEFAULT', 'posix', 'latin', 'Arabic'];
const WRONG_LANGUAGES = ['', 'a', 'abcd', 'abcdefghi', 'e1', '12', '419', 'x', 'i', 'C', 'é', 'ｅｎ', ' en', 'en ', 'e n', '*', 'latn', 'Latn', 'default1', 'abcdé'];
const SCRIPTS = ['Latn', 'latn', 'CYRL', 'Hant', 'Hans', 'Qaai', 'Zyyy', 'Arab', 'Zzzz'];
const REGIONS = ['US', 'us', 'DE', 'SU', 'BU', 'UK', 'DD', 'YU', 'CS', '419', '001', 'XX', 'ZZ', 'TW', 'RS', '840', '276', '12', '1234'];
const VARIANTS = ['1901', '1996', 'rozaj', 'posix', 'POSIX', 'hepburn', 'heploc', 'scouse', 'valencia', 'oxendict', 'saaho', 'arevela', 'arevmda', 'polytoni', 'ab', 'abc', '1abc', 'a1bc', 'toolong99', 'fonipa', 'boont', 'AALAND'];
const KEYWORDS = ['nu-arab', 'NU-ARAB', 'nu-latn', 'nu-foo', 'nu', 'ca-gregory', 'ca-gregorian', 'ca-islamicc', 'ca-islamic-civil', 'ca-foo', 'ca', 'co-phonebk', 'CO-PHONEBK', 'co-phonebook', 'co-standard', 'co-search', 'co-eor', 'co', 'kn', 'kn-true', 'kn-false', 'kn-yes', 'kf-upper', 'KF-Upper', 'kf-false', 'kf', 'hc-h23',
  'hc-h11', 'hc-foo', 'ks-primary', 'ks-level1', 'va-posix', 'rg-uszzzz', 'rg-gb', 'sd-gbsct', 'tz-utc', 'tz-cnckg', 'ms-imperial', 'kb-yes', 'attr', 'foo-bar', 'fw-mon', 'lb-strict', 'cu-usd', 'em-emoji', 'a', 'toolongword', 'kv', 'kc-true', 'x0', 'vt-0061'];
const OTHERS = ['x-private', 'X-Foo-Bar', 'x-a', 'x', 'x-toolongword', 'a-foo', 'a-foo-bar', 'b', 'z-bar', '1-foo', 't-en', 't-en-latn', 't-de-m0-din', 'T-EN', 't', 't-m0-foo', 'u', 'u-u'];
const GRANDFATHERED = ['i-klingon', 'i-default', 'i-lux', 'I-LUX', 'i-enochian', 'i-mingo', 'art-lojban', 'cel-gaulish', 'zh-min', 'zh-guoyu', 'zh-hakka', 'zh-min-nan', 'zh-xiang', 'en-GB-oed', 'sgn-BE-FR', 'sgn-US', 'no-bok', 'no-nyn', 'zh-cmn-Hans-CN', 'zh-yue', 'sgn-br'];
const STRANGE = ['en_US', 'de_DE_euro', 'en-', '-en', 'en--US', 'en-US-', 'en.UTF-8', 'en@calendar=buddhist', 'x-private', 'x-en-US', 'POSIX', 'C', 'c', 'nb-NO-x', 'en-US-u', 'u-nu-arab', 'und-u-nu-arab', 'en-u-nu-arab-nu-latn', 'en-u-ca-buddhist-u-nu-arab', 'en-a-foo-a-bar', 'en-x-u-foo', 'en-scouse-scouse', 'en-US-US',
  'en-Latn-Cyrl', 'en-\\u0000', 'en\\n', '\\ud800', 'en-US-u-ca-gregory-x-foo', 'hy-arevela', 'sr-Cyrl-YU', 'und-SU', 'und-Latn-SU', 'en-SU', 'hy-SU', 'default-SU', 'english-BU', 'foobar-arevela', 'default-1901', 'english-Latn-US-u-nu-arab', 'sl-rozaj-biske-1994', 'ja-Latn-hepburn-heploc'];

/** A tag of parts in their order, now and then out of it. */
function tag() {
  if (random(8) === 0) return pick(STRANGE);
  if (random(10) === 0) return pick(GRANDFATHERED);
  if (random(12) === 0) return pick(LOCALES);
  const parts = [pick(random(8) ? LANGUAGES : WRONG_LANGUAGES)];
  const add = (chance, list) => { if (random(100) < chance) parts.push(pick(list)); };
  add(20, SCRIPTS);
  add(35, REGIONS);
  add(15, VARIANTS);
  add(6, VARIANTS);
  add(8, OTHERS);
  if (random(4) === 0) parts.push('u', pick(KEYWORDS));
  if (random(10) === 0) parts.push(pick(KEYWORDS));
  add(8, OTHERS);
  if (random(15) === 0) parts.reverse();
  const text = parts.join('-');
  return random(15) === 0 ? pick([text.toUpperCase(), text.toLowerCase(), text.replaceAll('-', '_'), `${text}-`, ` ${text}`]) : text;
}

const quoted = () => `'${tag()}'`;
const NO_TAGS = ['undefined', 'null', '5', 'true', '1n', '[]', '{}', '[5]', '[null]', '[undefined]', '[, "de"]', '[["de"]]', '[{}]', "{ toString() { return 'de'; } }", "[{ toString() { return 'default'; } }]", "{ length: 1, 0: 'de' }", "{ length: '1', 0: 'default' }", '{ length: -1 }', "{ length: 2, 1: 'de' }", "new Set(['de'])",
  "new Map([['de', 1]])", "(() => 'de')", 'new Date(0)', '/de/', "['de', , 'en']", "['de', undefined]", "[true]", "[() => 'de']", "new Error('de')", "new String('de')", 'NaN', "['']"];
const given = () => (random(4) ? quoted() : random(2) ? `[${Array.from({ length: 1 + random(3) }, quoted).join(', ')}]` : pick(NO_TAGS.filter((one) => !one.startsWith('new String'))));

const NAMES = ['Collator', 'NumberFormat', 'DateTimeFormat', 'PluralRules', 'ListFormat', 'RelativeTimeFormat', 'Segmenter', 'DisplayNames'];
const VALUES = {
  calendar: ['gregory', 'GREGORY', 'gregorian', 'foo', 'iso8601', 'ab', 'toolongword', 'foo-bar', '', 'é', 'islamicc'],
  numberingSystem: ['arab', 'ARAB', 'Arab', 'latn', 'LATN', 'foo', 'native', 'ab', '', 'a-b', 'hanidec', 'toolongword'],
  collation: ['phonebk', 'PHONEBK', 'Phonebk', 'phonebook', 'foo', 'search', 'standard', 'STANDARD', 'eor', 'EOR', 'trad', 'ab', '', 'emoji'],
  localeMatcher: ['lookup', 'best fit', 'LOOKUP', ''],
  caseFirst: ['upper', 'UPPER'],
  hourCycle: ['h23', 'H23'],
};
const KEYS = { Collator: ['collation', 'localeMatcher', 'caseFirst'], NumberFormat: ['numberingSystem', 'localeMatcher'], DateTimeFormat: ['calendar', 'numberingSystem', 'localeMatcher', 'hourCycle'], RelativeTimeFormat: ['numberingSystem', 'localeMatcher'] };
const optionsOf = (name) => {
  const fixed = name === 'DisplayNames' ? "type: 'region', " : '';
  const own = (KEYS[name] ?? ['localeMatcher']).map((key) => maybe(25, () => `${key}: '${pick(VALUES[key])}', `)).join('');
  return fixed || own ? `, { ${fixed}${own}}` : '';
};
const resolved = () => {
  const name = pick(NAMES);
  return `new Intl.${name}(${given()}${optionsOf(name)}).resolvedOptions()${random(3) ? '' : '.locale'}`;
};
const METHODS = [
  (list) => `(1234.5).toLocaleString(${list})`, (list) => `1234n.toLocaleString(${list})`, (list) => `new Date(0).toLocaleString(${list})`, (list) => `new Date(0).toLocaleDateString(${list}, { month: 'long' })`,
  (list) => `new Date(0).toLocaleTimeString(${list})`, (list) => `'a'.localeCompare('ä', ${list})`, (list) => `'iIß'.toLocaleUpperCase(${list})`, (list) => `'iIİ'.toLocaleLowerCase(${list})`, (list) => `[1.5, new Date(0)].toLocaleString(${list})`,
  (list) => `new Uint8Array([1, 200]).toLocaleString(${list})`, (list) => `new Intl.NumberFormat(${list}).format(1234.5)`, (list) => `Intl.DateTimeFormat(${list}).format(0)`, (list) => `new Intl.PluralRules(${list}).select(1)`,
  (list) => `new Intl.ListFormat(${list}).format(['a', 'b'])`, (list) => `new Date(NaN).toLocaleString(${list})`,
];

const tagCase = () => pick([
  () => `Intl.getCanonicalLocales(${given()})`,
  () => `Intl.getCanonicalLocales(${given()})`,
  () => `Intl.${pick(NAMES)}.supportedLocalesOf(${given()}${random(4) ? '' : `, ${pick(['undefined', 'null', '{}', "{ localeMatcher: 'lookup' }", "{ localeMatcher: 'x' }", '5'])}`})`,
  resolved,
  resolved,
  () => pick(METHODS)(given()),
  () => `new Intl.DisplayNames('en', { type: 'language'${maybe(30, () => ", fallback: 'none'")}${maybe(30, () => ", languageDisplay: 'standard'")} }).of(${quoted()})`,
  () => `new Intl.DisplayNames('${pick(['en', 'de'])}', { type: '${pick(['region', 'script', 'currency', 'calendar', 'dateTimeField'])}'${maybe(30, () => ", fallback: 'none'")} }).of('${pick(['', 'us', 'US', 'SU', '419', 'Latn', 'latn', 'usd', 'EUR', 'XXX', 'gregory', 'GREGORY', 'foo', 'ab', 'year', 'YEAR', 'default', 'é'])}')`,
])();

export default { tag: tagCase };

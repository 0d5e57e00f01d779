#!/usr/bin/env node
// Compares what depends on locales with Node: random locales, options and values.
//   node tests/node/locales.mjs (date | range | collation | case | resolve) COUNT [SEED] -- COMMAND…
// COMMAND reads a script from standard input and writes its outcome as JSON, such as
//   target/release/codecall run - --preset experimental
// Differences in `locales-differences.json`, each with its reason, are counted apart. Prints at most 40 others; the exit
// code is 1 if there are any.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

process.env.TZ = 'UTC';
const split = process.argv.indexOf('--');
const [mode, count, seed = '1'] = process.argv.slice(2, split);
const [command, ...commandArguments] = process.argv.slice(split + 1);
const reasons = JSON.parse(readFileSync(new URL('locales-differences.json', import.meta.url), 'utf8')).map((one) => ({ ...one, pattern: new RegExp(one.case) }));

let state = Number(seed) >>> 0;
const random = (below) => {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
};
const pick = (list) => list[random(list.length)];
const maybe = (chance, text) => (random(100) < chance ? text() : '');

const LOCALES = ['en-CA', 'sv-SE', 'en-GB', 'de-DE', 'fr-FR', 'es-ES', 'it-IT', 'pt-BR', 'nl-NL', 'pl-PL', 'ja-JP', 'zh-CN', 'ko-KR', 'ru-RU', 'tr-TR', 'ar', 'he-IL', 'hi-IN', 'th-TH', 'fa-IR',
  'en-US', 'en-AU', 'en-IN', 'en-NZ', 'en-ZA', 'de-AT', 'de-CH', 'fr-CA', 'fr-CH', 'es-MX', 'es-AR', 'pt-PT', 'zh-TW', 'zh-HK', 'ar-EG', 'ar-SA', 'uk-UA', 'cs-CZ', 'sk-SK', 'hu-HU',
  'ro-RO', 'bg-BG', 'el-GR', 'da-DK', 'nb-NO', 'nn-NO', 'fi-FI', 'et-EE', 'lv-LV', 'lt-LT', 'hr-HR', 'sr-RS', 'sr-Latn-RS', 'sl-SI', 'ca-ES', 'id-ID', 'vi-VN', 'bn-BD', 'ta-IN', 'ur-PK', 'sw', 'af', 'is', 'fil', 'ms', 'mr', 'my', 'ne', 'ka', 'hy', 'az', 'kk', 'uz', 'eu', 'gl', 'cy', 'ga', 'mk', 'sq', 'am', 'te', 'km', 'lo', 'mn', 'si'];
const localeOf = () => pick(LOCALES) + maybe(6, () => `-u-${pick(['nu-arab', 'nu-latn', 'nu-deva', 'ca-gregory', 'ca-buddhist', 'ca-persian', 'hc-h23', 'hc-h12', 'hc-h11', 'nu-foo', 'ca-foo', 'kn', 'co-phonebk'])}`);

const texts = ['narrow', 'short', 'long'];
const twoDigits = ['numeric', '2-digit'];
const options = {
  weekday: texts, era: texts, year: twoDigits, month: [...twoDigits, ...texts], day: twoDigits, dayPeriod: texts, hour: twoDigits, minute: twoDigits, second: twoDigits,
  fractionalSecondDigits: [1, 2, 3], timeZoneName: ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric'],
};
const ZONES = ['America/New_York', 'America/Los_Angeles', 'Europe/London', 'Europe/Berlin', 'Europe/Paris', 'Europe/Stockholm', 'Europe/Moscow', 'Asia/Tokyo', 'Asia/Kolkata', 'Asia/Shanghai', 'Asia/Kathmandu', 'Australia/Sydney', 'America/Sao_Paulo', 'America/St_Johns', 'Africa/Cairo', 'Pacific/Auckland', 'Asia/Dubai', 'Asia/Tehran', 'Asia/Bangkok', 'Europe/Istanbul', 'Africa/Lagos', 'Asia/Singapore', 'UTC', 'GMT', 'Etc/GMT+5', 'America/Argentina/Buenos_Aires'];
const formatOptions = () => {
  const out = {};
  if (random(4) === 0) {
    if (random(3)) out.dateStyle = pick(['full', 'long', 'medium', 'short']);
    if (random(3)) out.timeStyle = pick(['full', 'long', 'medium', 'short']);
  } else {
    const chance = pick([20, 40, 60]);
    for (const [name, values] of Object.entries(options)) if (random(100) < (['dayPeriod', 'era', 'fractionalSecondDigits', 'timeZoneName'].includes(name) ? chance / 4 : chance)) out[name] = pick(values);
  }
  if (random(8) === 0) out.hourCycle = pick(['h11', 'h12', 'h23', 'h24']);
  if (random(8) === 0) out.hour12 = pick([true, false]);
  if (random(12) === 0) out.numberingSystem = pick(['arab', 'latn', 'thai', 'beng', 'foo']);
  if (random(12) === 0) out.calendar = pick(['gregory', 'buddhist', 'persian', 'foo']);
  if (random(3) === 0) out.timeZone = pick(ZONES);
  return JSON.stringify(out);
};
const moment = () => Date.UTC(1990 + random(50), random(12), random(31), random(24), pick([0, 0, 30, random(60)]), pick([0, random(60)]), random(1000));
const dateCase = () => pick([
  () => `f('${localeOf()}', ${formatOptions()}).format(${moment()})`,
  () => `f('${localeOf()}', ${formatOptions()}).formatToParts(${moment()}).map((p) => p.type + ':' + p.value).join('|')`,
  () => `f('${localeOf()}', ${formatOptions()}).resolvedOptions()`,
  () => `new Date(${moment()}).${pick(['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'])}('${localeOf()}'${maybe(70, () => `, ${formatOptions()}`)})`,
])();
const rangeCase = () => {
  const from = moment();
  const to = from + pick([1, 1000, 6e4, 36e5, 432e5, 864e5, 864e6, 3e9, 3e10, 1e11]) * random(30);
  return `f('${localeOf()}', ${formatOptions()}).${pick(['formatRange', 'formatRangeToParts'])}(${from}, ${to})`;
};

const LETTERS = ['a', 'A', 'b', 'B', 'z', 'Z', 'é', 'É', 'e', 'ä', 'Ä', 'ö', 'ø', 'å', 'aa', 'ñ', 'n', 'ch', 'c', 'č', 'h', 'll', 'l', 'ł', 'đ', 'd', 'dž', 'þ', 'ı', 'I', 'i', 'İ', 'ü', 'y', 'ß', 'ss', 'æ', 'õ', 'š', 's', 'ž', 'ğ', 'g', 'q', 'w', 'v', 'ij', 'œ', 'ț', 'ă', 'â', 'cs', 'dzs', 'gy'];
const SCRIPTS = ['α', 'Ω', 'ж', 'Я', 'ё', 'е', 'і', 'ї', 'ґ', 'א', 'ع', 'ا', 'آ', 'و', 'پ', 'か', 'カ', 'ア', 'ー', '漢', '字', '一', '北', '京', '東', '한', '가', 'ก', 'เ', 'า', 'अ', 'क', 'ा', 'ক', 'த', 'ა', 'ա', 'ខ', 'ລ', 'က', 'ආ'];
const OTHERS = [' ', '-', '_', '.', "'", '!', '€', '1', '2', '10', '02', '٣', '\\u0301', '\\u0308', '😀'];
const collationCase = () => {
  const piece = () => pick(random(10) < 6 ? LETTERS : random(3) ? SCRIPTS : OTHERS);
  const make = () => Array.from({ length: 1 + random(4) }, piece);
  const first = make();
  const second = random(2) ? make() : first.map((text) => (random(4) === 0 ? piece() : random(5) === 0 && !text.includes('\\') ? text.toUpperCase() : text));
  const own = {};
  if (random(4) === 0) own.numeric = random(3) > 0;
  if (random(3) === 0) own.sensitivity = pick(['base', 'accent', 'case', 'variant']);
  if (random(5) === 0) own.caseFirst = pick(['upper', 'lower', 'false']);
  if (random(6) === 0) own.ignorePunctuation = random(3) > 0;
  if (random(6) === 0) own.usage = pick(['sort', 'search']);
  if (random(10) === 0) own.collation = pick(['phonebk', 'pinyin', 'stroke', 'trad', 'compat', 'eor', 'zhuyin', 'foo']);
  const tag = pick(LOCALES) + maybe(12, () => `-u-${pick(['co-phonebk', 'co-trad', 'co-stroke', 'co-pinyin', 'co-standard', 'co-search', 'kn', 'kn-false', 'kf-upper', 'kf-false', 'co-eor', 'co-zhuyin', 'co-unihan', 'nu-arab'])}`);
  const list = `'${tag}', ${JSON.stringify(own)}`;
  return pick([() => `"${first.join('')}".localeCompare("${second.join('')}", ${list})`, () => `new Intl.Collator(${list}).compare("${first.join('')}", "${second.join('')}")`, () => `new Intl.Collator(${list}).resolvedOptions()`])();
};
const CASED = ['i', 'I', 'İ', 'ı', 'ß', 'ſ', 'Σ', 'σ', 'ς', 'ά', 'Ά', 'έ', 'ή', 'ΐ', 'ϊ', 'ΰ', 'ό', 'ώ', 'α', 'Α', 'ι', 'ᾳ', 'ᾼ', 'ö', 'Ö', 'é', 'ǆ', 'ﬁ', 'և', 'ä', 'j', 'J', 'į', 'Į', 'Ì', 'Í', 'Ĩ', '\\u0307', '\\u0301', '\\u0300', 'ij', 'ĳ', 'Ы', 'ж', ' ', 'a', 'x', '1', 'ა', 'Ა', 'η', 'Ή', 'ῆ', "'", '\\ud83d'];
const caseCase = () => `"${Array.from({ length: 1 + random(6) }, () => pick(CASED)).join('')}".${pick(['toLocaleUpperCase', 'toLocaleLowerCase'])}(${pick(["'tr'", "'az'", "'lt'", "'el'", "'hy'", "'nl'", "'en'", "'de'", "['xx', 'tr']", "'tr-TR-u-co-search'", "'el-GR'", "'lt-LT'", "'EL'", "'az-Latn'", '', "'und'", "[]", "'i'"])})`;
const PARTS = ['en', 'de', 'zh', 'sr', 'und', 'iw', 'no', 'Latn', 'cyrl', 'Hant', 'US', 'tw', 'RS', '419', '001', 'XX', '1996', 'posix', 'valencia', 'u', 'nu', 'arab', 'ca', 'buddhist', 'hc', 'h23', 'co', 'phonebk', 'kn', 'x', 'foo', 't', 'a', 'bar', '', 'toolong99', 'é'];
const tagOf = () => [pick(LOCALES.concat('en', 'de', 'zh', 'sr', 'sh', 'tl')), ...Array.from({ length: random(5) }, () => pick(PARTS))].join('-');
const resolveCase = () => pick([
  () => `Intl.getCanonicalLocales(${JSON.stringify(random(3) ? tagOf() : [tagOf(), tagOf()])})`,
  () => `Intl.${pick(['DateTimeFormat', 'Collator', 'NumberFormat'])}.supportedLocalesOf(${JSON.stringify([tagOf(), tagOf()])})`,
  () => `f(${JSON.stringify(random(3) ? tagOf() : [tagOf(), tagOf()])}, ${pick(['undefined', '{}', "{ hour: 'numeric' }", "{ timeStyle: 'short' }", "{ hour: 'numeric', hourCycle: 'h23' }", "{ calendar: 'gregory' }", "{ numberingSystem: 'latn' }"])}).resolvedOptions()`,
  () => `new Intl.Collator(${JSON.stringify(tagOf())}).resolvedOptions()`,
])();

const makers = { date: dateCase, range: rangeCase, collation: collationCase, case: caseCase, resolve: resolveCase };
const BATCH = 2000;
const shown = (text) => text.replace(/[\u00a0\u202f\u2009\u200e\u200f\u2068\u2069]/g, (c) => `[${c.charCodeAt(0).toString(16)}]`);
let differences = 0;
const explained = new Map();
for (let done = 0; done < Number(count); done += BATCH) {
  const cases = Array.from({ length: Math.min(BATCH, Number(count) - done) }, makers[mode]);
  const script = `const f = (l, o) => new Intl.DateTimeFormat(l, o);
const t = (g) => { try { return JSON.stringify(g()) ?? 'undefined'; } catch (e) { return e.name + ': ' + e.message; } };
const out = [];
${cases.map((one) => `out.push(t(() => ${one}));`).join('\n')}
return out;`;
  const expected = new Function(`'use strict'; ${script}`)();
  const ran = spawnSync(command, commandArguments, { input: script, encoding: 'utf8', maxBuffer: 1 << 28 });
  let got;
  try {
    got = JSON.parse(ran.stdout).result;
  } catch {
    got = undefined;
  }
  if (!got) {
    console.log(ran.stdout.slice(0, 500), ran.stderr.slice(0, 500));
    process.exit(1);
  }
  expected.forEach((text, index) => {
    if (text === got[index]) return;
    const reason = reasons.find(({ pattern, here }) => pattern.test(cases[index]) && (!here || got[index].includes(here)));
    if (reason) {
      explained.set(reason.reason, (explained.get(reason.reason) ?? 0) + 1);
      return;
    }
    differences += 1;
    if (differences <= 40) console.log(`${cases[index]}\n  node ${shown(text)}\n  here ${shown(got[index])}`);
  });
}
for (const [reason, times] of explained) console.log(`explained ${times}: ${reason}`);
console.log(`${count} cases, ${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;

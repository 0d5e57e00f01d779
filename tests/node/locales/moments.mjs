// Random texts for `Date.parse`, and random calls of methods of dates.
import { pick, random } from './random.mjs';
import { maybe } from './tags.mjs';

const number = () => pick([random(10), random(13), random(32), random(60), random(100), 1900 + random(200), random(3000), random(1e6), random(4e9)]);
const padded = () => String(number()).padStart(pick([1, 2, 2, 2, 3, 4, 6]), '0');
const time = () => pick([random(2e9) * 1000 + random(1000), -random(4e9) * 1000, random(4e9) * 1e6, -random(4e9) * 1e6, random(4e9) * 2000, Date.UTC(2024, random(12), random(28), random(24), random(60), random(60))]);

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec January february MARCH sept december Marz juni'.split(' ');
const days = 'Mon Tue Wednesday thu Fri, Sat Sunday, Foo'.split(' ');
const zones = 'Z GMT UTC UT EST EDT CST CDT MST MDT PST PDT z gmt+1 GMT+0200 GMT-08:00 +05:30 +0100 -8 UTC+3 CET +12345 EEST'.split(' ');
const clocks = () => `${random(26)}:${String(random(62)).padStart(2, '0')}${maybe(50, () => `:${String(random(62)).padStart(2, '0')}${maybe(20, () => `.${padded()}`)}`)}`;
const templates = [
  () => new Date(time()).toISOString(),
  () => new Date(time()).toString(),
  () => new Date(time()).toUTCString(),
  () => new Date(time()).toLocaleString(),
  () => new Date(time()).toISOString().slice(0, random(25)),
  () => `${padded()}-${padded()}-${padded()}${maybe(60, () => pick(['T', ' ', 't']) + clocks() + maybe(50, () => pick(zones)))}`,
  () => `${pick(['+', '-'])}${padded().padStart(6, '0')}-${String(random(14)).padStart(2, '0')}-${String(random(33)).padStart(2, '0')}${maybe(40, () => `T${clocks()}Z`)}`,
  () => `${maybe(50, () => `${pick(days)} `)}${pick(months)} ${random(33)}${pick([' ', ', ', '  '])}${number()}${maybe(60, () => ` ${clocks()}${maybe(40, () => pick([' AM', ' PM', 'pm', ' am']))}${maybe(40, () => ` ${pick(zones)}`)}`)}${maybe(20, () => ' (note)')}`,
  () => `${maybe(50, () => `${pick(days)} `)}${random(33)}${pick([' ', '-', '. '])}${pick(months)}${pick([' ', '-', ', '])}${number()}${maybe(60, () => ` ${clocks()} ${pick(zones)}`)}`,
  () => `${number()}${pick(['/', '.', '-', ' '])}${number()}${pick(['/', '.', '-', ' '])}${number()}${maybe(60, () => ` ${clocks()}`)}`,
  () => `${number()}/${number()}${maybe(50, () => ` ${clocks()} ${pick(zones)}`)}`,
  () => `${pick(months)} ${number()}`,
  () => Array.from({ length: 1 + random(8) }, () => pick([padded(), pick(months), pick(days), pick(zones), clocks(), ':', '-', '+', '/', '.', ' ', ', ', '(', ')', 'T', 'at', 'of', 'th', 'é', '\u00a0'])).join(pick(['', ' ', ' '])),
];
const alphabet = '0123456789:-+./,() TZapmAMjanfeb\u00a0é';
const mutated = (text) => {
  let out = text;
  for (let times = random(3); times > 0; times -= 1) {
    const at = random(out.length + 1);
    out = out.slice(0, at) + pick(['', '', pick(alphabet), pick(alphabet)]) + out.slice(at + random(2));
  }
  return out;
};

const getters = Object.getOwnPropertyNames(Date.prototype).filter((name) => /^(get|to)/.test(name) && !/Locale/.test(name));
const setters = Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith('set'));
const argument = () => pick([() => String(number()), () => String(-number()), () => `${number()}.5`, () => 'NaN', () => 'undefined', () => 'null', () => `'${number()}'`, () => 'true', () => '1e9', () => 'Infinity', () => '-0', () => "'x'", () => '{}', () => '[]', () => String(random(24)), () => String(random(12)), () => String(2000 + random(99))])();
const list = () => Array.from({ length: pick([0, 1, 1, 1, 2, 3, 4, 7]) }, argument).join(', ');
const start = () => pick([() => String(time()), () => String(time()), () => 'NaN', () => `${argument()}, ${list()}`, argument])();
const methodCase = () => `(() => { const d = new Date(${start()}); const a = ${random(2) ? `d.${pick(setters)}(${list()})` : `Date.UTC(${list()})`}; return [a, +d, d.${pick(getters)}()]; })()`;

export default { dateParse: () => `Date.parse(${JSON.stringify(mutated(pick(templates)()))})`, dateMethods: methodCase };

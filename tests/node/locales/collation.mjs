// Random calls that compare, change case and resolve locales.
import { pick, random } from './random.mjs';
import { LOCALES, maybe } from './tags.mjs';

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

export default { collation: collationCase, case: caseCase, resolve: resolveCase };

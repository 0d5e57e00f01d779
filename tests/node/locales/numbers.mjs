// Random calls of formats of numbers, and of lists, plurals, relative times, names and segments.
import { pick, random } from './random.mjs';

const json = JSON.stringify;

const LOCALES = `en en-US en-GB en-CA en-AU en-IN en-DE de de-AT de-CH fr fr-CA fr-CH es es-MX es-AR pt pt-PT it it-CH nl sv nb da fi is pl cs sk hu ro
  bg ru uk sr sr-Latn hr sl lt lv et el tr he ar ar-EG fa ur hi bn ta te mr ne th vi id ms fil ja ko zh zh-TW zh-Hant-HK sw am ka hy cy ga`.split(/\s+/);
const UNITS = `acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit gigabyte gram hectare hour inch kilobit kilobyte
  kilogram kilometer liter megabit megabyte meter microsecond mile mile-scandinavian milliliter millimeter millisecond minute month nanosecond ounce percent
  petabyte pound second stone terabit terabyte week yard year`.split(/\s+/);
const CURRENCIES = Intl.supportedValuesOf('currency');
const COMMON = 'USD EUR GBP JPY CNY INR CHF SEK BRL KRW RUB TRY ILS EGP THB PLN XAF PTE'.split(' ');
const NUMBERING = Intl.supportedValuesOf('numberingSystem');

const locale = () => json(pick(LOCALES) + (random(12) === 0 ? `-u-nu-${pick(NUMBERING)}` : ''));
const value = () => pick([
  () => String(random(12)), () => String(random(130)), () => String(random(30000)), () => String(random(1e9)), () => `-${random(1e6)}`,
  () => `${random(1e5)}.${random(1e4)}`, () => `${random(3)}.${random(100)}`, () => `-${random(1e4)}.${random(100)}`, () => `${random(100)}e${random(20)}`,
  () => `${1 + random(9)}e-${random(9)}`, () => `${random(1e9)}${random(1e9)}n`, () => pick(['0', '-0', 'NaN', 'Infinity', '-Infinity', '1', '-1', '2', '1.0', '1.5', '1e6', '1e15', '999999', '0.5', '1e21']),
  () => `'${random(1e9)}.${random(1e9)}0'`, () => `${10 ** random(16)}`,
])();
const given = (options) => Object.fromEntries(Object.entries(options).filter(([, text]) => text !== undefined));
const some = (chance, make) => (random(100) < chance ? make() : undefined);
const digits = () => {
  switch (random(9)) {
    case 0: { const least = random(4); return { minimumFractionDigits: least, maximumFractionDigits: least + random(4) }; }
    case 1: { const least = 1 + random(4); return { minimumSignificantDigits: least, maximumSignificantDigits: least + random(4) }; }
    case 2: return { maximumFractionDigits: random(4), minimumIntegerDigits: 1 + random(4) };
    case 3: return { maximumSignificantDigits: 1 + random(5), maximumFractionDigits: random(4), roundingPriority: pick(['auto', 'morePrecision', 'lessPrecision']) };
    case 4: return { maximumFractionDigits: 2, minimumFractionDigits: 2, roundingIncrement: pick([1, 2, 5, 10, 25, 50]), roundingMode: pick(['ceil', 'floor', 'expand', 'trunc', 'halfCeil', 'halfFloor', 'halfExpand', 'halfTrunc', 'halfEven']) };
    default: return {};
  }
};
const numberOptions = () => {
  const style = pick(['decimal', 'percent', 'currency', 'currency', 'unit', 'unit', undefined]);
  const unit = () => (random(4) ? pick(UNITS) : `${pick(UNITS)}-per-${pick(UNITS)}`);
  return json(given({
    style,
    currency: style === 'currency' ? pick(random(2) ? COMMON : CURRENCIES) : undefined,
    currencyDisplay: some(50, () => pick(['symbol', 'narrowSymbol', 'code', 'name'])),
    currencySign: some(30, () => pick(['standard', 'accounting'])),
    unit: style === 'unit' ? unit() : undefined,
    unitDisplay: some(60, () => pick(['short', 'narrow', 'long'])),
    notation: some(40, () => pick(['standard', 'scientific', 'engineering', 'compact', 'compact', 'compact'])),
    compactDisplay: some(50, () => pick(['short', 'long'])),
    signDisplay: some(30, () => pick(['auto', 'never', 'always', 'exceptZero', 'negative'])),
    useGrouping: some(25, () => pick(['min2', 'auto', 'always', true, false])),
    numberingSystem: some(8, () => pick(NUMBERING)),
    trailingZeroDisplay: some(8, () => 'stripIfInteger'),
    ...digits(),
  }));
};
const parts = "map((p) => p.type + ':' + p.value).join('|')";
const format = () => `new Intl.NumberFormat(${locale()}, ${numberOptions()})`;
const text = () => json(pick(['a', 'b', 'x y', 'уголь', 'iglesia', 'ocho', 'hielo', 'Oslo', 'יום', 'abc', '1', 'ไทย', 'hora', 'y', 'é', '2,5']));
const code = (length) => Array.from({ length }, () => String.fromCharCode(97 + random(26))).join('');
const REGIONS = [...Array(26)].flatMap((_, a) => [...Array(26)].map((_, b) => String.fromCharCode(65 + a, 65 + b)));
const LANGUAGES = [...LOCALES, 'en-US-u-ca-buddhist', 'zh-Hans', 'zh-Hant', 'zh-Hans-CN', 'sr-Cyrl', 'pt-BR', 'es-419', 'de-Latn-DE', 'ar-001', 'fr-CA-u-nu-latn', 'uz-Arab', 'nds-NL', 'ro-MD', 'az-Arab', 'sl-rozaj', 'ca-valencia', 'sw-CD', 'zh-Hant-TW', 'mn-Mong', 'hi-Latn', 'root', 'und'];
const SCRIPTS = 'Latn Cyrl Arab Hans Hant Jpan Kore Grek Hebr Deva Thai Mong Zxxx Zzzz Brai Aran Geor Egyp'.split(' ');
const CALENDARS = [...Intl.supportedValuesOf('calendar'), 'gregorian', 'islamic-rgsa', 'foo'];
const FIELDS = 'era year quarter month weekOfYear weekday day dayPeriod hour minute second timeZoneName'.split(' ');
const SENTENCES = ["Hello, world! It's 3.14 o'clock. Dr. Who?", 'a\u0301e\u0302 👨‍👩‍👧 🇩🇪🇫🇷 👍🏽 क्षि', 'Ça va? Oui\u2026 «non».\r\nNew line.\tTab', 'can\'t won\'t 1,000.50 $5 foo_bar a.b.c e-mail', 'שלום עולם. ar"ab', 'Привет, мир! Как дела?', 'Hi\ud83d there', '한국어 문장입니다. 좋아요!', '', 'x', '  ', 'नमस्ते दुनिया। कैसे हो?', 'U.S.A. is. big (really). Yes', "l'heure d'été", 'Γειά σου; Ναι.', '\u200dA\ufe0f\u20e3 1\ufe0f\u20e3'];

export default {
  number: () => pick([
    () => `${format()}.format(${value()})`,
    () => `${format()}.format(${value()})`,
    () => `${format()}.formatToParts(${value()}).${parts}`,
    () => `${format()}.resolvedOptions()`,
    () => `(${value()}).toLocaleString(${locale()}, ${numberOptions()})`,
  ])(),
  numberRange: () => `${format()}.${random(2) ? `formatRange(${value()}, ${value()})` : `formatRangeToParts(${value()}, ${value()}).map((p) => p.type + ':' + p.value + ':' + p.source).join('|')`}`,
  plural: () => {
    const rules = `new Intl.PluralRules(${locale()}, ${json(given({ type: some(60, () => pick(['cardinal', 'ordinal'])), ...digits() }))})`;
    return pick([() => `${rules}.select(${value()})`, () => `${rules}.select(${value()})`, () => `${rules}.selectRange(${value()}, ${value()})`, () => `${rules}.resolvedOptions()`])();
  },
  list: () => {
    const list = `new Intl.ListFormat(${locale()}, ${json(given({ type: some(70, () => pick(['conjunction', 'disjunction', 'unit'])), style: some(70, () => pick(['long', 'short', 'narrow'])) }))})`;
    const items = `[${Array.from({ length: random(5) }, text).join(', ')}]`;
    return pick([() => `${list}.format(${items})`, () => `${list}.formatToParts(${items}).${parts}`, () => `${list}.resolvedOptions()`])();
  },
  relative: () => {
    const unit = json(pick(['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'days', 'years']));
    const number = pick([value, () => String(random(5) - 2), () => '-0'])().replace(/n$/, '');
    const relative = `new Intl.RelativeTimeFormat(${locale()}, ${json(given({ style: some(70, () => pick(['long', 'short', 'narrow'])), numeric: some(60, () => pick(['always', 'auto'])), numberingSystem: some(8, () => pick(NUMBERING)) }))})`;
    return pick([() => `${relative}.format(${number}, ${unit})`, () => `${relative}.formatToParts(${number}, ${unit}).map((p) => p.type + ':' + p.value + ':' + p.unit).join('|')`, () => `${relative}.resolvedOptions()`])();
  },
  names: () => {
    const [type, asked] = pick([
      ['language', () => pick([() => pick(LANGUAGES), () => pick(LANGUAGES), () => code(2), () => code(3), () => `${pick(LANGUAGES).slice(0, 2)}-${pick(REGIONS)}`, () => `${code(2)}-${pick(SCRIPTS)}`])()],
      ['region', () => pick([() => pick(REGIONS), () => pick(['001', '150', '419', '999', 'EU', 'UN', 'XK', 'us', 'gb'])])()],
      ['script', () => pick([() => pick(SCRIPTS), () => code(4)])()],
      ['currency', () => pick([() => pick(CURRENCIES), () => pick(COMMON), () => code(3)])()],
      ['calendar', () => pick(CALENDARS)],
      ['dateTimeField', () => pick(FIELDS)],
    ]);
    const options = given({ type, style: some(70, () => pick(['long', 'short', 'narrow'])), fallback: some(30, () => pick(['code', 'none'])), languageDisplay: some(50, () => pick(['dialect', 'standard'])) });
    return `new Intl.DisplayNames(${locale()}, ${json(options)}).${random(10) ? `of(${json(asked())})` : 'resolvedOptions()'}`;
  },
  segment: () => {
    const sentence = Array.from({ length: 1 + random(3) }, () => pick(SENTENCES)).join(pick(['', ' ']));
    const segments = `new Intl.Segmenter(${locale()}, ${json(given({ granularity: some(80, () => pick(['grapheme', 'word', 'sentence'])) }))}).segment(${json(sentence)})`;
    return random(3) ? `[...${segments}].map((s) => s.segment + ':' + s.index + ':' + s.isWordLike).join('|')` : `${segments}.containing(${random(20)})`;
  },
};

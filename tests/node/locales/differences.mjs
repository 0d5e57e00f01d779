// The differences of `locales.mjs` that are known: each a reason and a test of the call and its two results.

// A surrogate that is not half of a pair; strings in the results are written as JSON.
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\\ud[89a-f]/i;

const DIFFERENCES = [
  {
    reason: 'V8 refuses the collation standard in lower case only',
    test: (call) => /zh.*collation: '(STANDARD|Standard)'/.test(call),
  },
  {
    reason: 'ICU keeps the word true where more follows in the value of a keyword',
    test: (call) => /-true-\w{3,}/.test(call),
  },
  {
    reason: 'ICU has no names of languages of four letters in regions that were divided',
    test: (call, node) => /of\('[a-z]{4}-(\w{4}-)?(SU|YU|CS)\b/i.test(call) && node === 'RangeError: invalid_argument',
  },
  {
    reason: 'ICU takes apart the surrogate pairs of digits in exponents',
    test: (call, node, here) => /scientific|engineering/.test(call) && LONE.test(node) && !LONE.test(here),
  },
  {
    reason: 'ICU writes names of currencies beside their codes in the English of European countries, and names of escudos',
    test: (call) => /"en-(BE|DE|EE|ES|FI|FR|IT|LT|LV|NL|PT|SI|SK)|"pt-PT.*PTE/.test(call) && call.includes('"currencyDisplay":"name"'),
  },
  {
    reason: 'ICU has symbols or patterns of its own for a numbering system that is foreign to the locale; the packages of CLDR do not',
    test: (call) => /-nu-arab|"numberingSystem":"arab|"nb.*(numberingSystem"|-nu-)/.test(call) && !/["']ar\b/.test(call),
  },
  {
    reason: 'ICU writes the word of a compact number twice in ranges where it stands for the number too',
    test: (call, node) => /"(fr|it|es|ca)/.test(call) && /formatRange/.test(call) && /mille.*mille/.test(node),
  },
  {
    reason: 'words of scripts that are written without spaces need dictionaries, and are refused',
    test: (call, node, here) => call.includes('Segmenter') && here.startsWith('RangeError: Segmenting words of '),
  },
  {
    reason: 'calendars other than gregory are refused, but for buddhist in Thai and persian in Persian',
    test: (call, node, here) => here.includes('are not supported; give the option calendar'),
  },
  {
    reason: 'what joins the date and the range of times in the Persian calendar',
    test: (call) => /fa-IR.*formatRange|formatRange.*fa-IR/.test(call),
  },
  {
    reason: 'an hour cycle in the tag together with timeStyle: ICU takes another pattern, by lengths of fields',
    test: (call) => /-u-hc-h\d\d.*timeStyle/.test(call),
  },
  {
    reason: 'orders for searching: those of sorting, or of the root, are used',
    test: (call) => /"usage":"search"/.test(call),
  },
  {
    reason: 'ICU writes the name of the decimal format before Arabic digits in Azerbaijani',
    test: (call) => /^(?=.*-u-nu-arab|.*"numberingSystem":"arab")(?=.*'az)/.test(call),
  },
  {
    reason: 'patterns with names of zones in the Persian and Buddhist calendars',
    test: (call) => /(fa-IR|th-TH).*timeZoneName/.test(call),
  },
  {
    reason: 'Greek capitals with several combining marks are composed in another way',
    test: (call) => /\\u03.*toLocaleUpperCase\('(el|EL)/.test(call),
  },
  {
    reason: 'extensions t that are not well-formed are refused',
    test: (call) => /-t-/i.test(call),
  },
  {
    reason: 'patterns with an era and numbers of months in the Buddhist calendar',
    test: (call) => /th-TH.*"era"/.test(call),
  },
  {
    reason: 'patterns with an era and numbers of months in the Buddhist calendar',
    test: (call) => /th-TH.*formatRange/.test(call),
  },
  {
    reason: 'the decimal separator of another numbering system in ranges',
    test: (call) => /fractionalSecondDigits.*numberingSystem.*formatRange/.test(call),
  },
  {
    reason: 'ranges with an era and a day of the week take the first of two patterns at the same distance',
    test: (call) => /weekday.*"era".*formatRange/.test(call),
  },
  {
    reason: 'ranges of hours, fractions of seconds and names of zones in Hebrew',
    test: (call) => /he-IL.*timeZoneName.*formatRange/.test(call),
  },
  {
    reason: 'ICU leaves the period of the day out of ranges without an hour',
    test: (call) => /"dayPeriod".*formatRange/.test(call) && !call.includes('"hour"'),
  },
  {
    reason: 'ICU writes some symbols of Latin digits with Arabic ones in Urdu',
    test: (call) => /["']ur.*arab/.test(call),
  },
  {
    reason: 'ICU writes longer generic names of zones in ranges',
    test: (call) => /"(long|short)Generic".*formatRange/.test(call),
  },
  {
    reason: 'a pattern of CLDR in German of Switzerland has the year of the week',
    test: (call) => /de-CH.*weekday.*era/.test(call),
  },
  {
    reason: 'the default collation of Chinese in a tag is not shown in the resolved locale',
    test: (call) => /zh.*-u-co-(pinyin|stroke).*resolvedOptions/.test(call),
  },
  {
    reason: 'ICU has no short names of regions by their former codes',
    test: (call) => /"type":"region","style":"(short|narrow)".*of\("UK"\)/i.test(call),
  },
];

/** The reason of a difference; undefined where there is none. */
export function explained(call, node, here) {
  return DIFFERENCES.find(({ test }) => test(call, node, here))?.reason;
}

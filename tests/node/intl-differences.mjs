// The differences of `intl.mjs` that are known: each a reason and a test of the call and its two results.

// A surrogate that is not half of a pair; strings in the results are written as JSON.
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\\ud[89a-f]/i;

const DIFFERENCES = [
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
    test: (call) => /"sv.*arabext|"nb.*(numberingSystem"|-nu-)|"(ko|zh-TW|zh-Hant-HK).*arab"/.test(call),
  },
  {
    reason: 'ICU writes the word of a compact number twice in ranges where it stands for the number too',
    test: (call, node) => /"(fr|it|es|ca)/.test(call) && /formatRange/.test(call) && /mille.*mille/.test(node),
  },
  {
    reason: 'words of scripts that are written without spaces need dictionaries, and are refused',
    test: (call, node, here) => call.includes('Segmenter') && here.startsWith('RangeError: Segmenting words of '),
  },
];

/** The reason of a difference; undefined where there is none. */
export function explained(call, node, here) {
  return DIFFERENCES.find(({ test }) => test(call, node, here))?.reason;
}

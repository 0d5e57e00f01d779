// Random pairs of strings in the order of `localeCompare` and `Intl.Collator`.
const LETTERS = ['a', 'A', 'b', 'B', 'z', 'Z', 'é', 'É', 'e', 'ä', 'ö', 'ß', 'ss', 'æ', 'ø', 'å', 'ñ', 'n', 'ç', 'c', 'œ', 'ł', 'đ', 'þ', 'ı', 'I', 'i', 'İ'];
const OTHERS = [' ', '-', '_', ',', '.', '/', "'", '"', '(', ')', '@', '#', '$', '€', '%', '+', '=', '<', '~', '`', '^', '|', '\\n', '\\t', '\\u0000', '\\u00a0', '\\u0301', '\\u0308', '\\u200d', '’', '–', '…', '·', '©'];
const DIGITS = ['0', '1', '2', '9', '10', '02', '٣', '²', '½', '①'];
const SCRIPTS = ['α', 'Ω', 'ж', 'Я', 'א', 'ع', 'か', 'カ', 'ア', '漢', '字', '한', '가', '\u{1f600}', '\u{10000}', '\\ud800', 'ａ', 'ﬁ', 'ǆ', 'ก', 'अ', '𝐀'];

export function expression({ random, below, pick }) {
  const odd = random() < 0.3;
  const piece = () => (random() < 0.6 ? pick(LETTERS) : random() < 0.5 ? pick(OTHERS) : random() < 0.6 || !odd ? pick(DIGITS) : pick(SCRIPTS));
  const make = () => Array.from({ length: below(6) }, piece);
  const first = make();
  const second = random() < 0.5 ? make() : first.map((text) => (random() < 0.25 ? piece() : random() < 0.2 ? text.toUpperCase().replace('\\U', '\\u').replace('\\N', '\\n').replace('\\T', '\\t') : text));
  const [a, b] = [first, second].map((list) => `"${list.join('').replaceAll('"', '\\"')}"`);
  const options = [];
  if (random() < 0.3) options.push(`numeric: ${random() < 0.8}`);
  if (random() < 0.4) options.push(`sensitivity: '${pick(['base', 'accent', 'case', 'variant'])}'`);
  if (random() < 0.3) options.push(`caseFirst: '${pick(['upper', 'lower', 'false'])}'`);
  if (random() < 0.2) options.push(`ignorePunctuation: ${random() < 0.7}`);
  if (options.length === 0) return `${a}.localeCompare(${b})`;
  const text = `{${options.join(', ')}}`;
  return random() < 0.5 ? `${a}.localeCompare(${b}, 'en-US', ${text})` : `new Intl.Collator('en-US', ${text}).compare(${a}, ${b})`;
}

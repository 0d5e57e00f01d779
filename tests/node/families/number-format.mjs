// Random numbers with random options of `Intl.NumberFormat`.
const CURRENCIES = ['USD', 'EUR', 'JPY', 'CHF', 'KWD', 'INR', 'XAF', 'usd', 'XYZ', 'CNY', 'SEK', 'BRL', 'DEM', 'XCG'];
const UNITS = ['meter', 'kilometer-per-hour', 'mile-per-hour', 'liter', 'celsius', 'percent', 'day', 'inch', 'byte', 'megabyte-per-second',
  'fluid-ounce', 'percent-per-day', 'acre-per-gallon', 'year', 'pound-per-acre', 'foot', 'fahrenheit'];
const OPTIONS = {
  notation: ['standard', 'standard', 'compact', 'compact', 'scientific', 'engineering'],
  compactDisplay: ['short', 'long'],
  signDisplay: ['auto', 'always', 'never', 'exceptZero', 'negative'],
  useGrouping: [true, false, 'min2', 'auto', 'always'],
  currencyDisplay: ['symbol', 'narrowSymbol', 'code', 'name'],
  currencySign: ['standard', 'accounting', 'accounting'],
  unitDisplay: ['short', 'narrow', 'long'],
  roundingMode: ['ceil', 'floor', 'expand', 'trunc', 'halfCeil', 'halfFloor', 'halfExpand', 'halfTrunc', 'halfEven'],
  roundingPriority: ['auto', 'morePrecision', 'lessPrecision'],
  roundingIncrement: [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000],
  trailingZeroDisplay: ['auto', 'stripIfInteger'],
  minimumIntegerDigits: [1, 2, 3, 5, 21],
  minimumFractionDigits: [0, 1, 2, 5, 20],
  maximumFractionDigits: [0, 1, 2, 3, 8, 20],
  minimumSignificantDigits: [1, 2, 5, 21],
  maximumSignificantDigits: [1, 2, 3, 6, 21],
};
const ODD = ["'x'", 'null', '0', '-1', '1.5', 'NaN', "''", '[]', '{}', "'2'", 'true', 'undefined'];
const METHODS = ['format', 'format', 'format', 'formatToParts', 'formatRange', 'resolvedOptions', 'toLocaleString'];

export function expression({ random, below, pick }) {
  const entries = [];
  const style = pick(['decimal', 'percent', 'currency', 'unit', 'currency', undefined]);
  if (style) entries.push(`style: '${style}'`);
  if (style === 'currency' || random() < 0.02) entries.push(`currency: '${pick(CURRENCIES)}'`);
  if (style === 'unit' || random() < 0.02) entries.push(`unit: '${pick(UNITS)}'`);
  const names = Object.keys(OPTIONS);
  for (let left = below(6); left > 0; left--) {
    const name = pick(names);
    if (entries.some((entry) => entry.startsWith(`${name}:`))) continue;
    if (name === 'roundingIncrement' && random() < 0.7) {
      const digits = below(4);
      for (const other of ['minimumFractionDigits', 'maximumFractionDigits']) {
        const at = entries.findIndex((entry) => entry.startsWith(other));
        if (at >= 0) entries.splice(at, 1);
        entries.push(`${other}: ${digits}`);
      }
    }
    const value = random() < 0.02 ? pick(ODD) : JSON.stringify(pick(OPTIONS[name]));
    entries.push(`${name}: ${value}`);
  }
  const options = `{${entries.join(', ')}}`;
  const method = pick(METHODS);
  if (method === 'resolvedOptions') return `new Intl.NumberFormat('en-US', ${options}).resolvedOptions()`;
  if (method === 'toLocaleString') return `(${number()}).toLocaleString('en-US', ${options})`;
  const values = method === 'formatRange' ? `${number()}, ${number()}` : number();
  return `new Intl.NumberFormat('en-US', ${options}).${method}(${values})`;

  function number() {
    const digits = () => Array.from({ length: 1 + below(18) }, () => below(10)).join('');
    const sign = pick(['', '', '-']);
    switch (below(9)) {
      case 0: return `${sign}${pick(['0', '1', '0.5', '1.5', '2.5', '9.995', '999.5', '999999', '1e21', '1e-7', 'Infinity', 'NaN', '100', '0.05', '1000', '1e15'])}`;
      case 1: return `${sign}${below(10)}`;
      case 2: return `${sign}${below(100000) / 100}`;
      case 3: return `${sign}${random() * 10 ** (below(40) - 20)}`;
      case 4: return `${sign}${BigInt(digits())}n`;
      case 5: return `'${sign}${digits()}.${digits()}'`;
      case 6: return `${sign}${below(1e9)}`;
      case 7: return `${sign}${below(20) / 2}`;
      default: return `${sign}${(below(2000) / 8) * 10 ** below(8)}`;
    }
  }
}

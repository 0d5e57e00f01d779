// Random calls of formats of dates.
import { pick, random } from './random.mjs';
import { localeOf, maybe } from './tags.mjs';

// Node aborts where the parts of a pattern of the Persian or Buddhist calendar have an offset.
const ABORTS = /fa-IR|th-TH|persian|buddhist/;

const texts = ['narrow', 'short', 'long'];
const twoDigits = ['numeric', '2-digit'];
const options = {
  weekday: texts, era: texts, year: twoDigits, month: [...twoDigits, ...texts], day: twoDigits, dayPeriod: texts, hour: twoDigits, minute: twoDigits, second: twoDigits,
  fractionalSecondDigits: [1, 2, 3], timeZoneName: ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric'],
};
const ZONES = ['America/New_York', 'America/Los_Angeles', 'Europe/London', 'Europe/Berlin', 'Europe/Paris', 'Europe/Stockholm', 'Europe/Moscow', 'Asia/Tokyo', 'Asia/Kolkata', 'Asia/Shanghai', 'Asia/Kathmandu', 'Australia/Sydney', 'America/Sao_Paulo', 'America/St_Johns', 'Africa/Cairo', 'Pacific/Auckland', 'Asia/Dubai', 'Asia/Tehran', 'Asia/Bangkok', 'Europe/Istanbul', 'Africa/Lagos', 'Asia/Singapore', 'UTC', 'GMT', 'Etc/GMT+5', 'America/Argentina/Buenos_Aires'];
// Zones whose rules differ between the two databases, because one is newer.
const UNEQUAL = /Edmonton|Winnipeg|Inuvik|Yellowknife|Regina|Rainy|Resolute|Rankin|Casablanca|Aaiun|Vancouver|Cambridge/;
const ALL_ZONES = [...Intl.supportedValuesOf('timeZone').filter((zone) => !UNEQUAL.test(zone)), 'EST', 'US/Pacific', 'Europe/Kyiv', 'utc'];
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
  () => {
    const format = `f('${localeOf()}', ${formatOptions()})`;
    return ABORTS.test(format) ? `${format}.format(${moment()})` : `${format}.formatToParts(${moment()}).map((p) => p.type + ':' + p.value).join('|')`;
  },
  () => `f('${localeOf()}', ${formatOptions()}).resolvedOptions()`,
  () => `new Date(${moment()}).${pick(['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'])}('${localeOf()}'${maybe(70, () => `, ${formatOptions()}`)})`,
])();
const rangeCase = () => {
  const from = moment();
  const to = from + pick([1, 1000, 6e4, 36e5, 432e5, 864e5, 864e6, 3e9, 3e10, 1e11]) * random(30);
  const format = `f('${localeOf()}', ${formatOptions()})`;
  // It aborts in the parts of some ranges with periods of the day too.
  return `${format}.${ABORTS.test(format) || format.includes('dayPeriod') ? 'formatRange' : pick(['formatRange', 'formatRangeToParts'])}(${from}, ${to})`;
};

// Names of zones are in English only.
const zoneCase = () => {
  const moment = Date.UTC(pick([1880, 1970, 2020]) + random(58), random(12), random(31), random(24), pick([0, 30, random(60)]), random(60));
  const options = { timeZone: pick(ALL_ZONES), timeZoneName: pick(['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric']), [pick(['year', 'month', 'hour'])]: 'numeric' };
  return `f('en-US', ${JSON.stringify(options)}).format(${moment})`;
};

export default { date: dateCase, dateRange: rangeCase, zone: zoneCase };

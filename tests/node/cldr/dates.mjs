#!/usr/bin/env node
// Writes runtime/intl/src/data/dates.bin: names and patterns of dates. Lists are joined by `|`. Keys:
//   CALENDAR/months/{format,stand-alone}/{wide,abbreviated,narrow}   and days, from Sunday
//   CALENDAR/periods/{format,stand-alone}/WIDTH                      in the order of PERIODS, empty where there is none
//   CALENDAR/eras/{names,abbr,narrow}
//   CALENDAR/{date,time,glue,at}/{full,long,medium,short}
//   CALENDAR/available/SKELETON, CALENDAR/append/FIELD
//   CALENDAR/interval/SKELETON/FIELD, CALENDAR/interval/fallback
//   fields/FIELD      names of fields, for `append`
//   decimal/SYSTEM    the decimal separator by numbering system
//   periods           rules of parts of the day: NAME=FROM-BEFORE in minutes, or NAME=AT
import { main, supplemental } from './cldr.mjs';
import { writePack } from './pack.mjs';

const WIDTHS = ['wide', 'abbreviated', 'narrow'];
const STYLES = ['full', 'long', 'medium', 'short'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const PERIODS = ['am', 'pm', 'midnight', 'noon', 'morning1', 'morning2', 'afternoon1', 'afternoon2', 'evening1', 'evening2', 'night1', 'night2'];
const rules = supplemental('dayPeriods').dayPeriodRuleSet;
const ruleKeys = new Set(Object.keys(rules).map((tag) => (tag === 'root' ? 'und' : tag)));

const minutes = (time) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
function ruleText(locale) {
  let at = locale;
  while (at && !ruleKeys.has(at)) at = at.slice(0, Math.max(0, at.lastIndexOf('-')));
  const own = rules[at] ?? {};
  return Object.entries(own).map(([name, rule]) => {
    const short = name.replace('-type-', '').replace(/^dayPeriodRule/, '');
    return `${short}=${rule._at ? minutes(rule._at) : `${minutes(rule._from)}-${minutes(rule._before)}`}`;
  }).join('|');
}

// Names that no package has: months and eras of other calendars, as Node has them.
const PROBES = { long: 'wide', short: 'abbreviated', narrow: 'narrow' };
const ERAS = { long: 'names', short: 'abbr', narrow: 'narrow' };
function* ofNode(locale) {
  const own = CALENDARS.find(([, , , language]) => language === locale.split('-')[0]);
  if (!own) return;
  const part = (calendar, type, options, time) =>
    new Intl.DateTimeFormat(`${locale}-u-ca-${calendar}-nu-latn`, { timeZone: 'UTC', ...options }).formatToParts(time).find((one) => one.type === type)?.value ?? '';
  const now = Date.UTC(2024, 0, 15);
  const [calendar] = own;
  for (const [width, key] of Object.entries(ERAS)) yield [`${calendar}/eras/${key}`, part(calendar, 'era', { era: width, year: 'numeric' }, now)];
  if (calendar !== 'persian') return;
  const firsts = Array.from({ length: 12 }, (_, index) => Date.UTC(2024, 2, 28) + index * 30.5 * 86_400_000);
  for (const [width, key] of Object.entries(PROBES)) {
    yield [`persian/months/format/${key}`, firsts.map((time) => part('persian', 'month', { month: width, day: 'numeric' }, time)).join('|')];
    yield [`persian/months/stand-alone/${key}`, firsts.map((time) => part('persian', 'month', { month: width }, time)).join('|')];
  }
}

const isWanted = (skeleton) => !/-|[QwW]/.test(skeleton);

// The calendars by the languages whose dates are in them; the packages are older than the rest, so what joins dates and
// times is that of Node.
const CALENDARS = [['gregorian', 'dates-full', 'ca-gregorian'], ['buddhist', 'cal-buddhist-full', 'ca-buddhist', 'th'], ['persian', 'cal-persian-full', 'ca-persian', 'fa']];

function glueOf(locale, calendar, dateStyle) {
  const format = (options) => new Intl.DateTimeFormat(`${locale}-u-ca-${calendar}`, { timeZone: 'UTC', ...options }).format(0);
  const [date, time, both] = [{ dateStyle }, { timeStyle: 'short' }, { dateStyle, timeStyle: 'short' }].map(format);
  const between = both.slice(date.length, both.length - time.length);
  if (date + between + time !== both) throw new Error(`no glue in ${both}`);
  return `{1}${between}{0}`;
}

function* texts(locale) {
  for (const [name, source, file, language] of CALENDARS) {
    if (language && locale.split('-')[0] !== language) continue;
    const data = main(source, locale, file)?.dates.calendars[name];
    if (!data) continue;
    if (name === 'gregorian') {
      for (const form of ['format', 'stand-alone']) {
        for (const width of WIDTHS) {
          yield [`${name}/months/${form}/${width}`, Array.from({ length: 12 }, (_, index) => data.months[form][width][index + 1]).join('|')];
          yield [`${name}/days/${form}/${width}`, DAYS.map((day) => data.days[form][width][day]).join('|')];
          yield [`${name}/periods/${form}/${width}`, PERIODS.map((period) => data.dayPeriods[form][width][period] ?? '').join('|')];
        }
      }
    }
    if (name === 'gregorian') for (const [key, from] of [['names', 'eraNames'], ['abbr', 'eraAbbr'], ['narrow', 'eraNarrow']]) yield [`${name}/eras/${key}`, [data.eras[from][0], data.eras[from][1]].join('|')];
    const text = (value) => (typeof value === 'object' ? value._value : value);
    for (const style of STYLES) {
      yield [`${name}/date/${style}`, text(data.dateFormats[style])];
      if (name === 'gregorian') yield [`${name}/time/${style}`, text(data.timeFormats[style])];
      yield [`${name}/glue/${style}`, language ? glueOf(locale, name, style) : text(data.dateTimeFormats[style])];
      if (!language) yield [`${name}/at/${style}`, text(data['dateTimeFormats-atTime']?.standard[style])];
    }
    // What a calendar does not have is that of the generic one.
    const generic = language ? main('dates-full', locale, 'ca-generic').dates.calendars.generic.dateTimeFormats : {};
    for (const [skeleton, pattern] of Object.entries({ ...generic.availableFormats, ...data.dateTimeFormats.availableFormats })) if (isWanted(skeleton)) yield [`${name}/available/${skeleton}`, pattern];
    if (name === 'gregorian') for (const [field, pattern] of Object.entries(data.dateTimeFormats.appendItems)) yield [`append/${field}`, pattern];
    for (const [skeleton, patterns] of Object.entries({ ...generic.intervalFormats, ...data.dateTimeFormats.intervalFormats })) {
      if (skeleton === 'intervalFormatFallback') yield [`${name}/interval/fallback`, patterns];
      else if (isWanted(skeleton)) for (const [field, pattern] of Object.entries(patterns)) if (isWanted(field)) yield [`${name}/interval/${skeleton}/${field}`, pattern];
    }
  }
  const fields = main('dates-full', locale, 'dateFields')?.dates.fields;
  for (const field of ['era', 'year', 'quarter', 'month', 'week', 'weekday', 'day', 'dayperiod', 'hour', 'minute', 'second', 'zone']) yield [`fields/${field}`, fields?.[field].displayName];
  const numbers = main('numbers-full', locale, 'numbers')?.numbers ?? {};
  // As the root of ICU has them.
  yield ['decimal/arab', '٫'];
  yield ['decimal/arabext', '٫'];
  for (const [key, symbols] of Object.entries(numbers)) if (key.startsWith('symbols-numberSystem-')) yield [`decimal/${key.slice(21)}`, symbols.decimal];
  yield ['periods', ruleText(locale)];
  yield* ofNode(locale);
}

writePack('dates.bin', texts);

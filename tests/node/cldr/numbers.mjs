#!/usr/bin/env node
// Writes the packs of CLDR that numbers, lists, relative times and display names are formatted with:
// numbers.bin, currencies.bin, units.bin, phrases.bin, names.bin and rules.bin in runtime/intl/src/data.
import { main as file, supplemental } from './cldr.mjs'
import { writePack } from './pack.mjs'

const main = (pack, tag, name) => file(`${pack}-full`, tag, name)

/** Separates the fields of a value. */
const FIELD = '\u001f'
/** Letters of the plural categories, and of the values that compact patterns name. */
const PLURALS = { zero: 'z', one: 'o', two: 't', few: 'f', many: 'm', other: 'x', 0: '0', 1: '1' }
const SIMPLE_UNITS = new Set(
  `acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit gigabyte gram hectare hour inch
  kilobit kilobyte kilogram kilometer liter megabit megabyte meter microsecond mile mile-scandinavian milliliter
  millimeter millisecond minute month nanosecond ounce percent petabyte pound second stone terabit terabyte week yard
  year`.split(/\s+/),
)

/** The forms of a text by plural category, each with its letter; all others are as `other`. */
function plurals(object, prefix) {
  const forms = Object.entries(PLURALS).map(([name, letter]) => [letter, object[`${prefix}-count-${name}`]])
  const other = object[`${prefix}-count-other`]
  return forms.filter(([letter, text]) => text !== undefined && (letter === 'x' || text !== other))
    .map(([letter, text]) => letter + text).join(FIELD)
}

/** The patterns of a compact notation: the number of zeros, the letter of the category, the pattern. */
function compact(patterns) {
  const out = []
  for (const [name, pattern] of Object.entries(patterns ?? {})) {
    const [, power, category, alt] = /^(1(?:0*))-count-([a-z0-9]+)(-alt-.*)?$/.exec(name) ?? []
    if (!power || alt) continue
    const other = patterns[`${power}-count-other`]
    if (category !== 'other' && pattern === other) continue
    out.push(String.fromCharCode(64 + power.length - 1) + PLURALS[category] + pattern)
  }
  return out.join(FIELD)
}

function numbers(tag) {
  const out = {}
  const data = main('numbers', tag, 'numbers').numbers
  out.ns = data.defaultNumberingSystem
  out.native = data.otherNumberingSystems.native
  out.group = data.minimumGroupingDigits
  for (const [key, symbols] of Object.entries(data)) {
    const system = /^symbols-numberSystem-(\w+)$/.exec(key)?.[1]
    if (!system) continue
    const of = (kind) => data[`${kind}-numberSystem-${system}`]
    out[`s/${system}`] = [
      symbols.decimal, symbols.group, symbols.minusSign, symbols.plusSign, symbols.percentSign, symbols.exponential,
      symbols.infinity, symbols.nan, symbols.approximatelySign, symbols.currencyDecimal ?? '', symbols.currencyGroup ?? '',
    ].join(FIELD)
    const [decimal, currency] = [of('decimalFormats'), of('currencyFormats')]
    out[`d/${system}`] = decimal.standard
    out[`p/${system}`] = of('percentFormats').standard
    out[`e/${system}`] = of('scientificFormats').standard
    out[`r/${system}`] = of('miscPatterns').range
    out[`c/${system}`] = currency.standard
    out[`a/${system}`] = currency.accounting
    out[`u/${system}`] = plurals(currency, 'unitPattern')
    out[`cs/${system}`] = compact(decimal.short?.decimalFormat)
    out[`cl/${system}`] = compact(decimal.long?.decimalFormat)
    out[`cc/${system}`] = compact(currency.short?.standard)
  }
  if (tag !== 'und') asInNode(tag, out)
  if (/^ur\b/.test(tag)) out['s/arab'] ??= ROOT['s/arab'].replace('٫', '،').replace('٬', ',')
  return { ...ROOT, ...out }
}

/** Some locales have separators and, in English, patterns of their own for currencies, which the packages leave out. */
function asInNode(tag, out) {
  const part = (options, type) => new Intl.NumberFormat(tag, options).formatToParts(12345678.5).find((part) => part.type === type).value
  const currency = { style: 'currency', currency: 'XAG', currencyDisplay: 'code', minimumFractionDigits: 1 }
  const symbols = out[`s/${out.ns}`].split(FIELD)
  const own = [part(currency, 'decimal'), part(currency, 'group')]
  if (own[0] === (symbols[9] || symbols[0]) && own[1] === (symbols[10] || symbols[1])) return
  out[`s/${out.ns}`] = [...symbols.slice(0, 9), ...own].join(FIELD)
  if (!tag.startsWith('en-')) return
  out['c/latn'] = '¤#,##0.00'
  out['a/latn'] = out['c/latn']
}

/** What the root has for two more numbering systems; the packages leave it out. */
const ROOT = {
  's/arab': ['٫', '٬', '\u061c-', '\u061c+', '٪\u061c', 'اس', '∞', 'NaN', '~', '', ''].join(FIELD),
  'p/arab': '#,##0%',
  'c/arab': '#,##0.00\u00a0¤',
  'a/arab': '#,##0.00\u00a0¤',
  's/arabext': ['٫', '٬', '\u200e-\u200e', '\u200e+\u200e', '٪', '×۱۰^', '∞', 'NaN', '~', '', ''].join(FIELD),
}

function currencies(tag) {
  const out = {}
  for (const [code, data] of Object.entries(main('numbers', tag, 'currencies').numbers.currencies)) {
    const symbol = data.symbol ?? code
    const fields = [symbol, data['symbol-alt-narrow'] ?? symbol, data.decimal ?? '', data.group ?? '', data.pattern ?? '']
    const symbols = fields.join(FIELD)
    if (symbols !== [code, code, '', '', ''].join(FIELD)) out[`s/${code}`] = symbols
    if (data.displayName && data.displayName !== code) {
      const forms = plurals(data, 'displayName')
      out[`n/${code}`] = forms === `x${data.displayName}` ? data.displayName : data.displayName + FIELD + forms
    }
  }
  return out
}

const COMPONENTS = supplemental('grammaticalFeatures').grammaticalData

/** What a language derives the part behind "per" with: its case and plural category. */
function denominator(tag) {
  const language = COMPONENTS[tag.split('-')[0]] ?? {}
  const of = (feature) => {
    const key = `deriveComponent-feature-${feature}-structure-per`
    return (language[key] ?? COMPONENTS.und[key])._value1
  }
  return { grammaticalCase: of('case'), plural: of('plural') }
}

function units(tag) {
  const out = {}
  const data = main('units', tag, 'units').units
  const { grammaticalCase, plural } = denominator(tag)
  for (const [width, letter] of [['short', 's'], ['narrow', 'n'], ['long', 'l']]) {
    out[`${letter}/per`] = data[width].per.compoundUnitPattern
    for (const [name, unit] of Object.entries(data[width])) {
      const id = name.replace(/^[a-z]+-/, '')
      const [first, second] = id.split('-per-')
      if (!SIMPLE_UNITS.has(first) || (second !== undefined && !SIMPLE_UNITS.has(second))) continue
      if (unit['unitPattern-count-other'] === undefined) continue
      // The last two: the pattern behind another unit, and the form for it where there is none.
      const form = unit[`${grammaticalCase}-count-${plural}`] ?? unit[`${grammaticalCase}-count-other`]
        ?? unit[`unitPattern-count-${plural}`] ?? unit['unitPattern-count-other']
      const behind = unit.perUnitPattern !== undefined ? 'p' + unit.perUnitPattern : 'q' + form
      out[`${letter}/${id}`] = plurals(unit, 'unitPattern') + FIELD + behind
    }
  }
  return out
}

function phrases(tag) {
  const out = {}
  for (const [key, list] of Object.entries(main('misc', tag, 'listPatterns').listPatterns)) {
    const [, type, width] = /^listPattern-type-(standard|or|unit)(?:-(short|narrow))?$/.exec(key)
    out[`l/${type[0]}${(width ?? 'long')[0]}`] = [list[2], list.start, list.middle, list.end].join(FIELD)
  }
  for (const [key, field] of Object.entries(main('dates', tag, 'dateFields').dates.fields)) {
    const [, name, width] = /^([a-zA-Z]+)(?:-(short|narrow))?$/.exec(key)
    const w = (width ?? 'long')[0]
    if (field.displayName) out[`f/${name.toLowerCase()}/${w}`] = field.displayName
    const future = field['relativeTime-type-future']
    if (!future || /^(sun|mon|tue|wed|thu|fri|sat)$/.test(name)) continue
    out[`+/${name}/${w}`] = plurals(future, 'relativeTimePattern')
    out[`-/${name}/${w}`] = plurals(field['relativeTime-type-past'], 'relativeTimePattern')
    const words = Object.entries(field).filter(([key]) => key.startsWith('relative-type-'))
    out[`=/${name}/${w}`] = words.map(([key, text]) => `${key.slice('relative-type-'.length)} ${text}`).join(FIELD)
  }
  return out
}

function names(tag) {
  const out = {}
  const put = (letter, table) => {
    for (const [key, name] of Object.entries(table ?? {})) {
      const [, code, alt] = /^(.*?)(?:-alt-(.*))?$/.exec(key)
      if (alt && !['short', 'long', 'stand-alone', 'variant'].includes(alt)) continue
      if (name === code && !alt && letter === 'L') continue
      out[`${letter}${alt ? { short: 's', long: 'l', 'stand-alone': 'a', variant: 'v' }[alt] : ''}/${code}`] = name
    }
  }
  const of = (file, key) => main('localenames', tag, file)?.localeDisplayNames?.[key]
  put('L', of('languages', 'languages'))
  put('T', of('territories', 'territories'))
  put('S', of('scripts', 'scripts'))
  put('V', of('variants', 'variants'))
  const display = main('localenames', tag, 'localeDisplayNames').localeDisplayNames
  const patterns = display.localeDisplayPattern
  out.pattern = [patterns.localePattern, patterns.localeSeparator, patterns.localeKeyTypePattern].join(FIELD)
  put('C', display.types?.calendar)
  return out
}

/** Rules of plurals, by language: without the samples. */
function rules() {
  const out = {}
  for (const [letter, file, type] of [['c', 'plurals', 'cardinal'], ['o', 'ordinals', 'ordinal']]) {
    for (const [tag, table] of Object.entries(supplemental(file)[`plurals-type-${type}`])) {
      const list = Object.entries(table).map(([key, rule]) => [key.slice('pluralRule-count-'.length), rule.split('@')[0].trim()])
      // ICU tries them in alphabetical order.
      list.sort(([a], [b]) => (a < b ? -1 : 1))
      out[`${letter}/${tag}`] = list.map(([name, rule]) => PLURALS[name] + rule).join(FIELD)
    }
  }
  for (const [tag, table] of Object.entries(supplemental('pluralRanges').plurals)) {
    out[`r/${tag}`] = Object.entries(table).map(([key, category]) => {
      const [, start, end] = /^pluralRange-start-(\w+)-end-(\w+)$/.exec(key)
      return PLURALS[start] + PLURALS[end] + PLURALS[category]
    }).join('')
  }
  const fractions = supplemental('currencyData').currencyData.fractions
  for (const [code, data] of Object.entries(fractions)) {
    if (code !== 'DEFAULT' && data._digits !== '2') out[`f/${code}`] = data._digits
  }
  for (const [name, system] of Object.entries(supplemental('numberingSystems').numberingSystems)) {
    if (system._type === 'numeric') out[`n/${name}`] = system._digits
  }
  return out
}

writePack('numbers.bin', numbers)
writePack('currencies.bin', currencies)
writePack('units.bin', units)
writePack('phrases.bin', phrases)
writePack('names.bin', names)
writePack('rules.bin', rules, ['und'])

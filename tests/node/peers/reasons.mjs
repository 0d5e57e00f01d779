// The reasons of the differences of `peers.mjs` that are known: each with a test of the script, of what Node says and of what
// we say. `node` and `here` are the first log entries, results or errors that differ, `before` is what was logged before them.

// What Node 20 does not have, and AgentScript has.
const NEWER = 'union|intersection|difference|symmetricDifference|isSubsetOf|isSupersetOf|isDisjointFrom|withResolvers|groupBy|fromAsync|fromBase64|fromHex|toBase64|toHex|setFromBase64|setFromHex|parse';
// What Node has, and AgentScript has not.
const MISSING = /(?:ReferenceError: |\[)?([\w$]+) is not defined|(?:[\w$.]*\.)?(getOwnPropertySymbols|supportedValuesOf|Locale|DurationFormat|captureStackTrace|compile|generateKey|importKey|exportKey|sign|verify|encrypt|decrypt|deriveBits|deriveKey|wrapKey|unwrapKey|f16round|sumPrecise|try) is not a (?:function|constructor)/;

function isMissing(text) {
  const [, global, method] = MISSING.exec(text) ?? [];
  return method !== undefined || (global !== undefined && global in globalThis) || /^(toString|valueOf|hasOwnProperty|propertyIsEnumerable|isPrototypeOf|toLocaleString|constructor)$/.test(global ?? '');
}

const REASONS = [
  {
    reason: 'time, and random numbers',
    test: ({ script }) => /Math\.random|Date\.now|new Date\(\)|new Date;|performance\.now|randomUUID|getRandomValues|\bDate\(\)/.test(script),
  },
  {
    reason: 'Node 20 has no such method',
    test: ({ node, script }) => new RegExp(`\\b(${NEWER}) is not a function`).test(node) || new RegExp(`\\.(withResolvers|fromAsync|groupBy|(to|from)(Base64|Hex)|URL\\.parse|${NEWER.split('|').slice(0, 7).join('|')})\\b`).test(script),
  },
  {
    reason: 'a global or a method of Node that AgentScript does not have',
    test: ({ here, script }) => isMissing(here) || /\b(un)?escape *\(|captureStackTrace|getOwnPropertySymbols|\.compile\(|crypto\.subtle\.\w+Key|\bDOMException\b/.test(script),
  },
  {
    reason: 'limits: depth of calls, nesting, patterns, timers, sizes',
    test: ({ node, here, script }) => /Maximum call stack|nested too deeply|Maximum BigInt size|Invalid array length|Invalid string length|timers can be pending|too large|too long|too many|Set maximum size/i.test(`${node} ${here}`) || node === 'does not end' || /\.repeat\(0x8/.test(script),
  },
  {
    reason: 'stacks, and what V8 adds to errors',
    test: ({ node, here, script }) => /stackTraceLimit|prepareStackTrace|\.stack\b/.test(script) || node.includes('stackTraceLimit') || /\[(ERR_\w+)\]/.test(here) && !node.includes('[ERR_'),
  },
  {
    reason: 'functions have no properties caller and arguments',
    test: ({ node, script }) => /'caller', 'callee', and 'arguments'/.test(node) || /\.(caller|arguments)\b|\["(caller|arguments)"\]/.test(script),
  },
  {
    reason: 'there are no wrapper objects',
    test: ({ node, script }) => /\[(Number|String|Boolean|BigInt|Symbol): /.test(node) || /\bObject *\((?! *\))/.test(script),
  },
  {
    reason: 'RegExp.$1 and its kin',
    test: ({ script }) => /RegExp(\.(\$|lastMatch|lastParen|leftContext|rightContext|input)|\[)/.test(script),
  },
  {
    reason: 'constructors of scripts, which need `this`, do not exist',
    test: ({ script }) => /\b(Array|Promise)\.(of|from|resolve|reject|all|race|any)\.(call|apply|bind)\b|\.of = Array\.of/.test(script),
  },
  {
    reason: 'calendars, dictionaries and time zones that docs/language.md names',
    test: ({ here }) => /in the calendar '.*' are not supported|needs a dictionary|Invalid time zone specified: US\/Pacific-New/.test(here),
  },
  {
    reason: 'the wording of patterns',
    test: ({ node, here }) => /Cannot destructure property|\(\w+ , \w+\) is not iterable/.test(node) && /Cannot destructure|is not iterable/.test(here),
  },
  {
    reason: '`this` is refused, and `__proto__` leads to no prototype',
    test: ({ script, before }) => /\bdelete this\b/.test(script) || /JSON\.stringify\(.*\["__proto__"/.test(before),
  },
  {
    reason: 'functions have no property prototype, and what is refused is no property of Object',
    test: ({ script, before }) => /\b(hasOwnProperty|hasOwn|in|getOwnPropertyNames)\b/.test(`${before}`) && /'(prototype|setPrototypeOf|getPrototypeOf|defineProperty|defineProperties|getOwnPropertyDescriptors?)'/.test(script),
  },
  {
    reason: 'the last digits of cosh, sinh, cbrt, sin, cos and tan',
    test: ({ node, here, script }) => /Math\.(cosh|sinh|cbrt|sin|cos|tan)\b/.test(script) && withoutLastDigits(node) === withoutLastDigits(here),
  },
  {
    reason: 'HTML comments are a syntax error',
    test: ({ here, script }) => here.includes('SYNTAX_ERROR') && /<!--|-->/.test(script),
  },
  {
    reason: 'types of Flow, which are skipped unread',
    test: ({ node, place }) => node.includes('syntax_error') && /\bflow\b/.test(place),
  },
  {
    reason: 'built-ins are fixed in the process of Node too, which shows',
    test: ({ before, here }) => /\bis(Extensible|Frozen|Sealed)\b/.test(before) || /of function Date\(\)/.test(here),
  },
  {
    reason: '`await` is a keyword in all functions',
    test: ({ here, script }) => here.includes('SYNTAX_ERROR') && /\bawait\b|\\u0077ait/.test(script),
  },
  {
    reason: 'the value of a script that awaits: the sandbox takes that of the last expression at the top',
    test: ({ node, here, script }) => node.startsWith('result ') && here.startsWith('result ') && /\bawait\b/.test(script),
  },
  {
    reason: 'the sandbox has a console and a performance of its own',
    test: ({ node, here, script }) => /console\.\w+ is not a function/.test(node) || /\bperformance\b/.test(script) || /\bconsole\b(?!\.\w+\()/.test(script.replace(/\(\.\.\.values\) => \{ console.*|^function .*console.*$/gm, '')) || /\[object console\]/.test(here),
  },
];

function withoutLastDigits(text) {
  return text.replace(/(\.\d{12})\d+/g, '$1');
}

/** The reason of a difference; undefined if there is none. */
export function reasonOf(difference) {
  return REASONS.find(({ test }) => test(difference))?.reason;
}

// The reasons of the differences of `peers.mjs` that are known: each with a test of the script, of what Node says and of what
// we say. `node` and `here` are the first log entries, results or errors that differ, `before` is what was logged before them:
// the text of the statement that logs them, where it is known.
import { withoutNumbers } from './compare.mjs';

// What Node 20 does not have, and AgentScript has.
const NEWER = 'union|intersection|difference|symmetricDifference|isSubsetOf|isSupersetOf|isDisjointFrom|withResolvers|groupBy|fromAsync|fromBase64|fromHex|toBase64|toHex|setFromBase64|setFromHex|parse|try|isError|escape|f16round|sumPrecise|transfer|transferToFixedLength|detached|bytes';
const IS_NEWER = new RegExp(`\\b(${NEWER}) is not a function`);
const NAMES_NEWER = new RegExp(`\\b(${NEWER.replace('|parse', '|URL\\.parse')})\\b`);
// Functions of another engine are not there.
const NOTHING = /\b(undefined|false|null)\b/;

const CLOCK = /Math\.random|Date\.now|new Date\(\)|new Date\b(?!\()|performance\.now|randomUUID|getRandomValues|\bDate\(\)/;

// Properties of functions and of built-ins that AgentScript refuses, so that objects do not have them.
const REFUSED = "prototype|setPrototypeOf|getPrototypeOf|defineProperty|defineProperties|getOwnPropertyDescriptors?";
const ASKS_FOR_REFUSED = new RegExp(`\\b(hasOwnProperty|hasOwn|includes)\\((\\w+, *)?['"](${REFUSED})['"]`);

const REASONS = [
  {
    reason: 'time, and random numbers',
    test: ({ node, here, script, before }) => CLOCK.test(script) && (withoutNumbers(node) === withoutNumbers(here) || /[tT]ime\b|[rR]andom/.test(`${before} ${node}`)),
  },
  {
    reason: 'Node 20 has no such method',
    test: ({ node, before, script }) => IS_NEWER.test(node) || NAMES_NEWER.test(before || script) && NOTHING.test(node) || /ab\[method\] is not a function/.test(node),
  },
  {
    reason: 'limits: depth of calls, nesting, patterns, timers, sizes',
    test: ({ node, here }) => /Maximum call stack|nested too deeply|Maximum BigInt size|Invalid array length|Invalid string length|timers can be pending|too large|too long|too many|Set maximum size/i.test(`${node} ${here}`) || node === 'does not end' || node.length > 10_000,
  },
  {
    reason: 'a script that finds out how deep calls, or how large patterns can be',
    test: ({ place }) => /stack-overflow|tail-recursion|reclimit|regress-475705|regress-280769|JDK-8204290/.test(place),
  },
  {
    reason: 'Error.stackTraceLimit, which is an enumerable property of Error in Node',
    test: ({ node, script }) => node.includes('stackTraceLimit') || /for \(\w+ in y\)/.test(script) && /test\(Error\)/.test(script),
  },
  {
    reason: 'the code in the stack of an error of Node, which is not there where stacks have no frames',
    test: ({ node, here }) => here.includes(' [ERR_') && here.replace(/ \[ERR_\w+\]/, '') === node,
  },
  {
    reason: 'functions have no properties caller and arguments',
    test: ({ node, before }) => /'caller', 'callee', and 'arguments'|set "caller"/.test(node) || /\.(caller|arguments)\b|\["(caller|arguments)"\]|protoArguments/.test(before),
  },
  {
    reason: 'functions have no property prototype, and what is refused is no property of Object',
    test: ({ node, here, script, before }) => ASKS_FOR_REFUSED.test(`${before} ${script}`) && node.replace(/\btrue\b(?!.*\btrue\b)/, 'false') === here || node.replace(/,\s*'prototype'/g, '') === here.replace(/,\s*'prototype'/g, ''),
  },
  {
    reason: '`__proto__` is no property of objects',
    test: ({ before }) => /JSON\.stringify\(.*\["__proto__"/.test(before),
  },
  {
    reason: 'there are no wrapper objects',
    test: ({ node, here, script }) => /\[(Number|String|Boolean|BigInt|Symbol): /.test(node) || /Cannot create property '\w+' on (number|string|boolean|bigint) /.test(here) || /\bObject *\((?! *\))|Object\.assign\((true|1|'')/.test(script) && /\b(true|false|object|entry object)\b/.test(`${node} ${here}`),
  },
  {
    reason: 'RegExp.$1 and its kin',
    test: ({ before, here, script }) => /RegExp(\.(\$|lastMatch|lastParen|leftContext|rightContext|input)|\[)/.test(before) || /Cannot add property \$/.test(here) || /RegExp\.hasOwnProperty/.test(script) || /^.*'\$1','\$2'/.test(before),
  },
  {
    reason: 'constructors of scripts, which need `this`, do not exist',
    test: ({ before, script }) => /\b(all|allSettled|any|race|reject|resolve|of|from)\.(call|apply|bind)\b|\.(of|from) = Array\.(of|from)|\.of\(/.test(before) || /\b(of|from)\.(call|apply)\((\w+, |function)/.test(script),
  },
  {
    reason: 'built-ins take no properties; those of Node are fixed in its process too, which shows',
    test: ({ node, here, before }) => /\bis(Extensible|Frozen|Sealed)\b/.test(before) || /Cannot (add property|assign to read only property|delete property) .*(of function|not extensible)/.test(here) && !/Cannot create/.test(node),
  },
  {
    reason: 'symbols, and the numbers of DOMException, are not listed',
    test: ({ before, script }) => /getOwnPropertySymbols|INDEX_SIZE_ERR=1/.test(before) || /Object\.(keys|values|entries)\(DOMException\)|in DOMException\)|URLSearchParams\(DOMException\)/.test(script),
  },
  {
    reason: 'windows-1252, which Node 20 decodes as iso-8859-1',
    test: ({ script }) => /windows-1252|latin1|iso-8859-1|TextDecoder\(['"](ascii|us-ascii)/i.test(script),
  },
  {
    reason: 'functions of Node that are written in JavaScript, and those of the sandbox, show their text',
    test: ({ node, here, before }) => /native code/.test(`${node} ${here} ${before}`) && /\btoString\b/.test(before),
  },
  {
    reason: 'the sandbox has a `performance` and a `console` of its own',
    test: ({ here, script }) => /Object\.keys\(performance\)|\b[ab] = console;/.test(script) || here.includes('Object [console] {}'),
  },
  {
    reason: 'errors that are their own cause: V8 cannot read the copy that it has written',
    test: ({ node }) => node.includes('Unable to deserialize cloned data'),
  },
  {
    reason: 'the sandbox does not see that digests fail',
    test: ({ node, here }) => node.startsWith('result ') && here.includes("'SubtleCrypto'"),
  },
  {
    reason: 'Object.fromEntries closes an iterator in V8 when `next` throws',
    test: ({ before, script }) => /Object\.fromEntries/.test(script) && before === 'assert (returned);',
  },
  {
    reason: 'errors of ICU in tags that are valid',
    test: ({ node }) => /Internal error\. Icu error|Invalid language tag: ja-latn-hepburn-heploc-alalc97/.test(node),
  },
  {
    reason: 'calendars and dictionaries that docs/reference/language.md names',
    test: ({ here }) => /in the calendar '.*' are not supported|needs a dictionary/.test(here),
  },
  {
    reason: 'the wording of patterns that meet nothing, where V8 shows what is around it',
    test: ({ node, here }) => /Cannot destructure property '.*' of|Cannot read properties of (undefined|null)(?! \()|\(\w+ , \w+\) is not iterable/.test(node) && /Cannot destructure '|is not iterable \(cannot read property Symbol/.test(here),
  },
  {
    reason: 'the wording of calls of what a function expression gives, where V8 shows the literals in the function',
    test: ({ node, here }) => node !== here && node.replace(/(\(intermediate value\))+/g, '$1') === here && here.includes('is not a function'),
  },
  {
    reason: 'the last digits of sin, cos and tan',
    test: ({ node, here, before }) => /Math\.(sin|cos|tan)\b/.test(before) && withoutLastDigits(node) === withoutLastDigits(here),
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
    reason: '`await` is a keyword in all functions',
    test: ({ here, script }) => here.includes('SYNTAX_ERROR') && /\bawait\b|\\u0077ait/.test(script),
  },
  {
    reason: 'the value of a script that awaits: the sandbox takes that of the last expression at the top',
    test: ({ node, here, script }) => node.startsWith('result ') && here.startsWith('result ') && /\bawait\b/.test(script),
  },
];

function withoutLastDigits(text) {
  return text.replace(/(\.\d{12})\d+/g, '$1');
}

/** The reason of a difference; undefined if there is none. */
export function reasonOf(difference) {
  const known = { ...difference, before: difference.before ?? '' };
  return REASONS.find(({ test }) => test(known))?.reason;
}

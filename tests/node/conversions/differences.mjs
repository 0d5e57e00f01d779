// Differences from Node that are known: each a reason and a test of the built-in, the two outcomes, and the call.
const DIFFERENCES = [
  {
    reason: 'there are no wrapper objects',
    test: (name, node, here, call) => /\b(Number|String|BigInt|Boolean)\{/.test(node) || /wrapper objects/.test(here) || /^Array#/.test(name) && /on\((5|'abc'), /.test(call),
  },
  {
    reason: 'a call of what is no function through `call.call` or `apply.call` is not named by its source',
    test: (name, node, here) => /^Function#(call|apply)$/.test(name) && /^TypeError: (value is not a function|CreateListFromArrayLike)/.test(here),
  },
  {
    reason: 'calendars other than gregory are refused, but for buddhist in Thai and persian in Persian',
    test: (name, node, here) => here.includes('are not supported; give the option calendar'),
  },
  {
    reason: 'V8 takes an empty tag in short texts and numbers without looking at it',
    test: (name, node, here) => /^(String#localeCompare|(Number|BigInt)#toLocaleString)$/.test(name) && here.startsWith('RangeError: Incorrect locale information provided'),
  },
  {
    reason: '`new Headers` reads all of an iterable before the first pair of it',
    test: (name, node, here, call) => name === 'new Headers' && call.includes('new Headers(iterable('),
  },
  {
    reason: 'what V8 says of methods of URLs without a receiver',
    test: (name, node) => /^URL#/.test(name) && node.includes("(reading 'URL')"),
  },
  {
    reason: 'the limit of memory',
    test: (name, node, here) => here.includes('The script exceeded its memory limit'),
  },
  {
    reason: 'V8 closes the iterator of `Object.fromEntries` whose `next` has thrown',
    test: (name, node, here) => name === 'Object.fromEntries' && node.endsWith('a.next a.return') && here.endsWith('a.next'),
  },
  {
    reason: 'V8 has no name for a `Uint8Array` of a resizable buffer in messages',
    test: (name, node, here) => here.includes('[object Uint8Array] is not') && node.includes('[object Object] is not'),
  },
  {
    reason: 'which of several functions in a value `structuredClone` names',
    test: (name, node, here) => name === 'structuredClone' && [node, here].every((text) => text.includes('could not be cloned')),
  },
];

/** Why a case differs; nothing where it should not. */
export const explained = (name, node, here, call) => DIFFERENCES.find(({ test }) => test(name, node, here, call))?.reason;

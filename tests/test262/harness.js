// The functions that the tests of test262 call, without what AgentScript refuses: `this`, `constructor` and
// prototypes. Errors are compared by `instanceof` and by name.
const Test262Error = (message = '') => Object.assign(new Error(message), { name: 'Test262Error' });
Test262Error.thrower = (message) => { throw Test262Error(message); };
const $DONOTEVALUATE = () => { throw 'Test262: This statement should not be evaluated.'; };

const $text = (value) => {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (Object.is(value, -0)) return '-0';
  try {
    return String(value);
  } catch {
    return typeof value;
  }
};

const assert = (value, message) => {
  if (value !== true) throw Test262Error(message ?? `Expected true but got ${$text(value)}`);
};
assert._isSameValue = (a, b) => Object.is(a, b);
assert._toString = $text;
assert.sameValue = (actual, expected, message = '') => {
  if (!Object.is(actual, expected)) throw Test262Error(`${message} Expected SameValue(«${$text(actual)}», «${$text(expected)}») to be true`);
};
assert.notSameValue = (actual, unexpected, message = '') => {
  if (Object.is(actual, unexpected)) throw Test262Error(`${message} Expected SameValue(«${$text(actual)}», «${$text(unexpected)}») to be false`);
};
assert.throws = (type, run, message = '') => {
  try {
    run();
  } catch (thrown) {
    $checkError(type, thrown, message);
    return;
  }
  throw Test262Error(`${message} Expected a ${type.name} to be thrown but no exception was thrown at all`);
};
assert.compareArray = (actual, expected, message = '') => {
  assert(compareArray(actual, expected), `Actual ${$text(actual)} and expected ${$text(expected)} should have the same contents. ${message}`);
};

const $checkError = (type, thrown, message) => {
  if (typeof thrown !== 'object' || thrown === null) throw Test262Error(`${message} Thrown value was not an object!`);
  const fits = type === Test262Error ? thrown.name === 'Test262Error' : thrown instanceof type && thrown.name === type.name;
  if (!fits) throw Test262Error(`${message} Expected a ${type.name} but got ${$text(thrown)}`);
};

const compareArray = (a, b) => {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
};
compareArray.format = (list) => `[${Array.from(list, String).join(', ')}]`;

// The end of an asynchronous test.
let $end;
const $ended = new Promise((resolve, reject) => {
  $end = (error) => (error === undefined || error === null || error === false ? resolve() : reject(error));
});
const $DONE = (error) => { $end(error); };
const asyncTest = (run) => {
  try {
    run().then(() => $DONE(), (error) => $DONE(error ?? Test262Error('rejected')));
  } catch (error) {
    $DONE(error);
  }
};
assert.throwsAsync = async (type, run, message = '') => {
  try {
    await run();
  } catch (thrown) {
    $checkError(type, thrown, message);
    return;
  }
  throw Test262Error(`${message} Expected a ${type.name} to be thrown asynchronously but no exception was thrown at all`);
};
const checkSequence = (sequence, message = 'Steps in unexpected sequence:') => {
  sequence.forEach((value, index) => assert.sameValue(value, index + 1, message));
  return true;
};
const checkSettledPromises = (settled, expected, message = 'Settled promises') => {
  assert.sameValue(settled.length, expected.length, `${message}: length`);
  settled.forEach(({ status, value, reason }, index) => {
    assert.sameValue(status, expected[index].status, `${message}: status of ${index}`);
    if (status === 'fulfilled') assert.sameValue(value, expected[index].value, `${message}: value of ${index}`);
    else assert.sameValue(reason, expected[index].reason, `${message}: reason of ${index}`);
  });
};

// What `verifyProperty` and its kin check where only values can be read.
const $keys = (object) => Object.getOwnPropertyNames(object);
const verifyProperty = (object, name, description) => {
  if (description === undefined) {
    assert(!$keys(object).includes(String(name)), `${String(name)} should not be a property`);
    return true;
  }
  assert(Object.hasOwn(object, name), `${String(name)} should be an own property`);
  if (Object.hasOwn(description, 'value')) assert.sameValue(object[name], description.value, `value of ${String(name)}`);
  return true;
};
// Attributes are seen by what a write, `delete` or `Object.keys` does.
const $changes = (change) => {
  try {
    change();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
};
const verifyNotWritable = (object, name, verified = name, value = 'unlikelyValue') => {
  const before = object[verified];
  $changes(() => { object[name] = value; });
  assert.sameValue(object[verified], before, `${String(name)} should not be writable`);
};
const verifyWritable = (object, name, verified = name, value = 'unlikelyValue') => {
  object[name] = value;
  assert.sameValue(object[verified], value, `${String(name)} should be writable`);
};
const verifyNotConfigurable = (object, name) => {
  $changes(() => { delete object[name]; });
  assert(Object.hasOwn(object, name), `${String(name)} should not be configurable`);
};
const verifyConfigurable = (object, name) => {
  delete object[name];
  assert(!Object.hasOwn(object, name), `${String(name)} should be configurable`);
};
const verifyNotEnumerable = (object, name) => assert(!Object.keys(object).includes(String(name)), `${String(name)} should not be enumerable`);
function verifyEnumerable(object, name) { assert(Object.keys(object).includes(String(name)), `${String(name)} should be enumerable`); }
const assertToStringOrNativeFunction = (fn, expected = undefined) => assert.sameValue(`${fn}`, expected ?? `${fn}`);
const verifyEqualTo = (object, name, value) => assert.sameValue(object[name], value, `value of ${String(name)}`);

// Dates, characters, escapes.
const date_1899_end = -2208988800001;
const date_1900_start = -2208988800000;
const date_1969_end = -1;
const date_1970_start = 0;
const date_1999_end = 946684799999;
const date_2000_start = 946684800000;
const date_2099_end = 4102444799999;
const date_2100_start = 4102444800000;
const start_of_time = -8.64e15;
const end_of_time = 8.64e15;
const decimalToHexString = (n) => (n < 0 ? n + 0x100000000 : n).toString(16).toUpperCase().padStart(4, '0');
const decimalToPercentHexString = (n) => `%${n.toString(16).toUpperCase().padStart(2, '0')}`;
const buildString = ({ loneCodePoints = [], ranges = [] }) => {
  let result = String.fromCodePoint(...loneCodePoints);
  for (const [start, end] of ranges) {
    for (let from = start; from <= end; from += 10000) {
      const points = [];
      for (let point = from; point <= end && point < from + 10000; point += 1) points.push(point);
      result += String.fromCodePoint(...points);
    }
  }
  return result;
};
const testPropertyEscapes = (regExp, string, expression) => {
  if (!regExp.test(string)) {
    for (const symbol of string) assert(regExp.test(symbol), `\`${expression}\` should match U+${symbol.codePointAt(0).toString(16)}`);
  }
};
const testExtendedCharacterClass = ({ regExp, expression, matchStrings, nonMatchStrings = [] }) => {
  for (const text of matchStrings) assert(regExp.test(text), `\`${expression}\` should match ${$text(text)}`);
  for (const text of nonMatchStrings) assert(!regExp.test(text), `\`${expression}\` should not match ${$text(text)}`);
};
const testPropertyOfStrings = testExtendedCharacterClass;
const matchValidator = (expectedEntries, expectedIndex, expectedInput) => (match) => {
  assert.compareArray([...match], expectedEntries, 'Match entries');
  assert.sameValue(match.index, expectedIndex, 'Match index');
  assert.sameValue(match.input, expectedInput, 'Match input');
};

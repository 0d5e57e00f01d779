// The functions that tests of other engines call. They judge nothing: they log what they get, and what a function returns
// or throws, so that the logs of two engines can be compared. `accepted.mjs` takes the declarations that a program uses.

function $tried(kind, run, values = []) {
  if (typeof run !== 'function') return console.log(kind, run);
  try {
    console.log(kind, run(...values));
  } catch (error) {
    console.log(kind, 'throws', error);
  }
}
async function $awaited(kind, work) {
  try {
    console.log(kind, await (typeof work === 'function' ? work() : work));
  } catch (error) {
    console.log(kind, 'rejects', error);
  }
}
function $run(name, run, ...values) {
  console.log('test', name);
  try {
    const done = run(...values);
    if (done instanceof Promise) done.then(() => { console.log('passed', name); }, (error) => { console.log('failed', name, error); });
  } catch (error) {
    console.log('failed', name, error);
  }
}

// Output
function print(...values) { console.log(...values); }
function alert(...values) { console.log(...values); }
function log(...values) { console.log(...values); }
function write(...values) { console.log(...values); }
function writeln(...values) { console.log(...values); }
function gc() {}
function noInline() {}
function drainMicrotasks() {}
var WScript = { Echo: (...values) => { console.log(...values); }, SetTimeout: (run, ms) => setTimeout(run, ms), ClearTimeout: (id) => clearTimeout(id), Arguments: [], Quit: () => {} };
function quit() {}
var std = { gc: () => {} };

// Assertions
function assert(...values) { console.log('assert', ...values); }
assert._isSameValue = (a, b) => Object.is(a, b);
assert.sameValue = (...values) => { console.log('sameValue', ...values); };
assert.notSameValue = (...values) => { console.log('notSameValue', ...values); };
assert.compareArray = (...values) => { console.log('compareArray', ...values); };
assert.areEqual = (...values) => { console.log('areEqual', ...values); };
assert.areNotEqual = (...values) => { console.log('areNotEqual', ...values); };
assert.areAlmostEqual = (...values) => { console.log('areAlmostEqual', ...values); };
assert.isTrue = (...values) => { console.log('isTrue', ...values); };
assert.isFalse = (...values) => { console.log('isFalse', ...values); };
assert.isUndefined = (...values) => { console.log('isUndefined', ...values); };
assert.isNotUndefined = (...values) => { console.log('isNotUndefined', ...values); };
assert.strictEqual = (...values) => { console.log('strictEqual', ...values); };
assert.notStrictEqual = (...values) => { console.log('notStrictEqual', ...values); };
assert.equal = (...values) => { console.log('equal', ...values); };
assert.notEqual = (...values) => { console.log('notEqual', ...values); };
assert.deepEqual = (...values) => { console.log('deepEqual', ...values); };
assert.deepStrictEqual = (...values) => { console.log('deepStrictEqual', ...values); };
assert.ok = (...values) => { console.log('ok', ...values); };
assert.fail = (...values) => { console.log('fail', ...values); };
assert.match = (...values) => { console.log('match', ...values); };
assert.throws = (...values) => { $tried('throws', values.find((value) => typeof value === 'function' && !/Error$/.test(value.name))); };
assert.doesNotThrow = (run) => { $tried('doesNotThrow', run); };
assert.noThrow = (run) => { $tried('noThrow', run); };
function assertEquals(...values) { console.log('assertEquals', ...values); }
function assertNotEquals(...values) { console.log('assertNotEquals', ...values); }
function assertStrictEquals(...values) { console.log('assertStrictEquals', ...values); }
function assertNotStrictEquals(...values) { console.log('assertNotStrictEquals', ...values); }
function assertStringIncludes(...values) { console.log('assertStringIncludes', ...values); }
function assertMatch(...values) { console.log('assertMatch', ...values); }
function assertSame(...values) { console.log('assertSame', ...values); }
function assertNotSame(...values) { console.log('assertNotSame', ...values); }
function assertTrue(...values) { console.log('assertTrue', ...values); }
function assertFalse(...values) { console.log('assertFalse', ...values); }
function assertNull(...values) { console.log('assertNull', ...values); }
function assertNotNull(...values) { console.log('assertNotNull', ...values); }
function assertUndefined(...values) { console.log('assertUndefined', ...values); }
function assertNotUndefined(...values) { console.log('assertNotUndefined', ...values); }
function assertArrayEquals(...values) { console.log('assertArrayEquals', ...values); }
function assertArray(...values) { console.log('assertArray', ...values); }
function assertPropertiesEqual(...values) { console.log('assertPropertiesEqual', ...values); }
function assertToStringEquals(...values) { console.log('assertToStringEquals', ...values); }
function assertEqualsDelta(...values) { console.log('assertEqualsDelta', ...values); }
function assertContains(...values) { console.log('assertContains', ...values); }
function assertInstanceof(...values) { console.log('assertInstanceof', ...values); }
function assertUnreachable(...values) { console.log('assertUnreachable', ...values); }
function assertEqual(...values) { console.log('assertEqual', ...values); }
function assertNotEqual(...values) { console.log('assertNotEqual', ...values); }
function assertNaN(...values) { console.log('assertNaN', ...values); }
function assertThrows(run) { $tried('assertThrows', run); }
function assertThrowsAsync(work) { $awaited('assertThrowsAsync', work); }
function assertPromiseResult(work, good, bad) { work.then(good ?? ((value) => { console.log('resolved', value); }), bad ?? ((error) => { console.log('rejected', error); })); }
function assertThrowsEquals(run) { $tried('assertThrowsEquals', run); }
function assertDoesNotThrow(run) { $tried('assertDoesNotThrow', run); }
function assertRejects(work) { return $awaited('assertRejects', work); }
function assert_throws(type, run) { $tried('assert_throws', typeof type === 'function' && typeof run !== 'function' ? type : run); }
function assertEq(...values) { console.log('assertEq', ...values); }
function assertDeepEq(...values) { console.log('assertDeepEq', ...values); }
function assertNear(...values) { console.log('assertNear', ...values); }
function assertThrowsInstanceOf(run) { $tried('assertThrowsInstanceOf', run); }
function assertThrowsInstanceOfWithMessage(run) { $tried('assertThrowsInstanceOf', run); }
function assertThrowsValue(run) { $tried('assertThrowsValue', run); }
function assertEventuallyEq(work) { return $awaited('assertEventuallyEq', work); }
function assertEventuallyThrows(work) { return $awaited('assertEventuallyThrows', work); }
function compareArray(a, b) { return a.length === b.length && a.every((value, index) => Object.is(value, b[index])); }
function deepEqual(...values) { console.log('deepEqual', ...values); }
function shouldBe(first, ...values) { $tried('shouldBe', first); console.log(...values); }
function shouldBeTrue(first) { $tried('shouldBeTrue', first); }
function shouldBeFalse(first) { $tried('shouldBeFalse', first); }
function shouldBeNull(first) { $tried('shouldBeNull', first); }
function shouldBeUndefined(first) { $tried('shouldBeUndefined', first); }
function shouldBeNaN(first) { $tried('shouldBeNaN', first); }
function shouldBeEqualToString(first, text) { $tried('shouldBeEqualToString', first); console.log(text); }
function shouldBeSyntaxError(first) { console.log('shouldBeSyntaxError', first); }
function shouldEvaluateTo(first, value) { $tried('shouldEvaluateTo', first); console.log(value); }
function testPassed(text) { console.log('testPassed', text); }
function testFailed(text) { console.log('testFailed', text); }
function description(text) { console.log(text); }
function debug(...values) { console.log(...values); }
function shouldThrow(run) { $tried('shouldThrow', run); }
function shouldNotThrow(run) { $tried('shouldNotThrow', run); }
function equal(...values) { console.log('equal', ...values); }
function fail(...values) { console.log('fail', ...values); }
function failWithMessage(...values) { console.log('fail', ...values); }
function ok(...values) { console.log('ok', ...values); }
function stripAnsiCode(text) { return text; }
var Assert = { assertEquals: (...values) => { console.log('assertEquals', ...values); }, assertTrue: (...values) => { console.log('assertTrue', ...values); }, assertFalse: (...values) => { console.log('assertFalse', ...values); }, assertNull: (...values) => { console.log('assertNull', ...values); }, fail: (...values) => { console.log('fail', ...values); } };

// SpiderMonkey
var SECTION = '', VERSION = '', TITLE = '', BUGNUMBER = '', summary = '', gTestcases = [], gTc = 0, expectExitCode = 0;
var TEST_PASSED = 'PASSED!', TEST_FAILED = 'FAILED!', PASSED = 'PASSED!', FAILED = 'FAILED!';
var msPerDay = 86400000, HoursPerDay = 24, MinutesPerHour = 60, SecondsPerMinute = 60, msPerSecond = 1000, msPerMinute = 60000, msPerHour = 3600000, TZ_DIFF = 0, TZ_ADJUST = 0, TIME_1900 = -2208988800000, TIME_2000 = 946684800000, UTC_FEB_29_2000 = 951782400000, UTC_JAN_1_2005 = 1104537600000;
function TestCase(...values) { console.log('TestCase', ...values); return {}; }
function AddTestCase(...values) { console.log('TestCase', ...values); }
function reportCompare(...values) { console.log('reportCompare', ...values); return true; }
function reportMatch(...values) { console.log('reportMatch', ...values); return true; }
function compareSource(...values) { console.log('compareSource', ...values); }
function startTest() {}
function stopTest() {}
function writeHeaderToLog(text) { console.log(text); }
function writeTestCaseResult(...values) { console.log(...values); }
function writeFormattedResult(...values) { console.log(...values); }
function writeLineToLog(text) { console.log(text); }
function printStatus(text) { console.log(text); }
function printBugNumber() {}
function enterFunc() {}
function exitFunc() {}
function inSection(number) { return `Section ${number}`; }
function testRegExp(...values) { console.log('testRegExp', ...values); }
function toPrinted(value) { return String(value); }
function optionsReset() {}
function options() { return ''; }
function version() { return 0; }
function load() {}
function loadRelativeToScript() {}
function expectExit() {}

// ChakraCore
var testRunner = {
  run: (tests) => testRunner.runTests(tests),
  runTests: (tests) => { for (const key of Object.keys(tests)) $run(tests[key].name, tests[key].body); },
  asyncTest: { run: (name, body) => { $run(name, body); } },
  LoadModule: () => {},
};

// QUnit
var $qunit = {
  same: (...values) => { console.log('same', ...values); },
  notSame: (...values) => { console.log('notSame', ...values); },
  deepEqual: (...values) => { console.log('deepEqual', ...values); },
  notDeepEqual: (...values) => { console.log('notDeepEqual', ...values); },
  arrayEqual: (...values) => { console.log('arrayEqual', ...values); },
  epsilon: (...values) => { console.log('epsilon', ...values); },
  closeTo: (...values) => { console.log('closeTo', ...values); },
  equal: (...values) => { console.log('equal', ...values); },
  true: (...values) => { console.log('true', ...values); },
  false: (...values) => { console.log('false', ...values); },
  ok: (...values) => { console.log('ok', ...values); },
  notOk: (...values) => { console.log('notOk', ...values); },
  avoid: (...values) => { console.log('avoid', ...values); },
  required: (...values) => { console.log('required', ...values); },
  skip: () => {},
  async: () => () => { console.log('done'); },
  expect: () => {},
  arity: (f, ...values) => { console.log('arity', f.length, ...values); },
  name: (f, ...values) => { console.log('name', f.name, ...values); },
  isFunction: (f) => { console.log('isFunction', typeof f); },
  looksNative: () => {},
  nonEnumerable: () => {},
  nonConfigurable: () => {},
  enumerable: () => {},
  isIterator: (value) => { console.log('isIterator', typeof value.next); },
  isIterable: (value) => { console.log('isIterable', Symbol.iterator in Object(value)); },
  throws: (run) => { $tried('throws', run); },
  notThrows: (run) => { $tried('notThrows', run); },
};
var QUnit = { module: () => {}, skip: () => {}, test: (name, run) => { $run(name, run, $qunit); } };
var DESCRIPTORS = true, STRICT = true, NATIVE = true, PROTO = true, GLOBAL_THIS = {};
function createIterable(elements, methods = {}) {
  const iterable = { called: false, received: false, [Symbol.iterator]() {
    iterable.received = true;
    let index = 0;
    const next = () => { iterable.called = true; return { value: elements[index++], done: index > elements.length }; };
    return { ...methods, next };
  } };
  return iterable;
}

// Deno
var Deno = { test: (first, second) => { $run(first.name ?? first, second ?? first.fn ?? first); } };

// Web platform tests
var $t = {
  step: (run, ...values) => { $tried('step', () => { run(...values); }); },
  step_func: (run) => (...values) => { $tried('step', () => { run(...values); }); },
  step_func_done: (run) => (...values) => { if (run) $tried('step', () => { run(...values); }); console.log('done'); },
  step_timeout: (run, ms, ...values) => setTimeout(run, ms, ...values),
  step_wait: () => Promise.resolve(),
  unreached_func: (text) => () => { console.log('unreached', text); },
  done: () => { console.log('done'); },
  add_cleanup: () => {},
};
var $queue = Promise.resolve();
function promise_test(run, name) { $queue = $queue.then(() => $awaited(name, () => run($t))); }
function test(first, second) { if (first !== undefined) $run(typeof second === 'string' ? second : undefined, first, $t); }
function async_test(first, second) {
  if (typeof first !== 'function') return $t;
  $run(second, first, $t);
  return $t;
}
function setup(first) { if (typeof first === 'function') first(); }
function done() {}
function step_timeout(run, ms, ...values) { return setTimeout(run, ms, ...values); }
function subsetTest(run, ...values) { return run(...values); }
function subsetTestByKey(key, run, ...values) { return run(...values); }
function shouldRunSubTest() { return true; }
function format_value(value) { return typeof value === 'string' ? JSON.stringify(value) : String(value); }
function generate_tests(run, lists) { for (const [name, ...values] of lists) $run(name, run, ...values); }
function assert_true(...values) { console.log('assert_true', ...values); }
function assert_false(...values) { console.log('assert_false', ...values); }
function assert_equals(...values) { console.log('assert_equals', ...values); }
function assert_not_equals(...values) { console.log('assert_not_equals', ...values); }
function assert_array_equals(...values) { console.log('assert_array_equals', ...values); }
function assert_array_approx_equals(...values) { console.log('assert_array_approx_equals', ...values); }
function assert_approx_equals(...values) { console.log('assert_approx_equals', ...values); }
function assert_object_equals(...values) { console.log('assert_object_equals', ...values); }
function assert_in_array(...values) { console.log('assert_in_array', ...values); }
function assert_less_than(...values) { console.log('assert_less_than', ...values); }
function assert_less_than_equal(...values) { console.log('assert_less_than_equal', ...values); }
function assert_greater_than(...values) { console.log('assert_greater_than', ...values); }
function assert_greater_than_equal(...values) { console.log('assert_greater_than_equal', ...values); }
function assert_between_inclusive(...values) { console.log('assert_between_inclusive', ...values); }
function assert_regexp_match(...values) { console.log('assert_regexp_match', ...values); }
function assert_class_string(value, text) { console.log('assert_class_string', value, text); }
function assert_own_property(value, name) { console.log('assert_own_property', Object.hasOwn(value, name), name); }
function assert_not_own_property(value, name) { console.log('assert_own_property', Object.hasOwn(value, name), name); }
function assert_inherits(value, name) { console.log('assert_inherits', name in value, name); }
function assert_unreached(text) { console.log('assert_unreached', text); }
function assert_throws_js(type, run) { $tried('assert_throws_js', run); }
function assert_throws_dom(name, first, second) { $tried('assert_throws_dom', second ?? first); }
function assert_throws_exactly(value, run) { $tried('assert_throws_exactly', run); }
function promise_rejects_js(t, type, work) { return $awaited('promise_rejects_js', work); }
function promise_rejects_dom(t, name, work) { return $awaited('promise_rejects_dom', work); }
function promise_rejects_exactly(t, value, work) { return $awaited('promise_rejects_exactly', work); }

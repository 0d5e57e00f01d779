//! Texts with gaps: built-in functions with odd arguments, and statements in rare combinations.
//!
//! A gap is `$` and a letter (see [`Writer::gap`]) or a digit, which is a fresh name, the same wherever
//! that digit stands in the text. Nothing here depends on what Node 20 lacks, or on the known differences
//! (`@differs` in the corpus): a pattern with a default first does not meet `undefined`, and what a loop walks
//! over has a name.

use super::{Around, Kind, Writer};

/// Values that functions do not expect.
const ODD: &[&str] = &[
    "undefined", "null", "0", "1", "-1", "NaN", "-0", "2", "3", "0.5", "1.5", "-1.5", "10", "36", "100", "101", "2.5",
    "Infinity", "-Infinity", "1e21", "1e-7", "-1e21", "123456789.123", "0.1", "5e-324", "4294967295", "4294967296",
    "2147483648", "-2147483649", "9007199254740993", "1.7976931348623157e308", "0.000001", "1e20", "''", "' '", "'0'",
    "'1'", "' 12 '", "'0x1f'", "'1e3'", "'abc'", "'-1'", "'1_0'", "'Infinity'", "'é'", "'\\u{1F600}'", "'\\ud83d'",
    "'\\udc00x'", "'ß'", "'İ'", "'ﬁ'", "'a,b,,c'", "'length'", "'toString'", "'\\0'", "'\\u2028'", "true", "false", "[]",
    "[1]", "[1, 2]", "['a']", "[[]]", "[undefined]", "[, 1]", "{}", "{a: 1}", "{length: 2, 0: 'x', 1: 'y'}", "10n", "-3n", "0n",
    "(2n ** 70n)", "({valueOf: () => 3})", "({toString: () => 'ts'})", "({valueOf: () => ({}), toString: () => '7'})",
    "({valueOf: () => ({}), toString: () => ({})})", "({toString: () => { throw new RangeError('odd') }})",
    "Object.create(null)", "new Map([[1, 2], ['a', {}]])", "new Set([1, 'a'])", "((x) => x)", "Math.max", "Promise.resolve(1)",
    "new Error('odd')", "Object.freeze([1, 2])", "Object.freeze({a: 1})", "[3, 1, 2].entries()",
    "({toJSON: () => 'json'})", "({a: {b: {c: {d: 1}}}})", "[1, [2, [3, [4]]]]",
];

/// Calls of built-in functions, as operands.
const CALLS: &[&str] = &[
    // strings
    "$t.at($x)", "$t.charAt($x)", "$t.charCodeAt($x)", "$t.codePointAt($x)", "$t.concat($x, $x)", "$t.endsWith($t, $x)",
    "$t.includes($t, $x)", "$t.indexOf($t, $x)", "$t.lastIndexOf($t, $x)", "$t.localeCompare($t)", "$t.normalize('NFD')",
    "$t.padEnd($d, $x)", "$t.padStart($d, $t)", "$t.repeat($d)", "$t.replace($t, $x)", "$t.replace($t, '[$$&$$`$$\\'$$1]')",
    "$t.replaceAll($t, $x)", "$t.replaceAll($t, $f)", "$t.slice($x, $x)", "$t.split($x)", "$t.split($t, $x)",
    "$t.startsWith($t, $x)", "$t.substring($x, $x)", "$t.substr($x, $x)", "$t.toLowerCase()", "$t.toUpperCase()", "$t.trim()",
    "$t.trimStart()", "$t.trimEnd()", "$t.isWellFormed()", "$t.toWellFormed()", "$t.valueOf()", "[...$t]", "$t.length",
    "String($x)", "String.fromCharCode($x, $x)", "String.fromCodePoint($d)", "String.fromCodePoint($x)", "String.raw`a$${$x}\\n`",
    "(`$${$x}-$${$t}`)", "$t[$x]", "($x in $l)", "('' + $x)", "$t.split('').reverse().join('')", "$t.indexOf($x)",
    "$t.padStart($x)", "$t.repeat($x)", "$t.includes($x)", "$t.startsWith($x)", "$t.toLocaleUpperCase()",
    // numbers
    "Number($x)", "($n).toFixed($d)", "($n).toFixed($x)", "($n).toPrecision($d)", "($n).toExponential($d)", "($n).toString($d)",
    "($n).toString($x)", "Number($x).toString(36)", "Number($x).toFixed(2)", "Number($x).toPrecision(3)", "Number($x).toString(2)",
    "Number($x).toExponential()", "Number.isInteger($x)", "Number.isSafeInteger($x)", "Number.isFinite($x)", "isNaN($x)",
    "isFinite($x)", "parseInt($x, $x)", "parseInt($t, $d)", "parseFloat($x)", "Number.MAX_SAFE_INTEGER", "Number.EPSILON",
    "(+$x)", "(-$x)", "(~$x)", "(!$x)", "(typeof $x)", "(void $x)", "($x + $x)", "($x - $x)", "($x * $x)", "($x / $x)", "($x % $x)",
    "($x ** $x)", "($x & $x)", "($x | $x)", "($x ^ $x)", "($x << $x)", "($x >> $x)", "($x >>> $x)", "($x < $x)", "($x >= $x)",
    "($x == $x)", "($x === $x)", "($x != $x)", "($x && $x)", "($x || $x)", "($x ?? $x)", "($x, $x)", "($x ? $x : $x)",
    "($x instanceof Object)", "($x instanceof $x)", "($x in $x)", "($x in $o)", "($x > $x)", "($x <= $x)",
    // BigInt
    "BigInt($x)", "BigInt.asIntN($d, $b)", "BigInt.asUintN($d, $b)", "($b).toString($d)", "($b + $b)", "($b - $b)", "($b * $b)",
    "($b / $b)", "($b % $b)", "($b & $b)", "($b | $b)", "($b ^ $b)", "($b << $b)", "($b >> $b)", "(-$b)", "(~$b)", "($b < $x)",
    "($b == $x)", "($b ** BigInt($d))", "Number($b)", "($b + $x)", "($b).toLocaleString()", "(typeof $b)", "($b > $b)",
    // Math
    "Math.max($x, $x)", "Math.min($x, $x)", "Math.round($x)", "Math.floor($x)", "Math.ceil($x)", "Math.trunc($x)", "Math.sign($x)",
    "Math.abs($x)", "Math.sqrt($x)", "Math.pow($x, $d)", "Math.log($x)", "Math.log2($x)", "Math.log10($x)", "Math.log1p($x)",
    "Math.exp($x)", "Math.expm1($x)", "Math.sin($x)", "Math.cos($x)", "Math.tan($x)", "Math.atan2($x, $x)", "Math.atan($x)",
    "Math.clz32($x)", "Math.fround($x)", "Math.imul($x, $x)", "Math.hypot($x, $x)", "Math.round($n)", "Math.max(...$l)",
    // arrays
    "$l.at($x)", "$l.concat($x, $x)", "$l.copyWithin($x, $x, $x)", "[...$l.entries()]", "[...$l.keys()]", "$l.every($f)",
    "$l.fill($x, $x, $x)", "$l.filter($f)", "$l.find($f)", "$l.findIndex($f)", "$l.findLast($f)", "$l.findLastIndex($f)",
    "$l.flat($x)", "$l.flat(Infinity)", "$l.flatMap($f)", "$l.includes($x, $x)", "$l.indexOf($x, $x)", "$l.join($x)",
    "$l.lastIndexOf($x)", "$l.lastIndexOf($x, $x)", "$l.map($f)", "$l.pop()", "$l.push($x, $x)", "$l.reduce($r)", "$l.reduce($r, $x)",
    "$l.reduceRight($r)", "$l.reduceRight($r, $x)", "$l.reverse()", "$l.shift()", "$l.slice($x, $x)", "$l.some($f)", "$l.sort()",
    "$l.sort($r)", "$l.sort((a, b) => a < b ? -1 : a > b ? 1 : 0)", "[$x, $x, $x, $x].sort()", "$l.splice($x, $x, $x)",
    "$l.splice($x)", "$l.toReversed()", "$l.toSorted()", "$l.toSorted($r)", "$l.toSpliced($x, $x, $x)", "$l.toString()",
    "$l.unshift($x, $x)", "[...$l.values()]", "$l.with($x, $x)", "$l[$x]", "$l.map(Number)", "$l.map(String)", "$l.filter(Boolean)",
    "$l.map(parseInt)", "$l.forEach($f)", "Array.from($x)", "Array.from($x, $f)", "Array.isArray($x)", "Array.of($x, $x)", "Array($d)",
    "new Array($d).fill($x)", "new Array($x, $x)", "Array.from({length: $d})", "[...$x]", "[$x, , $x]", "[, , $x].map($f)",
    "[$x, , $x].flatMap($f)", "[, $x].sort()", "[3, , undefined, 1].sort()", "[...[$x, , $x]]", "[1, , 3].findLast($f)",
    "[, 'a'].join($x)", "Array.from([1, , 3], $f)", "[1, 2, 3].map($x)", "[1, , 3].indexOf(undefined)", "[1, , 3].includes(undefined)",
    "[3, 1, 2].sort($x)", "[5, 25, 100, 1].sort()", "['b', undefined, 'a'].sort()", "[, 1].entries().next()", "$l.length",
    "$l.entries().next()", "$l?.[$x]?.[$x]", "$l.concat([, $x]).length", "[[1, [2, [$x]]]].flat($d)",
    // objects
    "Object.keys($x)", "Object.values($x)", "Object.entries($x)", "Object.assign($o, $x)", "Object.fromEntries($x)",
    "Object.fromEntries(Object.entries($o))", "Object.freeze($x)", "Object.isFrozen($x)", "Object.isSealed($x)", "Object.is($x, $x)",
    "Object.hasOwn($x, $x)", "Object.getOwnPropertyNames($o)", "Object.getOwnPropertyNames($l)", "({...$x})", "({...$x, a: $x})", "((k) => ({[k]: $x}))($x)", "$o[$x]",
    "$o?.[$x]", "$o.hasOwnProperty($x)", "$o.toString()", "(delete $o[$x])", "$o.a?.b.c", "$o.a?.(1)", "$x?.a", "$x?.[0]?.a",
    "$x.a", "$x.a.b", "$x.length", "$x()", "$x.a()", "($x)($x)", "$x?.()", "((v) => { try { return structuredClone(v); } catch (e) { return e.name + e.message; } })($x)", "Object.entries($o).flat()",
    "(({a, ...rest}) => rest)($o)", "(({a = $x, b: {c} = {c: 0}} = {}) => [a, c])($o)", "((a, b = a, ...c) => [a, b, c])(...$l)",
    "(([a, [b] = [$x], ...c]) => [a, b, c])($x)", "(({length}) => length)($x)", "((a, {b}) => b)($x, $x)", "$x.toString()",
    // JSON
    "JSON.stringify($x)", "JSON.stringify($o, null, $x)", "JSON.stringify([$x, $x])", "JSON.stringify($o, ['a', 'b'])",
    "JSON.stringify({a: $x, b: $x}, (key, value) => typeof value === 'number' ? value + 1 : value)", "JSON.parse($x)", "JSON.parse($t)",
    "JSON.parse(JSON.stringify($o), (key, value) => key === 'a' ? undefined : value)", "JSON.stringify($l, null, 2)",
    "JSON.parse('[1,{\"a\":null,\"b\":[true,\"x\"]}]')", "JSON.parse('{\"a\":1,}')", "JSON.parse('[1e5,-0,\"\\\\u00e9\"]')",
    // collections
    "new Map($x)", "new Set($x)", "new Set($l)", "new Set($t).size", "$m.get($x)", "$m.has($x)", "$m.set($x, $x)", "$m.delete($x)", "$m.size",
    "[...$m]", "[...$m.keys()]", "[...$m.values()]", "[...$m.entries()].flat()", "$m.forEach($f)", "$s.has($x)", "$s.add($x)",
    "$s.delete($x)", "$s.size", "[...$s].map($f)", "$s.forEach($f)", "new Map([...$m].map(([k, v]) => [v, k]))", "Array.from($s, $f)",
    "Object.fromEntries($m)", "new Map(Object.entries($o))", "$m.entries().next()", "$s.values().next().value", "$m", "$s",
    // others
    "encodeURIComponent($x)", "encodeURI($t)", "decodeURIComponent($t)", "decodeURIComponent(encodeURIComponent($t))", "((v) => { try { return btoa(v); } catch (e) { return e.name + e.message; } })($t)",
    "((v) => { try { return atob(v); } catch (e) { return e.name + e.message; } })($t)", "atob(btoa('$d'))", "Boolean($x)", "new Error($x)", "new Error($x, {cause: $x}).cause", "new TypeError($x).name",
    "new RangeError($t) instanceof Error", "String(new SyntaxError($x))", "new AggregateError([$x, $x], $t).errors", "Error($t).message",
    "((...a) => a.length)(...$l, ...$t)", "((f) => f.name + f.length)((a, b = 1) => a)", "(function $1(n) { return n > 0 ? n * $1(n - 1) : 1 })($d % 7)",
    "((a) => { $B return a; })($x)", "[1, 2, 3].reduce((a, b) => a + b)", "((s, ...v) => [s.raw, s, v])`a$${$x}\\tb$${$x}`",
];

/// Statements for everywhere.
const STATEMENTS: &[&str] = &[
    "try { console.log($k, $k) } catch ($1) { console.log(String($1)) }",
    "try { console.log($k) } catch ($1) { console.log($1) }",
    "console.log($k, $x)",
    "console.log('%s %d %i %f %j %o %O %c %%', $x, $x, $x, $x, $x)",
    "console.log([$x, $x, $x], {a: $x, 'b-c': $x}, $x)",
    "console.log([[[[$x]]]], {a: {b: {c: {d: $x}}}}, [$k])",
    "console.log(new Array(120).fill($d), 'x'.repeat(90).split(''), $t)",
    "const $1 = (() => { try { $B return $x; } catch (e) { return 'caught'; } finally { $B console.log('finally'); } })();\nconsole.log($1);",
    "console.log((() => { for (const i of [1, 2, 3]) { try { if (i === $d) return i; } finally { if ($C) continue; } } return 'end'; })());",
    "console.log((() => { try { throw $x; } catch { return 1; } finally { return 2; } })());",
    "console.log((() => { $2: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { try { if (j === 1) continue $2; if (i === 2) break $2; console.log(i, j); } finally { console.log('f', i, j); } } } })());",
    "$1: { $S if ($c) break $1; $S }",
    "$1: for (let $2 = 0; $2 < 3; $2++) { for (const $3 of $l.slice(0, 4)) { if ($2 === $d) continue $1; $S if ($c) break $1; } }",
    "switch ($x) { case $x: console.log('a'); case $x: console.log('b'); break; default: console.log('d'); case $x: console.log('c'); }",
    "switch ($d % 4) { case 0: { $S } case 1: case 2: let $1 = $x; console.log($1); break; default: $S }",
    "switch (typeof $x) { default: console.log('other'); break; case 'string': console.log('s'); case 'number': console.log('n'); }",
    "{ const $1 = []; for (let i = 0, n = 3; i < n; i++) { $1.push(() => i++ + n); if ($c) continue; i += 0; } console.log($1.map((f) => f() + f())); }",
    "{ const $1 = []; for (const x of $l.slice(0, 3)) { let y = x; $1.push(() => [x, y]); y = $x; } console.log($1.map((f) => f())); }",
    "{ const $1 = []; for (const k in $o) { $1.unshift(() => k); } console.log($1.map((f) => f())); }",
    "try { $1; let $1 = 1; } catch (e) { console.log(e.message); }",
    "try { const $1 = $x; $1 = 2; } catch (e) { console.log(e.message); }",
    "try { (() => { return $1(); const $1 = () => 1; })(); } catch (e) { console.log(e.message); }",
    "console.log(typeof $1, $1()); function $1() { return $x; }",
    "var $1 = $x; { var $1 = $x; } console.log($1);",
    "try { const $1 = Object.freeze({a: $x, b: [1]}); $1.b.push(2); console.log($1); $1.a = 2; } catch (e) { console.log(e.message); }",
    "try { const $1 = Object.freeze([1, 2]); $1[$x] = 3; } catch (e) { console.log(e.message); }",
    "try { Object.freeze([3, 1, 2]).$M; } catch (e) { console.log(e.message); }",
    "{ const $1 = $l; delete $1[0]; $1[$d] = $x; console.log($1, $1.length, 0 in $1); $1.length = 2; console.log($1); }",
    "{ const $1 = [...$l, $x, $x, $x]; console.log($1.$M, $1); }",
    "{ const $1 = $o; for (const k of ['b', '1', 'a', '0']) $1[k] = $x; console.log($1, Object.keys($1)); }",
    "{ let $1 = $x; $1 ??= $x; $1 ||= $x; $1 &&= $x; console.log($1); }",
    "try { let $1 = $x; $1 += $x; $1 -= $x; $1++; console.log($1, $1--, --$1); } catch (e) { console.log(e.message); }",
    "try { let $1 = $b; $1 **= 3n; $1 <<= 2n; $1++; console.log($1, -$1, $1 / $b); } catch (e) { console.log(e.message); }",
    "try { const [$1, [$2 = $x] = [], ...$3] = $x; console.log($1, $2, $3); } catch (e) { console.log(e.message); }",
    "try { const {a: $1, b: {c: $2 = $x} = {}, ...$3} = $x; console.log($1, $2, $3); } catch (e) { console.log(e.message); }",
    "try { for (const [$1, {a: $2} = {}] of [[$x, $x], [$x]]) console.log($1, $2); } catch (e) { console.log(e.message); }",
    "try { const $2 = $x; for (const $1 of $2) { console.log($1); if ($c) break; } } catch (e) { console.log(e.message); }",
    "for (const $1 in $x) { console.log($1); }",
    "for (const $1 in [...$l, , 1]) { console.log($1); }",
    "{ const $1 = $m; for (const [k, v] of $1) { console.log(k, v); if ($1.size < 4) $1.set($1.size + 10, k); } }",
    "{ const $1 = $s; for (const v of $1) { $1.delete(v); if ($1.size < 3 && $c) $1.add([v]); console.log(v); if ($1.size > 2) break; } }",
    "{ const $1 = $l.slice(0, 4); for (const v of $1) { if ($1.length < 6) $1.push(v); console.log(v); } }",
    "do { $S if ($c) continue; console.log('done'); } while (false);",
    "for (let $1 = 0, $2 = 5; $1 < $2; $1++, $2--) { if ($1 === 1) continue; console.log($1, $2); }",
    "let $1 = $d % 5; for (;;) { if ($1-- <= 0) break; $S }",
    "if ($x) { $S } else if ($k) { $S } else { $S }",
    "try { throw Object.assign(new Error($t), {code: $x}); } catch ({message, code = 1, name}) { console.log(name, message, code); }",
    "try { try { throw new Error('inner'); } finally { if ($c) throw new TypeError('outer', {cause: $x}); } } catch (e) { console.log(e.name, e.message, e.cause); }",
    "try { throw $x } catch ($1) { console.log($1); }",
    "if ($c) { throw $x; }",
    "if ($c) { $k; }",
    "const $1 = (n, ...r) => n <= 0 ? r : $1(n - 1, n, ...r);\nconsole.log($1($d % 6));",
    "function $1(n) { if (n < 2) return n; return $1(n - 1) + $1(n - 2); } console.log($1($d % 8));",
    "const $1 = {n: $d, get(k) { return k + $1.n; }, 'x y': $x, [`k$${$d}`]: $x, async m() { return 1; }};\nconsole.log($1, $1.get($x));",
    "console.log(((a, b) => { b = $x; a.x = $x; return [a, b]; })({}, 1));",
    "{ let $1 = 0; const f = () => ++$1; console.log([f(), f(), $1], {a: f(), [f()]: f()}, f() + f() * f()); }",
    "{ const $1 = []; const t = (x) => { $1.push(x); return x; }; try { t({})[t('a')] = t($x), t(null)?.[t(1)], t(0) || t(1) && t(2); } finally { console.log($1); } }",
    "{ const $1 = {a: 1, b: {c: [1, 2, {d: new Map([[1, [2n]]])}]}}; const c = structuredClone($1); c.b.c[2].d = 'changed'; console.log($1, c); }",
    "console.error($x, $x)",
];

/// Statements for asynchronous functions.
const WAITING: &[&str] = &[
    "console.log(await $x)",
    "try { console.log(await $p) } catch ($1) { console.log(String($1)) }",
    "const $1 = async (n) => { for (let i = 0; i < n; i++) { await null; console.log('$1', n, i); } return n; };\nconsole.log(await Promise.all([$1(2), $1(1), $1(3)]));",
    "{ const $1 = async () => { try { await $p; $A return 'ok'; } catch (e) { console.log('c', e?.message); return 'no'; } finally { console.log('f'); await 0; } }; const p = $1(); console.log('before'); console.log(await p); }",
    "console.log(await Promise.allSettled([$p, $x, $p]))",
    "console.log(await Promise.race([$p, $p, $x]).catch((e) => [e?.message]))",
    "console.log(await Promise.any([$p, $p]).catch((e) => [e.name, e.message, e.errors?.length]))",
    "console.log(await Promise.all($x).catch((e) => e.message))",
    "for await (const $1 of [$p.catch(() => 'c'), $x, Promise.resolve($x)]) { console.log($1); if ($c) break; }",
    "$p.then($x, () => console.log('rejected')).finally(() => console.log('finally'))",
    "Promise.resolve().then(() => console.log('1')).then(() => console.log('2')); (async () => { await 0; console.log('a'); await 0; console.log('b'); })(); await { then: (r) => { console.log('then'); r(1); } }; console.log('c'); await 0; await 0; console.log('d');",
    "new Promise((resolve, reject) => { resolve($x); reject($x); throw $x; }).then((v) => console.log('v', v), (e) => console.log('e', e))",
    "console.log(await new Promise((resolve) => resolve($P)).then((v) => [v], (e) => e?.message))",
    "try { await (async () => { throw $x; })(); } catch (e) { console.log('caught', e); }",
    "{ const $1 = (async () => { $A return $x; })(); console.log(await $1.then((v) => { throw new Error('t'); }).catch((e) => e.message).then((v) => v + '!')); }",
    "console.log(await Promise.all([1, 2, 3].map(async (n) => { await callTool(n === 2 ? 'slow' : 'items:list', {}); console.log('after', n); return n; })))",
    "console.log(await callTool('items:get', {a: $x}, {throwOnError: false}).catch((e) => e.code))",
    "await callTool('fail', {a: $d}).catch((e) => console.log(e.code, e.toolName, e.message, e instanceof Error))",
    "console.log(await parallel([async () => $x, () => $P, async () => { $A return 1; }]).catch((e) => e.message))",
    "{ let $1 = Promise.resolve(0); for (let i = 0; i < 3; i++) $1 = $1.then(async (v) => { console.log(i, v); return v + i; }); console.log(await $1); }",
    "await Promise.reject($x)",
    "const $1 = await Promise.all([$x, $x]); console.log($1);",
    "console.log([await $x, await $p.catch(() => 'e'), $x])",
    "console.log($k + (await $x), `$${await $x}`)",
    "async function $1(a, b = $x) { if ($c) return a; return await b; } console.log(await $1($x), await $1($x, $x));",
    "$1: for (const x of [1, 2, 3]) { try { await x; if (x === 2) continue $1; console.log(x); } finally { await null; console.log('f', x); } }",
    "switch (await $d % 3) { case await 0: console.log('zero'); case 1: await 0; console.log('one'); break; default: console.log(await $x); }",
    "console.log(Promise.resolve($x), (async () => { throw 1; })().catch(() => 1), new Promise(() => {}))",
];

/// Methods that change an array.
const MUTATIONS: &[&str] =
    &["push(1)", "pop()", "shift()", "unshift(0)", "reverse()", "sort()", "splice(1, 1, 'x', 'y')", "fill(0, 1)", "copyWithin(0, 1)"];

impl Writer<'_> {
    /// A call of a built-in function, or an operator with odd operands.
    pub(super) fn odd_call(&mut self) -> String {
        let template = self.pick_wide(CALLS);
        self.nested(|writer| writer.fill(template))
    }

    /// A statement out of the ordinary.
    pub(super) fn odd_statement(&mut self) -> String {
        let template = self.pick_wide(STATEMENTS);
        self.fill(template)
    }

    /// The same with promises.
    pub(super) fn odd_waiting(&mut self) -> String {
        let template = self.pick_wide(WAITING);
        self.fill(template)
    }

    fn odd(&mut self) -> String {
        let at = self.byte();
        // Now and then it is what a variable holds.
        if at >= 230 {
            return self.variable(|variable| !matches!(variable.kind, Kind::Async)).unwrap_or_else(|| "1".into());
        }
        let value = ODD[at % ODD.len()];
        if value.starts_with(['{', '-']) { format!("({value})") } else { value.into() }
    }

    fn fill(&mut self, template: &str) -> String {
        let mut names: [Option<String>; 10] = Default::default();
        let mut parts = template.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        while let Some(part) = parts.next() {
            let mut letters = part.chars();
            match letters.next() {
                // `$$` is the sign itself.
                None => text = text + "$" + parts.next().unwrap_or_default(),
                Some(digit @ '0'..='9') => {
                    let at = digit as usize - '0' as usize;
                    let name = names[at].take().unwrap_or_else(|| self.fresh("t"));
                    text = text + &name + letters.as_str();
                    names[at] = Some(name);
                }
                Some(letter) => text = text + &self.nested(|writer| writer.gap(letter)) + letters.as_str(),
            }
        }
        text
    }

    /// What stands for a letter.
    fn gap(&mut self, letter: char) -> String {
        let deep = self.depth > super::DEEPEST;
        match letter {
            'x' => self.odd(),
            'd' => (self.byte() % 24).to_string(),
            'n' => self.number_operand(),
            't' => self.text(),
            'l' => self.list(),
            'o' => format!("({})", self.object()),
            'c' => self.condition(),
            // Where nothing can wait.
            'C' => self.inside(Around::default(), &[], Self::condition),
            'b' => self.pick(&["0n", "1n", "7n", "123n", "(-5n)", "(2n ** 64n)", "(-(10n ** 20n))"]).into(),
            'm' => self.pick(&["new Map()", "new Map([[1, 'a'], ['b', 2], [NaN, 0]])", "new Map([[{}, []]])"]).into(),
            's' => self.pick(&["new Set()", "new Set([1, 'a', NaN, -0])", "new Set('hello')"]).into(),
            'k' if deep => self.odd(),
            'k' => self.odd_call(),
            'f' => {
                let body = self.callback(Around::default(), &["item", "index"]);
                self.pick(&["(item, index) => B", "(item, index, all) => (all.length, B)", "item => ({item})"])
                    .replace('B', &format!("({body})"))
                    .replace("(item, index)", if body.contains("index") { "(item, index)" } else { "(item, index = 0)" })
            }
            'r' => {
                let body = self.callback(Around::default(), &["a", "b"]);
                format!("(a, b) => ({body})")
            }
            'p' => self.promise(),
            'P' => self.inside(Around::default(), &[], Self::promise),
            'M' => self.pick(MUTATIONS).into(),
            'S' if deep => String::new(),
            'S' => self.scoped(Self::statements),
            'A' | 'B' if deep => String::new(),
            'B' => self.inside(Around::default(), &[], Self::statements),
            'A' => self.inside(Around { is_async: true, ..Around::default() }, &[], Self::statements),
            other => unreachable!("no gap is called {other}"),
        }
    }

    /// One of more than a byte can count.
    fn pick_wide<'t>(&mut self, of: &[&'t str]) -> &'t str {
        let at = self.byte() * 256 + self.byte();
        of[at % of.len()]
    }
}

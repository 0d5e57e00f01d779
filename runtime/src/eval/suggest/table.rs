//! Names of other languages and libraries, with what to write instead.

use crate::interface::dialect::Dialect;
use crate::value::family::Family;

/// What to write instead of a function or value that hosts often provide.
pub(super) fn host(dialect: Dialect, name: &str) -> Option<String> {
    let call = dialect.tool_call();
    Some(match name {
        "tools" | "mcp" | "codecall" | "client" | "api" | "callMcpTool" | "call_tool" | "call_tools" | "callTool"
        | "getTool" | "invokeTool" | "runTool" | "useTool" | "executeTool" | "tool" => {
            format!("tools are called with `{call}`")
        }
        "context" | "ctx" | "input" | "inputs" | "params" | "args" | "argv" | "payload" | "codecallContext" => {
            format!("the input of the script is in `{}`", dialect.input_name())
        }
        "axios" | "request" | "requests" | "http" | "https" | "got" | "$" => {
            format!("scripts have no network; call a tool: `{call}`")
        }
        "fs" | "path" | "os" | "sys" => format!("scripts see nothing of the host; call a tool: `{call}`"),
        _ => return None,
    })
}

/// What to write instead of a global that does not exist.
pub(super) fn global(name: &str) -> Option<&'static str> {
    Some(match name {
        "print" | "println" | "printf" | "puts" | "echo" | "log" => "write `console.log(…)`",
        "len" | "length" | "count" => "write `value.length`, or `value.size` of a Map or a Set",
        "str" => "write `String(value)`",
        "int" => "write `Math.trunc(Number(value))`",
        "float" | "num" | "number" => "write `Number(value)`",
        "bool" | "boolean" => "write `Boolean(value)`",
        "list" | "tuple" | "array" => "write `[...value]` or `Array.from(value)`",
        "dict" => "write `{}` or `Object.fromEntries(pairs)`",
        "set" => "write `new Set(values)`",
        "range" => "write `Array.from({ length: n }, (_, i) => i)`, or a `for` loop",
        "enumerate" => "write `array.entries()`, or use the index: `array.map((item, index) => …)`",
        "zip" => "write `a.map((item, index) => [item, b[index]])`",
        "sum" => "write `values.reduce((sum, value) => sum + value, 0)`",
        "sorted" => "write `array.toSorted(compare)`",
        "reversed" => "write `array.toReversed()`",
        "min" => "write `Math.min(...values)`",
        "max" => "write `Math.max(...values)`",
        "abs" => "write `Math.abs(x)`",
        "round" => "write `Math.round(x)`",
        "floor" => "write `Math.floor(x)`",
        "ceil" => "write `Math.ceil(x)`",
        "sqrt" => "write `Math.sqrt(x)`",
        "pow" => "write `a ** b`",
        "random" | "randint" => "write `Math.random()`",
        "math" => "write `Math`",
        "json" | "Json" => "write `JSON`",
        "Papa" | "parseCSV" | "parseCsv" | "csvParse" | "literal_eval" | "ast" | "csv" => {
            "write `parseText(text).data`"
        }
        "string" => "write `String(value)`",
        "object" => "write `{…}`",
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "None" | "nil" | "Null" | "NULL" => "write `null`",
        "NotImplementedError" | "ValueError" | "KeyError" | "Exception" => "write `new Error(message)`",
        "isinstance" | "type" => "write `typeof value`, `Array.isArray(value)` or `value instanceof Map`",
        "isArray" => "write `Array.isArray(value)`",
        "isinf" | "isnan" => "write `Number.isFinite(value)` or `Number.isNaN(value)`",
        "keys" => "write `Object.keys(object)`",
        "values" => "write `Object.values(object)`",
        "entries" | "items" => "write `Object.entries(object)`",
        "assert" => "write `if (!condition) throw new Error(message)`",
        "delay" | "wait" | "asyncio" => "write `await sleep(ms)`",
        "_" | "lodash" => "there are no libraries; use the methods of arrays and objects",
        "moment" | "dayjs" | "luxon" | "DateTime" | "datetime" | "date" => {
            "write `new Date(text)` and its UTC methods; there are no libraries"
        }
        "uuid" | "uuidv4" | "uuid4" | "nanoid" => "write `crypto.randomUUID()`",
        "alert" | "prompt" | "confirm" => "nobody is asked; return a value, or log it with `console.log(…)`",
        _ => return None,
    })
}

/// What to write instead of a name.
type Table = fn(&str) -> Option<&'static str>;

/// Tables of methods, by family.
const METHODS: &[(Family, Table)] = &[
    (Family::Array, array),
    (Family::String, string),
    (Family::Number, number),
    (Family::BigInt, number),
    (Family::Map, map),
    (Family::Set, set),
    (Family::Object, object),
    (Family::Promise, promise),
    (Family::Function, function_value),
    (Family::Date, date),
    (Family::AsyncGenerator, async_iterator),
    (Family::Uint8Array, bytes),
    (Family::ArrayBuffer, buffer),
];

/// What to call instead of a method that values of a family do not have.
pub(super) fn method(family: Family, name: &str) -> Option<&'static str> {
    let table = METHODS.iter().find(|(of, _)| *of == family).map(|(_, table)| *table);
    let table = table.or(family.is_iterator().then_some(iterator as Table));
    table.and_then(|table| table(name)).or(match name {
        "equals" | "isEqual" | "eq" => Some("compare with `===`, or compare the texts: `JSON.stringify(a)`"),
        "isNull" | "isUndefined" | "isNil" => Some("write `value == null`"),
        "toInt" | "toInteger" | "intValue" => Some("write `Math.trunc(Number(value))`"),
        "toNumber" | "toFloat" | "toDouble" => Some("write `Number(value)`"),
        "toStr" | "to_s" | "asString" => Some("write `String(value)`"),
        "toJSON" | "toJson" | "to_json" => Some("write `JSON.stringify(value)`"),
        "json" | "text" => Some("results of tools are data already; use the value itself"),
        "clone" | "copy" | "deepcopy" | "cloneDeep" => Some("write `structuredClone(value)`"),
        _ => None,
    })
}

fn array(name: &str) -> Option<&'static str> {
    Some(match name {
        "contains" | "has" | "include" | "includesValue" => "did you mean `includes`?",
        "size" | "count" | "len" => "write `array.length`",
        "isEmpty" | "is_empty" | "empty" => "write `array.length === 0`",
        "add" | "append" | "push_back" | "addLast" | "insertLast" => "did you mean `push`?",
        "addAll" | "extend" | "pushAll" | "appendAll" => "write `array.push(...items)`",
        "addFirst" | "prepend" | "push_front" => "did you mean `unshift`?",
        "insert" => "write `array.splice(index, 0, item)`",
        "remove" | "delete" | "without" | "discard" => "write `array.filter((item) => item !== value)`",
        "removeAt" | "deleteAt" => "write `array.splice(index, 1)`",
        "clear" => "write `array.length = 0`",
        "get" | "elementAt" | "nth" => "write `array[index]`",
        "set" => "write `array[index] = value`",
        "last" => "write `array.at(-1)`",
        "first" | "head" => "write `array[0]`",
        "tail" | "rest" | "skip" | "drop" => "write `array.slice(n)`",
        "take" | "limit" | "top" => "write `array.slice(0, n)`",
        "each" | "eachWithIndex" | "forEachAsync" => "did you mean `forEach`?",
        "collect" | "select" | "pluck" | "mapAsync" => "did you mean `map`?",
        "where" | "findAll" | "filterBy" => "did you mean `filter`?",
        "reject" => "write `array.filter((item) => !test(item))`",
        "detect" | "findFirst" | "findOne" | "single" => "did you mean `find`?",
        "any" => "did you mean `some`?",
        "all" => "did you mean `every`?",
        "inject" | "fold" | "foldLeft" | "aggregate" => "did you mean `reduce`?",
        "sum" | "sumBy" | "total" => "write `array.reduce((sum, item) => sum + item, 0)`",
        "avg" | "average" | "mean" => "write `array.reduce((sum, item) => sum + item, 0) / array.length`",
        "max" => "write `Math.max(...array)`",
        "min" => "write `Math.min(...array)`",
        "unique" | "uniq" | "distinct" | "dedupe" => "write `[...new Set(array)]`",
        "groupBy" | "group" => "write `Object.groupBy(array, (item) => key)`",
        "keyBy" | "indexBy" | "associateBy" => "write `Object.fromEntries(array.map((item) => [item.id, item]))`",
        "sortBy" | "orderBy" => "write `array.toSorted((a, b) => a.key - b.key)`",
        "flatten" => "did you mean `flat`?",
        "compact" => "write `array.filter(Boolean)`",
        "chunk" => {
            "write `Array.from({ length: Math.ceil(array.length / n) }, (_, i) => array.slice(i * n, (i + 1) * n))`"
        }
        "zip" => "write `a.map((item, index) => [item, b[index]])`",
        "partition" => "use `filter` twice",
        "union" => "write `[...new Set([...a, ...b])]`",
        "intersection" | "intersect" => "write `a.filter((item) => b.includes(item))`",
        "difference" | "subtract" | "minus" => "write `a.filter((item) => !b.includes(item))`",
        "shuffle" => "sort by `Math.random()` keys",
        "toArray" | "toList" | "getItems" => "it is an array already",
        "then" | "catch" | "finally" => "this is no promise; use the array itself",
        _ => return None,
    })
}

fn string(name: &str) -> Option<&'static str> {
    Some(match name {
        "contains" | "has" | "include" => "did you mean `includes`?",
        "reverse" | "reversed" => "write `[...text].reverse().join('')`",
        "size" | "count" | "len" => "write `text.length`",
        "isEmpty" | "is_empty" => "write `text.length === 0`",
        "format" => "write a template: `${value}`",
        "strip" => "did you mean `trim`?",
        "lstrip" => "did you mean `trimStart`?",
        "rstrip" | "chomp" => "did you mean `trimEnd`?",
        "lower" | "toLower" | "downcase" | "lowercase" => "did you mean `toLowerCase`?",
        "upper" | "toUpper" | "upcase" | "uppercase" => "did you mean `toUpperCase`?",
        "capitalize" | "title" | "titleCase" | "toTitleCase" => "write `text[0].toUpperCase() + text.slice(1)`",
        "find" | "index" => "did you mean `indexOf`?",
        "rfind" | "rindex" => "did you mean `lastIndexOf`?",
        "ljust" | "padRight" => "did you mean `padEnd`?",
        "rjust" | "padLeft" | "zfill" => "did you mean `padStart`?",
        "splitlines" | "lines" => "write `text.split('\\n')`",
        "chars" | "toCharArray" | "toArray" => "write `[...text]`",
        "replaceFirst" | "sub" => "did you mean `replace`?",
        "gsub" => "did you mean `replaceAll`?",
        "startWith" | "starts_with" | "beginsWith" | "hasPrefix" => "did you mean `startsWith`?",
        "endWith" | "ends_with" | "hasSuffix" => "did you mean `endsWith`?",
        "equalsIgnoreCase" => "write `a.toLowerCase() === b.toLowerCase()`",
        "compareTo" | "compare" => "did you mean `localeCompare`?",
        "isdigit" | "isNumeric" | "isDigit" => "write `text.trim() !== '' && Number.isFinite(Number(text))`",
        "left" => "write `text.slice(0, n)`",
        "right" => "write `text.slice(-n)`",
        "truncate" => "write `text.slice(0, n)`",
        "push" | "append" => "write `text += other`",
        "remove" => "write `text.replaceAll(part, '')`",
        "forEach" | "map" | "filter" | "reduce" => {
            "this is a string; write `[...text]`, or `JSON.parse(text)` where it is the text of an array"
        }
        "get" | "charAtIndex" => "write `text[index]`",
        "then" | "catch" | "finally" => "this is no promise; use the string itself",
        "getTime" | "toISOString" | "getFullYear" | "getUTCFullYear" | "toLocaleDateString" | "getMonth"
        | "getDate" | "getDay" | "toLocaleTimeString" => "this is a string; make a date of it: `new Date(text)`",
        _ => return None,
    })
}

fn number(name: &str) -> Option<&'static str> {
    Some(match name {
        "round" => "write `Math.round(x)`, or `Number(x.toFixed(2))`",
        "floor" => "write `Math.floor(x)`",
        "ceil" => "write `Math.ceil(x)`",
        "abs" => "write `Math.abs(x)`",
        "pow" => "write `x ** n`",
        "sqrt" => "write `Math.sqrt(x)`",
        "format" | "toMoney" | "toCurrency" => "write `x.toLocaleString()` or `x.toFixed(2)`",
        "times" => "write `Array.from({ length: n }, (_, i) => i)`",
        "isNaN" => "write `Number.isNaN(x)`",
        "clamp" => "write `Math.min(Math.max(x, low), high)`",
        "length" => "write `String(x).length`",
        "then" | "catch" | "finally" => "this is no promise; use the number itself",
        "getTime" | "toISOString" | "getFullYear" | "getUTCFullYear" | "toLocaleDateString" | "getMonth" => {
            "this is a number; make a date of it: `new Date(milliseconds)`"
        }
        _ => return None,
    })
}

fn map(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" | "put" | "insert" | "push" | "append" => "did you mean `set`?",
        "contains" | "containsKey" | "hasKey" | "includes" | "has_key" => "did you mean `has`?",
        "remove" | "pop" => "did you mean `delete`?",
        "length" | "count" | "len" => "write `map.size`",
        "isEmpty" => "write `map.size === 0`",
        "items" | "pairs" => "did you mean `entries`?",
        "toObject" => "write `Object.fromEntries(map)`",
        "toArray" => "write `[...map]`",
        "getOrDefault" => "write `map.get(key) ?? other`",
        "update" => "write `map.set(key, change(map.get(key)))`",
        _ => return None,
    })
}

fn set(name: &str) -> Option<&'static str> {
    Some(match name {
        "push" | "append" | "insert" | "put" => "did you mean `add`?",
        "addAll" | "update" | "extend" => "write `items.forEach((item) => set.add(item))`",
        "contains" | "includes" | "exists" => "did you mean `has`?",
        "remove" | "discard" => "did you mean `delete`?",
        "length" | "count" | "len" => "write `set.size`",
        "isEmpty" => "write `set.size === 0`",
        "get" => "a Set has no keys; write `set.has(value)` or `[...set][index]`",
        "toArray" | "toList" => "write `[...set]`",
        _ => return None,
    })
}

fn object(name: &str) -> Option<&'static str> {
    Some(match name {
        "has" | "hasKey" | "containsKey" | "has_key" | "contains" => "write `Object.hasOwn(object, key)`",
        "get" => "write `object[key]`",
        "set" | "put" => "write `object[key] = value`",
        "remove" | "delete" => "write `delete object[key]`",
        "keys" => "write `Object.keys(object)`",
        "values" => "write `Object.values(object)`",
        "entries" | "items" | "pairs" => "write `Object.entries(object)`",
        "size" | "length" | "count" => "write `Object.keys(object).length`",
        "isEmpty" => "write `Object.keys(object).length === 0`",
        "merge" | "update" | "extend" | "assign" => "write `Object.assign(object, other)` or `{...object, ...other}`",
        "add" => "for values without order use `new Set()`; for properties write `object[key] = value`",
        "push" => "this is an object, not an array; write `object[key] = value`",
        "then" | "catch" | "finally" => "this is no promise; use the value itself",
        "getTime" | "toISOString" | "getFullYear" => "this is no Date; make one: `new Date(value)`",
        _ => return None,
    })
}

fn promise(name: &str) -> Option<&'static str> {
    Some(match name {
        "done" | "success" => "did you mean `then`?",
        "fail" | "error" => "did you mean `catch`?",
        "always" => "did you mean `finally`?",
        _ => return None,
    })
}

fn iterator(name: &str) -> Option<&'static str> {
    Some(match name {
        "take" => "write `[...iterator].slice(0, n)`, or end a `for` loop with `break`",
        "drop" => "write `[...iterator].slice(n)`",
        "toArray" | "collect" | "toList" => "write `[...iterator]`",
        _ => return None,
    })
}

fn async_iterator(name: &str) -> Option<&'static str> {
    Some(match name {
        "toArray" | "collect" | "toList" => "write `await Array.fromAsync(iterator)`",
        "map" | "filter" | "reduce" | "forEach" | "some" | "every" | "find" | "flatMap" | "take" | "drop" => {
            "write a loop: `for await (const item of iterator) {}`"
        }
        _ => return None,
    })
}

fn date(name: &str) -> Option<&'static str> {
    Some(match name {
        "format" | "strftime" | "toFormat" => "write `date.toISOString()`, or `date.toLocaleDateString('en-US', {…})`",
        "getDayOfMonth" => "did you mean `getUTCDate`?",
        "getWeekday" | "weekday" => "did you mean `getUTCDay`?",
        "unix" | "timestamp" => "write `Math.floor(date.getTime() / 1000)`",
        "add" | "addDays" | "plus" | "minus" | "subtract" => "write `new Date(date.getTime() + days * 86_400_000)`",
        "diff" => "write `(a.getTime() - b.getTime()) / 86_400_000`",
        "isBefore" => "write `a < b`",
        "isAfter" => "write `a > b`",
        _ => return None,
    })
}

fn bytes(name: &str) -> Option<&'static str> {
    Some(match name {
        "push" | "append" | "concat" | "extend" | "unshift" | "splice" => {
            "a Uint8Array keeps its length; write `Uint8Array.of(...bytes, ...more)`"
        }
        "readUInt8" | "getUint8" | "readUint8" => "write `bytes[i]`",
        "readUInt16LE" | "readUint16LE" | "getUint16" => "write `bytes[i] | bytes[i + 1] << 8`",
        "readUInt16BE" | "readUint16BE" => "write `bytes[i] << 8 | bytes[i + 1]`",
        "readUInt32LE" | "readUint32LE" | "getUint32" | "readInt32LE" | "getInt32" => {
            "write `bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 | bytes[i + 3] << 24`, with `>>> 0` behind where it has no sign"
        }
        "readUInt32BE" | "readUint32BE" | "readInt32BE" => {
            "write `bytes[i] << 24 | bytes[i + 1] << 16 | bytes[i + 2] << 8 | bytes[i + 3]`, with `>>> 0` behind where it has no sign"
        }
        "decode" | "text" | "toText" => "write `new TextDecoder().decode(bytes)`",
        "encode" | "base64" | "b64encode" => "did you mean `toBase64`?",
        "hex" => "did you mean `toHex`?",
        "toArray" | "toList" => "write `[...bytes]`",
        "equals" | "compare" => "write `a.length === b.length && a.every((byte, i) => byte === b[i])`",
        "write" | "copy" => "write `bytes.set(others, offset)`",
        "size" | "len" | "count" => "write `bytes.length`",
        _ => return None,
    })
}

fn buffer(name: &str) -> Option<&'static str> {
    Some(match name {
        "length" | "size" => "write `buffer.byteLength`",
        "transfer" | "transferToFixedLength" => "write `buffer.slice()`",
        _ => return None,
    })
}

fn function_value(name: &str) -> Option<&'static str> {
    Some(match name {
        "then" | "catch" | "finally" => "this is a function, not a promise; call it first: `f().then(…)`",
        "invoke" | "run" | "execute" => "call it: `f(…)`",
        _ => return None,
    })
}

/// What to call instead of a function of a built-in object, where the host has one.
pub(super) fn host_function(dialect: Dialect, object: &str, name: &str) -> Option<String> {
    match (object, name) {
        ("Promise", "map" | "each" | "mapSeries") => {
            Some(format!("write `Promise.all(items.map(async (item) => …))`, or `{}`", dialect.calls_together()))
        }
        _ => None,
    }
}

/// What to call instead of a function that a built-in object does not have.
pub(super) fn function(object: &str, name: &str) -> Option<&'static str> {
    Some(match (object, name) {
        ("Object", "map" | "filter" | "reduce" | "forEach" | "some" | "every" | "find" | "sort") => {
            "write `Object.entries(object)` and use the methods of arrays; `Object.fromEntries(pairs)` goes back"
        }
        ("Object", "size" | "length" | "count") => "write `Object.keys(object).length`",
        ("Object", "isEmpty") => "write `Object.keys(object).length === 0`",
        ("Object", "merge" | "extend" | "mixin") => "did you mean `Object.assign`?",
        ("Object", "clone" | "copy" | "deepClone") => "write `structuredClone(object)`",
        ("Object", "contains" | "has" | "hasKey" | "includes") => "did you mean `Object.hasOwn`?",
        ("Object", "toEntries" | "items" | "pairs") => "did you mean `Object.entries`?",
        ("Object", "equals" | "isEqual") => "write `JSON.stringify(a) === JSON.stringify(b)`",
        ("JSON", "encode" | "dump" | "dumps" | "serialize" | "toString") => "did you mean `JSON.stringify`?",
        ("JSON", "decode" | "load" | "loads" | "deserialize") => "did you mean `JSON.parse`?",
        ("Array", "range") => "write `Array.from({ length: n }, (_, i) => i)`",
        ("Array", "fill" | "create" | "repeat") => "write `Array.from({ length: n }, () => value)`",
        ("Array", "zip") => "write `a.map((item, index) => [item, b[index]])`",
        ("Array", "map" | "filter" | "reduce" | "forEach" | "sort") => "call it on the array: `array.map(…)`",
        ("Math", "sum") => "write `values.reduce((sum, value) => sum + value, 0)`",
        ("Math", "avg" | "average" | "mean") => "write `values.reduce((sum, value) => sum + value, 0) / values.length`",
        ("Math", "median") => "sort a copy and take the middle: `values.toSorted((a, b) => a - b)`",
        ("Math", "clamp") => "write `Math.min(Math.max(x, low), high)`",
        ("Math", "randomInt" | "randInt" | "randint" | "rand") => "write `Math.floor(Math.random() * n)`",
        ("Math", "mod") => "write `a % b`",
        ("Math", "div" | "idiv") => "write `Math.trunc(a / b)`",
        ("Math", "isNaN") => "did you mean `Number.isNaN`?",
        ("Math", "toFixed") => "write `x.toFixed(digits)`",
        ("String", "format") => "write a template: `${value}`",
        ("String", "join") => "write `array.join(separator)`",
        ("String", "isEmpty") => "write `text.length === 0`",
        ("String", "valueOf" | "from") => "write `String(value)`",
        ("Number", "parse" | "from" | "valueOf" | "toNumber") => "write `Number(text)`",
        ("Number", "isNumber" | "isNumeric") => "did you mean `Number.isFinite`?",
        ("Number", "toFixed" | "format") => "write `x.toFixed(digits)`",
        ("Number", "round") => "write `Math.round(x)`",
        ("Promise", "delay" | "sleep" | "timeout") => "there are no timers; `await` what you wait for",
        ("Uint8Array", "alloc" | "allocUnsafe") => "write `new Uint8Array(length)`",
        ("Uint8Array", "concat") => "write `Uint8Array.of(...a, ...b)`",
        ("Uint8Array", "fromString" | "fromText") => "write `new TextEncoder().encode(text)`",
        ("crypto", "createHash" | "sha256" | "digest" | "hash") => {
            "write `new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex()`"
        }
        ("crypto", "randomBytes") => "write `crypto.getRandomValues(new Uint8Array(length))`",
        ("SubtleCrypto", _) => "of `crypto.subtle` there is `digest` alone",
        ("Date", "format" | "strftime") => "write `date.toISOString()`",
        ("Date", "today") => "write `new Date()`",
        ("console", "print" | "println" | "write") => "did you mean `console.log`?",
        _ => return None,
    })
}

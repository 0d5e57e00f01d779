//! Scripts that create much garbage of one kind.

/// The kinds of garbage: a name, and the body of a loop that creates one and adds 1 to `sum`.
pub const KINDS: &[(&str, &str)] = &[
    ("objects", "const o = { a: i, b: i }; sum += o.b - o.a + 1;"),
    ("nested objects", "const o = { a: { b: { c: 1 } } }; sum += o.a.b.c;"),
    ("large objects", "const o = { a: i, b: i, c: i, d: i, e: i, f: i, g: 1, h: i }; sum += o.g;"),
    ("objects as tables", "const o = { a: 1, b: i, c: 2 }; delete o.b; sum += o.a;"),
    ("cycles", "const a = { i }, b = { a }; a.b = b; sum += b.a.b.a.i - i + 1;"),
    ("arrays", "const a = [i, i + 1]; sum += a[1] - a[0];"),
    ("arrays that grow", "const a = []; for (let k = 0; k < 9; k++) a.push(k); sum += a.length - 8;"),
    ("spread arrays", "const a = [1, 2, 3], b = [...a, i]; sum += b.length - 3;"),
    ("strings", "const s = 'item ' + i; sum += s.length > 5 ? 1 : 0;"),
    ("templates", "const s = `${i}: ${sum}`; sum += s.length > 3 ? 1 : 0;"),
    (
        "substrings of large strings",
        "if (i % 1000 === 0) large = 'x'.repeat(5000) + i; kept[i % 100] = large.slice(i % 1000, i % 1000 + 20); sum += kept[i % 100].length - 19;",
    ),
    (
        "strings that grow",
        "grown = i % 1000 === 0 ? '' : grown + 'word'; sum += grown.length === i % 1000 * 4 ? 1 : 0;",
    ),
    ("strings not in ASCII", "const s = 'é' + i; sum += s[0] === 'é' ? 1 : 0;"),
    ("numbers as text", "sum += String(i + 0.5).length > 2 ? 1 : 0;"),
    ("closures", "const f = () => i; sum += f() - i + 1;"),
    ("closures over cells", "let n = i; const up = () => { n++; return n; }; sum += up() - i;"),
    ("bound functions", "sum += one.bind(null, i)();"),
    ("methods as values", "const o = { i, get() { return 1; } }; sum += o.get();"),
    ("Map entries", "map.set(i, i); map.delete(i - 10); sum += map.get(i) - i + 1;"),
    ("Set entries", "if (set.size > 100) set.clear(); set.add(i); sum += set.has(i) ? 1 : 0;"),
    ("Maps", "const m = new Map([[1, i]]); sum += m.size;"),
    ("Sets", "const s = new Set([1, 1]); sum += s.size;"),
    ("iterators", "for (const x of pair.values()) sum += x;"),
    ("entries", "for (const [k, v] of Object.entries(record)) sum += v;"),
    ("destructuring", "const { a, ...rest } = { a: 1, b: 2, c: 3 }; const [x, ...more] = [a, rest]; sum += x;"),
    ("errors", "try { throw new Error('no') } catch (error) { sum += error.message.length - 1; }"),
    ("dates", "sum += new Date(i).getTime() - i + 1;"),
    ("BigInts", "sum += Number(BigInt(i) * 3n - BigInt(i) * 2n) - i + 1;"),
    ("matches", "sum += 'a1'.match(/(\\w)(\\d)/).length - 2;"),
    ("regular expressions", "sum += new RegExp('a' + i % 10).test('a' + i % 10) ? 1 : 0;"),
    ("split and join", "sum += 'a,b,c'.split(',').join('').length - 2;"),
    ("JSON", "sum += JSON.parse('{\"a\":[1,2]}').a[0];"),
    ("callbacks", "sum += [1, 2, 3].map((x) => x * 2).filter((x) => x > 4).length;"),
    ("promises", "await null; sum += 1;"),
    ("async calls", "sum += await later(1);"),
    ("promises that nobody settles", "const p = new Promise(() => {}); p.then(() => i); sum += 1;"),
    ("frames that nobody wakes", "never(i); sum += 1;"),
    ("promises in all", "sum += (await Promise.all([1, later(2)])).length - 1;"),
    ("names of properties", "record['k' + i % 10000] = i; sum += 1;"),
];

/// Declarations that the bodies use.
const COMMON: &str = "
let sum = 0, large = '', grown = '';
const kept = [], map = new Map(), set = new Set(), pair = [0, 1];
const record = { a: 0, b: 1 };
const one = () => 1;
const later = async (x) => { await null; return x; };
const never = async (x) => { await new Promise(() => {}); return x; };
";

/// Returns the script that runs a body `count` times. Its result is `count`.
#[must_use]
pub fn source(body: &str, count: u64) -> String {
    format!("{COMMON}for (let i = 0; i < {count}; i++) {{ {body} }}\nreturn sum")
}

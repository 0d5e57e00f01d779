//! Unread data: lazy parsing of what the host gives.
//!
//! A tool often answers with much more than a script asks for. A container under a name that the script does not
//! mention stays text, validated but not parsed. Reading it from its object parses it: by a computed key, by copying,
//! by serializing the whole. Then it is parsed, and the object holds the value.

use crate::eval::json::parse;
use crate::eval::vm::Vm;
use crate::heap::{Heap, Held};
use crate::meter::buffer::Buffer;
use crate::text::quote::plain_length;
use crate::value::atom::Atom;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// How many levels of unread data may be nested: each level scans its text again.
pub const LEVELS: u8 = 4;

/// A container with a shorter text is parsed at once, which is faster than coming back to it.
pub const MIN_BYTES: usize = 512;

/// The greatest nesting of a container that is left unread.
const DEPTH: u32 = u64::BITS;

impl Heap {
    /// A part of a buffer as unread text, with so many levels of unread text allowed within.
    pub(super) fn new_unread(&mut self, buffer: usize, start: usize, bytes: usize, levels: u8) -> Value {
        // The length of such a string is never used.
        let text = self.part_of(buffer, start, bytes, usize::from(levels));
        Value::handle(Kind::Unread, text.payload())
    }
}

/// The value of an own property of a plain object or error.
pub fn own(vm: &mut Vm, object: Value, name: Atom) -> Result<Option<Value>> {
    vm.heap.own(object, name).map(|held| read_held(vm, object, name, held)).transpose()
}

/// The own properties of a plain object or error in the order they were made, charged and counted: one step
/// for each.
pub fn charged_properties(vm: &mut Vm, object: Value) -> Result<Buffer<(Atom, Value)>> {
    vm.work(1 + vm.heap.own_len(object))?;
    counted_properties(vm, object)
}

/// The same; the caller charges while iterating.
pub fn counted_properties(vm: &mut Vm, object: Value) -> Result<Buffer<(Atom, Value)>> {
    let count = vm.heap.own_len(object);
    // The same list twice: as stored and as read.
    let held = vm.heap.charged_own_entries(object)?;
    let mut entries = Buffer::with_capacity(vm, count)?;
    for (name, value) in held {
        let value = read_held(vm, object, name, value)?;
        entries.push(vm, (name, value))?;
    }
    Ok(entries)
}

/// The value of what an object holds under a name.
#[inline(always)]
pub fn read_held(vm: &mut Vm, object: Value, name: Atom, held: Held) -> Result {
    match held.value() {
        Some(value) => Ok(value),
        None => read_unread(vm, object, name, held.text()),
    }
}

#[cold]
#[inline(never)]
fn read_unread(vm: &mut Vm, object: Value, name: Atom, text: Value) -> Result {
    let levels = vm.heap.str(text).units as u8;
    let before = vm.heap.meter.bytes;
    let value = parse::parse_string(vm, text, levels)?;
    let meter = &mut vm.heap.meter;
    meter.give(meter.bytes.saturating_sub(before));
    vm.heap.set_own(object, name, value);
    Ok(value)
}

/// The position behind the container that begins at `at`; `None` where it is not JSON, or nested deeper than [`DEPTH`].
pub fn container_end(text: &[u8], mut at: usize) -> Option<usize> {
    // A bit for each container around this position, the innermost last: 1 for an object.
    let mut objects = 0_u64;
    let mut depth = 0;
    loop {
        at = behind_space(text, at);
        let first = *text.get(at)?;
        let mut ended = true;
        match first {
            b'{' | b'[' => {
                depth += 1;
                if depth > DEPTH {
                    return None;
                }
                objects = objects << 1 | u64::from(first == b'{');
                at = behind_space(text, at + 1);
                ended = matches!((first, text.get(at)?), (b'{', b'}') | (b'[', b']'));
                if ended {
                    at += 1;
                    depth -= 1;
                    objects >>= 1;
                } else if first == b'{' {
                    at = behind_name(text, at)?;
                }
            }
            b'"' => at = behind_string(text, at)?,
            b'-' | b'0'..=b'9' => at = behind_number(text, at)?,
            b't' => at = behind_word(text, at, b"true")?,
            b'f' => at = behind_word(text, at, b"false")?,
            b'n' => at = behind_word(text, at, b"null")?,
            _ => return None,
        }
        if !ended {
            continue;
        }
        // The value that ended may end any number of containers.
        loop {
            if depth == 0 {
                return Some(at);
            }
            at = behind_space(text, at);
            match (*text.get(at)?, objects & 1) {
                (b',', 0) => {
                    at += 1;
                    break;
                }
                (b',', _) => {
                    at = behind_name(text, behind_space(text, at + 1))?;
                    break;
                }
                (b']', 0) | (b'}', 1) => {
                    at += 1;
                    depth -= 1;
                    objects >>= 1;
                }
                _ => return None,
            }
        }
    }
}

#[inline(always)]
fn behind_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// The position behind a name and its colon.
#[inline(always)]
fn behind_name(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let at = behind_space(text, behind_string(text, at)?);
    (text.get(at) == Some(&b':')).then_some(at + 1)
}

#[inline(always)]
fn behind_string(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at + 1..)?;
    let length = plain_length::<false>(rest);
    if rest.get(length) == Some(&b'"') { Some(at + length + 2) } else { behind_escapes(text, at + 1 + length) }
}

/// The position behind a string from a character in it that is not plain.
fn behind_escapes(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {}
            _ => return None,
        }
        at += match *text.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' if text.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        at += plain_length::<false>(text.get(at..)?);
    }
}

#[inline(always)]
fn behind_number(text: &[u8], mut at: usize) -> Option<usize> {
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    let mut end = behind_digits(text, at)?;
    if text[at] == b'0' && end > at + 1 {
        return None;
    }
    if text.get(end) == Some(&b'.') {
        end = behind_digits(text, end + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = matches!(text.get(end + 1), Some(b'+' | b'-'));
        end = behind_digits(text, end + 1 + usize::from(sign))?;
    }
    Some(end)
}

/// The position behind digits, of which there is at least one.
#[inline(always)]
fn behind_digits(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(b'0'..=b'9') = text.get(at) {
        at += 1;
    }
    (at > start).then_some(at)
}

#[inline(always)]
fn behind_word(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    text.get(at..)?.starts_with(word).then_some(at + word.len())
}

#[cfg(test)]
mod tests {
    use crate::{CompileOptions, Event, Inputs, Outcome, Policy, Preset, Progress, compile};

    /// What a script makes of the answer to its only call, and with how much memory.
    fn run(script: &str, answer: &str, leave_unread: bool) -> (Outcome, usize) {
        let policy = Policy::preset(Preset::Experimental);
        let script = compile(script, &CompileOptions::for_policy(&policy)).expect("it compiles");
        let mut run = script.start(Inputs::default(), &policy);
        if leave_unread {
            run.stress(crate::Stress { lazy_json: true, ..Default::default() });
        }
        let Progress::Calls(calls) = run.resume([]) else { panic!("it calls") };
        let progress = run.resume([Event::Settled { id: calls[0].id, result: Ok(answer.into()) }]);
        let Progress::Done(outcome) = progress else { panic!("it ends") };
        (*outcome, run.peak_memory_bytes())
    }

    /// Every way of reading unread data gives the same as data that was parsed at once.
    #[track_caller]
    fn assert_same(script: &str, answer: &str) -> Outcome {
        let script = format!("const r = await callTool('t', {{}});\n{script}");
        let (read, unread) = (run(&script, answer, false).0, run(&script, answer, true).0);
        assert_eq!(read.to_json(), unread.to_json(), "{script}\n{answer}");
        assert_eq!(read.logs, unread.logs, "{script}\n{answer}");
        unread
    }

    const NESTED: &str = r#"{"a": {"b": [1, -2.5e+3, {"c": {"d": "é\n\u00e9\ud83d\ude00"}}], "10": {}, "2": []}, "z": [[[true, false]]],
        "toJSON": {"x": null}, "then": {"y": "\"\\/"}, "__proto__": {"p": 1}, "a": {"b": {"again": [0]}}, "n": 1}"#;

    #[test]
    fn every_way_to_look() {
        for look in [
            "return r",
            "return r.a.b.again",
            "return r['z'][0]",
            "return [r.z === r.z, r['a'] === r.a, r.a.b === Object.values(r)[0].b]",
            "return Object.keys(r)",
            "return [Object.values(r), Object.entries(r)]",
            "return { ...r, n: 2 }",
            "const { a, ...rest } = r; return [rest, a]",
            "const { z: [[first]] } = r; return first",
            "return Object.assign([], r).z",
            "return structuredClone(r)",
            "return JSON.stringify(r, null, 2)",
            "return JSON.stringify(r, ['a', 'b', 'again'])",
            "return JSON.stringify(r, (key, value) => key === 'n' ? undefined : value)",
            "return JSON.parse(JSON.stringify(r), (key, value) => typeof value === 'number' ? -value : value)",
            "console.log(r); console.log('%o %j', r, r); console.table(r); console.dir(r, { depth: 9 }); return String(r)",
            "const seen = []; for (const key in r) seen.push([key, r[key]]); return seen",
            "return ['a' in r, 'q' in r, Object.hasOwn(r, 'z'), r.hasOwnProperty('a'), r.propertyIsEnumerable('z')]",
            "r.z = 1; delete r.a; return r",
            "r.z.push(2); r.a.b.again[0]++; return r",
            "Object.freeze(r); const z = r.z; return [z === r.z, Object.isFrozen(r), r]",
            "return [typeof r.a, typeof r.z, Array.isArray(r.z), r.a?.b?.again?.length, r.q?.b]",
            "return Object.fromEntries(Object.entries(r))",
            "return Object.groupBy([r, r], (one) => one.z.length)",
            "return new Map(Object.entries(r)).get('z')",
            "return [r.z > 1, `${r.z}`, r.z + 1, r.z == 'true,false', !r.a, r.a ?? 1]",
            "return await Promise.all([r.z, r.a, Promise.resolve(r)])",
            "await null; const f = async () => r; return (await f()).a",
            "try { return r.a.b.again.no.no } catch (error) { return error.message }",
            "try { return r.z() } catch (error) { return error.message }",
            "try { throw r } catch (error) { return error.z }",
            "return new Error('x', r.a)",
            "throw new Error('x', { cause: r })",
            "return [r].map(({ z, a }) => [z, a]).flat(9)",
            "return Array.from({ length: 2, ...r }).length + Array.from({ length: 1, 0: r })[0].n",
            "mcpLog('info', r, r); mcpNotify('event', r); return 1",
        ] {
            assert_same(look, NESTED);
            assert_same(look, &format!("[{NESTED}]").replace("\n", ""));
        }
    }

    #[test]
    fn long_names_cost_the_same_whether_read_at_once_or_later() {
        let (key, text) = ("k".repeat(1000), "v".repeat(1000));
        for answer in [
            format!(r#"{{"{key}": {{"b": []}}}}"#),
            format!(r#"{{"{key}\ude00": {{"b": []}}}}"#),
            format!(r#"{{"{key}\ude00": {{"b": ["\ud83d{text}"]}}}}"#),
        ] {
            for look in ["return r", "return JSON.stringify(r)", "return Object.values(r)", "return 1"] {
                let script = format!("const r = await callTool('t', {{}});\n{look}");
                let [read, unread] = [false, true].map(|lazily| run(&script, &answer, lazily).0.stats.steps);
                assert!(unread <= read, "{look}: {unread} steps, read at once {read}, for {answer}");
            }
        }
    }

    #[test]
    fn what_is_no_json_is_found_whether_it_is_read_or_not() {
        let whole = NESTED.as_bytes();
        let assert_told = |bytes: &[u8]| {
            if let Ok(text) = std::str::from_utf8(bytes) {
                assert_same("return r.n", text);
                assert_same("return r", text);
            }
        };
        for at in 0..whole.len() {
            assert_told(&whole[..at]);
            for byte in [b'"', b'{', b'}', b'[', b']', b',', b':', b'0', b'-', b'.', b'e', b'\\', b'\t', b't', b'x'] {
                let mut changed = whole.to_vec();
                changed[at] = byte;
                assert_told(&changed);
            }
        }
        for part in [
            "01",
            "-",
            "-01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "tru",
            "nul",
            "NaN",
            "\"\\x\"",
            "\"\\u12G4\"",
            "\"\u{1}\"",
            "\"\\",
            "[1,]",
            "[,1]",
            "{\"x\":1,}",
            "{\"x\"}",
            "{x:1}",
            "{1:1}",
            "[1 2]",
            "{\"x\":1 \"y\":2}",
            "[}",
            "{]",
            "-0",
            "0",
            "0.0",
            "1E-2",
            "12345678901234567890",
            "\" \"",
            "[ ]",
            "{ }",
            "[\n1 , 2\r\n]",
            "",
        ] {
            assert_told(format!("{{\"q\": [{part}], \"n\": 1}}").as_bytes());
            assert_told(format!("{{\"q\": {{\"q\": {part}}}, \"n\": 1}}").as_bytes());
        }
        let (wrong, _) = run("return (await callTool('t', {})).n", "{\"q\": [1,], \"n\": 1}", true);
        assert_eq!(wrong.result.expect_err("no JSON").code, "TOOL_EXECUTION_ERROR");
    }

    #[test]
    fn deep_and_chained_data() {
        for depth in [1, 3, 4, 5, 63, 64, 65, 66, 2000] {
            let deep = format!("{{\"n\": 1, \"q\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
            assert_same("return [r.n, JSON.stringify(r).length]", &deep);
            let chain = format!("{}1{}", "{\"q\":".repeat(depth), "}".repeat(depth));
            assert_same("let n = 0; for (let at = r; at.q; at = at['q']) n++; return n", &chain);
        }
    }

    /// A large part that is not used costs no memory beside its text, and no work; a small one is parsed.
    #[test]
    fn what_nobody_asks_for_is_not_read() {
        let rows = |count: usize| {
            (0..count).map(|n| format!("{{\"id\":{n},\"tags\":[\"a\",\"b\"]}}")).collect::<Vec<_>>().join(",")
        };
        let answer = format!("{{\"total\": 7, \"rows\": [{}]}}", rows(20_000));
        let script = |look: &str| format!("const r = await callTool('t', {{}}); return {look}");
        let (none, none_bytes) = run(&script("r.total"), &answer, false);
        let (all, all_bytes) = run(&script("r.rows.length + r.total"), &answer, false);
        let (late, late_bytes) = run(&script("r['row' + 's'].length + r.total"), &answer, false);
        assert_eq!(
            (none.result.expect("ok"), all.result.expect("ok"), late.result.expect("ok")),
            ("7".into(), "20007".into(), "20007".into())
        );
        assert!(none_bytes < answer.len() + (64 << 10), "{none_bytes} bytes for {} of text", answer.len());
        assert!(all_bytes > 5 * none_bytes, "{all_bytes}, {none_bytes}");
        assert!(late_bytes < all_bytes + (64 << 10), "{late_bytes}, {all_bytes}");
        assert!(none.stats.steps + 40_000 < all.stats.steps);
        // The same work either way; concatenating the name takes a few steps.
        assert!(late.stats.steps.abs_diff(all.stats.steps) < 10, "{} and {}", late.stats.steps, all.stats.steps);
        let few = format!("{{\"total\": 7, \"rows\": [{}]}}", rows(3));
        let (read, unread) = (run(&script("r.total"), &few, false).0, run(&script("r.total"), &few, true).0);
        assert!(read.stats.steps > unread.stats.steps);
    }

    #[test]
    fn limits_hold_where_it_is_read() {
        let answer = format!("{{\"rows\": [{}]}}", vec!["{\"id\":1}"; 20_000].join(","));
        let policy = |key: &str, limit: u64| {
            let mut policy = Policy::preset(Preset::Experimental);
            match key {
                "memory" => policy.limits.max_memory_bytes = limit,
                _ => policy.limits.max_steps = limit,
            }
            policy
        };
        let source = "const r = await callTool('t', {}); try { return r['ro' + 'ws'].length } catch { return 0 }";
        for (key, limit, code) in [("memory", 1 << 20, "MEMORY_LIMIT"), ("steps", 20_000, "STEP_LIMIT")] {
            let policy = policy(key, limit);
            let script = compile(source, &CompileOptions::for_policy(&policy)).expect("it compiles");
            let mut run = script.start(Inputs::default(), &policy);
            let Progress::Calls(calls) = run.resume([]) else { panic!("it calls") };
            let progress = run.resume([Event::Settled { id: calls[0].id, result: Ok(answer.clone()) }]);
            let Progress::Done(outcome) = progress else { panic!("it ends") };
            assert_eq!(outcome.result.expect_err("a limit").code, code);
        }
    }
}

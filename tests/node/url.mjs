#!/usr/bin/env node
// Compares `URL` and `URLSearchParams` with those of the Node that runs this: random URLs, bases, setters and queries, and the data of
// web-platform-tests. `url.mjs [--wpt FOLDER] [--characters] [CASES] [SEED] [COMMAND...]`
//   FOLDER:  has `urltestdata.json`, `setters_tests.json`, `toascii.json`, `IdnaTestV2.json` and the like, as `url/resources` there
//   --characters: each character in a domain
//   CASES:   the number of random cases (50000)
//   SEED:    the first seed (1); each batch has the next one
//   COMMAND: runs a file and prints its outcome as JSON (`target/debug/codecall run --preset experimental`)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const given = process.argv.slice(2);
const wpt = given[0] === '--wpt' ? given.splice(0, 2)[1] : undefined;
const characters = given[0] === '--characters' && given.splice(0, 1).length > 0;
const [count = '50000', firstSeed = '1', ...program] = given;
const command = program.length > 0 ? program : ['target/debug/codecall', 'run', '--preset', 'experimental'];
const BATCH = 1000;
const SETTERS = ['href', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];

const SEEDS = [
  'http://user:pass@example.com:8080/a/b/../c?d=e#f', 'https://example.com/', 'file:///C:/a/../b', 'file://host/share/x', 'file:///C|/demo', 'file:////tmp//x', 'non-spec:/', 'non-spec://host:80/p', 'non-spec:/..//p',
  'foo://///////bar.com/', 'blob:https://a.com:80/x', 'blob:ftp://host/p', 'mailto:a@b.c', 'data:text/plain,a b  #f', 'javascript:alert(1)', 'about:blank', 'a:b', 'ws://x:80', 'wss://x:80/', 'ftp://x:21/%2e%2E/',
  'http://[::1]:3/', 'http://[1:2::ffff:1.2.3.4]', 'http://0x7f.1/', 'http://1.2.3', 'http://256', 'http://ex%41mple.com', 'http://日本語。jp/ä?ö#ü', 'http://xn--mgba3gch31f/', 'sc://ñ/ñ?ñ#ñ', '//x/y', '/a/./b', '../..', '?q', '#f', '', '.', '..', '///test', '\\\\x\\y', '/C|/x', 'C|/x', 'http:\\\\x\\y', 'http:a', 'https:/a',
  'tel:+1 234', 'urn:isbn:1', 'view-source+x:http://a', 'http://a.b-c_d~e/%zz%', 'http://a@b@c:d@e/', 'http://ＧＯ.com', 'http://a\u00adb', 'http://\u200d', 'http://xn--ascii-/', 'http://xn--/', 'http://a..b./',
];
const HOSTS = ['', 'a', 'EXAMPLE.com', 'localhost', 'LOCALHOST', 'x.', '.', '1.2.3.4', '0x10', '0x', '08', '1.2.3.08', '4294967295', '4294967296', '1.1.1.1.1', '1..2', '[::]', '[1::2]', '[1:2:3:4:5:6:7:8]', '[::1.2.3.4]', '[::1.2.3.04]', '[1::2::3]', '[x', '%41', '%00', 'a%2fb', 'a b', 'a^b', 'a|b', 'a<b', 'ß.de', 'ä.de', '日本', 'xn--tiq', 'xn--a', 'XN--ASCII-', 'xn--zca', '☃', '｡', '１', 'א.b', 'אa', '1א', 'a\u0301', '\u0301a', 'C|', 'C:', '*', '_', '-a-', 'a_b.c'];
const PARTS = ['a', 'b', '..', '.', '%2e', '.%2E', '%2e%2e', '', '', 'C:', 'C|', 'c|d', 'é', ' ', '%', '%41', '%zz', '^', '`', '{}', "'", '"', '<>', '|', '~', ':', '@', ';=', '\\', '\t', '\n', '\u0000', '\u001f', '\u007f', '\ud800', '\udc00x', '😀', '&', '+', '=', '[', ']', '*', '$!', '()'];
const SCHEMES = ['http', 'https', 'HTTP', 'ws', 'wss', 'ftp', 'file', 'File', 'foo', 'non-spec', 'a+b.c-d', 'blob', 'data', 'javascript', 'mailto', '1a', 'a b', ''];

function generator(seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(random() * n);
  const pick = (list) => list[below(list.length)];
  const some = (most, one) => Array.from({ length: below(most + 1) }, one).join('');
  const maybe = (chance, text) => (random() < chance ? text() : '');
  const part = () => pick(PARTS);
  const path = () => some(5, () => pick(['/', '/', '/', '\\', '']) + part());
  const port = () => pick(['', '80', '443', '21', '0', '00080', '65535', '65536', '8a', 'a8', '-1', ' 8', '9/x', '99999999999999999999', '8\t0']);
  const authority = () => maybe(0.2, () => `${some(2, part)}${maybe(0.6, () => `:${some(2, part)}`)}@`) + pick(HOSTS) + maybe(0.25, () => `:${port()}`);
  const query = () => some(4, () => pick(['a', 'b=c', '&', '=', '+', '%20', part()]));
  const tail = () => path() + maybe(0.3, () => `?${query()}`) + maybe(0.3, () => `#${some(2, part)}`);
  const grammar = () => pick([
    () => `${pick(SCHEMES)}:${pick(['//', '//', '//', '/', '', '\\\\', '///', '////'])}${authority()}${tail()}`,
    () => `${pick(SCHEMES)}:${tail()}`,
    () => `${pick(['//', '/', '', '\\', '///'])}${authority()}${tail()}`,
    tail,
  ])();
  function mutated(text) {
    for (let n = below(3); n >= 0; n -= 1) {
      const [from, length] = [below(text.length + 1), below(3)];
      text = text.slice(0, from) + pick([part, part, () => '', () => pick(['/', ':', '?', '#', '@', '.', '\\']), () => pick(SEEDS).slice(below(8))])() + text.slice(from + length);
    }
    return text;
  }
  const address = () => (random() < 0.5 ? grammar() : random() < 0.3 ? pick(SEEDS) : mutated(pick(SEEDS)));
  const value = {
    href: address,
    protocol: () => pick(SCHEMES) + pick(['', ':', ':x', '://y', '\t', ' ']),
    username: () => some(3, part),
    password: () => some(3, part),
    host: () => pick([authority, () => pick(HOSTS), () => `${pick(HOSTS)}:${port()}`, () => some(3, part)])() + maybe(0.2, () => pick(['/x', '?x', '#x', '\\x'])),
    hostname: () => pick([authority, () => pick(HOSTS), () => some(3, part)])(),
    port,
    pathname: () => path() || some(2, part),
    search: () => pick(['', '?', '??', '#'])  + query(),
    hash: () => pick(['', '#', '##', '?']) + some(3, part),
  };
  // Some values are objects, whose conversion changes the URL.
  const effect = () => pick([['search', '?x=1'], ['search', ''], ['hash', '#y'], ['pathname', '/new'], ['host', 'new.host'], ['username', 'me'], ['href', 'http://new/?a=b'], ['append', 'z']]);
  const setters = () => Array.from({ length: below(4) }, () => { const name = pick(SETTERS); return [name, value[name](), ...(random() < 0.2 ? [effect()] : [])]; });
  const operation = () => [pick(['append', 'set', 'delete', 'has', 'get', 'getAll', 'sort', 'search']), pick(['a', 'b', part()]), pick(['', 'c', part()]), below(2)];
  const operations = () => Array.from({ length: below(4) }, operation);
  const valid = () => { for (;;) { const text = address(); if (URL.canParse(text)) return text; } };
  return () => pick([
    () => ['url', address(), random() < 0.6 ? null : random() < 0.8 ? valid() : address(), setters()],
    () => ['url', valid(), null, setters()],
    () => ['query', valid(), pick([query(), `?${query()}`, [[part(), query()], ['a', part()]], { a: query(), [part()]: part() }]), operations()],
  ])();
}

/** The cases of web-platform-tests. */
function* tested(folder) {
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
    const data = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    if (!Array.isArray(data)) {
      for (const name of SETTERS) for (const test of data[name] ?? []) yield ['url', test.href, null, [[name, test.new_value]]];
      continue;
    }
    for (const test of data.filter((test) => typeof test.input === 'string')) {
      if ('base' in test) {
        yield ['url', test.input, test.base, []];
        continue;
      }
      yield ['url', `https://${test.input}/x`, null, []];
      yield ['url', `https://${encodeURIComponent(test.input.toWellFormed())}/x`, null, []];
      yield ['url', `foo://x/?${test.input}#${test.input}`, null, [['pathname', test.input], ['username', test.input]]];
      for (const name of ['host', 'hostname']) yield ['url', 'https://x/x', null, [[name, test.input]]];
    }
  }
}

/** Each character in a domain, but lone surrogates. */
function* lettered() {
  for (let code = 0x80; code < 0x110000; code += 1) {
    if (code < 0xd800 || code > 0xdfff) yield ['host', `a${String.fromCodePoint(code)}`];
  }
}

// The script that both engines run; it gives a line for each case.
const body = `
const parts = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];
const show = (url) => [...parts.map((part) => url[part]), [...url.searchParams]];
const failed = (error) => [error.name, error.message, error.code, error.input, error.base];
// The \`canParse\` of Node 20 fails for letters of Latin-1, once it is compiled.
const canParse = (input, given) => /^[\\0-\\x7f]*$/.test(input + given) && (given === null ? URL.canParse(input) : URL.canParse(input, given));
const line = ([kind, input, given, steps]) => {
  try {
    if (kind === 'host') return [new URL('http://' + input).hostname];
    if (kind === 'url') {
      const url = given === null ? new URL(input) : new URL(input, given);
      const lines = [canParse(input, given), show(url)];
      for (const [name, text, effect] of steps) {
        // Node ends where it can make a URL that it cannot read.
        if (!URL.canParse(url.href)) break;
        // Node 20 loses what follows a path of a URL without a host.
        if (name === 'pathname' && /^[^:]+:\\/(?!\\/)[^]*[?#]/.test(url.href)) continue;
        const value = effect === undefined ? text : { toString() { if (effect[0] === 'append') url.searchParams.append(effect[1], ''); else url[effect[0]] = effect[1]; return text; } };
        try {
          url[name] = value;
        } catch (error) {
          lines.push(failed(error));
        }
        lines.push(show(url));
      }
      return lines;
    }
    const url = new URL(input);
    const made = new URLSearchParams(given);
    const lines = [made.toString(), [...made], made.size];
    for (const params of [made, url.searchParams]) {
      for (const [name, key, value, two] of steps) {
        if (!URL.canParse(url.href)) break;
        if (name === 'search') {
          url.search = key + '=' + value;
        } else if (name === 'append' || name === 'set') {
          params[name](key, value);
        } else if (name === 'sort') {
          params.sort();
        } else if (two && name !== 'get' && name !== 'getAll') {
          lines.push(params[name](key, value));
        } else {
          lines.push(params[name](key));
        }
        lines.push(params.toString(), [...params]);
      }
      lines.push(show(url));
    }
    return lines;
  } catch (error) {
    return failed(error);
  }
};
return cases.map((test) => JSON.stringify(line(test)));`;

const folder = mkdtempSync(join(tmpdir(), 'url-'));
let done = 0;
let different = 0;

/** Compare some cases, and show what differs. */
function compare(cases, name) {
  const script = `const cases = ${JSON.stringify(cases).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')};${body}`;
  const wanted = new Function(`'use strict';${script}`)();
  const file = join(folder, 'cases.js');
  writeFileSync(file, script);
  const outcome = JSON.parse(execFileSync(command[0], [...command.slice(1), file], { maxBuffer: 1 << 30 }).toString());
  const got = outcome.result ?? [JSON.stringify(outcome.error)];
  wanted.forEach((line, index) => {
    if (line === got[index]) return;
    different += 1;
    if (different > 40) return;
    const [here, there] = [got[index], line].map((side) => JSON.parse(side ?? '[]'));
    const at = there.findIndex((part, i) => JSON.stringify(part) !== JSON.stringify(here[i]));
    console.log(`${JSON.stringify(cases[index])} (${name})\n  node ${JSON.stringify(there[at] ?? there)}\n  here ${JSON.stringify(here[at] ?? here)}`);
  });
  done += cases.length;
}

function compareAll(cases, size, name) {
  for (let from = 0; from < cases.length; from += size) compare(cases.slice(from, from + size), name);
}

if (wpt !== undefined) compareAll([...tested(wpt)], BATCH, 'web-platform-tests');
if (characters) compareAll([...lettered()], 20 * BATCH, 'characters');
const last = done + Number(count);
for (let seed = Number(firstSeed); done < last; seed += 1) {
  const next = generator(seed);
  compare(Array.from({ length: BATCH }, next), `seed ${seed}`);
}
rmSync(folder, { recursive: true });
console.log(`${done} cases, ${different} differ`);
process.exitCode = different > 0 ? 1 : 0;

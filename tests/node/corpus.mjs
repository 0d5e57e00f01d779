// Reads and writes corpus files. ../corpus/README.md describes the format.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const CASE = /^=== (.+)$/;
const HEADER = /^@(tools|context|preset|limits|allowed|language|dialect|differs|no-node)(?: (.*))?$/;
const SECTION = /^--- (logs|result|error|status)$/;

/** Returns all corpus files in these paths, in a fixed order. */
export function corpusFiles(paths) {
  return paths.flatMap((path) => {
    if (!statSync(path).isDirectory()) return [path];
    const names = readdirSync(path).filter((name) => name.endsWith('.txt') || statSync(join(path, name)).isDirectory());
    return corpusFiles(names.sort().map((name) => join(path, name)));
  });
}

/** Returns `{prelude, cases}`; a case is `{name, headers, script, logs, outcome: {kind, text} | null}`. */
export function readCorpus(path) {
  const lines = readFileSync(path, 'utf8').split('\n');
  let at = lines.findIndex((line) => CASE.test(line));
  if (at < 0) at = lines.length;
  const file = { path, prelude: lines.slice(0, at).join('\n').trimEnd(), cases: [] };
  while (at < lines.length) {
    let end = at + 1;
    while (end < lines.length && !CASE.test(lines[end])) end += 1;
    file.cases.push(readCase(lines.slice(at, end), `${path}:${at + 1}`));
    at = end;
  }
  const names = file.cases.map((one) => one.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`${path}: two cases are called ${twice}`);
  return file;
}

function readCase(lines, place) {
  const one = { name: CASE.exec(lines[0])[1], place, headers: {}, script: '', logs: [], outcome: null };
  let at = 1;
  for (let match; at < lines.length && (match = HEADER.exec(lines[at])); at += 1) one.headers[match[1]] = match[2] ?? '';
  const sections = [['script', []]];
  for (const line of lines.slice(at)) {
    const match = SECTION.exec(line);
    if (match) sections.push([match[1], []]);
    else sections.at(-1)[1].push(line);
  }
  for (const [kind, body] of sections) {
    const text = body.join('\n').trimEnd();
    if (kind === 'script') one.script = text;
    else if (kind === 'logs') one.logs = text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    else if (one.outcome) throw new Error(`${place}: more than one outcome`);
    else one.outcome = { kind, text };
  }
  return one;
}

/** Formats a corpus file. */
export function writeCorpus({ prelude, cases }) {
  const parts = cases.map(({ name, headers, script, logs, outcome }) => {
    const lines = [`=== ${name}`];
    for (const [key, value] of Object.entries(headers)) lines.push(`@${key} ${value}`.trimEnd());
    lines.push(script);
    if (logs.length > 0) lines.push('--- logs', ...logs.map((line) => JSON.stringify(line)));
    if (outcome) lines.push(`--- ${outcome.kind}`, outcome.text);
    return lines.join('\n');
  });
  return [...(prelude ? [prelude] : []), ...parts].join('\n\n') + '\n';
}

// The suites: which files of a checkout hold programs, and how they are taken out.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseScript } from '../parse.mjs';
import { codeOf } from '../shape.mjs';
import { scriptsIn } from './strings.mjs';

// Larger files are libraries and generated data.
const MAX_LENGTH = 200_000;

const whole = (text) => [text];
const inStrings = (language, test) => (text) => scriptsIn(text, language, test);

// `files` is a test of a path in the checkout. `keeps` leaves the program as it is: it is not made to go on after an exception.
export const SUITES = {
  boa: { files: /(tests?\.rs|\/tests\/.*\.rs)$/, programs: inStrings('rust', /^ *#\[test\]/m), keeps: true },
  chakra: { files: /^test\/.*\.js$/, programs: whole },
  'compat-table': { files: /data-.*\.js$/, programs: commentsOfFunctions, keeps: true },
  corejs: { files: /unit-(global|pure)\/.*\.js$/, programs: whole },
  deno: { files: /^tests\/(unit|testdata)\/.*\.[jt]s$/, programs: (text) => [codeOf(text)?.code ?? text] },
  duktape: { files: /^tests\/ecmascript\/.*\.js$/, programs: whole },
  engine262: { files: /^test\/.*\.m?ts$/, programs: inStrings('javascript', /^ *(test|it)\(/m), keeps: true },
  // Test scripts of SpiderMonkey.
  gecko: { files: /\.js$/, programs: (text) => [text.replaceAll('new TestCase', 'TestCase')] },
  goja: { files: /_test\.go$/, programs: inStrings('go', /^func /m), keeps: true },
  hermes: { files: /^test\/.*\.js$/, programs: whole },
  jerry: { files: /^tests\/.*\.m?js$/, programs: whole },
  jint: { files: /^Jint\.Tests.*\.(cs|js)$/, programs: (text, path) => (path.endsWith('.js') ? [text] : scriptsIn(text, 'csharp', /^ *\[(Fact|Theory)/m)), keeps: true },
  nashorn: { files: /\.js$/, programs: whole },
  quickjs: { files: /^tests\/.*\.js$/, programs: whole },
  rhino: { files: /^tests\/testsrc\/.*\.js(test)?$/, programs: (text) => [text.replaceAll('new TestCase', 'TestCase')] },
  // Any folder of scripts.
  scripts: { files: /\.m?js$/, programs: whole },
  uglify: { files: /^test\/compress\/.*\.js$/, programs: casesOfUglify, keeps: true },
  v8: { files: /\.js$/, programs: (text) => [text.replace(/%\w+\([^()]*\)/g, 'undefined')] },
  wpt: { files: /\.(any|window|worker)\.js$/, programs: withIncludes },
  zapcode: { files: /\.(rs|mjs)$/, programs: (text, path) => scriptsIn(text, path.endsWith('.rs') ? 'rust' : 'javascript', /^ *#\[test\]|^ *await (check|test)\(/m), keeps: true },
};

/** Returns the programs of a suite, `{place, text, keeps}`. */
export function programsOf(name, folder) {
  const { files, programs, keeps } = SUITES[name];
  const paths = filesBelow(folder).map((path) => relative(folder, path)).filter((path) => files.test(path)).sort();
  return paths.flatMap((path) => {
    const text = readFileSync(join(folder, path), 'utf8');
    if (text.length > MAX_LENGTH) return [];
    return programs(text, path, folder).map((one, index, { length }) => ({ place: length > 1 ? `${path} (${index + 1})` : path, text: one, keeps }));
  });
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === '.git' ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Cases of UglifyJS: labelled blocks, in which `input` and `expect` are programs. */
function casesOfUglify(text) {
  const found = [];
  for (const one of parseScript(text)?.body ?? []) {
    for (const part of one.body?.body ?? []) {
      const { label, body } = part;
      if (label && /^(input|expect)$/.test(label.name) && body.type === 'BlockStatement') found.push(text.slice(body.start + 1, body.end - 1));
    }
  }
  return found;
}

/** Bodies of functions that are written in comments: `exec: function () {/* … *\/}`. */
function commentsOfFunctions(text) {
  return [...text.matchAll(/function *\w* *\(\) *\{ *\/\*([\s\S]*?)\*\//g)].map(([, body]) => body);
}

/** A web platform test with the scripts that its head names, and the data that it fetches. */
function withIncludes(text, path, folder) {
  const near = (name) => join(folder, name.startsWith('/') ? name : join(dirname(path), name));
  const includes = [...text.matchAll(/^\/\/ META: script=(\S+)/gm)].map(([, name]) => near(name)).filter(existsSync).map((file) => readFileSync(file, 'utf8'));
  const data = (_, name) => (existsSync(near(name)) ? `Promise.resolve(JSON.parse(${JSON.stringify(JSON.stringify(JSON.parse(readFileSync(near(name), 'utf8'))))}))` : _);
  return [[...includes, text].join('\n').replace(/fetch\("(resources\/[\w-]+\.json)"\)\.then\(\(?\w+\)? => \w+\.json\(\)\)/g, data)];
}

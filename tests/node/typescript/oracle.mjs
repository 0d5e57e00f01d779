// The judgement of the TypeScript compiler and of Node on a program.
import ts from 'typescript';

const AsyncFunction = (async () => {}).constructor;
const HEAD = 'async function $() {\n';
const TAIL = '\n}';
const options = { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, noLib: true, noResolve: true, alwaysStrict: false };

// Errors that the compiler finds behind its parser, though no type is wrong: JSDoc types, parameters `this`, signatures.
const GRAMMAR = new Set([2369, 2371, 2389, 2390, 2391, 2394, 2463, 2499, 2680, 2730, 5076, 7061, 17019, 17020]);
// Errors that do not count here: declarations in a function, which the script is for the compiler.
const OURS = new Set([1155, 1182, 1184]);

// Programs that the parser of TypeScript refuses though it means to accept them: it takes a name on the next line for a
// mistake if a word follows, a `?` for a part of a type, a comparison for type arguments that go on in another way, and what
// follows `case (x):` for the result type of a function.
const QUIRKS = [
  [1003, /\.\s*$/],
  [1005, /\b(?:as|satisfies)\b[^;?]*\?[^;:]*$/],
  [1005, /[<,]\s*<[^<>;]{0,40}$/],
  [1005, /<\s*\([\w\s,.]*\)?\s*$/],
  [1005, /\bcase\s*\([\w\s,]*\)\s*:[^;]{0,60}$/],
  [1110, /<[^;()]*,\s*$/],
];
const isQuirk = ({ code, start }, text) => QUIRKS.some(([known, before]) => code === known && before.test(text.slice(Math.max(0, start - 200), start)));

const host = (file) => ({
  getSourceFile: (name) => (name === 'a.ts' ? file : undefined),
  writeFile() {},
  getCurrentDirectory: () => '/',
  getCanonicalFileName: (name) => name,
  useCaseSensitiveFileNames: () => true,
  getNewLine: () => '\n',
  fileExists: (name) => name === 'a.ts',
  readFile: () => '',
  getDefaultLibFileName: () => 'lib.d.ts',
});

/** Whether a text is JavaScript. */
export function isJavaScript(text) {
  try {
    new AsyncFunction(`"use strict";${text}`);
    return true;
  } catch {
    return false;
  }
}

/**
 * The verdict on a program, `accept` or `refuse`, with its JavaScript. It is `either` where the compiler refuses the program
 * behind its parser, or refuses what is JavaScript.
 */
export function wanted(text) {
  const source = `${HEAD}${text}${TAIL}`;
  const file = ts.createSourceFile('a.ts', source, { languageVersion: ts.ScriptTarget.ESNext }, true);
  const [problem] = file.parseDiagnostics;
  const isWhole = file.statements.length === 1 && ts.isFunctionDeclaration(file.statements[0]);
  if (problem || !isWhole) {
    const why = problem ? `TS${problem.code} ${ts.flattenDiagnosticMessageText(problem.messageText, ' ')}` : 'it ends the function';
    const isDoubtful = isWhole && (isJavaScript(text) || isQuirk(problem, source));
    return { want: isDoubtful ? 'either' : 'refuse', why };
  }
  // It reads the `a.<T>` of documentation comments too.
  if (/\.\s*</.test(text)) return { want: 'either', why: 'a.<T>' };
  // The parser of TypeScript leaves out what follows `declare` and is no declaration.
  if (/\bdeclare\s+(?!(?:abstract|class|const|enum|function|interface|let|module|namespace|type|var)\b)[\w{[(]/.test(text)) return { want: 'either', why: 'declare' };
  const output = ts.transpileModule(source, { compilerOptions: options }).outputText;
  const code = output.slice(output.indexOf('{') + 1, output.lastIndexOf('}'));
  if (!isJavaScript(code)) return { want: 'refuse', why: 'its JavaScript is none' };
  const later = ts.createProgram(['a.ts'], options, host(file)).getSemanticDiagnostics(file);
  const grammar = later.find(({ code }) => (code < 2000 || (code >= 8000 && code < 9000) || GRAMMAR.has(code)) && !OURS.has(code));
  return { want: grammar ? 'either' : 'accept', why: grammar && `TS${grammar.code}`, code };
}

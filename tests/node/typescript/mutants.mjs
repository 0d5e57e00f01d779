// Changes of programs by a token or two. Most results are no programs.
import { pick, random } from '../locales/random.mjs';

const TOKEN = /\s+|\/\*[\s\S]*?\*\/|`(?:[^`\\]|\\.)*`|"[^"]*"|'[^']*'|[\w$]+|=>|\.\.\.|\?\.|[=!]==?|[<>*&|?+-]=|\*\*|&&|\|\||\?\?|[^]/g;
const POOL = ['<', '>', ':', '?', 'as', '!', '(', ')', ',', '=>', ';', '\n', 'type', '[', ']', '{', '}', '=', '...', '|', '&', 'T', 'a', '1', '.', '?.', 'async', 'is', 'keyof', 'infer', 'extends', 'new', 'readonly', 'satisfies', 'declare', 'const', 'function', 'interface', '<T>', ': T', 'as T', '>>', '<<', 'in', 'of', 'this', "'s'", '-', '@', '#'];

/** A program with one to three changes. */
export function mutant(program) {
  const tokens = program.match(TOKEN);
  for (let changes = 1 + random(2); changes > 0; changes -= 1) {
    const at = random(tokens.length);
    const other = Math.min(at + 1 + random(3), tokens.length - 1);
    switch (random(5)) {
      case 0: tokens.splice(at, 1); break;
      case 1: tokens.splice(at, 0, tokens[random(tokens.length)]); break;
      case 2: [tokens[at], tokens[other]] = [tokens[other], tokens[at]]; break;
      case 3: tokens.splice(at, 0, ` ${pick(POOL)} `); break;
      default: tokens.splice(at, 0, '\n');
    }
  }
  return tokens.join('');
}

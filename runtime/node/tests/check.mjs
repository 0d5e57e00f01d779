/** Runs a test runner and ends with the line that CI counts: `node check.mjs node --test tests/run.test.mjs`. */

import { spawnSync } from "node:child_process";

const [command, ...options] = process.argv.slice(2);
const { status, stdout, stderr } = spawnSync(command, options, {
  encoding: "utf8",
  env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" },
});
const text = stdout + stderr;
/** What Node (`# pass 3`, `ℹ pass 3`), Deno (`3 passed | 0 failed`) and Bun (` 3 pass`) say at their end. */
const number = (...forms) => Number(forms.map((form) => form.exec(text)?.[1]).find((found) => found !== undefined) ?? 0);
const passed = number(/^(?:#|ℹ) pass (\d+)/m, /(\d+) passed \|/, /^\s*(\d+) pass$/m);
const failed = number(/^(?:#|ℹ) fail (\d+)/m, /\| (\d+) failed/, /^\s*(\d+) fail$/m);
const problems = failed > 0 || status === 0 ? failed : 1;
if (problems > 0 || passed === 0) process.stdout.write(text);
process.stdout.write(`${command.split("/").at(-1)}:\n${passed + failed} cases, ${problems} problems\n`);
process.exit(problems === 0 && passed > 0 ? 0 : 1);

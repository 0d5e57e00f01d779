/** The examples of the README and of the pages, as they are. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

for (const [page, ...printed] of [
  ["../README.md", "16.5"],
  ["../../../docs/guide/embedding.md", "[ 'user 1', 'user 2' ]"],
  ["../../../docs/guide/moving/enclave.md", "Ada", "Ada"],
]) {
  test(`the examples of ${page}`, () => {
    const blocks = readFileSync(new URL(page, import.meta.url), "utf8").matchAll(/```js\n(.*?)```/gs);
    const own = [...blocks].map(([, code]) => code).filter((code) => code.includes('"@codecall/agentscript"'));
    const cwd = fileURLToPath(new URL("..", import.meta.url));
    const last = (code) => {
      const output = execFileSync(process.execPath, ["--input-type=module", "--eval", code], { cwd, encoding: "utf8" });
      return output.trimEnd().split("\n").at(-1);
    };
    assert.deepEqual(own.map(last), printed);
  });
}

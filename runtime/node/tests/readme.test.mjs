/** The examples of the README and of docs/embedding.md, as they are. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

for (const [page, printed] of [
  ["../README.md", "16.5"],
  ["../../../docs/embedding.md", "[ 'user 1', 'user 2' ]"],
]) {
  test(`the example of ${page}`, () => {
    const [, code] = /```js\n(.*?)```/s.exec(readFileSync(new URL(page, import.meta.url), "utf8"));
    const cwd = fileURLToPath(new URL("..", import.meta.url));
    const output = execFileSync(process.execPath, ["--input-type=module", "--eval", code], { cwd, encoding: "utf8" });
    assert.equal(output.trimEnd().split("\n").at(-1), printed);
  });
}

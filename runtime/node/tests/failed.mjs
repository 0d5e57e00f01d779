/** What the tests share. */

import assert from "node:assert/strict";

const { RunError, run } = await import(process.env.AGENTSCRIPT ?? "@codecall/agentscript");

/** The error of a run, which must fail. */
export async function failed(script, options) {
  try {
    await run(script, options);
  } catch (error) {
    assert.ok(error instanceof RunError, String(error));
    return error;
  }
  assert.fail(`${script} succeeds`);
}

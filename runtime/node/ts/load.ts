/** Finds the native addon: the one of a build from source, or the package of this platform. */

import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Native } from "./native.js";

/** Loads the addon. */
export function load(): Native {
  // This file is CommonJS when it runs: see build.mjs.
  const require = createRequire(pathToFileURL(__filename));
  const built = join(__dirname, "..", "agentscript.node");
  if (existsSync(built)) return require(built) as Native;
  const name = `@codecall/agentscript-${platform()}`;
  try {
    return require(name) as Native;
  } catch (error) {
    throw new Error(
      `There is no native module of AgentScript for this platform: install ${name}, or import "@codecall/agentscript/wasm"`,
      { cause: error },
    );
  }
}

function platform(): string {
  const { platform: system, arch } = process;
  if (system !== "linux") return `${system}-${arch}`;
  // Node says which C library it runs on; without a report it is the common one.
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  const isMusl = report?.header !== undefined && report.header.glibcVersionRuntime === undefined;
  return `linux-${arch}-${isMusl ? "musl" : "gnu"}`;
}

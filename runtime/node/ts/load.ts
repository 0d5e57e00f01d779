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

/** As `server/packaging/npm.py` names the platforms. */
function platform(): string {
  const { platform: system, arch } = process;
  return `${system}-${arch}${system === "linux" && isMusl() ? "-musl" : ""}`;
}

/** Node says which C library it runs on; without a report it is the common one. */
function isMusl(): boolean {
  const report = process.report as (NodeJS.ProcessReport & { excludeNetwork?: boolean }) | undefined;
  if (report === undefined) return false;
  // Without it a report looks up the name of each connection, which can take seconds.
  const excluded = report.excludeNetwork ?? false;
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
  report.excludeNetwork = excluded;
  return header !== undefined && header.glibcVersionRuntime === undefined;
}

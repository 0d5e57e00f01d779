/**
 * Builds the package: `node build.mjs [--profile release] [--addon FILE]`.
 *
 * The native addon is built by Cargo, or is the library that `--addon` names; the rest is compiled by TypeScript, once as
 * ECMAScript modules and once as CommonJS. Node imports and requires the same instance, which is the latter.
 */

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
const { values } = parseArgs({ options: { profile: { type: "string", default: "dev" }, addon: { type: "string" } } });

const library = {
  darwin: "libagentscript_node.dylib",
  win32: "agentscript_node.dll",
}[process.platform] ?? "libagentscript_node.so";

function run(command, ...options) {
  execFileSync(command, options, { cwd: here, stdio: "inherit" });
}

function addon() {
  if (values.addon !== undefined) return values.addon;
  run("cargo", "build", "--locked", "--quiet", "--profile", values.profile, "-p", "codecall-agentscript-node");
  const metadata = execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], { cwd: here });
  const folder = values.profile === "dev" ? "debug" : values.profile;
  return join(JSON.parse(metadata).target_directory, folder, library);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(join(dist, "cjs"), { recursive: true });
copyFileSync(addon(), join(dist, "agentscript.node"));

run("npx", "tsc", "-p", ".");
run("npx", "tsc", "-p", "tsconfig.cjs.json");
writeFileSync(join(dist, "cjs", "package.json"), '{ "type": "commonjs" }\n');
const names = Object.keys(createRequire(import.meta.url)("./dist/cjs/node.js")).sort();
writeFileSync(join(dist, "node.mjs"), `import api from "./cjs/node.js";\nexport const { ${names.join(", ")} } = api;\n`);

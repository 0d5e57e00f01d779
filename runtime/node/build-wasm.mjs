/**
 * Builds the module for browsers and workers: `node build-wasm.mjs [--test] [--profile dist]`.
 *
 * It needs the target `wasm32-unknown-unknown` and the program `wasm-bindgen` in the version of the crate
 * (`cargo install wasm-bindgen-cli@VERSION`). Without them it checks that the wrapper compiles for this machine and says loudly
 * what it skips; with `REQUIRE_WASM=true` that is a failure.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

const TARGET = "wasm32-unknown-unknown";
const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "dist", "wasm");
const { values } = parseArgs({
  options: { test: { type: "boolean", default: false }, profile: { type: "string", default: "dist" } },
});

function run(command, options, environment = {}) {
  execFileSync(command, options, { cwd: here, stdio: "inherit", env: { ...process.env, ...environment } });
}

function hasTarget() {
  const found = spawnSync("rustc", ["--print", "target-libdir", "--target", TARGET], { encoding: "utf8" });
  const folder = found.stdout?.trim() ?? "";
  return found.status === 0 && existsSync(folder) && readdirSync(folder).some((file) => file.startsWith("libcore"));
}

function missing() {
  if (!hasTarget()) return `the target ${TARGET} is not installed; rustup target add ${TARGET}`;
  const lock = readFileSync(join(here, "..", "..", "Cargo.lock"), "utf8");
  const wanted = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock)[1];
  const found = spawnSync("wasm-bindgen", ["--version"], { encoding: "utf8" }).stdout?.trim();
  if (found !== `wasm-bindgen ${wanted}`) return `there is no wasm-bindgen ${wanted}; cargo install wasm-bindgen-cli@${wanted}`;
  return undefined;
}

const problem = missing();
if (problem === undefined) {
  run("cargo", ["build", "--locked", "--profile", values.profile, "--target", TARGET, "-p", "codecall-agentscript-wasm"]);
  const metadata = JSON.parse(execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], { cwd: here }));
  const folder = values.profile === "dev" ? "debug" : values.profile;
  const built = join(metadata.target_directory, TARGET, folder, "agentscript_wasm.wasm");
  run("wasm-bindgen", ["--target", "web", "--out-dir", out, built]);
  const module = join(out, "agentscript_wasm_bg.wasm");
  const bytes = readFileSync(module);
  console.log(`${module}: ${statSync(module).size} bytes, ${gzipSync(bytes).length} with gzip`);
  if (values.test) {
    const environment = { AGENTSCRIPT: join(here, "tests", "wasm.mjs") };
    run(process.execPath, ["tests/check.mjs", process.execPath, "--test", "tests/run.test.mjs", "tests/checks.test.mjs"], environment);
  }
} else {
  console.log(`!!! SKIPPED: the module for WebAssembly: ${problem}`);
  run("cargo", ["check", "--locked", "--quiet", "-p", "codecall-agentscript-wasm"]);
  console.log("The wrapper compiles for this machine.");
  if (process.env.REQUIRE_WASM === "true") process.exit(1);
}

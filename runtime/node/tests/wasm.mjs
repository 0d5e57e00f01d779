/** The package as browsers have it, in Node: for the same tests. */

import { readFile } from "node:fs/promises";
import { init } from "@codecall/agentscript/wasm";

await init(await readFile(new URL("../dist/wasm/agentscript_wasm_bg.wasm", import.meta.url)));

export * from "@codecall/agentscript/wasm";

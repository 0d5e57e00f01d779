/** The package for browsers and workers: as WebAssembly. */

import { use, type Native } from "./native.js";

export * from "./index.js";

/** The module that wasm-bindgen writes. */
interface Bindgen {
  default: (source?: { module_or_path: unknown }) => Promise<unknown>;
}

let loading: Promise<void> | undefined;

/**
 * Loads the interpreter, once; every other function needs it. `source` is the module (an URL, a `Response`, bytes or a
 * `WebAssembly.Module`); by default it is fetched from beside this file.
 */
export function init(source?: unknown): Promise<void> {
  loading ??= (async () => {
    // wasm-bindgen writes it: see ../build-wasm.mjs.
    const path = "../wasm/agentscript_wasm.js";
    const bindgen = (await import(path)) as Bindgen & Native;
    await bindgen.default(source === undefined ? undefined : { module_or_path: source });
    use(bindgen);
  })();
  return loading;
}

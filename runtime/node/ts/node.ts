/** The package for Node, Deno and Bun: with the native addon. */

import { load } from "./load.js";
import { use } from "./native.js";

use(load());

export * from "./index.js";

/** The tools that scripts call, and the tool that runs scripts: the same for all libraries. */

import { RunError, Toolset, run } from "@codecall/agentscript";
import { z } from "zod";

const STOCK = { tea: { price: 4.5, left: 3 }, cup: { price: 12, left: 0 }, pot: { price: 30, left: 1 } };

/** These are tools of the AI SDK too. */
export const tools = {
  find_product: {
    description: "Price and stock of a product.",
    inputSchema: z.object({ name: z.string().describe("Its name") }),
    outputSchema: z.object({ price: z.number().describe("In euros"), left: z.number() }),
    execute: async ({ name }) => {
      if (!(name in STOCK)) throw new Error(`There is no product '${name}'`);
      return STOCK[name];
    },
  },
  place_order: {
    description: "Orders products.",
    inputSchema: z.object({ names: z.array(z.string()) }),
    execute: async ({ names }) => ({ ordered: names, id: "order-1" }),
  },
};

const set = new Toolset(tools);

export const instructions = `Answer with one script in AgentScript, a safe subset of JavaScript, and the tool run_script.
A script can call these functions, many at once, and returns what you need to know:

${set.declarations()}`;

export const description = "Run a script that calls the functions of the shop. Returns its result, or what is wrong with it.";

/** Runs a script of a model. The model reads a failure, and tries again. */
export async function runScript({ script }, { abortSignal } = {}) {
  try {
    const { result, logs } = await run(script, { tools: set, signal: abortSignal });
    return { status: "ok", result, logs };
  } catch (error) {
    if (error instanceof RunError) return error.toJSON();
    throw error;
  }
}

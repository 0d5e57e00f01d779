// The differences of `intl.mjs` that are known: each a reason and a test of the call and its two results.

const DIFFERENCES = [];

/** The reason of a difference; undefined where there is none. */
export function explained(call, node, here) {
  return DIFFERENCES.find(({ test }) => test(call, node, here))?.reason;
}

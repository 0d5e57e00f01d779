// Random choices, always the same ones for a seed.
let state = 1;

/** Begins again with a seed. */
export const seed = (number) => {
  state = number >>> 0;
};

/** A whole number from 0 to below `below`. */
export const random = (below) => {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
};

/** One of a list. */
export const pick = (list) => list[random(list.length)];

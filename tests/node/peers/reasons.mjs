// The reasons of the differences of `peers.mjs` that are known: each with a test of the script, of what Node says and of what we say.
const REASONS = [
  {
    reason: 'time, and random numbers',
    test: ({ script }) => /Math\.random|Date\.now|new Date\(\)|new Date;|performance\.now|randomUUID|getRandomValues|\bDate\(\)/.test(script),
  },
];

/** The reason of a difference; undefined if there is none. */
export function reasonOf(difference) {
  return REASONS.find(({ test }) => test(difference))?.reason;
}

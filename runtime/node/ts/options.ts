/** Names of options: one that does not exist is a mistake of the program, never of a script. */

import { native } from "./native.js";

/** The names of all options, which the compiler completes. */
export function namesOf<T extends object>(names: { [name in keyof Required<T>]: true }): readonly string[] {
  return Object.keys(names);
}

/** Refuses names that do not exist. */
export function checkNames(what: string, given: object | undefined, known: readonly string[]): void {
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined || known.includes(name)) continue;
    const near = nearest(name, known);
    throw new TypeError(`there is no ${what} '${name}'; ${near === undefined ? `there are: ${known.join(", ")}` : `did you mean '${near}'?`}`);
  }
}

/** The name that is nearest to one that does not exist. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  return native().nearest(name, [...known]) ?? undefined;
}

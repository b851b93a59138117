import { randomInt } from "node:crypto";

/** What was to run in a sandbox was not run there, or not to its end: its test has shown nothing. */
export class DidNotRunError extends Error {
  override readonly name = "DidNotRunError";
}

export interface MarkedScript {
  /** To be run by `sh -c`; it ends with the script's own exit code. */
  readonly script: string;
  /**
   * What was printed, without the marks.
   * @throws DidNotRunError if it has no mark of the beginning, or none of the end and `toItsEnd` is not false
   */
  read(printed: string, options?: { readonly toItsEnd?: boolean }): string;
}

/**
 * Puts marks around a script that only a shell which runs it can print on stderr, since it works them out. If nothing
 * runs, nothing is reached either: without a mark a test of an attack would pass with no sandbox at all.
 */
export function marked(script: string): MarkedScript {
  const [one, other] = [randomInt(1_000, 1_000_000), randomInt(1_000, 1_000_000)];
  const sum = `$((${one} * ${other}))`;
  const [begun, ended] = [`(begun ${one * other})\n`, `(ended ${one * other})\n`];
  return {
    script: `echo "(begun ${sum})" >&2\n(\n${script}\n)\ncode=$?\necho "(ended ${sum})" >&2\nexit $code`,
    read(printed, { toItsEnd = true } = {}) {
      const missing = !printed.includes(begun) ? "begin" : toItsEnd && !printed.includes(ended) ? "end" : null;
      if (missing === null) return printed.replace(begun, "").replace(ended, "");
      throw new DidNotRunError(
        `did not run: it did not ${missing}, and printed ${JSON.stringify(printed.slice(0, 500))}`,
      );
    },
  };
}

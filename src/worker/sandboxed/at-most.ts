import { Transform } from "node:stream";

/** More came than is let through. */
export class TooLargeError extends Error {}

/**
 * Lets so many bytes through, and breaks the pipeline at the next with a TooLargeError.
 * @param setting the variable that says how many
 */
export function atMost(maximumBytes: number, setting: string): Transform {
  let passed = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length;
      if (passed > maximumBytes) done(new TooLargeError(`it is larger than ${setting}`));
      else done(null, chunk);
    },
  });
}

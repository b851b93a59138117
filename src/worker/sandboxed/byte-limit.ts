import { Transform } from "node:stream";

/** A stream had more bytes than its limit. */
export class TooLargeError extends Error {}

/**
 * A stream that passes on at most so many bytes; more breaks the pipeline with a TooLargeError.
 * @param setting the environment variable that sets the limit, for the message
 */
export function limitBytes(maximumBytes: number, setting: string): Transform {
  let passed = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length;
      if (passed > maximumBytes) done(new TooLargeError(`it is larger than ${setting}`));
      else done(null, chunk);
    },
  });
}

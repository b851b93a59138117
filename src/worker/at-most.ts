import { Transform } from "node:stream";

/** Lets so many bytes through, and breaks the pipeline at the next. @param setting the variable that says how many */
export function atMost(maximumBytes: number, setting: string): Transform {
  let passed = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length;
      if (passed > maximumBytes) done(new Error(`it is larger than ${setting}`));
      else done(null, chunk);
    },
  });
}

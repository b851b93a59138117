import { Transform, type Readable } from "node:stream";

const lineEnd = 0x0a;

/**
 * Lets through what is written in lines of a bounded length: what reads lines keeps each whole in memory, and a program that
 * writes on and on without an end of line would take the server's, and with it every other session.
 * @param onTooLong called once, at the first line that is longer; nothing comes after it
 */
export function boundedLines(source: Readable, maximumBytes: number, onTooLong: () => void): Readable {
  let length = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const end = chunk.lastIndexOf(lineEnd);
      length = end === -1 ? length + chunk.length : chunk.length - end - 1;
      if (length <= maximumBytes) {
        done(null, chunk);
        return;
      }
      onTooLong();
      source.unpipe(bounded);
      source.resume();
      done();
      bounded.end();
    },
  });
  return source.pipe(bounded);
}

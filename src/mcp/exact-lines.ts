import { Transform } from "node:stream";
import { exactJson } from "../domain/fields/exact-json.ts";

/** Bytes of a line that is looked at; a longer one passes as it is, for who reads it to refuse. */
const longestLine = 10 * 1024 * 1024;
const newline = 0x0a;

/**
 * Passes on lines of JSON with the digits of all numbers: those that JavaScript can't hold, as an id of nineteen digits in an event, become
 * texts before somebody else's parser rounds them. What is no JSON passes as it is.
 */
export function exactLines(): Transform {
  let kept: Buffer[] = [];
  let bytes = 0;
  const take = (): Buffer => {
    const line = Buffer.concat(kept);
    kept = [];
    bytes = 0;
    return line;
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
        kept.push(chunk.subarray(from, at + 1));
        this.push(exact(take()));
        from = at + 1;
      }
      kept.push(chunk.subarray(from));
      bytes += chunk.length - from;
      if (bytes > longestLine) this.push(take());
      done();
    },
    flush(done) {
      done(null, take());
    },
  });
}

function exact(line: Buffer): Buffer | string {
  const text = line.toString("utf8");
  try {
    const changed = exactJson(text);
    return changed === text ? line : changed;
  } catch {
    return line;
  }
}

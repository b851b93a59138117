/*
 * Puts contents of files in LFS where the clone's LFS filter looks for them. It runs in the clone. Needs
 * until-ready.cjs.
 * stdin: for each a line `<oid> <bytes>` with the content after it
 * stdout: a line `<oid>` for each
 */
const { execFileSync } = require("node:child_process");
const { closeSync, mkdirSync, openSync, readSync, renameSync, writeSync } = require("node:fs");
const { dirname, join } = require("node:path");

const { untilReady } = globalThis;
const common = execFileSync("git", ["rev-parse", "--git-common-dir"], { encoding: "utf8" }).trim();
const unfinished = join(common, "lfs/incoming");
const part = Buffer.alloc(1024 * 1024);
const kept = [];
let buffered = Buffer.alloc(0);

/** Reads more of stdin. @returns whether there was any */
function more() {
  const count = untilReady(() => readSync(0, part, 0, part.length, null));
  buffered = Buffer.concat([buffered, part.subarray(0, count)]);
  return count > 0;
}

mkdirSync(dirname(unfinished), { recursive: true });
for (;;) {
  const end = buffered.indexOf("\n");
  if (end === -1) {
    if (more()) continue;
    if (buffered.length > 0) process.exit(1);
    break;
  }
  const [oid, size] = buffered.toString("latin1", 0, end).split(" ");
  buffered = buffered.subarray(end + 1);
  const file = openSync(unfinished, "w", 0o600);
  for (let left = Number(size); left > 0;) {
    if (buffered.length === 0 && !more()) process.exit(1);
    const written = writeSync(file, buffered.subarray(0, left));
    buffered = buffered.subarray(written);
    left -= written;
  }
  closeSync(file);
  const path = join(common, "lfs/objects", oid.slice(0, 2), oid.slice(2, 4), oid);
  mkdirSync(dirname(path), { recursive: true });
  renameSync(unfinished, path);
  kept.push(oid);
}
process.stdout.write(kept.map((oid) => `${oid}\n`).join(""));

/*
 * Writes contents that the clone's LFS filter kept to stdout: for each a line `<oid> <bytes>` with the content after
 * it. Contents that are missing, or not of their size, are left out. It runs in the clone. Needs until-ready.cjs.
 * Argument: `list` for the lines alone stdin: lines `<oid> <bytes>`
 */
const { execFileSync } = require("node:child_process");
const { closeSync, constants, fstatSync, openSync, readFileSync, readSync, writeSync } = require("node:fs");
const { join } = require("node:path");

const { untilReady } = globalThis;
const isList = process.argv[1] === "list";
const common = commonFolder();
const part = Buffer.alloc(1024 * 1024);

/** An agent may have deleted its repository: the contents of what it made since are kept at the same place. */
function commonFolder() {
  try {
    const options = { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
    return execFileSync("git", ["rev-parse", "--git-common-dir"], options).trim();
  } catch {
    return ".git";
  }
}

function write(bytes) {
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(untilReady(() => writeSync(1, rest)));
}

/** Opens a content; null if there is none. A link leads elsewhere, and a pipe would never end. */
function open(oid) {
  try {
    const path = join(common, "lfs/objects", oid.slice(0, 2), oid.slice(2, 4), oid);
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

for (const line of readFileSync(0, "utf8").split("\n")) {
  const [oid = "", size = ""] = line.split(" ");
  const file = oid === "" ? null : open(oid);
  if (file === null) continue;
  const found = fstatSync(file);
  if (found.isFile() && found.size === Number(size)) {
    write(Buffer.from(`${line}\n`));
    for (let left = isList ? 0 : found.size; left > 0;) {
      const count = readSync(file, part, 0, Math.min(part.length, left), null);
      if (count === 0) process.exit(1);
      write(part.subarray(0, count));
      left -= count;
    }
  }
  closeSync(file);
}

/*
 * git's filter for files in LFS (gitattributes(5), "Long Running Filter Process"; git-lfs-spec(7)), without the program git-lfs,
 * which an image need not have. One process filters all files of a git command. It makes pointers of contents (clean), and contents
 * of pointers (smudge). New contents are kept in the clone, from where they are uploaded before the push; others are in the mirror's
 * store, which is not writable here. A pointer whose content is in neither stays a pointer. Needs until-ready.cjs.
 *
 * Environment: OFFSTAGE_LFS_OWN, the folder for new contents; `lfs` in the clone's repository if it is not set
 * Argument: the mirror's store. stdin and stdout: packets of git's protocol (gitprotocol-common(5))
 */
const { execFileSync } = require("node:child_process");
const { createHash, randomBytes } = require("node:crypto");
const {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} = require("node:fs");
const { dirname, join, resolve } = require("node:path");

const { untilReady } = globalThis;
const shared = process.argv[1];
const own = process.env.OFFSTAGE_LFS_OWN ?? resolve(commonFolder(), "lfs");
/** Most bytes of a packet's content, and of a pointer. */
const packetBytes = 65_516;
const pointerBytes = 1024;

function commonFolder() {
  return execFileSync("git", ["rev-parse", "--git-common-dir"], { encoding: "utf8" }).trim();
}

const input = { chunk: Buffer.allocUnsafe(1024 * 1024), start: 0, end: 0 };

/** The next bytes of stdin, exactly so many; null at its end. */
function read(count) {
  const bytes = Buffer.allocUnsafe(count);
  for (let done = 0; done < count;) {
    if (input.start === input.end) {
      input.start = 0;
      input.end = untilReady(() => readSync(0, input.chunk, 0, input.chunk.length, null));
      if (input.end === 0) return null;
    }
    const part = input.chunk.subarray(input.start, Math.min(input.end, input.start + count - done));
    part.copy(bytes, done);
    done += part.length;
    input.start += part.length;
  }
  return bytes;
}

/** The next packet's content; null for one that ends a list, undefined at the end of stdin. */
function readPacket() {
  const length = read(4);
  if (length === null) return undefined;
  const bytes = Number.parseInt(length.toString("latin1"), 16);
  return bytes < 4 ? null : read(bytes - 4);
}

/** The lines of a list; null at the end of stdin. */
function readList() {
  const lines = [];
  for (let packet = readPacket(); packet !== null; packet = readPacket()) {
    if (packet === undefined) return null;
    lines.push(packet.toString("latin1").replace(/\n$/u, ""));
  }
  return lines;
}

function write(bytes) {
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(untilReady(() => writeSync(1, rest)));
}

function writePacket(content) {
  write(Buffer.concat([Buffer.from((content.length + 4).toString(16).padStart(4, "0")), content]));
}

function writeList(...lines) {
  for (const line of lines) writePacket(Buffer.from(`${line}\n`));
  write(Buffer.from("0000"));
}

/** Answers a file's content, and that all went well. */
function answer(parts) {
  writeList("status=success");
  for (const part of parts) {
    for (let at = 0; at < part.length; at += packetBytes) writePacket(part.subarray(at, at + packetBytes));
  }
  writeList();
  writeList();
}

function* partsOf(path) {
  const file = openSync(path, "r");
  const part = Buffer.allocUnsafe(packetBytes);
  for (let count = readSync(file, part); count > 0; count = readSync(file, part)) yield part.subarray(0, count);
  closeSync(file);
}

/** Receives a content into a file. */
function receive(path) {
  const hash = createHash("sha256");
  const file = openSync(path, "wx", 0o600);
  let size = 0;
  for (let packet = readPacket(); packet !== null; packet = readPacket()) {
    if (packet === undefined) throw new Error("git ended within a file");
    hash.update(packet);
    for (let rest = packet; rest.length > 0;) rest = rest.subarray(writeSync(file, rest));
    size += packet.length;
  }
  closeSync(file);
  return { oid: hash.digest("hex"), size };
}

/** The name in a pointer; null if the file is none. */
function pointerIn(path, size) {
  if (size >= pointerBytes) return null;
  const text = readFileSync(path, "latin1");
  if (!text.startsWith("version https://git-lfs.github.com/spec/v1\n")) return null;
  return /^oid sha256:([0-9a-f]{64})$/mu.exec(text)?.[1] ?? null;
}

function pathIn(store, oid) {
  return join(store, "objects", oid.slice(0, 2), oid.slice(2, 4), oid);
}

function filter(command, path) {
  const { oid, size } = receive(path);
  const named = pointerIn(path, size);
  if (command === "smudge") {
    const found = named === null ? undefined : [own, shared].map((store) => pathIn(store, named)).find(isFile);
    return answer(partsOf(found ?? path));
  }
  if (named !== null || size === 0) return answer(partsOf(path));
  if (!existsSync(pathIn(shared, oid))) {
    mkdirSync(dirname(pathIn(own, oid)), { recursive: true });
    renameSync(path, pathIn(own, oid));
  }
  return answer([Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`)]);
}

function isFile(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

readList();
writeList("git-filter-server", "version=2");
readList();
writeList("capability=clean", "capability=smudge");
mkdirSync(join(own, "tmp"), { recursive: true });
for (let request = readList(); request !== null; request = readList()) {
  const path = join(own, "tmp", `filter-${randomBytes(8).toString("hex")}`);
  try {
    filter(request.find((line) => line.startsWith("command="))?.slice("command=".length), path);
  } finally {
    rmSync(path, { force: true });
  }
}

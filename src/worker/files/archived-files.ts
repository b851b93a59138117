import { isName } from "../../domain/sessions/workspace-file.ts";
import { lookedAtMost, type FoundEntry } from "./folder-page.ts";

// Reads the tar archive of a workspace without a repository, which a program in the sandbox made: any bytes may come. It is read as it
// streams, and nothing of it is written anywhere.

/** A file, folder or link in an archive. */
export interface Archived {
  /** Its path from the workspace's root, of any bytes; empty: the root itself. */
  readonly path: Buffer;
  readonly type: FoundEntry["type"];
  readonly bytes: number;
  /** Where a link leads; null: it is none. Of a hard link, the path of the file that it is. */
  readonly target: Buffer | null;
  readonly isHardLink: boolean;
}

const blockBytes = 512;
/** Most bytes of a long name. */
const longestName = 8_192;
/** Most files, folders and links that are looked at. */
const membersAtMost = 200_000;

/**
 * The members of an archive. It ends early at what is no tar.
 * @param take whether the content of a member is wanted, of which at most so many bytes are given; null: it is not
 */
export async function* readArchive(
  content: AsyncIterable<Buffer>,
  take: (member: Archived) => number | null = () => null,
): AsyncGenerator<Archived & { readonly content: Buffer | null }> {
  const reader = createReader(content);
  try {
    yield* readMembers(reader, take);
  } finally {
    await reader.close();
  }
}

async function* readMembers(
  reader: ReturnType<typeof createReader>,
  take: (member: Archived) => number | null,
): AsyncGenerator<Archived & { readonly content: Buffer | null }> {
  let longPath: Buffer | null = null;
  let longTarget: Buffer | null = null;
  for (let members = 0; members < membersAtMost; members += 1) {
    const header = await reader.read(blockBytes, blockBytes);
    if (header.length < blockBytes || header.every((byte) => byte === 0)) return;
    const bytes = sizeIn(header.subarray(124, 136));
    if (bytes === null) return;
    const flag = String.fromCharCode(header[156] ?? 0);
    const padded = Math.ceil(bytes / blockBytes) * blockBytes;
    if (flag === "L" || flag === "K") {
      // GNU tar has a name that is too long for a header in a member of its own.
      const name = until0(await reader.read(padded, Math.min(bytes, longestName)));
      if (flag === "L") longPath = name;
      else longTarget = name;
      continue;
    }
    if (flag === "x" || flag === "g") {
      const records = recordsIn(await reader.read(padded, Math.min(bytes, longestName)));
      longPath = records.get("path") ?? longPath;
      longTarget = records.get("linkpath") ?? longTarget;
      continue;
    }
    const isHardLink = flag === "1";
    const isLink = isHardLink || flag === "2";
    const target = isLink ? (longTarget ?? until0(header.subarray(157, 257))) : null;
    const member = {
      path: fromRoot(longPath ?? nameIn(header)),
      type: typeOf(flag),
      bytes: isLink ? 0 : bytes,
      target: isHardLink && target !== null ? fromRoot(target) : target,
      isHardLink,
    };
    longPath = null;
    longTarget = null;
    const wanted = take(member);
    const read = await reader.read(isLink ? 0 : padded, wanted === null ? 0 : Math.min(wanted, member.bytes));
    yield { ...member, content: wanted === null ? null : read };
  }
}

/** The entries of a folder of the archive; null: it has no such folder. @param path of the folder; "": the root */
export async function archivedFolder(
  content: AsyncIterable<Buffer>,
  path: string,
): Promise<{ entries: (FoundEntry & { readonly bytes: number | null })[]; complete: boolean } | null> {
  const prefix = path === "" ? Buffer.alloc(0) : Buffer.from(`${path}/`);
  const entries = new Map<string, FoundEntry & { readonly bytes: number | null }>();
  let isThere = path === "";
  for await (const member of readArchive(content)) {
    if (member.type === "folder" && member.path.equals(Buffer.from(path))) isThere = true;
    if (member.path.length <= prefix.length || !member.path.subarray(0, prefix.length).equals(prefix)) continue;
    const name = member.path.subarray(prefix.length);
    if (name.includes("/") || !isName(name.toString("latin1"))) continue;
    if (entries.size === lookedAtMost) return { entries: [...entries.values()], complete: false };
    const bytes = member.type === "file" && !member.isHardLink ? member.bytes : null;
    entries.set(name.toString("latin1"), { name: Buffer.from(name), type: member.type, bytes });
  }
  return isThere ? { entries: [...entries.values()], complete: true } : null;
}

/** A file or link of the archive; null: it has none there. `bytes` is the whole size. @param most bytes of its content */
export async function archivedFile(
  open: () => AsyncIterable<Buffer>,
  path: string,
  most: number,
): Promise<{ readonly type: Archived["type"]; readonly bytes: number; readonly content: Buffer } | null> {
  let wanted: Buffer = Buffer.from(path);
  // A hard link is another name of a file that comes before it.
  for (let looks = 0; looks < 2; looks += 1) {
    let next: Buffer | null = null;
    for await (const member of readArchive(open(), (each) => (each.path.equals(wanted) ? most : null))) {
      if (member.content === null) continue;
      const { type, target, isHardLink, content, bytes } = member;
      if (isHardLink && target !== null) next = target;
      else if (target !== null) return { type, bytes: target.length, content: target };
      else return { type, bytes, content };
      break;
    }
    if (
      next === null ||
      next
        .toString("latin1")
        .split("/")
        .some((part) => !isName(part))
    )
      return null;
    wanted = next;
  }
  return null;
}

function typeOf(flag: string): Archived["type"] {
  if (flag === "5") return "folder";
  if (flag === "2") return "link";
  return flag === "0" || flag === "\0" || flag === "1" || flag === "7" ? "file" : "other";
}

/** A number in digits of base 8, or in base 256, which its first bit says; null: neither. */
function sizeIn(field: Buffer): number | null {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const size = field.subarray(4).readBigUInt64BE();
    return size <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(size) : null;
  }
  const digits = until0(field).toString("latin1").trim();
  return /^[0-7]{0,11}$/u.test(digits) ? Number.parseInt(digits === "" ? "0" : digits, 8) : null;
}

/** A member's name, which ustar may have in two parts. */
function nameIn(header: Buffer): Buffer {
  const name = until0(header.subarray(0, 100));
  // `ustar` with a NUL is POSIX's; GNU's own has a space there, and other fields in the place of the first part.
  const isPosix = header.toString("latin1", 257, 263) === "ustar\0";
  const before = isPosix ? until0(header.subarray(345, 500)) : Buffer.alloc(0);
  return before.length === 0 ? name : Buffer.concat([before, Buffer.from("/"), name]);
}

function until0(field: Buffer): Buffer {
  const end = field.indexOf(0);
  return Buffer.from(end === -1 ? field : field.subarray(0, end));
}

/** A path of the archive without `./` before it and `/` behind. */
function fromRoot(path: Buffer): Buffer {
  const text = path.toString("latin1").replace(/^(?:\.\/+)+/u, "");
  return Buffer.from(text === "." ? "" : withoutSlashes(text), "latin1");
}

function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

/** Records of a pax header: `<length> <key>=<value>\n` each. */
function recordsIn(content: Buffer): Map<string, Buffer> {
  const records = new Map<string, Buffer>();
  for (let at = 0; at < content.length;) {
    const space = content.indexOf(" ", at);
    const length = space === -1 ? Number.NaN : Number(content.toString("latin1", at, space));
    if (!Number.isInteger(length) || length <= space - at) break;
    const record = content.subarray(space + 1, at + length - 1);
    const equals = record.indexOf("=");
    if (equals !== -1) records.set(record.toString("latin1", 0, equals), Buffer.from(record.subarray(equals + 1)));
    at += length;
  }
  return records;
}

/** Reads a stream in pieces of given lengths. */
function createReader(content: AsyncIterable<Buffer>) {
  const chunks = content[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  return {
    /** Goes on by `length` bytes. @returns the first `wanted` of them; fewer at the stream's end */
    async read(length: number, wanted: number): Promise<Buffer> {
      const kept: Buffer[] = [];
      let keptBytes = 0;
      for (let left = length; left > 0;) {
        if (rest.length === 0) {
          const next = await chunks.next();
          if (next.done === true) break;
          rest = next.value;
        }
        const part = rest.subarray(0, left);
        rest = rest.subarray(part.length);
        left -= part.length;
        if (keptBytes < wanted) kept.push(part.subarray(0, wanted - keptBytes));
        keptBytes += part.length;
      }
      return Buffer.concat(kept);
    },
    /** Ends the stream. */
    async close(): Promise<void> {
      await chunks.return?.();
    },
  };
}

import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone } from "../clones/clone.ts";
import { git, mustGit, type GitOptions } from "../git/git.ts";
import { fetchContents, lfsPath, lfsStore, parsePointer, pointerBytes, usesLfs, type LfsPointer } from "../git/lfs.ts";
import { knownOf } from "../git/remote-repository.ts";
import { pushedObjects, type PushedObject } from "../push/pushed-objects.ts";
import { runCommand } from "../sandboxed/run-command.ts";

/** A file in LFS that a push would bring. */
export interface LfsFile extends LfsPointer {
  /** Path in its commit, as bytes in Latin-1. */
  readonly path: string;
  readonly commit: string;
}

/** A file that belongs in LFS and is larger than this is not pushed into git itself, in bytes. */
const largestInGit = 1024 * 1024;
/** How many files a failure names. */
const namedLimit = 5;
/** How many contents one command takes out: their names are in its environment. */
const takenAtOnce = 500;

type Services = Pick<AttemptServices, "folders" | "mirrors" | "sandbox" | "limits">;

/**
 * Takes the contents of files in LFS that the agent made out of the sandbox into the mirror's store, each checked against the
 * name that its pointer in the commits gives.
 * @returns the files that the push would bring; none if the commit has no file in LFS
 * @throws SessionError push_rejected if a content is nowhere, or a large file that belongs in LFS is in git itself
 */
export async function takeLfsFiles(
  attempt: Pick<Attempt, "session" | "signal">,
  services: Services,
  clone: Clone,
  head: string,
): Promise<LfsFile[]> {
  const { mirror } = clone;
  const { signal } = attempt;
  if (!(await usesLfs(mirror.path, head, signal))) return [];
  const { files, large } = await newFiles(clone, head, signal);
  const misplaced = await inLfsByAttributes(mirror.path, head, large, signal);
  if (misplaced.length > 0) throw misplacedFiles(misplaced);
  const missing = (): LfsFile[] => files.filter(({ oid }) => !existsSync(lfsPath(lfsStore(mirror.path), oid)));
  const wanted = missing();
  requireRoom(wanted, services.limits.diskBytes);
  for (let start = 0; start < wanted.length; start += takenAtOnce) {
    await takeContents(attempt, services, clone, wanted.slice(start, start + takenAtOnce));
  }
  // What is left may be an earlier content, to which the agent went back.
  if (missing().length > 0) await fetchIfThere(clone, head, signal);
  const lost = missing();
  if (lost.length > 0) throw lostContents(lost);
  return files;
}

/**
 * The contents leave the sandbox's disk for the worker's: together they may be no more than that disk. A file with holes takes no
 * room inside, and all of its size outside.
 */
function requireRoom(wanted: readonly LfsFile[], diskBytes: number): void {
  const bytes = wanted.reduce((sum, { size }) => sum + size, 0);
  if (bytes <= diskBytes) return;
  throw new SessionError({
    code: "resources_exhausted",
    reason: `The new files in LFS have ${Math.ceil(bytes / 1024 ** 2)} MB, which is more than a session's disk may have. Nothing was pushed.`,
    retryable: false,
    remedy: "Tell the agent in a message to take some of them out, or raise OFFSTAGE_SANDBOX_DISK_MB.",
  });
}

async function fetchIfThere({ mirror }: Clone, head: string, signal: AbortSignal): Promise<void> {
  try {
    await fetchContents(mirror, head, signal);
  } catch (error) {
    // The server does not have one of them: the caller looks which are missing.
    if (!(error instanceof SessionError) || error.passing) throw error;
  }
}

/** The contents as objects of a push, to be searched like all others. */
export async function* lfsObjects(mirror: string, files: readonly LfsFile[]): AsyncGenerator<PushedObject> {
  for (const { oid, size, path, commit } of files) {
    const content = createReadStream(lfsPath(lfsStore(mirror), oid)) as AsyncIterable<Uint8Array>;
    yield { type: "blob", sha: oid, path, commit, bytes: size, content };
  }
}

/** The pointers among a push's objects, each content once, and paths of its large files. */
async function newFiles(clone: Clone, head: string, signal: AbortSignal) {
  const files = new Map<string, LfsFile>();
  const large: string[] = [];
  for await (const object of pushedObjects(head, knownOf(clone), { cwd: clone.mirror.path, signal })) {
    if (object.type !== "blob") continue;
    if (object.bytes > largestInGit) large.push(object.path);
    if (object.bytes >= pointerBytes) continue;
    const parts: Uint8Array[] = [];
    for await (const part of object.content) parts.push(Buffer.from(part));
    const pointer = parsePointer(Buffer.concat(parts).toString("utf8"));
    if (pointer !== null) files.set(pointer.oid, { ...pointer, path: object.path, commit: object.commit });
  }
  return { files: [...files.values()], large };
}

/** Those of a commit's paths that its attributes put into LFS; as bytes in Latin-1. */
async function inLfsByAttributes(
  mirror: string,
  head: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  if (paths.length === 0) return [];
  const index = join(mirror, `offstage-index-${randomBytes(8).toString("hex")}`);
  const options: GitOptions = { cwd: mirror, signal, indexFile: index };
  try {
    await mustGit(["read-tree", head], options);
    const found: string[] = [];
    for (const path of paths) {
      const { stdout } = await git(["check-attr", "--cached", "-z", "filter", "--", path], options);
      if (stdout.split("\0")[2] === "lfs") found.push(path);
    }
    return found;
  } finally {
    await rm(index, { force: true });
  }
}

async function takeContents(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  services: Services,
  { mirror, remote }: Clone,
  wanted: readonly LfsFile[],
): Promise<void> {
  const folders = { ...commandFoldersOf(session, services, remote.directory), readOnly: [mirror.path] };
  const command = {
    command: "sh",
    arguments: ["-c", programText(import.meta.url, "lfs-contents.sh")],
    environment: { OFFSTAGE_OIDS: wanted.map(({ oid }) => oid).join(" ") },
  };
  await runCommand({ ...services, signal }, folders, command, async (child) => {
    child.stdin.end();
    await receive(child.stdout, lfsStore(mirror.path), wanted);
  });
}

/** Stores each content of the stream whose bytes are what its name says. @throws Error if the stream is not of that form */
async function receive(stream: Readable, store: string, wanted: readonly LfsFile[]): Promise<void> {
  const sizes = new Map(wanted.map(({ oid, size }) => [oid, size]));
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let rest: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const { value, done } = await chunks.next();
    if (done === true) return false;
    rest = rest.length === 0 ? value : Buffer.concat([rest, value]);
    return true;
  };
  async function* content(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      if (rest.length === 0 && !(await more())) throw new Error("a content in LFS ended early");
      const part = rest.subarray(0, left);
      rest = rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }
  for (;;) {
    const end = rest.indexOf("\n");
    if (end === -1) {
      if (rest.length > 200) throw new Error("a content in LFS has no header");
      if (!(await more())) return;
      continue;
    }
    const [oid = "", size] = rest.toString("latin1", 0, end).split(" ");
    rest = rest.subarray(end + 1);
    // Never more than the pointer says, which the commits have.
    if (sizes.get(oid) !== Number(size)) throw new Error("a content in LFS is not of the size that its pointer says");
    await keep(content(Number(size)), store, oid);
  }
}

async function keep(content: AsyncIterable<Buffer>, store: string, oid: string): Promise<void> {
  const unchecked = join(store, `incoming-${randomBytes(8).toString("hex")}`);
  const hash = createHash("sha256");
  try {
    await mkdir(dirname(lfsPath(store, oid)), { recursive: true });
    const seen = async function* (parts: AsyncIterable<Buffer>) {
      for await (const part of parts) {
        hash.update(part);
        yield part;
      }
    };
    await pipeline(content, seen, createWriteStream(unchecked, { mode: 0o644 }));
    if (hash.digest("hex") !== oid) throw new Error("a content in LFS is not the one that its pointer names");
    await rename(unchecked, lfsPath(store, oid));
  } finally {
    await rm(unchecked, { force: true });
  }
}

function listed(paths: readonly string[]): string {
  const names = paths.slice(0, namedLimit).map((path) => Buffer.from(path, "latin1").toString("utf8").slice(0, 200));
  return `${names.join(", ")}${paths.length > namedLimit ? `, and ${paths.length - namedLimit} more` : ""}`;
}

function misplacedFiles(paths: readonly string[]): SessionError {
  return new SessionError({
    code: "push_rejected",
    reason: `By the repository's attributes these files belong in LFS, and the commits have them in git itself: ${listed(paths)}. Nothing was pushed.`,
    retryable: false,
    remedy:
      "Tell the agent in a message to commit them again with the clone's own filter (`git rm --cached`, `git add`), in new commits instead of those.",
  });
}

function lostContents(files: readonly LfsFile[]): SessionError {
  return new SessionError({
    code: "push_rejected",
    reason: `The commits point to files in LFS whose contents are neither in the clone nor on the server: ${listed(files.map(({ path }) => path))}. Nothing was pushed.`,
    retryable: false,
    remedy: "Tell the agent in a message to make these files again, or to leave them as they were.",
  });
}

import type { Readable } from "node:stream";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import { looksWithBytes, startGit } from "./git.ts";
import { tailOf } from "./tail.ts";

/** A git object with its raw content: a tree's entries, a commit's header and message. */
export interface PushedObject {
  readonly type: "commit" | "tree" | "blob" | "tag";
  readonly sha: string;
  /** Path in its commit, as bytes in Latin-1 (git defines no encoding of names); empty for commits and their root trees. */
  readonly path: string;
  /** The newest commit that has it. */
  readonly commit: string;
  readonly bytes: number;
  /** Must be read before the next object is asked for; the rest is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** How git reads the objects. */
export interface ObjectsOptions {
  /** Path of the repository: Offstage's own, out of every agent's reach. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** Address space of each git process; `looksWithBytes` if omitted. */
  readonly memoryBytes?: number;
}

/** git could not list or read the objects. */
export class ObjectsError extends Error {
  override readonly name = "ObjectsError";
}

/**
 * Yields every object that pushing `head` would bring, each once, of any size: commits, trees and blobs that the known commits
 * do not have, also those that only a merge brings. Only a few objects' names are held in memory.
 * @throws ObjectsError if git fails or its output is malformed
 */
export async function* pushedObjects(
  head: string,
  known: readonly string[],
  { cwd, signal, memoryBytes = looksWithBytes }: ObjectsOptions,
): AsyncGenerator<PushedObject> {
  const options = { cwd, signal, memoryBytes };
  const list = startGit(["rev-list", "--objects", "--in-commit-order", head, "--not", ...known], options);
  const contents = startGit(["cat-file", "--batch", "--buffer"], options);
  const requested: { readonly sha: string; readonly path: string }[] = [];
  list.stdin.end();
  // If git stops reading early, its exit code says why.
  contents.stdin.on("error", () => undefined);
  const words = Promise.all([tailOf(list.stderr), tailOf(contents.stderr)]);
  const listed = askForAll(list, contents, requested);
  // The error is thrown where `listed` is awaited, after all objects were read.
  listed.catch(() => undefined);
  try {
    const reader = createReader(contents.stdout);
    let commit = head;
    for (let header = await reader.line(); header !== null; header = await reader.line()) {
      const [sha = "", type = "", size = ""] = header.split(" ");
      const request = requested.shift();
      if (request?.sha !== sha || !isType(type)) throw new ObjectsError(`git answered ${header.slice(0, 200)}`);
      if (type === "commit") commit = sha;
      const bytes = Number(size);
      const content = reader.content(bytes);
      yield { type, sha, path: request.path, commit, bytes, content };
      for await (const _ of content);
      await reader.skip(1);
    }
    await listed;
    for (const git of [list, contents]) {
      const { code } = await git.exited;
      signal.throwIfAborted();
      if (code !== 0) throw new ObjectsError((await words).join("\n").trim().slice(-500));
    }
    if (requested.length > 0) throw new ObjectsError("git answered fewer objects than requested");
  } finally {
    for (const git of [list, contents]) {
      git.kill();
      // It exits only when no unread output is left.
      git.stdout.destroy();
    }
    await Promise.all([list.exited, contents.exited]);
  }
}

/** Yields the content of one object by its name (`<commit>:<path>`); nothing if there is none. */
export async function* objectContent(
  type: PushedObject["type"],
  name: string,
  { cwd, signal, memoryBytes = looksWithBytes }: ObjectsOptions,
): AsyncGenerator<Uint8Array> {
  const git = startGit(["cat-file", type, name], { cwd, signal, memoryBytes });
  git.stdin.end();
  // A missing object is no error.
  git.stderr.resume();
  try {
    for await (const bytes of git.stdout) yield bytes as Uint8Array;
  } finally {
    git.kill();
    git.stdout.destroy();
    await git.exited;
  }
}

function isType(type: string): type is PushedObject["type"] {
  return type === "commit" || type === "tree" || type === "blob" || type === "tag";
}

/** Passes git's list of objects to the git that reads them, as fast as that one reads. */
async function askForAll(
  list: SandboxedProcess,
  contents: SandboxedProcess,
  requested: { sha: string; path: string }[],
): Promise<void> {
  let rest = "";
  for await (const chunk of list.stdout.setEncoding("latin1")) {
    const lines = `${rest}${String(chunk)}`.split("\n");
    rest = lines.pop() ?? "";
    let text = "";
    for (const line of lines) {
      const sha = line.split(" ", 1)[0] ?? "";
      requested.push({ sha, path: line.slice(sha.length + 1) });
      text += `${sha}\n`;
    }
    if (contents.stdin.destroyed) return;
    if (!contents.stdin.write(text)) await drained(contents);
  }
  contents.stdin.end();
}

/** Settles when stdin can take more, or never will again. */
function drained({ stdin, exited }: SandboxedProcess): Promise<void> {
  return new Promise((resolve) => {
    stdin.once("drain", resolve);
    stdin.once("close", resolve);
    void exited.then(() => resolve());
  });
}

/** Reads lines and contents in turn from one stream. */
function createReader(stream: Readable) {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let buffered: Buffer = Buffer.alloc(0);

  async function more(): Promise<boolean> {
    const { value, done } = await chunks.next();
    if (done === true) return false;
    buffered = buffered.length === 0 ? value : Buffer.concat([buffered, value]);
    return true;
  }

  /** The bytes that have arrived, at least one and at most so many. @throws ObjectsError at the end of the stream */
  async function some(most: number): Promise<Buffer> {
    if (buffered.length === 0 && !(await more())) throw new ObjectsError("git ended within an object");
    const bytes = buffered.subarray(0, most);
    buffered = buffered.subarray(bytes.length);
    return bytes;
  }

  return {
    /** The next line; null at the end. @throws ObjectsError if the stream ends within a line */
    async line(): Promise<string | null> {
      for (;;) {
        const end = buffered.indexOf("\n");
        if (end === -1) {
          if (await more()) continue;
          if (buffered.length > 0) throw new ObjectsError("git ended within a line");
          return null;
        }
        const line = buffered.toString("latin1", 0, end);
        buffered = buffered.subarray(end + 1);
        return line;
      }
    },
    async skip(bytes: number): Promise<void> {
      for (let left = bytes; left > 0;) left -= (await some(left)).length;
    },
    /** The next bytes. Another loop over it continues where the last one stopped. */
    content(bytes: number): AsyncIterable<Buffer> {
      let left = bytes;
      return {
        [Symbol.asyncIterator]: () => ({
          async next() {
            if (left === 0) return { done: true, value: undefined };
            const value = await some(left);
            left -= value.length;
            return { done: false, value };
          },
        }),
      };
    },
  };
}

import type { Readable } from "node:stream";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import { looksWithBytes, startGit } from "../git/git.ts";
import { tailOf } from "../sandboxed/tail.ts";

/** A git object with what it holds, as git stores it: of a tree the names, of a commit its message and who made it. */
export interface PushedObject {
  readonly type: "commit" | "tree" | "blob" | "tag";
  readonly sha: string;
  /** Where it stands in its commit, as bytes in Latin-1 (git knows no encoding of names); empty for commits and their roots. */
  readonly path: string;
  /** The newest commit that has it. */
  readonly commit: string;
  readonly bytes: number;
  /** To be read to its end, or not at all, before the next object is asked for. */
  readonly content: AsyncIterable<Uint8Array>;
}

export interface ObjectsOptions {
  /** The repository. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly memoryBytes?: number;
}

/** git could not list or read the objects. */
export class ObjectsError extends Error {
  override readonly name = "ObjectsError";
}

/**
 * Every object that a push of a commit brings, each once, whatever its size: commits, trees and blobs that the known commits
 * have not. What a merge alone brings is among them. Nothing but the names of a few objects is held in memory.
 * @throws ObjectsError
 */
export async function* pushedObjects(
  head: string,
  known: readonly string[],
  { cwd, signal, memoryBytes = looksWithBytes }: ObjectsOptions,
): AsyncGenerator<PushedObject> {
  const options = { cwd, signal, memoryBytes };
  const list = startGit(["rev-list", "--objects", "--in-commit-order", head, "--not", ...known], options);
  const contents = startGit(["cat-file", "--batch", "--buffer"], options);
  const asked: { readonly sha: string; readonly path: string }[] = [];
  list.stdin.end();
  // Where git stops reading early, its exit code says so.
  contents.stdin.on("error", () => undefined);
  const words = Promise.all([tailOf(list.stderr), tailOf(contents.stderr)]);
  const listed = askForAll(list, contents, asked);
  // It is heard once what was asked for is read.
  listed.catch(() => undefined);
  try {
    const reader = createReader(contents.stdout);
    let commit = head;
    for (let header = await reader.line(); header !== null; header = await reader.line()) {
      const [sha = "", type = "", size = ""] = header.split(" ");
      const request = asked.shift();
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
    if (asked.length > 0) throw new ObjectsError("git answered less than it was asked for");
  } finally {
    for (const git of [list, contents]) {
      git.kill();
      // It ends only once nothing of its output waits to be read.
      git.stdout.destroy();
    }
    await Promise.all([list.exited, contents.exited]);
  }
}

/** One object by its name (`<commit>:<path>`); null if there is none. */
export async function* objectContent(
  type: PushedObject["type"],
  name: string,
  { cwd, signal, memoryBytes = looksWithBytes }: ObjectsOptions,
): AsyncGenerator<Uint8Array> {
  const git = startGit(["cat-file", type, name], { cwd, signal, memoryBytes });
  git.stdin.end();
  // That there is none is an answer too.
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

/** Hands git's own list over to the git that reads, no faster than it reads. */
async function askForAll(
  list: SandboxedProcess,
  contents: SandboxedProcess,
  asked: { sha: string; path: string }[],
): Promise<void> {
  let rest = "";
  for await (const chunk of list.stdout.setEncoding("latin1")) {
    const lines = `${rest}${String(chunk)}`.split("\n");
    rest = lines.pop() ?? "";
    let text = "";
    for (const line of lines) {
      const sha = line.split(" ", 1)[0] ?? "";
      asked.push({ sha, path: line.slice(sha.length + 1) });
      text += `${sha}\n`;
    }
    if (contents.stdin.destroyed) return;
    if (!contents.stdin.write(text)) await drained(contents);
  }
  contents.stdin.end();
}

/** Also once nothing can be written any more. */
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
  let held: Buffer = Buffer.alloc(0);

  async function more(): Promise<boolean> {
    const { value, done } = await chunks.next();
    if (done === true) return false;
    held = held.length === 0 ? value : Buffer.concat([held, value]);
    return true;
  }

  /** As much as is there of so many bytes, at least one. @throws ObjectsError */
  async function some(most: number): Promise<Buffer> {
    if (held.length === 0 && !(await more())) throw new ObjectsError("git ended within an object");
    const bytes = held.subarray(0, most);
    held = held.subarray(bytes.length);
    return bytes;
  }

  return {
    /** Null at the end. */
    async line(): Promise<string | null> {
      for (;;) {
        const end = held.indexOf("\n");
        if (end === -1) {
          if (await more()) continue;
          if (held.length > 0) throw new ObjectsError("git ended within a line");
          return null;
        }
        const line = held.toString("latin1", 0, end);
        held = held.subarray(end + 1);
        return line;
      }
    },
    async skip(bytes: number): Promise<void> {
      for (let left = bytes; left > 0;) left -= (await some(left)).length;
    },
    /** Goes on where it was left: what was not read is read by the next loop over it. */
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

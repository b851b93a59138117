import { createHash, randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { programText } from "../../programs/program-text.ts";
import { pipeFunctions } from "../git/lfs/transfers.ts";
import { lfsPath, markMade } from "../git/lfs/store.ts";
import type { LfsPointer } from "../git/lfs/lfs.ts";
import { runCommand, type SandboxFolders, type SandboxedRun } from "../sandboxed/run-command.ts";

// Contents travel as a stream: for each a line `<oid> <bytes>` with the content after it.

/** The line before a content. */
export function headerOf({ oid, size }: LfsPointer): string {
  return `${oid} ${size}\n`;
}

/**
 * Takes contents out of a clone in the sandbox. Contents that are missing, or not of their pointer's size, are left
 * out.
 * @param folders whose working directory is the clone
 * @param use receives each content, of which it must read everything: only the size is checked by then
 * @throws Error if what the sandbox sends is not of the form; those of `runCommand`
 */
export async function takeContents(
  run: SandboxedRun,
  folders: SandboxFolders,
  wanted: readonly LfsPointer[],
  use: (pointer: LfsPointer, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  await runTake(run, folders, [], wanted, (stdout) => receive(stdout, wanted, use));
}

/** Which of the contents are in a clone in the sandbox, with the size of their pointers: their names, which nothing has checked. */
export async function contentsThere(
  run: SandboxedRun,
  folders: SandboxFolders,
  wanted: readonly LfsPointer[],
): Promise<ReadonlySet<string>> {
  let lines = "";
  await runTake(run, folders, ["list"], wanted, async (stdout) => {
    lines = await text(stdout);
  });
  return new Set(lines.split("\n").map((line) => line.split(" ", 1)[0] ?? ""));
}

async function runTake(
  run: SandboxedRun,
  folders: SandboxFolders,
  parameters: readonly string[],
  wanted: readonly LfsPointer[],
  use: (stdout: Readable) => Promise<void>,
): Promise<void> {
  const program = `${pipeFunctions()}\n${programText(import.meta.url, "take-contents.cjs")}`;
  const command = { command: process.execPath, arguments: ["--no-warnings", "-e", program, "--", ...parameters] };
  await runCommand(run, folders, command, async (child) => {
    const asked = pipeline(Readable.from(wanted.map(headerOf)), child.stdin);
    // If the program ends early, its exit code says why.
    asked.catch(() => undefined);
    await use(child.stdout);
  });
}

async function receive(
  stream: Readable,
  wanted: readonly LfsPointer[],
  use: (pointer: LfsPointer, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  // Each once: the sandbox's program is not trusted to end.
  const left = new Map(wanted.map((pointer) => [pointer.oid, pointer]));
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let rest: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const { value, done } = await chunks.next();
    if (done === true) return false;
    rest = rest.length === 0 ? value : Buffer.concat([rest, value]);
    return true;
  };
  async function* content(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0;) {
      if (rest.length === 0 && !(await more())) throw new Error("a content in LFS ended early");
      const part = rest.subarray(0, missing);
      rest = rest.subarray(part.length);
      missing -= part.length;
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
    const pointer = left.get(oid);
    // Never more than the pointer says, which the commits have.
    if (pointer === undefined || pointer.size !== Number(size)) throw new Error("a content in LFS was not asked for");
    left.delete(oid);
    await use(pointer, content(pointer.size));
  }
}

/** Passes a content on, and reports afterwards whether it is the one that its pointer names. */
export function verified(content: AsyncIterable<Buffer>, { oid }: LfsPointer) {
  const hash = createHash("sha256");
  return {
    async *content(): AsyncGenerator<Buffer> {
      for await (const part of content) {
        hash.update(part);
        yield part;
      }
    },
    isRight: (): boolean => hash.digest("hex") === oid,
  };
}

/** Stores a content that a session made in a mirror's store, if it is the one that its pointer names. */
export async function storeMade(store: string, pointer: LfsPointer, content: AsyncIterable<Buffer>): Promise<void> {
  const unchecked = join(store, `incoming-${randomBytes(8).toString("hex")}`);
  const path = lfsPath(store, pointer.oid);
  const seen = verified(content, pointer);
  try {
    await mkdir(dirname(path), { recursive: true });
    await pipeline(seen.content(), createWriteStream(unchecked, { mode: 0o644 }));
    if (!seen.isRight()) return;
    await markMade(store, pointer.oid);
    await rename(unchecked, path);
  } finally {
    await rm(unchecked, { force: true });
  }
}

/**
 * Puts contents into a clone in the sandbox, at the place that its LFS filter reads.
 * @param folders whose working directory is the clone
 * @param contents a stream of contents
 * @returns their names
 * @throws those of `runCommand`
 */
export async function keepContents(run: SandboxedRun, folders: SandboxFolders, contents: Readable): Promise<string[]> {
  let kept = "";
  const program = `${pipeFunctions()}\n${programText(import.meta.url, "keep-contents.cjs")}`;
  const command = { command: process.execPath, arguments: ["--no-warnings", "-e", program] };
  await runCommand(run, folders, command, async (child) => {
    [kept] = await Promise.all([text(child.stdout), pipeline(contents, child.stdin)]);
  });
  return kept.split("\n").filter((oid) => oid !== "");
}

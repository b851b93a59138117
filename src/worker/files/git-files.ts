import { Readable } from "node:stream";
import { git, startGit, type GitOptions } from "../git/git.ts";
import { lookedAtMost, type FoundEntry } from "./folder-page.ts";

// Reads folders and files of a commit in a bare repository of ours, whose objects were checked when they came out of a sandbox. Nothing
// here looks at an agent's own folders, follows a link, or runs a filter. What a client wrote is never read as the name of a revision:
// `<commit>:<path>` would be, and a path such as `x-g1234567` names whatever commit of the mirror begins so, which may be of others.

/** An entry of a folder in a commit. */
export interface GitEntry extends FoundEntry {
  readonly sha: string;
}

/** A commit in a repository. */
export interface CommitOptions extends GitOptions {
  readonly commit: string;
}

/** Bytes of one listing; git's own bound on a path is 4,096. */
const listingBytes = 64 * 1024 ** 2;
/** Larger ones are streamed instead of read into memory. */
const streamed = { "core.bigFileThreshold": "4m" };

/** The entry at a path; null if the commit has none there. @param path from its root, not empty */
export async function entryAt(options: CommitOptions, path: string): Promise<GitEntry | null> {
  const { entries } = await listTree(options, [options.commit, "--", path]);
  // It names the whole path.
  return entries.find(({ name }) => name.equals(Buffer.from(path))) ?? null;
}

/**
 * The entries of a folder.
 * @param folder its tree, or the commit for the root
 * @returns also whether these are all
 */
export function entriesOf(options: GitOptions, folder: string): Promise<{ entries: GitEntry[]; complete: boolean }> {
  return listTree(options, [folder]);
}

async function listTree(options: GitOptions, what: readonly string[]) {
  const entries: GitEntry[] = [];
  const parameters = ["--literal-pathspecs", "ls-tree", "-z", "--full-tree", ...what];
  let rest: Buffer = Buffer.alloc(0);
  const { complete } = await readOutput(parameters, options, listingBytes, (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = rest.indexOf(0, from); end !== -1; end = rest.indexOf(0, from)) {
      const entry = readEntry(rest.subarray(from, end));
      from = end + 1;
      if (entry === null) continue;
      if (entries.length === lookedAtMost) return false;
      entries.push(entry);
    }
    rest = rest.subarray(from);
    return true;
  });
  return { entries, complete };
}

const types: Readonly<Record<string, GitEntry["type"]>> = {
  "040000": "folder",
  "120000": "link",
  "160000": "submodule",
};

/** Reads `<mode> <type> <object>\t<name>`. */
function readEntry(line: Buffer): GitEntry | null {
  const tab = line.indexOf("\t");
  const [mode = "", , sha = ""] = line.toString("latin1", 0, tab).split(" ");
  return tab === -1 ? null : { name: Buffer.from(line.subarray(tab + 1)), type: types[mode] ?? "file", sha };
}

/** Sizes of files by their object. */
export async function sizesOf(options: GitOptions, shas: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (shas.length === 0) return new Map();
  const input = Readable.from([shas.map((sha) => `${sha}\n`).join("")]);
  const { stdout } = await git(["cat-file", "--batch-check=%(objectname) %(objectsize)"], { ...options, input });
  const lines = stdout.split("\n").map((line) => line.split(" "));
  return new Map(lines.map(([sha = "", size]) => [sha, Number(size)] as const).filter(([, size]) => size >= 0));
}

/** The beginning of a file's content. */
export async function contentOf(options: GitOptions, sha: string, most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  await readOutput(["cat-file", "blob", sha], { ...options, settings: streamed }, Infinity, (chunk) => {
    parts.push(chunk);
    length += chunk.length;
    return length < most;
  });
  return Buffer.concat(parts).subarray(0, most);
}

/**
 * Reads what git prints, as far as it is wanted.
 * @param take gets each part; false: it wants no more
 * @returns whether all was taken
 * @throws Error if git fails before that
 */
async function readOutput(
  parameters: readonly string[],
  options: GitOptions,
  most: number,
  take: (chunk: Buffer) => boolean,
): Promise<{ readonly complete: boolean }> {
  const child = startGit(parameters, options);
  child.stdin.end();
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (words = `${words}${text}`.slice(-500)));
  let bytes = 0;
  let complete = true;
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= most && take(chunk)) continue;
      complete = false;
      break;
    }
  } finally {
    if (!complete) child.kill();
  }
  const { code } = await child.exited;
  options.signal.throwIfAborted();
  if (complete && code !== 0) throw new Error(`git could not read files: ${words.trim()}`);
  return { complete };
}

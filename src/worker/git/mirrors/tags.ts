import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { replaceFile } from "../../../atomic-file.ts";
import { SessionError } from "../../../domain/errors/errors.ts";
import { mustGit, type GitOptions } from "../git.ts";
import { fetchObjects } from "./fetch.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";

// A clone has the tags of its history: versions are derived from them (git-describe(1)), and they can't be fetched from
// there.

/** Pattern for ls-remote(1) of all tags. */
export const tagsPattern = "refs/tags/*";

/** A tag of a remote. */
export interface RemoteTag {
  /** Its full name. */
  readonly ref: string;
  readonly sha: string;
  /** The target of an annotated tag; null if it is none. */
  readonly peeled: string | null;
}

/**
 * A name that a file of refs may hold (git-check-ref-format(1)), and that was read as it is: U+FFFD replaces bytes that
 * are no UTF-8.
 */
const plainName = /^refs\/tags\/[^\s~^:?*[\\\p{Cc}\uFFFD]+$/u;

/** The tags in the output of ls-remote, which may be cut off. */
export function tagsIn(said: string): RemoteTag[] {
  const tags = new Map<string, RemoteTag>();
  // The rest after the last line's end is a part of a line.
  for (const line of said.split("\n").slice(0, -1)) {
    const [, sha = "", ref = "", peels] = /^([0-9a-f]{40,64})\t(refs\/tags\/.+?)(\^\{\})?$/u.exec(line) ?? [];
    if (!plainName.test(ref) || ref.includes("..") || ref.includes("@{")) continue;
    const before = tags.get(ref);
    if (peels === undefined) tags.set(ref, { ref, sha, peeled: null });
    else if (before !== undefined) tags.set(ref, { ...before, peeled: sha });
  }
  return [...tags.values()];
}

/** Name of a file in each mirror with the tags of what it has, in the form of packed refs (git-pack-refs(1)). */
const tagsFile = "offstage-tags";
/** Most tags that are fetched at once: each is a separate object. */
const mostFetched = 2_000;

/**
 * Records in a mirror which tags the remote has of its commits, and fetches those that are separate objects. Commits
 * that only a tag has are not fetched. A session works without the tags, too: a refusal is ignored.
 * @param tags all of the remote
 */
export async function keepTags(mirror: Mirror, tags: readonly RemoteTag[], signal: AbortSignal): Promise<void> {
  const options = { cwd: mirror.path, signal };
  const commits = await typesOf(
    tags.map(({ sha, peeled }) => peeled ?? sha),
    options,
  );
  const ours = tags.filter(({ sha, peeled }) => commits.get(peeled ?? sha) === "commit");
  const annotated = ours.filter(({ peeled }) => peeled !== null);
  const known = await typesOf(
    annotated.map(({ sha }) => sha),
    options,
  );
  const missing = annotated.filter(({ sha }) => !known.has(sha)).slice(-mostFetched);
  if (missing.length > 0) await fetchTags(mirror, missing, signal);
  const fetched = await typesOf(
    missing.map(({ sha }) => sha),
    options,
  );
  const isThere = (sha: string): boolean => known.has(sha) || fetched.has(sha);
  const lines = ours
    .filter(({ sha, peeled }) => peeled === null || isThere(sha))
    .toSorted((one, other) => Buffer.compare(Buffer.from(one.ref), Buffer.from(other.ref)))
    .map(({ ref, sha, peeled }) => `${sha} ${ref}\n${peeled === null ? "" : `^${peeled}\n`}`);
  const content = lines.length === 0 ? "" : `# pack-refs with: peeled fully-peeled sorted \n${lines.join("")}`;
  const path = join(mirror.path, tagsFile);
  const before = await readFile(path, "utf8").catch(() => "");
  if (content !== before) await replaceFile(path, content);
}

/** Puts a mirror's tags into a repository that has no packed refs yet. @param repository path of its `.git` */
export async function copyTags(mirror: string, repository: string): Promise<void> {
  try {
    await copyFile(join(mirror, tagsFile), join(repository, "packed-refs"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

async function fetchTags(mirror: Mirror, tags: readonly RemoteTag[], signal: AbortSignal): Promise<void> {
  try {
    const options = await remoteOptions(mirror, signal);
    const from = { mirror: mirror.path, url: mirror.url, limits: transferLimits(mirror) };
    await fetchObjects({ ...from, ref: tags.map(({ ref }) => ref), options });
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
  }
}

/** The types of objects of a repository, by their names; those that it does not have are left out. */
async function typesOf(shas: readonly string[], options: GitOptions): Promise<Map<string, string>> {
  if (shas.length === 0) return new Map();
  const input = Readable.from([shas.map((sha) => `${sha}\n`).join("")]);
  const said = await mustGit(["cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer"], {
    ...options,
    input,
  });
  const found = said.split("\n").map((line) => line.split(" "));
  return new Map(found.flatMap(([sha = "", type = ""]) => (type === "missing" ? [] : [[sha, type] as const])));
}

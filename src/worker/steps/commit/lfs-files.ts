import { randomBytes } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { SessionError } from "../../../domain/errors/errors.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { commandFoldersOf } from "../../attempt/session-repositories.ts";
import type { Clone } from "../../clones/clone.ts";
import { entriesOf } from "../../git/entries.ts";
import { mustGit, type GitOptions } from "../../git/git.ts";
import { fetchContents } from "../../git/lfs/transfers.ts";
import { lfsPath, lfsStore } from "../../git/lfs/store.ts";
import { knownOf } from "../../git/remote-repository.ts";
import { sparseCommit } from "../../git/sparse-checkout.ts";
import { storeMade, takeContents } from "../../lfs/contents.ts";
import { listed, newLfsFiles, type FileInGit, type LfsFile } from "../../lfs/pointers.ts";
import type { PushedObject } from "../../git/pushed-objects.ts";

/** How many commits before the newest are asked for contents that are on the server. */
const mostFetched = 20;

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
  const { mirror, remote } = clone;
  const { session, signal } = attempt;
  const { files, large } = await newLfsFiles(head, knownOf(clone), { cwd: mirror.path, signal });
  const misplaced = await inLfsByAttributes(mirror.path, head, large, signal);
  if (misplaced.length > 0) throw misplacedFiles(misplaced);
  const store = lfsStore(mirror.path);
  const missing = (): LfsFile[] => files.filter(({ oid }) => !existsSync(lfsPath(store, oid)));
  const wanted = missing();
  requireRoom(wanted, services.limits.diskBytes);
  if (wanted.length > 0) {
    const folders = { ...commandFoldersOf(session, services, remote.directory), readOnly: [mirror.path] };
    await takeContents({ ...services, signal }, folders, wanted, (pointer, content) =>
      storeMade(store, pointer, content),
    );
  }
  // The missing ones may be earlier contents, to which the agent went back.
  if (missing().length > 0)
    await fetchIfThere(
      clone,
      await sparseCommit({ folders: clone.sparse ?? [] }, head, { cwd: mirror.path, signal }),
      signal,
    );
  const others = new Set(missing().map(({ commit }) => commit));
  for (const commit of [...others].slice(0, mostFetched)) await fetchIfThere(clone, commit, signal);
  const lost = missing();
  if (lost.length > 0) throw lostContents(lost);
  return [...files];
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

/** Those of the files that the attributes of `head` put into LFS, by all of their paths. @returns paths, as bytes in Latin-1 */
async function inLfsByAttributes(
  mirror: string,
  head: string,
  files: readonly FileInGit[],
  signal: AbortSignal,
): Promise<string[]> {
  if (files.length === 0) return [];
  const index = join(mirror, `offstage-index-${randomBytes(8).toString("hex")}`);
  const options: GitOptions = { cwd: mirror, signal, indexFile: index };
  try {
    const paths = await pathsOf(files, options);
    await mustGit(["read-tree", head], options);
    const input = Readable.from([Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1")]);
    const fields = await latin1Entries(["check-attr", "--cached", "-z", "--stdin", "filter"], { ...options, input });
    return paths.filter((_, position) => fields[position * 3 + 2] === "lfs");
  } finally {
    await rm(index, { force: true });
  }
}

/** All paths of files in their commits: git lists a file that has several under one of them, and only up to a line break. */
async function pathsOf(files: readonly FileInGit[], options: GitOptions): Promise<string[]> {
  const paths = new Set<string>();
  for (const commit of new Set(files.map((file) => file.commit))) {
    const wanted = new Set(files.filter((file) => file.commit === commit).map(({ sha }) => sha));
    for (const entry of await latin1Entries(["ls-tree", "-r", "-z", commit], options)) {
      const [, sha = "", path = ""] = /^\d+ \w+ ([0-9a-f]+)\t(.+)$/su.exec(entry) ?? [];
      if (wanted.has(sha)) paths.add(path);
    }
  }
  return [...paths];
}

/** Git's output, split at its zero bytes; as bytes in Latin-1. @throws as `mustGit` */
async function latin1Entries(parameters: readonly string[], options: GitOptions): Promise<string[]> {
  const entries: string[] = [];
  await mustGit(parameters, { ...options, onOutput: entriesOf((entry) => entries.push(entry)) });
  return entries;
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

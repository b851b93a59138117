import { existsSync } from "node:fs";
import type { Readable } from "node:stream";
import type { PendingRestore } from "../clones/checkpoint-repository.ts";
import { fetchForFolder, namesInLfs } from "../git/lfs/lfs.ts";
import { lfsPath, lfsStore } from "../git/lfs/store.ts";
import { keepContents } from "../lfs/contents.ts";
import type { SandboxedRun, SandboxFolders } from "../sandboxed/run-command.ts";

/**
 * Puts the contents of a checkpoint's files in LFS where the checkout finds them: those that the checkpoint holds into
 * the clone, others from the server into the mirror's store.
 * @param folders whose working directory is the clone
 * @param pieces the pieces with contents, of which none was read from yet
 * @returns why some of the files will be pointers, as a sentence; null if none will
 * @throws those of `runCommand` and `fetchForFolder`, and what reading a piece throws
 */
export async function restoreLfs(
  run: SandboxedRun,
  folders: SandboxFolders,
  { clone, path, commit }: PendingRestore,
  pieces: readonly Readable[],
): Promise<string | null> {
  const { mirror } = clone;
  const kept = new Set<string>();
  for (const piece of pieces) for (const oid of await keepContents(run, folders, piece)) kept.add(oid);
  const problem = await fetchForFolder(mirror, commit, run.signal, {
    repository: path,
    sparse: clone.sparse ?? [],
    paths: clone.joining?.paths ?? [],
  });
  if (problem === null) return null;
  // The server does not have what the checkpoint holds.
  const store = lfsStore(mirror.path);
  const names = await namesInLfs(path, commit, run.signal);
  const isThere = (oid: string): boolean => kept.has(oid) || existsSync(lfsPath(store, oid));
  return names?.every(isThere) === true ? null : problem;
}

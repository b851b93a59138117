import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mustGit, type GitOptions } from "../git/git.ts";
import { exportedHead, exportedRef } from "../clones/exported-refs.ts";
import { importPack, requireKnown } from "../clones/import-pack.ts";
import type { RepositoryExport } from "./request.ts";
import { moveToSigned, signWork } from "./sign-work.ts";
import { writePack, type LeftOut } from "./write-pack.ts";

/** A commit that was taken out of the sandbox. */
export interface ExportedCommit {
  readonly sha: string;
  readonly subject: string;
  /** Its maker: `offstage` for the commit of files that the agent left uncommitted. */
  readonly by: "agent" | "offstage";
}

/** The work taken out of one repository. */
interface ExportedRepository {
  /** The commit that counts; nothing of a merge that stays under way is in it. */
  readonly headSha: string;
  /** The new ones, oldest first, at most 200. */
  readonly commits: ExportedCommit[];
  /** Whether the commit differs from the last time. */
  readonly isMoved: boolean;
  /** Paths of submodules whose changes are not in it. */
  readonly changedSubmodules: string[];
  /**
   * Files that collide in a merge that is under way and stays so, and are not resolved: perhaps none. Null if none is
   * under way.
   */
  readonly unfinished: string[] | null;
  readonly leftOut: LeftOut;
}

/** Columns of a commit's subject that are reported: it may be as long as a file. */
const subjectLength = 500;

/**
 * Takes one repository's work out of the sandbox into the mirror: only as checked objects, under a ref of Offstage's. If they
 * are to be signed, signed commits take the place of the agent's, also in its clone.
 * @throws SessionError workspace_broken, resources_exhausted, sandbox_unavailable
 */
export async function exportRepository(request: RepositoryExport): Promise<ExportedRepository> {
  const { mirror, sessionId, folders, start, signal } = request;
  const ref = exportedRef(sessionId, folders.directory);
  const options = { cwd: mirror, signal, local: true };
  const before = (await exportedHead(options, ref)) ?? start.headSha;
  const folder = await mkdtemp(join(tmpdir(), "offstage-pack-"));
  try {
    const pack = join(folder, "work.pack");
    const known = knownTo(start, before);
    const { head, committed, ...report } = await writePack(request, pack, before, known);
    if (head === null || head === before) return { headSha: before, commits: [], isMoved: false, ...report };
    const isNew = (await stat(pack)).size > 0;
    if (isNew) await importPack(pack, [head], known, options);
    else await requireKnown(head, known, options);
    const signed = await signWork(request, head, known);
    const headSha = signed.get(head) ?? head;
    if (headSha !== head) await moveToSigned(request, head, headSha);
    if (headSha === before) return { headSha, commits: [], isMoved: false, ...report };
    await mustGit(["update-ref", ref, headSha], options);
    const byOffstage = committed === null ? null : (signed.get(committed) ?? committed);
    const commits = await newCommits(headSha, known, byOffstage, options);
    return { headSha, commits, isMoved: true, ...report };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param byOffstage the commit of what the agent left uncommitted, if any. @returns the new commits, the oldest first */
async function newCommits(
  headSha: string,
  known: readonly string[],
  byOffstage: string | null,
  options: GitOptions,
): Promise<ExportedCommit[]> {
  const log = await mustGit(
    ["log", "--reverse", "--max-count=200", `--format=%H %<(${subjectLength},trunc)%s`, headSha, "--not", ...known],
    options,
  );
  return log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const sha = line.slice(0, line.indexOf(" "));
      return { sha, subject: line.slice(sha.length + 1).trimEnd(), by: sha === byOffstage ? "offstage" : "agent" };
    });
}

/** The commits that are outside already. */
function knownTo({ baseSha, headSha, theirs = [] }: RepositoryExport["start"], before: string): string[] {
  return [...new Set([baseSha, headSha, ...theirs, before])];
}

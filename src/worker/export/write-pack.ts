import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import { changesVariables } from "../checkouts/changes.ts";
import { authorVariables, sandboxGitVariables } from "../git/git.ts";
import { filterCommand } from "../git/lfs/lfs.ts";
import { sparseVariables } from "../git/sparse-checkout.ts";
import { limitBytes, TooLargeError } from "../sandboxed/byte-limit.ts";
import { runInSandbox } from "../sandboxed/run-in-sandbox.ts";
import { brokenWorkspace } from "../clones/import-pack.ts";
import { coAuthorTrailer } from "./co-author.ts";
import { mergeStateFunctions, unresolvedIn } from "./merge-state.ts";
import type { RepositoryExport } from "./request.ts";
import { stageAllFunction } from "./stage-all.ts";

const defaultLimitMs = 30 * 60_000;
/** Factor on the disk limit: the work of an agent that was stopped for its disk can still be taken out. */
const diskFactor = 4;
/** Marks of the lines in which `export-work.sh` reports commits. */
const committedMark = "offstage-committed ";
const headMark = "offstage-head ";
/** Mark of the lines that name submodules in which something was changed. */
const submoduleMark = "offstage-submodule ";
/** Marks of the lines that name what is not in the commits, and stays in the clone. */
const behindMark = "offstage-left-behind ";
const leftOutMark = "offstage-left-out ";
const whyMark = "offstage-left-out-why ";
/** The line that says that a merge or a rebase is under way, and stays so. */
const unfinishedMark = /^offstage-unfinished$/mu;

/** What an agent made and is not in its commits. */
export interface LeftOut {
  /** Full names of branches that have more, and `refs/stash`. */
  readonly refs: readonly string[];
  /** Files that git refuses to take. */
  readonly files: readonly string[];
  /** Git's words about the first of these; null if there is none. */
  readonly why: string | null;
}

/** The sandbox's report of the pack that it wrote. */
interface Written {
  /** The commit that counts; null if the script's report could not be read. */
  readonly head: string | null;
  /** The commit of what the agent left uncommitted, if any. */
  readonly committed: string | null;
  /** Paths of submodules in which something was changed. */
  readonly changedSubmodules: string[];
  readonly unfinished: string[] | null;
  readonly leftOut: LeftOut;
}

/**
 * Has a program in the sandbox commit what the agent left uncommitted, and write the new objects into a pack on this disk.
 * @param before the commit that was exported last
 * @param known commits whose objects are outside already
 * @throws SessionError workspace_broken, resources_exhausted, sandbox_unavailable
 */
export async function writePack(
  request: RepositoryExport,
  pack: string,
  before: string,
  known: readonly string[],
): Promise<Written> {
  const { sandbox, mirror, folders, branch, start, identity, limits, limitMs = defaultLimitMs, signal } = request;
  const { isInterrupted = false, tellsLeftOut = false, ours = null, changes = null } = request;
  const { author, committer, message, coAuthor } = identity;
  const sandboxRequest = {
    command: "sh",
    arguments: [
      "-c",
      [stageAllFunction(), mergeStateFunctions(), programText(import.meta.url, "export-work.sh")].join("\n"),
    ],
    workspace: folders.workspace,
    workingDirectory: join(folders.workspace, folders.directory),
    home: folders.home,
    ...(folders.disk !== undefined && { disk: folders.disk }),
    readOnly: folders.readOnly,
    environment: {
      ...sandboxGitVariables(folders.home),
      ...authorVariables(author, committer),
      OFFSTAGE_MESSAGE: `${message}${coAuthorTrailer(coAuthor)}`,
      OFFSTAGE_OBJECTS: join(mirror, "objects"),
      OFFSTAGE_LFS_FILTER: filterCommand(mirror),
      OFFSTAGE_BASE: start.baseSha,
      OFFSTAGE_BRANCH: branch,
      OFFSTAGE_BEFORE: before,
      OFFSTAGE_KNOWN: known.join(" "),
      OFFSTAGE_ENDED: isInterrupted ? "" : "yes",
      OFFSTAGE_OURS: ours ?? "",
      OFFSTAGE_TELLS: tellsLeftOut ? "yes" : "",
      ...sparseVariables(start.sparse ?? []),
      ...changesVariables(changes),
    },
    limits: { ...limits, diskBytes: limits.diskBytes * diskFactor },
  };
  const { code, exceeded, timedOut, printed, thrown } = await runInSandbox(
    sandbox,
    sandboxRequest,
    { limitMs, signal },
    async (child) => {
      child.stdin.end(changes?.list);
      const bounded = limitBytes(limits.diskBytes, "OFFSTAGE_SANDBOX_DISK_MB");
      await pipeline(child.stdout, bounded, createWriteStream(pack, { mode: 0o600 }));
    },
  );
  if (thrown?.error instanceof TooLargeError) throw tooMuch(`its objects: ${thrown.error.message}`);
  if (thrown !== null) throw thrown.error;
  if (timedOut) throw tooMuch(`it took more than ${Math.round(limitMs / 60_000)} minutes`);
  if (exceeded !== null) throw tooMuch(`it used more ${exceeded} than a sandbox may`);
  if (code === notStarted) throw noSandbox(printed);
  if (code !== 0) throw brokenWorkspace(printed);
  const unfinished = unfinishedMark.test(printed) ? unresolvedIn(printed) : null;
  return {
    head: marked(printed, headMark),
    committed: marked(printed, committedMark),
    changedSubmodules: allMarked(printed, submoduleMark),
    unfinished,
    leftOut: {
      refs: allMarked(printed, behindMark),
      files: allMarked(printed, leftOutMark).map((path) => path.replaceAll("\u0001", "\n")),
      why: allMarked(printed, whyMark)[0] ?? null,
    },
  };
}

/** What stands behind a mark in the script's lines. */
function allMarked(output: string, mark: string): string[] {
  return output
    .split("\n")
    .filter((line) => line.startsWith(mark))
    .map((line) => line.slice(mark.length));
}

/** The commit named in the script's line with this mark; null if it is not a commit's name. */
function marked(output: string, mark: string): string | null {
  const line = output.split("\n").findLast((candidate) => candidate.startsWith(mark));
  return /^[0-9a-f]{40,64}$/u.exec(line?.slice(mark.length).trim() ?? "")?.[0] ?? null;
}

/** Exit code of a sandbox that could not start its command, as of a shell. */
const notStarted = 127;

/** The work itself is not broken, and is still there. */
function noSandbox(output: string): SessionError {
  return new SessionError({
    code: "sandbox_unavailable",
    reason: `The sandbox that exports the agent's work did not start: ${output.trim().slice(-500)}`,
    retryable: true,
    passing: true,
    remedy:
      "Find the reason with `offstage doctor` on the worker, then retry the session: it continues with what the agent made.",
  });
}

function tooMuch(why: string): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The agent's work could not be taken out of its sandbox: ${why}.`,
    retryable: false,
    remedy:
      "Ask the agent in a message to delete files that are not part of the work, and any git filters that it configured.",
  });
}

import { createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { git, mustGit } from "./git.ts";

export interface CollectedCommit {
  readonly sha: string;
  readonly subject: string;
  /** `offstage` for the commit of what the agent left uncommitted. */
  readonly by: "agent" | "offstage";
}

interface Collection {
  readonly sandbox: Sandbox;
  /** Path of the mirror, where the commits go. */
  readonly mirror: string;
  readonly place: { readonly workspace: string; readonly home: string; readonly readOnly: readonly string[]; readonly directory: string };
  readonly sessionId: string;
  readonly start: { readonly baseSha: string; readonly headSha: string };
  readonly identity: {
    readonly author: { readonly name: string; readonly email: string };
    readonly message: string;
    readonly coAuthor: { readonly name: string; readonly email: string } | null;
  };
  readonly signal: AbortSignal;
}

const committedMark = "offstage-committed ";

/**
 * Runs inside the sandbox, where the agent's own hooks and settings can do no more than the agent could.
 * Nothing else runs there by then: a lock is one that a killed git left, and would stop every later one.
 * Commits what is left, then writes all that is new on HEAD as a bundle to stdout; nothing where nothing is new.
 */
const script = `
set -eu
find "$(git rev-parse --git-dir)" -name "*.lock" -type f -delete
git add --all
if ! git diff --cached --quiet; then
  git commit --quiet --no-verify --no-gpg-sign --message "$OFFSTAGE_MESSAGE"
  echo "${committedMark}$(git rev-parse HEAD)" >&2
fi
if [ -n "$(git rev-list --max-count=1 HEAD --not $OFFSTAGE_KNOWN)" ]; then
  git bundle create --quiet - HEAD --not $OFFSTAGE_KNOWN
fi`;

/**
 * Takes one repository's work out of the sandbox: as objects only, each checked, into the mirror, under a name of ours.
 * What counts is HEAD, whatever branch the agent left checked out.
 */
export async function collectRepository(collection: Collection): Promise<{ headSha: string; commits: CollectedCommit[] }> {
  const { mirror, sessionId, place, start, signal } = collection;
  const ref = `refs/offstage/${sessionId}/${place.directory}/head`;
  const options = { cwd: mirror, signal, local: true };
  const before = (await git(["rev-parse", "--verify", "--quiet", ref], options)).stdout.trim() || start.headSha;
  const folder = await mkdtemp(join(tmpdir(), "offstage-bundle-"));
  try {
    const bundle = join(folder, "work.bundle");
    const committed = await writeBundle(collection, bundle, [start.baseSha, start.headSha, before]);
    if ((await stat(bundle)).size === 0) return { headSha: before, commits: [] };
    await mustGit(
      ["-c", "transfer.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", bundle, `+HEAD:${ref}`],
      options,
    );
    const headSha = await mustGit(["rev-parse", ref], options);
    const log = await mustGit(["log", "--reverse", "--max-count=200", "--format=%H %s", headSha, "--not", before, start.headSha], options);
    const commits = log
      .split("\n")
      .filter((line) => line !== "")
      .map((line): CollectedCommit => {
        const sha = line.slice(0, line.indexOf(" "));
        return { sha, subject: line.slice(sha.length + 1), by: sha === committed ? "offstage" : "agent" };
      });
    return { headSha, commits };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns the commit that was made of what the agent left, if any */
async function writeBundle({ sandbox, place, identity, signal }: Collection, bundle: string, known: readonly string[]): Promise<string | null> {
  const { author, message, coAuthor } = identity;
  const trailer = coAuthor === null ? "" : `\n\nCo-authored-by: ${coAuthor.name.replace(/[<>\n]/gu, "")} <${coAuthor.email}>`;
  const child = sandbox.start({
    command: "sh",
    arguments: ["-c", script],
    workspace: place.workspace,
    workingDirectory: join(place.workspace, place.directory),
    home: place.home,
    readOnly: place.readOnly,
    environment: {
      HOME: place.home,
      LC_ALL: "C.UTF-8",
      GIT_AUTHOR_NAME: author.name,
      GIT_AUTHOR_EMAIL: author.email,
      GIT_COMMITTER_NAME: author.name,
      GIT_COMMITTER_EMAIL: author.email,
      GIT_CONFIG_COUNT: "2",
      GIT_CONFIG_KEY_0: "core.hooksPath",
      GIT_CONFIG_VALUE_0: "/dev/null",
      GIT_CONFIG_KEY_1: "core.fsmonitor",
      GIT_CONFIG_VALUE_1: "false",
      OFFSTAGE_MESSAGE: `${message}${trailer}`,
      OFFSTAGE_KNOWN: [...new Set(known)].join(" "),
    },
    signal,
  });
  child.stdin.end();
  const [, said, { code }] = await Promise.all([
    pipeline(child.stdout, createWriteStream(bundle, { mode: 0o600 })),
    text(child.stderr),
    child.exited,
  ]);
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`the agent's work could not be taken out of its workspace: ${said.trim().slice(-2_000)}`);
  return said.split("\n").findLast((line) => line.startsWith(committedMark))?.slice(committedMark.length).trim() ?? null;
}

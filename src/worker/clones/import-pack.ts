import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SessionError } from "../../domain/errors/errors.ts";
import { entriesOf } from "../git/entries.ts";
import { git, mustGit, type GitOptions, type GitResult } from "../git/git.ts";

/**
 * All of git's checks, except for attributes in overlong lines, which git ignores with a warning: repositories have
 * such lines from before git checked.
 */
const checks = "--strict=gitattributesLineLength=ignore";

/** What git says of a file of settings that it refuses (git-fsck(1)): its name without the dot, what is wrong, and more. */
const refusedSettings = /^error: object [0-9a-f]+: (gitmodules|gitattributes)([A-Z]\w*: [^\n]*)/mu;

/**
 * Takes a pack of the agent's objects into a repository. Each object is checked: git itself makes no tree with a `.git` entry,
 * and checking one out would write where it must not. Everything that `heads` need must be there.
 * @param pack path of its file
 * @param known commits whose objects are there already
 * @throws SessionError workspace_broken
 */
export async function importPack(
  pack: string,
  heads: readonly string[],
  known: readonly string[],
  options: GitOptions,
): Promise<void> {
  const imported = await takePack(pack, known, options);
  if (imported.code !== 0) throw refusedPack(imported.stderr);
  const wanted = heads.map((head) => `${head}^{commit}`);
  const connected = await git(["rev-list", "--objects", "--quiet", ...wanted, "--not", ...known], options);
  if (connected.code !== 0) throw brokenWorkspace(connected.stderr);
}

/**
 * git also looks at the files of settings in new folders that the repository has had all along, such as a `.gitmodules` from before git
 * refused to run what it names (`update = !command`). If it refuses one, it is asked again, without these.
 */
async function takePack(pack: string, known: readonly string[], options: GitOptions): Promise<GitResult> {
  const take = (strict: string): Promise<GitResult> =>
    git(["index-pack", "--stdin", "--fix-thin", strict], { ...options, input: createReadStream(pack) });
  const taken = await take(checks);
  if (taken.code === 0 || !refusedSettings.test(taken.stderr)) return taken;
  const folder = await mkdtemp(join(tmpdir(), "offstage-settings-"));
  try {
    const list = join(folder, "known");
    await writeFile(list, (await settingsIn(known, options)).map((sha) => `${sha}\n`).join(""));
    return await take(`${checks},skiplist=${list}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The contents of git's files of settings in commits. */
async function settingsIn(commits: readonly string[], options: GitOptions): Promise<string[]> {
  const found = new Set<string>();
  const onOutput = entriesOf((entry) => {
    const [, sha] = /^\d+ blob ([0-9a-f]+)\t(?:[^]*\/)?\.git(?:modules|attributes)$/u.exec(entry) ?? [];
    if (sha !== undefined) found.add(sha);
  });
  for (const commit of commits) await mustGit(["ls-tree", "-r", "-z", "--full-tree", commit], { ...options, onOutput });
  return [...found];
}

/** If the session's branch went back, it must be at one of the earlier commits. @throws SessionError workspace_broken */
export async function requireKnown(head: string, known: readonly string[], options: GitOptions): Promise<void> {
  const beyond = await git(["rev-list", "--max-count=1", head, "--not", ...known], options);
  if (beyond.code !== 0 || beyond.stdout !== "") throw brokenWorkspace(`${head} is no commit of this work`);
}

/** The error of a repository whose work can't be taken out. @param output of git, whose end the reason has */
export function brokenWorkspace(output: string): SessionError {
  return new SessionError({
    code: "workspace_broken",
    reason: `The agent left its repository in a state from which its work can't be exported: ${output.trim().slice(-500)}`,
    retryable: false,
    remedy: "Start a new session, which works in a fresh clone.",
  });
}

/** The error of work that git does not take. @param output of git */
function refusedPack(output: string): SessionError {
  const [, file, words] = refusedSettings.exec(output) ?? [];
  if (file === undefined) return brokenWorkspace(output);
  return new SessionError({
    code: "workspace_broken",
    reason: `git refuses a .${file} in the agent's commits, and so the commits with it: ${file}${words}`,
    retryable: false,
    remedy:
      "Tell the agent in a message what git refuses, and to take it out of each of its commits; or start a new session.",
  });
}

import { Readable } from "node:stream";
import { mustGit } from "../../src/worker/git/git.ts";

/** Files of a commit: the content of each path. */
export type Files = Readonly<Record<string, string>>;

const { signal } = new AbortController();
const identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"];

/**
 * Makes a commit in a bare repository; no branch moves.
 * @param base commit whose files it has besides
 * @param parents the base, if there are none
 * @returns its hash
 */
export async function commitFiles(
  repository: string,
  base: string,
  files: Files,
  message: string,
  ...parents: readonly string[]
): Promise<string> {
  const git = (parameters: readonly string[], input = ""): Promise<string> =>
    mustGit(parameters, { cwd: repository, signal, input: Readable.from([input]) });
  let listed = await git(["ls-tree", base]);
  for (const [path, content] of Object.entries(files))
    listed += `\n100644 blob ${await git(["hash-object", "-w", "--stdin"], content)}\t${path}`;
  const tree = await git(["mktree"], `${listed}\n`);
  const on = (parents.length === 0 ? [base] : parents).flatMap((parent) => ["-p", parent]);
  return git([...identity, "commit-tree", tree, ...on, "-m", message]);
}

/** Makes a commit with the files of another, and without its history. */
export function commitApart(repository: string, of: string): Promise<string> {
  return mustGit([...identity, "commit-tree", `${of}^{tree}`, "-m", "another history"], { cwd: repository, signal });
}

import { entriesOf, pathIn } from "./entries.ts";
import { git, mustGit, type GitOptions } from "./git.ts";

/** A folder of a commit in which another repository's commit belongs (gitsubmodules(7)). */
export interface Gitlink {
  readonly path: string;
  /** The commit that the superproject records. */
  readonly sha: string;
}

/** Paths of the submodules that two commits of a repository have differently, each with the commit that the second one records. */
interface SubmoduleChanges {
  /** Those that both record, at different commits. */
  readonly moved: ReadonlyMap<string, string>;
  /** Those that the second one alone has. */
  readonly added: ReadonlyMap<string, string>;
}

/** Compares the submodules of two commits. */
export async function compareSubmodules(from: string, to: string, options: GitOptions): Promise<SubmoduleChanges> {
  const moved = new Map<string, string>();
  const added = new Map<string, string>();
  let header = "";
  // For each file `:<mode> <mode> <object> <object> <status>` and its path, both ended by a zero byte.
  const onOutput = entriesOf((entry) => {
    const [, mode, sha] = /^:(\d{6}) 160000 [0-9a-f]+ ([0-9a-f]+) /u.exec(header) ?? [];
    if (sha !== undefined) (mode === "160000" ? moved : added).set(Buffer.from(entry, "latin1").toString("utf8"), sha);
    header = header === "" ? entry : "";
  });
  await mustGit(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", from, to], {
    ...options,
    onOutput,
  });
  return { moved, added };
}

/** Bound on the settings file, which strangers wrote. */
const settingsBytes = 1024 * 1024;

/**
 * The submodules in a clone's index that it checks out. git has checked the index for paths that lead elsewhere.
 * @param limit how many are returned, since a tree of a few megabytes may name a million
 * @returns those, and how many there are
 */
export async function gitlinksIn(
  clone: Pick<GitOptions, "cwd" | "signal">,
  limit: number,
): Promise<{ readonly links: readonly Gitlink[]; readonly count: number }> {
  const links: Gitlink[] = [];
  let count = 0;
  const onOutput = entriesOf((entry) => {
    // Else no submodule, or one outside of a sparse checkout, which is marked with S.
    if (!entry.startsWith("H 160000 ")) return;
    count += 1;
    if (links.length < limit) links.push({ path: pathIn(entry), sha: entry.split(" ")[2] ?? "" });
  });
  await mustGit(["ls-files", "--stage", "-t", "-z"], { ...clone, mayBeOthers: true, onOutput });
  return { links, count };
}

/**
 * Reads the URL of each submodule's path from a commit's `.gitmodules`, which git parses.
 * Nothing else in the file counts, a submodule's name included: git makes a path of it.
 * @returns nothing if there is no such file, or it is none that git would read; null if it has more than 1 MiB
 */
export async function submoduleUrls(
  repository: Pick<GitOptions, "cwd" | "signal" | "mayBeOthers">,
  sha: string,
): Promise<Map<string, string> | null> {
  const entry = await mustGit(["ls-tree", "-l", sha, "--", ".gitmodules"], repository);
  // git does not read a symbolic link there either.
  if (!/^100\d{3} blob /u.test(entry)) return new Map();
  if (Number(entry.split("\t")[0]?.split(/ +/u)[3]) > settingsBytes) return null;
  // For a blob, unlike for a file, git would follow `include.path` to any file of this machine.
  const read = ["config", "--blob", `${sha}:.gitmodules`, "--no-includes", "--null", "--list"];
  const { code, stdout } = await git(read, { ...repository, maximumOutput: settingsBytes });
  if (code !== 0) return new Map();
  const paths = new Map<string, string>();
  const urls = new Map<string, string>();
  for (const setting of stdout.split("\0")) {
    const [key = "", name, field] = /^submodule\.([^\n]+)\.(path|url)\n/u.exec(setting) ?? [];
    if (name !== undefined) (field === "path" ? paths : urls).set(name, setting.slice(key.length));
  }
  return new Map(
    [...paths].flatMap(([name, path]) => {
      const url = urls.get(name);
      return url === undefined ? [] : [[path, url] as const];
    }),
  );
}

/**
 * The URL of a submodule, if it is written relative to its superproject's (`./` or `../`, gitmodules(5)).
 * @returns null if it leads above the root of the superproject's host
 */
export function resolveSubmoduleUrl(superproject: string, url: string): string | null {
  if (!/^\.\.?\//u.test(url)) return url;
  const [, root = "", path = ""] = /^([a-z]+:\/\/[^/]+\/|[^/:]+:|\/)(.*)$/isu.exec(superproject) ?? [];
  const parts = path.split("/").filter((part) => part !== "");
  let rest = url;
  for (;;) {
    if (rest.startsWith("./")) rest = rest.slice(2);
    else if (rest.startsWith("../")) {
      rest = rest.slice(3);
      if (parts.pop() === undefined) return null;
    } else return `${root}${[...parts, rest].join("/")}`;
  }
}

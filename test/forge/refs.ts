import { execFileSync } from "node:child_process";

/** The branches as the forge's API knows them, which may be behind the repository. */
export interface Refs {
  /** The commit at which the API believes a branch to be; null: it knows no such branch. */
  shaOf(bare: string, branch: string): string | null;
  /** The branches as they are, whatever the API knows. */
  all(bare: string): ReadonlyMap<string, string>;
  /** Branches of the repository may have changed: the API learns of it after its lag. */
  changed(bare: string): void;
}

interface Seen {
  readonly sha: string;
  /** The branch's commit before; null: it did not exist. */
  readonly before: string | null;
  readonly shownFrom: number;
}

/** @param lagMs how long the next change takes to show, in ms */
export function createRefs(environment: NodeJS.ProcessEnv, lagMs: () => number): Refs {
  const seen = new Map<string, Map<string, Seen>>();

  const branchesOf = (bare: string): Map<string, string> => {
    const format = "--format=%(refname:lstrip=2) %(objectname)";
    const lines = execFileSync("git", ["-C", bare, "for-each-ref", format, "refs/heads"], {
      env: environment,
      encoding: "utf8",
      // A repository may have very many branches.
      maxBuffer: 64 * 1024 ** 2,
    });
    return new Map(
      lines
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.split(" ") as [string, string]),
    );
  };

  function look(bare: string): Map<string, Seen> {
    const known = seen.get(bare) ?? new Map<string, Seen>();
    const branches = branchesOf(bare);
    for (const branch of known.keys()) if (!branches.has(branch)) known.delete(branch);
    for (const [branch, sha] of branches) {
      const last = known.get(branch);
      if (last?.sha === sha) continue;
      const shown = last === undefined || performance.now() >= last.shownFrom ? last?.sha : last.before;
      known.set(branch, { sha, before: shown ?? null, shownFrom: performance.now() + lagMs() });
    }
    seen.set(bare, known);
    return known;
  }

  return {
    shaOf(bare, branch) {
      // Tests push past the server too: what is found only now begins to show.
      const found = look(bare).get(branch);
      if (found === undefined) return null;
      return performance.now() >= found.shownFrom ? found.sha : found.before;
    },
    all: branchesOf,
    changed: (bare) => void look(bare),
  };
}

import { z } from "zod";
import { fitsGlob } from "./glob.ts";
import type { RepositoryAddress } from "./repository.ts";

/** Which repositories an entry of an organization's list names. */
interface RepositoryPattern {
  /** Null: local repositories. */
  readonly host: string | null;
  /** Also every host below `host`, and not `host` itself. */
  readonly below: boolean;
  /** `*` stands for any characters. */
  readonly path: string;
}

/**
 * Reads `github.com/acme/*`, `*.company.example/*` or, for local repositories, `/srv/repositories/*`. The host stands apart from
 * the path, so that `git.example*` can't come to mean `git.example.attacker.example`.
 */
function parseRepositoryPattern(text: string): RepositoryPattern | null {
  if (text.startsWith("/")) return { host: null, below: false, path: text };
  const [, below, host, path] =
    /^(\*\.)?([a-z0-9._-]+(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?)\/(\S+)$/iu.exec(text) ?? [];
  if (host === undefined || path === undefined) return null;
  return { host: host.toLowerCase(), below: below !== undefined, path: path.replace(/\.git$/u, "") };
}

export const repositoryPatternSchema = z
  .string()
  .max(500)
  .refine(
    (text) => parseRepositoryPattern(text) !== null,
    "must be written <host>/<path> or, for local repositories, /<path>, with * for any characters in the path and *. before a host for all below it",
  );

/**
 * Whether a list lets a repository be named. Its scheme does not count: the same repository by https and by ssh is one.
 * Capitals of a path do.
 * @param patterns null lets every repository through
 */
export function allowsRepository(patterns: readonly string[] | null, { host, path }: RepositoryAddress): boolean {
  if (patterns === null) return true;
  return patterns.some((text) => {
    const pattern = parseRepositoryPattern(text);
    if (pattern === null || !fitsGlob(pattern.path, path)) return false;
    if (pattern.host === null || host === null) return pattern.host === host;
    return pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host;
  });
}

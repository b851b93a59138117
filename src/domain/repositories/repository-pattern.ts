import { z } from "zod";
import { matchesGlob } from "../fields/glob.ts";
import type { RepositoryAddress } from "./repository.ts";

/** The repositories that an entry of an organization's list names. */
interface RepositoryPattern {
  /** Null: local repositories. */
  readonly host: string | null;
  /** Matches every host below `host`, and not `host` itself. */
  readonly below: boolean;
  /** `*` stands for any characters. */
  readonly path: string;
}

/**
 * Parses `github.com/acme/*`, `*.company.example/*` or, for local repositories, `/srv/repositories/*`. A `*` can't
 * reach across the host's end: otherwise `git.example*` would match `git.example.attacker.example`.
 */
function parseRepositoryPattern(text: string): RepositoryPattern | null {
  if (text.startsWith("/")) return { host: null, below: false, path: text };
  const [, below, host, path] =
    /^(\*\.)?([a-z0-9._-]+(?::\d{1,5})?|\[[0-9a-f:.]+\](?::\d{1,5})?)\/(\S+)$/iu.exec(text) ?? [];
  if (host === undefined || path === undefined) return null;
  return { host: host.toLowerCase(), below: below !== undefined, path: path.replace(/\.git$/u, "") };
}

/** An entry of an organization's list of repositories. */
export const repositoryPatternSchema = z
  .string()
  .max(500)
  .refine(
    (text) => parseRepositoryPattern(text) !== null,
    "must be written <host>/<path> or, for local repositories, /<path>, with * for any characters in the path and *. before a host for all below it",
  );

/** Which repositories an organization may use. */
export interface AllowedRepositories {
  /** The list of its admins; null: every repository. */
  readonly patterns: readonly string[] | null;
  /** Whether it uses what the operator configured for all: credentials of forges, ssh keys, repositories on the server's machine. */
  readonly usesServerForges: boolean;
}

/** Why an organization may not use a repository; null: it may. */
export function repositoryRefusal(
  { patterns, usesServerForges }: AllowedRepositories,
  address: RepositoryAddress,
): "list" | "server" | null {
  if (!usesServerForges && isReachedByServer(address)) return "server";
  return allowsRepository(patterns, address) ? null : "list";
}

/** Whether a repository is reached only with what is the server's: its disk, or its ssh keys. */
function isReachedByServer({ cloneUrl, local }: RepositoryAddress): boolean {
  return local || !/^https?:/u.test(cloneUrl);
}

/**
 * Whether a list allows a repository. The scheme does not count: https and ssh addresses of a repository are one. Case
 * counts in a path.
 * @param patterns null allows every repository
 */
export function allowsRepository(patterns: readonly string[] | null, { host, path }: RepositoryAddress): boolean {
  if (patterns === null) return true;
  return patterns.some((text) => {
    const pattern = parseRepositoryPattern(text);
    if (pattern === null || !matchesGlob(pattern.path, path)) return false;
    if (pattern.host === null || host === null) return pattern.host === host;
    return pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host;
  });
}

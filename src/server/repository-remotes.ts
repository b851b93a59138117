import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { RepositoryRemotes } from "../api/http/context.ts";
import type { Config } from "../config/config.ts";
import { SessionError } from "../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl } from "../domain/repositories/repository.ts";
import type { OrganizationForges } from "../forges/organization-forges.ts";
import { headOfBranch, listBranches, listTree, type BranchTree } from "../worker/git/list-tree.ts";
import type { Mirror } from "../worker/git/mirror.ts";
import { createRepositoryMirrors } from "./attempt-services.ts";

/** How long an answer of a remote is taken for its present one, in ms. */
const freshMs = 60_000;
/** How long somebody waits for a remote, in ms: they are writing. */
const limitMs = 30_000;
/** How much is remembered of files: most branches, and most characters of paths. */
const mostKept = { branches: 200, characters: 64 * 1024 ** 2 };

/** A branch's files, remembered. */
interface Kept {
  readonly tree: BranchTree;
  readonly characters: number;
  askedAt: number;
}

/**
 * Asks remotes by git itself, which every forge speaks, with the organization's own credentials. Nodes of the API have no mirrors: the
 * files of a branch are its newest commit's folders, fetched without contents and history, and remembered in memory as long as the
 * branch has that commit.
 */
export function repositoryRemotes(parts: {
  readonly config: Config;
  readonly forges: OrganizationForges;
}): RepositoryRemotes & { readonly stop: () => void } {
  const stopping = new AbortController();
  const kept = new Map<string, Kept>();
  const underWay = new Map<string, Promise<BranchTree>>();
  const bounded = (): AbortSignal => AbortSignal.any([stopping.signal, AbortSignal.timeout(limitMs)]);

  async function readFiles(key: string, source: Mirror, branch: string | null): Promise<BranchTree> {
    const signal = bounded();
    const known = kept.get(key);
    if (known !== undefined && performance.now() - known.askedAt < freshMs) return known.tree;
    const head = await headOfBranch(source, branch, signal);
    const tree = known?.tree.commit === head.commit ? known.tree : await listTree(source, head, signal);
    remember(key, tree);
    return tree;
  }

  function remember(key: string, tree: BranchTree): void {
    kept.delete(key);
    const characters = tree.paths.reduce((sum, path) => sum + path.length, 0);
    kept.set(key, { tree, characters, askedAt: performance.now() });
    let sum = [...kept.values()].reduce((all, each) => all + each.characters, 0);
    // The one that was asked for the longest time ago goes first.
    for (const [oldest, { characters: its }] of kept) {
      if (kept.size <= mostKept.branches && sum <= mostKept.characters) break;
      kept.delete(oldest);
      sum -= its;
    }
  }

  return {
    async branches(url, organizationId) {
      const source = await sourceOf(parts, url, organizationId, stopping.signal);
      return inTime(url, () => listBranches(source, bounded()));
    },
    async files(url, organizationId, branch) {
      const key = JSON.stringify([organizationId, url, branch]);
      const source = await sourceOf(parts, url, organizationId, stopping.signal);
      // What several people ask for at once is asked for once.
      const asked = underWay.get(key) ?? readFiles(key, source, branch).finally(() => underWay.delete(key));
      underWay.set(key, asked);
      return inTime(url, () => asked);
    },
    stop: () => stopping.abort(),
  };
}

/** The repository as git reaches it; its path is the folder in which a tree is fetched for a moment. */
async function sourceOf(
  { config, forges }: { readonly config: Config; readonly forges: OrganizationForges },
  url: string,
  organizationId: string,
  signal: AbortSignal,
): Promise<Mirror> {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw unreachable(url, `Its address ${address.problem}.`);
  const forge = (await forges.of(organizationId)).forgeOf(address);
  const path = join(config.data, "trees");
  await mkdir(path, { recursive: true, mode: 0o700 });
  const named = forge.webUrl !== null && forge.namedByOperator !== false;
  const credentials = () => forge.credentials(address, signal);
  return { ...createRepositoryMirrors(config).of({ url: address.cloneUrl, named, credentials }), path };
}

/** @throws SessionError repository_unreachable if the time has run out */
async function inTime<Answer>(url: string, ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "TimeoutError") throw error;
    throw unreachable(url, `It did not answer within ${limitMs / 1_000} s.`);
  }
}

function unreachable(url: string, why: string): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The repository ${url} could not be asked. ${why}`,
    retryable: true,
    remedy: "Try again, or write the name yourself.",
  });
}

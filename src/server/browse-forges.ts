import { createHash } from "node:crypto";
import type { ForgeChoices } from "../api/http/context.ts";
import { InvalidInputError, NotFoundError, SessionError, UnavailableError } from "../domain/errors/errors.ts";
import { bestFirst, mostOffered, type OfferedRepository } from "../domain/repositories/choice.ts";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { hasQuery, type FoundItems, type ForgeBrowser, type FoundRepository } from "../forges/browse.ts";
import type { Forge } from "../forges/forge.ts";
import type { OrganizationForges } from "../forges/connections/organization-forges.ts";

/** How long a forge's list is cached, in ms: while a person types. */
const keptMs = 20_000;
const keptAtMost = 500;
/** Longest time that people wait for a forge, in ms. */
const longestMs = 15_000;
/** Questions to forges that one organization has under way; more wait for these. */
const atOnce = 4;

/**
 * Lists what people choose from, by requests to the organization's forges, each with its own credential. Recent answers
 * are cached, and a forge that asked to wait is not contacted.
 */
export function createForgeChoices({
  forges,
  now = () => performance.now(),
}: {
  readonly forges: Pick<OrganizationForges, "of">;
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
}): ForgeChoices {
  const kept = new Map<string, { readonly until: number; readonly found: Promise<unknown> }>();
  /** Until when a forge asked to wait, by organization and forge. */
  const resting = new Map<string, { readonly until: number; readonly reason: string }>();
  const waiting = new Map<string, { underWay: number; readonly next: (() => void)[] }>();

  /** Asks once for all who want to know the same. @param key of what is asked for */
  function ask<T>(key: readonly string[], work: () => Promise<T>): Promise<T> {
    const name = createHash("sha256").update(JSON.stringify(key)).digest("base64");
    const known = kept.get(name);
    if (known !== undefined && now() < known.until) return known.found as Promise<T>;
    const found = inTurn(key[0] ?? "", work);
    const entry = { until: now() + keptMs, found };
    kept.delete(name);
    kept.set(name, entry);
    if (kept.size > keptAtMost) kept.delete(kept.keys().next().value ?? "");
    found.catch(() => {
      if (kept.get(name) === entry) kept.delete(name);
    });
    return found;
  }

  async function inTurn<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    const turns = waiting.get(organizationId) ?? { underWay: 0, next: [] };
    waiting.set(organizationId, turns);
    if (turns.underWay >= atOnce) await new Promise<void>((resolve) => turns.next.push(resolve));
    else turns.underWay += 1;
    try {
      return await work();
    } finally {
      const next = turns.next.shift();
      if (next !== undefined) next();
      else if ((turns.underWay -= 1) === 0) waiting.delete(organizationId);
    }
  }

  /** Sends a request to a forge, unless it asked to wait. @throws SessionError, of which it takes note */
  async function browse<T>(
    organizationId: string,
    forge: Forge,
    work: (browser: ForgeBrowser) => Promise<T>,
  ): Promise<T> {
    if (forge.browse === null) throw new InvalidInputError(`${forge.name} can't be looked through: write the name out`);
    const place = `${organizationId} ${forge.id}`;
    const rest = resting.get(place);
    if (rest !== undefined && now() < rest.until) throw new UnavailableError(rest.reason, secondsUntil(rest.until));
    resting.delete(place);
    try {
      return await work(forge.browse);
    } catch (error) {
      if (error instanceof SessionError && error.retryAfterMs !== undefined) {
        resting.set(place, { until: now() + error.retryAfterMs, reason: error.message });
      }
      throw error;
    }
  }

  const secondsUntil = (time: number): number => Math.max(1, Math.ceil((time - now()) / 1_000));

  async function search(organizationId: string, forge: Forge, query: string): Promise<FoundItems<FoundRepository>> {
    return ask([organizationId, forge.id, forge.webUrl ?? "", "repositories", query], () =>
      browse(organizationId, forge, (browser) =>
        browser.repositories(forge.within ?? "", query, AbortSignal.timeout(longestMs)),
      ),
    );
  }

  /** The requested list of one repository. */
  async function about(
    organizationId: string,
    address: RepositoryAddress,
    what: readonly string[],
    work: (browser: ForgeBrowser, signal: AbortSignal) => Promise<FoundItems<string>>,
  ): Promise<FoundItems<string>> {
    const forge = (await forges.of(organizationId)).forgeOf(address);
    try {
      return await ask([organizationId, address.cloneUrl, ...what], () =>
        browse(organizationId, forge, (browser) => work(browser, AbortSignal.timeout(longestMs))),
      );
    } catch (error) {
      throw asApiError(error);
    }
  }

  return {
    async repositories(organizationId, query) {
      const { browsable } = await forges.of(organizationId);
      const problems: { forge: string; text: string }[] = [];
      const offered = new Map<string, OfferedRepository>();
      let isComplete = true;
      const all = await Promise.allSettled(browsable.map((forge) => search(organizationId, forge, query)));
      for (const [index, result] of all.entries()) {
        const { name: forge = "" } = browsable[index] ?? {};
        if (result.status === "rejected") {
          problems.push({ forge, text: asApiError(result.reason).message });
          continue;
        }
        isComplete &&= result.value.isComplete;
        for (const item of result.value.items) {
          // An organization's own connection goes before the operator's of the same forge.
          if (!offered.has(item.url)) offered.set(item.url, { ...item, forge });
        }
      }
      return { repositories: [...offered.values()], complete: isComplete, problems };
    },
    async branches(organizationId, address, query) {
      const found = await about(organizationId, address, ["branches", query], (browser, signal) =>
        browser.branches(address, query, signal),
      );
      return { branches: first(found, query), complete: isAll(found) };
    },
    async files(organizationId, address, { branch, query }) {
      const whole = await about(organizationId, address, ["files", branch, ""], (browser, signal) =>
        browser.files(address, branch, "", signal),
      );
      const folder = query.includes("/") ? query.slice(0, query.lastIndexOf("/")) : "";
      const isEnough = whole.isComplete || folder === "";
      // Only a part of a large repository is known: files below the typed folder may be requested.
      const found = isEnough
        ? whole
        : await about(organizationId, address, ["files", branch, folder], (browser, signal) =>
            browser.files(address, branch, folder, signal),
          );
      const fitting = { ...found, items: found.items.filter((path) => hasQuery(path, query)) };
      return { paths: first(fitting, query), complete: isAll(fitting) };
    },
  };
}

const first = ({ items }: FoundItems<string>, query: string): string[] =>
  bestFirst(items, (name) => name, query).slice(0, mostOffered);

const isAll = ({ items, isComplete }: FoundItems<string>): boolean => isComplete && items.length <= mostOffered;

/** A forge's refusal as an error of the API. */
function asApiError(error: unknown): Error {
  if (!(error instanceof SessionError)) return error instanceof Error ? error : new Error(String(error));
  const words = `${error.message} ${error.remedy}`;
  const { retryAfterMs } = error;
  if (error.code === "forge_unavailable")
    return new UnavailableError(
      error.message,
      retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1_000),
    );
  return error.code === "repository_not_found" ? new NotFoundError(words) : new InvalidInputError(words);
}

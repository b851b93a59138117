import { messageOf, SessionError, UnavailableError } from "../../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import type { Forge } from "../../forges/forge.ts";
import type { Logger } from "../../observability.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";

/** Hosts that did not answer, and are not asked for a while: each question to them would hold up what asks for as long as it may. */
export interface RestingHosts {
  /** @returns for how long the host rests, in ms; 0: it may be asked */
  leftMs(host: string): number;
  /**
   * The host did not answer. It rests longer with each further time, until it answers again.
   * @param toldMs for how long it asked to wait, in ms; omitted: it named no time
   * @returns for how long it rests, in ms
   */
  failed(host: string, toldMs?: number): number;
  answered(host: string): void;
}

/** Rest of a host that named no time. One lost answer must not delay other requests for long. */
const rests = { fromMs: 1_000, toMs: 30_000, jitter: 0.2 };
/** The longest rest of a host that named a time, in ms. */
const longestRestMs = 3_600_000;

/** @param now ms since some moment */
export function createRestingHosts(now: () => number = () => performance.now()): RestingHosts {
  const hosts = new Map<string, { readonly failures: number; readonly until: number }>();
  return {
    leftMs: (host) => Math.max(0, (hosts.get(host)?.until ?? 0) - now()),
    failed(host, toldMs) {
      const failures = (hosts.get(host)?.failures ?? 0) + 1;
      const restMs = toldMs === undefined ? Math.ceil(backoffMs(failures, rests)) : Math.min(toldMs, longestRestMs);
      hosts.set(host, { failures, until: now() + restMs });
      return restMs;
    },
    answered: (host) => void hosts.delete(host),
  };
}

/** Dependencies for asking a forge. */
export interface ForgeQuestions {
  readonly logger: Logger;
  readonly forgeOf: (address: RepositoryAddress, organizationId: string) => Promise<Forge>;
  readonly resting: RestingHosts;
}

/** A forge does not answer now: all that depends on it waits, and nothing else. */
export class UnansweredError extends UnavailableError {}

/** Time in which a forge must answer, in ms. */
const askingMs = 15_000;

/**
 * Asks a forge something about a repository.
 * @param ask gets a signal that ends the question after 15 s
 * @returns null if the forge finally refuses to answer: the token was revoked, or the repository renamed
 * @throws UnansweredError if it does not answer now, or did not a moment ago: it is to be asked again later
 */
export async function askForge<Answer>(
  { forgeOf, logger, resting }: ForgeQuestions,
  { id: repositoryId, organizationId, url }: Pick<RepositoryRecord, "id" | "organizationId" | "url">,
  ask: (forge: Forge, address: RepositoryAddress, signal: AbortSignal) => Promise<Answer | null>,
): Promise<Answer | null> {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) return null;
  const name = address.host ?? address.path;
  // For each organization separately: the limit that one's token has reached is no other's.
  const host = `${organizationId} ${name}`;
  const leftMs = resting.leftMs(host);
  if (leftMs > 0) throw new UnansweredError(`${name} did not answer a moment ago`, Math.ceil(leftMs / 1_000));
  try {
    const answer = await ask(await forgeOf(address, organizationId), address, AbortSignal.timeout(askingMs));
    resting.answered(host);
    return answer;
  } catch (error) {
    if (error instanceof SessionError && !error.retryable) {
      resting.answered(host);
      logger.warn({ err: error, repositoryId }, "a forge refused to answer");
      return null;
    }
    const restMs = resting.failed(host, error instanceof SessionError ? error.retryAfterMs : undefined);
    const problem = `${name} did not answer: ${messageOf(error)}`;
    throw new UnansweredError(problem, Math.ceil(restMs / 1_000), { cause: error });
  }
}

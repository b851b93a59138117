import { createHash } from "node:crypto";
import type { Database } from "../../database/database.ts";
import type { ConversationLimits } from "../../domain/conversations/conversation.ts";
import { sectionText } from "../../domain/conversations/section.ts";
import { UnavailableError } from "../../domain/errors/errors.ts";
import { longestBody } from "../../domain/repositories/pull-request-text.ts";
import { withSection } from "../../domain/repositories/pull-request-section.ts";
import { backoffMs, type Backoff } from "../../domain/time/backoff.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import type { Service } from "../../lifecycle/service.ts";
import {
  claimDueSections,
  otherPullRequests,
  putOffSection,
  readLoop,
  settleSection,
  type DueSection,
} from "../../store/repositories/pull-request-sections.ts";
import { findRepositories } from "../../store/repositories/repositories.ts";
import { askForge, type ForgeQuestions } from "./ask-forge.ts";

/** Dependencies for keeping our section of pull requests' texts current. */
export interface SectionServices extends ForgeQuestions {
  readonly database: Database;
  /** The web app's address, without a trailing slash. */
  readonly publicUrl: () => string;
  readonly limits: ConversationLimits;
}

/** Interval, in ms, at which is looked for what is due. */
const everyMs = 1_000;
/** So many texts are edited at once, and of them of one organization, whose forge may be slow. */
const atOnce = { all: 16, ofOrganization: 4 };
/** Longer than a question to a forge may take, in ms. */
const leaseMs = 60_000;
const trying: Backoff = { fromMs: 30_000, toMs: 3_600_000, jitter: 0.5 };
/** After so many failures in a row the next change is waited for. */
const mostAttempts = 10;

/**
 * Makes the task that keeps our section of pull requests' texts current. It finds what is due in the database, so a
 * worker that dies in between skips nothing.
 */
export function createSectionSweep(services: SectionServices): Service {
  return createClaimLoop<DueSection>({
    atOnce: atOnce.all,
    everyMs,
    claim: (underWay) => {
      const counted = Map.groupBy(underWay, ({ organizationId }) => organizationId);
      const busy = [...counted].filter(([, of]) => of.length >= atOnce.ofOrganization).map(([id]) => id);
      return claimDueSections(services.database.pool, { limit: 1, leaseMs, busy });
    },
    work: (due) => bringUpToDate(services, due),
    onClaimFailure: (error) =>
      services.logger.error({ err: error }, "could not look after pull requests' texts; will retry"),
    onWorkFailure: (error, due) => failed(services, error, due),
  });
}

/** Brings all that is due up to date, some at once. @returns how many were */
export async function sweepSections(services: SectionServices, stopping: AbortSignal): Promise<number> {
  let count = 0;
  while (!stopping.aborted) {
    const due = await claimDueSections(services.database.pool, { limit: atOnce.ofOrganization, leaseMs });
    if (due.length === 0) break;
    count += due.length;
    await Promise.all(
      due.map((one) => bringUpToDate(services, one).catch((error: unknown) => failed(services, error, one))),
    );
  }
  return count;
}

/** Its lease ends by itself. */
function failed({ logger }: SectionServices, error: unknown, { id: pullRequestId }: DueSection): void {
  logger.warn({ err: error, pullRequestId }, "could not look after a pull request's text; will retry");
}

async function bringUpToDate(services: SectionServices, due: DueSection): Promise<void> {
  const { database, publicUrl, limits } = services;
  const [repository] = await findRepositories(database, due.organizationId, [due.repositoryId]);
  // Disconnected, so nothing of it is read or written.
  if (repository === undefined) return settleSection(database.pool, due, null);
  const loop = await readLoop(database.pool, due);
  const text = sectionText({
    sessionUrl: `${publicUrl()}/sessions/${due.sessionId}`,
    others: await otherPullRequests(database.pool, due),
    approval: due.approval,
    openedBy: due.openedBy,
    loop: loop === null ? null : { ...loop, limits },
  });
  const hash = createHash("sha256").update(text).digest("base64url");
  if (hash === due.told) return settleSection(database.pool, due, null);
  try {
    await askForge(services, repository, async (forge, address, signal) => {
      if (!forge.opensPullRequests) return null;
      // A closed or merged pull request keeps its text, whatever is recorded here.
      const edit = (body: string, state: string): string | null =>
        state === "open" ? withSection(body, text, longestBody) : null;
      return forge.editPullRequest(address, due.number, edit, signal);
    });
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    if (due.attempts >= mostAttempts) return settleSection(database.pool, due, null);
    const pauseMs = Math.max(backoffMs(due.attempts + 1, trying), error.retryAfterMs);
    return putOffSection(database.pool, due, pauseMs);
  }
  // Also if it was refused for good: nothing else would come of the same words.
  await settleSection(database.pool, due, hash);
}

import { createHash } from "node:crypto";
import type { Database } from "../../database/database.ts";
import type { ConversationLimits } from "../../domain/conversations/conversation.ts";
import { sectionText } from "../../domain/conversations/section.ts";
import { UnavailableError } from "../../domain/errors/errors.ts";
import { longestBody } from "../../domain/repositories/pull-request-text.ts";
import { withSection } from "../../domain/repositories/pull-request-section.ts";
import { backoffMs, type Backoff } from "../../domain/time/backoff.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
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

/** Interval of passes, in ms. */
const everyMs = 1_000;
/** So many texts are edited at once. */
const atOnce = 4;
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
  return createPeriodic({
    everyMs,
    pass: async (stopping) => void (await sweepSections(services, stopping)),
    onFailure: (error) =>
      services.logger.error({ err: error }, "could not look after pull requests' texts; will retry"),
  });
}

/** One pass over all that is due. @returns how many were */
export async function sweepSections(services: SectionServices, stopping: AbortSignal): Promise<number> {
  const { database, logger } = services;
  let count = 0;
  while (!stopping.aborted) {
    const due = await claimDueSections(database.pool, { limit: atOnce, leaseMs });
    if (due.length === 0) break;
    count += due.length;
    await Promise.all(
      due.map((section) =>
        bringUpToDate(services, section).catch((error: unknown) => {
          // Its lease expires.
          logger.warn(
            { err: error, pullRequestId: section.id },
            "could not look after a pull request's text; will retry",
          );
        }),
      ),
    );
  }
  return count;
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

import { z } from "zod";
import type { Database } from "../../database/database.ts";
import { forgeEventSchema } from "../../domain/automations/forge-event.ts";
import { pathOfAddress } from "../../domain/repositories/path-of-address.ts";
import { checksToldSince, isReviewedSince } from "../../store/automations/told-since.ts";
import type { ClaimedEvent } from "../../store/automations/claimed-events.ts";
import { noteCheck, noteMerge, noteReview } from "../../store/repositories/reported-state.ts";
import type { EventPlace } from "./event-place.ts";

/** The fields read here of an event of a forge. */
const reportedSchema = z.object({
  name: forgeEventSchema.shape.name,
  forge: forgeEventSchema.shape.forge.optional(),
  checks: forgeEventSchema.shape.checks,
  review: forgeEventSchema.shape.review,
  pullRequest: z.object({ number: z.number().int(), mergeSha: z.string().optional() }).optional(),
});

/** Names of events of what a review says. */
const aboutReviews: ReadonlySet<string> = new Set(["pullRequest.reviewSubmitted", "pullRequest.reviewDismissed"]);

/** Stores delivered checks and reviews of a session's pull request, for its page, and which commit it was merged as. */
export async function recordForgeState(
  database: Database,
  event: ClaimedEvent,
  place: EventPlace | null,
): Promise<void> {
  const reported = reportedSchema.safeParse(event.payload);
  if (place === null || place.known === null || !reported.success) return;
  const { name, forge, checks, review, pullRequest } = reported.data;
  const at = { organizationId: event.organizationId, repositoryId: place.known.id };
  if (checks !== undefined && (name === "checks.failed" || name === "checks.passed")) {
    const outcome = name === "checks.failed" ? "failed" : "passed";
    const check = keyOf(checks, forge);
    const since = await checksToldSince(database.pool, event, checks.sha);
    // The state in an event that was put off is outdated if the check has ended again.
    if (!since.some((each) => keyOf(each, forge) === check))
      await noteCheck(database, at, { sha: checks.sha, check, outcome });
  }
  if (pullRequest?.mergeSha !== undefined) await noteMerge(database, at, pullRequest.number, pullRequest.mergeSha);
  if (review === undefined || pullRequest === undefined || !aboutReviews.has(name)) return;
  if (review.state === "commented" || (await isReviewedSince(database.pool, event))) return;
  await noteReview(database, at, pullRequest.number, review.state === "dismissed" ? null : review.state);
}

/**
 * The identity of a check among those of its commit, each time that it ends: its name. Only GitLab calls a pipeline by
 * the jobs that failed, and Gitea delivers a run by the status of one of its jobs first: the one is known by its
 * number, the other by its address.
 */
function keyOf(
  { kind, id, name, url }: NonNullable<z.infer<typeof reportedSchema>["checks"]>,
  forge: string | undefined,
): string {
  if (kind === "pipeline") return `${kind} ${id}`;
  if (kind !== "workflow" || forge !== "gitea") return `${kind} ${name}`;
  if (id.startsWith("/")) return `${kind} ${id}`;
  return `${kind} ${url === null ? name : pathOfAddress(url)}`;
}

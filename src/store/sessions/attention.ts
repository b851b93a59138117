import type { AttentionReason } from "../../domain/sessions/attention.ts";

// SQL of why a session needs a person: src/domain/sessions/attention.ts says what each reason means.

/** A failure needs a person for this long. */
const failureDays = 7;
/**
 * Pull requests are followed for this long (`followedFor` of src/store/repositories/pull-requests.ts); the state of
 * others is not known.
 */
const followedDays = 90;

const failedLately = (session: string): string =>
  `${session}.status = 'failed' and ${session}.finished_at > now() - interval '${failureDays} days'`;
const waitsForBudget = (session: string): string =>
  `${session}.status = 'waiting' and ${session}.waiting ->> 'reason' = 'budget'`;
const isFollowed = (pull: string): string =>
  `${pull}.state = 'open' and ${pull}.created_at > now() - interval '${followedDays} days'`;
const collides = (pull: string): string => `${isFollowed(pull)} and not ${pull}.mergeable`;
const awaitsReview = (session: string, pull: string): string =>
  `${session}.status = 'completed' and ${isFollowed(pull)} and ${pull}.mergeable is distinct from false
   and not coalesce((${session}.pull_request -> 'draft')::boolean, false)`;

/** SQL of the reasons of one session, as an array. @param session the row's name */
export const attentionOf = (
  session: string,
): string => `case when ${session}.archived_at is null then array_remove(array[
    case when ${waitsForBudget(session)} then 'budget' end,
    case when ${failedLately(session)} then 'failure' end,
    case when exists (select from pull_request pull where pull.session_id = ${session}.id and ${collides("pull")}) then 'conflict' end,
    case when exists (select from pull_request pull where pull.session_id = ${session}.id and ${awaitsReview(session, "pull")})
      then 'review' end], null) else '{}' end`;

const ofPullRequests = (condition: string): string =>
  `select session.id from pull_request pull join session on session.id = pull.session_id
   where pull.organization_id = $1 and session.organization_id = $1 and session.archived_at is null and ${condition}`;

/** SQL of the ids of an organization's ($1) sessions that need a person for one reason: each reads an index of no more than these. */
const sessionsBy: Readonly<Record<AttentionReason, string>> = {
  budget: `select session.id from session where organization_id = $1 and archived_at is null and ${waitsForBudget("session")}`,
  failure: `select session.id from session where organization_id = $1 and archived_at is null and ${failedLately("session")}`,
  conflict: ofPullRequests(collides("pull")),
  review: ofPullRequests(awaitsReview("session", "pull")),
};

/** SQL of the ids of an organization's ($1) sessions that need a person for one of the reasons, perhaps several times. */
export const needingAttention = (reasons: readonly AttentionReason[]): string =>
  reasons.map((reason) => sessionsBy[reason]).join("\nunion all ");

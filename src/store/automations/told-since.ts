import type { Queryable } from "../../database/database.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { ClaimedEvent } from "./claimed-events.ts";

/** What the same connection was told of after an event, which may be decided later than that; $1 is the event, $2 its organization. */
const toldSince = `from arrival told join arrival later
    on later.organization_id = told.organization_id and later.created_at > told.created_at and later.connection_id = told.connection_id
  where told.id = $1 and later.organization_id = $2 and later.payload #> '{repository,url}' = told.payload #> '{repository,url}'`;
/** The same of one pull request. */
const toldOfPullRequestSince = `${toldSince} and later.payload #> '{pullRequest,number}' = told.payload #> '{pullRequest,number}'`;

/** Whether the forge has told something of an event's pull request since. @param name of the prepared statement @param condition on `later` */
async function isToldSince(
  queryable: Queryable,
  { id, organizationId }: Pick<ClaimedEvent, "id" | "organizationId">,
  name: string,
  condition: string,
): Promise<boolean> {
  const text = `select ${toldOfPullRequestSince} and ${condition} limit 1`;
  const { rowCount } = await queryable.query({ name, text, values: [id, organizationId] });
  return rowCount === 1;
}

/**
 * The checks of a commit of whose end the forge has told since an event told of one: the event may be decided after those, as one that was
 * put off.
 * @param sha as the event names it
 */
export async function checksToldSince(
  queryable: Queryable,
  { id, organizationId }: Pick<ClaimedEvent, "id" | "organizationId">,
  sha: string,
): Promise<NonNullable<ForgeEvent["checks"]>[]> {
  const { rows } = await queryable.query<{ checks: NonNullable<ForgeEvent["checks"]> }>({
    name: "checks_told_since",
    text: `select later.payload -> 'checks' as checks ${toldSince} and later.name in ('checks.failed', 'checks.passed')
             and later.payload #>> '{checks,sha}' = $3`,
    values: [id, organizationId, sha],
  });
  return rows.map(({ checks }) => checks);
}

/** Whether the forge has told since an event told of what a review says that one of the same pull request says something else, likewise. */
export function isReviewedSince(
  queryable: Queryable,
  event: Pick<ClaimedEvent, "id" | "organizationId">,
): Promise<boolean> {
  return isToldSince(
    queryable,
    event,
    "is_reviewed_since",
    `later.name in ('pullRequest.reviewSubmitted', 'pullRequest.reviewDismissed')
             and later.payload #>> '{review,state}' <> 'commented'`,
  );
}

/** Whether the forge has told since an event told of a review that this was dismissed, or taken back, likewise. */
export function isDismissedSince(
  queryable: Queryable,
  event: Pick<ClaimedEvent, "id" | "organizationId">,
): Promise<boolean> {
  return isToldSince(
    queryable,
    event,
    "is_dismissed_since",
    `later.name = 'pullRequest.reviewDismissed'
             and later.payload #> '{review,id}' = told.payload #> '{review,id}'
             and later.payload #> '{review,author,id}' = told.payload #> '{review,author,id}'`,
  );
}

/** Whether the forge has told since an event told of a vote that was taken back that its author asks for changes again, likewise. */
export function isAskedAgainSince(
  queryable: Queryable,
  event: Pick<ClaimedEvent, "id" | "organizationId">,
): Promise<boolean> {
  return isToldSince(
    queryable,
    event,
    "is_asked_again_since",
    `later.name = 'pullRequest.reviewSubmitted'
             and later.payload #>> '{review,state}' = 'changesRequested'
             and later.payload #> '{review,author,id}' = told.payload #> '{review,author,id}'`,
  );
}

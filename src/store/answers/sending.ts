import type { Database } from "../../database/database.ts";
import { storable } from "../../domain/fields/text.ts";
import type { AnswerAction } from "./answers.ts";
import { removeRows } from "../prune.ts";

/** An answer that a worker has claimed to send it. */
export interface ClaimedAnswer {
  /** Also the key of a comment's mark. */
  readonly id: string;
  readonly organizationId: string;
  readonly sessionId: string | null;
  readonly host: string;
  readonly action: AnswerAction;
  readonly text: string;
  readonly createdAt: Date;
  /** Number of attempts, including this one. It is the fence: a result of an older attempt changes nothing. */
  readonly attempts: number;
  /** Null for a service, or if the repository is no longer connected. */
  readonly repositoryUrl: string | null;
  /** Of a resolution: the status of the thread's reply; null: there is none, or it is something else. */
  readonly replyStatus: "pending" | "sent" | "refused" | "dead" | null;
}

/** A host as one organization's answers reach it. */
export interface Lane {
  readonly organizationId: string;
  readonly host: string;
}

/** The limits of a claim. */
export interface ClaimLimits {
  readonly limit: number;
  readonly leaseMs: number;
  /** Of each answer that this worker is sending. */
  readonly underWay: readonly Lane[];
  readonly mostOfHost: number;
  readonly mostOfOrganization: number;
  readonly mostOfLane: number;
  /** Lanes that asked to be left alone. */
  readonly resting: readonly Lane[];
}

/**
 * Claims due answers for `leaseMs` milliseconds, after which they are due again for any worker: at most one of each organization,
 * those first of which this worker sends fewest. An answer waits for those before it at the same place.
 */
export async function claimAnswers(database: Database, limits: ClaimLimits): Promise<ClaimedAnswer[]> {
  const { limit, leaseMs, underWay, mostOfHost, mostOfOrganization, mostOfLane, resting } = limits;
  const { rows } = await database.pool.query<ClaimedAnswer>({
    name: "claim_answers",
    text: `with recursive waiting as (
        (select organization_id as id from answer where status = 'pending' order by organization_id limit 1)
        union all
        select (select organization_id from answer where status = 'pending' and organization_id > waiting.id
          order by organization_id limit 1) from waiting where waiting.id is not null),
      under_way as materialized (select * from unnest($3::uuid[], $4::text[]) as one (organization_id, host)),
      due as materialized (
        select picked.id, picked.host, sent.count,
          row_number() over (partition by picked.host order by sent.count, picked.next_attempt_at) as turn
        from waiting
        cross join lateral (select count(*) as count from under_way where organization_id = waiting.id) sent
        cross join lateral (
          select answer.id, answer.host, answer.next_attempt_at from answer
          where answer.organization_id = waiting.id and status = 'pending' and next_attempt_at <= now()
            and answer.host not in (select host from under_way group by host having count(*) >= $5)
            and (answer.organization_id, answer.host) not in (select * from unnest($7::uuid[], $8::text[]))
            and (answer.organization_id, answer.host) not in (
              select organization_id, host from under_way group by organization_id, host having count(*) >= $9)
            and not exists (select from answer before where before.organization_id = answer.organization_id
              and before.place = answer.place and before.number < answer.number and before.status = 'pending')
          order by next_attempt_at limit 1 for update of answer skip locked) picked
        where waiting.id is not null and sent.count < $6
          and not exists (select from erasure where erasure.organization_id = waiting.id and finished_at is null)),
      claimed as (
        update answer set attempts = attempts + 1, next_attempt_at = now() + $2 * interval '1 millisecond'
        where id in (
          select id from due where turn + (select count(*) from under_way where under_way.host = due.host) <= $5
          order by due.count limit $1)
        returning *)
      select claimed.id, claimed.organization_id as "organizationId", session_id as "sessionId", host, action, text,
        claimed.created_at as "createdAt", attempts,
        (select kept.url from repository given join repository kept
           on (kept.organization_id, kept.address_key) = (given.organization_id, given.address_key) and kept.deleted_at is null
         where given.id = claimed.repository_id) as "repositoryUrl",
        (select reply.status from answer reply where reply.organization_id = claimed.organization_id
           and reply.key = claimed.action ->> 'after') as "replyStatus"
      from claimed`,
    values: [
      limit,
      leaseMs,
      underWay.map(({ organizationId }) => organizationId),
      underWay.map(({ host }) => host),
      mostOfHost,
      mostOfOrganization,
      resting.map(({ organizationId }) => organizationId),
      resting.map(({ host }) => host),
      mostOfLane,
    ],
  });
  return rows;
}

/** A written answer, which is recognized as ours by its id. */
export interface WrittenAnswer {
  readonly externalId: string | null;
  /** See `IdScope`; null: the id is the only one in its repository. */
  readonly idScope: string | null;
  readonly url: string | null;
}

const longestId = 200;
const longestUrl = 2_000;
const longestProblem = 1_000;

/** Records that an answer was written. @returns false if a later attempt has begun meanwhile, so that this one does not count */
export async function recordSent(
  database: Database,
  { id, attempts }: ClaimedAnswer,
  written: WrittenAnswer,
): Promise<boolean> {
  const { externalId, idScope, url } = written;
  const { rowCount } = await database.pool.query(
    `update answer set status = 'sent', external_id = $3, id_scope = $4, url = $5, problem = null, updated_at = now()
     where id = $1 and attempts = $2 and status = 'pending'`,
    [
      id,
      attempts,
      externalId === null ? null : storable(externalId.slice(0, longestId)),
      idScope,
      url === null || url.length > longestUrl ? null : storable(url),
    ],
  );
  return rowCount === 1;
}

/**
 * Records that an attempt failed.
 * @param outcome `refused`: no attempt can succeed; `dead`: this was the last; else when the next is, in ms from now
 * @returns false if a later attempt has begun meanwhile, so that this one does not count
 */
export async function recordFailed(
  database: Database,
  { id, attempts }: ClaimedAnswer,
  problem: string,
  outcome: "refused" | "dead" | { readonly retryMs: number },
): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    `update answer set status = $3, problem = $4, next_attempt_at = now() + $5 * interval '1 millisecond', updated_at = now()
     where id = $1 and attempts = $2 and status = 'pending'`,
    [
      id,
      attempts,
      typeof outcome === "string" ? outcome : "pending",
      storable(problem.slice(0, longestProblem)),
      typeof outcome === "string" ? 0 : outcome.retryMs,
    ],
  );
  return rowCount === 1;
}

/** Days for which a comment is known as ours at least: longer than any sender delivers an event again. */
const knownForDays = 30;

/**
 * Deletes answers that ended more than `days` days ago, and more than 30, unless their session is under way.
 * @returns how many
 */
export function pruneAnswers(database: Database, days: number, signal: AbortSignal): Promise<number> {
  const condition = `status <> 'pending' and updated_at < now() - $1 * interval '1 day'
    and not exists (select from session where session.id = session_id and session.status in ('queued', 'running', 'waiting'))`;
  return removeRows(database, "answer", { condition, values: [Math.max(days, knownForDays)] }, signal);
}

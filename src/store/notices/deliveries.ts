import type { Database, Queryable } from "../../database/database.ts";
import {
  isNotified,
  noticeChannels,
  type NoticeChannel,
  type NoticeKind,
  type NoticeSettings,
} from "../../domain/notices/notice.ts";
import type { NoticeFacts } from "../../domain/notices/words.ts";
import { removeRows } from "../prune.ts";
import type { Sealed } from "../secrets/vault.ts";
import { outcomeColumns, type TellingOutcome } from "../telling-outcome.ts";
import type { NotifiedPerson } from "./person.ts";

/** Notices that one transaction decides. */
const noticesAtOnce = 50;

interface NoticeRow {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: NoticeKind;
  readonly sessionId: string | null;
  readonly data: NoticeFacts;
  readonly askedBy: string | null;
}

/**
 * Decides whom the newest changes concern, and writes a delivery for each of their channels. The notice goes in the
 * same transaction, so that each is decided once.
 * @param channels those that this installation has
 * @returns how many notices were decided
 */
export function fanOutNotices(database: Database, channels: ReadonlySet<NoticeChannel>): Promise<number> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<NoticeRow>(
      `with taken as (
         delete from notice where id in (
           select id from notice order by created_at limit ${noticesAtOnce} for update skip locked) returning *)
       select taken.id, taken.organization_id as "organizationId", kind, session_id as "sessionId", data,
         coalesce(session.requested_by, (select user_id from api_key where api_key.id = session.created_by),
           case when kind like 'automation.%' then (select created_by from automation where automation.id = (data ->> 'id')::uuid
             and automation.organization_id = taken.organization_id) end) as "askedBy"
       from taken left join session on session.id = session_id order by taken.created_at`,
    );
    for (const notice of rows) await writeDeliveries(transaction, notice, channels);
    return rows.length;
  });
}

async function writeDeliveries(
  transaction: Queryable,
  notice: NoticeRow,
  channels: ReadonlySet<NoticeChannel>,
): Promise<void> {
  const { organizationId, kind, sessionId, data, askedBy } = notice;
  const { rows } = await transaction.query<{ userId: string; settings: NoticeSettings }>(
    `select user_id as "userId", settings from notice_preference join user_account on user_account.id = user_id
     where notice_preference.organization_id = $1 and disabled_at is null`,
    [organizationId],
  );
  for (const channel of noticeChannels) {
    const people = rows.filter((person) => channels.has(channel) && isNotified(person, kind, channel, askedBy));
    if (people.length > 0) await addDeliveries(transaction, people, channel, { organizationId, kind, sessionId, data });
  }
}

/** A delivery for each of these people, and for each of their browsers. @returns how many */
async function addDeliveries(
  queryable: Queryable,
  people: readonly { readonly userId: string }[],
  channel: NoticeChannel,
  {
    organizationId,
    kind,
    sessionId,
    data,
  }: Pick<NoticeRow, "organizationId" | "sessionId" | "data"> & { kind: string },
): Promise<number> {
  const from =
    channel === "push"
      ? "push_subscription target where target.user_id = any($2::uuid[])"
      : "user_account target where target.id = any($2::uuid[]) and target.email is not null";
  const [user, subscription] = channel === "push" ? ["target.user_id", "target.id"] : ["target.id", "null::uuid"];
  const { rowCount } = await queryable.query(
    `insert into notice_delivery (organization_id, user_id, channel, subscription_id, kind, session_id, data)
     select $1, ${user}, $3, ${subscription}, $4, $5, $6 from ${from}`,
    [organizationId, people.map(({ userId }) => userId), channel, kind, sessionId, JSON.stringify(data)],
  );
  return rowCount ?? 0;
}

/** Writes a delivery to each channel of a person, to try them. @returns how many */
export async function addTestDeliveries(
  database: Database,
  { organizationId, userId }: NotifiedPerson,
  channels: ReadonlySet<NoticeChannel>,
): Promise<number> {
  let count = 0;
  for (const channel of channels) {
    const test = { organizationId, kind: "test", sessionId: null, data: {} };
    count += await addDeliveries(database.pool, [{ userId }], channel, test);
  }
  return count;
}

/** A delivery that a worker has claimed to send it. */
export interface ClaimedNotice {
  readonly id: string;
  readonly kind: NoticeKind | "test";
  readonly channel: NoticeChannel;
  readonly data: NoticeFacts;
  /** Title of the session that it is about; null: none. */
  readonly sessionTitle: string | null;
  /** Number of attempts, this one included; the fence of its result. */
  readonly attempts: number;
  readonly createdAt: Date;
  readonly userId: string;
  readonly name: string;
  readonly email: string | null;
  /** The browser that it is for; null: it is a mail. */
  readonly subscription: (Sealed & { readonly id: string }) | null;
}

/**
 * Claims due deliveries of one channel for `leaseMs` milliseconds, after which they are due again for any worker. What is for a user who was disabled
 * since is left.
 */
export async function claimNotices(
  database: Database,
  channel: NoticeChannel,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
): Promise<ClaimedNotice[]> {
  const { rows } = await database.pool.query<
    Omit<ClaimedNotice, "subscription"> & { subscriptionId: string | null; sealed: Buffer; masterKey: string }
  >({
    name: "claim_notices",
    text: `with due as (
             select delivery.id from notice_delivery delivery join user_account on user_account.id = user_id
             where status = 'pending' and channel = $3 and next_attempt_at <= now() and disabled_at is null
             order by next_attempt_at limit $1 for update of delivery skip locked),
           claimed as (
             update notice_delivery set attempts = attempts + 1, next_attempt_at = now() + $2 * interval '1 millisecond'
             where id in (select id from due) returning *)
           select claimed.id, kind, channel, claimed.data, session.title as "sessionTitle", attempts, claimed.created_at as "createdAt",
             claimed.user_id as "userId", person.name, person.email, subscription.id as "subscriptionId", subscription.sealed,
             subscription.master_key as "masterKey"
           from claimed join user_account person on person.id = claimed.user_id
           left join session on session.id = session_id
           left join push_subscription subscription on subscription.id = subscription_id`,
    values: [limit, leaseMs, channel],
  });
  return rows.map(({ subscriptionId, sealed, masterKey, ...rest }) => ({
    ...rest,
    subscription: subscriptionId === null ? null : { id: subscriptionId, sealed, masterKey },
  }));
}

/** Records the outcome of an attempt; a later claim by another worker is not changed. */
export async function finishNotice(
  database: Database,
  { id, attempts, subscription }: Pick<ClaimedNotice, "id" | "attempts" | "subscription">,
  outcome: TellingOutcome,
): Promise<void> {
  const { rowCount } = await database.pool.query(
    `update notice_delivery set status = $3, problem = $4, updated_at = now(),
       next_attempt_at = now() + $5 * interval '1 millisecond'
     where id = $1 and attempts = $2 and status = 'pending'`,
    [id, attempts, ...outcomeColumns(outcome)],
  );
  if (rowCount !== 1 || outcome.status !== "sent" || subscription === null) return;
  await database.pool.query("update push_subscription set sent_at = now() where id = $1", [subscription.id]);
}

/**
 * Deletes deliveries that were sent or given up more than `days` days ago.
 * @returns how many
 */
export function pruneNotices(database: Database, days: number, signal: AbortSignal): Promise<number> {
  const condition = "status <> 'pending' and updated_at < now() - $1 * interval '1 day'";
  return removeRows(database, "notice_delivery", { condition, values: [days] }, signal);
}

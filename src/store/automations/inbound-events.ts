import type { Database } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Decision } from "../../domain/automations/ledger.ts";
import type { Received } from "../../domain/automations/trigger.ts";
import { storableJson } from "../../domain/fields/text.ts";
import { fireableColumns, type FireableTrigger } from "./triggers.ts";

/** An event that several triggers may answer, as it came. */
export interface ReceivedEvent {
  /** Id of its ledger entry: the same event has the same id, however often it is written. */
  readonly id: string;
  readonly organizationId: string;
  /** The connection that delivered it; null: Offstage itself. */
  readonly connectionId: string | null;
  /** Within this, `keys` tell a second delivery of the same. */
  readonly scope: string;
  readonly keys: readonly string[];
  /** Null: it tells of nothing that triggers can listen to. */
  readonly name: string | null;
  readonly deliveryId: string | null;
  readonly contentKey: string | null;
  readonly subject: string | null;
  readonly payload: EventContext;
  readonly traceParent: string | null;
  /** The entry that it repeats. */
  readonly originalId?: string;
  /** False: another entry of the same delivery keeps it, if nothing listens to this one. Default: true. */
  readonly keepsPayload?: boolean;
}

/** Takes in an event: it waits for a worker to decide, unless it was delivered before or nothing listens to it. */
export async function receiveEvent(database: Database, received: ReceivedEvent): Promise<Received> {
  const { rows } = await database.pool.query<{ outcome: Received["outcome"]; entry: string }>({
    name: "receive_event",
    text: "select outcome, entry from receive_event($1::jsonb)",
    values: [storableJson(received)],
  });
  const { outcome = "filtered", entry = received.id } = rows[0] ?? {};
  if (outcome === "accepted") database.notify("offstage_work", "event");
  return { outcome, ledgerId: entry };
}

/** An event that a worker decides. `attempt` is the fence: a write under an older attempt changes nothing. */
export interface ClaimedEvent {
  readonly id: string;
  readonly organizationId: string;
  readonly connectionId: string | null;
  readonly name: string;
  readonly subject: string | null;
  readonly payload: EventContext;
  readonly attempt: number;
  readonly traceParent: string | null;
  /** The automation whose session it tells of, if it is an event of Offstage itself. */
  readonly causedBy: string | null;
}

/** An event is given up after this many attempts that did not end. */
const attemptLimit = 10;

/**
 * Claims the oldest event that nobody decides; null if there is none. One that its workers broke off too often is dead-lettered.
 * @param leaseMs after which another worker may claim it
 */
export async function claimEvent(
  database: Database,
  { worker, leaseMs }: { readonly worker: string; readonly leaseMs: number },
): Promise<ClaimedEvent | null> {
  const { rows } = await database.pool.query<ClaimedEvent & { readonly isDead: boolean }>({
    name: "claim_event",
    text: `update arrival set worker = $1, lease_until = now() + $2 * interval '1 millisecond', attempt = attempt + 1,
             outcome = case when attempt >= $3 then 'dead-lettered' end,
             reason = case when attempt >= $3 then 'its worker broke off ' || attempt || ' times: see the server''s log' end,
             updated_at = now()
           where id = (
             select id from arrival where outcome is null and (lease_until is null or lease_until < now())
             order by created_at for update skip locked limit 1)
           returning id, organization_id as "organizationId", connection_id as "connectionId", name, subject, payload, attempt,
             trace_parent as "traceParent", outcome is not null as "isDead",
             case when connection_id is null then (payload -> 'session' ->> 'automationId')::uuid end as "causedBy"`,
    values: [worker, leaseMs, attemptLimit],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { isDead, ...claimed } = row;
  return isDead ? claimEvent(database, { worker, leaseMs }) : claimed;
}

/** The enabled triggers that listen to an event by name and connection, in a fixed order, from the one after `after`. */
export async function listeningTriggers(
  database: Database,
  {
    organizationId,
    connectionId,
    name,
    causedBy,
  }: Pick<ClaimedEvent, "organizationId" | "connectionId" | "name" | "causedBy">,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<FireableTrigger[]> {
  const { rows } = await database.pool.query<FireableTrigger>({
    name: "listening_triggers",
    text: `select ${fireableColumns} from trigger
           join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.organization_id = $1 and trigger.type = 'forge' and trigger.enabled and trigger.deleted_at is null
             and trigger.settings -> 'events' ? $2
             and (trigger.settings ->> 'connectionId' is null or trigger.settings ->> 'connectionId' = $3)
             -- What a session did never starts its own automation again.
             and trigger.automation_id is distinct from $6
             and ($4::uuid is null or trigger.id > $4)
           order by trigger.id limit $5`,
    values: [organizationId, name, connectionId, after, limit, causedBy],
  });
  return rows;
}

/** Decisions of an event that are kept; beyond, its reason has their number alone. */
const mostDecisions = 100;

/** Writes what the listening triggers made of an event. A claim that was lost changes nothing. */
export async function decideEvent(
  database: Database,
  { id, attempt }: ClaimedEvent,
  decisions: readonly Decision[],
): Promise<void> {
  const fired = decisions.filter(({ outcome }) => outcome === "fired").length;
  const kept = decisions
    .toSorted((one, other) => Number(one.outcome !== "fired") - Number(other.outcome !== "fired"))
    .slice(0, mostDecisions);
  const reason = fired > 0 ? null : `none of the ${decisions.length} triggers that listen to it started a run`;
  await database.pool.query(
    `update arrival set outcome = $3, reason = $4, decisions = $5, lease_until = null, updated_at = now()
     where id = $1 and attempt = $2 and outcome is null`,
    [id, attempt, fired > 0 ? "fired" : "filtered", reason, storableJson(kept)],
  );
}

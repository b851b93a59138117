import { randomBytes, randomUUID } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import type { Expression } from "../../domain/automations/condition.ts";
import { nextTick } from "../../domain/automations/schedule.ts";
import { oldSecretMs, type Trigger, type TriggerInput, type TriggerType } from "../../domain/automations/trigger.ts";
import { ConflictError, InvalidInputError, NotFoundError } from "../../domain/errors/errors.ts";
import { isoTime } from "../cursor.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Vault } from "../secrets/vault.ts";

/** A trigger as the database has it: without the address, which the API adds, and without its secret. */
export type TriggerRecord = Trigger extends infer Each
  ? Each extends Trigger
    ? Omit<Each, "url" | "secret">
    : never
  : never;

/** SQL for a trigger as JSON, of the table's alias `trigger`. */
const asJson = `trigger.settings || jsonb_build_object('id', trigger.id, 'type', trigger.type, 'enabled', trigger.enabled,
  'condition', trigger.condition, 'concurrency', trigger.concurrency, 'debounceSeconds', trigger.debounce_seconds,
  'maxPerHour', trigger.max_per_hour, 'problem', trigger.problem)
  || case when trigger.type = 'schedule' then jsonb_build_object('nextAt', ${isoTime("trigger.next_at")}) else '{}' end`;

/** SQL for the triggers of an automation as JSON, that of the API first. It has a row only if somebody has set one. */
export const triggersOfAutomation = `coalesce((
    select jsonb_agg(${asJson} order by trigger.type <> 'api', trigger.position) from trigger
    where trigger.automation_id = automation.id and trigger.deleted_at is null), '[]')`;

/** Adds the trigger of the API, which every automation has, if it has no row. */
export function withApiTrigger(automationId: string, triggers: readonly TriggerRecord[]): TriggerRecord[] {
  if (triggers.some(({ type }) => type === "api")) return [...triggers];
  return [
    {
      id: automationId,
      type: "api",
      enabled: true,
      condition: "",
      concurrency: null,
      debounceSeconds: null,
      maxPerHour: null,
      problem: null,
    },
    ...triggers,
  ];
}

/** What a trigger's deliveries are signed with, as it is sealed. */
interface SealedSecrets {
  readonly secret: string;
  /** The one before, and until when it counts, in ms since the epoch. */
  readonly previous?: { readonly secret: string; readonly until: number };
}

/** Secrets that were made, by the id of their trigger: they are shown once. */
export type NewSecrets = ReadonlyMap<string, string>;

interface Owner {
  readonly organizationId: string;
  readonly automationId: string;
}

interface Known {
  readonly id: string;
  readonly type: TriggerType;
  readonly hasSecret: boolean;
}

/**
 * Brings an automation's triggers to a list: those with an id are changed, those without are added, those that are missing are
 * removed. Call it in a transaction of `sealing`.
 * @param now ms since the epoch, from which schedules tick
 * @throws InvalidInputError that names the place in the list
 */
export async function saveTriggers(
  transaction: Queryable,
  vault: Vault,
  owner: Owner,
  list: readonly TriggerInput[],
  now: number,
): Promise<NewSecrets> {
  const { rows } = await transaction.query<Known>(
    `select id, type, sealed is not null as "hasSecret" from trigger
     where automation_id = $1 and deleted_at is null for update`,
    [owner.automationId],
  );
  const known = new Map(rows.map((row) => [row.id, row]));
  const secrets = new Map<string, string>();
  const kept: string[] = [];
  for (const [position, input] of list.entries()) {
    const before = knownOf(known, owner, input, position);
    const id = input.type === "api" ? owner.automationId : (before?.id ?? randomUUID());
    kept.push(id);
    const secret = secretFor(input, before);
    const sealed = secret === null ? null : await vault.seal(id, JSON.stringify({ secret } satisfies SealedSecrets));
    if (secret !== null && (input.type !== "webhook" && input.type !== "source" ? false : input.secret === undefined)) {
      secrets.set(id, secret);
    }
    await upsert(transaction, owner, { id, position, input, sealed, now });
  }
  await transaction.query(
    "update trigger set deleted_at = now(), sealed = null, master_key = null where automation_id = $1 and deleted_at is null and not id = any($2)",
    [owner.automationId, kept],
  );
  return secrets;
}

function knownOf(
  known: ReadonlyMap<string, Known>,
  { automationId }: Owner,
  input: TriggerInput,
  position: number,
): Known | undefined {
  if (input.type === "api") {
    if (input.id === undefined || input.id === automationId) return known.get(automationId);
    throw new InvalidInputError(`triggers[${position}].id: the trigger of type api has the automation's id`);
  }
  if (input.id === undefined) return undefined;
  const before = known.get(input.id);
  if (before === undefined) {
    throw new InvalidInputError(
      `triggers[${position}].id: the automation has no such trigger: omit the id for a new one`,
    );
  }
  if (before.type !== input.type) {
    throw new InvalidInputError(
      `triggers[${position}].type: it is of type ${before.type}: omit the id for a new one of type ${input.type}`,
    );
  }
  return before;
}

/** The secret to seal; null: it keeps the one that it has, or needs none. */
function secretFor(input: TriggerInput, before: Known | undefined): string | null {
  if (input.type !== "webhook" && input.type !== "source") return null;
  if (input.secret !== undefined) return input.secret;
  if (before?.hasSecret === true || (input.type === "webhook" && input.verify.type === "none")) return null;
  return newSecret(input);
}

/** 32 random bytes; Standard Webhooks has a form of its own (https://www.standardwebhooks.com). */
function newSecret(trigger: Pick<TriggerInput, "type"> & { readonly verify?: { readonly type: string } }): string {
  return trigger.verify?.type === "standardWebhooks"
    ? `whsec_${randomBytes(32).toString("base64")}`
    : randomBytes(32).toString("hex");
}

async function upsert(
  transaction: Queryable,
  owner: Owner,
  {
    id,
    position,
    input,
    sealed,
    now,
  }: {
    readonly id: string;
    readonly position: number;
    readonly input: TriggerInput;
    readonly sealed: { readonly sealed: Buffer; readonly masterKey: string } | null;
    readonly now: number;
  },
): Promise<void> {
  const nextAt = input.type === "schedule" ? nextTick(input, now) : null;
  await transaction.query(
    `insert into trigger (id, organization_id, automation_id, type, position, enabled, condition, concurrency,
       debounce_seconds, max_per_hour, settings, sealed, master_key, next_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
     on conflict (id) do update set position = excluded.position, enabled = excluded.enabled, condition = excluded.condition,
       concurrency = excluded.concurrency, debounce_seconds = excluded.debounce_seconds,
       max_per_hour = excluded.max_per_hour, settings = excluded.settings, deleted_at = null,
       problem = case when trigger.condition = excluded.condition and trigger.concurrency is not distinct from excluded.concurrency
         then trigger.problem end,
       sealed = coalesce(excluded.sealed, trigger.sealed), master_key = coalesce(excluded.master_key, trigger.master_key),
       -- What is changed ticks from now on; a tick that is due already stays so if nothing of the schedule changed.
       next_at = case when trigger.settings = excluded.settings and trigger.enabled = excluded.enabled
         then trigger.next_at else excluded.next_at end,
       updated_at = now()`,
    [
      id,
      owner.organizationId,
      owner.automationId,
      input.type,
      position,
      input.enabled,
      input.condition,
      input.concurrency === null ? null : JSON.stringify(input.concurrency),
      input.debounceSeconds,
      input.maxPerHour,
      JSON.stringify(settingsOf(input)),
      sealed?.sealed ?? null,
      sealed?.masterKey ?? null,
      nextAt === null ? null : new Date(nextAt),
    ],
  );
}

function settingsOf(input: TriggerInput): object {
  switch (input.type) {
    case "api":
      return {};
    case "schedule":
      return { cron: input.cron, timeZone: input.timeZone, missed: input.missed };
    case "webhook":
      return { verify: input.verify };
    case "forge":
      return { connectionId: input.connectionId, events: input.events, repositories: input.repositories };
    case "source":
      return { source: input.source, events: input.events };
  }
}

/**
 * Replaces what a trigger's deliveries are signed with; the one before counts for another day. A webhook without a signature gets
 * another id, and so another address, at once.
 * @param now ms since the epoch
 * @returns the trigger's id, and the new secret if it has one
 * @throws NotFoundError
 * @throws ConflictError if it takes no deliveries
 */
export function rotateTrigger(
  database: Database,
  vault: Vault,
  { organizationId, automationId }: Owner,
  triggerId: string,
  now: number,
): Promise<{ readonly id: string; readonly secret: string | null }> {
  return sealing(database, async (transaction) => {
    const { rows } = await transaction.query<{
      type: TriggerType;
      settings: { verify?: { type: string } };
      sealed: Buffer | null;
      masterKey: string | null;
    }>(
      `select type, settings, sealed, master_key as "masterKey" from trigger
       where id = $1 and automation_id = $2 and organization_id = $3 and deleted_at is null for update`,
      [triggerId, automationId, organizationId],
    );
    const [row] = rows;
    if (row === undefined) throw new NotFoundError(`trigger ${triggerId} was not found`);
    const { type, settings, sealed, masterKey } = row;
    if (type !== "webhook" && type !== "source") {
      throw new ConflictError(`trigger ${triggerId} is of type ${type}, which has neither a secret nor an address`);
    }
    if (settings.verify?.type === "none") {
      const id = randomUUID();
      // Without a secret: what is sealed is bound to the id, and nothing asks for it.
      await transaction.query(
        "update trigger set id = $2, sealed = null, master_key = null, updated_at = now() where id = $1",
        [triggerId, id],
      );
      return { id, secret: null };
    }
    const secret = newSecret({ type, ...(settings.verify !== undefined && { verify: settings.verify }) });
    const old =
      sealed === null || masterKey === null
        ? null
        : (JSON.parse(await vault.open(triggerId, { sealed, masterKey })) as SealedSecrets);
    const secrets: SealedSecrets = {
      secret,
      ...(old !== null && { previous: { secret: old.secret, until: now + oldSecretMs } }),
    };
    const fresh = await vault.seal(triggerId, JSON.stringify(secrets));
    await transaction.query("update trigger set sealed = $2, master_key = $3, updated_at = now() where id = $1", [
      triggerId,
      fresh.sealed,
      fresh.masterKey,
    ]);
    return { id: triggerId, secret };
  });
}

/** A trigger with what is needed of its automation to fire it. */
export interface FireableTrigger {
  readonly id: string;
  readonly organizationId: string;
  readonly automationId: string;
  readonly automationName: string;
  /** From 1, the most urgent, to 9. */
  readonly priority: number;
  readonly paused: boolean;
  readonly trigger: TriggerRecord;
  /** Whether the automation names repositories of its own. */
  readonly hasRepositories: boolean;
}

/** What a trigger has to be evaluated with an event. */
export function expressionOf({ id, type, condition, concurrency }: TriggerRecord): Expression {
  return { condition, key: concurrency?.key ?? null, trigger: { id, type } };
}

/** SQL for the columns of a `FireableTrigger`. */
export const fireableColumns = `trigger.id, trigger.organization_id as "organizationId", trigger.automation_id as "automationId",
  automation.name as "automationName", automation.priority, automation.paused, ${asJson} as trigger,
  automation.repository_ids <> '{}' as "hasRepositories"`;

/**
 * The trigger that a delivery came to, with the secrets that count now; null if there is none that takes deliveries.
 * @param now ms since the epoch
 */
export async function findReceivingTrigger(
  database: Database,
  vault: Vault,
  id: string,
  now: number,
): Promise<(FireableTrigger & { readonly secrets: readonly string[] }) | null> {
  const { rows } = await database.pool.query<FireableTrigger & { sealed: Buffer | null; masterKey: string | null }>({
    name: "find_receiving_trigger",
    text: `select ${fireableColumns}, trigger.sealed, trigger.master_key as "masterKey" from trigger
           join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.id = $1 and trigger.deleted_at is null and trigger.type in ('webhook', 'source')`,
    values: [id],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { sealed, masterKey, ...fireable } = row;
  if (sealed === null || masterKey === null) return { ...fireable, secrets: [] };
  const { secret, previous } = JSON.parse(await vault.open(id, { sealed, masterKey })) as SealedSecrets;
  return {
    ...fireable,
    secrets: [secret, ...(previous !== undefined && previous.until > now ? [previous.secret] : [])],
  };
}

/** Records why a trigger's condition or key could not be evaluated, or that it could again. */
export async function noteTriggerProblem(queryable: Queryable, id: string, problem: string | null): Promise<void> {
  await queryable.query("update trigger set problem = $2 where id = $1 and problem is distinct from $2", [id, problem]);
}

import { randomUUID } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import type { Expression } from "../../domain/automations/condition.ts";
import { nextTick } from "../../domain/automations/schedule.ts";
import {
  givenSecret,
  makesSecret,
  type Trigger,
  type TriggerInput,
  type TriggerType,
} from "../../domain/automations/trigger.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { isoTime } from "../cursor.ts";
import type { Vault } from "../secrets/vault.ts";
import {
  keepsReplyToken,
  newSecret,
  openTriggerSecrets,
  sealChanges,
  type KnownSecrets,
  type TriggerOwner,
} from "./trigger-secrets.ts";

/** A trigger as the database has it: without the address, which the API adds, and without its secret. */
export type TriggerRecord = Stored<Trigger>;
/** Distributes over the types of triggers, so that the union stays discriminated by `type`. */
type Stored<Each extends Trigger> = Each extends unknown ? Omit<Each, "url" | "secret"> : never;

/** SQL for a trigger as JSON, of the table's alias `trigger`. */
const asJson = `case trigger.type when 'forge' then '{"reply": "none", "pushTo": "newBranch"}'::jsonb
    when 'webhook' then '{"deduplicateBy": "idAndContent"}' else '{}' end || trigger.settings || jsonb_build_object('id', trigger.id, 'type', trigger.type, 'enabled', trigger.enabled,
  'condition', trigger.condition, 'concurrency', trigger.concurrency, 'debounceSeconds', trigger.debounce_seconds,
  'maxPerHour', trigger.max_per_hour, 'problem', trigger.problem)
  || case when trigger.type = 'source' and not trigger.settings ? 'hasReplyToken' then '{"hasReplyToken": false}' else '{}'::jsonb end
  || case when trigger.type = 'schedule' then jsonb_build_object('nextAt', ${isoTime("trigger.next_at")}) else '{}' end`;

/** SQL for the triggers of an automation as JSON, that of the API first. It has a row only if it was set. */
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

/** Secrets that were made, by the id of their trigger: they are shown once. */
export type NewSecrets = ReadonlyMap<string, string>;

interface Known extends KnownSecrets {
  readonly id: string;
  readonly type: TriggerType;
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
  owner: TriggerOwner,
  list: readonly TriggerInput[],
  now: number,
): Promise<NewSecrets> {
  const { rows } = await transaction.query<Known>(
    `select id, type, sealed, master_key as "masterKey", coalesce((settings ->> 'hasReplyToken')::boolean, false) as "hasReplyToken"
     from trigger
     where automation_id = $1 and deleted_at is null for update`,
    [owner.automationId],
  );
  const known = new Map(rows.map((row) => [row.id, row]));
  const secrets = new Map<string, string>();
  const kept: SavedTrigger[] = [];
  for (const [position, input] of list.entries()) {
    const before = knownOf(known, owner, input, position);
    const id = input.type === "api" ? owner.automationId : (before?.id ?? randomUUID());
    const made = makesSecret(input) && (before?.sealed ?? null) === null ? newSecret(input) : null;
    if (made !== null) secrets.set(id, made);
    const sealed = await sealChanges(vault, id, { input, before, secret: made ?? givenSecret(input) });
    const hasReplyToken = keepsReplyToken(input, before);
    kept.push(savedOf(id, { position, input, sealed, hasReplyToken, now }));
  }
  await upsert(transaction, owner, kept);
  await transaction.query(
    "update trigger set deleted_at = now(), sealed = null, master_key = null where automation_id = $1 and deleted_at is null and not id = any($2)",
    [owner.automationId, kept.map(({ id }) => id)],
  );
  return secrets;
}

function knownOf(
  known: ReadonlyMap<string, Known>,
  { automationId }: TriggerOwner,
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

/** A trigger as `upsert` writes it. */
interface SavedTrigger extends Pick<
  TriggerInput,
  "type" | "enabled" | "condition" | "concurrency" | "debounceSeconds" | "maxPerHour"
> {
  readonly id: string;
  readonly position: number;
  readonly settings: object;
  /** In base64. */
  readonly sealed: string | null;
  readonly masterKey: string | null;
  readonly nextAt: string | null;
}

function savedOf(
  id: string,
  {
    position,
    input,
    sealed,
    hasReplyToken,
    now,
  }: {
    readonly position: number;
    readonly input: TriggerInput;
    readonly sealed: { readonly sealed: Buffer; readonly masterKey: string } | null;
    readonly hasReplyToken: boolean;
    readonly now: number;
  },
): SavedTrigger {
  const { type, enabled, condition, concurrency, debounceSeconds, maxPerHour } = input;
  const nextAt = input.type === "schedule" ? nextTick(input, now) : null;
  return {
    id,
    position,
    type,
    enabled,
    condition,
    concurrency,
    debounceSeconds,
    maxPerHour,
    settings: { ...settingsOf(input), ...(input.type === "source" && { hasReplyToken }) },
    sealed: sealed?.sealed.toString("base64") ?? null,
    masterKey: sealed?.masterKey ?? null,
    nextAt: nextAt === null ? null : new Date(nextAt).toISOString(),
  };
}

/** In one statement, however many there are. */
async function upsert(transaction: Queryable, owner: TriggerOwner, triggers: readonly SavedTrigger[]): Promise<void> {
  await transaction.query(
    `insert into trigger (id, organization_id, automation_id, type, position, enabled, condition, concurrency,
       debounce_seconds, max_per_hour, settings, sealed, master_key, next_at)
     select id, $1, $2, type, position, enabled, condition, nullif(concurrency, 'null'), "debounceSeconds", "maxPerHour", settings,
       decode(sealed, 'base64'), "masterKey", "nextAt"
     from jsonb_to_recordset($3::jsonb) as given (id uuid, type text, position integer, enabled boolean, condition text,
       concurrency jsonb, "debounceSeconds" integer, "maxPerHour" integer, settings jsonb, sealed text, "masterKey" text,
       "nextAt" timestamptz)
     on conflict (id) do update set position = excluded.position, enabled = excluded.enabled, condition = excluded.condition,
       concurrency = excluded.concurrency, debounce_seconds = excluded.debounce_seconds,
       max_per_hour = excluded.max_per_hour, settings = excluded.settings, deleted_at = null,
       problem = case when trigger.condition = excluded.condition and trigger.concurrency is not distinct from excluded.concurrency
         then trigger.problem end,
       sealed = coalesce(excluded.sealed, trigger.sealed), master_key = coalesce(excluded.master_key, trigger.master_key),
       -- What is changed ticks from now on; a tick that is due already stays so if nothing of the schedule changed.
       next_at = case when trigger.settings = excluded.settings and trigger.enabled = excluded.enabled
         then trigger.next_at else excluded.next_at end,
       unfired_at = case when trigger.settings = excluded.settings and trigger.enabled = excluded.enabled then trigger.unfired_at end,
       updated_at = now()`,
    [owner.organizationId, owner.automationId, JSON.stringify(triggers)],
  );
}

function settingsOf(input: TriggerInput): object {
  switch (input.type) {
    case "api":
      return {};
    case "schedule":
      return { cron: input.cron, timeZone: input.timeZone, missed: input.missed };
    case "webhook":
      return { verify: input.verify, deduplicateBy: input.deduplicateBy };
    case "forge": {
      const { connectionId, events, repositories, reply, pushTo } = input;
      return { connectionId, events, repositories, reply, pushTo };
    }
    case "source":
      return { source: input.source, events: input.events };
  }
}

/** A trigger with what is needed of its automation to fire it. */
export interface FireableTrigger {
  readonly id: string;
  readonly organizationId: string;
  readonly automationId: string;
  /** From 1, the most urgent, to 9. */
  readonly priority: number;
  readonly paused: boolean;
  readonly trigger: TriggerRecord;
  /** Whether the automation names repositories. */
  readonly hasRepositories: boolean;
  /**
   * The repository whose file the automation is kept in: it gets events of that one only. Null or omitted: it is kept
   * in none.
   */
  readonly fileRepositoryId?: string | null;
}

/** A trigger's expressions to evaluate with an event. */
export function expressionOf({ id, type, condition, concurrency }: TriggerRecord): Expression {
  return { condition, key: concurrency?.key ?? null, trigger: { id, type } };
}

/** SQL for the columns of a `FireableTrigger`. */
export const fireableColumns = `trigger.id, trigger.organization_id as "organizationId", trigger.automation_id as "automationId",
  automation.priority, automation.paused, ${asJson} as trigger,
  automation.repository_ids <> '{}' as "hasRepositories",
  (select repository_id from automation_file where automation_id = automation.id) as "fileRepositoryId"`;

/** A trigger that takes deliveries. */
export interface ReceivingTrigger {
  readonly fireable: FireableTrigger;
  /** Another after each change of what decides about its deliveries (`receiving_version`). */
  readonly version: string;
  /** The secrets with which deliveries may be signed. @param now ms since the epoch */
  readonly secretsAt: (now: number) => readonly string[];
}

/** The trigger that a delivery came to; null if there is none that takes deliveries. */
export async function findReceivingTrigger(
  database: Database,
  vault: Vault,
  id: string,
): Promise<ReceivingTrigger | null> {
  const { rows } = await database.pool.query<
    FireableTrigger & { sealed: Buffer | null; masterKey: string | null; version: string }
  >({
    name: "find_receiving_trigger",
    text: `select ${fireableColumns}, trigger.sealed, trigger.master_key as "masterKey", receiving_version(trigger.id) as version
           from trigger join automation on automation.id = trigger.automation_id and automation.deleted_at is null
           where trigger.id = $1 and trigger.deleted_at is null and trigger.type in ('webhook', 'source')`,
    values: [id],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { sealed, masterKey, version, ...fireable } = row;
  if (sealed === null || masterKey === null) return { fireable, version, secretsAt: () => [] };
  return { fireable, version, secretsAt: await openTriggerSecrets(vault, id, { sealed, masterKey }) };
}

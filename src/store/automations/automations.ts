import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import type { Automation } from "../../domain/automations/automation.ts";
import { makesSecret, type TriggerInput } from "../../domain/automations/trigger.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { isoTime, listRows } from "../cursor.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Vault } from "../secrets/vault.ts";
import { runSettingsColumns, saveRunSettings, type RunSettings } from "./run-settings.ts";
import { resumeExpectations } from "./silences.ts";
import { resumeSchedules } from "./ticks.ts";
import { saveTriggers, triggersOfAutomation, withApiTrigger, type NewSecrets, type TriggerRecord } from "./triggers.ts";
import { one } from "../one-row.ts";

/** An automation as the database has it, without the addresses of its triggers, which the API adds. */
export type AutomationRecord = Omit<Automation, "triggers"> & { readonly triggers: readonly TriggerRecord[] };

/**
 * The fields of an automation that a client may set. `agent`, `targetBranch` and `budgetUsd` (US dollars for each of
 * its sessions) are null if they are not set.
 */
export interface AutomationInput extends RunSettings {
  readonly name: string;
  readonly macro: string;
  readonly instructions: string;
  /** Liquid template of the sessions' titles; null: there is none. */
  readonly title: string | null;
  /** Script that decides in the sandbox whether a run goes on; null: there is none. */
  readonly gate?: string | null | undefined;
  readonly agent: string | null;
  readonly repositoryIds: readonly string[];
  readonly targetBranch: string | null;
  /** From 1, the most urgent, to 9. */
  readonly priority: number;
  readonly paused: boolean;
  readonly budgetUsd: number | null;
}

/** An automation that is to be created. */
interface CreatedAutomation extends AutomationInput {
  readonly id: string;
  /** The user who creates it; omitted or null: no user. */
  readonly createdBy?: string | null;
}

const columns = `
  automation.id, automation.organization_id as "organizationId", automation.name, automation.macro,
  automation.instructions, automation.title, automation.gate, automation.agent, automation.target_branch as "targetBranch", automation.priority,
  automation.paused, automation.budget_usd::float8 as "budgetUsd",
  ${runSettingsColumns},
  ${isoTime("automation.created_at")} as "createdAt", ${isoTime("automation.updated_at")} as "updatedAt",
  coalesce((
    select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url)
      order by array_position(automation.repository_ids, repository.id))
    from repository where repository.id = any(automation.repository_ids) and repository.deleted_at is null
  ), '[]') as repositories, (
    select jsonb_build_object('repositoryId', repository_id, 'path', path, 'url', url, 'problem', problem)
    from automation_file where automation_id = automation.id
  ) as file, ${triggersOfAutomation} as triggers`;

const read = (row: AutomationRecord): AutomationRecord => ({ ...row, triggers: withApiTrigger(row.id, row.triggers) });

/** The changes of an automation's triggers. */
export interface TriggerChanges {
  readonly vault: Vault;
  readonly list: readonly TriggerInput[];
  /** In ms since the epoch: schedules tick from then on. */
  readonly now: number;
}

/** An automation, with the secrets that were made for its triggers, which are shown once. */
export interface SavedAutomation {
  readonly automation: AutomationRecord;
  readonly secrets: NewSecrets;
}

function macroTaken(error: unknown, macro: string): never {
  if (isUniqueViolation(error)) {
    throw new ConflictError(`macro: ${macro} is taken by another automation; choose another`);
  }
  throw error;
}

/**
 * Creates an automation. Idempotent by id: a second call answers the automation that the first one created. If secrets are made for its
 * triggers, nobody has seen the first ones: it has the triggers anew, with others.
 * @throws ConflictError if another automation has the macro
 * @throws InvalidInputError if a trigger can't be saved
 */
export async function createAutomation(
  database: Database,
  organizationId: string,
  input: CreatedAutomation,
  triggers: TriggerChanges | null = null,
): Promise<SavedAutomation> {
  const saved = await sealing(database, async (transaction) => {
    let secrets = await createAutomationIn(transaction, organizationId, input, triggers);
    if (secrets === null && triggers?.list.some(makesSecret) === true)
      secrets = await save(transaction, { organizationId, automationId: input.id }, triggers);
    return { automation: await find(transaction, organizationId, input.id), secrets: secrets ?? new Map() };
  });
  if (saved.automation === null) throw new NotFoundError(`automation ${input.id} was not found`);
  return { automation: saved.automation, secrets: saved.secrets };
}

/** `createAutomation` within a transaction of `sealing`. @returns the secrets that were made; null: it was there already */
export async function createAutomationIn(
  transaction: Queryable,
  organizationId: string,
  input: CreatedAutomation,
  triggers: TriggerChanges | null,
): Promise<NewSecrets | null> {
  if (!(await insert(transaction, organizationId, input))) return null;
  await saveRunSettings(transaction, input.id, input);
  return save(transaction, { organizationId, automationId: input.id }, triggers);
}

async function save(
  transaction: Queryable,
  owner: { readonly organizationId: string; readonly automationId: string },
  triggers: TriggerChanges | null,
): Promise<NewSecrets> {
  if (triggers === null) return new Map();
  return saveTriggers(transaction, triggers.vault, owner, triggers.list, triggers.now);
}

/** @returns false if it exists already */
async function insert(transaction: Queryable, organizationId: string, input: CreatedAutomation): Promise<boolean> {
  const { rowCount } = await transaction
    .query(
      `insert into automation (id, organization_id, name, macro, instructions, agent, repository_ids, target_branch,
         priority, paused, budget_usd, title, gate, created_by)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict (id) do nothing`,
      [
        input.id,
        organizationId,
        input.name,
        input.macro,
        input.instructions,
        input.agent,
        input.repositoryIds,
        input.targetBranch,
        input.priority,
        input.paused,
        input.budgetUsd,
        input.title,
        input.gate ?? null,
        input.createdBy ?? null,
      ],
    )
    .catch((error: unknown) => macroTaken(error, input.macro));
  return rowCount === 1;
}

/**
 * Lists an organization's automations, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listAutomations(
  database: Database,
  organizationId: string,
  query: PageQuery,
): Promise<Page<AutomationRecord>> {
  const listed = { table: "automation", columns, condition: "deleted_at is null" };
  const { items, nextCursor } = await listRows<AutomationRecord>(database, organizationId, query, listed);
  return { items: items.map(read), nextCursor };
}

/** Finds an automation by UUID or by macro (a macro never looks like a UUID); null if there is none. */
export function getAutomation(
  database: Database,
  organizationId: string,
  keyOrId: string,
): Promise<AutomationRecord | null> {
  return find(database.pool, organizationId, keyOrId);
}

async function find(queryable: Queryable, organizationId: string, keyOrId: string): Promise<AutomationRecord | null> {
  const { rows } = await queryable.query<AutomationRecord>({
    name: "get_automation",
    text: `select ${columns} from automation
           where organization_id = $1 and deleted_at is null and (macro = $2 or id = $3)`,
    values: [organizationId, keyOrId, isUuid(keyOrId) ? keyOrId : null],
  });
  return rows[0] === undefined ? null : read(rows[0]);
}

/**
 * Changes the given fields only.
 * @param triggers null: they stay as they are
 * @throws NotFoundError
 * @throws ConflictError if another automation has the macro
 * @throws InvalidInputError if a trigger can't be saved
 */
export async function updateAutomation(
  database: Database,
  organizationId: string,
  id: string,
  changes: { readonly [Field in keyof AutomationInput]?: AutomationInput[Field] | undefined },
  triggers: TriggerChanges | null = null,
): Promise<SavedAutomation> {
  const saved = await sealing(database, async (transaction) => {
    const secrets = await updateAutomationIn(transaction, organizationId, id, changes, triggers);
    return { automation: await find(transaction, organizationId, id), secrets };
  });
  if (saved.automation === null) throw new NotFoundError(`automation ${id} was not found`);
  return { automation: saved.automation, secrets: saved.secrets };
}

/** `updateAutomation` within a transaction of `sealing`. @returns the secrets that were made */
export async function updateAutomationIn(
  transaction: Queryable,
  organizationId: string,
  id: string,
  changes: { readonly [Field in keyof AutomationInput]?: AutomationInput[Field] | undefined },
  triggers: TriggerChanges | null,
): Promise<NewSecrets> {
  const wasPaused = changes.paused === false && (await isPaused(transaction, id));
  await change(transaction, organizationId, id, changes);
  await saveRunSettings(transaction, id, changes);
  if (wasPaused) {
    await resumeCounting(transaction, id);
    await resumeSchedules(transaction, id);
    await resumeExpectations(transaction, id);
  }
  return save(transaction, { organizationId, automationId: id }, triggers);
}

/** A person's resuming forgives what failed. */
async function resumeCounting(transaction: Queryable, id: string): Promise<void> {
  await transaction.query("update automation set failed_in_a_row = 0, paused_reason = null where id = $1", [id]);
}

async function isPaused(transaction: Queryable, id: string): Promise<boolean> {
  const { rows } = await transaction.query<{ paused: boolean }>(
    "select paused from automation where id = $1 for no key update",
    [id],
  );
  return rows[0]?.paused === true;
}

async function change(
  transaction: Queryable,
  organizationId: string,
  id: string,
  changes: { readonly [Field in keyof AutomationInput]?: AutomationInput[Field] | undefined },
): Promise<void> {
  const { rowCount } = await transaction
    .query(
      `update automation set name = coalesce($3, name), macro = coalesce($4, macro),
         instructions = coalesce($5, instructions), agent = case when $6 then $7 else agent end,
         repository_ids = coalesce($8, repository_ids),
         target_branch = case when $9 then $10 else target_branch end,
         priority = coalesce($11, priority),
         -- Nodes of the version before resume it without a word: what a person pauses then is not paused for that reason.
         paused_reason = case when $12 and not paused then null else paused_reason end, paused = coalesce($12, paused),
         budget_usd = case when $13 then $14 else budget_usd end,
         title = case when $15 then $16 else title end, gate = case when $17 then $18 else gate end, updated_at = now()
       where id = $1 and organization_id = $2 and deleted_at is null`,
      [
        id,
        organizationId,
        changes.name,
        changes.macro,
        changes.instructions,
        changes.agent !== undefined,
        changes.agent,
        changes.repositoryIds,
        changes.targetBranch !== undefined,
        changes.targetBranch,
        changes.priority,
        changes.paused,
        changes.budgetUsd !== undefined,
        changes.budgetUsd,
        changes.title !== undefined,
        changes.title,
        changes.gate !== undefined,
        changes.gate,
      ],
    )
    .catch((error: unknown) => macroTaken(error, changes.macro ?? ""));
  if (rowCount === 0) throw new NotFoundError(`automation ${id} was not found`);
}

/**
 * Deletes an automation; its jobs stay listed.
 * @throws NotFoundError
 */
export async function deleteAutomation(
  database: Database,
  organizationId: string,
  id: string,
): Promise<AutomationRecord> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<AutomationRecord>(
      `update automation set deleted_at = now(), updated_at = now()
       where id = $1 and organization_id = $2 and deleted_at is null returning ${columns}`,
      [id, organizationId],
    );
    const deleted = one(rows, "automation", id);
    await forgetAutomations(transaction, organizationId, [id]);
    return read(deleted);
  });
}

/**
 * Deletes the triggers and the state of automations that the transaction has just marked as deleted. Their rows must be locked
 * already, by an earlier statement: what a writer of the state has written until then is seen, and deleted, only so.
 */
export async function forgetAutomations(
  transaction: Queryable,
  organizationId: string,
  ids: readonly string[],
): Promise<void> {
  await transaction.query(
    `update trigger set deleted_at = now(), sealed = null, master_key = null
     where automation_id = any($1) and organization_id = $2 and deleted_at is null`,
    [ids, organizationId],
  );
  await transaction.query("delete from automation_state where automation_id = any($1) and organization_id = $2", [
    ids,
    organizationId,
  ]);
}
